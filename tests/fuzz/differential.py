"""One program under Perspex and under real JAX: what differs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fuzz.compare import Difference, differences, nearer, recovered
from fuzz.process import Broken, Worker
from fuzz.programs import Statement, noisy
from fuzz.shrink import needed

NOISE = 4


@dataclass
class Pair:
    """Perspex and real JAX, each in its process."""

    ours: Worker
    theirs: Worker
    # Third derivatives of `betainc` take either library a minute.
    seconds: float = 180.0
    noisy_runs: int = 0

    def difference(
        self, statements: Sequence[Statement], x64: bool, only: str = "", abstract: bool = False
    ) -> tuple[list[Difference], dict[str, Any]]:
        """What differs, each with its name, and what is expected; `only` compares one name."""
        self.theirs.start()
        self.ours.start()
        if abstract:
            got, want = self.both(statements, x64, abstract=True)
            pairs = ((n, differences(got[n], want[n])) for n in want if n in got)
            return [Difference(d.kind, d.text, n) for n, d in pairs if d], {}
        if any(s.target.startswith("v") for s in statements):
            want = self.theirs.ask(statements, x64, self.seconds)
            got = self.ours.ask(statements, x64, self.seconds, given=want)
        else:  # no statement reads the result of another
            got, want = self.both(statements, x64)
        targets = [s.target for s in statements if s.target and (not only or s.target == only)]
        rounding = {}
        found = {}
        for name in targets:
            direct = name[0] == "v"
            difference = differences(got[name], want[name], zeros=direct)
            if difference:
                found[name] = difference
                if difference.kind in ("value", "NaN or infinity", "sign of zero"):
                    rounding[name] = difference
        doubtful = {n: d for n, d in rounding.items() if d.kind != "sign of zero"}
        for name in self.explained(statements, x64, got, want, doubtful):
            del found[name]
        if "def" in got and "def" not in want:
            found["def"] = Difference("we raise", str(got["def"]))
        return [Difference(d.kind, d.text, name) for name, d in found.items()], want

    def both(
        self, statements: Sequence[Statement], x64: bool, *, abstract: bool = False
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Our outcomes and those of real JAX, computed at the same time."""
        self.theirs.send(statements, x64, abstract=abstract)
        try:
            got = self.ours.ask(statements, x64, self.seconds, abstract=abstract)
        except Broken:
            self.theirs.stop()  # its answer would be read as that to the next question
            raise
        return got, self.theirs.receive(self.seconds)

    def explained(
        self,
        statements: Sequence[Statement],
        x64: bool,
        got: Any,
        want: Any,
        found: dict[str, Difference],
    ) -> set[str]:
        """The names whose difference real JAX shows, too, when all moves by a unit in the last
        place, or in float64."""
        names = set(found)
        if not names:
            return set()
        self.noisy_runs += 1
        kept = needed(statements, names, live=False)
        moved = [Statement(noisy(s.text), s.target) for s in kept]
        runs: dict[str, list[Any]] = {name: [] for name in names}
        left = set(names)
        for seed in range(NOISE):
            outcomes = self.theirs.ask(moved, x64, self.seconds, given=want, noise=seed)
            for name in sorted(left):
                if outcomes[name][0] != "error":
                    runs[name].append(outcomes[name])
                if not differences(got[name], want[name], runs[name]):
                    left.remove(name)
            if not left:
                break
        lost = {n for n in left if found[n].kind == "NaN or infinity"}
        if lost:
            # Numbers may overflow on the way: in float64 they do not.
            wider = [Statement(_widened(s.text), s.target) for s in kept]
            wide = self.theirs.ask(wider, True, self.seconds)
            left -= {n for n in lost if recovered(got[n], want[n], wide[n], runs[n])}
        # Ours may be the nearer of two rounded results: of 0 and 6e-8 where the number is 0.
        for widened, in_x64 in ((_widened_halves, x64), (_widened, True)):
            wider = [Statement(widened(s.text), s.target) for s in kept]
            if left and any(s.text != w.text for s, w in zip(kept, wider, strict=True)):
                wide = self.theirs.ask(wider, in_x64, self.seconds)
                left -= {n for n in left if nearer(got[n], want[n], wide[n])}
        return names - left

    def stop(self) -> None:
        self.ours.stop()
        self.theirs.stop()


def _widened(text: str) -> str:
    wide = re.sub(r"\bb?float(8_\w+|16|32)\b", "float64", text)
    return wide.replace("complex64", "complex128")


def _widened_halves(text: str) -> str:
    return re.sub("b?float16", "float32", text)

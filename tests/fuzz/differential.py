"""One program under Perspex and under real JAX: what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fuzz.compare import Difference, differences
from fuzz.process import Worker
from fuzz.programs import Statement, noisy

NOISE = 4


@dataclass
class Pair:
    """Perspex and real JAX, each in its process."""

    ours: Worker
    theirs: Worker
    seconds: float = 60.0
    noisy_runs: int = 0

    def difference(
        self, statements: Sequence[Statement], x64: bool, only: str = "", abstract: bool = False
    ) -> tuple[list[Difference], dict[str, Any]]:
        """What differs, each with its name, and what is expected; `only` compares one name."""
        self.theirs.start()
        self.ours.start()
        if abstract:
            self.theirs.send(statements, x64, abstract=True)
            got = self.ours.ask(statements, x64, self.seconds, abstract=True)
            want = self.theirs.receive(self.seconds)
            pairs = ((n, differences(got[n], want[n])) for n in want if n in got)
            return [Difference(d.kind, d.text, n) for n, d in pairs if d], {}
        want = self.theirs.ask(statements, x64, self.seconds)
        got = self.ours.ask(statements, x64, self.seconds, given=want)
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
        if any(d.kind != "sign of zero" for d in rounding.values()):
            noise = self.noise(statements, x64, want)
            for name in rounding:
                runs = [n[name] for n in noise if n[name][0] != "error"]
                explained = not differences(got[name], want[name], runs)
                if explained and rounding[name].kind != "sign of zero":
                    del found[name]
        if "def" in got and "def" not in want:
            found["def"] = Difference("we raise", str(got["def"]))
        return [Difference(d.kind, d.text, name) for name, d in found.items()], want

    def noise(self, statements: Sequence[Statement], x64: bool, want: Any) -> list[Any]:
        """The outcomes of real JAX when everything is moved by a unit in the last place."""
        self.noisy_runs += 1
        moved = [Statement(noisy(s.text), s.target) for s in statements]
        return [
            self.theirs.ask(moved, x64, self.seconds, given=want, noise=seed)
            for seed in range(NOISE)
        ]

    def stop(self) -> None:
        self.ours.stop()
        self.theirs.stop()

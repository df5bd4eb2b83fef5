"""A run of the fuzzer: programs of fresh seeds until the time is over."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from fuzz.compare import Difference
from fuzz.coverage import Matrix
from fuzz.differential import Pair
from fuzz.findings import ERRORS, Finding, Findings, cause, errors
from fuzz.generator import Generator, Preferences
from fuzz.meant import meant
from fuzz.process import Broken, Worker
from fuzz.programs import Program, Statement
from fuzz.shrink import shrink

# The report is written again after so many programs.
SAVED = 50
# So many differences that look alike are shrunk.
MOST_SHRUNK = 25
# The bytes of a process, which keeps what it has compiled, at which another takes its place.
MOST = 2**30


class Campaign:
    """Generates, compares, shrinks and counts.

    Arguments:
      ours: the interpreter for Perspex.
      theirs: the interpreter that has `jax`.
      folder: where findings are written.
      seed: the first seed.
      quick: whether XLA leaves out its optimizations.
      generator: what writes programs.
    """

    def __init__(
        self,
        ours: str,
        theirs: str,
        folder: Path,
        seed: int,
        *,
        quick: bool = True,
        generator: type[Generator] = Generator,
    ) -> None:
        self.generator = generator
        self.pair = Pair(
            Worker(ours, "perspex", quick=quick, coverage=True),
            Worker(theirs, "jax", quick=quick),
        )
        self.findings = Findings(folder)
        self.preferences = Preferences()
        self.matrix = Matrix()
        self.seed, self.programs, self.valued, self.statements = seed, 0, 0, 0

    def run(self, seconds: float, most: int | None = None) -> None:
        """Go on for that long, or for so many programs."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end and (most is None or self.programs < most):
                self.one(self.seed + self.programs)
                self.programs += 1
                if self.programs % SAVED == 0:
                    self.save()
                for worker in (self.pair.ours, self.pair.theirs):
                    if worker.size() > MOST:
                        worker.stop()
        finally:
            self.pair.stop()

    def one(self, seed: int) -> None:
        """One program."""
        generator = self.generator(seed, self.preferences)
        program = generator.program()
        abstract = program.run == "types"
        given = program.compiled if program.run == "compiled" else program.statements
        self.statements += len(program.body)
        self.valued += not abstract
        try:
            found, want = self.pair.difference(given, program.x64, abstract=abstract)
        except Broken as error:
            self.findings.broken[str(error).splitlines()[0]] += 1
            self.findings.keep_broken(program, str(error))
            return
        finally:
            news = self.matrix.add(self.pair.ours.rules)
            self.pair.ours.rules = []
            for text in generator.used if news else ():
                self.preferences.bonus[text] += 1
        for difference in self.first(found):
            self.judge(program, given, difference, want, abstract)

    @staticmethod
    def first(found: list[Difference]) -> list[Difference]:
        """The differences that do not follow from others of the same program."""
        single = [d for d in found if d.name.startswith("v")]
        return single or found[:1]

    def judge(
        self,
        program: Program,
        given: Sequence[Statement],
        difference: Difference,
        want: dict[str, object],
        abstract: bool,
    ) -> None:
        """Count a difference; the first of its cause is shrunk and written down."""
        text = next((s.text for s in given if s.target == difference.name), "?")
        reason = self.reason(program, given, difference, abstract)
        if reason:
            self.findings.meant[reason] += 1
            if difference.kind == "jax raises":
                self.findings.accepted[errors(difference)] += 1
            return
        key, causes = cause(difference, text), self.findings.causes
        # Differences in the result of one call of `jit` have many causes, which shrinking tells.
        if causes[key] < (1 if difference.kind in ERRORS else MOST_SHRUNK):
            minimal, difference = self.shrunk(program, given, difference, want, abstract)
            reason = self.reason(program, minimal, difference, abstract)
            if reason:  # which was hidden by others in the program
                self.findings.meant[reason] += 1
                return
            self.findings.keep(Finding(program, difference, minimal, abstract))
        self.findings.kinds[difference.kind] += 1
        causes[key] += 1

    def reason(
        self,
        program: Program,
        given: Sequence[Statement],
        difference: Difference,
        abstract: bool,
        most: int = 3,
    ) -> str:
        """Why a difference is as it should be; the empty string if it is not.

        Behind one there may be others, `most` in all.
        """
        mark = "\n#\n"
        reason, other = meant(difference, mark.join(s.text for s in given))
        if not other:
            return reason
        texts = zip(other.split(mark), given, strict=True)
        changed = [Statement(text, s.target) for text, s in texts]
        try:
            found, _ = self.pair.difference(
                changed, program.x64, difference.name, abstract=abstract
            )
        except Broken:
            return ""
        left = next((d for d in found if d.name == difference.name), None)
        if left is None:
            return reason
        return self.reason(program, changed, left, abstract, most - 1) if most > 1 else ""

    def shrunk(
        self,
        program: Program,
        given: Sequence[Statement],
        difference: Difference,
        want: dict[str, object],
        abstract: bool,
    ) -> tuple[list[Statement], Difference]:
        """The smallest program that was found to differ in this way, and how it differs."""
        left = [600 if abstract else 60]
        seen = {}

        def test(statements: list[Statement]) -> Difference | None:
            left[0] -= 1
            if left[0] < 0:
                return None
            try:
                found, _ = self.pair.difference(
                    statements, program.x64, difference.name, abstract=abstract
                )
            except Broken:
                return None
            for d in found:
                same = d.name == difference.name and d.kind == difference.kind
                if same and (d.kind not in ERRORS or errors(d) == errors(difference)):
                    seen[tuple(statements)] = d
                    return d
            return None

        minimal = shrink(given, difference.name, test, want)
        return minimal, seen.get(tuple(minimal), difference)

    def save(self) -> str:
        """Write the report down; returns it."""
        report = self.report()
        (self.findings.folder / "report.txt").write_text(report + "\n", encoding="utf-8")
        return report

    def report(self) -> str:
        """What was run and what was found, as text."""
        head = (
            f"seeds {self.seed} to {self.seed + self.programs - 1}: {self.programs} programs "
            f"({self.valued} with values) of {self.statements} statements; "
            f"{self.pair.noisy_runs} runs with noise"
        )
        return f"{head}\n{self.findings.report()}\n{self.matrix.report()}"

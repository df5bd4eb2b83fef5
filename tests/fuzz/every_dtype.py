"""Every template with operands of each dtype: the types that it gives under Perspex and real JAX.

    PYTHONPATH=core:tests python -m fuzz.every_dtype --jax-python PYTHON_WITH_JAX

Only what differs is compiled: there the result counts, not what tracing promised. So all of it
takes a few minutes. `--mixed` draws a second dtype, which half of the operands have, `--size 0`
takes empty arrays. It prints what differs, once or twice for each way to be called.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from fuzz.calls import CALLS
from fuzz.compare import Difference, differences
from fuzz.generator import Generator
from fuzz.meant import meant
from fuzz.process import Broken, Worker
from fuzz.programs import Statement
from fuzz.scope import Scope
from fuzz.table import Entry
from fuzz.values import Type

# Weakly typed operands by the number that they are made of.
WEAK = {"weak int": "3", "weak float": "0.5", "weak bool": "True", "weak complex": "1j"}
NARROW = (
    *("bool", "int8", "uint8", "int32", "uint32", "int4", "float16", "bfloat16", "float32"),
    *("float8_e4m3fn", "complex64", *WEAK),
)
WIDE = ("int64", "float64", "complex128")
# So many statements are one program.
TOGETHER = 60
SHOWN = 2


class OfDtype(Generator):
    """Fills templates with operands of one dtype, or of two."""

    def __init__(self, seed: int, dtypes: Sequence[str], x64: bool, size: int) -> None:
        super().__init__(seed)
        self.dtypes, self.x64, self.size = dtypes, x64, size
        self.made: dict[str, Statement] = {}

    def operand(
        self,
        scope: Scope,
        kind: str,
        rank: str = "",
        like: Type | None = None,
        same: bool = False,
    ) -> tuple[str, Type]:
        if kind == "k":
            return "jax.random.key(0)", Type((), "key<fry>")
        dtype = self.rng.choice(self.dtypes)
        shape = (self.size,) * (2 if rank == "q" else int(rank[:1] or self.rng.choice("1110223")))
        shape = shape if like is None else like.shape
        name = "_".join(["x", dtype.replace(" ", "_"), *map(str, shape)])
        text = f"jnp.ones({shape}, jnp.{'bool_' if dtype == 'bool' else dtype})"
        if dtype in WEAK:
            text = f"jnp.broadcast_to({WEAK[dtype]}, {shape})"
        self.made[name] = Statement(f"{name} = {text}", name)
        return name, Type(shape, dtype)

    def statements(self, entries: Sequence[Entry]) -> Iterator[list[Statement]]:
        """Programs that together fill each template once; the operands come first."""
        for start in range(0, len(entries), TOGETHER):
            self.made.clear()
            calls = []
            for entry in entries[start : start + TOGETHER]:
                name = self.fresh("v")
                calls.append(Statement(f"{name} = {self.filled(Scope(), entry)}", name))
            yield [*self.made.values(), *calls]


def found(
    ours: Worker, theirs: Worker, program: Sequence[Statement], x64: bool
) -> Iterator[tuple[str, Difference]]:
    """The calls of a program whose types differ, but for those that are meant to."""
    for statement, _ in unlike(ours, theirs, program, x64, abstract=True):
        used = [
            operand for operand in program if re.search(rf"\b{operand.target}\b", statement.text)
        ]
        for last, difference in unlike(ours, theirs, used, x64, abstract=False):
            if last is statement and not meant(difference, statement.text)[0]:
                yield statement.text, difference


def unlike(
    ours: Worker, theirs: Worker, program: Sequence[Statement], x64: bool, abstract: bool
) -> Iterator[tuple[Statement, Difference]]:
    """The statements of a program whose results, or the types of them, differ."""
    theirs.send(program, x64, abstract=abstract)
    got = ours.ask(program, x64, 180, abstract=abstract)
    want = theirs.receive(180)
    for statement in program:
        if difference := differences(got[statement.target], want[statement.target]):
            yield statement, difference


def main() -> int:
    """Run; the exit status says whether anything differed."""
    parser = argparse.ArgumentParser(prog="fuzz.every_dtype", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--jax-python", required=True)
    parser.add_argument("--python", default=sys.executable, help="the interpreter for Perspex")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mixed", action="store_true", help="operands of two dtypes")
    parser.add_argument("--size", type=int, default=3, help="of every axis: 0 and 1, too")
    given = parser.parse_args()
    ours, theirs = Worker(given.python, "perspex"), Worker(given.jax_python, "jax")
    draw, seen = random.Random(given.seed), Counter[tuple[str, str]]()
    for x64 in (True, False):
        all_dtypes = (*NARROW, *WIDE) if x64 else NARROW
        for dtype in all_dtypes:
            dtypes = (dtype, draw.choice(all_dtypes)) if given.mixed else (dtype,)
            for program in OfDtype(given.seed, dtypes, x64, given.size).statements(CALLS):
                try:
                    differing = list(found(ours, theirs, program, x64))
                except Broken as broken:
                    differing = [(program[-1].text, Difference("broken", str(broken)))]
                    ours.stop()
                    theirs.stop()
                for text, difference in differing:
                    key = difference.kind, re.sub(r"\bx_\w+", "x", text.partition(" = ")[2])[:40]
                    seen[key] += 1
                    if seen[key] <= SHOWN:
                        print(f"{difference.kind}, x64={x64}: {text}\n{difference.text}\n")
    ours.stop()
    theirs.stop()
    print(f"{sum(seen.values())} differ, in {len(seen)} ways")
    return bool(seen)


if __name__ == "__main__":
    sys.exit(main())

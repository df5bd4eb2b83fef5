"""Programs of one call: each function by itself, with the numbers where functions break.

Long arrays have many such numbers at once, so one compilation tells more than a program at random.
"""

from __future__ import annotations

import re

from fuzz import values
from fuzz.generator import ENTRIES, TRIES, Generator
from fuzz.programs import Program, Statement
from fuzz.scope import Refused, Scope, infer

# Those that take an array. Of the smallest integer, `gcd` never returns in jax.
CALLS = [
    e
    for e in ENTRIES
    if not e.concrete
    and re.search(r"\{\w+:[^k]", e.text)
    and not re.search(r"\b(gcd|lcm)\b", e.text)
]
# What is done with a call, besides the call.
USES = (
    "f",
    "forward(f)",
    "backward(f)",
    "forward(backward(f))",
    "backward(backward(f))",
    "(lambda *args: jax.vmap(f)(*map(lanes, args)))",
    "(lambda *args: jax.vmap(backward(f))(*map(lanes, args)))",
)
# Templates whose operands have axes that are spoken of.
_SHAPED = re.compile(r":\w(q|\d)|axis|axes|\.at\[|\{=(index|reshape|broadcast|permutation)\(")


class Calls(Generator):
    """Writes one call and its uses; seeds go round the templates."""

    reuse = 0.0

    def program(self, size: int | None = None) -> Program:
        """A call of the template of the seed; an empty program if Perspex refused all its tries."""
        entry = CALLS[self.seed % len(CALLS)]
        if not _SHAPED.search(entry.text):
            self.shapes = ((), *[(64,)] * 5)
        self.used = [entry.text]
        for _ in range(TRIES):
            self.inputs, self.names = [], type(self.names)()
            scope = Scope()
            text = f"v0 = {self.filled(scope, entry)}"
            try:
                infer(scope, text, "v0", self.x64)
            except Refused:
                continue
            if self.inputs:
                break
        else:
            return Program(self.seed, self.x64, (), (), (), "compiled")
        names = ", ".join(s.target for s in self.inputs)
        tail = [Statement(f"def f({names}):\n    {text}\n    return v0", "")]
        for number, use in enumerate(USES):
            tail.append(Statement(f"r{number} = jax.jit({use})({names})", f"r{number}"))
        body = (Statement(text, "v0"),)
        return Program(self.seed, self.x64, tuple(self.inputs), body, tuple(tail), "compiled")

    def constant(self, scope: Scope, kind: str, shape: tuple[int, ...], dtype: str = "") -> str:
        dtype = dtype or values.draw_dtype(self.rng, kind, self.x64)
        # Infinite complex numbers are divided and multiplied in as many ways as there are programs.
        self.edges = () if dtype.startswith("complex") else (*values.EDGES, "2.0", "1e-7", "100.0")
        return super().constant(scope, kind, shape, dtype)

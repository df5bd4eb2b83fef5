"""The arguments that are no arrays: axes, shapes, indices, numbers, dtypes."""

from __future__ import annotations

import math
import random
from typing import Any

from fuzz import values
from fuzz.values import Type

# How often an argument is drawn that may well be refused.
WRONG = 0.03


class Arguments:
    """Makes the texts of arguments; operands that a template has already are known by name."""

    def __init__(self, rng: random.Random, x64: bool) -> None:
        self.rng, self.x64 = rng, x64
        self.operands: dict[str, Type] = {}

    def make(self, call: str) -> str:
        """The text for `{=call}`."""
        method, _, rest = call.partition("(")
        inside = rest[: rest.rindex(")")]
        if method == "pick":
            return self.rng.choice(_split(inside))
        if method in ("number", "dtype"):
            return getattr(self, method)(inside)
        return getattr(self, method)(*[self.operands[name] for name in inside.split(",") if name])

    def number(self, kind: str) -> str:
        return values.scalar(self.rng, kind)

    def dtype(self, kind: str) -> str:
        name = values.draw_dtype(self.rng, kind, self.x64 or self.rng.random() < WRONG)
        return f"jnp.{name}" if name != "bool" else "jnp.bool_"

    def bool(self) -> str:
        return self.rng.choice(["True", "False"])

    def axis(self, x: Type) -> str:
        """One axis."""
        if self.rng.random() < WRONG or not x.shape:
            return str(self.rng.choice([len(x.shape), -len(x.shape) - 1, 0]))
        return str(self.rng.randrange(-len(x.shape), len(x.shape)))

    def axes(self, x: Type) -> str:
        """`None`, one axis, or a tuple of them."""
        what = self.rng.random()
        if what < 0.3 or not x.shape:
            return "None"
        if what < 0.7:
            return self.axis(x)
        chosen = self.rng.sample(range(len(x.shape)), self.rng.randint(0, len(x.shape)))
        return str(tuple(chosen))

    def permutation(self, x: Type) -> str:
        order = list(range(len(x.shape)))
        self.rng.shuffle(order)
        return str(tuple(order))

    def shape(self) -> str:
        return str(self.rng.choice(values.SHAPES))

    def reshape(self, x: Type) -> str:
        size = math.prod(x.shape)
        choices: list[Any] = [(size,), -1, (1, size), (size, 1), (1, -1)]
        choices += [(n, size // n) for n in (2, 3, 4) if size and size % n == 0]
        choices += [(-1, n) for n in (2, 3) if size and size % n == 0]
        return str(self.rng.choice(choices))

    def broadcast(self, x: Type) -> str:
        shape = tuple([self.rng.choice([2, 3, 0]) if n == 1 else n for n in x.shape])
        return str(self.rng.choice([(), (2,), (1, 3)]) + shape)

    def index(self, x: Type) -> str:
        """Any index: numbers, slices, `None`, `...`, arrays and masks."""
        rng, parts = self.rng, []
        rank = rng.randint(0, len(x.shape)) if rng.random() > WRONG else len(x.shape) + 1
        dims = list(x.shape) + [1]
        masked = False
        for n in dims[:rank]:
            what = rng.random()
            if what < 0.25:
                parts.append(str(rng.randint(-n, n - 1) if n and rng.random() > 0.1 else n))
            elif what < 0.55:
                start, stop = (rng.choice(["", "", "1", "-1", "0", "5", "-7"]) for _ in range(2))
                parts.append(f"{start}:{stop}{rng.choice(['', '', ':1', ':2', ':-1', ':-2'])}")
            elif what < 0.85 or masked:
                size = rng.choice([(), (1,), (2,), (2,), (2, 1), (0,)])
                spread = lambda n=n: str(rng.randint(-n - (rng.random() < 0.1), n))  # noqa: E731
                text = _nested(size, spread)
                kind = rng.choice(
                    [
                        "jnp.array({}, jnp.int32)",
                        "np.array({}, np.int64)",
                        "jnp.array({}, jnp.uint8)",
                    ]
                )
                if 0 in size:
                    text, kind = "[]", "jnp.array({}, jnp.int32)"
                parts.append(kind.format(text.replace("-", "") if "uint8" in kind else text))
            else:
                masked = True
                mask = [rng.random() < 0.5 for _ in range(n)]
                parts.append(f"np.array({mask}, bool)")
        if rng.random() < 0.15:
            parts.insert(rng.randint(0, len(parts)), "None")
        if rng.random() < 0.15:
            parts.insert(rng.randint(0, len(parts)), "...")
        return ", ".join(parts) if parts else rng.choice(["...", "None", "()"])


def _nested(shape: tuple[int, ...], element: Any) -> str:
    if not shape:
        return element()
    return "[" + ", ".join(_nested(shape[1:], element) for _ in range(shape[0])) + "]"


def _split(text: str) -> list[str]:
    """The parts between the commas that stand in no bracket and in no text."""
    parts, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == "'"
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]

"""Programs at random: a seed gives a list of statements that Perspex and real JAX both run."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence

from fuzz import values
from fuzz.arguments import Arguments
from fuzz.programs import Program, Statement
from fuzz.scope import Axes, Refused, Scope, infer
from fuzz.table import Entry, entries
from fuzz.values import CLASSES, Type

_HOLE = re.compile(r"\{(\w+)(?::([a-z])(q|\d\+?)?)?(?:([~=])(\w+))?\}|\{=(\w+\((?:[^{}]*)\))\}")
TRIES = 6
# How many statements that Perspex refuses stay in the program, as questions about the error.
KEPT_ERRORS = 0.15
ENTRIES = entries()


class Preferences:
    """Which templates are drawn: those that were drawn least, or that led to something new."""

    def __init__(self) -> None:
        self.drawn: Counter[str] = Counter()
        self.bonus: Counter[str] = Counter()

    def choose(self, rng: random.Random, choices: Sequence[Entry]) -> Entry:
        few = rng.sample(choices, min(8, len(choices)))
        return min(few, key=lambda e: self.drawn[e.text] - self.bonus[e.text] + rng.random())


class Generator:
    """Writes one program."""

    # How often an operand is a value that is there, if one fits, and what new ones look like.
    reuse = 0.8
    shapes: Sequence[tuple[int, ...]] = values.SHAPES
    edges: Sequence[str] | None = None

    def __init__(self, seed: int, preferences: Preferences | None = None) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.preferences = preferences or Preferences()
        self.x64 = self.rng.random() < 0.25
        self.names: Counter[str] = Counter()
        self.inputs: list[Statement] = []
        self.touched: set[tuple[str, str]] = set()
        self.used: list[str] = []

    def fresh(self, prefix: str) -> str:
        self.names[prefix] += 1
        return f"{prefix}{self.names[prefix] - 1}"

    # ---- Operands -------------------------------------------------------------------------------

    def constant(self, scope: Scope, kind: str, shape: tuple[int, ...], dtype: str = "") -> str:
        """A new array: an input of the program, or written in place inside of a function."""
        dtype = dtype or values.draw_dtype(self.rng, kind, self.x64)
        text = values.array(self.rng, shape, dtype, self.edges)
        if scope.outer is not None:
            return text
        name = self.fresh("x")
        self.inputs.append(Statement(f"{name} = {text}", name))
        scope.own.insert(0, (name, Type(shape, dtype)))
        return name

    def operand(
        self,
        scope: Scope,
        kind: str,
        rank: str = "",
        like: Type | None = None,
        same: bool = False,
    ) -> tuple[str, Type]:
        """A value that fits: one that is there, or a new one."""
        if kind == "k":
            found = scope.pick(
                self.rng, lambda t: t.dtype.startswith("key") and not (rank and t.shape)
            )
            return found or (f"jax.random.key({self.rng.randint(0, 9)})", Type((), "key<fry>"))

        def fits(t: Type) -> bool:
            if t.dtype not in CLASSES[kind] and not (kind == "n" and t.dtype == "bool"):
                return same and like is not None and t == like
            if same and like is not None:
                return t.shape == like.shape and t.dtype == like.dtype
            return _has_rank(t.shape, rank) and (like is None or _spread(t.shape, like.shape))

        if self.rng.random() < self.reuse:
            found = scope.pick(self.rng, fits)
            if found:
                return found
        if same and like is not None:
            if like.dtype.startswith("key"):
                return f"jax.random.key({self.rng.randint(0, 9)})", like
            text = self.constant(scope, kind, like.shape, like.dtype)
            return text, Type(like.shape, like.dtype)
        if not rank and self.rng.random() < 0.12 and kind in "fisrnab":
            scalar_kind = {"s": "i", "a": "n"}.get(kind, kind)
            text = values.scalar(self.rng, scalar_kind)
            return f"jnp.asarray({text})", Type((), "float32", True)
        shapes = [s for s in self.shapes if _has_rank(s, rank)]
        if like is not None:
            shapes = [s for s in shapes if _spread(s, like.shape)] or [like.shape]
        shape = self.rng.choice(shapes or [(3, 3)])
        dtype = values.draw_dtype(self.rng, kind, self.x64)
        return self.constant(scope, kind, shape, dtype), Type(shape, dtype)

    # ---- Statements -----------------------------------------------------------------------------

    def filled(self, scope: Scope, entry: Entry) -> str:
        """A template with all its holes filled."""
        arguments = Arguments(self.rng, self.x64)
        texts: dict[str, str] = {}

        def fill(match: re.Match[str]) -> str:
            name, kind, rank, relation, other, call = match.groups()
            if call:
                return arguments.make(call)
            if name not in texts:
                like = arguments.operands.get(other) if other else None
                if like is None and relation == "=":  # of an operand that stands further right
                    like = Type((3,), values.draw_dtype(self.rng, kind, self.x64))
                same = relation == "="
                text, found = self.operand(scope, kind, rank or "", like, same)
                texts[name], arguments.operands[name] = text, found
            return texts[name]

        return _HOLE.sub(fill, entry.text)

    def simple(self, scope: Scope) -> tuple[str, str]:
        """A call of one function: the text and the name that it assigns."""
        here = [e for e in ENTRIES if not e.concrete] if scope.outer is not None else ENTRIES
        entry = self.preferences.choose(self.rng, here)
        self.used.append(entry.text)
        self.preferences.drawn[entry.text] += 1
        name = self.fresh("v")
        return f"{name} = {self.filled(scope, entry)}", name

    def statement(self, scope: Scope, depth: int) -> Statement | None:
        """One statement, its result noted in the scope; `None` if none was found."""
        from fuzz import control, devices, transformed

        for _ in range(TRIES):
            what = self.rng.random()
            if scope.axes and what < 0.35:
                text, target = devices.collective(self, scope)
            elif depth and what < 0.05:
                text, target = devices.statement(self, scope, depth - 1)
            elif depth and what < 0.2:
                text, target = control.statement(self, scope, depth - 1)
            elif depth and what < 0.38:
                text, target = transformed.statement(self, scope, depth - 1)
            else:
                text, target = self.simple(scope)
            try:
                out, touched = infer(scope, text, target, self.x64)
            except Refused as refusal:
                keep = scope.outer is None and self.rng.random() < KEPT_ERRORS
                concrete = "ConcretizationTypeError" in str(refusal) or "Tracer" in str(refusal)
                if (keep or concrete) and scope.outer is None:
                    return Statement(text, target, traceable=False)
                continue
            self.touched |= touched
            scope.add(target, out)
            return Statement(text, target)
        return None

    def body(
        self,
        scope: Scope,
        params: Sequence[tuple[str, Type]],
        size: int,
        depth: int,
        finish: str,
        axes: Axes | None = None,
    ) -> str | None:
        """The lines of a function's body; `finish` says what is returned.

        `carry`: a value of the type of the first parameter. `any`: up to two values. `pair`: both.
        `axes` are bound around the function.
        """
        outer = scope if self.rng.random() < 0.4 else Scope()
        inner = Scope(params, outer, {**scope.axes, **(axes or {})})
        lines = []
        for _ in range(size):
            made = self.statement(inner, depth)
            if made:
                lines += made.text.splitlines()
        lines.append(f"return {self.result(inner, params, finish)}")
        return "\n".join("    " + line for line in lines)

    def result(self, inner: Scope, params: Sequence[tuple[str, Type]], finish: str) -> str:
        made = [item for item in inner.own if item not in params] or list(params)
        carry_name, carry = params[-1 if finish.startswith("last") else 0]
        finish = finish.removeprefix("last ")
        exact = [text for text, t in made if t == carry]
        if exact and self.rng.random() < 0.7:
            kept = self.rng.choice(exact)
        else:
            text, t = self.rng.choice(made)
            kept = carry_name
            if carry.dtype == "bool":
                kept = (
                    f"{carry_name} ^ jnp.any({text} != 0)"
                    if not t.dtype.startswith("key")
                    else kept
                )
            elif carry.dtype.startswith("key") or t.dtype.startswith("key"):
                pass
            else:
                kept = f"({carry_name} + jnp.sum({text}).astype({carry_name}.dtype))"
        if finish == "carry":
            return kept
        chosen = self.rng.sample(made, min(len(made), self.rng.randint(1, 2)))
        texts = [text for text, _ in chosen]
        shape = self.rng.random()
        if shape < 0.5 or len(texts) == 1:
            free = texts[-1]
        elif shape < 0.8:
            free = f"({', '.join(texts)})"
        else:
            free = "{" + ", ".join(f"{k!r}: {t}" for k, t in zip("ab", texts, strict=False)) + "}"
        return free if finish == "any" else f"{kept}, {free}"

    def program(self, size: int | None = None) -> Program:
        """The whole program: inputs, statements, and the function of them under transforms."""
        from fuzz import transformed

        scope = Scope()
        statements: list[Statement] = []
        for _ in range(size or self.rng.randint(1, 7)):
            made = self.statement(scope, self.rng.choice([0, 1, 2, 3]))
            if made:
                statements.append(made)
        tail = transformed.whole(self, scope, self.inputs, statements)
        return Program(self.seed, self.x64, tuple(self.inputs), tuple(statements), tuple(tail))


def _has_rank(shape: tuple[int, ...], rank: str) -> bool:
    if rank == "q":
        return len(shape) == 2 and shape[0] == shape[1]
    if rank.endswith("+"):
        return len(shape) >= int(rank[0])
    return not rank or len(shape) == int(rank)


def _spread(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))

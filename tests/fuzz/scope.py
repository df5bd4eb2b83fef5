"""What a program has made so far: names of values with their types, as Perspex infers them."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

import perspex
from fuzz.coverage import dtype_class
from fuzz.prelude import PRELUDE
from fuzz.values import Type
from perspex import lax
from perspex import numpy as jnp


class Refused(Exception):
    """Perspex does not accept a statement."""


def namespace() -> dict[str, Any]:
    """The names that programs see, under Perspex."""
    import perspex.flatten_util
    import perspex.scipy

    names: dict[str, Any] = {"jax": perspex, "jnp": jnp, "lax": lax, "np": np}
    exec(PRELUDE, names)
    return names


NAMES = namespace()


Axes = dict[str, int]


class Scope:
    """Expressions whose types are known, the newest last, and the sizes of named axes."""

    def __init__(
        self,
        values: Iterable[tuple[str, Type]] = (),
        outer: Scope | None = None,
        axes: Axes | None = None,
    ) -> None:
        self.own = list(values)
        self.outer = outer
        self.axes = axes or {}

    def without_axes(self) -> Scope:
        """This scope for a branch: which devices exchange values must not depend on values."""
        return Scope(outer=self) if self.axes else self

    def all(self) -> list[tuple[str, Type]]:
        return (self.outer.all() if self.outer else []) + self.own

    def add(self, name: str, tree: Any) -> None:
        """Note the value called `name`, and the items of it if it is a tuple, list or dict."""
        if isinstance(tree, perspex.ShapeDtypeStruct):
            dtype = str(tree.dtype)
            self.own.append((name, Type(tuple(tree.shape), dtype, bool(tree.weak_type))))
        elif isinstance(tree, (tuple, list)):
            for position, item in enumerate(tree):
                self.add(f"{name}[{position}]", item)
        elif isinstance(tree, dict):
            for key, item in tree.items():
                self.add(f"{name}[{key!r}]", item)

    def pick(self, rng: random.Random, wanted: Any) -> tuple[str, Type] | None:
        """A value that is wanted, newer ones more often."""
        found = [item for item in self.all() if wanted(item[1])]
        if not found:
            return None
        return found[-1 - min(int(rng.expovariate(0.35)), len(found) - 1)]


def avals(scope: Scope) -> dict[str, Any]:
    """The values of a scope as arguments: a tree for each name."""
    return {
        text: perspex.ShapeDtypeStruct(kind.shape, _dtype(kind.dtype), weak_type=kind.weak)
        for text, kind in scope.all()
    }


def _dtype(name: str) -> Any:
    if name.startswith("key"):
        return perspex.random.key(0).dtype
    return jnp.dtype(name)


class _Items(dict[Any, Any]):
    """A container of which only the items with known types are there."""


def infer(scope: Scope, text: str, target: str, x64: bool) -> tuple[Any, set[tuple[str, str]]]:
    """The type of `target` after `text` ran on values of a scope, and what primitives it takes.

    Raises `Refused`.
    """
    code = compile(text, "<program>", "exec")

    out: list[Any] = []

    def run(given: dict[str, Any]) -> None:
        names = dict(NAMES)
        for expression, value in given.items():
            name, _, rest = expression.partition("[")
            if not rest:
                names[name] = value
                continue
            place = names.setdefault(name, _Items())
            *path, last = [eval(part) for part in rest[:-1].split("][")]
            for key in path:
                place = place.setdefault(key, _Items())
            place[last] = value
        exec(code, names)
        out.append(perspex.tree.map(_abstract, names[target]))

    for axis, size in scope.axes.items():
        run = perspex.vmap(run, None, axis_name=axis, axis_size=size)

    try:
        with perspex.enable_x64(x64), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jaxpr = perspex.make_jaxpr(run)(avals(scope))
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from None
    return out[-1], primitives(jaxpr.jaxpr)


def _abstract(x: Any) -> Any:
    aval = perspex.typeof(x)
    return perspex.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def primitives(jaxpr: Any) -> set[tuple[str, str]]:
    """The names of primitives in a program and in the programs within, with dtype classes."""
    found = set()
    for eqn in jaxpr.eqns:
        dtypes = [str(v.aval.dtype) for v in eqn.invars if hasattr(v.aval, "dtype")]
        found.add((eqn.primitive.name, dtype_class(dtypes[0]) if dtypes else "none"))
        for value in eqn.params.values():
            for inner in value if isinstance(value, tuple) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    found |= primitives(inner)
    return found

"""Which rules of which primitives have run, with operands of which class of dtypes.

A rule is an attribute of its primitive, so one loop over all primitives counts everything.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any

RULES = ("type", "lower", "jvp", "transpose", "batch", "split", "dce")
CLASSES = ("float", "float16", "float8", "int", "int4", "uint", "bool", "complex", "key")


def dtype_class(dtype: str) -> str:
    """The class by which is counted."""
    if dtype.startswith(("float8", "float4", "float6")):
        return "float8"
    if dtype in ("int4", "uint4", "int2", "uint2"):
        return "int4"
    if dtype in ("bfloat16", "float16"):
        return "float16"
    return next(
        (c for c in ("float", "complex", "bool", "uint", "int", "key") if dtype.startswith(c)), ""
    )


class Counted:
    """The rules that ran, each once."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str, str]] = set()
        self.new: list[tuple[str, str, str]] = []

    def note(self, primitive: str, rule: str, given: Iterable[Any]) -> None:
        """Count the classes of all operands."""
        for x in given:
            if isinstance(x, (list, tuple)):
                self.note(primitive, rule, x)
                continue
            dtype = getattr(x, "dtype", None)
            found = dtype_class(str(dtype)) if dtype is not None else ""
            key = (primitive, rule, found)
            if found and key not in self.seen:
                self.seen.add(key)
                self.new.append(key)

    def news(self) -> list[tuple[str, str, str]]:
        """What ran for the first time since the last call."""
        new, self.new = self.new, []
        return new


def all_primitives() -> list[Any]:
    """Every primitive of Perspex."""
    from perspex.tracing.primitive import Primitive

    found: dict[int, Any] = {}
    for name in ("ops", "control", "rules", "jitted"):
        package = importlib.import_module(f"perspex.{name}")
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, Primitive):
                    found[id(value)] = value
    return list(found.values())


def count_rules() -> Counted:
    """Have every rule of every primitive note its operands when it runs."""
    counted = Counted()
    for primitive in all_primitives():
        for rule in RULES:
            plain = getattr(primitive, rule, None)
            if plain is not None:
                setattr(primitive, rule, _noting(counted, primitive.name, rule, plain))
    return counted


def _noting(
    counted: Counted, name: str, rule: str, plain: Callable[..., Any]
) -> Callable[..., Any]:
    def run(*args: Any, **params: Any) -> Any:
        given: Iterable[Any] = args
        if rule == "lower":
            given = args[0].in_avals
        elif rule == "dce":
            given = [getattr(v, "aval", v) for v in args[0].invars]
        counted.note(name, rule, given)
        return plain(*args, **params)

    return run


class Matrix:
    """What a run has hit: primitives by rules and classes."""

    def __init__(self) -> None:
        self.hit: set[tuple[str, str, str]] = set()

    def add(self, rules: Iterable[Iterable[str]]) -> int:
        """Note what ran; returns how much of it is new."""
        before = len(self.hit)
        self.hit.update(tuple(r) for r in rules)  # type: ignore[misc]
        return len(self.hit) - before

    def report(self) -> str:
        """A line for each primitive: for each rule the initials of the classes that it has seen."""
        initials = dict(zip(CLASSES, "fh8i4ubck", strict=True))
        names = sorted({p.name for p in all_primitives()})
        has = {p.name: p for p in all_primitives()}
        lines = [
            "rules by classes of dtypes: f float, h half, 8 float8, i int, 4 int4, u uint, b bool, "
            "c complex, k key",
            f"{'':24}" + "".join(f"{rule:10}" for rule in RULES),
        ]
        never = []
        for name in names:
            cells = []
            for rule in RULES:
                got = "".join(i for c, i in initials.items() if (name, rule, c) in self.hit)
                if not got and rule in ("type", "lower", "jvp", "transpose", "batch"):
                    plain = getattr(type(has[name]), rule, None)
                    if plain is not None and "Primitive." not in plain.__qualname__:
                        never.append(f"{name}.{rule}")
                cells.append(f"{got or '-':10}")
            lines.append(f"{name:24}" + "".join(cells).rstrip())
        hit = len(self.hit)
        lines.append(f"{hit} cells hit; never hit: {' '.join(never) or 'nothing'}")
        return "\n".join(lines)

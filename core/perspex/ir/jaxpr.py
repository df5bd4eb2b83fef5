"""The intermediate representation: a typed, first-order, functional program over arrays.

    jaxpr ::= { lambda constvars ; invars. let eqns in (outvars) }
    eqn   ::= outvars = primitive[params] invars

Always true: every variable is bound once, before it is used; `invars` of an equation are variables
or literals; params are hashable; a jaxpr inside params is a `ClosedJaxpr` without constants,
because what a body captures is passed to its equation as an operand. `check` verifies all of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from perspex.base.effects import Effects, no_effects
from perspex.ir import printing
from perspex.ir.avals import WIDE, ShapedArray, shaped


class Var:
    """A typed variable. Identity is its name."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class Literal:
    """A constant that stands in an equation itself: a scalar, or a small array while lowering."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray | None = None) -> None:
        self.val = val
        self.aval = shaped(val) if aval is None else aval

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom = Var | Literal


class JaxprEqn:
    """`outvars = primitive[params] invars`, and where in the user's code it was written."""

    __slots__ = ("invars", "outvars", "params", "primitive", "source")

    def __init__(
        self,
        primitive: Any,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        params: dict[str, Any],
        source: Any = None,
    ) -> None:
        self.primitive = primitive
        self.invars = invars
        self.outvars = outvars
        self.params = params
        self.source = source

    @property
    def effects(self) -> Effects:
        """What it does beyond its results, in the programs inside its params too."""
        found: Effects = self.primitive.effects(self.params)
        return found

    @property
    def is_wide(self) -> bool:
        """Whether it takes or gives 64 bits."""
        return any([v.aval.dtype in WIDE for v in (*self.invars, *self.outvars)])

    def replace(self, **changes: Any) -> JaxprEqn:
        """A copy with some fields replaced."""
        fields = {name: changes.get(name, getattr(self, name)) for name in self.__slots__}
        return JaxprEqn(**fields)

    def __repr__(self) -> str:
        return printing.equation(self)


class Jaxpr:
    """A program whose constants are still variables."""

    __slots__ = ("__weakref__", "_effects", "constvars", "eqns", "invars", "name", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        name: str = "",
    ) -> None:
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.name = name
        self._effects: Effects | None = None

    @property
    def effects(self) -> Effects:
        """The effects of its equations; found once, and kept."""
        if self._effects is None:
            self._effects = no_effects.union(*[eqn.effects for eqn in self.eqns])
        return self._effects

    def replace(self, **changes: Any) -> Jaxpr:
        """A copy with some fields replaced."""
        names = ("constvars", "invars", "outvars", "eqns", "name")
        return Jaxpr(**{name: changes.get(name, getattr(self, name)) for name in names})

    def __repr__(self) -> str:
        return printing.program(self)

    def pretty_print(self, **options: Any) -> str:
        return printing.program(self, **options)


class ClosedJaxpr:
    """A program with the values of its constants: something that can be called."""

    __slots__ = ("__weakref__", "consts", "jaxpr", "token")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        assert len(jaxpr.constvars) == len(consts), (len(jaxpr.constvars), len(consts))
        self.jaxpr = jaxpr
        self.consts = list(consts)
        # What all programs share that do the same, once it is known (`transforms.identity`).
        self.token: Any = None

    @property
    def eqns(self) -> list[JaxprEqn]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> Effects:
        return self.jaxpr.effects

    @property
    def is_idle(self) -> bool:
        """Whether it neither gives nor does anything."""
        return not self.jaxpr.outvars and not self.effects

    @property
    def literals(self) -> list[Any]:
        return self.consts

    @property
    def constvars(self) -> list[Var]:
        return self.jaxpr.constvars

    @property
    def invars(self) -> list[Var]:
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Atom]:
        return self.jaxpr.outvars

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.outvars]

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None) -> Any:
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )

    def __repr__(self) -> str:
        return printing.program(self.jaxpr)

    def pretty_print(self, **options: Any) -> str:
        return printing.program(self.jaxpr, **options)


def sub_jaxprs(params: dict[str, Any]) -> Iterator[ClosedJaxpr]:
    """The programs inside an equation's params: bodies, branches, callees."""
    for value in params.values():
        if isinstance(value, ClosedJaxpr):
            yield value
        elif isinstance(value, (tuple, list)):
            for item in value:
                if isinstance(item, ClosedJaxpr):
                    yield item


def map_programs(params: dict[str, Any], f: Callable[[ClosedJaxpr], ClosedJaxpr]) -> dict[str, Any]:
    """The params of an equation with `f` applied to each program among them."""

    def mapped(value: Any) -> Any:
        if isinstance(value, ClosedJaxpr):
            return f(value)
        if value.__class__ is tuple and value and isinstance(value[0], ClosedJaxpr):
            return tuple([f(item) for item in value])
        return value

    return {name: mapped(value) for name, value in params.items()}


def count_eqns(jaxpr: Jaxpr) -> int:
    """The number of equations, those of nested programs included."""
    return sum(
        1 + sum(count_eqns(sub.jaxpr) for sub in sub_jaxprs(eqn.params)) for eqn in jaxpr.eqns
    )


def check(jaxpr: Jaxpr) -> None:
    """Raise `TypeError` unless the program is well formed and well typed."""
    bound: set[int] = set()

    def bind(var: Var) -> None:
        if id(var) in bound:
            raise TypeError(f"variable {var!r} is bound twice in\n{jaxpr}")
        bound.add(id(var))

    def read(atom: Atom, where: str) -> ShapedArray:
        if isinstance(atom, Var) and id(atom) not in bound:
            raise TypeError(f"variable {atom!r} is used before it is bound, in {where}")
        return atom.aval

    for var in (*jaxpr.constvars, *jaxpr.invars):
        bind(var)
    for eqn in jaxpr.eqns:
        avals = tuple([read(atom, repr(eqn)) for atom in eqn.invars])
        hash(tuple(eqn.params.items()))
        for sub in sub_jaxprs(eqn.params):
            if sub.consts:
                raise TypeError(f"the program inside {eqn.primitive} holds constants")
            check(sub.jaxpr)
        expected = eqn.primitive.typed(avals, eqn.params)
        if not eqn.primitive.multiple_results:
            expected = (expected,)
        found = [var.aval for var in eqn.outvars]
        if list(expected) != found:
            raise TypeError(f"{eqn.primitive} has results {expected} but binds {found}")
        for var in eqn.outvars:
            bind(var)
    for atom in jaxpr.outvars:
        read(atom, "the results")

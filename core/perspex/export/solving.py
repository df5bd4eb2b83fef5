"""What the variables in the shapes of arguments are, given the shapes of actual arguments.

Each symbolic size in a shape is an equation between the expression and the size that is there. An
equation that is linear in one unknown variable gives it; the others, and the constraints of the
scope, are what is checked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from perspex import tree
from perspex.base.dimensions import Symbolic
from perspex.export.expressions import Dimension, Size, divide, operation, variable
from perspex.export.scopes import SymbolicScope
from perspex.ir.avals import ShapedArray


def _operation(name: str) -> Callable[[Size, Size], Size]:
    def apply(one: Size, two: Size) -> Size:
        for x in (one, two):
            if isinstance(x, Dimension):
                return operation(name, one, two, x.scope)
        return {"max": max, "min": min}[name](one, two)

    return apply


SIZES: dict[str, Callable[[Size, Size], Size]] = {
    "add": operator.add,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": _operation("max"),
    "min": _operation("min"),
}


def evaluated(x: Size, values: Mapping[str, Any], apply: Mapping[str, Any] = SIZES) -> Any:
    """The value of a size for these values of its variables."""
    return x.evaluate(values, apply) if isinstance(x, Dimension) else x


class Check(NamedTuple):
    """`left == right` or `left >= right`; the message has texts and the sizes to be put into it."""

    is_equality: bool
    left: Size
    right: Size
    message: tuple[Any, ...]

    def text(self, number: Callable[[Size], str]) -> str:
        """The message, with `number(size)` for each size."""
        return "".join([x if isinstance(x, str) else number(x) for x in self.message])


class Solution(NamedTuple):
    """The variables in terms of the sizes that are there, which have the names in `places`."""

    variables: dict[str, Size]
    checks: list[Check]
    places: dict[str, tuple[int, int]]


def argument_path(structure: Any, i: int) -> str:
    """What the argument number `i` is called: `args[0]['w']`."""
    dummy = tree.unflatten(structure, list(range(structure.num_leaves)))
    path = tree.flatten_with_path(dummy)[0][i][0]
    return f"{'kwargs' if path[0].idx else 'args'}{tree.keystr(path[1:])}"


def solve(avals: Sequence[ShapedArray], structure: Any) -> Solution:
    """The variables in the shapes of arguments, given in the structure `(args, kwargs)`.

    Raises `ValueError` for a variable that the shapes do not determine.
    """
    scope = SymbolicScope()
    places: dict[str, tuple[int, int]] = {}
    waiting: list[tuple[str, Dimension]] = []
    specs = []
    for i, aval in enumerate(avals):
        found = [(k, n) for k, n in enumerate(aval.shape) if isinstance(n, Symbolic)]
        if found:
            specs.append(f"{argument_path(structure, i)}.shape = {aval.shape}")
        for k, n in found:
            assert isinstance(n, Dimension)
            name = f"{argument_path(structure, i)}.shape[{k}]"
            places[name] = (i, k)
            waiting.append((name, n))
    solver = _Solver(
        scope, f" Using the following polymorphic shapes specifications: {','.join(specs)}."
    )
    explicit = waiting[0][1].scope.constraints if waiting else []
    while waiting:
        left = [equation for equation in waiting if not solver.process(*equation)]
        if len(left) == len(waiting):
            unknown = set().union(*[n.variables() for _, n in left]) - set(solver.values)
            raise ValueError(
                f"Cannot solve for values of dimension variables {unknown}. We can only solve "
                f"linear uni-variate constraints.{solver.specs} Unprocessed specifications: "
                + ", ".join([f"'{n}' for dimension size {name}" for name, n in left])
                + ". Give each variable an axis of its own in some argument"
            )
        waiting = left
    for constraint in explicit:
        difference = evaluated(constraint.difference, solver.values)
        solver.check(
            constraint.is_equality,
            difference,
            0,
            f"Input shapes do not match the symbolic shape constraint {constraint.text}. Expected "
            f"'{constraint.difference}' to be "
            f"{'equal' if constraint.is_equality else 'greater or equal'} to 0, but found ",
            difference,
            ". ",
        )
    return Solution(solver.values, solver.checks, places)


class _Solver:
    """The variables that are known, and what has to be checked."""

    def __init__(self, scope: SymbolicScope, specs: str) -> None:
        self.scope, self.specs = scope, specs
        self.values: dict[str, Size] = {}
        self.checks: list[Check] = []
        self.story: list[Any] = [" Obtained dimension variables: "]

    def check(self, is_equality: bool, left: Size, right: Size, *message: Any) -> None:
        """Note a condition, and what to say if it does not hold."""
        full = (*message, self.specs, *self.story)
        self.checks.append(Check(is_equality, left, right, full))

    def process(self, name: str, spec: Dimension) -> bool:
        """Use one equation, if it has no more than one unknown variable, as a linear term."""
        size = variable(name, self.scope)
        rest: Size = size
        unknown: tuple[str, int] | None = None
        for product, k in spec.terms.items():
            missing = Dimension({product: 1}, spec.scope).variables() - set(self.values)
            if not missing:
                if product:
                    value = Dimension({product: k}, spec.scope).evaluate(self.values, SIZES)
                else:
                    value = k
                rest = rest - value
            elif unknown is None and len(product) == 1 and isinstance(product[0], str):
                unknown = product[0], k
            else:
                return False
        start = "Input shapes do not match the polymorphic shapes specification. "
        if unknown is None:
            found = spec.evaluate(self.values, SIZES)
            self.check(
                True,
                size,
                found,
                f"{start}Found inconsistency between dimension size {name} (= ",
                size,
                f") and the specification '{spec}' (= ",
                found,
                ").",
            )
            return True
        var, k = unknown
        value = rest
        if k != 1:
            value, left = divide(rest, k, self.scope)
            text = f" when computing the value of '{var}'."
            self.check(True, left, 0, f"{start}Division had remainder ", left, text)
        self.values[var] = value
        self.story += [
            f"'{var}' = ",
            value,
            f" from specification '{spec}' for dimension {name} (= ",
            size,
            "), ",
        ]
        text = f"{start}Expected value >= 1 for dimension variable '{var}'."
        self.check(False, value, 1, text)
        return True


def check_statically(solution: Solution, values: Mapping[str, Size]) -> dict[str, Size]:
    """The variables for the sizes that are there. Raises `ValueError` if a check fails."""
    for check in solution.checks:
        left, right = evaluated(check.left, values), evaluated(check.right, values)
        if not (left == right if check.is_equality else left >= right):
            raise ValueError(check.text(lambda x: str(evaluated(x, values))))
    return {name: evaluated(x, values) for name, x in solution.variables.items()}

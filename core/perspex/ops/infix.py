"""Formulas in infix notation, for lower rules that compute in a dtype of their own.

`Formula` wraps an array; its operators are elementwise primitives, and a Python number takes the
dtype of the array that it meets. A formula in float64 stays one, also where 64-bit types are
switched off for the user's own arrays. `emit` and `loop` put formulas into a
program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import config
from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ops
from perspex.ops.lowering import expand
from perspex.ops.reductions import reduce_or
from perspex.ops.structural import scalar_like
from perspex.tracing.trace import typeof

_FLAG = ShapedArray((), np.dtype(bool))


class Formula:
    """An array, with operators that are elementwise primitives."""

    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x

    def _with(self, op: Callable[..., Any], other: Any, swap: bool = False) -> Formula:
        y = other.x if isinstance(other, Formula) else scalar_like(self.x, other)
        return Formula(op(y, self.x) if swap else op(self.x, y))

    def __add__(self, other: Any) -> Formula:
        return self._with(ops.add, other)

    def __sub__(self, other: Any) -> Formula:
        return self._with(ops.sub, other)

    def __mul__(self, other: Any) -> Formula:
        return self._with(ops.mul, other)

    def __truediv__(self, other: Any) -> Formula:
        return self._with(ops.div, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Any) -> Formula:
        return self._with(ops.sub, other, swap=True)

    def __rtruediv__(self, other: Any) -> Formula:
        return self._with(ops.div, other, swap=True)

    def __neg__(self) -> Formula:
        return Formula(ops.neg(self.x))

    def __abs__(self) -> Formula:
        return Formula(ops.abs(self.x))

    def __lt__(self, other: Any) -> Formula:
        return self._with(ops.lt, other)

    def __le__(self, other: Any) -> Formula:
        return self._with(ops.le, other)

    def __gt__(self, other: Any) -> Formula:
        return self._with(ops.gt, other)

    def __ge__(self, other: Any) -> Formula:
        return self._with(ops.ge, other)

    def equals(self, other: Any) -> Formula:
        return self._with(ops.eq, other)

    def __and__(self, other: Formula) -> Formula:
        return Formula(ops.bitwise_and(self.x, other.x))

    def __or__(self, other: Formula) -> Formula:
        return Formula(ops.bitwise_or(self.x, other.x))

    def __invert__(self) -> Formula:
        return Formula(ops.bitwise_not(self.x))


def _function(op: Callable[[Any], Any]) -> Callable[[Formula], Formula]:
    return lambda v: Formula(op(v.x))


exp, log, log1p = _function(ops.exp), _function(ops.log), _function(ops.log1p)
expm1, sqrt, sign = _function(ops.expm1), _function(ops.sqrt), _function(ops.sign)


def call(primitive: Callable[..., Any], *values: Formula) -> Formula:
    """Another elementwise primitive of formulas."""
    return Formula(primitive(*[v.x for v in values]))


def where(which: Formula, yes: Any, no: Any) -> Formula:
    """`yes` where `which` is true, else `no`; one of them may be a number."""
    like = (yes if isinstance(yes, Formula) else no).x
    yes, no = [v.x if isinstance(v, Formula) else scalar_like(like, v) for v in (yes, no)]
    out = ops.select(which.x, yes, no)
    return Formula(out)


def any_of(which: Formula) -> Formula:
    """Whether any element is true: a scalar."""
    ndim = typeof(which.x).ndim
    return Formula(reduce_or(which.x, axes=tuple(range(ndim)))) if ndim else which


def horner(coefficients: Sequence[float], x: Formula) -> Formula:
    """The polynomial with these coefficients, that of the lowest power first."""
    *rest, total = coefficients
    out: Any = total
    for c in reversed(rest):
        out = x * out + c
    return out


def emit(
    b: Any, f: Callable[..., Any], values: Sequence[Any], avals: Sequence[ShapedArray]
) -> list[Any]:
    """Emit what `f`, of formulas to a formula or a sequence of them, does with `values`."""

    def on_arrays(*xs: Any) -> list[Any]:
        out = f(*[Formula(x) for x in xs])
        return [v.x for v in ([out] if isinstance(out, Formula) else out)]

    with config.enable_x64(True):
        return expand(b, on_arrays, *values, avals=avals)


def loop(
    b: Any,
    going: Callable[..., Formula],
    turn: Callable[..., Sequence[Formula]],
    values: Sequence[Any],
    avals: Sequence[ShapedArray],
) -> list[Any]:
    """Emit a loop that carries `values`: `turn` gives the next ones while `going`, a scalar, is."""
    repeat = b.ops("stablehlo.while", values, avals, regions=2)
    with b.block(repeat.regions[0], avals) as (inner, found):
        inner.terminate("stablehlo.return", emit(inner, going, found, avals))
    with b.block(repeat.regions[1], avals) as (inner, found):
        inner.terminate("stablehlo.return", emit(inner, turn, found, avals))
    return list(repeat.results)

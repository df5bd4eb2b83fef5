"""Promotion: what functions do to several operands before they bind.

All of it happens while tracing, at the price of what is left to do: operands of one aval pass after
two attribute reads, and a Python number beside a strong array becomes a number of its dtype by one
dict lookup. Everything else takes the long way.

What always holds: results have one dtype, and one shape or none, as the elementwise primitives want
them; Python and NumPy numbers stay numbers, which tracing turns into literals.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from perspex import config, dtypes
from perspex.arguments.arrays import (
    arraylike,
    as_array,
    as_dtype,
    check_arraylike,
    like,
    scalar,
    spread,
)
from perspex.arguments.shapes import broadcast_shapes
from perspex.arguments.types import Array
from perspex.base import source
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray, shaped
from perspex.ops import elementwise as ops
from perspex.ops.families import check_not_float0
from perspex.tracing.array_methods import declared_array

BOOL = np.dtype(bool)

# (aval, type of a Python number) -> what makes the number one of the array's dtype. Only where the
# array decides whatever the flags: a strong dtype beside a weak number.
_literals: dict[tuple[ShapedArray, type], Callable[[Any], Any]] = {}
# The avals of floats and complex numbers: what `inexact` lets through.
_inexact: set[ShapedArray] = set()


# ---- Promotion ----------------------------------------------------------------------------------


def promote(name: str, x: Any, y: Any) -> Sequence[Array]:
    """Two operands at one dtype, and at one shape unless one is a scalar."""
    ax: Any = getattr(x, "aval", None)
    ay: Any = getattr(y, "aval", None)
    # Weak booleans are of the promoted dtype, and still become strong.
    if ax is ay and ax is not None and not (ax.dtype is BOOL and ax.weak_type):
        return x, y
    if ay is None:
        make = _literals.get((ax, y.__class__))
        if make is not None:
            return x, make(y)
    elif ax is None:
        make = _literals.get((ay, x.__class__))
        if make is not None:
            return make(x), y
    elif _differ_in_shape(ax, ay):
        return broadcast(name, x, y)
    return promote_all(name, x, y)


def _differ_in_shape(x: ShapedArray, y: ShapedArray) -> bool:
    """Whether these strong types need no promotion."""
    return x.dtype == y.dtype and not x.weak_type and not y.weak_type


def promote_inexact(name: str, x: Any, y: Any) -> Sequence[Array]:
    """Two operands at one floating or complex dtype, and one shape unless one is a scalar."""
    ax = getattr(x, "aval", None)
    if ax in _inexact:
        ay = getattr(y, "aval", None)
        if ax is ay:
            return x, y
        if ay is None:
            make = _literals.get((ax, y.__class__))
            if make is not None:
                return x, make(y)
        elif _differ_in_shape(ax, ay):
            return broadcast(name, x, y)
    return promote_all(name, x, y, to=dtypes.to_inexact_dtype)


def promote_numeric(name: str, x: Any, y: Any) -> Sequence[Array]:
    """Two operands at one dtype that is not boolean, and one shape unless one is a scalar."""
    return promote_all(name, x, y, to=dtypes.to_numeric_dtype)


def strong(x: Any) -> Array:
    """`x` without a weak type, converted: a cotangent is converted back, and is as weak as `x`."""
    return as_dtype(x, shaped(x).dtype)


def strengthened(x: Any) -> Array:
    """`x` without a weak type, as beside a strong number: a cotangent passes unchanged.

    The number is 1. It would make NaN of complex infinities, so complex `x` is converted.
    """
    aval = shaped(x)
    if not aval.weak_type or x.__class__ in PYTHON_SCALARS or aval.dtype.kind != "f":
        return strong(x)
    return ops.mul(x, aval.dtype.type(1))


def beside_numbers(x: Array) -> Array:
    """`x` as JAX has it beside the numbers of a formula.

    A number there is as weak as a scalar `x` is, and strong beside every other array. So a weak
    array that is no scalar becomes strong.
    """
    aval = shaped(x)
    return strengthened(x) if aval.weak_type and aval.shape else x


def inexact(name: str, x: Any) -> Array:
    """One operand at a floating or complex dtype."""
    try:
        if x.aval in _inexact:
            return x
    except AttributeError:
        pass
    check_arraylike(name, x)
    aval = shaped(x)
    if dtypes.issubdtype(aval.dtype, np.inexact):
        _inexact.add(aval)
        return as_array(x)
    _check_number(name, aval)
    weak = aval.weak_type and aval.dtype != BOOL
    return as_dtype(x, dtypes.to_inexact_dtype(aval.dtype), weak)


def numeric(name: str, x: Any) -> Array:
    """One operand as an array that is not boolean."""
    aval = getattr(x, "aval", None)
    if aval is None:
        check_arraylike(name, x)
        aval = shaped(x)
    if aval.dtype == BOOL:
        return as_dtype(x, dtypes.to_numeric_dtype(aval.dtype))
    return as_array(x)


def promote_dtypes(
    name: str, *args: Any, to: Callable[[Any], np.dtype] | None = None
) -> list[Array]:
    """Operands at one dtype, raised by `to`; their shapes stay as they are."""
    if len(args) == 2 and to is None:
        x, y = args
        ax: Any = getattr(x, "aval", None)
        ay: Any = getattr(y, "aval", None)
        make = None if ay is not None else _literals.get((ax, y.__class__))
        if make is not None:
            return [x, make(y)]
        if ax is not None and ay is not None and _differ_in_shape(ax, ay):
            return [x, y]
    check_arraylike(name, *args)
    args = tuple([declared_array(x) for x in args])
    avals = [shaped(x) for x in args]
    for aval in avals:
        if aval.is_extended and any(a.dtype != aval.dtype for a in avals):
            _check_number(name, aval)
        check_not_float0(name, aval.dtype)
    dtype, weak = dtypes.promote(tuple([(a.dtype, a.weak_type) for a in avals]))
    dtype = dtype if to is None else to(dtype)
    if len(args) == 2 and not weak:
        _remember(args, avals, dtype)
    return [as_dtype(x, dtype, weak) for x in args]


def promote_all(name: str, *args: Any, to: Callable[[Any], np.dtype] | None = None) -> list[Array]:
    """Operands at one dtype, raised by `to`, and at one shape unless they are scalars."""
    promoted = promote_dtypes(name, *args, to=to)
    shapes = {s for s in map(np.shape, promoted) if s}
    return promoted if len(shapes) < 2 else broadcast(name, *promoted)


def _remember(args: Sequence[Any], avals: Sequence[ShapedArray], dtype: np.dtype) -> None:
    """Note that a strong array takes numbers of that type, for the next time."""
    for (x, aval), other in zip(zip(args, avals, strict=True), reversed(args), strict=True):
        kind = other.__class__
        weak = kind in PYTHON_SCALARS and kind is not bool
        if (weak or (kind is dtype.type and dtype.itemsize < 8)) and aval.dtype == dtype:
            if hasattr(x, "aval") and not aval.weak_type:
                wraps = kind is int and aval.dtype.kind in "iuV" and dtype != shaped(0).dtype
                _literals[aval, kind] = partial(scalar, dtype=dtype) if wraps else dtype.type
            if dtypes.issubdtype(dtype, np.inexact):
                _inexact.add(aval)


def _check_number(name: str, aval: ShapedArray) -> None:
    check_not_float0(name, aval.dtype)
    if aval.is_extended:
        raise TypeError(
            f"{name} does not accept dtype {aval.dtype.name} beside or as a number; "
            "random.key_data(key) gives the numbers in a key"
        )


# ---- Shapes and choice ---------------------------------------------------------------------------


def broadcast(name: str, *args: Any) -> list[Array]:
    """Arrays at the shape that NumPy's rules give; scalars stay scalars."""
    shapes = [x.aval.shape if hasattr(x, "aval") else np.shape(x) for x in args]
    shape = broadcast_shapes(name, *shapes)
    if config.numpy_rank_promotion.value != "allow" and len({len(s) for s in shapes if s}) > 1:
        _rank_promotion(name, shapes)
    return [
        x if not s or s == shape else spread(x, shape) for x, s in zip(args, shapes, strict=True)
    ]


def _rank_promotion(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    mode = config.numpy_rank_promotion.value
    message = (
        f"perands of {name} differ in rank: {', '.join(map(str, shapes))}, and "
        f"numpy_rank_promotion is {mode!r}; add axes with reshape, or set it to 'allow'"
    )
    if mode == "raise":
        # Programs look for NumPy's words, which JAX has as well.
        raise ValueError(f"Operands could not be broadcast together: o{message}")
    warnings.warn(f"O{message}", stacklevel=source.stacklevel())


def ordered(compare: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """`compare(x, y)`; complex numbers compare by real part, then by imaginary part."""
    if x.dtype.kind != "c":
        return compare(x, y)
    same = ops.eq(ops.real(x), ops.real(y))
    by_imag = compare(ops.imag(x), ops.imag(y))
    return ops.select(same, by_imag, compare(ops.real(x), ops.real(y)))


def to_bool(x: Any) -> Array:
    """Whether the elements of an array differ from zero."""
    return x if x.dtype == BOOL else ops.ne(x, like(x, 0))


def select(name: str, condition: Any, x: Any, y: Any) -> Array:
    """`x` where `condition` holds, else `y`: promoted, and spread over one shape."""
    condition = to_bool(arraylike(name, condition))
    x, y = promote_dtypes(name, x, y)
    shapes = [np.shape(v) for v in (condition, x, y)]
    if len({s for s in shapes if s}) > 1:
        shape = broadcast_shapes(name, *shapes)
        condition, x, y = broadcast(name, condition, x, y)
        if not condition.shape:
            x, y = spread(x, shape), spread(y, shape)
    return ops.select(condition, x, y)

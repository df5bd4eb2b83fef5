"""How arrays are reduced: a table of reductions, and one compiled function for each kind.

A compiled function takes the name of the public one. A name that begins with `nan` is that of the
twin that leaves NaN out. The public functions are in `reductions` and `statistics`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, as_dtype, expand, flat
from perspex.arguments.axes import canonical_axes, canonical_axis, hashable_axis
from perspex.arguments.refused import check_no_out
from perspex.arguments.types import Axis
from perspex.jitted.fused import fused
from perspex.numpy.promotion import BOOL, numeric, select, strong, to_bool
from perspex.ops import cumulative
from perspex.ops import elementwise as ops
from perspex.ops import reductions as reduce
from perspex.ops.structural import convert, reduce_sum


class _Reduction(NamedTuple):
    """A primitive, the function that combines its result with `initial`, and a neutral number.

    Extremes have `None`: there is no extreme without an element.
    """

    primitive: Any
    combine: Any
    neutral: int | bool | None


_REDUCTIONS = {
    "sum": _Reduction(reduce_sum, ops.add, 0),
    "prod": _Reduction(reduce.reduce_prod, ops.mul, 1),
    "max": _Reduction(reduce.reduce_max, ops.max, None),
    "min": _Reduction(reduce.reduce_min, ops.min, None),
    "all": _Reduction(reduce.reduce_and, ops.bitwise_and, True),
    "any": _Reduction(reduce.reduce_or, ops.bitwise_or, False),
}
_OF_TRUTH = {"sum": "any", "prod": "all"}


def _neutral(name: str, dtype: np.dtype) -> Any:
    found = _REDUCTIONS[name]
    if found.neutral is None:
        return found.primitive.identity(dtype)
    return dtype.type(found.neutral)


def _reduced(name: str, a: Any, initial: Any, where: Any, axis: Axis, keepdims: bool) -> Any:
    """The array `a` reduced in its dtype, by the row of the table for the name without `nan`."""
    kind = name.removeprefix("nan")
    where = _checked_where(name, where)
    axes = canonical_axes(axis, a.ndim)
    if isinstance(a.dtype, dtypes.KeyType):
        raise TypeError(
            f"{name} does not accept dtype {a.dtype.name}; random.key_data(key) gives numbers"
        )
    kind = _OF_TRUTH.get(kind, kind) if a.dtype == BOOL else kind
    primitive, combine, neutral = _REDUCTIONS[kind]
    if neutral is None and initial is None:
        if where is not None:
            raise ValueError(
                f"{name}: nothing is the extreme where no element takes part; "
                "give `initial` with `where`"
            )
        if 0 in [a.shape[i] for i in axes]:
            raise ValueError(
                f"zero-size array to reduction operation {name} which has no identity: shape "
                f"{a.shape} along {axes}; give `initial`"
            )
    if where is not None:
        if where.ndim > a.ndim:
            raise ValueError(
                f"{name}: where has the shape {where.shape}, with more axes than the array of "
                f"shape {a.shape}; it must spread over the array"
            )
        a = select(name, where, a, _neutral(kind, a.dtype))
        axes = canonical_axes(axis, a.ndim)
    out = primitive(a, axes=axes) if axes else a
    if initial is not None:
        if np.shape(initial):
            raise ValueError(f"{name}: initial must be a scalar, got shape {np.shape(initial)}")
        out = combine(as_dtype(initial, a.dtype), out)
    return expand(out, axes) if keepdims else out


def _checked_where(name: str, where: Any) -> Any:
    if where is None:
        return None
    where = arraylike(name, where)
    if where.dtype != bool:
        raise ValueError(
            f"{name}: where must be None or a boolean array, got dtype {where.dtype.name}"
        )
    return where


def checked_axis(name: str, axis: Any, out: Any = None) -> Any:
    """The axes as a static argument; `NotImplementedError` if there is an `out`."""
    if out is not None:
        check_no_out(name, out)
    return axis if axis is None or axis.__class__ is int else hashable_axis(name, axis)


def single_axis(name: str, axis: Any, out: Any = None) -> int | None:
    """`checked_axis` for functions of one axis; `TypeError` for several."""
    axis = checked_axis(name, axis, out)
    if isinstance(axis, tuple):
        raise TypeError(f"{name} takes one axis or None, got {axis}")
    return axis


def checked_dtype(name: str, dtype: Any) -> Any:
    """A dtype that the caller names, or `None`."""
    return None if dtype is None else dtypes.check_user_dtype(dtype, name)


def wide_integer(dtype: np.dtype) -> np.dtype:
    """The dtype in which integers are summed: the default width at least, signed or not."""
    if dtype != BOOL and not dtypes.issubdtype(dtype, np.integer):
        return dtype
    unsigned = dtypes.issubdtype(dtype, np.unsignedinteger)
    default = dtypes.canonicalize_dtype("uint64" if unsigned else "int64")
    narrow = dtypes.itemsize_bits(dtype) < dtypes.itemsize_bits(default)
    return default if dtype == BOOL or narrow else dtype


_FLOAT32 = np.dtype("float32")
_HALF = (np.dtype("float16"), np.dtype(dtypes.bfloat16))


def wide_float(dtype: np.dtype) -> np.dtype:
    """float32 for float16 and bfloat16, in which sums would lose digits; others as they are."""
    return _FLOAT32 if dtype in _HALF else dtype


def _without_nan(name: str, a: Any) -> Any:
    """For a name with `nan`, `a` with numbers for NaN that do not change the reduction."""
    if not (name.startswith("nan") and dtypes.issubdtype(a.dtype, np.inexact)):
        return a
    neutral = _neutral(name.removeprefix("nan").removeprefix("arg"), a.dtype)
    a = strong(a)
    return ops.select(ops.ne(a, a), neutral, a)


def _or_nothing(name: str, out: Any, a: Any, axis: Any, keepdims: bool, nothing: float) -> Any:
    """For a name with `nan`, `out` with `nothing` where all elements of `a` are NaN."""
    if not (name.startswith("nan") and dtypes.issubdtype(a.dtype, np.inexact)):
        return out
    no_number = _reduced("all", ops.ne(a, a), None, None, axis, keepdims)
    return ops.select(no_number, out.dtype.type(nothing), out)


# ---- Compiled functions -------------------------------------------------------------------------


@fused(static=("name", "axis", "dtype", "keepdims", "promote_integers"))
def total(
    a: Any,
    initial: Any,
    where: Any,
    name: str,
    axis: Any,
    dtype: Any,
    keepdims: bool,
    promote_integers: bool = True,
) -> Any:
    """`sum`, `prod`, `nansum` or `nanprod`."""
    a = numeric(name, _without_nan(name, arraylike(name, a)))
    if dtype is None:
        result = wide_integer(a.dtype) if promote_integers else a.dtype
        computation = wide_float(result)
    else:
        result = computation = dtype
    return convert(_reduced(name, convert(a, computation), initial, where, axis, keepdims), result)


@fused(static=("name", "axis", "keepdims"))
def extreme(a: Any, initial: Any, where: Any, name: str, axis: Any, keepdims: bool) -> Any:
    """`max`, `min`, `nanmax` or `nanmin`."""
    a = arraylike(name, a)
    a = convert(a, a.dtype)  # the extreme of a number is no weak number
    out = _reduced(name, _without_nan(name, a), initial, where, axis, keepdims)
    return out if initial is not None else _or_nothing(name, out, a, axis, keepdims, np.nan)


@fused(static=("name", "axis", "keepdims"))
def position(a: Any, name: str, axis: Any, keepdims: bool) -> Any:
    """`argmax`, `argmin`, `nanargmax` or `nanargmin`."""
    a = arraylike(name, a)
    x, along = (flat(a), 0) if axis is None else (a, canonical_axis(axis, a.ndim))
    if x.shape[along] == 0:
        raise ValueError(f"{name}: attempt to get the position of the extreme of an empty axis")
    primitive = reduce.argmax if name.endswith("max") else reduce.argmin
    x = _without_nan(name, x)
    out = primitive(x, axes=(along,), index_dtype=dtypes.canonicalize_dtype("int64"))
    if keepdims:
        out = expand(out, range(a.ndim) if axis is None else (along,))
    return _or_nothing(name, out, a, axis, keepdims, -1)


@fused(static=("name", "axis", "keepdims"))
def truth(a: Any, where: Any, name: str, axis: Any, keepdims: bool) -> Any:
    """`all` or `any`."""
    return _reduced(name, convert(arraylike(name, a), BOOL), None, where, axis, keepdims)


@fused(static=("name", "axis", "dtype", "widen"))
def running(a: Any, name: str, axis: Any, dtype: Any, widen: bool = False) -> Any:
    """Running sums or products, by the end of the name; `widen` makes narrow integers wide."""
    a = arraylike(name, a)
    if axis is None or a.ndim == 0:
        a, axis = flat(a), axis or 0
    axis = canonical_axis(axis, a.ndim)
    kind = "sum" if name.endswith("sum") else "prod"
    a = _without_nan(f"nan{kind}", a) if name.startswith("nan") else a
    if dtype is None:
        result = wide_integer(a.dtype) if widen or a.dtype == BOOL else a.dtype
    else:
        result = dtype
    # Running sums of truth values are counted, then tested.
    a = to_bool(a) if result == BOOL else a
    primitive = cumulative.cumsum if kind == "sum" else cumulative.cumprod
    computation = wide_integer(result) if result == BOOL else result
    return convert(primitive(convert(a, computation), axis=axis, reverse=False), result)


# ---- Documentation ------------------------------------------------------------------------------

WORDS = {
    "a": "an array or a number.",
    "axis": "the axis or the axes to reduce; `None` reduces all.",
    "dtype": "the dtype to compute in, which is that of the result.",
    "out": "not supported: arrays never change.",
    "keepdims": "keep the reduced axes, with size 1.",
    "initial": "a number that takes part in the reduction.",
    "where": "booleans that broadcast to `a`: the elements that take part.",
    "promote_integers": "`False` keeps the dtype of narrow integers and booleans.",
    "equal_nan": "NaN equals NaN.",
}
NO_ARRAY = "TypeError: if `a` is not an array or a number."
RAISES = (
    f"{NO_ARRAY}\nValueError: for an axis that is not there, and a `where` that is not boolean.\n"
    "NotImplementedError: for `out`."
)
NOTHING = (
    f"{NO_ARRAY}\nValueError: where there is no element, or may be none, and no `initial`; for an\n"
    "axis that is not there.\nNotImplementedError: for `out`."
)
EMPTY = (
    f"{NO_ARRAY}\nValueError: where there is no element, and for an axis that is not there.\n"
    "NotImplementedError: for `out`."
)
SAME = "An array without the reduced axes, of the dtype of `a`."
TOTAL = (
    "An array without the reduced axes, of `dtype`; by default that of `a`, or the default\n"
    "integers for narrow integers and booleans."
)
ONE_AXIS = {**WORDS, "axis": "the axis; `None` takes the elements in one axis."}
POSITION = "An array of the default integers without the axis; a scalar if `axis` is `None`."
RUNNING = (
    "An array of the shape of `a`, with one axis if `axis` is `None`; of `dtype`, by default that\n"
    "of `a`, or the default integers for booleans."
)

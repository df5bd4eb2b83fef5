"""Choosing elements by conditions: `where`, `select`, and the places where something holds.

How many elements a condition picks is a number that only running tells. So the functions whose
result is as long need concrete conditions, or a `size` that makes the result that long.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from perspex import dtypes, errors
from perspex.advice import messages
from perspex.arguments.arrays import arraylike, as_dtype, check_arraylike, expand, flat, spread
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.refused import check_no_out
from perspex.arguments.shapes import broadcast_shapes, joint_shape
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.lax.branches import switch
from perspex.numpy import promotion
from perspex.numpy.arithmetic import remainder
from perspex.numpy.creation import asarray
from perspex.numpy.indexing.parse import INT32, Index, Picks, place_dtype, whole
from perspex.numpy.indexing.read import PROMISED, read, read_along
from perspex.numpy.mapping import vectorize
from perspex.numpy.promotion import promote_dtypes, strong, to_bool
from perspex.ops import elementwise as ops
from perspex.ops.cumulative import cumsum
from perspex.ops.dropping import scatter_inside
from perspex.ops.shape import iota, stack
from perspex.ops.structural import convert, reshape, squeeze, weak_like
from perspex.ops.windows import FILL_OR_DROP, ScatterDimensionNumbers
from perspex.runtime.dispatch import put_beside
from perspex.tracing.array_methods import declared_array
from perspex.tracing.trace import bottom, concrete_value, story, under

__all__ = [
    "argwhere", "choose", "compress", "extract", "flatnonzero", "nonzero", "piecewise", "place",
    "select", "where",
]  # fmt: skip

# ---- Choosing between arrays --------------------------------------------------------------------


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...


@overload
def where(
    condition: ArrayLike,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> tuple[Array, ...]: ...


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Any:
    """The elements of `x` where the condition holds, elsewhere those of `y`.

    With one argument it is `nonzero(condition)`, which `size` and `fill_value` are for.

    Args:
      condition: an array of booleans; numbers count as true unless they are 0.
      x, y: arrays or numbers; all three are broadcast, `x` and `y` promoted.

    Returns:
      An array of the common shape; with one argument, a tuple of arrays of int32.

    Raises:
      TypeError: if an argument is not an array or a number, or only one of `x` and `y` is given.
      ValueError: for shapes that do not broadcast, and for `size` beside `x` and `y`.

    >>> import perspex.numpy as jnp
    >>> x = jnp.arange(4)
    >>> jnp.where(x > 1, x, -1)
    Array([-1, -1,  2,  3], dtype=int32)
    """
    if x is None and y is None:
        check_arraylike("where", condition)
        return nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError("where: size and fill_value are for the form with one argument")
    check_arraylike("where", condition, x, y)
    return _where(condition, x, y)


@fused
def _where(condition: Any, x: Any, y: Any) -> Any:
    return promotion.select("where", condition, x, y)


def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Array:
    """Elements of the first choice whose condition holds; `default` where none does.

    Args:
      condlist: arrays of booleans.
      choicelist: as many arrays or numbers; all are promoted and broadcast.
      default: an array or a number.

    Returns:
      An array of the common shape and dtype.

    Raises:
      TypeError: if an element of a list is not an array or a number.
      ValueError: for lists that are empty or of different lengths, and shapes that do not
        broadcast.

    >>> import perspex.numpy as jnp
    >>> x = jnp.arange(5)
    >>> jnp.select([x < 2, x > 3], [x, 10 * x], -1)
    Array([ 0,  1, -1, -1, 40], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            "select: condlist must have length equal to choicelist "
            f"({len(condlist)} vs {len(choicelist)})"
        )
    if not len(condlist):
        raise ValueError("select: condlist must be non-empty")
    check_arraylike("select", *condlist)
    check_arraylike("select", *choicelist, default)
    return _select(tuple(condlist), tuple(choicelist), default)


@fused
def _select(conditions: Any, choices: Any, default: Any) -> Any:
    *promoted, out = promote_dtypes("select", *choices, default)
    given = [to_bool(arraylike("select", c)) for c in conditions]
    shape = broadcast_shapes("select", *[np.shape(v) for v in (*given, *promoted, out)])
    out = spread(out, shape)
    for condition, choice in zip(reversed(given), reversed(promoted), strict=True):
        out = ops.select(spread(condition, shape), spread(choice, shape), out)
    return out


def choose(
    a: ArrayLike, choices: Sequence[ArrayLike] | Array, out: None = None, mode: str = "raise"
) -> Array:
    """For each place, the element there of the choice that `a` names.

    Args:
      a: an array of integers, which number the choices.
      choices: arrays or numbers; they are promoted and broadcast with `a`.
      mode: how to treat numbers outside: `"raise"`, `"wrap"` or `"clip"`.

    Returns:
      An array of the common shape and of the dtype of the choices.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: for numbers outside, an `a` that is not of integers, and unknown modes.
      ConcretizationTypeError: for a traced `a` and `mode="raise"`.
      NotImplementedError: for `out`.

    >>> import perspex.numpy as jnp
    >>> jnp.choose(jnp.array([0, 1, 0]), [jnp.arange(3), jnp.arange(3) * 10])
    Array([ 0, 10,  2], dtype=int32)
    """
    check_no_out("choose", out)
    check_arraylike("choose", a, *choices)
    places = as_given(a)
    if not dtypes.issubdtype(places.dtype, np.integer):
        raise ValueError(f"choose: `a` must be an array of integers, got {places.dtype.name}")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    if mode == "raise":
        host = known("choose with mode='raise'", places, 'use mode="wrap" or mode="clip".')
        if np.any((host < 0) | (host >= len(choices))):
            raise ValueError(
                f"choose: the choices are numbered 0 to {len(choices) - 1}, got {host.tolist()}"
            )
    return _choose(places, tuple(choices), mode)


@fused(static=("mode",))
def _choose(places: Any, choices: Any, mode: str) -> Any:
    places = arraylike("choose", places)
    promoted = promote_dtypes("choose", *choices)
    shape = broadcast_shapes("choose", places.shape, *[np.shape(c) for c in promoted])
    number = places.dtype.type
    if mode == "wrap":
        places = remainder(places, len(choices))
    elif mode == "clip":
        places = ops.clamp(number(0), places, number(len(choices) - 1))
    stacked = strong(stack(*[spread(c, shape) for c in promoted], axis=0))
    chosen = read_along(stacked, expand(spread(places, shape), (0,)), 0, PROMISED)
    return squeeze(chosen, dimensions=(0,))


def piecewise(
    x: ArrayLike,
    condlist: Sequence[ArrayLike] | Array,
    funclist: Sequence[ArrayLike | Callable[..., Any]],
    *args: Any,
    **kw: Any,
) -> Array:
    """A function that is defined piece by piece: the last condition that holds decides.

    Args:
      x: the argument of the pieces, an array or a number.
      condlist: arrays of booleans, or one array of all.
      funclist: for each condition a number or a function that works element by element; one more
        is for where no condition holds, 0 if there is none. A function is given one element; of
        an array all functions are computed for each.
      args, kw: further arguments for the functions.

    Returns:
      An array of the dtype of `x`. Its shape is that of `x` and the conditions broadcast together.

    Raises:
      TypeError: if `x` or a condition is not an array or a number, or a piece gives several.
      ValueError: for another number of functions, and shapes that do not broadcast.

    >>> import perspex.numpy as jnp
    >>> x = jnp.arange(5)
    >>> jnp.piecewise(x, [x < 2, x > 3], [-1, lambda t: 10 * t, 7])
    Array([-1, -1,  7,  7, 40], dtype=int32)
    """
    check_arraylike("piecewise", x)
    conditions = asarray(condlist, dtype=bool)
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"piecewise: with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected; got {len(funclist)}"
        )
    x = asarray(x)
    pieces = list(funclist)
    default = pieces.pop() if len(pieces) > len(conditions) else 0

    joint_shape((conditions.shape[1:], x.shape))

    def piece(f: Any) -> Callable[[Any], Any]:
        def computed(x: Any) -> Any:
            out = as_dtype(asarray(f(x, *args, **kw) if callable(f) else f), x.dtype)
            if out.shape:
                raise TypeError(
                    "piecewise: a piece is a number, or gives one for one element; got an array of "
                    f"shape {out.shape}"
                )
            return out

        return computed

    branches = [piece(f) for f in (default, *pieces)]
    which: Any = np.int32(0)
    for number, condition in enumerate(conditions, 1):
        which = where(condition, np.int32(number), which)
    # Of a number one piece is computed; of an array all are, and only those chosen have a slope.
    return vectorize(lambda which, x: switch(which, branches, x))(which, x)


# ---- Where something holds ----------------------------------------------------------------------


def known(what: str, x: Any, remedy: str = "") -> np.ndarray:
    """The numbers of an array that must be concrete; `ConcretizationTypeError` if it is traced."""
    value = concrete_value(x)
    if value is None:
        message = messages.concretization(what, *story(x), remedy=remedy)
        raise errors.ConcretizationTypeError(message)
    return np.asarray(value)


def known_nonzero(what: str, x: Any, remedy: str = "") -> tuple[np.ndarray, ...]:
    """The indices of the nonzero elements of an array that must be concrete.

    The device compares them with zero, as it does under `jit`: on a CPU, `float32(1e-42)` is zero.
    """
    host = known(what, x, remedy)
    if host.dtype.kind not in "biu":
        host = np.asarray(under(bottom(), _is_not_zero, concrete_value(x)))
    return np.nonzero(host)


def _is_not_zero(x: Any) -> Any:
    return ops.ne(x, weak_like(x, 0))


def as_given(x: Any) -> Any:
    """An argument as an array that keeps its values while tracing: ours as it is, or NumPy's."""
    x = declared_array(x)
    return x if hasattr(x, "aval") else np.asarray(x, dtypes.dtype_of(x))


def fixed_size(name: str, size: Any) -> int | None:
    """A `size` argument as a number."""
    if size is None:
        return None
    size = concrete(f"the size argument of {name}", operator.index, size)
    if size < 0:
        raise ValueError(f"{name}: size must not be negative, got {size}")
    return size


def nonzero(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> tuple[Array, ...]:
    """The places of the elements that are not zero: an array of integers for each axis.

    Args:
      a: an array of at least one axis.
      fill_value: the value that fills up the result if there are fewer: a number, or one for each
        axis; 0 by default.

    Returns:
      A tuple of vectors of int32, one for each axis of `a`.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: for scalars and a negative `size`.
      ConcretizationTypeError: for a traced array without `size`.

    >>> import perspex.numpy as jnp
    >>> jnp.nonzero(jnp.array([[1, 0], [1, 1]]))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return places(a, size, fill_value, place_dtype())


def places(a: Any, size: Any, fill_value: Any, dtype: np.dtype = INT32) -> tuple[Array, ...]:
    """`nonzero`, with places of any dtype."""
    check_arraylike("nonzero", a)
    x = as_given(a)
    if not x.ndim:
        raise ValueError(
            "nonzero: calling it on 0d arrays is not allowed; use jnp.atleast_1d(x) first"
        )
    length = fixed_size("nonzero", size)
    if length is None:
        remedy = "give the number of places: nonzero(x, size=n)."
        found = known_nonzero("nonzero without a size", x, remedy)
        return tuple([put_beside(asarray(p.astype(dtype)), x) for p in found])
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if len(fills) != x.ndim:
        raise ValueError(
            f"nonzero: fill_value tuple must have length equal to number of axes ({x.ndim}); "
            f"got {len(fills)}"
        )
    return tuple(_nonzero(x, tuple([0 if f is None else f for f in fills]), length, dtype))


@fused(static=("size", "dtype"))
def _nonzero(x: Any, fills: Any, size: int, dtype: np.dtype) -> list[Any]:
    # Each element that holds writes its place to the line that counts those before it.
    x = arraylike("nonzero", x)
    if not x.size or not size:
        return [spread(dtype.type(0), (size,))] * x.ndim
    mask = flat(to_bool(x))
    count = cumsum(convert(mask, INT32), axis=0, reverse=False)
    line = ops.select(mask, ops.sub(count, INT32.type(1)), INT32.type(size))
    places = scatter_inside(
        spread(INT32.type(-1), (size,)),
        reshape(line, new_sizes=(x.size, 1)),
        iota(dtype=INT32, shape=(x.size,), dimension=0),
        dimension_numbers=ScatterDimensionNumbers((), (0,), (0,)),
        indices_are_sorted=False,
        unique_indices=False,
        mode=FILL_OR_DROP,
    )
    out = []
    empty = ops.lt(places, INT32.type(0))
    for n, fill in zip(reversed(x.shape), reversed(fills), strict=True):
        place = convert(ops.rem(places, INT32.type(n)), dtype)
        value = convert(arraylike("nonzero", fill), dtype)
        out.append(ops.select(empty, spread(value, (size,)), place))
        places = ops.div(places, INT32.type(n))
    return out[::-1]


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The places, counted in one axis, of the elements that are not zero.

    Returns:
      A vector of int32.

    >>> import perspex.numpy as jnp
    >>> jnp.flatnonzero(jnp.array([[1, 0], [1, 1]]))
    Array([0, 2, 3], dtype=int32)
    """
    check_arraylike("flatnonzero", a)
    return nonzero(as_given(a).reshape(-1), size=size, fill_value=fill_value)[0]


def argwhere(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Array:
    """The coordinates of the elements that are not zero, in one row for each.

    Returns:
      An array of int32 of shape `(number of elements, a.ndim)`.

    >>> import perspex.numpy as jnp
    >>> jnp.argwhere(jnp.array([[1, 0], [1, 1]]))
    Array([[0, 0],
           [1, 0],
           [1, 1]], dtype=int32)
    """
    check_arraylike("argwhere", a)
    x = as_given(a)
    columns = nonzero(x if x.ndim else x.reshape(1), size=size, fill_value=fill_value)
    rows = columns[0].shape[0]
    if not x.ndim:
        return spread(place_dtype().type(0), (rows, 0))
    return stack(*columns, axis=1)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """The elements along an axis for which the condition holds.

    Args:
      condition: an array of one axis, at most as long as that of `a`.
      axis: the axis; `None` takes the elements in one axis.

    Returns:
      An array of the dtype of `a`, shorter along the axis.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: if the condition holds beyond the end of the axis, or is not a vector.
      ConcretizationTypeError: for a traced condition without `size`.
      NotImplementedError: for `out`.

    >>> import perspex.numpy as jnp
    >>> jnp.compress(jnp.array([True, False, True]), jnp.arange(6).reshape(2, 3), axis=1)
    Array([[0, 2],
           [3, 5]], dtype=int32)
    """
    check_no_out("compress", out)
    check_arraylike("compress", condition, a, fill_value)
    mask, x = as_given(condition), asarray(a)
    if mask.ndim != 1:
        raise ValueError(f"compress: condition must be a 1D array, got shape {mask.shape}")
    x, axis = (flat(x), 0) if axis is None else (x, canonical_axis(axis, x.ndim))
    n, length = x.shape[axis], fixed_size("compress", size)
    if length is not None and length > n:
        raise ValueError(
            f"compress: size must not be greater than the axis; got size={length} for axis {axis} "
            f"of shape {x.shape}"
        )
    host = concrete_value(mask)
    if host is not None:
        beyond = np.asarray(host)[n:].any()
        if beyond:
            raise ValueError("compress: condition contains entries that are out of bounds")
    if length is None:
        remedy = "give the number of elements: compress(condition, x, size=n)."
        kept = np.nonzero(known("compress without a size", mask, remedy))[0]
        entry = Picks(kept.astype(INT32))
        return read(x, Index((*whole(x.shape[:axis]), entry, *whole(x.shape[axis + 1 :]))))
    return _compress(mask, x, fill_value, axis, length)


@fused(static=("axis", "size"))
def _compress(mask: Any, x: Any, fill: Any, axis: int, size: int) -> Any:
    (lines,) = _nonzero(mask, (x.shape[axis],), size, INT32)
    kept = read(x, Index((*whole(x.shape[:axis]), Picks(lines), *whole(x.shape[axis + 1 :]))))
    beyond = ops.eq(lines, INT32.type(x.shape[axis]))
    shape = kept.shape
    beyond = expand(beyond, [d for d in range(len(shape)) if d != axis])
    value = as_dtype(arraylike("compress", fill), x.dtype)
    return ops.select(spread(beyond, shape), spread(value, shape), kept)


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """The elements, in one axis, for which the condition holds.

    Args:
      condition: booleans or numbers, at most as many as `arr` has elements.

    Returns:
      A vector of the dtype of `arr`.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: if the condition holds beyond the last element.
      ConcretizationTypeError: for a traced condition without `size`.

    >>> import perspex.numpy as jnp
    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.extract(x % 2 == 0, x)
    Array([0, 2, 4], dtype=int32)
    """
    check_arraylike("extract", condition, arr, fill_value)
    mask = as_given(condition).reshape(-1)
    return compress(mask, arr, size=size, fill_value=fill_value)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """The array with the elements where the mask holds replaced by `vals`, one after another.

    Args:
      mask: booleans, as many as `arr` has elements.
      vals: the new elements; repeated if they are fewer.
      inplace: must be `False`, because arrays never change.

    Returns:
      An array of the shape and dtype of `arr`.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: for `inplace=True`, a mask of another size, and no `vals`.

    >>> import perspex.numpy as jnp
    >>> x = jnp.arange(5)
    >>> jnp.place(x, x > 1, jnp.array([10, 20]), inplace=False)
    Array([ 0,  1, 10, 20, 10], dtype=int32)
    """
    if inplace:
        raise ValueError(
            "place cannot modify arrays in-place: arrays are immutable. "
            "Pass inplace=False, and use the array that it returns"
        )
    check_arraylike("place", arr, mask, vals)
    if np.size(arr) != np.size(mask):
        raise ValueError(
            f"place: arr and mask must be the same size, got {np.size(arr)} and {np.size(mask)}"
        )
    if not np.size(vals):
        raise ValueError("place: cannot place values from an empty array")
    return _place(arr, mask, vals)


@fused
def _place(arr: Any, mask: Any, vals: Any) -> Any:
    x, values = arraylike("place", arr), flat(arraylike("place", vals))
    if not x.size:
        return x
    held = flat(to_bool(arraylike("place", mask)))
    count = ops.sub(cumsum(convert(held, INT32), axis=0, reverse=False), INT32.type(1))
    which = ops.rem(ops.max(count, INT32.type(0)), INT32.type(values.size))
    new = as_dtype(read(values, Index((Picks(which),))), x.dtype, x.aval.weak_type)
    return reshape(ops.select(held, new, flat(x)), new_sizes=x.shape)


describe(
    [where, choose, nonzero, flatnonzero, argwhere, compress, extract, place],
    {
        "a": "an array.",
        "arr": "an array.",
        "out": "not supported: arrays never change.",
        "size": "the number of elements to give: the first ones. It must be given while tracing.",
        "fill_value": "the value that fills up the result if there are fewer; 0 by default.",
    },
    "TypeError: if `a` is not an array.\nValueError: for a negative `size`.\n"
    "ConcretizationTypeError: for a traced array without `size`.",
)

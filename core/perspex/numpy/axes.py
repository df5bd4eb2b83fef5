"""The axes of an array in another order, and axes of size one put in or dropped."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, overload

from numpy.exceptions import AxisError

from perspex.arguments.arrays import arraylike, check_arraylike, expand
from perspex.arguments.axes import canonical_axes, canonical_axis, hashable_axis
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike, Axis
from perspex.numpy import words
from perspex.numpy.shaping import _reversed_axes
from perspex.ops.structural import squeeze as squeeze_p
from perspex.ops.structural import transpose as transpose_p

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "expand_dims", "matrix_transpose", "moveaxis",
    "permute_dims", "rollaxis", "squeeze", "swapaxes", "transpose",
]  # fmt: skip

# ---- Order of axes ------------------------------------------------------------------------------


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Permute the axes of an array; reverse them if no order is given.

    Args:
      a: the array.
      axes: axis `i` of the result is axis `axes[i]` of `a`.

    Returns:
      An array of the dtype of `a`.

    Raises:
      TypeError: if `axes` is no permutation, or `a` not an array.
      ValueError: for axes that do not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.transpose(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = arraylike("transpose", a)
    if axes is None:
        return _reversed_axes(x)
    return _permuted(x, tuple([canonical_axis(d, x.ndim) for d in axes]))


def _permuted(x: Any, permutation: tuple[int, ...]) -> Any:
    if permutation == tuple(range(x.ndim)):
        return x
    return transpose_p(x, permutation=permutation)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """Permute the axes of an array: `transpose` by its name in the array API.

    Args:
      a: the array.
      axes: axis `i` of the result is axis `axes[i]` of `a`.

    Returns:
      An array of the dtype of `a`.

    Raises:
      TypeError: if `axes` is no permutation, or `a` not an array.
      ValueError: for axes that do not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.permute_dims(jnp.zeros((2, 3)), (1, 0)).shape
    (3, 2)
    """
    x = arraylike("permute_dims", a)
    if axes is not None and len({d % x.ndim for d in axes if -x.ndim <= d < x.ndim}) < len(axes):
        raise ValueError(f"permute_dims: repeated or missing axis in {tuple(axes)}")
    return transpose(x, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Swap the last two axes of an array.

    Args:
      x: an array of two axes or more.

    Returns:
      An array of the dtype of `x`.

    Raises:
      TypeError: if `x` is not an array.
      ValueError: for fewer than two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.matrix_transpose(jnp.zeros((2, 3, 4))).shape
    (2, 4, 3)
    """
    x = arraylike("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: x must have at least two axes, got {x.ndim}")
    return _permuted(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Swap two axes of an array.

    Args:
      a: the array.
      axis1, axis2: the axes to swap.

    Returns:
      An array of the dtype of `a`.

    Raises:
      TypeError: if `a` is not an array.
      numpy.exceptions.AxisError: for axes that do not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    x = arraylike("swapaxes", a)
    order = list(range(x.ndim))
    i, j = operator.index(axis1), operator.index(axis2)
    for axis in (i, j):
        if not -x.ndim <= axis < x.ndim:
            raise AxisError(axis, x.ndim)
    order[i], order[j] = order[j], order[i]
    return _permuted(x, tuple(order))


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Move some axes of an array; the others keep their order.

    Args:
      a: the array.
      source: the axes to move.
      destination: where they go, in the result.

    Returns:
      An array of the dtype of `a`.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: for different numbers of axes, and for axes that do not exist or come twice.

    >>> import perspex.numpy as jnp
    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = arraylike("moveaxis", a)
    origin, target = (
        canonical_axes(_axes(source), x.ndim),
        canonical_axes(_axes(destination), x.ndim),
    )
    if len(origin) != len(target):
        raise ValueError(
            f"moveaxis: inconsistent number of elements: {len(origin)} vs {len(target)}"
        )
    order = [d for d in range(x.ndim) if d not in origin]
    for place, axis in sorted(zip(target, origin, strict=True)):
        order.insert(place, axis)
    return _permuted(x, tuple(order))


def _axes(axis: Any) -> tuple[int, ...]:
    axis = hashable_axis("moveaxis", axis)
    return (axis,) if axis.__class__ is int else axis


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move one axis in front of another; `moveaxis` is clearer.

    Args:
      a: the array.
      axis: the axis to move.
      start: the axis before which it goes.

    Returns:
      An array of the dtype of `a`.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: for axes that do not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.rollaxis(jnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = arraylike("rollaxis", a)
    start = operator.index(start)
    if not -x.ndim <= start <= x.ndim:
        raise ValueError(f"rollaxis: {start=} must satisfy {-x.ndim}<=start<={x.ndim}")
    source = canonical_axis(axis, x.ndim)
    target = start + x.ndim if start < 0 else start
    return moveaxis(x, source, target - (target > source))


# ---- Axes of size one ---------------------------------------------------------------------------


def squeeze(a: ArrayLike, axis: Axis = None) -> Array:
    """Drop axes of size one.

    Args:
      a: an array or a number.
      axis: the axis or axes of size one to drop; None drops all of them.

    Returns:
      An array of the dtype of `a`.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for an axis of another size, or that does not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.squeeze(jnp.zeros((1, 3, 1))).shape
    (3,)
    """
    x = arraylike("squeeze", a)
    if axis is None:
        axes = tuple([d for d, n in enumerate(x.shape) if n == 1])
    else:
        axes = tuple(sorted(canonical_axes(axis, x.ndim)))
    return squeeze_p(x, dimensions=axes) if axes else x


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """Insert axes of size one.

    Args:
      a: an array or a number.
      axis: the places of the new axes, in the result.

    Returns:
      An array of the dtype of `a`.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for places that do not exist or come twice.

    >>> import perspex.numpy as jnp
    >>> jnp.expand_dims(jnp.zeros(3), (0, -1)).shape
    (1, 3, 1)
    """
    x = arraylike("expand_dims", a)
    given = (axis,) if isinstance(axis, int) else _axes(axis)
    return expand(x, canonical_axes(given, x.ndim + len(given)))


def _each(name: str, arys: Sequence[Any], f: Any) -> Any:
    check_arraylike(name, *arys)
    out = tuple([f(arraylike(name, x)) for x in arys])
    return out[0] if len(arys) == 1 else out


@overload
def atleast_1d(x: ArrayLike, /) -> Array: ...


@overload
def atleast_1d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> tuple[Array, ...]: ...


def atleast_1d(*arys: ArrayLike) -> Array | tuple[Array, ...]:
    """Scalars as arrays of one element; other arrays as they are.

    Args:
      arys: arrays or numbers.

    Returns:
      An array for one argument, a tuple of arrays for several.

    >>> import perspex.numpy as jnp
    >>> jnp.atleast_1d(3.0).shape
    (1,)
    """
    return _each("atleast_1d", arys, lambda x: x if x.ndim else expand(x, (0,)))


@overload
def atleast_2d(x: ArrayLike, /) -> Array: ...


@overload
def atleast_2d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> tuple[Array, ...]: ...


def atleast_2d(*arys: ArrayLike) -> Array | tuple[Array, ...]:
    """Arrays with axes put in front until there are two.

    Args:
      arys: arrays or numbers.

    Returns:
      An array for one argument, a tuple of arrays for several.

    >>> import perspex.numpy as jnp
    >>> jnp.atleast_2d(jnp.zeros(3)).shape
    (1, 3)
    """
    return _each("atleast_2d", arys, lambda x: expand(x, range(2 - x.ndim)))


@overload
def atleast_3d(x: ArrayLike, /) -> Array: ...


@overload
def atleast_3d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> tuple[Array, ...]: ...


def atleast_3d(*arys: ArrayLike) -> Array | tuple[Array, ...]:
    """Arrays with at least three axes: `(n,)` becomes `(1, n, 1)`, `(m, n)` becomes `(m, n, 1)`.

    Args:
      arys: arrays or numbers.

    Returns:
      An array for one argument, a tuple of arrays for several.

    >>> import perspex.numpy as jnp
    >>> jnp.atleast_3d(jnp.zeros(3)).shape
    (1, 3, 1)
    """
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _each("atleast_3d", arys, lambda x: expand(x, new.get(x.ndim, ())))


describe((atleast_1d, atleast_2d, atleast_3d), {}, words.NOT_AN_ARRAY)

"""Other shapes for the same elements: reshape, ravel, resize, broadcast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, as_dtype, check_arraylike, expand, flat, spread
from perspex.arguments.axes import canonical_axes
from perspex.arguments.shapes import canonical_shape, joint_shape
from perspex.arguments.sharded import OutSharding, asked, lying
from perspex.arguments.types import Array, ArrayLike, Axis, DTypeLike, Shape
from perspex.base.dimensions import size as as_size
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.ops import elementwise as ops
from perspex.ops.passing import bitcast_convert_type
from perspex.ops.shape import concatenate, part, tile
from perspex.ops.structural import convert
from perspex.ops.structural import reshape as reshape_p
from perspex.ops.structural import squeeze as squeeze_p
from perspex.ops.structural import transpose as transpose_p

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "iterable", "ndim", "ravel", "reshape",
    "resize", "shape", "size", "view",
]  # fmt: skip

# ---- Shape --------------------------------------------------------------------------------------


def shape(a: ArrayLike | Sequence[Any]) -> tuple[int, ...]:
    """The length of each axis.

    Args:
      a: an array, a number, or nested lists.

    Returns:
      A tuple of integers.

    Raises:
      ValueError: for lists of unequal lengths.

    >>> import perspex.numpy as jnp
    >>> jnp.shape(jnp.zeros((2, 3)))
    (2, 3)
    """
    return np.shape(a)


def ndim(a: ArrayLike | Sequence[Any]) -> int:
    """The number of axes.

    Args:
      a: an array, a number, or nested lists.

    Returns:
      An integer.

    Raises:
      ValueError: for lists of unequal lengths.

    >>> import perspex.numpy as jnp
    >>> jnp.ndim(jnp.zeros((2, 3)))
    2
    """
    return np.ndim(a)


def size(a: ArrayLike | Sequence[Any], axis: Axis = None) -> int:
    """The number of elements, or of those along some axes.

    Args:
      a: an array, a number, or nested lists.
      axis: the axis or axes to count; None counts all.

    Returns:
      An integer.

    Raises:
      ValueError: for an axis that does not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.size(jnp.zeros((2, 3)), axis=1)
    3
    """
    lengths = np.shape(a)
    return math.prod([lengths[d] for d in canonical_axes(axis, len(lengths))])


def iterable(y: object) -> bool:
    """Whether `iter(y)` works.

    Args:
      y: any object.

    Returns:
      True or False.

    Raises:
      Nothing.

    >>> import perspex.numpy as jnp
    >>> jnp.iterable(jnp.zeros(())), jnp.iterable(jnp.zeros(2))
    (False, True)
    """
    return np.iterable(y)


def _sizes(shape: Any) -> tuple[int, ...]:
    """A shape as the user wrote it, -1 included; `TypeError` unless it is of concrete integers."""
    alone = getattr(shape, "ndim", None) == 0 or isinstance(shape, str)
    given = (shape,) if alone or not np.iterable(shape) else tuple(shape)
    try:
        return tuple([as_size(n) for n in given])
    except TypeError:
        shown = ", ".join([repr(n) for n in given])
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got [{shown}].\n"
            "Remedy: compute sizes from `x.shape` with Python or NumPy, as in `np.prod(x.shape)`; "
            "or mark the argument with `static_argnames`."
        ) from None


def reshape(
    a: ArrayLike,
    shape: int | Shape,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Give an array another shape; the elements stay.

    Args:
      a: the array.
      shape: an integer or a sequence of them, concrete; one may be -1 and is computed.
      order: `"C"` reads and writes with the last axis changing fastest, `"F"` with the first.
      copy: has no effect: arrays never change.
      out_sharding: how the result lies along explicit axes of the mesh of `set_mesh`; as `a` says
        if not given.

    Returns:
      An array of that shape and the dtype of `a`.

    Raises:
      TypeError: for a shape of another size, for traced sizes, and if `a` is not an array.
      ValueError: for another `order`.
      NotImplementedError: for `order="A"`.

    >>> import perspex.numpy as jnp
    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    x = arraylike("reshape", a)
    aval = shaped(x)
    sizes = _sizes(shape)
    if -1 in sizes:
        sizes = _completed(aval, sizes)
    if order == "C":
        if out_sharding is not None:
            params = asked("reshape", out_sharding, "sharding")
            return reshape_p(x, new_sizes=sizes, **params)
        return x if sizes == aval.shape else reshape_p(x, new_sizes=sizes)
    if order == "F":
        turned = reshape_p(_reversed_axes(x), new_sizes=sizes[::-1])
        return lying("reshape", out_sharding, _reversed_axes(turned))
    if order == "A":
        raise NotImplementedError("reshape: order='A' is not supported; use 'C' or 'F'")
    raise ValueError(f"reshape: unexpected value for 'order' argument: {order}; use 'C' or 'F'")


def _completed(aval: Any, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with the size that stands for -1."""
    if sizes.count(-1) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {sizes}")
    rest = math.prod([n for n in sizes if n != -1])
    if rest <= 0 or aval.size % rest:
        raise TypeError(
            f"cannot reshape array of shape {aval.shape} (size {aval.size}) into shape {sizes} "
            f"because the product of specified axis sizes ({rest}) does not divide {aval.size}"
        )
    return tuple([aval.size // rest if n == -1 else n for n in sizes])


def _reversed_axes(x: Any) -> Any:
    n = x.ndim
    return x if n < 2 else transpose_p(x, permutation=tuple(range(n - 1, -1, -1)))


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
    """Flatten an array into one axis.

    Args:
      a: the array.
      order: `"C"` with the last axis changing fastest, `"F"` with the first.
      out_sharding: how the result lies, as for `reshape`.

    Returns:
      An array of one axis and the dtype of `a`.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for another `order`.
      NotImplementedError: for the orders `"A"` and `"K"`.

    >>> import perspex.numpy as jnp
    >>> jnp.ravel(jnp.arange(4).reshape(2, 2), order="F")
    Array([0, 2, 1, 3], dtype=int32)
    """
    if order == "K":
        raise NotImplementedError("ravel: order='K' is not supported; use 'C' or 'F'")
    size = (-1,) if np.size(a) else (0,)
    return reshape(arraylike("ravel", a), size, order, out_sharding=out_sharding)


def resize(a: ArrayLike, new_shape: int | Shape) -> Array:
    """An array of another size: the elements one after another, repeated or cut off.

    Args:
      a: an array or a number.
      new_shape: an integer or a sequence of them, concrete.

    Returns:
      An array of that shape and the dtype of `a`; zeros if `a` has no elements.

    Raises:
      TypeError: for sizes that are traced or not integers, and if `a` is not an array.
      ValueError: for negative sizes.

    >>> import perspex.numpy as jnp
    >>> jnp.resize(jnp.arange(3), (2, 2))
    Array([[0, 1],
           [2, 0]], dtype=int32)
    """
    x = arraylike("resize", a)
    sizes = _sizes(new_shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"resize: all elements of `new_shape` must be non-negative, got {sizes}")
    return _resize(x, sizes)


@fused(static=("sizes",))
def _resize(x: Any, sizes: tuple[int, ...]) -> Any:
    total = math.prod(sizes)
    if not x.size or not total:
        return spread(as_dtype(0, x.dtype, shaped(x).weak_type), sizes)
    x = flat(x)
    if x.size < total:
        x = tile(x, reps=(-(-total // x.size),))
    return reshape(x if x.size == total else part(x, 0, total, 0, x.shape), sizes)


def view(a: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """The same bits read as another dtype: what `x.view(dtype)` is.

    Args:
      a: an array.
      dtype: the new dtype; None returns `a` as it is.

    Returns:
      An array; a narrower dtype makes the last axis longer, a wider one shorter.

    Raises:
      TypeError: if `a` is not an array, or `dtype` not one of numbers.
      ValueError: if the last axis cannot be divided, and for scalars of another width.

    >>> import perspex.numpy as jnp
    >>> jnp.array([1, 2]).view("int16")
    Array([1, 0, 2, 0], dtype=int16)
    """
    x = arraylike("view", a)
    if dtype is None:
        return x
    return _view(x, dtypes.check_user_dtype(dtype, "view"))


@fused(static=("dtype",))
def _view(x: Any, dtype: np.dtype) -> Any:
    if x.dtype == dtype:
        return x
    if not x.ndim and x.dtype.itemsize != dtype.itemsize:
        raise ValueError("view: of a 0d array it is only supported if the itemsize is unchanged")
    if x.dtype == bool:
        x = convert(x, np.dtype("uint8"))
    if dtype.kind == "b":
        # NumPy reads any other byte as true, but keeps the byte: here it becomes 1.
        return ops.ne(_view(x, np.dtype("uint8")), np.uint8(0))
    if x.dtype.kind == "c":
        parts = expand(ops.real(x), (x.ndim,)), expand(ops.imag(x), (x.ndim,))
        x = reshape(concatenate(*parts, dimension=x.ndim), (*x.shape[:-1], -1))
    target = ops.real_dtype(dtype)
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(target)
    if new > old:
        ratio = new // old
        if x.shape[-1] % ratio:
            raise ValueError(
                f"view: to read {x.dtype.name} as {dtype.name}, the size {x.shape[-1]} of the last "
                f"axis must be a multiple of {ratio}"
            )
        x = reshape(x, (*x.shape[:-1], x.shape[-1] // ratio, ratio))
    # Not of one dtype to itself: as bits, it has no slope.
    out = x if x.dtype == target else bitcast_convert_type(x, new_dtype=target)
    if new < old:
        out = reshape(out, (*out.shape[:-2], out.shape[-2] * out.shape[-1]))
    if target == dtype:
        return out
    if out.shape[-1] % 2:
        raise ValueError(f"view: as {dtype.name}, the last axis must hold pairs of numbers")
    pairs = reshape(out, (*out.shape[:-1], out.shape[-1] // 2, 2))
    real, imag = (part(pairs, k, k + 1, pairs.ndim - 1, pairs.shape) for k in range(2))
    return squeeze_p(ops.complex(real, imag), dimensions=(pairs.ndim - 1,))


# ---- Spreading ----------------------------------------------------------------------------------


def broadcast_to(
    array: ArrayLike, shape: int | Shape, *, out_sharding: OutSharding = None
) -> Array:
    """Broadcast an array to a shape: repeat it along new axes and axes of size one.

    Args:
      array: an array or a number.
      shape: an integer or a sequence of them, concrete.
      out_sharding: how the result lies along explicit axes of the mesh of `set_mesh`.

    Returns:
      An array of that shape.

    Raises:
      TypeError: if `array` is not an array or a number, and for sizes that are not integers.
      ValueError: if the shapes do not fit.

    >>> import perspex.numpy as jnp
    >>> jnp.broadcast_to(jnp.arange(2), (3, 2))
    Array([[0, 1],
           [0, 1],
           [0, 1]], dtype=int32)
    """
    x = arraylike("broadcast_to", array)
    sizes = canonical_shape("broadcast_to", shape)
    if x.ndim > len(sizes):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={x.shape} shape={sizes}"
        )
    if any([m not in (1, n) for m, n in zip(x.shape[::-1], sizes[::-1], strict=False)]):
        raise ValueError(
            f"Incompatible shapes for broadcasting: broadcast_to of shape {x.shape} and requested "
            f"shape {sizes}; sizes must be equal or 1, counted from the last axis"
        )
    return spread(x, sizes, **asked("broadcast_to", out_sharding, "sharding"))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that several shapes broadcast to.

    Args:
      shapes: integers or sequences of them.

    Returns:
      A tuple of integers.

    Raises:
      TypeError: for sizes that are negative or not integers.
      ValueError: if the shapes do not fit.

    >>> import perspex.numpy as jnp
    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return joint_shape([canonical_shape("broadcast_shapes", s) for s in shapes])


def broadcast_arrays(*args: ArrayLike) -> tuple[Array, ...]:
    """Broadcast arrays to one shape.

    Args:
      args: arrays or numbers.

    Returns:
      A tuple of arrays.

    Raises:
      TypeError: for lists.
      ValueError: if the shapes do not fit.

    >>> import perspex.numpy as jnp
    >>> [x.shape for x in jnp.broadcast_arrays(jnp.zeros((2, 1)), jnp.zeros(3))]
    [(2, 3), (2, 3)]
    """
    check_arraylike("broadcast_arrays", *args)
    common = broadcast_shapes(*[np.shape(x) for x in args])
    return tuple([spread(arraylike("broadcast_arrays", x), common) for x in args])

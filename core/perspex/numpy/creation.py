"""Arrays from numbers, lists and NumPy arrays; arrays filled with a number.

`array` is for anything, `asarray` the same without a copy. What becomes of a value while a function
is traced is decided in `dispatch.constant`: a literal or a constant of the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from perspex import dtypes, tree
from perspex.api.shapes import ShapeDtypeStruct
from perspex.arguments.arrays import as_dtype, check_arraylike, expand, spread
from perspex.arguments.glossary import describe
from perspex.arguments.shapes import canonical_shape
from perspex.arguments.sharded import OutSharding, asked, lying
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Placement, Shape
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray, scalar_aval, shaped
from perspex.jitted.fused import fused
from perspex.layout.context import canonical
from perspex.numpy import words
from perspex.ops import elementwise as ops
from perspex.ops.keys import filled_keys
from perspex.ops.shape import concatenate, stack
from perspex.ops.structural import convert_element_type
from perspex.runtime.dispatch import EVAL, constant, device_put, put_like
from perspex.tracing.array_methods import declared_array
from perspex.tracing.trace import Reference, state

__all__ = [
    "array", "asarray", "astype", "copy", "empty", "empty_like", "full", "full_like", "ones",
    "ones_like", "zeros", "zeros_like",
]  # fmt: skip

# ---- From values --------------------------------------------------------------------------------


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Make an array from a number, nested lists, or another array.

    Args:
      object: a number, an array of ours, of NumPy or of another library, or nested lists of them.
      dtype: the dtype of the result; by default the one that all elements promote to.
      copy: give an array of its own even if `object` is one already.
      order: only `"K"` or None: memory has no order that a program could see.
      ndmin: axes of size one are put in front until there are so many.
      device: where to put the array; the default device if not given.

    Returns:
      An array. A Python number alone stays weakly typed, lists of them do not.

    Raises:
      TypeError: for strings and other values that are not numbers.
      ValueError: for None, and for lists of unequal lengths.
      OverflowError: for integers that do not fit the dtype.
      NotImplementedError: for another `order`.

    >>> import perspex.numpy as jnp
    >>> jnp.array([1, 2.5])
    Array([1. , 2.5], dtype=float32)
    """
    if order not in ("K", None):
        raise NotImplementedError(f"array: order must be 'K', got {order!r}; memory has no order")
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "array")
    out = _converted(object, dtype, copy)
    if ndmin > out.ndim:
        out = expand(out, range(ndmin - out.ndim))
    out = lying("array", out_sharding, out)
    return out if device is None else device_put(out, device)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Convert a value to an array; an array that needs no conversion passes through unchanged.

    Args:
      a: what to convert, as for `array`.
      dtype: the dtype of the result; by default the one that all elements promote to.
      order: only `"K"` or None.
      copy: True copies an array too; None and False copy where a conversion needs it.
      device: where to put the array; by default it stays where it is.

    Returns:
      An array; `a` itself if it is an array of that dtype.

    Raises:
      TypeError: for strings and other values that are not numbers.
      ValueError: for None, for lists of unequal lengths, and for masked arrays.
      OverflowError: for integers that do not fit the dtype.
      NotImplementedError: for another `order`.

    >>> import perspex.numpy as jnp
    >>> x = jnp.arange(3)
    >>> jnp.asarray(x) is x
    True
    """
    if Reference.exist and isinstance(a, Reference):
        check_arraylike("asarray", a)
    if a.__class__ is not np.ndarray and isinstance(a, np.ndarray):
        shaped(a)  # refuses a masked array; `array` takes what is under the mask
    return array(a, dtype, copy=bool(copy), order=order, device=device, out_sharding=out_sharding)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of an array.

    Args:
      a: an array or a number; lists are for `array`.
      order: only `"K"` or None.

    Returns:
      An array of the same shape and dtype.

    Raises:
      TypeError: if `a` is not an array or a number.
      NotImplementedError: for another `order`.

    >>> import perspex.numpy as jnp
    >>> jnp.copy(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(
    x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: Placement = None
) -> Array:
    """Convert an array to another dtype.

    Complex numbers lose their imaginary part; as booleans they are true unless both parts are 0.

    Args:
      x: an array or a number.
      dtype: the new dtype; `None` is the default floating dtype.
      copy: copy also where `x` has the dtype already.
      device: where to put the array; by default it stays where it is.

    Returns:
      An array of the shape of `x`.

    Raises:
      TypeError: if `x` is not an array or a number, or `dtype` is not one of numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.astype(jnp.array([0.5, 2.9]), int)
    Array([0, 2], dtype=int32)
    """
    dtype = dtypes.check_user_dtype(dtype, "astype")
    check_arraylike("astype", x)
    out = _converted(x, dtype, copy)
    return out if device is None else device_put(out, device)


def _converted(x: Any, dtype: Any, copy: bool) -> Any:
    """Anything as an array; of `dtype` unless that is None."""
    kind = x.__class__
    if kind in PYTHON_SCALARS:
        aval = scalar_aval(x) if dtype is None else ShapedArray((), dtype)
        return constant(x if dtype is None else np.asarray(x, dtype), aval)
    if hasattr(x, "aval"):
        return _from_array(x, dtype, copy)
    if hasattr(kind, "__jax_array__"):
        return _converted(declared_array(x), dtype, copy)
    if kind is list or kind is tuple or isinstance(x, (list, tuple)):
        return _from_list(x, dtype)
    if x is None:
        raise ValueError("array: None is not a number; write jnp.nan for a missing value")
    return _from_host(x, dtype)


def _from_array(x: Any, dtype: Any, copy: bool) -> Any:
    aval = x.aval
    if dtype is None or (aval.dtype == dtype and not aval.weak_type):
        return ops.copy(x) if copy else x
    return convert_element_type(x, new_dtype=dtype, weak_type=False)


def _from_host(x: Any, dtype: Any) -> Any:
    """From a NumPy array or what `numpy.asarray` makes one of: ranges, buffers, other libraries."""
    if not isinstance(x, (np.ndarray, np.generic)):
        x = np.asarray(x) if dtype is None else np.asarray(x, dtype)
    try:
        canonical = dtypes.dtype_of(x)
    except TypeError as error:
        raise TypeError(f"array: {x!r:.60} has no numbers: {error}") from None
    if dtype is None:
        dtype = canonical
        if dtype == dtypes.float0:
            return x
    elif x.dtype == dtypes.float0:
        x = np.zeros(x.shape, dtype)
    elif x.dtype != dtype:
        x = x.astype(dtype)
    return constant(x, ShapedArray(x.shape, dtype))


# Arrays up to this size are read to put them together with numbers; larger ones stay on the device,
# and so do those that were put somewhere on purpose.
_READ_SIZE = 64
# Operands of one stacking: longer lists are put together in parts, which compile once.
_STACKED = 32


def _from_list(x: Any, dtype: Any) -> Any:
    leaves = list(_leaves(x))
    if any(hasattr(kind, "__jax_array__") for kind in set(map(type, leaves))):
        return _from_list(tree.map(declared_array, x), dtype)
    if any(leaf is None for leaf in leaves):
        raise ValueError("array: None is not a number; leave it out or write jnp.nan")
    if dtype is None:
        dtype = _common_dtype(leaves)
    arrays = [leaf for leaf in leaves if hasattr(leaf, "aval")]
    if arrays and not (state.trace is EVAL and all(map(_is_small, arrays))):
        return _stacked([_converted(element, dtype, False) for element in x])
    try:
        host = np.asarray(_read(x) if arrays else x, dtype)
    except ValueError:
        if not arrays:
            raise
        return _stacked([_converted(element, dtype, False) for element in x])  # says what differs
    if host.dtype == object:
        raise TypeError(f"array: {x!r:.60} has elements that are not numbers")
    # Nobody else can write to it, so that the device may read it in place.
    host.flags.writeable = False
    return constant(host, ShapedArray(host.shape, dtype))


def _leaves(x: Any) -> Iterator[Any]:
    for element in x:
        if isinstance(element, (list, tuple)):
            yield from _leaves(element)
        else:
            yield element


def _common_dtype(leaves: Sequence[Any]) -> Any:
    """What the elements of a list promote to."""
    if not leaves:
        return dtypes.canonicalize_dtype(float)
    types = set(map(type, leaves))
    kinds = {dtypes.kind_of(t(0)) for t in types if t in PYTHON_SCALARS}
    for leaf in leaves if types - PYTHON_SCALARS.keys() else ():
        try:
            kinds.add(dtypes.kind_of(leaf))
        except TypeError:
            kinds.add(dtypes.kind_of(np.asarray(leaf)))
    return dtypes.promote(tuple(kinds))[0]


def _is_small(x: Any) -> bool:
    return not x.aval.is_extended and x.size <= _READ_SIZE and not x.committed


def _read(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_read(element) for element in x]
    return np.asarray(x) if hasattr(x, "aval") else x


def _stacked(arrays: list[Any]) -> Any:
    if len(arrays) <= _STACKED:
        return stack(*arrays, axis=0)
    parts = [stack(*arrays[i : i + _STACKED], axis=0) for i in range(0, len(arrays), _STACKED)]
    while len(parts) > 1:
        parts = [
            concatenate(*parts[i : i + _STACKED], dimension=0)
            for i in range(0, len(parts), _STACKED)
        ]
    return parts[0]


# ---- Filled with a number -----------------------------------------------------------------------


def zeros(
    shape: int | Shape,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of zeros.

    Args:
      shape: an integer or a sequence of them, known while tracing.
      dtype: the default floating dtype if not given.
      device: where to put the array; the default device if not given.

    Returns:
      An array of that shape.

    >>> import perspex.numpy as jnp
    >>> jnp.zeros((2,))
    Array([0., 0.], dtype=float32)
    """
    sizes, dtype = canonical_shape("zeros", shape), _dtype_or_hint("zeros", shape, dtype)
    place = None if out_sharding is None else canonical(out_sharding, "zeros")
    out = _repeated(0, sizes, dtype, False, place)
    return out if device is None else device_put(out, device)


def ones(
    shape: int | Shape,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of ones.

    Returns:
      An array of that shape.

    >>> import perspex.numpy as jnp
    >>> jnp.ones((2,), int)
    Array([1, 1], dtype=int32)
    """
    sizes, dtype = canonical_shape("ones", shape), _dtype_or_hint("ones", shape, dtype)
    place = None if out_sharding is None else canonical(out_sharding, "ones")
    out = _repeated(1, sizes, dtype, False, place)
    return out if device is None else device_put(out, device)


def empty(
    shape: int | Shape,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of zeros: memory without a value does not exist here.

    Returns:
      An array of that shape.

    >>> import perspex.numpy as jnp
    >>> jnp.empty((2,))
    Array([0., 0.], dtype=float32)
    """
    sizes, dtype = canonical_shape("empty", shape), _dtype_or_hint("empty", shape, dtype)
    place = None if out_sharding is None else canonical(out_sharding, "empty")
    out = _repeated(0, sizes, dtype, False, place)
    return out if device is None else device_put(out, device)


def full(
    shape: int | Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array filled with a value.

    Returns:
      An array of that shape.

    Raises:
      TypeError: if `fill_value` is a list, or for sizes that are negative, traced or not integers.
      ValueError: if `fill_value` does not broadcast to `shape`.

    >>> import perspex.numpy as jnp
    >>> jnp.full((2,), 7.0, jnp.float32)
    Array([7., 7.], dtype=float32)
    """
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "full")
    params = asked("full", out_sharding, "sharding")
    out = _spread("full", fill_value, canonical_shape("full", shape), dtype, **params)
    return out if device is None else device_put(out, device)


def zeros_like(
    a: ArrayLike | ShapeDtypeStruct,
    dtype: DTypeLike | None = None,
    shape: int | Shape | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of zeros with the shape and dtype of another one.

    Returns:
      An array where `a` is, unless `device` says otherwise.

    >>> import perspex.numpy as jnp
    >>> jnp.zeros_like(jnp.arange(2))
    Array([0, 0], dtype=int32)
    """
    return _like("zeros_like", a, 0, dtype, shape, device, out_sharding)


def ones_like(
    a: ArrayLike | ShapeDtypeStruct,
    dtype: DTypeLike | None = None,
    shape: int | Shape | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of ones with the shape and dtype of another one.

    Returns:
      An array where `a` is, unless `device` says otherwise.

    >>> import perspex.numpy as jnp
    >>> jnp.ones_like(jnp.arange(2))
    Array([1, 1], dtype=int32)
    """
    return _like("ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(
    prototype: ArrayLike | ShapeDtypeStruct,
    dtype: DTypeLike | None = None,
    shape: int | Shape | None = None,
    *,
    device: Placement = None,
) -> Array:
    """An array of zeros with the shape and dtype of another one.

    Args:
      prototype: an array, a number, or a description with `shape` and `dtype`.

    Returns:
      An array where `prototype` is, unless `device` says otherwise.

    >>> import perspex.numpy as jnp
    >>> jnp.empty_like(jnp.arange(2))
    Array([0, 0], dtype=int32)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device)


def full_like(
    a: ArrayLike | ShapeDtypeStruct,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: int | Shape | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array filled with a value, with the shape and dtype of another one.

    Returns:
      An array where `a` is, unless `device` says otherwise.

    Raises:
      TypeError: if `a` or `fill_value` is a list, and for sizes that are not integers.
      ValueError: if `fill_value` does not broadcast to the shape.

    >>> import perspex.numpy as jnp
    >>> jnp.full_like(jnp.arange(2), 5)
    Array([5, 5], dtype=int32)
    """
    sizes, dtype, weak = _described("full_like", a, dtype, shape)
    weak = weak and not np.ndim(fill_value)
    params = _lying_like("full_like", a, sizes, out_sharding)
    out = _spread("full_like", fill_value, sizes, dtype, weak, **params)
    if out_sharding is not None:
        return out
    return put_like(out, a) if device is None else device_put(out, device)


def _dtype_or_hint(name: str, shape: Any, dtype: Any) -> Any:
    if isinstance(dtype, int) and isinstance(shape, int) and not isinstance(dtype, bool):
        raise TypeError(
            f"{name}: {dtype} is not a dtype. Did you write {name}({shape}, {dtype}) "
            f"for {name}(({shape}, {dtype})), with one tuple for the shape?"
        )
    return dtypes.check_user_dtype(dtype, name)


def _described(name: str, a: Any, dtype: Any, shape: Any) -> tuple[Any, Any, bool]:
    """Shape, dtype and weak type for an array like `a`, which may be a mere description."""
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        check_arraylike(name, a)
    given, weak = dtypes.kind_of(a)
    if dtype is not None:
        given, weak = dtypes.check_user_dtype(dtype, name), False
    return np.shape(a) if shape is None else canonical_shape(name, shape), given, weak


def _lying_like(name: str, a: Any, shape: Any, out_sharding: OutSharding) -> dict[str, Any]:
    """How an array of this shape lies, by the param `sharding`: as asked, or else as `a` does."""
    cut = getattr(getattr(a, "aval", None), "cut", None)
    if out_sharding is None and cut is not None and np.shape(a) == shape:
        return {"sharding": cut}
    return asked(name, out_sharding, "sharding")


def _like(
    name: str,
    a: Any,
    value: int,
    dtype: Any,
    shape: Any,
    device: Any,
    out_sharding: OutSharding = None,
) -> Any:
    shape, dtype, weak = _described(name, a, dtype, shape)
    out = _repeated(value, shape, dtype, weak, **_lying_like(name, a, shape, out_sharding))
    if out_sharding is not None:
        return out
    return put_like(out, a) if device is None else device_put(out, device)


@fused(static=("value", "shape", "dtype", "weak", "sharding"))
def _repeated(
    value: int, shape: tuple[int, ...], dtype: Any, weak: bool = False, sharding: Any = None
) -> Any:
    if dtype == dtypes.float0:
        return np.zeros(shape, dtype)
    if weak:
        number = constant(value, ShapedArray((), dtype, True))
        return spread(number, shape, sharding=sharding)
    if isinstance(dtype, dtypes.KeyType):
        return filled_keys(np.uint32(value), shape, dtype)
    return spread(dtype.type(value), shape, sharding=sharding)


def _spread(
    name: str,
    value: Any,
    shape: tuple[int, ...],
    dtype: Any,
    weak: bool = False,
    sharding: Any = None,
) -> Any:
    check_arraylike(name, value)
    if dtype is None:
        dtype, weak = dtypes.kind_of(value)
    return _spread_as(value, shape, dtype, weak, sharding)


@fused(static=("shape", "dtype", "weak", "sharding"))
def _spread_as(
    value: Any, shape: tuple[int, ...], dtype: Any, weak: bool, sharding: Any = None
) -> Any:
    given = shaped(value)
    if isinstance(dtype, dtypes.KeyType) and not given.is_extended and not given.shape:
        return filled_keys(value, shape, dtype)
    return spread(as_dtype(value, dtype, weak), shape, sharding=sharding)


_VALUE = {"fill_value": "a number, or an array that broadcasts to the shape."}
describe((zeros, ones, empty), words.SHAPE | words.LIES, words.SIZES)
describe((array, asarray), words.LIES)
describe(
    (full,),
    {
        **words.SHAPE,
        **words.LIES,
        **_VALUE,
        "dtype": "that of `fill_value` if not given; a Python number alone stays weakly typed.",
    },
)
describe(
    (zeros_like, ones_like, empty_like, full_like),
    words.LIKE | words.LIES | _VALUE,
    "TypeError: if the prototype is a list, and for sizes that are negative or not integers.",
)

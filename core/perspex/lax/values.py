"""Arrays filled with a number or counted up, conversions, choices and barriers."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from perspex import dtypes, tree
from perspex.api.shapes import ShapeDtypeStruct
from perspex.arguments.arrays import as_array, aval_of
from perspex.arguments.dtypes import check_equal_dtypes, required_dtype
from perspex.arguments.shapes import iterated_shape
from perspex.arguments.sharded import OutSharding, asked
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape
from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise, kept, passing, structural
from perspex.ops import shape as ops
from perspex.ops.keys import filled_keys
from perspex.runtime.dispatch import EVAL, put_like
from perspex.tracing.staging import JaxprTrace, JaxprTracer
from perspex.tracing.trace import Tracer, state, typeof

T = TypeVar("T")

__all__ = [
    "bitcast_convert_type", "broadcasted_iota", "clamp", "convert_element_type", "dce_sink",
    "dtype", "empty", "full", "full_like", "iota", "optimization_barrier", "select", "select_n",
    "stage", "zeros_like_array",
]  # fmt: skip

# ---- From numbers -------------------------------------------------------------------------------


def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: OutSharding = None,
) -> Array:
    """An array filled with a scalar.

    Args:
      shape: the shape of the result.
      fill_value: a number or a scalar array.
      dtype: the dtype of the result; if not given that of `fill_value`, weak if it is.
      sharding: how the result lies along explicit axes of the mesh of `set_mesh`.

    Returns:
      An array of shape `shape`.

    Raises:
      TypeError: if `fill_value` is not a scalar, or a size is negative.

    >>> from perspex import lax
    >>> lax.full((2,), 1.5)
    Array([1.5, 1.5], dtype=float32, weak_type=True)
    """
    aval = typeof(fill_value)
    if aval.shape:
        raise TypeError(
            f"full must be called with scalar fill_value, got fill_value.shape {aval.shape}; "
            "use broadcast_in_dim to broadcast an array"
        )
    if isinstance(dtype, dtypes.KeyType) and not aval.is_extended:
        return filled_keys(fill_value, iterated_shape("full", shape), dtype)
    if dtype is not None and not isinstance(dtype, dtypes.KeyType):
        fill_value = _number(fill_value, aval, required_dtype("full", dtype))
    sizes = iterated_shape("full", shape)
    params = asked("full", sharding, "sharding")
    if not sizes and not params:
        return as_array(fill_value)
    return structural.broadcast_in_dim(fill_value, shape=sizes, broadcast_dimensions=(), **params)


def _number(value: Any, aval: ShapedArray, dtype: Any, weak_type: bool = False) -> Any:
    """A scalar converted to `dtype`: at once if it is known, so that no operation is written."""
    if isinstance(value, (bool, int, float, complex, np.generic, np.ndarray)):
        number = np.asarray(value).astype(dtype)[()]
        return number if not weak_type else structural.convert(number, dtype, True)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return value
    return structural.convert_element_type(value, new_dtype=dtype, weak_type=weak_type)


def full_like(
    x: ArrayLike | ShapeDtypeStruct,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    sharding: OutSharding = None,
) -> Array:
    """An array filled with a scalar, by default of the shape and dtype of another array.

    Args:
      x: an array, or anything with a shape and a dtype.
      fill_value: a number or a scalar array.
      dtype: the dtype of the result; if not given that of `x`, weak if it is.
      shape: the shape of the result; that of `x` if not given.
      sharding: how the result lies along explicit axes of the mesh of `set_mesh`.

    Returns:
      An array.

    Raises:
      TypeError: if `fill_value` is not a scalar.

    >>> from perspex import lax, numpy as jnp
    >>> lax.full_like(jnp.arange(2), 7)
    Array([7, 7], dtype=int32)
    """
    kind: Any = x
    like = typeof(x) if _is_value(x) else ShapedArray(kind.shape, kind.dtype)
    sizes = like.shape if shape is None else iterated_shape("full_like", shape)
    if sharding is None and sizes == like.shape:
        sharding = like.cut
    if like.is_extended or dtype is not None:
        dtype = like.dtype if dtype is None else dtype
        return put_like(full(sizes, fill_value, dtype, sharding=sharding), x)
    aval = typeof(fill_value)
    if aval.shape:
        raise TypeError(f"full_like must be called with scalar fill_value, got {aval.shape}")
    number = _number(fill_value, aval, like.dtype, like.weak_type)
    return put_like(full(sizes, number, sharding=sharding), x)


def _is_value(x: Any) -> bool:
    try:
        typeof(x)
    except TypeError:
        return False
    return True


def zeros_like_array(x: ArrayLike | ShapeDtypeStruct) -> Array:
    """Zeros of the shape and dtype of `x`.

    Args:
      x: an array, or anything with a shape and a dtype.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      AttributeError: if `x` has no shape or dtype.

    >>> from perspex import lax, numpy as jnp
    >>> lax.zeros_like_array(jnp.ones(2))
    Array([0., 0.], dtype=float32)
    """
    return full_like(x, 0)


def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: OutSharding = None) -> Array:
    """An array whose elements may be anything; here they are zeros.

    Args:
      shape: the shape of the result.
      dtype: its dtype.
      out_sharding: how the result lies along explicit axes of the mesh of `set_mesh`.

    Returns:
      An array of shape `shape` and dtype `dtype`.

    Raises:
      TypeError: if a size is negative.

    >>> from perspex import lax
    >>> lax.empty((2,), "float32").shape
    (2,)
    """
    return full(shape, 0, dtype, sharding=out_sharding)


def iota(dtype: DTypeLike, size: int) -> Array:
    """The numbers 0, 1, 2, ...

    Args:
      dtype: the numeric dtype of the result.
      size: how many numbers.

    Returns:
      A 1-D array.

    Raises:
      TypeError: for dtype bool, and for a size that is not an integer or negative.

    >>> from perspex import lax
    >>> lax.iota("float32", 3)
    Array([0., 1., 2.], dtype=float32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(
    dtype: DTypeLike, shape: Shape, dimension: int, *, out_sharding: OutSharding = None
) -> Array:
    """An array whose elements are their own indices along an axis.

    Args:
      dtype: the numeric dtype of the result.
      shape: its shape.
      dimension: the axis that is counted along.
      out_sharding: how the result lies along explicit axes of the mesh of `set_mesh`.

    Returns:
      An array of shape `shape` and dtype `dtype`.

    Raises:
      ValueError: if there is no such axis.
      TypeError: for dtype bool and negative sizes.

    >>> from perspex import lax
    >>> lax.broadcasted_iota("int32", (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    params = asked("broadcasted_iota", out_sharding, "sharding")
    sizes = iterated_shape("iota", shape)
    kind = required_dtype("iota", dtype)
    return ops.iota(dtype=kind, shape=sizes, dimension=int(dimension), **params)


# ---- Conversion ---------------------------------------------------------------------------------


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The elements of the operand converted to another dtype.

    Floats lose their fraction towards zero, complex numbers their imaginary part. A boolean says
    whether the number, or its real part, is not 0.

    Args:
      operand: an array.
      new_dtype: a dtype. The result has it strongly, not weakly.

    Returns:
      An array of the shape of the operand.

    Raises:
      ValueError: if `new_dtype` is `None` or a typed key.
      TypeError: if the operand is not an array, or `new_dtype` names no dtype.

    >>> from perspex import lax, numpy as jnp
    >>> lax.convert_element_type(jnp.array([0.5, -1.5]), "int32")
    Array([ 0, -1], dtype=int32)
    """
    dtype = required_dtype("convert_element_type", new_dtype)
    aval = typeof(operand)
    if aval.dtype != dtype and (aval.is_extended or isinstance(dtype, dtypes.KeyType)):
        raise ValueError(
            f"Cannot convert_element_type from {aval.dtype.name} to {dtype.name}; "
            "random.key_data and random.wrap_key_data convert typed keys"
        )
    if aval.dtype == dtype and not aval.weak_type:
        return as_array(operand)
    if aval.dtype.kind == "c" and dtype.kind == "b":
        operand = elementwise.real(operand)
    return structural.convert_element_type(operand, new_dtype=dtype, weak_type=False)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits of the operand read as another dtype.

    Args:
      operand: an array.
      new_dtype: a dtype. A narrower one adds a last axis for the pieces of an element, a wider one
        removes it.

    Returns:
      An array of dtype `new_dtype`.

    Raises:
      TypeError: for booleans, and between complex and other numbers.
      ValueError: if the last axis does not hold the pieces of an element.

    >>> from perspex import lax, numpy as jnp
    >>> lax.bitcast_convert_type(jnp.float32(1), "int32")
    Array(1065353216, dtype=int32)
    """
    dtype = required_dtype("bitcast_convert_type", new_dtype)
    aval = typeof(operand)
    # The bits of a float have no slope, so they pass through the primitive.
    if aval.dtype == dtype and not aval.weak_type and not dtypes.issubdtype(dtype, np.inexact):
        return as_array(operand)
    return passing.bitcast_convert_type(operand, new_dtype=dtype)


def dtype(x: Any) -> Any:
    """The dtype of an array, a number or a Python type.

    Args:
      x: an array, a number, a Python type, or what names a dtype.

    Returns:
      A dtype; of 32 bits where 64 are not enabled.

    Raises:
      TypeError: for anything else.

    >>> from perspex import lax
    >>> lax.dtype(1.5)
    dtype('float32')
    """
    if isinstance(x, (type, str, np.dtype, dtypes.KeyType)):
        return dtypes.canonicalize_dtype(x, allow_extended_dtype=True)
    try:
        return typeof(x).dtype
    except TypeError:
        raise TypeError(f"Cannot determine dtype of {x}; it is neither array nor number") from None


# ---- Choice -------------------------------------------------------------------------------------


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Element by element `on_true` where `pred`, else `on_false`.

    Args:
      pred: booleans, of the shape of the cases or a scalar.
      on_true, on_false: arrays of one shape and dtype.

    Returns:
      An array of the shape and dtype of the cases.

    Raises:
      TypeError: if shapes or dtypes disagree.

    >>> from perspex import lax, numpy as jnp
    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([8, 9]))
    Array([1, 9], dtype=int32)
    """
    check_equal_dtypes("select", [typeof(on_true), typeof(on_false)])
    return select_n(pred, on_false, on_true)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Element by element the case that `which` says.

    Args:
      which: booleans for two cases or integers for any number, of their shape or a scalar; an
        integer out of range takes the nearest case.
      cases: arrays of one shape and dtype.

    Returns:
      An array of the shape and dtype of the cases.

    Raises:
      ValueError: for no cases.
      TypeError: if shapes or dtypes disagree.

    >>> from perspex import lax, numpy as jnp
    >>> lax.select_n(jnp.array([2, 0]), *jnp.arange(6).reshape(3, 2))
    Array([4, 1], dtype=int32)
    """
    if not cases:
        raise ValueError("select_n needs at least one case")
    avals = [typeof(x) for x in cases]
    check_equal_dtypes("select_n", avals)
    if any(a.shape != avals[0].shape for a in avals):
        shapes = ", ".join([str(a.shape) for a in avals])
        raise TypeError(f"select_n: cases must have one shape, got {shapes}; broadcast them")
    chooser = typeof(which)
    if chooser.shape not in ((), avals[0].shape):
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, got `which` shape "
            f"{chooser.shape} but case shape {avals[0].shape}"
        )
    if dtypes.issubdtype(chooser.dtype, np.integer):
        which = structural.convert(which, np.dtype("int32"))
    return elementwise.select_n(which, *cases)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Numbers moved to at least `min` and at most `max`.

    Args:
      min, max: the bounds: scalars, or arrays of the shape of `x`, of its dtype.
      x: an array of real numbers or booleans.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      TypeError: if dtypes or shapes disagree.

    >>> from perspex import lax, numpy as jnp
    >>> lax.clamp(0.0, jnp.array([-1.0, 0.5, 2.0]), 1.0)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    check_equal_dtypes("clamp", [typeof(min), typeof(x), typeof(max)])
    return elementwise.clamp(min, x, max)


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keep the arrays of a pytree in the program that is traced, although nobody reads them.

    Args:
      val: a pytree of arrays.
      prevent_mlir_dce: whether the compiler, too, has to compute them.

    Returns:
      Nothing.

    Raises:
      TypeError: if a leaf is not an array or a number.

    >>> from perspex import lax, make_jaxpr
    >>> def f(x):
    ...     lax.dce_sink(lax.sin(x))
    ...     return x
    >>> print(make_jaxpr(f)(1.0))
    { lambda ; a:f32[]. let
        b:f32[] = sin a
        dce_sink[prevent_mlir_dce=False] b
      in (a,) }
    """
    for leaf in tree.leaves(val):
        kept.dce_sink(leaf, prevent_mlir_dce=prevent_mlir_dce)


def stage(x: ArrayLike, /) -> Array:
    """A number or an array as a value of the program that is traced.

    Where nothing is traced, the array itself.

    Args:
      x: an array or a number.

    Returns:
      A tracer, or outside of traced functions an array.

    Raises:
      TypeError: if `x` is not an array or a number.

    >>> from perspex import lax
    >>> lax.stage(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    aval_of("stage", x)
    if isinstance(x, Tracer):
        return x
    trace: Any = state.trace
    while trace is not EVAL:
        if isinstance(trace, JaxprTrace):
            value: Any = trace.lift(x)
            return JaxprTracer(trace, value)
        trace = trace.parent
    return as_array(x)


def optimization_barrier(operand: T, /) -> T:
    """The arrays of a pytree, none of which is available before all are computed.

    The compiler moves nothing across it.

    Args:
      operand: a pytree of arrays.

    Returns:
      A pytree like `operand`.

    Raises:
      TypeError: if a leaf is not an array or a number.

    >>> from perspex import lax, numpy as jnp
    >>> lax.optimization_barrier((jnp.float32(1), jnp.float32(2)))
    (Array(1., dtype=float32), Array(2., dtype=float32))
    """
    leaves, structure = tree.flatten(operand)
    return tree.unflatten(structure, passing.optimization_barrier(*leaves) if leaves else [])

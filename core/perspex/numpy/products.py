"""Products of vectors and matrices: all of them are `dot_general`.

Operands are promoted to one dtype. A contraction over an axis of size zero gives zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import as_array, as_dtype, check_arraylike, expand, spread
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.shapes import common_shape
from perspex.arguments.sharded import WORDS, OutSharding, asked, lying
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.lax.linear import PrecisionLike
from perspex.layout.context import canonical
from perspex.layout.named import NamedSharding
from perspex.numpy.arithmetic import conj, multiply, subtract
from perspex.numpy.promotion import promote_dtypes, strengthened
from perspex.ops import structural
from perspex.ops.linear import Dimensions, dot_general
from perspex.ops.precision import canonical_precision
from perspex.ops.shape import concatenate
from perspex.ops.structural import convert, move_axis, reshape, transpose
from perspex.tracing.trace import typeof

__all__ = [
    "cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "vdot", "vecdot",
    "vecmat",
]  # fmt: skip

Axes = tuple[int, ...]


def contract(
    x: Any,
    y: Any,
    axes: tuple[Axes, Axes],
    batch: tuple[Axes, Axes] = ((), ()),
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
    weak: bool = False,
) -> Any:
    """`dot_general` of promoted arrays: the batch axes, then the other axes of `x`, then of `y`.

    The result is weakly typed if both arrays are, or if `weak` says so, but for booleans.
    """
    aval = typeof(x)
    dtype, weak = aval.dtype, weak or (aval.weak_type and typeof(y).weak_type)
    weak = weak and dtype.kind != "b"
    if preferred_element_type is not None:
        dtype = dtypes.check_user_dtype(preferred_element_type, "preferred_element_type")
        weak = False
    params: dict[str, Any] = {
        "dimension_numbers": Dimensions((axes, batch)),
        "precision": canonical_precision(precision),
        "preferred_element_type": dtype,
    }
    if out_sharding is not None:
        params |= asked("dot_general", out_sharding)
    return convert(dot_general(x, y, **params), dtype, weak)


def _operands(name: str, *args: Any) -> list[Array]:
    return [as_array(x) for x in promote_dtypes(name, *args)]


def _factors(name: str, a: Any, b: Any) -> tuple[Array, Array, bool]:
    """Two operands at one dtype, each with its own weak type, and whether the product is weak."""
    x, y = promote_dtypes(name, a, b)
    weak = shaped(x).weak_type and shaped(y).weak_type
    if x is not a:
        x = as_dtype(a, x.dtype, shaped(a).weak_type)
    if y is not b:
        y = as_dtype(b, y.dtype, shaped(b).weak_type)
    return as_array(x), as_array(y), weak


_STATIC = ("precision", "preferred_element_type")
_PLACED = (*_STATIC, "out_sharding")


@fused(static=_PLACED)
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The sum of products over the last axis of `a` and the second to last (or only) axis of `b`.

    A scalar multiplies the other operand.

    Returns:
      An array with the other axes of `a`, then those of `b`.

    >>> import perspex.numpy as jnp
    >>> jnp.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
    Array(11., dtype=float32)
    """
    a, b, weak = _factors("dot", a, b)
    if a.ndim == 0 or b.ndim == 0:
        axes: tuple[Axes, Axes] = ((), ())
    else:
        axes = ((a.ndim - 1,), (max(b.ndim - 2, 0),))
    return contract(a, b, axes, ((), ()), precision, preferred_element_type, out_sharding, weak)


@fused(static=_PLACED)
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The matrix product `a @ b` over the last two axes; leading axes broadcast.

    A vector is a row on the left and a column on the right, and its axis is not in the result.

    Returns:
      An array of shape `(..., n, m)` for operands of shapes `(..., n, k)` and `(..., k, m)`.

    Raises:
      TypeError: if an operand is not an array, or the sizes disagree.
      ValueError: for scalars, and for leading axes that do not broadcast.

    >>> import perspex.numpy as jnp
    >>> jnp.matmul(jnp.array([[1.0, 2.0]]), jnp.array([3.0, 4.0]))
    Array([11.], dtype=float32)
    """
    a, b, weak = _factors("matmul", a, b)
    plan = _matrix_product(a.shape, b.shape)
    # A leading axis of size one, or absent, is left out of the operand; it is kept in the result.
    x = structural.squeeze(a, dimensions=plan.x_ones) if plan.x_ones else a
    y = structural.squeeze(b, dimensions=plan.y_ones) if plan.y_ones else b
    place = None if out_sharding is None else plan.before(canonical(out_sharding, "matmul"))
    out = contract(x, y, plan.axes, plan.batch, precision, preferred_element_type, place, weak)
    if plan.permutation is not None:
        out = transpose(out, permutation=plan.permutation)
    out = out if out.shape == plan.shape else reshape(out, new_sizes=plan.shape)
    return out if out_sharding is None else lying("matmul", out_sharding, out)


class _MatrixProduct(NamedTuple):
    """How `matmul` contracts two shapes: what to squeeze out first, and how the result lies."""

    x_ones: Axes
    y_ones: Axes
    axes: tuple[Axes, Axes]
    batch: tuple[Axes, Axes]
    permutation: Axes | None
    shape: tuple[int, ...]

    def before(self, asked: NamedSharding | None) -> NamedSharding | None:
        """How the product lies, if the result, with its axes in place, lies as asked."""
        if asked is None:
            return None
        added = [i for i in range(len(self.x_ones)) if i < len(self.y_ones)]
        spec = [*asked.spec.partitions, *[None] * (len(self.shape) - len(asked.spec))]
        spec = spec[len(added) :]
        if self.permutation is not None:
            spec = [spec[self.permutation.index(i)] for i in range(len(spec))]
        return asked.update(spec=asked.spec.update(partitions=spec))


# A network multiplies the same shapes again and again: found, a plan costs a tenth of making it.
@functools.lru_cache(maxsize=1024)
def _matrix_product(a: tuple[int, ...], b: tuple[int, ...]) -> _MatrixProduct:
    if not (a and b):
        raise ValueError("matmul takes arrays of at least one axis; multiply scalars with `*`")
    try:
        lead = common_shape(a[:-2], b[:-2])
    except ValueError:
        raise ValueError(
            f"matmul: the leading axes of shapes {a} and {b} do not broadcast"
        ) from None
    x_ones, x_axes = _ones(a, lead)
    y_ones, y_axes = _ones(b, lead)
    shared = [i for i in x_axes if i in y_axes]
    contracted = (len(a) - len(x_ones) - 1,), (len(b) - len(y_ones) - min(len(b), 2),)
    x_only = [i for i in x_axes if i not in shared]
    y_only = [i for i in y_axes if i not in shared]
    rows, columns = ["row"] * (len(a) > 1), ["column"] * (len(b) > 1)
    have: list[Any] = [*shared, *x_only, *rows, *y_only, *columns]
    want: list[Any] = [*[i for i in range(len(lead)) if i in have], *rows, *columns]
    return _MatrixProduct(
        x_ones,
        y_ones,
        contracted,
        (tuple(map(x_axes.index, shared)), tuple(map(y_axes.index, shared))),
        None if have == want else tuple([have.index(w) for w in want]),
        (*lead, *a[-2:-1], *(b[-1:] if columns else ())),
    )


def _ones(shape: tuple[int, ...], lead: Axes) -> tuple[Axes, list[int]]:
    """The leading axes of size one, and which axes of the result `lead` the others are."""
    count = max(len(shape) - 2, 0)
    skip = len(lead) - count
    ones = tuple([i for i in range(count) if shape[i] == 1])
    return ones, [i + skip for i in range(count) if i not in ones]


@fused(static=_STATIC)
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The sum of products of all elements, with the conjugate of `a`.

    Returns:
      A scalar.

    >>> import perspex.numpy as jnp
    >>> jnp.vdot(jnp.array([1j, 1.0]), jnp.array([1j, 1.0]))
    Array(2.+0.j, dtype=complex64)
    """
    a, b, weak = _factors("vdot", a, b)
    if a.dtype.kind == "c":
        a = conj(a)
    a, b = (reshape(x, new_sizes=(x.size,)) if x.ndim != 1 else x for x in (a, b))
    return contract(a, b, ((0,), (0,)), ((), ()), precision, preferred_element_type, weak=weak)


@fused(static=_STATIC)
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The sum of products over the last axes of both; a scalar multiplies the other operand.

    Returns:
      An array with the other axes of `a`, then those of `b`.

    >>> import perspex.numpy as jnp
    >>> jnp.inner(jnp.array([[1.0, 2.0]]), jnp.array([3.0, 4.0]))
    Array([11.], dtype=float32)
    """
    a, b, weak = _factors("inner", a, b)
    if a.ndim == 0 or b.ndim == 0:
        a, b = _operands("inner", a, b)
        axes: tuple[Axes, Axes] = ((), ())
    else:
        axes = ((a.ndim - 1,), (b.ndim - 1,))
    return contract(a, b, axes, ((), ()), precision, preferred_element_type, weak=weak)


@fused
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """The products of all pairs of elements: a matrix.

    Returns:
      An array of shape `(a.size, b.size)`.

    Raises:
      TypeError: if an operand is not an array or a number.
      NotImplementedError: for `out`.

    >>> import perspex.numpy as jnp
    >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError("outer: arrays are immutable, so `out` cannot be written to")
    a, b = _operands("outer", a, b)
    shape = a.size, b.size
    return multiply(
        *[
            structural.broadcast_in_dim(x, shape=shape, broadcast_dimensions=(i,))
            for i, x in enumerate([a.ravel(), b.ravel()])
        ]
    )


@fused(static=("axis", *_STATIC))
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The sum of products along an axis, with the conjugate of `x1`; other axes broadcast.

    Args:
      axis: the axis of both operands.

    Returns:
      An array of the common shape of the other axes.

    Raises:
      TypeError: if an operand is not an array.
      ValueError: for scalars, sizes that disagree, and axes that do not broadcast.

    >>> import perspex.numpy as jnp
    >>> jnp.vecdot(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 1.0]))
    Array([3., 7.], dtype=float32)
    """
    _check_vectors("vecdot", x1, x2)
    x1, x2, weak = _factors("vecdot", x1, x2)
    x1 = move_axis(x1, canonical_axis(axis, x1.ndim), x1.ndim - 1)
    x2 = move_axis(x2, canonical_axis(axis, x2.ndim), x2.ndim - 1)
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"vecdot: the axis has the sizes {x1.shape[-1]} and {x2.shape[-1]}")
    if x1.dtype.kind == "c":
        x1 = conj(x1)
    out = matmul(
        reshape(x1, new_sizes=(*x1.shape[:-1], 1, x1.shape[-1])),
        reshape(x2, new_sizes=(*x2.shape, 1)),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    out = reshape(out, new_sizes=out.shape[:-2])
    return out if preferred_element_type is not None else convert(out, out.dtype, weak)


@fused
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Matrices times vectors, over the last axes; leading axes broadcast.

    Returns:
      An array of shape `(..., n)` for matrices `(..., n, k)` and vectors `(..., k)`.

    Raises:
      TypeError: if an operand is not an array.
      ValueError: for operands with too few axes, sizes that disagree, axes that do not broadcast.

    >>> import perspex.numpy as jnp
    >>> jnp.matvec(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 1.0]))
    Array([3., 7.], dtype=float32)
    """
    x1, x2 = _vectors("matvec", x1, x2)
    if x1.ndim < 2:
        raise ValueError(f"matvec takes a matrix first, got the shape {x1.shape}")
    _check_sizes("matvec", x1.shape, -1, x2.shape, -1)
    out = matmul(x1, reshape(x2, new_sizes=(*x2.shape, 1)))
    return reshape(out, new_sizes=out.shape[:-1])


@fused
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Vectors, conjugated, times matrices, over the last axes; leading axes broadcast.

    Returns:
      An array of shape `(..., m)` for vectors `(..., k)` and matrices `(..., k, m)`.

    Raises:
      TypeError: if an operand is not an array.
      ValueError: for operands with too few axes, sizes that disagree, axes that do not broadcast.

    >>> import perspex.numpy as jnp
    >>> jnp.vecmat(jnp.array([1.0, 1.0]), jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([4., 6.], dtype=float32)
    """
    x1, x2 = _vectors("vecmat", x1, x2)
    if x2.ndim < 2:
        raise ValueError(f"vecmat takes a matrix second, got the shape {x2.shape}")
    _check_sizes("vecmat", x1.shape, -1, x2.shape, -2)
    if x1.dtype.kind == "c":
        x1 = conj(x1)
    out = matmul(reshape(x1, new_sizes=(*x1.shape[:-1], 1, x1.shape[-1])), x2)
    return reshape(out, new_sizes=(*out.shape[:-2], out.shape[-1]))


def _vectors(name: str, x: Any, y: Any) -> list[Array]:
    _check_vectors(name, x, y)
    return _operands(name, x, y)


def _check_vectors(name: str, x: Any, y: Any) -> None:
    check_arraylike(name, x, y)
    for v in (x, y):
        if np.ndim(v) == 0:
            raise ValueError(f"{name} takes arrays of at least one axis, got a scalar")


def _check_sizes(name: str, first: Sequence[int], i: int, second: Sequence[int], j: int) -> None:
    if first[i] != second[j]:
        raise ValueError(
            f"{name}: axis {i} of shape {tuple(first)} must be as long as axis {j} of shape "
            f"{tuple(second)}, but they have the sizes {first[i]} and {second[j]}"
        )


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int | Sequence[int]] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The sum of products over some axes of both.

    Args:
      axes: the number of the last axes of `a` and the first of `b`; or a pair of axes, or of
        sequences of axes, of `a` and of `b`.

    Returns:
      An array with the other axes of `a`, then those of `b`.

    Raises:
      TypeError: if an operand is not an array, the sizes disagree, or `axes` has another form.
      ValueError: for an axis that is not there.

    >>> import perspex.numpy as jnp
    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=1)
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    check_arraylike("tensordot", a, b)
    return _tensordot(
        a,
        b,
        axes=_tensordot_axes(axes, np.ndim(a), np.ndim(b)),
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


@fused(static=("axes", *_PLACED))
def _tensordot(
    a: Any, b: Any, axes: Any, precision: Any, preferred_element_type: Any, out_sharding: Any
) -> Any:
    a, b = _operands("tensordot", a, b)
    return contract(a, b, axes, ((), ()), precision, preferred_element_type, out_sharding)


def _tensordot_axes(axes: Any, a_ndim: int, b_ndim: int) -> tuple[Axes, Axes]:
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(a_ndim, b_ndim):
            raise TypeError(
                f"tensordot: axes={axes} needs that many axes of both operands, "
                f"which have {a_ndim} and {b_ndim}"
            )
        return tuple(range(a_ndim - axes, a_ndim)), tuple(range(axes))
    if not isinstance(axes, (list, tuple)) or len(axes) != 2:
        raise TypeError(f"tensordot: axes must be an integer or a pair, got {axes!r}")
    left, right = [(part,) if isinstance(part, (int, np.integer)) else tuple(part) for part in axes]
    if len(left) != len(right):
        raise TypeError(
            f"tensordot: axes names {len(left)} axes of one operand and {len(right)} of the other"
        )
    return (
        tuple([canonical_axis(i, a_ndim) for i in left]),
        tuple([canonical_axis(i, b_ndim) for i in right]),
    )


@fused
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: `b` times each element of `a`, put together in the shape of `a`.

    Returns:
      An array whose sizes are the products of those of `a` and `b`.

    >>> import perspex.numpy as jnp
    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    a, b = _operands("kron", a, b)
    ndim = max(a.ndim, b.ndim)
    a, b = (reshape(x, new_sizes=(1,) * (ndim - x.ndim) + x.shape) for x in (a, b))
    a_shape = tuple([n for m in a.shape for n in (m, 1)])
    b_shape = tuple([n for m in b.shape for n in (1, m)])
    out = multiply(reshape(a, new_sizes=a_shape), reshape(b, new_sizes=b_shape))
    shape = tuple([m * n for m, n in zip(a.shape, b.shape, strict=True)])
    return reshape(out, new_sizes=shape)


@fused(static=("axisa", "axisb", "axisc", "axis"))
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """The vector product of vectors of three components.

    Args:
      axisa, axisb, axisc: the axis of the components in `a`, in `b` and in the result.
      axis: the same axis for all three.

    Returns:
      An array of the common shape of the other axes, with the components.

    Raises:
      TypeError: if an operand is not an array.
      ValueError: for vectors of other sizes, those of the plane among them: of `a` and `b` of two
        components it would be the number `a[0] * b[1] - a[1] * b[0]`.

    >>> import perspex.numpy as jnp
    >>> jnp.cross(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
    Array([0., 0., 1.], dtype=float32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    check_arraylike("cross", a, b)
    dtype = dtypes.result_type(a, b)
    a, b = [as_array(as_dtype(strengthened(x), dtype)) for x in (a, b)]
    a = move_axis(a, canonical_axis(axisa, a.ndim), a.ndim - 1)
    b = move_axis(b, canonical_axis(axisb, b.ndim), b.ndim - 1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError(
            f"cross takes vectors of 3 components, got {a.shape[-1]} and {b.shape[-1]}; give "
            "vectors in the plane a third component of zero"
        )
    x, y = ([v[..., i] for i in range(3)] for v in (a, b))

    def component(i: int, j: int) -> Any:
        return subtract(multiply(x[i], y[j]), multiply(x[j], y[i]))

    parts = [component(1, 2), component(2, 0), component(0, 1)]
    shape = common_shape(*[p.shape for p in parts])
    columns = [expand(spread(p, shape), (len(shape),)) for p in parts]
    stacked = concatenate(*columns, dimension=len(shape))
    return move_axis(stacked, len(shape), canonical_axis(axisc, len(shape) + 1))


_WORDS = {
    **dict.fromkeys(("a", "b", "x1", "x2"), "an array; both operands are promoted to one dtype."),
    "out": "not supported: arrays never change.",
    "precision": "how exactly accelerators multiply: a `lax.Precision`, its name, or a pair.",
    "preferred_element_type": "the dtype to accumulate in, which is that of the result.",
    "out_sharding": WORDS,
}

describe(
    [dot, matmul, vdot, inner, outer, vecdot, matvec, vecmat, tensordot, kron, cross],
    _WORDS,
    "TypeError: if an operand is not an array or a number, or the sizes disagree.",
)

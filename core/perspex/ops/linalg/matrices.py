"""What the operations on matrices share: checks, products, triangles, batching, failure as NaN.

A matrix is the last two axes of an array; the axes before them are a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ew
from perspex.ops.expansions import real_dtype
from perspex.ops.families import PARTS, check_dtype
from perspex.ops.indexing import gather
from perspex.ops.linear import Dimensions, dot_general
from perspex.ops.precision import Precision
from perspex.ops.shape import pad
from perspex.ops.shape import slice as slice_
from perspex.ops.structural import (
    broadcast_in_dim,
    reduce_sum,
    reshape,
    scalar_like,
    to_front,
    transpose,
    zeros,
)
from perspex.ops.windows import GatherDimensionNumbers, GatherScatterMode
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof

INT = np.dtype("int32")
HIGHEST = (Precision.HIGHEST, Precision.HIGHEST)


# ---- Checks -------------------------------------------------------------------------------------


def check_matrix(name: str, x: ShapedArray) -> None:
    """An array of at least two axes, of a dtype that LAPACK computes with."""
    check_dtype(name, x.dtype, PARTS)
    if x.ndim < 2:
        raise TypeError(
            f"{name} takes matrices, arrays of at least two axes, got the shape {x.shape}; "
            "add an axis with x[:, None]"
        )


def check_square(name: str, x: ShapedArray, kind: str = PARTS) -> None:
    check_dtype(name, x.dtype, kind)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"{name} takes square matrices, an array of shape [..., n, n], got the shape {x.shape}"
        )


def sized(x: ShapedArray, *core: int, dtype: Any = None) -> ShapedArray:
    """The type of a result with the batch axes of the matrices `x` and the axes `core`."""
    return ShapedArray((*x.shape[:-2], *core), x.dtype if dtype is None else dtype, x.weak_type)


# ---- Batches ------------------------------------------------------------------------------------


class OfMatrices(Primitive):
    """A primitive with a batch rule: more axes in front of those of the matrices."""

    # How many axes of each operand are those of one matrix, or vector, or number.
    ranks: tuple[int, ...] = (2,)

    def cut(self, out: Any, *avals: ShapedArray, **params: Any) -> Any:
        given = cuts.in_batches(self.name, avals, self.ranks)
        if self.multiple_results:
            return [cuts.padded(given, aval.ndim) for aval in out]
        return cuts.padded(given, out.ndim)

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        fronted = [to_front(x, at, axis_size) for x, at in zip(operands, axes, strict=True)]
        out = self(*fronted, **params)
        return out, ([0] * len(out) if self.multiple_results else 0)


def beside(x: Any, at: int) -> tuple[Any, int]:
    """A batch of matrices as more columns of one; the second result is how many each has.

    The batch axis `at` goes in front of the columns, so that `apart` undoes it.
    """
    aval = typeof(x)
    order = [i for i in range(aval.ndim) if i != at]
    order.insert(aval.ndim - 2, at)
    x = transpose(x, permutation=tuple(order))
    *rest, size, columns = typeof(x).shape
    return reshape(x, new_sizes=(*rest, size * columns)), columns


def apart(x: Any, columns: int) -> tuple[Any, int]:
    """What `beside` put together, as a batch again, and its axis."""
    *rest, together = typeof(x).shape
    split = reshape(x, new_sizes=(*rest, together // columns, columns))
    return split, typeof(split).ndim - 2


# ---- Products -----------------------------------------------------------------------------------


def matmul(x: Any, y: Any, left: str = "", right: str = "") -> Any:
    """The product of matrices, "T" for the transpose of an operand, "H" for its adjoint."""
    ndim = typeof(x).ndim
    batch = tuple(range(ndim - 2))
    numbers = Dimensions(
        (((ndim - 2 if left else ndim - 1,), (ndim - 1 if right else ndim - 2,)), (batch, batch))
    )
    return dot_general(
        conj(x) if left == "H" else x,
        conj(y) if right == "H" else y,
        dimension_numbers=numbers,
        precision=HIGHEST,
        preferred_element_type=typeof(x).dtype,
    )


def trace_of_product(x: Any, y: Any) -> Any:
    """The trace of the product of two matrices, without the product."""
    ndim = typeof(x).ndim
    batch = tuple(range(ndim - 2))
    numbers = Dimensions((((ndim - 2, ndim - 1), (ndim - 1, ndim - 2)), (batch, batch)))
    return dot_general(
        x, y, dimension_numbers=numbers, precision=HIGHEST, preferred_element_type=typeof(x).dtype
    )


def conj(x: Any) -> Any:
    """The complex conjugate; no operation on real numbers."""
    return ew.conj(x) if is_complex(x) else x


def swapped(x: Any) -> Any:
    """The transposes of matrices."""
    ndim = typeof(x).ndim
    return transpose(x, permutation=(*range(ndim - 2), ndim - 1, ndim - 2))


def adjoint(x: Any) -> Any:
    return conj(swapped(x))


def hermitian_part(x: Any) -> Any:
    return ew.mul(ew.add(x, adjoint(x)), typeof(x).dtype.type(0.5))


def real(x: Any) -> Any:
    return ew.real(x) if is_complex(x) else x


def as_dtype_of(x: Any, y: Any) -> Any:
    """Real numbers `x` as complex ones if `y` is complex."""
    return ew.complex(x, scalar_like(x, 0)) if is_complex(y) and not is_complex(x) else x


def in_columns(v: Any, shape: Sequence[int]) -> Any:
    """The vectors `v` repeated as rows of matrices: element `j` all along column `j`."""
    ndim = len(shape)
    dims = (*range(ndim - 2), ndim - 1)
    return broadcast_in_dim(v, shape=tuple(shape), broadcast_dimensions=dims)


def in_rows(v: Any, shape: Sequence[int]) -> Any:
    """The vectors `v` repeated as columns of matrices: element `i` all along row `i`."""
    return broadcast_in_dim(
        v, shape=tuple(shape), broadcast_dimensions=tuple(range(len(shape) - 1))
    )


def per_matrix(v: Any, shape: Sequence[int]) -> Any:
    """One number for each matrix of the batch, at all of its elements."""
    return broadcast_in_dim(
        v, shape=tuple(shape), broadcast_dimensions=tuple(range(len(shape) - 2))
    )


def columns_of_product(x: Any, y: Any) -> Any:
    """The diagonal of `x^H y`, for matrices of one shape."""
    return reduce_sum(ew.mul(conj(x), y), axes=(typeof(x).ndim - 2,))


def take_rows(x: Any, rows: Any) -> Any:
    """`x[..., rows, :]`, with other rows for each matrix of the batch."""
    aval, places = typeof(x), typeof(rows)
    batch = tuple(range(aval.ndim - 2))
    if not places.size:
        return zeros(aval.update(shape=(*places.shape, aval.shape[-1])))
    return gather(
        x,
        reshape(rows, new_sizes=(*places.shape, 1)),
        dimension_numbers=GatherDimensionNumbers(
            (aval.ndim - 1,), (aval.ndim - 2,), (aval.ndim - 2,), batch, batch
        ),
        slice_sizes=(*[1] * (aval.ndim - 1), aval.shape[-1]),
        unique_indices=True,
        indices_are_sorted=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def resized(x: Any, shape: Any) -> Any:
    """The first rows and columns of matrices, and zeros for those that there are not."""
    aval = typeof(x)
    if aval.shape == tuple(shape):
        return x
    kept = tuple(map(min, aval.shape, shape))
    if kept != aval.shape:
        x = slice_(x, start_indices=(0,) * aval.ndim, limit_indices=kept, strides=None)
    if kept == tuple(shape):
        return x
    missing = tuple([(0, want - have, 0) for want, have in zip(shape, kept, strict=True)])
    return pad(x, aval.dtype.type(0), padding_config=missing)


# ---- Triangles ----------------------------------------------------------------------------------


class Triangles(OfMatrices):
    """A matrix with the elements below or above its diagonal set to zero, and the diagonal changed.

    `below` and `above` say which are kept; `diagonal` is `"keep"`, `"zero"`, `"half"` or `"one"`.
    """

    name = "triangles"

    def type(self, x: ShapedArray, *, below: bool, diagonal: str, above: bool) -> ShapedArray:
        if x.ndim < 2 or x.is_extended:
            raise TypeError(f"triangles takes matrices of numbers, got {x.str_short()}")
        return x

    def lower(self, b: Any, x: Any, *, below: bool, diagonal: str, above: bool) -> Any:
        (out,) = b.out_avals
        places = ShapedArray(out.shape, INT)
        row, column = [
            b.op("stablehlo.iota", attributes={"iota_dimension": types.integer(axis)}, aval=places)
            for axis in (out.ndim - 2, out.ndim - 1)
        ]
        steps: list[tuple[str, int | None]] = []
        if not below:
            steps.append(("GT", 0))
        if not above:
            steps.append(("LT", 0))
        if diagonal != "keep":
            steps.append(("EQ", {"zero": 0, "one": 1, "half": None}[diagonal]))
        for direction, value in steps:
            if value is None:
                there = b.op("stablehlo.multiply", x, b.constant(0.5, out))
            else:
                there = b.constant(value, out)
            mask = b.compare(direction, row, column, places)
            x = b.op("stablehlo.select", mask, there, x)
        return x

    def jvp(self, primals: Any, tangents: Any, *, diagonal: str, **params: Any) -> Any:
        (t,) = tangents
        out = self(*primals, diagonal=diagonal, **params)
        if t is None:
            return out, None
        return out, self(t, diagonal="zero" if diagonal == "one" else diagonal, **params)

    def transpose(self, ct: Any, x: Any, **params: Any) -> Any:
        return [self(ct, **params)]


triangles = Triangles()


def lower_part(x: Any, diagonal: str = "keep") -> Any:
    return triangles(x, below=True, diagonal=diagonal, above=False)


def upper_part(x: Any, diagonal: str = "keep") -> Any:
    return triangles(x, below=False, diagonal=diagonal, above=True)


def with_diagonal(x: Any, diagonal: str) -> Any:
    return triangles(x, below=True, diagonal=diagonal, above=True)


def identity(shape: Sequence[int], dtype: Any) -> Any:
    """Identity matrices: ones where row and column are the same."""
    empty = zeros(ShapedArray(tuple(shape), dtype))
    return triangles(empty, below=False, diagonal="one", above=False)


def diagonal_of(x: Any) -> Any:
    """The diagonals of square matrices."""
    alone = triangles(x, below=False, diagonal="keep", above=False)
    return reduce_sum(alone, axes=(typeof(x).ndim - 2,))


# ---- Lowering -----------------------------------------------------------------------------------


def info_of(x: ShapedArray) -> ShapedArray:
    """The type of LAPACK's reports of success, one for each matrix."""
    return ShapedArray(x.shape[:-2], INT)


def nan_unless(
    b: Any, direction: str, info: Any, batch: ShapedArray, values: Sequence[tuple[Any, ShapedArray]]
) -> list[Any]:
    """The values, NaN where the report `info` does not compare so with zero."""
    fine = b.compare(direction, info, b.constant(0, batch), batch)
    out = []
    for value, aval in values:
        mask = ShapedArray(aval.shape, np.dtype(bool))
        all_fine = b.broadcast(fine, mask, tuple(range(batch.ndim)))
        nan = complex(np.nan, np.nan) if aval.dtype.kind == "c" else np.nan
        bad = b.constant(nan, aval)
        out.append(b.op("stablehlo.select", all_fine, value, bad, aval=aval))
    return out


def empty_results(b: Any) -> list[Any]:
    """Zeros for all results, where the operand has no elements."""
    return [b.constant(0, aval) for aval in b.out_avals]


def part_dtype(x: ShapedArray) -> np.dtype:
    """The dtype of the real numbers that belong to `x`."""
    return np.dtype(real_dtype(x.dtype))


def complex_dtype(x: ShapedArray) -> np.dtype:
    return np.dtype("complex64" if part_dtype(x).itemsize == 4 else "complex128")


def is_complex(x: Any) -> bool:
    return typeof(x).dtype.kind == "c"

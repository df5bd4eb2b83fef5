"""LU factorization with row exchanges, and what is computed with it: solutions and determinants.

LAPACK packs both factors into one matrix: the upper triangle is `u`, the part below the diagonal is
that of `l`, whose diagonal is one. `l @ u = x[permutation]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ew
from perspex.ops.dynamic import dynamic_slice
from perspex.ops.linalg.matrices import (
    INT,
    OfMatrices,
    check_matrix,
    info_of,
    lower_part,
    matmul,
    nan_unless,
    sized,
    take_rows,
    upper_part,
)
from perspex.ops.linalg.solvers import call, call_gpu, call_tpu, is_gpu
from perspex.ops.linalg.triangular import solve_lower, solve_upper
from perspex.ops.lowering import expand
from perspex.ops.shape import iota, pad
from perspex.ops.shape import slice as slice_
from perspex.ops.structural import broadcast_in_dim, reduce_sum, zeros_like
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof


class LU(OfMatrices):
    """Both factors in one matrix, the row exchanged with each row, and the resulting permutation.

    A singular matrix has zeros on the diagonal of `u`.
    """

    name = "lu"
    multiple_results = True

    def type(self, x: ShapedArray) -> tuple[ShapedArray, ...]:
        check_matrix(self.name, x)
        m, n = x.shape[-2:]
        return x, sized(x, min(m, n), dtype=INT), sized(x, m, dtype=INT)

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        *_, m, n = operands[0].shape
        small, batch = min(m, n), operands[0].size // max(1, m * n)
        return batch * (m * n * small - (m + n) * small**2 / 2 + small**3 / 3) * 2

    def lower(self, b: Any, x: Any) -> Any:
        (given,) = b.in_avals
        packed, pivots, permutation = b.out_avals
        if not given.size:
            places = np.broadcast_to(np.arange(given.shape[-2], dtype=INT), permutation.shape)
            return [b.constant(0, packed), b.constant(0, pivots), b.constant(places, permutation)]
        if b.platform == "tpu":
            return call_tpu(b, "LuDecomposition", [x], b.out_avals, version=2)
        info = info_of(given)
        found, exchanged, report = call(
            b,
            self.name,
            ("getrf", "solver_getrf_ffi"),
            [(x, given, 2)],
            [(packed, 2), (pivots, 1), (info, 0)],
            aliases=[(0, 0)],
        )
        (found,) = nan_unless(b, "GE", report, info, [(found, packed)])
        # LAPACK counts from one.
        exchanged = b.op("stablehlo.subtract", exchanged, b.constant(1, pivots), aval=pivots)
        order = _emit_permutation(b, exchanged, pivots, permutation)
        return [found, exchanged, order]

    def jvp(self, primals: Any, tangents: Any) -> Any:
        # de Hoog, Anderssen and Lukas (2011), "Differentiation of matrix functionals using
        # triangular factorization": with g = l^-1 dx u^-1, dl = l tril(g, -1) and du = triu(g) u.
        (x,), (t,) = primals, tangents
        out, pivots, permutation = self(x)
        if t is None:
            return [out, pivots, permutation], [None, None, None]
        m, n = typeof(x).shape[-2:]
        k = min(m, n)
        # Factors that are not square are filled up with columns or rows of the identity.
        l_factor = lower_part(_padded(_part(out, m, k), 0, m - k), "one")
        u_factor = upper_part(_part(out, k, n) if k == n else _filled_below(out, n))
        g = solve_lower(l_factor, take_rows(t, permutation), unit=True)
        g = solve_upper(u_factor, g, left=False)
        lower, upper = lower_part(g, "zero"), upper_part(g)
        du = _padded(matmul(_part(upper, k, n), u_factor), m - k, 0)
        tangent = ew.add(matmul(l_factor, lower), du)
        return [out, pivots, permutation], [tangent, None, None]


def _part(x: Any, rows: int, columns: int) -> Any:
    """The first rows and columns of matrices."""
    shape = typeof(x).shape
    if shape[-2:] == (rows, columns):
        return x
    limits = (*shape[:-2], rows, columns)
    return slice_(x, start_indices=(0,) * len(shape), limit_indices=limits, strides=None)


def _padded(x: Any, rows: int, columns: int) -> Any:
    """Matrices with zeros in more rows and columns."""
    if not rows and not columns:
        return x
    aval = typeof(x)
    config = (*[(0, 0, 0)] * (aval.ndim - 2), (0, rows, 0), (0, columns, 0))
    return pad(x, aval.dtype.type(0), padding_config=config)


def _filled_below(x: Any, n: int) -> Any:
    """The packed matrix with rows of the identity below, for the upper factor."""
    aval = typeof(x)
    missing = n - aval.shape[-2]
    square = _padded(x, missing, 0)
    shape = typeof(square).shape
    rows = iota(dtype=INT, shape=shape, dimension=len(shape) - 2)
    columns = iota(dtype=INT, shape=shape, dimension=len(shape) - 1)
    added = ew.bitwise_and(ew.eq(rows, columns), ew.ge(rows, INT.type(n - missing)))
    one = broadcast_in_dim(aval.dtype.type(1), shape=shape, broadcast_dimensions=())
    return ew.select(added, one, square)


# ---- The permutation of a sequence of exchanges -------------------------------------------------


class LUPivotsToPermutation(OfMatrices):
    """The order of the rows after exchanging row `i` with row `pivots[i]`, for all `i` in turn."""

    name = "lu_pivots_to_permutation"
    ranks = (1,)

    def type(self, pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
        if pivots.dtype != INT:
            raise TypeError(
                f"lu_pivots_to_permutation takes pivots of dtype int32, got {pivots.dtype.name}"
            )
        if pivots.ndim < 1:
            raise ValueError("lu_pivots_to_permutation takes vectors of pivots, got a scalar")
        if permutation_size < pivots.shape[-1]:
            raise ValueError(
                f"lu_pivots_to_permutation: a permutation of {permutation_size} rows cannot come "
                f"from {pivots.shape[-1]} exchanges; there is at most one for each row"
            )
        return pivots.update(shape=(*pivots.shape[:-1], permutation_size))

    def lower(self, b: Any, pivots: Any, *, permutation_size: int) -> Any:
        return _emit_permutation(b, pivots, b.in_avals[0], b.out_avals[0])

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        return self(*primals, **params), None


def _emit_permutation(b: Any, pivots: Any, given: ShapedArray, out: ShapedArray) -> Any:
    """Emit the loop over all exchanges; a step selects, so that a batch goes along.

    GPUs have a kernel for it.
    """
    last = out.ndim - 1
    if not given.size:
        places = np.broadcast_to(np.arange(out.shape[-1], dtype=INT), out.shape)
        return b.constant(places, out)
    if is_gpu(b):
        routine = "_lu_pivots_to_permutation"
        return call_gpu(b, LUPivotsToPermutation.name, routine, [(pivots, given, 1)], [(out, 1)])[0]
    (start,) = expand(b, lambda: iota(dtype=INT, shape=out.shape, dimension=last), avals=())
    counter = ShapedArray((), INT)
    state = [counter, out, given]

    def step(i: Any, order: Any, pivots: Any) -> Any:
        zero = INT.type(0)
        j = dynamic_slice(pivots, *[zero] * last, i, slice_sizes=(*given.shape[:-1], 1))
        at = iota(dtype=INT, shape=out.shape, dimension=last)
        is_j = ew.eq(
            at, broadcast_in_dim(j, shape=out.shape, broadcast_dimensions=tuple(range(out.ndim)))
        )
        is_i = ew.eq(at, i)
        none = zeros_like(order)

        def value_at(mask: Any) -> Any:
            value = reduce_sum(ew.select(mask, order, none), axes=(last,))
            return broadcast_in_dim(value, shape=out.shape, broadcast_dimensions=tuple(range(last)))

        exchanged = ew.select(is_j, value_at(is_i), order)
        return ew.add(i, INT.type(1)), ew.select(is_i, value_at(is_j), exchanged), pivots

    loop = b.ops("stablehlo.while", [b.constant(0, counter), start, pivots], state, regions=2)
    with b.block(loop.regions[0], state) as (inner, (i, _, _)):
        end = inner.constant(given.shape[-1], counter)
        inner.terminate("stablehlo.return", [inner.compare("LT", i, end, counter)])
    with b.block(loop.regions[1], state) as (inner, values):
        inner.terminate("stablehlo.return", expand(inner, step, *values, avals=state))
    return loop.results[1]


lu: Primitive = LU()
lu_pivots_to_permutation: Primitive = LUPivotsToPermutation()

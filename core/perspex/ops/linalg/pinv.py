"""The pseudo-inverse of Moore and Penrose."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ew
from perspex.ops.linalg.eigh import eigh
from perspex.ops.linalg.matrices import (
    OfMatrices,
    adjoint,
    as_dtype_of,
    check_matrix,
    check_square,
    empty_results,
    in_columns,
    matmul,
    part_dtype,
)
from perspex.ops.linalg.svd import svd
from perspex.ops.lowering import expand
from perspex.ops.reductions import reduce_max
from perspex.ops.structural import broadcast_in_dim, full_like
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof


class PseudoInverse(OfMatrices):
    """`v s^-1 u^H`, of the singular values that are more than `rtol` times the largest one.

    `rtol` has one number for each matrix. If `hermitian`, by eigenvalues.
    """

    name = "pinv"
    ranks = (2, 0)

    def type(self, a: ShapedArray, rtol: ShapedArray, *, hermitian: bool) -> ShapedArray:
        check_matrix(self.name, a)
        if hermitian:
            check_square(self.name, a)
        if rtol.shape != a.shape[:-2] or rtol.dtype != part_dtype(a):
            raise TypeError(
                f"pinv takes a tolerance of shape {a.shape[:-2]} and dtype {part_dtype(a).name}, "
                f"got {rtol.str_short()}"
            )
        return a.update(shape=(*a.shape[:-2], a.shape[-1], a.shape[-2]))

    def lower(self, b: Any, a: Any, rtol: Any, *, hermitian: bool) -> Any:
        if not b.in_avals[0].size:
            return empty_results(b)[0]

        def inverted(a: Any, rtol: Any) -> Any:
            if hermitian:
                right, s = eigh(
                    a,
                    algorithm=None,
                    lower=True,
                    sort_eigenvalues=True,
                    subset_by_index=None,
                    symmetrize_input=True,
                )
                left = adjoint(right)
            else:
                s, u, vh = svd(
                    a, full_matrices=False, compute_uv=True, subset_by_index=None, algorithm=None
                )
                right, left = adjoint(vh), adjoint(u)
            shape, size = typeof(s).shape, ew.abs(s)
            limit = ew.mul(reduce_max(size, axes=(len(shape) - 1,)), rtol)
            dims = tuple(range(len(shape) - 1))
            limit = broadcast_in_dim(limit, shape=shape, broadcast_dimensions=dims)
            s = ew.select(ew.gt(size, limit), s, full_like(s, np.inf))
            scale = in_columns(s, typeof(right).shape)
            return matmul(ew.div(right, as_dtype_of(scale, right)), left)

        return expand(b, inverted, a, rtol)[0]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        # Golub and Pereyra (1973), equation 4.12:
        # dp = -p da p + p p^H da^H (1 - a p) + (1 - p a) da^H p^H p, at constant rank.
        (a, rtol), (t, _) = primals, tangents
        p = self(a, rtol, **params)
        if t is None:
            return p, None
        total = ew.neg(matmul(p, matmul(t, p)))
        rows = matmul(p, matmul(p, t, "H", "H"))
        total = ew.add(total, ew.sub(rows, matmul(matmul(rows, a), p)))
        columns = matmul(matmul(t, p, "H", "H"), p)
        total = ew.add(total, ew.sub(columns, matmul(p, matmul(a, columns))))
        return p, total


pseudo_inverse: Primitive = PseudoInverse()

"""Symmetric products of matrices, and Cholesky factors after a vector is added to the matrix."""

from __future__ import annotations

from typing import Any

from perspex.ir.avals import ShapedArray
from perspex.ops.arithmetic import add, lt, mul, neg, select
from perspex.ops.linalg.matrices import (
    check_square,
    diagonal_of,
    in_columns,
    in_rows,
    lower_part,
    matmul,
    swapped,
)
from perspex.ops.linalg.qr import qr
from perspex.ops.linalg.solvers import flag
from perspex.ops.linalg.triangular import triangular_solve
from perspex.ops.lowering import expand
from perspex.ops.shape import concatenate
from perspex.ops.structural import reshape, scalar_like, to_front
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof


class SymmetricProduct(Primitive):
    """`alpha * a @ a^T + beta * c`."""

    name = "symmetric_product"
    makes_nan = True

    def type(self, a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float) -> ShapedArray:
        for x in (a, c):
            if x.dtype.kind != "f" or x.dtype != a.dtype:
                raise TypeError(
                    "symmetric_product takes two matrices of float32 or of float64, got "
                    f"{a.dtype.name} and {c.dtype.name}"
                )
        if a.ndim < 2 or c.shape != (*a.shape[:-1], a.shape[-2]):
            raise TypeError(
                f"symmetric_product takes matrices of shapes (..., n, k) and (..., n, n), got "
                f"{a.shape} and {c.shape}"
            )
        return c.update(weak_type=a.weak_type and c.weak_type)

    def lower(self, b: Any, a: Any, c: Any, *, alpha: float, beta: float) -> Any:
        if b.platform == "cuda" and len(b.in_avals[0].shape) == 2:
            matrix, out = b.in_avals
            number = out.update(shape=())
            scales = [(b.constant(x, number), number, 0) for x in (alpha, beta)]
            operands = [(a, matrix, 0), (c, out, 0), *scales]
            flags = flag("transpose", False)
            return b.ffi_call("cusolver_syrk_ffi", operands, [(out, 0)], flags, [(1, 0)])[0]

        def composed(a: Any, c: Any) -> Any:
            product = mul(matmul(a, a, "", "T"), scalar_like(a, alpha))
            return add(product, mul(c, scalar_like(c, beta)))

        return expand(b, composed, a, c)[0]

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return 2.0 * results[0].size * operands[0].shape[-1]

    def jvp(self, primals: Any, tangents: Any, *, alpha: float, beta: float) -> Any:
        (a, c), (ta, tc) = primals, tangents
        out = self(a, c, alpha=alpha, beta=beta)
        total = None if tc is None else mul(tc, scalar_like(tc, beta))
        if ta is not None:
            half = mul(matmul(ta, a, "", "T"), scalar_like(ta, alpha))
            both = add(half, swapped(half))
            total = both if total is None else add(total, both)
        return out, total

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        moved = [to_front(x, at, axis_size) for x, at in zip(operands, axes, strict=True)]
        return self(*moved, **params), 0


class CholeskyUpdate(Primitive):
    """The upper triangular factor of `r^T r + w w^T`, whose diagonal is not negative."""

    name = "cholesky_update"

    def type(self, r: ShapedArray, w: ShapedArray) -> ShapedArray:
        check_square(self.name, r)
        if r.dtype.kind != "f" or w.dtype != r.dtype:
            raise TypeError(
                "cholesky_update takes a matrix and a vector of float32 or of float64, got "
                f"{r.dtype.name} and {w.dtype.name}"
            )
        if w.shape != r.shape[:-1]:
            raise ValueError(
                f"cholesky_update takes a matrix of shape (n, n) and a vector of shape (n,), got "
                f"{r.shape} and {w.shape}"
            )
        return r

    def lower(self, b: Any, r: Any, w: Any) -> Any:
        if b.platform == "cuda" and len(b.in_avals[0].shape) == 2:
            given = [(x, aval, 0) for x, aval in zip((r, w), b.in_avals, strict=True)]
            results = [(aval, 0) for aval in b.in_avals]
            aliases = [(0, 0), (1, 1)]
            return b.ffi_call("cu_cholesky_update_ffi", given, results, "", aliases)[0]

        def composed(r: Any, w: Any) -> Any:
            shape = typeof(r).shape
            row = reshape(w, new_sizes=(*shape[:-2], 1, shape[-1]))
            both = concatenate(r, row, dimension=len(shape) - 2)
            _, out = qr(both, full_matrices=False, pivoting=False)
            diagonal = diagonal_of(out)
            # Signs of rows are free.
            negative = in_columns(lt(diagonal, scalar_like(diagonal, 0)), shape)
            return select(negative, neg(out), out)

        return expand(b, composed, r, w)[0]

    def jvp(self, primals: Any, tangents: Any) -> Any:
        # That of the Cholesky factor (Murray 2016) of a = r^T r + w w^T.
        (r, w), (tr, tw) = primals, tangents
        out = self(r, w)
        half = None if tr is None else matmul(tr, r, "T")
        if tw is not None:
            shape = typeof(r).shape
            outer = mul(in_columns(tw, shape), in_rows(w, shape))
            half = outer if half is None else add(half, outer)
        if half is None:
            return out, None
        change = add(half, swapped(half))
        flags = {"lower": False, "unit_diagonal": False, "conjugate_a": False}
        left = triangular_solve(out, change, left_side=True, transpose_a=True, **flags)
        both = triangular_solve(out, left, left_side=False, transpose_a=False, **flags)
        return out, matmul(swapped(lower_part(both, "half")), out)

    def batch(self, axis_size: int, operands: Any, axes: Any) -> Any:
        moved = [to_front(x, at, axis_size) for x, at in zip(operands, axes, strict=True)]
        return self(*moved), 0


symmetric_product = SymmetricProduct()
cholesky_update = CholeskyUpdate()

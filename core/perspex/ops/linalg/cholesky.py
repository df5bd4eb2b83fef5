"""The Cholesky factor of a positive definite matrix."""

from __future__ import annotations

from typing import Any, ClassVar

from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ops.linalg.matrices import (
    OfMatrices,
    check_square,
    empty_results,
    hermitian_part,
    info_of,
    lower_part,
    matmul,
    nan_unless,
)
from perspex.ops.linalg.solvers import call, code, flag, is_gpu
from perspex.ops.linalg.triangular import triangular_solve
from perspex.ops.lowering import expand


class Cholesky(OfMatrices):
    """The lower triangular `l` with a positive diagonal and `l @ l^H = x`.

    With `symmetrize_input`, of `(x + x^H) / 2`; else `x` must be Hermitian, and may be read only
    below its diagonal. NaNs where it is not positive definite.
    """

    name = "cholesky"
    quiet: ClassVar[dict[str, Any]] = {"symmetrize_input": ...}

    def type(self, x: ShapedArray, *, symmetrize_input: bool) -> ShapedArray:
        check_square(self.name, x)
        return x

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return operands[0].size * operands[0].shape[-1] / 3  # n^3 / 3 for each matrix

    def lower(self, b: Any, x: Any, *, symmetrize_input: bool) -> Any:
        (given,) = b.in_avals
        if not given.size:
            return empty_results(b)[0]
        if symmetrize_input:
            (x,) = expand(b, hermitian_part, x)
        if b.platform == "cpu" or is_gpu(b):
            info = info_of(given)
            found, report = call(
                b,
                self.name,
                ("potrf", "solver_potrf_ffi"),
                [(x, given, 2)],
                [(given, 2), (info, 0)],
                (f"uplo = {code('L')}", flag("lower", True)),
                [(0, 0)],
            )
            (found,) = nan_unless(b, "EQ", report, info, [(found, given)])
        else:
            found = b.op(
                "stablehlo.cholesky", x, aval=given, attributes={"lower": types.boolean(True)}
            )
        return expand(b, lower_part, found, avals=[given])[0]

    def jvp(self, primals: Any, tangents: Any, *, symmetrize_input: bool) -> Any:
        # Murray (2016), "Differentiation of the Cholesky decomposition": dL = L P(L^-1 dA L^-H),
        # with P the lower triangle and half of the diagonal.
        (x,), (t,) = primals, tangents
        out = self(x, symmetrize_input=symmetrize_input)
        if t is None:
            return out, None
        if symmetrize_input:
            t = hermitian_part(t)
        flags = {"lower": True, "unit_diagonal": False}
        half = triangular_solve(
            out, t, left_side=False, transpose_a=True, conjugate_a=True, **flags
        )
        inner = triangular_solve(
            out, half, left_side=True, transpose_a=False, conjugate_a=False, **flags
        )
        # The product is lower triangular, but for NaN and infinity times zero.
        return out, lower_part(matmul(out, lower_part(inner, "half")))


cholesky = Cholesky()

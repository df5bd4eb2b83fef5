"""The Schur form and the Hessenberg form of square matrices."""

from __future__ import annotations

from typing import Any, ClassVar

from perspex.ir.avals import ShapedArray
from perspex.ops.linalg.matrices import (
    OfMatrices,
    check_square,
    empty_results,
    info_of,
    nan_unless,
    part_dtype,
    sized,
)
from perspex.ops.linalg.solvers import call_lapack, code, needs_cpu


class Schur(OfMatrices):
    """`t`, and unitary `z` if asked for, with `z @ t @ z^H = x`.

    `t` is upper triangular; for a real matrix, a pair of conjugate eigenvalues is a block of two
    rows on the diagonal.
    """

    name = "schur"
    multiple_results = True
    printed: ClassVar[dict[str, Any]] = {"select_callable": None, "sort_eig_vals": False}

    def type(self, x: ShapedArray, *, compute_schur_vectors: bool) -> tuple[ShapedArray, ...]:
        check_square(self.name, x)
        return (x, x) if compute_schur_vectors else (x,)

    def lower(self, b: Any, x: Any, *, compute_schur_vectors: bool) -> Any:
        (given,) = b.in_avals
        if not given.size:
            return empty_results(b)
        needs_cpu(b, self.name)
        info = info_of(given)
        values = sized(given, given.shape[-1])
        part = values.update(dtype=part_dtype(given))
        parts = [values] if given.dtype.kind == "c" else [part, part]
        t, z, *_, report = call_lapack(
            b,
            "gees",
            [(x, given, 2)],
            [(given, 2), (given, 2), *[(a, 1) for a in parts], (info, 0), (info, 0)],
            f"mode = {code('V' if compute_schur_vectors else 'N')}, sort = {code('N')}",
            [(0, 0)],
        )
        outs = [(t, given), (z, given)] if compute_schur_vectors else [(t, given)]
        return nan_unless(b, "EQ", report, info, outs)


class Hessenberg(OfMatrices):
    """A matrix that is zero below the first diagonal below its diagonal, similar to `x`.

    In LAPACK's form: below that, and in the second result, are the reflectors that lead there.
    """

    name = "hessenberg"
    multiple_results = True

    def type(self, x: ShapedArray) -> tuple[ShapedArray, ...]:
        check_square(self.name, x)
        n = x.shape[-1]
        if not n:
            raise ValueError(f"hessenberg takes matrices with elements, got the shape {x.shape}")
        return x, sized(x, n - 1)

    def lower(self, b: Any, x: Any) -> Any:
        (given,) = b.in_avals
        _, taus = b.out_avals
        if not given.size:
            return empty_results(b)
        needs_cpu(b, self.name)
        info = info_of(given)
        n = given.shape[-1]
        found, tau, report = call_lapack(
            b,
            "gehrd",
            [(x, given, 2)],
            [(given, 2), (taus, 1), (info, 0)],
            f"high = {n} : i32, low = 1 : i32",
            [(0, 0)],
        )
        return nan_unless(b, "EQ", report, info, [(found, given), (tau, taus)])


schur = Schur()
hessenberg = Hessenberg()

"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

import enum
from typing import Any, ClassVar

from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ew
from perspex.ops.linalg.matrices import (
    OfMatrices,
    as_dtype_of,
    check_square,
    columns_of_product,
    empty_results,
    hermitian_part,
    in_columns,
    in_rows,
    info_of,
    matmul,
    nan_unless,
    part_dtype,
    real,
    sized,
    with_diagonal,
)
from perspex.ops.linalg.solvers import call, call_tpu, code, flag
from perspex.ops.lowering import expand
from perspex.tracing.trace import typeof


class EighImplementation(enum.Enum):
    """How eigenvalues of Hermitian matrices are computed.

    On CPUs, by `QR`; on GPUs by `QR` or Jacobi's method, as the library decides.

    >>> EighImplementation("qr")
    <EighImplementation.QR: 'qr'>
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


# What each platform has; `None` leaves the choice to it.
_IMPLEMENTATIONS: dict[str, tuple[EighImplementation | None, ...]] = {
    "cpu": (None, EighImplementation.QR),
    "cuda": (None, EighImplementation.QR, EighImplementation.JACOBI),
    "rocm": (None, EighImplementation.QR, EighImplementation.JACOBI),
    "tpu": (None, EighImplementation.JACOBI),
}


class Eigh(OfMatrices):
    """`v` and ascending `w` with `x @ v = v * w` and orthonormal columns of `v`.

    With `symmetrize_input`, of `(x + x^H) / 2`; else `x` must be Hermitian and is read below its
    diagonal if `lower`, else above it.
    """

    name = "eigh"
    multiple_results = True
    quiet: ClassVar[dict[str, Any]] = {"symmetrize_input": ...}

    def type(
        self,
        x: ShapedArray,
        *,
        algorithm: Any,
        lower: bool,
        sort_eigenvalues: bool,
        subset_by_index: tuple[int, int] | None,
        symmetrize_input: bool,
    ) -> tuple[ShapedArray, ...]:
        check_square(self.name, x)
        n = x.shape[-1]
        count = n if subset_by_index is None else subset_by_index[1] - subset_by_index[0]
        return sized(x, n, count), sized(x, count, dtype=part_dtype(x))

    def lower(
        self,
        b: Any,
        x: Any,
        *,
        algorithm: EighImplementation | None,
        lower: bool,
        sort_eigenvalues: bool,
        subset_by_index: Any,
        symmetrize_input: bool,
    ) -> Any:
        (given,) = b.in_avals
        vectors, values = b.out_avals
        if not given.size:
            return empty_results(b)
        if vectors.shape != given.shape:
            raise NotImplementedError(
                "eigh: subset_by_index is not available; select from all eigenvalues"
            )
        if algorithm not in _IMPLEMENTATIONS.get(b.platform, ()):
            raise NotImplementedError(
                f"eigh: {algorithm} is not available on the platform {b.platform!r}; leave "
                "`implementation` out"
            )
        if symmetrize_input:
            (x,) = expand(b, hermitian_part, x)
        if b.platform == "tpu":
            # By Jacobi's method at all sizes; JAX divides those above 256.
            config = f"{int(lower)},{int(sort_eigenvalues)},100,1e-6"
            return call_tpu(b, "Eigh", [x], [vectors, values], config)
        info = info_of(given)
        number = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}[algorithm]
        v, w, report = call(
            b,
            self.name,
            ("heevd" if given.dtype.kind == "c" else "syevd", "solver_syevd_ffi"),
            [(x, given, 2)],
            [(vectors, 2), (values, 1), (info, 0)],
            (
                f"mode = {code('V')}, uplo = {code('L' if lower else 'U')}",
                f"algorithm = {number} : ui8, {flag('lower', lower)}",
            ),
            [(0, 0)],
        )
        return nan_unless(b, "EQ", report, info, [(v, vectors), (w, values)])

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        # Giles (2008): with p = v^H dx v, dw is the diagonal of p and dv = v q, where
        # q[i, j] = p[i, j] / (w[j] - w[i]) off the diagonal. Infinite for equal eigenvalues.
        (x,), (t,) = primals, tangents
        v, w = self(x, **params)
        if t is None:
            return [v, w], [None, None]
        shape = typeof(v).shape
        if shape != typeof(x).shape:
            raise NotImplementedError("eigh has no derivative with subset_by_index")
        if params["symmetrize_input"]:
            t = hermitian_part(t)
        turned = matmul(t, v)
        tw = real(columns_of_product(v, turned))
        gaps = with_diagonal(ew.sub(in_columns(w, shape), in_rows(w, shape)), "one")
        q = with_diagonal(ew.div(matmul(v, turned, "H"), as_dtype_of(gaps, v)), "zero")
        return [v, w], [matmul(v, q), tw]


eigh = Eigh()

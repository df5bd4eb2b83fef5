"""Eigenvalues and eigenvectors of square matrices, which are complex numbers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ew
from perspex.ops.linalg.matrices import (
    OfMatrices,
    adjoint,
    as_dtype_of,
    check_square,
    columns_of_product,
    complex_dtype,
    diagonal_of,
    empty_results,
    in_columns,
    in_rows,
    info_of,
    matmul,
    nan_unless,
    part_dtype,
    sized,
    with_diagonal,
)
from perspex.ops.linalg.solve import solve
from perspex.ops.linalg.solvers import AUTO_MAGMA, call, code, flag
from perspex.ops.reductions import argmax
from perspex.ops.shape import iota
from perspex.ops.structural import broadcast_in_dim, full_like, reduce_sum
from perspex.tracing.trace import typeof

_INT = np.dtype("int32")


class Eig(OfMatrices):
    """Eigenvalues, then if asked for left and right eigenvectors, as columns.

    `vl^H x = w vl^H` and `x vr = vr w`. The vectors have length one, and their largest component
    is real.
    """

    name = "eig"
    multiple_results = True
    printed: ClassVar[dict[str, Any]] = {"implementation": None}

    def type(
        self,
        x: ShapedArray,
        *,
        compute_left_eigenvectors: bool,
        compute_right_eigenvectors: bool,
        enable_eigvec_derivs: bool,
    ) -> tuple[ShapedArray, ...]:
        check_square(self.name, x)
        dtype, n = complex_dtype(x), x.shape[-1]
        count = compute_left_eigenvectors + compute_right_eigenvectors
        return sized(x, n, dtype=dtype), *[sized(x, n, n, dtype=dtype)] * count

    def lower(
        self,
        b: Any,
        x: Any,
        *,
        compute_left_eigenvectors: bool,
        compute_right_eigenvectors: bool,
        enable_eigvec_derivs: bool,
    ) -> Any:
        (given,) = b.in_avals
        if not given.size:
            return empty_results(b)
        values = b.out_avals[0]
        vectors = sized(given, *given.shape[-2:], dtype=values.dtype)
        info = info_of(given)
        wanted = (compute_left_eigenvectors, compute_right_eigenvectors)
        left, right = [code("V" if want else "N") for want in wanted]
        # LAPACK gives the parts of the eigenvalues of a real matrix apart.
        part = values.update(dtype=part_dtype(given))
        parts = [values] if given.dtype.kind == "c" else [part, part]
        on_gpu = "hybrid_eig_comp" if given.dtype.kind == "c" else "hybrid_eig_real"
        *found, vl, vr, report = call(
            b,
            self.name,
            ("geev", on_gpu),
            [(x, given, 2)],
            [*[(a, 1) for a in parts], (vectors, 2), (vectors, 2), (info, 0)],
            (
                f"compute_left = {left}, compute_right = {right}",
                f"{flag('left', wanted[0])}, {AUTO_MAGMA}, {flag('right', wanted[1])}",
            ),
        )
        w = found[0] if len(found) == 1 else b.op("stablehlo.complex", *found, aval=values)
        outs = [(w, values)]
        outs += [(v, vectors) for v, want in zip((vl, vr), wanted, strict=True) if want]
        return nan_unless(b, "EQ", report, info, outs)

    def jvp(
        self,
        primals: Any,
        tangents: Any,
        *,
        compute_left_eigenvectors: bool,
        compute_right_eigenvectors: bool,
        enable_eigvec_derivs: bool,
    ) -> Any:
        (x,), (t,) = primals, tangents
        flags = {"enable_eigvec_derivs": enable_eigvec_derivs}
        wanted = (compute_left_eigenvectors, compute_right_eigenvectors)
        if t is None:
            outs = self(
                x,
                compute_left_eigenvectors=wanted[0],
                compute_right_eigenvectors=wanted[1],
                **flags,
            )
            return outs, [None] * len(outs)
        if any(wanted) and not enable_eigvec_derivs:
            raise NotImplementedError(
                "eig: the derivative of eigenvectors exists only where all eigenvalues differ, "
                "which cannot be checked. Pass enable_eigvec_derivs=True to lax.linalg.eig if "
                "that holds, or differentiate the eigenvalues alone (eigvals)"
            )
        w, *vectors = self(
            x, compute_left_eigenvectors=wanted[0], compute_right_eigenvectors=True, **flags
        )
        v = vectors[-1]
        t = as_dtype_of(t, v)
        # Giles (2008): with p = v^-1 dx v, dw is the diagonal of p.
        p = solve(v, matmul(t, v))
        outs, moved = [w], [diagonal_of(p)]
        if wanted[0]:
            # Left eigenvectors are the right ones of the adjoint.
            vl, t_left = vectors[0], adjoint(t)
            outs.append(vl)
            moved.append(_vector_tangent(vl, ew.conj(w), solve(vl, matmul(t_left, vl))))
        if wanted[1]:
            outs.append(v)
            moved.append(_vector_tangent(v, w, p))
        return outs, moved


def _vector_tangent(v: Any, w: Any, p: Any) -> Any:
    """The tangent of eigenvectors that keep their length and the phase of their largest component.

    `v q` with `q[i, j] = p[i, j] / (w[j] - w[i])` off the diagonal, and such a diagonal.
    """
    shape = typeof(v).shape
    gaps = with_diagonal(ew.sub(in_columns(w, shape), in_rows(w, shape)), "one")
    moved = matmul(v, with_diagonal(ew.div(p, gaps), "zero"))
    size = ew.abs(v)
    axis = len(shape) - 2
    largest = argmax(size, axes=(axis,), index_dtype=_INT)
    places = iota(dtype=_INT, shape=shape, dimension=axis)
    at = broadcast_in_dim(largest, shape=shape, broadcast_dimensions=(*range(axis), len(shape) - 1))
    is_largest = ew.eq(places, at)

    def largest_of(x: Any) -> Any:
        return reduce_sum(ew.select(is_largest, x, full_like(x, 0)), axes=(axis,))

    phase = ew.div(largest_of(ew.imag(moved)), largest_of(ew.real(v)))
    stretch = ew.real(columns_of_product(v, moved))
    fix = in_columns(ew.complex(stretch, phase), shape)
    return ew.sub(moved, ew.mul(v, fix))


eig = Eig()

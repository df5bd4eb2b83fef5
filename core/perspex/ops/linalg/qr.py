"""QR factorization, and products with the reflectors that LAPACK makes it of."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ew
from perspex.ops.linalg.matrices import (
    INT,
    OfMatrices,
    adjoint,
    check_matrix,
    conj,
    empty_results,
    in_rows,
    lower_part,
    matmul,
    resized,
    sized,
    swapped,
    take_rows,
    upper_part,
)
from perspex.ops.linalg.solvers import AUTO_MAGMA, call, call_tpu, flag
from perspex.ops.linalg.triangular import solve_upper
from perspex.ops.lowering import expand
from perspex.ops.structural import is_linear
from perspex.tracing.trace import typeof


class QR(OfMatrices):
    """`q` with orthonormal columns and upper triangular `r` with `q @ r = x`.

    With `pivoting`, `q @ r = x[:, p]` for a permutation `p`, the third result, that makes the
    diagonal of `r` fall off.
    """

    name = "qr"
    multiple_results = True
    printed: ClassVar[dict[str, Any]] = {"use_magma": None}

    def type(
        self, x: ShapedArray, *, full_matrices: bool, pivoting: bool
    ) -> tuple[ShapedArray, ...]:
        check_matrix(self.name, x)
        m, n = x.shape[-2:]
        k = m if full_matrices else min(m, n)
        factors = (sized(x, m, k), sized(x, k, n))
        return (*factors, sized(x, n, dtype=INT)) if pivoting else factors

    def lower(self, b: Any, x: Any, *, full_matrices: bool, pivoting: bool) -> Any:
        (given,) = b.in_avals
        q_aval, r_aval, *order = b.out_avals
        m, n = given.shape[-2:]
        if not given.size:
            places = [np.broadcast_to(np.arange(n, dtype=INT), aval.shape) for aval in order]
            eye = np.broadcast_to(np.eye(m, q_aval.shape[-1]), q_aval.shape)
            return [
                b.constant(eye, q_aval),
                b.constant(0, r_aval),
                *[b.constant(p, aval) for p, aval in zip(places, order, strict=True)],
            ]
        taus = sized(given, min(m, n))
        extra = []
        if pivoting:
            (pivots,) = order
            packed, found, tau = call(
                b,
                self.name,
                ("geqp3", "hybrid_geqp3"),
                [(x, given, 2), (b.constant(0, pivots), pivots, 1)],
                [(given, 2), (pivots, 1), (taus, 1)],
                ("", AUTO_MAGMA),
                [(0, 0), (1, 1)],
            )
            # LAPACK counts from one.
            extra = [b.op("stablehlo.subtract", found, b.constant(1, pivots), aval=pivots)]
        else:
            packed, tau = emit_reflectors(b, self.name, x, given, taus)
        (reflectors,) = expand(b, lambda v: resized(v, q_aval.shape), packed, avals=[given])
        q = emit_householder_product(b, self.name, reflectors, q_aval, tau, taus)
        (r,) = expand(b, lambda v: upper_part(resized(v, r_aval.shape)), packed, avals=[given])
        return [q, r, *extra]

    def jvp(self, primals: Any, tangents: Any, *, full_matrices: bool, pivoting: bool) -> Any:
        # Walter and Lehmann (2018), "Algorithmic differentiation of linear algebra functions with
        # application in optimum experimental design": with c = q^H dx r^-1, the skew matrix
        # w = q^H dq has the part of c below the diagonal. What of q goes beyond the columns of x
        # may turn freely, and is taken not to.
        (x,), (t,) = primals, tangents
        outs = self(x, full_matrices=full_matrices, pivoting=pivoting)
        q, r, *order = outs
        if t is None:
            return outs, [None] * len(outs)
        if pivoting:
            t = swapped(take_rows(swapped(t), order[0]))
        m, n = typeof(x).shape[-2:]
        k, width = min(m, n), typeof(q).shape[-1]
        batch = typeof(x).shape[:-2]
        square = resized(r, (*batch, k, k))
        t_over_r = solve_upper(square, resized(t, (*batch, m, k)), left=False)
        c = matmul(q, t_over_r, "H")
        below = lower_part(c, "half")
        if k < width:
            below = resized(below, (*batch, width, width))
        w = ew.sub(below, adjoint(below))
        if width == m:
            tq = matmul(q, w)
            tr = ew.sub(matmul(q, t, "H"), matmul(w, r))
        else:
            tq = ew.add(matmul(q, ew.sub(w, c)), t_over_r)
            tr = matmul(ew.sub(c, w), r)
        return outs, [tq, upper_part(tr), *[None] * len(order)]


class Reflectors(OfMatrices):
    """A QR factorization as LAPACK packs it: `r` over the vectors of reflectors, and their scales.

    The second result has the scales of the reflectors whose product is `q`.
    """

    name = "geqrf"
    multiple_results = True

    def type(self, x: ShapedArray) -> tuple[ShapedArray, ...]:
        check_matrix(self.name, x)
        return x, sized(x, min(x.shape[-2:]))

    def lower(self, b: Any, x: Any) -> Any:
        packed, taus = b.out_avals
        if not packed.size:
            return empty_results(b)
        return emit_reflectors(b, self.name, x, packed, taus)


# ---- Reflectors ---------------------------------------------------------------------------------


def _real_prefix(x: ShapedArray) -> str:
    """The routines on orthogonal matrices are called those on unitary ones for complex numbers."""
    return "un" if x.dtype.kind == "c" else "or"


def emit_reflectors(b: Any, name: str, x: Any, aval: ShapedArray, taus: ShapedArray) -> list[Any]:
    """Emit the factorization of matrices of type `aval` for the operation `name`."""
    if b.platform == "tpu":
        return call_tpu(b, "Qr", [x], [aval, taus])
    routines = ("geqrf", "solver_geqrf_ffi")
    results = [(aval, 2), (taus, 1)]
    return call(b, name, routines, [(x, aval, 2)], results, aliases=[(0, 0)])


def emit_householder_product(
    b: Any, name: str, reflectors: Any, aval: ShapedArray, tau: Any, taus: ShapedArray
) -> Any:
    """Emit the product of reflectors, of type `aval`, for the operation `name`."""
    if b.platform == "tpu":
        target = "ProductOfElementaryHouseholderReflectors"
        return call_tpu(b, target, [reflectors, tau], [aval])[0]
    routines = (f"{_real_prefix(aval)}gqr", "solver_orgqr_ffi")
    operands = [(reflectors, aval, 2), (tau, taus, 1)]
    return call(b, name, routines, operands, [(aval, 2)], aliases=[(0, 0)])[0]


def _check_taus(name: str, a: ShapedArray, taus: ShapedArray) -> None:
    check_matrix(name, a)
    if taus.dtype != a.dtype:
        raise TypeError(
            f"{name} requires arguments to have equal dtypes, got {a.dtype.name}, "
            f"{taus.dtype.name}; convert one of them"
        )
    m, n = a.shape[-2:]
    if m < n:
        raise ValueError(f"{name} takes matrices with no more columns than rows, got {a.shape}")
    if taus.ndim != a.ndim - 1 or taus.shape[:-1] != a.shape[:-2] or taus.shape[-1] > n:
        raise ValueError(
            f"{name}: a matrix of shape {a.shape} needs taus of shape {(*a.shape[:-2], n)}, or "
            f"fewer of them; got {taus.shape}"
        )


class HouseholderProduct(OfMatrices):
    """The first columns of `h_1 h_2 ...`, with `h_i = 1 - tau_i v_i v_i^H`.

    `v_i` is the part of column `i` of `a` below its diagonal, below a one.
    """

    name = "householder_product"
    ranks = (2, 1)

    def type(self, a: ShapedArray, taus: ShapedArray) -> ShapedArray:
        _check_taus(self.name, a, taus)
        return a.update(weak_type=a.weak_type and taus.weak_type)

    def lower(self, b: Any, a: Any, taus: Any) -> Any:
        given, tau_aval = b.in_avals
        if not given.size:
            return empty_results(b)[0]
        return emit_householder_product(b, self.name, a, given, taus, tau_aval)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        # The product is 1 - v t v^H with t = (1 + d s)^-1 d, where d has the scales on its diagonal
        # and s is v^H v above its own: the compact WY form of Schreiber and Van Loan, SIAM J. Sci.
        # Stat. Comput. 10 (1989).
        (a, taus), (ta, ttaus) = primals, tangents
        out = self(a, taus)
        if ta is None and ttaus is None:
            return out, None
        *batch, m, n = typeof(a).shape
        k = typeof(taus).shape[-1]

        def vectors(x: Any, diagonal: str) -> Any:
            return lower_part(resized(x, (*batch, m, k)), diagonal)

        def scaled(scales: Any, x: Any) -> Any:
            return ew.mul(in_rows(scales, (*batch, k, k)), x)

        def on_diagonal(scales: Any) -> Any:
            return lower_part(upper_part(in_rows(scales, (*batch, k, k))))

        def first_rows(x: Any) -> Any:
            return resized(x, (*batch, n, k))

        v = vectors(a, "one")
        s = upper_part(matmul(v, v, "H"), "zero")
        system = scaled(taus, s)
        t = solve_upper(system, on_diagonal(taus), unit=True)
        changes = []
        if ttaus is not None:
            changes.append(ew.sub(on_diagonal(ttaus), matmul(scaled(ttaus, s), t)))
        if ta is not None:
            tv = vectors(ta, "zero")
            product = matmul(v, tv, "H")
            ts = upper_part(ew.add(product, adjoint(product)), "zero")
            changes.append(ew.neg(matmul(scaled(taus, ts), t)))
        tt = solve_upper(system, functools.reduce(ew.add, changes), unit=True)
        change = matmul(matmul(v, tt), first_rows(v), right="H")
        if ta is not None:
            left = matmul(matmul(tv, t), first_rows(v), right="H")
            right = matmul(matmul(v, t), first_rows(tv), right="H")
            change = ew.add(change, ew.add(left, right))
        return out, ew.neg(change)


class MultiplyByQ(OfMatrices):
    """`q @ c`, `q^H @ c`, `c @ q` or `c @ q^H` for the `q` of which reflectors are given."""

    name = "ormqr"
    ranks = (2, 1, 2)

    def type(
        self, a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool
    ) -> ShapedArray:
        _check_taus(self.name, a, taus)
        check_matrix(self.name, c)
        if c.dtype != a.dtype:
            raise TypeError(
                f"ormqr requires arguments to have equal dtypes, got {a.dtype.name}, "
                f"{c.dtype.name}; convert one of them"
            )
        side = -2 if left else -1
        if c.shape[:-2] != a.shape[:-2] or c.shape[side] != a.shape[-2]:
            raise ValueError(
                f"ormqr: reflectors of shape {a.shape} do not multiply matrices of shape {c.shape} "
                f"from the {'left' if left else 'right'}"
            )
        return c.update(weak_type=a.weak_type and taus.weak_type and c.weak_type)

    def lower(self, b: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
        given, tau_aval, out = b.in_avals
        if not out.size:
            return empty_results(b)[0]
        if not tau_aval.size:
            return c
        flags = f"{flag('left', left)}, {flag('transpose', transpose)}"
        return call(
            b,
            self.name,
            (f"{_real_prefix(given)}mqr", "solver_ormqr_ffi"),
            [(a, given, 2), (taus, tau_aval, 1), (c, out, 2)],
            [(out, 2)],
            (flags, flags),
            [(2, 0)],
        )[0]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        a, taus, c = primals
        ta, ttaus, tc = tangents
        if ta is not None or ttaus is not None:
            raise NotImplementedError(
                "ormqr has no derivative with respect to the reflectors; differentiate through qr"
            )
        return self(a, taus, c, **params), None if tc is None else self(a, taus, tc, **params)

    def transpose(self, ct: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
        assert is_linear(c), "ormqr is linear in the matrix that is multiplied"
        # q^T is the conjugate of q^H.
        back = self(a, taus, conj(ct), left=left, transpose=not transpose)
        return [None, None, conj(back)]


qr = QR()
geqrf = Reflectors()
householder_product = HouseholderProduct()
ormqr = MultiplyByQ()

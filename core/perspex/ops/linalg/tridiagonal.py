"""Matrices that are zero beside the three diagonals in the middle."""

from __future__ import annotations

from typing import Any

from perspex.hlo import lapack
from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ew
from perspex.ops.families import PARTS, check_dtype, same_dtype
from perspex.ops.linalg.matrices import (
    OfMatrices,
    apart,
    beside,
    check_square,
    empty_results,
    in_rows,
    info_of,
    nan_unless,
    part_dtype,
    sized,
)
from perspex.ops.linalg.solvers import (
    call,
    call_gpu,
    call_lapack,
    code,
    flag,
    is_gpu,
    needs_cpu,
    refused,
)
from perspex.ops.shape import pad
from perspex.ops.structural import is_linear
from perspex.tracing.trace import typeof


class Tridiagonal(OfMatrices):
    """A Hermitian matrix as `q @ t @ q^H` with a real tridiagonal `t`.

    Returns the reflectors that make up `q` together with `t`, the diagonal of `t`, the one beside
    it, and the scales of the reflectors, all in LAPACK's form.
    """

    name = "tridiagonal"
    multiple_results = True

    def type(self, x: ShapedArray, *, lower: bool) -> tuple[ShapedArray, ...]:
        check_square(self.name, x)
        n, part = x.shape[-1], part_dtype(x)
        if not n:
            raise ValueError(f"tridiagonal takes matrices with elements, got the shape {x.shape}")
        return x, sized(x, n, dtype=part), sized(x, n - 1, dtype=part), sized(x, n - 1)

    def lower(self, b: Any, x: Any, *, lower: bool) -> Any:
        (given,) = b.in_avals
        if not given.size:
            return empty_results(b)
        info = info_of(given)
        avals = b.out_avals
        *found, report = call(
            b,
            self.name,
            ("hetrd" if given.dtype.kind == "c" else "sytrd", "solver_sytrd_ffi"),
            [(x, given, 2)],
            [*[(aval, core) for aval, core in zip(avals, (2, 1, 1, 1), strict=True)], (info, 0)],
            (f"uplo = {code('L' if lower else 'U')}", flag("lower", lower)),
            [(0, 0)],
        )
        return nan_unless(b, "EQ", report, info, list(zip(found, avals, strict=True)))


# cuSPARSE's and hipSPARSE's limit.
_SMALLEST_ON_GPU = 3


class TridiagonalSolve(OfMatrices):
    """The `x` with `dl[i] x[i - 1] + d[i] x[i] + du[i] x[i + 1] = b[i]` for all rows `i`.

    `dl[0]` and `du[-1]` are not looked at. With `perturb_singular`, pivots that are zero are made
    small numbers.
    """

    name = "tridiagonal_solve"
    ranks = (1, 1, 1, 2)

    def type(
        self,
        dl: ShapedArray,
        d: ShapedArray,
        du: ShapedArray,
        b: ShapedArray,
        *,
        perturb_singular: bool,
    ) -> ShapedArray:
        dtype = same_dtype(self.name, (dl, d, du, b))
        check_dtype(self.name, dtype, PARTS)
        if b.ndim < 2:
            raise TypeError(
                f"tridiagonal_solve takes right-hand sides of at least two axes, got {b.shape}; "
                "add one with b[:, None]"
            )
        if not dl.shape == d.shape == du.shape == b.shape[:-1]:
            raise ValueError(
                "tridiagonal_solve: the diagonals must have the shape of the right-hand side "
                f"without its last axis; got {dl.shape}, {d.shape}, {du.shape} for {b.shape}"
            )
        return b.update(weak_type=all([a.weak_type for a in (dl, d, du, b)]))

    def lower(self, b: Any, dl: Any, d: Any, du: Any, rhs: Any, *, perturb_singular: bool) -> Any:
        (out,) = b.out_avals
        if not out.size:
            return empty_results(b)[0]
        diagonal = b.in_avals[0]
        operands = [(v, diagonal, 1) for v in (dl, d, du)] + [(rhs, out, 2)]
        if is_gpu(b):
            if perturb_singular:
                routine = "_tridiagonal_solve_perturbed"
                return call_gpu(b, self.name, routine, operands, [(out, 2)])[0]
            if diagonal.shape[-1] < _SMALLEST_ON_GPU:
                raise refused(b, f"{self.name} with fewer than {_SMALLEST_ON_GPU} unknowns")
            routine = "sparse_gtsv2_ffi"
            return call_gpu(b, self.name, routine, operands, [(out, 2)], aliases=[(3, 0)])[0]
        needs_cpu(b, self.name)
        if perturb_singular:
            target = lapack.plain_target("tridiagonal_solve_perturbed_ffi")
            return b.ffi_call(target, operands, [(out, 2)])[0]
        info = info_of(out)
        results = [(diagonal, 1)] * 3 + [(out, 2), (info, 0)]
        same = [(i, i) for i in range(4)]
        *_, found, report = call_lapack(b, "gtsv", operands, results, aliases=same)
        return nan_unless(b, "EQ", report, info, [(found, out)])[0]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        *diagonals, b = primals
        *moved, tb = tangents
        out = self(*diagonals, b, **params)
        rhs = tb
        for t, by in zip(moved, (1, 0, -1), strict=True):
            if t is not None:
                term = ew.mul(in_rows(t, typeof(out).shape), _shifted(out, by, 2))
                rhs = ew.neg(term) if rhs is None else ew.sub(rhs, term)
        return out, None if rhs is None else self(*diagonals, rhs, **params)

    def transpose(self, ct: Any, dl: Any, d: Any, du: Any, b: Any, **params: Any) -> Any:
        assert is_linear(b), "tridiagonal_solve is linear in its right-hand side"
        flipped = self(_shifted(du, 1, 1), d, _shifted(dl, -1, 1), ct, **params)
        return [None, None, None, flipped]

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        if all(at is None for at in axes[:-1]):
            rhs, columns = beside(operands[-1], axes[-1])
            return apart(self(*operands[:-1], rhs, **params), columns)
        return super().batch(axis_size, operands, axes, **params)


def _shifted(x: Any, by: int, core: int) -> Any:
    """Rows moved down by `by`, the last axis or the last but one; zeros move in."""
    if not by:
        return x
    aval = typeof(x)
    config = [(0, 0, 0)] * aval.ndim
    config[-core] = (by, -by, 0)
    return pad(x, aval.dtype.type(0), padding_config=tuple(config))


tridiagonal = Tridiagonal()
tridiagonal_solve = TridiagonalSolve()

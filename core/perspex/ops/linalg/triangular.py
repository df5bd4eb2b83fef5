"""Systems of equations with a triangular matrix."""

from __future__ import annotations

from typing import Any

from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ew
from perspex.ops.families import INEXACT
from perspex.ops.linalg.matrices import (
    OfMatrices,
    apart,
    beside,
    check_square,
    conj,
    empty_results,
    matmul,
    triangles,
)
from perspex.ops.linalg.solvers import call_lapack, code
from perspex.ops.lowering import expand
from perspex.ops.structural import is_linear
from perspex.tracing import cuts


class TriangularSolve(OfMatrices):
    """The `x` with `op(a) @ x = b`, or with `x @ op(a) = b` unless `left_side`.

    `a` is read below its diagonal if `lower`, else above it, and its diagonal is taken for ones if
    `unit_diagonal`. `op` transposes, conjugates, or both.
    """

    name = "triangular_solve"

    def type(
        self,
        a: ShapedArray,
        b: ShapedArray,
        *,
        left_side: bool,
        lower: bool,
        transpose_a: bool,
        conjugate_a: bool,
        unit_diagonal: bool,
    ) -> ShapedArray:
        check_square(self.name, a, INEXACT)
        check_solvable(self.name, a, b, -2 if left_side else -1)
        return b.update(weak_type=a.weak_type and b.weak_type)

    def cut(self, out: Any, *avals: ShapedArray, **params: Any) -> cuts.Parts:
        a, b = avals
        # The columns of `b` are solved for one by one, or its rows.
        solved = b.ndim - (2 if params["left_side"] else 1)
        cuts.uncut(self.name, "the right-hand side", b, (solved,))
        outer = cuts.without_axis(cuts.without_axis(b, b.ndim - 1), b.ndim - 2)
        batch = cuts.in_batches(self.name, (a, outer), (2, 0))
        return (*batch, *cuts.parts(b)[-2:])

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        a, b = operands
        return float(b.size * a.shape[-1])  # n^2 for each column of b

    def lower(
        self,
        b: Any,
        a: Any,
        rhs: Any,
        *,
        left_side: bool,
        lower: bool,
        transpose_a: bool,
        conjugate_a: bool,
        unit_diagonal: bool,
    ) -> Any:
        matrix, given = b.in_avals
        (out,) = b.out_avals
        if not given.size:
            return empty_results(b)[0]
        if conjugate_a and not transpose_a:
            (a,) = expand(b, conj, a, avals=[matrix])
            conjugate_a = False
        narrow = given.dtype.itemsize < 4  # LAPACK has no such numbers
        if narrow or b.platform != "cpu":
            kind = "ADJOINT" if conjugate_a else "TRANSPOSE" if transpose_a else "NO_TRANSPOSE"
            return b.op(
                "stablehlo.triangular_solve",
                a,
                rhs,
                aval=out,
                attributes={
                    "left_side": types.boolean(left_side),
                    "lower": types.boolean(lower),
                    "unit_diagonal": types.boolean(unit_diagonal),
                    "transpose_a": types.attribute(f"#stablehlo<transpose {kind}>"),
                },
            )
        letters = {
            "diag": "U" if unit_diagonal else "N",
            "side": "L" if left_side else "R",
            "trans_x": "C" if conjugate_a else "T" if transpose_a else "N",
            "uplo": "L" if lower else "U",
        }
        attributes = ", ".join([f"{key} = {code(letter)}" for key, letter in letters.items()])
        operands = [(a, matrix, 2), (rhs, given, 2)]
        return call_lapack(b, "trsm", operands, [(out, 2)], attributes, [(1, 0)])[0]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        # a x = b gives a dx = db - da x: Giles (2008), "Collected matrix derivative results".
        (a, b), (ta, tb) = primals, tangents
        out = self(a, b, **params)
        if ta is None:
            return out, None if tb is None else self(a, tb, **params)
        lower, diagonal = params["lower"], "zero" if params["unit_diagonal"] else "keep"
        ta = triangles(ta, below=lower, diagonal=diagonal, above=not lower)
        if params["conjugate_a"]:
            ta = conj(ta)
        flip = "T" if params["transpose_a"] else ""
        moved = matmul(ta, out, flip) if params["left_side"] else matmul(out, ta, "", flip)
        return out, self(a, ew.neg(moved) if tb is None else ew.sub(tb, moved), **params)

    def transpose(self, ct: Any, a: Any, b: Any, *, transpose_a: bool, **params: Any) -> Any:
        assert is_linear(b), "triangular_solve is linear in its right-hand side"
        return [None, self(a, ct, transpose_a=not transpose_a, **params)]

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        if axes[0] is None and params["left_side"]:
            rhs, columns = beside(operands[1], axes[1])
            return apart(self(operands[0], rhs, **params), columns)
        return super().batch(axis_size, operands, axes, **params)


def check_solvable(name: str, a: ShapedArray, b: ShapedArray, axis: int) -> None:
    """The right-hand side has the dtype, the batch and the size of the matrix."""
    if a.dtype != b.dtype:
        raise TypeError(
            f"{name} requires arguments to have equal dtypes, got {a.dtype.name}, {b.dtype.name}; "
            "convert one of them"
        )
    if a.ndim != b.ndim:
        raise TypeError(
            f"{name}: matrix and right-hand side must have the same number of axes, got the shapes "
            f"{a.shape} and {b.shape}; broadcast one of them"
        )
    if a.shape[:-2] != b.shape[:-2]:
        raise TypeError(
            f"{name}: the batch axes must be equal, got the shapes {a.shape} and {b.shape}; "
            "broadcast one of them"
        )
    if a.shape[-1] != b.shape[axis]:
        raise ValueError(
            f"{name}: a matrix of shape {a.shape} does not fit a right-hand side of shape {b.shape}"
        )


triangular_solve = TriangularSolve()


def solve_lower(a: Any, b: Any, unit: bool = False, left: bool = True, flip: bool = False) -> Any:
    """`a^-1 b` (or `b a^-1`) for the lower triangle of `a`, transposed if `flip`."""
    return _solve(a, b, True, unit, left, flip)


def solve_upper(a: Any, b: Any, unit: bool = False, left: bool = True, flip: bool = False) -> Any:
    """`a^-1 b` (or `b a^-1`) for the upper triangle of `a`, transposed if `flip`."""
    return _solve(a, b, False, unit, left, flip)


def _solve(a: Any, b: Any, lower: bool, unit: bool, left: bool, flip: bool) -> Any:
    return triangular_solve(
        a, b, left_side=left, lower=lower, transpose_a=flip, conjugate_a=False, unit_diagonal=unit
    )

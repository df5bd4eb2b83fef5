"""Solutions of linear equations by a factorization of the matrix that is known already.

The operands are the matrix, what was factored out of it, and the right-hand side. The derivative
is that of `a x = b` with respect to `a` and `b` and does not look into the factors: pass those of
`stop_gradient(a)`. So a gradient costs one more solution and a product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ew
from perspex.ops.linalg.cholesky import cholesky
from perspex.ops.linalg.lu import lu
from perspex.ops.linalg.matrices import (
    INT,
    OfMatrices,
    adjoint,
    apart,
    beside,
    check_square,
    conj,
    diagonal_of,
    empty_results,
    identity,
    in_rows,
    is_complex,
    matmul,
    per_matrix,
    take_rows,
    trace_of_product,
)
from perspex.ops.linalg.triangular import check_solvable, solve_lower, solve_upper, triangular_solve
from perspex.ops.lowering import expand
from perspex.ops.reductions import reduce_prod
from perspex.ops.shape import concatenate, iota, part
from perspex.ops.sorting import sort
from perspex.ops.structural import (
    convert,
    full_like,
    is_linear,
    reduce_sum,
    reshape,
    scalar_like,
    squeeze,
)
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof


class FactoredSolve(OfMatrices):
    """What both ways of solving share; the last operand is the right-hand side."""

    def check(self, a: ShapedArray, factor: ShapedArray, b: ShapedArray) -> ShapedArray:
        check_square(self.name, a)
        check_solvable(self.name, a, b, -2)
        if factor.shape != a.shape or factor.dtype != a.dtype:
            raise TypeError(
                f"{self.name}: the factors are of type {factor.str_short()} and the matrix is of "
                f"type {a.str_short()}; factor this matrix"
            )
        return b.update(weak_type=a.weak_type and b.weak_type)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        a, *factors, b = primals
        ta, tb = tangents[0], tangents[-1]
        out = self(a, *factors, b, **params)
        if ta is None:
            return out, None if tb is None else self(a, *factors, tb, **params)
        moved = matmul(ta, out, "T" if params.get("transpose_a") else "")
        rhs = ew.neg(moved) if tb is None else ew.sub(tb, moved)
        return out, self(a, *factors, rhs, **params)

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        if all(at is None for at in axes[:-1]):
            rhs, columns = beside(operands[-1], axes[-1])
            return apart(self(*operands[:-1], rhs, **params), columns)
        return super().batch(axis_size, operands, axes, **params)


class LUSolve(FactoredSolve):
    """The `x` with `a @ x = b`, or `a^T @ x = b`, given what `lu(a)` returns."""

    name = "lu_solve"
    ranks = (2, 2, 1, 2)

    def type(
        self,
        a: ShapedArray,
        factors: ShapedArray,
        permutation: ShapedArray,
        b: ShapedArray,
        *,
        transpose_a: bool,
    ) -> ShapedArray:
        if permutation.dtype != INT or permutation.shape != a.shape[:-1]:
            raise TypeError(
                f"lu_solve takes a permutation of type i32{list(a.shape[:-1])}, got "
                f"{permutation.str_short()}; it is the third result of lu"
            )
        return self.check(a, factors, b)

    def lower(
        self, b: Any, a: Any, factors: Any, permutation: Any, rhs: Any, *, transpose_a: bool
    ) -> Any:
        if not b.out_avals[0].size:
            return empty_results(b)[0]

        def solved(a: Any, factors: Any, permutation: Any, rhs: Any) -> Any:
            if transpose_a:
                x = solve_lower(factors, solve_upper(factors, rhs, flip=True), True, flip=True)
                return take_rows(x, inverse_permutation(permutation))
            return solve_upper(factors, solve_lower(factors, take_rows(rhs, permutation), True))

        return expand(b, solved, a, factors, permutation, rhs)[0]

    def transpose(
        self, ct: Any, a: Any, factors: Any, permutation: Any, b: Any, *, transpose_a: bool
    ) -> Any:
        assert is_linear(b), "lu_solve is linear in its right-hand side"
        flipped = self(a, factors, permutation, ct, transpose_a=not transpose_a)
        return [None, None, None, flipped]


class CholeskySolve(FactoredSolve):
    """The `x` with `a @ x = b` for a positive definite `a`, given `cholesky(a)`."""

    name = "cholesky_solve"
    ranks = (2, 2, 2)

    def type(self, a: ShapedArray, factor: ShapedArray, b: ShapedArray) -> ShapedArray:
        return self.check(a, factor, b)

    def lower(self, b: Any, a: Any, factor: Any, rhs: Any) -> Any:
        def solved(a: Any, factor: Any, rhs: Any) -> Any:
            half = solve_lower(factor, rhs)
            return triangular_solve(
                factor,
                half,
                left_side=True,
                lower=True,
                transpose_a=True,
                conjugate_a=is_complex(factor),
                unit_diagonal=False,
            )

        return expand(b, solved, a, factor, rhs)[0]

    def transpose(self, ct: Any, a: Any, factor: Any, b: Any) -> Any:
        assert is_linear(b), "cholesky_solve is linear in its right-hand side"
        # a^T is the conjugate of a.
        return [None, None, conj(self(a, factor, conj(ct)))]


def inverse_permutation(permutation: Any) -> Any:
    """The permutations that undo `permutation`, along the last axis."""
    aval = typeof(permutation)
    axis = aval.ndim - 1
    places = iota(dtype=INT, shape=aval.shape, dimension=axis)
    return sort(permutation, places, dimension=axis, is_stable=False, num_keys=1)[1]


lu_solve = LUSolve()
cholesky_solve = CholeskySolve()


def solve(a: Any, b: Any, *, transpose_a: bool = False) -> Any:
    """The `x` with `a @ x = b`, for matrices `b`."""
    factors, _, permutation = lu(ew.stop_gradient(a))
    return lu_solve(a, factors, permutation, b, transpose_a=transpose_a)


def solve_positive(a: Any, b: Any, *, lower: bool) -> Any:
    """Solve `a @ x = b` for a positive definite `a`, whose values are read from one triangle."""
    read = ew.stop_gradient(a if lower else adjoint(a))
    return cholesky_solve(a, cholesky(read, symmetrize_input=False), b)


def inverse(a: Any) -> Any:
    aval = typeof(a)
    return solve(a, identity(aval.shape, aval.dtype))


# ---- Determinants -------------------------------------------------------------------------------


def _parity_of(pivots: Any) -> Any:
    """Whether the number of rows that are exchanged with another one is odd: 0 or 1."""
    aval = typeof(pivots)
    places = iota(dtype=INT, shape=aval.shape, dimension=aval.ndim - 1)
    moved = convert(ew.ne(pivots, places), INT)
    return ew.rem(reduce_sum(moved, axes=(aval.ndim - 1,)), INT.type(2))


def _signed(x: Any, pivots: Any) -> Any:
    """`x`, negated for an odd permutation."""
    return ew.select(ew.eq(_parity_of(pivots), INT.type(0)), x, ew.neg(x))


class LogDeterminant(OfMatrices):
    """The sign, or phase, of the determinant, and the logarithm of its absolute value."""

    name = "slogdet"
    multiple_results = True

    def type(self, a: ShapedArray) -> tuple[ShapedArray, ...]:
        check_square(self.name, a)
        sign = a.update(shape=a.shape[:-2])
        return sign, sign.update(dtype=np.dtype(_part_name(a)))

    def lower(self, b: Any, a: Any) -> Any:
        def found(a: Any) -> Any:
            packed, pivots, _ = lu(a)
            diagonal = diagonal_of(packed)
            last = (typeof(diagonal).ndim - 1,)
            signs = ew.sign(diagonal)
            if not is_complex(a) and typeof(a).shape[-1] > 2:
                # As in NumPy and JAX, NaN has a sign. (JAX takes two rows or fewer otherwise.)
                signs = ew.select(ew.eq(signs, signs), signs, scalar_like(signs, 1))
            sign = _signed(reduce_prod(signs, axes=last), pivots)
            size = reduce_sum(ew.log(ew.abs(diagonal)), axes=last)
            is_zero = ew.eq(sign, scalar_like(sign, 0))
            return [sign, ew.select(is_zero, scalar_like(size, -np.inf), size)]

        return expand(b, found, a)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        # d log det a = tr(a^-1 da): Giles (2008).
        (a,), (t,) = primals, tangents
        sign, size = self(a)
        if t is None:
            return [sign, size], [None, None]
        slope = trace_of_product(inverse(a), t)
        if not is_complex(a):
            return [sign, size], [None, slope]
        turn = ew.complex(scalar_like(size, 0), ew.imag(slope))
        return [sign, size], [ew.mul(sign, turn), ew.real(slope)]


def _part_name(a: ShapedArray) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(a.dtype.name, a.dtype.name)


class Determinant(OfMatrices):
    """The determinant."""

    name = "det"

    def type(self, a: ShapedArray) -> ShapedArray:
        check_square(self.name, a)
        return a.update(shape=a.shape[:-2])

    def lower(self, b: Any, a: Any) -> Any:
        return expand(b, _determinant, a)[0]

    def jvp(self, primals: Any, tangents: Any) -> Any:
        # Jacobi's formula: d det a = tr(adj(a) da), at singular matrices too.
        (a,), (t,) = primals, tangents
        if t is None:
            return self(a), None
        value, adjugate = determinant_and_adjugate(a)
        return value, trace_of_product(adjugate, t)


class DeterminantAndAdjugate(OfMatrices):
    """The determinant, and the matrix that is `det(a)` times the inverse where there is one.

    The adjugate is right for singular matrices with at most one zero among the pivots; with more of
    them it is given as zero, as it is for all matrices of rank `n - 2` or less.
    """

    name = "adjugate"
    multiple_results = True

    def type(self, a: ShapedArray) -> tuple[ShapedArray, ...]:
        check_square(self.name, a)
        return a.update(shape=a.shape[:-2]), a

    def lower(self, b: Any, a: Any) -> Any:
        n = b.in_avals[0].shape[-1]
        rules: dict[int, Callable[[Any], Sequence[Any]]] = {
            1: lambda a: [_determinant(a), full_like(a, 1)],
            2: lambda a: [_determinant(a), _minus_swap(a)],
            3: lambda a: [_determinant(a), _adjugate_of_three(a)],
        }
        return expand(b, rules.get(n, _adjugate_by_lu), a)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        (a,), (t,) = primals, tangents
        value, adjugate = self(a)
        if t is None:
            return [value, adjugate], [None, None]
        aval = typeof(a)
        n, slope = aval.shape[-1], trace_of_product(adjugate, t)
        if n < 2:
            return [value, adjugate], [slope, None]
        if n == 2:
            return [value, adjugate], [slope, _minus_swap(t)]
        if n == 3:
            # By Cayley and Hamilton, adj(a) = a^2 - tr(a) a + (tr(a)^2 - tr(a^2)) / 2.
            eye = identity(aval.shape, aval.dtype)
            trace_a, trace_t = _trace(a), _trace(t)
            scale = ew.sub(ew.mul(trace_a, trace_t), trace_of_product(a, t))
            moved = ew.add(matmul(a, t), matmul(t, a))
            moved = ew.sub(moved, ew.mul(per_matrix(trace_t, aval.shape), a))
            moved = ew.sub(moved, ew.mul(per_matrix(trace_a, aval.shape), t))
            moved = ew.add(moved, ew.mul(per_matrix(scale, aval.shape), eye))
            return [value, adjugate], [slope, moved]
        # adj(a) = det(a) a^-1, where the determinant is not zero.
        product = matmul(adjugate, matmul(t, adjugate))
        moved = ew.sub(ew.mul(per_matrix(slope, aval.shape), adjugate), product)
        return [value, adjugate], [slope, ew.div(moved, per_matrix(value, aval.shape))]


def _trace(a: Any) -> Any:
    return reduce_sum(diagonal_of(a), axes=(typeof(a).ndim - 2,))


def _minus_swap(a: Any) -> Any:
    """tr(a) - a: the adjugate of matrices of two rows."""
    shape, dtype = typeof(a).shape, typeof(a).dtype
    trace = per_matrix(_trace(a), shape)
    return ew.sub(ew.mul(trace, identity(shape, dtype)), a)


def _entries(a: Any) -> list[list[Any]]:
    """The elements of small matrices, one array for each place."""
    shape = typeof(a).shape
    axes = (len(shape) - 2, len(shape) - 1)
    rows = []
    for i in range(shape[-2]):
        row = part(a, i, i + 1, axes[0], shape)
        row_shape = typeof(row).shape
        rows.append(
            [
                squeeze(part(row, j, j + 1, axes[1], row_shape), dimensions=axes)
                for j in range(shape[-1])
            ]
        )
    return rows


def _minor(m: list[list[Any]], i: int, j: int, k: int, n: int) -> Any:
    """The determinant of the rows `i, j` and the columns `k, n`."""
    return ew.sub(ew.mul(m[i][k], m[j][n]), ew.mul(m[i][n], m[j][k]))


def _determinant(a: Any) -> Any:
    n = typeof(a).shape[-1]
    if n == 1:
        return _entries(a)[0][0]
    if n == 2:
        return _minor(_entries(a), 0, 1, 0, 1)
    if n == 3:
        m = _entries(a)
        terms = [ew.mul(m[0][k], _minor(m, 1, 2, (k + 1) % 3, (k + 2) % 3)) for k in range(3)]
        return ew.add(ew.add(terms[0], terms[1]), terms[2])
    packed, pivots, _ = lu(a)
    diagonal = diagonal_of(packed)
    return _signed(reduce_prod(diagonal, axes=(typeof(diagonal).ndim - 1,)), pivots)


def _adjugate_of_three(a: Any) -> Any:
    m = _entries(a)
    # Element (i, j) is the cofactor (j, i); going round keeps the sign.
    cofactors = [
        _minor(m, (j + 1) % 3, (j + 2) % 3, (i + 1) % 3, (i + 2) % 3)
        for i in range(3)
        for j in range(3)
    ]
    shape = typeof(a).shape
    columns = [reshape(c, new_sizes=(*shape[:-2], 1)) for c in cofactors]
    return reshape(concatenate(*columns, dimension=len(shape) - 2), new_sizes=shape)


def _adjugate_by_lu(a: Any) -> list[Any]:
    """adj(a) = +-adj(u) adj(l) p.

    With `v` for `u` with ones for the zeros among its pivots, adj(u) = det(v) v^-1 if there is
    none, and det(v) (v^-1 e_k) (e_k^T v^-1) if it is the pivot `k` alone.
    """
    aval = typeof(a)
    packed, pivots, permutation = lu(a)
    diagonal = diagonal_of(packed)
    last = (typeof(diagonal).ndim - 1,)
    is_zero = ew.eq(diagonal, scalar_like(diagonal, 0))
    zeros = convert(is_zero, aval.dtype)
    count = reduce_sum(zeros, axes=last)
    # The diagonal of u plus that of the zeros.
    eye = identity(aval.shape, aval.dtype)
    filled = ew.add(packed, ew.mul(eye, in_rows(zeros, aval.shape)))
    value = _signed(reduce_prod(ew.add(diagonal, zeros), axes=last), pivots)
    regular = solve_upper(filled, solve_lower(packed, take_rows(eye, permutation), unit=True))
    single = solve_upper(filled, ew.mul(in_rows(zeros, aval.shape), regular))

    def where_count(n: int, x: Any, other: Any) -> Any:
        hit = ew.eq(count, scalar_like(count, n))
        return ew.select(per_matrix(hit, aval.shape), x, other)

    chosen = where_count(0, regular, where_count(1, single, full_like(a, 0)))
    adjugate = ew.mul(per_matrix(value, aval.shape), chosen)
    determinant = _signed(reduce_prod(diagonal, axes=last), pivots)
    return [determinant, adjugate]


slogdet: Primitive = LogDeterminant()
determinant: Primitive = Determinant()
determinant_and_adjugate: Primitive = DeterminantAndAdjugate()

"""Solutions of linear equations, and factorizations to reuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from perspex import numpy as pnp
from perspex.arguments.arrays import as_array
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.lax.control import fori_loop
from perspex.numpy.linalg.equations import solved
from perspex.numpy.promotion import inexact, strong
from perspex.ops import linalg as ops
from perspex.ops.linalg import solve as ops_solve
from perspex.ops.linalg.matrices import adjoint, identity, lower_part, matmul, take_rows, upper_part
from perspex.ops.linalg.solve import inverse_permutation
from perspex.ops.linalg.triangular import solve_lower, solve_upper
from perspex.scipy.linalg.decompositions import complex_schur
from perspex.scipy.linalg.operands import WORDS, check_right_side, check_square, promoted

__all__ = [
    "cho_factor", "cho_solve", "cholesky", "det", "inv", "lu", "lu_factor", "lu_solve", "solve",
    "solve_sylvester", "solve_triangular",
]  # fmt: skip


def _with_columns(name: str, a: Any, b: Any, solve: Callable[[Any, Any], Any]) -> Any:
    """`solve(a, b)` for batches that broadcast; a `b` with one axis less than `a` has vectors."""
    is_vector = b.ndim == 1 or b.ndim == a.ndim - 1
    check_right_side(name, a, b, is_vector)
    if is_vector:
        return solved(a, b[..., None], solve)[..., 0]
    return solved(a, b, solve)


# ---- General matrices ---------------------------------------------------------------------------


def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """LU factorization for `lu_solve`.

    Args:
      a: matrices of shape `(..., m, n)`.

    Returns:
      Both factors in one array of the shape of `a`, and int32 indices: which row each one was
      exchanged with.

    Raises:
      TypeError: if `a` is not an array or a number, or has fewer than two axes.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> lu, pivots = linalg.lu_factor(jnp.array([[1.0, 2.0], [2.0, 2.0]]))
    >>> pivots
    Array([1, 1], dtype=int32)
    """
    packed, pivots, _ = ops.lu(inexact("lu_factor", a))
    return packed, pivots


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solution `x` of `a @ x = b`, given `lu_factor(a)`.

    Args:
      lu_and_piv: what `lu_factor` returns for a square matrix.
      b: right-hand sides of shape `(..., n, k)`, or vectors `(..., n)`.
      trans: 1 for the transpose of `a`, 2 for its adjoint.

    Returns:
      An array of the shape of `b`, with the batch axes broadcast.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: for shapes that do not fit, and another `trans`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> factors = linalg.lu_factor(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> linalg.lu_solve(factors, jnp.array([2.0, 4.0]))
    Array([1., 1.], dtype=float32)
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    return _lu_solve(*lu_and_piv, b, trans=int(trans))


@fused(static=("trans",))
def _lu_solve(lu: Any, pivots: Any, b: Any, trans: int) -> Any:
    lu, b = promoted("lu_solve", lu, b)
    check_square("lu_solve", lu)
    order = ops.lu_pivots_to_permutation(pivots, permutation_size=lu.shape[-1])
    triangular = {"left_side": True}

    def solve(factors: Any, rhs: Any) -> Any:
        places = pnp.broadcast_to(order, factors.shape[:-1])
        if trans == 0:
            half = solve_lower(factors, take_rows(rhs, places), unit=True)
            return solve_upper(factors, half)
        flags = triangular | {"transpose_a": True, "conjugate_a": trans == 2 and _complex(lu)}
        half = ops.triangular_solve(factors, rhs, lower=False, unit_diagonal=False, **flags)
        out = ops.triangular_solve(factors, half, lower=True, unit_diagonal=True, **flags)
        return take_rows(out, inverse_permutation(places))

    return _with_columns("lu_solve", lu, b, solve)


def _complex(x: Any) -> bool:
    return x.dtype.kind == "c"


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """LU factorization: `p @ l @ u = a` with a permutation matrix `p` and triangular `l`, `u`.

    Args:
      a: matrices of shape `(..., m, n)`.
      permute_l: return `p @ l` and `u`.

    Returns:
      `(p, l, u)`, or `(p @ l, u)`; `l` has ones on its diagonal.

    Raises:
      TypeError: if `a` is not an array or a number, or has fewer than two axes.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> p, l, u = linalg.lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))
    >>> l
    Array([[1. , 0. ],
           [0.5, 1. ]], dtype=float32)
    """
    return _lu(a, permute_l=bool(permute_l))


@fused(static=("permute_l",))
def _lu(a: Any, permute_l: bool) -> Any:
    a = as_array(inexact("lu", a))
    packed, _, order = ops.lu(a)
    m, n = a.shape[-2:]
    k = min(m, n)
    left = strong(lower_part(packed[..., :k], "one"))
    right = upper_part(packed[..., :k, :])
    back = inverse_permutation(order)
    if permute_l:
        return take_rows(left, back), right
    eye = identity((*a.shape[:-2], m, m), pnp.real(a[..., :0, :0]).dtype)
    return take_rows(eye, back), left, right


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solution `x` of `a @ x = b`.

    Args:
      b: right-hand sides of shape `(n,)`, or `(..., n, k)`; the batch axes broadcast.
      lower: for a positive definite `a`, read the lower triangle.
      assume_a: `"gen"`, `"sym"`, `"her"`, or `"pos"` for positive definite matrices, which are
        factored by Cholesky's method.

    Returns:
      An array of the shape of `b`, with the batch axes broadcast.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: for shapes that do not fit, and another `assume_a`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.solve(jnp.array([[4.0, 0.0], [0.0, 1.0]]), jnp.array([4.0, 1.0]), assume_a="pos")
    Array([1., 1.], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(
            f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got {assume_a!r}"
        )
    if assume_a != "pos":
        return pnp.linalg.solve(a, b)
    return _solve_positive(a, b, lower=bool(lower))


@fused(static=("lower",))
def _solve_positive(a: Any, b: Any, lower: bool) -> Any:
    a, b = promoted("solve", a, b)
    check_right_side("solve", a, b, b.ndim == 1)
    return solved(a, b, partial(ops_solve.solve_positive, lower=lower))


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: bool | None = None,
    check_finite: bool = True,
) -> Array:
    """Solution `x` of `a @ x = b`, for one triangle of `a`.

    Args:
      b: right-hand sides of shape `(..., n, k)`, or vectors `(..., n)`.
      trans: 1 or `"T"` for the transpose of `a`, 2 or `"C"` for its adjoint.
      lower: use the lower triangle.
      unit_diagonal: take the diagonal of `a` for ones.

    Returns:
      An array of the shape of `b`, with the batch axes broadcast.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: for shapes that do not fit, and another `trans`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> a = jnp.array([[2.0, 9.0], [1.0, 1.0]])
    >>> linalg.solve_triangular(a, jnp.array([4.0, 3.0]), lower=True)
    Array([2., 1.], dtype=float32)
    """
    kinds: dict[Any, str] = {0: "N", "N": "N", 1: "T", "T": "T", 2: "C", "C": "C"}
    if trans not in kinds:
        raise ValueError(f"Invalid 'trans' value {trans!r}: it must be 0, 1, 2, 'N', 'T' or 'C'")
    return _solve_triangular(
        a, b, trans=kinds[trans], lower=bool(lower), unit_diagonal=bool(unit_diagonal)
    )


@fused(static=("trans", "lower", "unit_diagonal"))
def _solve_triangular(a: Any, b: Any, trans: str, lower: bool, unit_diagonal: bool) -> Any:
    a, b = promoted("solve_triangular", a, b)

    def solve(a: Any, b: Any) -> Any:
        return ops.triangular_solve(
            a,
            b,
            left_side=True,
            lower=lower,
            transpose_a=trans != "N",
            conjugate_a=trans == "C" and _complex(a),
            unit_diagonal=unit_diagonal,
        )

    return _with_columns("solve_triangular", a, b, solve)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Inverse of square matrices.

    Returns:
      An array of the shape of `a`, of floating or complex dtype.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for matrices that are not square.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return pnp.linalg.inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Determinant of square matrices.

    Returns:
      An array of shape `(...)`, of floating or complex dtype.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for matrices that are not square.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    return pnp.linalg.det(a)


# ---- Positive definite matrices -----------------------------------------------------------------


@fused(static=("lower",))
def _cholesky(a: Any, lower: bool) -> Any:
    a = as_array(inexact("cholesky", a))
    check_square("cholesky", a)
    if lower:
        return ops.cholesky(a, symmetrize_input=False)
    return adjoint(ops.cholesky(adjoint(a), symmetrize_input=False))


def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Triangular factor of a positive definite matrix: `u^H @ u = a`, or `l @ l^H = a`.

    Args:
      a: matrices of shape `(..., n, n)`; one triangle is read, that of the result.
      lower: return `l`.

    Returns:
      An array of the shape of `a`; NaN where a matrix is not positive definite.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for fewer than two axes, and matrices that are not square.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    return _cholesky(a, lower=bool(lower))


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Factor of a positive definite matrix for `cho_solve`, and which triangle it is.

    Args:
      a: matrices of shape `(..., n, n)`; one triangle is read.
      lower: whether that is the lower one.

    Returns:
      `(c, lower)`: an array of the shape of `a`, and a bool.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for fewer than two axes, and matrices that are not square.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> c, lower = linalg.cho_factor(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> lower
    False
    """
    return cholesky(a, lower=lower), lower


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solution `x` of `a @ x = b`, given `cho_factor(a)`.

    Args:
      c_and_lower: what `cho_factor` returns.
      b: right-hand sides of shape `(..., n, k)`, or vectors `(..., n)`.

    Returns:
      An array of the shape of `b`, with the batch axes broadcast.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: for shapes that do not fit.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> factor = linalg.cho_factor(jnp.array([[4.0, 0.0], [0.0, 1.0]]))
    >>> linalg.cho_solve(factor, jnp.array([4.0, 1.0]))
    Array([1., 1.], dtype=float32)
    """
    c, lower = c_and_lower
    return _cho_solve(c, b, lower=bool(lower))


@fused(static=("lower",))
def _cho_solve(c: Any, b: Any, lower: bool) -> Any:
    c, b = promoted("cho_solve", c, b)

    def solve(c: Any, b: Any) -> Any:
        for adjointed in (not lower, lower):
            b = ops.triangular_solve(
                c,
                b,
                left_side=True,
                lower=lower,
                transpose_a=adjointed,
                conjugate_a=adjointed and _complex(c),
                unit_diagonal=False,
            )
        return b

    return _with_columns("cho_solve", c, b, solve)


# ---- Sylvester's equation -----------------------------------------------------------------------


def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """Solution `x` of Sylvester's equation `a @ x + x @ b = c`.

    Args:
      A: a matrix of shape `(m, m)`.
      B: a matrix of shape `(n, n)`.
      C: a matrix of shape `(m, n)`.
      method: `"schur"`, or `"eigen"` for matrices that can be diagonalized.
      tol: sums of an eigenvalue of `a` and one of `b` with a smaller modulus count as zero.

    Returns:
      A matrix of shape `(m, n)`, of the dtype of the operands; NaN without a unique solution.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: for shapes that do not fit, and another `method`.

    References:
      R. H. Bartels and G. W. Stewart, "Solution of the matrix equation AX + XB = C" (1972).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.solve_sylvester(jnp.eye(2), 3 * jnp.eye(2), jnp.array([[4.0, 8.0], [0.0, 4.0]]))
    Array([[1., 2.],
           [0., 1.]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise ValueError(
            f'Unrecognized method {method}. The two valid methods are either "schur" or "eigen".'
        )
    a, b, c = promoted("solve_sylvester", A, B, C)
    fits = a.ndim == b.ndim == c.ndim == 2 and c.shape == (a.shape[0], b.shape[0])
    if not fits or a.shape[0] != a.shape[1] or b.shape[0] != b.shape[1]:
        raise ValueError(
            f"Incompatible shapes for Sylvester equation: A: {a.shape} B: {b.shape} C: {c.shape}; "
            "they must be (m, m), (n, n) and (m, n)"
        )
    return _sylvester(a, b, c, tol, method=method)


@fused(static=("method",))
def _sylvester(a: Any, b: Any, c: Any, tol: Any, method: str) -> Any:
    wide = np.result_type(a.dtype, np.complex64)
    if method == "eigen":
        (va, u), (vb, v) = pnp.linalg.eig(a), pnp.linalg.eig(b)
        sums = va[:, None] + vb[None, :]
        inner = pnp.linalg.solve(u, matmul(c.astype(wide), v)) / sums
        x = matmul(u, matmul(inner, pnp.linalg.inv(v)))
    else:
        (t, u), (s, v) = complex_schur(a), complex_schur(b)
        sums = pnp.diag(t)[:, None] + pnp.diag(s)[None, :]
        f = matmul(u, matmul(c.astype(wide), v), "H")
        eye = identity(t.shape, wide)

        def column(j: Any, y: Any) -> Any:
            # The columns of y from j on are still zero, so all of s may take part.
            rhs = f[:, j] - y @ s[:, j]
            found = solve_upper(t + s[j, j] * eye, rhs[:, None])
            return y.at[:, j].set(found[:, 0])

        y = fori_loop(0, b.shape[0], column, pnp.zeros_like(f))
        x = matmul(u, matmul(y, v, "", "H"))
    x = pnp.where(pnp.any(pnp.abs(sums) < tol), pnp.nan, x)
    return x if _complex(a) else pnp.real(x)


describe(
    (lu_factor, lu_solve, lu, solve, solve_triangular, inv, det, cholesky, cho_factor, cho_solve),
    WORDS,
)

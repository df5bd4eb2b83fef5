"""Linear algebra: factorizations of matrices, and equations with triangular and banded ones.

All functions take matrices as the last two axes of an array of float32, float64, complex64 or
complex128; the axes before them are a batch. Integers become floats. What has no factorization
gives NaN, for the matrices of the batch that it concerns. `perspex.numpy.linalg` and
`perspex.scipy.linalg` are built on these.

On the CPU these are calls of LAPACK, as SciPy has it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex.arguments.arrays import aval_of, inexact_operands
from perspex.arguments.types import Array, ArrayLike
from perspex.lax.polar import qdwh as qdwh
from perspex.lax.triangular import triangular_solve as triangular_solve
from perspex.lax.triangular import tridiagonal_solve as tridiagonal_solve
from perspex.ops import elementwise as ew
from perspex.ops import linalg as ops
from perspex.ops.linalg import EighImplementation as EighImplementation
from perspex.ops.linalg import SvdAlgorithm as SvdAlgorithm
from perspex.ops.linalg import cholesky as cholesky_p
from perspex.ops.linalg import cholesky_update as cholesky_update_p
from perspex.ops.linalg import eig as eig_p
from perspex.ops.linalg import eigh as eigh_p
from perspex.ops.linalg import hessenberg as hessenberg_p
from perspex.ops.linalg import householder_product as householder_product_p
from perspex.ops.linalg import lu as lu_p
from perspex.ops.linalg import lu_pivots_to_permutation as lu_pivots_to_permutation_p
from perspex.ops.linalg import ormqr as ormqr_p
from perspex.ops.linalg import qr as qr_p
from perspex.ops.linalg import schur as schur_p
from perspex.ops.linalg import svd as svd_p
from perspex.ops.linalg import symmetric_product as symmetric_product_p
from perspex.ops.linalg import triangular_solve as triangular_solve_p
from perspex.ops.linalg import tridiagonal as tridiagonal_p
from perspex.ops.linalg import tridiagonal_solve as tridiagonal_solve_p
from perspex.ops.linalg.matrices import swapped, triangles

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p",
    "cholesky_update", "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p",
    "hessenberg", "hessenberg_p",
    "householder_product", "householder_product_p", "lu", "lu_p", "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p", "ormqr", "ormqr_p", "qdwh", "qr", "qr_p", "schur", "schur_p",
    "svd", "svd_p", "symmetric_product", "symmetric_product_p",
    "triangular_solve", "triangular_solve_p", "tridiagonal",
    "tridiagonal_p", "tridiagonal_solve", "tridiagonal_solve_p",
]  # fmt: skip


class EigImplementation(enum.Enum):
    """Where eigenvalues of general matrices are computed; on the CPU, by LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular factor `l` of positive definite matrices, with `l @ l^H = x`.

    Args:
      x: Hermitian matrices, shape `(..., n, n)`.
      symmetrize_input: factor `(x + x^H) / 2`; else only the part below the diagonal is read, and
        derivatives are right for changes of `x` that are Hermitian.

    Returns:
      An array of the type of `x`, zero above the diagonal; NaN if `x` is not positive definite.

    Raises:
      ValueError: for matrices that are not square.
      TypeError: for another dtype.

    References:
      Murray, "Differentiation of the Cholesky decomposition" (2016),
        https://arxiv.org/abs/1602.07527

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return ops.cholesky(*inexact_operands("cholesky", x), symmetrize_input=symmetrize_input)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular factor of `r^T r + w w^T`, from `r` and `w`.

    Args:
      r_matrix: an upper triangular matrix, shape `(n, n)`, float32 or float64.
      w_vector: shape `(n,)`.

    Returns:
      An upper triangular matrix of shape `(n, n)` whose diagonal is not negative.

    Raises:
      ValueError: for other shapes.
      TypeError: for complex numbers.

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> linalg.cholesky_update(np.array([[3.0]]), np.array([4.0]))
    Array([[5.]], dtype=float32)
    """
    r, w = inexact_operands("cholesky_update", r_matrix, w_vector)
    if np.ndim(w) != 1:
        raise ValueError(
            f"cholesky_update takes a matrix of shape (n, n) and a vector of shape (n,), got "
            f"{np.shape(r)} and {np.shape(w)}"
        )
    return ops.cholesky_update(r, w)


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """`alpha * a @ a^T + beta * c`, for real matrices.

    Args:
      a_matrix: shape `(..., n, k)`.
      c_matrix: shape `(..., n, n)`, symmetric.
      alpha, beta: numbers, the factors of the product and of `c_matrix`.
      symmetrize_output: make the result symmetric to the last digit.

    Returns:
      An array of shape `(..., n, n)`.

    Raises:
      TypeError: for complex numbers, or where the shapes do not fit.

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> linalg.symmetric_product(np.array([[1.0], [2.0]]), np.zeros((2, 2)))
    Array([[1., 2.],
           [2., 4.]], dtype=float32)
    """
    a, c = inexact_operands("symmetric_product", a_matrix, c_matrix)
    out: Array = ops.symmetric_product(a, c, alpha=float(alpha), beta=float(beta))
    if not symmetrize_output:
        return out
    strict = triangles(out, below=True, diagonal="zero", above=False)
    kept = triangles(out, below=True, diagonal="keep", above=False)
    return ew.add(kept, swapped(strict))


def lu(x: ArrayLike) -> list[Array]:
    """LU factorization with row exchanges: `l @ u = x[permutation]`.

    Args:
      x: matrices of shape `(..., m, n)`.

    Returns:
      A list of both factors in one matrix (`u` is the upper triangle, `l` the part below, with ones
      for its diagonal); the row that each row was exchanged with, int32 of shape
      `(..., min(m, n))`; and the permutation of the rows, int32 of shape `(..., m)`.

    Raises:
      TypeError: for fewer than two axes, or another dtype.

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> packed, pivots, permutation = linalg.lu(np.array([[1.0, 2.0], [2.0, 2.0]]))
    >>> packed, permutation
    (Array([[2. , 2. ],
           [0.5, 1. ]], dtype=float32), Array([1, 0], dtype=int32))
    """
    return ops.lu(*inexact_operands("lu", x))


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that results from exchanging each row `i` in turn with row `pivots[i]`.

    Args:
      pivots: int32, shape `(..., k)`.
      permutation_size: the number of rows, at least `k`.

    Returns:
      An int32 array of shape `(..., permutation_size)`.

    Raises:
      TypeError: for pivots of another dtype than int32.
      ValueError: if there are more exchanges than rows.

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> linalg.lu_pivots_to_permutation(np.array([2, 2, 2], np.int32), 3)
    Array([2, 0, 1], dtype=int32)
    """
    return ops.lu_pivots_to_permutation(pivots, permutation_size=permutation_size)


def qr(
    x: ArrayLike,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, ...]:
    """QR factorization: `q` with orthonormal columns and upper triangular `r`, with `q @ r = x`.

    Args:
      x: matrices of shape `(..., m, n)`.
      pivoting: `q @ r = x[..., p]` for a permutation `p` of the columns that makes the diagonal of
        `r` fall off. `p`, int32 of shape `(..., n)`, is the third result.
      full_matrices: a square `q`; else `q` has `min(m, n)` columns.
      use_magma: has no effect on the CPU.

    Returns:
      A tuple of `q`, `r` and, with `pivoting`, `p`. They have a derivative where the first `min(m,
      n)` columns of `x` are independent.

    Raises:
      TypeError: for fewer than two axes, or another dtype.

    References:
      Walter and Lehmann (2018), doi:10.1080/10556788.2017.1327186

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> q, r = linalg.qr(np.array([[3.0], [4.0]]), full_matrices=False)
    >>> q @ r
    Array([[3.],
           [4.]], dtype=float32)
    """
    (x,) = inexact_operands("qr", x)
    return tuple(ops.qr(x, full_matrices=full_matrices, pivoting=pivoting))


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first columns of a product of reflectors: how LAPACK writes orthogonal matrices.

    Args:
      a: shape `(..., m, n)`, `m >= n`. What is below the diagonal of column `i` is vector `i`,
        after a one.
      taus: shape `(..., k)`, `k <= n`: their scales.

    Returns:
      An array of shape `(..., m, n)` with orthonormal columns.

    Raises:
      ValueError: for more columns than rows, or more `taus` than columns.
      TypeError: for another dtype.

    References:
      LAPACK's `orgqr`

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> linalg.householder_product(np.array([[0.0], [1.0]]), np.array([1.0]))
    Array([[ 0.],
           [-1.]], dtype=float32)
    """
    return ops.householder_product(*inexact_operands("householder_product", a, taus))


def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """The product of `c` and the orthogonal matrix that reflectors stand for, without making it.

    Args:
      a, taus: reflectors as for `householder_product`.
      c: matrices with the same batch axes.
      left: `q @ c`, else `c @ q`.
      transpose: the adjoint of `q` instead.

    Returns:
      An array of the shape and dtype of `c`.

    Raises:
      ValueError: for shapes that do not fit.
      TypeError: for another dtype.

    References:
      LAPACK's `ormqr`

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> linalg.ormqr(np.array([[0.0], [1.0]]), np.array([1.0]), np.array([[1.0], [2.0]]))
    Array([[-2.],
           [-1.]], dtype=float32)
    """
    a, taus, c = inexact_operands("ormqr", a, taus, c)
    return ops.ormqr(a, taus, c, left=left, transpose=transpose)


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Eigenvectors and ascending eigenvalues of Hermitian matrices: `x @ v = v * w`.

    Args:
      x: shape `(..., n, n)`.
      lower: read the triangle below the diagonal, where `symmetrize_input` is false.
      symmetrize_input: take `(x + x^H) / 2`.
      sort_eigenvalues: has no effect on the CPU, where they come sorted.
      subset_by_index: a range of eigenvalues; on the CPU it must be all of them.
      implementation: see `EighImplementation`; `None` leaves it to the platform.

    Returns:
      `v` of the type of `x`, and real `w` of shape `(..., n)`. The derivative is infinite or NaN
      for eigenvectors of equal eigenvalues.

    Raises:
      ValueError: for matrices that are not square.
      NotImplementedError: for what the platform does not have.

    References:
      Giles, "Collected matrix derivative results" (2008), doi:10.1007/978-3-540-68942-3_4

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> v, w = linalg.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> w
    Array([1., 3.], dtype=float32)
    """
    (x,) = inexact_operands("eigh", x)
    n = aval_of("eigh", x).shape[-1:]
    v, w = ops.eigh(
        x,
        algorithm=implementation,
        lower=lower,
        sort_eigenvalues=sort_eigenvalues,
        subset_by_index=_subset("eigh", subset_by_index, *n),
        symmetrize_input=symmetrize_input,
    )
    return v, w


def _subset(name: str, subset: Any, n: int = 0) -> tuple[int, int] | None:
    """A range of eigenvalues, `None` for all."""
    if subset is None:
        return None
    low, high = (int(i) for i in subset)
    if not 0 <= low < high <= n:
        raise ValueError(
            f"{name}: subset_by_index must be a range within (0, {n}), got {tuple(subset)}"
        )
    return None if (low, high) == (0, n) else (low, high)


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Singular values, and the vectors that go with them: `u * s @ vh = x`.

    Args:
      x: shape `(..., m, n)`.
      full_matrices: square `u` and `vh`; else `min(m, n)` columns and rows.
      compute_uv: return `(u, s, vh)`, else `s`.
      subset_by_index: a range of singular values; on the CPU it must be all of them.
      algorithm: see `SvdAlgorithm`.

    Returns:
      `u` and `vh` of the dtype of `x`, and real, descending `s` of shape `(..., min(m, n))`. The
      derivative of the vectors is infinite or NaN where singular values are equal.

    Raises:
      ValueError: for `full_matrices` together with `subset_by_index`.
      NotImplementedError: for what the platform does not have, and for the derivative of
        `full_matrices=True` at matrices that are not square.

    References:
      Giles, "Collected matrix derivative results" (2008), doi:10.1007/978-3-540-68942-3_4
      Townsend, "Differentiating the singular value decomposition" (2016)

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> linalg.svd(np.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    (x,) = inexact_operands("svd", x)
    if subset_by_index is not None and compute_uv and full_matrices:
        raise ValueError("svd: full_matrices and subset_by_index exclude each other")
    smallest = min(aval_of("svd", x).shape[-2:], default=0)
    s, *vectors = ops.svd(
        x,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        subset_by_index=_subset("svd", subset_by_index, smallest),
        algorithm=algorithm,
    )
    return (vectors[0], s, vectors[1]) if vectors else s


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Eigenvalues of square matrices, and eigenvectors as columns: `x @ vr = vr * w`.

    Args:
      x: shape `(..., n, n)`.
      compute_left_eigenvectors: `vl` with `vl^H @ x = w[:, None] * vl^H`.
      compute_right_eigenvectors: `vr`.
      enable_eigvec_derivs: let eigenvectors be differentiated. That is right only where all
        eigenvalues differ, which is not checked.
      implementation: on the CPU, `None` or `LAPACK`.
      use_magma: has no effect on the CPU.

    Returns:
      A list of `w`, complex of shape `(..., n)`, then `vl` and `vr` if asked for. Eigenvectors have
      length one and a largest component that is real.

    Raises:
      ValueError: for matrices that are not square.
      NotImplementedError: for derivatives of eigenvectors that are not enabled.

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> w, vl, vr = linalg.eig(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> w
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    (x,) = inexact_operands("eig", x)
    if implementation not in (None, EigImplementation.LAPACK):
        raise NotImplementedError(
            f"eig: {implementation} is not available on the CPU; leave `implementation` out"
        )
    return ops.eig(
        x,
        compute_left_eigenvectors=compute_left_eigenvectors,
        compute_right_eigenvectors=compute_right_eigenvectors,
        enable_eigvec_derivs=enable_eigvec_derivs,
    )


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> list[Array]:
    """The Schur form: `t`, and unitary `z`, with `z @ t @ z^H = x`.

    Args:
      x: shape `(..., n, n)`.
      compute_schur_vectors: return `z` too.
      sort_eig_vals, select_callable: not available.

    Returns:
      A list of `t`, upper triangular but for blocks of two rows that stand for the complex
      eigenvalues of a real matrix, and `z`. They have no derivative.

    Raises:
      ValueError: for matrices that are not square.
      NotImplementedError: for `sort_eig_vals` or `select_callable`.

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> t, z = linalg.schur(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError(
            "schur: eigenvalues cannot be sorted by LAPACK's routine here; "
            "leave sort_eig_vals and select_callable out"
        )
    (x,) = inexact_operands("schur", x)
    return ops.schur(x, compute_schur_vectors=compute_schur_vectors)


def hessenberg(a: ArrayLike) -> list[Array]:
    """The Hessenberg form of matrices, as LAPACK packs it.

    Args:
      a: shape `(..., n, n)`.

    Returns:
      A list of matrices with the Hessenberg form on and above the first diagonal below the
      diagonal and the vectors of reflectors below it, and the scales of these, of shape
      `(..., n - 1)`. `perspex.scipy.linalg.hessenberg` unpacks them.

    Raises:
      ValueError: for matrices that are not square.

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> linalg.hessenberg(np.eye(3, dtype="float32"))[1].shape
    (2,)
    """
    return ops.hessenberg(*inexact_operands("hessenberg", a))


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """Hermitian matrices made tridiagonal by a unitary change of basis, as LAPACK packs them.

    Args:
      a: shape `(..., n, n)`.
      lower: read (and write) the triangle below the diagonal, else that above.

    Returns:
      A list: the tridiagonal matrix with the vectors of reflectors; its diagonal, real of shape
      `(..., n)`; that beside it, real of shape `(..., n - 1)`; the scales of the reflectors.

    Raises:
      ValueError: for matrices that are not square.

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> _, d, e, _ = linalg.tridiagonal(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> d
    Array([2., 2.], dtype=float32)
    """
    return ops.tridiagonal(*inexact_operands("tridiagonal", a), lower=lower)

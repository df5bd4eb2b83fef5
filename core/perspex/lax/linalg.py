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

from perspex import dtypes
from perspex.lax.arrays import ArrayLike, aval_of
from perspex.lax.polar import qdwh as qdwh
from perspex.ops import elementwise as ew
from perspex.ops import linalg as ops
from perspex.ops.linalg import SvdAlgorithm as SvdAlgorithm
from perspex.ops.linalg import cholesky as cholesky_p
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
from perspex.ops.linalg import triangular_solve as triangular_solve_p
from perspex.ops.linalg import tridiagonal as tridiagonal_p
from perspex.ops.linalg import tridiagonal_solve as tridiagonal_solve_p
from perspex.ops.linalg.matrices import matmul, swapped, triangles
from perspex.ops.shape import concatenate
from perspex.ops.structural import convert, reshape, scalar_like
from perspex.runtime.array import Array

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_p",
    "cholesky_update",
    "eig",
    "eig_p",
    "eigh",
    "eigh_p",
    "hessenberg",
    "hessenberg_p",
    "householder_product",
    "householder_product_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "ormqr",
    "ormqr_p",
    "qdwh",
    "qr",
    "qr_p",
    "schur",
    "schur_p",
    "svd",
    "svd_p",
    "symmetric_product",
    "triangular_solve",
    "triangular_solve_p",
    "tridiagonal",
    "tridiagonal_p",
    "tridiagonal_solve",
    "tridiagonal_solve_p",
]


class EigImplementation(enum.Enum):
    """Where eigenvalues of general matrices are computed; on the CPU, by LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """How eigenvalues of Hermitian matrices are computed; on the CPU, by LAPACK, which is `QR`."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


def _operands(name: str, *xs: Any) -> list[Any]:
    """Operands as inexact numbers."""
    out = []
    for x in xs:
        aval = aval_of(name, x)
        if not aval.is_extended and not dtypes.issubdtype(aval.dtype, np.inexact):
            x = convert(x, dtypes.to_inexact_dtype(aval.dtype), aval.weak_type)
        out.append(x)
    return out


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular `l` with `l @ l^H = x`, for positive definite matrices.

    Args:
      x: Hermitian matrices, shape `(..., n, n)`.
      symmetrize_input: factor `(x + x^H) / 2`; else only the part below the diagonal is read, and
        derivatives are right for changes of `x` that are Hermitian.

    Returns:
      An array of the type of `x`, zero above the diagonal; NaN if `x` is not positive definite.

    Errors:
      `ValueError` for matrices that are not square.

    The derivative is that of Murray (2016), arXiv:1602.07527.

    >>> import numpy as np
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return ops.cholesky(*_operands("cholesky", x), symmetrize_input=symmetrize_input)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular factor of `r^T r + w w^T`, from `r` and `w`.

    Args:
      r_matrix: an upper triangular matrix, shape `(n, n)`, float32 or float64.
      w_vector: shape `(n,)`.

    >>> import numpy as np
    >>> cholesky_update(np.array([[3.0]]), np.array([4.0]))
    Array([[5.]], dtype=float32)
    """
    r, w = _operands("cholesky_update", r_matrix, w_vector)
    n = aval_of("cholesky_update", w).size
    if aval_of("cholesky_update", r).shape != (n, n) or np.ndim(w) != 1:
        raise ValueError(
            f"cholesky_update takes a matrix of shape (n, n) and a vector of shape (n,), got "
            f"{np.shape(r)} and {np.shape(w)}"
        )
    both = concatenate(r, reshape(w, new_sizes=(1, n)), dimension=0)
    _, out = ops.qr(both, full_matrices=False, pivoting=False)
    # Of all such factors, that whose diagonal is not negative.
    diagonal = ops.matrices.diagonal_of(out)
    negative = ops.matrices.in_rows(ew.lt(diagonal, scalar_like(diagonal, 0)), (n, n))
    return ew.select(negative, ew.neg(out), out)


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
      a_matrix: shape `(..., n, k)`; c_matrix: shape `(..., n, n)`, symmetric.
      symmetrize_output: make the result symmetric to the last digit.

    Errors:
      `TypeError` for complex numbers, or where the shapes do not fit.

    >>> import numpy as np
    >>> symmetric_product(np.array([[1.0], [2.0]]), np.zeros((2, 2)))
    Array([[1., 2.],
           [2., 4.]], dtype=float32)
    """
    a, c = _operands("symmetric_product", a_matrix, c_matrix)
    for x in (a, c):
        if aval_of("symmetric_product", x).dtype.kind != "f":
            raise TypeError("symmetric_product takes matrices of float32 or float64")
    product = ew.mul(matmul(a, a, "", "T"), scalar_like(a, alpha))
    out = ew.add(product, ew.mul(c, scalar_like(c, beta)))
    if not symmetrize_output:
        return out
    strict = triangles(out, below=True, diagonal="zero", above=False)
    kept = triangles(out, below=True, diagonal="keep", above=False)
    return ew.add(kept, swapped(strict))


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """The `x` with `op(a) @ x = b`, or `x @ op(a) = b` unless `left_side`, for a triangular `a`.

    Args:
      a: matrices of shape `(..., n, n)`. Only one triangle is read.
      b: matrices with the same batch axes; or one axis fewer: vectors.
      lower: whether it is the lower triangle.
      transpose_a, conjugate_a: `op` transposes, conjugates, or both.
      unit_diagonal: take the diagonal of `a` for ones.

    Errors:
      `ValueError` for an `a` that is not square, `TypeError` where the shapes do not fit.

    >>> import numpy as np
    >>> triangular_solve(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([4.0, 3.0]),
    ...                  left_side=True, lower=True)
    Array([2., 1.], dtype=float32)
    """
    a, b = _operands("triangular_solve", a, b)
    a_aval, b_aval = aval_of("triangular_solve", a), aval_of("triangular_solve", b)
    is_vector = b_aval.ndim == a_aval.ndim - 1
    if is_vector:
        axis = b_aval.ndim if left_side else b_aval.ndim - 1
        shape = (*b_aval.shape[:axis], 1, *b_aval.shape[axis:])
        b = reshape(b, new_sizes=shape)
    out = ops.triangular_solve(
        a,
        b,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a and a_aval.dtype.kind == "c",
        unit_diagonal=unit_diagonal,
    )
    return reshape(out, new_sizes=b_aval.shape) if is_vector else out


def lu(x: ArrayLike) -> list[Array]:
    """LU factorization with row exchanges: `l @ u = x[permutation]`.

    Args:
      x: matrices of shape `(..., m, n)`.

    Returns:
      A list of both factors in one matrix (`u` is the upper triangle, `l` the part below, with ones
      for its diagonal); the row that each row was exchanged with, int32 of shape
      `(..., min(m, n))`; and the permutation of the rows, int32 of shape `(..., m)`.

    >>> import numpy as np
    >>> packed, pivots, permutation = lu(np.array([[1.0, 2.0], [2.0, 2.0]]))
    >>> packed, permutation
    (Array([[2. , 2. ],
           [0.5, 1. ]], dtype=float32), Array([1, 0], dtype=int32))
    """
    return ops.lu(*_operands("lu", x))


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that comes of exchanging row `i` with row `pivots[i]`, for each `i` in turn.

    Args:
      pivots: int32, shape `(..., k)`.
      permutation_size: the number of rows, at least `k`.

    >>> import numpy as np
    >>> lu_pivots_to_permutation(np.array([2, 2, 2], np.int32), 3)
    Array([2, 0, 1], dtype=int32)
    """
    return ops.lu_pivots_to_permutation(pivots, permutation_size=permutation_size)


def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: Any = None
) -> tuple[Array, ...]:
    """`q` with orthonormal columns and upper triangular `r` with `q @ r = x`.

    Args:
      x: matrices of shape `(..., m, n)`.
      pivoting: `q @ r = x[..., p]` for a permutation `p` of the columns that makes the diagonal of
        `r` fall off. `p`, int32 of shape `(..., n)`, is the third result.
      full_matrices: a square `q`; else `q` has `min(m, n)` columns.
      use_magma: has no effect on the CPU.

    The derivative is that of Walter and Lehmann (2018), doi:10.1080/10556788.2017.1327186, for
    matrices whose first `min(m, n)` columns are independent.

    >>> import numpy as np
    >>> q, r = qr(np.array([[3.0], [4.0]]), full_matrices=False)
    >>> q @ r
    Array([[3.],
           [4.]], dtype=float32)
    """
    (x,) = _operands("qr", x)
    return tuple(ops.qr(x, full_matrices=full_matrices, pivoting=pivoting))


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first columns of a product of reflectors: how LAPACK writes orthogonal matrices.

    Args:
      a: shape `(..., m, n)`, `m >= n`. What is below the diagonal of column `i` is vector `i`,
        after a one.
      taus: shape `(..., k)`, `k <= n`: their scales.

    >>> import numpy as np
    >>> householder_product(np.array([[0.0], [1.0]]), np.array([1.0]))
    Array([[ 0.],
           [-1.]], dtype=float32)
    """
    return ops.householder_product(*_operands("householder_product", a, taus))


def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """The product of `c` and the orthogonal matrix that reflectors make, without making it.

    Args:
      a, taus: reflectors as for `householder_product`.
      c: matrices with the same batch axes.
      left: `q @ c`, else `c @ q`.
      transpose: the adjoint of `q` instead.

    >>> import numpy as np
    >>> ormqr(np.array([[0.0], [1.0]]), np.array([1.0]), np.array([[1.0], [2.0]]))
    Array([[-2.],
           [-1.]], dtype=float32)
    """
    a, taus, c = _operands("ormqr", a, taus, c)
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
      implementation: on the CPU, `None` or `QR`.

    Returns:
      `v` of the type of `x`, and real `w` of shape `(..., n)`.

    Errors:
      `ValueError` for matrices that are not square; `NotImplementedError` for what the platform
      does not have.

    The derivative (Giles 2008) is infinite or NaN for eigenvectors of equal eigenvalues.

    >>> import numpy as np
    >>> v, w = eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> w
    Array([1., 3.], dtype=float32)
    """
    (x,) = _operands("eigh", x)
    if implementation not in (None, EighImplementation.QR):
        raise NotImplementedError(
            f"eigh: {implementation} is not available on the CPU; leave `implementation` out"
        )
    n = aval_of("eigh", x).shape[-1:]
    v, w = ops.eigh(
        x,
        algorithm=None,
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
      `u` and `vh` of the dtype of `x`, and real, descending `s` of shape `(..., min(m, n))`.

    Errors:
      `NotImplementedError` for what the platform does not have, and for the derivative of
      `full_matrices=True` at matrices that are not square.

    The derivative (Giles 2008, Townsend 2016) of the vectors is infinite or NaN where singular
    values are equal.

    >>> import numpy as np
    >>> svd(np.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    (x,) = _operands("svd", x)
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

    Returns:
      A list of `w`, complex of shape `(..., n)`, then `vl` and `vr` if asked for. Eigenvectors have
      length one and a largest component that is real.

    Errors:
      `ValueError` for matrices that are not square; `NotImplementedError` for derivatives of
      eigenvectors that are not enabled.

    >>> import numpy as np
    >>> w, vl, vr = eig(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> w
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    (x,) = _operands("eig", x)
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
    """`t`, and unitary `z`, with `z @ t @ z^H = x`.

    Args:
      x: shape `(..., n, n)`.
      compute_schur_vectors: return `z` too.
      sort_eig_vals, select_callable: not available.

    Returns:
      A list of `t`, upper triangular but for blocks of two rows that stand for the complex
      eigenvalues of a real matrix, and `z`. They have no derivative.

    >>> import numpy as np
    >>> t, z = schur(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError(
            "schur: eigenvalues cannot be sorted by LAPACK's routine here; "
            "leave sort_eig_vals and select_callable out"
        )
    (x,) = _operands("schur", x)
    return ops.schur(x, compute_schur_vectors=compute_schur_vectors)


def hessenberg(a: ArrayLike) -> list[Array]:
    """The Hessenberg form, in LAPACK's packed form.

    Args:
      a: shape `(..., n, n)`.

    Returns:
      A list of matrices with the Hessenberg form on and above the first diagonal below the
      diagonal and the vectors of reflectors below it, and the scales of these, of shape
      `(..., n - 1)`. `perspex.scipy.linalg.hessenberg` unpacks them.

    >>> import numpy as np
    >>> hessenberg(np.eye(3, dtype="float32"))[1].shape
    (2,)
    """
    return ops.hessenberg(*_operands("hessenberg", a))


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """A Hermitian matrix made tridiagonal by a unitary change of basis, in LAPACK's packed form.

    Args:
      a: shape `(..., n, n)`.
      lower: read (and write) the triangle below the diagonal, else that above.

    Returns:
      A list: the tridiagonal matrix with the vectors of reflectors; its diagonal, real of shape
      `(..., n)`; that beside it, real of shape `(..., n - 1)`; the scales of the reflectors.

    >>> import numpy as np
    >>> _, d, e, _ = tridiagonal(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> d
    Array([2., 2.], dtype=float32)
    """
    return ops.tridiagonal(*_operands("tridiagonal", a), lower=lower)


def tridiagonal_solve(
    dl: ArrayLike,
    d: ArrayLike,
    du: ArrayLike,
    b: ArrayLike,
    *,
    perturb_singular: bool = False,
) -> Array:
    """The `x` with `dl[i] x[i - 1] + d[i] x[i] + du[i] x[i + 1] = b[i]` for all rows.

    Args:
      dl, d, du: the diagonal below the main one, that, and the one above, each of shape
        `(..., n)`; `dl[..., 0]` and `du[..., -1]` are not looked at.
      b: shape `(..., n, k)`.
      perturb_singular: make pivots that are zero small numbers instead.

    Errors:
      `TypeError` for a `b` with fewer than two axes, `ValueError` for shapes that do not fit.

    >>> import numpy as np
    >>> one = np.ones(2, "float32")
    >>> tridiagonal_solve(one, 2 * one, one, np.array([[3.0], [3.0]]))
    Array([[1.],
           [1.]], dtype=float32)
    """
    diagonals = _operands("tridiagonal_solve", dl, d, du, b)
    return ops.tridiagonal_solve(*diagonals, perturb_singular=perturb_singular)

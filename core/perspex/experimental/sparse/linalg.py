"""Sparse linear algebra: a direct solver, and the largest eigenvalues of a matrix."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from perspex import dtypes, lax
from perspex import numpy as pnp
from perspex.api.callbacks import pure_callback
from perspex.api.jit import jit
from perspex.api.shapes import ShapeDtypeStruct
from perspex.arguments.types import Array, ArrayLike
from perspex.experimental.sparse.csr import csr_matvec_p
from perspex.experimental.sparse.util import check

__all__ = ["lobpcg_standard", "spsolve"]


def spsolve(
    data: ArrayLike,
    indices: ArrayLike,
    indptr: ArrayLike,
    b: ArrayLike,
    tol: float = 1e-6,
    reorder: int = 1,
) -> Array:
    """Solve a linear system with a sparse matrix, directly.

    SciPy solves it on the host, whatever the platform: the compiled program calls Python. The
    derivatives with respect to `data` and `b` are solutions with the same matrix or its transpose.
    Under `vmap` the systems are solved one after the other.

    Args:
      data, indices, indptr: a square matrix in compressed rows: see `CSR`.
      b: a vector of the same dtype.
      tol, reorder: for JAX's solver on GPUs; without effect. `reorder` is 0, 1, 2 or 3.

    Returns:
      The solution, a vector like `b`.

    Raises:
      ValueError: for arrays that are no matrix in compressed rows, or that do not fit.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> m = sparse.CSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> sparse.linalg.spsolve(m.data, m.indices, m.indptr, jnp.array([2.0, 9.0]))
    Array([1., 2.], dtype=float32)
    """
    data, indices, indptr, b = [pnp.asarray(x) for x in (data, indices, indptr, b)]
    check(data.dtype == b.dtype, f"spsolve: data types do not match: {data.dtype}, {b.dtype}")
    check(
        all(dtypes.issubdtype(x.dtype, np.integer) for x in (indices, indptr)),
        f"spsolve: indices and indptr must be integers; got {indices.dtype}, {indptr.dtype}",
    )
    shapes = [x.shape for x in (data, indices, indptr, b)]
    check(
        {x.ndim for x in (data, indices, indptr, b)} == {1}
        and indptr.size == b.size + 1
        and data.shape == indices.shape,
        "spsolve: data, indices, indptr and b must be vectors, indptr one longer than b; got the "
        f"shapes {shapes}",
    )
    check(reorder in (0, 1, 2, 3), f"spsolve: {reorder=} not valid, must be 0, 1, 2 or 3")

    def product(x: Any) -> Any:
        return csr_matvec_p(data, indices, indptr, x, shape=(b.size, b.size), transpose=False)

    def solution(turned: bool, matvec: Any, rhs: Any) -> Any:
        solve = functools.partial(_solve_on_host, turned)
        out = ShapeDtypeStruct(rhs.shape, rhs.dtype)
        parts = map(lax.stop_gradient, (data, indices, indptr))
        return pure_callback(solve, out, *parts, rhs, vmap_method="sequential")

    return lax.custom_linear_solve(
        product,
        b,
        functools.partial(solution, False),
        transpose_solve=functools.partial(solution, True),
    )


def _solve_on_host(turned: bool, data: Any, indices: Any, indptr: Any, b: Any) -> np.ndarray:
    parts = tuple([np.asarray(x) for x in (data, indices, indptr)])
    mat = scipy.sparse.csr_matrix(parts, shape=(b.size, b.size))
    mat = mat.T.tocsr() if turned else mat
    return scipy.sparse.linalg.spsolve(mat, np.asarray(b)).astype(b.dtype)


# ---- Eigenvalues --------------------------------------------------------------------------------


def lobpcg_standard(
    A: Array | Callable[[Array], Array], X: Array, m: int = 100, tol: ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """The largest eigenvalues of a symmetric matrix, and their eigenvectors.

    The method (locally optimal block conjugate gradients) looks for the best vectors in the space
    of the present ones, their residuals, and the last directions, turn by turn. It needs nothing of
    the matrix but products with it.

    Args:
      A: a symmetric matrix of shape `(n, n)`, or a function that multiplies by it.
      X: where to begin: a matrix of shape `(n, k)` of independent columns, `0 < 5 * k < n`.
      m: the most turns to take.
      tol: an eigenpair is done when the norm of its residual is below `10 * n * tol` times the
        eigenvalue plus the norm of the product; the precision of the dtype if not given.

    Returns:
      `(theta, U, i)`: the `k` eigenvalues in descending order, the eigenvectors as columns, and the
      number of turns.

    Raises:
      ValueError: for shapes or dtypes that do not fit.

    References:
      A. V. Knyazev, "Toward the optimal preconditioned eigensolver" (2001); A. Stathopoulos and
      K. Wu, "A block orthogonalization procedure with constant synchronization requirements"
      (2002); J. A. Duersch et al., "A robust and efficient implementation of LOBPCG" (2018).

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental.sparse.linalg import lobpcg_standard
    >>> a = jnp.diag(jnp.arange(1.0, 11.0))
    >>> theta, u, _ = lobpcg_standard(a, jnp.ones((10, 1)))
    >>> jnp.round(theta, 3)
    Array([10.], dtype=float32)
    """
    X = pnp.asarray(X)
    tol = float(dtypes.finfo(X.dtype).eps) if tol is None else tol
    if not callable(A):
        A = pnp.asarray(A)
        _check_problem(functools.partial(_times, A), X)
        return _of_matrix(A, X, m, tol)
    _check_problem(A, X)
    return jit(functools.partial(_eigenpairs, A), static_argnums=(1,))(X, m, tol)


def _check_problem(A: Callable[[Any], Any], X: Any) -> None:
    check(X.ndim == 2, f"lobpcg_standard: X must be a matrix, got shape {X.shape}")
    n, k = X.shape
    check(k > 0, f"lobpcg_standard: must have search dim > 0, got {k}")
    check(5 * k < n, f"lobpcg_standard: expected search dim * 5 < matrix dim (got {5 * k}, {n})")
    one = A(pnp.zeros((n, 1), X.dtype))
    check(
        one.dtype == X.dtype,
        f"lobpcg_standard: A, X must have same dtypes (were {one.dtype}, {X.dtype})",
    )
    check(
        one.shape == (n, 1),
        f"lobpcg_standard: A must be ({n}, {n}) matrix A, got output {one.shape}",
    )


def _times(a: Any, b: Any) -> Any:
    return pnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def _norms(x: Any) -> Any:
    """The norms of the columns."""
    return pnp.linalg.norm(x, axis=0, keepdims=True)


def _normalized(x: Any) -> Any:
    """The columns at length 1; those of zeros stay."""
    norms = _norms(x)
    return x / pnp.where(norms == 0, 1.0, norms)


def _eigh_descending(a: Any) -> tuple[Any, Any]:
    values, vectors = pnp.linalg.eigh(a)
    return values[::-1], vectors[:, ::-1]


def _svqb(x: Any) -> Any:
    """An orthonormal basis of the columns, from the eigenvectors of their Gram matrix.

    Directions that the columns hardly have become columns of zeros.
    """
    x = _normalized(x)
    gram = _times(x.T, x)
    values, vectors = _eigh_descending(gram)
    least = dtypes.finfo(x.dtype).eps * values[0]
    scale = pnp.where(least > 0, pnp.maximum(values, least), 1.0) ** -0.5
    there = (values > least) & (pnp.diag(gram) > 0)
    return _normalized(pnp.where(there, _times(x, vectors * scale), 0))


def _orthonormalized(x: Any) -> Any:
    """As `_svqb`, twice: the second time removes what the first one left."""
    return _svqb(_svqb(x))


def _apart_from(basis: Any, x: Any) -> Any:
    """An orthonormal basis of what the columns of `x` have beyond an orthonormal basis."""
    for _ in range(2):
        x = _orthonormalized(x - _times(basis, _times(basis.T, x)))
    for _ in range(2):
        x = x - _times(basis, _times(basis.T, x))
    # What lost length just now was mostly in the basis after all.
    return pnp.where(_norms(x) >= 0.99, x, 0)


def _first_directions(x: Any) -> Any:
    """As many orthonormal columns as `x` has, orthogonal to its own: by a block reflection."""
    n, k = x.shape
    u, s, vt = pnp.linalg.svd(x[:k])
    y = x.at[:k].add(_times(u, vt))
    w = _times(y, vt.T * (2 * (1 + s)) ** -0.5)
    other = pnp.eye(n - k, k, dtype=x.dtype)
    return (-2 * _times(w, _times(w[k:].T, other))).at[k:].add(other)


class _Turn(NamedTuple):
    i: Any
    x: Any
    directions: Any
    residuals: Any
    values: Any
    done: Any


def _eigenpairs(A: Callable[[Any], Any], X: Any, m: int, tol: Any) -> tuple[Any, Any, Any]:
    n, k = X.shape

    def residuals(x: Any, values: Any) -> tuple[Any, Any]:
        """Those of eigenpairs, and how many are small enough."""
        product = A(x)
        found = product - values * x
        sizes, reach = _norms(found), tol * 10 * n * (_norms(product) + values)
        return found, (sizes < reach).sum()

    def body(now: _Turn) -> _Turn:
        known = pnp.concatenate([now.x, now.directions], axis=1)
        basis = pnp.concatenate([known, _apart_from(known, now.residuals)], axis=1)
        values, q = _eigh_descending(_times(basis.T, A(basis)))
        x = _normalized(_times(basis, _normalized(q[:, :k])))
        # What has changed, orthogonal to the new vectors: the other eigenvectors span it.
        change, _ = pnp.linalg.qr(q[:k, k:].T)
        directions = _normalized(_times(basis, _times(q[:, k:], change)))
        values = values[None, :k]
        found, done = residuals(x, values)
        return _Turn(now.i + 1, x, directions, found, values, done)

    x = _orthonormalized(X)
    values = (x * A(x)).sum(0, keepdims=True)
    found, done = residuals(x, values)
    start = _Turn(0, x, _first_directions(x), found, values, done * 0)
    end = lax.while_loop(lambda now: (now.i < m) & (now.done < k), body, start)
    return end.values[0], end.x, end.i


@functools.partial(jit, static_argnums=(2,))
def _of_matrix(A: Any, X: Any, m: int, tol: Any) -> tuple[Any, Any, Any]:
    return _eigenpairs(functools.partial(_times, A), X, m, tol)

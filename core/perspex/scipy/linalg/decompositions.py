"""Factorizations of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import numpy as pnp
from perspex.arguments.arrays import as_array, as_dtype
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.lax.control import fori_loop
from perspex.lax.polar import qdwh
from perspex.numpy.promotion import inexact
from perspex.ops import linalg as ops
from perspex.ops.linalg.matrices import adjoint, hermitian_part, identity, matmul, upper_part
from perspex.ops.linalg.triangular import triangular_solve
from perspex.ops.shape import concatenate
from perspex.scipy.linalg.operands import WORDS, check_square, matrices, promoted

__all__ = [
    "eigh", "eigh_tridiagonal", "hessenberg", "polar", "qr", "qr_multiply", "rsf2csf", "schur",
    "svd",
]  # fmt: skip


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, ...]:
    """Singular values and vectors: `(u * s) @ vh` is `a`.

    Args:
      a: matrices of shape `(..., m, n)`.
      full_matrices: return square `u` and `vh`; otherwise `min(m, n)` columns and rows.
      compute_uv: return vectors too.
      lapack_driver: has no effect.

    Returns:
      `(u, s, vh)`, or `s` alone: the singular values in descending order, real, of shape
      `(..., min(m, n))`.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for fewer than two axes.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    out = pnp.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(out) if compute_uv else out


# ---- Eigenvalues of Hermitian matrices ----------------------------------------------------------


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, ...]:
    """Ascending eigenvalues, and eigenvectors, of a Hermitian matrix, or of a pair of them.

    Args:
      a: Hermitian matrices of shape `(..., n, n)`; `(a + a^H) / 2` is used.
      b: positive definite matrices, for `a @ v = b @ v * w`; the identity if not given.
      lower: has no effect, as both triangles are used.
      eigvals_only: return the eigenvalues alone.
      type: with `b`, which problem: 1 as above, 2 for `a @ b @ v = v * w`, 3 for
        `b @ a @ v = v * w`.
      eigvals: must be `None`.

    Returns:
      `(w, v)`, or `w` alone: real eigenvalues of shape `(..., n)`, and eigenvectors in the columns
      of an array of the shape of `a`.

    Raises:
      TypeError: if an argument is not an array or a number, or `b` is not like `a`.
      ValueError: for matrices that are not square, and another `type`.
      NotImplementedError: if `eigvals` is given.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    if eigvals is not None:
        raise NotImplementedError("eigh: eigvals is not available; select from all eigenvalues")
    if type not in (1, 2, 3):
        raise ValueError(f"eigh: type must be 1, 2 or 3, got {type}")
    if b is None:
        w, v = pnp.linalg.eigh(a)
    else:
        w, v = _generalized(a, b, kind=int(type))
    return w if eigvals_only else (w, v)


@fused(static=("kind",))
def _generalized(a: Any, b: Any, kind: int) -> Any:
    a, b = promoted("eigh", a, b)
    check_square("eigh", a, b)
    a, b = hermitian_part(a), hermitian_part(b)
    factor = ops.cholesky(b, symmetrize_input=False)
    flags: dict[str, Any] = {"lower": True, "unit_diagonal": False}
    is_complex = factor.dtype.kind == "c"

    def back(v: Any) -> Any:
        """`l^-H v`"""
        return triangular_solve(
            factor, v, left_side=True, transpose_a=True, conjugate_a=is_complex, **flags
        )

    if kind == 1:
        half = triangular_solve(
            factor, a, left_side=True, transpose_a=False, conjugate_a=False, **flags
        )
        inner = triangular_solve(
            factor, half, left_side=False, transpose_a=True, conjugate_a=is_complex, **flags
        )
    else:
        inner = matmul(factor, matmul(a, factor), "H")
    w, v = pnp.linalg.eigh(inner)
    return w, matmul(factor, v) if kind == 3 else back(v)


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[int, int] | None = None,
    tol: float | None = None,
    key: ArrayLike | None = None,
) -> Array | tuple[Array, ...]:
    """Ascending eigenvalues, and eigenvectors, of a Hermitian tridiagonal matrix.

    Args:
      d: the diagonal, of shape `(n,)`; its imaginary part is ignored.
      e: the diagonal above it, of shape `(n - 1,)`.
      eigvals_only: return the eigenvalues alone.
      select: `"a"` for all, `"i"` for those from `select_range[0]` to `select_range[1]` inclusive.
      select_range: two indices, for `select="i"`.
      tol, key: have no effect: the eigenvalues are those of the whole matrix, to full precision.

    Returns:
      `(w, v)`, or `w` alone: real eigenvalues, and eigenvectors in the columns of a matrix.

    Raises:
      TypeError: if `d` or `e` is not an array or a number.
      ValueError: for shapes that do not fit, and another `select`.
      NotImplementedError: for `select="v"`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    if select not in ("a", "i", "v"):
        raise ValueError(f"'select' must have a value in {{'a', 'i', 'v'}}; got {select!r}")
    if select == "v":
        raise NotImplementedError(
            "eigh_tridiagonal: select='v' gives arrays whose shape depends on numbers; "
            "select from all eigenvalues with a mask"
        )
    d, e = promoted("eigh_tridiagonal", d, e)
    if d.ndim != 1 or e.shape != (d.size - 1,):
        raise ValueError(
            f"eigh_tridiagonal takes vectors of n and n - 1 elements, got {d.shape} and {e.shape}"
        )
    start, stop = (0, d.size - 1) if select == "a" or select_range is None else select_range
    w, v = pnp.linalg.eigh(
        pnp.diag(pnp.real(d).astype(d.dtype)) + pnp.diag(e, 1) + pnp.diag(pnp.conj(e), -1)
    )
    w, v = w[int(start) : int(stop) + 1], v[:, int(start) : int(stop) + 1]
    return w if eigvals_only else (w, v)


# ---- QR -----------------------------------------------------------------------------------------


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """QR factorization: `q` with orthonormal columns and upper triangular `r` with `q @ r = a`.

    Args:
      a: matrices of shape `(..., m, n)`.
      mode: `"full"` for a square `q`, `"economic"` for `min(m, n)` columns, `"r"` for `r` alone.
      pivoting: permute the columns so that `q @ r = a[..., p]`; `p` is the last result.

    Returns:
      `(q, r)`, `(q, r, p)`, `(r,)` or `(r, p)`, of floating or complex dtype; `p` is int32.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for fewer than two axes, and another `mode`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> q, r = linalg.qr(jnp.array([[3.0], [4.0]]), mode="economic")
    >>> q @ r
    Array([[3.],
           [4.]], dtype=float32)
    """
    if mode not in ("full", "economic", "r"):
        raise ValueError(
            f"Unsupported QR decomposition mode {mode!r}: it must be 'full', 'economic' or 'r'"
        )
    return _qr(a, mode=mode, pivoting=bool(pivoting))


@fused(static=("mode", "pivoting"))
def _qr(a: Any, mode: str, pivoting: bool) -> Any:
    out = ops.qr(matrices("qr", a), full_matrices=mode != "economic", pivoting=pivoting)
    return tuple(out[1:] if mode == "r" else out)


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """Product of `c` with the `q` of a QR factorization of `a`, and `r`.

    Args:
      a: matrices of shape `(..., m, n)`.
      c: a matrix, or a vector.
      mode: `"left"` for `q @ c`, `"right"` for `c @ q`.
      pivoting: as for `qr`.
      conjugate: use the conjugate of `q`.

    Returns:
      `(product, r)`, or `(product, r, p)` with `pivoting`.

    Raises:
      TypeError: if `a` or `c` is not an array or a number.
      ValueError: for shapes that do not fit, and another `mode`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> product, r = linalg.qr_multiply(jnp.array([[3.0], [4.0]]), jnp.ones((1, 1)), mode="left")
    >>> jnp.abs(product)
    Array([[0.6],
           [0.8]], dtype=float32)
    """
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode must be 'left' or 'right', got {mode!r}")
    a, c = promoted("qr_multiply", a, c)
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    q = pnp.conj(q) if conjugate else q
    is_vector = c.ndim == 1
    if is_vector:
        c = c[:, None] if mode == "left" else c[None, :]
    if mode == "left" and c.shape[-2] != q.shape[-1]:
        raise ValueError(
            f"qr_multiply: a of shape {a.shape} has a q of {q.shape[-1]} columns, which does not "
            f"multiply c of shape {c.shape}"
        )
    if mode == "right" and c.shape[-1] != q.shape[-2]:
        raise ValueError(
            f"qr_multiply: c of shape {c.shape} does not multiply a q of {q.shape[-2]} rows"
        )
    product = q @ c if mode == "left" else c @ q
    return (product.reshape(-1) if is_vector else product, *rest)


# ---- Schur and Hessenberg -----------------------------------------------------------------------


def schur(a: ArrayLike, output: str = "real") -> list[Array]:
    """Schur's form `t` and unitary `z`, with `z @ t @ z^H = a`.

    Args:
      a: square matrices of shape `(..., n, n)`.
      output: `"real"`, where complex eigenvalues of a real matrix are blocks of two rows, or
        `"complex"` for a triangular `t`.

    Returns:
      A list `[t, z]` of arrays of the shape of `a`; complex for `"complex"`.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for matrices that are not square, and another `output`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> t, z = linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"Expected 'output' to be either 'real' or 'complex', got {output=}.")
    a = matrices("schur", a)
    return complex_schur(a) if output == "complex" else ops.schur(a, compute_schur_vectors=True)


def complex_schur(a: Any) -> list[Any]:
    """`t` and `z` with a triangular, complex `t`."""
    wide = a.astype(np.result_type(a.dtype, np.complex64))
    return ops.schur(wide, compute_schur_vectors=True)


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Complex Schur form of a real one: triangular `t`, with `z @ t @ z^H` unchanged.

    Args:
      T, Z: matrices of shape `(n, n)`, as `schur` returns them.

    Returns:
      `(t, z)`, complex matrices of shape `(n, n)`.

    Raises:
      TypeError: if `T` or `Z` is not an array or a number.
      ValueError: for matrices that are not square, or of different shapes.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> t, z = linalg.rsf2csf(*linalg.schur(jnp.array([[0.0, 2.0], [-1.0, 0.0]])))
    >>> t[1, 0]
    Array(0.+0.j, dtype=complex64)
    """
    t, z = promoted("rsf2csf", T, Z)
    check_square("rsf2csf", t, z, ndim=2)
    return _rsf2csf(t, z)


@fused
def _rsf2csf(t: Any, z: Any) -> Any:
    wide, weak = np.result_type(t.dtype, np.complex64), t.weak_type
    n = t.shape[0]

    def rotate(i: Any, state: Any) -> Any:
        """Make the element below the diagonal in row `n - 1 - i` zero by a rotation."""
        t, z = state
        m = n - 1 - i
        rows = pnp.stack([m - 1, m])
        block = t[rows][:, rows]
        half = (block[0, 0] + block[1, 1]) / 2
        root = pnp.sqrt(half**2 - (block[0, 0] * block[1, 1] - block[0, 1] * block[1, 0]))
        mu = half + root - block[1, 1]
        low = block[1, 0]
        size = pnp.sqrt(pnp.abs(mu) ** 2 + pnp.abs(low) ** 2)
        c, s = mu / size, low / size
        g = pnp.stack([pnp.stack([pnp.conj(c), s]), pnp.stack([-s, c])])
        # No rotation where the element is zero already.
        g = pnp.where(low == 0, pnp.eye(2, dtype=wide), g)
        t = t.at[rows].set(g @ t[rows])
        t = t.at[:, rows].set(t[:, rows] @ adjoint(g))
        z = z.at[:, rows].set(z[:, rows] @ adjoint(g))
        return t.at[m, m - 1].set(0), z

    t, z = fori_loop(0, n - 1, rotate, (t.astype(wide), z.astype(wide)))
    return as_dtype(upper_part(t), wide, weak), as_dtype(z, wide, weak)


def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, ...]:
    """Hessenberg's form: a similar matrix that is zero below its first subdiagonal.

    Args:
      a: square matrices of shape `(..., n, n)`.
      calc_q: return unitary `q` too, with `q @ h @ q^H = a`.

    Returns:
      `h`, or `(h, q)`: arrays of the shape of `a`, of floating or complex dtype.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for matrices that are not square.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.hessenberg(jnp.ones((2, 2)))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _hessenberg(a, calc_q=bool(calc_q))


@fused(static=("calc_q",))
def _hessenberg(a: Any, calc_q: bool) -> Any:
    a = matrices("hessenberg", a)
    packed, taus = ops.hessenberg(a)
    n = a.shape[-1]
    h = pnp.triu(packed, -1)
    if not calc_q:
        return h
    one = identity((*a.shape[:-2], 1, 1), a.dtype)
    row, column = (pnp.zeros((*a.shape[:-2], *s), a.dtype) for s in ((1, n - 1), (n - 1, 1)))
    inner = column if n == 1 else ops.householder_product(packed[..., 1:, :-1], taus)
    if n == 1:
        return h, one
    axis = a.ndim - 1
    top, rest = concatenate(one, row, dimension=axis), concatenate(column, inner, dimension=axis)
    return h, concatenate(top, rest, dimension=axis - 1)


# ---- Polar --------------------------------------------------------------------------------------


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Polar decomposition: `u @ p = a` with orthonormal `u` and positive semidefinite `p`.

    Args:
      a: a matrix of shape `(m, n)`.
      side: `"left"` for `p @ u = a`.
      method: `"qdwh"`, an iteration, which is for `m >= n` (`m <= n` with `side="left"`); or
        `"svd"`, which can be differentiated in reverse mode.
      eps, max_iterations: for the iteration; see `lax.linalg.qdwh`.

    Returns:
      `(u, p)`: `u` of shape `(m, n)` with orthonormal columns or rows, and a square `p`.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: if `a` is not a matrix, and for another `side` or `method`.
      NotImplementedError: for `"qdwh"` with a matrix that has too few rows.

    References:
      Y. Nakatsukasa, Z. Bai and F. Gygi, "Optimizing Halley's iteration for computing the matrix
      polar decomposition" (2010).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> u, p = linalg.polar(jnp.array([[2.0, 0.0], [0.0, -3.0]]), method="svd")
    >>> jnp.allclose(u @ p, jnp.array([[2.0, 0.0], [0.0, -3.0]]), atol=1e-6)
    Array(True, dtype=bool)
    """
    if side not in ("right", "left"):
        raise ValueError(f"The argument `side` must be either 'right' or 'left', got {side!r}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method}: use 'qdwh' or 'svd'")
    a = as_array(inexact("polar", a))
    if a.ndim != 2:
        raise ValueError(f"polar takes a matrix, got the shape {a.shape}")
    if method == "svd":
        return _polar_by_svd(a, left=side == "left")
    m, n = a.shape if side == "right" else a.shape[::-1]
    if m < n:
        raise NotImplementedError(
            f"polar: method='qdwh' with side={side!r} does not take a matrix of shape {a.shape}; "
            "use method='svd'"
        )
    x = a if side == "right" else adjoint(a)
    u, p, _, _ = qdwh(x, eps=eps, max_iterations=max_iterations)
    return (u if side == "right" else adjoint(u)), p


@fused(static=("left",))
def _polar_by_svd(a: Any, left: bool) -> Any:
    u, s, vh = pnp.linalg.svd(a, full_matrices=False)
    s = s.astype(u.dtype)
    p = (u * s) @ adjoint(u) if left else (adjoint(vh) * s) @ vh
    return u @ vh, p


describe((svd, eigh, qr, qr_multiply, rsf2csf, hessenberg), WORDS)

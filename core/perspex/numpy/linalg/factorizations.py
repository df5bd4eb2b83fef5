"""Factorizations of matrices: Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from perspex.arguments.arrays import as_array
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy import words
from perspex.numpy.arithmetic import absolute, negative
from perspex.numpy.indexing.take import take_along_axis
from perspex.numpy.norms import eigenvalues, singular_values
from perspex.numpy.promotion import inexact
from perspex.numpy.sorting import argsort
from perspex.ops import elementwise as ew
from perspex.ops import linalg as ops
from perspex.ops.linalg.matrices import adjoint, as_dtype_of, in_columns, swapped

__all__ = [
    "EigResult", "EighResult", "QRResult", "SVDResult", "cholesky", "eig", "eigh", "eigvals",
    "eigvalsh", "qr", "svd", "svdvals",
]  # fmt: skip


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors of square matrices."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The factors of a QR factorization."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Singular vectors and values."""

    U: Array
    S: Array
    Vh: Array


def square(name: str, a: Any) -> Any:
    """Square matrices. JAX refuses arrays of fewer axes with the one type of error or the other."""
    a = inexact(name, a)
    if a.ndim < 2 and name in ("eig", "eigvals"):
        raise _few_axes(name, a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(
            f"linalg.{name} takes square matrices, of shape [..., n, n], got the shape {a.shape}"
        )
    return as_array(a)


def matrices_of(name: str, a: Any) -> Any:
    a = inexact(name, a)
    if a.ndim < 2:
        raise _few_axes(name, a)
    return as_array(a)


def _few_axes(name: str, a: Any) -> Exception:
    kind = ValueError if name == "pinv" else TypeError
    return kind(f"linalg.{name} takes arrays of at least two axes, got shape {a.shape}")


@fused(static=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangular factor `l` of positive definite matrices, `l @ l^H = a`.

    Args:
      a: matrices of shape `(..., n, n)`.
      upper: return the adjoint of `l` instead.
      symmetrize_input: factor `(a + a^H) / 2`; else only one triangle is read.

    Returns:
      Matrices of shape `(..., n, n)`; of NaN where a matrix is not positive definite.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    a = square("cholesky", a)
    if upper and not symmetrize_input:
        a = adjoint(a)
    out = ops.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(out) if upper else out


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "raw"] = "reduced") -> QRResult: ...


@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...


@overload
def qr(a: ArrayLike, mode: str) -> Array | QRResult: ...


def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Factor matrices into orthonormal columns and an upper triangle, `q @ r = a`.

    Args:
      a: matrices of shape `(..., m, n)`.
      mode: `"reduced"`, `"complete"` for a square `q`, `"r"` for `r` alone, `"raw"` for LAPACK's
        packed factors (the matrix transposed) and scales.

    Returns:
      A pair `(Q, R)` of shapes `(..., m, k)` and `(..., k, n)`, `k = min(m, n)` or `m` if complete.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: for fewer than two axes, and for another mode.

    >>> import perspex.numpy as jnp
    >>> q, r = jnp.linalg.qr(jnp.array([[3.0], [4.0]]))
    >>> q @ r
    Array([[3.],
           [4.]], dtype=float32)
    """
    if mode not in ("reduced", "complete", "full", "r", "raw"):
        raise ValueError(
            f"Unsupported QR decomposition mode {mode!r}: it must be 'reduced', 'complete', 'r' "
            "or 'raw'"
        )
    return _qr(a, mode=mode)


@fused(static=("mode",))
def _qr(a: Any, mode: str) -> Any:
    a = matrices_of("qr", a)
    if mode == "raw":
        packed, taus = ops.geqrf(a)
        return QRResult(swapped(packed), taus)
    q, r = ops.qr(a, full_matrices=mode in ("complete", "full"), pivoting=False)
    return r if mode == "r" else QRResult(q, r)


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult: ...


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """The singular value decomposition of matrices, `(u * s) @ vh = a`.

    Args:
      a: matrices of shape `(..., m, n)`.
      full_matrices: square `u` and `vh`; else `min(m, n)` columns and rows.
      compute_uv: return the vectors too.
      hermitian: use that the matrices are Hermitian.
      subset_by_index: a range of singular values; on the CPU it must be all of them.

    Returns:
      A triple `(U, S, Vh)`, with `S` real and descending; without `compute_uv` only `S`.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: for fewer than two axes, and for a subset together with full matrices and vectors.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0]])).S
    Array([4., 3.], dtype=float32)
    """
    if subset_by_index is not None:
        subset_by_index = (int(subset_by_index[0]), int(subset_by_index[1]))
        if compute_uv and full_matrices:
            raise ValueError("linalg.svd: full_matrices and subset_by_index exclude each other")
    return _svd(
        a,
        full_matrices=bool(full_matrices),
        compute_uv=bool(compute_uv),
        hermitian=bool(hermitian),
        subset=subset_by_index,
    )


@fused(static=("full_matrices", "compute_uv", "hermitian", "subset"))
def _svd(a: Any, full_matrices: bool, compute_uv: bool, hermitian: bool, subset: Any) -> Any:
    a = matrices_of("svd", a)
    if hermitian:
        w, v = _eigh(square("svd", a), True, True)
        order = argsort(negative(absolute(w)), axis=-1)
        w = take_along_axis(w, order, axis=-1)
        s = absolute(w)
        if not compute_uv:
            return s
        v = take_along_axis(v, order[..., None, :], axis=-1)
        sign = as_dtype_of(in_columns(ew.sign(w), v.shape), v)
        return SVDResult(v, s, adjoint(ew.mul(v, sign)))
    if subset == (0, min(a.shape[-2:])):
        subset = None
    s, *vectors = ops.svd(
        a,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        subset_by_index=subset,
        algorithm=None,
    )
    return SVDResult(vectors[0], s, vectors[1]) if vectors else s


@fused
def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices, in descending order.

    Args:
      x: matrices of shape `(..., m, n)`.

    Returns:
      Real numbers of shape `(..., min(m, n))`.

    Raises:
      TypeError: if `x` is not an array.
      ValueError: for fewer than two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], dtype=float32)
    """
    return singular_values(matrices_of("svdvals", x))


def _eigh(a: Any, lower: bool, symmetrize_input: bool) -> Any:
    v, w = ops.eigh(
        a,
        algorithm=None,
        lower=lower,
        sort_eigenvalues=True,
        subset_by_index=None,
        symmetrize_input=symmetrize_input,
    )
    return EighResult(w, v)


def _reads_lower(uplo: str | None) -> bool:
    if uplo not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {uplo!r}")
    return uplo != "U"


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """The eigenvalues, ascending, and eigenvectors of Hermitian matrices, `a @ v = v * w`.

    Args:
      a: matrices of shape `(..., n, n)`.

    Returns:
      A pair `(eigenvalues, eigenvectors)` of shapes `(..., n)`, real, and `(..., n, n)`.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    Array([1., 3.], dtype=float32)
    """
    return _eigh_fused(a, lower=_reads_lower(UPLO), symmetrize_input=bool(symmetrize_input))


@fused(static=("lower", "symmetrize_input"))
def _eigh_fused(a: Any, lower: bool, symmetrize_input: bool) -> Any:
    return _eigh(square("eigh", a), lower, symmetrize_input)


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, ascending.

    Args:
      a: matrices of shape `(..., n, n)`.

    Returns:
      Real numbers of shape `(..., n)`.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float32)
    """
    return _eigvalsh(a, lower=_reads_lower(UPLO), symmetrize_input=bool(symmetrize_input))


@fused(static=("lower", "symmetrize_input"))
def _eigvalsh(a: Any, lower: bool, symmetrize_input: bool) -> Any:
    return eigenvalues(square("eigvalsh", a), symmetrize_input, lower)


@fused
def eig(a: ArrayLike) -> EigResult:
    """The complex eigenvalues and eigenvectors of square matrices, `a @ v = v * w`.

    To differentiate eigenvectors, see `lax.linalg.eig`.

    Args:
      a: matrices of shape `(..., n, n)`.

    Returns:
      A pair `(eigenvalues, eigenvectors)` of shapes `(..., n)` and `(..., n, n)`, in columns.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    w, v = ops.eig(
        square("eig", a),
        compute_left_eigenvectors=False,
        compute_right_eigenvectors=True,
        enable_eigvec_derivs=False,
    )
    return EigResult(w, v)


@fused
def eigvals(a: ArrayLike) -> Array:
    """The complex eigenvalues of square matrices.

    Args:
      a: matrices of shape `(..., n, n)`.

    Returns:
      Complex numbers of shape `(..., n)`, in no order.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    (w,) = ops.eig(
        square("eigvals", a),
        compute_left_eigenvectors=False,
        compute_right_eigenvectors=False,
        enable_eigvec_derivs=False,
    )
    return w


describe((cholesky, eigh, eigvalsh, eig, eigvals), words.MATRIX, words.NOT_SQUARE)

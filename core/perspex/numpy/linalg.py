"""Linear algebra, as `numpy.linalg` has it.

Matrices are the last two axes of an array, the others are a batch. Integers become floats; the
dtypes are float32, float64, complex64 and complex128. Instead of raising `LinAlgError`, what does
not exist is NaN or infinite, as nothing is known of the numbers while a program is traced.

All functions can be differentiated; `perspex.lax.linalg` names the sources of the derivatives.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.ir.avals import ShapedArray
from perspex.jitted.fused import fused
from perspex.numpy import grids, products, reductions, shaping
from perspex.numpy.arithmetic import absolute, negative
from perspex.numpy.norms import cond as cond
from perspex.numpy.norms import eigenvalues, singular_values
from perspex.numpy.norms import matrix_norm as matrix_norm
from perspex.numpy.norms import matrix_rank as matrix_rank
from perspex.numpy.norms import norm as norm
from perspex.numpy.norms import vector_norm as vector_norm
from perspex.numpy.products import matmul as matmul
from perspex.numpy.products import vecdot as vecdot
from perspex.numpy.promotion import (
    Array,
    ArrayLike,
    as_array,
    as_dtype,
    check_arraylike,
    inexact,
    promote_dtypes,
    spread,
)
from perspex.numpy.sorting import argsort
from perspex.numpy.taking import take_along_axis
from perspex.ops import elementwise as ew
from perspex.ops import linalg as ops
from perspex.ops.linalg import solve as solving
from perspex.ops.linalg.matrices import (
    adjoint,
    apart,
    as_dtype_of,
    beside,
    in_columns,
    in_rows,
    swapped,
)
from perspex.ops.structural import convert, full_like, move_axis, reshape, zeros


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors of square matrices."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """The factors of a QR factorization."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """Singular vectors and values."""

    U: Any
    S: Any
    Vh: Any


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Any
    logabsdet: Any


def _square(name: str, a: Any) -> Any:
    a = inexact(name, a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(
            f"linalg.{name} takes square matrices, of shape [..., n, n], got the shape {a.shape}"
        )
    return as_array(a)


def _matrices(name: str, a: Any) -> Any:
    a = inexact(name, a)
    if a.ndim < 2:
        raise ValueError(f"linalg.{name} takes arrays of at least two axes, got shape {a.shape}")
    return as_array(a)


# ---- Factorizations -----------------------------------------------------------------------------


@fused(static=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangular `l` with `l @ l^H = a`, for positive definite matrices.

    Args:
      a: shape `(..., n, n)`.
      upper: its adjoint instead.
      symmetrize_input: of `(a + a^H) / 2`; else only one triangle is read.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    a = _square("cholesky", a)
    if upper and not symmetrize_input:
        a = adjoint(a)
    out = ops.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(out) if upper else out


def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """`q` with orthonormal columns and upper triangular `r` with `q @ r = a`.

    Args:
      a: shape `(..., m, n)`.
      mode: `"reduced"`, `"complete"` for a square `q`, `"r"` for `r` alone, `"raw"` for LAPACK's
        packed factors (the matrix transposed) and scales.

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
    a = _matrices("qr", a)
    if mode == "raw":
        packed, taus = ops.geqrf(a)
        return QRResult(swapped(packed), taus)
    q, r = ops.qr(a, full_matrices=mode in ("complete", "full"), pivoting=False)
    return r if mode == "r" else QRResult(q, r)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Singular values, and the vectors that go with them: `(u * s) @ vh = a`.

    Args:
      a: shape `(..., m, n)`.
      full_matrices: square `u` and `vh`; else `min(m, n)` columns and rows.
      compute_uv: return `(u, s, vh)`, else `s`.
      hermitian: use that the matrices are Hermitian.
      subset_by_index: a range of singular values; on the CPU it must be all of them.

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
    a = _matrices("svd", a)
    if hermitian:
        w, v = _eigh(_square("svd", a), True, True)
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
    """Singular values in descending order, without the vectors.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], dtype=float32)
    """
    return singular_values(_matrices("svdvals", x))


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


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> Any:
    """Ascending eigenvalues and eigenvectors of Hermitian matrices: `a @ v = v * w`.

    Args:
      a: shape `(..., n, n)`.
      UPLO: the triangle to read, `"L"` or `"U"`, where `symmetrize_input` is false.
      symmetrize_input: take `(a + a^H) / 2`.

    Returns:
      A pair with the names `eigenvalues`, `eigenvectors`.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    Array([1., 3.], dtype=float32)
    """
    return _eigh_fused(a, lower=_reads_lower(UPLO), symmetrize_input=bool(symmetrize_input))


@fused(static=("lower", "symmetrize_input"))
def _eigh_fused(a: Any, lower: bool, symmetrize_input: bool) -> Any:
    return _eigh(_square("eigh", a), lower, symmetrize_input)


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Ascending eigenvalues of Hermitian matrices.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float32)
    """
    return _eigvalsh(a, lower=_reads_lower(UPLO), symmetrize_input=bool(symmetrize_input))


@fused(static=("lower", "symmetrize_input"))
def _eigvalsh(a: Any, lower: bool, symmetrize_input: bool) -> Any:
    return eigenvalues(_square("eigvalsh", a), symmetrize_input, lower)


@fused
def eig(a: ArrayLike) -> Any:
    """Eigenvalues and eigenvectors of square matrices, both complex: `a @ v = v * w`.

    To differentiate eigenvectors, see `lax.linalg.eig`.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    w, v = ops.eig(
        _square("eig", a),
        compute_left_eigenvectors=False,
        compute_right_eigenvectors=True,
        enable_eigvec_derivs=False,
    )
    return EigResult(w, v)


@fused
def eigvals(a: ArrayLike) -> Array:
    """Eigenvalues of square matrices, complex.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    (w,) = ops.eig(
        _square("eigvals", a),
        compute_left_eigenvectors=False,
        compute_right_eigenvectors=False,
        enable_eigvec_derivs=False,
    )
    return w


# ---- Equations ----------------------------------------------------------------------------------


def solved(a: Any, b: Any, solve: Any = solving.solve) -> Any:
    """`solve(a, b)` for matrices with batch axes that broadcast; a `b` of one axis is a vector."""
    if b.ndim == 1:
        out = solved(a, reshape(b, new_sizes=(*b.shape, 1)), solve)
        return reshape(out, new_sizes=out.shape[:-1])
    if a.ndim == 2 and b.ndim > 2:
        # One matrix, many right-hand sides: they are more columns.
        batch = b.shape[:-2]
        flat = reshape(b, new_sizes=(math.prod(batch), *b.shape[-2:]))
        columns, count = beside(flat, 0)
        out, axis = apart(solve(a, columns), count)
        return reshape(move_axis(out, axis, 0), new_sizes=(*batch, *b.shape[-2:]))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (spread(x, (*batch, *x.shape[-2:])) for x in (a, b))
    return solve(a, b)


@fused
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The `x` with `a @ x = b`.

    Args:
      a: shape `(..., n, n)`.
      b: shape `(n,)`, or `(..., n, k)`; the batch axes broadcast.

    Returns:
      An array like `b`; of infinities and NaNs for a singular `a`.

    Errors:
      `ValueError` for an `a` that is not square, or where the sizes disagree.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 4.0]))
    Array([1., 1.], dtype=float32)
    """
    check_arraylike("solve", a, b)
    a, b = (as_array(x) for x in promote_dtypes("solve", a, b, to=dtypes.to_inexact_dtype))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"linalg.solve takes square matrices, got the shape {a.shape}")
    if not b.ndim or b.shape[-1 if b.ndim == 1 else -2] != a.shape[-1]:
        raise ValueError(
            f"linalg.solve: a matrix of shape {a.shape} does not fit a right-hand side of shape "
            f"{b.shape}"
        )
    return solved(a, b)


@fused
def inv(a: ArrayLike) -> Array:
    """The inverse of square matrices; of infinities and NaNs if there is none.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return solving.inverse(_square("inv", a))


def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """The pseudo-inverse of Moore and Penrose.

    Args:
      a: shape `(..., m, n)`.
      rtol: singular values up to this multiple of the greatest count as zero; by default
        `10 * max(m, n)` times the precision of the dtype. A number for each matrix, or for all.
      hermitian: use that the matrices are Hermitian.
      rcond: another name of `rtol`.

    Returns:
      Shape `(..., n, m)`. The derivative is that of Golub and Pereyra (1973), for changes that
      keep the rank.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.pinv(jnp.array([[2.0], [0.0]]))
    Array([[0.5, 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified; they are the same")
    return _pinv(a, rcond if rtol is None else rtol, hermitian=bool(hermitian))


@fused(static=("hermitian",))
def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    a = _matrices("pinv", a)
    dtype = np.dtype(dtypes.finfo(a.dtype).dtype)
    if rtol is None:
        rtol = dtype.type(10 * max(a.shape[-2:]) * float(dtypes.finfo(dtype).eps))
    rtol = spread(as_dtype(rtol, dtype), a.shape[:-2])
    return ops.pseudo_inverse(a, rtol, hermitian=hermitian)


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The `x` of least length among those with the least `|a @ x - b|`.

    Args:
      a: a matrix of shape `(m, n)`.
      b: shape `(m,)` or `(m, k)`.
      rcond: singular values below this multiple of the greatest count as zero; by default
        `max(m, n)` times the precision of the dtype.
      numpy_resid: give residuals only where NumPy does, which cannot be done while tracing.

    Returns:
      `x`; the sums of squared residuals, of shape `(1,)` or `(k,)`; the rank, int32; and the
      singular values of `a`.

    >>> import perspex.numpy as jnp
    >>> x, *_ = jnp.linalg.lstsq(jnp.array([[1.0], [0.0]]), jnp.array([2.0, 3.0]))
    >>> x
    Array([2.], dtype=float32)
    """
    x, residuals, rank, s = _lstsq(a, b, rcond)
    if numpy_resid:
        m, n = np.shape(a)
        empty = int(rank) < n or m <= n
        residuals = residuals[:0] if empty else residuals
    return x, residuals, rank, s


@fused
def _lstsq(a: Any, b: Any, rcond: Any) -> Any:
    check_arraylike("lstsq", a, b)
    a, b = (as_array(x) for x in promote_dtypes("lstsq", a, b, to=dtypes.to_inexact_dtype))
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise TypeError(
            f"linalg.lstsq takes a matrix and a vector or matrix, got the shapes {a.shape} and "
            f"{b.shape}; use vmap for a batch"
        )
    if a.shape[0] != b.shape[0]:
        raise ValueError(
            f"linalg.lstsq: both arguments must have as many rows, got shapes {a.shape}, {b.shape}"
        )
    is_vector = b.ndim == 1
    rows = b.reshape(-1, 1) if is_vector else b
    m, n = a.shape
    k = rows.shape[1]
    s, u, vh = ops.svd(
        a, full_matrices=False, compute_uv=True, subset_by_index=None, algorithm=None
    )
    if not a.size:
        x, rank = zeros(ShapedArray((n, k), a.dtype)), zeros(ShapedArray((), np.dtype("int32")))
        residuals = reductions.sum(ew.square(ew.abs(rows)), axis=0)
    else:
        eps = float(dtypes.finfo(s.dtype).eps)
        limit = as_dtype(eps * max(m, n) if rcond is None else rcond, s.dtype)
        if rcond is not None:
            limit = ew.select(ew.lt(limit, s.dtype.type(0)), s.dtype.type(eps), limit)
        kept = ew.ge(s, ew.mul(s[0], limit))
        rank = reductions.sum(convert(kept, np.dtype("int32")))
        safe = ew.select(kept, s, full_like(s, 1))
        scale = ew.select(kept, ew.div(full_like(s, 1), safe), full_like(s, 0))
        turned = ops.matrices.matmul(u, rows, "H")
        scaled = ew.mul(turned, as_dtype_of(in_rows(scale, turned.shape), turned))
        x = ops.matrices.matmul(vh, scaled, "H")
        gap = ew.sub(rows, ops.matrices.matmul(a, x))
        residuals = reductions.sum(ew.square(ew.abs(gap)), axis=0)
    return x.reshape(-1) if is_vector else x, residuals, rank, s


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The `x` with `tensordot(a, x, x.ndim) = b`.

    Args:
      a: its first axes are those of `b`, the others those of `x`.
      b: an array.
      axes: axes of `a` to move to the end first.

    Errors:
      `ValueError` where the sizes disagree.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.tensorsolve(2 * jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2)))
    Array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    check_arraylike("tensorsolve", a, b)
    a, b = (as_array(x) for x in promote_dtypes("tensorsolve", a, b, to=dtypes.to_inexact_dtype))
    if axes is not None:
        moved = tuple(operator.index(i) % a.ndim for i in axes)
        order = [i for i in range(a.ndim) if i not in moved]
        a = shaping.transpose(a, (*order, *moved))
    shape = a.shape[b.ndim :]
    if math.prod(a.shape[: b.ndim]) != math.prod(shape) or b.size != math.prod(shape):
        raise ValueError(
            f"linalg.tensorsolve: a of shape {a.shape} is not square for b of shape {b.shape}: "
            "the product of its first axes must be that of the others, and the size of b"
        )
    return solve(a.reshape(b.size, b.size), b.reshape(-1)).reshape(shape)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of the linear map that `tensordot` with the first `ind` axes of `a` is.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.tensorinv(jnp.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    a = as_array(inexact("tensorinv", a))
    ind = operator.index(ind)
    if ind <= 0:
        raise ValueError(f"linalg.tensorinv: ind must be a positive integer, got {ind}")
    first, last = a.shape[:ind], a.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise ValueError(
            f"linalg.tensorinv: the product of the first {ind} axes must be that of the others, "
            f"got the shape {a.shape}"
        )
    return inv(a.reshape(math.prod(first), -1)).reshape(*last, *first)


# ---- Numbers of a matrix ------------------------------------------------------------------------


@fused
def det(a: ArrayLike) -> Array:
    """The determinant of square matrices.

    Args:
      a: shape `(..., n, n)`.

    The gradient is the transposed adjugate, for singular matrices too.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    return ops.determinant(_square("det", a))


def slogdet(a: ArrayLike, *, method: str | None = None) -> Any:
    """The sign, or phase, of the determinant and the logarithm of its absolute value.

    Args:
      a: shape `(..., n, n)`.
      method: `"lu"`, or `"qr"`, which gives the same.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.slogdet(jnp.array([[1.0, 0.0], [0.0, -1.0]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method {method!r}: it must be None, 'lu' or 'qr'")
    return _slogdet(a)


@fused
def _slogdet(a: Any) -> Any:
    return SlogdetResult(*ops.slogdet(_square("slogdet", a)))


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sum of the diagonals of matrices, the last two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.trace(jnp.ones((3, 2, 2)))
    Array([2., 2., 2.], dtype=float32)
    """
    return reductions.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices, the last two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return grids.diagonal(x, offset=offset, axis1=-2, axis2=-1)


# ---- Products -----------------------------------------------------------------------------------


def matrix_power(a: ArrayLike, n: int) -> Array:
    """A square matrix to the power `n`, by squaring; a negative `n` inverts it first.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5)
    Array([[1, 5],
           [0, 1]], dtype=int32)
    """
    check_arraylike("matrix_power", a)
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"linalg.matrix_power: the exponent must be an integer, got {n}") from None
    if np.ndim(a) < 2 or np.shape(a)[-1] != np.shape(a)[-2]:
        raise TypeError(
            f"linalg.matrix_power: the last two axes must be square, got shape {np.shape(a)}"
        )
    return _matrix_power(a, n=n)


@fused(static=("n",))
def _matrix_power(a: Any, n: int) -> Any:
    a = as_array(a)
    if n == 0:
        return spread(grids.eye(a.shape[-1], dtype=a.dtype), a.shape)
    if n < 0:
        a, n = solving.inverse(inexact("matrix_power", a)), -n
    out = None
    while n:
        if n & 1:
            out = a if out is None else matmul(out, a)
        n >>= 1
        if n:
            a = matmul(a, a)
    return out


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The product of several matrices, in the order that takes the fewest multiplications.

    Args:
      arrays: matrices; the first and the last may be vectors.
      precision: how exactly accelerators multiply.

    Errors:
      `ValueError` for other arrays.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
    Array([12., 12.], dtype=float32)
    """
    check_arraylike("multi_dot", *arrays)
    xs = [as_array(x) for x in arrays]
    if len(xs) < 2:
        raise ValueError(f"linalg.multi_dot takes two arrays or more, got {len(xs)}")
    shapes = [x.shape for x in xs]
    middle = all(len(s) == 2 for s in shapes[1:-1])
    if not middle or any(len(s) not in (1, 2) for s in (shapes[0], shapes[-1])):
        raise ValueError(
            "linalg.multi_dot takes matrices, and vectors in the first and the last place; "
            f"got the shapes {shapes}"
        )
    sizes = [1 if len(shapes[0]) == 1 else shapes[0][0], *[s[0] for s in shapes[1:]]]
    sizes = [*sizes, 1 if len(shapes[-1]) == 1 else shapes[-1][1]]
    if any(x.shape[-1] != y.shape[0] for x, y in zip(xs, xs[1:], strict=False)):
        raise ValueError(
            "linalg.multi_dot: the last axis of each array must fit the first of the next; "
            f"got the shapes {shapes}"
        )
    return _multiplied(xs, _best_splits(sizes), 0, len(xs) - 1, precision)


def _best_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of matrices of which number `i` is `sizes[i]` by `sizes[i + 1]`."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    splits = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            cost[i, j], splits[i, j] = min(options)
    return splits


def _multiplied(xs: Sequence[Any], splits: Any, i: int, j: int, precision: Any) -> Any:
    if i == j:
        return xs[i]
    k = splits[i, j]
    left = _multiplied(xs, splits, i, k, precision)
    right = _multiplied(xs, splits, k + 1, j, precision)
    return matmul(left, right, precision=precision)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of all pairs of elements of two vectors.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    check_arraylike("outer", x1, x2)
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError(
            f"linalg.outer takes vectors, got the shapes {np.shape(x1)} and {np.shape(x2)}"
        )
    return products.outer(x1, x2)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The vector product of vectors of three components.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.cross(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
    Array([0., 0., 1.], dtype=float32)
    """
    check_arraylike("cross", x1, x2)
    sizes = [np.shape(x)[axis] for x in (x1, x2)]
    if sizes != [3, 3]:
        raise ValueError(f"linalg.cross takes vectors of three components, got sizes {sizes}")
    return products.cross(x1, x2, axis=axis)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Array:
    """The sum of products over some axes of both: see `numpy.tensordot`.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    if out_sharding is not None:
        raise NotImplementedError("linalg.tensordot: out_sharding is not available")
    return products.tensordot(
        x1, x2, axes=axes, precision=precision, preferred_element_type=preferred_element_type
    )


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The transposes of matrices, the last two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.matrix_transpose(jnp.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    return shaping.matrix_transpose(x)

"""Matrices with a pattern."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import arraylike, as_dtype, check_arraylike
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.numpy.promotion import inexact, promote_dtypes, strengthened
from perspex.ops.shape import pad

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler",
    "fiedler_companion", "hadamard", "hankel", "helmert", "hilbert", "invhilbert", "invpascal",
    "leslie", "pascal", "toeplitz",
]  # fmt: skip


def _vectors(name: str, operand: ArrayLike, least: int = 0) -> Array:
    x = pnp.atleast_1d(arraylike(name, operand))
    if x.shape[-1] < least:
        raise ValueError(
            f"{name}: the last axis must have at least {least} elements, got the shape {x.shape}"
        )
    return x


def _size(name: str, n: Any, least: int = 0) -> int:
    n = operator.index(n)
    if n < least:
        raise ValueError(f"{name}: n must be an integer of at least {least}, got {n}")
    return n


def block_diag(*arrs: ArrayLike) -> Array:
    """Matrix with the given ones along its diagonal, and zeros elsewhere.

    Args:
      *arrs: matrices; vectors are rows, numbers are matrices of one element.

    Returns:
      A matrix of the dtype to which the arguments promote; of shape `(1, 0)` without arguments.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: for arrays with more than two axes.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.block_diag(jnp.ones((1, 2)), 3.0)
    Array([[1., 1., 0.],
           [0., 0., 3.]], dtype=float32)
    """
    if not arrs:
        return pnp.zeros((1, 0))
    check_arraylike("block_diag", *arrs)
    if any(np.ndim(x) > 2 for x in arrs):
        raise ValueError(
            "block_diag takes arrays of at most two axes, got the shapes "
            f"{[np.shape(x) for x in arrs]}"
        )
    blocks = [pnp.atleast_2d(x) for x in promote_dtypes("block_diag", *arrs)]
    width = sum(x.shape[1] for x in blocks)
    rows, start = [], 0
    for x in blocks:
        config = ((0, 0, 0), (start, width - start - x.shape[1], 0))
        rows.append(pad(x, x.dtype.type(0), padding_config=config))
        start += x.shape[1]
    return pnp.concatenate(rows)


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrix that is constant along its diagonals: `t[i, j]` depends on `i - j`.

    Args:
      c: the first column, of shape `(..., m)`.
      r: the first row, of shape `(..., n)`; its first element is ignored. The conjugate of `c` if
        not given.

    Returns:
      An array of shape `(..., m, n)`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.toeplitz(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 1, 2],
           [3, 2, 1]], dtype=int32)
    """
    c = _vectors("toeplitz", c)
    r = pnp.conj(c) if r is None else _vectors("toeplitz", r)
    c, r = map(strengthened, promote_dtypes("toeplitz", c, r))
    m, n = c.shape[-1], r.shape[-1]
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = pnp.broadcast_to(c, (*batch, m)), pnp.broadcast_to(r, (*batch, n))
    values = pnp.concatenate([pnp.flip(c, -1), r[..., 1:]], axis=-1)
    places = np.arange(n)[None, :] - np.arange(m)[:, None] + m - 1
    return values[..., places]


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrix that is constant along its antidiagonals: `h[i, j]` depends on `i + j`.

    Args:
      c: the first column, of shape `(..., m)`.
      r: the last row, of shape `(..., n)`; its first element is ignored. Zeros if not given.

    Returns:
      An array of shape `(..., m, n)`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.hankel(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 3, 0],
           [3, 0, 0]], dtype=int32)
    """
    c = _vectors("hankel", c)
    r = pnp.zeros_like(c) if r is None else _vectors("hankel", r)
    c, r = map(strengthened, promote_dtypes("hankel", c, r))
    m, n = c.shape[-1], r.shape[-1]
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = pnp.broadcast_to(c, (*batch, m)), pnp.broadcast_to(r, (*batch, n))
    values = pnp.concatenate([c, r[..., 1:]], axis=-1)
    return values[..., np.arange(m)[:, None] + np.arange(n)[None, :]]


def circulant(c: ArrayLike) -> Array:
    """Matrix whose columns are the first one, shifted cyclically.

    Args:
      c: the first column, of shape `(..., n)`.

    Returns:
      An array of shape `(..., n, n)` of the dtype of `c`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    c = _vectors("circulant", c)
    n = c.shape[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)[None, :]) % max(n, 1)]


def companion(a: ArrayLike) -> Array:
    """Matrix whose eigenvalues are the roots of a polynomial.

    Args:
      a: at least two coefficients, the highest power first, of shape `(..., n)`.

    Returns:
      An array of shape `(..., n - 1, n - 1)`, of floating or complex dtype.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for fewer than two coefficients.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    a = pnp.asarray(_vectors("companion", a, 2))
    a = a.astype(dtypes.to_inexact_dtype(a.dtype))
    first = -a[..., 1:] / a[..., :1]
    n = first.shape[-1]
    rest = pnp.broadcast_to(pnp.eye(n - 1, n, dtype=a.dtype), (*first.shape[:-1], n - 1, n))
    return pnp.concatenate([first[..., None, :], rest], axis=-2)


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Matrix whose product with a vector of `n` elements convolves it with `a`.

    Args:
      a: vectors of shape `(..., k)`, not empty.
      n: the size of the vectors to convolve, at least 1.
      mode: `"full"`, `"same"` or `"valid"`, as for `numpy.convolve`.

    Returns:
      An array of shape `(..., size, n)` of the dtype of `a`, where `size` is `n + k - 1` for
      `"full"`.

    Raises:
      TypeError: if `a` is not an array or a number, or `n` not an integer.
      ValueError: for an empty `a`, an `n` below 1, and another `mode`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    n = _size("convolution_matrix", n, 1)
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}")
    a = _vectors("convolution_matrix", a, 1)
    k = a.shape[-1]
    zeros = pnp.zeros((*a.shape[:-1], n - 1), a.dtype)
    full = toeplitz(
        pnp.concatenate([a, zeros], axis=-1), pnp.concatenate([a[..., :1], zeros], axis=-1)
    )
    if mode == "full":
        return full
    length = max(n, k) if mode == "same" else max(n, k) - min(n, k) + 1
    start = (n + k - 1 - length) // 2 if mode == "same" else min(n, k) - 1
    return full[..., start : start + length, :]


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Matrix of the discrete Fourier transform: `exp(-2j * pi * j * k / n)`.

    Args:
      n: the size, an integer.
      scale: `"sqrtn"` divides by the root of `n`, `"n"` by `n`.
      dtype: a complex dtype; by default the default one.

    Returns:
      A complex matrix of shape `(n, n)`.

    Raises:
      TypeError: if `n` is not an integer.
      ValueError: if `n` is negative, and for another `scale`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> jnp.real(linalg.dft(2))
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    n = _size("dft", n)
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}")
    turns = np.outer(np.arange(n), np.arange(n)) % max(n, 1)
    values = np.exp(-2j * np.pi * turns / max(n, 1))
    values /= {None: 1, "sqrtn": math.sqrt(max(n, 1)), "n": max(n, 1)}[scale]
    return pnp.asarray(values, dtype=complex if dtype is None else dtype)


def fiedler(a: ArrayLike) -> Array:
    """Distances `abs(a[i] - a[j])` of all pairs of numbers.

    Args:
      a: vectors of shape `(..., n)`.

    Returns:
      An array of shape `(..., n, n)`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    a = _vectors("fiedler", a)
    return pnp.abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """Matrix of five diagonals whose eigenvalues are the roots of a polynomial.

    Args:
      a: coefficients of shape `(..., n)`, the highest power first.

    Returns:
      An array of shape `(..., n - 1, n - 1)`, of floating or complex dtype.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: if there are no coefficients.

    References:
      M. Fiedler, "A note on companion matrices" (2003).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.fiedler_companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    a = inexact("fiedler_companion", _vectors("fiedler_companion", a, 1))
    n = a.shape[-1] - 1
    if n < 2:
        return -(a[..., 1:] / a[..., :1]).reshape(*a.shape[:-1], n, n)
    # Each even row has two coefficients; ones stand two places beside the diagonal.
    even = np.arange(0, n, 2)
    left = [(r, max(r - 1, 0), r + 1) for r in even]
    right = [(r, r + 1, r + 2) for r in even if r + 1 < n]
    rows, columns, which = np.array(left + right).T
    ones = np.zeros((n, n))
    for r in range(n):
        place = r + 2 if r % 2 == 0 else max(r - 2, 0)
        if place < n:
            ones[r, place] = 1
    start = pnp.broadcast_to(pnp.asarray(ones, dtype=a.dtype), (*a.shape[:-1], n, n))
    return start.at[..., rows, columns].set(-a[..., which] / a[..., :1])


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Sylvester's matrix of ones and minus ones with orthogonal columns.

    Args:
      n: the size, a power of two.
      dtype: the dtype of the result; by default the default integer one.

    Returns:
      A matrix of shape `(n, n)`.

    Raises:
      TypeError: if `n` is not an integer.
      ValueError: if `n` is not a positive power of two.

    >>> from perspex.scipy import linalg
    >>> linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = operator.index(n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    out = np.ones((1, 1), int)
    while len(out) < n:
        out = np.block([[out, out], [out, -out]])
    return pnp.asarray(out, dtype=dtype)


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix: orthonormal rows that compare an element with the mean of those before.

    Args:
      n: the number of columns, at least 1.
      full: return the constant row too, first.

    Returns:
      A matrix of shape `(n - 1, n)`, or `(n, n)`, of the default floating dtype.

    Raises:
      TypeError: if `n` is not an integer.
      ValueError: if `n` is below 1.

    >>> from perspex.scipy import linalg
    >>> linalg.helmert(2)
    Array([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    n = _size("helmert", n, 1)
    out = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    out[0] = 1
    sizes = np.arange(n) * np.arange(1, n + 1)
    sizes[0] = n
    out = out / np.sqrt(sizes)[:, None]
    return pnp.asarray(out if full else out[1:], dtype=float)


def hilbert(n: int) -> Array:
    """Hilbert's ill-conditioned matrix of the elements `1 / (i + j + 1)`.

    Args:
      n: the size, an integer.

    Returns:
      A matrix of shape `(n, n)`, of the default floating dtype.

    Raises:
      TypeError: if `n` is not an integer.
      ValueError: if `n` is negative.

    >>> from perspex.scipy import linalg
    >>> linalg.hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    i = np.arange(_size("hilbert", n))
    return pnp.asarray(1 / (i[:, None] + i[None, :] + 1), dtype=float)


def invhilbert(n: int) -> Array:
    """Inverse of `hilbert(n)`, whose elements are integers.

    Args:
      n: the size, an integer.

    Returns:
      A matrix of shape `(n, n)`, of the default floating dtype.

    Raises:
      TypeError: if `n` is not an integer.
      ValueError: if `n` is negative.

    >>> from perspex.scipy import linalg
    >>> linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    n = _size("invhilbert", n)
    values = [
        [
            (-1) ** (i + j)
            * (i + j + 1)
            * math.comb(n + i, n - j - 1)
            * math.comb(n + j, n - i - 1)
            * math.comb(i + j, i) ** 2
            for j in range(n)
        ]
        for i in range(n)
    ]
    return pnp.asarray(np.array(values, float).reshape(n, n), dtype=float)


def _kind(kind: str | None) -> str:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(f"kind must be 'symmetric', 'lower' or 'upper'; got {kind!r}")
    return kind or "symmetric"


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's triangle as a matrix: binomial coefficients.

    Args:
      n: the size, an integer.
      kind: `"symmetric"`, which is the default, `"lower"` or `"upper"` triangular.

    Returns:
      A matrix of shape `(n, n)`, of the default floating dtype.

    Raises:
      TypeError: if `n` is not an integer.
      ValueError: if `n` is negative, and for another `kind`.

    >>> from perspex.scipy import linalg
    >>> linalg.pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    kind, n = _kind(kind), _size("pascal", n)
    lower = [[math.comb(i, j) for j in range(n)] for i in range(n)]
    values = np.array(lower, float).reshape(n, n)
    if kind == "symmetric":
        both = [[math.comb(i + j, i) for j in range(n)] for i in range(n)]
        values = np.array(both, float).reshape(n, n)
    return pnp.asarray(values.T if kind == "upper" else values, dtype=float)


def invpascal(n: int, kind: str | None = None) -> Array:
    """Inverse of `pascal(n, kind)`, whose elements are integers.

    Args:
      n: the size, an integer.
      kind: `"symmetric"`, which is the default, `"lower"` or `"upper"` triangular.

    Returns:
      A matrix of shape `(n, n)`, of the default floating dtype.

    Raises:
      TypeError: if `n` is not an integer.
      ValueError: if `n` is negative, and for another `kind`.

    >>> from perspex.scipy import linalg
    >>> linalg.invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    kind, n = _kind(kind), _size("invpascal", n)
    lower = [[(-1) ** (i + j) * math.comb(i, j) for j in range(n)] for i in range(n)]
    values = np.array(lower, float).reshape(n, n)
    if kind == "symmetric":
        values = values.T @ values
    return pnp.asarray(values.T if kind == "upper" else values, dtype=float)


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie's matrix, which takes a population by age from one time to the next.

    Args:
      f: the fecundities, of shape `(..., n)`.
      s: the fractions that survive, of shape `(..., n - 1)`.

    Returns:
      An array of shape `(..., n, n)`, of the dtype to which `f` and `s` promote.

    Raises:
      TypeError: if `f` or `s` is not an array or a number.
      ValueError: for shapes that do not fit.

    References:
      P. H. Leslie, "On the use of matrices in certain population mathematics" (1945).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.leslie(jnp.array([0.1, 2.0]), jnp.array([0.5]))
    Array([[0.1, 2. ],
           [0.5, 0. ]], dtype=float32)
    """
    f, s = (pnp.atleast_1d(x) for x in promote_dtypes("leslie", f, s))
    n = f.shape[-1]
    if s.shape[-1] != n - 1:
        raise ValueError(
            f"leslie: s must have one element fewer than f; got the shapes {s.shape} and {f.shape}"
        )
    batch = np.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    f, s = pnp.broadcast_to(f, (*batch, n)), pnp.broadcast_to(s, (*batch, n - 1))
    out = pnp.zeros((*batch, n, n), f.dtype).at[..., 0, :].set(f)
    out = out.at[..., np.arange(1, n), np.arange(n - 1)].set(s)
    return as_dtype(out, f.dtype, f.aval.weak_type)


describe(
    (toeplitz, hankel, circulant, fiedler),
    {},
    "TypeError: if an argument is not an array or a number.",
)

"""Matrices with a pattern, made of a few numbers."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from perspex import numpy as pnp
from perspex.numpy.promotion import Array, ArrayLike, arraylike, check_arraylike, promote_dtypes


def _vectors(name: str, x: ArrayLike, least: int = 0) -> Any:
    x = pnp.atleast_1d(arraylike(name, x))
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
    """A matrix with the given ones along its diagonal.

    Args:
      arrs: matrices; vectors are rows, numbers are matrices of one element.

    Errors:
      `ValueError` for arrays with more axes.

    >>> block_diag(pnp.ones((1, 2)), 3.0)
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
        rows.append(pnp.pad(x, ((0, 0), (start, width - start - x.shape[1]))))
        start += x.shape[1]
    return pnp.concatenate(rows)


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """A matrix that is constant along its diagonals.

    Args:
      c: the first column, shape `(..., m)`.
      r: the first row, shape `(..., n)`, of which the first element is not looked at; by default
        the conjugate of `c`.

    >>> toeplitz(pnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 1, 2],
           [3, 2, 1]], dtype=int32)
    """
    c = _vectors("toeplitz", c)
    r = pnp.conj(c) if r is None else _vectors("toeplitz", r)
    m, n = c.shape[-1], r.shape[-1]
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = pnp.broadcast_to(c, (*batch, m)), pnp.broadcast_to(r, (*batch, n))
    values = pnp.concatenate([pnp.flip(c, -1), r[..., 1:]], axis=-1)
    places = np.arange(n)[None, :] - np.arange(m)[:, None] + m - 1
    return values[..., places]


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """A matrix that is constant along the diagonals that go up.

    Args:
      c: the first column, shape `(..., m)`.
      r: the last row, shape `(..., n)`, of which the first element is not looked at; by default
        zeros.

    >>> hankel(pnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 3, 0],
           [3, 0, 0]], dtype=int32)
    """
    c = _vectors("hankel", c)
    r = pnp.zeros_like(c) if r is None else _vectors("hankel", r)
    m, n = c.shape[-1], r.shape[-1]
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = pnp.broadcast_to(c, (*batch, m)), pnp.broadcast_to(r, (*batch, n))
    values = pnp.concatenate([c, r[..., 1:]], axis=-1)
    return values[..., np.arange(m)[:, None] + np.arange(n)[None, :]]


def circulant(c: ArrayLike) -> Array:
    """A matrix whose columns are the first one, `c` of shape `(..., n)`, turned round.

    >>> circulant(pnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    c = _vectors("circulant", c)
    n = c.shape[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)[None, :]) % max(n, 1)]


def companion(a: ArrayLike) -> Array:
    """The matrix whose eigenvalues are the roots of a polynomial.

    Args:
      a: coefficients, the highest power first, shape `(..., n)`, at least two.

    >>> companion(pnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    a = pnp.asarray(_vectors("companion", a, 2))
    a = a if pnp.issubdtype(a.dtype, pnp.inexact) else a.astype(float)
    first = -a[..., 1:] / a[..., :1]
    n = first.shape[-1]
    rest = pnp.broadcast_to(pnp.eye(n - 1, n, dtype=a.dtype), (*first.shape[:-1], n - 1, n))
    return pnp.concatenate([first[..., None, :], rest], axis=-2)


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix that convolves a vector of `n` elements with `a`, of shape `(..., k)`.

    Args:
      mode: `"full"`, `"same"` or `"valid"`, as for `numpy.convolve`.

    >>> convolution_matrix(pnp.array([1, 2]), 2)
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


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Array:
    """The matrix of the discrete Fourier transform of `n` numbers.

    Args:
      scale: `"sqrtn"` divides by the root of `n`, `"n"` by `n`.
      dtype: complex; complex128 by default where that is enabled.

    >>> pnp.real(dft(2))
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
    """The distances `|a[i] - a[j]|` of all pairs of numbers of `a`, shape `(..., n)`.

    >>> fiedler(pnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    a = _vectors("fiedler", a)
    return pnp.abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """A matrix of five diagonals whose eigenvalues are the roots of a polynomial.

    Args:
      a: a vector of coefficients, the highest power first.

    >>> fiedler_companion(pnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    a = pnp.asarray(_vectors("fiedler_companion", a))
    if a.ndim != 1:
        raise ValueError(f"fiedler_companion takes a vector, got the shape {a.shape}")
    a = a if pnp.issubdtype(a.dtype, pnp.inexact) else a.astype(float)
    n = max(a.size - 1, 0)
    if n < 2:
        return -(a[1:] / a[0]).reshape(n, n)
    # Two coefficients in each even row, and a one in the next but one column and row.
    even = np.arange(0, n, 2)
    left = [(r, max(r - 1, 0), r + 1) for r in even]
    right = [(r, r + 1, r + 2) for r in even if r + 1 < n]
    rows, columns, which = np.array(left + right).T
    ones = np.zeros((n, n))
    for r in range(n):
        place = r + 2 if r % 2 == 0 else max(r - 2, 0)
        if place < n:
            ones[r, place] = 1
    return pnp.asarray(ones, dtype=a.dtype).at[rows, columns].set(-a[which] / a[0])


def hadamard(n: int, dtype: Any = int) -> Array:
    """Sylvester's matrix of ones and minus ones with orthogonal columns; `n` is a power of two.

    >>> hadamard(2)
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
    """A matrix with orthonormal rows, each against the mean of those before.

    Args:
      full: with the constant row first.

    >>> helmert(2)
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
    """The ill-conditioned matrix of `1 / (i + j + 1)`.

    >>> hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    i = np.arange(_size("hilbert", n))
    return pnp.asarray(1 / (i[:, None] + i[None, :] + 1), dtype=float)


def invhilbert(n: int) -> Array:
    """The inverse of `hilbert(n)`, whose elements are integers.

    >>> invhilbert(2)
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
    """Pascal's triangle as a matrix.

    Args:
      kind: `"symmetric"`, which is the default, `"lower"` or `"upper"` triangular.

    >>> pascal(3)
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
    """The inverse of `pascal(n, kind)`.

    >>> invpascal(2)
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
    """The matrix of a population by age.

    Args:
      f: fecundities, shape `(..., n)`.
      s: the fractions that survive, shape `(..., n - 1)`.

    >>> leslie(pnp.array([0.1, 2.0]), pnp.array([0.5]))
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
    return out.at[..., np.arange(1, n), np.arange(n - 1)].set(s)

"""Discrete cosine transforms of type 2 and their inverses, as in `scipy.fft`.

    y[k] = 2 sum over j of x[j] cos(pi k (2 j + 1) / (2 n))

They take one real Fourier transform of the same size, of the elements with even indices followed by
those with odd indices in reverse order: Makhoul, "A fast cosine transform in one and two
dimensions" (1980).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import arraylike
from perspex.arguments.axes import canonical_axes, canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.shapes import positive_sizes
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy import fft as nfft

__all__ = ["dct", "dctn", "idct", "idctn"]


def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Discrete cosine transform of type 2 along an axis.

    `y[k] = 2 * sum(x[j] * cos(pi * k * (2 * j + 1) / (2 * n)))`, summed over `j`.

    Args:
      n: the size to transform, to which `x` is cut or filled up with zeros; that of `x` if not
        given.
      axis: the axis to transform.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import fft
    >>> fft.dct(jnp.array([1.0, 1.0]))
    Array([4., 0.], dtype=float32)
    """
    return _along("dct", x, type, n, axis, norm, False)


def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Inverse of `dct`.

    Args:
      n: the size of the result, to which `x` is cut or filled up with zeros; that of `x` if not
        given.
      axis: the axis to transform.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import fft
    >>> fft.idct(jnp.array([4.0, 0.0]))
    Array([1., 1.], dtype=float32)
    """
    return _along("idct", x, type, n, axis, norm, True)


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Discrete cosine transform of type 2 along several axes, one after another.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import fft
    >>> fft.dctn(jnp.ones((2, 2)))
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    return _several("dctn", x, type, s, axes, norm, False)


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Inverse of `dctn`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import fft
    >>> fft.idctn(fft.dctn(jnp.ones((2, 2))))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _several("idctn", x, type, s, axes, norm, True)


def _check(name: str, kind: Any, norm: str | None) -> bool:
    """Whether the transform is to be orthogonal."""
    if kind != 2:
        raise NotImplementedError(f"{name}: only type 2 is implemented, got type={kind}")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"{name}: norm={norm!r} is not implemented; it is None or 'ortho'")
    return norm == "ortho"


def _along(
    name: str, x: Any, kind: Any, n: Any, axis: Any, norm: str | None, inverse: bool
) -> Array:
    ortho = _check(name, kind, norm)
    x = arraylike(name, x)
    place = canonical_axis(axis, x.ndim)
    size = x.shape[place] if n is None else n
    return _transformed(x, positive_sizes(name, (size,)), (place,), ortho, inverse)


def _several(
    name: str, x: Any, kind: Any, s: Any, axes: Any, norm: str | None, inverse: bool
) -> Array:
    ortho = _check(name, kind, norm)
    x = arraylike(name, x)
    sizes = None if s is None else positive_sizes(name, s)
    if axes is None and sizes is not None:
        axes = range(-len(sizes), 0)
    places = canonical_axes(axes if axes is None or isinstance(axes, int) else tuple(axes), x.ndim)
    if sizes is None:
        sizes = tuple([x.shape[axis] for axis in places])
    if len(sizes) != len(places):
        raise ValueError(f"{name}: s={sizes} and axes={axes} must have equal lengths")
    return _transformed(x, positive_sizes(name, sizes), places, ortho, inverse)


@fused(static=("sizes", "axes", "ortho", "inverse"))
def _transformed(
    x: Any, sizes: tuple[int, ...], axes: tuple[int, ...], ortho: bool, inverse: bool
) -> Any:
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        parts = [_transformed(part, sizes, axes, ortho, inverse) for part in (x.real, x.imag)]
        return parts[0] + 1j * parts[1]
    x = x.astype(np.promote_types(dtypes.to_inexact_dtype(x.dtype), np.float32))
    for n, axis in zip(sizes, axes, strict=True):
        x = pnp.moveaxis(x, axis, -1)[..., :n]
        if x.shape[-1] < n:
            x = pnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])
        x = pnp.moveaxis((_inverse if inverse else _forward)(x, n, ortho), -1, axis)
    return x


def _turns(x: Any, n: int, sign: int) -> Any:
    """`exp(sign i pi k / (2 n))` for the frequencies k that a real transform has."""
    k = pnp.arange(n // 2 + 1, dtype=x.real.dtype)
    return pnp.exp(sign * 0.5j * np.pi / n * k)


def _scales(n: int, dtype: Any) -> Any:
    """Factors that make the plain transform orthogonal."""
    return pnp.where(pnp.arange(n) == 0, (4 * n) ** -0.5, (2 * n) ** -0.5).astype(dtype)


def _forward(x: Any, n: int, ortho: bool) -> Any:
    v = pnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1)
    w = nfft.rfft(v)
    w = w * _turns(w, n, -1)
    # The real parts are the first half; the imaginary parts, reversed, are the rest.
    rest = -w.imag[..., 1 : (n + 1) // 2]
    y = 2 * pnp.concatenate([w.real, rest[..., ::-1]], -1)
    return y * _scales(n, y.dtype) if ortho else y


def _inverse(y: Any, n: int, ortho: bool) -> Any:
    y = y / _scales(n, y.dtype) if ortho else y
    # Frequency k pairs with n - k; frequency 0 has no partner.
    mirror = pnp.concatenate([pnp.zeros_like(y[..., :1]), y[..., 1:][..., ::-1]], -1)
    half = n // 2 + 1
    w = 0.5 * (y[..., :half] - 1j * mirror[..., :half])
    v = nfft.irfft(w * _turns(w, n, 1), n)
    even, odd = v[..., : (n + 1) // 2], v[..., (n + 1) // 2 :][..., ::-1]
    if n % 2:
        odd = pnp.concatenate([odd, pnp.zeros_like(even[..., :1])], -1)
    x = pnp.stack([even, odd], -1)
    return x.reshape(*x.shape[:-2], 2 * x.shape[-2])[..., :n]


describe(
    (dct, idct, dctn, idctn),
    {
        "x": "an array of numbers; integers are converted to floats.",
        "type": "2, the only one there is.",
        "s": "the size along each of `axes`, as `n` of `dct`.",
        "axes": "the axes to transform; the last `len(s)`, or all of them, if not given.",
        "norm": '`"ortho"` for an orthogonal transform; `None` or `"backward"` for plain sums.',
    },
    "TypeError: if `x` is not an array or a number.\n"
    "ValueError: for another `norm`, sizes below 1 or that do not fit, and axes out of range.\n"
    "NotImplementedError: for another `type`.",
    "An array of the transformed sizes, of floating or complex dtype of at least 32 bits.",
)

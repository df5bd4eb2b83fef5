"""Discrete Fourier transforms, as in `numpy.fft`.

Integers and half floats are computed in float32. All of these are linear, and each is one operation
of XLA: DUCC on CPUs, cuFFT on GPUs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike
from perspex.arguments.axes import canonical_axes, canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.shapes import positive_sizes
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Placement
from perspex.jitted.fused import fused
from perspex.numpy import words
from perspex.numpy.arithmetic import conj, divide
from perspex.numpy.axes import moveaxis
from perspex.numpy.creation import astype
from perspex.numpy.ranges import arange
from perspex.numpy.scalars import float64, result_type
from perspex.numpy.selection import where
from perspex.numpy.turning import roll
from perspex.ops import fft as ops
from perspex.ops.elementwise import complex_dtype, mul
from perspex.ops.fft import FftType
from perspex.ops.shape import pad, slice
from perspex.ops.structural import convert, zeros_like
from perspex.tracing.trace import typeof

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

Sizes = Sequence[int] | None
_SWAPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


# ---- One axis -----------------------------------------------------------------------------------


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along an axis.

    Returns:
      Complex numbers, frequency zero first, then the positive and the negative ones.

    >>> import perspex.numpy as jnp
    >>> fft(jnp.array([1.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _along("fft", FftType.FFT, a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `fft`.

    Returns:
      Complex numbers.

    >>> import perspex.numpy as jnp
    >>> ifft(jnp.array([3.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _along("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The transform of real numbers along an axis: the frequencies that are not negative.

    Args:
      a: an array of real numbers.

    Returns:
      Complex numbers, `n // 2 + 1` along the axis.

    >>> import perspex.numpy as jnp
    >>> rfft(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _along("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft`.

    Returns:
      Real numbers; without `n`, an even number `2 (m - 1)` of them for `m` frequencies.

    >>> import perspex.numpy as jnp
    >>> irfft(jnp.array([10.0, -2.0 + 2.0j, -2.0]))
    Array([1., 2., 3., 4.], dtype=float32)
    """
    return _along("irfft", FftType.IRFFT, a, n, axis, norm)


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The transform of numbers whose transform is real: `a` holds the half that is not negative.

    Returns:
      Real numbers; without `n`, an even number `2 (m - 1)` of them for `m` numbers.

    >>> import perspex.numpy as jnp
    >>> hfft(jnp.array([1.0, 2.0, 1.0]))
    Array([ 6.,  0., -2.,  0.], dtype=float32)
    """
    swapped = _SWAPPED[_norm(norm)]
    return _along("hfft", FftType.IRFFT, conj(arraylike("hfft", a)), n, axis, swapped)


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`.

    Args:
      a: an array of real numbers.

    Returns:
      Complex numbers, `n // 2 + 1` along the axis.

    >>> import perspex.numpy as jnp
    >>> ihfft(jnp.array([6.0, 0.0, -2.0, 0.0])).real
    Array([1., 2., 1.], dtype=float32)
    """
    x = arraylike("ihfft", a)
    out = conj(_along("ihfft", FftType.RFFT, x, n, axis, "backward"))
    return _scaled(out, FftType.RFFT, n or x.shape[axis], _SWAPPED[_norm(norm)])


# ---- Several axes -------------------------------------------------------------------------------


def fft2(
    a: ArrayLike, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The transform along two axes.

    Args:
      axes: the two axes.

    Returns:
      Complex numbers.

    >>> import perspex.numpy as jnp
    >>> fft2(jnp.eye(2))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 2.+0.j]], dtype=complex64)
    """
    return _two("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(
    a: ArrayLike, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of `fft2`.

    Args:
      axes: the two axes.

    Returns:
      Complex numbers.

    >>> import perspex.numpy as jnp
    >>> ifft2(2 * jnp.eye(2))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _two("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(
    a: ArrayLike, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The transform of real numbers along two axes, half of it along the last one.

    Args:
      a: an array of real numbers.
      axes: the two axes.

    Returns:
      Complex numbers, `n // 2 + 1` along the last of the axes.

    >>> import perspex.numpy as jnp
    >>> rfft2(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return _two("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(
    a: ArrayLike, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of `rfft2`.

    Args:
      axes: the two axes.

    Returns:
      Real numbers.

    >>> import perspex.numpy as jnp
    >>> irfft2(rfft2(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return _two("irfft2", FftType.IRFFT, a, s, axes, norm)


def fftn(
    a: ArrayLike, s: Sizes = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The transform along several axes.

    Returns:
      Complex numbers.

    >>> import perspex.numpy as jnp
    >>> fftn(jnp.ones((2, 2, 2)))[0, 0]
    Array([8.+0.j, 0.+0.j], dtype=complex64)
    """
    return _several("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(
    a: ArrayLike, s: Sizes = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of `fftn`.

    Returns:
      Complex numbers.

    >>> import perspex.numpy as jnp
    >>> ifftn(jnp.ones((2, 2, 2)))[0, 0]
    Array([1.+0.j, 0.+0.j], dtype=complex64)
    """
    return _several("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(
    a: ArrayLike, s: Sizes = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The transform of real numbers along several axes, half of it along the last one.

    Args:
      a: an array of real numbers.

    Returns:
      Complex numbers, `n // 2 + 1` along the last of the axes.

    >>> import perspex.numpy as jnp
    >>> rfftn(jnp.ones((2, 2, 6))).shape
    (2, 2, 4)
    """
    return _several("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(
    a: ArrayLike, s: Sizes = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of `rfftn`.

    Returns:
      Real numbers.

    >>> import perspex.numpy as jnp
    >>> irfftn(rfftn(jnp.ones((2, 2, 6)))).shape
    (2, 2, 6)
    """
    return _several("irfftn", FftType.IRFFT, a, s, axes, norm)


# ---- Frequencies --------------------------------------------------------------------------------


def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Placement = None
) -> Array:
    """The frequencies that belong to the results of `fft`.

    Returns:
      `n` numbers in cycles for each unit of `d`, in the order of `fft`.

    >>> fftfreq(4, 0.5)
    Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """
    count = _count(n)
    return _frequencies(count, False, d, _freq_dtype(dtype, d), device)


def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Placement = None
) -> Array:
    """The frequencies that belong to the results of `rfft`.

    Returns:
      `n // 2 + 1` numbers in cycles for each unit of `d`.

    >>> rfftfreq(4, 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    count = _count(n)
    return _frequencies(count, True, d, _freq_dtype(dtype, d), device)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The array with frequency zero moved to the middle.

    Returns:
      An array of the shape and dtype of `x`.

    >>> fftshift(fftfreq(4, 0.5))
    Array([-1. , -0.5,  0. ,  0.5], dtype=float32)
    """
    x = arraylike("fftshift", x)
    return _shift(x, canonical_axes(axes, x.ndim), False)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`: frequency zero from the middle to the front.

    Returns:
      An array of the shape and dtype of `x`.

    >>> import perspex.numpy as jnp
    >>> ifftshift(jnp.array([-1, 0, 1]))
    Array([ 0,  1, -1], dtype=int32)
    """
    x = arraylike("ifftshift", x)
    return _shift(x, canonical_axes(axes, x.ndim), True)


@fused(static=("axes", "back"))
def _shift(x: Any, axes: tuple[int, ...], back: bool) -> Any:
    sizes = [x.shape[axis] for axis in axes]
    shifts = tuple([-(n // 2) if back else n // 2 for n in sizes])
    return roll(x, shifts, axes) if axes else x


def _count(n: Any) -> int:
    try:
        return operator.index(n)
    except TypeError:
        raise ValueError(f"n should be an integer, got {n!r}") from None


def _freq_dtype(dtype: Any, d: Any) -> Any:
    if dtype is None:
        found = typeof(d).dtype
        inexact = dtypes.issubdtype(found, np.inexact) and hasattr(d, "dtype")
        return result_type(float, found) if inexact else dtypes.canonicalize_dtype(float64)
    return dtypes.check_user_dtype(dtype, "fftfreq")


def _frequencies(n: int, half: bool, d: Any, dtype: Any, device: Any) -> Any:
    count = (n // 2 + 1 if n >= 0 else 0) if half else n
    k = arange(max(count, 0), device=device)
    if not half:
        k = where(k < (n + 1) // 2, k, k - n)
    return divide(astype(k, dtype), astype(d * n, dtype)).astype(dtype)


describe(
    (fft, ifft, irfft, hfft, fft2, ifft2, irfft2, fftn, ifftn, irfftn),
    words.TRANSFORMED,
    words.NO_TRANSFORM,
)
describe(
    (rfft, ihfft, rfft2, rfftn),
    words.TRANSFORMED,
    words.NO_TRANSFORM + "\nValueError: for complex numbers.",
)
describe(
    (fftfreq, rfftfreq),
    {
        "n": "how many samples there are.",
        "d": "how far they are apart, a scalar.",
        "dtype": "the dtype of the result; the default float dtype if not given.",
        "device": words.SHAPE["device"],
    },
    "ValueError: for an `n` that is traced or not an integer.\nTypeError: for a wrong `dtype`.",
)
describe(
    (fftshift, ifftshift),
    {"x": "an array.", "axes": "the axes to shift; None shifts all."},
    "TypeError: for lists.\nValueError: for axes that do not exist or come twice.",
)


# ---- The transform ------------------------------------------------------------------------------


def _norm(norm: str | None) -> str:
    found = "backward" if norm is None else norm
    if found not in _SWAPPED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return found


def _along(name: str, kind: FftType, a: Any, n: Any, axis: Any, norm: str | None) -> Any:
    x = arraylike(name, a)
    if isinstance(axis, (tuple, list)):
        raise ValueError(
            f"{name} does not support multiple axes, got axis={axis}; use {name}n for several"
        )
    sizes = None if n is None else positive_sizes(name, (n,))
    return _transformed(x, kind, sizes, (canonical_axis(axis, x.ndim),), _norm(norm))


def _two(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: str | None) -> Any:
    axes = tuple(axes)
    if len(axes) != 2:
        raise ValueError(f"{name} only supports 2 axes, got axes={axes}; use {name[:-1]}n")
    return _several(name, kind, a, s, axes, norm)


def _several(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: str | None) -> Any:
    x = arraylike(name, a)
    how = _norm(norm)
    sizes = None if s is None else positive_sizes(name, s)
    if axes is None:
        count = x.ndim if sizes is None else len(sizes)
        if count > x.ndim:
            raise ValueError(
                f"{name}: shape {x.shape} has fewer axes than there are sizes in s={sizes}"
            )
        found = tuple(range(x.ndim - count, x.ndim))
    else:
        found = canonical_axes(tuple(axes), x.ndim)
    if sizes is not None and len(sizes) != len(found):
        raise ValueError(
            f"{name}: Shape and axes have different lengths: s={sizes} and axes={axes}"
        )
    return _transformed(x, kind, sizes, found, how)


@fused(static=("kind", "sizes", "axes", "norm"))
def _transformed(x: Any, kind: FftType, sizes: Any, axes: tuple[int, ...], norm: str) -> Any:
    dtype = dtypes.to_inexact_dtype(x.dtype)
    is_complex = dtypes.issubdtype(dtype, np.complexfloating)
    if kind is FftType.RFFT:
        if is_complex:
            raise ValueError("only real valued inputs supported for rfft; take the fft, or x.real")
    elif not is_complex:
        dtype = complex_dtype(dtype)
    x = convert(x, dtype)
    if not axes:
        return x
    if sizes is None:
        sizes = tuple([x.shape[axis] for axis in axes])
        if kind is FftType.IRFFT:
            sizes = (*sizes[:-1], max(0, 2 * (sizes[-1] - 1)))
    count = len(axes)
    last = tuple(range(x.ndim - count, x.ndim))
    x = moveaxis(x, axes, last) if axes != last else x
    given = sizes
    if kind is FftType.IRFFT:
        given = (*sizes[:-1], sizes[-1] // 2 + 1 if sizes[-1] else 0)
    out = _scaled(_by_threes(_resized(x, given), kind, sizes), kind, math.prod(sizes), norm)
    return moveaxis(out, last, axes) if axes != last else out


def _resized(x: Any, sizes: tuple[int, ...]) -> Any:
    """`x` with its last axes cut or filled up with zeros to `sizes`."""
    shape = x.shape
    kept = (*shape[: x.ndim - len(sizes)], *sizes)
    if any(n > m for n, m in zip(shape, kept, strict=True)):
        cut = tuple(map(min, shape, kept))
        x = slice(x, start_indices=(0,) * x.ndim, limit_indices=cut, strides=None)
    if x.shape == kept:
        return x
    config = tuple([(0, m - n, 0) for n, m in zip(x.shape, kept, strict=True)])
    return pad(x, x.dtype.type(0), padding_config=config)


def _by_threes(x: Any, kind: FftType, sizes: tuple[int, ...]) -> Any:
    """The transform of the last axes: XLA takes three at once."""
    rest, last = sizes[:-3], sizes[-3:]
    if not rest:
        return ops.fft(x, fft_type=kind, fft_lengths=last)
    if kind is FftType.IRFFT:
        return ops.fft(_of_first(x, FftType.IFFT, rest), fft_type=kind, fft_lengths=last)
    x = ops.fft(x, fft_type=kind, fft_lengths=last)
    return _of_first(x, FftType.IFFT if kind is FftType.IFFT else FftType.FFT, rest)


def _of_first(x: Any, kind: FftType, sizes: tuple[int, ...]) -> Any:
    """The transform of the axes of these sizes in front of the last three."""
    ndim, count = x.ndim, len(sizes)
    source = tuple(range(ndim - 3 - count, ndim - 3))
    last = tuple(range(ndim - count, ndim))
    return moveaxis(_by_threes(moveaxis(x, source, last), kind, sizes), last, source)


def _scaled(out: Any, kind: FftType, n: int, norm: str) -> Any:
    """The factor that the transform, which puts `1 / n` into the inverse, lacks."""
    if norm == "backward":
        return out
    if n == 0:
        return zeros_like(out)
    sign = -1 if kind in (FftType.FFT, FftType.RFFT) else 1
    return mul(out, out.dtype.type(n ** (sign * (0.5 if norm == "ortho" else 1.0))))

"""Spectra of signals, from segments that overlap."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import arraylike
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.base import source
from perspex.jitted.fused import fused
from perspex.numpy import fft as nfft
from perspex.numpy.promotion import promote_dtypes
from perspex.scipy.signal import segments as cutting
from perspex.scipy.signal.segments import Segments
from perspex.scipy.signal.trends import detrend as without_trend

__all__ = ["csd", "istft", "stft", "welch"]

Window: TypeAlias = str | tuple[str, float] | ArrayLike
Trend: TypeAlias = str | bool | Callable[[Array], Array]


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Trend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Short-time Fourier transform: spectra of segments that overlap.

    A segment `x[j:j + nperseg]` gives `sum(x[j + k] * window[k] * exp(-2j * pi * k * f / fs))` for
    each frequency `f`, divided by `sum(window)`.

    Args:
      boundary: how `x` goes on at both ends: `"zeros"`, `"even"`, `"odd"`, `"constant"` or `None`.
      padded: fill the end with zeros, to whole segments.

    Returns:
      The frequencies, the times in the middle of the segments, and the complex spectra: the
      frequencies take the place of `axis`, the times come last.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import signal
    >>> f, t, z = signal.stft(jnp.sin(jnp.arange(64.0)), nperseg=16)
    >>> f.shape, t.shape, z.shape
    ((9,), (9,), (9, 9))
    """
    asked = Segments(
        *(nperseg, noverlap, nfft, detrend, return_onesided),
        boundary=boundary,
        padded=padded,
        power=False,
    )
    return _spectra("stft", [x], fs, window, axis, asked)


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Trend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Cross power spectral density by Welch's method.

    The average over segments of `conj(X) * Y`, where `X` and `Y` are their Fourier transforms.

    Args:
      y: another array of numbers; the shorter one is filled up with zeros. `None` stands for `x`.

    Returns:
      The frequencies, and the density with the frequencies in the place of `axis`: complex, or real
      if `y` is `None`.

    Raises:
      TypeError: if `x` or `y` is not an array or a number.
      ValueError: for sizes that do not fit, and an unknown window, scaling, average or trend.

    References:
      P. D. Welch, "The use of fast Fourier transform for the estimation of power spectra" (1967).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import signal
    >>> f, p = signal.csd(jnp.ones(64), jnp.ones(64), nperseg=16)
    >>> f.shape, p.shape
    ((9,), (9,))
    """
    if average not in ("mean", "median"):
        raise ValueError(f"average must be 'median' or 'mean', got {average}")
    given = [x] if y is None else [x, y]
    asked = Segments(nperseg, noverlap, nfft, detrend, return_onesided, scaling)
    frequencies, _, power = _spectra("csd", given, fs, window, axis, asked)
    if power.ndim < 2 or power.size == 0:
        return frequencies, power
    count = power.shape[-1]
    if count == 1:
        return frequencies, power[..., 0]
    if average == "mean":
        return frequencies, pnp.mean(power, -1)
    # The median of a chi-squared distribution is below its mean.
    bias = 1 + float(np.sum([1 / (k + 1) - 1 / k for k in range(2, count, 2)]))
    if dtypes.issubdtype(power.dtype, np.complexfloating):
        middle = pnp.median(power.real, -1) + 1j * pnp.median(power.imag, -1)
    else:
        middle = pnp.median(power, -1)
    return frequencies, middle / bias


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Trend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Power spectral density by Welch's method: an average over segments.

    Returns:
      The frequencies, and the real density with the frequencies in the place of `axis`.

    Raises:
      TypeError: if `x` is not an array or a number.
      ValueError: for sizes that do not fit, and an unknown window, scaling, average or trend.

    References:
      P. D. Welch, "The use of fast Fourier transform for the estimation of power spectra" (1967).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import signal
    >>> f, p = signal.welch(jnp.sin(jnp.arange(256.0)), nperseg=64)
    >>> round(float(f[p.argmax()]) * 2 * jnp.pi, 1)
    1.0
    """
    sizes = nperseg, noverlap, nfft
    frequencies, power = csd(
        x, None, fs, window, *sizes, detrend, return_onesided, scaling, axis, average
    )
    return frequencies, power.real


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Inverse of `stft`: the signal whose spectra come nearest, by least squares.

    Args:
      Zxx: spectra, with an axis of frequencies and one of times.
      nperseg: the size of a segment; by default as many as the frequencies tell.
      nfft: the size of the transform; `nperseg` if not given.
      input_onesided: whether `Zxx` lacks the negative frequencies.
      boundary: whether `stft` went on beyond both ends, which are then cut off.
      time_axis, freq_axis: the axes of `Zxx`.

    Returns:
      The times and the signal, with the time in the last axis.

    Raises:
      TypeError: if `Zxx` is not an array or a number.
      ValueError: for fewer than two axes, equal axes, sizes that do not fit and unknown windows.

    References:
      D. W. Griffin and J. S. Lim, "Signal estimation from modified short-time Fourier transform"
      (1984).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import signal
    >>> x = jnp.sin(jnp.arange(64.0))
    >>> bool(abs(signal.istft(signal.stft(x, nperseg=16)[2])[1] - x).max() < 1e-5)
    True
    """
    z = arraylike("istft", Zxx)
    if z.ndim < 2:
        raise ValueError("istft: Input stft must be at least 2d!")
    time_axis, freq_axis = canonical_axis(time_axis, z.ndim), canonical_axis(freq_axis, z.ndim)
    if time_axis == freq_axis:
        raise ValueError("istft: Must specify differing time and frequency axes!")
    z = pnp.moveaxis(z, (freq_axis, time_axis), (-2, -1))
    bins = z.shape[-2]
    default = 2 * (bins - 1) if input_onesided else bins
    size = cutting.segment("istft", nperseg, default)
    odd = nfft is None and size == default + 1
    length = cutting.length(nfft, default + 1 if odd else default, size)
    overlap = cutting.overlap(noverlap, size)
    win = cutting.window_of(window, size)
    if win.shape != (size,):
        raise ValueError(f"window must have length of {size}, got {win.shape}")
    times, x = _resynthesized(
        z,
        pnp.asarray(fs),
        win,
        length=length,
        overlap=overlap,
        onesided=bool(input_onesided),
        boundary=bool(boundary),
    )
    return times, x


@fused(static=("length", "overlap", "onesided", "boundary"))
def _resynthesized(
    z: Any, fs: Any, win: Any, *, length: int, overlap: int, onesided: bool, boundary: bool
) -> Any:
    size = win.shape[0]
    step = size - overlap
    if onesided:
        parts = nfft.irfft(z, length, axis=-2)[..., :size, :]
    else:
        parts = nfft.ifft(z, length, axis=-2)[..., :size, :]
    win = win.astype(parts.real.dtype)
    scale = pnp.sum(win)
    parts = pnp.moveaxis(parts, -1, -2) * win * scale
    count = parts.shape[-2]
    places = np.arange(count)[:, None] * step + np.arange(size)[None, :]
    total = size + (count - 1) * step
    x = pnp.zeros((*parts.shape[:-2], total), parts.dtype).at[..., places].add(parts)
    norm = pnp.zeros(total, win.dtype).at[places].add(pnp.broadcast_to(win**2, places.shape))
    if boundary:
        x, norm = [v[..., size // 2 : total - size // 2] for v in (x, norm)]
    x = x / pnp.where(norm > 1e-10, norm, 1)
    return pnp.arange(x.shape[-1], dtype=win.dtype) / fs, x


def _spectra(
    name: str, given: list[Any], fs: ArrayLike, window: Window, axis: int, asked: Segments
) -> tuple[Array, Array, Array]:
    """Frequencies, times, and the spectra of a signal or products of spectra."""
    asked.check()
    operands = [pnp.asarray(v) for v in promote_dtypes(name, *given, to=dtypes.to_inexact_dtype)]
    place = canonical_axis(axis, operands[0].ndim)
    moved = [pnp.moveaxis(v, place, -1) for v in operands]
    n = max([v.shape[-1] for v in moved])
    if not all([v.size for v in moved]):  # as in SciPy
        shape = (*moved[0].shape[:-1], min([v.shape[-1] for v in moved]))
        empty = pnp.moveaxis(pnp.zeros(shape, moved[0].dtype) + 0j, -1, place)
        return empty.real, empty.real, empty
    if cutting.is_named(window):
        size = cutting.segment(name, asked.nperseg, 256)
        if size > n:
            _warn(f"{name}: a segment of {size} is longer than the signal, so it has {n} samples")
            size = n
        win = cutting.window_of(window, size)
    else:
        win = cutting.window_of(window, 0)
        size = win.shape[0]
        if asked.power and asked.nperseg is not None and int(asked.nperseg) != size:
            raise ValueError(
                f"{name}: nperseg {asked.nperseg} is different from the length {size} of window"
            )
        if n < size:
            raise ValueError(f"{name}: window is longer than input signal, {size} > {n}")
    is_complex = dtypes.issubdtype(moved[0].dtype, np.complexfloating)
    if is_complex and asked.onesided:
        _warn(f"{name}: the signal is complex, so negative frequencies are returned, too")
    frequencies, times, out = _spectrum(
        tuple(moved), pnp.asarray(fs), win, segments=asked.of_size(size, is_complex)
    )
    return frequencies, times, pnp.moveaxis(out, -2, place)


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=source.stacklevel())


@fused(static=("segments",))
def _spectrum(operands: tuple[Any, ...], fs: Any, win: Any, *, segments: Segments) -> Any:
    size, length, onesided = segments.nperseg, segments.nfft, segments.onesided
    step = size - segments.noverlap
    rate = fs.astype(operands[0].real.dtype)
    longest = max([v.shape[-1] for v in operands])
    spectra = []
    total = 0
    for v in operands:
        v = cutting.longer(v, longest - v.shape[-1])
        v = cutting.BOUNDARIES[segments.boundary](v, size // 2)
        if segments.padded:
            v = cutting.longer(v, (-(v.shape[-1] - size) % step) % size)
        total = v.shape[-1]
        places = np.arange(0, total - size + 1, step)[:, None] + np.arange(size)[None, :]
        parts = v[..., places]
        if callable(segments.detrend):
            parts = segments.detrend(parts)
        elif segments.detrend is not None:
            parts = without_trend(parts, type=segments.detrend)
        parts = parts * win.astype(parts.real.dtype)
        transform = nfft.rfft if onesided else nfft.fft
        spectra.append(transform(parts.real if onesided else parts, length))
    win = win.astype(spectra[0].real.dtype)
    density = segments.scaling == "density"
    scale = 1 / (rate * pnp.sum(win**2)) if density else 1 / pnp.sum(win) ** 2
    if segments.power:
        out = pnp.conj(spectra[0]) * spectra[-1] * scale
        if onesided:
            # Frequencies stand for their negatives too, but for 0 and the last one of even sizes.
            last = None if length % 2 else -1
            out = out.at[..., 1:last].multiply(2)
        out = out.real if len(spectra) == 1 else out
    else:
        out = spectra[0] * pnp.sqrt(scale)
    times = pnp.arange(size / 2, total - size / 2 + 1, step, rate.dtype) / fs
    if segments.boundary is not None:
        times = times - (size / 2) / fs
    d = 1 / rate
    frequencies = nfft.rfftfreq(length, d) if onesided else nfft.fftfreq(length, d)
    return frequencies, times, pnp.moveaxis(out, -1, -2)


describe(
    (stft, csd, welch, istft),
    {
        "x": "an array of numbers.",
        "fs": "the sampling frequency: how many samples there are in a unit of time.",
        "window": 'what segments are multiplied with: `"hann"`, `"hamming"`, `"blackman"`, '
        '`"bartlett"`,\n`"boxcar"`, `("kaiser", beta)`, or an array.',
        "nperseg": "the size of a segment, 256 if not given; that of the window if this is an\n"
        "array.",
        "noverlap": "how many samples two segments share; half of `nperseg` if not given.",
        "nfft": "the size of the transforms; segments are filled up with zeros. `nperseg` if not\n"
        "given.",
        "detrend": '`"constant"` or `"linear"` for each segment, a function, or `False`.',
        "return_onesided": "return only the frequencies that are not negative, for real signals.",
        "scaling": '`"density"` for power per unit of frequency, `"spectrum"` for power.',
        "axis": "the axis of time.",
        "average": '`"mean"` or `"median"` of the segments.',
    },
    "TypeError: if `x` is not an array or a number.\n"
    "ValueError: for sizes that do not fit, and an unknown window, boundary or trend.",
)

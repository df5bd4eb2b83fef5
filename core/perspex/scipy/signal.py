"""Convolution, trends and spectra of signals, as in `scipy.signal`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy import fft as nfft
from perspex.numpy.promotion import (
    Array,
    ArrayLike,
    arraylike,
    canonical_axes,
    canonical_axis,
    promote_dtypes,
)
from perspex.ops.convolution import ConvDimensionNumbers, conv_general_dilated
from perspex.ops.linear import canonical_precision

_MODES = ("full", "same", "valid")


# ---- Convolution --------------------------------------------------------------------------------


def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: Any = None,
) -> Array:
    """The convolution of two arrays with the same number of axes, as floats.

    Args:
      in1, in2: arrays of numbers, not empty.
      mode: `"full"`: every place where they overlap; `"same"`: the middle of that, of the size of
        `in1`; `"valid"`: the places where one of them is covered by the other.
      method: `"fft"` by `fftconvolve`; `"direct"` or `"auto"` by sums of products.
      precision: how exactly accelerators multiply.

    Errors:
      `ValueError` for different numbers of axes, other modes and methods, and for `"valid"` where
      neither is at least as large as the other along every axis.

    >>> convolve(pnp.array([1.0, 2.0, 3.0]), pnp.array([1.0, 10.0]), mode="same")
    Array([ 1., 12., 23.], dtype=float32)
    """
    return _products("convolve", in1, in2, mode, method, precision, False)


def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: Any = None,
) -> Array:
    """The correlation: the convolution with the conjugate of `in2`, reversed along all axes.

    Arguments and errors are those of `convolve`.

    >>> correlate(pnp.array([1.0, 2.0, 3.0]), pnp.array([1.0, 10.0]), mode="valid")
    Array([21., 32.], dtype=float32)
    """
    return _products("correlate", in1, in2, mode, method, precision, True)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """The convolution of two matrices, surrounded by zeros.

    Arguments and errors are those of `convolve`; `boundary` and `fillvalue` have one value, or else
    there is a `NotImplementedError`.

    >>> convolve2d(pnp.eye(2), pnp.ones((1, 2)))
    Array([[1., 1., 0.],
           [0., 1., 1.]], dtype=float32)
    """
    _check_plane("convolve2d", in1, in2, boundary, fillvalue)
    return _products("convolve2d", in1, in2, mode, "direct", precision, False)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """The correlation of two matrices, surrounded by zeros; arguments are those of `convolve2d`.

    >>> correlate2d(pnp.eye(2), pnp.array([[1.0, 2.0]]))
    Array([[2., 1., 0.],
           [0., 2., 1.]], dtype=float32)
    """
    _check_plane("correlate2d", in1, in2, boundary, fillvalue)
    _check_mode("correlate2d", mode)
    if mode == "same":  # of two middles the later one, unlike `correlate`
        whole = _products("correlate2d", in1, in2, "full", "direct", precision, True)
        at = [slice(k // 2, k // 2 + n) for n, k in zip(np.shape(in1), np.shape(in2), strict=True)]
        return whole[tuple(at)]
    return _products("correlate2d", in1, in2, mode, "direct", precision, True)


def fftconvolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    axes: int | Sequence[int] | None = None,
) -> Array:
    """The convolution by Fourier transforms: faster where both arrays are large.

    Args:
      in1, in2: arrays of numbers with the same number of axes.
      mode: as for `convolve`.
      axes: the axes to convolve along, all of them if not given; the others broadcast.

    Errors:
      `ValueError` for different numbers of axes, sizes that do not broadcast and other modes.

    >>> fftconvolve(pnp.array([1.0, 2.0, 3.0]), pnp.array([1.0, 10.0])).round().astype(int)
    Array([ 1, 12, 23, 30], dtype=int32)
    """
    name = "fftconvolve"
    _check_mode(name, mode)
    x, y = promote_dtypes(name, in1, in2, to=dtypes.to_inexact_dtype)
    x, y = pnp.asarray(x), pnp.asarray(y)
    if x.ndim != y.ndim:
        raise ValueError(
            f"{name}: in1 and in2 should have the same dimensionality, got {x.ndim} and {y.ndim}"
        )
    found = canonical_axes(axes if axes is None or isinstance(axes, int) else tuple(axes), x.ndim)
    others = [i for i in range(x.ndim) if i not in found]
    if any(x.shape[i] != y.shape[i] and 1 not in (x.shape[i], y.shape[i]) for i in others):
        raise ValueError(
            f"{name}: shapes {x.shape} and {y.shape} must broadcast along the axes other than "
            f"{found}"
        )
    if mode == "valid":
        x, y = _larger_first(name, x, y, found)
    return _by_fft(x, y, mode=mode, axes=found)


def _check_mode(name: str, mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be one of {list(_MODES)}, got {mode!r}")


def _check_plane(name: str, in1: Any, in2: Any, boundary: str, fillvalue: Any) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(f"{name}() only supports boundary='fill', fillvalue=0")
    if np.ndim(in1) != 2 or np.ndim(in2) != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs.")


def _larger_first(name: str, x: Any, y: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Both in the order in which the first covers the second along all axes."""
    if all(x.shape[i] >= y.shape[i] for i in axes):
        return x, y
    if all(x.shape[i] <= y.shape[i] for i in axes):
        return y, x
    raise ValueError(
        f"{name}: for 'valid' mode one input must be at least as large as the other along every "
        f"axis, got shapes {x.shape} and {y.shape}"
    )


def _products(
    name: str, in1: Any, in2: Any, mode: str, method: str, precision: Any, reverse: bool
) -> Array:
    _check_mode(name, mode)
    x, y = promote_dtypes(name, in1, in2, to=dtypes.to_inexact_dtype)
    x, y = pnp.asarray(x), pnp.asarray(y)
    if x.ndim != y.ndim:
        raise ValueError(
            f"{name}: in1 and in2 must have the same number of dimensions, got {x.ndim} and "
            f"{y.ndim}"
        )
    if x.size == 0 or y.size == 0:
        raise ValueError(f"{name}: inputs must not be empty, got shapes {x.shape} and {y.shape}")
    if method not in ("auto", "fft", "direct"):
        raise ValueError(f"Got method={method!r}; expected 'auto', 'fft', or 'direct'.")
    if reverse:
        y = pnp.flip(pnp.conj(y))
    if method == "fft":
        return fftconvolve(x, y, mode)
    if mode == "valid":
        x, y = _larger_first(name, x, y, tuple(range(x.ndim)))
    return _direct(x, y, mode=mode, precision=canonical_precision(precision))


@fused(static=("mode", "precision"))
def _direct(x: Any, y: Any, *, mode: str, precision: Any) -> Any:
    if x.ndim == 0:
        return x * y
    if mode == "full" and x.size < y.size:
        x, y = y, x
    pads = {
        "full": [(k - 1, k - 1) for k in y.shape],
        "same": [(k // 2, (k - 1) // 2) for k in y.shape],
        "valid": [(0, 0) for _ in y.shape],
    }[mode]
    ones, axes = (1,) * x.ndim, tuple(range(x.ndim + 2))
    out = conv_general_dilated(
        x[None, None],
        pnp.flip(y)[None, None],
        window_strides=ones,
        padding=tuple(pads),
        lhs_dilation=ones,
        rhs_dilation=ones,
        dimension_numbers=ConvDimensionNumbers(axes, axes, axes),
        feature_group_count=1,
        batch_group_count=1,
        precision=precision,
        preferred_element_type=None,
    )
    return out[0, 0]


@fused(static=("mode", "axes"))
def _by_fft(x: Any, y: Any, *, mode: str, axes: tuple[int, ...]) -> Any:
    full = tuple([x.shape[i] + y.shape[i] - 1 for i in axes])
    if not axes or min(full) < 1:
        return x[..., :0] if axes else x * y
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        out = nfft.ifftn(nfft.fftn(x, full, axes) * nfft.fftn(y, full, axes), axes=axes)
    else:
        out = nfft.irfftn(nfft.rfftn(x, full, axes) * nfft.rfftn(y, full, axes), full, axes)
    out = out.astype(x.dtype)
    at = [slice(None)] * out.ndim
    for i in axes:
        n, k = x.shape[i], y.shape[i]
        if mode == "same":
            at[i] = slice((k - 1) // 2, (k - 1) // 2 + n)
        elif mode == "valid":
            at[i] = slice(k - 1, n)
    return out[tuple(at)]


# ---- Trends -------------------------------------------------------------------------------------


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] = 0,
    overwrite_data: None = None,
) -> Array:
    """The data without its mean, or without the line that fits it best.

    Args:
      data: an array of numbers.
      axis: the axis along which to fit.
      type: `"linear"` or `"constant"`.
      bp: for `"linear"`, where pieces with lines of their own begin.
      overwrite_data: must be `None`; arrays are not overwritten.

    Errors:
      `ValueError` for another type and pieces that begin outside of the data,
      `NotImplementedError` for `overwrite_data`.

    >>> detrend(pnp.array([1.0, 3.0, 5.0])).round(3)
    Array([0., 0., 0.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: overwrite_data must be None; arrays do not change")
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError(f"Trend type must be 'linear' or 'constant'. Got {type!r}")
    x = arraylike("detrend", data)
    place = canonical_axis(axis, x.ndim)
    n = x.shape[place]
    points = (bp,) if isinstance(bp, (int, np.integer)) else tuple(bp)
    starts = sorted({0, n, *[operator.index(p) for p in points]})
    if starts[0] < 0 or starts[-1] > n:
        raise ValueError(
            "Breakpoints must be non-negative and less than length of data along given axis, "
            f"{n}; got {bp}"
        )
    return _detrended(x, axis=place, linear=type[0] == "l", starts=tuple(starts))


@fused(static=("axis", "linear", "starts"))
def _detrended(x: Any, *, axis: int, linear: bool, starts: tuple[int, ...]) -> Any:
    x = x.astype(dtypes.to_inexact_dtype(x.dtype))
    if not linear:
        return x - pnp.mean(x, axis, keepdims=True)
    x = pnp.moveaxis(x, axis, -1)
    pieces = [_off_line(x[..., a:b]) for a, b in zip(starts[:-1], starts[1:], strict=True)]
    out = pieces[0] if len(pieces) == 1 else pnp.concatenate(pieces, -1)
    return pnp.moveaxis(out, -1, axis)


def _off_line(x: Any) -> Any:
    """What the line of least squares leaves; from the mean, its slope is a mean of products."""
    n = x.shape[-1]
    x = x - pnp.mean(x, -1, keepdims=True)
    place = pnp.arange(n, dtype=x.real.dtype) - (n - 1) / 2
    spread = n * (n * n - 1) / 12 if n > 1 else 1  # the sum of place ** 2
    slope = pnp.sum(x * place, -1, keepdims=True) / spread
    return x - slope * place


# ---- Spectra ------------------------------------------------------------------------------------


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform: spectra of segments that overlap.

    Args:
      x: an array of numbers.
      fs: how many samples there are in a unit of time.
      window: what segments are multiplied with: `"hann"`, `"hamming"`, `"blackman"`, `"bartlett"`,
        `"boxcar"`, `("kaiser", beta)`, or an array.
      nperseg: the size of a segment; that of the window if this is an array.
      noverlap: how many samples two segments share; half of them if not given.
      nfft: the size of the transform; `nperseg` if not given.
      detrend: `"constant"` or `"linear"` for each segment, a function, or `False`.
      return_onesided: only the frequencies that are not negative, for real `x`.
      boundary: how `x` goes on at both ends: `"zeros"`, `"even"`, `"odd"`, `"constant"` or `None`.
      padded: fill the end up with zeros to whole segments.
      axis: that of time.

    Returns:
      The frequencies, the times in the middle of the segments, and the spectra: frequencies take
      the place of `axis`, the times come last.

    Errors:
      `ValueError` for sizes that do not fit and unknown names.

    >>> f, t, z = stft(pnp.sin(pnp.arange(64.0)), nperseg=16)
    >>> f.shape, t.shape, z.shape
    ((9,), (9,), (9, 9))
    """
    return _spectra(
        "stft",
        x,
        None,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        "spectrum",
        axis,
        boundary,
        padded,
        stft=True,
    )


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross power spectral density, by Welch's method.

    Args:
      x, y: arrays of numbers, the shorter one filled up with zeros.
      fs, window, nperseg, noverlap, nfft, detrend, return_onesided, axis: as for `stft`.
      scaling: `"density"` (power for each frequency) or `"spectrum"` (power).
      average: `"mean"` or `"median"` of the segments.

    Returns:
      The frequencies and the density; real if `y` is `None` or `x` itself.

    Errors:
      Those of `stft`; `ValueError` for another scaling or average.

    >>> f, p = csd(pnp.ones(64), pnp.ones(64), nperseg=16)
    >>> f.shape, p.shape
    ((9,), (9,))
    """
    if average not in ("mean", "median"):
        raise ValueError(f"average must be 'median' or 'mean', got {average}")
    other = None if y is None or y is x else y
    frequencies, _, power = _spectra(
        "csd",
        x,
        other,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        scaling,
        axis,
        None,
        False,
    )
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
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density: the mean of those of segments. Welch (1967).

    Arguments, results and errors are those of `csd`, with real densities.

    >>> f, p = welch(pnp.sin(pnp.arange(256.0)), nperseg=64)
    >>> round(float(f[p.argmax()]) * 2 * np.pi, 1)
    1.0
    """
    frequencies, power = csd(
        x,
        None,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        scaling,
        axis,
        average,
    )
    return frequencies, power.real


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The inverse of `stft`, by the least squares of Griffin and Lim (1984).

    Args:
      Zxx: spectra, with an axis of frequencies and one of times.
      fs, window, nperseg, noverlap, nfft: what `stft` was given.
      input_onesided: whether `Zxx` lacks the negative frequencies.
      boundary: whether `stft` went on beyond both ends, which are then cut off.
      time_axis, freq_axis: the axes of `Zxx`.

    Returns:
      The times and the signal, in the last axis.

    Errors:
      `ValueError` for fewer than two axes, equal axes and sizes that do not fit.

    >>> x = pnp.sin(pnp.arange(64.0))
    >>> bool(abs(istft(stft(x, nperseg=16)[2])[1] - x).max() < 1e-5)
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
    size = _segment("istft", nperseg, default)
    length = _length(nfft, default + 1 if nfft is None and size == default + 1 else default, size)
    overlap = _overlap(noverlap, size)
    win = _window(window, size)
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


# ---- Segments -----------------------------------------------------------------------------------


def _segment(name: str, nperseg: Any, default: int) -> int:
    size = default if nperseg is None else int(nperseg)
    if size < 1:
        raise ValueError(f"{name}: nperseg must be a positive integer, got {nperseg}")
    return size


def _length(nfft: Any, default: int, size: int) -> int:
    length = default if nfft is None else int(nfft)
    if length < size:
        raise ValueError(f"nfft must be greater than or equal to nperseg, got {length} < {size}")
    return length


def _overlap(noverlap: Any, size: int) -> int:
    overlap = size // 2 if noverlap is None else int(noverlap)
    if overlap >= size:
        raise ValueError(f"noverlap must be less than nperseg, got {overlap} >= {size}")
    return overlap


def _window(window: Any, size: int) -> Any:
    """The window of a name, periodic; or the array that is one."""
    if not isinstance(window, (str, tuple)):
        win = pnp.asarray(window)
        if win.ndim != 1:
            raise ValueError(f"window must be 1-D, got shape {win.shape}")
        return win
    name, *parameters = (window,) if isinstance(window, str) else window
    known: dict[str, Any] = {
        "hann": np.hanning,
        "hanning": np.hanning,
        "hamming": np.hamming,
        "blackman": np.blackman,
        "bartlett": np.bartlett,
        "boxcar": np.ones,
        "rectangular": np.ones,
        "kaiser": np.kaiser,
    }
    made = known.get(name)
    if made is None:
        raise ValueError(
            f"unknown window {window!r}: it is 'hann', 'hamming', 'blackman', 'bartlett', "
            "'boxcar', ('kaiser', beta), or an array"
        )
    # One period: symmetric, without the last sample of one more.
    found = made(size + 1, *parameters)[:-1] if size > 1 else np.ones(size)
    return pnp.asarray(found.astype(dtypes.canonicalize_dtype(np.float64)))


def _spectra(
    name: str,
    x: Any,
    y: Any,
    fs: Any,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    detrend: Any,
    return_onesided: bool,
    scaling: str,
    axis: int,
    boundary: str | None,
    padded: bool,
    *,
    stft: bool = False,
) -> Any:
    if boundary not in _BOUNDARIES:
        raise ValueError(
            f"Unknown boundary option {boundary!r}, must be one of: {list(_BOUNDARIES)}"
        )
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling!r}; it is 'density' or 'spectrum'")
    given = [x] if y is None else [x, y]
    operands = promote_dtypes(name, *given, to=dtypes.to_inexact_dtype)
    operands = [pnp.asarray(v) for v in operands]
    place = canonical_axis(axis, operands[0].ndim)
    moved = [pnp.moveaxis(v, place, -1) for v in operands]
    n = max([v.shape[-1] for v in moved])
    is_array = not isinstance(window, (str, tuple))
    if is_array:
        win = _window(window, 0)
        if nperseg is not None and int(nperseg) != win.shape[0] and not stft:
            raise ValueError(
                f"{name}: nperseg {nperseg} is different from the length {win.shape[0]} of window"
            )
        size = win.shape[0]
        if n < size:
            raise ValueError(f"{name}: window is longer than input signal, {size} > {n}")
    else:
        size = min(_segment(name, nperseg, 256), n)
        win = _window(window, size)
    length, overlap = _length(nfft, size, size), _overlap(noverlap, size)
    complex_input = dtypes.issubdtype(moved[0].dtype, np.complexfloating)
    frequencies, times, out = _spectrum(
        tuple(moved),
        pnp.asarray(fs),
        win,
        length=length,
        overlap=overlap,
        trend=detrend if detrend else None,
        onesided=bool(return_onesided) and not complex_input,
        scaling=scaling,
        boundary=boundary,
        padded=bool(padded),
        stft=stft,
    )
    return frequencies, times, pnp.moveaxis(out, -2, place)


@fused(
    static=(
        "length",
        "overlap",
        "trend",
        "onesided",
        "scaling",
        "boundary",
        "padded",
        "stft",
    )
)
def _spectrum(
    operands: tuple[Any, ...],
    fs: Any,
    win: Any,
    *,
    length: int,
    overlap: int,
    trend: Any,
    onesided: bool,
    scaling: str,
    boundary: str | None,
    padded: bool,
    stft: bool,
) -> Any:
    size = win.shape[0]
    step = size - overlap
    longest = max([v.shape[-1] for v in operands])
    spectra = []
    total = 0
    for v in operands:
        v = _longer(v, longest - v.shape[-1])
        v = _BOUNDARIES[boundary](v, size // 2)
        if padded:
            v = _longer(v, (-(v.shape[-1] - size) % step) % size)
        total = v.shape[-1]
        places = np.arange(0, total - size + 1, step)[:, None] + np.arange(size)[None, :]
        parts = v[..., places]
        if callable(trend):
            parts = trend(parts)
        elif trend is not None:
            parts = detrend(parts, type=trend)
        parts = parts * win.astype(parts.real.dtype)
        transform = nfft.rfft if onesided else nfft.fft
        spectra.append(transform(parts.real if onesided else parts, length))
    win = win.astype(spectra[0].real.dtype)
    scale = 1 / (fs * pnp.sum(win**2)) if scaling == "density" else 1 / pnp.sum(win) ** 2
    if stft:
        out = spectra[0] * pnp.sqrt(scale)
    else:
        out = pnp.conj(spectra[0]) * spectra[-1] * scale
        if onesided:
            # Each frequency stands for its negative too, except those that are their own.
            last = None if length % 2 else -1
            out = out.at[..., 1:last].multiply(2)
        out = out.real if len(spectra) == 1 else out
    times = pnp.arange(size / 2, total - size / 2 + 1, step) / fs
    if boundary is not None:
        times = times - (size / 2) / fs
    d = 1 / fs
    frequencies = nfft.rfftfreq(length, d) if onesided else nfft.fftfreq(length, d)
    return frequencies, times, pnp.moveaxis(out, -1, -2)


def _longer(x: Any, n: int) -> Any:
    """`x` with `n` zeros at the end."""
    return pnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n)]) if n else x


def _reflected(x: Any, n: int) -> tuple[Any, Any]:
    """What lies beyond both ends of `x` in a mirror at the first and the last sample."""
    size = x.shape[-1]
    return x[..., 1 : n + 1][..., ::-1], x[..., size - n - 1 : size - 1][..., ::-1]


def _even(x: Any, n: int) -> Any:
    low, high = _reflected(x, n)
    return pnp.concatenate([low, x, high], -1)


def _odd(x: Any, n: int) -> Any:
    low, high = _reflected(x, n)
    return pnp.concatenate([2 * x[..., :1] - low, x, 2 * x[..., -1:] - high], -1)


def _constant(x: Any, n: int) -> Any:
    return pnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode="edge")


def _zeros(x: Any, n: int) -> Any:
    return pnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)])


_BOUNDARIES: dict[Any, Any] = {
    "even": _even,
    "odd": _odd,
    "constant": _constant,
    "zeros": _zeros,
    None: lambda x, n: x,
}

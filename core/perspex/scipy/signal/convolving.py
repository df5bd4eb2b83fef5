"""Convolution and correlation of signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.axes import canonical_axes
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy import fft as nfft
from perspex.numpy.promotion import promote_dtypes
from perspex.ops.convolution import ConvDimensionNumbers, conv_general_dilated
from perspex.ops.precision import canonical_precision

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

# A name such as "highest", a member of `lax.Precision`, or a pair of them for both operands.
Precision: TypeAlias = Any

_MODES = ("full", "same", "valid")


def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: Precision = None,
) -> Array:
    """Convolution of two arrays.

    `out[n] = sum(in1[k] * in2[n - k])`, along all axes.

    Returns:
      An array of floating or complex dtype, with as many axes as `in1`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import signal
    >>> signal.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0]), mode="same")
    Array([ 1., 12., 23.], dtype=float32)
    """
    return _products("convolve", in1, in2, mode, method, precision, False)


def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: Precision = None,
) -> Array:
    """Correlation of two arrays.

    `out[n] = sum(in1[n + k] * conj(in2[k]))`, along all axes.

    Returns:
      An array of floating or complex dtype, with as many axes as `in1`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import signal
    >>> signal.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0]), mode="valid")
    Array([21., 32.], dtype=float32)
    """
    return _products("correlate", in1, in2, mode, method, precision, True)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Precision = None,
) -> Array:
    """Convolution of two matrices, surrounded by zeros.

    Returns:
      A matrix of floating or complex dtype.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import signal
    >>> signal.convolve2d(jnp.eye(2), jnp.ones((1, 2)))
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
    precision: Precision = None,
) -> Array:
    """Correlation of two matrices, surrounded by zeros.

    Returns:
      A matrix of floating or complex dtype.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import signal
    >>> signal.correlate2d(jnp.eye(2), jnp.array([[1.0, 2.0]]))
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
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Array:
    """Convolution by Fourier transforms: faster where both arrays are large.

    Args:
      axes: the axes to convolve along, all of them if not given; the others broadcast.

    Returns:
      An array of floating or complex dtype, with as many axes as `in1`.

    Raises:
      TypeError: if `in1` or `in2` is not an array or a number.
      ValueError: for different numbers of axes, sizes that do not broadcast, axes that do not exist
        and unknown modes.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import signal
    >>> signal.fftconvolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0])).round()
    Array([ 1., 12., 23., 30.], dtype=float32)
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
    """Both arrays, ordered so that the first covers the second along all axes."""
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


_WORDS = {
    "in1": "an array of numbers.",
    "in2": "an array of numbers with as many axes as `in1`.",
    "mode": '`"full"`: every place where the arrays overlap; `"same"`: the middle of that, of the\n'
    'size of `in1`; `"valid"`: the places where one array covers the other.',
    "method": '`"fft"` for `fftconvolve`; `"direct"` or `"auto"` for sums of products.',
    "boundary": 'must be `"fill"`.',
    "fillvalue": "must be 0.",
    "precision": "how exactly accelerators multiply: a name or a member of `lax.Precision`.",
}
describe(
    (convolve, correlate, fftconvolve),
    _WORDS,
    "TypeError: if `in1` or `in2` is not an array or a number.\n"
    "ValueError: for empty arrays, different numbers of axes, unknown modes and methods, and for\n"
    '`"valid"` if no array is at least as large as the other along every axis.',
)
describe(
    (convolve2d, correlate2d),
    _WORDS,
    "TypeError: if `in1` or `in2` is not an array or a number.\n"
    "ValueError: for empty arrays, arrays that are not matrices, unknown modes, and for\n"
    '`"valid"` if no matrix is at least as large as the other along both axes.\n'
    "NotImplementedError: for another `boundary` or `fillvalue`.",
)

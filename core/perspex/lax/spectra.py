"""The discrete Fourier transform of one to three axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import as_array, aval_of
from perspex.arguments.static import integers
from perspex.arguments.types import Array, ArrayLike
from perspex.ops import fft as ops
from perspex.ops.elementwise import complex_dtype
from perspex.ops.fft import FftType
from perspex.ops.structural import convert

__all__ = ["fft"]


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform of the last axes; `numpy.fft` has friendlier functions.

    The implementation on CPUs is that of DUCC, on GPUs cuFFT.

    Args:
      x: an array. `RFFT` takes floats, the others complex numbers; other numbers are converted.
      fft_type: an `FftType` or its name, `"fft"`, `"ifft"`, `"rfft"` or `"irfft"`.
      fft_lengths: the sizes of the last axes to transform, one to three; none gives `x` back,
        complex unless for `RFFT`. The
        last axis of the operand of `IRFFT`, and of the result of `RFFT`, has `n // 2 + 1`.

    Returns:
      An array of the other kind, or of complex numbers for `FFT` and `IFFT`.

    Raises:
      ValueError: for unknown types, sizes that are not those of `x`, complex `x` for `RFFT`.
      TypeError: for other values of `fft_type`.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.fft(np.array([1.0, 0.0, 0.0, 0.0]), "rfft", (4,))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    kind = _kind(fft_type)
    lengths = integers("fft", "fft_lengths", fft_lengths)
    dtype = aval_of("fft", x).dtype
    if kind is FftType.RFFT:
        if dtypes.issubdtype(dtype, np.complexfloating):
            raise ValueError("only real valued inputs supported for rfft; take the fft, or x.real")
        x = convert(x, dtypes.to_inexact_dtype(dtype))
    elif not dtypes.issubdtype(dtype, np.complexfloating):
        x = convert(x, complex_dtype(dtypes.to_inexact_dtype(dtype)))
    if not lengths:
        return as_array(x)
    return ops.fft(x, fft_type=kind, fft_lengths=lengths)


def _kind(fft_type: Any) -> FftType:
    if isinstance(fft_type, FftType):
        return fft_type
    if isinstance(fft_type, str):
        try:
            return FftType[fft_type.upper()]
        except KeyError:
            raise ValueError(
                f"Unknown FFT type {fft_type!r}: it is one of 'fft', 'ifft', 'rfft' and 'irfft'"
            ) from None
    raise TypeError(f"Unknown FFT type value {fft_type!r}: give an FftType or its name")

"""`fft`: discrete Fourier transforms of the last axes.

With w = exp(-2 pi i / n), FFT is `y[k] = sum over j of x[j] w^(jk)` and IFFT its inverse, which has
w* for w and divides by n. RFFT gives the first n // 2 + 1 of the results for real x; the others are
their conjugates. IRFFT is the inverse of that. All are linear, the last two over the reals.
"""

from __future__ import annotations

import enum
import math
from typing import Any

from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ops.elementwise import complex_dtype, conj, mul
from perspex.ops.expansions import real_dtype
from perspex.ops.shape import pad
from perspex.ops.structural import Structural, broadcast_in_dim, move_axis
from perspex.tracing import cuts
from perspex.tracing.trace import typeof


class FftType(enum.IntEnum):
    """Which Fourier transform to compute.

    >>> FftType.RFFT
    <FftType.RFFT: 2>
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


class Fft(Structural):
    """The Fourier transform of type `fft_type` of the last axes, of sizes `fft_lengths`."""

    name = "fft"
    makes_nan = True

    def type(
        self, x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]
    ) -> ShapedArray:
        kind, lengths = fft_type.name, fft_lengths
        n = len(lengths)
        if not 1 <= n <= 3:
            raise ValueError(
                f"fft: {kind} takes one to three axes at once, got fft_lengths {lengths}; "
                "transform more of them one after another"
            )
        if fft_type is FftType.RFFT:
            if x.dtype.name not in ("float32", "float64"):
                raise ValueError(f"RFFT input must be float32 or float64, got {x.dtype.name}")
        elif x.dtype.kind != "c":
            raise ValueError(
                f"{kind} input must be complex64 or complex128, got {x.dtype.name}; convert it"
            )
        wanted = lengths
        if fft_type is FftType.IRFFT:
            wanted = (*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0)
        if x.ndim < n or x.shape[-n:] != wanted:
            raise ValueError(
                f"{kind} input shape {x.shape} minor dimensions must be equal to {wanted} for "
                f"fft_lengths {lengths}"
            )
        if fft_type is FftType.RFFT:
            last = lengths[-1] // 2 + 1 if lengths[-1] else 0
            return ShapedArray((*x.shape[:-1], last), complex_dtype(x.dtype))
        if fft_type is FftType.IRFFT:
            return ShapedArray((*x.shape[:-1], lengths[-1]), real_dtype(x.dtype))
        return ShapedArray(x.shape, x.dtype)

    def cut(
        self, out: ShapedArray, x: ShapedArray, *, fft_lengths: tuple[int, ...], **params: Any
    ) -> cuts.Parts:
        return cuts.padded(cuts.in_batches(self.name, (x,), (len(fft_lengths),)), out.ndim)

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        # As is the custom: 5 n log2 n for a complex transform, half of it for a real one.
        n = math.prod(params["fft_lengths"])
        count = max(operands[0].size, results[0].size) / max(1, n)
        real = params["fft_type"] in (FftType.RFFT, FftType.IRFFT)
        return (2.5 if real else 5.0) * count * n * math.log2(max(n, 1))

    def lower(self, b: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
        (out,) = b.out_avals
        if 0 in out.shape:
            return b.constant(0, out)
        return b.op(
            "stablehlo.fft",
            x,
            attributes={
                "fft_type": types.attribute(f"#stablehlo<fft_type {fft_type.name}>"),
                "fft_length": types.integers(fft_lengths),
            },
        )

    def transpose(self, ct: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
        if fft_type in (FftType.FFT, FftType.IFFT):
            return [self(ct, fft_type=fft_type, fft_lengths=fft_lengths)]
        # All but the first frequency, and the last of an even number, stand for two.
        n, total = fft_lengths[-1], math.prod(fft_lengths)
        if fft_type is FftType.RFFT:
            # x[j] = Re sum over k of ct[k] w^(jk): an inverse of what has these shares.
            shares = _ends_and_rest(ct, n, total, total / 2)
            return [self(mul(conj(ct), shares), fft_type=FftType.IRFFT, fft_lengths=fft_lengths)]
        if not total:
            return [None]
        found = self(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
        return [conj(mul(found, _ends_and_rest(found, n, 1 / total, 2 / total)))]

    def batch(
        self,
        axis_size: int,
        operands: Any,
        axes: Any,
        *,
        fft_type: FftType,
        fft_lengths: tuple[int, ...],
    ) -> Any:
        (x,), (at,) = operands, axes
        if at >= typeof(x).ndim - len(fft_lengths):
            x, at = move_axis(x, at, 0), 0
        return self(x, fft_type=fft_type, fft_lengths=fft_lengths), at


def _ends_and_rest(x: Any, n: int, ends: float, rest: float) -> Any:
    """`ends` where a frequency is its own mirror image among `n`, `rest` elsewhere, as `x` is."""
    aval = typeof(x)
    scalar = aval.dtype.type
    size, last = aval.shape[-1], 1 if n % 2 == 0 and n > 1 else 0
    inner = broadcast_in_dim(scalar(rest), shape=(size - 1 - last,), broadcast_dimensions=())
    row = pad(inner, scalar(ends), padding_config=((1, last, 0),))
    return broadcast_in_dim(row, shape=aval.shape, broadcast_dimensions=(aval.ndim - 1,))


fft = Fft()

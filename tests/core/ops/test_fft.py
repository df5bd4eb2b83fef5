"""The Fourier transform, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import harness
from support.harness import COMPLEX, Op, normal, sample

from perspex.ir.avals import ShapedArray
from perspex.ops.fft import FftType, fft


def reference(x: np.ndarray, fft_type: FftType, fft_lengths: tuple[int, ...]) -> np.ndarray:
    axes = tuple(range(-len(fft_lengths), 0))
    return {
        FftType.FFT: lambda: np.fft.fftn(x, axes=axes),
        FftType.IFFT: lambda: np.fft.ifftn(x, axes=axes),
        FftType.RFFT: lambda: np.fft.rfftn(x, axes=axes),
        FftType.IRFFT: lambda: np.fft.irfftn(x, s=fft_lengths, axes=axes),
    }[fft_type]()


def of(kind: FftType, *shapes: tuple[tuple[int, ...], int]) -> list[Any]:
    """Samples for operands of such shapes before the transform, and numbers of axes."""
    out = []
    for shape, n in shapes:
        given = (*shape[:-1], shape[-1] // 2 + 1) if kind is FftType.IRFFT else shape
        out.append(sample(normal(*given), fft_type=kind, fft_lengths=shape[-n:]))
    return out


SHAPES = [((3, 8), 1), ((5,), 1), ((2, 3, 4), 2), ((2, 3, 2, 5), 3), ((2, 1), 1), ((2, 2), 2)]
OPS = [
    *[
        Op(
            fft,
            reference,
            of(kind, *SHAPES),
            COMPLEX,
            tolerance=4,
            linear=((0,),),
            weak=lambda _: False,
            name=kind.name,
        )
        for kind in (FftType.FFT, FftType.IFFT)
    ],
    Op(
        fft,
        reference,
        of(FftType.RFFT, *SHAPES),
        ("float32", "float64"),
        result=lambda d: {"float32": "complex64", "float64": "complex128"}[d.name],
        tolerance=4,
        linear=((0,),),
        weak=lambda _: False,
        name="RFFT",
    ),
    Op(
        fft,
        reference,
        of(FftType.IRFFT, *SHAPES),
        COMPLEX,
        result=lambda d: {"complex64": "float32", "complex128": "float64"}[d.name],
        tolerance=4,
        linear=((0,),),
        weak=lambda _: False,
        name="IRFFT",
    ),
]
test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)


def test_of_nothing() -> None:
    x = np.ones((0, 4), np.complex64)
    assert fft(x, fft_type=FftType.FFT, fft_lengths=(4,)).shape == (0, 4)


@pytest.mark.parametrize(
    "kind, dtype, shape, lengths, message",
    [
        ("RFFT", "complex64", (4,), (4,), "RFFT input must be float32 or float64"),
        ("FFT", "float32", (4,), (4,), "FFT input must be complex64 or complex128"),
        ("FFT", "complex64", (4,), (5,), r"FFT input shape \(4,\) minor dimensions must be equal"),
        ("IRFFT", "complex64", (4,), (4,), r"minor dimensions must be equal to \(3,\)"),
        ("FFT", "complex64", (1, 1, 1, 1), (1, 1, 1, 1), "one to three axes at once"),
    ],
)
def test_bad_operands(kind: str, dtype: str, shape: Any, lengths: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fft.type(ShapedArray(shape, np.dtype(dtype)), fft_type=FftType[kind], fft_lengths=lengths)

"""Signals and interpolation against SciPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal

from perspex import config
from perspex.scipy import ndimage, signal

RNG = np.random.default_rng(1)
A, B = RNG.normal(size=(7, 6)), RNG.normal(size=(4, 3))
WAVE = np.sin(0.3 * np.arange(200)) + 0.2 * RNG.normal(size=200)


def close(found: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(
    "name", ["convolve", "correlate", "fftconvolve", "convolve2d", "correlate2d"]
)
def test_convolutions(name: str, mode: str) -> None:
    with config.enable_x64(True):
        ours, theirs = getattr(signal, name), getattr(scipy.signal, name)
        close(ours(A, B, mode), theirs(A, B, mode))
        close(ours(A, B[:3, :2] + 1j, mode), theirs(A + 0j, B[:3, :2] + 1j, mode))


def test_longer_second_vector() -> None:
    with config.enable_x64(True):
        for mode in ("full", "same", "valid"):
            close(
                signal.convolve(A[0, :2], A[1], mode), scipy.signal.convolve(A[0, :2], A[1], mode)
            )


@pytest.mark.parametrize("bp", [0, 3, (2, 5)])
def test_detrend(bp: Any) -> None:
    with config.enable_x64(True):
        close(signal.detrend(A, 0, bp=bp), scipy.signal.detrend(A, 0, bp=bp))
        close(signal.detrend(A, 0, "constant"), scipy.signal.detrend(A, 0, "constant"))


@pytest.mark.parametrize(
    "kwargs",
    [
        {"nperseg": 32},
        {"nperseg": 30, "noverlap": 10, "nfft": 64, "window": "hamming"},
        {"nperseg": 25, "window": "boxcar", "fs": 3.0},
        {"nperseg": 32, "window": ("kaiser", 4.0)},
    ],
)
def test_spectra(kwargs: dict[str, Any]) -> None:
    x = np.stack([WAVE, WAVE[::-1]])
    with config.enable_x64(True):
        for found, wanted in zip(
            signal.stft(x, **kwargs), scipy.signal.stft(x, **kwargs), strict=True
        ):
            close(found, wanted)
        for name, args in (("welch", (x,)), ("csd", (x, x[::-1] ** 2))):
            for average in ("mean", "median"):
                ours = getattr(signal, name)(*args, average=average, **kwargs)
                theirs = getattr(scipy.signal, name)(*args, average=average, **kwargs)
                for found, wanted in zip(ours, theirs, strict=True):
                    close(found, wanted)


def test_stft_and_back() -> None:
    with config.enable_x64(True):
        z = signal.stft(WAVE, nperseg=32, noverlap=20)[2]
        found = signal.istft(z, nperseg=32, noverlap=20)
        wanted = scipy.signal.istft(np.asarray(z), nperseg=32, noverlap=20)
        close(found[0], wanted[0])
        close(found[1], wanted[1])
        close(found[1][:200], WAVE)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", ["constant", "nearest", "mirror"])
def test_map_coordinates(order: int, mode: str) -> None:
    at = [RNG.uniform(-3, 9, 20), RNG.uniform(-3, 9, 20)]
    inside = [RNG.uniform(0, 6, 20), RNG.uniform(0, 5, 20)]
    with config.enable_x64(True):
        # Between the array and the constant around it SciPy has a border of one more element.
        places = inside if mode == "constant" else at
        found = ndimage.map_coordinates(A, places, order, mode)
        close(found, scipy.ndimage.map_coordinates(A, places, order=order, mode=mode))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: signal.convolve(A, B[0]), ValueError, "same number of dimensions"),
        (lambda: signal.convolve(A, B, "other"), ValueError, "mode must be one of"),
        (lambda: signal.convolve(A[:2], B, "valid"), ValueError, "at least as large"),
        (lambda: signal.convolve2d(A, B, boundary="wrap"), NotImplementedError, "boundary='fill'"),
        (
            lambda: signal.stft(WAVE, window="other", nperseg=8),
            ValueError,
            "unknown window 'other'",
        ),
        (lambda: signal.stft(WAVE, nperseg=8, noverlap=8), ValueError, "noverlap must be less"),
        (lambda: ndimage.map_coordinates(A, [0.5], 1), ValueError, "1 != 2"),
    ],
)
def test_errors(call: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", ["stft", "welch"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": WAVE}, "a segment of 256 is longer than the signal, so it has 200 samples"),
        ({"x": WAVE + 0.5j, "nperseg": 64}, "the signal is complex, so negative frequencies"),
    ],
)
def test_what_is_changed_is_told(name: str, given: Any, message: str) -> None:
    with config.enable_x64(True), pytest.warns(UserWarning, match=message) as told:
        found = getattr(signal, name)(**given)
    assert [w.filename for w in told] == [__file__]
    with warnings.catch_warnings(action="ignore"):
        wanted = getattr(scipy.signal, name)(**given)
    for mine, theirs in zip(found, wanted, strict=True):
        close(mine, theirs)

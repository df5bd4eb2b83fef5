"""Fourier and cosine transforms against NumPy and SciPy, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft

import perspex
from perspex import config
from perspex import numpy as pnp
from perspex.scipy import fft as cosine

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(3, 4, 5, 6))
COMPLEX = REAL + 1j * RNG.normal(size=REAL.shape)
TAKES_REAL = {"rfft", "ihfft", "rfft2", "rfftn"}
ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
TWO = ["fft2", "ifft2", "rfft2", "irfft2"]
MANY = ["fftn", "ifftn", "rfftn", "irfftn"]


def compare(name: str, *args: Any, **kwargs: Any) -> None:
    x = REAL if name in TAKES_REAL else COMPLEX
    wanted = getattr(np.fft, name)(x, *args, **kwargs)
    with config.enable_x64(True):
        found = getattr(pnp.fft, name)(x, *args, **kwargs)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("n, axis", [(None, 1), (3, -1), (9, 1)])
def test_one_axis(name: str, n: int | None, axis: int) -> None:
    compare(name, n, axis)


@pytest.mark.parametrize("name", [*ONE, *TWO, *MANY])
@pytest.mark.parametrize("norm", ["ortho", "forward"])
def test_norm(name: str, norm: str) -> None:
    compare(name, norm=norm)


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("s, axes", [(None, (0, 2)), ((2, 7), (3, 0))])
def test_two_axes(name: str, s: Any, axes: Any) -> None:
    compare(name, s, axes)


@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("s, axes", [(None, None), (None, (2, 0, 1)), ((4, 2), (3, 1))])
def test_many_axes(name: str, s: Any, axes: Any) -> None:
    compare(name, s, axes)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n: int) -> None:
    for name in ("fftfreq", "rfftfreq"):
        wanted = getattr(np.fft, name)(n, 0.3)
        np.testing.assert_allclose(getattr(pnp.fft, name)(n, 0.3), wanted, rtol=1e-6)
    k = np.fft.fftfreq(n)
    np.testing.assert_array_equal(pnp.fft.fftshift(k.astype("f4")), np.fft.fftshift(k).astype("f4"))
    x = REAL.astype("f4")
    for axes in (None, 1, (0, 3)):
        np.testing.assert_array_equal(pnp.fft.ifftshift(x, axes), np.fft.ifftshift(x, axes))


def test_transforms_compose() -> None:
    x = REAL[0, 0].astype("f4")

    def power(x: Any) -> Any:
        return (abs(pnp.fft.rfft(x)) ** 2).sum()

    # Parseval: the sum over all frequencies is n times that of squares, so its gradient is 2 n x.
    # Half of them count once only.
    spectrum = np.fft.rfft(x)
    wanted = np.fft.irfft(spectrum * [1, 1, 1, 2], axis=-1) * x.shape[-1]
    wanted += np.fft.irfft(spectrum * [1, 0, 0, 0], axis=-1) * x.shape[-1]
    found = perspex.jit(perspex.vmap(perspex.grad(power)))(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [1, 5, 6])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transform(n: int, norm: str | None) -> None:
    x = RNG.normal(size=(3, n))
    with config.enable_x64(True):
        for name in ("dct", "idct", "dctn", "idctn"):
            found = getattr(cosine, name)(x, norm=norm)
            wanted = getattr(scipy.fft, name)(x, norm=norm)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: pnp.fft.fft(x, axis=4), ValueError, "axis 4 is out of bounds"),
        (lambda x: pnp.fft.fft(x, axis=(0, 1)), ValueError, "use fftn for several"),
        (lambda x: pnp.fft.fft(x, n=0), ValueError, "Shape should be positive, got"),
        (lambda x: pnp.fft.fft(x, norm="x"), ValueError, "Invalid norm value x"),
        (lambda x: pnp.fft.fftn(x, s=(2, 2), axes=(0,)), ValueError, "different lengths"),
        (lambda x: pnp.fft.rfft(x + 1j), ValueError, "only real valued inputs"),
        (lambda x: pnp.fft.fft([1.0]), TypeError, "requires ndarray or scalar arguments"),
        (lambda x: pnp.fft.fftfreq(2.5), ValueError, "n should be an integer"),
        (lambda x: cosine.dct(x, type=3), NotImplementedError, "only type 2"),
    ],
)
def test_errors(call: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call(REAL.astype("f4"))


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("name", ["irfft", "hfft"])
def test_a_transform_without_results_has_no_slope(name: str, size: int) -> None:
    f = getattr(pnp.fft, name)
    out, pull = perspex.vjp(f, pnp.ones(size, "complex64"))
    (slope,) = pull(out)
    np.testing.assert_array_equal(slope, np.zeros(size))

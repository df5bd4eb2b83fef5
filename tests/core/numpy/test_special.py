"""Divisors, the Bessel function i0, windows, and unwrapped angles against NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import perspex
import perspex.numpy as jnp
from perspex.transforms.jvp import jvp


@pytest.mark.parametrize("name", ["gcd", "lcm"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8"])
def test_divisors(name: str, dtype: str) -> None:
    values = np.array([0, 1, 2, 6, 9, 12, 35, 90, 101])
    values = values if dtype == "uint8" else np.append(values, -values)
    x, y = [v.ravel().astype(dtype) for v in np.meshgrid(values, values)]
    if dtype == "int8":  # the multiples of larger ones do not fit
        x, y = x[np.abs(x * 1) < 10], y[np.abs(x * 1) < 10]
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    np.testing.assert_array_equal(np.asarray(getattr(jnp, name)(x, y)), want)
    with pytest.raises(ValueError, match="integers"):
        getattr(jnp, name)(1.5, 2)


def test_divisors_broadcast_and_trace() -> None:
    x, y = np.arange(1, 7), np.array([[4], [6]])
    got = perspex.jit(jnp.gcd)(x, y)
    np.testing.assert_array_equal(np.asarray(got), np.gcd(x, y))
    assert jnp.gcd(12, 18).weak_type and int(jnp.gcd(12, 18)) == 6


@pytest.mark.parametrize("x64", [False, True])
def test_i0(x64: bool) -> None:
    x = np.array([0.0, -0.5, 1.0, 7.5, 19.99, 20.01, 60.0, 90.5, -300.0, 3.4e38])
    with perspex.enable_x64(x64):
        x = x.astype(np.float64 if x64 else np.float32)
        with np.errstate(all="ignore"):
            want = scipy.special.i0(x.astype(np.float64)).astype(x.dtype)
        np.testing.assert_allclose(np.asarray(jnp.i0(x)), want, 2e-14 if x64 else 2e-6)
    with pytest.raises(ValueError, match="reals"):
        jnp.i0(1j)


def test_derivative_of_i0_is_i1() -> None:
    with perspex.enable_x64(True):
        for x in (0.3, 5.0, 20.0, 30.0):
            _, (t,) = jvp(lambda v: [jnp.i0(v)], [jnp.float64(x)], [jnp.float64(1)])
            np.testing.assert_allclose(float(t), scipy.special.i1(x), rtol=1e-12)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning", "kaiser"])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 16])
def test_windows(name: str, size: int) -> None:
    arguments: tuple[Any, ...] = (size, 8.6) if name == "kaiser" else (size,)
    got = getattr(jnp, name)(*arguments)
    assert got.dtype == np.float32
    np.testing.assert_allclose(np.asarray(got), getattr(np, name)(*arguments), 2e-6, 1e-7)


@pytest.mark.parametrize("options", [{}, {"discont": 4.0}, {"period": 2.0}, {"axis": 0}], ids=str)
def test_unwrap(options: dict[str, Any]) -> None:
    x = np.cumsum(np.random.default_rng(3).uniform(-3, 3, (4, 9)), axis=1)
    x = ((x + np.pi) % (2 * np.pi) - np.pi).astype(np.float32)
    np.testing.assert_allclose(
        np.asarray(jnp.unwrap(x, **options)), np.unwrap(x, **options), 1e-5, 1e-5
    )


def test_unwrap_of_integers_and_nothing() -> None:
    x = np.array([0, 3, 1, 4, 5, 7, 2])
    np.testing.assert_array_equal(np.asarray(jnp.unwrap(x, period=4)), np.unwrap(x, period=4))
    assert jnp.unwrap(jnp.zeros((2, 0))).shape == (2, 0)
    with pytest.raises(ValueError, match="reals"):
        jnp.unwrap(jnp.array([1j]))


def test_unwrap_refuses_a_sequence_for_a_number() -> None:
    with pytest.raises(TypeError, match="unwrap requires ndarray or scalar arguments"):
        jnp.unwrap(np.ones(3), (0, 1))  # type: ignore[arg-type]


def test_a_constant_has_no_roots() -> None:
    assert jnp.roots(3).shape == jnp.roots(2.5, strip_zeros=False).shape == (0,)


@pytest.mark.parametrize("dtype", [jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.float8_e4m3b11fnuz])
def test_parts_of_8_bit_floats(dtype: Any) -> None:
    x = np.array([1, -2, 0.5, 0.0625, 0.015625, 6, 0], np.float32)
    mantissa, exponent = jnp.frexp(x.astype(dtype))
    want = np.frexp(x)
    assert mantissa.dtype == dtype
    np.testing.assert_array_equal(mantissa.astype("float32"), want[0])
    np.testing.assert_array_equal(exponent, want[1])
    scaled = jnp.ldexp(x.astype(dtype), 1)
    assert scaled.dtype == dtype
    np.testing.assert_array_equal(scaled.astype("float32"), np.ldexp(x, 1))
    with pytest.raises(NotImplementedError, match="float8_e\\w+ is not supported"):
        jnp.spacing(x.astype(dtype))


@pytest.mark.parametrize("x", [np.inf, -np.inf, complex(np.inf, 1), complex(-np.inf, -2)])
def test_sinc_vanishes_far_out_along_the_real_axis(x: Any) -> None:
    assert jnp.sinc(np.complex64(x)) == 0
    assert perspex.grad(jnp.sinc, holomorphic=True)(np.complex64(x)) == 0

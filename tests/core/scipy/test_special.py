"""`perspex.scipy.special` against SciPy: values in both precisions, derivatives, limits, dtypes."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import perspex
from perspex import config, grad, jit, vmap
from perspex import numpy as pnp
from perspex.scipy import special

INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(5)


def between(low: float, high: float) -> np.ndarray:
    return RNG.uniform(low, high, (2, 4)).astype(np.float32).astype(np.float64)


POSITIVE, SIGNED, UNIT = between(0.3, 8), between(-3, 3), between(0.05, 0.95)
LIGHT, HEAVY = between(0.5, 3), between(4, 9)
WHOLE = RNG.integers(1, 6, (2, 4)).astype(np.float64)

# Arguments, tolerance in single precision, operands to differentiate by.
Case = tuple[tuple[np.ndarray, ...], float, tuple[int, ...]]
CASES: dict[str, Case] = {
    "beta": ((POSITIVE, LIGHT), 2e-6, (0, 1)),
    "betainc": ((POSITIVE, LIGHT, UNIT), 1e-6, (2,)),
    "betaln": ((POSITIVE, LIGHT), 1e-6, (0, 1)),
    "boxcox": ((POSITIVE, SIGNED), 4e-6, (0, 1)),
    "boxcox1p": ((POSITIVE, SIGNED), 4e-6, (0, 1)),
    "comb": ((HEAVY, LIGHT), 4e-6, (0, 1)),
    "dawsn": ((SIGNED,), 1e-6, (0,)),
    "digamma": ((POSITIVE,), 1e-6, (0,)),
    "entr": ((UNIT,), 1e-6, (0,)),
    "erf": ((SIGNED,), 1e-6, (0,)),
    "erfc": ((SIGNED,), 2e-6, (0,)),
    "erfcinv": ((2 * UNIT,), 4e-6, (0,)),
    "erfcx": ((SIGNED,), 1e-6, (0,)),
    "erfinv": ((UNIT,), 2e-6, (0,)),
    "exp1": ((POSITIVE,), 1e-6, (0,)),
    "expi": ((SIGNED,), 1e-6, (0,)),
    "expit": ((SIGNED,), 1e-6, (0,)),
    "expn": ((WHOLE, POSITIVE), 1e-6, (1,)),
    "factorial": ((POSITIVE,), 2e-6, (0,)),
    "gamma": ((POSITIVE,), 1e-6, (0,)),
    "gammainc": ((POSITIVE, LIGHT), 1e-6, (0, 1)),
    "gammaincc": ((LIGHT, POSITIVE), 1e-6, (0, 1)),
    "gammaln": ((POSITIVE,), 1e-6, (0,)),
    "hyp1f1": ((LIGHT, POSITIVE, SIGNED), 1e-6, (0, 1, 2)),
    "hyp2f1": ((LIGHT, POSITIVE, LIGHT, UNIT), 1e-6, (3,)),
    "i0": ((SIGNED,), 1e-6, (0,)),
    "i0e": ((4 * SIGNED,), 1e-6, (0,)),
    "i1": ((SIGNED,), 2e-6, (0,)),
    "i1e": ((4 * SIGNED,), 1e-6, (0,)),
    "kl_div": ((POSITIVE, LIGHT), 4e-6, (0, 1)),
    "log_ndtr": ((4 * SIGNED,), 4e-6, (0,)),
    "loggamma": ((POSITIVE,), 1e-6, (0,)),
    "logit": ((UNIT,), 4e-6, (0,)),
    "ndtr": ((SIGNED,), 2e-6, (0,)),
    "ndtri": ((UNIT,), 4e-6, (0,)),
    "owens_t": ((SIGNED, LIGHT), 1e-6, (0, 1)),
    "poch": ((POSITIVE, LIGHT), 1e-5, (0, 1)),
    "rel_entr": ((POSITIVE, LIGHT), 4e-6, (0, 1)),
    "spence": ((POSITIVE,), 1e-6, (0,)),
    "xlog1py": ((SIGNED, POSITIVE), 1e-6, (0, 1)),
    "xlogy": ((SIGNED, POSITIVE), 1e-6, (0, 1)),
    "zeta": ((1 + LIGHT, POSITIVE), 1e-6, (0, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    args, tolerance, _ = CASES[name]
    wanted = getattr(sp, name)(*args)
    found = getattr(special, name)(*[a.astype(np.float32) for a in args])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=1e-6 * np.abs(wanted).max())
    with config.enable_x64(True):
        found = getattr(special, name)(*args)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    args, _, differentiable = CASES[name]
    f, h = getattr(special, name), 1e-4
    with config.enable_x64(True):
        for i in differentiable:

            def at(x: Any, i: int = i) -> Any:
                return f(*args[:i], x, *args[i + 1 :])

            found = grad(lambda x, at=at: at(x).sum())(args[i])
            points = [np.asarray(at(args[i] + k * h)) for k in (-2, -1, 1, 2)]
            wanted = (points[0] - 8 * points[1] + 8 * points[2] - points[3]) / (12 * h)
            np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8 * np.abs(wanted).max())


def test_pairs_and_arrays_of_orders() -> None:
    for name in ("sici", "fresnel"):
        pairs = getattr(special, name)(POSITIVE), getattr(sp, name)(POSITIVE)
        for found, wanted in zip(*pairs, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)
    z = np.array([0.0, 1.0, 2.5, 30.0])
    with config.enable_x64(True):
        found = special.bessel_jn(z, v=3, n_iter=80)
    np.testing.assert_allclose(found, [sp.jv(k, z) for k in range(4)], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(special.bernoulli(30), sp.bernoulli(30), rtol=1e-6, atol=1e-7)
    n = np.arange(4)
    np.testing.assert_allclose(special.polygamma(n, 2.5), sp.polygamma(n, 2.5), rtol=1e-6)
    np.testing.assert_allclose(
        special.multigammaln(np.float32(6.5), 4), sp.multigammaln(6.5, 4), rtol=1e-6
    )


def test_slopes_of_bessel_functions() -> None:
    z = np.array([0.0, 1e-3, 1.0, -2.5, 30.0])

    def slope(z: Any) -> Any:
        return perspex.jvp(lambda z: special.bessel_jn(z, v=3, n_iter=80), (z,), (np.ones(5),))[1]

    with config.enable_x64(True):
        found, second = perspex.jvp(slope, (z,), (np.ones(5),))
    for k in range(4):
        np.testing.assert_allclose(found[k], sp.jvp(k, z), rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(second[k], sp.jvp(k, z, 2), rtol=1e-10, atol=1e-13)


def test_spherical_harmonics() -> None:
    degrees = [(n, m) for n in range(6) for m in range(-n, n + 1)]
    n, m = np.array(degrees).T
    theta, phi = RNG.uniform(0, np.pi, len(n)), RNG.uniform(0, 6, len(n))
    with config.enable_x64(True):
        found = special.sph_harm_y(n, m, theta, phi)
        traced = jit(lambda t: special.sph_harm_y(n, m, t, phi, n_max=7))(theta)
    wanted = sp.sph_harm_y(n, m, theta, phi)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(traced, wanted, rtol=1e-12, atol=1e-14)


def test_complex_loggamma_keeps_digits_at_its_zeros() -> None:
    w = 1e-5 * np.array([1, -1, 1j, 1 + 1j, 0.3 - 0.8j])
    # DLMF 5.7.3: where `w` is so small, three terms give sixteen digits.
    at_one = -np.euler_gamma * w + np.pi**2 / 12 * w**2 - 1.2020569031595942 / 3 * w**3
    at_two = at_one + w - w**2 / 2 + w**3 / 3
    far = np.array([0.2 + 0.1j, 0.3 + 2j, 3.5 - 1j, -0.3 + 0.2j])
    with config.enable_x64(True):
        found = [special.loggamma(z) for z in (1 + w, 2 + w, np.array([1, 2]) + 0j, far)]
    # Sums with 1 are rounded to 1e-16, so the part behind it has eleven digits.
    np.testing.assert_allclose(found[0], at_one, 3e-11)
    np.testing.assert_allclose(found[1], at_two, 6e-11)
    np.testing.assert_array_equal(found[2], 0)
    np.testing.assert_allclose(found[3], sp.loggamma(far), 1e-14)


@pytest.mark.parametrize("name", ["loggamma", "wofz"])
def test_complex(name: str) -> None:
    z = (RNG.normal(size=(60, 2)) * [6, 3]) @ [1, 1j]
    wanted = getattr(sp, name)(z)
    found = getattr(special, name)(z.astype(np.complex64))
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, wanted, rtol=2e-4 if name == "wofz" else 4e-6, atol=2e-5)
    with config.enable_x64(True):
        found = getattr(special, name)(z)
        slope = vmap(grad(getattr(special, name), holomorphic=True))(z)
        points = [np.asarray(getattr(special, name)(z + k * 1e-4)) for k in (-1, 1)]
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(slope, (points[1] - points[0]) / 2e-4, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype, rtol", [("complex64", 2e-6), ("complex128", 2e-14)])
def test_loggamma_near_its_poles(dtype: str, rtol: float) -> None:
    z = np.array([-1 + 1e-3j, -3 + 1e-6j, -7.001 - 1e-4j, -0.999 + 0j], dtype)
    with config.enable_x64(True):
        found = special.loggamma(z)
        at_poles = special.loggamma(np.array([0, -1, complex(-4, -0.0)], dtype))
    np.testing.assert_allclose(found, sp.loggamma(z.astype("complex128")), rtol)
    assert np.isnan(np.asarray(at_poles).view(at_poles.real.dtype)).all()


def test_tails_of_the_normal_distribution() -> None:
    p = np.logspace(-300, -2, 60)
    with config.enable_x64(True):
        np.testing.assert_allclose(special.ndtri(p), sp.ndtri(p), rtol=1e-13)
        np.testing.assert_allclose(special.erfcinv(p), sp.erfcinv(p), rtol=1e-13)
    x = np.array([-1e4, -40, -14, -5, -1, 0, 1, 5, 9], np.float32)
    np.testing.assert_allclose(special.log_ndtr(x), sp.log_ndtr(x.astype(float)), rtol=1e-5)


LIMITS: dict[str, tuple[list[float], list[float]]] = {
    "ndtri": ([0, 0.5, 1, 2, -1, NAN], [-INF, 0, INF, NAN, NAN, NAN]),
    "erfcinv": ([0, 1, 2, 3, NAN], [INF, 0, -INF, NAN, NAN]),
    "gamma": ([0, -0.0, -1, INF, NAN], [INF, -INF, NAN, INF, NAN]),
    "gammasgn": ([-0.5, -1, -1.5, 0, -0.0, 3], [-1, NAN, 1, 1, -1, 1]),
    "digamma": ([0, -0.0, -1, INF], [-INF, INF, NAN, INF]),
    "loggamma": ([0, -0.5, INF], [INF, NAN, INF]),
    "factorial": ([-1, 0, 5], [0, 1, 120]),
    "log_ndtr": ([-INF, INF, NAN], [-INF, 0, NAN]),
    "entr": ([-1, 0, 1], [-INF, 0, 0]),
    "boxcox": ([1.0], [0.0]),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    x, wanted = np.array(LIMITS[name][0], np.float32), LIMITS[name][1]
    args = (x, np.zeros_like(x)) if name == "boxcox" else (x,)
    np.testing.assert_array_equal(getattr(special, name)(*args), np.array(wanted, np.float32))


def test_combinations() -> None:
    n, k = np.array([5, 5, 2, -1, 30, 100]), np.array([2, 0, 3, 1, 15, 50])
    np.testing.assert_allclose(special.comb(n, k), sp.comb(n, k), rtol=1e-4)
    n, k = np.array([5, 3, 0, 0]), np.array([2, 0, 0, 2])
    again = special.comb(n, k, repetition=True)
    np.testing.assert_allclose(again, sp.comb(n, k, repetition=True), rtol=1e-6)


def test_box_cox_has_a_derivative_at_zero() -> None:
    found = [float(grad(special.boxcox, 1)(3.0, p)) for p in (0.0, 1e-3)]
    np.testing.assert_allclose(found, 0.5 * np.log(3) ** 2, rtol=2e-3)


REFUSALS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: special.ndtr(1), TypeError, "float32 or float64"),
    (lambda: special.ndtri(np.float16(0.5)), TypeError, "got float16"),
    (lambda: special.polygamma(1.5, 2.0), ValueError, "integer dtype"),
    (lambda: special.dawsn(1j), ValueError, "complex"),
    (lambda: special.fresnel(1j), NotImplementedError, "complex"),
    (lambda: special.factorial(5, exact=True), NotImplementedError, "exact"),
    (lambda: special.zeta(2.0), NotImplementedError, "q=1"),
    (lambda: special.bernoulli(-1), ValueError, "non-negative"),
    (lambda: special.bessel_jn(1.0, v=50), ValueError, "n_iter"),
    (lambda: special.sph_harm_y(1, 0, 0.1, 0.2, diff_n=1), NotImplementedError, "diff_n"),
    (lambda: special.gammainc("a", 1.0), TypeError, "gammainc"),
    (lambda: jit(special.multigammaln)(4.0, 3), perspex.errors.ConcretizationTypeError, "`d`"),
]


@pytest.mark.parametrize("call, kind, message", REFUSALS)
def test_refusals(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_integers_become_floats() -> None:
    for name in ("gamma", "exp1", "erfc", "i0"):
        found = getattr(special, name)(pnp.arange(1, 4))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, getattr(sp, name)([1, 2, 3]), rtol=2e-6)


def test_slopes_of_quantiles_in_the_tails() -> None:
    p = np.array([1e-300, 1e-30, 1e-9, 0.02, 0.3, 0.98])
    with perspex.enable_x64(True):
        for dtype, points, rtol in (("float64", p, 1e-11), ("float32", p[1:], 2e-4)):
            given = points.astype(dtype)
            x = sp.ndtri(given.astype("float64"))
            slopes = vmap(grad(special.ndtri))(given)
            want = np.sqrt(2 * np.pi) * np.exp(x * x / 2)
            np.testing.assert_allclose(np.asarray(slopes), want, rtol)
            y = sp.erfcinv(given.astype("float64"))
            slopes = vmap(grad(special.erfcinv))(given)
            np.testing.assert_allclose(slopes, -np.sqrt(np.pi) / 2 * np.exp(y * y), rtol)


def test_quantiles_just_outside_are_nan() -> None:
    x = np.float32([-1.1754944e-38, -1e-20])
    assert np.isnan(special.ndtri(x)).all() and np.isnan(special.erfcinv(x)).all()


@pytest.mark.parametrize("name", ["boxcox", "boxcox1p"])
def test_box_cox_at_the_ends(name: str) -> None:
    start = 0.0 if name == "boxcox" else -1.0
    x, power = [g.ravel() for g in np.meshgrid([start, np.inf], [0.0, 1e-3, -1e-3, 1.0, -1.0])]
    ours = getattr(special, name)(x.astype("float32"), power.astype("float32"))
    want = getattr(sp, name)(x, power.astype("float32"))
    np.testing.assert_allclose(ours, want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_divergence_is_exact_where_its_terms_cancel(dtype):
    with perspex.enable_x64():
        random = np.random.default_rng(0)
        p = np.exp(3 * random.normal(size=400)).astype(dtype)
        q = (p * np.exp(random.normal(size=400) * 10.0 ** random.integers(-5, 1, 400))).astype(
            dtype
        )
        with decimal.localcontext(prec=60):
            pairs = [tuple(map(decimal.Decimal, pair)) for pair in np.stack([p, q], 1).tolist()]
            ratios = [a * (a / b).ln() for a, b in pairs]
            terms = [float(a * (a / b).ln() - a + b) for a, b in pairs]
        rtol = 8 * np.finfo(dtype).eps
        np.testing.assert_allclose(special.kl_div(p, q), terms, rtol=rtol)
        np.testing.assert_allclose(special.rel_entr(p, q), [float(r) for r in ratios], rtol=rtol)
        slopes = [float((b - a) / b) for a, b in pairs]
        by_q = perspex.vmap(perspex.grad(special.kl_div, 1))(p, q)
        np.testing.assert_allclose(by_q, slopes, rtol=rtol)


@pytest.mark.parametrize("a", [1e-30, 1e-14, 1e-8])
def test_the_rest_of_a_gamma_function_is_exact_where_it_is_small(a):
    x = np.array([1e-6, 0.3, 1.0, 3.0], np.float32)
    a = np.full_like(x, a)
    np.testing.assert_allclose(special.gammaincc(a, x) / a, sp.exp1(x), rtol=1e-6)
    slope = vmap(grad(special.gammaincc))(a, x)
    np.testing.assert_allclose(slope, sp.exp1(x), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_rising_factorial_of_a_large_number_keeps_its_digits(dtype):
    z = np.array([12.0, 40.0, 1e4, 1e4, 2.0**31, 3e7, 25.0, 1e6])
    m = np.array([0.25, -20.5, 2.5, -3.5, 2.5, -2.0, 1e-3, 1.0])
    # The beginning of the series in 1/z (DLMF 5.11.13), where SciPy has lost digits as well.
    series = z**m * (1 + m * (m - 1) / (2 * z))
    known = np.where(z < 100, sp.poch(z, m), series)
    with perspex.enable_x64(dtype == np.float64):
        found = special.poch(z.astype(dtype), m.astype(dtype))
    np.testing.assert_allclose(found, known, rtol=1e-5 if dtype == np.float32 else 1e-6)


def test_where_the_sum_of_zeta_has_no_value_it_has_no_slope():
    assert np.isnan([grad(special.zeta, 1)(x, 2.0) for x in (1.0, 0.5)]).all()


@pytest.mark.parametrize("name", ["gamma", "erfcx"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_functions_of_complex_numbers(name, dtype):
    with perspex.enable_x64(dtype == "complex128"):
        random = np.random.default_rng(0)
        z = (random.uniform(-8, 8, 200) + 1j * random.uniform(-6, 6, 200)).astype(dtype)
        f, tolerance = getattr(special, name), 1e-12 if dtype == "complex128" else 4e-7
        np.testing.assert_allclose(f(z), getattr(sp, name)(z.astype(complex)), rtol=tolerance)
        slopes = vmap(grad(f, holomorphic=True))(z[:20])
        h = 1e-5
        steps = [getattr(sp, name)(z[:20].astype(complex) + h * d) for d in (1, -1)]
        np.testing.assert_allclose(slopes, (steps[0] - steps[1]) / (2 * h), rtol=1e-4)


def test_poles_of_gamma():
    poles = special.gamma(np.array([0, -1, -2], np.complex64))
    assert np.isnan(poles.real).all() and np.isnan(poles.imag).all()


@pytest.mark.parametrize(
    "name", ["entr", "exp1", "expi", "erfcinv", "gammasgn", "i0", "i1", "sici"]
)
def test_complex_numbers_are_refused_as_in_jax(name):
    with pytest.raises(ValueError, match=rf"{name} does not support complex"):
        getattr(special, name)(1j)

"""Samples follow their distributions: Kolmogorov-Smirnov and chi-squared tests against SciPy.

Keys are fixed, so a test passes always or never; the levels leave an honest sampler a chance of one
in ten thousand to fail when a key is changed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from perspex import config, jvp, random

N = 20_000
LEVEL = 1e-4
K = random.key(2024)

CONTINUOUS: dict[str, tuple[Callable[..., Any], Any]] = {
    "uniform": (random.uniform, stats.uniform()),
    "uniform between": (
        functools.partial(random.uniform, minval=-3, maxval=4.5),
        stats.uniform(-3, 7.5),
    ),
    "normal": (random.normal, stats.norm()),
    "truncated_normal": (
        lambda key, shape, dtype: random.truncated_normal(key, -1.5, 0.5, shape, dtype),
        stats.truncnorm(-1.5, 0.5),
    ),
    "exponential": (random.exponential, stats.expon()),
    "laplace": (random.laplace, stats.laplace()),
    "logistic": (random.logistic, stats.logistic()),
    "cauchy": (random.cauchy, stats.cauchy()),
    "gumbel": (random.gumbel, stats.gumbel_r()),
    "gumbel high": (functools.partial(random.gumbel, mode="high"), stats.gumbel_r()),
    "gumbel highest": (functools.partial(random.gumbel, mode="highest"), stats.gumbel_r()),
}


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize(
    "dtype, partitionable", [("float32", True), ("float64", True), ("float32", False)]
)
def test_continuous(name: str, dtype: str, partitionable: bool) -> None:
    draw, law = CONTINUOUS[name]
    with config.enable_x64(True), config.threefry_partitionable(partitionable):
        samples = np.asarray(draw(K, (N,), dtype), np.float64)
    assert stats.kstest(samples, law.cdf).pvalue > LEVEL


# With parameters; the numbers themselves are compared with those of JAX in tests/oracle.
WITH_PARAMETERS: dict[str, tuple[Callable[..., Any], Any]] = {
    "gamma": (lambda k: random.gamma(k, 2.5, (N,)), stats.gamma(2.5)),
    "gamma below 1": (lambda k: random.gamma(k, 0.3, (N,)), stats.gamma(0.3)),
    "loggamma": (lambda k: random.loggamma(k, 0.1, (N,)), stats.loggamma(0.1)),
    "beta": (lambda k: random.beta(k, 0.7, 2.5, (N,)), stats.beta(0.7, 2.5)),
    "chisquare": (lambda k: random.chisquare(k, 3.0, (N,)), stats.chi2(3)),
    "f": (lambda k: random.f(k, 3.0, 5.0, (N,)), stats.f(3, 5)),
    "t": (lambda k: random.t(k, 3.0, (N,)), stats.t(3)),
    "generalized_normal": (lambda k: random.generalized_normal(k, 1.5, (N,)), stats.gennorm(1.5)),
    "lognormal": (lambda k: random.lognormal(k, 0.7, (N,)), stats.lognorm(0.7)),
    "maxwell": (lambda k: random.maxwell(k, (N,)), stats.maxwell()),
    "double_sided_maxwell": (
        lambda k: abs(random.double_sided_maxwell(k, 0.0, 2.0, (N,))),
        stats.maxwell(scale=2),
    ),
    "pareto": (lambda k: random.pareto(k, 2.5, (N,)), stats.pareto(2.5)),
    "rayleigh": (lambda k: random.rayleigh(k, 1.5, (N,)), stats.rayleigh(scale=1.5)),
    "triangular": (
        lambda k: random.triangular(k, -1.0, 0.5, 2.0, (N,)),
        stats.triang(0.5, -1, 3),
    ),
    "wald": (lambda k: random.wald(k, 1.5, (N,)), stats.invgauss(1.5)),
    "weibull_min": (
        lambda k: random.weibull_min(k, 2.0, 1.5, (N,)),
        stats.weibull_min(1.5, scale=2),
    ),
    # In the ball of the plane the squared distance is uniform.
    "ball": (lambda k: (random.ball(k, 2, shape=(N,)) ** 2).sum(1), stats.uniform()),
    "dirichlet": (
        lambda k: random.dirichlet(k, np.array([0.5, 1.0, 2.0]), (N,))[:, 1],
        stats.beta(1, 2.5),
    ),
    "multivariate_normal": (
        lambda k: random.multivariate_normal(k, M, COV, (N,)) @ np.array([1.0, -1.0]),
        stats.norm(-1.5, np.sqrt(2.0 + 1.0 - 0.8)),
    ),
    # A coordinate of a point of the sphere in space.
    "orthogonal": (lambda k: random.orthogonal(k, 3, (N,))[:, 0, 1], stats.uniform(-1, 2)),
}
M, COV = np.array([0.5, 2.0]), np.array([[2.0, 0.4], [0.4, 1.0]])


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_with_parameters(name: str) -> None:
    draw, law = WITH_PARAMETERS[name]
    assert stats.kstest(np.asarray(draw(K), np.float64), law.cdf).pvalue > LEVEL


@pytest.mark.parametrize("a", [0.05, 0.7, 3.0, 60.0])
def test_approximate_gamma_is_nearly_right(a: float) -> None:
    x = np.asarray(random.gamma(K, a, (N,), method="approximate"), np.float64)
    # Twice the deviation that chance gives, and the bias.
    assert stats.kstest(x[x > 0], stats.gamma(a).cdf).statistic < 2 / np.sqrt(N) + 0.002


def counted(x: Any, law: Any) -> float:
    """The p-value of whole numbers; those that are rare count together."""
    x = np.asarray(x).astype(int)
    low, high = int(law.ppf(0.001)), int(law.ppf(0.999))
    p = law.pmf(np.arange(low, high + 1))
    p[0], p[-1] = law.cdf(low), law.sf(high - 1)
    return chi_squared(np.clip(x, low, high) - low, p)


COUNTED: dict[str, tuple[Callable[..., Any], Any]] = {
    "poisson": (lambda k: random.poisson(k, 2.5, (N,)), stats.poisson(2.5)),
    "poisson of many": (lambda k: random.poisson(k, 45.0, (N,)), stats.poisson(45)),
    "binomial": (lambda k: random.binomial(k, 12, 0.3, (N,)), stats.binom(12, 0.3)),
    "binomial of many": (lambda k: random.binomial(k, 90, 0.6, (N,)), stats.binom(90, 0.6)),
    "geometric": (lambda k: random.geometric(k, 0.3, (N,)), stats.geom(0.3)),
    "multinomial": (
        lambda k: random.multinomial(k, 20, np.array([0.2, 0.5, 0.3]), shape=(N,))[:, 1],
        stats.binom(20, 0.5),
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counts(name: str) -> None:
    draw, law = COUNTED[name]
    assert counted(draw(K), law) > LEVEL


@pytest.mark.parametrize("lam", [0.4, 6.0, 8.0, 50.0])
def test_approximate_poisson_is_nearly_right(lam: float) -> None:
    x = np.asarray(random.poisson(K, lam, (N,), method="approximate"))
    k = np.arange(int(x.max()) + 1)
    found = np.cumsum(np.bincount(x)) / N
    assert np.abs(found - stats.poisson(lam).cdf(k)).max() < 2 / np.sqrt(N) + 0.003


@pytest.mark.parametrize("a", [0.05, 0.7, 3.0, 250.0])
def test_gamma_samples_move_with_their_shape(a: float) -> None:
    """The derivative is that of SciPy's quantile function; its mean is that of the mean."""
    h = 1e-4 * a
    with config.enable_x64(True):
        x, slope = [np.asarray(v) for v in jvp(lambda a: random.gamma(K, a, (500,)), (a,), (1.0,))]
        pair = jvp(lambda a: random.loggamma(K, a, (500,)), (a,), (1.0,))
        y, log_slope = [np.asarray(v) for v in pair]
    u = stats.gamma(a).cdf(x)
    kept = (u > 1e-4) & (u < 0.999)
    above, below = [stats.gamma(a + s * h).ppf(u[kept]) for s in (1, -1)]
    np.testing.assert_allclose(slope[kept], (above - below) / (2 * h), rtol=1e-4)
    # d(log x) = dx / x; the logarithm is drawn by another formula, which rounds differently.
    there = x > 1e-300
    np.testing.assert_allclose((log_slope * np.exp(y))[there], slope[there], rtol=1e-6)
    assert abs(slope.mean() - 1) < 5 * slope.std() / np.sqrt(500)


def test_a_log_gamma_sample_moves_where_the_sample_is_zero() -> None:
    y, slope = jvp(lambda a: random.loggamma(K, a), (1e-3,), (1.0,))
    assert float(y) < -100
    # P = x^a / Gamma(a + 1): log x = (log u + log Gamma(a + 1)) / a
    np.testing.assert_allclose(float(slope), -float(y) / 1e-3, rtol=2e-2)


def test_complex_normal_has_variance_one_and_no_direction() -> None:
    x = np.asarray(random.normal(K, (N,), "complex64"), np.complex128)
    scale = np.sqrt(0.5)
    assert stats.kstest(x.real, stats.norm(scale=scale).cdf).pvalue > LEVEL
    assert stats.kstest(x.imag, stats.norm(scale=scale).cdf).pvalue > LEVEL
    assert stats.kstest(np.angle(x), stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > LEVEL


def test_samples_of_one_key_are_independent() -> None:
    x = np.asarray(random.normal(K, (N,)))
    for lag in (1, 2, 7):
        assert stats.pearsonr(x[:-lag], x[lag:]).pvalue > LEVEL


def test_samples_of_different_keys_are_independent() -> None:
    a, b = random.split(K)
    x, y, z = [np.asarray(random.normal(k, (N,))) for k in (a, b, random.fold_in(K, 3))]
    for pair in ((x, y), (y, z), (x, z)):
        assert stats.pearsonr(*pair).pvalue > LEVEL


def test_bits_are_fair() -> None:
    x = np.asarray(random.bits(K, (N,)))
    for i in range(32):
        ones = int((x >> np.uint32(i) & 1).sum())
        assert stats.binomtest(ones, N).pvalue > LEVEL


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_uniform_over_their_mantissas(dtype: str) -> None:
    bits = {"float16": 10, "bfloat16": 7}[dtype]
    x = np.asarray(random.uniform(K, (N,), dtype), np.float64) * 2**bits
    np.testing.assert_array_equal(x, np.floor(x))
    assert chi_squared(x.astype(int), np.full(2**bits, 2.0**-bits)) > LEVEL


def chi_squared(samples: np.ndarray, p: np.ndarray) -> float:
    """The p-value of counts of the categories `0, 1, ...` with probabilities `p`."""
    counts = np.bincount(samples.reshape(-1), minlength=len(p))
    assert counts.shape == p.shape
    assert (counts[p == 0] == 0).all()
    return float(stats.chisquare(counts[p > 0], p[p > 0] / p.sum() * counts.sum()).pvalue)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_randint_is_uniform(dtype: str) -> None:
    low = 0 if dtype.startswith("u") else -7
    x = np.asarray(random.randint(K, (N,), low, low + 13, dtype))
    assert x.dtype == dtype
    assert chi_squared(x.astype(int) - low, np.full(13, 1 / 13)) > LEVEL


def test_randint_of_whole_ranges() -> None:
    x = np.asarray(random.randint(K, (N,), -128, 128, "int8")).astype(int)
    assert chi_squared(x + 128, np.full(256, 1 / 256)) > LEVEL
    x = np.asarray(random.randint(K, (N,), 0, 256, "uint8")).astype(int)
    assert chi_squared(x, np.full(256, 1 / 256)) > LEVEL
    x = np.asarray(random.randint(K, (N,), -(2**31), 2**31 - 1)).astype(np.float64)
    assert stats.kstest(x, stats.uniform(-(2.0**31), 2.0**32).cdf).pvalue > LEVEL
    with config.enable_x64(True):
        x = np.asarray(random.randint(K, (N,), -(2**63), 2**63 - 1)).astype(np.float64)
    assert stats.kstest(x, stats.uniform(-(2.0**63), 2.0**64).cdf).pvalue > LEVEL


def test_randint_with_bounds_for_each_element() -> None:
    low, high = np.array([0, 10, -5]), np.array([3, 14, 2])
    x = np.asarray(random.randint(K, (N, 3), low, high))
    for i, (a, b) in enumerate(zip(low, high, strict=True)):
        assert chi_squared(x[:, i] - a, np.full(b - a, 1 / (b - a))) > LEVEL


def test_randint_of_an_empty_range_is_its_minimum() -> None:
    for low, high in [(5, 5), (5, 2)]:
        np.testing.assert_array_equal(random.randint(K, (4,), low, high), [low] * 4)


@pytest.mark.parametrize("mode", ["low", "high"])
def test_bernoulli(mode: str) -> None:
    p = np.array([0.0, 0.1, 0.5, 0.97, 1.0], np.float32)
    x = np.asarray(random.bernoulli(K, p, (N, 5), mode))
    assert x.dtype == bool
    assert not x[:, 0].any()
    assert x[:, 4].all()
    for i in (1, 2, 3):
        assert stats.binomtest(int(x[:, i].sum()), N, float(p[i])).pvalue > LEVEL


def test_rademacher() -> None:
    x = np.asarray(random.rademacher(K, (N,)))
    assert set(x.tolist()) == {-1, 1}
    assert stats.binomtest(int((x == 1).sum()), N).pvalue > LEVEL


P = np.array([0.1, 0.0, 0.4, 0.2, 0.3])


@pytest.mark.parametrize("mode", ["low", "high", "highest"])
@pytest.mark.parametrize("axis", [0, 1])
def test_categorical(mode: str, axis: int) -> None:
    other = np.array([0.2, 0.2, 0.2, 0.2, 0.2])
    with np.errstate(divide="ignore"):
        logits = np.log(np.stack([P, other], 1 - axis))
    x = np.asarray(random.categorical(K, logits, axis, (N, 2), mode=mode))
    assert chi_squared(x[:, 0], P) > LEVEL
    assert chi_squared(x[:, 1], other) > LEVEL


def without_replacement(first: np.ndarray, second: np.ndarray) -> None:
    """Two draws of different categories with the probabilities `P`."""
    assert (first != second).all()
    assert chi_squared(first, P) > LEVEL
    for i in np.flatnonzero(P):
        rest = np.where(np.arange(len(P)) == i, 0, P)
        assert chi_squared(second[first == i], rest) > LEVEL


def test_categorical_without_replacement() -> None:
    with np.errstate(divide="ignore"):
        logits = np.broadcast_to(np.log(P), (N, 5))
    x = np.asarray(random.categorical(K, logits, shape=(2, N), replace=False))
    without_replacement(x[0], x[1])


def test_weighted_choice() -> None:
    x = np.asarray(random.choice(K, 5, (N,), p=P))
    assert chi_squared(x, P) > LEVEL
    keys = np.asarray(random.split(random.PRNGKey(0), 3000))
    x = np.array([random.choice(key, 5, (2,), replace=False, p=P) for key in keys])
    without_replacement(x[:, 0], x[:, 1])


def test_choice_of_rows() -> None:
    rows = np.arange(12).reshape(4, 3)
    x = np.asarray(random.choice(K, rows, (N,)))
    np.testing.assert_array_equal(x, rows[x[:, 0] // 3])
    assert chi_squared(x[:, 0] // 3, np.full(4, 0.25)) > LEVEL


def test_permutations_are_all_equally_likely() -> None:
    lines = np.broadcast_to(np.arange(4), (N, 4))
    x = np.asarray(random.permutation(K, lines, axis=1, independent=True))
    np.testing.assert_array_equal(np.sort(x, axis=1), lines)
    codes = np.unique(x @ np.array([64, 16, 4, 1]), return_inverse=True)[1]
    assert chi_squared(codes, np.full(24, 1 / 24)) > LEVEL

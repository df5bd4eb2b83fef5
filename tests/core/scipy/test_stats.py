"""`perspex.scipy.stats` against SciPy: values, derivatives by the parameters, supports."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats as reference

from perspex import config, grad, jit, random
from perspex.scipy import stats

RNG = np.random.default_rng(3)
REAL, ABOVE, UNIT = RNG.normal(size=7) * 2, RNG.uniform(0.1, 4, 7), RNG.uniform(0.1, 0.9, 7)
COUNTS = np.arange(-1.0, 6.0)

# Where to evaluate, the parameters, `loc` and `scale` if the distribution has them here.
CONTINUOUS: dict[str, tuple[np.ndarray, tuple[float, ...], tuple[float, ...]]] = {
    "norm": (REAL, (), (0.3, 1.7)),
    "cauchy": (REAL, (), (0.3, 1.7)),
    "logistic": (REAL, (), (0.3, 1.7)),
    "laplace": (REAL, (), (0.3, 1.7)),
    "gumbel_r": (REAL, (), (0.3, 1.7)),
    "gumbel_l": (REAL, (), (0.3, 1.7)),
    "uniform": (REAL, (), (-1.1, 2.3)),
    "expon": (REAL, (), (-0.2, 1.7)),
    "pareto": (ABOVE, (2.5,), (-0.3, 1.2)),
    "gamma": (REAL, (2.5,), (-0.3, 1.2)),
    "chi2": (REAL, (3.5,), (-0.3, 1.2)),
    "beta": (UNIT, (2.5, 1.7), (-0.1, 1.2)),
    "t": (REAL, (3.5,), (0.3, 1.7)),
    "truncnorm": (REAL, (-1.2, 0.8), (0.3, 1.7)),
    "gennorm": (REAL, (1.4,), ()),
    "vonmises": (REAL, (2.2,), ()),
    "wrapcauchy": (ABOVE, (0.4,), ()),
}
DISCRETE: dict[str, tuple[float, ...]] = {
    "bernoulli": (0.3,),
    "binom": (4, 0.3),
    "betabinom": (4, 1.5, 2.5),
    "nbinom": (3.0, 0.4),
    "geom": (0.4,),
    "poisson": (1.7,),
}
CASES = [
    (name, function)
    for name, (_, _, moved) in CONTINUOUS.items()
    for function in ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
    if hasattr(getattr(stats, name), function)
]
DISCRETE_CASES = [
    (name, function)
    for name in DISCRETE
    for function in ("logpmf", "pmf", "cdf", "ppf")
    if hasattr(getattr(stats, name), function)
]


@pytest.mark.parametrize("name, function", CASES)
def test_continuous(name: str, function: str) -> None:
    x, parameters, moved = CONTINUOUS[name]
    x = np.array([0.01, 0.3, 0.5, 0.99]) if function in ("ppf", "isf") else x
    args = (x, *parameters, *moved)
    with np.errstate(divide="ignore"):
        wanted = getattr(getattr(reference, name), function)(*args)
    with config.enable_x64(True):
        found = getattr(getattr(stats, name), function)(*args)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-14)
    if function not in ("logpdf", "cdf"):
        return
    narrow = [np.float32(v) for v in args]
    single = getattr(getattr(stats, name), function)(*narrow)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name, function", DISCRETE_CASES)
def test_discrete(name: str, function: str) -> None:
    parameters = DISCRETE[name]
    k = np.array([0.0, 0.2, 0.7, 0.9, 1.0]) if function == "ppf" else COUNTS
    with np.errstate(divide="ignore"):
        wanted = getattr(getattr(reference, name), function)(k, *parameters)
    with config.enable_x64(True):
        found = getattr(getattr(stats, name), function)(k, *parameters)
        if function in ("logpmf", "pmf"):
            moved = getattr(getattr(stats, name), function)(k + 2, *parameters, 2)
            np.testing.assert_allclose(moved, found, rtol=1e-12)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_derivatives_by_parameters(name: str) -> None:
    """Of the log-likelihood of points inside the support, by every parameter."""
    if name in DISCRETE:
        f, args = getattr(stats, name).logpmf, [1.0, *DISCRETE[name]]
        start = 1 + (name in ("binom", "betabinom"))
    else:
        points, parameters, moved = CONTINUOUS[name]
        inside = np.isfinite(getattr(reference, name).logpdf(points, *parameters, *moved))
        f, args = getattr(stats, name).logpdf, [points[inside][0], *parameters, *moved]
        start = 0
    h = 1e-4
    with config.enable_x64(True):
        for i in range(start, len(args)):

            def at(v: Any, i: int = i) -> Any:
                return f(*args[:i], v, *args[i + 1 :])

            points = [float(at(args[i] + j * h)) for j in (-2, -1, 1, 2)]
            wanted = (points[0] - 8 * points[1] + 8 * points[2] - points[3]) / (12 * h)
            found = float(grad(at)(np.float64(args[i])))
            np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)


def test_no_nan_derivatives_outside_the_support() -> None:
    for name in ("expon", "gamma", "chi2", "beta", "pareto"):
        parameters = CONTINUOUS[name][1]
        f = getattr(stats, name)
        assert np.isfinite(grad(lambda x, f=f, p=parameters: f.pdf(x, *p))(-1.5))


INVALID = [
    *[(name, (-1.2,)) for name in ("bernoulli.logpmf", "bernoulli.pmf", "bernoulli.cdf")],
    *[(name, (4, -1.0, 2.5)) for name in ("betabinom.logpmf", "betabinom.pmf")],
    *[(f"truncnorm.{f}", (2.0, 0.8)) for f in ("logpdf", "pdf", "logcdf", "cdf", "logsf", "sf")],
]


@pytest.mark.parametrize("name, parameters", INVALID)
def test_values_of_impossible_distributions_are_nan(
    name: str, parameters: tuple[float, ...]
) -> None:
    family, function = name.split(".")
    assert np.isnan(getattr(getattr(reference, family), function)(COUNTS, *parameters)).all()
    assert np.isnan(getattr(getattr(stats, family), function)(COUNTS, *parameters)).all()


@pytest.mark.parametrize("name, function", [*CASES, *DISCRETE_CASES])
def test_functions_look_handwritten(name: str, function: str) -> None:
    module = getattr(stats, name)
    f = getattr(module, function)
    assert function in module.__all__
    assert pickle.loads(pickle.dumps(f)) is f
    first, *rest = inspect.signature(f).parameters.values()
    quantile = {"logistic": "x", "gumbel_l": "p", "gumbel_r": "p"}.get(name, "q")  # as in JAX
    density = "k" if name in DISCRETE else "x"
    assert first.name == (quantile if function in ("ppf", "isf") else density)
    defaults = {"loc": 0, "scale": 1}
    assert all(p.default == defaults.get(p.name, p.empty) for p in rest)
    assert f"stats.{name}.{function}(" in f.__doc__


def test_arguments_of_distributions() -> None:
    found = stats.gamma.pdf(a=2.5, scale=1.2, x=0.7)
    np.testing.assert_allclose(found, reference.gamma.pdf(0.7, 2.5, scale=1.2), rtol=1e-5)
    with pytest.raises(TypeError, match="gamma.pdf: missing a required argument: 'a'"):
        stats.gamma.pdf(0.7)
    with pytest.raises(TypeError, match="unexpected keyword argument 'rate'"):
        jit(lambda x: stats.expon.pdf(x, rate=2.0))(0.7)
    with pytest.raises(TypeError, match="requires ndarray or scalar"):
        stats.norm.cdf([0.1])


def test_poisson_entropy() -> None:
    mu = np.array([0.0, 0.3, 5.0, 39.0, 41.0, 1e4])
    with config.enable_x64(True):
        found = np.asarray(stats.poisson.entropy(mu))
    np.testing.assert_allclose(found[:5], reference.poisson.entropy(mu[:5]), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found[5], 0.5 * np.log(2 * np.pi * np.e * 1e4) - 1 / 12e4, rtol=1e-9)


def test_vectors() -> None:
    x, alpha = np.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]]), np.array([1.5, 2.0, 0.7])
    wanted = reference.dirichlet.logpdf(x, alpha)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), wanted, rtol=1e-5)
    np.testing.assert_allclose(stats.dirichlet.pdf(x[:2], alpha), np.exp(wanted), rtol=1e-5)
    assert float(stats.dirichlet.logpdf(x[:, 0] * 2, alpha)) == -np.inf
    counts, p = np.array([[1, 2, 1], [0, 4, 0], [1, 1, 1]]), np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(
        stats.multinomial.logpmf(counts, 4, p),
        reference.multinomial.logpmf(counts, 4, p),
        rtol=1e-5,
    )
    points, cov = RNG.normal(size=(5, 2)), np.array([[2.0, 0.4], [0.4, 1.0]])
    for spread in (cov, 1.5):
        np.testing.assert_allclose(
            stats.multivariate_normal.logpdf(points, np.ones(2), spread),
            reference.multivariate_normal.logpdf(points, np.ones(2), spread),
            rtol=1e-5,
        )
    with pytest.raises(ValueError, match="cov must have shape"):
        stats.multivariate_normal.logpdf(points, np.ones(2), np.ones((3, 3)))
    with pytest.raises(ValueError, match="as many rows as alpha"):
        stats.dirichlet.logpdf(np.ones(5), alpha)


TIES = np.array([[3, 1, 2, 3], [1, 1, 2, 2], [5, 4, 4, 4]])


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_mode_and_error_of_the_mean(axis: int | None) -> None:
    for keepdims in (False, True):
        for found, wanted in zip(
            stats.mode(TIES, axis, keepdims=keepdims),
            reference.mode(TIES, axis, keepdims=keepdims),
            strict=True,
        ):
            np.testing.assert_array_equal(found, wanted)
        np.testing.assert_allclose(
            stats.sem(TIES * 1.0, axis, keepdims=keepdims),
            reference.sem(TIES * 1.0, axis, keepdims=keepdims),
            rtol=1e-6,
        )


def test_nans() -> None:
    x = np.array([1.0, np.nan, 2.0, np.nan, 2.0, np.nan])
    found = stats.mode(x)
    assert np.isnan(found.mode)
    assert int(found.count) == 3
    assert np.isnan(np.asarray(stats.rankdata(x))).all()
    wanted = reference.sem(x, nan_policy="omit")
    np.testing.assert_allclose(float(stats.sem(x, nan_policy="omit")), float(wanted), rtol=1e-6)


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_ranks(method: str, axis: int | None) -> None:
    found = stats.rankdata(TIES, method, axis=axis)
    np.testing.assert_array_equal(found, reference.rankdata(TIES, method, axis=axis))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="method must be one of"):
        stats.rankdata(TIES, "middle")
    with pytest.raises(ValueError, match="nan_policy must be"):
        stats.mode(TIES, nan_policy="ignore")
    with pytest.raises(NotImplementedError, match="remove NaNs"):
        stats.mode(TIES, nan_policy="omit")
    with pytest.raises(TypeError, match="complex"):
        stats.norm.logpdf(1j)


@pytest.mark.parametrize("weights", [None, UNIT])
@pytest.mark.parametrize("method", [None, "silverman", 0.4, lambda estimate: 0.3])
def test_kernel_density(method: Any, weights: Any) -> None:
    for data, at in ((REAL, ABOVE), (np.stack([REAL, ABOVE]), np.stack([ABOVE, UNIT]))):
        mine = stats.gaussian_kde(data, method, weights)
        theirs = reference.gaussian_kde(data, method, weights)
        np.testing.assert_allclose(mine.covariance, theirs.covariance, rtol=1e-5)
        np.testing.assert_allclose(mine.evaluate(at), theirs.evaluate(at), rtol=1e-4)
        np.testing.assert_allclose(
            jit(lambda k, x: k.logpdf(x))(mine, at), theirs.logpdf(at), rtol=1e-4
        )
        np.testing.assert_allclose(
            mine.integrate_kde(mine), theirs.integrate_kde(theirs), rtol=1e-5
        )
        center, spread = np.ones(mine.d), np.eye(mine.d) * 0.7
        np.testing.assert_allclose(
            mine.integrate_gaussian(center, spread),
            theirs.integrate_gaussian(center, spread),
            rtol=1e-5,
        )
        drawn = mine.resample(random.key(0), (3000,))
        assert drawn.shape == (mine.d, 3000)
        want = np.average(np.atleast_2d(data), axis=1, weights=weights)
        np.testing.assert_allclose(np.mean(drawn, axis=1), want, atol=0.2)
    with pytest.raises(ValueError, match="2 dimensions, not one"):
        mine.integrate_box_1d(0.0, 1.0)
    line = stats.gaussian_kde(REAL, method, weights).integrate_box_1d(-0.5, 1.5)
    wanted = reference.gaussian_kde(REAL, method, weights).integrate_box_1d(-0.5, 1.5)
    np.testing.assert_allclose(line, wanted, rtol=1e-5)


@pytest.mark.parametrize(("name", "end"), [("gumbel_l", np.inf), ("gumbel_r", -np.inf)])
def test_the_density_of_a_gumbel_distribution_vanishes_at_both_ends(name: str, end: float) -> None:
    of = getattr(stats, name)
    x = np.array([end, -end] * 4, "float32")  # enough for the compiler's vectors
    np.testing.assert_array_equal(of.pdf(x), np.zeros(8))
    np.testing.assert_array_equal(of.logpdf(x), np.full(8, -np.inf))
    assert float(grad(of.logpdf)(np.float32(end))) == 0.0

"""Incomplete gamma and beta functions and Bessel functions, against SciPy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.special as sp
from scipy.integrate import quad
from support import harness
from support.harness import FLOATS, Op, Sample, sample, uniform

import perspex
import perspex.numpy as pnp
from perspex import config
from perspex.ir.avals import ShapedArray
from perspex.ops import bessel
from perspex.ops import incomplete as ops
from perspex.ops.gamma_curvature import curvature

INF, NAN = np.inf, np.nan


def by_a(f: Any, a: np.ndarray, x: np.ndarray, step: float = 2e-3) -> np.ndarray:
    """The derivative by `a`, by differences of fourth order."""
    h = step * a
    near, far = f(a + h, x) - f(a - h, x), f(a + 2 * h, x) - f(a - 2 * h, x)
    return (8 * near - far) / (12 * h)


def grad_a(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return by_a(sp.gammainc, a, x)


def density(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.exp((a - 1) * np.log(x) - x - sp.gammaln(a))


PAIR = sample(uniform(0.3, 9, 2, 3), uniform(0.3, 9, 2, 3))
FEW = ("float32", "bfloat16", "float64")
OPS = [
    Op(
        ops.igamma,
        sp.gammainc,
        [PAIR, sample(uniform(0.5, 3), uniform(0.2, 4, 3))],
        FEW,
        tolerance=2,
    ),
    Op(ops.igammac, sp.gammaincc, [PAIR], FEW, tolerance=2),
    Op(
        ops.igamma_grad_a,
        grad_a,
        [Sample(PAIR.operands, differentiable=(1,), batched=(1,))],
        ("float32", "float64"),
        tolerance=1e4,
    ),
    Op(
        ops.random_gamma_grad,
        lambda a, x: -grad_a(a, x) / density(a, x),
        [Sample(PAIR.operands, differentiable=(1,), batched=(1,))],
        ("float32", "float64"),
        tolerance=1e5,
    ),
    Op(
        ops.regularized_incomplete_beta,
        sp.betainc,
        [Sample((*PAIR.operands, uniform(0.05, 0.95, 2, 3)), differentiable=(2,), batched=(2,))],
        FEW,
        tolerance=4,
    ),
    Op(bessel.bessel_i0e, sp.i0e, [sample(harness.normal(3, 5, scale=12))], FLOATS, tolerance=2),
    Op(bessel.bessel_i1e, sp.i1e, [sample(harness.normal(3, 5, scale=12))], FLOATS, tolerance=2),
]
test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)


def sizes(low: float, high: float, count: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Shape parameters of all sizes, and points where the functions are neither 0 nor 1."""
    rng = np.random.default_rng(0)
    a = np.exp(rng.uniform(np.log(low), np.log(high), count))
    x = a * np.where(rng.uniform(size=count) < 0.5, 3.0, 1 + 2 / np.sqrt(a)) ** rng.normal(
        size=count
    )
    return a, x


@pytest.mark.parametrize("low, high", [(1e-3, 10), (10, 1e3), (1e3, 1e7)])
def test_single_precision_is_rounded_once(low: float, high: float) -> None:
    a, x = [v.astype(np.float32) for v in sizes(low, high)]
    wide = a.astype(float), x.astype(float)
    for op, reference in [(ops.igamma, sp.gammainc), (ops.igammac, sp.gammaincc)]:
        wanted = reference(*wide)
        normal = wanted > 1e-37
        # The absolute error of SciPy's own large-`a` expansion is up to 2e-9 for small results.
        own = 2e-9 if high > 1e3 else 1e-16
        np.testing.assert_allclose(op(a, x)[normal], wanted[normal], rtol=6.1e-8, atol=own)


@pytest.mark.parametrize("low, high", [(1e-3, 10), (10, 1e3), (1e3, 1e6)])
def test_double_precision(low: float, high: float) -> None:
    a, x = sizes(low, high)
    with config.enable_x64(True):
        p, q = np.asarray(ops.igamma(a, x)), np.asarray(ops.igammac(a, x))
    np.testing.assert_allclose(p + q, 1, rtol=3e-14)
    np.testing.assert_allclose(p, sp.gammainc(a, x), rtol=3e-12, atol=3e-14)
    np.testing.assert_allclose(q, sp.gammaincc(a, x), rtol=3e-12, atol=3e-14)


@pytest.mark.parametrize("a", [30.0, 250.0, 1e4, 1e6])
def test_small_tails(a: float) -> None:
    """Against quadrature of the density, where SciPy loses digits."""
    x = a + np.array([-5.0, -3.0, 3.0, 5.0]) * np.sqrt(a)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    away = np.array([-1, -1, 1, 1])[:, None]
    reach = np.where(away[:, 0] < 0, np.minimum(x, 12 * np.sqrt(a)), 20 * np.sqrt(a))
    s = reach[:, None] * (nodes + 1) / 2
    t = x[:, None]
    # log of density(x + s) / density(x)
    ratio = np.exp((a - 1) * np.log1p(away * s / t) - away * s)
    wanted = density(np.float64(a), x) * (ratio * weights).sum(1) * reach / 2
    with config.enable_x64(True):
        big = np.full(2, a)
        found = np.concatenate([ops.igamma(big, x[:2]), ops.igammac(big, x[2:])])
    np.testing.assert_allclose(found, wanted, rtol=3e-16 * a * np.log(a) + 1e-12)


@pytest.mark.parametrize("low, high", [(1e-2, 10), (10, 1e5)])
def test_beta_of_all_sizes(low: float, high: float) -> None:
    a, _ = sizes(low, high)
    b = np.random.default_rng(1).permutation(a)
    x = np.random.default_rng(2).beta(a, b).clip(1e-30, 1 - 1e-9)
    with config.enable_x64(True):
        np.testing.assert_allclose(
            ops.regularized_incomplete_beta(a, b, x), sp.betainc(a, b, x), rtol=1e-11
        )


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_gamma_at_its_limits(dtype: str) -> None:
    table = [
        (0, 0, NAN),
        *[(0, 1, 1), (1, 0, 0), (INF, 1, 0), (1, INF, 1), (0, INF, 1), (INF, 0, 0)],
        *[(INF, INF, NAN), (-1, 1, NAN), (1, -1, NAN), (NAN, 1, NAN), (1, NAN, NAN)],
        *[(-0.5, INF, NAN), (-INF, 1, NAN), (1, -INF, NAN), (1e30, 1, 0)],
    ]
    a, x, wanted = [
        np.array(v).astype(harness.dtype_named(dtype)) for v in zip(*table, strict=True)
    ]
    with config.enable_x64(True):
        np.testing.assert_array_equal(harness.wide(ops.igamma(a, x)), harness.wide(wanted))
        np.testing.assert_array_equal(harness.wide(ops.igammac(a, x)), 1 - harness.wide(wanted))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_least_shapes_are_zeros(dtype: str) -> None:
    """SciPy, in float64: all of the mass lies at 0."""
    a = np.array([1e-30, 2e-38, 1e-38, 1e-40]).astype(harness.dtype_named(dtype))
    x = np.array([1e-5, 0.5, 1, 3]).astype(a.dtype)
    np.testing.assert_array_equal(harness.wide(ops.igamma(a, x)), 1)
    np.testing.assert_allclose(harness.wide(ops.igammac(a, x)), 0, atol=1e-13)


def test_beta_at_its_limits() -> None:
    table = [
        *[(0, 1, 0.5, 1), (1, 0, 0.5, 0), (0, 0, 0.5, NAN), (1, 1, 0, 0), (1, 1, 1, 1)],
        *[(1, 1, -0.1, NAN), (1, 1, 1.1, NAN), (-1, 1, 0.5, NAN), (1, 1, NAN, NAN)],
        *[(INF, 1, 0.5, 0), (1, INF, 0.5, 1), (INF, INF, 0.5, NAN), (0, 1, 0, 0), (1, 0, 1, 1)],
    ]
    a, b, x, wanted = np.array(table, np.float32).T
    np.testing.assert_array_equal(ops.regularized_incomplete_beta(a, b, x), wanted)


def test_bessel_at_limits() -> None:
    x = np.array([0, -0.0, INF, -INF, NAN, 1e30], np.float32)
    np.testing.assert_array_equal(bessel.bessel_i0e(x)[:5], [1, 1, 0, 0, NAN])
    np.testing.assert_array_equal(bessel.bessel_i1e(x)[:5], [0, 0, 0, 0, NAN])
    _, slope = bessel.bessel_i1e.jvp([x[:1]], [np.ones(1, np.float32)])
    np.testing.assert_array_equal(slope, [0.5])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [*range(8), 12, 30])
def test_modified_bessel_functions(order: int, dtype: str) -> None:
    x = np.concatenate([np.linspace(-80, 80, 801), np.logspace(-6, 1, 100)]).astype(dtype)
    wanted = sp.iv(order, x.astype("float64"))
    with config.enable_x64(True), np.errstate(over="ignore", under="ignore"):
        wanted = wanted.astype(dtype)
        found = np.asarray(bessel.bessel_i(x, order=order))
    there = (abs(wanted) > np.finfo(dtype).tiny) & np.isfinite(wanted)
    np.testing.assert_allclose(found[there], wanted[there], rtol=30 * np.finfo(dtype).eps)


def test_slopes_of_i0_lose_no_digits_and_stay_small() -> None:
    x, f = np.array([-30, -2, -1e-3, 0, 1e-3, 0.5, 8.9, 9.1, 60]), pnp.i0
    for order in range(4):
        found = perspex.vmap(f)(np.float32(x))
        np.testing.assert_allclose(found, sp.ivp(0, x, order), rtol=2e-5, atol=1e-9)
        assert len(perspex.make_jaxpr(f)(np.float32(1)).jaxpr.eqns) < 60, order
        f = perspex.grad(f)


@pytest.mark.parametrize("a", [0.05, 0.5, 3.0, 150.0, 250.0, 1e5])
def test_a_sample_moves_along_its_quantile(a: float) -> None:
    """The derivative of SciPy's quantile function by the shape parameter."""
    u = np.array([0.01, 0.2, 0.5, 0.9, 0.999])
    with np.errstate(all="ignore"):
        x, wanted = sp.gammaincinv(a, u), by_a(sp.gammaincinv, np.full(5, a), u, 1e-4)
    there = x > 1e-290
    with config.enable_x64(True):
        found = np.asarray(ops.random_gamma_grad(np.full(5, a), x))
    np.testing.assert_allclose(found[there], wanted[there], rtol=3e-7)


# Where the density is a number that one can divide by.
SHAPES_AND_PLACES = [
    (a, x)
    for a in [0.01, 0.5, 1.5, 5.0, 50.0, 300.0]
    for x in [1e-3, 0.3, 1.0, 1.1, 4.0, 49.0, 52.0, 310.0]
    if a * np.log(x) - x - sp.gammaln(a) > -550
]


@pytest.mark.parametrize("a, x", SHAPES_AND_PLACES)
def test_the_second_derivative_by_the_shape(a: float, x: float) -> None:
    """Under the integral of the density, which SciPy computes another way."""
    psi, bend = sp.digamma(a), sp.polygamma(1, a)

    def inside(u: float) -> float:  # t = x exp(-u)
        at = np.log(x) - u
        return float(np.exp(a * at - np.exp(at) - sp.gammaln(a)) * ((at - psi) ** 2 - bend))

    # Breaks around the maximum, and where the exponential has its knee.
    width = 1 / (1 + np.sqrt(max(a, x)))
    if x < max(a, 1.0):
        ends = [0, width, 4 * width, 16 * width, 16 * width + 3, 16 * width + 50 / a]
        wanted = sum(
            quad(inside, p, q, epsabs=0, epsrel=1e-12, limit=200)[0] for p, q in pairwise(ends)
        )
    else:
        ends = [-16 * width - 9, -16 * width, -4 * width, -width, 0]
        wanted = -sum(
            quad(inside, p, q, epsabs=0, epsrel=1e-12, limit=200)[0] for p, q in pairwise(ends)
        )
    with config.enable_x64(True):
        found = perspex.grad(ops.igamma_grad_a)(a, x)
        slopes = perspex.grad(ops.random_gamma_grad, (0, 1))(a, x)
        along = slopes[0] + slopes[1] * ops.random_gamma_grad(a, x)
    np.testing.assert_allclose(found, wanted, rtol=2e-9)
    u = sp.gammainc(a, x)
    if 0.01 < u < 0.99:  # the second derivative of the quantile, by differences
        steps = a * np.array([-2e-2, -1e-2, 0, 1e-2, 2e-2])
        q = sp.gammaincinv(a + steps, u)
        by_steps = (-q[0] + 16 * q[1] - 30 * q[2] + 16 * q[3] - q[4]) / (12 * (a * 1e-2) ** 2)
        np.testing.assert_allclose(along, by_steps, rtol=2e-4, atol=1e-6)


def test_the_second_derivative_at_the_ends() -> None:
    a = np.array([2.0, 2.0, 0.0, -1.0, np.inf, np.nan], np.float32)
    x = np.array([0.0, np.inf, 1.0, 1.0, 1.0, 1.0], np.float32)
    found = curvature(pnp.array(a), pnp.array(x))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [0.0, NAN, NAN, NAN, NAN, NAN])


@pytest.mark.parametrize(
    "op, at, kind",
    [
        (ops.regularized_incomplete_beta, 0, ValueError),
        (ops.regularized_incomplete_beta, 1, ValueError),
    ],
    ids=str,
)
def test_derivatives_without_a_formula(op: Any, at: int, kind: type[Exception]) -> None:
    x = np.float32(0.5)
    n = len(op.jvps)
    with pytest.raises(kind, match=f"{op.name} has no derivative with respect to `{'ab'[at]}`"):
        op.jvp([x] * n, [x if i == at else None for i in range(n)])


@pytest.mark.parametrize("op", [ops.igamma, bessel.bessel_i0e], ids=str)
@pytest.mark.parametrize("dtype", ["int32", "complex64"])
def test_other_dtypes(op: Any, dtype: str) -> None:
    aval = ShapedArray((2,), np.dtype(dtype))
    with pytest.raises(TypeError, match=f"{op.name} does not accept dtype {dtype}"):
        op.type(*[aval] * len(op.jvps))

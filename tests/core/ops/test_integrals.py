"""Functions given by integrals, and hypergeometric functions, against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp
from support import harness
from support.harness import Op, Sample, normal, sample, uniform

import perspex
from perspex import config
from perspex.ops import hypergeometric as hyper
from perspex.ops import incomplete
from perspex.ops import integrals as ops

INF, NAN = np.inf, np.nan
FEW = ("float32", "float64")
ABOVE, AROUND = sample(uniform(0.3, 6, 2, 3)), sample(normal(2, 3, scale=3))
WHOLE = harness.given([[1, 2, 3], [4, 2, 7]])

OPS = [
    Op(ops.exp1, sp.exp1, [ABOVE], FEW, tolerance=4),
    Op(ops.expi, sp.expi, [ABOVE], FEW, tolerance=8),
    Op(ops.si, lambda x: sp.sici(x)[0], [AROUND], FEW, tolerance=2),
    Op(ops.ci, lambda x: sp.sici(x)[1], [ABOVE], FEW, tolerance=8),
    Op(ops.fresnel_s, lambda x: sp.fresnel(x)[0], [sample(normal(2, 3))], FEW, tolerance=2),
    Op(ops.fresnel_c, lambda x: sp.fresnel(x)[1], [sample(normal(2, 3))], FEW, tolerance=2),
    Op(ops.erfcx, sp.erfcx, [sample(uniform(-2, 12, 2, 3))], FEW, tolerance=2),
    Op(ops.dawsn, sp.dawsn, [AROUND], FEW, tolerance=2),
    Op(ops.spence, sp.spence, [ABOVE], FEW, tolerance=2),
    Op(ops.gamma, sp.gamma, [sample(uniform(-2.4, 6, 2, 3))], FEW, tolerance=2),
    Op(
        ops.expn,
        lambda n, x: sp.expn(n.astype(int), x),
        [Sample((WHOLE, uniform(0.3, 4, 2, 3)), differentiable=(1,))],
        FEW,
        tolerance=8,
    ),
    Op(ops.owens_t, sp.owens_t, [sample(normal(2, 3), normal(2, 3))], FEW, tolerance=8),
    Op(ops.wofz, sp.wofz, [sample(normal(2, 3))], harness.COMPLEX, tolerance=4),
    Op(
        incomplete.betaln,
        sp.betaln,
        [sample(uniform(0.3, 9, 2, 3), uniform(0.3, 9, 2, 3))],
        FEW,
        tolerance=4,
    ),
    Op(
        hyper.hyp1f1,
        sp.hyp1f1,
        [
            Sample(
                (uniform(0.3, 3), uniform(0.5, 4), normal(2, 3)), differentiable=(2,), batched=(2,)
            )
        ],
        ("float32", "float64"),
        tolerance=8,
    ),
    Op(
        hyper.hyp2f1,
        sp.hyp2f1,
        [
            Sample(
                (uniform(0.3, 3), uniform(0.3, 3), uniform(0.5, 4), uniform(-2, 0.9, 2, 3)),
                differentiable=(3,),
                batched=(3,),
            )
        ],
        ("float32", "float64"),
        tolerance=8,
    ),
]
test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)

RNG = np.random.default_rng(0)
SIZES = np.exp(RNG.uniform(np.log(1e-3), np.log(100), 2000))
SIGNED = SIZES * RNG.choice([-1, 1], 2000)
SWEEPS: list[tuple[Any, Callable[..., Any], tuple[np.ndarray, ...], float]] = [
    (ops.exp1, sp.exp1, (SIZES,), 2e-14),
    (ops.expi, sp.expi, (SIGNED[np.abs(SIGNED - 0.3725) > 0.01],), 1e-13),
    (ops.si, lambda x: sp.sici(x)[0], (SIGNED,), 3e-15),
    (ops.fresnel_s, lambda x: sp.fresnel(x)[0], (SIGNED,), 3e-14),
    (ops.fresnel_c, lambda x: sp.fresnel(x)[1], (SIGNED,), 3e-14),
    (ops.erfcx, sp.erfcx, (SIGNED.clip(-26, 100),), 1e-14),
    (ops.dawsn, sp.dawsn, (SIGNED,), 3e-14),
    (ops.spence, sp.spence, (SIZES[np.abs(SIZES - 1) > 1e-3],), 1e-14),
    (ops.gamma, sp.gamma, (RNG.uniform(-9.9, 30, 2000),), 1e-13),
    (ops.owens_t, sp.owens_t, (RNG.uniform(-8, 8, 2000), RNG.normal(size=2000) * 2), 1e-12),
    (
        ops.expn,
        lambda n, x: sp.expn(n.astype(int), x),
        (RNG.integers(0, 12, 2000).astype(float), SIZES),
        3e-13,
    ),
    (
        hyper.hyp1f1,
        sp.hyp1f1,
        (RNG.uniform(-5, 5, 2000), RNG.uniform(0.1, 8, 2000), RNG.uniform(-500, 50, 2000)),
        1e-10,
    ),
]


@pytest.mark.parametrize("op, reference, args, tolerance", SWEEPS, ids=lambda v: str(v)[:12])
def test_sweep(op: Any, reference: Any, args: tuple[np.ndarray, ...], tolerance: float) -> None:
    """Over all sizes, the borders between methods among them."""
    with config.enable_x64(True):
        found = np.asarray(op(*args))
    np.testing.assert_allclose(found, reference(*args), rtol=tolerance)


def test_wofz_everywhere() -> None:
    z = RNG.normal(size=(500, 2)) @ [4, 4j]
    with config.enable_x64(True):
        found = np.asarray(ops.wofz(z))
    np.testing.assert_allclose(found, sp.wofz(z), rtol=1e-13)


X = [0.0, -0.0, INF, -INF, NAN, 1.0]
LIMITS = [
    (ops.exp1, (X,), [INF, INF, 0, NAN, NAN, sp.exp1(1)]),
    (ops.expi, (X,), [-INF, -INF, INF, 0, NAN, sp.expi(1)]),
    (ops.si, (X,), [0, 0, np.pi / 2, -np.pi / 2, NAN, sp.sici(1)[0]]),
    (ops.ci, (X,), [-INF, -INF, 0, NAN, NAN, sp.sici(1)[1]]),
    (ops.fresnel_s, (X,), [0, 0, 0.5, -0.5, NAN, sp.fresnel(1)[0]]),
    (ops.fresnel_c, (X,), [0, 0, 0.5, -0.5, NAN, sp.fresnel(1)[1]]),
    (ops.erfcx, (X,), [1, 1, 0, INF, NAN, sp.erfcx(1)]),
    (ops.dawsn, (X,), [0, 0, 0, 0, NAN, sp.dawsn(1)]),
    (ops.spence, (X,), [np.pi**2 / 6, np.pi**2 / 6, -INF, NAN, NAN, 0]),
    (ops.gamma, ([*X, -1.0, -2.0, 200.0],), [INF, -INF, INF, NAN, NAN, 1, NAN, NAN, INF]),
    (
        ops.expn,
        ([0.0, 1, 2, 3, 2, 2, -3, 0], [0.0, 0, 0, INF, NAN, -1, 1, 2]),
        [INF, INF, 1, 0, NAN, NAN, NAN, np.exp(-2) / 2],
    ),
    (
        ops.owens_t,
        ([0, 0, INF, 1, NAN, 1, -INF], [INF, 1, 1, -INF, 1, 0, -2]),
        [0.25, 0.125, 0, sp.owens_t(1, -INF), NAN, 0, 0],
    ),
    (
        hyper.hyp1f1,
        ([1, 0, 2, -1, 1, NAN, -2], [2, 2, -1, -2, 2, 1, -2], [0, 5, 1, 3, -1e4, 1, 1.5]),
        [1, 1, INF, 2.5, 1e-4, NAN, np.exp(1.5)],  # of -2, -2 as in JAX: SciPy has 3.625
    ),
    (
        hyper.hyp2f1,
        ([1, 1, 1, 0.5, -2, NAN], [1, 1, 2, 0.5, 3, 1], [2, 3, 2, -1, 2, 1], [0, 1, 1, 0.5, 5, 0]),
        [1, 2, INF, INF, sp.hyp2f1(-2, 3, 2, 5), NAN],
    ),
]


@pytest.mark.parametrize("op, args, wanted", LIMITS, ids=lambda v: str(v)[:12])
def test_limits(op: Any, args: Any, wanted: Any) -> None:
    args = [np.array(a, np.float64) for a in args]
    with config.enable_x64(True):
        found = np.asarray(op(*args))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)


def test_slopes_where_formulas_divide_by_zero() -> None:
    one = np.ones(1, np.float32)
    np.testing.assert_array_equal(ops.si.jvp([0 * one], [one])[1], [1])
    np.testing.assert_array_equal(ops.spence.jvp([one], [one])[1], [-1])


@pytest.mark.parametrize("x", [-900.0, -650.0, -590.0, -30.0, -3.0, 0.0, 1.5, 20.0, 50.0])
@pytest.mark.parametrize("a, b", [(1.2, 2.0), (1.0, 2.0), (-1.2, 2.2), (3.0, 0.7)])
def test_slopes_of_hyp1f1_by_its_parameters(a: float, b: float, x: float) -> None:
    h = 1e-6

    def difference(f: Any, at: tuple[float, ...], i: int) -> Any:
        step = h * np.eye(3)[i]
        return (f(*(at + step)) - f(*(at - step))) / (2 * h)

    with config.enable_x64(True):
        for i, slope in enumerate((hyper.hyp1f1_by_a, hyper.hyp1f1_by_b)):
            found = slope(a, b, x)
            scale = 1e-9 * max(abs(sp.hyp1f1(a, b, x)), 1e-3)
            want = difference(sp.hyp1f1, (a, b, x), i)
            np.testing.assert_allclose(found, want, rtol=1e-6, atol=scale)
            by_x = slope.jvp([a, b, x], [None, None, 1.0])[1]
            want = difference(slope, (a, b, x), 2)
            np.testing.assert_allclose(by_x, want, rtol=1e-5, atol=scale)


@pytest.mark.parametrize(
    "op, at",
    [(ops.expn, "n"), (hyper.hyp1f1_by_a, "a"), (hyper.hyp1f1_by_b, "b"), (hyper.hyp2f1, "c")],
)
def test_derivatives_without_a_formula(op: Any, at: str) -> None:
    names = {"expn": "nx", "hyp2f1": "abcx"}.get(op.name, "abx")
    x = np.float32(0.5)
    with pytest.raises(
        NotImplementedError,
        match=f"{op.name.split('_')[0]} has no derivative with respect to `{at}`",
    ):
        op.jvp([x] * len(names), [x if n == at else None for n in names])


@pytest.mark.parametrize("dtype", FEW)
def test_slopes_of_erfcx_keep_their_digits_where_x_is_large(dtype: str) -> None:
    x = np.array([10, 30, 1e3, 1e6], dtype)
    # 7.12.1, term by term.
    terms = [sp.factorial2(2 * k - 1) * (-0.5) ** k for k in range(1, 18)]
    wide = x.astype(np.float64)
    slope = sum(2 / np.sqrt(np.pi) * c * wide ** (-2 * k) for k, c in enumerate(terms, 1))
    bend = sum(-4 * k / np.sqrt(np.pi) * c * wide ** (-2 * k - 1) for k, c in enumerate(terms, 1))
    with config.enable_x64(dtype == "float64"):
        each = perspex.grad(ops.erfcx)
        tolerance = 8 * np.finfo(dtype).eps
        np.testing.assert_allclose(perspex.vmap(each)(x), slope, rtol=tolerance)
        np.testing.assert_allclose(perspex.vmap(perspex.grad(each))(x), bend, rtol=2 * tolerance)

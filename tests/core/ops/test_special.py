"""Error and gamma functions, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as sp
from support import harness
from support.harness import FLOATS, Op, given, normal, sample, uniform

from perspex import config
from perspex.ir.avals import ShapedArray
from perspex.ops import special as ops
from perspex.transforms.jvp import jvp


def polygamma(m: np.ndarray, x: np.ndarray) -> np.ndarray:
    """SciPy's, which takes whole orders, by the Hurwitz zeta function."""
    return np.where(m == 0, sp.digamma(x), -((-1.0) ** m) * sp.gamma(m + 1) * sp.zeta(m + 1, x))


WHOLE = given([[0, 1, 2], [3, 1, 4]])

OPS = [
    Op(ops.erf, sp.erf, [sample(normal(3, 5)), sample(uniform(-0.5, 0.5))], FLOATS, tolerance=2),
    Op(ops.erfc, sp.erfc, [sample(uniform(-3, 3, 3, 5))], FLOATS, tolerance=4),
    Op(ops.erf_inv, sp.erfinv, [sample(uniform(-0.95, 0.95, 3, 5))], FLOATS, tolerance=4),
    Op(ops.lgamma, sp.gammaln, [sample(uniform(0.1, 20, 3, 5))], FLOATS, tolerance=2),
    Op(ops.digamma, sp.digamma, [sample(uniform(0.2, 20, 3, 5))], FLOATS, tolerance=8),
    Op(
        ops.polygamma,
        polygamma,
        [harness.Sample((WHOLE, uniform(0.5, 9, 2, 3)), differentiable=(1,))],
        ("float32", "float64"),
        tolerance=16,
    ),
    Op(
        ops.zeta,
        sp.zeta,
        [sample(uniform(1.5, 6, 2, 3), uniform(0.5, 5, 2, 3))],
        ("float32", "float64"),
        tolerance=16,
    ),
]
test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)


def test_erf_at_its_limits() -> None:
    x = np.array([-np.inf, np.inf, 0, np.nan, 10, -10], np.float32)
    np.testing.assert_array_equal(ops.erf(x), [-1, 1, 0, np.nan, 1, -1])
    np.testing.assert_array_equal(ops.erfc(x), [2, 0, 1, np.nan, 0, 2])
    y = np.array([-1, 1, 0, 1.5], np.float32)
    np.testing.assert_array_equal(ops.erf_inv(y), [-np.inf, np.inf, 0, np.nan])


def test_erfc_of_large_numbers_keeps_its_digits() -> None:
    x = np.linspace(2, 9, 50, dtype=np.float32)
    np.testing.assert_allclose(ops.erfc(x), sp.erfc(x.astype("f8")), rtol=1e-5)


@pytest.mark.usefixtures("optimized")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_lgamma_near_its_zeros(dtype: str) -> None:
    near = [zero + sign * 2.0**-k for zero in (1, 2) for sign in (-1, 1) for k in range(3, 22)]
    x = np.array([*near, -2.4570, -2.7477, -0.5, -3.1, 1, 2]).astype(harness.dtype_named(dtype))
    found, wanted = harness.wide(ops.lgamma(x)), sp.gammaln(harness.wide(x))
    unit = {"float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}[dtype]
    # Where the result is subnormal or nearly so, absolute errors count.
    np.testing.assert_allclose(found, wanted, rtol=unit, atol=1e-7 if dtype == "float16" else 0)


def test_lgamma_and_digamma_at_poles_and_limits() -> None:
    x = np.array([0, -1, -2, np.inf, -np.inf, np.nan, 1e37], np.float32)
    np.testing.assert_array_equal(
        ops.lgamma(x), [np.inf, np.inf, np.inf, np.inf, np.inf, np.nan, np.inf]
    )
    found = np.asarray(ops.digamma(np.array([-1, -2, np.inf, np.nan], np.float32)))
    np.testing.assert_array_equal(found, [np.nan, np.nan, np.inf, np.nan])


@pytest.mark.parametrize("x", [-0.5, -1.3, -2.7])
def test_left_of_zero(x: float) -> None:
    with config.enable_x64(True):
        np.testing.assert_allclose(float(ops.lgamma(np.float64(x))), sp.gammaln(x), rtol=1e-12)
        np.testing.assert_allclose(float(ops.digamma(np.float64(x))), sp.digamma(x), rtol=1e-12)


def test_zeta_changes_with_its_exponent() -> None:
    # -zeta'(2) and zeta''(2) of Riemann: sums of log(k)**m / k**2.
    with config.enable_x64(True):
        first = lambda x: ops.zeta.jvp([x, np.float64(1)], [np.float64(1), None])[1]  # noqa: E731
        np.testing.assert_allclose(float(first(np.float64(2))), -0.9375482543158437, rtol=1e-13)
        _, (second,) = jvp(lambda x: [first(x)], [np.float64(2)], [np.float64(1)])
        np.testing.assert_allclose(float(second), 1.98928023429890, rtol=1e-12)
    assert np.isnan(ops.zeta.jvp([np.float32(0.5), np.float32(1)], [np.float32(1), None])[1])


@pytest.mark.parametrize(
    "op, operand, kind",
    [(ops.polygamma, "m", ValueError)],
    ids=["polygamma"],
)
def test_derivatives_without_a_formula(op: Any, operand: str, kind: type[Exception]) -> None:
    x = np.float32(2)
    with pytest.raises(kind, match=f"{op.name} has no derivative with respect to `{operand}`"):
        op.jvp([x, x], [x, None])


@pytest.mark.parametrize("op", [ops.erf, ops.erfc, ops.erf_inv, ops.lgamma, ops.digamma], ids=str)
@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64"])
def test_other_dtypes(op: Any, dtype: str) -> None:
    with pytest.raises(TypeError, match=f"{op.name} does not accept dtype {dtype}"):
        op.type(ShapedArray((2,), np.dtype(dtype)))

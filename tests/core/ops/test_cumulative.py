"""Cumulative operations, against NumPy's accumulate and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import harness
from support.harness import (
    COMPLEX,
    FLOATS,
    NUMBERS,
    REALS,
    Op,
    Sample,
    distinct,
    normal,
    sample,
    uniform,
)

from perspex.hlo.builder import Module
from perspex.ir.avals import ShapedArray
from perspex.ops import cumulative as ops
from perspex.tracing.staging import stage


def accumulated(ufunc: Any) -> Callable[..., np.ndarray]:
    """The definition, from a ufunc of NumPy."""

    def reference(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
        turned = np.flip(x, axis) if reverse else x
        out = ufunc.accumulate(turned, axis, dtype=x.dtype)
        return np.flip(out, axis) if reverse else out

    return reference


def log_sum_exp(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    """The definition for complex numbers: the logarithm with its cut along the negative axis."""
    return np.log(accumulated(np.add)(np.exp(x), axis, reverse))


def along(draw: Any, axes: tuple[int, ...] = (0, 1)) -> list[Sample]:
    return [sample(draw, axis=axis, reverse=r) for axis in axes for r in (False, True)]


OPS = [
    Op(ops.cumsum, accumulated(np.add), along(normal(5, 3)), NUMBERS, tolerance=2, linear=((0,),)),
    Op(ops.cumprod, accumulated(np.multiply), along(uniform(0.5, 2, 6, 3)), NUMBERS, tolerance=4),
    Op(ops.cummax, accumulated(np.maximum), along(distinct(7, 3)), REALS, tolerance=0),
    Op(ops.cummin, accumulated(np.minimum), along(distinct(7, 3)), REALS, tolerance=0),
    Op(ops.cumlogsumexp, accumulated(np.logaddexp), along(normal(5, 3)), FLOATS, tolerance=4),
    # Small imaginary parts: away from the cut.
    Op(ops.cumlogsumexp, log_sum_exp, along(uniform(0.1, 1, 5, 3)), COMPLEX, tolerance=4),
]
test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)

ALL = [ops.cumsum, ops.cumprod, ops.cummax, ops.cummin, ops.cumlogsumexp]
PAIRS = list(zip(ALL, [np.add, np.multiply, np.maximum, np.minimum, np.logaddexp], strict=True))


@pytest.mark.parametrize("op", ALL, ids=str)
@pytest.mark.parametrize("shape, axis", [((0,), 0), ((0, 3), 1), ((3, 0), 1), ((1, 2), 0)])
def test_no_element_or_one(op: Any, shape: Any, axis: int) -> None:
    x = np.ones(shape, np.float32)
    out = op(x, axis=axis, reverse=False)
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("op, ufunc", PAIRS, ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_nan_stays_and_infinities_pass(op: Any, ufunc: Any, reverse: bool) -> None:
    x = np.array([-np.inf, -np.inf, 1, 2, np.inf, 3, np.nan, 4], np.float32)
    with np.errstate(all="ignore"):
        wanted = accumulated(ufunc)(x, 0, reverse)
    np.testing.assert_allclose(op(x, axis=0, reverse=reverse), wanted, rtol=1e-6)


@pytest.mark.parametrize("op, ufunc", PAIRS, ids=str)
@pytest.mark.parametrize("n", [8_192, 8_193, 20_001])
@pytest.mark.parametrize("reverse", [False, True])
def test_long_axis(op: Any, ufunc: Any, n: int, reverse: bool) -> None:
    # Products stay near one: the tree and the loop are both within n units in the last place.
    x = np.random.default_rng(n).uniform(0.99, 1.01, n)
    wanted = accumulated(ufunc)(x.astype("f4").astype("f8"), 0, reverse)
    found = op(x.astype("f4"), axis=0, reverse=reverse)
    np.testing.assert_allclose(found, wanted, rtol=n * 2**-24)


def test_sums_are_rounded_once() -> None:
    # In float32 alone, the sum of so many numbers one by one is off in the fifth digit.
    x = np.random.default_rng(0).uniform(0, 1, (8_000, 2)).astype("f4")
    exact = np.cumsum(x.astype("f8"), 0).astype("f4")
    np.testing.assert_array_equal(ops.cumsum(x, axis=0, reverse=False), exact)


def test_half_precision_sums_do_not_stall() -> None:
    # In bfloat16, 256 + 1 is 256.
    x = np.ones(1_000, harness.dtype_named("bfloat16"))
    found = np.asarray(ops.cumsum(x, axis=0, reverse=False)).astype("f4")
    np.testing.assert_allclose(found, np.arange(1, 1_001), rtol=2**-8)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e4m3b11fnuz"])
def test_narrow_log_sum_exp(dtype: str) -> None:
    x = np.array([1, 3, 2, 0.5, 4], harness.dtype_named(dtype))
    found = np.asarray(ops.cumlogsumexp(x, axis=0, reverse=False))
    exact = np.logaddexp.accumulate(x.astype("f8"))
    np.testing.assert_array_equal(found, exact.astype(x.dtype))


def test_integers_wrap_around() -> None:
    x = np.array([200, 100, 3], np.uint8)
    np.testing.assert_array_equal(ops.cumsum(x, axis=0, reverse=False), np.cumsum(x, dtype="u1"))
    np.testing.assert_array_equal(ops.cumprod(x, axis=0, reverse=False), np.cumprod(x, dtype="u1"))


def test_extrema_of_complex_numbers() -> None:
    x = np.array([1 + 2j, 1 + 1j, 3, 3 - 1j, 2j], np.complex64)
    found = ops.cummax(x, axis=0, reverse=False)
    np.testing.assert_array_equal(found, np.maximum.accumulate(x))


def test_imaginary_part_stays_within_pi() -> None:
    x = np.array([3j, 3.5j, 10j], np.complex64)
    found = np.asarray(ops.cumlogsumexp(x, axis=0, reverse=False))
    np.testing.assert_allclose(np.exp(found), np.cumsum(np.exp(x)), rtol=1e-5)
    assert np.abs(found[1:].imag).max() <= np.pi


def test_derivative_of_product_with_zeros() -> None:
    x, t = np.array([2.0, 0, 5, 0]).astype("f4"), np.array([1.0, 3, 7, 11]).astype("f4")
    _, tangent = ops.cumprod.jvp([x], [t], axis=0, reverse=False)
    np.testing.assert_array_equal(tangent, [1, 2 * 3, 2 * 3 * 5, 0])


def test_derivative_of_log_sum_exp_of_nothing() -> None:
    x, t = np.array([-np.inf, -np.inf, 0, 0], np.float32), np.array([1, 1, 2, 4], np.float32)
    _, tangent = ops.cumlogsumexp.jvp([x], [t], axis=0, reverse=False)
    np.testing.assert_array_equal(np.asarray(tangent)[2:], [2, 3])
    assert np.isfinite(tangent).all()


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize("op", ALL, ids=str)
def test_loops_are_for_cpus(op: Any, platform: str) -> None:
    aval = ShapedArray((4, 3), np.dtype("float32"))
    jaxpr, _ = stage(lambda x: [op(x, axis=0, reverse=True)], [aval])
    module = Module("test", platform)
    module.main(jaxpr)
    assert module.module.operation.verify()
    assert ("stablehlo.while" in module.text()) == (platform == "cpu")
    assert ("stablehlo.reduce_window" in module.text()) == (platform != "cpu")


@pytest.mark.parametrize("op", ALL, ids=str)
def test_bad_operands(op: Any) -> None:
    aval = ShapedArray((3, 4), np.dtype("float32"))
    for axis in (2, -1):
        with pytest.raises(ValueError, match=rf"{op.name}: axis {axis} is out of bounds"):
            op.type(aval, axis=axis, reverse=False)
    with pytest.raises(TypeError, match=f"{op.name} does not accept dtype bool"):
        op.type(aval.update(dtype=np.dtype(bool)), axis=0, reverse=False)
    if op is ops.cumlogsumexp:
        with pytest.raises(TypeError, match="float or complex"):
            op.type(aval.update(dtype=np.dtype("int32")), axis=0, reverse=False)

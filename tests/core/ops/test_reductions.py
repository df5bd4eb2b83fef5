"""Reductions and positions of extremes, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import harness
from support.harness import (
    ANY,
    BITS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    Op,
    Sample,
    distinct,
    given,
    normal,
    sample,
    uniform,
)

from perspex import config
from perspex.hlo.builder import Module
from perspex.ir.avals import ShapedArray
from perspex.ops import reductions as ops
from perspex.tracing.staging import stage

I32 = np.dtype("int32")
AXES = [(0,), (1, 2), (0, 1, 2), ()]


def over(draw: Any, axes: Any = AXES) -> list[Sample]:
    return [sample(draw, axes=a) for a in axes]


def strong(weak: Any) -> bool:
    return False


def bits(function: Any) -> Any:
    return lambda x, axes: function.reduce(x, axes)


def positions(function: Any) -> Any:
    return lambda x, axes, index_dtype: function(x, axes[0]).astype(index_dtype)


def arg_samples(*draws: Any) -> list[Sample]:
    return [
        sample(draw, axes=(axis,), index_dtype=dtype)
        for draw in draws
        for axis, dtype in [(0, I32), (1, np.dtype("uint8"))]
    ]


OPS = [
    Op(ops.reduce_max, lambda x, axes: np.max(x, axes), over(distinct(2, 3, 4)), ANY, tolerance=0),
    Op(ops.reduce_min, lambda x, axes: np.min(x, axes), over(distinct(2, 3, 4)), ANY, tolerance=0),
    Op(
        ops.reduce_prod,
        lambda x, axes: np.prod(x, axes, dtype=x.dtype),
        [*over(uniform(0.5, 2, 2, 3, 4)), *over(uniform(1, 3, 7), [(0,)])],
        NUMBERS,
        tolerance=4,
    ),
    Op(ops.reduce_and, bits(np.bitwise_and), over(normal(2, 3, 4)), BITS, weak=strong),
    Op(ops.reduce_or, bits(np.bitwise_or), over(normal(2, 3, 4)), BITS, weak=strong),
    Op(ops.reduce_xor, bits(np.bitwise_xor), over(normal(2, 3, 4)), BITS, weak=strong),
    Op(
        ops.argmax,
        positions(np.argmax),
        arg_samples(normal(4, 5, 3)),
        (*FLOATS, *INTEGERS, "bool"),
        result=None,
        weak=strong,
    ),
    Op(
        ops.argmin,
        positions(np.argmin),
        arg_samples(normal(4, 5, 3)),
        (*FLOATS, *INTEGERS, "bool"),
        result=None,
        weak=strong,
    ),
]
test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)


@pytest.mark.parametrize("dtype", [*FLOATS[:3], "complex64", *INTEGERS[:4], "bool"])
def test_reduction_of_nothing_is_the_identity(dtype: str) -> None:
    x = np.zeros((0, 2), harness.dtype_named(dtype))
    for op, combine in [(ops.reduce_max, np.maximum), (ops.reduce_min, np.minimum)]:
        identity = np.asarray(op(x, axes=(0,)))
        assert identity.shape == (2,)
        if dtype == "complex64":
            assert np.all(identity == combine(np.inf, -np.inf) * -1)
            continue
        for value in (0, 1, 100):
            other = np.full(2, value, x.dtype)
            np.testing.assert_array_equal(combine(identity, other), other)
    if dtype in INTEGERS or dtype == "bool":
        identity = np.asarray(ops.reduce_and(x, axes=(0,)))
        np.testing.assert_array_equal(identity & np.ones(2, x.dtype), np.ones(2, x.dtype))
        assert not np.asarray(ops.reduce_or(x, axes=(0,))).any()
    if dtype != "bool":
        assert np.all(np.asarray(ops.reduce_prod(x, axes=(0,))) == 1)


def test_float8_without_infinity_reduces_to_its_own_extreme() -> None:
    x = np.array([-448, 2, 448], ml_dtypes.float8_e4m3fn)
    assert float(ops.reduce_max(x, axes=(0,))) == 448
    assert float(ops.reduce_max(x[:0], axes=(0,))) == -448


def test_extremum_of_complex_goes_by_real_part_first() -> None:
    x = np.array([1 + 5j, 2 - 1j, 2 + 3j, -4], np.complex64)
    assert complex(ops.reduce_max(x, axes=(0,))) == np.max(x)
    assert complex(ops.reduce_min(x, axes=(0,))) == np.min(x)


def test_nan_is_extreme() -> None:
    x = np.array([[1, np.nan, 3], [1, 2, 0]], np.float32)
    for op, reference in [(ops.reduce_max, np.max), (ops.reduce_min, np.min)]:
        np.testing.assert_array_equal(op(x, axes=(1,)), reference(x, 1))
    for op, reference in [(ops.argmax, np.argmax), (ops.argmin, np.argmin)]:
        np.testing.assert_array_equal(op(x, axes=(1,), index_dtype=I32), reference(x, 1))


def test_ties_share_the_derivative() -> None:
    x, t = np.array([3.0, 1.0, 3.0], np.float32), np.array([1.0, 10.0, 4.0], np.float32)
    _, tangent = ops.reduce_max.jvp([x], [t], axes=(0,))
    assert float(tangent) == 2.5


def test_product_with_zeros_has_its_derivative() -> None:
    x, t = np.array([2.0, 0.0, 5.0]), np.array([7.0, 3.0, 11.0])
    _, tangent = ops.reduce_prod.jvp([x.astype("f4")], [t.astype("f4")], axes=(0,))
    assert float(tangent) == 2 * 3 * 5


# Above some size, positions are found in two passes on a CPU.
LARGE = {
    "no ties": lambda rng: rng.permutation(300 * 120).astype("f4"),
    "ties": lambda rng: rng.integers(0, 5, 300 * 120).astype("f4"),
    "NaNs": lambda rng: np.where(rng.random(300 * 120) < 0.02, np.nan, 1.0).astype("f4"),
    "infinities": lambda rng: np.full(300 * 120, -np.inf, "f4"),
}


SHAPES = [((300, 120), 0), ((120, 300), 1), ((10, 300, 12), 1), ((36_000,), 0)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", LARGE)
def test_extrema_of_a_large_array(kind: str, dtype: str) -> None:
    values = LARGE[kind](np.random.default_rng(0)).astype(harness.dtype_named(dtype))
    with config.enable_x64(True):
        for shape, axis in SHAPES:
            x = values.reshape(shape)
            for op, reference in [(ops.reduce_max, np.max), (ops.reduce_min, np.min)]:
                wanted = reference(harness.wide(x), axis)
                np.testing.assert_array_equal(harness.wide(op(x, axes=(axis,))), wanted)


@pytest.mark.parametrize("size", [1_000, 1_024, 1_025, 4_095, 4_096, 5_000])
def test_one_nan_among_many_is_not_lost(size: int) -> None:
    for place in (0, size // 2, size - 1):
        x = np.ones(size, np.float32)
        x[place] = np.nan
        assert np.isnan(ops.reduce_max(x, axes=(0,)))
        assert np.isnan(ops.reduce_min(x, axes=(0,)))


@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("shape, axis", SHAPES)
def test_position_in_a_large_array(kind: str, shape: Any, axis: int) -> None:
    x = LARGE[kind](np.random.default_rng(0)).reshape(shape)
    for op, reference in [(ops.argmax, np.argmax), (ops.argmin, np.argmin)]:
        found = np.asarray(op(x, axes=(axis,), index_dtype=I32))
        np.testing.assert_array_equal(found, reference(x, axis))


def test_position_wraps_in_a_narrow_dtype() -> None:
    x = np.zeros(20_000, np.float32)
    x[300] = 1
    assert int(ops.argmax(x, axes=(0,), index_dtype=np.dtype("uint8"))) == 300 - 256


F32 = ShapedArray((3, 4), np.dtype("float32"))
BOOL = ShapedArray((3,), np.dtype(bool))


@pytest.mark.parametrize(
    "op, aval, params, error, words",
    [
        (ops.reduce_max, F32, {"axes": (2,)}, ValueError, "out of range"),
        (ops.reduce_max, F32, {"axes": (0, 0)}, ValueError, "duplicate"),
        (ops.reduce_prod, BOOL, {"axes": (0,)}, TypeError, "bool"),
        (ops.reduce_and, F32, {"axes": (0,)}, TypeError, "float32"),
        (ops.argmax, F32, {"axes": (2,), "index_dtype": I32}, ValueError, "out of range"),
        (
            ops.argmax,
            F32,
            {"axes": (0,), "index_dtype": np.dtype("float32")},
            TypeError,
            "index_dtype",
        ),
        (
            ops.argmin,
            F32.update(shape=(0, 3)),
            {"axes": (0,), "index_dtype": I32},
            ValueError,
            "empty",
        ),
        (
            ops.argmax,
            F32.update(dtype=np.dtype("complex64")),
            {"axes": (0,), "index_dtype": I32},
            TypeError,
            "complex64",
        ),
    ],
)
def test_bad_operands(op: Any, aval: Any, params: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        op.type(aval, **params)
    assert op.name in str(caught.value)


def test_negative_zero_keeps_its_place() -> None:
    case = given([-0.0, 0.0])(np.random.default_rng(0), np.dtype("float32"))
    assert int(ops.argmax(case, axes=(0,), index_dtype=I32)) == 0


@pytest.mark.parametrize("op", [ops.reduce_max, ops.argmin], ids=str)
@pytest.mark.parametrize("platform, reductions", [("cpu", 2), ("cuda", 1)])
def test_two_passes_are_for_cpus(op: Any, platform: str, reductions: int) -> None:
    params: Any = {"axes": (0,)} | ({"index_dtype": I32} if op is ops.argmin else {})
    jaxpr, _ = stage(lambda x: [op(x, **params)], [F32.update(shape=(20_000,))])
    module = Module("test", platform)
    module.main(jaxpr)
    assert module.module.operation.verify()
    assert module.text().count("stablehlo.reduce(") == reductions

"""Sorting and top k, against NumPy's stable sorts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import harness
from support.harness import (
    ANY,
    FLOATS,
    INTEGERS,
    NUMBERS,
    Op,
    Sample,
    distinct,
    fixed,
    integers,
    normal,
    sample,
)

from oracle import records
from perspex import config, dtypes
from perspex.hlo.builder import Module
from perspex.ir.avals import ShapedArray
from perspex.ops import sorting as ops
from perspex.tracing.staging import stage

F32 = ShapedArray((3, 4), np.dtype("float32"))


def lexicographic(*xs: np.ndarray, dimension: int, is_stable: bool, num_keys: int) -> list[Any]:
    order = np.lexsort(xs[:num_keys][::-1], axis=dimension)
    return [np.take_along_axis(x, order, dimension) for x in xs]


def greatest(x: np.ndarray, axis: int, is_stable: bool, k: int) -> tuple[Any, Any]:
    # Positions in the order of falling values, of equal ones the first one first.
    flipped = np.flip(x, axis)
    order = np.flip(np.argsort(flipped, axis, kind="stable"), axis)
    order = x.shape[axis] - 1 - order
    order = np.take(order, range(k), axis).astype(np.int32)
    return np.take_along_axis(x, order, axis), order


def sorts(*draws: Any, dimension: int, num_keys: int = 1, is_stable: bool = True) -> Sample:
    return sample(*draws, dimension=dimension, num_keys=num_keys, is_stable=is_stable)


def tops(draw: Any, axis: int, k: int) -> Sample:
    return sample(draw, axis=axis, k=k, is_stable=True)


FEW = integers(0, 3, 2, 30)
OPS = [
    Op(
        ops.sort,
        lexicographic,
        [sorts(distinct(3, 7), dimension=d) for d in (0, 1)],
        ANY,
        tolerance=0,
    ),
    Op(
        ops.sort,
        lexicographic,
        [
            sorts(distinct(4, 5), distinct(4, 5), dimension=0),
            sorts(distinct(4, 5), distinct(4, 5), distinct(4, 5), dimension=1, num_keys=2),
        ],
        NUMBERS,
        tolerance=0,
        weak=None,
        name="sort-values",
    ),
    # Keys of few values: ties go to the next key, and then stay in place.
    Op(
        ops.sort,
        lexicographic,
        [
            sorts(
                integers(0, 3, 2, 30), integers(0, 3, 2, 30), normal(2, 30), dimension=1, num_keys=n
            )
            for n in (1, 2, 3)
        ],
        FLOATS,
        result=None,
        tolerance=0,
        weak=None,
        name="sort-ties",
    ),
    Op(
        ops.top_k,
        greatest,
        [
            *[tops(distinct(4, 6), axis, k) for axis, k in [(1, 3), (0, 4), (1, 0), (0, 1)]],
            tops(distinct(2, 3, 4), 1, 2),
        ],
        (*FLOATS, *INTEGERS),
        result=None,
        tolerance=0,
    ),
    Op(
        ops.top_k,
        greatest,
        [tops(integers(0, 3, 3, 20), 1, 9), tops(fixed([True, False, True, True], "bool"), 0, 3)],
        ("float32",),
        result=None,
        tolerance=0,
        weak=None,
        name="top_k-ties",
    ),
]
test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)

SPECIAL = [np.nan, 0.0, -0.0, -np.nan, np.inf, -np.inf, 3.5, -2.0]


def stable_order(x: np.ndarray) -> np.ndarray:
    """NumPy's stable order of numbers of which the subnormal ones are zeros."""
    tiny = float(dtypes.finfo(x.dtype).smallest_normal)
    wide = harness.wide(x)
    return np.argsort(np.where(np.abs(wide) < tiny, 0, wide), kind="stable")


# Larger arrays are sorted by integer keys on a CPU, if all zeros in them are the same.
@pytest.mark.parametrize("repeats", [1, 150])
@pytest.mark.parametrize("left_out", [(), (0.0,), (-0.0,), (0.0, -0.0)], ids=str)
@pytest.mark.parametrize("tiny", [(), (1e-45,), (-1e-45, 1e-45)], ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_numbers(dtype: str, tiny: Any, left_out: Any, repeats: int) -> None:
    signs = [np.signbit(zero) for zero in left_out]
    values = [v for v in SPECIAL if not (v == 0 and np.signbit(v) in signs)]
    if dtype != "float16":  # too small for it
        values += tiny
    x = np.random.default_rng(0).permutation(np.tile(values, repeats))
    x = x.astype(harness.dtype_named(dtype))
    order = stable_order(x)
    places = np.arange(x.size, dtype=np.int32)
    with config.enable_x64(True):
        (found,) = ops.sort(x, dimension=0, is_stable=True, num_keys=1)
        _, positions = ops.sort(x, places, dimension=0, is_stable=True, num_keys=1)
    np.testing.assert_array_equal(positions, order)
    found, wanted = harness.wide(found), harness.wide(x[order])
    np.testing.assert_array_equal(found, wanted)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[number], np.signbit(wanted)[number])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_each_axis_of_a_larger_array(dtype: str, axis: int) -> None:
    x = np.random.default_rng(1).normal(size=(20, 30, 7)).astype(dtype)
    with config.enable_x64(True):
        (found,) = ops.sort(x, dimension=axis, is_stable=False, num_keys=1)
    np.testing.assert_array_equal(found, np.sort(x, axis))


def test_complex_numbers_go_by_real_part() -> None:
    parts = [0.0, -0.0, 1.0, np.nan, np.inf, -np.inf]
    grid = np.array([complex(re, im) for re in parts[:3] for im in parts], np.complex64)
    x = np.random.default_rng(2).permutation(grid[~np.isnan(grid)])
    (found,) = ops.sort(x, dimension=0, is_stable=True, num_keys=1)
    np.testing.assert_array_equal(found, np.sort(x, kind="stable"))


def test_top_k_takes_nan_for_greatest() -> None:
    x = np.array([1, np.nan, np.inf, -np.inf, 2], np.float32)
    values, order = ops.top_k(x, axis=0, k=3, is_stable=True)
    np.testing.assert_array_equal(values, [np.nan, np.inf, 2])
    np.testing.assert_array_equal(order, [1, 2, 4])


def test_tangents_go_where_their_elements_go() -> None:
    x, t = np.array([[3.0, 1, 2], [0, 5, 4]], np.float32), np.arange(6, dtype="f4").reshape(2, 3)
    (_,), (tangent,) = ops.sort.jvp([x], [t], dimension=1, is_stable=True, num_keys=1)
    np.testing.assert_array_equal(tangent, [[1, 2, 0], [3, 5, 4]])
    (_, _), (tangent, none) = ops.top_k.jvp([x], [t], axis=0, k=1, is_stable=True)
    np.testing.assert_array_equal(tangent, [[0, 4, 5]])
    assert none is None


@pytest.mark.parametrize(
    "avals, params, error, words",
    [
        ([], {"dimension": 0, "num_keys": 1}, TypeError, "at least one operand"),
        ([F32], {"dimension": 2, "num_keys": 1}, ValueError, "axis 2 is out of bounds"),
        ([F32], {"dimension": 0, "num_keys": 2}, ValueError, "num_keys"),
        ([F32, F32], {"dimension": 0, "num_keys": 0}, ValueError, "num_keys"),
        (
            [F32, F32.update(shape=(3, 1))],
            {"dimension": 0, "num_keys": 1},
            TypeError,
            "equal shapes",
        ),
    ],
)
def test_bad_operands_of_sort(avals: Any, params: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        ops.sort.type(*avals, is_stable=True, **params)


@pytest.mark.parametrize(
    "aval, axis, k, words",
    [
        (F32, 1, 5, "no larger than the axis"),
        (F32, 1, -1, "must not be negative"),
        (F32, 2, 1, "axis 2 is out of bounds"),
        (F32.update(dtype=np.dtype("complex64")), 0, 1, "complex64"),
    ],
)
def test_bad_operands_of_top_k(aval: ShapedArray, axis: int, k: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ops.top_k.type(aval, axis=axis, k=k, is_stable=True)


@pytest.mark.parametrize("platform, sorts", [("cpu", 2), ("cuda", 1)])
def test_integer_keys_are_for_cpus(platform: str, sorts: int) -> None:
    aval = ShapedArray((2_000,), np.dtype("float32"))
    params = {"dimension": 0, "is_stable": True, "num_keys": 1}
    jaxpr, _ = stage(lambda x: ops.sort(x, **params), [aval])
    module = Module("test", platform)
    module.main(jaxpr)
    assert module.module.operation.verify()
    assert module.text().count('"stablehlo.sort"') == sorts


COMPARATORS = records.read("comparators")


@pytest.mark.parametrize("key", COMPARATORS)
def test_gpus_know_the_comparison(key: str) -> None:
    """XLA recognizes JAX's instructions, and no others, as a sort that CUB does."""
    assert records.ours("comparators")[key] == COMPARATORS[key]

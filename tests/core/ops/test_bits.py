"""The hash against the authors' known answers and a plain program of the paper's text."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from support import threefry as reference

from perspex import config, jit
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, check
from perspex.ops import bits
from perspex.ops import shape as ops
from perspex.ops.bits import threefry2x32
from perspex.runtime.client import default_device
from perspex.runtime.lowered import Lowered
from perspex.tracing.primitive import Linear
from perspex.tracing.staging import stage

RNG = np.random.default_rng(0)
U32 = np.dtype("uint32")


def words(*shape: int) -> np.ndarray:
    return RNG.integers(0, 2**32, shape).astype(U32)


def hashed(*operands: Any) -> np.ndarray:
    """The reference, over broadcast operands."""
    k, l, x, y = np.broadcast_arrays(*operands)  # noqa: E741
    out = [
        reference.threefry((a, b), (c, d))
        for a, b, c, d in zip(k.flat, l.flat, x.flat, y.flat, strict=True)
    ]
    return np.array(out, U32).T.reshape(2, *k.shape)


@pytest.mark.parametrize("counter, key, want", reference.KNOWN_ANSWERS)
def test_known_answers(counter: Any, key: Any, want: Any) -> None:
    out = threefry2x32(*[np.uint32(n) for n in (*key, *counter)])
    assert [int(x) for x in out] == list(want)
    assert reference.threefry(key, counter) == want


@pytest.mark.parametrize(
    "shapes",
    [
        [(), (), (5,), (5,)],
        [(), (), (), (2, 3)],
        [(4,), (4,), (), ()],
        [(2, 3)] * 4,
        [(), (), (0,), (0,)],
        [(3,), (), (), (3,)],
    ],
    ids=str,
)
def test_hash_of_arrays(shapes: Any) -> None:
    operands = [words(*shape) for shape in shapes]
    for f in (threefry2x32, jit(threefry2x32)):
        out = np.stack([np.asarray(x) for x in f(*operands)])
        np.testing.assert_array_equal(out, hashed(*operands))


def test_type_rule_refuses_other_operands() -> None:
    with pytest.raises(TypeError, match=r"uint32 .* i32\[3\]"):
        threefry2x32(words(), words(), words(3), np.zeros(3, np.int32))
    with pytest.raises(TypeError, match="incompatible shapes"):
        threefry2x32(words(), words(), words(3), words(4))


def test_tangents_are_zero() -> None:
    out, tangents = threefry2x32.jvp([words() for _ in range(4)], [None] * 4)
    assert len(out) == 2
    assert tangents == [None, None]


@pytest.mark.parametrize("ranks", [(0, 0, 1, 1), (0, 0, 0, 0), (1, 1, 0, 1)], ids=str)
def test_batch_rule_is_a_loop(ranks: tuple[int, ...]) -> None:
    size, n = 4, 3
    for axes in itertools.product(*[[None, *range(rank + 1)] for rank in ranks]):
        if all(axis is None for axis in axes):
            continue
        operands, examples = [], []
        for rank, axis in zip(ranks, axes, strict=True):
            x = words(*[n] * rank) if axis is None else words(size, *[n] * rank)
            examples.append([x if axis is None else x[i] for i in range(size)])
            operands.append(x if axis is None else np.moveaxis(x, 0, axis))
        outs, out_axes = threefry2x32.batch(size, operands, axes)
        want = np.stack([hashed(*[e[i] for e in examples]) for i in range(size)], axis=1)
        for out, axis, expected in zip(outs, out_axes, want, strict=True):
            np.testing.assert_array_equal(np.moveaxis(np.asarray(out), axis, 0), expected)


def test_one_function_of_a_module_for_many_uses() -> None:
    def f(k: Any, l: Any, x: Any, y: Any) -> Any:  # noqa: E741
        for _ in range(10):
            x, y = threefry2x32(k, l, x, y)
        return x, y

    avals = [ShapedArray(shape, U32) for shape in [(), (), (7,), (7,)]]
    jaxpr, _ = stage(f, avals)
    check(jaxpr)
    text = Lowered(ClosedJaxpr(jaxpr), "f", default_device()).as_text()
    assert text.count("func.func private @threefry2x32") == 1
    assert text.count("call @threefry2x32") == 10


SHAPES = [(), (1,), (5,), (8,), (2, 3), (0,), (2, 0, 3)]
LAYOUTS = pytest.mark.parametrize("partitionable", [True, False])


def run(f: Any, *args: Any, **params: Any) -> np.ndarray:
    with config.enable_x64(True):
        return np.asarray(jit(functools.partial(f, **params))(*args))


@LAYOUTS
@pytest.mark.parametrize("bit_width", [8, 16, 32, 64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_bits(shape: Any, bit_width: int, partitionable: bool) -> None:
    params = {"bit_width": bit_width, "shape": shape, "partitionable": partitionable}
    for batch in [(), (3,), (2, 2)]:
        keys = words(*batch, 2)
        out = run(bits.random_bits, keys, **params)
        want = [reference.random_bits(key, **params) for key in keys.reshape(-1, 2)]
        np.testing.assert_array_equal(out, np.array(want).reshape((*batch, *shape)))
        assert out.dtype == f"uint{bit_width}"


@LAYOUTS
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_split(shape: Any, partitionable: bool) -> None:
    params = {"shape": shape, "partitionable": partitionable}
    for batch in [(), (3,), (2, 2)]:
        keys = words(*batch, 2)
        want = [reference.split(key, **params) for key in keys.reshape(-1, 2)]
        np.testing.assert_array_equal(
            run(bits.split, keys, **params), np.array(want).reshape(*batch, *shape, 2)
        )


def test_fold_in_many() -> None:
    keys, data = words(5, 2), words(5)
    want = [reference.fold_in(key, n) for key, n in zip(keys, data, strict=True)]
    np.testing.assert_array_equal(run(bits.fold_in, keys, data), want)
    np.testing.assert_array_equal(
        run(bits.fold_in, keys[0], data), [reference.fold_in(keys[0], n) for n in data]
    )
    np.testing.assert_array_equal(
        run(bits.fold_in, keys, data[0]), [reference.fold_in(k, data[0]) for k in keys]
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_seed_is_high_and_low_word(dtype: str) -> None:
    info = np.iinfo(dtype)
    seeds = np.array([0, 1, 100, info.min, info.max], dtype)
    wide = [int(n) % 2**64 if info.bits == 64 else int(n) % 2**32 for n in seeds]
    want = [[n >> 32, n & 0xFFFFFFFF] for n in wide]
    np.testing.assert_array_equal(run(bits.seed, seeds), want)
    assert run(bits.seed, seeds[0]).shape == (2,)


def test_positions_of_more_than_32_bits() -> None:
    # More elements than there is memory for: only the last ones are computed.
    shape = (2**20, 2**14)
    last = {"start_indices": (2**20 - 1, 2**14 - 3), "limit_indices": shape, "strides": None}

    def ends() -> Any:
        return [ops.slice(x, **last) for x in bits.positions(shape)]

    with config.enable_x64(True):
        high, low = jit(ends)()
    np.testing.assert_array_equal(high, [[3, 3, 3]])
    np.testing.assert_array_equal(low, [[2**32 - 3, 2**32 - 2, 2**32 - 1]])


def test_original_layout_ends_at_32_bits() -> None:
    key = ShapedArray((2,), U32)
    with pytest.raises(OverflowError, match="threefry_partitionable"):
        stage(lambda k: [bits.split(k, shape=(2**31,), partitionable=False)], [key])


def test_keys_are_not_differentiated_linearly() -> None:
    with pytest.raises(NotImplementedError, match="threefry2x32.*transpose"):
        threefry2x32.transpose([None, None], *[Linear(ShapedArray((), U32))] * 4)

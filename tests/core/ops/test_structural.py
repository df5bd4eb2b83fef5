"""Broadcast, sum, reshape, transpose, squeeze, convert; and what moves arrays, on typed keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import harness
from support.harness import ANY, MOVED, NUMBERS, Op, normal, sample

from perspex import config, dtypes
from perspex.ir.avals import ShapedArray, shaped
from perspex.ops import dynamic, elementwise, indexing, passing, shape, structural
from perspex.ops.windows import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from perspex.runtime.client import default_device
from perspex.runtime.keys import KeyArray
from perspex.runtime.transfer import put
from perspex.tracing.primitive import Linear


def broadcasted(x: np.ndarray, shape: Any, broadcast_dimensions: Any) -> np.ndarray:
    full = [1] * len(shape)
    for n, d in zip(x.shape, broadcast_dimensions, strict=True):
        full[d] = n
    return np.broadcast_to(x.reshape(full), shape)


OPS = [
    Op(
        structural.broadcast_in_dim,
        broadcasted,
        [
            sample(normal(*given), shape=to, broadcast_dimensions=dims)
            for given, to, dims in [
                ((3,), (2, 3), (1,)),
                ((3,), (3, 2), (0,)),
                ((1, 3), (4, 3), (0, 1)),
                ((2, 3), (2, 1, 3, 1), (0, 2)),
                ((), (2, 2), ()),
                ((1,), (0,), (0,)),
            ]
        ],
        MOVED,
        tolerance=0,
        linear=((0,),),
    ),
    Op(
        structural.reduce_sum,
        lambda x, axes: np.sum(x, axes, dtype=x.dtype),
        [sample(normal(2, 3, 4), axes=a) for a in [(0,), (1, 2), (), (0, 1, 2)]]
        + [sample(normal(0, 3), axes=(0,)), sample(normal(), axes=())],
        NUMBERS,
        tolerance=8,
        linear=((0,),),
    ),
    Op(
        structural.reshape,
        lambda x, new_sizes: x.reshape(new_sizes),
        [sample(normal(2, 6), new_sizes=s) for s in [(3, 4), (12,), (2, 1, 6), (2, 6)]]
        + [sample(normal(), new_sizes=(1, 1)), sample(normal(0, 3), new_sizes=(5, 0))],
        MOVED,
        tolerance=0,
        linear=((0,),),
    ),
    Op(
        structural.transpose,
        lambda x, permutation: x.transpose(permutation),
        [sample(normal(2, 3, 4), permutation=p) for p in [(2, 0, 1), (0, 2, 1), (0, 1, 2)]]
        + [sample(normal(), permutation=())],
        MOVED,
        tolerance=0,
        linear=((0,),),
    ),
    Op(
        structural.squeeze,
        lambda x, dimensions: np.squeeze(x, dimensions),
        [sample(normal(1, 3, 1), dimensions=d) for d in [(0,), (0, 2), (2,), ()]],
        MOVED,
        tolerance=0,
        linear=((0,),),
    ),
]


def converted(name: str) -> Op:
    dtype = harness.dtype_named(name)
    return Op(
        structural.convert_element_type,
        lambda x, new_dtype, weak_type: np.real(x).astype(new_dtype),
        [sample(normal(2, 3), new_dtype=dtype, weak_type=False)],
        [d for d in ("float32", "bfloat16", "int8", "uint8", "bool", "float64") if d != name],
        result=lambda _: dtype,
        linear=((0,),),
        # Rounding is no smooth function; `test_conversion_is_linear` has the others.
        smooth=("float64",) if name == "complex128" else (),
        weak=lambda _: False,
        name=f"convert to {name}",
    )


CONVERSIONS = [converted(d) for d in ("float32", "bfloat16", "int32", "int8", "complex128")]

(
    test_value,
    test_staged,
    test_jvp,
    test_transpose,
    test_batch,
    test_weak,
) = harness.tests([*OPS, *CONVERSIONS])


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_narrow_dtypes_survive_a_round_trip(dtype: str) -> None:
    narrow = harness.dtype_named(dtype)
    values = np.array([0, 1, 2, 5], np.float32)
    there = structural.convert_element_type(values, new_dtype=narrow, weak_type=False)
    assert there.dtype == narrow
    back = structural.convert_element_type(there, new_dtype=values.dtype, weak_type=False)
    np.testing.assert_array_equal(np.asarray(back), values)


@pytest.mark.parametrize("given", ["complex64", "float32", "int32"])
def test_conversion_to_bool_asks_for_zero(given: str) -> None:
    x = np.array([0, 1, -2, 3]).astype(given)
    found = structural.convert_element_type(x, new_dtype=np.dtype(bool), weak_type=False)
    np.testing.assert_array_equal(np.asarray(found), x != 0)


@pytest.mark.parametrize("to", ["bfloat16", "float16", "complex64", "float32", "int32"])
def test_conversion_is_linear_between_inexact_dtypes(to: str) -> None:
    dtype = harness.dtype_named(to)
    params = {"new_dtype": dtype, "weak_type": False}
    x, t = np.float32([0.5, 4]), np.float32([0.25, -2])
    out, tangent = structural.convert_element_type.jvp([x], [t], **params)
    assert out.dtype == dtype
    if to == "int32":
        assert tangent is None
        return
    assert tangent.dtype == dtype
    np.testing.assert_array_equal(harness.wide(tangent), t)
    (ct,) = structural.convert_element_type.transpose(tangent, Linear(shaped(x)), **params)
    assert ct.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(ct), t)


@pytest.mark.parametrize("dtype", [*ANY, "int4", "uint4", "uint64", "float8_e4m3fn"])
@pytest.mark.parametrize("values", [[1], [1, 0, 1], [1] * 3, [0, 1] * 4, [0, 0, 1] * 3, []])
def test_constants_of_a_program_keep_their_values(dtype: str, values: list[int]) -> None:
    with config.enable_x64(True):
        constant = np.array(values).astype(harness.dtype_named(dtype))
        (out,) = harness.compiled(
            lambda: [structural.reshape(constant, new_sizes=(len(values),))], []
        )
        assert out.dtype == constant.dtype
        np.testing.assert_array_equal(np.real(out).astype(int), values)


@pytest.mark.parametrize("special", [-0.0, np.nan, np.inf, 1e-45])
@pytest.mark.parametrize("size", [1, 3])
def test_special_constants_keep_their_bits(special: float, size: int) -> None:
    constant = np.full(size, special, np.float32)
    (out,) = harness.compiled(lambda: [elementwise.copy(constant)], [])
    assert np.asarray(out).tobytes() == constant.tobytes()


def test_floats_out_of_range_saturate() -> None:
    x = np.array([1e10, -1e10, np.nan], np.float32)
    found = structural.convert_element_type(x, new_dtype=np.dtype("int32"), weak_type=False)
    info = np.iinfo("int32")
    assert np.asarray(found).tolist() == [info.max, info.min, 0]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: structural.reshape(x, new_sizes=(4,)), TypeError, "cannot reshape"),
        (lambda x: structural.transpose(x, permutation=(0, 0)), TypeError, "permutation"),
        (lambda x: structural.squeeze(x, dimensions=(0,)), ValueError, "size not equal to one"),
        (lambda x: structural.reduce_sum(x, axes=(2,)), ValueError, "out of range"),
        (lambda x: structural.reduce_sum(x, axes=(0, 0)), ValueError, "duplicate"),
        (lambda x: structural.reduce_sum(x > 0, axes=(0,)), TypeError, "not a number"),
        (
            lambda x: structural.broadcast_in_dim(x, shape=(3, 3), broadcast_dimensions=(0, 1)),
            TypeError,
            "does not broadcast",
        ),
        (
            lambda x: structural.broadcast_in_dim(x, shape=(3, 2), broadcast_dimensions=(1, 0)),
            TypeError,
            "increasing",
        ),
        (
            lambda x: structural.broadcast_in_dim(x, shape=(2, 3), broadcast_dimensions=(1,)),
            TypeError,
            "broadcast_dimensions",
        ),
    ],
)
def test_errors_say_what_disagreed(call: Callable[[Any], Any], kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        call(np.ones((2, 3), np.float32))


# ---- Typed keys ---------------------------------------------------------------------------------

FRY = dtypes.KeyType("threefry2x32", "fry", (2,))


def keys(*dims: int, start: int = 0) -> KeyArray:
    size = int(np.prod(dims)) * 2
    numbers = np.arange(start, start + size, dtype=np.uint32).reshape(*dims, 2)
    return KeyArray(ShapedArray(dims, FRY), put(numbers, default_device()))


def numbers(x: Any) -> np.ndarray:
    assert x.dtype is FRY
    assert x.shape == x.base.shape[:-1]
    return np.asarray(x.base)


K = keys(2, 3)
N = numbers(K)
INDEX = np.array([[1], [0], [1]])
FLAGS = np.array([[True, False, True], [False, False, True]])

ON_KEYS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "broadcast": (
        lambda k: structural.broadcast_in_dim(k, shape=(4, 2, 3), broadcast_dimensions=(1, 2)),
        np.broadcast_to(N, (4, 2, 3, 2)),
    ),
    "reshape": (lambda k: structural.reshape(k, new_sizes=(6,)), N.reshape(6, 2)),
    "transpose": (
        lambda k: structural.transpose(k, permutation=(1, 0)),
        N.transpose(1, 0, 2),
    ),
    "squeeze": (
        lambda k: structural.squeeze(structural.reshape(k, new_sizes=(6, 1)), dimensions=(1,)),
        N.reshape(6, 2),
    ),
    "rev": (lambda k: shape.rev(k, dimensions=(1,)), N[:, ::-1]),
    "slice": (
        lambda k: shape.slice(k, start_indices=(0, 1), limit_indices=(2, 3), strides=None),
        N[:, 1:],
    ),
    "strided slice": (
        lambda k: shape.slice(k, start_indices=(0, 0), limit_indices=(2, 3), strides=(1, 2)),
        N[:, ::2],
    ),
    "concatenate": (lambda k: shape.concatenate(k, k, dimension=1), np.concatenate([N, N], 1)),
    "stack": (lambda k: shape.stack(k, k, axis=1), np.stack([N, N], 1)),
    "unstack": (lambda k: shape.unstack(k, axis=1)[2], N[:, 2]),
    "split": (lambda k: shape.split(k, sizes=(1, 2), axis=1)[1], N[:, 1:]),
    "tile": (lambda k: shape.tile(k, reps=(1, 2)), np.tile(N, (1, 2, 1))),
    "barrier": (lambda k: passing.optimization_barrier(k)[0], N),
    "copy": (elementwise.copy, N),
    "select": (
        lambda k: elementwise.select_n(FLAGS, k, keys(2, 3, start=100)),
        np.where(FLAGS[..., None], N + 100, N),
    ),
    "select of scalars": (
        lambda k: elementwise.select_n(FLAGS, k, keys(start=100)),
        np.where(FLAGS[..., None], [100, 101], N),
    ),
    "select by number": (
        lambda k: elementwise.select_n(FLAGS.astype(np.int32), k, k, keys(2, 3, start=100)),
        N,
    ),
    "dynamic slice": (
        lambda k: dynamic.dynamic_slice(k, np.int32(1), np.int32(9), slice_sizes=(1, 2)),
        N[1:, 1:],
    ),
    "dynamic update": (
        lambda k: dynamic.dynamic_update_slice(k, keys(1, 1, start=50), np.int32(1), np.int32(0)),
        np.concatenate([N[:1], [[[50, 51], *N[1, 1:]]]]),
    ),
    "gather": (
        lambda k: indexing.gather(
            k,
            INDEX,
            dimension_numbers=GatherDimensionNumbers((1,), (0,), (0,)),
            slice_sizes=(1, 3),
            unique_indices=False,
            indices_are_sorted=False,
            mode=GatherScatterMode.CLIP,
            fill_value=None,
        ),
        N[INDEX[:, 0]],
    ),
    "scatter": (
        lambda k: indexing.scatter(
            k,
            INDEX[:1],
            keys(1, 3, start=200),
            dimension_numbers=ScatterDimensionNumbers((1,), (0,), (0,)),
            unique_indices=False,
            indices_are_sorted=False,
            mode=GatherScatterMode.FILL_OR_DROP,
        ),
        np.stack([N[0], np.arange(200, 206).reshape(3, 2)]),
    ),
}


@pytest.mark.parametrize("name", ON_KEYS)
def test_operations_on_typed_keys_move_the_numbers(name: str) -> None:
    call, wanted = ON_KEYS[name]
    np.testing.assert_array_equal(numbers(call(K)), wanted)
    (whole,) = harness.compiled(lambda k: [call(k)], [K])
    np.testing.assert_array_equal(numbers(whole), wanted)


def test_typed_keys_compare_by_all_their_numbers() -> None:
    other = KeyArray(K.aval, elementwise.copy(np.where(N == 3, 99, N).astype(np.uint32)))
    same = (np.asarray(other.base) == N).all(-1)
    assert not same.all()
    np.testing.assert_array_equal(np.asarray(elementwise.eq(K, other)), same)
    np.testing.assert_array_equal(np.asarray(elementwise.ne(K, other)), ~same)
    np.testing.assert_array_equal(np.asarray(elementwise.eq(K, keys())), (N == [0, 1]).all(-1))


@pytest.mark.parametrize("name", ["add", "lt", "sin"])
def test_arithmetic_on_typed_keys_is_an_error(name: str) -> None:
    primitive = getattr(elementwise, name)
    with pytest.raises(TypeError, match="key<fry>"):
        primitive(*[K] * (1 if name == "sin" else 2))


def test_a_batch_of_keys_is_batched_like_any_array() -> None:
    out, at = structural.reshape.batch(2, [K], [0], new_sizes=(1, 3))
    assert at == 0
    np.testing.assert_array_equal(numbers(out), N.reshape(2, 1, 3, 2))
    out, at = elementwise.select_n.batch(2, [np.array([True, False]), K, K], [0, 0, 0])
    assert shaped(out).shape == (2, 3)
    with config.enable_x64(True):
        np.testing.assert_array_equal(numbers(out), N)

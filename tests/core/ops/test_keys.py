"""Operations on typed keys, against the reference on their numbers and what JAX printed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import threefry as reference

from perspex import config, jit, make_jaxpr
from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise, keys
from perspex.ops.keys import THREEFRY
from perspex.runtime.keys import KeyArray

FRY = THREEFRY.dtype
RNG = np.random.default_rng(1)
LAYOUTS = pytest.mark.parametrize("partitionable", [True, False])


def numbers(*shape: int) -> np.ndarray:
    return RNG.integers(0, 2**32, (*shape, 2)).astype(np.uint32)


def wrap(x: Any) -> Any:
    return keys.random_wrap(x, impl=THREEFRY)


def unwrap(x: Any) -> np.ndarray:
    return np.asarray(keys.random_unwrap(x))


def test_wrap_and_unwrap() -> None:
    x = numbers(3)
    wrapped = wrap(x)
    assert isinstance(wrapped, KeyArray)
    assert wrapped.aval is ShapedArray((3,), FRY)
    np.testing.assert_array_equal(unwrap(wrapped), x)
    np.testing.assert_array_equal(unwrap(keys.random_clone(wrapped)), x)
    np.testing.assert_array_equal(jit(lambda x: keys.random_unwrap(wrap(x)))(x), x)


# Printed by JAX 0.12 for `random.key(42)`.
SPLIT_42 = [[1832780943, 270669613], [64467757, 2916123636]]
# Printed by JAX before 0.5, and by 0.12 with `jax_threefry_partitionable` off.
ORIGINAL_SPLIT_42 = [[2465931498, 3679230171], [255383827, 267815257]]


@pytest.mark.parametrize(
    "partitionable, want", [(True, SPLIT_42), (False, ORIGINAL_SPLIT_42)], ids=str
)
def test_split_of_42(partitionable: bool, want: Any) -> None:
    with config.threefry_partitionable(partitionable):
        key = keys.random_seed(np.int32(42), impl=THREEFRY)
        np.testing.assert_array_equal(unwrap(keys.random_split(key, shape=(2,))), want)
        np.testing.assert_array_equal(
            unwrap(jit(lambda k: keys.random_split(k, shape=(2,)))(key)), want
        )


@LAYOUTS
def test_bits_split_and_fold_in_follow_the_reference(partitionable: bool) -> None:
    x = numbers(2, 3)
    k = wrap(x)
    with config.threefry_partitionable(partitionable):
        drawn = np.asarray(keys.random_bits(k, bit_width=16, shape=(5,)))
        new = unwrap(keys.random_split(k, shape=(2, 2)))
    assert drawn.shape == (2, 3, 5)
    assert new.shape == (2, 3, 2, 2, 2)
    for i in np.ndindex(2, 3):
        np.testing.assert_array_equal(
            drawn[i], reference.random_bits(x[i], 16, (5,), partitionable)
        )
        np.testing.assert_array_equal(new[i], reference.split(x[i], (2, 2), partitionable))
    folded = unwrap(keys.random_fold_in(k, np.uint32(7)))
    np.testing.assert_array_equal(folded[1, 2], reference.fold_in(x[1, 2], 7))


def test_64_bits_without_x64() -> None:
    x = numbers()
    with config.enable_x64(False):
        drawn = keys.random_bits(wrap(x), bit_width=64, shape=(3,))
    np.testing.assert_array_equal(drawn, reference.random_bits(x, 64, (3,), True))


CASES = {
    "random_bits": (keys.random_bits, [2], {"bit_width": 32, "shape": (3,)}),
    "random_split": (keys.random_split, [2], {"shape": (3,)}),
    "random_fold_in": (keys.random_fold_in, [1, 1], {}),
    "random_fold_in of scalars": (keys.random_fold_in, [0, 0], {}),
    "random_fold_in of a key": (keys.random_fold_in, [0, 1], {}),
    "random_seed": (keys.random_seed, [1], {"impl": THREEFRY}),
    "random_wrap": (keys.random_wrap, [2], {"impl": THREEFRY}),
    "random_unwrap": (keys.random_unwrap, [2], {}),
    "random_clone": (keys.random_clone, [2], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_batch_rule_is_a_loop(name: str) -> None:
    primitive, ranks, params = CASES[name]
    size = 4
    on_numbers = primitive.name in ("random_seed", "random_wrap")

    def operand(i: int, *shape: int) -> Any:
        if on_numbers and primitive.name == "random_wrap":
            return RNG.integers(0, 2**32, shape).astype(np.uint32)
        if on_numbers or i:
            return RNG.integers(0, 2**31, shape).astype(np.int32)
        return numbers(*shape)

    def given(i: int, x: np.ndarray) -> Any:
        return x if on_numbers or i else wrap(x)

    def shown(x: Any) -> np.ndarray:
        return unwrap(x) if isinstance(x, KeyArray) else np.asarray(x)

    for axes in itertools.product(*[[None, *range(rank + 1)] for rank in ranks]):
        if all(axis is None for axis in axes):
            continue
        operands, examples = [], []
        for i, (rank, axis) in enumerate(zip(ranks, axes, strict=True)):
            shape = (2,) * rank
            x = operand(i, *shape) if axis is None else operand(i, size, *shape)
            examples.append([given(i, x if axis is None else x[n]) for n in range(size)])
            operands.append(given(i, x if axis is None else np.moveaxis(x, 0, axis)))
        out, at = primitive.batch(size, operands, axes, **params)
        want = [shown(primitive(*[e[n] for e in examples], **params)) for n in range(size)]
        np.testing.assert_array_equal(np.moveaxis(shown(out), at, 0), np.stack(want))


@pytest.mark.parametrize("name", CASES)
def test_tangents_are_zero(name: str) -> None:
    primitive, ranks, params = CASES[name]
    if primitive.name == "random_seed":
        primals = [np.int32(3)]
    elif primitive.name == "random_wrap":
        primals = [numbers()]
    else:
        primals = [wrap(numbers()), np.uint32(3)][: len(ranks)]
    out, tangent = primitive.jvp(primals, [None] * len(primals), **params)
    assert tangent is None
    assert out is not None


def test_jaxpr_is_written_as_in_jax() -> None:
    def f(x: Any, seed: Any) -> Any:
        k = wrap(x)
        new = keys.random_split(k, shape=(2,))
        return (
            keys.random_bits(keys.random_fold_in(k, np.uint32(7)), bit_width=32, shape=(3,)),
            keys.random_unwrap(new),
            keys.random_clone(keys.random_seed(seed, impl=THREEFRY)),
        )

    assert str(make_jaxpr(f)(numbers(), 3)) == (
        "{ lambda ; a:u32[2] b:i32[]. let\n"
        "    c:key<fry>[] = random_wrap[impl=fry] a\n"
        "    d:key<fry>[2] = random_split[shape=(2,)] c\n"
        "    e:key<fry>[] = random_fold_in c 7:u32[]\n"
        "    f:u32[3] = random_bits[bit_width=32 shape=(3,)] e\n"
        "    g:u32[2,2] = random_unwrap d\n"
        "    h:key<fry>[] = random_seed[impl=fry] b\n"
        "    i:key<fry>[] = random_clone h\n"
        "  in (f, g, i) }"
    )


def test_lowering_keeps_the_place_of_the_equation() -> None:
    def f(x: Any) -> Any:
        return keys.random_bits(wrap(x), bit_width=32, shape=(3,))  # this line

    line = f.__code__.co_firstlineno + 1
    text = jit(f).lower(numbers()).as_text(debug_info=True)
    assert f'test_keys.py":{line}:' in text
    assert "bits.py" not in text


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: keys.random_seed(1.5, impl=THREEFRY), "must be an integer, got float32"),
        (lambda: wrap(np.zeros(2, np.int32)), "uint32, got int32"),
        (lambda: wrap(np.zeros(3, np.uint32)), r"ends in \(2,\), got uint32\[3\]"),
        (lambda: wrap(np.uint32(3)), r"ends in \(2,\), got uint32\[\]"),
        (lambda: keys.random_unwrap(numbers()), r"random_unwrap takes typed keys, got u32\[2\]"),
        (lambda: keys.random_split(numbers(), shape=(2,)), "takes typed keys"),
        (lambda: keys.random_bits(numbers(), bit_width=32, shape=()), "takes typed keys"),
        (lambda: keys.random_bits(wrap(numbers()), bit_width=12, shape=()), "not 12"),
        (lambda: keys.random_fold_in(wrap(numbers()), 1.5), "integers"),
        (lambda: keys.random_fold_in(wrap(numbers(3)), np.arange(2)), "incompatible shapes"),
    ],
)
def test_type_rules_refuse(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_a_large_draw_is_kept_apart_from_what_follows() -> None:
    def f(x: Any) -> Any:
        drawn = keys.random_bits(wrap(x), bit_width=32, shape=(100,))
        return elementwise.mul(drawn, np.uint32(3))

    lowered = jit(f).lower(numbers())
    text = lowered.as_text()
    assert "optimization_barrier" in text or 'inlineable = "false"' in text
    # A barrier that the compiler drops, or a call that it writes in place, leaves one loop.
    assert lowered.compile().as_text().count("kLoop") >= 2

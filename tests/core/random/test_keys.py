"""Keys as users meet them: the numbers of JAX's documentation, both kinds of key, and refusals."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perspex
from perspex import config, jit, make_jaxpr, random, tree, vmap

FRY = random.key_dtype("threefry2x32")


def numbers(keys: Any) -> list[Any]:
    return np.asarray(random.key_data(keys)).tolist()


def test_raw_and_typed_keys_hold_the_seed() -> None:
    raw, typed = random.PRNGKey(18), random.key(18)
    assert (raw.shape, raw.dtype) == ((2,), np.uint32)
    assert (typed.shape, typed.dtype, typed.ndim, typed.size) == ((), FRY, 0, 1)
    assert str(raw) == "[ 0 18]"
    assert repr(typed) == "Array((), dtype=key<fry>) overlaying:\n[ 0 18]"
    assert numbers(raw) == numbers(typed) == [0, 18]


# What the texts print that JAX's users learn from; they were written before the layout changed.
ORIGINAL = [
    (18, 2, [[4197003906, 1654466292], [1685972163, 1654824463]]),
    (42, 2, [[2465931498, 3679230171], [255383827, 267815257]]),
    (
        42,
        5,
        [
            [2765691542, 1385194879],
            [831049250, 3807460095],
            [3616728933, 824333390],
            [1482326074, 1083977345],
            [2713995981, 2812206153],
        ],
    ),
]


@pytest.mark.parametrize("seed, num, want", ORIGINAL)
def test_split_gives_the_printed_numbers(seed: int, num: int, want: Any) -> None:
    with config.threefry_partitionable(False):
        assert random.split(random.PRNGKey(seed), num).tolist() == want
        assert numbers(random.split(random.key(seed), num)) == want


@pytest.mark.parametrize(
    "seed, x64, want",
    [
        (0, False, [0, 0]),
        (-1, False, [0, 2**32 - 1]),
        (2**31 - 1, False, [0, 2**31 - 1]),
        (2**40 + 5, False, [0, 5]),
        (-(2**40) + 5, False, [0, 5]),
        (2**63 - 1, False, [0, 2**32 - 1]),
        (True, False, [0, 1]),
        (np.uint32(2**32 - 1), False, [0, 2**32 - 1]),
        (np.int64(2**33 + 1), False, [0, 1]),
        (np.int8(-3), False, [0, 2**32 - 3]),
        (np.array(7, np.uint8), False, [0, 7]),
        (2**40 + 5, True, [2**8, 5]),
        (-1, True, [2**32 - 1, 2**32 - 1]),
        (np.int8(-3), True, [0, 2**32 - 3]),
        (np.uint64(2**63 + 1), True, [2**31, 1]),
    ],
    ids=repr,
)
def test_seeds(seed: Any, x64: bool, want: list[int]) -> None:
    with config.enable_x64(x64):
        assert numbers(random.key(seed)) == want
        assert numbers(random.PRNGKey(seed)) == want
        if not isinstance(seed, int):
            assert numbers(jit(random.key)(seed)) == want
        assert numbers(jit(lambda: random.key(seed))()) == want


def test_split_and_fold_in_return_the_kind_they_are_given() -> None:
    raw, typed = random.PRNGKey(3), random.key(3)
    for make in (
        random.split,
        lambda k: random.split(k, (2, 3)),
        lambda k: random.split(k, [2]),
        lambda k: random.split(k, np.int64(3)),
        lambda k: random.fold_in(k, 5),
        random.clone,
    ):
        for staged in (make, jit(make)):
            a, b = staged(raw), staged(typed)
            assert (a.dtype, b.dtype) == (np.uint32, FRY)
            assert a.shape == (*b.shape, 2)
            assert numbers(a) == numbers(b) == numbers(make(typed))


def test_numpy_arrays_are_raw_keys() -> None:
    raw = np.array([0, 3], np.uint32)
    assert numbers(random.split(raw)) == numbers(random.split(random.key(3)))
    assert numbers(random.key_data(raw)) == [0, 3]


def test_no_two_of_many_keys_are_equal() -> None:
    split = np.asarray(random.split(random.PRNGKey(0), 2000))
    folded = np.asarray([random.fold_in(random.PRNGKey(0), i) for i in range(200)])
    assert len(np.unique(np.concatenate([split, folded]), axis=0)) == 2000  # a key is i-th or of i
    np.testing.assert_array_equal(split[:200], folded)


def test_custom_prng_makes_typed_keys() -> None:
    with config.enable_custom_prng(True):
        assert random.PRNGKey(0).dtype == FRY
        assert random.split(random.PRNGKey(0)).dtype == FRY
        assert random.split(np.array([0, 3], np.uint32)).dtype == FRY
        assert jit(random.PRNGKey)(0).dtype == FRY


def test_generators_are_named() -> None:
    key = random.key(0, impl="threefry2x32")
    assert random.key_impl(key) == random.key_impl(random.PRNGKey(0)) == "threefry2x32"
    assert random.key(0, dtype=FRY) == key
    assert random.key_dtype(FRY) is FRY is random.key_dtype()
    assert numbers(random.wrap_key_data(np.arange(4, dtype=np.uint32).reshape(2, 2))) == [
        [0, 1],
        [2, 3],
    ]


def test_typed_keys_are_values() -> None:
    key = random.key(5)
    again = pickle.loads(pickle.dumps(key))
    assert again.dtype == FRY
    assert numbers(again) == [0, 5]
    with pytest.raises(TypeError, match="key_data"):
        np.asarray(key)
    assert perspex.device_put(key).dtype == FRY
    assert perspex.block_until_ready(key) is key
    assert random.Key(key) is key


def test_jaxpr_of_raw_and_typed_keys() -> None:
    assert str(make_jaxpr(random.split)(random.PRNGKey(0))) == (
        "{ lambda ; a:u32[2]. let\n"
        "    b:key<fry>[] = random_wrap[impl=fry] a\n"
        "    c:key<fry>[2] = random_split[shape=(2,)] b\n"
        "    d:u32[2,2] = random_unwrap c\n"
        "  in (d,) }"
    )


K = random.key(0)
MANY = random.split(K, 3)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: random.key(1.5), TypeError, "seed must be an integer, got float32"),
        (lambda: random.key("a"), TypeError, "array"),
        (lambda: random.key(None), ValueError, "None is no seed"),
        (lambda: random.key(np.arange(2)), TypeError, r"key accepts a scalar seed.*\(2,\)"),
        (lambda: random.PRNGKey(np.arange(2)), TypeError, "PRNGKey accepts a scalar seed"),
        (lambda: random.key(K), TypeError, "was given a PRNG key"),
        (lambda: random.key(2**64), OverflowError, "too large"),
        (lambda: random.key(0, impl="strange"), ValueError, '"strange"; there is "threefry2x32"'),
        (lambda: random.key(0, impl=3), TypeError, "by its name"),
        (lambda: random.key(0, impl="threefry2x32", dtype=FRY), ValueError, "not both"),
        (lambda: random.split(MANY), ValueError, r"split accepts a single key.*\(3,\)"),
        (lambda: random.split(np.zeros((2, 2), np.uint32)), ValueError, "single key"),
        (lambda: random.split(np.zeros(3, np.uint32)), TypeError, r"ends in \(2,\)"),
        (lambda: random.split(np.zeros(2)), TypeError, "uint32, got float32"),
        (lambda: random.split(3), TypeError, "uint32, got int32"),
        (lambda: random.split([0, 1]), TypeError, "unexpected PRNG key type <class 'list'>"),
        (lambda: random.split(None), TypeError, "split: unexpected PRNG key type"),
        (lambda: random.split(K, 2.0), TypeError, "sequence of integers, got 2.0"),
        (lambda: random.split(K, (2, -1)), TypeError, r"negative sizes, got \(2, -1\)"),
        (lambda: random.fold_in(MANY, 1), ValueError, "fold_in accepts a single key"),
        (lambda: random.fold_in(K, np.arange(2)), TypeError, "accepts a scalar"),
        (lambda: random.fold_in(K, None), ValueError, "None"),
        (lambda: random.fold_in(K, "a"), ValueError, "'a'"),
        (lambda: random.fold_in(K, -1), OverflowError, "out of bounds for uint32"),
        (lambda: random.fold_in(K, 2**32), OverflowError, "out of bounds for uint32"),
        (lambda: random.wrap_key_data([0, 1]), TypeError, "list"),
        (lambda: random.wrap_key_data(np.arange(2)), TypeError, "uint32"),
        (lambda: random.wrap_key_data(K), TypeError, "typed keys already"),
        (lambda: random.key_data(3), TypeError, "key_data: .*uint32"),
        (lambda: random.key_impl("a"), TypeError, "key_impl: unexpected"),
    ],
)
def test_refusals(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_refusals_while_tracing() -> None:
    with pytest.raises(ValueError, match="split accepts a single key"):
        jit(random.split)(MANY)
    with pytest.raises(TypeError, match="split: .*uint32"):
        jit(random.split)(np.zeros(2))
    with pytest.raises(perspex.errors.TracerIntegerConversionError):
        jit(lambda n: random.split(K, n))(3)
    with pytest.raises(perspex.errors.TracerIntegerConversionError):
        jit(lambda n: random.split(K, (2, n)))(3)


# ---- Calls with typed keys, which C++ repeats ---------------------------------------------------


class Bag:
    """A container of a user."""

    def __init__(self, item: Any) -> None:
        self.item = item


class Hidden(Bag):
    """A container that only jaxlib's default registry knows."""


tree.register_pytree_node(Bag, lambda bag: ((bag.item,), None), lambda _, items: Bag(*items))
tree.default_registry.register_node(
    Hidden, lambda bag: ((bag.item,), None), lambda _, items: Hidden(*items)
)

# Functions of a key, and the numbers of the keys in their results for the seed 3. Those that are
# not the seed itself were printed by JAX.
ZERO, SEVEN = [3716834203, 3481239269], [2647473427, 4234374204]
KEYED: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "in": (lambda k: random.wrap_key_data(random.key_data(k)), [[0, 3]]),
    "out": (lambda k: (k, random.fold_in(k, 7)), [[0, 3], SEVEN]),
    "in containers": (lambda k: {"a": [k, None, k], "b": Bag((k, [k]))}, [[0, 3]] * 4),
    "mapped": (
        lambda k: vmap(random.fold_in, (None, 0))(k, np.array([0, 7])),
        [[ZERO, SEVEN]],
    ),
    "made": (lambda k: random.key(7), [[0, 7]]),
}


@pytest.mark.parametrize("name", KEYED)
def test_a_repeated_call_with_typed_keys_does_not_reach_python(name: str) -> None:
    function, want = KEYED[name]
    f = jit(function)
    first = f(random.key(9))
    key = random.key(3)
    missed: list[Any] = []
    stop = perspex.events.subscribe(missed.append)
    try:
        out = f(key)
    finally:
        stop()
    assert missed == []
    assert all(k.dtype == FRY for k in tree.leaves(out))
    assert [numbers(k) for k in tree.leaves(out)] == want
    assert tree.structure(out) == tree.structure(first)


def test_functions_of_keys_are_repeated_without_python() -> None:
    key = random.key(0)
    calls: list[Callable[[], Any]] = [
        lambda: random.split(key),
        lambda: random.fold_in(key, 3),
        lambda: random.normal(key, (2,)),
        lambda: key == key,
        lambda: random.split(key)[0],
        lambda: random.wrap_key_data(random.key_data(key)),
        lambda: random.categorical(key, np.zeros(2)),
    ]
    for call in calls:
        call()
    missed: list[Any] = []

    def note(event: Any) -> None:
        if event.kind != "transfer":  # of NumPy arrays, and not of keys
            missed.append(event)

    stop = perspex.events.subscribe(note)
    try:
        for call in calls:
            call()
    finally:
        stop()
    assert missed == []


def test_a_key_is_a_leaf_to_users() -> None:
    key = random.key(0)
    assert tree.leaves({"k": key})[0] is key
    assert tree.structure(key) == tree.structure(0)
    assert tree.map(lambda leaf: leaf.shape, [random.split(key, 3)]) == [(3,)]
    assert jit(lambda k: {"k": tree.leaves(k)[0]})(key)["k"] == key


def test_raw_and_typed_keys_and_arrays_of_them_are_different_calls() -> None:
    f = jit(lambda k: (k.shape, random.key_data(k))[1] + k.ndim)
    raw, typed = random.PRNGKey(5), random.key(5)
    for _ in range(2):
        assert f(raw).tolist() == [1, 6]
        assert f(typed).tolist() == [0, 5]
        assert f(random.clone(typed)[None]).tolist() == [[1, 6]]
        assert f(raw[None]).tolist() == [[2, 7]]


def test_keys_in_a_container_that_calls_do_not_know() -> None:
    f = jit(lambda bag: (Hidden(random.clone(bag.item)), 1))
    for seed in (1, 2, 2):
        out, one = f(Hidden(random.key(seed)))
        assert type(out) is Hidden and int(one) == 1
        assert numbers(out.item) == [0, seed]


def test_a_key_can_be_donated() -> None:
    f = jit(random.clone, donate_argnums=0)
    for seed in (1, 2):
        key = random.key(seed)
        assert numbers(f(key)) == [0, seed]
        assert key.is_deleted()
        with pytest.raises(RuntimeError, match=r"deleted with shape=uint32\[2\]"):
            f(key)


def test_calls_with_keys_under_flags_and_stages() -> None:
    key = random.key(3)
    f = jit(lambda k, n: random.split(k, n), static_argnums=1)
    want = numbers(f(key, 2))
    with perspex.disable_jit():
        assert numbers(f(key, 2)) == numbers(random.split(key)) == want
    with config.threefry_partitionable(False):
        assert numbers(f(key, 2)) != want
    assert numbers(f(key, 2)) == want
    assert numbers(f.lower(key, 2).compile()(key)) == want
    assert [numbers(k) for k in jit(lambda n, *, key: f(key, 2))(0, key=key)] == want


def test_the_names_of_arguments_in_errors_count_keys_as_one() -> None:
    with pytest.raises(TypeError, match=r"`other\['b'\]` of the jitted function `f`"):

        @jit
        def f(key: Any, other: Any) -> Any:
            return key

        f(random.key(0), {"a": random.key(1), "b": "text"})
    with pytest.raises(TypeError, match=r"got <class 'str'>|type <class 'str'>"):
        random.normal("text")


def test_keys_are_not_numbers() -> None:
    one, some = random.key(0), random.split(random.key(0), 3)
    for call in (one.sum, one.max, one.prod, one.mean, lambda: some.sum(axis=())):
        with pytest.raises(TypeError, match="key_data"):
            call()
    for keys in (one, some):
        with pytest.raises(TypeError, match="has no truth value"):
            bool(keys)

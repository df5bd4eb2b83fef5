"""Reading parts of arrays: against NumPy, eagerly, jitted with known and with traced indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.agreement import agree, compare

import perspex
import perspex.numpy as jnp
from perspex import random
from perspex.base import events
from perspex.errors import ConcretizationTypeError, NonConcreteBooleanIndexError

HOST = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
VECTOR = np.arange(10, dtype=np.int32) * 10
TWO = np.array([1, 0])
INDICES: dict[str, Any] = {
    "i": TWO,
    "column": TWO[:, None],
    "none": TWO[:0],
    "mask": np.array([[True, False, True], [False, True, True]]),
    "row": np.array([True, False, True]),
}
TRACEABLE = ("i", "column", "none")

CASES = [
    *("0", "-1", "1, 2", "1, 2, 3", "0, :, 1", "..., 0", "None", "1:3", "::2", "::-1", "..."),
    *("1:2, ::-1", "0, None, 1:2", "None, 0, ..., None", "np.int64(1)", "-1:", "1:1", "0, 0:0"),
    *("..., ::-1, ::2", "1, ::-2", "1, 1:, ::3", "()", "1:, None, ::-1, 3", ":, 2:0:-1"),
    *("i", "i, i", "i, :, i", ":, i", "0, i", "column, i", "i, 1:, 2", "i, None", "i, ::2"),
    *("i, ::-1", ":, i, 1:3", ":, :, i", ":, ::2, i", "i, ::-2, 1", "i, 2:0:-1, ::2", "none"),
    *(":, i, None, i", ":, i, ..., i", ":, none, 2", ":, 1:1, i", "[0, 1], ::2", "[0], [[1], [2]]"),
    *("mask", ":, row", ":, row, 1:", "i, row[[0, 2, 1]]", "mask, ::2", "mask, 0", "HOST > 5"),
    *("True", "False", "True, i", "i, True", ":, i, True, i", ":, :, True", "[], 0", "0, [], 1"),
]


def evaluate(index: str, x: Any, names: dict[str, Any]) -> Any:
    return eval(f"x[{index}]", {"np": np, "HOST": HOST, "x": x, **names})


@pytest.mark.parametrize("index", CASES)
def test_index_reads_what_numpy_reads(index: str) -> None:
    want = evaluate(index, HOST, INDICES)
    arrays = {**INDICES, **{name: jnp.array(INDICES[name]) for name in TRACEABLE}}
    x = jnp.array(HOST)
    compare(evaluate(index, x, arrays), want)
    compare(perspex.jit(lambda x: evaluate(index, x, INDICES))(x), want)

    def traced(x: Any, given: dict[str, Any]) -> Any:
        return evaluate(index, x, {**INDICES, **given})

    compare(perspex.jit(traced)(x, {name: arrays[name] for name in TRACEABLE}), want)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_basic_indices_at_random(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    host = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    compare(jnp.array(host)[index], host[index])


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_integer_arrays_at_random(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    host = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    arrays = data.draw(hnp.integer_array_indices(shape))
    compare(jnp.array(host)[tuple(jnp.array(a) for a in arrays)], host[arrays])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_places_of_any_integer_dtype(dtype: str) -> None:
    x, host = jnp.arange(200), np.arange(200)
    places = np.array([0, 3, 127], dtype)
    compare(x[jnp.array(places)], host[places])
    compare(perspex.jit(lambda x, i: x[i])(x, jnp.array(places)[2]), host[127])
    if dtype.startswith("i"):
        compare(x[jnp.array([-1, -100], dtype)], host[[-1, -100]])


@pytest.mark.parametrize("place", [10, 100, -11, -100])
def test_reads_outside_are_moved_inside(place: int) -> None:
    x = jnp.array(VECTOR)
    want = VECTOR[0 if place < 0 else -1]
    assert x[place] == want
    assert x[jnp.array([place])][0] == want
    assert perspex.jit(lambda x: x[place])(x) == want
    assert perspex.jit(lambda x, i: x[i])(x, place) == want
    assert perspex.vmap(lambda i: x[i])(jnp.array([place]))[0] == want


def test_an_unsigned_place_beyond_the_signed_numbers_is_outside() -> None:
    assert jnp.array(VECTOR)[jnp.array([2**32 - 1], jnp.uint32)][0] == VECTOR[-1]


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        ([0, 1], TypeError, "arr\\[array\\(seq\\)\\]"),
        ([[0, 1], [1, 2]], TypeError, "arr\\[tuple\\(seq\\)\\]"),
        ([0, slice(None)], TypeError, "arr\\[tuple\\(seq\\)\\]"),
        (range(2), TypeError, "non-tuple sequence"),
        (1.0, TypeError, "integer or boolean type, got indexer with type float64"),
        (np.array([1.0]), TypeError, "float64"),
        ("a", TypeError, "strings do not index arrays"),
        (slice(1.0, 2), TypeError, "integer"),
        (slice(None, None, 0), ValueError, "zero"),
        ((0, 1, 2, 3), IndexError, "array is 3-dimensional, but 4 were indexed"),
        ((..., ...), IndexError, "single ellipsis"),
        ({1}, IndexError, "valid indices. Got {1}"),
        (np.array([True, False, True]), IndexError, "expected \\(2,\\)"),
        ((slice(None), np.ones((3, 3), bool)), IndexError, "expected \\(3, 4\\)"),
        ((np.array([0, 1]), np.array([0, 1, 2])), ValueError, "Incompatible shapes"),
    ],
    ids=repr,
)
def test_what_is_no_index(index: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        jnp.array(HOST)[index]
    with pytest.raises(error, match=message):
        perspex.jit(lambda x: x[index])(jnp.array(HOST))


def test_a_place_that_fits_no_dtype() -> None:
    with pytest.raises(OverflowError):
        jnp.array(HOST)[2**40]
    with pytest.raises(OverflowError):
        perspex.jit(lambda x: x[2**40])(jnp.array(VECTOR))


def test_scalars_and_empty_axes_have_nothing_to_point_at() -> None:
    with pytest.raises(IndexError, match="0-dimensional, but 1 were indexed"):
        jnp.array(1.0)[0]
    for index in (0, jnp.array(0)):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 0"):
            jnp.zeros((0, 3))[index]
    # As in JAX: a gather refuses its window, a scatter has nothing to write.
    with pytest.raises(TypeError, match="axis 0 of shape .0, 3., which is empty"):
        jnp.zeros((0, 3))[jnp.array([0])]
    assert jnp.zeros((0, 3)).at[jnp.array([0])].set(1).shape == (0, 3)
    assert jnp.zeros((0, 3))[:, 0].shape == (0,)


def test_traced_slices_and_masks_say_what_to_do() -> None:
    x = jnp.array(VECTOR)
    with pytest.raises(IndexError, match="lax.dynamic_slice"):
        perspex.jit(lambda x, n: x[:n])(x, 3)
    with pytest.raises(NonConcreteBooleanIndexError, match="jnp.where"):
        perspex.jit(lambda x: x[x > 3])(x)
    with pytest.raises(NonConcreteBooleanIndexError, match="jnp.where"):
        perspex.jit(lambda x: x.at[x > 3].set(0))(x)


@pytest.fixture
def compiled() -> Iterator[list[str]]:
    """The names of the programs that XLA compiles."""
    names: list[str] = []
    stop = events.subscribe(lambda e: names.append(e.name) if e.kind == "compile" else None)
    yield names
    stop()


def test_another_place_compiles_nothing(compiled: list[str]) -> None:
    x = jnp.zeros((7, 3, 5)) + jnp.arange(5)
    uses = [
        lambda n: x[n],
        lambda n: x[n, 1],
        lambda n: x[:, 0, n],
        lambda n: x[n : n + 2],
        lambda n: x[..., n : n + 2, None],
        lambda n: x[np.array([n, 0])],
        lambda n: x[n, jnp.array([0, 1])],
        lambda n: x.at[n].set(1.0),
        lambda n: x.at[n, 1].add(2.0),
        lambda n: x.at[:, :, n : n + 2].multiply(3.0),
        lambda n: x.at[np.array([n, 0])].min(1.0),
        lambda n: x.at[n].get(mode="fill"),
    ]
    for use in uses:
        use(0)
        compiled.clear()
        for n in (1, 2, 3):
            use(n)
        use(-4)
        # From the end, a slice of two takes another program only where it is not one of two.
        assert not [name for name in compiled if name not in ("broadcast_in_dim",)]


def test_an_index_of_known_numbers_is_a_slice() -> None:
    def names(f: Any) -> list[str]:
        return [e.primitive.name for e in perspex.make_jaxpr(f)(jnp.array(HOST)).jaxpr.eqns]

    assert names(lambda x: x[0]) == ["slice", "squeeze"]
    assert names(lambda x: x[-1, 1:]) == ["slice", "squeeze"]
    assert names(lambda x: x[5]) == ["dynamic_slice", "squeeze"]  # outside: `checkify` asks
    assert names(lambda x: x[:, ::-2]) == ["slice", "rev"]
    assert names(lambda x: x[...]) == []
    assert names(lambda x: x[:, None]) == ["broadcast_in_dim"]
    assert names(lambda x: x[np.array([0, -1])]) == ["gather"]
    assert names(lambda x: x.at[0].set(1.0)) == ["broadcast_in_dim", "dynamic_update_slice"]


# ---- Iteration ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 9])
def test_iteration(n: int) -> None:
    host = np.arange(n * 2, dtype=np.int32).reshape(n, 2)
    rows = list(jnp.array(host))
    assert len(rows) == n
    for mine, theirs in zip(rows, host, strict=True):
        compare(mine, theirs)
    if n:
        compare(perspex.jit(lambda x: sum(row * row for row in x))(host), (host * host).sum(0))


def test_scalars_are_not_iterated_over() -> None:
    with pytest.raises(TypeError, match="0-d array"):
        iter(jnp.array(1))


def test_typed_keys_are_indexed_like_numbers() -> None:
    keys = random.split(random.key(0), 6)
    data = np.asarray(random.key_data(keys))
    for index in (0, -1, slice(1, 3), (None, 2), np.array([3, 0]), slice(None, None, -2)):
        jitted = perspex.jit(lambda k, index=index: k[index])
        np.testing.assert_array_equal(random.key_data(keys[index]), data[index])
        np.testing.assert_array_equal(random.key_data(jitted(keys)), data[index])
    for mine, theirs in zip(keys, data, strict=True):
        np.testing.assert_array_equal(random.key_data(mine), theirs)
    np.testing.assert_array_equal(random.key_data(keys.at[0].set(keys[1]))[0], data[1])
    with pytest.raises(TypeError, match="can be set to keys, nothing else"):
        keys.at[0].add(1)


# ---- take, take_along_axis, and their indices ---------------------------------------------------

ARRAYS = {
    "x": HOST,
    "v": VECTOR,
    "i": np.array([[2, 0], [1, 1]], np.int32),
    "far": np.array([0, 5, -9, 100], np.int32),
    "m": np.arange(12, dtype=np.int32).reshape(3, 4),
    "lines": np.array([[0, 3], [1, 1], [2, 0]], np.int32),
}


@pytest.mark.parametrize(
    "expression",
    [
        *("xp.take(v, i)", "xp.take(x, i, axis=1)", "xp.take(x, i, axis=-1)", "xp.take(x, 3)"),
        *("xp.take(v, far, mode='wrap')", "xp.take(v, far, mode='clip')", "xp.take(x, 1, axis=2)"),
        *("xp.take_along_axis(m, lines, axis=1)", "xp.take_along_axis(m, lines[:, :1], -1)"),
        *("xp.take_along_axis(m, lines[:1, :1], axis=0)", "xp.take_along_axis(v, i[0], axis=0)"),
        "xp.take_along_axis(x, i[:, :, None], axis=1)",
        "xp.take_along_axis(x, i[1:, :1, None] + 0 * m[:1, :3, None], axis=0)",
        *("xp.unravel_index(i, (3, 4))", "xp.unravel_index(7, (2, 2, 2))"),
        "xp.ravel_multi_index((i % 3, i), (3, 4), mode='clip')",
        "xp.ravel_multi_index((i + 2, i - 1), (3, 4), mode='wrap')",
        "xp.ravel_multi_index((i % 3, i), (3, 4), mode='wrap', order='F')",
        *("xp.diag_indices(3)", "xp.diag_indices_from(m[:, :3])"),
    ],
)
def test_elements_by_number(expression: str) -> None:
    agree(expression, ARRAYS, dtype="index" not in expression and "indices" not in expression)


def test_grids() -> None:
    grid = jnp.ix_(jnp.array([0, 2]), jnp.array([True, False, True, True]))
    assert [g.shape for g in grid] == [(2, 1), (1, 3)]
    compare(jnp.array(ARRAYS["m"])[grid], ARRAYS["m"][np.ix_([0, 2], [0, 2, 3])])


def test_take_fills_what_is_outside() -> None:
    x = jnp.array([1.0, 2.0])
    np.testing.assert_array_equal(jnp.take(x, jnp.array([0, 2, -3])), [1, np.nan, np.nan])
    np.testing.assert_array_equal(jnp.take(x, jnp.array([5]), fill_value=-1), [-1])
    assert jnp.take(jnp.arange(3), 7) == np.iinfo(np.int32).min
    assert jnp.take(jnp.arange(3, dtype=jnp.uint8), 7) == 255
    assert jnp.take(jnp.array([False]), 7)


def test_what_take_refuses() -> None:
    x = jnp.arange(3)
    with pytest.raises(TypeError, match="list"):
        jnp.take(x, [0])
    with pytest.raises(ValueError, match="integer type"):
        jnp.take(x, 1.5)
    with pytest.raises(NotImplementedError, match="raise"):
        jnp.take(x, 1, mode="raise")
    with pytest.raises(IndexError, match="empty axis"):
        jnp.take(jnp.zeros(0), jnp.array([0]))
    with pytest.raises(ValueError, match="number of dimensions"):
        jnp.take_along_axis(x, jnp.zeros((1, 1), int), axis=0)
    with pytest.raises(TypeError, match="integer type, got float32"):
        jnp.take_along_axis(x, jnp.zeros(1), axis=0)
    with pytest.raises(ValueError, match="coordinates must lie in"):
        jnp.ravel_multi_index((jnp.array([5]),), (3,))
    with pytest.raises(ConcretizationTypeError, match="clip"):
        perspex.jit(lambda i: jnp.ravel_multi_index((i,), (3,)))(1)


def test_a_batch_of_indices_is_a_loop() -> None:
    x = jnp.array(HOST)
    places = jnp.array([0, 1, -1, 5])
    for f in (
        lambda i: x[i],
        lambda i: x[:, i, 1:3],
        lambda i: x[i, jnp.array([0, 2])],
        lambda i: x.at[:, i].get(mode="fill"),
        lambda i: jnp.take_along_axis(x, jnp.broadcast_to(i, (2, 3, 1)), 2),
    ):
        looped = np.stack([np.asarray(f(i)) for i in places])
        np.testing.assert_array_equal(perspex.vmap(f)(places), looped)


def test_derivative_of_reading_adds_up() -> None:
    # The reads of element 0 add up; the one outside reads nothing.
    f = perspex.grad(lambda x: (x[jnp.array([0, 0, 7])] * jnp.array([1.0, 2.0, 4.0])).sum())
    np.testing.assert_array_equal(f(jnp.zeros(3)), [3, 0, 0])
    g = perspex.grad(lambda x: x[1] * x[-1] + x[::2].sum())
    np.testing.assert_array_equal(g(jnp.array([1.0, 2.0, 3.0])), [1, 3, 3])


LONG = 2**31 + 16


def test_known_places_beyond_int32() -> None:
    x = jnp.zeros((LONG, 0), jnp.int8)
    for index in (0, -1, 2**31 + 1, -LONG):
        assert x[index].shape == perspex.jit(lambda x, i=index: x[i])(x).shape == (0,)
    assert x[2**31 :].shape == (16, 0)
    with pytest.raises(OverflowError):
        jnp.ones(3)[2**31]


def test_traced_places_beyond_int32_are_refused() -> None:
    x = perspex.ShapeDtypeStruct((LONG,), "int8")
    with pytest.raises(OverflowError, match="enable_x64"):
        perspex.eval_shape(lambda x, i: x[i], x, 3)

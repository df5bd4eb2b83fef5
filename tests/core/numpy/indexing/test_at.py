"""`x.at[...]` and its kin: against NumPy's assignments, eagerly, jitted, with traced indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.agreement import compare

import perspex
import perspex.numpy as jnp

HOST = np.arange(24, dtype=np.float32).reshape(2, 3, 4) + 1
TWO = np.array([1, 0])
INDICES: dict[str, Any] = {
    "i": TWO,
    "column": TWO[:, None],
    "none": TWO[:0],
    "mask": np.array([[True, False, True], [False, True, True]]),
}
TRACEABLE = ("i", "column", "none")
UFUNCS = {
    "set": lambda old, new: np.broadcast_to(new, np.shape(old)),
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}
CASES = [
    *("0", "1, 2", "..., -1", "None", "1:, ::2", "::-1, 1", "0, None, 1:2", "0, 0:0", "..."),
    *("i", "i, 1:", ":, i, 2", "i, ::-1", "0, column, i", "i, :, i", "none", "None, i, None"),
    *("mask", "mask, 1", "HOST > 5", "True", "True, i", "[0, 1], ::2", "1, ::-2, 1:3"),
]


def evaluate(index: str, names: dict[str, Any]) -> Any:
    class Reader:
        def __getitem__(self, key: Any) -> Any:
            return key

    return eval(f"x[{index}]", {"np": np, "HOST": HOST, "x": Reader(), **names})


@pytest.mark.parametrize("operation", UFUNCS)
@pytest.mark.parametrize("index", CASES)
def test_update_is_what_numpy_assigns(index: str, operation: str) -> None:
    place = evaluate(index, INDICES)
    part = HOST[place]
    rng = np.random.default_rng(0)
    x = jnp.array(HOST)
    traced = {name: jnp.array(INDICES[name]) for name in TRACEABLE}

    def update(x: Any, value: Any, given: dict[str, Any]) -> Any:
        return getattr(x.at[evaluate(index, {**INDICES, **given})], operation)(value)

    shapes = ((), part.shape, part.shape[1:]) if operation == "set" else ((), part.shape)
    for shape in shapes:
        value = (rng.random(shape) + 0.5).astype(np.float32)
        want = HOST.copy()
        want[place] = UFUNCS[operation](part, value)
        compare(update(x, jnp.array(value), traced), want, 1e-5)
        if shape == part.shape and operation in ("set", "divide"):
            compare(perspex.jit(update)(x, value, traced), want, 1e-5)
            compare(perspex.jit(lambda x, v=value: update(x, v, {}))(x), want, 1e-5)


def test_updates_of_one_element_all_count() -> None:
    x, twice = jnp.array([1.0, 2.0, 3.0]), jnp.array([1, 1])
    values = jnp.array([2.0, 4.0])
    for operation, want in (
        ("add", 8),
        ("subtract", -4),
        ("multiply", 16),
        ("divide", 0.25),
        ("power", 256),
        ("min", 2),
        ("max", 4),
    ):
        got = getattr(x.at[twice], operation)(values)
        np.testing.assert_allclose(got, [1, want, 3], 1e-6)


@pytest.mark.parametrize("place", [3, -4, 100])
def test_updates_outside_are_dropped(place: int) -> None:
    x = jnp.arange(3)
    for at in (place, np.array([place]), (slice(None), place)):
        array = x if not isinstance(at, tuple) else jnp.stack([x, x])
        for operation in UFUNCS:
            got = getattr(array.at[at], operation)(2)
            np.testing.assert_array_equal(got, array)
            jitted = perspex.jit(lambda a, at=at, o=operation: getattr(a.at[at], o)(2))
            np.testing.assert_array_equal(jitted(array), array)
    np.testing.assert_array_equal(perspex.jit(lambda x, i: x.at[i].set(9))(x, place), x)


def test_modes() -> None:
    x = jnp.arange(3)
    np.testing.assert_array_equal(x.at[jnp.array([5, -7])].set(9, mode="clip"), [9, 1, 9])
    np.testing.assert_array_equal(x.at[5].add(9, mode="clip"), [0, 1, 11])
    np.testing.assert_array_equal(x.at[5].add(9, mode="drop"), [0, 1, 2])
    np.testing.assert_array_equal(x.at[-1].set(9, wrap_negative_indices=False), [0, 1, 2])
    np.testing.assert_array_equal(x.at[1].set(9, mode="promise_in_bounds"), [0, 9, 2])
    assert x.at[5].get(mode="fill", fill_value=7) == 7
    assert x.at[5].get(mode="clip") == 2
    assert x.at[-1].get(mode="fill", wrap_negative_indices=False) == np.iinfo(np.int32).min
    assert np.isnan(jnp.zeros(2).at[5].get(mode="fill"))
    np.testing.assert_array_equal(
        perspex.jit(lambda x, i: x.at[i].get(mode="fill", fill_value=-1))(x, jnp.array([0, 3])),
        [0, -1],
    )
    with pytest.raises(ValueError, match='Unknown gather mode "wrap"'):
        x.at[0].set(1, mode="wrap")


@pytest.mark.parametrize(
    ("dtype", "value", "want"),
    [
        ("int32", 7, 7),
        ("int32", True, 1),
        ("uint8", 300, 44),
        ("uint8", -1, 255),
        ("float32", np.float64(0.5), 0.5),
        ("bfloat16", 0.125, 0.125),
        ("complex64", 1j, 1j),
        ("bool", True, True),
        ("float32", np.int8(3), 3),
    ],
)
def test_values_become_of_the_dtype_of_the_array(dtype: str, value: Any, want: Any) -> None:
    x = jnp.zeros(3, dtype)
    for got in (x.at[1].set(value), perspex.jit(lambda x: x.at[1].set(value))(x)):
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(got).astype(complex)[1], want)
    assert not np.asarray(x).any()


def test_values_that_lose_something_are_warned_about() -> None:
    x = jnp.arange(3)
    for value in (1.5, np.float64(1.5), jnp.float32(1.5), jnp.ones(3)):
        with pytest.warns(FutureWarning, match="astype"):
            got = perspex.jit(lambda x, v=value: x.at[...].set(v))(x)
        assert got.dtype == jnp.int32
    with pytest.warns(FutureWarning), pytest.warns(np.exceptions.ComplexWarning, match="imaginary"):
        assert x.at[0].set(2j).dtype == jnp.int32
    with pytest.warns(FutureWarning, match="dtype=float32 to dtype=bfloat16"):
        jnp.zeros(2, jnp.bfloat16).at[0].add(jnp.float32(0.3))


@pytest.mark.parametrize("index", [1, jnp.array([0]), jnp.array([True, False, True])], ids=str)
def test_every_update_that_loses_something_is_warned_about(index: Any) -> None:
    x = jnp.arange(3)
    for _ in range(2):  # the second one finds its program compiled
        with pytest.warns(FutureWarning, match="dtype=float32 to dtype=int32"):
            x.at[index].add(2.5)
    for _ in range(2):
        with pytest.warns(FutureWarning, match="dtype=float32 to dtype=int32"):
            jnp.put(x, jnp.array([0]), 1.5, inplace=False)


def test_large_integers_survive_a_float_beside_them() -> None:
    x = jnp.array([2**24 + 1, 2**30 + 1])
    with pytest.warns(FutureWarning):
        got = x.at[0].set(jnp.float32(5))
    np.testing.assert_array_equal(got, [5, 2**30 + 1])
    for index in (slice(0), jnp.array([], jnp.int32), np.array([False, False]), (None, slice(0))):
        for operation in ("add", "multiply", "min"):  # of no element
            with pytest.warns(FutureWarning):
                got = perspex.jit(lambda x, i=index, op=operation: getattr(x.at[i], op)(2.5))(x)
            np.testing.assert_array_equal(got, x)


def test_integers_divided_become_floats_and_the_divisor_an_integer() -> None:
    x = jnp.array([1, 2, 3])
    for index in (jnp.array([0, 1]), slice(2), jnp.array([True, True, False])):
        with pytest.warns(FutureWarning, match="dtype=float32 to dtype=int32"):
            compare(x.at[index].divide(2.5), np.array([0.5, 1, 3]))
    compare(x.at[1].divide(4), np.array([1, 0.5, 3]))


def test_weak_types_stay() -> None:
    x = jnp.asarray(7)
    assert x.at[()].set(3).weak_type and x.at[...].add(3).weak_type
    assert not jnp.zeros(3).at[0].set(1.0).weak_type


@pytest.mark.parametrize(
    ("index", "value"),
    [(0, [1, 2]), (0, np.ones((1, 1))), (slice(2), np.ones(3)), (np.array([0, 1]), np.ones(3))],
)
def test_values_must_broadcast(index: Any, value: Any) -> None:
    with pytest.raises(ValueError, match="roadcast"):
        jnp.zeros(4).at[index].set(value)


def test_lists_are_values_but_not_indices() -> None:
    np.testing.assert_array_equal(jnp.zeros(3).at[:2].set([1, 2]), [1, 2, 0])
    with pytest.raises(TypeError, match="arr\\[array\\(seq\\)\\]"):
        jnp.zeros(3).at[[0, 1]].set(1)
    with pytest.raises(TypeError):
        jnp.zeros(3).at[0].set("a")
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 0"):
        jnp.zeros(0).at[0].set(1)


def test_masks_of_whole_arrays_and_of_leading_axes() -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    mask = np.array([True, False, True])
    want = x.copy()
    want[mask] += 10
    compare(jnp.array(x).at[jnp.array(mask)].add(10), want)
    want = np.where(x > 2, 0, x)
    compare(jnp.array(x).at[jnp.array(x) > 2].set(0), want)
    want = x.copy()
    want[mask] = np.array([[1, 2], [3, 4]])
    compare(jnp.array(x).at[mask].set(jnp.array([[1, 2], [3, 4]])), want)
    with pytest.raises(IndexError, match="boolean index did not match"):
        jnp.array(x).at[np.array([True, False])].set(0)


def test_apply() -> None:
    x = jnp.arange(4.0)
    np.testing.assert_allclose(x.at[1:].apply(jnp.square), [0, 1, 4, 9])
    np.testing.assert_allclose(x.at[2].apply(lambda t: t + 10), [0, 1, 12, 3])
    np.testing.assert_allclose(x.at[x > 1].apply(jnp.negative), [0, 1, -2, -3])
    # As often as the index names an element.
    twice = x.at[jnp.array([3, 3, 1])].apply(lambda t: 2 * t)
    np.testing.assert_allclose(twice, [0, 2, 2, 12])
    np.testing.assert_allclose(
        perspex.grad(lambda x: x.at[1:].apply(jnp.square).sum())(x), [1, 2, 4, 6]
    )
    for index in (slice(2), np.array([0, 1])):
        with pytest.raises(TypeError, match="element by element"):
            x.at[index].apply(lambda t: jnp.stack([t, t]))
    with pytest.raises(NotImplementedError, match="unique_indices"):
        x.at[jnp.array([0, 1])].apply(lambda t: t + x.sum())


def test_arrays_do_not_change() -> None:
    x = jnp.arange(3)
    x.at[0].set(5)
    np.testing.assert_array_equal(x, [0, 1, 2])
    with pytest.raises(TypeError, match=r"x\.at\[idx\]\.set\(y\)"):
        x[0] = 5


def test_derivatives() -> None:
    x = jnp.array([1.0, 2.0, 3.0])
    for f, want in (
        (lambda x: x.at[0].set(x[2]).sum(), [0, 1, 2]),
        (lambda x: x.at[jnp.array([0, 0])].add(x[1]).sum(), [1, 3, 1]),
        (lambda x: x.at[1].multiply(x[0]).sum(), [3, 1, 1]),
        (lambda x: x.at[7].set(x[0]).sum(), [1, 1, 1]),
        (lambda x: x.at[jnp.array([2, 9])].set(0.0).sum(), [1, 1, 0]),
        (lambda x: x.at[:2].max(1.5).sum(), [0, 1, 1]),
    ):
        np.testing.assert_allclose(perspex.grad(f)(x), want, 1e-6)
        np.testing.assert_allclose(perspex.jit(perspex.grad(f))(x), want, 1e-6)


def test_a_batch_of_updates_is_a_loop() -> None:
    x = jnp.array(HOST)
    places, values = jnp.array([0, 1, -1, 5]), jnp.arange(4.0)
    for f in (
        lambda i, v: x.at[i].set(v),
        lambda i, v: x.at[:, i, 1:3].add(v),
        lambda i, v: x.at[0].set(v + x[1]),
        lambda i, v: x.at[i, jnp.array([0, 2])].multiply(v),
    ):
        looped = np.stack([np.asarray(f(i, v)) for i, v in zip(places, values, strict=True)])
        np.testing.assert_allclose(perspex.vmap(f)(places, values), looped, 1e-6)


# ---- Functions ----------------------------------------------------------------------------------


def test_put() -> None:
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    for places, values, mode in (
        ([0, 4], [9, 8], "clip"),
        ([1, 17, -20], 7, "wrap"),
        ([1, 2, 3], [5, 6], "clip"),
    ):
        want = x.copy()
        np.put(want, places, values, mode=mode)
        got = jnp.put(jnp.array(x), jnp.array(places), jnp.array(values), mode=mode, inplace=False)
        compare(got, want)
    with pytest.raises(ValueError, match="inplace=False"):
        jnp.put(jnp.array(x), 0, 1)
    with pytest.raises(NotImplementedError, match="raise"):
        jnp.put(jnp.array(x), 0, 1, mode="raise", inplace=False)


def test_put_along_axis() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for places, values, axis in (
        (np.array([[1], [0], [3]]), -1, 1),
        (np.array([[1, 2, 0, 0]]), np.array([[9, 8, 7, 6]]), 0),
        (np.array([[1, -1]]), np.array([[5], [6], [7]]), 1),
        (np.array([3, 11]), np.array([1, 2]), None),
    ):
        want = x.copy()
        np.put_along_axis(want, places, values, axis)
        args = [jnp.array(v) for v in (x, places, values)]
        compare(jnp.put_along_axis(*args, axis, inplace=False), want)
    with pytest.raises(ValueError, match="inplace=False"):
        jnp.put_along_axis(jnp.array(x), jnp.zeros((3, 1), int), 0, 1)


def test_fill_diagonal_and_place() -> None:
    for shape, value in (((3, 3), 7), ((2, 4), [1, 2]), ((4, 2), [5]), ((2, 2, 2), 3)):
        want = np.zeros(shape, np.float32)
        np.fill_diagonal(want, value)
        compare(jnp.fill_diagonal(jnp.zeros(shape), jnp.array(value), inplace=False), want)
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.fill_diagonal(jnp.zeros((2, 2)), 1)
    with pytest.raises(ValueError, match="equal length"):
        jnp.fill_diagonal(jnp.zeros((2, 2, 3)), 1, inplace=False)
    x = np.arange(8, dtype=np.int32).reshape(2, 4)
    want = x.copy()
    np.place(want, x > 2, [10, 20])
    for f in (jnp.place, perspex.jit(jnp.place, static_argnames="inplace")):
        compare(f(jnp.array(x), jnp.array(x > 2), jnp.array([10, 20]), inplace=False), want)


@pytest.mark.parametrize("places", [np.array([[0, 5], [-1, -7]]), np.array([3, 250], np.uint8)])
def test_put_clips_as_numpy(places: Any) -> None:
    want = np.arange(10.0, dtype=np.float32)
    np.put(want, places, -1, mode="clip")
    got = jnp.put(np.arange(10.0, dtype=np.float32), places, -1, mode="clip", inplace=False)
    np.testing.assert_array_equal(got, want)

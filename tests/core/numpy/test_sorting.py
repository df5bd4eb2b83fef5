"""Sorting and searching: against NumPy, with NaNs, ties, signed zeros and complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.agreement import agree, compare

import perspex
import perspex.numpy as jnp

NAN, INF = np.nan, np.inf
ARRAYS: dict[str, np.ndarray] = {
    "v": np.array([3, 1, 2, 1, -5], np.int32),
    "f": np.array([2.5, NAN, -1.0, INF, -0.0, 0.0, -INF, 2.5], np.float32),
    "m": np.array([[3, 1, 2], [0, 5, -1]], np.int32),
    "x": np.sin(np.arange(60, dtype=np.float32)).reshape(3, 4, 5),
    "c": np.array([1 + 2j, 1 - 1j, 0.5, -1j], np.complex64),
    "b": np.array([True, False, True]),
    "u": np.array([200, 3, 128, 3], np.uint8),
    "e": np.zeros(0, np.float32),
    "edges": np.array([0.0, 1.0, 2.0, 2.0, 5.0], np.float32),
}


@pytest.mark.parametrize("name", ["v", "f", "m", "x", "c", "b", "u", "e"])
def test_sorting(name: str) -> None:
    host = ARRAYS[name]
    x = jnp.array(host)
    for axis in {-1, 0, None}:
        compare(jnp.sort(x, axis=axis), np.sort(host, axis=axis))
        compare(perspex.jit(lambda x, axis=axis: jnp.sort(x, axis=axis))(x), np.sort(host, axis))
        compare(jnp.argsort(x, axis=axis), np.argsort(host, axis=axis, kind="stable"))


@pytest.mark.parametrize("name", ["v", "f", "u", "b"])
def test_descending_keeps_ties_in_order(name: str) -> None:
    x = jnp.array(ARRAYS[name])
    got = np.asarray(jnp.sort(x, descending=True))
    np.testing.assert_array_equal(got, np.sort(ARRAYS[name])[::-1])
    places = np.asarray(jnp.argsort(x, descending=True))
    np.testing.assert_array_equal(ARRAYS[name][places], got)
    ties = places[:-1][np.asarray(got)[:-1] == np.asarray(got)[1:]]
    after = places[1:][np.asarray(got)[:-1] == np.asarray(got)[1:]]
    assert (ties < after).all()


def test_long_arrays_of_floats() -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.int32):
        host = (rng.standard_normal(5000) * 100).astype(dtype)
        host[::7] = host[3]
        compare(jnp.sort(jnp.array(host)), np.sort(host))
        compare(jnp.argsort(jnp.array(host)), np.argsort(host, kind="stable"))
    mixed = np.array([0.0, -0.0, 1.0, -1.0] * 600, np.float32)
    got = np.asarray(jnp.sort(jnp.array(mixed)))
    assert got.tobytes() == np.sort(mixed, kind="stable").tobytes()


@pytest.mark.parametrize(
    "expression",
    [
        "xp.lexsort((v, v[::-1]))",
        "xp.lexsort((m, -m), axis=0)",
        "xp.lexsort(m)",
        "xp.sort_complex(c)",
        "xp.sort_complex(v)",
        "xp.partition(v, 2)[2]",
        "xp.partition(x, 1, axis=1)[:, 1]",
        "xp.searchsorted(edges, 2.0)",
        "xp.searchsorted(edges, 2.0, side='right')",
        "xp.searchsorted(edges, f)",
        "xp.searchsorted(edges, f, side='right')",
        "xp.searchsorted(edges, x)",
        "xp.searchsorted(v[:0], v)",
        "xp.searchsorted(v, 2, sorter=np.array([4, 1, 3, 2, 0]))",
        "xp.searchsorted(np.arange(0, 900, 7), np.arange(400))",
    ],
)
def test_order_and_search(expression: str) -> None:
    agree(expression, ARRAYS, dtype="complex" in expression)


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
def test_methods_of_search_agree(method: str) -> None:
    for side in ("left", "right"):
        got = jnp.searchsorted(
            jnp.array(ARRAYS["edges"]), jnp.array(ARRAYS["f"]), side=side, method=method
        )
        np.testing.assert_array_equal(got, np.searchsorted(ARRAYS["edges"], ARRAYS["f"], side))


def test_partitions_split_at_the_place() -> None:
    x = ARRAYS["x"].ravel()
    for k in (0, 7, -1):
        got = np.asarray(jnp.partition(jnp.array(x), k))
        assert got[k] == np.sort(x)[k]
        assert (got[:k] <= got[k]).all() if k >= 0 else (got[:k] <= got[k]).all()
        places = np.asarray(jnp.argpartition(jnp.array(x), k))
        assert x[places[k]] == np.sort(x)[k] and sorted(places) == list(range(x.size))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.sort([2, 1]), TypeError, "list"),
        (lambda: jnp.sort(jnp.arange(3), axis=1), ValueError, "axis 1"),
        (lambda: jnp.sort(jnp.arange(3), order="x"), TypeError, "order"),
        (lambda: jnp.lexsort(()), TypeError, "at least one key"),
        (lambda: jnp.lexsort((jnp.arange(2), jnp.arange(3))), ValueError, "one shape"),
        (lambda: jnp.partition(jnp.arange(3), 5), ValueError, "out of bounds"),
        (lambda: jnp.searchsorted(jnp.arange(3), 1, side="middle"), ValueError, "side"),
        (lambda: jnp.searchsorted(jnp.zeros((2, 2)), 1), ValueError, "one axis"),
        (lambda: jnp.searchsorted(jnp.arange(3), 1, method="x"), ValueError, "method"),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_derivative_goes_where_the_element_went() -> None:
    x = jnp.array([3.0, 1.0, 2.0])
    weights = jnp.array([1.0, 10.0, 100.0])
    np.testing.assert_allclose(
        perspex.grad(lambda x: (jnp.sort(x) * weights).sum())(x), [100, 1, 10]
    )
    rows = perspex.vmap(jnp.sort)(jnp.array(ARRAYS["m"]))
    np.testing.assert_array_equal(rows, np.sort(ARRAYS["m"]))


@pytest.mark.parametrize("name", ["partition", "argpartition"])
def test_partition_takes_an_integer(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: kth"):
        getattr(jnp, name)(np.arange(3), 0.5)

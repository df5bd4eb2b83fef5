"""Universal functions as objects, beside what tests/oracle/cases/ufuncs.txt asks of JAX."""

from __future__ import annotations

import copy
import doctest
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex.numpy import transcendental

X = np.array([3.0, -1.0, 2.0, 5.0], np.float32)
M = np.arange(12, dtype=np.float32).reshape(3, 4)


def doubled_difference(a: Any, b: Any) -> Any:
    return 2 * a - b


@pytest.mark.parametrize(
    "place",
    [
        np.s_[1:3],
        np.s_[:, 2],
        (0, np.array([1, 1])),
        np.array([[True] * 4, [False] * 4] + [[True] * 4]),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "logaddexp"])
def test_at_takes_every_index_that_numpy_takes(name: str, place: Any) -> None:
    want = M.copy()
    getattr(np, name).at(want, place, np.float32(2))
    got = getattr(jnp, name).at(jnp.asarray(M), place, 2.0, inplace=False)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_at_of_a_function_of_ones_own() -> None:
    function = jnp.frompyfunc(doubled_difference, 2, 1)
    got = function.at(
        jnp.asarray(X), jnp.array([0, 0, 3]), jnp.array([1.0, 2.0, 3.0]), inplace=False
    )
    # 2 * 3 - 1 = 5, 2 * 5 - 2 = 8; 2 * 5 - 3 = 7
    np.testing.assert_array_equal(got, [8.0, -1.0, 2.0, 7.0])


@pytest.mark.parametrize("axis", [0, 1])
def test_against_numpy_along_axes(axis: int) -> None:
    for name in ("add", "subtract", "multiply", "maximum", "minimum", "logaddexp", "logaddexp2"):
        ours, theirs = getattr(jnp, name), getattr(np, name)
        np.testing.assert_allclose(
            ours.reduce(M, axis=axis), theirs.reduce(M, axis=axis), rtol=1e-5
        )
        np.testing.assert_allclose(
            ours.accumulate(M, axis=axis), theirs.accumulate(M, axis=axis), rtol=1e-5
        )
        places = np.array([0, 2, 1])
        np.testing.assert_allclose(
            ours.reduceat(M, places, axis=axis), theirs.reduceat(M, places, axis=axis), rtol=1e-5
        )


def test_infinities_in_sums_of_powers() -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, 1.0], [-np.inf, 2.0], [1e4, 1e4]], np.float32)
    np.testing.assert_allclose(
        jnp.logaddexp.reduce(x, axis=1), np.logaddexp.reduce(x, axis=1), rtol=1e-6
    )


def test_they_survive_pickling_and_copying() -> None:
    for function in (jnp.add, jnp.negative):
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.deepcopy(function) is function
    own = pickle.loads(pickle.dumps(jnp.frompyfunc(doubled_difference, 2, 1, identity=0)))
    assert (own.nin, own.nout, own.identity, repr(own)) == (
        2, 1, 0, "<jnp.ufunc 'doubled_difference'>"
    )  # fmt: skip
    np.testing.assert_array_equal(own(X, 1.0), 2 * X - 1)


def test_they_look_like_the_functions_that_they_are() -> None:
    assert list(inspect.signature(jnp.add).parameters) == ["x", "y"]
    assert jnp.add.__doc__ and jnp.add.__doc__.startswith("The sum")
    assert "name=add" in str(perspex.make_jaxpr(perspex.jit(jnp.add))(1.0, 2.0))


def test_a_call_of_add_is_one_equation() -> None:
    assert len(perspex.make_jaxpr(jnp.add)(X, X).eqns) == 1
    assert len(perspex.make_jaxpr(jnp.add.reduce)(X).eqns) == 1


def test_ufunc_takes_work_of_its_own() -> None:
    seen = []

    def counted(
        a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any
    ) -> Any:
        seen.append(axis)
        return jnp.sum(a, axis)

    total = jnp.ufunc(doubled_difference, 2, 1, name="total", call=jnp.add, reduce=counted)
    assert float(total.reduce(X)) == 9.0 and seen == [0]
    assert total.__name__ == "total" and float(total(1.0, 2.0)) == 3.0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jnp.frompyfunc(3, 1, 1), TypeError, "function"),
        (lambda: jnp.frompyfunc(np.sin, 0, 1), ValueError, "at least 1"),
        (lambda: jnp.add.at(X, 0, 1.0), NotImplementedError, "inplace=False"),
        (lambda: jnp.negative.reduce(X), ValueError, "binary"),
        (lambda: jnp.subtract.reduce(M, axis=(0, 1)), NotImplementedError, "order"),
        (lambda: jnp.subtract.reduce(X[:0]), ValueError, "identity"),
        (lambda: jnp.maximum.reduce(X, where=X > 0), ValueError, "initial"),
    ],
)
def test_refusals(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("sin", ["x"]),
        ("hypot", ["x1", "x2"]),
        ("less", ["x", "y"]),
        ("floor_divide", ["x1", "x2"]),
    ],
)
def test_a_row_is_a_function(name: str, parameters: list[str]) -> None:
    function = getattr(jnp, name)
    assert (function.__name__, function.__qualname__) == (name, name)
    assert function.__module__ == "perspex.numpy"
    found = inspect.signature(function).parameters
    assert list(found) == parameters
    assert all(p.kind is p.POSITIONAL_ONLY for p in found.values())
    assert pickle.loads(pickle.dumps(function)) is function
    with pytest.raises(TypeError):
        function(**dict.fromkeys(parameters, 1.0))


def test_doctest_finds_the_examples_of_rows() -> None:
    found = {test.name: test.examples for test in doctest.DocTestFinder().find(transcendental)}
    assert len(found["perspex.numpy.transcendental.sin"]) == 2

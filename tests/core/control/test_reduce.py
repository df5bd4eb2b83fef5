"""Reductions by any function, against Python loops."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support import harness
from support.harness import Op, Sample, normal, sample, uniform

from perspex import lax
from perspex.control.reduce import reduce_p
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.tracing.staging import stage

F32, F64, I32 = (np.dtype(name) for name in ("float32", "float64", "int32"))


@functools.cache
def program(f: Callable[..., Any], *dtypes: np.dtype) -> ClosedJaxpr:
    jaxpr, consts = stage(f, [ShapedArray((), d) for d in (*dtypes, *dtypes)])
    return ClosedJaxpr(jaxpr, consts)


def loop(f: Callable[..., Any], xs: Sequence[Any], inits: Sequence[Any], axes: Any) -> list[Any]:
    """The definition, element by element, for a function on NumPy scalars."""
    xs = [np.asarray(x) for x in xs]
    kept = [i for i in range(xs[0].ndim) if i not in axes]
    rows = [x.transpose(*kept, *axes) for x in xs]
    shape = tuple(xs[0].shape[i] for i in kept)
    outs = [np.zeros(shape, x.dtype) for x in xs]
    for place in itertools.product(*map(range, shape)):
        state = list(inits)
        for element in zip(*[row[place].ravel() for row in rows], strict=True):
            state = f(*state, *element)
        for out, value in zip(outs, state, strict=True):
            out[place] = value
    return outs


# Each operation as a function of scalars in the language, and in Python.
def hypot(x: Any, y: Any) -> list[Any]:
    return [lax.sqrt(lax.add(lax.mul(x, x), lax.mul(y, y)))]


def best(x: Any, i: Any, y: Any, j: Any) -> list[Any]:
    later = lax.lt(x, y)
    return [lax.select(later, y, x), lax.select(later, j, i)]


def affine(a: Any, b: Any, c: Any, d: Any) -> list[Any]:
    # The map x -> a x + b, then the map x -> c x + d: associative, but it does not commute.
    return [lax.mul(a, c), lax.add(lax.mul(b, c), d)]


def reduction(f: Any, python: Any, count: int) -> Callable[..., list[Any]]:
    def reference(*args: Any, dimensions: Any, jaxpr: Any) -> list[Any]:
        return loop(python, args[:count], args[count:], dimensions)

    return reference


def samples(f: Any, draws: Any, inits: Any, shape_axes: Any, dtype: np.dtype) -> list[Sample]:
    return [
        sample(*draws, *inits, dimensions=axes, jaxpr=program(f, *[dtype] * len(draws)))
        for axes in shape_axes
    ]


# Not the empty tuple: where there is one element for each result, XLA leaves initial values out.
AXES = [(0,), (1,), (0, 1)]
OPS = [
    Op(
        reduce_p,
        reduction(hypot, lambda x, y: [np.sqrt(x * x + y * y)], 1),
        samples(hypot, [normal(3, 5)], [uniform(0.5, 1)], AXES, F64),
        ("float64",),
        tolerance=4,
        name="reduce-hypot",
    ),
    Op(
        reduce_p,
        reduction(affine, lambda a, b, c, d: [a * c, b * c + d], 2),
        samples(affine, [normal(3, 5), normal(3, 5)], [normal(), normal()], AXES, F64),
        ("float64",),
        tolerance=4,
        weak=None,
        name="reduce-affine",
    ),
]
test_value, test_staged, test_jvp, _, test_batch, test_weak = harness.tests(OPS)


@pytest.mark.parametrize("axes", [*AXES, ()])
def test_values_and_positions_together(axes: Any) -> None:
    x = np.random.default_rng(0).permutation(15).astype("f4").reshape(3, 5)
    places = np.arange(15, dtype="i4").reshape(3, 5)
    values, found = reduce_p(
        x,
        places,
        np.float32(-np.inf),
        np.int32(-1),
        dimensions=axes,
        jaxpr=program(best, F32, I32),
    )
    np.testing.assert_array_equal(values, np.max(x, axes))
    np.testing.assert_array_equal(x.ravel()[np.asarray(found)], np.max(x, axes))


def test_derivative_of_values_beside_positions() -> None:
    x, t = np.array([1.0, 5, 3], np.float32), np.array([10.0, 20, 30], np.float32)
    places = np.arange(3, dtype="i4")
    _, tangents = reduce_p.jvp(
        [x, places, np.float32(-np.inf), np.int32(-1)],
        [t, None, None, None],
        dimensions=(0,),
        jaxpr=program(best, F32, I32),
    )
    assert float(tangents[0]) == 20
    assert tangents[1] is None


def test_reduction_of_nothing_is_the_initial_value() -> None:
    x = np.zeros((0, 2), np.float64)
    with harness.config.enable_x64(True):
        params = {"dimensions": (0,), "jaxpr": program(hypot, F64)}
        (out,) = reduce_p(x, np.float64(3), **params)
        np.testing.assert_array_equal(out, [3, 3])
        _, (tangent,) = reduce_p.jvp([x, np.float64(3)], [None, np.float64(7)], **params)
        np.testing.assert_array_equal(tangent, [7, 7])


A = ShapedArray((3, 4), F32)
SCALAR = ShapedArray((), F32)


@pytest.mark.parametrize(
    "avals, dimensions, f, error, words",
    [
        ((A, SCALAR), (2,), hypot, ValueError, "out of range"),
        ((A, SCALAR), (0, 0), hypot, ValueError, "duplicate"),
        ((A, A), (0,), hypot, ValueError, "initial values must be scalars"),
        ((A, SCALAR.update(dtype=I32)), (0,), hypot, TypeError, "operands' dtypes"),
        ((A,), (0,), hypot, TypeError, "as many initial values"),
        ((), (0,), hypot, TypeError, "as many initial values"),
        ((A, A.update(shape=(3,)), SCALAR, SCALAR), (0,), affine, TypeError, "equal shapes"),
        ((A, SCALAR), (0,), lambda x, y: [lax.lt(x, y)], TypeError, "the computation's results"),
        ((A, SCALAR), (0,), lambda x, y: [x, y], TypeError, "the computation's results"),
    ],
)
def test_bad_operands(avals: Any, dimensions: Any, f: Any, error: Any, words: str) -> None:
    jaxpr = program(f, *[F32] * max(1, len(avals) // 2))
    with pytest.raises(error, match=words) as caught:
        reduce_p.type(*avals, dimensions=dimensions, jaxpr=jaxpr)
    assert "reduce" in str(caught.value)

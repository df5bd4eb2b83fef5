"""Reductions of windows, against loops over windows in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import harness
from support.harness import (
    FLOATS,
    NUMBERS,
    REALS,
    Op,
    Sample,
    distinct,
    fixed,
    normal,
    sample,
    uniform,
)

from perspex import config, lax
from perspex.control.reduce import reduce_window_p
from perspex.ir.avals import ShapedArray
from perspex.ops import window_reductions as ops
from perspex.ops.reductions import highest, lowest
from perspex.tracing.staging import stage


def windows(
    shape: tuple[int, ...],
    *,
    window_dimensions: Any,
    window_strides: Any,
    padding: Any,
    base_dilation: Any,
    window_dilation: Any,
) -> np.ndarray:
    """For each window, the flat positions of its elements in an array of `shape`; -1 for none."""
    where = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    whole = np.full([(n - 1) * d + 1 for n, d in zip(shape, base_dilation, strict=True)], -1)
    whole[tuple([slice(None, None, d) for d in base_dilation])] = where
    for axis, (low, high) in enumerate(padding):
        room = [(max(low, 0), max(high, 0)) if i == axis else (0, 0) for i in range(len(shape))]
        whole = np.pad(whole, room, constant_values=-1)
        kept = range(max(-low, 0), whole.shape[axis] - max(-high, 0))
        whole = np.take(whole, kept, axis)
    reach = [(k - 1) * d + 1 for k, d in zip(window_dimensions, window_dilation, strict=True)]
    counts = [
        max(0, (n - r) // step + 1)
        for n, r, step in zip(whole.shape, reach, window_strides, strict=True)
    ]
    found = np.zeros((*counts, int(np.prod(window_dimensions))), int)
    for place in itertools.product(*map(range, counts)):
        at = [
            slice(i * step, i * step + r, d)
            for i, step, r, d in zip(place, window_strides, reach, window_dilation, strict=True)
        ]
        found[place] = whole[tuple(at)].reshape(-1)
    return found


def reduced(ufunc: Any, identity: Callable[[np.dtype], Any]) -> Callable[..., np.ndarray]:
    def reference(x: np.ndarray, **params: Any) -> np.ndarray:
        places = windows(x.shape, **params)
        flat = np.append(x.reshape(-1), np.asarray(identity(x.dtype), x.dtype))
        return ufunc.reduce(flat[places], axis=-1, dtype=x.dtype)

    return reference


def chosen(operand: np.ndarray, select_prim: str, params: Any) -> np.ndarray:
    """The flat positions of the first extreme elements of windows; the size where there is none."""
    places = windows(operand.shape, **params)
    greatest = select_prim == "ge"
    worst = lowest(operand.dtype) if greatest else highest(operand.dtype)
    values = np.append(operand.reshape(-1), worst)[places]
    best = (np.argmax if greatest else np.argmin)(values, -1)
    found = np.take_along_axis(places, best[..., None], -1)[..., 0]
    return np.where(found < 0, operand.size, found)


def gathered(t: np.ndarray, operand: np.ndarray, *, select_prim: str, **params: Any) -> np.ndarray:
    return np.append(t.reshape(-1), t.dtype.type(0))[chosen(operand, select_prim, params)]


def scattered(
    source: np.ndarray, operand: np.ndarray, *, select_prim: str, **params: Any
) -> np.ndarray:
    out = np.zeros(operand.size + 1, source.dtype)
    np.add.at(out, chosen(operand, select_prim, params), source)
    return out[:-1].reshape(operand.shape)


def params(
    window: tuple[int, ...],
    strides: tuple[int, ...] = (1, 1),
    padding: Any = ((0, 0), (0, 0)),
    base: tuple[int, ...] = (1, 1),
    gaps: tuple[int, ...] = (1, 1),
) -> dict[str, Any]:
    return {
        "window_dimensions": window,
        "window_strides": strides,
        "padding": padding,
        "base_dilation": base,
        "window_dilation": gaps,
    }


LAYOUTS = [
    params((2, 3), (2, 1), ((0, 1), (1, 1))),
    params((3, 2), (1, 2), ((1, 0), (2, 1)), (2, 1), (1, 2)),
    params((2, 2), (3, 2), ((-1, 0), (0, -1))),
]


def over(draw: Any) -> list[Sample]:
    return [sample(draw, **layout) for layout in LAYOUTS]


def selections(first: bool) -> list[Sample]:
    """Samples of the derivatives: tangents of the operand's shape, or a source of the windows'."""
    shape = (5, 4)
    out = []
    for layout, select in zip(LAYOUTS, ("ge", "le", "ge"), strict=True):
        given = shape if first else windows(shape, **layout).shape[:-1]
        out.append(
            Sample(
                (normal(*given), distinct(*shape)),
                {"select_prim": select, **layout},
                differentiable=(0, 1),
            )
        )
    return out


def program(f: Callable[..., Any], *dtypes: str) -> Any:
    """The program that `reduce_window` makes of a function."""
    avals = [ShapedArray((3,), np.dtype(d)) for d in dtypes]

    def run(*xs: Any) -> Any:
        inits = tuple([np.dtype(d).type(0) for d in dtypes])
        return list(lax.reduce_window(xs, inits, f, (2,)))

    return stage(run, avals)[0].eqns[0].params["jaxpr"]


def together(x: np.ndarray, y: np.ndarray, a: Any, b: Any, jaxpr: Any, **layout: Any) -> Any:
    """The sum of `x` and, of all `y`, the product with `1 + y`."""
    places = windows(x.shape, **layout)
    xs, ys = np.append(x.reshape(-1), a)[places], np.append(y.reshape(-1), b)[places]
    return [a + xs.sum(-1), (1 + b) * np.prod(1 + ys, -1) - 1]


with config.enable_x64(True):
    PAIR = program(lambda s, e: (s[0] + e[0], s[1] + e[1] + s[1] * e[1]), "float64", "float64")

OPS = [
    Op(
        ops.reduce_window_sum,
        reduced(np.add, lambda _: 0),
        over(normal(5, 4)),
        NUMBERS,
        tolerance=4,
        linear=((0,),),
    ),
    Op(
        ops.reduce_window_max, reduced(np.maximum, lowest), over(distinct(5, 4)), REALS, tolerance=0
    ),
    Op(
        ops.reduce_window_min,
        reduced(np.minimum, highest),
        over(distinct(5, 4)),
        REALS,
        tolerance=0,
    ),
    Op(
        ops.select_and_gather_add,
        gathered,
        selections(True),
        FLOATS,
        tolerance=0,
        linear=((0,),),
        weak=lambda _: False,
    ),
    Op(
        ops.select_and_scatter_add,
        scattered,
        selections(False),
        FLOATS,
        tolerance=4,
        linear=((0,),),
        weak=lambda _: False,
    ),
    Op(
        reduce_window_p,
        together,
        [
            # Any initial values; and identities, which padding needs.
            sample(
                *[uniform(0.2, 0.9, 5, 4)] * 2,
                *[uniform(0.1, 0.4)] * 2,
                jaxpr=PAIR,
                **params((2, 3), (2, 1), gaps=(2, 1)),
            ),
            Sample(
                (*[uniform(0.2, 0.9, 5, 4)] * 2, *[fixed(0.0, "float64")] * 2),
                {"jaxpr": PAIR, **LAYOUTS[1]},
                differentiable=(0, 1),
                batched=(0, 1),
            ),
        ],
        ("float64",),
        tolerance=8,
        weak=lambda _: False,
    ),
]
test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)


def test_first_of_equals_gets_the_derivative() -> None:
    x, t = np.array([1, 3, 3, 2, 3], "f4"), np.array([1, 2, 4, 8, 16], "f4")
    layout = params((3,), (1,), ((0, 0),), (1,), (1,))
    _, tangent = ops.reduce_window_max.jvp([x], [t], **layout)
    np.testing.assert_array_equal(tangent, [2, 2, 4])
    (pulled, _) = ops.select_and_gather_add.transpose(
        np.array([1, 1, 1], "f4"), harness.Linear(harness.shaped(x)), x, select_prim="ge", **layout
    )
    np.testing.assert_array_equal(pulled, [0, 2, 1, 0, 0])


def test_special_cases_are_recognised() -> None:
    aval = ShapedArray((4, 4), np.dtype("float32"))

    def name(computation: Any, init: Any) -> str:
        jaxpr, _ = stage(lambda x: [lax.reduce_window(x, init, computation, (2, 2))], [aval])
        (eqn,) = jaxpr.eqns
        return eqn.primitive.name

    assert name(lax.add, 0.0) == "reduce_window_sum"
    assert name(lax.max, -np.inf) == "reduce_window_max"
    assert name(lax.min, np.float32(np.inf)) == "reduce_window_min"
    assert name(lax.max, 0.0) == "reduce_window"
    assert name(lax.add, 1.0) == "reduce_window"
    assert name(lax.mul, 1.0) == "reduce_window"


def test_any_function_and_padding_by_name() -> None:
    x = np.arange(1.0, 8.0, dtype="f4")
    out = lax.reduce_window(x, np.float32(1), lax.mul, (3,), (2,), "SAME")
    np.testing.assert_array_equal(out, [1 * 2, 2 * 3 * 4, 4 * 5 * 6, 6 * 7])
    out = lax.reduce_window(x, -np.inf, lax.max, (2,), (2,), "SAME_LOWER")
    np.testing.assert_array_equal(out, [1, 3, 5, 7])
    out = lax.reduce_window(x, 0.0, lax.add, (2,), None, "VALID", None, (3,))
    np.testing.assert_array_equal(out, x[:-3] + x[3:])


@pytest.mark.parametrize("shape", [(0, 3), (1, 3)])
def test_no_window(shape: tuple[int, int]) -> None:
    x = np.ones(shape, np.float32)
    out = lax.reduce_window(x, -np.inf, lax.max, (2, 2))
    assert out.shape == (0, 2)
    layout = params((2, 2))
    (back,) = ops.reduce_window_sum.transpose(out, harness.Linear(harness.shaped(x)), **layout)
    np.testing.assert_array_equal(back, np.zeros_like(x))
    back = ops.select_and_scatter_add(out, x, select_prim="ge", **layout)
    np.testing.assert_array_equal(back, np.zeros_like(x))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,)), TypeError, "wrong number of window"),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 0)), TypeError, "strictly positive"),
        (
            lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), padding="FULL"),
            RuntimeError,
            "Unrecognized padding type",
        ),
        (
            lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), padding=((1, 1),)),
            ValueError,
            r"padding must have 2 \(low, high\) pairs",
        ),
        (
            lambda x: lax.reduce_window(x, np.int32(0), lambda a, b: a, (2, 2)),
            TypeError,
            "initial values must be scalars of the operands' dtypes",
        ),
        (
            lambda x: lax.reduce_window((x, x), (0.0,), lambda a, b: a, (2, 2)),
            ValueError,
            "must have the same structure",
        ),
    ],
)
def test_bad_arguments(call: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call(np.ones((4, 4), np.float32))

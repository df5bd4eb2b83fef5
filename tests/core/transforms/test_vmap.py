"""Batching: axes, what is common to all examples, nesting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import checks

import perspex
from perspex import errors, make_jaxpr
from perspex import numpy as pnp
from perspex.ir.jaxpr import ClosedJaxpr, check
from perspex.transforms.vmap import BatchTracer, batch, batch_jaxpr

XS = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_examples_have_the_type_of_one() -> None:
    seen = []

    def f(x: Any, y: Any) -> list[Any]:
        seen.extend([x.shape, y.shape, (x * y).shape])
        return [x * y]

    (out,), (axis,) = batch(f, 3, [XS, np.ones(2, np.float32)], [0, None])
    assert seen == [(2,), (2,), (2,)]
    np.testing.assert_array_equal(np.moveaxis(np.asarray(out), axis, 0), XS)


def test_what_is_common_is_not_batched() -> None:
    seen = []

    def f(x: Any, y: Any) -> list[Any]:
        z = pnp.sin(y)
        seen.append(isinstance(z, BatchTracer))
        return [x, z]

    outs, axes = batch(f, 3, [XS, np.float32(2)], [0, None])
    assert seen == [False] and axes == [0, None] and outs[1].shape == ()


@pytest.mark.parametrize("axis", [0, 1])
def test_axes(axis: int) -> None:
    (out,) = checks.mapped(lambda x: [pnp.sin(x) * x], XS.shape[axis], [XS], [axis])
    np.testing.assert_allclose(out, np.moveaxis(np.sin(XS) * XS, axis, 0), rtol=1e-6)


def test_nested() -> None:
    def outer(a: Any, bs: Any) -> list[Any]:
        return batch(lambda b: [pnp.sin(a) * b], 4, [bs], [0])[0]

    a, bs = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32)
    want = np.sin(a)[:, None] * bs
    for f in (outer, perspex.jit(outer)):
        (out,) = checks.mapped(f, 3, [a, bs], [0, None])
        np.testing.assert_allclose(out, want, rtol=1e-6)


def test_branching_on_an_example_is_an_error_that_says_so() -> None:
    with pytest.raises(errors.TracerBoolConversionError, match="each of the 3 examples of a vmap"):
        batch(lambda x: [x if (x > 0) else -x], 3, [XS[:, 0]], [0])


def test_leaked_examples_are_found() -> None:
    kept = []
    batch(lambda x: [kept.append(x) or x], 3, [XS], [0])
    with pytest.raises(errors.UnexpectedTracerError):
        kept[0] * 2


def test_jaxpr_form() -> None:
    closed = ClosedJaxpr(make_jaxpr(lambda x, y: (x * y, y + 1, 3.0))(XS[0], 1.0).jaxpr)
    many, batched = batch_jaxpr(closed, 5, (True, False), False)
    assert batched == (True, False, False)
    assert [aval.shape for aval in many.in_avals] == [(5, 2), ()]
    assert [aval.shape for aval in many.out_avals] == [(5, 2), (), ()]
    check(many.jaxpr)
    assert batch_jaxpr(closed, 5, (True, False), False)[0] is many
    full, batched = batch_jaxpr(closed, 5, (True, False), True)
    assert batched == (True,) * 3
    assert [aval.shape for aval in full.out_avals] == [(5, 2), (5,), (5,)]


def test_a_jitted_function_stays_one_call() -> None:
    inner = perspex.jit(lambda x, y: (pnp.sin(x), y))
    jaxpr = make_jaxpr(lambda x: batch(lambda x: list(inner(x, 2.0)), 3, [x], [0])[0])(XS)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["jit"]
    outs, axes = batch(lambda x: list(inner(x, 2.0)), 3, [XS], [0])
    assert axes == [0, None] and float(outs[1]) == 2.0

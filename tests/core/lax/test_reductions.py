"""`lax.reduce`: which reductions it becomes, what its function may close over, when it compiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex.numpy as pnp
from perspex import jit, lax, make_jaxpr
from perspex.base import events
from perspex.transforms.jvp import jvp
from perspex.transforms.vmap import batch

M = np.arange(12, dtype="f4").reshape(3, 4)
MI = np.arange(12, dtype="i4").reshape(3, 4)


@pytest.mark.parametrize(
    "operand, init, computation, primitive",
    [
        (M, 0.0, lax.add, "reduce_sum"),
        (M, 0, lax.add, "reduce_sum"),
        (MI, np.int32(0), lax.add, "reduce_sum"),
        (M, 1.0, lax.mul, "reduce_prod"),
        (M, -np.inf, lax.max, "reduce_max"),
        (MI, np.iinfo("i4").min, lax.max, "reduce_max"),
        (M, np.inf, lax.min, "reduce_min"),
        (MI, -1, lax.bitwise_and, "reduce_and"),
        (MI > 3, True, lax.bitwise_and, "reduce_and"),
        (MI, 0, lax.bitwise_or, "reduce_or"),
        (MI, 0, lax.bitwise_xor, "reduce_xor"),
        # Not the identity, not a number that is known, not one of the functions.
        (M, 1.0, lax.add, "reduce"),
        (M, 0.0, lax.max, "reduce"),
        (M, pnp.float32(0), lax.add, "reduce"),
        (M, 0.0, pnp.add, "reduce"),
        (M, 0.0, lambda x, y: x + y, "reduce"),
    ],
)
def test_which_reduction_it_becomes(
    operand: Any, init: Any, computation: Any, primitive: str
) -> None:
    jaxpr = make_jaxpr(lambda x: lax.reduce(x, init, computation, (0,)))(operand)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == [primitive]


def test_closing_over_known_arrays() -> None:
    scale, table = pnp.float32(2), np.array([1, 10], np.float32)
    out = lax.reduce(M, 0.0, lambda x, y: x + y * scale * table.sum(), (0, 1))
    assert float(out) == 66 * 22


def test_closing_over_what_is_traced() -> None:
    @jit
    def scaled(m: Any, scale: Any) -> Any:
        return lax.reduce(m, 0.0, lambda x, y: x + y * scale, (0,))

    with pytest.raises(NotImplementedError, match=r"reduce: the function `<lambda>` at .*traced"):
        scaled(M, 2.0)


def test_results_keep_the_structure() -> None:
    out = lax.reduce(
        {"a": M, "b": [MI]},
        {"a": 0.0, "b": [0]},
        lambda x, y: {"a": x["a"] + y["a"], "b": [pnp.maximum(x["b"][0], y["b"][0])]},
        (1,),
    )
    np.testing.assert_array_equal(out["a"], M.sum(1))
    np.testing.assert_array_equal(out["b"][0], MI.max(1))


@pytest.mark.parametrize(
    "operands, inits, f, error, words",
    [
        ((M, M), [0.0, 0.0], lambda x, y: x, ValueError, "same structure"),
        ([], [], lambda x, y: x, ValueError, "no array"),
        (M, 0.0, lambda x, y: (x, y), ValueError, "must return the structure of the operands"),
        (M, 0.0, lambda x, y: None, ValueError, "must return the structure of the operands"),
        (M, 0.0, lambda x, y: "a", TypeError, "reduce"),
        (M, 0.0, lambda x, y: pnp.int32(1), TypeError, "the computation's results"),
        (M, 0, lambda x, y: x + y, TypeError, "initial values"),
        (M, M, lambda x, y: x + y, ValueError, "scalars"),
    ],
)
def test_bad_arguments(operands: Any, inits: Any, f: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        lax.reduce(operands, inits, f, (0,))


def norm(x: Any, y: Any) -> Any:
    return pnp.sqrt(x * x + y * y)


def test_one_function_is_compiled_once() -> None:
    lax.reduce(M, 0.0, norm, (0,))
    compiled: list[str] = []
    stop = events.subscribe(lambda e: compiled.append(e.name) if e.kind == "compile" else None)
    try:
        lax.reduce(M + 1, 0.0, norm, (0,))
    finally:
        stop()
    assert compiled == []


def test_derivative() -> None:
    t = np.linspace(-1, 1, 12, dtype="f4").reshape(3, 4)
    (out,), (tangent,) = jvp(lambda x: [lax.reduce(x, 0.0, norm, (0, 1))], [M], [t])
    length = np.linalg.norm(M)
    np.testing.assert_allclose(out, length, rtol=1e-6)
    np.testing.assert_allclose(tangent, (M * t).sum() / length, rtol=1e-5)


def test_batch_with_an_initial_value_each() -> None:
    inits = np.array([0.0, 5.0, 12.0], np.float32)
    (out,), (at,) = batch(lambda x, init: [lax.reduce(x, init, norm, (0,))], 3, [M, inits], [0, 0])
    wanted = np.sqrt((M * M).sum(1) + inits * inits)
    np.testing.assert_allclose(np.moveaxis(np.asarray(out), at, 0), wanted, rtol=1e-6)

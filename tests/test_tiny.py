"""The whole product in one file, in under ten seconds: what must work before anything else does."""

from __future__ import annotations

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex import lax, random


def test_array_and_eager_arithmetic() -> None:
    x = np.linspace(0, 1, 7, dtype=np.float32)
    y = pnp.sin(pnp.asarray(x)) * 2 + 1
    assert isinstance(y, perspex.Array) and y.dtype == np.float32 and y.shape == (7,)
    np.testing.assert_allclose(y, np.sin(x) * 2 + 1, rtol=1e-6)


def test_jit_of_a_pytree() -> None:
    @perspex.jit
    def step(state, x):
        return {"sum": state["sum"] + x.sum(), "n": state["n"] + 1}

    out = step(step({"sum": 0.0, "n": 0}, pnp.arange(4)), pnp.ones(3))
    assert float(out["sum"]) == 9.0 and int(out["n"]) == 2


def test_jaxpr_in_jax_notation() -> None:
    jaxpr = perspex.make_jaxpr(lambda x, y: 2 * x**2 + y)(pnp.ones(3), pnp.ones(3))
    assert str(jaxpr).startswith("{ lambda ; a:f32[3] b:f32[3]. let")
    assert [e.primitive.name for e in jaxpr.eqns][-2:] == ["mul", "add"]


def test_stages() -> None:
    lowered = perspex.jit(lambda a, b: a @ b).trace(pnp.ones((2, 3)), pnp.ones((3, 4))).lower()
    assert "stablehlo.dot_general" in lowered.as_text()
    compiled = lowered.compile()
    assert compiled.cost_analysis()["flops"] == 2 * 2 * 3 * 4
    np.testing.assert_array_equal(compiled(pnp.ones((2, 3)), pnp.ones((3, 4))), np.full((2, 4), 3))


def test_indexing_and_updates() -> None:
    x = pnp.arange(6).reshape(2, 3)
    assert int(x[1, -1]) == 5
    np.testing.assert_array_equal(x.at[0, 1:].add(10), [[0, 11, 12], [3, 4, 5]])
    with pytest.raises(TypeError, match=r"\.at\[idx\]\.set"):
        x[0, 0] = 1


def test_control_flow() -> None:
    total, partial = perspex.jit(
        lambda xs: lax.scan(lambda c, x: (c + x, c), pnp.zeros((), xs.dtype), xs)
    )(pnp.arange(5))
    assert int(total) == 10
    np.testing.assert_array_equal(partial, [0, 0, 1, 3, 6])
    assert int(lax.while_loop(lambda i: i < 10, lambda i: i + 3, 0)) == 12
    assert float(lax.cond(False, lambda x: x**2, lambda x: x**3, 2.0)) == 8.0


def test_random_is_that_of_jax() -> None:
    # Published: the JAX documentation's and the seeds' numbers for the older layout of counters.
    with perspex.threefry_partitionable(False):
        first, second = random.split(random.PRNGKey(42))
    np.testing.assert_array_equal(first, np.array([2465931498, 3679230171], np.uint32))
    np.testing.assert_array_equal(second, np.array([255383827, 267815257], np.uint32))
    draws = np.asarray(random.normal(random.key(0), (10_000,)))
    assert abs(draws.mean()) < 0.05 and abs(draws.std() - 1) < 0.05


def test_errors_teach() -> None:
    @perspex.jit
    def f(x):
        return x if x > 0 else -x

    with pytest.raises(perspex.errors.TracerBoolConversionError, match=r"lax\.cond"):
        f(1.0)


def test_events() -> None:
    seen: list[str] = []
    stop = perspex.events.subscribe(lambda event: seen.append(event.kind))
    perspex.jit(lambda x: x - 1)(pnp.ones(2))
    stop()
    assert [k for k in seen if k in ("trace", "lower", "compile")][-3:] == [
        "trace",
        "lower",
        "compile",
    ]

"""`sparsify` against the same functions of dense arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex.experimental import sparse

RNG = np.random.default_rng(2)
DENSE = np.where(RNG.random((4, 5)) < 0.4, RNG.random((4, 5)), 0).astype(np.float32)
MAT = sparse.BCOO.fromdense(DENSE)
V = RNG.normal(size=5).astype(np.float32)


@perspex.custom_jvp
def halved(x: Any) -> Any:
    return x / 2


halved.defjvps(lambda t, y, x: t / 2)


FUNCTIONS = {
    "elementwise": lambda m, v: pnp.sin(m) @ v + pnp.sum(pnp.log1p(m)),
    "indexed": lambda m, v: (m[1:, ::2] * 3).sum(0),
    "joined": lambda m, v: pnp.concatenate([m, 2 * m]) @ v,
    "shaped": lambda m, v: m.reshape(2, 10).T.sum(0),
    "jitted": perspex.jit(lambda m, v: pnp.dot(m, v)),
    "own rule": lambda m, v: halved(m) @ v,
    "rematerialized": perspex.checkpoint(lambda m, v: pnp.tanh(m) @ v),
    "loop": lambda m, v: lax.fori_loop(0, 3, lambda i, x: x + 0.1 * m.T @ (m @ x), v),
    "scan": lambda m, v: lax.scan(lambda c, x: (c * x, c @ v), m, v)[1],
    "branch": lambda m, v: lax.cond(v[0] > 0, lambda x: x @ v, lambda x: (2 * x) @ v, m),
}


def dense(x: Any) -> Any:
    return x.todense() if isinstance(x, sparse.JAXSparse) else x


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("use_tracer", [False, True])
def test_results_are_those_of_dense_arrays(name: str, use_tracer: bool) -> None:
    f = FUNCTIONS[name]
    got = sparse.sparsify(f, use_tracer=use_tracer)
    want = f(pnp.asarray(DENSE), V)
    np.testing.assert_allclose(dense(got(MAT, V)), want, rtol=1e-4, atol=1e-5)
    if not use_tracer:
        jitted = perspex.jit(lambda m, v: dense(got(m, v)))(MAT, V)
        np.testing.assert_allclose(jitted, want, rtol=1e-4, atol=1e-5)


def test_what_would_be_dense_is_refused() -> None:
    for use_tracer in (False, True):
        with pytest.raises(NotImplementedError, match=r"cos .* dense output.*todense\(\)"):
            sparse.sparsify(pnp.cos, use_tracer=use_tracer)(MAT)
    with pytest.raises(NotImplementedError, match="larger than that of the dense array"):
        _ = sparse.eye(3) + 1


def test_a_regression_on_sparse_data() -> None:
    truth = np.array([1.0, -2.0, 0.5, 3.0, -1.0], np.float32)
    target = DENSE @ truth

    @perspex.jit
    def slope(w: Any) -> Any:
        return perspex.grad(sparse.sparsify(lambda w, x: pnp.sum((x @ w - target) ** 2)))(w, MAT)

    def plain(w: Any) -> Any:
        return 2 * DENSE.T @ (DENSE @ w - target)

    np.testing.assert_allclose(slope(V), plain(V), rtol=1e-4, atol=1e-5)


def test_each_turn_of_a_scan_may_give_a_sparse_array() -> None:
    def f(m: Any, v: Any) -> Any:
        return lax.scan(lambda c, x: (c, m * x), 0.0, v)[1]

    got = sparse.sparsify(f)(MAT, V)
    assert got.shape == (5, 4, 5)
    np.testing.assert_allclose(got.todense(), V[:, None, None] * DENSE, rtol=1e-5)


@pytest.mark.parametrize("form", [sparse.BCOO, sparse.BCSR])
def test_inside_of_shard_map(form) -> None:
    dense = np.array([[1, 0], [3, 2]], np.float32)
    matrix = form.fromdense(dense)
    specs = {"in_specs": perspex.P("z"), "out_specs": perspex.P("z")}
    f = perspex.shard_map(lambda x: (matrix @ x) * x, mesh=perspex.make_mesh((1,), ("z",)), **specs)
    x = np.array([2, 5], np.float32)
    for wrap in (lambda g: g, perspex.jit):
        np.testing.assert_allclose(wrap(f)(x), (dense @ x) * x)
        slope = wrap(perspex.grad(lambda x: f(x).sum()))(x)
        np.testing.assert_allclose(slope, dense @ x + dense.T @ x)

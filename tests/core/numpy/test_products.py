"""Products of vectors and matrices, einsum: against NumPy; dtypes and precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.agreement import agree, compare

import perspex
import perspex.numpy as jnp
from perspex import lax

rng = np.random.default_rng(0)
ARRAYS: dict[str, np.ndarray] = {
    "a": rng.standard_normal((2, 3)).astype(np.float32),
    "b": rng.standard_normal((3, 4)).astype(np.float32),
    "v": np.array([1.0, -2.0, 3.0], np.float32),
    "w": np.array([0.5, 1.5, 2.5], np.float32),
    "t": rng.standard_normal((2, 3, 4)).astype(np.float32),
    "i": np.arange(6, dtype=np.int32).reshape(2, 3),
    "c": np.array([1 + 1j, 2j, -1.0], np.complex64),
    "p": np.array([True, False, True]),
    "e": np.zeros((0, 3), np.float32),
    "s": rng.standard_normal((3, 3)).astype(np.float32),
}

PRODUCTS = [
    *("xp.dot(a, b)", "xp.dot(a, v)", "xp.dot(t, b.T)", "xp.dot(t, b[0])", "xp.dot(v, 2.0)"),
    *("xp.dot(i, b)", "xp.dot(e.T, e)", "xp.dot(p, p)", "xp.matmul(a, b)", "xp.matmul(v, b)"),
    *("xp.matmul(t, t.swapaxes(1, 2))", "xp.matmul(t[:, None], b.T[None])", "xp.matmul(a, v)"),
    *("xp.matmul(t[:1], t.swapaxes(1, 2))", "xp.matmul(t, b.T)", "v @ w", "a @ b", "e @ b"),
    *("xp.vdot(c, c)", "xp.vdot(a, i)", "xp.inner(a, a)", "xp.inner(t, b)", "xp.inner(c, v)"),
    *("xp.outer(v, w)", "xp.outer(a, v)", "xp.outer(2.0, v)", "xp.kron(a, b)", "xp.kron(v, w)"),
    *("xp.kron(i, 2)", "xp.kron(v, a)", "xp.tensordot(t, b, 2)", "xp.tensordot(t, b.T, 1)"),
    *("xp.tensordot(a, b, 0)", "xp.tensordot(t, t, ([0, 2], [0, 2]))", "xp.cross(v, w)"),
    *("xp.tensordot(t, b, ((1, 2), (0, 1)))", "xp.tensordot(t, b, (1, 0))", "xp.cross(a, v)"),
    *("xp.cross(s, s[::-1], axis=0)", "xp.vecdot(a, v)", "xp.vecdot(c, c)", "xp.matvec(a, v)"),
    *("xp.vecmat(v, b)", "xp.matvec(t, b[0])", "xp.vecmat(a, t.swapaxes(0, 1)[:, 0][None])"),
]
EINSUMS = [
    *("'ij,jk->ik', a, b", "'ij,jk', a, b", "'ij->ji', a", "'ii->i', s", "'ii', s", "'ij->', a"),
    *("'ij->j', a", "'i,i->', v, w", "'i,j->ij', v, w", "'ijk->kji', t", "'ij,ij->ij', a, a"),
    *("'...j,j->...', t[..., :3], v", "',i->i', 2.0, v", "'ij,jk,k->i', a, b, b[0]"),
    *("'bij,bjk->bik', t, t.swapaxes(1, 2)", "'...ij,...jk', t, t.swapaxes(1, 2)"),
    *("'iij->j', t[:, :2]", "'aij,akj->aik', t, t", "'i,i,i', v, v, w", "'i->', c", "'i,i', c, c"),
    *("'ij , jk -> ik', a, b", "'ab,bc,cd->ad', a, b, b.T", "'ij,ij->', a, i", "'ij->', e"),
    *("'...ij->...ji', t", "'i...,i...->...', t, t", "'ij,kl->', a, b", "'ii,ii->i', s, s"),
    *("'ij,j->i', i, p", "'bi,bj->bij', a, a", "'i...->...', t", "a, [0, 1], b, [1, 2], [0, 2]"),
    *("a, [0, 1], v, [1]", "'abc,abd->cd', t, t", "'ij,jk->ki', a, b", "'ij,ik->ijk', a, a"),
]


@pytest.mark.parametrize("expression", PRODUCTS)
def test_products(expression: str) -> None:
    agree(expression, ARRAYS, tol=1e-5)


@pytest.mark.parametrize("arguments", EINSUMS)
def test_einsum(arguments: str) -> None:
    agree(f"xp.einsum({arguments})", ARRAYS, tol=2e-5)


@pytest.mark.parametrize("optimize", [True, False, "greedy", "optimal"])
def test_order_of_einsum_makes_no_difference(optimize: Any) -> None:
    a, b, v = (jnp.array(ARRAYS[k]) for k in "abv")
    got = jnp.einsum("ij,jk,j->ik", a, b, v, optimize=optimize)
    want = np.einsum("ij,jk,j->ik", *(ARRAYS[k] for k in "abv"))
    compare(got, want, 1e-5)
    path, text = jnp.einsum_path("ij,jk,j->ik", a, b, v)
    assert len(path) == 2 and "ik" in str(text)


def test_a_matrix_product_is_one_equation() -> None:
    a, b, t = (jnp.array(ARRAYS[k]) for k in "abt")
    for f, args in (
        (jnp.matmul, (a, b)),
        (jnp.dot, (a, b)),
        (lambda a, b: jnp.einsum("ij,jk->ik", a, b), (a, b)),
        (lambda a, b: jnp.tensordot(a, b, 1), (a, b)),
        (lambda t: jnp.einsum("bij,bkj->bik", t, t), (t,)),
    ):
        eqns = perspex.make_jaxpr(f)(*args).jaxpr.eqns
        assert [e.primitive.name for e in eqns] == ["dot_general"]


def test_dtypes_and_precision() -> None:
    i8 = jnp.array([100, 100, 3], jnp.int8)
    assert jnp.dot(i8, i8) == np.int8(20009 % 256) and jnp.dot(i8, i8).dtype == jnp.int8
    wide = jnp.matmul(i8, i8, preferred_element_type=jnp.int32)
    assert wide == 20009 and wide.dtype == jnp.int32
    h = jnp.full(3, 1.5, jnp.bfloat16)
    assert jnp.dot(h, h).dtype == jnp.bfloat16
    assert jnp.dot(h, h, preferred_element_type=jnp.float32).dtype == jnp.float32
    a, b = jnp.array(ARRAYS["a"]), jnp.array(ARRAYS["b"])
    for precision in ("highest", "high", lax.Precision.DEFAULT, None, ("high", "highest")):
        compare(jnp.matmul(a, b, precision=precision), ARRAYS["a"] @ ARRAYS["b"], 1e-5)
    eqn = perspex.make_jaxpr(lambda a, b: jnp.dot(a, b, precision="highest"))(a, b).jaxpr.eqns[0]
    assert eqn.params["precision"] == (lax.Precision.HIGHEST,) * 2
    assert jnp.dot(2, jnp.asarray(3)).weak_type


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.dot(jnp.ones((2, 3)), jnp.ones((2, 3))), TypeError, "contracting"),
        (lambda: jnp.matmul(jnp.ones((2, 3)), 2), ValueError, "scalars"),
        (lambda: jnp.matmul(jnp.ones((2, 2, 3)), jnp.ones((3, 3, 2))), ValueError, "broadcast"),
        (lambda: jnp.dot([1, 2], jnp.ones(2)), TypeError, "list"),
        (lambda: jnp.dot(jnp.ones(2), jnp.ones(2), precision="x"), ValueError, "precision"),
        (lambda: jnp.tensordot(jnp.ones(2), jnp.ones(2), 3), TypeError, "axes"),
        (lambda: jnp.tensordot(jnp.ones(2), jnp.ones(2), ([0], [0, 1])), TypeError, "axes"),
        (lambda: jnp.cross(jnp.ones(3), jnp.ones(4)), ValueError, "components"),
        (lambda: jnp.einsum("ij,jk->ik", jnp.ones((2, 2))), ValueError, "einsum"),
        (lambda: jnp.einsum("ij->k", jnp.ones((2, 2))), ValueError, "einsum"),
        (lambda: jnp.einsum("i,i", jnp.ones(3), jnp.ones(4)), ValueError, "einsum"),
        (lambda: jnp.ones(3) @ [1, 2, 3], TypeError, "unsupported operand"),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_numpy_arrays_on_the_left() -> None:
    v = jnp.array(ARRAYS["v"])
    compare(np.arange(3.0, dtype=np.float32) @ v, np.arange(3) @ ARRAYS["v"])
    assert isinstance(np.ones(3, np.float32) @ v, perspex.Array)


def test_derivatives_and_batches() -> None:
    a, b = jnp.array(ARRAYS["a"]), jnp.array(ARRAYS["b"])
    da, db = perspex.grad(lambda a, b: (a @ b).sum(), argnums=(0, 1))(a, b)
    np.testing.assert_allclose(da, np.tile(ARRAYS["b"].sum(1), (2, 1)), 1e-5)
    np.testing.assert_allclose(db, np.tile(ARRAYS["a"].sum(0)[:, None], (1, 4)), 1e-5)
    t = jnp.array(ARRAYS["t"])
    for f in (
        lambda x: x @ b.T,
        lambda x: jnp.einsum("ij,kj->ik", x, x),
        lambda x: jnp.tensordot(x, b, 2),
        lambda x: jnp.vdot(x, x),
    ):
        got = perspex.vmap(f)(t)
        np.testing.assert_allclose(got, np.stack([np.asarray(f(x)) for x in t]), 1e-5, 1e-5)

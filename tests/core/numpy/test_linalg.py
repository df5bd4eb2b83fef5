"""`numpy.linalg` against NumPy, derivatives against differences, and lengths of programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import config
from perspex import numpy as pnp
from perspex.transforms.dce import dce_jaxpr

RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(2, 4, 4)) + 3 * np.eye(4)
TALL = RNG.normal(size=(5, 3))
COMPLEX = SQUARE + 1j * RNG.normal(size=(2, 4, 4))
HERMITIAN = COMPLEX @ COMPLEX.conj().swapaxes(1, 2)
VECTOR = RNG.normal(size=4)


@pytest.mark.parametrize(
    "name, args, kwargs",
    [
        ("cholesky", [HERMITIAN], {}),
        ("det", [COMPLEX], {}),
        ("slogdet", [SQUARE], {}),
        ("inv", [COMPLEX], {}),
        ("pinv", [TALL], {}),
        ("pinv", [TALL], {"rtol": 0.7}),
        ("solve", [SQUARE[0], VECTOR], {}),
        ("solve", [SQUARE, SQUARE[:1]], {}),
        ("solve", [SQUARE[0], SQUARE], {}),
        ("eigvalsh", [HERMITIAN], {}),
        ("svdvals", [SQUARE], {}),
        ("matrix_rank", [np.ones((3, 3))], {}),
        ("matrix_rank", [SQUARE], {"tol": 2.5}),
        ("matrix_rank", [SQUARE], {"rtol": 0.5}),
        ("cond", [SQUARE], {"p": 1}),
        ("norm", [TALL], {"ord": "nuc"}),
        ("norm", [SQUARE], {"axis": (2, 0), "ord": np.inf}),
        ("vector_norm", [SQUARE], {"axis": (0, 1), "ord": 3}),
        ("matrix_norm", [SQUARE], {"keepdims": True}),
        ("matrix_power", [SQUARE], {"n": -3}),
        ("tensorinv", [SQUARE[0].reshape(2, 2, 4)], {}),
        ("tensorsolve", [SQUARE[0].reshape(2, 2, 4), VECTOR.reshape(2, 2)], {}),
        ("tensorsolve", [SQUARE[0].reshape(2, 4, 2), VECTOR.reshape(2, 2)], {"axes": (1,)}),
        ("lstsq", [TALL, RNG.normal(size=(5, 2))], {}),
        ("multi_dot", [[TALL.T, TALL, TALL.T, TALL[:, 0]]], {}),
        ("trace", [SQUARE], {"offset": 1}),
        ("diagonal", [SQUARE], {"offset": -1}),
        ("cross", [VECTOR[:3], VECTOR[1:]], {}),
        ("outer", [VECTOR, VECTOR], {}),
    ],
)
def test_values_are_those_of_numpy(name: str, args: Any, kwargs: Any) -> None:
    wanted = getattr(np.linalg, name)(*args, **kwargs)
    with config.enable_x64(True):
        found = getattr(pnp.linalg, name)(*args, **kwargs)
        pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
        for got, want in pairs:
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-12)


def test_factors_make_the_matrix() -> None:
    with config.enable_x64(True):
        u, s, vh = pnp.linalg.svd(COMPLEX)
        np.testing.assert_allclose((u * s[:, None]) @ vh, COMPLEX, atol=1e-12)
        q, r = pnp.linalg.qr(COMPLEX)
        np.testing.assert_allclose(q @ r, COMPLEX, atol=1e-12)
        w, v = pnp.linalg.eigh(HERMITIAN)
        np.testing.assert_allclose(v * w[:, None] @ v.conj().swapaxes(1, 2), HERMITIAN, atol=1e-11)
        w, v = pnp.linalg.eig(SQUARE)
        np.testing.assert_allclose(v * w[:, None], SQUARE @ v, atol=1e-12)
        h = HERMITIAN - 5 * np.eye(4)
        u, s, vh = pnp.linalg.svd(h, hermitian=True)
        np.testing.assert_allclose((u * s[:, None]) @ vh, h, atol=1e-11)
        assert (np.diff(np.asarray(s)) <= 0).all()
        packed, taus = pnp.linalg.qr(TALL, mode="raw")
        found = perspex.lax.linalg.householder_product(packed.T, taus)
        np.testing.assert_allclose(found, np.linalg.qr(TALL)[0], atol=1e-12)


@pytest.mark.parametrize("hermitian", [False, True])
def test_gradient_of_the_pseudo_inverse(hermitian: bool) -> None:
    x = HERMITIAN[0].real if hermitian else TALL
    t = RNG.normal(size=x.shape)
    t = t + t.T if hermitian else t

    def f(x: Any) -> Any:
        return pnp.linalg.pinv(x, hermitian=hermitian)

    with config.enable_x64(True):
        _, found = perspex.jvp(f, (x,), (t,))
        slope = (np.linalg.pinv(x + 1e-6 * t) - np.linalg.pinv(x - 1e-6 * t)) / 2e-6
        np.testing.assert_allclose(found, slope, atol=1e-7)


def test_one_matrix_and_a_batch_of_vectors_solve_together() -> None:
    """The batch becomes columns, so that the matrix is factored and read once."""
    a, b = SQUARE[0].astype("f"), RNG.normal(size=(7, 4)).astype("f")
    f = perspex.vmap(pnp.linalg.solve, in_axes=(None, 0))
    np.testing.assert_allclose(f(a, b), np.linalg.solve(a, b.T).T, rtol=2e-5, atol=1e-6)
    jaxpr = perspex.make_jaxpr(f)(a, b).jaxpr
    (solve,) = [e for e in jaxpr.eqns if e.primitive.name == "lu_solve"]
    assert solve.invars[0].aval.shape == (4, 4)


# Equations of the gradient in real JAX 0.12 after dead-code elimination, with inner functions
# inlined: recorded by hand from `jax.make_jaxpr(jax.grad(f))`.
LENGTHS = {
    "cho_solve(cho_factor)": (79, lambda sl, a, b: (sl.cho_solve(sl.cho_factor(a), b) ** 2).sum()),
    "solve": (29, lambda sl, a, b: (pnp.linalg.solve(a, b) ** 2).sum()),
    "positive": (25, lambda sl, a, b: (sl.solve(a, b, assume_a="pos") ** 2).sum()),
    "inv": (50, lambda sl, a, b: (pnp.linalg.inv(a) ** 2).sum()),
    "det": (76, lambda sl, a, b: pnp.linalg.det(a)),
    "slogdet": (30, lambda sl, a, b: pnp.linalg.slogdet(a)[1]),
    "eigh": (57, lambda sl, a, b: sum(pnp.linalg.eigh(a)[i].sum() for i in range(2))),
    "svd": (50, lambda sl, a, b: pnp.linalg.svd(a)[0].sum()),
    "qr": (29, lambda sl, a, b: pnp.linalg.qr(a)[0].sum()),
    "lu": (59, lambda sl, a, b: sl.lu(a)[1].sum()),
    "pinv": (39, lambda sl, a, b: pnp.linalg.pinv(a).sum()),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_gradients_are_no_longer_than_those_of_jax(name: str) -> None:
    limit, f = LENGTHS[name]
    a, b = HERMITIAN[0].real.astype("f"), VECTOR.astype("f")
    gradient = perspex.grad(lambda a, b: f(perspex.scipy.linalg, a, b))
    jaxpr = perspex.make_jaxpr(gradient)(a, b).jaxpr
    smaller, _ = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    assert len(smaller.eqns) <= limit


def test_roots_and_fits() -> None:
    with config.enable_x64(True):
        p = np.array([2.0, -3, 1, 5])
        found = np.sort_complex(np.asarray(pnp.roots(p)))
        np.testing.assert_allclose(found, np.sort_complex(np.roots(p)), atol=1e-12)
        padded = perspex.jit(lambda p: pnp.roots(p, strip_zeros=False))(np.array([0, 0, *p]))
        np.testing.assert_allclose(
            np.sort_complex(np.asarray(padded)[:3]), np.sort_complex(np.roots(p)), atol=1e-9
        )
        assert np.isnan(np.asarray(padded)[3:]).all()
        x, y, w = np.arange(6.0), RNG.normal(size=(6, 2)), np.arange(1.0, 7)
        for wanted, got in zip(
            np.polyfit(x, y, 2, w=w, full=True), pnp.polyfit(x, y, 2, w=w, full=True), strict=True
        ):
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-9, atol=1e-12)
        _, covariance = pnp.polyfit(x, y[:, 0], 2, w=w, cov=True)
        np.testing.assert_allclose(covariance, np.polyfit(x, y[:, 0], 2, w=w, cov=True)[1])
        np.testing.assert_allclose(pnp.poly(SQUARE[0]).real, np.poly(SQUARE[0]), rtol=1e-9)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: pnp.linalg.solve(np.ones((3, 2)), np.ones(3)), "square matrices"),
        (lambda: pnp.linalg.solve(np.eye(3), np.ones(2)), "does not fit"),
        (lambda: pnp.linalg.inv(np.ones(3)), "linalg.inv takes square"),
        (lambda: pnp.linalg.norm(np.ones((2, 2)), ord=5), "must be one of 'fro'"),
        (lambda: pnp.linalg.multi_dot([np.eye(2), np.ones((3, 3))]), "got the shapes"),
        (lambda: pnp.roots(np.eye(2)), "vector of coefficients"),
    ],
)
def test_errors(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()

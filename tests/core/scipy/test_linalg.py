"""`scipy.linalg` against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import perspex
from perspex import config
from perspex.scipy import linalg

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)) + 2 * np.eye(4)
C = A + 1j * RNG.normal(size=(4, 4))
S = A @ A.T + np.eye(4)
TALL = RNG.normal(size=(5, 3))
B = RNG.normal(size=(4, 2))
V = RNG.normal(size=4)


@pytest.mark.parametrize(
    "name, args, kwargs",
    [
        ("expm", [np.stack([A, 0.01 * A, 8 * S])], {}),
        ("expm", [C], {}),
        ("expm", [np.zeros((3, 3))], {}),
        ("expm_frechet", [A, S], {}),
        ("sqrtm", [S], {}),
        ("sqrtm", [A], {}),
        ("sqrtm", [np.diag([4.0, 4, 9])], {}),
        ("funm", [S, np.cos], {}),
        ("lu", [TALL], {}),
        ("lu", [C], {"permute_l": True}),
        ("lu_factor", [A], {}),
        ("qr", [TALL], {"mode": "economic", "pivoting": True}),
        ("qr_multiply", [TALL, RNG.normal(size=(2, 5))], {"mode": "right"}),
        ("hessenberg", [C], {"calc_q": True}),
        ("hessenberg", [np.ones((1, 1))], {"calc_q": True}),
        ("polar", [TALL], {}),
        ("polar", [TALL], {"side": "left"}),
        ("cholesky", [S], {}),
        ("solve", [S, B], {"assume_a": "pos"}),
        ("solve", [C, V], {}),
        ("solve_triangular", [C, B], {"trans": "C", "lower": True}),
        ("solve_sylvester", [A, S[:2, :2], B], {}),
        ("eigh", [S, S + np.eye(4)], {"eigvals_only": True, "type": 1}),
        ("eigh", [S, S + np.eye(4)], {"eigvals_only": True, "type": 2}),
        ("eigh_tridiagonal", [V, B[:3, 0]], {"eigvals_only": True}),
        ("block_diag", [TALL, [[1.0]], [1.0, 2.0]], {}),
        ("toeplitz", [V, B[:, 0]], {}),
        ("hankel", [V, B[:, 0]], {}),
        ("circulant", [V], {}),
        ("companion", [V], {}),
        ("fiedler_companion", [np.arange(1.0, 8)], {}),
        ("fiedler_companion", [np.arange(1.0, 7)], {}),
        ("convolution_matrix", [V, 3], {"mode": "same"}),
        ("dft", [5], {"scale": "sqrtn"}),
        ("hadamard", [8], {}),
        ("helmert", [4], {"full": True}),
        ("invhilbert", [5], {}),
        ("invpascal", [5], {}),
        ("leslie", [V, V[1:]], {}),
    ],
)
def test_values_are_those_of_scipy(name: str, args: Any, kwargs: Any) -> None:
    wanted = getattr(scipy.linalg, name)(*args, **kwargs)
    if name == "polar" and kwargs:
        kwargs = kwargs | {"method": "svd"}
    if name == "funm":
        args = [args[0], perspex.numpy.cos]
    if name == "block_diag":
        args = [np.asarray(x) for x in args]
    with config.enable_x64(True):
        found = getattr(linalg, name)(*args, **kwargs)
        pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
        for got, want in pairs:
            scale = max(1.0, float(np.abs(want).max(initial=0)))
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-11 * scale)


def test_kept_factors_solve() -> None:
    with config.enable_x64(True):
        factors = linalg.lu_factor(C)
        for trans, matrix in enumerate([C, C.T, C.conj().T]):
            found = linalg.lu_solve(factors, V, trans=trans)
            np.testing.assert_allclose(found, np.linalg.solve(matrix, V), atol=1e-12)
        for lower in (True, False):
            found = linalg.cho_solve(linalg.cho_factor(S, lower=lower), B)
            np.testing.assert_allclose(found, np.linalg.solve(S, B), atol=1e-12)


@pytest.mark.parametrize("output", ["real", "complex"])
def test_schur_forms(output: str) -> None:
    x = np.array([[0.0, 2, 1], [-2, 0, 3], [0, 0, 1]]) + 0.1 * A[:3, :3]
    with config.enable_x64(True):
        t, z = linalg.schur(x, output=output)
        np.testing.assert_allclose(z @ t @ z.conj().T, x, atol=1e-12)
        t, z = linalg.rsf2csf(t, z)
        np.testing.assert_allclose(np.tril(t, -1), 0, atol=0)
        np.testing.assert_allclose(z @ t @ z.conj().T, x, atol=1e-12)
        np.testing.assert_allclose(z @ z.conj().T, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("f", [linalg.expm, lambda x: linalg.polar(x, method="svd")[0]])
def test_reverse_mode_is_the_transpose_of_forward_mode(f: Any) -> None:
    t, ct = RNG.normal(size=(2, 4, 4))
    with config.enable_x64(True):
        _, pushed = perspex.jvp(f, (A,), (t,))
        _, pull = perspex.vjp(f, A)
        (pulled,) = pull(ct)
        np.testing.assert_allclose(np.sum(ct * pushed), np.sum(pulled * t), rtol=1e-10)
        slope = (np.asarray(f(A + 1e-6 * t)) - np.asarray(f(A - 1e-6 * t))) / 2e-6
        np.testing.assert_allclose(pushed, slope, rtol=1e-6, atol=1e-6)


def test_where_there_is_no_solution() -> None:
    eye = np.eye(2, dtype="f")
    assert np.isnan(linalg.solve_sylvester(eye, -eye, eye)).all()
    assert np.isnan(linalg.expm(1e6 * eye, max_squarings=3)).all()
    assert np.isnan(linalg.solve(-eye, eye, assume_a="pos")).all()


def test_polar_iteration_counts_its_steps() -> None:
    u, h, steps, converged = perspex.lax.linalg.qdwh(TALL.astype("f"))
    np.testing.assert_allclose(u @ h, TALL, atol=2e-6)
    np.testing.assert_allclose(u.T @ u, np.eye(3), atol=2e-6)
    assert 0 < int(steps) <= 6 and bool(converged)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: linalg.expm(np.ones(3)), ValueError, "square matrix"),
        (lambda: linalg.expm(np.ones((2, 2), np.float16)), TypeError, "not supported"),
        (lambda: linalg.solve(S, B, assume_a="all"), ValueError, "assume_a"),
        (lambda: linalg.polar(TALL.T), NotImplementedError, "method='svd'"),
        (lambda: linalg.hadamard(6), ValueError, "power of 2"),
        (lambda: linalg.cho_solve((S, True), np.ones(3)), ValueError, "does not fit"),
    ],
)
def test_errors(call: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        call()

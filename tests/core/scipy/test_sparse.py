"""`cg`, `bicgstab` and `gmres` against NumPy's direct solver, and their derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import checks

import perspex
from perspex import grad, jit, vmap
from perspex.scipy.sparse.linalg import bicgstab, cg, gmres

SOLVERS = {"cg": cg, "bicgstab": bicgstab, "gmres": gmres}
N = 6


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    with perspex.enable_x64(True):
        yield


def matrix(name: str, kind: str = "f") -> Any:
    """A well-conditioned matrix of the kind that a solver takes."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=(N, N)) + (1j * rng.normal(size=(N, N)) if kind == "c" else 0)
    return a @ a.conj().T + N * np.eye(N) if name == "cg" else a + 2 * N * np.eye(N)


def right(kind: str = "f") -> Any:
    rng = np.random.default_rng(4)
    return rng.normal(size=N) + (1j * rng.normal(size=N) if kind == "c" else 0)


@pytest.mark.parametrize("kind", ["f", "c"])
@pytest.mark.parametrize("name", SOLVERS)
def test_solution(name: str, kind: str) -> None:
    a, b = matrix(name, kind), right(kind)
    want = np.linalg.solve(a, b)
    solve = SOLVERS[name]
    np.testing.assert_allclose(solve(a, b, tol=1e-12)[0], want, rtol=1e-9)
    x, _ = jit(lambda b: solve(lambda x: a @ x, b, x0=want + 0.1, tol=1e-12))(b)
    np.testing.assert_allclose(x, want, rtol=1e-9)
    inverse = np.linalg.inv(a + 0.5 * np.eye(N))
    x, _ = solve(a, b, M=inverse, tol=1e-12, maxiter=20)
    np.testing.assert_allclose(x, want, rtol=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_tolerance_and_maxiter(name: str) -> None:
    a, b = matrix(name), right()
    solve = SOLVERS[name]
    for tol in (1e-1, 1e-6):
        x, _ = solve(a, b, tol=tol)
        assert np.linalg.norm(b - a @ x) <= tol * np.linalg.norm(b)
    x, _ = solve(a, b, tol=0.0, atol=1e-2)
    assert np.linalg.norm(b - a @ x) <= 1e-2
    assert not np.any(solve(a, b, maxiter=0)[0])
    np.testing.assert_array_equal(solve(a, np.zeros(N))[0], np.zeros(N))


def test_gmres_starts_anew() -> None:
    a, b = matrix("gmres"), right()
    want = np.linalg.solve(a, b)
    for restart in (2, 50):
        x, info = gmres(a, b, restart=restart, tol=1e-12)
        np.testing.assert_allclose(x, want, rtol=1e-9)
        assert int(info) == 0
    # One search of as many steps as unknowns is exact; with fewer it takes several.
    assert np.linalg.norm(b - a @ gmres(a, b, restart=N, maxiter=1, tol=0.0)[0]) < 1e-11
    assert np.linalg.norm(b - a @ gmres(a, b, restart=2, maxiter=1)[0]) > 1e-3
    # The space of the identity has one direction.
    np.testing.assert_allclose(gmres(lambda x: x, b)[0], b, rtol=1e-14)
    assert int(gmres(lambda x: x * np.nan, b)[1]) == -1


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives(name: str) -> None:
    a, b = matrix(name), right()

    def f(shift: Any, b: Any) -> list[Any]:
        # A preconditioner that is not symmetric has to be transposed too.
        near = None if name == "cg" else np.linalg.inv(a)
        return [SOLVERS[name](lambda x: a @ x + shift * x, b, tol=1e-14, M=near)[0]]

    shift = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    if name != "gmres":  # compiles for long
        checks.check_forward(f, [shift, b])
    checks.check_reverse(f, [shift, b], tol=1e-10)


@pytest.mark.parametrize("name", SOLVERS)
def test_batches(name: str) -> None:
    a = matrix(name)
    many = np.stack([right(), 2 * right() + 1, np.zeros(N)])
    want = np.linalg.solve(a, many.T).T
    solve = lambda b: SOLVERS[name](a, b, tol=1e-13)[0]  # noqa: E731
    np.testing.assert_allclose(vmap(solve)(many), want, rtol=1e-9, atol=1e-14)
    found = vmap(grad(lambda b: solve(b).sum()))(many)
    np.testing.assert_allclose(found, np.tile(np.linalg.inv(a).sum(0), (3, 1)), rtol=1e-9)


def test_trees() -> None:
    b = {"u": right(), "v": np.array([[1.0, 2.0]])}
    a = matrix("cg")
    for solve in SOLVERS.values():
        x, _ = solve(lambda x: {"u": a @ x["u"], "v": 4 * x["v"]}, b, tol=1e-12)
        np.testing.assert_allclose(x["u"], np.linalg.solve(a, b["u"]), rtol=1e-9)
        np.testing.assert_allclose(x["v"], b["v"] / 4, rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: cg(3, np.ones(2)), TypeError, "either a function or ndarray"),
        (lambda: cg(np.eye(2), np.ones(2), M=3), TypeError, "either a function or ndarray"),
        (lambda: cg(np.ones((2, 3)), np.ones(2)), ValueError, r"square matrix.*\(2, 3\)"),
        (lambda: cg(np.eye(2), np.ones(2), x0=np.ones(3)), ValueError, "matching shapes"),
        (lambda: cg(np.eye(2), np.ones(2), x0=[np.ones(2)]), ValueError, "tree structure"),
        (lambda: cg(np.eye(2), np.array([1, 2])), TypeError, "int64.*astype"),
        (lambda: cg(lambda x: (x, x), np.ones(2)), ValueError, "must match b"),
        (lambda: gmres(np.eye(2), np.ones(2), solve_method="x"), ValueError, "solve_method x"),
        (lambda: gmres(np.eye(2), np.ones(2), restart=0), ValueError, "at least 1, got 0"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()

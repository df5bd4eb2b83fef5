"""Singular values by polar decomposition, as on TPUs: the same program, on this platform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as jnp
from perspex.ops.linalg.polar import singular_values, unitary_factor, weights

SHAPES = [(5, 5), (7, 4), (4, 7), (3, 6, 6), (2, 3, 5, 4), (40, 40), (1, 1), (3, 1)]
DTYPES = ["float32", "complex64"]
# Of the largest singular value, in units of the last place.
MOST = 100


def matrices(shape: tuple[int, ...], dtype: str, kind: str) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    a = rng.normal(size=shape)
    if dtype == "complex64":
        a = a + 1j * rng.normal(size=shape)
    if kind == "rank one":
        a = a[..., :1] @ a[..., :1, :]
    if kind == "graded":
        a = a * 10.0 ** -np.arange(shape[-1])
    scale = {"zero": 0.0, "large": 1e30, "small": 1e-30}.get(kind, 1.0)
    return (scale * a).astype(dtype)


def adjoint(a: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(a, -1, -2))


@pytest.mark.parametrize("kind", ["full rank", "rank one", "graded", "zero", "large", "small"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_against_numpy(shape: tuple[int, ...], dtype: str, kind: str) -> None:
    a = matrices(shape, dtype, kind)
    wide = a.astype(np.complex128)
    want = np.linalg.svd(wide, compute_uv=False)
    largest = max(want.max(), np.finfo(np.float64).tiny)
    eps = np.finfo(np.float32).eps
    k = min(shape[-2:])
    compiled = perspex.jit(singular_values, static_argnums=(1, 2))
    for full in (False, True):
        s, u, vh = map(
            np.asarray, perspex.jit(singular_values, static_argnums=(1, 2))(a, full, True)
        )
        m, n = shape[-2:]
        assert u.shape[-2:] == (m, m if full else k) and vh.shape[-2:] == (n if full else k, n)
        assert (np.diff(s) <= 0).all() and (s >= 0).all()
        assert abs(s - want).max() <= MOST * eps * largest
        rebuilt = (u[..., :k].astype(np.complex128) * s[..., None, :]) @ vh[..., :k, :]
        assert abs(rebuilt - wide).max() <= MOST * eps * largest
        for rows in (adjoint(u), vh):
            one = np.eye(rows.shape[-2])
            assert abs(rows @ adjoint(rows) - one).max() <= MOST * eps
    (alone,) = compiled(a, False, False)
    assert abs(np.asarray(alone) - want).max() <= MOST * eps * largest


def test_in_double_precision() -> None:
    a = np.random.default_rng(1).normal(size=(30, 20))
    with perspex.enable_x64(True):
        s, u, vh = map(np.asarray, singular_values(jnp.asarray(a), False, True))
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), rtol=1e-13)
    np.testing.assert_allclose((u * s) @ vh, a, atol=1e-13)


def test_the_unitary_factor_is_the_nearest() -> None:
    """Of all unitary matrices (Fan and Hoffman 1955): `u v^H` of the singular vectors."""
    a = np.random.default_rng(2).normal(size=(9, 9)).astype(np.float32)
    a /= np.linalg.norm(a)
    u, _, vh = np.linalg.svd(a.astype(np.float64))
    np.testing.assert_allclose(unitary_factor(jnp.asarray(a)), u @ vh, atol=2e-5)


@pytest.mark.parametrize(("dtype", "steps"), [(np.float32, 4), (np.float64, 6)])
def test_steps(dtype: Any, steps: int) -> None:
    """At most six, as published, from the precision of the dtype on; all values end at 1."""
    eps = float(np.finfo(dtype).eps)
    found = list(weights(eps / 8, eps))
    assert len(found) == steps
    s = np.geomspace(eps / 8, 1, 1_000)
    for a, b, c in found:
        s = s * (a + b * s**2) / (1 + c * s**2)
    np.testing.assert_allclose(s, 1, atol=20 * eps)


@pytest.mark.parametrize("shape", [(5, 3), (300, 300), (2, 3, 7)])
def test_the_program_for_tpus(shape: tuple[int, ...]) -> None:
    """It calls what XLA's compiler for TPUs knows, and no LAPACK."""
    traced = perspex.jit(jnp.linalg.svd).trace(perspex.ShapeDtypeStruct(shape, np.float32))
    text = traced.lower(lowering_platforms=("tpu",)).as_text()
    assert "@Qr(" in text and "@Eigh(" in text and "lapack" not in text


def test_other_algorithms() -> None:
    def f(a: Any) -> Any:
        return lax.linalg.svd(a, algorithm=lax.linalg.SvdAlgorithm.JACOBI)

    with pytest.raises(NotImplementedError, match=r"JACOBI is not available .* 'tpu'"):
        perspex.jit(f).trace(jnp.eye(3)).lower(lowering_platforms=("tpu",))

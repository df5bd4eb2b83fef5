"""Functions of neural networks and of `scipy.special`: against formulas in NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import perspex
import perspex.numpy as jnp
from perspex import nn
from perspex.scipy import special

X = np.array([-40.0, -3.0, -1.0, -0.25, 0.0, 0.5, 1.0, 2.75, 6.0, 30.0])
M = np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 5.0]])


def softplus(x: Any) -> Any:
    return np.logaddexp(x, 0)


ALPHA, SCALE = 1.6732632423543772848, 1.0507009873554804934
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": sp.expit,
    "tanh": np.tanh,
    "softplus": softplus,
    "log_sigmoid": lambda x: -softplus(-x),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "silu": lambda x: x * sp.expit(x),
    "swish": lambda x: x * sp.expit(x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.maximum(x, 0) + np.minimum(0, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0))),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    f, want = getattr(nn, name), ACTIVATIONS[name](X)
    for x in (jnp.array(X), jnp.array(X, jnp.bfloat16)):
        got = f(x)
        assert got.dtype == x.dtype
        tol = 1e-5 if x.dtype == jnp.float32 else 3e-2
        np.testing.assert_allclose(np.asarray(got).astype(float), want, tol, tol)
        np.testing.assert_allclose(np.asarray(perspex.jit(f)(x)).astype(float), want, tol, tol)
    assert np.isnan(f(jnp.array(np.nan))) or name == "sparse_plus"


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives_of_activations(name: str) -> None:
    # Central differences, away from the kinks.
    points, h = np.array([-4.3, -0.7, 0.2, 0.8, 3.4, 7.7]), 1e-5
    want = (ACTIVATIONS[name](points + h) - ACTIVATIONS[name](points - h)) / (2 * h)
    got = perspex.vmap(perspex.grad(getattr(nn, name)))(jnp.array(points))
    np.testing.assert_allclose(got, want, 1e-3, 1e-4)


def test_derivatives_at_kinks_and_far_out() -> None:
    assert perspex.grad(nn.relu)(0.0) == 0
    assert perspex.grad(nn.relu6)(6.0) == 0
    for f in (nn.silu, nn.softplus, nn.sigmoid, nn.log_sigmoid, nn.gelu, nn.elu):
        slopes = perspex.vmap(perspex.grad(f))(jnp.array([-100.0, 100.0]))
        assert np.isfinite(slopes).all()


def test_parameters_of_activations() -> None:
    x = jnp.array(X)
    np.testing.assert_allclose(
        nn.elu(x, 0.5), np.where(X > 0, X, 0.5 * np.expm1(np.minimum(X, 0))), 1e-5
    )
    np.testing.assert_allclose(
        nn.celu(x, 2.0), np.where(X > 0, X, 2 * np.expm1(np.minimum(X, 0) / 2)), 1e-5
    )
    np.testing.assert_allclose(nn.leaky_relu(x, 0.3), np.where(X > 0, X, 0.3 * X), 1e-5)
    np.testing.assert_allclose(
        nn.gelu(x, approximate=False), X * 0.5 * (1 + sp.erf(X / np.sqrt(2))), 1e-5, 1e-6
    )
    np.testing.assert_allclose(nn.squareplus(x, 1), (X + np.sqrt(X * X + 1)) / 2, 1e-4, 1e-4)
    halves = np.array([[1.0, 2.0, -1.0, 0.5]])
    np.testing.assert_allclose(
        nn.glu(jnp.array(halves)), halves[:, :2] * sp.expit(halves[:, 2:]), 1e-6
    )
    with pytest.raises(ValueError, match="odd"):
        nn.glu(jnp.ones(3))
    y = np.array([1e-3, 0.5, 2.0, 20.0])
    np.testing.assert_allclose(nn.log1mexp(jnp.array(y)), np.log(-np.expm1(-y)), 1e-5)


@pytest.mark.parametrize("axis", [-1, 0, (0, 1)])
def test_softmax_and_its_kin(axis: Any) -> None:
    x = jnp.array(M)
    np.testing.assert_allclose(nn.softmax(x, axis), sp.softmax(M, axis), 1e-6)
    np.testing.assert_allclose(nn.log_softmax(x, axis), sp.log_softmax(M, axis), 1e-5, 1e-6)
    for keepdims in (False, True):
        np.testing.assert_allclose(
            nn.logsumexp(x, axis, keepdims=keepdims), sp.logsumexp(M, axis, keepdims=keepdims), 1e-6
        )
    count = M.size if isinstance(axis, tuple) else M.shape[axis]
    np.testing.assert_allclose(
        nn.logmeanexp(x, axis), sp.logsumexp(M, axis) - np.log(count), 1e-5, 1e-6
    )


def test_logsumexp_with_weights_signs_and_masks() -> None:
    x = jnp.array(M)
    np.testing.assert_allclose(nn.logsumexp(x, 1, b=x + 2), sp.logsumexp(M, 1, b=M + 2), 1e-6)
    got, sign = nn.logsumexp(x, 1, b=-x, return_sign=True)
    want, want_sign = sp.logsumexp(M, 1, b=-M, return_sign=True)
    np.testing.assert_allclose(got, want, 1e-6)
    np.testing.assert_array_equal(sign, want_sign)
    mask = M > 0
    np.testing.assert_allclose(nn.logsumexp(x, where=jnp.array(mask)), sp.logsumexp(M[mask]), 1e-6)
    masked = nn.softmax(x, where=jnp.array(mask))
    np.testing.assert_allclose(masked[0], sp.softmax(M[0]), 1e-6)
    np.testing.assert_allclose(masked[1], [0, 0, 1], 1e-6)
    assert nn.logsumexp(jnp.array([-np.inf, -np.inf])) == -np.inf
    assert nn.logsumexp(jnp.array([np.inf, 0.0])) == np.inf
    assert np.isfinite(nn.logsumexp(jnp.array([1000.0, 1000.0])))
    grads = perspex.grad(nn.logsumexp)(jnp.array(X))
    np.testing.assert_allclose(grads, sp.softmax(X), 1e-5, 1e-7)


def test_one_hot_and_standardize() -> None:
    labels = jnp.array([0, 2, 5, -1])
    want = np.zeros((4, 3))
    want[0, 0] = want[1, 2] = 1
    np.testing.assert_array_equal(nn.one_hot(labels, 3), want)
    np.testing.assert_array_equal(nn.one_hot(labels, 3, axis=0), want.T)
    assert nn.one_hot(labels, 3, dtype=jnp.int8).dtype == jnp.int8
    with pytest.raises(ValueError, match="axis 2"):
        nn.one_hot(labels, 3, axis=2)
    for axis in (0, 1):
        centred = M - M.mean(axis, keepdims=True)
        want = centred / np.sqrt(M.var(axis, keepdims=True) + 1e-5)
        np.testing.assert_allclose(nn.standardize(jnp.array(M), axis), want, 1e-4, 1e-5)


@pytest.mark.parametrize("name", ["relu", "softmax", "gelu", "logsumexp"])
def test_lists_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match="list"):
        getattr(nn, name)([1.0, 2.0])


# ---- scipy.special ------------------------------------------------------------------------------

UNIT = np.linspace(0.05, 0.95, 7)
POSITIVE = np.array([0.1, 0.5, 1.0, 2.5, 10.0, 100.0])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *[(name, X[1:-1]) for name in ("erf", "erfc", "expit", "softmax", "log_softmax")],
        *[(name, UNIT) for name in ("erfinv", "logit", "entr")],
        *[(name, POSITIVE) for name in ("gammaln", "digamma", "entr", "logsumexp")],
    ],
)
def test_special_functions(name: str, values: np.ndarray) -> None:
    want = {"digamma": sp.psi}.get(name) or getattr(sp, name)
    np.testing.assert_allclose(getattr(special, name)(jnp.array(values)), want(values), 2e-5, 1e-6)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div"])
def test_special_functions_of_two_arguments(name: str) -> None:
    x, y = np.meshgrid([0.0, 0.5, 2.0], [0.25, 1.0, 3.0])
    got = getattr(special, name)(jnp.array(x), jnp.array(y))
    np.testing.assert_allclose(got, getattr(sp, name)(x, y), 1e-5, 1e-6)
    slopes = perspex.grad(lambda y: getattr(special, name)(jnp.array(0.0), y))(2.0)
    assert np.isfinite(slopes)

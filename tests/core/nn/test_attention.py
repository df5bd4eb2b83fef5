"""Attention against sums in NumPy; initial weights by their statistics; images by their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import config, image, nn, random

RNG = np.random.default_rng(2)
Q = RNG.normal(size=(2, 5, 4, 3))
K, V = RNG.normal(size=(2, 2, 6, 2, 3))


def attention(q: Any, k: Any, v: Any, bias: Any, allowed: Any, scale: float) -> np.ndarray:
    """The definition, query by query."""
    out = np.zeros_like(q)
    group = q.shape[2] // k.shape[2]
    for b, t, n in np.ndindex(*q.shape[:3]):
        logits = scale * k[b, :, n // group] @ q[b, t, n] + bias[b, n, t]
        weights = np.exp(logits - logits.max()) * allowed[b, n, t]
        out[b, t, n] = weights @ v[b, :, n // group] / weights.sum()
    return out


@pytest.mark.parametrize(
    "causal, window", [(False, None), (True, None), (False, 1), (True, (2, 0))]
)
def test_attention(causal: bool, window: Any) -> None:
    bias = RNG.normal(size=(2, 4, 5, 6))
    lengths = np.array([6, 3], np.int32)
    t, s = np.arange(5)[:, None], np.arange(6)[None, :]
    allowed = s < lengths[:, None, None, None]
    if causal:
        allowed = allowed & (s <= t)
    if window is not None:
        before, after = (window, window) if isinstance(window, int) else window
        allowed = allowed & (s >= t - before) & (s <= t + after)
    allowed = np.broadcast_to(allowed, (2, 4, 5, 6)).copy()
    allowed &= allowed.any(-1, keepdims=True)
    some = allowed.any(-1).transpose(0, 2, 1)
    allowed[~allowed.any(-1)] = True
    wanted = attention(Q, K, V, bias, allowed, 0.7)
    with config.enable_x64(True):
        found = nn.dot_product_attention(
            Q,
            K,
            V,
            bias,
            scale=0.7,
            is_causal=causal,
            local_window_size=window,
            key_value_seq_lengths=lengths,
        )
    np.testing.assert_allclose(np.asarray(found)[some], wanted[some], rtol=1e-10, atol=1e-12)


def test_attention_under_transforms() -> None:
    q, k, v = [x.astype("f4") for x in (Q, K, V)]

    def loss(q: Any, k: Any, v: Any) -> Any:
        return (nn.dot_product_attention(q, k, v, is_causal=True) ** 2).sum()

    whole = perspex.jit(perspex.grad(loss, (0, 1, 2)))(q, k, v)
    each = perspex.vmap(perspex.grad(loss, (0, 1, 2)))(q, k, v)
    for found, wanted in zip(each, whole, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize(
    "kind, bound, variance",
    [
        ("glorot_uniform", (6 / 50) ** 0.5, 2 / 50),
        ("he_uniform", (6 / 30) ** 0.5, 2 / 30),
        ("lecun_normal", 2 / 0.8796 * 30**-0.5, 1 / 30),
        ("he_normal", 2 / 0.8796 * 15**-0.5, 2 / 30),
    ],
)
def test_variances(kind: str, bound: float, variance: float) -> None:
    # A kernel of 3 places, 10 features in, 20/3 of them out on average.
    shape = (3, 10, 20) if "glorot" not in kind else (1, 30, 20)
    w = np.concatenate(
        [getattr(nn.initializers, kind)()(random.key(i), shape).ravel() for i in range(20)]
    )
    assert np.abs(w).max() <= bound * 1.001
    assert np.isclose(w.var(), variance, rtol=0.05)


@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3", "area", "nearest"])
def test_constant_images_stay_constant(method: str) -> None:
    for shape in ((3, 4), (9, 11), (7, 6)):
        found = image.resize(np.full((7, 6), 2.5, np.float32), shape, method)
        np.testing.assert_allclose(found, np.full(shape, 2.5), rtol=1e-5)


def test_area_is_the_mean_of_blocks() -> None:
    x = RNG.normal(size=(6, 8)).astype("f4")
    found = image.resize(x, (3, 2), "area")
    np.testing.assert_allclose(found, x.reshape(3, 2, 2, 4).mean((1, 3)), rtol=1e-5, atol=1e-6)

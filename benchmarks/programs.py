"""Twenty programs of the kinds that people differentiate, written once for both libraries.

`programs(library)` gives each as a function from arguments to a scalar, with its arguments. The
equations, times and memory of their gradients are what `gradients.py` and the tests compare.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    """A scalar function with arguments to differentiate it at, by the first of them."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def normal(*shape: int, seed: int = 0, scale: float = 0.3) -> np.ndarray:
    """Numbers in single precision that are the same in every process."""
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


def programs(library: str) -> dict[str, Program]:
    """The programs in terms of `library`, the name of a module with JAX's interface."""
    jax = importlib.import_module(library)
    found: dict[str, Program] = {}
    for family in (networks, sequences, statistics, physics, arrays):
        found.update(family(jax, importlib.import_module(library + ".numpy"), jax.lax))
    return found


def mlp(jax: Any, jnp: Any, depth: int, width: int = 32, batch: int = 16) -> Program:
    """A network of `depth` layers with a softmax cross-entropy."""
    layers = [
        {"w": normal(width, width, seed=i), "b": normal(width, seed=i + 1000)} for i in range(depth)
    ]

    def loss(layers: Any, x: Any, labels: Any) -> Any:
        for layer in layers[:-1]:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        logits = x @ layers[-1]["w"] + layers[-1]["b"]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * labels, axis=-1))

    labels = np.eye(width, dtype=np.float32)[np.arange(batch) % width]
    return Program(loss, (layers, normal(batch, width), labels))


def attention(jax: Any, jnp: Any, q: Any, k: Any, v: Any) -> Any:
    """Causal attention of one head: arrays of shape (length, size)."""
    scores = q @ k.T / np.sqrt(q.shape[-1]).astype(np.float32)
    mask = jnp.tril(jnp.ones(scores.shape, bool))
    return jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1) @ v


def layer_norm(jnp: Any, lax: Any, x: Any, gain: Any, bias: Any) -> Any:
    """Normalise the last axis."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * gain + bias


def transformer(jax: Any, jnp: Any, lax: Any, heads: int = 4, width: int = 32) -> Program:
    """A transformer block: attention and a network, each behind a normalisation."""
    sizes = {"q": (width, width), "k": (width, width), "v": (width, width), "o": (width, width)}
    sizes |= {"up": (width, 4 * width), "down": (4 * width, width)}
    params = {name: normal(*shape, seed=i) for i, (name, shape) in enumerate(sizes.items())}
    params |= {"g1": np.ones(width, np.float32), "b1": np.zeros(width, np.float32)}
    params |= {"g2": np.ones(width, np.float32), "b2": np.zeros(width, np.float32)}

    def split(x: Any) -> Any:
        return x.reshape(x.shape[0], heads, -1).transpose(1, 0, 2)

    def block(p: Any, x: Any) -> Any:
        y = layer_norm(jnp, lax, x, p["g1"], p["b1"])
        head = jax.vmap(lambda q, k, v: attention(jax, jnp, q, k, v))
        mixed = head(split(y @ p["q"]), split(y @ p["k"]), split(y @ p["v"]))
        x = x + mixed.transpose(1, 0, 2).reshape(x.shape) @ p["o"]
        y = layer_norm(jnp, lax, x, p["g2"], p["b2"])
        return x + jax.nn.gelu(y @ p["up"]) @ p["down"]

    def loss(p: Any, x: Any) -> Any:
        return jnp.mean(block(p, x) ** 2)

    return Program(loss, (params, normal(12, width)))


def networks(jax: Any, jnp: Any, lax: Any) -> dict[str, Program]:
    """Neural networks."""

    def attend(p: Any, x: Any) -> Any:
        return jnp.sum(attention(jax, jnp, x @ p["q"], x @ p["k"], x @ p["v"]) ** 2)

    def convolutions(kernels: Any, images: Any) -> Any:
        x = images
        for kernel in kernels:
            x = lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = lax.reduce_window(
                jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
            )
        return jnp.mean(x**2)

    def separable(p: Any, images: Any) -> Any:
        def convolve(x: Any, kernel: Any, groups: int) -> Any:
            numbers = ("NHWC", "HWIO", "NHWC")
            return lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=groups
            )

        x = convolve(images, p["each"], images.shape[-1])
        x = convolve(jax.nn.relu(x), p["across"], 1)
        return jnp.mean(convolve(jax.nn.relu(x), p["groups"], 4) ** 2)

    def batch_norm(p: Any, x: Any) -> Any:
        y = x @ p["w"]
        y = (y - jnp.mean(y, 0)) / jnp.sqrt(jnp.var(y, 0) + 1e-5)
        return jnp.sum(jax.nn.sigmoid(y * p["g"] + p["b"]))

    def embedding(table: Any, tokens: Any, segments: Any) -> Any:
        rows = table[tokens]
        pooled = jnp.zeros((4, rows.shape[1])).at[segments].add(rows)
        return jnp.sum(jnp.tanh(pooled) ** 2)

    square = {name: normal(16, 16, seed=i) for i, name in enumerate("qkv")}
    norm = {"w": normal(64, 64), "g": normal(64, seed=1), "b": normal(64, seed=2)}
    kernels = [normal(3, 3, 3, 8, seed=1), normal(3, 3, 8, 8, seed=2)]
    apart = {"each": normal(3, 3, 1, 32, seed=1), "across": normal(1, 1, 32, 32, seed=2)}
    apart |= {"groups": normal(3, 3, 8, 32, seed=3)}
    tokens, segments = np.arange(20) % 7, np.arange(20) // 5
    return {
        "mlp": mlp(jax, jnp, 3),
        "deep mlp": mlp(jax, jnp, 50),
        "attention": Program(attend, (square, normal(10, 16))),
        "transformer block": transformer(jax, jnp, lax),
        "convolutions": Program(convolutions, (kernels, normal(2, 16, 16, 3))),
        "separable convolutions": Program(separable, (apart, normal(8, 32, 32, 32))),
        "batch norm": Program(batch_norm, (norm, normal(256, 64))),
        "embedding": Program(embedding, (normal(7, 6), tokens, segments)),
    }


def sequences(jax: Any, jnp: Any, lax: Any) -> dict[str, Program]:
    """Programs with a loop over time."""

    def rnn(p: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = jnp.tanh(h @ p["h"] + x @ p["x"] + p["b"])
            return h, h

        _, hs = lax.scan(step, jnp.zeros(8), xs)
        return jnp.mean(hs**2)

    def gru(p: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            both = jnp.concatenate([h, x])
            update = jax.nn.sigmoid(p["u"] @ both)
            reset = jax.nn.sigmoid(p["r"] @ both)
            new = jnp.tanh(p["n"] @ jnp.concatenate([reset * h, x]))
            return (1 - update) * new + update * h, None

        h, _ = lax.scan(step, jnp.zeros(8), xs)
        return jnp.sum(h**2)

    def kalman(p: Any, ys: Any) -> Any:
        transition, noise = p["a"], jnp.exp(p["q"])

        def step(carry: Any, y: Any) -> Any:
            mean, cov = carry
            mean = transition @ mean
            cov = transition @ cov @ transition.T + noise * jnp.eye(3)
            innovation, scale = y - mean[0], cov[0, 0] + 0.1
            gain = cov[:, 0] / scale
            carry = mean + gain * innovation, cov - jnp.outer(gain, cov[0])
            return carry, -0.5 * (jnp.log(scale) + innovation**2 / scale)

        return lax.scan(step, (jnp.zeros(3), jnp.eye(3)), ys)[1].sum()

    def runge_kutta(p: Any, y: Any) -> Any:
        def slope(y: Any) -> Any:
            return jnp.tanh(p @ y) - 0.1 * y

        def step(_: Any, y: Any) -> Any:
            k1 = slope(y)
            k2 = slope(y + 0.05 * k1)
            k3 = slope(y + 0.05 * k2)
            k4 = slope(y + 0.1 * k3)
            return y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return jnp.sum(lax.fori_loop(0, 20, step, y) ** 2)

    small = {"h": normal(8, 8), "x": normal(5, 8, seed=1), "b": normal(8, seed=2)}
    gates = {name: normal(8, 13, seed=i) for i, name in enumerate("urn")}
    filter_ = {"a": np.eye(3, dtype=np.float32) + normal(3, 3, scale=0.1), "q": np.float32(-1)}
    return {
        "rnn": Program(rnn, (small, normal(12, 5))),
        "gru": Program(gru, (gates, normal(12, 5))),
        "kalman filter": Program(kalman, (filter_, normal(15))),
        "runge-kutta": Program(runge_kutta, (normal(6, 6), normal(6))),
    }


def statistics(jax: Any, jnp: Any, lax: Any) -> dict[str, Program]:
    """Log-likelihoods."""

    def gaussian_process(p: Any, x: Any, y: Any) -> Any:
        squares = jnp.sum((x[:, None] - x[None]) ** 2, -1)
        kernel = jnp.exp(p["s"]) * jnp.exp(-0.5 * squares / jnp.exp(p["l"]) ** 2)
        factor = jnp.linalg.cholesky(kernel + 0.1 * jnp.eye(len(x)))
        weights = jax.scipy.linalg.cho_solve((factor, True), y)
        return 0.5 * y @ weights + jnp.sum(jnp.log(jnp.diag(factor)))

    def logistic(w: Any, x: Any, y: Any) -> Any:
        logits = x @ w
        return jnp.mean(jnp.logaddexp(0.0, logits) - y * logits) + 0.01 * w @ w

    def mixture(p: Any, x: Any) -> Any:
        squares = (x[:, None] - p["mean"]) ** 2 * jnp.exp(-2 * p["scale"])
        joint = jax.nn.log_softmax(p["weight"]) - 0.5 * squares - p["scale"]
        return -jnp.mean(jax.scipy.special.logsumexp(joint, axis=1))

    def elbo(p: Any, key: Any, x: Any) -> Any:
        mean, log_scale = jnp.split(x @ p["encode"], 2, axis=-1)
        z = mean + jnp.exp(log_scale) * jax.random.normal(key, mean.shape)
        error = x - jnp.tanh(z @ p["decode"])
        divergence = 0.5 * (jnp.exp(2 * log_scale) + mean**2 - 1 - 2 * log_scale)
        return jnp.mean(jnp.sum(error**2, -1) + jnp.sum(divergence, -1))

    hyper = {"s": np.float32(0.2), "l": np.float32(-0.1)}
    parts = {name: normal(4, seed=i) for i, name in enumerate(("mean", "scale", "weight"))}
    coder = {"encode": normal(6, 4), "decode": normal(2, 6, seed=1)}
    return {
        "gaussian process": Program(gaussian_process, (hyper, normal(9, 2, scale=1), normal(9))),
        "logistic regression": Program(
            logistic, (normal(5), normal(30, 5), (np.arange(30) % 2).astype(np.float32))
        ),
        "mixture": Program(mixture, (parts, normal(40))),
        "variational autoencoder": Program(elbo, (coder, jax.random.PRNGKey(0), normal(10, 6))),
    }


def physics(jax: Any, jnp: Any, lax: Any) -> dict[str, Program]:
    """Energies, and functions of derivatives."""

    def bodies(x: Any, masses: Any) -> Any:
        apart = x[:, None] - x[None]
        distance = jnp.sqrt(jnp.sum(apart**2, -1) + 1e-2)
        return -0.5 * jnp.sum(masses[:, None] * masses / distance)

    def curvature(x: Any, v: Any) -> Any:
        def rosenbrock(x: Any) -> Any:
            return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

        return v @ jax.jvp(jax.grad(rosenbrock), (x,), (v,))[1]

    def per_example(w: Any, x: Any, y: Any) -> Any:
        def loss(w: Any, x: Any, y: Any) -> Any:
            return (jnp.tanh(x @ w) - y) ** 2

        each = jax.vmap(jax.grad(loss), (None, 0, 0))(w, x, y)
        return jnp.sum(jnp.sqrt(jnp.sum(each**2, -1) + 1e-6))

    return {
        "bodies": Program(bodies, (normal(7, 3), np.ones(7, np.float32))),
        "curvature": Program(curvature, (normal(8), normal(8, seed=1))),
        "per-example gradients": Program(per_example, (normal(5), normal(9, 5), normal(9, seed=1))),
    }


def arrays(jax: Any, jnp: Any, lax: Any) -> dict[str, Program]:
    """Indexing, sorting, branches and spectra."""

    def spectrum(x: Any) -> Any:
        return jnp.sum(jnp.log1p(jnp.abs(jnp.fft.rfft(x * jnp.hanning(len(x)))) ** 2))

    def trimmed(x: Any) -> Any:
        middle = jnp.sort(x)[3:-3]
        return jnp.mean(jnp.cumsum(middle) ** 2) + jnp.max(jnp.abs(x))

    def piecewise(x: Any) -> Any:
        def huber(r: Any) -> Any:
            return lax.cond(jnp.abs(r) < 1, lambda r: 0.5 * r**2, lambda r: jnp.abs(r) - 0.5, r)

        y = x.at[1:-1].add(0.5 * x[2:] - 0.5 * x[:-2])
        return huber(y.sum()) + jnp.sum(jnp.clip(y, -0.5, 0.5))

    return {
        "spectrum": Program(spectrum, (normal(4096),)),
        "trimmed mean": Program(trimmed, (normal(4096),)),
        "piecewise": Program(piecewise, (normal(15),)),
    }

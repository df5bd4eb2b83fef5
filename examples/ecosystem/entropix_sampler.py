"""A sampler in the manner of entropix: entropy and varentropy choose how the next token is drawn.

The formulas are those of the notes in examples/seeds: the entropy of a distribution, and the
variance of its surprise. A tiny language model with a cache generates the tokens.
"""

# ruff: noqa: E731
import json
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

VOCABULARY, WIDTH, HEADS, LENGTH, FLOOR = 64, 32, 4, 40, -12.0


class Weights(NamedTuple):
    embed: jax.Array
    qkv: jax.Array
    out: jax.Array


def log_probabilities(logits):
    found = jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)
    return jnp.where(found < FLOOR, jnp.log(1e-8), found)


def uncertainty(log_p):
    p = jnp.exp(log_p)
    entropy = -(p * log_p).sum(-1)
    return entropy, (p * (log_p + entropy[..., None]) ** 2).sum(-1)


def divergence(log_p, log_q):
    p = jnp.exp(log_p)
    return jnp.where(p > 0, p * (log_p - log_q), 0.0).sum(-1)


def attend(weights, cache, token, position):
    x = weights.embed[token]
    q, k, v = jnp.split((x @ weights.qkv).reshape(-1, 3 * WIDTH), 3, axis=-1)
    keys = jax.lax.dynamic_update_slice_in_dim(cache[0], k[:, None], position, 1)
    values = jax.lax.dynamic_update_slice_in_dim(cache[1], v[:, None], position, 1)
    heads = lambda y: y.reshape(*y.shape[:-1], HEADS, WIDTH // HEADS)
    scores = jnp.einsum("bhd,bthd->bht", heads(q), heads(keys)) / (WIDTH // HEADS) ** 0.5
    seen = jnp.arange(LENGTH) <= position
    mixed = jnp.einsum(
        "bht,bthd->bhd", jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)), heads(values)
    )
    return (x + mixed.reshape(x.shape)) @ weights.out, (keys, values)


def draw(key, logits):
    log_p = log_probabilities(logits)
    entropy, varentropy = uncertainty(log_p)
    temperature = 0.5 + 0.3 * entropy / jnp.log(VOCABULARY) + 0.2 * jnp.tanh(varentropy)
    drawn = jax.random.categorical(key, log_p / temperature[:, None], axis=-1)
    best = jnp.argmax(log_p, -1)
    certain = (entropy < 1.0) & (varentropy < 1.0)
    return jnp.where(certain, best, drawn), (entropy, varentropy, certain)


@partial(jax.jit, static_argnames="batch")
def generate(weights, key, batch):
    def step(carry, xs):
        token, cache = carry
        position, key = xs
        logits, cache = attend(weights, cache, token, position)
        token, state = draw(key, 6 * logits)
        return (token, cache), (token, *state)

    cache = (jnp.zeros((batch, LENGTH, WIDTH)),) * 2
    start = jnp.arange(batch) % VOCABULARY
    xs = jnp.arange(LENGTH), jax.random.split(key, LENGTH)
    return jax.lax.scan(step, (start, cache), xs)[1]


keys = jax.random.split(jax.random.key(0), 3)
weights = Weights(
    jax.random.normal(keys[0], (VOCABULARY, WIDTH)),
    jax.random.normal(keys[1], (WIDTH, 3 * WIDTH)) / WIDTH**0.5,
    jax.random.normal(keys[2], (WIDTH, VOCABULARY)) / WIDTH**0.5,
)
tokens, entropy, varentropy, certain = generate(weights, jax.random.key(1), batch=16)
a, b = log_probabilities(jnp.sin(jnp.arange(8.0))), log_probabilities(jnp.cos(jnp.arange(8.0)))
figures = {
    "tokens": tokens[:, 0].tolist(),
    "entropy": float(entropy.mean()),
    "varentropy": float(varentropy.mean()),
    "certain": float(certain.mean()),
    "divergence": float(divergence(a, b)),
    "gradient": jax.grad(lambda x: uncertainty(log_probabilities(x))[1])(jnp.arange(4.0)).tolist(),
}
print(json.dumps(figures))

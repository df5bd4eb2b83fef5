"""Equinox: filtered transforms, a checkpointed loop, an error inside of a compiled function."""

# ruff: noqa: E731
import json

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import optax


class Model(eqx.Module):
    layers: list
    scale: jax.Array
    activation: callable = eqx.field(static=True)

    def __init__(self, key):
        a, b = jax.random.split(key)
        self.layers = [eqx.nn.MLP(2, 16, 32, 2, key=a), eqx.nn.Linear(16, 1, key=b)]
        self.scale = jnp.array(0.5)
        self.activation = jax.nn.tanh

    def __call__(self, x):
        return self.layers[1](self.activation(self.layers[0](x)))[0] * self.scale


model = Model(jax.random.key(0))
x = jax.random.normal(jax.random.key(1), (128, 2))
y = jnp.sin(x[:, 0]) * x[:, 1]
optimizer = optax.adam(0.01)
opt_state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit
def step(model, opt_state):
    loss = lambda model: jnp.mean((jax.vmap(model)(x) - y) ** 2)
    value, grads = eqx.filter_value_and_grad(loss)(model)
    updates, opt_state = optimizer.update(grads, opt_state)
    return eqx.apply_updates(model, updates), opt_state, value


losses = []
for _ in range(100):
    model, opt_state, value = step(model, opt_state)
    losses.append(float(value))


@jax.jit
@jax.grad
def through_loop(x):
    cond = lambda c: c[0] < 10
    body = lambda c: (c[0] + 1, jnp.sin(c[1]) + c[1] * 0.9)
    return eqxi.while_loop(cond, body, (0, x), max_steps=16, kind="checkpointed")[1]


@eqx.filter_jit
def checked(x):
    return eqx.error_if(x, x < 0, "x must not be negative")


try:
    checked(jnp.array(-1.0))
    refused = 0
except RuntimeError as error:
    refused = int("must not be negative" in str(error))

jvp = eqx.filter_jvp(lambda m: jax.vmap(m)(x).mean(), (model,), (eqx.filter(model, eqx.is_array),))
figures = {
    "first loss": losses[0],
    "last loss": losses[-1],
    "through the loop": float(through_loop(0.3)),
    "refused": refused,
    "passed": float(checked(jnp.array(2.0))),
    "jvp": float(jvp[1]),
    "any": bool(jax.vmap(lambda v: eqxi.unvmap_any(v > 2), out_axes=None)(jnp.arange(4))),
}
print(json.dumps(figures))

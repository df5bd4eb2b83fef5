"""Haiku: a variational autoencoder with state, an RNN, and a drawing of the program."""

import json

import haiku as hk
import jax
import jax.numpy as jnp
import optax


def encoder(x):
    h = jax.nn.relu(hk.Linear(32)(x))
    return hk.Linear(2)(h), hk.Linear(2)(h)


def model(x, is_training):
    mean, log_var = encoder(x)
    z = mean + jnp.exp(log_var / 2) * jax.random.normal(hk.next_rng_key(), mean.shape)
    h = hk.BatchNorm(True, True, 0.9)(hk.Linear(32)(z), is_training)
    return hk.Linear(8)(jax.nn.relu(h)), mean, log_var


net = hk.transform_with_state(model)
angles = jnp.linspace(0, 6, 200)[:, None] * jnp.arange(1, 9)
x = jnp.sin(angles)
params, state = net.init(jax.random.key(0), x, True)
optimizer = optax.adam(0.01)


@jax.jit
def step(params, state, opt_state, key):
    def loss(params):
        (out, mean, log_var), new = net.apply(params, state, key, x, True)
        kl = 0.5 * jnp.sum(jnp.exp(log_var) + mean**2 - 1 - log_var, -1)
        return jnp.mean(jnp.sum((out - x) ** 2, -1) + 0.1 * kl), new

    (value, state_), grads = jax.value_and_grad(loss, has_aux=True)(params)
    updates, opt_state_ = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), state_, opt_state_, value


opt_state, losses = optimizer.init(params), []
for key in jax.random.split(jax.random.key(1), 150):
    params, state, opt_state, value = step(params, state, opt_state, key)
    losses.append(float(value))


def recurrent(xs):
    core = hk.LSTM(4)
    outs, _ = hk.dynamic_unroll(core, xs, core.initial_state(2))
    return hk.Linear(1)(outs[-1])


rnn = hk.without_apply_rng(hk.transform(recurrent))
xs = jnp.cos(jnp.arange(30.0)).reshape(5, 2, 3)
weights = rnn.init(jax.random.key(2), xs)
table = hk.experimental.tabulate(rnn)(xs)
dot = hk.experimental.to_dot(lambda x: jax.jit(jnp.tanh)(x) * 2)(jnp.ones(3))
figures = {
    "tolerance": 0.1,
    "first loss": losses[0],
    "last loss": losses[-1],
    "lstm": rnn.apply(weights, xs)[:, 0].tolist(),
    "parameters": hk.data_structures.tree_size(params),
    "table": int("lstm/linear" in table),
    "dot": int("tanh" in dot and "mul" in dot),
}
print(json.dumps(figures))

"""Flax linen: a network with dropout and batch statistics, trained on two moons."""

import json

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state


class Net(nn.Module):
    width: int = 32

    @nn.compact
    def __call__(self, x, train):
        for _ in range(2):
            x = nn.Dense(self.width)(x)
            x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
            x = nn.Dropout(0.1, deterministic=not train)(nn.relu(x))
        return nn.Dense(1)(x)[..., 0]


def moons(key, n):
    t, noise = jax.random.uniform(key, (n,)) * jnp.pi, jax.random.normal(key, (n, 2)) * 0.1
    label = jnp.arange(n) % 2
    x = jnp.where(label, 1 - jnp.cos(t), jnp.cos(t))
    y = jnp.where(label, 0.5 - jnp.sin(t), jnp.sin(t))
    return jnp.stack([x, y], 1) + noise, label


class State(train_state.TrainState):
    stats: dict


net = Net()
x, y = moons(jax.random.key(0), 512)
variables = net.init(jax.random.key(1), x, train=False)
state = State.create(
    apply_fn=net.apply,
    params=variables["params"],
    tx=optax.adamw(0.01),
    stats=variables["batch_stats"],
)


@jax.jit
def train(state, key):
    def loss(params):
        out, updates = state.apply_fn(
            {"params": params, "batch_stats": state.stats},
            x,
            train=True,
            rngs={"dropout": key},
            mutable=["batch_stats"],
        )
        return optax.sigmoid_binary_cross_entropy(out, y).mean(), updates

    (value, updates), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, stats=updates["batch_stats"]), value


losses = []
for key in jax.random.split(jax.random.key(2), 100):
    state, value = train(state, key)
    losses.append(float(value))
test_x, test_y = moons(jax.random.key(3), 256)
out = net.apply({"params": state.params, "batch_stats": state.stats}, test_x, train=False)


class Recurrent(nn.Module):
    @nn.compact
    def __call__(self, xs):
        return nn.RNN(nn.GRUCell(features=8))(xs)


rnn = Recurrent()
xs = jnp.sin(jnp.arange(60.0)).reshape(2, 10, 3)
hidden = rnn.apply(rnn.init(jax.random.key(4), xs), xs)
attention = nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=8)
attended = attention.apply(attention.init(jax.random.key(5), xs), xs)
figures = {
    "first loss": losses[0],
    "last loss": losses[-1],
    "accuracy": float(((out > 0) == test_y).mean()),
    "hidden": hidden[0, -1].tolist(),
    "attended": attended[1, 3].tolist(),
}
print(json.dumps(figures))

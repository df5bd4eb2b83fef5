"""Flax nnx: a residual network with state in objects, trained on a noisy sine."""

import json

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Block(nnx.Module):
    def __init__(self, width, rngs):
        self.linear = nnx.Linear(width, width, rngs=rngs)
        self.norm = nnx.BatchNorm(width, rngs=rngs)
        self.dropout = nnx.Dropout(0.05, rngs=rngs)

    def __call__(self, x):
        return x + self.dropout(nnx.gelu(self.norm(self.linear(x))))


class Net(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(1, 32, rngs=rngs)
        self.blocks = nnx.List([Block(32, rngs) for _ in range(2)])
        self.last = nnx.Linear(32, 1, rngs=rngs)

    def __call__(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x)


net = Net(nnx.Rngs(0))
optimizer = nnx.Optimizer(net, optax.adam(0.01), wrt=nnx.Param)
x = jnp.linspace(-1, 1, 256)[:, None]
y = jnp.sin(4 * x) + 0.05 * jax.random.normal(jax.random.key(1), x.shape)


@nnx.jit
def train(net, optimizer, x, y):
    def loss(net):
        return jnp.mean((net(x) - y) ** 2)

    value, grads = nnx.value_and_grad(loss)(net)
    optimizer.update(net, grads)
    return value


losses = [float(train(net, optimizer, x, y)) for _ in range(100)]
net.eval()
graph, state = nnx.split(net)
again = nnx.merge(graph, state)


@nnx.vmap(in_axes=(None, 0))
def apply(net, x):
    return net(x)


figures = {
    "first loss": losses[0],
    "last loss": losses[-1],
    "at": again(jnp.array([[0.3]]))[0].tolist(),
    "mapped": float(apply(net, x).mean()),
    "parameters": sum(p.size for p in jax.tree.leaves(nnx.state(net, nnx.Param))),
}
print(json.dumps(figures))

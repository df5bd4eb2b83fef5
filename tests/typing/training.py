"""A training step as users write it: parameters in a dataclass and dicts, gradients, a scan."""

from __future__ import annotations

from typing import NamedTuple, TypedDict, assert_type

import numpy as np

import perspex
import perspex.numpy as jnp
from perspex import Array, lax, nn, random
from perspex.typing import ArrayLike


class Layer(TypedDict):
    w: Array
    b: Array


Model = list[Layer]


class State(NamedTuple):
    model: Model
    step: Array


def init(key: Array, sizes: list[int]) -> Model:
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (n, m)) / jnp.sqrt(n), "b": jnp.zeros(m)}
        for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def predict(model: Model, x: ArrayLike) -> Array:
    h = jnp.asarray(x)
    for layer in model[:-1]:
        h = nn.relu(h @ layer["w"] + layer["b"])
    return h @ model[-1]["w"] + model[-1]["b"]


def loss(model: Model, x: Array, y: Array) -> Array:
    return jnp.mean((predict(model, x) - y) ** 2)


@perspex.jit
def step(state: State, x: Array, y: Array, rate: float = 0.1) -> tuple[State, Array]:
    value, slope = perspex.value_and_grad(loss)(state.model, x, y)
    assert_type(value, Array)
    assert_type(slope, Model)
    model: Model = perspex.tree.map(lambda p, g: p - rate * g, state.model, slope)
    return State(model, state.step + 1), value


def train(steps: int) -> float:
    key, draw = random.split(random.key(0))
    x = random.uniform(draw, (64, 2))
    y = x.sum(axis=1, keepdims=True)
    state = State(init(key, [2, 8, 1]), jnp.array(0))
    state, value = step(state, x, y)
    assert_type(value, Array)

    def body(carry: State, _: Array) -> tuple[State, Array]:
        return step(carry, x, y)

    state, values = lax.scan(body, state, jnp.arange(steps))
    assert_type(state, State)
    assert_type(values, Array)
    print(values.shape, values.dtype.name, np.asarray(values)[0])
    return float(values[-1])


state = State(init(random.key(1), [2, 3, 1]), jnp.array(0))
print(step.lower(state, jnp.ones((4, 2)), jnp.ones((4, 1))).as_text())
print(train(steps=3))

"""Transforms of functions keep what their parameters and results are."""

from __future__ import annotations

import functools
from typing import Any, assert_type

import perspex
import perspex.numpy as jnp
from perspex import Array, lax, random
from perspex.typing import ArrayLike


def energy(position: Array, stiffness: float = 1.0) -> Array:
    return 0.5 * stiffness * jnp.sum(position**2)


# Gradients have the type of the first parameter.
force = perspex.grad(energy)
assert_type(force(jnp.ones(3)), Array)
assert_type(force(jnp.ones(3), stiffness=2.0), Array)
assert_type(perspex.value_and_grad(energy)(jnp.ones(3)), tuple[Array, Array])
assert_type(perspex.vmap(perspex.grad(energy))(jnp.ones((4, 3))), Array)
assert_type(perspex.jit(perspex.vmap(force))(jnp.ones((4, 3))), Array)


def weighted(weights: dict[str, Array], x: ArrayLike) -> Array:
    return jnp.sum(weights["w"] * x)


assert_type(perspex.grad(weighted)({"w": jnp.ones(3)}, 2.0), dict[str, Array])
assert_type(perspex.grad(weighted, argnums=1)({"w": jnp.ones(3)}, 2.0), Any)
print(perspex.grad(lambda x: x**3)(2.0))


def with_aux(x: Array) -> tuple[Array, str]:
    return x.sum(), "auxiliary"


(value, word), slope = perspex.value_and_grad(with_aux, has_aux=True)(jnp.ones(3))
assert_type(word, str)
assert_type(slope, Array)
assert_type(perspex.jvp(energy, (jnp.ones(3),), (jnp.ones(3),)), tuple[Array, Array])
out, pullback = perspex.vjp(energy, jnp.ones(3))
assert_type(out, Array)
(cotangent,) = pullback(jnp.array(1.0))


# Decorators.
@functools.partial(perspex.jit, static_argnames=("n",))
def repeated(x: Array, n: int) -> Array:
    return jnp.tile(x, n)


@perspex.jit(static_argnames="n", donate_argnums=0)
def rolled(x: Array, n: int) -> Array:
    return jnp.roll(x, n)


assert_type(rolled(jnp.ones(3), n=2), Array)
repeated(jnp.ones(3), n=2)
rolled.lower(jnp.ones(3), n=2).compile()
rolled.clear_cache()
print(rolled.__name__)


class Model:
    @perspex.jit(static_argnums=0)
    def __call__(self, x: Array) -> Array:
        return x * 2

    @perspex.jit(static_argnums=0)
    def loss(self, x: Array, scale: float) -> Array:
        return self(x).sum() * scale


assert_type(Model().loss(jnp.ones(3), 2.0), Array)


@perspex.custom_vjp
def clipped(x: Array, most: float) -> Array:
    return x


def forward(x: Array, most: float) -> tuple[Array, float]:
    return clipped(x, most), most


def backward(most: float, ct: Array) -> tuple[Array, None]:
    return jnp.clip(ct, -most, most), None


clipped.defvjp(forward, backward)
assert_type(clipped(jnp.ones(3), 1.0), Array)


@perspex.custom_jvp
def safe_log(x: Array) -> Array:
    return jnp.log(x)


@safe_log.defjvp
def _rule(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    return safe_log(x), t / x


assert_type(safe_log(jnp.ones(3)), Array)


@perspex.checkpoint
def block(x: Array) -> Array:
    return jnp.sin(x)


assert_type(block(jnp.ones(3)), Array)

# Loops and branches.
Pair = tuple[Array, Array]


def turn(pair: Pair, x: Array) -> tuple[Pair, Array]:
    a, b = pair
    return (b, a + x), a


last, seen = lax.scan(turn, (jnp.array(0.0), jnp.array(1.0)), jnp.ones(5))
assert_type(last, Pair)
assert_type(seen, Array)


def halve(x: Array) -> Array:
    return x / 2


def large(x: Array) -> Array:
    return x > 1


assert_type(lax.while_loop(large, halve, 10.0), Array)
assert_type(lax.cond(True, halve, jnp.sin, jnp.ones(3)), Array)
assert_type(lax.map(halve, jnp.ones((4, 3))), Array)
print(lax.fori_loop(0, 5, lambda i, total: total + i, 0))

# Keys.
key = random.key(0)
assert_type(key, Array)
first, second = random.split(key)
assert_type(random.normal(first, (3,), dtype=jnp.float32), Array)
assert_type(random.categorical(second, jnp.zeros(4)), Array)
assert_type(perspex.vmap(random.normal)(random.split(key, 4)), Array)

# Pytrees.
tree = {"a": [jnp.ones(2)], "b": (1, None)}
leaves, structure = perspex.tree.flatten(tree)
assert_type(leaves, list[Any])
print(perspex.tree.unflatten(structure, leaves), perspex.tree.leaves(tree))

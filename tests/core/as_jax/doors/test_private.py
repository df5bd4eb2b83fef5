"""Private names of JAX, as libraries use them; real jax 0.12 prints the same for these programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from as_jax_programs import check

# Chex asks whether a platform has started before it asks for more devices.
PLATFORMS = """
import os
import jax
from jax._src import xla_bridge

started = xla_bridge._backends
print(len(started), started.get("cpu"))
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
print(len(jax.devices()))
print(list(started), started["cpu"] is jax.devices()[0].client)
"""

# Jaxlie maps over trees by way of the registry.
REGISTRY = """
import collections
import jax
from jax._src.tree_util import _registry

class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), "x"), lambda _, ab: Pair(*ab))

def double(x):
    if isinstance(x, int):
        return 2 * x
    entry = _registry[type(x)]
    children, data = entry.to_iter(x)
    return entry.from_iter(data, map(double, children))

doubled = double([1, (2, None), {"k": 3}, collections.OrderedDict(m=4)])
print(doubled[:-1], type(doubled[-1]).__name__, *doubled[-1].items())
pair = double(Pair(1, [2]))
print(pair.a, pair.b)
try:
    _registry[int]
except KeyError as error:
    print(error)
"""

# A module of Equinox that jit has taken apart may have a `__name__` that is no text.
NAMES = """
import jax, jax.numpy as jnp

class Missing:
    def __bool__(self):
        return False

class Square:
    scale = 2.0
    def __init__(self):
        self.__name__ = self.__qualname__ = self.__module__ = self.__doc__ = Missing()
    def __call__(self, x):
        return x ** 2

square, x = Square(), jnp.arange(3.0)
print(jax.vmap(square)(x), jax.vmap(jax.grad(square))(x), jax.hessian(square)(1.0))
print(jax.grad(jax.checkpoint(square))(3.0), jax.pmap(square)(x[:, None][2:]))
print(jax.value_and_grad(square)(1.0))
"""

PRINTED = {
    PLATFORMS: "0 None\n3\n['cpu'] True",
    REGISTRY: ("[2, (4, None), {'k': 6}] OrderedDict ('m', 8)\n2 [4]\n<class 'int'>"),
    NAMES: (
        "[0. 1. 4.] [0. 2. 4.] 2.0\n6.0 [[4.]]\n"
        "(Array(1., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))"
    ),
}


@pytest.mark.parametrize("program", PRINTED, ids=["platforms", "registry", "names"])
def test_private_names(program: str, tmp_path: Path) -> None:
    check(program, PRINTED[program], tmp_path)

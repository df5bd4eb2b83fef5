"""What libraries ask of the inside of JAX; real jax 0.12 prints the same for these programs."""

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

# A primitive of Haiku that is evaluated and has no lowering: jax evaluates `checkpoint` by parts.
CHECKPOINT = """
import jax, jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad

calls = []
seen = Primitive("seen")

@seen.def_impl
def impl(x):
    calls.append(float(x))
    return x

seen.def_abstract_eval(lambda aval: aval)
ad.primitive_jvps[seen] = lambda primals, tangents: (seen.bind(primals[0]), tangents[0])
f = jax.checkpoint(lambda x: jnp.sin(seen.bind(x * 2.0)))
print(f"{f(1.0):.3f}", calls)
print(f"{jax.grad(f)(1.0):.3f}", calls)
print(f"{jax.jvp(f, (1.0,), (1.0,))[1]:.3f}", calls)
try:
    jax.jit(f)(1.0)
except NotImplementedError as error:
    print(str(error)[:51])
"""

# Haiku asks which trace is current; what it compares with later must not keep tracers.
LEAKS = """
import jax, jax.numpy as jnp
from jax.extend import core

states = []

@jax.jit
def f(x):
    y = jnp.sin(x)

    def body(carry, _):
        states.append(core.get_opaque_trace_state(convention="nnx"))
        return carry + y, None

    return jax.lax.scan(body, y, None, 2)[0]

with jax.checking_leaks():
    print(f(jnp.zeros(2)))
print(states[0] == core.get_opaque_trace_state(convention="nnx"), states[0] == states[0])
"""

# e3nn finds the names of arguments by their positions, and the other way round.
ARGUMENTS = """
import inspect
from jax._src.api_util import infer_argnums_and_argnames as infer

signature = inspect.signature(lambda a, b, *, c=1: None)
print(infer(signature, None, None), infer(signature, (0,), None))
print(infer(signature, None, ["b", "c"]))
print(infer(signature, -2, None), infer(signature, 0, "b"), infer(signature, None, "a"))
"""

PRINTED = {
    "platforms": (PLATFORMS, "0 None\n3\n['cpu'] True"),
    "registry": (
        REGISTRY,
        "[2, (4, None), {'k': 6}] OrderedDict ('m', 8)\n2 [4]\n<class 'int'>",
    ),
    "names": (
        NAMES,
        "[0. 1. 4.] [0. 2. 4.] 2.0\n6.0 [[4.]]\n(Array(1., dtype=float32, weak_type=True), "
        "Array(2., dtype=float32, weak_type=True))",
    ),
    "checkpoint": (
        CHECKPOINT,
        "0.909 [2.0]\n-0.832 [2.0, 2.0, 2.0]\n-0.832 [2.0, 2.0, 2.0, 2.0]\n"
        "MLIR translation rule for primitive 'seen' not foun",
    ),
    "leaks": (LEAKS, "[0. 0.]\nFalse True"),
    "arguments": (
        ARGUMENTS,
        "((), ()) ((0,), ('a',))\n((1,), ('b', 'c'))\n"
        "((-2,), ('b',)) ((0,), ('b',)) ((0,), ('a',))",
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_as_in_jax(name: str, tmp_path: Path) -> None:
    check(*PRINTED[name], tmp_path)

"""Calls and programs over eight devices of one processor, and over devices that are not there.

What is measured is the processor's time of the thread that calls, which another program on the
machine does not lengthen by taking turns with it. What the devices compute is not in it.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Rows = dict[str, float]

_ROUNDS = 30


def measure_devices(library: str) -> Rows:
    """In a process of its own, because the number of devices is chosen before the first use."""
    jax = importlib.import_module(library)
    prefix = "jax_" if library == "jax" else ""
    jax.config.update(f"{prefix}num_cpu_devices", 8)
    jnp = importlib.import_module(library + ".numpy")
    sharding = importlib.import_module(library + ".sharding")
    rows = _calls(jax, jnp, sharding)
    rows |= _traced(jax, jnp, sharding)
    return rows


def _least(call: Callable[[], Any], rounds: int) -> float:
    """The least seconds of several calls: whatever else the machine does only adds time."""
    times = []
    call()
    for _ in range(rounds):
        started = time.thread_time()
        call()
        times.append(time.thread_time() - started)
    return min(times)


def _calls(jax: Any, jnp: Any, sharding: Any) -> Rows:
    P = sharding.PartitionSpec
    mesh = jax.make_mesh((8,), ("x",))
    x = jax.device_put(np.ones((8, 4), np.float32), sharding.NamedSharding(mesh, P("x")))
    jitted = jax.jit(lambda x: x + 1)

    def part(x: Any) -> Any:
        for _ in range(4):
            x = jnp.sin(x) + jax.lax.pmean(x, "x")
        return x

    mapped = jax.shard_map(part, mesh=mesh, in_specs=P("x"), out_specs=P("x"))

    def body(x: Any) -> Any:
        for _ in range(20):
            x = jnp.sin(x) * x + jax.lax.psum(x, "x")
        return x

    def traced() -> Any:
        # Another function each time: nothing is remembered.
        f = jax.shard_map(lambda x: body(x), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        return jax.make_jaxpr(f)(x)

    return {
        "devices dispatch": _least(
            lambda: jax.block_until_ready([jitted(x) for _ in range(50)]), 60
        )
        / 50,
        "devices shard_map eager": _least(lambda: jax.block_until_ready(mapped(x)), 10),
        "devices shard_map traced": _least(traced, 15),
    }


def _layer(jnp: Any, jax: Any) -> Callable[..., Any]:
    def layer(w: Any, x: Any) -> Any:
        q, k, v = jnp.split(jnp.einsum("bld,dnhe->nbhle", x, w["qkv"]), 3)
        scores = jnp.einsum("bhle,bhme->bhlm", q[0], k[0]) / 2.0
        mixed = jnp.einsum("bhlm,bhme->bhle", jax.nn.softmax(scores), v[0])
        x = x + jnp.einsum("bhle,hed->bld", mixed, w["out"])
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"]

    return layer


def _traced(jax: Any, jnp: Any, sharding: Any) -> Rows:
    P, NamedSharding = sharding.PartitionSpec, sharding.NamedSharding
    shapes = {"qkv": (32, 3, 8, 4), "out": (8, 4, 32), "up": (32, 64), "down": (64, 32)}
    weights = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}
    rows: Rows = {}
    # In turn, so that a machine that slows down slows all.
    stages: dict[str, list[float]] = {}
    meshes = {n: sharding.AbstractMesh((n,), ("x",)) for n in (1, 8, 64, 1024)}
    for _ in range(_ROUNDS):
        for n, mesh in meshes.items():
            place = NamedSharding(mesh, P("x"))
            x = jax.ShapeDtypeStruct((1024, 16, 32), jnp.float32, sharding=place)
            f = jax.jit(_layer(jnp, jax))
            started = time.thread_time()
            traced = f.trace(weights, x)
            middle = time.thread_time()
            traced.lower(lowering_platforms=("tpu",))
            ended = time.thread_time()
            stages.setdefault(f"devices trace, {n:,}", []).append(middle - started)
            stages.setdefault(f"devices lower, {n:,}", []).append(ended - middle)
    rows |= {name: min(times) for name, times in stages.items()}
    return rows

"""Measure one library in this process and print the numbers as JSON: row name -> seconds.

    python measure.py LIBRARY GROUP [GROUP ...]
    python measure.py LIBRARY run

Names of rows that begin with `equations` or `memory` are counts: equations, and bytes.

The same code runs under `jax` and under `perspex`: it uses the public interface, by name, and knows
nothing else about either. `run.py` starts it, once for each library and round; with `run` it stays,
and times the programs that it is asked for.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from devices import measure_devices
from programs import programs

Rows = dict[str, float]

CHAIN_LINKS = 2000
CHAIN_EQUATIONS = 3 * CHAIN_LINKS


def per_call(call: Callable[[], Any], finish: Callable[[Any], Any], batches: int = 25) -> float:
    """Seconds for one `call()`: the least of several batches of about 10 ms each.

    The least, because whatever else the machine does only adds time. A batch ends with `finish` of
    its last result: work that asynchronous dispatch has queued is paid for where it was queued.
    """
    finish(call())
    started = time.perf_counter()
    finish(call())
    size = max(1, min(2000, int(0.01 / max(time.perf_counter() - started, 1e-7))))
    times = []
    for _ in range(batches):
        started = time.perf_counter()
        for _ in range(size):
            result = call()
        finish(result)
        times.append((time.perf_counter() - started) / size)
    return min(times)


def measure_import(library: str) -> Rows:
    """A fresh process imports the NumPy-like module: the first and only thing this one does."""
    started = time.perf_counter()
    importlib.import_module(library + ".numpy")
    return {"import": time.perf_counter() - started}


def measure_first_jit(library: str) -> Rows:
    """A fresh process compiles and runs its first function: client, tracing, lowering, XLA."""
    jax = importlib.import_module(library)
    jnp = importlib.import_module(library + ".numpy")
    started = time.perf_counter()
    jax.jit(lambda x: jnp.sin(x) * 2.0 + x)(1.0).block_until_ready()
    return {"first jit": time.perf_counter() - started}


def measure_eager(library: str) -> Rows:
    """Operations one at a time, on arrays so small that only the way to XLA counts."""
    jax = importlib.import_module(library)
    jnp = importlib.import_module(library + ".numpy")
    x = jnp.arange(10.0)
    y = x + 1.0
    a = jnp.ones((10, 10))
    calls: dict[str, Callable[[], Any]] = {
        "x + y": lambda: x + y,
        "sin(x)": lambda: jnp.sin(x),
        "x[0]": lambda: x[0],
        "zeros": lambda: jnp.zeros((10,)),
        "x.at[0].set": lambda: x.at[0].set(1.0),
        "x.sum()": lambda: x.sum(),
        "a @ a": lambda: a @ a,
    }
    return {f"eager {name}": per_call(call, jax.block_until_ready) for name, call in calls.items()}


def measure_dispatch(library: str) -> Rows:
    """Calls of compiled functions whose arguments are many, or sit in a dictionary."""
    jax = importlib.import_module(library)
    jnp = importlib.import_module(library + ".numpy")
    x = jnp.arange(10.0)
    rows: Rows = {}
    for count in (1, 10, 100):
        args = [x + i for i in range(count)]
        f = jax.jit(lambda *xs: xs[0] + xs[-1], keep_unused=True)
        rows[f"dispatch {count} args"] = per_call(
            lambda f=f, args=args: f(*args), jax.block_until_ready
        )
    tree = {f"layer{i}": x + i for i in range(20)}
    g = jax.jit(lambda t: {name: leaf + 1.0 for name, leaf in t.items()})
    rows["dispatch dict of 20"] = per_call(lambda: g(tree), jax.block_until_ready)
    return rows


def measure_random(library: str) -> Rows:
    """Functions of a typed key, and a compiled step that takes one and returns the next.

    Four samples: XLA runs programs of few operations in the thread that calls, and only the way
    there counts. It hands larger ones to another thread, which takes longer than all the rest.
    """
    jax = importlib.import_module(library)
    jnp = importlib.import_module(library + ".numpy")
    random = importlib.import_module(library + ".random")
    key = random.key(0)
    x = jnp.arange(4.0)

    @jax.jit
    def step(key: Any, x: Any) -> Any:
        key, subkey = random.split(key)
        return key, x + random.normal(subkey, x.shape)

    calls: dict[str, Callable[[], Any]] = {
        "split": lambda: random.split(key),
        "fold_in": lambda: random.fold_in(key, 3),
        "normal": lambda: random.normal(key, (4,)),
        "uniform": lambda: random.uniform(key, (4,)),
        "jit of a key": lambda: step(key, x),
    }
    return {f"random {name}": per_call(call, jax.block_until_ready) for name, call in calls.items()}


def _fresh_chain(jnp: Any) -> Callable[[Any], Any]:
    # A new function each time: an old one would be found in the library's trace cache.
    def chain(x: Any) -> Any:
        for _ in range(CHAIN_LINKS):
            x = jnp.sin(x) * 1.5 + x
        return x

    return chain


def measure_trace(library: str) -> Rows:
    """Tracing and lowering a chain of 6,000 equations, per equation."""
    jax = importlib.import_module(library)
    jnp = importlib.import_module(library + ".numpy")
    x = jnp.arange(10.0)
    tracing, lowering = [], []
    for _ in range(6):
        function = jax.jit(_fresh_chain(jnp))
        gc.collect()
        started = time.perf_counter()
        traced = function.trace(x)
        middle = time.perf_counter()
        traced.lower()
        lowering.append((time.perf_counter() - middle) / CHAIN_EQUATIONS)
        tracing.append((middle - started) / CHAIN_EQUATIONS)
        assert len(traced.jaxpr.jaxpr.eqns) == CHAIN_EQUATIONS
    # The first time pays for filling caches, which a session pays once.
    return {
        "trace per equation": min(tracing[1:]),
        "lower per equation": min(lowering[1:]),
    }


def measure_stages(library: str) -> Rows:
    """The stages ahead of time of a small network: three layers of 64 units."""
    jax = importlib.import_module(library)
    jnp = importlib.import_module(library + ".numpy")
    weights = [(jnp.ones((64, 64)), jnp.ones((64,))) for _ in range(3)]
    batch = jnp.ones((32, 64))
    times: dict[str, list[float]] = {"trace": [], "lower": [], "compile": []}
    for turn in range(6):

        def network(layers: Any, x: Any, turn: int = turn) -> Any:
            for w, b in layers:
                x = jnp.tanh(x @ w + b)
            shifted = x - x.max(axis=-1, keepdims=True)
            # A constant of its own makes each turn a program that no cache has seen.
            return jnp.mean(jnp.log(jnp.sum(jnp.exp(shifted), axis=-1))) + 0.25 * turn

        function = jax.jit(network)
        marks = [time.perf_counter()]
        traced = function.trace(weights, batch)
        marks.append(time.perf_counter())
        lowered = traced.lower()
        marks.append(time.perf_counter())
        lowered.compile()
        marks.append(time.perf_counter())
        for name, start, stop in zip(times, marks, marks[1:], strict=False):
            times[name].append(stop - start)
    return {f"stage {name}": min(values[1:]) for name, values in times.items()}


def measure_transforms(library: str) -> Rows:
    """Tracing derivatives and batches of networks, to the jaxpr."""
    jax = importlib.import_module(library)

    def mapped(f: Callable[..., Any]) -> Callable[..., Any]:
        return jax.vmap(f, (None, 0))

    def directional(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda p, x: jax.jvp(lambda x: f(p, x), (x,), (x,))[1]

    transforms: dict[str, tuple[Callable[..., Any], bool]] = {
        "grad": (jax.grad, False),
        "vmap": (mapped, True),
        "vmap of grad": (lambda f: mapped(jax.grad(f)), True),
        "vmap of grad of jvp": (lambda f: mapped(jax.grad(directional(f))), True),
    }
    known = programs(library)
    rows: Rows = {}
    for name in ("deep mlp", "transformer block"):
        function, (params, x, *rest) = known[name]
        for what, (transform, batched) in transforms.items():
            times = []
            for _ in range(8):
                # A new function each time, which no cache of the library knows.
                fresh = _with_rest(function, rest)
                gc.collect()
                started = time.perf_counter()
                jax.make_jaxpr(transform(fresh))(params, np.stack([x, x]) if batched else x)
                times.append(time.perf_counter() - started)
            rows[f"trace {what}, {name}"] = min(times)
    return rows


def _with_rest(function: Callable[..., Any], rest: list[Any]) -> Callable[..., Any]:
    return lambda p, x: function(p, x, *rest)


CALLS = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "checkpoint"}


def equations(jaxpr: Any) -> int:
    """How many equations a program and those inside it have, calls not counted."""
    total = 0
    for eqn in jaxpr.eqns:
        total += eqn.primitive.name not in CALLS
        for value in eqn.params.values():
            for item in value if isinstance(value, (tuple, list)) else (value,):
                item = getattr(item, "jaxpr", item)
                total += equations(item) if hasattr(item, "eqns") else 0
    return total


def without_dead_code(library: str, jaxpr: Any) -> Any:
    """The program as the library's own removal of dead code leaves it."""
    where = {
        "jax": "jax._src.interpreters.partial_eval",
        "perspex": "perspex.transforms.dce",
    }[library]
    return importlib.import_module(where).dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[0]


def measure_equations(library: str) -> Rows:
    """The equations of the gradients of the programs."""
    jax = importlib.import_module(library)
    rows: Rows = {}
    for name, (function, arguments) in programs(library).items():
        jaxpr = jax.make_jaxpr(jax.grad(function))(*arguments).jaxpr
        rows[f"equations {name}"] = equations(without_dead_code(library, jaxpr))
    return rows


def measure_memory(library: str) -> Rows:
    """The peak of the memory that the compiled gradients of the programs take, in bytes."""
    jax = importlib.import_module(library)
    rows: Rows = {}
    for name, (function, arguments) in programs(library).items():
        compiled = jax.jit(jax.grad(function)).lower(*arguments).compile()
        memory = compiled.memory_analysis()
        rows[f"memory {name}"] = memory.temp_size_in_bytes + memory.output_size_in_bytes
    return rows


def serve_gradients(library: str) -> None:
    """Print the names of the programs; time the gradient of each that comes in a line, in seconds.

    Both libraries serve at once and are asked in turn, so that they meet the same machine.
    """
    jax = importlib.import_module(library)
    known = programs(library)
    print(*known, sep="\t", flush=True)
    calls: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in calls:
            function, arguments = known[name]
            arguments = jax.device_put(arguments)
            gradient = jax.jit(jax.grad(function))
            calls[name] = functools.partial(gradient, *arguments)
        print(per_call(calls[name], jax.block_until_ready, batches=8), flush=True)


GROUPS: dict[str, Callable[[str], Rows]] = {
    "import": measure_import,
    "first": measure_first_jit,
    "eager": measure_eager,
    "dispatch": measure_dispatch,
    "random": measure_random,
    "trace": measure_trace,
    "stages": measure_stages,
    "transforms": measure_transforms,
    "equations": measure_equations,
    "memory": measure_memory,
    "devices": measure_devices,
}

# These measure a process that has done nothing yet, so each needs one of its own.
FRESH_PROCESS = ("import", "first", "devices")


# Measured by asking both libraries in turn, one program after the other.
PAIRED = "run"


if __name__ == "__main__":
    if sys.argv[2:] == [PAIRED]:
        serve_gradients(sys.argv[1])
        sys.exit()
    measured: Rows = {}
    for group in sys.argv[2:]:
        measured.update(GROUPS[group](sys.argv[1]))
    print(json.dumps(measured))

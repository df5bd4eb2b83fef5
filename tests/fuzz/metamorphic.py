"""Relations that hold without an oracle: two ways to one result, under Perspex alone.

A random program is one function `f` of its inputs. Each relation computes something in two ways;
what they may differ by, noise in the first of the two says, as in `compare`.
"""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import perspex as jax
from fuzz.compare import Difference, differences
from fuzz.prelude import PRELUDE
from fuzz.programs import Program, Statement, noisy
from fuzz.worker import Session
from oracle.evaluate import Library
from perspex import config, lax
from perspex import numpy as jnp
from perspex.ops.structural import convert
from perspex.runtime.compiler import cache

Way = Callable[..., Any]
STEP = 1e-5


def run(f: Way, *args: Any) -> Any:
    return f(*args)


def lanes(args: Any) -> list[Any]:
    return [jnp.stack([jnp.asarray(x), jnp.flip(jnp.asarray(x))]) for x in args]


def looped(f: Way, *args: Any) -> Any:
    outs = [f(*[x[i] for x in lanes(args)]) for i in range(2)]
    # What is stacked is not weakly typed; what is mapped may be.
    stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *outs)
    like = jax.eval_shape(mapped, f, *args)
    return jax.tree.map(lambda y, a: _weakly(y, a.weak_type), stacked, like)


def mapped(f: Way, *args: Any) -> Any:
    return jax.vmap(f)(*lanes(args))


def scanned(f: Way, *args: Any) -> Any:
    return lax.scan(lambda carry, xs: (carry, f(*xs)), 0, tuple(lanes(args)))[1]


def unrolled(f: Way, *args: Any) -> Any:
    step = jax.jit(lambda *xs: lax.scan(lambda carry, x: (carry, f(*x)), 0, tuple(xs), unroll=2)[1])
    return step(*lanes(args))


def permuted(f: Way, *args: Any) -> Any:
    turned = [jnp.flip(x, 0) for x in lanes(args)]
    # NumPy's, as our own would take the tangents of integers for booleans.
    return jax.tree.map(
        lambda y: np.flip(y, 0) if y.dtype == jax.dtypes.float0 else jnp.flip(y, 0),
        jax.vmap(f)(*turned),
    )


def gradient(f: Way, *args: Any) -> Any:
    inexact = tuple([i for i, x in enumerate(args) if jnp.issubdtype(x.dtype, jnp.floating)])
    return jax.grad(_total(f), inexact)(*args) if inexact else ()


def rematerialized(f: Way, *args: Any) -> Any:
    return gradient(jax.checkpoint(f), *args)


def forward(f: Way, *args: Any) -> Any:
    """The change of all results along all arguments, by forward mode."""
    return jax.jvp(_total(f), args, tuple(map(_tangent, args)))[1]


def backward(f: Way, *args: Any) -> Any:
    """The same by reverse mode: `<ct, J t> = <J^T ct, t>`."""
    out, pull = jax.vjp(_total(f), *args)
    terms = [
        jnp.sum(ct * t).real.astype(out.dtype)
        for ct, t in zip(pull(jnp.ones_like(out)), map(_tangent, args), strict=True)
        if t.dtype != jax.dtypes.float0
    ]
    return sum(terms, jnp.zeros_like(out))


def doubled(f: Way, *args: Any) -> Any:
    """Half of the change along twice the direction: pushing forward is linear."""
    out, push = jax.linearize(_total(f), *args)
    tangents = [t if t.dtype == jax.dtypes.float0 else 2 * t for t in map(_tangent, args)]
    return push(*tangents) / 2


def reloaded(f: Way, *args: Any) -> Any:
    """What a program from the disk gives, when memory has forgotten it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        config.compilation_cache_dir(folder),
        config.compilation_cache_max_size(-1),
    ):
        for _ in range(2):
            cache.forget()
            out = jax.jit(lambda *xs: f(*xs))(*args)
            jax.block_until_ready(out)
    return out


def compiled(f: Way, *args: Any) -> Any:
    return jax.jit(lambda *xs: f(*xs))(*args)


RELATIONS: dict[str, tuple[Way, Way]] = {
    "eager and jit": (run, compiled),
    "loop and vmap": (looped, mapped),
    "vmap and scan": (mapped, scanned),
    "scan and unrolled": (scanned, unrolled),
    "vmap and a permutation": (mapped, permuted),
    "grad and checkpoint": (gradient, rematerialized),
    "jvp and vjp": (forward, backward),
    "jvp and linearity": (forward, doubled),
    "fresh and from the disk": (compiled, reloaded),
}


def _weakly(x: Any, weak: bool) -> Any:
    return convert(x, x.dtype, weak) if weak else x


def _total(f: Way) -> Way:
    def total(*args: Any) -> Any:
        parts = [jnp.zeros(())]
        for y in jax.tree.leaves(f(*args)):
            if jnp.issubdtype(y.dtype, jnp.inexact):
                y = jnp.real(y) + jnp.imag(y) if jnp.iscomplexobj(y) else y
                parts.append(jnp.sum(jnp.where(jnp.isfinite(y), y, 0).astype(parts[0].dtype)))
        return sum(parts[1:], parts[0])

    return total


def _tangent(x: Any) -> Any:
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return np.zeros(x.shape, jax.dtypes.float0)
    return jnp.cos(jnp.arange(x.size, dtype=jnp.float32)).reshape(x.shape).astype(x.dtype)


def function(program: Program, session: Session, noise: int | None = None) -> tuple[Way, list[Any]]:
    """The program as a function, and its arguments; with noise in every statement if asked."""
    names = session.library.namespace(PRELUDE)
    session.noise = None if noise is None else random.Random(noise)
    names["noisy"] = session.noisy
    for s in program.inputs:
        exec(s.text, names)
    f = next(s for s in program.tail if not s.target)
    exec(f.text if noise is None else noisy(f.text), names)
    head = f.text.partition("(")[2].partition(")")[0]
    return names["f"], [jnp.asarray(names[name.strip()]) for name in head.split(",")]


def violations(program: Program) -> list[Difference]:
    """The relations that a program breaks."""
    if not any(isinstance(s, Statement) and not s.target for s in program.tail):
        return []
    session = Session(Library("perspex"))
    found = []
    with jax.enable_x64(program.x64), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f, args = function(program, session)
        for name, (one, other) in RELATIONS.items():
            want, got = (outcome(session, way, f, args) for way in (one, other))
            if "error" in (want[0], got[0]) or not differences(got, want):
                continue  # what raises is compared with real JAX
            noise = []
            for seed in range(4):
                moved, _ = function(program, session, seed)
                noise.append(outcome(session, one, moved, args))
                session.noise = None
            difference = differences(got, want, noise)
            # A zero times an infinity, in one of the two ways to a derivative.
            vanishes = difference and difference.kind == "NaN or infinity"
            if difference and not (vanishes and name.startswith(("jvp", "grad"))):
                found.append(Difference(difference.kind, difference.text, name))
    return found


def outcome(session: Session, way: Way, f: Way, args: list[Any]) -> Any:
    try:
        return session.encode(way(f, *args))
    except (TypeError, ValueError, IndexError, NotImplementedError) as error:
        return ["error", [type(error).__name__], str(error)]

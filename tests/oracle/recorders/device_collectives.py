"""Each collective over eight devices: forward, in reverse, along a batch, and inside `pmap`.

The record has for each result its type as printed, its values, and which device holds which part;
for each error it has the type.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from oracle.on_devices import (
    ALL,
    BATCH,
    GROUPS,
    MANY,
    PARAMS,
    RING,
    ROTATE,
    W1,
    A,
    B,
    T,
    V,
    X,
    mse,
    on,
    outcomes,
    weighted,
)

# ---- Each collective forward, in reverse and along a batch --------------------------------------


def ragged(a):
    """Each device sends a row to each other, and gets one of each."""
    here = lax.axis_index("x")
    offsets = jnp.arange(4, dtype=jnp.int32)
    sizes = jnp.ones(4, jnp.int32)
    places = jnp.full(4, here, jnp.int32)
    return lax.ragged_all_to_all(a, jnp.zeros_like(a), offsets, sizes, places, sizes, axis_name="x")


# A name -> the function of a part of shape (4, 4), and how results lie.
COLLECTIVES = {
    "psum": (lambda a: lax.psum(a, "x"), P()),
    "psum of both axes": (lambda a: lax.psum(a, ("x", "y")), P()),
    "pmean": (lambda a: lax.pmean(a, "x"), P()),
    "pmax": (lambda a: lax.pmax(a, "x"), P()),
    "pmin": (lambda a: lax.pmin(a, "x"), P()),
    "all_gather": (lambda a: lax.all_gather(a, "x"), X),
    "all_gather tiled": (lambda a: lax.all_gather(a, "x", axis=1, tiled=True), X),
    "all_gather invarying": (lambda a: lax.all_gather(a, "x", to="invarying"), P()),
    "all_gather invarying tiled": (
        lambda a: lax.all_gather(a, "x", tiled=True, to="invarying"),
        P(),
    ),
    "psum_scatter": (lambda a: lax.psum_scatter(a, "x"), X),
    "psum_scatter tiled": (
        lambda a: lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True),
        X,
    ),
    "all_to_all": (lambda a: lax.all_to_all(a, "x", 0, 1), X),
    "all_to_all tiled": (lambda a: lax.all_to_all(a, "x", 1, 0, tiled=True), X),
    "ppermute": (lambda a: lax.ppermute(a, "x", ROTATE), X),
    "ppermute to some": (lambda a: lax.ppermute(a, "x", [(0, 2), (3, 1)]), X),
    "pshuffle": (lambda a: lax.pshuffle(a, "x", [2, 0, 3, 1]), X),
    "pswapaxes": (lambda a: lax.pswapaxes(a, "x", 1), X),
    "pbroadcast": (lambda a: lax.pbroadcast(a, "x", 2), X),
    "axis_index": (lambda a: a * lax.axis_index("x"), X),
    "axis_size": (lambda a: a * lax.axis_size("x"), X),
    "ragged_all_to_all": (ragged, X),
}


def cut_by(name):
    """How the operand of a collective is cut."""
    return ALL if "both axes" in name else X


def collective(name, check=True):
    f, out = COLLECTIVES[name]
    return on(f, cut_by(name), out, check_vma=check)


def forward(name):
    return collective(name)(MANY)


def untracked(name):
    return collective(name, False)(MANY)


def reverse(name):
    return jax.grad(lambda a: weighted(collective(name)(jnp.sin(a))))(MANY)


def tangent(name):
    return jax.jvp(collective(name), (MANY,), (np.cos(MANY),))[1]


def batch_inside(name):
    f, out = COLLECTIVES[name]
    wide = np.stack([MANY, 2 * MANY, MANY + 1], 2)
    return on(lambda a: jax.vmap(f, 2, 0)(a), cut_by(name), P(None, *out))(wide)


def batch_outside(name):
    return jax.vmap(collective(name), 2)(np.stack([MANY, 2 * MANY], 2))


def batch_reverse(name):
    return jax.vmap(jax.grad(lambda a: weighted(collective(name)(a * a))))(
        np.stack([MANY, MANY - 1])
    )


def grouped(name):
    f = {
        "psum": lambda a: lax.psum(a, "x", axis_index_groups=GROUPS),
        "pmax": lambda a: lax.pmax(a, "x", axis_index_groups=GROUPS),
        "all_gather": lambda a: lax.all_gather(a, "x", axis_index_groups=GROUPS),
        "psum_scatter": lambda a: lax.psum_scatter(a[:2], "x", axis_index_groups=GROUPS),
        "all_to_all": lambda a: lax.all_to_all(a[:2], "x", 0, 0, axis_index_groups=GROUPS),
    }[name]
    return on(f, X, X, check_vma=False)(MANY)


WAYS = {
    "forward": forward,
    "without types": untracked,
    "reverse": reverse,
    "tangent": tangent,
    "batch inside": batch_inside,
    "batch outside": batch_outside,
    "batch of gradients": batch_reverse,
}
PROGRAMS = {
    f"{name} / {way}": functools.partial(run, name)
    for name in COLLECTIVES
    for way, run in WAYS.items()
}
PROGRAMS |= {
    f"groups / {name}": functools.partial(grouped, name)
    for name in ("psum", "pmax", "all_gather", "psum_scatter", "all_to_all")
}


# ---- pmap ---------------------------------------------------------------------------------------


def pmap_step(params, batch):
    def step(params, batch):
        grads = lax.pmean(jax.grad(mse)(params, batch), "i")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    many = jax.tree.map(lambda p: np.stack([p] * 8), params)
    split = jax.tree.map(lambda z: z.reshape(8, 1, 4), batch)
    return jax.pmap(step, axis_name="i")(many, split)


def sixteen(f):
    return jax.pmap(f, axis_name="i")


PROGRAMS |= {
    f"pmap / {name}": functools.partial(f, *args)
    for name, (f, *args) in {
        "step": (pmap_step, PARAMS, BATCH),
        "matmul": (jax.pmap(jnp.dot), T, T),
        "all_gather": (sixteen(lambda x: lax.all_gather(x, "i")), A),
        "psum_scatter": (sixteen(lambda x: lax.psum_scatter(x, "i")), B),
        "all_to_all": (sixteen(lambda x: lax.all_to_all(x, "i", 0, 0)), B),
        "ppermute": (sixteen(lambda x: lax.ppermute(x, "i", RING)), A),
        "pmax": (sixteen(lambda x: x - lax.pmax(x, "i")), A),
        "groups": (
            sixteen(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]])),
            A,
        ),
        "normalize": (sixteen(lambda x: x / lax.psum(x, "i")), V),
        "value_and_grad": (
            lambda x: jax.value_and_grad(
                lambda x: sixteen(lambda v: lax.pmean(v**2, "i"))(x).sum()
            )(x),
            A,
        ),
        "grad inside": (sixteen(lambda x: jax.grad(lambda y: lax.pmean((y**2).sum(), "i"))(x)), A),
        "scan": (
            sixteen(lambda x: lax.scan(lambda c, v: (lax.pmean(c + v, "i"), c), x[0], x)[0]),
            A,
        ),
        "cond": (sixteen(lambda x: lax.cond(x.sum() > 0, lambda x: x, lambda x: -x, x)), A),
        "in_axes of a dict": (
            lambda: jax.pmap(lambda d, y: d["a"] * y, in_axes=({"a": 1}, None))({"a": W1}, 2.0),
        ),
        "out_axes": (lambda: jax.pmap(lambda x: (x, x.sum()), out_axes=(1, 0))(A),),
        "donate": (lambda: jax.pmap(lambda x: x + 1, donate_argnums=0)(jnp.asarray(A)),),
        "static": (
            lambda: jax.pmap(lambda x, g: g(x), static_broadcasted_argnums=(1,))(A, jnp.sin),
        ),
        "vmap inside": (sixteen(jax.vmap(lambda v: v - lax.pmean(v, "i"))), A),
        "jit inside": (sixteen(jax.jit(lambda v: lax.psum(v, "i"))), A),
        "jvp": (lambda: jax.jvp(jax.pmap(jnp.sin), (A,), (B[:, :4],)),),
        "keys": (
            lambda: jax.random.key_data(
                jax.pmap(lambda k: jax.random.fold_in(k, lax.axis_index("i")), axis_name="i")(
                    jax.random.split(jax.random.key(1), 8)
                )
            ),
        ),
        "backend": (lambda: jax.pmap(lambda x: x, backend="cpu")(A),),
        "axis_size": (lambda: jax.pmap(lambda x: x, axis_size=8)(A),),
        "wrong axis_size": (lambda: jax.pmap(lambda x: x, axis_size=4)(A),),
        "unbound": (lambda: jax.pmap(lambda x: lax.psum(x, "j"))(A),),
        "out_axes too many": (lambda: jax.pmap(lambda x: x, out_axes=(0, 0))(A),),
        "static out of range": (lambda: jax.pmap(lambda x: x, static_broadcasted_argnums=3)(A),),
    }.items()
}


def record():
    return outcomes(PROGRAMS)

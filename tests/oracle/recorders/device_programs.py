"""Programs over eight CPU devices as users and the pages of JAX's documentation write them.

Three kinds: each collective forward, in reverse and along a batch; layers and steps of training
that are divided among devices with `shard_map`, `pmap` or explicit axes; operations that came late
to types that say how arrays are cut. The record has for each result its type as printed, its
values, and which device holds which part; for each error it has the type.
"""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

reshard = jax.sharding.reshard
explicit = jax.make_mesh((4, 2), ("x", "y"))
auto = jax.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("i",), (AxisType.Auto,))
rng = np.random.default_rng(0)


def numbers(*shape):
    return rng.normal(size=shape).astype(np.float32)


A, B, C, T = numbers(8, 4), numbers(8, 8), numbers(16, 8), numbers(8, 4, 4)
W1, W2, W3 = numbers(4, 8), numbers(8, 4), numbers(8, 8)
V = numbers(8)
I = np.array([3, 1, 0, 7, 2, 6, 5, 4], np.int32)  # noqa: E741
SPD = T @ T.transpose(0, 2, 1) + 4 * np.eye(4, dtype=np.float32)
X, Y, XY, ALL = P("x"), P("y"), P("x", "y"), P(("x", "y"))
ROTATE = [(i, (i + 1) % 4) for i in range(4)]
RING = [(i, (i + 1) % 8) for i in range(8)]
GROUPS = [[0, 1], [2, 3]]


def on(f, in_specs, out_specs, mesh=auto, **options):
    return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


def weighted(y):
    return (y * np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape)).sum()


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
MANY = numbers(16, 4)


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


# ---- As users write them ------------------------------------------------------------------------


def gather_matmul(a, b):
    """All rows of the left one are gathered before the product."""
    return on(
        lambda a, b: lax.all_gather(a, "x", axis=1, tiled=True) @ b,
        (P(None, "x"), P(None, "y")),
        P(None, "y"),
        check_vma=False,
    )(a, b)


def scatter_matmul(a, b):
    """A sum over the contracted axis, of which each device keeps a part."""
    return on(
        lambda a, b: lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True),
        (P(None, "x"), P("x", None)),
        P("x"),
    )(a, b)


def ring_matmul(a, b):
    """The same while blocks go around, so that sending and computing overlap."""

    def body(a, b):
        here, size = lax.axis_index("i"), lax.axis_size("i")
        rows = a.shape[0] // size

        def block(k):
            return lax.dynamic_slice_in_dim(a, k * rows, rows)

        total = block((here - 1) % size) @ b
        for step in range(2, size + 1):
            total = lax.ppermute(total, "i", RING)
            total = total + block((here - step) % size) @ b
        return total

    return on(body, (P(None, "i"), P("i")), P("i"), line)(a, b)


def mlp(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


PARAMS = [(W1, np.zeros(8, np.float32)), (W3, V), (W2, np.ones(4, np.float32))]
BATCH = (A, np.tanh(A[::-1]).copy())


def mse(params, batch):
    x, y = batch
    return ((mlp(params, x) - y) ** 2).sum(1).mean(0)


def data_parallel(params, batch):
    return on(lambda params, batch: lax.pmean(mse(params, batch), "i"), (P(), P("i")), P(), line)(
        params, batch
    )


def data_parallel_step(params, batch):
    def step(params, batch):
        loss, grads = jax.value_and_grad(lambda p: lax.pmean(mse(p, batch), "i"))(params)
        return loss, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return on(step, (P(), P("i")), (P(), P()), line)(params, batch)


def fully_sharded(params, batch):
    """Each device keeps a part of all parameters, and gathers them when it needs them."""

    def loss(params, batch):
        whole = jax.tree.map(lambda p: lax.all_gather(p, "x", tiled=True), params)
        return lax.pmean(mse(whole, batch), "x")

    return on(loss, (P("x"), P("x")), P(), jax.make_mesh((4,), ("x",), (AxisType.Auto,)))(
        params, batch
    )


def tensor_parallel(params, batch):
    """Columns of one layer and rows of the next on each device."""

    def loss(w1, w2, batch):
        x, y = batch
        z = jax.nn.relu(x @ w1)
        out = lax.psum(z @ w2, "y")
        return lax.pmean(((out - y) ** 2).mean(), "x")

    (w1, _), _, (w2, _) = params
    return on(loss, (P(None, "y"), P("y"), P("x")), P())(w1, w2, batch)


def pipelined(stages, x):
    """A layer on each device; microbatches go through all of them."""

    def body(w, micro):
        here, count = lax.axis_index("x"), lax.axis_size("x")
        state = lax.pcast(jnp.zeros_like(micro[0]), "x", to="varying")
        outs = lax.pcast(jnp.zeros_like(micro), "x", to="varying")
        for i in range(len(micro) + 3):
            fed = micro[min(i, len(micro) - 1)]
            state = jnp.where(here == 0, fed, state)
            state = jnp.tanh(state @ w[0])
            done = i - (count - 1)
            if done >= 0:
                outs = outs.at[done].set(jnp.where(here == count - 1, state, outs[done]))
            state = lax.ppermute(state, "x", ROTATE)
        return lax.psum(jnp.where(here == count - 1, outs, 0.0), "x")

    return on(body, (P("x"), P()), P())(stages, x)


STAGES = numbers(4, 4, 4) / 2


def attention(q, k, v):
    s = q @ k.swapaxes(-1, -2) / 2
    return jax.nn.softmax(s) @ v


def heads(q, k, v):
    return on(attention, (P("y"), P("y"), P("y")), P("y"))(q, k, v)


def ring_attention(q, k, v):
    """Keys and values go around, and the softmax is put together from blocks."""

    def body(q, k, v):
        def turn(i, state):
            k, v, top, norm, out = state
            s = q @ k.T / 2
            new = jnp.maximum(top, s.max(-1))
            scale, e = jnp.exp(top - new), jnp.exp(s - new[:, None])
            norm, out = norm * scale + e.sum(-1), out * scale[:, None] + e @ v
            k, v = lax.ppermute((k, v), "x", ROTATE)
            return k, v, new, norm, out

        start = q[:, 0] * 0
        init = (k, v, start - jnp.inf, start, q * 0)
        *_, norm, out = lax.fori_loop(0, 4, turn, init)
        return out / norm[:, None]

    return on(body, (X, X, X), X)(q, k, v)


def experts(x, w):
    """Rows go to the device of their expert and come back."""

    def body(x, w):
        sent = lax.all_to_all(x.reshape(4, 1, 4), "x", 0, 0)
        return lax.all_to_all(jnp.tanh(sent @ w[0]), "x", 0, 0).reshape(4, 4)

    return on(body, (X, X), X)(x, w)


def batch_norm(x):
    def body(x):
        mean = lax.pmean(x.mean(0), "i")
        var = lax.pmean((x**2).mean(0), "i") - mean**2
        return (x - mean) * lax.rsqrt(var + 1e-5)

    return on(body, P("i"), P("i"), line)(x)


def conjugate_gradient(a, b):
    """Rows of a matrix on each device; a loop that ends when all agree."""

    def body(a, b):
        def mv(p):
            return a @ lax.all_gather(p, "i", tiled=True)

        def dot(p, q):
            return lax.psum(p @ q, "i")

        def step(s):
            x, r, p, rr = s
            ap = mv(p)
            alpha = rr / dot(p, ap)
            r2 = r - alpha * ap
            new = dot(r2, r2)
            return x + alpha * p, r2, r2 + new / rr * p, new

        state = (b * 0, b, b, dot(b, b))
        return lax.while_loop(lambda s: s[3] > 1e-9, step, state)[0]

    return on(body, (P("i"), P("i")), P("i"), line)(a, b)


def stencil(u):
    """Heat on a ring: each device asks its neighbours for their rows."""

    def body(u):
        def step(u, _):
            up = lax.ppermute(u[-1:], "i", RING)
            down = lax.ppermute(u[:1], "i", [(j, i) for i, j in RING])
            full = jnp.concatenate([up, u, down])
            return u + 0.1 * (full[:-2] - 2 * u + full[2:]), None

        return lax.scan(step, u, None, length=3)[0]

    return on(body, P("i"), P("i"), line)(u)


def counted(x):
    """A histogram of all rows."""
    return on(lambda x: lax.psum(jnp.zeros(8, jnp.int32).at[x].add(1), "i"), P("i"), P(), line)(x)


def top_of_all(x):
    def body(x):
        best, at = lax.top_k(x, 1)
        all_best = lax.all_gather(best, "i", tiled=True, to="invarying")
        return lax.top_k(all_best, 3)[0]

    return on(body, P("i"), P(), line)(x)


def random_parts(seed):
    def body():
        key = jax.random.fold_in(jax.random.key(seed), lax.axis_index("i"))
        return jax.random.normal(key, (1, 3))

    return on(body, (), P("i"), line)()


def dropout(x):
    keys = jax.random.split(jax.random.key(0), 8)
    return on(
        lambda k, x: jnp.where(jax.random.bernoulli(k[0], 0.5, x.shape), x, 0.0),
        (P("i"), P("i")),
        P("i"),
        line,
    )(keys, x)


def nested(x):
    def outer(x):
        inner = jax.shard_map(
            lambda x: x * lax.axis_index("y"), in_specs=Y, out_specs=Y, axis_names={"y"}
        )
        return inner(lax.psum(x, "x"))

    return jax.jit(jax.shard_map(outer, mesh=auto, in_specs=X, out_specs=P(), axis_names={"x"}))(x)


def partly_automatic(x, w):
    f = jax.shard_map(
        lambda x, w: lax.psum(x @ w, "x"),
        mesh=auto,
        in_specs=(P(None, "x"), P("x")),
        out_specs=P(),
        axis_names={"x"},
    )
    return jax.jit(f)(x, w)


def accumulated(params, batch):
    """Gradients of microbatches are added before they are exchanged."""

    def body(params, batch):
        local = jax.tree.map(lambda p: lax.pcast(p, "i", to="varying"), params)

        def micro(total, part):
            grads = jax.grad(lambda p: mse(p, jax.tree.map(lambda z: z[None], part)))(local)
            return jax.tree.map(jnp.add, total, grads), None

        zeros = jax.tree.map(jnp.zeros_like, local)
        total, _ = lax.scan(micro, zeros, batch)
        return lax.psum(total, "i")

    return on(body, (P(), P("i")), P(), line)(params, batch)


def checkpointed(x, w):
    @jax.checkpoint
    def layer(x, w):
        return jnp.tanh(lax.all_gather(x, "i", tiled=True, axis=1) @ w)

    def f(x, w):
        return on(lambda x, w: layer(x, w).sum(0)[None], (P(None, "i"), P()), P("i"), line)(
            x, w
        ).sum()

    return jax.grad(f, (0, 1))(x, w)


@jax.custom_vjp
def scaled_sum(x):
    return lax.psum(x, "i")


scaled_sum.defvjp(
    lambda x: (lax.psum(x, "i"), None), lambda _, g: (3.0 * lax.pcast(g, "i", to="varying"),)
)


def own_rule(x):
    return jax.grad(lambda x: weighted(on(scaled_sum, P("i"), P(), line)(x)))(x)


PROGRAMS |= {
    f"use / {name}": functools.partial(f, *args)
    for name, (f, *args) in {
        "gather_matmul": (gather_matmul, C, W3),
        "scatter_matmul": (scatter_matmul, C, W3),
        "ring_matmul": (ring_matmul, B, W3),
        "gradient of ring_matmul": (
            jax.grad(lambda a, b: weighted(ring_matmul(a, b)), (0, 1)),
            B,
            W3,
        ),
        "data_parallel": (data_parallel, PARAMS, BATCH),
        "data_parallel step": (data_parallel_step, PARAMS, BATCH),
        "gradient of data_parallel": (jax.grad(data_parallel), PARAMS, BATCH),
        "fully_sharded": (fully_sharded, PARAMS, BATCH),
        "gradient of fully_sharded": (jax.jit(jax.grad(fully_sharded)), PARAMS, BATCH),
        "tensor_parallel": (tensor_parallel, PARAMS, BATCH),
        "gradient of tensor_parallel": (jax.grad(tensor_parallel), PARAMS, BATCH),
        "pipelined": (jax.jit(pipelined), STAGES, numbers(3, 2, 4)),
        "gradient of pipelined": (
            jax.jit(jax.grad(lambda w, x: weighted(pipelined(w, x)))),
            STAGES,
            numbers(3, 2, 4),
        ),
        "heads": (heads, T, T + 1, T * 2),
        "ring_attention": (ring_attention, A, A + 1, A * 2),
        "gradient of ring_attention": (
            jax.grad(lambda q, k, v: weighted(ring_attention(q, k, v)), (0, 1, 2)),
            A,
            A + 1,
            A * 2,
        ),
        "experts": (experts, MANY, STAGES),
        "gradient of experts": (
            jax.grad(lambda x, w: weighted(experts(x, w)), (0, 1)),
            MANY,
            STAGES,
        ),
        "batch_norm": (batch_norm, C),
        "gradient of batch_norm": (jax.grad(lambda x: weighted(batch_norm(x))), C),
        "hessian of a loss": (
            jax.jit(
                jax.hessian(
                    lambda v: on(
                        lambda v, a: lax.pmean(jnp.sin(a @ v).sum(), "i"), (P(), P("i")), P(), line
                    )(v, A)
                )
            ),
            W1[:, 0],
        ),
        "conjugate_gradient": (conjugate_gradient, B @ B.T + 8 * np.eye(8, dtype=np.float32), V),
        "stencil": (stencil, C),
        "gradient of stencil": (jax.grad(lambda u: weighted(stencil(u))), C),
        "counted": (counted, I),
        "top_of_all": (top_of_all, V),
        "random_parts": (random_parts, 7),
        "dropout": (dropout, A),
        "nested": (nested, A),
        "partly_automatic": (partly_automatic, B, W3),
        "accumulated": (accumulated, PARAMS, BATCH),
        "checkpointed": (checkpointed, B, W3),
        "own_rule": (own_rule, V),
        "smap": (
            lambda x: _with(
                auto,
                lambda: jax.jit(
                    jax.smap(
                        lambda x: x * lax.axis_index("x"), in_axes=0, out_axes=0, axis_name="x"
                    )
                )(x),
            ),
            A,
        ),
        "smap of two": (
            lambda x: _with(
                auto,
                lambda: jax.jit(
                    jax.smap(lambda x: lax.psum(x, "x"), in_axes=1, out_axes=None, axis_name="x")
                )(x),
            ),
            A,
        ),
        "smap in smap": (
            lambda x: _with(
                auto,
                lambda: jax.jit(
                    jax.smap(
                        jax.smap(lambda x: x * 2, in_axes=1, out_axes=1, axis_name="y"),
                        in_axes=0,
                        out_axes=0,
                        axis_name="x",
                    )
                )(x),
            ),
            A,
        ),
        "infer in_specs": (
            lambda x: _with(
                explicit, lambda: jax.shard_map(lambda x: x * 2, out_specs=X)(reshard(x, X))
            ),
            jnp.asarray(A),
        ),
    }.items()
}


def _with(mesh, f):
    with jax.set_mesh(mesh):
        return f()


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
            lambda: jax.pmap(lambda x, f: f(x), static_broadcasted_argnums=(1,))(A, jnp.sin),
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


# ---- Explicit axes: operations that came late, and more programs --------------------------------


def typed(f, *args):
    """The types inside and the result, when the function is traced in one piece."""

    def run():
        with jax.set_mesh(explicit):
            given = [reshard(jnp.asarray(x), spec) for x, spec in args]
            seen = []

            def traced(*xs):
                out = f(*xs)
                seen[:] = [str(jax.typeof(y)) for y in jax.tree.leaves(out)]
                return out

            return [jax.jit(traced)(*given), seen]

    return run


def refs(f):
    """The value that a ref has after `f`."""

    def run(a, *rest):
        ref = jax.new_ref(a)
        f(ref, *rest)
        return jax.freeze(ref)

    return run


def swapped(ref, b):
    ref[...] = b * ref[...]


def accumulating(ref, b):
    def body(i, _):
        ref[...] += b * i

    lax.fori_loop(0, 3, body, None)


def get_row(ref):
    row = ref[:, 1]
    ref[:, 0] = row * 2


def scan_refs(ref, t):
    def body(_, x):
        ref[...] += x
        return None, x.sum()

    lax.scan(body, None, t)


def ref_grad(a):
    def loss(a):
        ref = jax.new_ref(a * 2)
        ref[...] = jnp.sin(ref[...])
        return ref[...].sum()

    return jax.grad(loss)(a)


@jax.custom_jvp
def cube(x):
    return x**3


cube.defjvps(lambda t, y, x: 3 * t * x**2)


@jax.custom_vjp
def clipped(x):
    return x * 2


clipped.defvjp(lambda x: (x * 2, x), lambda x, g: (jnp.clip(g * x, -1, 1),))


@jax.custom_batching.custom_vmap
def shifted(x):
    return x + 1


@shifted.def_vmap
def _shifted(size, batched, x):
    return x + 2, batched[0]


def dense(x, w1, w2):
    return jax.nn.gelu(x @ w1) @ w2


def explicit_step(w1, w2, x):
    loss, grads = jax.value_and_grad(lambda w: (dense(x, *w) ** 2).mean())((w1, w2))
    return loss, jax.tree.map(lambda w, g: w - 0.1 * g, (w1, w2), grads)


def layer_norm(x, w):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * w


def heads_of(x, w):
    q, k, v = [jnp.einsum("bld,dhe->bhle", x, w[i]) for i in range(3)]
    s = jax.nn.softmax(jnp.einsum("bhle,bhme->bhlm", q, k))
    return jnp.einsum("bhlm,bhme->blhe", s, v)


QKV = numbers(3, 4, 2, 2)
GROUP_SIZES = np.array([3, 5], np.int32)


EXPLICIT = {
    # Refs.
    "ref": (refs(lambda ref: None), (A, XY)),
    "ref get and set": (refs(swapped), (A, XY), (B[:, :4], XY)),
    "ref in a loop": (refs(accumulating), (A, X), (B[:, :4], X)),
    "ref of a column": (refs(get_row), (A, X)),
    "ref in a scan": (refs(scan_refs), (A[:4], X), (T[:, :, :], P(None, "x"))),
    "gradient with a ref": (ref_grad, (A, XY)),
    "ref set to what is cut otherwise": (refs(lambda r, b: r.__setitem__(..., b)), (A, X), (A, Y)),
    "ref set whole": (refs(lambda r: r.__setitem__(..., jnp.ones((8, 4)))), (A, X)),
    "ref addupdate": (refs(lambda r, b: jax.ref.addupdate(r, ..., b)), (A, XY), (A, XY)),
    "ref swap": (
        lambda a, b: jax.ref.swap(jax.new_ref(a), ..., b),
        (A, XY),
        (B[:, :4], XY),
    ),
    "ref of a row": (refs(lambda r: r.__setitem__(0, 1.0)), (A, P(None, "y"))),
    "ref of a cut row": (refs(lambda r: r.__setitem__(0, 1.0)), (A, X)),
    "ref read at a traced place": (lambda a, i: jax.new_ref(a)[i[0]], (A, P(None, "y")), (I, P())),
    # Rules of users and calls.
    "custom_jvp": (cube, (A, XY)),
    "gradient of custom_jvp": (jax.grad(lambda a: cube(a).sum()), (A, XY)),
    "custom_vjp": (clipped, (A, XY)),
    "gradient of custom_vjp": (jax.grad(lambda a: clipped(a).sum()), (A, XY)),
    "custom_vmap": (shifted, (A, XY)),
    "vmap of custom_vmap": (jax.vmap(shifted), (A, X)),
    "composite": (lax.composite(lambda x: jnp.sin(x) * 2, "my.sin"), (A, XY)),
    "custom_linear_solve": (
        lambda s, v: lax.custom_linear_solve(
            lambda x: s @ x, v, lambda _, b: b / 2, symmetric=True
        ),
        (SPD[0], P()),
        (V[:4], P()),
    ),
    "custom_root": (
        lambda v: lax.custom_root(
            lambda x: x**2 - 1.0 - v**2, v, lambda f, x: jnp.sqrt(1.0 + v**2), lambda g, y: y / 2
        ),
        (V, X),
    ),
    "linear_transpose": (lambda a: jax.linear_transpose(lambda x: x * 3, a)(a), (A, XY)),
    "closure": (lambda a: jax.jit(lambda x: x + a)(a * 2), (A, XY)),
    "checkpoint_name": (
        lambda a: jax.ad_checkpoint.checkpoint_name(a * 2, "twice"),
        (A, XY),
    ),
    "optimization_barrier": (lambda a: lax.optimization_barrier((a, a * 2)), (A, XY)),
    "stop_gradient": (lambda a: lax.stop_gradient(a) * a, (A, XY)),
    "remat with a policy": (
        jax.grad(
            lambda a: jax.checkpoint(
                lambda x: jnp.sin(jnp.cos(x)), policy=jax.checkpoint_policies.everything_saveable
            )(a).sum()
        ),
        (A, XY),
    ),
    "switch": (lambda a: lax.switch(1, [jnp.sin, jnp.cos, jnp.exp], a), (A, XY)),
    "fori_loop of two": (
        lambda a, b: lax.fori_loop(0, 2, lambda i, c: (c[1], c[0] * 2), (a, b)),
        (A, XY),
        (A + 1, XY),
    ),
    "scan reversed": (
        lambda t: lax.scan(lambda c, x: (c + x, c), t[0] * 0, t, reverse=True),
        (T, P(None, "x")),
    ),
    "nested scan": (
        lambda t: lax.scan(lambda c, x: lax.scan(lambda d, y: (d + y, None), c, x), t[0, 0], t)[0],
        (T, P(None, None, "x")),
    ),
    "pure_callback": (
        lambda a: jax.pure_callback(lambda x: np.sin(x), jax.ShapeDtypeStruct(a.shape, a.dtype), a),
        (A, P()),
    ),
    # Operations.
    "ragged_dot": (
        lambda a, w, n: lax.ragged_dot(a, w, n),
        (A, P()),
        (numbers(2, 4, 8), P()),
        (GROUP_SIZES, P()),
    ),
    "ragged_dot of cut columns": (
        lambda a, w, n: lax.ragged_dot(a, w, n),
        (A, P()),
        (numbers(2, 4, 8), P(None, None, "x")),
        (GROUP_SIZES, P()),
    ),
    "approx_max_k": (lambda a: lax.approx_max_k(a, 2), (A, X)),
    "argsort": (lambda a: jnp.argsort(a, 1), (A, X)),
    "searchsorted": (lambda v, a: jnp.searchsorted(v, a), (np.sort(V), P()), (A, X)),
    "cumprod": (lambda a: jnp.cumprod(a, 1), (A, X)),
    "cummax": (lambda a: lax.cummax(a, axis=1), (A, X)),
    "cumlogsumexp": (lambda a: lax.cumlogsumexp(a, axis=1), (A, X)),
    "diff": (lambda a: jnp.diff(a, axis=1), (A, X)),
    "roll": (lambda a: jnp.roll(a, 1, 1), (A, X)),
    "flip": (lambda a: jnp.flip(a, 1), (A, XY)),
    "argmax of the other": (lambda a: jnp.argmax(a, 1), (A, X)),
    "any": (lambda a: jnp.any(a > 1, 1), (A, XY)),
    "all": (lambda a: jnp.all(a > 1), (A, XY)),
    "median": (lambda a: jnp.median(a, 1), (A, X)),
    "triu": (lambda b: jnp.triu(b), (B, X)),
    "diagonal": (lambda b: jnp.diagonal(b), (B, P())),
    "trace": (lambda b: jnp.trace(b), (B, P())),
    "kron": (lambda a: jnp.kron(a, jnp.ones((1, 2))), (A, P())),
    "meshgrid": (lambda v: jnp.meshgrid(v, v), (V, P())),
    "outer sum": (lambda v, w: v[:, None] + w[None], (V, X), (V, Y)),
    "expand_dims": (lambda a: jnp.expand_dims(a, (0, 2)), (A, XY)),
    "astype": (lambda a: a.astype(jnp.bfloat16).astype(jnp.float32), (A, XY)),
    "bitcast": (lambda a: lax.bitcast_convert_type(a, jnp.int32), (A, XY)),
    "view of halves": (lambda a: a.view(jnp.int16), (A, X)),
    "complex": (lambda a: lax.complex(a, a * 2).real, (A, XY)),
    "select_n": (lambda a: lax.select_n((a > 0).astype(jnp.int32), a, a * 2), (A, XY)),
    "nextafter": (lambda a: jnp.nextafter(a, 1.0), (A, XY)),
    "erf": (jax.scipy.special.erf, (A, XY)),
    "gammaln": (lambda a: jax.scipy.special.gammaln(abs(a) + 1), (A, XY)),
    "polygamma": (lambda a: jax.scipy.special.polygamma(1.0, abs(a) + 1), (A, XY)),
    "betainc": (lambda a: jax.scipy.special.betainc(1.0, 2.0, lax.logistic(a)), (A, XY)),
    "integer_pow": (lambda a: a**3, (A, XY)),
    "rem": (lambda a: a % 2.0, (A, XY)),
    "reduce_precision": (lambda a: lax.reduce_precision(a, 8, 7), (A, XY)),
    "cholesky": (jnp.linalg.cholesky, (SPD, X)),
    "qr": (lambda s: jnp.linalg.qr(s)[1], (SPD, X)),
    "lu": (lambda s: jax.scipy.linalg.lu_factor(s)[0], (SPD, X)),
    "solve": (jnp.linalg.solve, (SPD, X), (T, X)),
    "inv": (jnp.linalg.inv, (SPD, X)),
    "eig": (lambda s: abs(jnp.linalg.eigvals(s)).sum(1), (SPD, X)),
    "tridiagonal_solve": (
        lambda a: lax.linalg.tridiagonal_solve(a * 0, a * 0 + 2, a * 0, a[:, :, None]),
        (A, X),
    ),
    "householder_product": (
        lambda s: lax.linalg.householder_product(s, s[:, 0] * 0.1),
        (SPD, X),
    ),
    "gradient of cholesky": (jax.grad(lambda s: jnp.linalg.cholesky(s).sum()), (SPD, X)),
    "gradient of solve": (
        jax.grad(lambda s, t: jnp.linalg.solve(s, t).sum(), (0, 1)),
        (SPD, X),
        (T, X),
    ),
    "gradient of var": (jax.grad(lambda a: a.var(1).sum()), (A, X)),
    "gradient of take_along_axis": (
        jax.grad(lambda a: (jnp.take_along_axis(a, jnp.zeros((8, 1), int), 1) ** 2).sum()),
        (A, X),
    ),
    "random fold_in": (
        lambda i: jax.random.key_data(
            jax.vmap(lambda j: jax.random.fold_in(jax.random.key(0), j))(i)
        ),
        (I, X),
    ),
    "random of keys": (
        lambda i: jax.vmap(
            lambda j: jax.random.normal(jax.random.fold_in(jax.random.key(0), j), (4,))
        )(i),
        (I, X),
    ),
    "categorical": (lambda a: jax.random.categorical(jax.random.key(0), a, axis=1), (A, X)),
    "rng_bit_generator": (
        lambda: lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (8, 4), out_sharding=XY)[1] * 0,
    ),
    "avg_pool": (
        lambda c: lax.reduce_window(c, 0.0, lax.add, (1, 2), (1, 2), "VALID"),
        (C, X),
    ),
    "max_pool gradient": (
        jax.grad(lambda c: lax.reduce_window(c, -np.inf, lax.max, (1, 2), (1, 2), "VALID").sum()),
        (C, X),
    ),
    "conv gradient": (
        jax.grad(
            lambda c: weighted(
                lax.conv_general_dilated(c[:, None], np.ones((2, 1, 3), np.float32), (1,), "SAME")
            )
        ),
        (C, X),
    ),
    "irfft": (lambda c: jnp.fft.irfft(jnp.fft.rfft(c)), (C, X)),
    "dynamic_index": (lambda a, i: lax.dynamic_index_in_dim(a, i[0], 1), (A, X), (I % 4, P())),
    "dynamic_slice of a cut row": (lambda a: lax.dynamic_slice(a, (1, 0), (4, 4)), (A, X)),
    # As users write them.
    "dense": (dense, (A, X), (W1, P(None, "y")), (W2, P())),
    "dense by rows": (
        lambda x, w1, w2: jnp.matmul(jax.nn.gelu(x @ w1), w2, out_sharding=X),
        (A, X),
        (W1, P(None, "y")),
        (W2, Y),
    ),
    "explicit_step": (explicit_step, (W1, P()), (W2, P()), (A, X)),
    "layer_norm": (layer_norm, (A, X), (W2[0], P())),
    "gradient of layer_norm": (
        jax.grad(lambda x, w: weighted(layer_norm(x, w)), (0, 1)),
        (A, X),
        (W2[0], P()),
    ),
    "heads": (heads_of, (T, X), (QKV, P(None, None, "y"))),
    "gradient of heads": (
        jax.grad(lambda x, w: (heads_of(x, w) ** 2).sum(), (0, 1)),
        (T, X),
        (QKV, P(None, None, "y")),
    ),
    "embedding": (lambda e, i: e.at[i].get(out_sharding=P("x", None)), (A, P()), (I, X)),
    "cross entropy": (
        lambda a, i: -jnp.take_along_axis(jax.nn.log_softmax(a), i[:, None] % 4, 1).mean(),
        (A, X),
        (I, X),
    ),
    "cross entropy by one_hot": (
        jax.grad(lambda a, i: -(jax.nn.log_softmax(a) * jax.nn.one_hot(i % 4, 4)).sum()),
        (A, X),
        (I, X),
    ),
    "adam": (
        lambda w, g: w - 0.1 * (0.1 * g) / (jnp.sqrt(0.01 * g**2) + 1e-8),
        (W3, XY),
        (B, XY),
    ),
    "vmap of dense": (
        jax.vmap(lambda x, w: jnp.tanh(x @ w), (0, None)),
        (A, X),
        (W1, P(None, "y")),
    ),
    "per example gradients": (
        jax.vmap(jax.grad(lambda w, x: jnp.sin(x @ w).sum()), (None, 0)),
        (W1, P()),
        (A, X),
    ),
    "jacfwd": (lambda v: jax.jacfwd(lambda v: jnp.sin(v[:4]))(v), (V, P())),
    "hvp": (
        lambda a, b: jax.jvp(jax.grad(lambda a: jnp.sin(a).sum()), (a,), (b,))[1],
        (A, XY),
        (A, XY),
    ),
}
PROGRAMS |= {f"explicit / {name}": typed(*program) for name, program in EXPLICIT.items()}


# ---- Parts of sums inside `shard_map` -----------------------------------------------------------


def inside(f, in_specs, out_specs, *args, **options):
    """The result and the types that `f` returns for one device."""

    def run():
        seen = []

        def body(*xs):
            out = f(*xs)
            seen[:] = [str(jax.typeof(y)) for y in jax.tree.leaves(out)]
            return out

        with jax.set_mesh(explicit):
            mapped = jax.shard_map(body, in_specs=in_specs, out_specs=out_specs, **options)
            given = [reshard(jnp.asarray(x), spec) for x, spec in args]
            return [jax.jit(mapped)(*given), seen]

    return run


def gradient(f, in_specs, out_specs, *args):
    def run():
        with jax.set_mesh(explicit):
            mapped = jax.shard_map(f, in_specs=in_specs, out_specs=out_specs)
            given = [reshard(jnp.asarray(x), spec) for x, spec in args]
            numbers = tuple(range(len(args)))
            return jax.jit(jax.grad(lambda *xs: weighted(mapped(*xs)), numbers))(*given)

    return run


def turned(a):
    return lax.pcast(a, "x", to="unreduced")


PARTS = {
    "varying to unreduced to a sum": inside(lambda a: lax.psum(turned(a), "x"), X, P(), (A, X)),
    "unreduced as a result": inside(turned, X, P(unreduced={"x"}), (A, X)),
    "unreduced twice": inside(lambda a: turned(a) * 2, X, P(unreduced={"x"}), (A, X)),
    "unreduced added": inside(lambda a: lax.psum(turned(a) + turned(a * 2), "x"), X, P(), (A, X)),
    "unreduced to a scatter": inside(
        lambda a: lax.psum_scatter(turned(a), "x", tiled=True), X, X, (C, X)
    ),
    "sine of unreduced": inside(lambda a: jnp.sin(turned(a)), X, P(unreduced={"x"}), (A, X)),
    "unreduced out as whole": inside(turned, X, P(), (A, X)),
    "reduced": inside(lambda a: lax.pcast(a, "x", to="reduced"), P(), P(reduced={"x"}), (A, P())),
    "reduced to varying": inside(
        lambda a: lax.pcast(lax.pcast(a, "x", to="reduced"), "x", to="varying"), P(), X, (A, P())
    ),
    "varying to reduced": inside(lambda a: lax.pcast(a, "x", to="reduced"), X, X, (A, X)),
    "invarying to unreduced": inside(turned, P(), P(unreduced={"x"}), (A, P())),
    "all_gather to reduced": inside(
        lambda a: lax.all_gather(a, "x", tiled=True, to="reduced"), X, P(reduced={"x"}), (A, X)
    ),
    "unreduced of the other axis": inside(
        lambda a: lax.psum(lax.psum(lax.pcast(a, "y", to="unreduced"), "x"), "y"),
        XY,
        P(),
        (A, XY),
    ),
    "gradient of a sum of unreduced": gradient(
        lambda a: lax.psum(turned(jnp.sin(a)), "x"), X, P(), (A, X)
    ),
    "gradient of reduced weights": gradient(
        lambda a, w: a @ lax.pcast(lax.pcast(w, "x", to="reduced"), "x", to="varying"),
        (X, P()),
        X,
        (A, X),
        (W1, P()),
    ),
    "gradient of a scatter of unreduced": gradient(
        lambda a: lax.psum_scatter(turned(jnp.sin(a)), "x", tiled=True), X, X, (C, X)
    ),
    "gradient of gathered to reduced": gradient(
        lambda a, w: (
            a @ lax.pcast(lax.all_gather(w, "x", tiled=True, to="reduced"), "x", to="varying")
        ),
        (X, X),
        X,
        (A, X),
        (W1, X),
    ),
    "to something else": inside(lambda a: lax.pcast(a, "x", to="mine"), X, X, (A, X)),
    "to varying again": inside(lambda a: lax.pcast(a, "x", to="varying"), X, X, (A, X)),
    "pcast of a set": inside(lambda a: lax.pcast(a, {"x"}, to="varying"), P(), X, (A, P())),
    "pcast of an unknown axis": inside(lambda a: lax.pcast(a, "z", to="varying"), P(), X, (A, P())),
}
PROGRAMS |= {f"parts / {name}": program for name, program in PARTS.items()}


# ---- `vmap(spmd_axis_name=)` --------------------------------------------------------------------


def spmd(f, *args, name="x", **options):
    return lambda: jax.jit(jax.vmap(f, spmd_axis_name=name, **options))(*args)


def mapped_y(f, in_specs=Y, out_specs=Y):
    return jax.shard_map(f, mesh=auto, in_specs=in_specs, out_specs=out_specs)


SPMD = {
    "shard_map": spmd(mapped_y(lambda r: r * 2), A),
    "shard_map that sums": spmd(mapped_y(lambda r: lax.psum(r, "y"), Y, P()), A),
    "shard_map of two": spmd(mapped_y(jnp.add, (Y, P()), Y), A, W2[0, :2], in_axes=(0, None)),
    "shard_map along another axis": spmd(mapped_y(jnp.sin), A.T.copy(), in_axes=1),
    "gradient": lambda: jax.jit(
        jax.grad(
            lambda a: weighted(
                jax.vmap(mapped_y(lambda r: lax.psum(jnp.sin(r), "y"), Y, P()), spmd_axis_name="x")(
                    a
                )
            )
        )
    )(A),
    "the axis is mapped over": spmd(
        jax.shard_map(lambda r: r * 2, mesh=auto, in_specs=X, out_specs=X), A
    ),
    "a constraint": spmd(lambda r: lax.with_sharding_constraint(r * 2, NamedSharding(auto, Y)), A),
    "a constraint that has it": spmd(
        lambda r: lax.with_sharding_constraint(r * 2, NamedSharding(auto, X)), A
    ),
    "no shard_map": spmd(jnp.sin, A),
    "both axes": spmd(
        jax.shard_map(lambda r: r + 1, mesh=auto, in_specs=P(), out_specs=P()), A, name=("x", "y")
    ),
    "a name of its own": spmd(mapped_y(lambda r: r * lax.axis_index("y")), A, axis_name="b"),
}
PROGRAMS |= {f"spmd / {name}": program for name, program in SPMD.items()}


# ---- jit over several devices, and errors --------------------------------------------------------


def placed(x, *spec, mesh=auto):
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


def whole_step(params, batch):
    """Data parallel training where the compiler finds the exchanges."""

    @functools.partial(jax.jit, out_shardings=NamedSharding(line, P()))
    def step(params, batch):
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(mse)(params, batch))

    return step(params, jax.tree.map(lambda z: placed(z, "i", mesh=line), batch))


JITTED = {
    "whole_step": lambda: whole_step(PARAMS, BATCH),
    "in_shardings": lambda: jax.jit(jnp.sin, in_shardings=NamedSharding(auto, XY))(A),
    "out_shardings": lambda: jax.jit(
        lambda a: (a, a.T), out_shardings=(NamedSharding(auto, X), NamedSharding(auto, Y))
    )(A),
    "constraint by spec": lambda: _with(
        auto, lambda: jax.jit(lambda a: lax.with_sharding_constraint(a * 2, XY))(A)
    ),
    "set_mesh and device_put": lambda: _with(auto, lambda: jax.device_put(A, P("y", "x"))),
    "sharded matmul": lambda: jax.jit(jnp.matmul, out_shardings=NamedSharding(auto, XY))(
        placed(B, "x"), placed(W3, None, "y")
    ),
    "donated": lambda: jax.jit(lambda a: a + 1, donate_argnums=0)(placed(A, "x")),
    "reduce": lambda: jax.jit(lambda a: a.sum(), out_shardings=NamedSharding(auto, P()))(
        placed(A, "x", "y")
    ),
    "two meshes": lambda: jax.jit(jnp.add)(placed(A, "x"), jax.device_put(A, jax.devices()[1])),
    "uneven": lambda: jax.device_put(A[:6], NamedSharding(auto, X)),
    "wrong axis": lambda: NamedSharding(auto, P("z")),
    "same axis twice": lambda: NamedSharding(auto, P("x", "x")),
    "constraint uneven": lambda: jax.jit(
        lambda a: lax.with_sharding_constraint(a, NamedSharding(auto, X))
    )(A[:6]),
    "no mesh for a spec": lambda: jax.jit(lambda a: lax.with_sharding_constraint(a, X))(A),
    "pjit": lambda: __import__("jax.experimental.pjit", fromlist=["pjit"]).pjit(
        lambda a: a * 2, out_shardings=NamedSharding(auto, X)
    )(A),
    "auto_axes": lambda: _with(
        explicit,
        lambda: jax.sharding.auto_axes(lambda a: jnp.sort(a, 0), out_sharding=X)(reshard(A, X)),
    ),
    "explicit_axes": lambda: _with(
        auto,
        lambda: jax.jit(
            jax.sharding.explicit_axes(lambda a: a * 2, axes=("x", "y"), in_sharding=XY)
        )(A),
    ),
    "AbstractMesh types": lambda: [
        str(
            jax.eval_shape(
                lambda a: a.T,
                jax.ShapeDtypeStruct(
                    (8, 4), "float32", sharding=NamedSharding(explicit.abstract_mesh, XY)
                ),
            )
        )
    ],
    "are axes": lambda: [
        [
            explicit.are_all_axes_explicit,
            auto.are_all_axes_auto,
            auto.are_all_axes_manual,
            explicit.abstract_mesh.are_all_axes_explicit_or_manual,
            explicit.are_all_axes_explicit_or_manual,
        ]
    ],
    "shape_tuple": lambda: [[list(x) for x in explicit.shape_tuple], explicit.is_scalar],
}
PROGRAMS |= {f"jit / {name}": program for name, program in JITTED.items()}


# ---- Records ------------------------------------------------------------------------------------


def digits(y):
    """The numbers of an array, with as many digits as are compared."""
    found = np.asarray(y)
    if found.dtype.kind == "c":
        found = np.stack([found.real, found.imag])
    return [float(f"{v:.5g}") for v in found.astype(float).ravel()]


def parts(y):
    """For each device the part that it holds, as text."""
    places = {d.id: index for d, index in y.sharding.devices_indices_map(y.shape).items()}
    return [
        " ".join(
            f"{s.indices(n)[0]}:{s.indices(n)[1]}" for s, n in zip(index, y.shape, strict=True)
        )
        for _, index in sorted(places.items())
    ]


def noted(y):
    if not isinstance(y, jax.Array):
        return y
    return {"type": str(jax.typeof(y)), "values": digits(y), "parts": parts(y)}


def outcome(program):
    try:
        return [noted(y) for y in jax.tree.leaves(program())]
    except Exception as error:
        name = type(error).__name__
        if name in ("ShardingTypeError", "NameError", "NotImplementedError"):
            return name
        kinds = (ValueError, TypeError, AssertionError, RuntimeError)
        return next((kind.__name__ for kind in kinds if isinstance(error, kind)), "Exception")


def record():
    found = {}
    for name, program in PROGRAMS.items():
        print(name, file=sys.stderr, flush=True)
        found[name] = outcome(program)
    return found

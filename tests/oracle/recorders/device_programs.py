"""Programs over eight devices as users and the pages of JAX's documentation write them.

Layers and steps of training that are divided with `shard_map`, and what `jit` does on a mesh. The
record is that of `device_collectives`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from oracle.on_devices import (
    BATCH,
    MANY,
    MICRO,
    PARAMS,
    RING,
    ROTATE,
    STAGES,
    W1,
    W3,
    XY,
    A,
    B,
    C,
    I,
    T,
    V,
    X,
    Y,
    auto,
    explicit,
    line,
    mse,
    on,
    outcomes,
    under,
    weighted,
)

reshard = jax.sharding.reshard

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


PROGRAMS = {
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
        "pipelined": (jax.jit(pipelined), STAGES, MICRO[0]),
        "gradient of pipelined": (
            jax.jit(jax.grad(lambda w, x: weighted(pipelined(w, x)))),
            STAGES,
            MICRO[1],
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
            lambda x: under(
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
            lambda x: under(
                auto,
                lambda: jax.jit(
                    jax.smap(lambda x: lax.psum(x, "x"), in_axes=1, out_axes=None, axis_name="x")
                )(x),
            ),
            A,
        ),
        "smap in smap": (
            lambda x: under(
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
            lambda x: under(
                explicit, lambda: jax.shard_map(lambda x: x * 2, out_specs=X)(reshard(x, X))
            ),
            jnp.asarray(A),
        ),
    }.items()
}


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
    "constraint by spec": lambda: under(
        auto, lambda: jax.jit(lambda a: lax.with_sharding_constraint(a * 2, XY))(A)
    ),
    "set_mesh and device_put": lambda: under(auto, lambda: jax.device_put(A, P("y", "x"))),
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
    "auto_axes": lambda: under(
        explicit,
        lambda: jax.sharding.auto_axes(lambda a: jnp.sort(a, 0), out_sharding=X)(reshard(A, X)),
    ),
    "explicit_axes": lambda: under(
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


def record():
    return outcomes(PROGRAMS)

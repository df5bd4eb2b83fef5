"""Programs of arrays whose types say how they are cut, over eight CPU devices, in JAX's words.

The record has, for each program: the types of its results when it is traced, their values, and
which device holds which part, both when each operation runs by itself and when all are compiled
together; some also have jaxprs. For each error it has the type. Run as a script this prints the
record, so that `python -m perspex.as_jax` can run it.
"""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

reshard = jax.sharding.reshard
auto_axes, explicit_axes = jax.sharding.auto_axes, jax.sharding.explicit_axes
mesh = jax.make_mesh((4, 2), ("X", "Y"))
mixed = jax.make_mesh((4, 2), ("X", "Y"), (AxisType.Explicit, AxisType.Auto))
rng = np.random.default_rng(0)


def numbers(*shape):
    return rng.normal(size=shape).astype(np.float32)


A, B, W, V = numbers(8, 4), numbers(8, 4), numbers(4, 6), numbers(8)
T, S = numbers(8, 4, 4), numbers(8, 16)
SPD = T @ T.transpose(0, 2, 1) + 4 * np.eye(4, dtype=np.float32)
I = rng.integers(0, 8, (8,)).astype(np.int32)  # noqa: E741
XY, X, Y = P("X", "Y"), P("X"), P("Y")


def cut(x, spec):
    return reshard(jnp.asarray(x), spec)


# A name -> the function, and its arguments with how they are cut.
PROGRAMS = {
    # Elementwise.
    "sin": (jnp.sin, (A, XY)),
    "add": (jnp.add, (A, XY), (B, XY)),
    "add what is cut elsewhere": (jnp.add, (A, X), (B, P(None, "Y"))),
    "add whole": (lambda a: a + jnp.ones((8, 4)), (A, XY)),
    "add a number": (lambda a: a * 2 + 1, (A, XY)),
    "add a row": (lambda a: a + jnp.arange(4.0), (A, XY)),
    "add a column": (jnp.add, (A, P(None, "Y")), (V.reshape(8, 1), X)),
    "where": (lambda a, b: jnp.where(a > 0, a, b), (A, XY), (B, XY)),
    "where a number": (lambda a: jnp.where(a > 0, a, 0.0), (A, XY)),
    "clip": (lambda a: jnp.clip(a, -0.5, 0.5), (A, XY)),
    "logaddexp": (jnp.logaddexp, (A, XY), (B, XY)),
    "relu": (jax.nn.relu, (A, XY)),
    "gelu": (jax.nn.gelu, (A, XY)),
    "softmax": (lambda a: jax.nn.softmax(a, axis=1), (A, XY)),
    "log_softmax": (lambda a: jax.nn.log_softmax(a, axis=0), (A, XY)),
    "logsumexp": (lambda a: jax.scipy.special.logsumexp(a, axis=1), (A, XY)),
    "both axes": (jnp.cos, (A, P(("X", "Y")))),
    # Shapes.
    "transpose": (lambda a: a.T, (A, XY)),
    "swapaxes": (lambda t: jnp.swapaxes(t, 0, 2), (T, XY)),
    "squeeze": (lambda a: a.reshape(8, 1, 4)[:, 0], (A, XY)),
    "broadcast_to": (lambda a: jnp.broadcast_to(a, (3, 8, 4)), (A, XY)),
    "broadcast_to of a column": (lambda v: jnp.broadcast_to(v[:, None], (8, 4)), (V, X)),
    "split an axis": (lambda s: s.reshape(8, 4, 4), (S, XY)),
    "split the first axis": (lambda s: s.reshape(4, 2, 16), (S, XY)),
    "split an axis of two": (lambda s: s.reshape(4, 2, 16), (S, P(("X", "Y")))),
    "merge axes": (lambda t: t.reshape(8, 16), (T, X)),
    "merge axes that are cut": (lambda t: t.reshape(8, 16), (T, P(None, "X"))),
    "merge with the first": (lambda t: t.reshape(32, 4), (T, X)),
    "insert axes of one": (lambda a: a.reshape(1, 8, 1, 4), (A, XY)),
    "reshape as asked": (lambda a: jnp.reshape(a, 32, out_sharding=X), (A, XY)),
    "ravel as asked": (lambda a: jnp.ravel(a, out_sharding=X), (A, XY)),
    "method reshape as asked": (lambda a: a.reshape(2, 16, out_sharding=P("Y", "X")), (A, XY)),
    "concatenate": (lambda a, b: jnp.concatenate([a, b], 1), (A, X), (B, X)),
    "concatenate along the cut": (lambda a, b: jnp.concatenate([a, b], 0), (A, X), (B, X)),
    "stack": (lambda a, b: jnp.stack([a, b], 1), (A, XY), (B, XY)),
    "split": (lambda s: jnp.split(s, 4, axis=1), (S, XY)),
    "slice": (lambda s: lax.slice(s, (0, 4), (8, 12)), (S, XY)),
    "slice a row": (lambda a: lax.slice(a, (0, 1), (8, 3)), (A, XY)),
    "index an axis": (lambda t: t[:, 1], (T, X)),
    "pad": (lambda a: jnp.pad(a, ((0, 0), (2, 2))), (A, XY)),
    "rev": (lambda a: a[::-1], (A, XY)),
    "tile": (lambda a: jnp.tile(a, (1, 3)), (A, X)),
    "repeat as asked": (lambda a: jnp.repeat(a, 2, axis=1, out_sharding=XY), (A, XY)),
    "dynamic_slice": (lambda s: lax.dynamic_slice(s, (0, 2), (8, 4)), (S, X)),
    "dynamic_update_slice": (
        lambda s, a: lax.dynamic_update_slice(s, a, (0, 2)),
        (S, X),
        (A, X),
    ),
    # Making arrays.
    "zeros": (lambda: jnp.zeros((8, 4), out_sharding=XY),),
    "ones": (lambda: jnp.ones((8, 4), out_sharding=P(None, "Y")),),
    "full": (lambda: jnp.full((8,), 3, out_sharding=P(("X", "Y"))),),
    "arange": (lambda: jnp.arange(8, out_sharding=X),),
    "broadcasted_iota": (lambda: lax.broadcasted_iota(jnp.int32, (8, 4), 1, out_sharding=XY),),
    "zeros_like": (jnp.zeros_like, (A, XY)),
    "ones_like": (lambda a: jnp.ones_like(a, out_sharding=Y), (A, XY)),
    "full_like": (lambda a: jnp.full_like(a, 2.0), (A, XY)),
    "one_hot": (lambda i: jax.nn.one_hot(i, 4, out_sharding=XY), (I, X)),
    "broadcast_to as asked": (
        lambda v: jnp.broadcast_to(v, (4, 8), out_sharding=P("Y", "X")),
        (V, X),
    ),
    # Products.
    "matmul": (jnp.matmul, (A, XY), (W, P())),
    "matmul by columns": (jnp.matmul, (A, X), (W, P(None, "Y"))),
    "matmul over the cut": (jnp.matmul, (A, P(None, "Y")), (W, P())),
    "matmul as asked": (lambda a, w: jnp.matmul(a, w, out_sharding=X), (A, P("X", "Y")), (W, Y)),
    "dot": (lambda a, v: jnp.dot(v, a), (A, P(None, "Y")), (V, P())),
    "dot as asked": (lambda a, v: jnp.dot(v, a, out_sharding=P(None)), (A, X), (V, X)),
    "batched matmul": (lambda t, u: t @ u, (T, X), (SPD, X)),
    "einsum": (lambda a, w: jnp.einsum("ab,bc->ca", a, w), (A, X), (W, P(None, "Y"))),
    "einsum as asked": (
        lambda a, b: jnp.einsum("ab,cb->ca", a, b, out_sharding=P("X")),
        (A, XY),
        (B, XY),
    ),
    "einsum of three": (
        lambda a, w: jnp.einsum("ab,bc,dc->ad", a, w, w, out_sharding=P("X")),
        (A, X),
        (W, P(None, "Y")),
    ),
    "tensordot": (lambda t, a: jnp.tensordot(t, a, ((1,), (1,))), (T, X), (B, P())),
    "outer": (jnp.outer, (V, X), (V, P())),
    "dot_general": (
        lambda a, w: lax.dot_general(a, w, (((1,), (0,)), ((), ())), out_sharding=P("Y")),
        (A, XY),
        (W, P()),
    ),
    # Reductions.
    "sum": (lambda a: a.sum(), (A, XY)),
    "sum of an axis": (lambda a: a.sum(0), (A, XY)),
    "sum with the axis": (lambda a: a.sum(1, keepdims=True), (A, XY)),
    "mean": (lambda a: a.mean(1), (A, XY)),
    "max": (lambda a: a.max(0), (A, XY)),
    "prod": (lambda a: a.prod(1), (A, X)),
    "argmax": (lambda a: a.argmax(0), (A, XY)),
    "var": (lambda a: a.var(0), (A, XY)),
    "norm": (lambda a: jnp.linalg.norm(a, axis=1), (A, XY)),
    "cumsum": (lambda a: jnp.cumsum(a, 1), (A, X)),
    "sort": (lambda a: jnp.sort(a, 1), (A, X)),
    "sort pairs": (lambda a, b: lax.sort((a, b), dimension=1), (A, X), (B, X)),
    "top_k": (lambda a: lax.top_k(a, 2), (A, X)),
    "reduce_window": (
        lambda s: lax.reduce_window(s, -np.inf, lax.max, (1, 2), (1, 2), "VALID"),
        (S, XY),
    ),
    "reduce by any function": (lambda a: lax.reduce(a, 0.0, lambda x, y: x + y * 1, (1,)), (A, X)),
    # Reading and writing at places.
    "take": (lambda a, i: a.at[i].get(out_sharding=X), (A, X), (I, P())),
    "take columns": (lambda a: a.at[:, jnp.array([2, 0])].get(out_sharding=XY), (A, XY)),
    "gather of whole rows": (lambda a, i: a[i], (A, P(None, "Y")), (I, P())),
    "at set": (lambda a: a.at[:, 1].set(0.0), (A, X)),
    "at add as asked": (lambda a: a.at[2].add(1.0, out_sharding=XY), (A, XY)),
    "at set as asked": (lambda a, i: a.at[i].set(1.0, out_sharding=X), (A, X), (I, P())),
    "take_along_axis": (
        lambda a: jnp.take_along_axis(a, jnp.zeros((8, 1), int), axis=1),
        (A, X),
    ),
    "bincount": (lambda i: jnp.bincount(i, length=8, out_sharding=P()), (I, X)),
    "segment_sum": (
        lambda a, i: jax.ops.segment_sum(a, i, num_segments=8, out_sharding=X),
        (A, P()),
        (I, P()),
    ),
    # Random numbers.
    "uniform": (lambda: jax.random.uniform(jax.random.key(0), (8, 4), out_sharding=XY),),
    "normal": (lambda: jax.random.normal(jax.random.key(1), (8, 4), out_sharding=X),),
    "bits": (lambda: jax.random.bits(jax.random.key(2), (8,), out_sharding=P(("X", "Y"))),),
    "randint": (lambda: jax.random.randint(jax.random.key(3), (8,), 0, 9, out_sharding=X),),
    "permutation": (lambda: jax.random.permutation(jax.random.key(4), 8, out_sharding=X),),
    "keys": (lambda: jax.random.key_data(jax.random.split(jax.random.key(5), 8)),),
    # Matrices.
    "det": (jnp.linalg.det, (SPD, X)),
    "eigh": (lambda s: jnp.linalg.eigh(s)[0], (SPD, X)),
    "svd": (lambda s: jnp.linalg.svd(s, compute_uv=False), (SPD, X)),
    "triangular_solve": (
        lambda s, t: lax.linalg.triangular_solve(s, t, left_side=True, lower=True),
        (SPD, X),
        (T, X),
    ),
    "fft": (lambda s: jnp.fft.fft(s, axis=1), (S, X)),
    "conv": (
        lambda s: lax.conv_general_dilated(
            s.reshape(8, 1, 16), np.ones((2, 1, 3), np.float32), (1,), "SAME"
        ),
        (S, X),
    ),
    # Moving.
    "reshard": (lambda a: reshard(a, P("Y", "X")), (A, XY)),
    "reshard to whole": (lambda a: reshard(a, P()), (A, XY)),
    "reshard two": (lambda a, b: reshard((a, b), (X, P(None, "X"))), (A, XY), (B, XY)),
    "constraint": (lambda a: lax.with_sharding_constraint(a, XY) * 2, (A, XY)),
    "device_put": (lambda a: jax.device_put(a, NamedSharding(mesh, P(None, "X"))), (A, XY)),
    "auto_axes": (auto_axes(lambda a, i: a[i] * 2, out_sharding=X), (A, X), (I, X)),
    "auto_axes of one": (
        auto_axes(lambda a: jnp.sin(a) * 2, axes="X", out_sharding=XY),
        (A, XY),
    ),
    # Programs in programs.
    "jit": (lambda a: jax.jit(lambda x: jnp.sin(x) * 2)(a), (A, XY)),
    "jit out_shardings": (jax.jit(lambda a: a * 2, out_shardings=P(None, "X")), (A, P(None, "X"))),
    "scan": (lambda t: lax.scan(lambda c, x: (c + x, c * x), t[0], t), (T, P(None, "X", "Y"))),
    "scan by index": (lambda a: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * i, a), (A, XY)),
    "while": (lambda a: lax.while_loop(lambda c: c.sum() < 9, lambda c: jnp.exp(c), a), (A, XY)),
    "cond": (lambda a: lax.cond(a.sum() > 0, jnp.sin, lambda x: x * 2, a), (A, XY)),
    "remat": (jax.checkpoint(lambda a: jnp.sin(jnp.sin(a))), (A, XY)),
    "associative_scan": (lambda a: lax.associative_scan(jnp.add, a, axis=1), (A, X)),
    "map": (lambda t: lax.map(lambda x: x * 2, t), (T, P(None, "X"))),
    # Transforms.
    "grad": (jax.grad(lambda a, w: jnp.sin(a @ w).sum()), (A, XY), (W, P())),
    "grad of both": (
        jax.grad(lambda a, w: jnp.sin(a @ w).sum(), (0, 1)),
        (A, X),
        (W, P(None, "Y")),
    ),
    "grad of a sum": (jax.grad(lambda a: (a.sum(0) ** 2).sum()), (A, XY)),
    "grad of max": (jax.grad(lambda a: a.max(1).sum()), (A, XY)),
    "grad of a reshape": (jax.grad(lambda s: (s.reshape(8, 4, 4).sum(1) ** 2).sum()), (S, XY)),
    "grad of a transpose": (jax.grad(lambda a: (a.T * np.arange(8)).sum()), (A, XY)),
    "grad of a broadcast": (jax.grad(lambda v: (v[:, None] * A).sum()), (V, X)),
    "grad of a slice": (jax.grad(lambda s: (s[:, 4:12] ** 2).sum()), (S, XY)),
    "grad of concatenate": (
        jax.grad(lambda a, b: (jnp.concatenate([a, b], 1) ** 2).sum(), (0, 1)),
        (A, X),
        (B, X),
    ),
    "grad of reshard": (jax.grad(lambda a: (reshard(a, Y) ** 3).sum()), (A, XY)),
    "grad of cumsum": (jax.grad(lambda a: (jnp.cumsum(a, 1) ** 2).sum()), (A, X)),
    "grad of sort": (jax.grad(lambda a: (jnp.sort(a, 1) * np.arange(4)).sum()), (A, X)),
    "grad of softmax": (jax.grad(lambda a: (jax.nn.softmax(a) * B).sum()), (A, X)),
    "grad of scan": (
        jax.grad(lambda t: lax.scan(lambda c, x: (jnp.sin(c + x), c), t[0], t)[0].sum()),
        (T, P(None, "X", "Y")),
    ),
    "grad of cond": (
        jax.grad(lambda a: lax.cond(a.sum() > 0, jnp.sin, lambda x: x * 2, a).sum()),
        (A, XY),
    ),
    "grad of remat": (
        jax.grad(lambda a: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(a).sum()),
        (A, XY),
    ),
    "grad of an einsum as asked": (
        jax.grad(
            lambda a, b: (jnp.einsum("ab,cb->ac", a, b, out_sharding=P("X")) ** 2).sum(), (0, 1)
        ),
        (A, XY),
        (B, XY),
    ),
    "grad of a gather": (
        jax.grad(lambda a, i: (a.at[i].get(out_sharding=X) ** 2).sum()),
        (A, X),
        (I, P()),
    ),
    "grad of where": (jax.grad(lambda a: jnp.where(a > 0, a**2, 0.0).sum()), (A, XY)),
    "grad of logsumexp": (
        jax.grad(lambda a: jax.scipy.special.logsumexp(a, axis=1).sum()),
        (A, XY),
    ),
    "value_and_grad": (jax.value_and_grad(lambda a: (a**2).sum()), (A, XY)),
    "jvp": (lambda a, b: jax.jvp(lambda x: jnp.sin(x) * x, (a,), (b,)), (A, XY), (B, XY)),
    "vjp": (lambda a, b: jax.vjp(jnp.sin, a)[1](b), (A, XY), (B, XY)),
    "grad of grad": (
        jax.grad(lambda a: (jax.grad(lambda x: jnp.sin(x).sum())(a) ** 2).sum()),
        (A, XY),
    ),
    "vmap over the cut": (jax.vmap(lambda r: jnp.sin(r).sum()), (A, XY)),
    "vmap over the other": (jax.vmap(lambda c: c / c.max(), in_axes=1), (A, P("X"))),
    "vmap of matmul": (jax.vmap(lambda r, w: r @ w, (0, None)), (A, X), (W, P())),
    "vmap of two": (jax.vmap(lambda a, b: a @ b), (A, X), (B, X)),
    "vmap of scan": (
        jax.vmap(lambda r: lax.scan(lambda c, x: (c + x, c), r[0], r)[0]),
        (A, X),
    ),
    "vmap of cond": (jax.vmap(lambda r: lax.cond(r.sum() > 0, jnp.sin, jnp.cos, r)), (A, X)),
    "vmap of while": (
        jax.vmap(lambda r: lax.while_loop(lambda c: c < 9, lambda c: c + 1.0, r.sum())),
        (A, X),
    ),
    "vmap of where": (jax.vmap(lambda r: jnp.where(r > 0, r, jnp.zeros(4))), (A, X)),
    "vmap of sort": (jax.vmap(jnp.sort), (A, X)),
    "vmap of grad": (
        jax.vmap(jax.grad(lambda r, w: jnp.sin(r @ w).sum()), (0, None)),
        (A, X),
        (W, P()),
    ),
    "grad of vmap": (
        jax.grad(lambda w, a: jax.vmap(lambda r: jnp.sin(r @ w))(a).sum()),
        (W, P()),
        (A, X),
    ),
    "vmap of reshape": (jax.vmap(lambda r: r.reshape(2, 2)), (A, X)),
    "vmap of jit": (jax.vmap(jax.jit(lambda r: jnp.sin(r) * 2)), (A, X)),
    "vmap of reshard": (jax.vmap(lambda r: reshard(r, Y)), (A, X)),
    "vmap of vmap": (jax.vmap(jax.vmap(lambda x: x * 2 + 1)), (A, XY)),
    "vmap with out_axes": (jax.vmap(lambda r: r * 2, out_axes=1), (A, X)),
    # One function for each device.
    "shard_map": (
        jax.shard_map(lambda a: lax.psum(a, "X"), in_specs=XY, out_specs=P(None, "Y")),
        (A, XY),
    ),
    "shard_map of one axis": (
        jax.shard_map(lambda a: a * 2, in_specs=X, out_specs=X, axis_names={"X"}),
        (A, XY),
    ),
    "shard_map sums along one axis": (
        jax.shard_map(
            lambda a: lax.psum(jnp.sin(a), "X"), in_specs=X, out_specs=P(), axis_names={"X"}
        ),
        (A, XY),
    ),
    "grad of shard_map": (
        jax.grad(
            lambda a: (
                jax.shard_map(lambda x: jnp.sin(x) * lax.psum(x, "Y"), in_specs=XY, out_specs=XY)(a)
            ).sum()
        ),
        (A, XY),
    ),
    "grad of shard_map of one axis": (
        jax.grad(
            lambda a: jax.shard_map(jnp.sin, in_specs=X, out_specs=X, axis_names={"X"})(a).sum()
        ),
        (A, XY),
    ),
    # Parts of sums.
    "unreduced": (
        lambda a, b: reshard(
            jnp.einsum("ab,cb->ac", a, b, out_sharding=P("X", unreduced={"Y"})), X
        ),
        (A, XY),
        (B, P(None, "Y")),
    ),
    "unreduced sum": (
        lambda a: reshard(lax.reduce_sum(a, (1,), out_sharding=P("X", unreduced={"Y"})), X),
        (A, XY),
    ),
    "add unreduced": (
        lambda a: reshard(
            lax.reduce_sum(a, (1,), out_sharding=P("X", unreduced={"Y"}))
            + lax.reduce_sum(a * 2, (1,), out_sharding=P("X", unreduced={"Y"})),
            X,
        ),
        (A, XY),
    ),
}

ERRORS = {
    "incompatible": (lambda a, b: a + b, (A, XY), (B, P("Y", "X"))),
    "contracting": (jnp.matmul, (A, XY), (W, Y)),
    "batch": (
        lambda t, u: lax.dot_general(t, u, (((2,), (1,)), ((0,), (0,)))),
        (T, X),
        (SPD, Y),
    ),
    "used twice": (
        lambda a, w: lax.dot_general(a, w, (((1,), (0,)), ((), ()))),
        (A, X),
        (W, P(None, "X")),
    ),
    "reshape": (lambda a: a.reshape(2, 4, 4), (A, XY)),
    "merge": (lambda t: t.reshape(8, 16), (T, P(None, None, "X"))),
    "concatenate": (lambda a, b: jnp.concatenate([a, b]), (A, X), (B, Y)),
    "stack": (lambda a, b: jnp.stack([a, b]), (A, X), (B, Y)),
    "select": (lambda a, b: lax.select(a > 0, a, b), (A, X), (B, Y)),
    "select by another": (lambda a, b: lax.select(b > 0, a, a), (A, X), (B, Y)),
    "sort": (lambda a: jnp.sort(a, 0), (A, X)),
    "cumsum": (lambda a: jnp.cumsum(a, 0), (A, X)),
    "top_k": (lambda v: lax.top_k(v, 2), (V, X)),
    "gather": (lambda a, i: a[i], (A, X), (I, P())),
    "scatter": (lambda a, i: a.at[i].set(0.0), (A, X), (I, P())),
    "dynamic_update_slice": (lambda s, a: lax.dynamic_update_slice(s, a, (0, 0)), (S, X), (A, Y)),
    "slice": (lambda a: a[:3], (A, X)),
    "pad": (lambda a: jnp.pad(a, ((0, 1), (0, 0))), (A, X)),
    "tile": (lambda a: jnp.tile(a, (2, 1)), (A, X)),
    "cholesky": (jnp.linalg.cholesky, (SPD, P(None, "X"))),
    "triangular_solve": (
        lambda s, t: lax.linalg.triangular_solve(s, t, left_side=True),
        (SPD, X),
        (T, Y),
    ),
    "conv": (
        lambda s: lax.conv_general_dilated(
            s.reshape(1, 8, 16), np.ones((2, 8, 3), np.float32), (1,), "SAME"
        ),
        (S, X),
    ),
    "scan carry": (
        lambda a: lax.scan(lambda c, _: (reshard(c, Y), None), a, None, length=2),
        (A, X),
    ),
    "while carry": (
        lambda a: lax.fori_loop(0, 3, lambda i, c: reshard(c, P()), a),
        (A, X),
    ),
    "cond branches": (lambda a: lax.cond(True, lambda x: reshard(x, Y), lambda x: x, a), (A, X)),
    "scan over the cut": (lambda a: lax.scan(lambda c, x: (c, x), 0.0, a), (A, X)),
    "uneven": (lambda a: reshard(a[:3], X), (A, P())),
    "long spec": (lambda v: reshard(v, XY), (V, P())),
    "no such axis": (lambda v: reshard(v, P("Z")), (V, P())),
    "reshard to nothing": (lambda v: reshard(v, None), (V, P())),
    "constraint": (lambda a: lax.with_sharding_constraint(a, Y), (A, X)),
    "no out_sharding": (lambda a: auto_axes(jnp.sin)(a), (A, X)),
    "out_sharding of another type": (lambda: jnp.zeros(8, out_sharding="X"),),
    "add unreduced to whole": (
        lambda a: lax.reduce_sum(a, (1,), out_sharding=P("X", unreduced={"Y"})) + a[:, 0],
        (A, XY),
    ),
    "sin of unreduced": (
        lambda a: jnp.sin(lax.reduce_sum(a, (1,), out_sharding=P("X", unreduced={"Y"}))),
        (A, XY),
    ),
    "unreduced without a cut": (
        lambda a: lax.reduce_sum(a, (1,), out_sharding=P("X", unreduced={"Y"})),
        (A, X),
    ),
    "vmap of differently cut": (jax.vmap(lambda a, b: a + b), (A, X), (B, Y)),
}


def forbidding(f):
    """The function with nothing exchanged along "X" inside."""

    def inside(*args):
        with jax.sharding.no_collectives({"X"}):
            return f(*args)

    return inside


ERRORS |= {
    f"no_collectives / {name}": (forbidding(f), *args)
    for name, (f, *args) in {
        "sum": (lambda a: a.sum(), (A, XY)),
        "sum of the other axis": (lambda a: a.sum(1), (A, XY)),
        "sin": (jnp.sin, (A, XY)),
        "unreduced": (
            lambda a: lax.reduce_sum(a, (0,), out_sharding=P("Y", unreduced={"X"})),
            (A, XY),
        ),
        "reshard": (lambda a: reshard(a, P(None, "X")), (A, XY)),
        "reshard to whole": (lambda a: reshard(a, P()), (A, XY)),
        "reshard along the other": (lambda a: reshard(a, X), (A, XY)),
        "matmul": (lambda a, w: jnp.matmul(a, w, out_sharding=P()), (A, P(None, "X")), (W, X)),
        "in a jit": (lambda a: jax.jit(lambda x: x.sum())(a), (A, XY)),
        "grad": (jax.grad(lambda a: (a.sum(1) ** 2).sum(1 - 1)), (A, XY)),
    }.items()
}


def jaxpr(f, *args):
    return str(jax.make_jaxpr(f)(*[cut(x, spec) for x, spec in args]))


JAXPRS = {
    name: PROGRAMS[name]
    for name in (
        "sin", "add", "transpose", "sum", "sum of an axis", "zeros", "arange", "matmul",
        "split an axis", "reshape as asked", "reshard", "reshard to whole", "constraint",
        "broadcast_to", "dot_general", "slice", "jvp",
    )
}  # fmt: skip


def outside():
    """What types say where no mesh is set, and of other meshes."""
    x = jax.device_put(A, NamedSharding(mesh, XY))
    y = jax.device_put(A, NamedSharding(mixed, XY))
    f = jax.jit(lambda a: jnp.sin(a).sum(0))
    return {
        "none": str(jax.typeof(np.ones(3)).sharding),
        "device_put": [str(jax.typeof(x)), str(jax.typeof(x).sharding)],
        "jit": [str(jax.typeof(f(x))), str(f(x).sharding.spec)],
        "mixed": [str(jax.typeof(y)), str(jax.typeof(f(y)))],
        "eval_shape": str(
            jax.typeof(
                jax.eval_shape(f, jax.ShapeDtypeStruct((8, 4), np.float32, sharding=x.sharding))
            )
        ),
        "reshard": str(jax.typeof(reshard(A, NamedSharding(mesh, X)))),
        "mesh": [str(mesh), repr(mesh), str(mesh.abstract_mesh)],
        "spec": [
            repr(s)
            for s in (P(), X, P(None, ("X", "Y")), P("X", unreduced={"Y"}), P(reduced={"X"}))
        ],
    }


def inside():
    """What is known while a mesh is set."""
    seen = []

    @explicit_axes(axes=("X", "Y"), in_sharding=XY)
    def typed(a):
        seen.append(str(jax.typeof(a)))
        return a * 2

    @auto_axes(axes="X", out_sharding=XY)
    def free(a):
        seen.append(str(jax.typeof(a)))
        return a * 2

    def manual(a):
        seen.append(str(jax.typeof(a)))
        return a

    with jax.set_mesh(mesh):
        x = cut(A, XY)
        free(x)
        seen.append(str(jax.sharding.get_abstract_mesh()))
        jax.shard_map(manual, in_specs=X, out_specs=X, axis_names={"X"})(x)
        jax.shard_map(manual, in_specs=XY, out_specs=XY)(x)
        jax.vmap(manual)(x)
        seen.append(str(jax.typeof(jnp.ones(3)).sharding.spec))
        seen.append(str(jnp.ones(3).sharding.spec))
    with jax.set_mesh(jax.make_mesh((4, 2), ("X", "Y"), (AxisType.Auto,) * 2)):
        seen.append(str(jax.typeof(typed(jnp.asarray(A)))))
    return seen


def digits(y):
    """The shape of an array and its numbers, with as many digits as are compared."""
    numbers = np.asarray(y)
    if numbers.dtype.kind == "c":
        numbers = np.stack([numbers.real, numbers.imag])
    return [list(numbers.shape), [float(f"{v:.6g}") for v in numbers.astype(float).ravel()]]


def parts(y):
    """For each device the part that it holds."""
    places = {d.id: index for d, index in y.sharding.devices_indices_map(y.shape).items()}
    return [
        [list(s.indices(n)[:2]) for s, n in zip(places[i], y.shape, strict=True)]
        for i in sorted(places)
    ]


def ran(f, *args):
    given = [cut(x, spec) for x, spec in args]
    seen = []

    def traced(*xs):
        out = f(*xs)
        seen[:] = [str(jax.typeof(y)) for y in jax.tree.leaves(out)]
        return out

    compiled = jax.tree.leaves(jax.jit(traced)(*given))
    eager = jax.tree.leaves(f(*given))
    return {
        "types": seen,
        "eager types": [str(jax.typeof(y)) for y in eager],
        "values": [digits(y) for y in eager],
        "compiled": [digits(y) for y in compiled],
        "parts": [parts(y) for y in eager],
        "compiled parts": [parts(y) for y in compiled],
    }


def failure(f, *args):
    kinds = (ValueError, TypeError, AssertionError, NotImplementedError)
    try:
        jax.jit(f)(*[cut(x, spec) for x, spec in args])
    except Exception as error:
        name = type(error).__name__
        if name in ("ShardingTypeError", "ForbiddenCollectiveError"):
            return name
        return next((kind.__name__ for kind in kinds if isinstance(error, kind)), "Exception")
    return None


def noted(section, table, run):
    found = {}
    for name, program in table.items():
        print(section, name, file=sys.stderr, flush=True)
        try:
            found[f"{section} / {name}"] = run(*program)
        except Exception as error:
            found[f"{section} / {name}"] = {"failed": f"{type(error).__name__}: {error}"[:300]}
    return found


def record():
    found = {f"outside / {name}": value for name, value in outside().items()}
    found["inside / seen"] = inside()
    with jax.set_mesh(mesh):
        found |= noted("programs", PROGRAMS, ran)
        found |= noted("errors", ERRORS, failure)
        found |= noted("jaxprs", JAXPRS, jaxpr)
    return found


if __name__ == "__main__":
    print(json.dumps(record()))

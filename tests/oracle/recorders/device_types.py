"""Programs whose types say how arrays are cut, with the operations that came late to that.

Also parts of sums inside `shard_map`, and `vmap(spmd_axis_name=)`. The record is that of
`device_collectives`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from oracle.on_devices import (
    MATRICES,
    QKV,
    SPD,
    W1,
    W2,
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
    inside,
    outcomes,
    typed,
    weighted,
)

reshard = jax.sharding.reshard

# ---- Explicit axes: operations that came late, and more programs --------------------------------


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
        (MATRICES[0], P()),
        (GROUP_SIZES, P()),
    ),
    "ragged_dot of cut columns": (
        lambda a, w, n: lax.ragged_dot(a, w, n),
        (A, P()),
        (MATRICES[1], P(None, None, "x")),
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
PROGRAMS = {f"explicit / {name}": typed(*program) for name, program in EXPLICIT.items()}


# ---- Parts of sums inside `shard_map` -----------------------------------------------------------


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


def record():
    return outcomes(PROGRAMS)

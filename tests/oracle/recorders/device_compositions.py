"""Compositions over eight devices: loops, rules of users, rematerialization, maps inside maps.

Each goes forward, in reverse and along a batch; some have second derivatives. The record is that of
`device_collectives`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from oracle.on_devices import (
    LAYERS,
    RING,
    ROTATE,
    W1,
    W2,
    W3,
    XY,
    A,
    B,
    T,
    V,
    X,
    Y,
    auto,
    on,
    outcomes,
    total,
)

LX, WHOLE = P(None, "x"), P()
cube = jax.make_mesh((2, 2, 2), ("a", "b", "c"), (AxisType.Auto,) * 3)
policies = jax.checkpoint_policies


def inner(f, in_specs, out_specs, *names):
    """A `shard_map` over some axes of the mesh around it."""
    return jax.shard_map(f, in_specs=in_specs, out_specs=out_specs, axis_names=set(names))


def over(f, in_specs, out_specs, *names, mesh=auto):
    """A `shard_map` over some axes of a mesh, compiled as it has to be."""
    return jax.jit(on(f, in_specs, out_specs, mesh, axis_names=set(names)))


# ---- Loops inside -------------------------------------------------------------------------------


def layers(step, out=X, w=WHOLE):
    """A scan of `step` over the layers."""
    return on(lambda x, w: lax.scan(step, x, w)[0], (X, w), out)


def plain(h, w):
    return jnp.tanh(h @ w), None


def gathered(h, w):
    return jnp.tanh(h @ lax.all_gather(w, "x", tiled=True)), None


def named(h, w):
    h = checkpoint_name(h @ lax.all_gather(w, "x", tiled=True), "product")
    return jnp.tanh(h), None


def tensor_parallel(x, up, down):
    def step(h, w):
        up, down = w
        return h + lax.psum(jax.nn.relu(h @ up) @ down, "y"), None

    return lax.scan(step, x, (up, down))[0]


def ring(x, w):
    def step(c, _):
        block, sums = c
        return (lax.ppermute(block, "x", ROTATE), sums + jnp.sin(block) @ w), None

    return lax.scan(step, (x, x * 0), None, length=4)[0][1]


def prefix(x):
    """Cumulative products of all rows, of which each device has two."""
    mine = lax.associative_scan(jnp.multiply, jnp.cos(x))
    ends = lax.all_gather(mine[-1], "x")
    before = jnp.where(jnp.arange(4)[:, None] < lax.axis_index("x"), ends, 1.0).prod(0)
    return mine * before


def nested_scan(x, w):
    def outer(c, w):
        def step(c, row):
            return lax.pmean(jnp.sin(c + row @ w), "x"), c.sum()

        return lax.scan(step, c, x)

    c, seen = lax.scan(outer, jnp.zeros(4), w)
    return c + seen.sum()


def branches(x, w):
    def step(h, w):
        more = lambda h: lax.psum(h @ w, "x") + h  # noqa: E731
        return lax.cond(w[0, 0] > 0, more, jnp.sin, h), None

    return lax.scan(step, x, w)[0]


def converging(x):
    def unfinished(c):
        return lax.pmax(abs(c).max(), "x") > 0.1

    return lax.while_loop(unfinished, lambda c: c * 0.5, x)


def scattered(h, w):
    grown = jnp.concatenate([h @ w] * 4)
    return jnp.tanh(lax.psum_scatter(grown, "x", tiled=True)), h.sum()


LOOPS = {
    "scan of layers": (layers(plain), A, LAYERS),
    "scan of gathered layers": (layers(gathered, w=LX), A, LAYERS),
    "scan of rematted layers": (layers(jax.checkpoint(gathered), w=LX), A, LAYERS),
    "scan that saves names": (
        layers(
            jax.checkpoint(named, policy=policies.save_only_these_names("product")),
            w=LX,
        ),
        A,
        LAYERS,
    ),
    "scan of tensor parallel layers": (
        on(tensor_parallel, (X, P(None, None, "y"), P(None, "y")), X),
        A,
        LAYERS,
        LAYERS[::-1].copy(),
    ),
    "scan around a ring": (on(ring, (X, P()), X), A, LAYERS[0]),
    "scan of scatters": (layers(scattered), A, LAYERS),
    "scan unrolled": (
        on(lambda x, w: lax.scan(plain, x, w, unroll=3)[0], (X, P()), X),
        A,
        LAYERS,
    ),
    "scan reversed": (
        on(lambda x, w: lax.scan(gathered, x, w, reverse=True)[0], (X, LX), X),
        A,
        LAYERS,
    ),
    "scan of scans": (on(nested_scan, (X, P()), P()), A, LAYERS),
    "cond in scan": (on(branches, (X, P()), X), A, LAYERS),
    "fori_loop with a mean": (
        on(lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + lax.pmean(c, "x"), x), X, X),
        A,
    ),
    "while_loop until all agree": (on(converging, X, X), A),
    "prefix products": (on(prefix, X, X), A),
    "map inside": (
        on(lambda x: lax.map(lambda r: lax.psum(r, "y") * lax.axis_index("x"), x), XY, X),
        B,
    ),
    "a carry that comes to vary": (
        on(lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c.sum()), jnp.zeros(4), x), X, (X, X)),
        A,
    ),
    "index by the loop": (
        on(
            lambda x, w: lax.fori_loop(0, 3, lambda i, c: c + w[i, lax.axis_index("x")], x),
            (X, P()),
            X,
        ),
        A,
        LAYERS,
    ),
}

# ---- Maps inside maps ---------------------------------------------------------------------------


def two_levels(x):
    def outer(x):
        y = inner(lambda r: jnp.sin(r) * lax.psum(r, "y"), Y, Y, "y")(lax.psum(x, "x"))
        return y * (1 + lax.axis_index("x"))

    return over(outer, X, X, "x")(x)


def inner_knows_outer(x):
    def within(r):
        return r * lax.axis_index("x") + lax.psum(lax.psum(r, "y"), "x")

    return over(lambda x: inner(within, P(None, "y"), P(None, "y"), "y")(x), X, X, "x")(x)


def in_a_scan(x, w):
    def outer(x, w):
        def step(h, w):
            f = inner(lambda h, w: lax.psum(h @ w, "y"), (P(None, "y"), Y), P(), "y")
            return jnp.tanh(f(h, w)) + lax.pmean(h, "x"), None

        return lax.scan(step, x, w)[0]

    return over(outer, (X, P()), X, "x")(x, w)


def in_remat(x):
    @jax.checkpoint
    def block(x):
        return inner(lambda r: jnp.sin(lax.psum(jnp.sin(r), "y")), Y, P(), "y")(x)

    return over(lambda x: lax.psum(block(x), "x"), X, P(), "x")(x)


def in_vmap(t):
    def outer(t):
        return jax.vmap(inner(lambda r: r * lax.psum(r.sum(), "y"), Y, Y, "y"))(t)

    return over(outer, X, X, "x")(t)


def three_levels(b):
    def second(x):
        return inner(lambda x: lax.psum(jnp.sin(x), "c") * x.sum(), P(None, None), P(), "c")(x)

    def first(x):
        return inner(lambda x: lax.psum(second(x), "b"), P("b"), P(), "b")(x)

    return over(lambda x: first(x) * lax.axis_index("a"), P("a"), P("a"), "a", mesh=cube)(b)


def twice(x):
    return over(lambda x: inner(jnp.sin, X, X, "x")(x), X, X, "x")(x)


def constrained(x, w):
    def body(x, w):
        h = lax.with_sharding_constraint(x @ w, P(None, "y"))
        return jnp.tanh(h) - lax.pmean(h, "x")

    return over(body, (X, P()), X, "x")(x, w)


def jitted(x):
    return over(lambda x: jax.jit(lambda r: lax.psum(r**2, "x"))(x) * x, X, X, "x")(x)


MAPS = {
    "two levels": (two_levels, A),
    "inner knows outer": (inner_knows_outer, A),
    "in a scan": (in_a_scan, A, LAYERS),
    "in remat": (in_remat, A),
    "in vmap": (in_vmap, T),
    "three levels": (three_levels, B),
    "along the same axis": (twice, A),
    "constrained": (constrained, A, W1),
    "jitted": (jitted, A),
    "permuted": (over(lambda x: lax.ppermute(jnp.sin(x), "x", ROTATE), X, X, "x"), A),
    "of both axes": (over(lambda x: lax.psum(jnp.sin(x), ("x", "y")), XY, P(), "x", "y"), B),
    "of no axis": (over(lambda x: x * 2, P(), P()), A),
}

# ---- Rematerialization --------------------------------------------------------------------------


def block(x, w):
    h = jnp.tanh(lax.psum(x @ w, "y"))
    return lax.all_gather(h, "y", axis=1, tiled=True, to="invarying")


def remat(policy=None, **options):
    f = on(lambda x, w: jnp.sin(block(x, w)), (XY, Y), X)
    return jax.checkpoint(f, policy=policy, **options)


def remat_inside(policy=None):
    return on(lambda x, w: jax.checkpoint(block, policy=policy)(x, w) ** 2, (XY, Y), X)


def remat_twice(x, w):
    f = jax.checkpoint(lambda x, w: jax.checkpoint(block)(jnp.sin(x), w) * 2)
    return jax.checkpoint(on(f, (XY, Y), X))(x, w)


def only_product(x, w):
    def f(x, w):
        return jnp.sin(checkpoint_name(lax.psum(jnp.sin(x) @ w, "y"), "sum"))

    rule = policies.save_any_names_but_these("sum")
    return on(jax.checkpoint(f, policy=rule), (XY, Y), X)(x, w)


REMATS = {
    "of a map": (remat(), B, W3),
    "that saves products": (remat(policies.dots_saveable), B, W3),
    "that saves all": (remat(policies.everything_saveable), B, W3),
    "without common terms": (remat(prevent_cse=False), B, W3),
    "inside": (remat_inside(), B, W3),
    "inside, saving products": (remat_inside(policies.dots_with_no_batch_dims_saveable), B, W3),
    "in remat": (remat_twice, B, W3),
    "of all but a name": (only_product, B, W3),
}

# ---- Rules of users -----------------------------------------------------------------------------


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def copied(x, axis):
    """The same, whose cotangents are added up."""
    return x


copied.defvjp(lambda x, axis: (x, None), lambda axis, _, g: (lax.psum(g, axis),))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def added(x, axis):
    """The sum, whose cotangent is passed on."""
    return lax.psum(x, axis)


added.defvjp(lambda x, axis: (lax.psum(x, axis), None), lambda axis, _, g: (g,))


def by_hand(check):
    def f(x, up, down):
        return added(jax.nn.relu(copied(x, "y") @ up) @ down, "y")

    return on(f, (X, P(None, "y"), P("y")), X, check_vma=check)


@jax.custom_vjp
def mapped(x):
    return on(lambda x: x - lax.pmean(x, "x"), X, X)(x)


mapped.defvjp(lambda x: (mapped(x), x), lambda x, g: (on(jnp.cos, X, X)(x) * g,))


@jax.custom_jvp
def log_sum(x):
    top = lax.pmax(lax.stop_gradient(x).max(), "x")
    return jnp.log(lax.psum(jnp.exp(x - top).sum(), "x")) + top


@log_sum.defjvp
def _log_sum(primals, tangents):
    (x,), (t,) = primals, tangents
    y = log_sum(x)
    return y, lax.psum((jnp.exp(x - y) * t).sum(), "x")


@jax.custom_vjp
def clip_ct(x):
    return x * 1.0


clip_ct.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.5, 0.5),))


@jax.custom_vjp
def own_part(w, x):
    return x @ w


own_part.defvjp(lambda w, x: (x @ w, (w, x)), lambda res, g: (res[1].T @ g, g @ res[0].T))


@jax.custom_batching.custom_vmap
def shifted(x):
    return x + lax.axis_index("x")


@shifted.def_vmap
def _shifted(size, batched, x):
    return x + 10 * lax.psum(1, "x"), batched[0]


def in_remat_and_scan(x, w):
    def step(h, w):
        return jax.checkpoint(lambda h, w: clip_ct(jnp.sin(h @ w)))(h, w), None

    return layers(step)(x, w)


RULES = {
    "by hand": (by_hand(False), A, W1, W2),
    "by hand, with types": (by_hand(True), A, W1, W2),
    "around a map": (mapped, A),
    "custom_jvp with a sum": (on(lambda x: x - log_sum(x), X, X), A),
    "in scan": (layers(lambda h, w: (clip_ct(jnp.tanh(h @ w)), None)), A, LAYERS),
    "in remat and scan": (in_remat_and_scan, A, LAYERS),
    "own part of what all have": (on(own_part, (P(), X), X), W1, A),
    "own part, without types": (on(own_part, (P(), X), X, check_vma=False), W1, A),
    "custom_vmap": (on(lambda x: shifted(x), X, X), A),
    "vmap of custom_vmap": (on(jax.vmap(shifted), X, X), A),
    "composite": (
        on(lambda x: lax.composite(lambda y: jnp.sin(y) * 2, "my.sin")(x), X, X),
        A,
    ),
    "stopped": (on(lambda x: x * lax.stop_gradient(lax.psum(x, "x")), X, X), A),
}

# ---- Examples along an axis of the mesh ---------------------------------------------------------


def spmd(f, name="x", **options):
    return jax.vmap(f, spmd_axis_name=name, **options)


def by_y(f, in_specs=Y, out_specs=Y, **options):
    return on(f, in_specs, out_specs, **options)


def scan_y(x):
    return by_y(lambda x: lax.scan(lambda c, r: (lax.psum(c * r, "y"), c), 1.0, x)[1], Y, Y)(x)


SPMD = {
    "of a scan": (spmd(by_y(lambda r: lax.fori_loop(0, 2, lambda i, c: jnp.sin(c), r))), A),
    "of a sum in a scan": (
        spmd(by_y(lambda r: r * lax.scan(lambda c, v: (c + lax.psum(v, "y"), v), 0.0, r)[0])),
        A,
    ),
    "of a gradient": (spmd(jax.grad(lambda r: (by_y(jnp.sin)(r) ** 2).sum())), A),
    "of remat": (spmd(jax.checkpoint(by_y(lambda r: jnp.sin(lax.psum(r, "y")), Y, P()))), A),
    "of custom_vjp": (spmd(by_y(clip_ct)), A),
    "of vmap": (spmd(jax.vmap(by_y(lambda r: r * lax.psum(r, "y")))), T),
    "in vmap": (jax.vmap(spmd(by_y(lambda r: r * lax.psum(r, "y")))), T),
    "of what all share": (
        spmd(by_y(lambda r, w: r * w, (Y, Y), Y), in_axes=(0, None)),
        A,
        V[:4],
    ),
    "of trees": (
        spmd(
            by_y(lambda d: {"s": lax.psum(d["a"], "y"), "p": d["b"] * 2}, Y, {"s": P(), "p": Y}),
            in_axes=({"a": 0, "b": 1},),
            out_axes={"s": 1, "p": 0},
        ),
        {"a": A, "b": A.T.copy()},
    ),
    "of a branch": (
        spmd(by_y(lambda r: lax.cond(r.sum() > 0, jnp.sin, lambda r: r * 2, r))),
        A,
    ),
    "of a constraint in a loop": (
        spmd(
            lambda r: lax.fori_loop(
                0,
                2,
                lambda i, c: lax.with_sharding_constraint(jnp.sin(c), NamedSharding(auto, Y)),
                r,
            )
        ),
        A,
    ),
    "along both": (spmd(spmd(on(jnp.sin, P(), P()), "y"), "x"), T),
    "that does not divide": (spmd(by_y(jnp.sin)), A[:6]),
}

# ---- pmap ---------------------------------------------------------------------------------------


def each(f, **options):
    return jax.pmap(f, axis_name="i", **options)


PMAPS = {
    "of vmap": (
        each(jax.vmap(lambda v: v - lax.pmean(v, ("i", "j")), axis_name="j")),
        A,
    ),
    "in vmap": (jax.vmap(each(lambda v: v * lax.psum(v, "i")), in_axes=1, out_axes=1), A),
    "of scan": (
        each(lambda x: lax.scan(lambda c, v: (lax.pmean(jnp.sin(c + v), "i"), c), 0.0, x)[1]),
        A,
    ),
    "of remat": (each(jax.checkpoint(lambda x: jnp.sin(lax.psum(jnp.sin(x), "i")))), A),
    "of custom_vjp": (each(lambda x: clip_ct(x) * lax.pmean(x, "i")), A),
    "of a gather": (each(lambda x: lax.all_gather(x, "i", tiled=True)[:8] * x.sum()), A),
    "of a ring": (each(lambda x: x * lax.ppermute(x, "i", RING)), A),
    "of a scatter": (each(lambda x: lax.psum_scatter(jnp.sin(x), "i", tiled=True)), B),
    "of while": (each(lambda x: lax.while_loop(lambda c: c.sum() > 1, lambda c: c / 2, x)), A),
    "of a branch": (each(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)), A),
    "of axes": (each(lambda x, y: x * y, in_axes=(1, None), out_axes=1), B, V),
    "in jit": (jax.jit(lambda x: each(lambda v: lax.psum(v, "i"))(x * 2) + x), A),
    "of a map": (each(lambda x: on(jnp.sin, X, X)(x)), A),
    "in a map": (on(lambda x: jax.pmap(jnp.sin)(x), X, X), A),
    "of pmap": (each(jax.pmap(jnp.sin)), T),
    "of a gradient": (each(jax.grad(lambda x: lax.pmean((x**3).sum(), "i"))), A),
    "of two results": (each(lambda x: (x.sum(), {"a": lax.pmax(x, "i")})), A),
}

GROUPS = {
    "loops": LOOPS,
    "maps": MAPS,
    "remat": REMATS,
    "rules": RULES,
    "examples": SPMD,
    "pmap": PMAPS,
}


def forward(f, *args):
    return jax.jit(f)(*args)


def reverse(f, *args):
    return jax.jit(jax.grad(lambda *xs: total(f(*xs)), tuple(range(len(args)))))(*args)


def second(f, *args):
    def directional(*xs):
        return jax.jvp(lambda *ys: total(f(*ys)), xs, jax.tree.map(jnp.cos, xs))[1]

    return jax.jit(jax.grad(directional))(*args)


def batch(f, *args):
    both = jax.tree.map(lambda x: np.stack([x, x * 0.5]), args)
    return jax.jit(jax.vmap(f))(*both)


# A second derivative is a tangent of a gradient, so it goes through both.
WAYS = {"forward": forward, "reverse": reverse, "batch": batch}
PROGRAMS = {
    f"{group} / {name} / {way}": functools.partial(run, *program)
    for group, programs in GROUPS.items()
    for name, program in programs.items()
    for way, run in (
        {**WAYS, "second": second} if group in ("loops", "maps", "remat") else WAYS
    ).items()
}


def record():
    return outcomes(PROGRAMS)

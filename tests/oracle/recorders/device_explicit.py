"""Compositions where types say how arrays are cut, over eight devices.

Loops, rules of users and maps along explicit axes, functions that leave them and come back, and
parts of sums and of maxima. The record is that of `device_collectives`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, UnreducedKind, auto_axes, explicit_axes, reshard
from jax.sharding import PartitionSpec as P

from oracle.on_devices import (
    LAYERS,
    QKV,
    ROTATE,
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
    explicit,
    inside,
    outcomes,
    total,
    typed,
)

LX, COLUMNS = P(None, "x"), P(None, "y")


# ---- Programs and their derivatives -------------------------------------------------------------


def layers(step):
    return lambda x, w: lax.scan(step, x, w)[0]


def resharded(h, w):
    return reshard(jnp.tanh(h @ w), X), None


def columns(h, w):
    """There and back: by columns of one layer and rows of the next."""
    h = jax.nn.relu(jnp.einsum("bd,df->bf", h, w, out_sharding=XY))
    return jnp.einsum("bf,gf->bg", h, w, out_sharding=X), None


def fully_sharded(h, w):
    return jnp.tanh(h @ reshard(w, P())), None


def in_cond(a):
    return lax.cond(a[0, 0] > 0, lambda x: reshard(x, X), lambda x: reshard(x * 2, X), a)


def attention(x, w):
    q, k, v = [jnp.einsum("bld,dhe->bhle", x, w[i], out_sharding=XY) for i in range(3)]
    s = jax.nn.softmax(jnp.einsum("bhle,bhme->bhlm", q, k) / 2)
    return jnp.einsum("bhlm,bhme->bhle", s, v)


@jax.custom_vjp
def rule(a):
    return reshard(jnp.sin(a), X)


rule.defvjp(lambda a: (rule(a), a), lambda a, g: (reshard(jnp.cos(a), X) * g,))


@jax.custom_vjp
def cut_rule(a):
    return a * 2


cut_rule.defvjp(lambda a: (a * 2, a), lambda a, g: (g * jnp.sin(a),))


@jax.custom_jvp
def tangents(a):
    return jnp.sin(a)


tangents.defjvps(lambda t, y, a: t * reshard(jnp.cos(a), XY))

free_sort = auto_axes(lambda a: jnp.sort(a, 0), out_sharding=X)
free_y = auto_axes(lambda a: jnp.cumsum(a, 1), axes="y", out_sharding=XY)


def free_and_back(a):
    """Explicit, automatic, explicit, automatic, explicit."""

    def free(a):
        @functools.partial(explicit_axes, axes=("x", "y"), in_sharding=XY)
        def named(a):
            return jnp.sin(a) * 2

        return named(a) + a[::-1]

    return auto_axes(free, axes=("x", "y"), out_sharding=XY)(a)


def mapped(a):
    f = jax.shard_map(lambda r: r - lax.pmean(r, "x"), in_specs=XY, out_specs=XY)
    return jnp.sin(f(a)) @ jnp.ones((4, 4))


def partly(a, w):
    def part(a, w):
        return lax.psum(jnp.sin(a) * w, "x")

    f = jax.shard_map(part, in_specs=(X, X), out_specs=P(), axis_names={"x"})
    return f(a, w)


def partly_in_scan(a, w):
    f = jax.shard_map(lambda h, w: jnp.tanh(h @ w), in_specs=(X, P()), out_specs=X)
    return lax.scan(lambda h, w: (f(h, w), None), a, w)[0]


def mapped_twice(a):
    def outer(a):
        inner = jax.shard_map(lambda r: lax.psum(r * r, "y"), in_specs=Y, out_specs=P())
        return inner(lax.psum(a, "x"))

    return jax.shard_map(outer, in_specs=X, out_specs=P(), axis_names={"x"})(a)


def infers(a):
    f = jax.shard_map(lambda r: r * lax.axis_index("x"), out_specs=XY)
    return f(a)


def rematted(a, w):
    @jax.checkpoint
    def f(a, w):
        return jnp.sin(reshard(jnp.sin(a @ w), XY))

    return f(a, w)


def saved(a, w):
    f = jax.checkpoint(lambda a, w: jnp.sin(a @ w), policy=jax.checkpoint_policies.dots_saveable)
    return f(a, w)


PROGRAMS = {
    # Loops.
    "scan of layers": (layers(resharded), (A, X), (LAYERS, P())),
    "scan by columns": (layers(columns), (A, X), (LAYERS, P(None, None, "y"))),
    "scan of gathered layers": (layers(fully_sharded), (A, X), (LAYERS, LX)),
    "scan of remat": (layers(jax.checkpoint(fully_sharded)), (A, X), (LAYERS, LX)),
    "scan of columns that are cut": (
        lambda t: lax.scan(lambda c, r: (c + r, c * r), t[0] * 0, t),
        (T, P(None, "x", "y")),
    ),
    "fori_loop": (lambda a: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + i, a), (A, XY)),
    "cond": (in_cond, (A, P())),
    "switch": (
        lambda a: lax.switch(1, [jnp.sin, lambda x: reshard(jnp.cos(x), XY)], a),
        (A, XY),
    ),
    "map": (lambda t: lax.map(lambda r: r @ r.T, t), (T, P(None, "x"))),
    "associative_scan": (lambda a: lax.associative_scan(jnp.multiply, a, axis=1), (A, X)),
    # Products.
    "einsum as asked": (
        lambda a, b: jnp.einsum("ab,bc->ac", a, b, out_sharding=XY),
        (A, COLUMNS),
        (W1, Y),
    ),
    "einsum of three": (
        lambda a, v, w: jnp.einsum("ab,bc,cd->ad", a, v, w, out_sharding=P("x", None)),
        (A, X),
        (W1, COLUMNS),
        (W3, Y),
    ),
    "a batched product": (
        lambda t: jnp.einsum("bij,bkj->bik", t, t),
        (T, P("x", "y")),
    ),
    "tensordot": (
        lambda t, w: jnp.tensordot(t, w, ((2,), (0,)), out_sharding=P("x", None, "y")),
        (T, X),
        (W1, P()),
    ),
    "a product over the cut": (
        lambda a, w: jnp.dot(a, w, out_sharding=X),
        (A, P("x", "y")),
        (W1, Y),
    ),
    "attention": (attention, (T, X), (QKV, P())),
    "outer": (lambda v, w: jnp.outer(v, w), (V, X), (V, Y)),
    # Shapes.
    "reshape as asked": (lambda t: t.reshape(8, 16, out_sharding=XY), (T, X)),
    "merged": (lambda t: t.reshape(32, 4), (T, X)),
    "split": (lambda c: c.reshape(4, 4, 8), (C, XY)),
    "repeat as asked": (lambda a: jnp.repeat(a, 2, axis=0, out_sharding=X), (A, X)),
    "concatenate": (
        lambda a, b: jnp.concatenate([a, reshard(b, X)], 1),
        (A, X),
        (A, COLUMNS),
    ),
    "broadcast as asked": (
        lambda v: jnp.broadcast_to(v, (4, 8), out_sharding=P("x", "y")),
        (V, Y),
    ),
    "slice between cuts": (lambda t: t[:, 1:3, 0], (T, X)),
    "pad": (lambda a: jnp.pad(a, ((0, 0), (1, 3))), (A, X)),
    "take as asked": (
        lambda a, w: a.at[jnp.array([3, 1, 0, 5])].get(out_sharding=X) @ w,
        (A, COLUMNS),
        (W1, P()),
    ),
    "set as asked": (
        lambda a, b: a.at[jnp.array([3, 1])].set(b, out_sharding=XY),
        (A, XY),
        (W2[:2], P()),
    ),
    "where of two": (lambda a, b: jnp.where(a > 0, a, reshard(b, XY)), (A, XY), (A, X)),
    # Moving.
    "reshard in vmap": (jax.vmap(lambda r: reshard(r * 2, Y)), (A, X)),
    "reshard twice": (lambda a: reshard(jnp.sin(reshard(a, P("y", "x"))), X), (A, XY)),
    "as what another is": (
        lambda a, b: reshard(a, jax.typeof(b).sharding.spec) * b,
        (A, P()),
        (A, P("y", "x")),
    ),
    "constraint": (lambda a: lax.with_sharding_constraint(jnp.sin(a), XY), (A, XY)),
    "jit in jit": (
        lambda a: jax.jit(lambda x: reshard(x, X), out_shardings=X)(jnp.sin(a)),
        (A, XY),
    ),
    # Out of types and back.
    "auto_axes": (free_sort, (A, X)),
    "auto_axes of one": (free_y, (A, XY)),
    "auto_axes in scan": (
        lambda a: lax.scan(lambda c, _: (free_sort(jnp.sin(c)), None), a, None, length=2)[0],
        (A, X),
    ),
    "auto_axes in vmap": (
        jax.vmap(auto_axes(lambda r: jnp.cumsum(r), out_sharding=P())),
        (A, X),
    ),
    "auto_axes in remat": (jax.checkpoint(lambda a: free_sort(jnp.sin(a)) ** 2), (A, X)),
    "free and back": (free_and_back, (A, XY)),
    # Maps.
    "shard_map": (mapped, (A, XY)),
    "shard_map along one axis": (partly, (A, XY), (A + 1, XY)),
    "shard_map in scan": (partly_in_scan, (A, X), (LAYERS, P())),
    "shard_map in shard_map": (mapped_twice, (A, XY)),
    "shard_map that infers": (infers, (A, XY)),
    "shard_map in vmap": (
        jax.vmap(jax.shard_map(lambda r: lax.psum(r, "y"), in_specs=Y, out_specs=P())),
        (A, XY),
    ),
    "shard_map of a ring": (
        jax.shard_map(lambda r: lax.ppermute(jnp.sin(r), "x", ROTATE), in_specs=XY, out_specs=XY),
        (A, XY),
    ),
    # Rules and rematerialization.
    "custom_vjp": (rule, (A, XY)),
    "custom_vjp that is cut": (cut_rule, (A, XY)),
    "custom_jvp": (tangents, (A, XY)),
    "remat": (rematted, (A, X), (W1, COLUMNS)),
    "remat that saves products": (saved, (A, X), (W1, COLUMNS)),
    "vmap of custom_vjp": (jax.vmap(cut_rule), (A, X)),
    "logsumexp": (lambda a: jax.scipy.special.logsumexp(a, axis=0), (A, XY)),
    "norms": (lambda a: jnp.linalg.norm(a, axis=1), (A, X)),
}


def reverse(f):
    def run(*args):
        return jax.grad(lambda *xs: total(f(*xs)), tuple(range(len(args))))(*args)

    return run


def batch(f):
    def run(*args):
        return jax.vmap(f)(*[jnp.stack([x, x * 2]) for x in args])

    return run


WAYS = {"forward": lambda f: f, "reverse": reverse, "batch": batch}
FOUND = {
    f"typed / {name} / {way}": typed(turn(f), *args)
    for name, (f, *args) in PROGRAMS.items()
    for way, turn in WAYS.items()
}

# ---- Errors -------------------------------------------------------------------------------------


def einsum(text):
    return functools.partial(jnp.einsum, text)


ERRORS = {
    "contracted along two": (einsum("ab,bc->ac"), (A, COLUMNS), (W1, X)),
    "contracted along one": (einsum("ab,bc->ac"), (A, COLUMNS), (W1, Y)),
    "both results along one": (einsum("ab,bc->ac"), (A, X), (W1, LX)),
    "batches along two": (einsum("bij,bjk->bik"), (T, X), (T, Y)),
    "a batch and a result": (einsum("bij,bjk->bik"), (T, X), (T, P(None, None, "x"))),
    "trace of the cut": (einsum("ii->"), (B, XY)),
    "asked for what cannot be": (
        lambda a, w: jnp.einsum("ab,bc->ac", a, w, out_sharding=P("x", "x")),
        (A, X),
        (W1, P()),
    ),
    "asked for more axes": (
        lambda a, w: jnp.einsum("ab,bc->ac", a, w, out_sharding=P("x", "y", None)),
        (A, X),
        (W1, P()),
    ),
    "asked for an uneven cut": (lambda a: a[:, :3].reshape(24, out_sharding=P(("x",))), (A, X)),
    "asked for another axis": (lambda a: reshard(a, P("z")), (A, X)),
    "reshape": (lambda a: a.reshape(4, 8), (A, XY)),
    "ravel": (jnp.ravel, (A, XY)),
    "auto_axes without a result": (lambda a: auto_axes(jnp.sin)(a), (A, X)),
    "carry that is cut otherwise": (
        lambda a: lax.scan(lambda c, _: (reshard(c, COLUMNS), None), a, None, length=2),
        (A, X),
    ),
    "branches that are cut otherwise": (
        lambda a: lax.cond(True, lambda x: reshard(x, X), lambda x: x, a),
        (A, COLUMNS),
    ),
    "scan along the cut": (lambda a: lax.scan(lambda c, x: (c + x.sum(), c), 0.0, a), (A, X)),
    "vmap of two cuts": (jax.vmap(jnp.add), (A, X), (A, Y)),
    "in_specs that differ": (
        lambda a: jax.shard_map(jnp.sin, in_specs=COLUMNS, out_specs=COLUMNS)(a),
        (A, X),
    ),
    "shard_map of another mesh": (
        lambda a: jax.shard_map(
            jnp.sin, mesh=jax.make_mesh((8,), ("z",)), in_specs=P("z"), out_specs=P("z")
        )(a),
        (A, X),
    ),
    "results that vary": (
        lambda a: jax.shard_map(lambda r: r, in_specs=X, out_specs=P())(a),
        (A, X),
    ),
    "sorted along the cut": (lambda a: jnp.sort(a, 0), (A, X)),
    "a cut index": (lambda a, i: a[i], (A, X), (I, P())),
    "cotangents of another cut": (
        lambda a: jax.vjp(jnp.sin, a)[1](reshard(a, P("y"))),
        (A, X),
    ),
    "tangents of another cut": (lambda a: jax.jvp(jnp.sin, (a,), (reshard(a, Y),)), (A, X)),
    "explicit_axes without a cut": (
        lambda a: auto_axes(lambda x: explicit_axes(jnp.sin)(x), out_sharding=X)(a),
        (A, X),
    ),
    "in_shardings that differ": (
        lambda a: jax.jit(jnp.sin, in_shardings=NamedSharding(explicit, COLUMNS))(a),
        (A, X),
    ),
    "out_shardings that differ": (
        lambda a: jax.jit(jnp.sin, out_shardings=NamedSharding(explicit, COLUMNS))(a),
        (A, X),
    ),
}
FOUND |= {f"ambiguous / {name}": typed(f, *args) for name, (f, *args) in ERRORS.items()}

# ---- Parts of sums and of maxima ----------------------------------------------------------------

U, R = P(unreduced={"x"}), P(reduced={"x"})
MOST, LEAST = UnreducedKind.max, UnreducedKind.min


def turned(a, to="unreduced"):
    return lax.pcast(a, "x", to=to)


def extremum(reduce, kind):
    """Parts of the greatest or least of columns, along "y"."""
    place = P("x", unreduced={"y"}, unreduced_kind=kind)
    return lambda a: reduce(a, (1,), out_sharding=place)


def combined(reduce, kind, collective):
    """They are combined inside `shard_map`."""
    place = P("x", unreduced={"y"}, unreduced_kind=kind)
    f = jax.shard_map(lambda v: collective(v, "y"), in_specs=place, out_specs=X)
    return lambda a: f(extremum(reduce, kind)(a))


def sums_in_scan(a):
    def step(c, r):
        return c + turned(r), None

    zero = turned(a[0] * 0)
    return lax.psum(lax.scan(step, zero, a)[0], "x")


def accumulated(a, w):
    """Gradients of reduced weights are unreduced, and are added up once."""
    shared = turned(w, "reduced")

    def step(total, row):
        grad = jax.grad(lambda w: jnp.sin(row @ w).sum())(shared)
        return total + grad, None

    first = jax.grad(lambda w: jnp.sin(a[0] @ w).sum())(shared)
    return lax.psum(lax.scan(step, first, a[1:])[0], "x")


def unreduced_product(a, w):
    parts = jnp.einsum("ab,bc->ac", a, w, out_sharding=P("x", unreduced={"y"}))
    return reshard(parts, X)


def unreduced_scan(a, w):
    def step(c, i):
        return c + jnp.einsum("ab,bc->ac", a * i, w, out_sharding=P("x", unreduced={"y"})), None

    zero = jnp.einsum("ab,bc->ac", a * 0, w, out_sharding=P("x", unreduced={"y"}))
    return reshard(lax.scan(step, zero, jnp.arange(3.0))[0], X)


PARTS = {
    "greatest": typed(extremum(lax.reduce_max, MOST), (A, XY)),
    "least": typed(extremum(lax.reduce_min, LEAST), (A, XY)),
    "greatest, reduced": typed(lambda a: reshard(extremum(lax.reduce_max, MOST)(a), X), (A, XY)),
    "least, reduced": typed(lambda a: reshard(extremum(lax.reduce_min, LEAST)(a), X), (A, XY)),
    "pmax of the greatest": typed(combined(lax.reduce_max, MOST, lax.pmax), (A, XY)),
    "pmin of the least": typed(combined(lax.reduce_min, LEAST, lax.pmin), (A, XY)),
    "psum of the greatest": typed(combined(lax.reduce_max, MOST, lax.psum), (A, XY)),
    "pmin of the greatest": typed(combined(lax.reduce_max, MOST, lax.pmin), (A, XY)),
    "pmax of a sum": inside(lambda a: lax.pmax(turned(a), "x"), X, P(), (A, X)),
    "greatest of another kind": typed(extremum(lax.reduce_max, LEAST), (A, XY)),
    "greatest, twice": typed(lambda a: extremum(lax.reduce_max, MOST)(a) * 2, (A, XY)),
    "greatest, added": typed(
        lambda a: extremum(lax.reduce_max, MOST)(a) + extremum(lax.reduce_max, MOST)(a), (A, XY)
    ),
    "pmax in jit": inside(lambda a: jax.jit(lambda v: lax.pmax(v, "x"))(a), X, P(), (A, X)),
    "sums in scan": inside(sums_in_scan, X, P(), (A, X)),
    "sums in cond": inside(
        lambda a: lax.psum(lax.cond(True, turned, lambda r: turned(r * 2), a), "x"), X, P(), (A, X)
    ),
    "sums in jit": inside(
        lambda a: lax.psum(jax.jit(lambda r: turned(r) + turned(r))(a), "x"), X, P(), (A, X)
    ),
    "sums in remat": inside(
        lambda a: lax.psum(jax.checkpoint(lambda r: turned(jnp.sin(r)))(a), "x"), X, P(), (A, X)
    ),
    "gradient of sums in remat": typed(
        reverse(
            jax.shard_map(
                lambda a: lax.psum(jax.checkpoint(lambda r: turned(jnp.sin(r)))(a), "x"),
                in_specs=X,
                out_specs=P(),
            )
        ),
        (A, X),
    ),
    "gradient of sums in scan": typed(
        reverse(jax.shard_map(sums_in_scan, in_specs=X, out_specs=P())), (A, X)
    ),
    "accumulated": inside(accumulated, (X, P()), P(), (A, X), (W1, P())),
    "reduced in scan": inside(
        lambda a, w: lax.scan(lambda c, r: (c, r @ turned(w, "reduced")), 0.0, a)[1],
        (X, P()),
        X,
        (A, X),
        (W1, P()),
    ),
    "vmap of sums": inside(
        lambda a: jax.vmap(lambda r: lax.psum(turned(r), "x"))(a), X, P(), (A, X)
    ),
    "vmap of reduced": inside(
        lambda a, w: jax.vmap(lambda r: r @ turned(w, "reduced"))(a),
        (X, P()),
        X,
        (A, X),
        (W1, P()),
    ),
    "unreduced in, a sum out": inside(lambda a: lax.psum(a * 2, "x"), U, P(), (A, U)),
    "reduced in, varying out": inside(lambda w: turned(w, "varying"), R, X, (A, R)),
    "an unreduced product": typed(unreduced_product, (A, XY), (W1, Y)),
    "gradient of an unreduced product": typed(reverse(unreduced_product), (A, XY), (W1, Y)),
    "unreduced products in scan": typed(unreduced_scan, (A, XY), (W1, Y)),
    "gradient of unreduced products in scan": typed(reverse(unreduced_scan), (A, XY), (W1, Y)),
    "vmap of an unreduced product": typed(
        lambda a, w: jax.vmap(unreduced_product, (0, None))(a, w),
        (np.stack([A, A]), P(None, "x", "y")),
        (W1, Y),
    ),
    "reduced weights": typed(lambda a, w: a @ w, (A, X), (W1, R)),
    "gradient of reduced weights": typed(
        jax.grad(lambda a, w: jnp.sin(a @ w).sum(), 1), (A, X), (W1, R)
    ),
    "sum of the last": typed(
        lambda a: reshard(a.sum(1, out_sharding=P("x", unreduced={"y"})), X), (A, XY)
    ),
    "unreduced transposed": typed(
        lambda a, w: jnp.einsum("ab,bc->ac", a, w, out_sharding=P("x", unreduced={"y"})).T,
        (A, XY),
        (W1, Y),
    ),
    "unreduced negated": typed(
        lambda a, w: -jnp.einsum("ab,bc->ac", a, w, out_sharding=P("x", unreduced={"y"})),
        (A, XY),
        (W1, Y),
    ),
    "unreduced squared": typed(
        lambda a, w: jnp.einsum("ab,bc->ac", a, w, out_sharding=P("x", unreduced={"y"})) ** 2,
        (A, XY),
        (W1, Y),
    ),
    "scattered": typed(
        lambda a, w: reshard(
            jnp.einsum("ab,bc->ac", a, w, out_sharding=P("x", unreduced={"y"})), XY
        ),
        (A, XY),
        (W1, Y),
    ),
}
FOUND |= {f"pending / {name}": program for name, program in PARTS.items()}
PROGRAMS = FOUND


def record():
    return outcomes(PROGRAMS)

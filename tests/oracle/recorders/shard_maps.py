"""Programs of `shard_map` and `pmap` over eight CPU devices, in JAX's words.

The record has, for each program: values, gradients, a tangent, a batch, types as they are printed;
for each error its type. Run as a script this prints the record, so that
`python -m perspex.as_jax` can run it.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

devices = jax.devices()
assert len(devices) == 8, devices
mesh = Mesh(np.array(devices).reshape(4, 2), ("x", "y"))
rng = np.random.default_rng(0)
A = rng.normal(size=(8, 4)).astype(np.float32)
W = rng.normal(size=(4,)).astype(np.float32)
ROTATE = [(i, (i + 1) % 4) for i in range(4)]


def square(a):
    """What a device has, as 4 x 2."""
    return a.reshape(4, 2)


def dot_scan(a, w):
    def step(carry, row):
        return carry * 0.5 + row @ w, carry

    return lax.scan(step, a[0, 0], a)


@jax.custom_jvp
def clipped(x):
    return jnp.clip(x, -1, 1)


clipped.defjvps(lambda t, y, x: jnp.where(abs(x) < 1, t, t * 0.1))


@jax.custom_vjp
def doubled(x):
    return x * 2


doubled.defvjp(lambda x: (x * 2, x), lambda x, g: (g * jnp.cos(x),))


# A name -> the function of one device, and how its results lie. The arguments are A and W.
BODIES = {
    "elementwise": (lambda a, w: jnp.sin(a) * w + 2.0, P("x")),
    "matmul": (lambda a, w: jnp.tanh(a @ w), P("x")),
    "outer": (lambda a, w: a[:, :, None] * w, P("x")),
    "psum": (lambda a, w: lax.psum(a * w, "x"), P()),
    "psum in the middle": (lambda a, w: jnp.sin(lax.psum(a @ w, "x")) * a[:, 0], P("x")),
    "psum of what all have": (lambda a, w: lax.psum(w * 2, "y") + a.sum() * 0, P("x")),
    "pmean": (lambda a, w: lax.pmean(a * w, "x"), P()),
    "all_gather": (lambda a, w: lax.all_gather(a * w, "x"), P("x")),
    "all_gather tiled": (lambda a, w: lax.all_gather(a * w, "x", axis=1, tiled=True), P("x")),
    "psum_scatter": (lambda a, w: lax.psum_scatter(square(a * w), "x"), P("x")),
    "psum_scatter tiled": (
        lambda a, w: lax.psum_scatter(a * w, "x", scatter_dimension=1, tiled=True),
        P("x"),
    ),
    "all_to_all tiled": (lambda a, w: lax.all_to_all(a * w, "x", 1, 0, tiled=True), P("x")),
    "ppermute": (lambda a, w: lax.ppermute(a * w, "x", ROTATE), P("x")),
    "ppermute to some": (lambda a, w: lax.ppermute(a * w, "x", [(0, 1), (2, 3)]), P("x")),
    "pshuffle": (lambda a, w: lax.pshuffle(a * w, "x", [3, 1, 2, 0]), P("x")),
    "axis_index": (lambda a, w: a * w * (1 + lax.axis_index("x")), P("x")),
    "axis_index of two": (lambda a, w: a * w * (1 + lax.axis_index(("x", "y"))), P(("x", "y"))),
    "axis_size": (lambda a, w: a * w * lax.axis_size("x"), P("x")),
    "scan": (lambda a, w: dot_scan(a, w)[1], P("x")),
    "scan of psum": (
        lambda a, w: lax.scan(lambda c, r: (lax.psum(c * r @ w, "x"), c), 1.0, a)[1],
        P(None),
    ),
    "fori_loop": (lambda a, w: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * w, a), P("x")),
    "cond of what all have": (
        lambda a, w: lax.cond(w[0] > 0, lambda a: a * w, lambda a: jnp.sin(a), a),
        P("x"),
    ),
    "remat": (lambda a, w: jax.checkpoint(lambda a: jnp.sin(lax.psum(a * w, "x")))(a), P()),
    "jit": (lambda a, w: jax.jit(lambda a: jnp.sin(lax.psum(a @ w, "x"))[:, None] + a)(a), P("x")),
    "vmap": (lambda a, w: jax.vmap(lambda r: lax.psum(r * w, "x"))(a), P()),
    "vmap with a name": (
        lambda a, w: jax.vmap(lambda r: lax.psum(r, "x") - lax.psum(r * w, ("i",)), axis_name="i")(
            a
        ),
        P("x"),
    ),
    "custom_jvp": (lambda a, w: clipped(a * w), P("x")),
    "grad inside": (lambda a, w: jax.grad(lambda a: jnp.sum(jnp.sin(a * w)))(a), P("x")),
    "grad inside of what all have": (
        lambda a, w: jax.grad(lambda w: lax.psum(jnp.sum(jnp.sin(a * w)), "x"))(w),
        P(),
    ),
    "several results": (
        lambda a, w: {"s": lax.psum(a @ w, "x"), "a": a * 2.0},
        {"s": P(), "a": P("x")},
    ),
    "constant": (lambda a, w: a * w + jnp.arange(4.0), P("x")),
    "sort": (lambda a, w: jnp.sort(a * w, axis=1), P("x")),
    "logsumexp": (
        lambda a, w: jnp.log(lax.psum(jnp.exp(a * w - lax.stop_gradient(a.max())).sum(), "x")),
        P(),
    ),
    "cut twice": (lambda a, w: lax.psum(a, "y") * w[0], P("x")),
}


def softmax(a, w):
    """Of all rows along "x"."""
    z = a @ w
    e = jnp.exp(z - lax.stop_gradient(lax.pmax(lax.stop_gradient(z).max(), "x")))
    return e / lax.psum(e.sum(), "x")


def normalized(a, w):
    mean = lax.pmean(a.mean(0), "x")
    variance = lax.pmean(((a - mean) ** 2).mean(0), "x")
    return (a - mean) / jnp.sqrt(variance + 1e-3) * w


def ring(a, w):
    """Sums of products of all blocks with this one, which go round once."""

    def turn(i, state):
        total, block = state
        return total + (block * w) @ a.T, lax.ppermute(block, "x", ROTATE)

    zero = jnp.zeros((2, 2)) + a[0, 0] * 0
    return lax.fori_loop(0, 4, turn, (zero, a))[0]


def pipeline(a, w):
    """Four stages, each of which waits for the one before."""
    state = a * 0
    for step in range(4):
        here = jnp.where(lax.axis_index("x") == step, a, state)
        state = lax.ppermute(jnp.tanh(here * w), "x", ROTATE)
    return state


def halo(a, w):
    """Differences with the neighbours on both sides."""
    left = lax.ppermute(a[-1:], "x", ROTATE)
    right = lax.ppermute(a[:1], "x", [(j, i) for i, j in ROTATE])
    padded = jnp.concatenate([left, a, right])
    return (padded[:-2] - 2 * padded[1:-1] + padded[2:]) * w


# Programs with values and gradients alone; with them each collective goes forward, backward, and
# along a batch.
PROGRAMS = {
    "psum of a tree": (
        lambda a, w: jax.tree.leaves(lax.psum({"a": a * w, "b": jnp.sin(a)}, "x"))[1],
        P(),
    ),
    "psum of two axes": (lambda a, w: lax.psum(a * w, ("x", "y")), P()),
    "psum of a psum": (lambda a, w: lax.psum(lax.psum(a * w, "x") * a[0, 0], "x"), P()),
    "psum of a constant": (lambda a, w: a * w * lax.psum(1, "x"), P("x")),
    "pmean of two axes": (lambda a, w: lax.pmean(a * w, ("x", "y")), P()),
    "pmean of a square": (lambda a, w: lax.pmean(a * w, "x") ** 2, P()),
    "psum_scatter of two axes": (
        lambda a, w: lax.psum_scatter(jnp.tile(a * w, (8, 1)), ("x", "y"), tiled=True),
        P(("x", "y")),
    ),
    "all_gather of two axes": (
        lambda a, w: lax.all_gather(a * w, ("x", "y"), tiled=True),
        P(("x", "y")),
    ),
    "all_gather along the last": (lambda a, w: lax.all_gather(a * w, "x", axis=-1), P("x")),
    "all_gather and a product": (
        lambda a, w: lax.all_gather(a * w, "x", tiled=True).T @ lax.all_gather(a, "x", tiled=True),
        P("x"),
    ),
    "all_to_all": (
        lambda a, w: lax.all_to_all((a * w).reshape(4, 2), "x", 0, 1),
        P("x"),
    ),
    "all_to_all back and forth": (
        lambda a, w: lax.all_to_all(
            jnp.sin(lax.all_to_all(a * w, "x", 1, 0, tiled=True)), "x", 0, 1, tiled=True
        ),
        P("x"),
    ),
    "ppermute reversed": (
        lambda a, w: lax.ppermute(a * w, "x", [(i, 3 - i) for i in range(4)]),
        P("x"),
    ),
    "ppermute of a tree": (
        lambda a, w: sum(jax.tree.leaves(lax.ppermute((a, a * w), "x", ROTATE))),
        P("x"),
    ),
    "ppermute twice": (
        lambda a, w: lax.ppermute(jnp.sin(lax.ppermute(a * w, "x", ROTATE)), "x", ROTATE),
        P("x"),
    ),
    "ppermute of two axes": (
        lambda a, w: lax.ppermute(a * w, ("x", "y"), [(i, (i + 3) % 8) for i in range(8)]),
        P(("x", "y")),
    ),
    "pmax of a stopped gradient": (
        lambda a, w: a * w - lax.pmax(lax.stop_gradient(a), "x"),
        P("x"),
    ),
    "pmin of a stopped gradient": (
        lambda a, w: a * w - lax.pmin(lax.stop_gradient(a), "x"),
        P("x"),
    ),
    "softmax": (softmax, P("x")),
    "normalized": (normalized, P("x")),
    "ring": (ring, P("x")),
    "pipeline": (pipeline, P("x")),
    "halo": (halo, P("x")),
    "cross entropy": (
        lambda a, w: lax.pmean(-jnp.log(softmax(a, w)).mean(), "x"),
        P(),
    ),
    "index in a table": (
        lambda a, w: a * w[lax.axis_index("x")],
        P("x"),
    ),
    "dynamic slice by index": (
        lambda a, w: a * lax.dynamic_slice(w, (lax.axis_index("x"),), (1,)),
        P("x"),
    ),
    "scan with a collective": (
        lambda a, w: lax.scan(
            lambda c, r: (lax.pmean(jnp.sin(c + r * w), "x"), None), jnp.zeros(4), a
        )[0],
        P(),
    ),
    "scan with a permutation": (
        lambda a, w: lax.scan(
            lambda c, r: (lax.ppermute(c * 0.5 + r * w, "x", ROTATE), c), a[0], a
        )[1],
        P("x"),
    ),
    "while with a collective": (
        lambda a, w: lax.fori_loop(0, 3, lambda i, c: lax.psum(c * a[0], "x") * 0.1, w),
        P(),
    ),
    "cond of a collective": (
        lambda a, w: lax.cond(
            w.sum() > 0, lambda a: lax.psum(a, "x"), lambda a: lax.psum(a * 2, "x"), a * w
        ),
        P(),
    ),
    "switch": (
        lambda a, w: lax.switch(
            jnp.int32(1), [lambda a: a, lambda a: jnp.sin(a), lambda a: a * 2], a * w
        ),
        P("x"),
    ),
    "checkpoint of a loop": (
        lambda a, w: jax.checkpoint(
            lambda a: lax.scan(lambda c, r: (jnp.sin(c + r), c), jnp.zeros(4) + a[0] * 0, a)[1]
        )(a * w),
        P("x"),
    ),
    "custom_vjp": (lambda a, w: doubled(a * w), P("x")),
    "vmap of a gather": (
        lambda a, w: jax.vmap(lambda r: lax.all_gather(r * w, "x").sum(0))(a),
        P("x"),
    ),
    "vmap of a permutation": (
        lambda a, w: jax.vmap(lambda r: lax.ppermute(r * w, "x", ROTATE), 1, 1)(
            jnp.broadcast_to(a[:, None], (2, 3, 4))
        ),
        P("x"),
    ),
    "vmap of a scatter": (
        lambda a, w: jax.vmap(lambda r: lax.psum_scatter(r * w, "x", tiled=True))(a),
        P("x"),
    ),
    "vmap of an exchange": (
        lambda a, w: jax.vmap(lambda r: lax.all_to_all(r * w, "x", 0, 0, tiled=True))(a),
        P("x"),
    ),
    "vmap of pmean": (lambda a, w: jax.vmap(lambda r: lax.pmean(r * w, "x"))(a), P()),
    "vmap of an index": (
        lambda a, w: jax.vmap(lambda r: r * lax.axis_index("x"))(a * w),
        P("x"),
    ),
    "jacobian": (lambda a, w: jax.jacfwd(lambda r: jnp.sin(r * w))(a[0])[None], P("x")),
    "gradient of a mean": (
        lambda a, w: jax.grad(lambda a: lax.pmean((a * w).sum() ** 2, "x"))(a),
        P("x"),
    ),
    "value and gradient": (
        lambda a, w: jax.value_and_grad(lambda a: jnp.sin(a * w).sum())(a)[1],
        P("x"),
    ),
    "jvp of a sum": (
        lambda a, w: jax.jvp(lambda a: lax.psum(jnp.sin(a) * w, "x"), (a,), (a * 0.5,))[1],
        P(),
    ),
    "linearize": (
        lambda a, w: jax.linearize(lambda a: lax.psum(a**2, "x"), a)[1](a * w),
        P(),
    ),
    "vjp of a gather": (
        lambda a, w: jax.vjp(lambda a: lax.all_gather(a, "x"), a)[1](lax.all_gather(a * w, "x"))[0],
        P("x"),
    ),
    "convolution": (
        lambda a, w: jnp.stack([jnp.convolve(r, w, mode="same") for r in a]),
        P("x"),
    ),
    "einsum": (lambda a, w: jnp.einsum("ij,j,kj->ik", a, w, a), P("x")),
    "cumulative sum of all": (
        lambda a, w: (
            jnp.cumsum(a * w, 0)
            + jnp.where(
                jnp.arange(4)[:, None, None] < lax.axis_index("x"),
                lax.all_gather((a * w).sum(0, keepdims=True), "x"),
                0.0,
            ).sum(0)
        ),
        P("x"),
    ),
    "triangular solve": (
        lambda a, w: jax.scipy.linalg.solve_triangular(
            jnp.tril(a[:, :2]) + 3 * jnp.eye(2), (a * w)[:, 2:], lower=True
        ),
        P("x"),
    ),
    "take": (lambda a, w: jnp.take(a * w, jnp.array([3, 0, 0]), axis=1), P("x")),
    "scatter": (lambda a, w: (a * w).at[:, 1].add(w[0] * a[:, 0]), P("x")),
    "where": (lambda a, w: jnp.where(a > 0, a * w, jnp.exp(a)), P("x")),
    "maximum": (lambda a, w: jnp.maximum(a, w), P("x")),
    "bfloat16": (
        lambda a, w: lax.psum((a * w).astype(jnp.bfloat16), "x").astype(jnp.float32),
        P(),
    ),
    "complex": (lambda a, w: jnp.abs(lax.psum(a * w + 1j * a, "x")), P()),
    "fft": (lambda a, w: jnp.fft.rfft(a * w).real, P("x")),
    "pcast": (lambda a, w: lax.pcast(w, "x", to="varying") * a, P("x")),
}
# What fails under real jax, with the type of its error: nothing can be compared.
# How the first argument is cut, where it is not by "x".
CUTS = {"axis_index of two": P(("x", "y")), "cut twice": P("x", "y")}
CUTS |= {"psum of two axes": P(("x", "y")), "pmean of two axes": P(("x", "y"))}
CUTS |= {"psum_scatter of two axes": P(("x", "y")), "all_gather of two axes": P(("x", "y"))}
CUTS |= {"ppermute of two axes": P(("x", "y"))}

KEPT = {
    # Along axes that are not known to hold copies, nothing may be said without the types.
    "scan of psum": (True,),
    # Real jax has an assertion that fails.
    "vmap with a name": (False,),
}


def weights(shape):
    return np.cos(np.arange(int(np.prod(shape)), dtype=np.float32)).reshape(shape)


def digits(y):
    """The shape of an array and its numbers, with as many digits as are compared."""
    return [list(y.shape), [float(f"{v:.6g}") for v in np.asarray(y).ravel()]]


def described(name, check):
    import sys

    print(name, check, file=sys.stderr, flush=True)
    body, out = BODIES[name]
    f = jax.shard_map(
        body, mesh=mesh, in_specs=(CUTS.get(name, P("x")), P()), out_specs=out, check_vma=check
    )

    def loss(a, w):
        return sum((y * weights(y.shape)).sum() for y in jax.tree.leaves(f(a, w)))

    def second(a, w):
        found = jax.grad(loss, (0, 1))(a, w)
        return (found[0] ** 2).sum() + (found[1] ** 2).sum()

    @jax.jit
    def everything(a, w):
        return {
            "values": f(a, w),
            "gradients": jax.grad(loss, (0, 1))(a, w),
            "second": jax.grad(second, 1)(a, w),
            "tangent": jax.jvp(f, (a, w), (a * 0.5, w * 0.1))[1],
            "batch": jax.vmap(f, in_axes=(None, 0))(a, jnp.stack([w, w * 2])),
            "batch of gradients": jax.vmap(jax.grad(loss, 1), in_axes=(1, None))(
                jnp.stack([a, a + 1], 1), w
            ),
        }

    found = {key: jax.tree.leaves(value) for key, value in everything(A, W).items()}
    return {key: [digits(y) for y in value] for key, value in found.items()}


def computed(name):
    """Values, gradients and a batch, where real jax has them."""
    body, out = PROGRAMS[name]
    f = jax.shard_map(body, mesh=mesh, in_specs=(CUTS.get(name, P("x")), P()), out_specs=out)
    both = jnp.stack([W, W * 2])
    asked = {
        "values": lambda: f(A, W),
        "gradients": lambda: jax.grad(
            lambda a, w: (f(a, w) * weights(f(a, w).shape)).sum(), (0, 1)
        )(A, W),
        "batch": lambda: jax.vmap(f, in_axes=(None, 0))(A, both),
    }
    return {key: outcome(program) for key, program in asked.items()}


def outcome(program):
    try:
        return [digits(y) for y in jax.tree.leaves(jax.jit(program)())]
    except Exception as error:
        return type(error).__name__


def types(f, *specs):
    seen = []

    def body(*args):
        seen.extend(str(jax.typeof(x)) for x in f(*args))
        return args[0]

    jax.make_jaxpr(jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=specs[0]))(A, W)
    return seen


TYPES = {
    "arguments": lambda: types(lambda a, w: (a, w), P("x"), P()),
    "two axes": lambda: types(lambda a, w: (a,), P(("x", "y")), P()),
    "mixed": lambda: types(lambda a, w: (a * w.sum(), w * 2, a + 1.0), P("x"), P("y")),
    "psum": lambda: types(lambda a, w: (lax.psum(a, "x"), lax.pmax(a, "x")), P("x"), P()),
    "moved": lambda: types(
        lambda a, w: (
            lax.all_gather(a, "x"),
            lax.ppermute(a, "x", ROTATE),
            lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True),
        ),
        P("x"),
        P(),
    ),
    "index": lambda: types(
        lambda a, w: (lax.axis_index("x"), lax.axis_index(("x", "y"))), P("x"), P()
    ),
    "pcast": lambda: types(lambda a, w: (lax.pcast(w, "y", to="varying"),), P("x"), P()),
    "loop": lambda: types(
        lambda a, w: lax.fori_loop(0, 2, lambda i, c: (c[0] * 2, c[1] + a), (w, a)), P("x"), P()
    ),
}


BY_X = P("x")


def mapped(f, in_specs=BY_X, out_specs=BY_X, **options):
    return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


ERRORS = {
    "replication": lambda: mapped(lambda a: a, out_specs=P())(A),
    "uneven": lambda: mapped(lambda a: a)(A[:6]),
    "unknown axis in specs": lambda: mapped(lambda a: a, P("z"))(A),
    "too many specs": lambda: mapped(lambda a: a, (P("x"), P("x")))(A),
    "no mesh": lambda: jax.shard_map(lambda a: a, in_specs=P("x"), out_specs=P("x"))(A),
    "long spec of a result": lambda: mapped(lambda a: a.sum())(A),
    "other containers": lambda: mapped(lambda a: (a, a), out_specs=(P("x"),))(A),
    "spec that is not mapped": lambda: mapped(lambda a: a, axis_names={"y"})(A),
    "no function": lambda: mapped(3)(A),
}

PMAPS = {
    "plain": lambda: jax.pmap(lambda x: x * 2)(A[:4]),
    "two devices": lambda: jax.pmap(lambda x: x * 2)(A[:2]),
    "psum": lambda: jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(A),
    "in_axes": lambda: jax.pmap(lambda x, y: x * y, in_axes=(1, None), out_axes=1)(A, 3.0),
    "out_axes None": lambda: jax.pmap(lambda x: lax.pmean(x, "i"), "i", out_axes=None)(A),
    "static": lambda: jax.pmap(lambda x, n: x**n, static_broadcasted_argnums=1)(A, 3),
    "by name": lambda: jax.pmap(lambda x, y: x + y)(A, y=A),
    "tree": lambda: jax.pmap(lambda d: {"s": d["a"] + 1, "k": 1.0})({"a": A}),
    "devices": lambda: jax.pmap(lambda x: x * 2, devices=devices[2:])(A[:2]),
    "gradient": lambda: jax.grad(
        lambda a: jax.pmap(lambda x: lax.psum(jnp.sin(x), "i"), axis_name="i")(a).sum()
    )(A),
    "vmap": lambda: jax.vmap(jax.pmap(lambda x: x * 2))(np.stack([A, A])),
    "jit": lambda: jax.jit(jax.pmap(lambda x: x * 2))(A),
    "chain": lambda: jax.pmap(lambda x: x + 1)(jax.pmap(lambda x: x * 2)(A)),
    "index": lambda: jax.pmap(lambda x: lax.axis_index("i"), axis_name="i")(A),
    "random": lambda: jax.pmap(lambda k: jax.random.normal(k, (2,)))(
        jax.random.split(jax.random.key(0), 4)
    ),
}
PMAP_ERRORS = {
    "too few devices": lambda: jax.pmap(lambda x: x)(np.ones((9, 2))),
    "nothing mapped": lambda: jax.pmap(lambda x: x, in_axes=None)(A),
    "lengths": lambda: jax.pmap(lambda x, y: x)(A, A[:3]),
    "number": lambda: jax.pmap(lambda x: x)(3.0),
    "in_axes": lambda: jax.pmap(lambda x: x, in_axes=(0, 0))(A),
    "nested": lambda: jax.pmap(jax.pmap(lambda x: x))(A.reshape(4, 2, 4)),
}


def failure(program):
    try:
        program()
    except Exception as error:
        kinds = (ValueError, TypeError, RuntimeError)
        return next(kind.__name__ for kind in kinds if isinstance(error, kind))
    return None


def placed(out):
    return [
        {
            "axes": [list(p) if isinstance(p, tuple) else p for p in y.sharding.spec],
            "values": digits(y),
        }
        for y in jax.tree.leaves(out)
    ]


def record():
    found = {
        f"bodies / {name} / {check}": described(name, check)
        for name in BODIES
        for check in KEPT.get(name, (True, False))
    }
    found |= {f"programs / {name}": computed(name) for name in PROGRAMS}
    found |= {f"types / {name}": program() for name, program in TYPES.items()}
    found |= {f"errors / {name}": failure(program) for name, program in ERRORS.items()}
    found |= {f"pmaps / {name}": placed(program()) for name, program in PMAPS.items()}
    return found | {f"pmap errors / {name}": failure(p) for name, p in PMAP_ERRORS.items()}


if __name__ == "__main__":
    print(json.dumps(record()))

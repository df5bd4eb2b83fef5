"""What programs over eight devices share: meshes, arrays, a network, and how results are noted.

It imports `jax`, so only recorders import it.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

explicit = jax.make_mesh((4, 2), ("x", "y"))
auto = jax.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("i",), (AxisType.Auto,))
rng = np.random.default_rng(0)


def numbers(*shape):
    return rng.normal(size=shape).astype(np.float32)


A, B, C, T = numbers(8, 4), numbers(8, 8), numbers(16, 8), numbers(8, 4, 4)
W1, W2, W3 = numbers(4, 8), numbers(8, 4), numbers(8, 8)
V = numbers(8)
MANY, STAGES = numbers(16, 4), numbers(4, 4, 4) / 2
MICRO, QKV = [numbers(3, 2, 4), numbers(3, 2, 4)], numbers(3, 4, 2, 2)
MATRICES = [numbers(2, 4, 8), numbers(2, 4, 8)]
I = np.array([3, 1, 0, 7, 2, 6, 5, 4], np.int32)  # noqa: E741
LAYERS = numbers(3, 4, 4) / 2
SPD = T @ T.transpose(0, 2, 1) + 4 * np.eye(4, dtype=np.float32)
X, Y, XY, ALL = P("x"), P("y"), P("x", "y"), P(("x", "y"))
ROTATE = [(i, (i + 1) % 4) for i in range(4)]
RING = [(i, (i + 1) % 8) for i in range(8)]
GROUPS = [[0, 1], [2, 3]]


def on(f, in_specs, out_specs, mesh=auto, **options):
    return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


def weighted(y):
    return (y * np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape)).sum()


def total(tree):
    """A number that depends on all numbers of a tree."""
    return sum(weighted(y) for y in jax.tree.leaves(tree))


def under(mesh, f):
    with jax.set_mesh(mesh):
        return f()


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


# ---- What types say -----------------------------------------------------------------------------


def typed(f, *args):
    """The types inside and the result, when the function is traced in one piece."""

    def run():
        with jax.set_mesh(explicit):
            given = [jax.sharding.reshard(jnp.asarray(x), spec) for x, spec in args]
            seen = []

            def traced(*xs):
                out = f(*xs)
                seen[:] = [str(jax.typeof(y)) for y in jax.tree.leaves(out)]
                return out

            return [jax.jit(traced)(*given), seen]

    return run


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
            given = [jax.sharding.reshard(jnp.asarray(x), spec) for x, spec in args]
            return [jax.jit(mapped)(*given), seen]

    return run


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


def outcomes(programs):
    found = {}
    for name, program in programs.items():
        print(name, file=sys.stderr, flush=True)
        found[name] = outcome(program)
    return found

"""Programs over eight CPU devices, in JAX's words.

The record has, for each program, how its results lie and their numbers; for each error its type.
Run as a script this prints the record, so that `python -m perspex.as_jax` can run it.
"""

import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback, mesh_utils
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

devices = jax.devices()
assert len(devices) == 8, devices
mesh = Mesh(np.array(devices).reshape(2, 4), ("x", "y"))
line = Mesh(mesh_utils.create_device_mesh((8,), devices), "z")
cube = Mesh(np.array(devices).reshape(2, 2, 2), ("a", "b", "c"))
half = Mesh(np.array(devices[:4]), ("z",))


def on(*spec, mesh=mesh):
    return NamedSharding(mesh, P(*spec))


numbers = np.arange(32, dtype=np.float32).reshape(8, 4)
rng = np.random.default_rng(0)
noise = rng.normal(size=(8, 4)).astype(np.float32)
x = jax.device_put(numbers, on("x", "y"))
rows = jax.device_put(noise, on("x"))
columns = jax.device_put(noise, on(None, "y"))
copies = jax.device_put(noise, on())
vector = jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(line, P("z")))
keys = jax.device_put(jax.random.split(jax.random.key(7), 8), on("x"))


def loss(w, v):
    return jnp.mean((jnp.tanh(v @ w) - 1) ** 2)


def in_context():
    with jax.set_mesh(mesh):
        return jax.jit(lambda a: lax.with_sharding_constraint(a + 1, P("y")), in_shardings=P("x"))(
            numbers
        )


def printed():
    return jax.jit(lambda a: (jax.debug.callback(lambda v: None, a.sum()), a * 2)[1])(x)


def moments(a):
    mean = a.mean(axis=0, keepdims=True)
    return {"mean": mean, "normalised": (a - mean) / (a.std(axis=0, keepdims=True) + 1)}


def constrained_on_two(is_used):
    def f(a):
        b = lax.with_sharding_constraint(a * 2, NamedSharding(half, P("z")))
        a = lax.with_sharding_constraint(a, NamedSharding(line, P("z")))
        return a + b if is_used else a

    return f


PROGRAMS = {
    "dead code on another mesh": lambda: jax.jit(constrained_on_two(False))(numbers),
    "put": lambda: [x, rows, columns, copies, vector],
    "elementwise": lambda: [x + 1, jnp.sin(rows) * columns, x * numbers, -copies],
    "products": lambda: [x @ x.T, rows @ columns.T, jnp.einsum("ij,kj->ik", x, rows)],
    "sums": lambda: [x.sum(), x.sum(0), x.sum(1), rows.max(0), columns.argmax(1)],
    "shapes": lambda: [x.T, x.reshape(4, 2, 4), x.reshape(-1), x[None], jnp.squeeze(x[:1])],
    "indexing": lambda: [x[0], x[2:5, 1], x[jnp.array([3, 1])], x.at[0].set(1.0), x[::-1]],
    "sorting": lambda: [jnp.sort(rows, axis=0), jnp.cumsum(columns, axis=1)],
    "likewise": lambda: [
        jnp.zeros_like(rows),
        jnp.full_like(x, 2, dtype=int),
        lax.full_like(x, 1.5),
    ],
    "likewise on one": lambda: jnp.zeros_like(jax.device_put(noise, devices[3]), shape=(3,)),
    "stacking": lambda: [jnp.stack([x, x]), jnp.concatenate([x, x]), jnp.where(x > 4, x, 0)],
    "jit of a tree": lambda: jax.jit(moments)(x),
    "grad": lambda: jax.jit(jax.grad(loss))(np.ones((4, 3), np.float32), rows),
    "grad, eager": lambda: jax.grad(lambda a: jnp.sum(a**3))(x),
    "jit of vmap of grad": lambda: jax.jit(jax.vmap(jax.grad(lambda r: jnp.sum(r**2))))(x),
    "scan": lambda: jax.jit(lambda a: lax.scan(lambda c, r: (c + r, c * r), a[0], a))(x),
    "scan of grad": lambda: jax.jit(
        lambda w: lax.fori_loop(0, 3, lambda i, v: v - 0.1 * jax.grad(loss)(v, rows), w)
    )(np.ones((4, 3), np.float32)),
    "cond": lambda: jax.jit(lambda a: lax.cond(a.sum() > 0, jnp.sin, jnp.cos, a))(x),
    "nested jit": lambda: jax.jit(lambda a: jax.jit(jnp.sin)(a) + jax.jit(jnp.sin)(a.T).T)(x),
    "constraint": lambda: jax.jit(lambda a: lax.with_sharding_constraint(a * 2, on("y")))(numbers),
    "constraint on sharded": lambda: jax.jit(
        lambda a: lax.with_sharding_constraint(a * 2, on(None, "x")) + 1
    )(x),
    "constraint of a tree": lambda: jax.jit(
        lambda t: lax.with_sharding_constraint(t, {"a": on("x"), "b": on("y")})
    )({"a": numbers, "b": numbers}),
    "constraint, eager": lambda: lax.with_sharding_constraint(x, on("y", "x")),
    "vmap of constraint": lambda: jax.jit(
        jax.vmap(lambda r: lax.with_sharding_constraint(r * 2, on("y")))
    )(rows),
    "grad of constraint": lambda: jax.jit(
        jax.grad(lambda a: jnp.sum(lax.with_sharding_constraint(a, on("y")) ** 2))
    )(x),
    "vmap of a constraint to copies": lambda: jax.jit(
        jax.vmap(lambda r: lax.with_sharding_constraint(r * 2, on()))
    )(rows),
    "vmap of vmap of constraint": lambda: jax.jit(
        jax.vmap(jax.vmap(lambda r: lax.with_sharding_constraint(r * 2, on("y"))))
    )(np.ones((2, 8, 4), np.float32)),
    "places of elements": lambda: [
        *jnp.nonzero(x > 30),
        jnp.argwhere(x > 30),
        *jnp.nonzero(jax.device_put(noise, devices[3]) > 0),
    ],
    "arrays in a list": lambda: [
        jnp.array([x[0], x[1]]),
        jnp.array([jax.device_put(noise, devices[3])[0, 0], 1.0]),
    ],
    "in_shardings in a list": lambda: jax.jit(lambda a, b: a + b, in_shardings=[on("x"), on("y")])(
        numbers, noise
    ),
    "constraint in a loop": lambda: jax.jit(
        lambda a: lax.fori_loop(
            0, 3, lambda i, c: lax.with_sharding_constraint(c * 2, on(None, "y")), a
        )
    )(numbers),
    "in_shardings": lambda: jax.jit(lambda a, b: a @ b, in_shardings=(on("x", "y"), None))(
        numbers, np.ones((4, 4), np.float32)
    ),
    "in_shardings of a tree": lambda: jax.jit(
        lambda t, s: t["w"] * s, in_shardings=({"w": on("y")}, on())
    )({"w": numbers}, np.float32(2)),
    "in_shardings beside static": lambda: jax.jit(
        lambda n, a: a * n, static_argnums=0, in_shardings=on("x")
    )(2, numbers),
    "out_shardings": lambda: jax.jit(lambda a: (a + 1, a.sum()), out_shardings=(on("y"), on()))(x),
    "out_shardings alone": lambda: jax.jit(jnp.sin, out_shardings=on("x"))(numbers),
    "inner out_shardings": lambda: jax.jit(
        lambda a: jax.jit(lambda b: b * 2, out_shardings=on("y"))(a) + 0
    )(numbers),
    "context": in_context,
    "donated": lambda: jax.jit(lambda a: a + 1, donate_argnums=0)(jax.device_put(noise, on("x"))),
    "resharded": lambda: [
        jax.device_put(x, on("y", "x")),
        jax.device_put(rows, on(("x", "y"))),
        jax.device_put(x, on(("y", "x"))),
        jax.device_put(x, NamedSharding(cube, P("c", ("b", "a")))),
        jax.device_put(x, NamedSharding(half, P("z"))),
        jax.device_put(copies, NamedSharding(line, P("z"))),
    ],
    "to one device": lambda: [jax.device_put(x, devices[3]), jax.device_put(copies, devices[5])],
    "from one device": lambda: jax.device_put(jax.device_put(noise, devices[2]), on("x")),
    "put of a tree": lambda: jax.device_put(
        {"a": numbers, "b": noise}, {"a": on("x"), "b": on("y")}
    ),
    "keys": lambda: [
        jax.random.key_data(keys),
        jax.vmap(partial(jax.random.normal, shape=(3,)))(keys),
    ],
    "created": lambda: [jnp.zeros((8, 4), device=on("x")), jnp.ones_like(x)],
    "from a callback": lambda: jax.make_array_from_callback(
        (8, 4), on("x", "y"), lambda i: noise[i]
    ),
    "from parts": lambda: jax.make_array_from_single_device_arrays(
        (8, 4), on("x", "y"), [shard.data for shard in x.addressable_shards][::-1]
    ),
    "ahead of time": lambda: (
        jax.jit(lambda a: a * 2)
        .lower(jax.ShapeDtypeStruct((8, 4), np.float32, sharding=on("y")))
        .compile()(jax.device_put(numbers, on("y")))
    ),
    "two meshes": lambda: jax.jit(lambda a, b: (a * 1, b * 1, jnp.sin(a) @ b.T))(
        x, jax.device_put(noise, NamedSharding(cube, P("a", "b")))
    ),
    "uncommitted beside": lambda: x * jnp.ones((8, 4)),
    "linalg": lambda: jnp.linalg.cholesky(x @ x.T + 40 * jnp.eye(8)),
    "three axes": lambda: jax.jit(lambda a: a.reshape(2, 4, 2, 2).transpose(2, 0, 1, 3) + 1)(
        jax.device_put(numbers, NamedSharding(cube, P("a", ("c", "b"))))
    ),
    "printed": printed,
    "ordered io": lambda: jax.jit(
        lambda a: io_callback(lambda v: np.asarray(v) * 2, a, a, ordered=True) + 1
    )(x),
    "pure callback": lambda: jax.jit(
        lambda a: jax.pure_callback(lambda v: np.asarray(v) * 2, a, a) + 1
    )(x),
}

ERRORS = {
    "two meshes": lambda: jax.jit(constrained_on_two(True))(numbers),
    "no multiple": lambda: jax.device_put(np.ones((3, 4)), on("x")),
    "too many axes": lambda: jax.device_put(np.ones(4), on("x", "y")),
    "unknown axis": lambda: on("q"),
    "names and devices": lambda: Mesh(np.array(devices).reshape(2, 4), ("x",)),
    "other device": lambda: x + jax.device_put(noise, devices[1]),
    "other order": lambda: (
        x + jax.device_put(noise, NamedSharding(Mesh(np.array(devices[::-1]), "z"), P("z")))
    ),
    "other in_shardings": lambda: jax.jit(jnp.sin, in_shardings=on("y"))(x),
    "spec without mesh": lambda: jax.device_put(noise, P("x")),
    "dlpack": lambda: np.from_dlpack(x),
    "too few devices": lambda: jax.make_mesh((3, 4), ("x", "y")),
    "part of another shape": lambda: jax.make_array_from_callback(
        (8, 4), on("x"), lambda i: np.ones(3, np.float32)
    ),
    "constraint elsewhere": lambda: jax.jit(lambda a: lax.with_sharding_constraint(a, on("x")))(
        jax.device_put(noise, devices[1])
    ),
}


def described(array):
    places = array.sharding.devices_indices_map(array.shape)
    return {
        "places": {str(d.id): [[s.start, s.stop] for s in i] for d, i in places.items()},
        "axes": axes(array),
        "parts": [
            [s.device.id, s.replica_id, list(s.data.shape)] for s in array.addressable_shards
        ],
        "values": np.asarray(array).tolist(),
    }


def axes(array):
    """The axes of the mesh that cut each axis of an array; `None` for one on a single device."""
    if not isinstance(array.sharding, NamedSharding):
        return None
    given = [() if p is None else (p,) if isinstance(p, str) else p for p in array.sharding.spec]
    return [list(names) for names in given] + [[]] * (array.ndim - len(given))


def failure(program):
    try:
        program()
    except Exception as error:
        kinds = (ValueError, TypeError, BufferError, RuntimeError)
        return next(kind.__name__ for kind in kinds if isinstance(error, kind))
    return None


def record():
    assert isinstance(jax.device_put(1.0, devices[1]).sharding, SingleDeviceSharding)
    arrays = {name: jax.tree.leaves(program()) for name, program in PROGRAMS.items()}
    found = {f"programs / {name}": list(map(described, some)) for name, some in arrays.items()}
    return found | {f"errors / {name}": failure(program) for name, program in ERRORS.items()}


if __name__ == "__main__":
    print(json.dumps(record()))

"""What two processes with two CPU devices each see and compute together, in JAX's words.

`record` starts the two, each of which runs this file as a script, and returns what they print:
`0 / NAME` and `1 / NAME`. Under Perspex they run it by `python -m perspex.as_jax`.
"""

import json
import os
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import mesh_utils
from jax.experimental import multihost_utils as multihost
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def described(x):
    """Shape, addressability, and the parts that are here."""
    return {
        "shape": list(x.shape),
        "dtype": str(x.dtype),
        "here": [x.is_fully_addressable, x.is_fully_replicated],
        "parts": [
            [s.device.id, s.replica_id, np.asarray(s.data).tolist()] for s in x.addressable_shards
        ],
    }


def failure(program):
    try:
        program()
    except Exception as error:
        kinds = (AssertionError, ValueError, TypeError, RuntimeError)
        return next(kind.__name__ for kind in kinds if isinstance(error, kind))
    return None


def programs(me):
    devices = jax.devices()
    line = Mesh(np.array(devices), "x")
    grid = Mesh(np.array(devices).reshape(2, 2), ("p", "d"))

    def on(*spec, mesh=line):
        return NamedSharding(mesh, P(*spec))

    numbers = np.arange(16, dtype=np.float32).reshape(8, 2)
    x = jax.device_put(numbers, on("x"))
    keys = jax.jit(lambda k: jax.random.split(k, 4), out_shardings=on("x"))(jax.random.key(0))

    def total(part):
        return lax.psum(part.sum(), "x")

    def neighbours(part):
        return lax.ppermute(part, "x", [(i, (i + 1) % 4) for i in range(4)])

    def loss(w, v):
        return jnp.mean(jnp.tanh(v @ w) ** 2)

    def local_data(sharding, data, shape=None):
        return described(jax.make_array_from_process_local_data(sharding, data, shape))

    def round_trip(spec):
        host = np.arange(8).reshape(4, 2) + 100 * me
        array = multihost.host_local_array_to_global_array(host, grid, spec)
        back = multihost.global_array_to_host_local_array(array, grid, spec)
        return [described(array), np.asarray(back).tolist(), back.is_fully_addressable]

    hybrid = mesh_utils.create_hybrid_device_mesh
    mine = np.float32(me + 1)
    return {
        "process": lambda: [jax.process_index(), jax.process_count(), jax.process_indices()],
        "devices": lambda: [[d.id, d.process_index] for d in devices],
        "local devices": lambda: [d.id for d in jax.local_devices()],
        "devices of 1": lambda: [d.id for d in jax.local_devices(process_index=1)],
        "counts": lambda: [jax.device_count(), jax.local_device_count()],
        "initialized": jax.distributed.is_initialized,
        "meshes": lambda: [line.is_multi_process, line.local_mesh.size, grid.local_mesh.shape["d"]],
        "put": lambda: described(x),
        "put copies": lambda: described(jax.device_put(numbers[0], on())),
        "printed": lambda: [repr(x), str(x), repr(jax.device_put(numbers[0], on()))],
        "printed with numbers": lambda: repr(jax.jit(jnp.sum)(x)),
        "global shards": lambda: sorted(
            [s.device.id, s.replica_id, s.data is None] for s in x.global_shards
        ),
        "sum": lambda: described(jax.jit(jnp.sum)(x)),
        "eager": lambda: described(x * 2 + 1),
        "turned": lambda: described(jax.jit(lambda a: a[::-1], out_shardings=on("x"))(x)),
        "resharded": lambda: described(jax.device_put(x, on(None, "d", mesh=grid))),
        "with NumPy": lambda: described(jax.jit(lambda a, b: a + b)(x, numbers)),
        "psum": lambda: described(
            jax.jit(jax.shard_map(total, mesh=line, in_specs=P("x"), out_specs=P()))(x)
        ),
        "ppermute": lambda: described(
            jax.jit(jax.shard_map(neighbours, mesh=line, in_specs=P("x"), out_specs=P("x")))(x)
        ),
        "gradient": lambda: np.round(
            np.asarray(jax.jit(jax.grad(loss), out_shardings=on())(jnp.ones(2), x)), 5
        ).tolist(),
        "scan": lambda: described(
            jax.jit(lambda a: lax.scan(lambda c, r: (c + r.sum(), c), 0.0, a)[0])(x)
        ),
        "vmap": lambda: described(
            jax.jit(jax.vmap(lambda r: r / r.sum()), out_shardings=on("x"))(x)
        ),
        "random": lambda: described(
            jax.jit(lambda k: jax.random.bits(k, (4,)), out_shardings=on("x"))(jax.random.key(1))
        ),
        "keys": lambda: [list(keys.shape), len(keys.addressable_shards), keys.is_fully_addressable],
        "callback array": lambda: described(
            jax.make_array_from_callback((8, 2), on("x"), lambda i: numbers[i] + 1)
        ),
        "single arrays": lambda: described(
            jax.make_array_from_single_device_arrays(
                (4,),
                on("x"),
                [jax.device_put(jnp.full(1, d.id), d) for d in jax.local_devices()],
            )
        ),
        "local rows": lambda: local_data(on("x"), numbers[4 * me : 4 * me + 4]),
        "local rows of all": lambda: local_data(on("x"), numbers[4 * me : 4 * me + 4], (8, 2)),
        "all rows": lambda: local_data(on("x"), numbers, (8, 2)),
        "local copies": lambda: local_data(on(None, "d", mesh=grid), numbers),
        "local blocks": lambda: local_data(on("p", "d", mesh=grid), numbers[4 * me : 4 * me + 4]),
        "local tree": lambda: [
            described(v)
            for v in jax.make_array_from_process_local_data(on("x"), [numbers[:2], numbers[2:4]])
        ],
        "allgather": lambda: multihost.process_allgather({"a": mine, "b": [mine]}["a"]).tolist(),
        "allgather rows": lambda: multihost.process_allgather(numbers + me).tolist(),
        "allgather tiled": lambda: multihost.process_allgather(numbers + me, tiled=True).tolist(),
        "allgather global": lambda: multihost.process_allgather(x, tiled=True).tolist(),
        "broadcast": lambda: multihost.broadcast_one_to_all(numbers + me).tolist(),
        "broadcast of 1": lambda: multihost.broadcast_one_to_all(
            np.array([me, -1]), is_source=me == 1
        ).tolist(),
        "sync": lambda: multihost.sync_global_devices("here"),
        "equal": lambda: multihost.assert_equal({"a": numbers, "b": 3}),
        "to global": lambda: round_trip(P("p")),
        "to global, copies": lambda: round_trip(P(None, "d")),
        "to global, blocks": lambda: round_trip(P("p", "d")),
        "preemption": lambda: multihost.reached_preemption_sync_point(1),
        "hybrid mesh": lambda: [
            [d.id for d in row] for row in hybrid((1, 2), (2, 1), process_is_granule=True)
        ],
        "hybrid mesh, turned": lambda: [
            [d.id for d in row] for row in hybrid((2, 1), (1, 2), process_is_granule=True)
        ],
        "error: values": lambda: failure(lambda: np.asarray(x)),
        "error: process": lambda: failure(lambda: jax.local_devices(process_index=2)),
        "error: twice": lambda: failure(lambda: jax.distributed.initialize("localhost:1", 2, 0)),
        "error: not equal": lambda: failure(lambda: multihost.assert_equal(mine)),
        "error: names": lambda: failure(lambda: multihost.sync_global_devices(f"at {me}")),
        "error: not tiled": lambda: failure(lambda: multihost.process_allgather(x)),
        "error: local rows": lambda: failure(lambda: local_data(on("x"), numbers[:3], (8, 2))),
        "error: granules": lambda: failure(lambda: hybrid((4,), (1,), process_is_granule=True)),
    }


def main(address, me):
    jax.config.update("jax_num_cpu_devices", 2)
    jax.distributed.initialize(address, 2, me)
    found = {name: program() for name, program in programs(me).items()}
    jax.distributed.shutdown()
    print(json.dumps(found | {"shut down": jax.distributed.is_initialized()}))


def record():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    as_jax = ["-m", "perspex.as_jax"] if "perspex" in sys.modules else []
    command = [sys.executable, *as_jax, __file__, address]
    environment = {k: v for k, v in os.environ.items() if k != "JAX_NUM_CPU_DEVICES"}
    both = [
        subprocess.Popen(
            [*command, str(me)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for me in range(2)
    ]
    try:
        found = {}
        for me, process in enumerate(both):
            out, err = process.communicate(timeout=200)
            assert process.returncode == 0, err[-3000:]
            here = json.loads(out.splitlines()[-1])
            found |= {f"{me} / {name}": value for name, value in here.items()}
        return found
    finally:
        for process in both:
            process.kill()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

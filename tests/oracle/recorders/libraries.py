"""What the small libraries inside of JAX compute: optimizers, layers, and one process's exchange.

The same lines run under real jax and under Perspex, which gives the name `jax` in a process of its
own.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def numbers(tree: Any) -> list[float]:
    """All numbers of a pytree, one after the other."""
    import jax

    return [float(x) for leaf in jax.tree.leaves(tree) for x in np.ravel(leaf)]


def optimizers() -> dict[str, Any]:
    """Parameters after four steps."""
    import jax
    import jax.numpy as jnp
    from jax.example_libraries import optimizers as o

    makers = {
        "sgd": o.sgd(0.1),
        "momentum": o.momentum(0.1, 0.8),
        "nesterov": o.nesterov(0.1, 0.8),
        "adagrad": o.adagrad(0.1),
        "rmsprop": o.rmsprop(0.1),
        "rmsprop_momentum": o.rmsprop_momentum(0.1),
        "adam": o.adam(0.1),
        "adamax": o.adamax(0.1),
        "sm3": o.sm3(0.1),
        "exponential_decay": o.sgd(o.exponential_decay(0.1, 2, 0.5)),
        "inverse_time_decay": o.sgd(o.inverse_time_decay(0.1, 2, 0.5)),
        "staircase": o.sgd(o.inverse_time_decay(0.1, 2, 0.5, True)),
        "polynomial_decay": o.sgd(o.polynomial_decay(0.1, 2, 0.01, 2.0)),
        "piecewise_constant": o.sgd(o.piecewise_constant([0, 1], [0.1, 0.05, 0.01])),
    }
    found = {}
    for name, (init, update, get_params) in makers.items():
        state = init({"w": jnp.array([1.0, -2.0, 3.0]), "b": jnp.array([[0.5, 1.0]])})
        for i in range(4):
            grads = jax.tree.map(lambda x: jnp.sin(x) + x, get_params(state))
            state = update(i, grads, state)
        found[name] = numbers(get_params(o.pack_optimizer_state(o.unpack_optimizer_state(state))))
    found["clip_grads"] = numbers(o.clip_grads([jnp.array(3.0), jnp.array(4.0)], 1.0))
    return found


def layers() -> dict[str, Any]:
    """Shapes and results of two networks."""
    import jax.numpy as jnp
    from jax import random
    from jax.example_libraries import stax as s

    x = jnp.cos(jnp.arange(144.0).reshape(2, 6, 6, 2))
    pools = s.parallel(s.AvgPool((2, 2), padding="SAME"), s.MaxPool((2, 2), padding="SAME"))
    first = s.serial(
        *(s.Conv(3, (3, 3), padding="SAME"), s.BatchNorm(), s.Relu, s.FanOut(2), pools),
        *(s.FanInConcat(), s.ConvTranspose(2, (2, 2), strides=(2, 2)), s.Flatten, s.Dense(4)),
        *(s.Dropout(0.5), s.LogSoftmax),
    )
    second = s.serial(
        s.SumPool((2, 2), strides=(2, 2)),
        s.shape_dependent(lambda shape: s.Dense(shape[-1])),
        *(s.FanOut(2), s.FanInSum, s.Gelu),
    )
    found = {}
    for name, (init, apply) in (("first", first), ("second", second)):
        shape, params = init(random.key(0), (2, 6, 6, 2))
        found[f"{name} shape"] = [int(n) for n in shape]
        found[name] = numbers(apply(params, x, rng=random.key(1)))
    return found


def exchange() -> dict[str, Any]:
    """What a process exchanges with itself."""
    import jax.numpy as jnp
    from jax.experimental import multihost_utils as m

    x = {"a": jnp.arange(3.0), "b": 2, "c": np.float64(3)}
    return {
        "broadcast": repr(m.broadcast_one_to_all(x)),
        "gathered": repr(m.process_allgather(x)),
        "tiled": repr(m.process_allgather(x, tiled=True)),
        "preempted": repr(m.reached_preemption_sync_point(3)),
        "nothing": repr([m.assert_equal(x), m.sync_global_devices("here")]),
    }


def meshes() -> dict[str, Any]:
    """Meshes without devices, layouts and formats as text."""
    import jax
    import jax.numpy as jnp
    from jax.experimental.layout import Format, Layout
    from jax.sharding import AbstractMesh, AxisType

    mesh = AbstractMesh((2, 3), ("x", "y"), (AxisType.Auto, AxisType.Explicit))
    one = jax.make_mesh((1,), ("x",), (AxisType.Auto,))
    described = [mesh.shape_tuple, mesh.size, mesh.empty, mesh.auto_axes, mesh.explicit_axes]
    return {
        "mesh": repr(mesh),
        "described": repr(described),
        "updated": repr(mesh.update_axis_types({"y": AxisType.Manual})),
        "none": repr(jax.sharding.get_abstract_mesh()),
        "of one": repr(one.abstract_mesh),
        "equal": mesh == AbstractMesh((2, 3), ("x", "y"), mesh.axis_types),
        "format": repr(jnp.ones((2, 3)).format),
        "no format": repr(Format()),
        "layout": repr(Layout((1, 0)).update(tiling=((2, 2),))),
        "same layout": Layout((1, 0)) == Layout([1, 0]),
        "members": repr([list(jax.Inline), list(jax.CompilerEffortLevel)]),
        "kinds": repr(list(jax.sharding.UnreducedKind)),
        "manual": repr(jax.sharding.ManualAxisType()),
        "args_info": repr(jax.jit(lambda x: x).lower(jnp.ones(2)).args_info[0][0].shape),
        "dtypes": {
            str(kind): sorted(jnp.__array_namespace_info__().dtypes(kind=kind))
            for kind in (None, "bool", "integral", "numeric", ("bool", "real floating"))
        },
        "default dtypes": repr(jnp.__array_namespace_info__().default_dtypes()),
    }


PARTS = {
    "optimizers": optimizers,
    "layers": layers,
    "exchange": exchange,
    "meshes": meshes,
}


def record() -> dict[str, Any]:
    """The figures of each part, as `part / name`."""
    return {
        f"{part} / {name}": value for part, run in PARTS.items() for name, value in run().items()
    }

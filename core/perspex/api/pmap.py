"""`pmap`: a function mapped over an axis of its arguments, one device for each element."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from perspex import tree
from perspex.api.calls import Call, check_callable
from perspex.api.jit import jit
from perspex.api.mapping import column, common_size
from perspex.api.shard_map import shard_map
from perspex.base.tree_paths import PyTree
from perspex.jitted.signature import name_after
from perspex.ops.structural import move_axis, squeeze, to_front
from perspex.runtime import client
from perspex.runtime.dispatch import device_put
from perspex.sharding import Mesh, NamedSharding, PartitionSpec
from perspex.tracing.trace import Tracer

F = TypeVar("F", bound=Callable[..., Any])

# What the axis is called that has no name, in shardings.
_UNNAMED = "_internal_pmap_axis_name"


def pmap(
    fun: F,
    axis_name: str | None = None,
    *,
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> F:
    """Map a function over an axis of its arguments, each element on a device of its own.

    It is `jit` of `shard_map` over a mesh with one axis. New programs are better written with these
    two: they say how arrays are cut, and need not have an element for each device.

    Args:
      fun: a function of pytrees of arrays.
      axis_name: what collectives such as `lax.psum` call the axis inside `fun`.
      in_axes: which axis of the positional arguments to map over: an integer, `None` for what all
        devices have, or a tuple with an entry for each argument, which may be a tree. Arguments by
        name are mapped over their first axis.
      out_axes: where the results have the axis; `None` where all devices have the same.
      static_broadcasted_argnums: positions of arguments that Python sees as they are; they must be
        hashable.
      devices: where to run, in this order; as many as the axis is long are used. By default, the
        devices of the platform.
      backend: the platform of the devices.
      axis_size: the number of devices, which the arguments tell as well.
      donate_argnums: positions of arguments whose memory the results may take over.

    Returns:
      A function of arguments with one more axis; its results are spread over the devices.

    Raises:
      TypeError: if `fun` is not a function, or `axis_name` not a string.
      ValueError: for axes that do not exist or whose lengths differ, if no argument is mapped over,
        and if there are too few devices.

    >>> import perspex.numpy as pnp
    >>> pmap(lambda x: x * 2)(pnp.ones((1, 3)))
    Array([[2., 2., 2.]], dtype=float32)
    """
    check_callable(fun)
    name = _UNNAMED if axis_name is None else axis_name
    if not isinstance(name, str):
        raise TypeError(
            f"pmap: axis_name is that of an axis of a mesh, a string, got {axis_name!r}"
        )
    static = _positions(static_broadcasted_argnums)

    def planned(args: Sequence[Any], kwargs: dict[str, Any]) -> _Plan:
        free = [i for i in range(len(args)) if i not in static]
        call = Call("pmap", fun, args, kwargs, free)
        axes = in_axes
        if isinstance(in_axes, (tuple, list)) and len(in_axes) == len(args):
            axes = tuple([in_axes[i] for i in free])
        found = tree.flatten_axes("pmap in_axes", call.in_tree, axes)
        found += [0] * (len(call.leaves) - len(found))
        columns = {i: column(call, i, at) for i, at in enumerate(found) if at is not None}
        if not columns:
            raise ValueError(
                "pmap requires at least one argument with a mapped axis; give one an axis in "
                "in_axes"
            )
        size = common_size(call, columns, axis_size)
        given = client.devices(backend) if devices is None else devices
        if size > len(given):
            raise ValueError(
                f"pmap over an axis of size {size} needs as many devices, but there are "
                f"{len(given)}; use vmap, or config.update('num_cpu_devices', {size}) before the "
                "first use of a device"
            )
        mesh = Mesh(np.array(given[:size], dtype=object), (name,))
        places = [columns[i].axis if i in columns else None for i in range(len(found))]
        return _Plan(call, mesh, places)

    def on_devices(*args: Any, **kwargs: Any) -> Any:
        call, mesh, axes = planned(args, kwargs)

        def on_one(*leaves: Any) -> Any:
            outs = call(
                *[
                    x if at is None else squeeze(x, dimensions=(at,))
                    for x, at in zip(leaves, axes, strict=True)
                ]
            )
            wanted = tree.flatten_axes("pmap out_axes", call.out_tree, out_axes)
            pairs = zip(outs, wanted, strict=True)
            return tree.unflatten(
                call.out_tree, [y if at is None else to_front(y, None, 1) for y, at in pairs]
            )

        name_after(on_one, fun)
        outs = shard_map(
            on_one,
            mesh=mesh,
            in_specs=tuple([_spec(name, at) for at in axes]),
            out_specs=tree.map(
                lambda at: _spec(name, None if at is None else 0), out_axes, is_leaf=_is_none
            ),
            check_vma=False,
        )(*call.leaves)
        wanted = tree.flatten_axes("pmap out_axes", call.out_tree, out_axes)
        found = [
            move_axis(y, 0, operator.index(at) % y.ndim) if at else y
            for y, at in zip(tree.leaves(outs), wanted, strict=True)
        ]
        return tree.unflatten(call.out_tree, found)

    name_after(on_devices, fun)
    compiled = jit(on_devices, static_argnums=static, donate_argnums=_positions(donate_argnums))

    def mapped(*args: Any, **kwargs: Any) -> Any:
        call, mesh, axes = planned(args, kwargs)
        # Each device is given its element, and not all of them.
        lie = [NamedSharding(mesh, _spec(name, at)) for at in axes]
        put = [
            x if isinstance(x, Tracer) else device_put(x, sharding)
            for x, sharding in zip(call.leaves, lie, strict=True)
        ]
        count = call.in_tree.num_leaves
        given = list(args)
        for i, x in zip(call.positions, tree.unflatten(call.in_tree, put[:count]), strict=True):
            given[i] = x
        return compiled(*given, **tree.unflatten(call.named_tree, put[count:]))

    name_after(mapped, fun)
    mapped.lower = compiled.lower  # type: ignore[attr-defined]
    return mapped  # type: ignore[return-value]


class _Plan(NamedTuple):
    """A call, the devices that it runs on, and the mapped axis of each leaf of its arguments."""

    call: Call
    mesh: Mesh
    axes: list[int | None]


def _positions(given: int | Iterable[int]) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(given)


def _is_none(x: Any) -> bool:
    return x is None


def _spec(name: str, at: int | None) -> PartitionSpec:
    return PartitionSpec() if at is None else PartitionSpec(*[None] * at, name)

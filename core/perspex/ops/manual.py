"""Collectives between devices: what an operation along an axis of a mesh becomes in StableHLO.

Inside `shard_map` the program is that of one device, and the devices that differ along the axes
named in a collective exchange values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex.hlo import types
from perspex.hlo.manual import Manual, bare, computation
from perspex.ir.avals import ShapedArray
from perspex.ops.elementwise import div, rem
from perspex.ops.lowering import expand
from perspex.ops.structural import convert, inserted, move_axis
from perspex.tracing.axes import unbound_axis

_NUMBER, _INDEX = [ShapedArray((), np.dtype(name)) for name in ("uint32", "int32")]


def _exchange(
    b: Any, what: str, op: str, names: Sequence[Any], x: Any, out: ShapedArray, **attributes: Any
) -> Any:
    """Emit `stablehlo.op` among the devices that differ along `names`."""
    given = {
        "replica_groups": replica_groups(b, what, names),
        "channel_handle": types.attribute("#stablehlo.channel_handle<handle = 1, type = 1>"),
        **attributes,
    }
    regions = 1 if op in ("all_reduce", "reduce_scatter") else 0
    return b.ops(f"stablehlo.{op}", [x], [out], given, regions)


def _of(b: Any, what: str, names: Sequence[Any]) -> Any:
    """The mesh around; `NameError` if it has no such axes."""
    manual = b.module.manual
    for name in names:
        if manual is None or bare(name) not in manual.names:
            raise unbound_axis(bare(name), what)
    return manual


def replica_groups(b: Any, what: str, names: Sequence[Any]) -> Any:
    """The groups of devices that differ along `names`, as an attribute."""
    return types.matrix(_of(b, what, names).groups(names))


def axis_length(b: Any, what: str, name: Any) -> int:
    """How many devices there are along the axis `name` of the mesh."""
    length: int = _of(b, what, (name,)).sizes[name]
    return length


def _combine(b: Any, made: Any, combiner: str, aval: ShapedArray) -> Any:
    scalar = aval.update(shape=())
    with b.block(made.regions[0], [scalar, scalar]) as (inner, args):
        inner.terminate("stablehlo.return", [inner.op(combiner, *args, aval=scalar)])
    return made.result


def _unfolded(b: Any, x: Any) -> Any:
    """`x`, hidden from XLA while it compiles: adding complex constants there ends the process."""
    (given,) = b.in_avals
    if given.dtype.kind != "c" or b.platform != "cpu":
        return x
    return b.op("stablehlo.optimization_barrier", x, aval=given)


def emit_reduction(b: Any, what: str, x: Any, names: Sequence[Any], combiner: str) -> Any:
    """The values of all devices along `names`, combined."""
    (out,) = b.out_avals
    x = _unfolded(b, x)
    made = _exchange(
        b, what, "all_reduce", names, x, out, use_global_device_ids=types.attribute("unit")
    )
    return _combine(b, made, combiner, out)


def emit_gather(b: Any, x: Any, name: Any, axis: int, tiled: bool) -> Any:
    """The values of all devices along the axis `name` of the mesh."""
    (given,), (out,) = b.in_avals, b.out_avals
    if not tiled:
        given = given.update(shape=inserted(given.shape, axis, 1))
        x = b.reshape(x, given)
    return _exchange(
        b,
        "all_gather",
        "all_gather",
        (name,),
        x,
        out,
        all_gather_dim=types.integer(axis),
        use_global_device_ids=types.attribute("unit"),
    ).result


def emit_scatter(b: Any, x: Any, name: Any, size: int, axis: int, tiled: bool) -> Any:
    """The part of this device of the sum over all."""
    (given,), (out,) = b.in_avals, b.out_avals
    x = _unfolded(b, x)
    shape = list(given.shape)
    shape[axis] //= size
    part = given.update(shape=tuple(shape))
    made = _exchange(
        b,
        "reduce_scatter",
        "reduce_scatter",
        (name,),
        x,
        part,
        scatter_dimension=types.integer(axis),
        use_global_device_ids=types.attribute("unit"),
    )
    found = _combine(b, made, "stablehlo.add", part)
    return found if tiled else b.reshape(found, out)


def emit_all_to_all(
    b: Any, x: Any, name: Any, size: int, split: int, concat: int, tiled: bool
) -> Any:
    """The parts that all devices along `name` send to this one."""
    (given,), (out,) = b.in_avals, b.out_avals
    if not tiled:
        x = _parts(b, x, name, size, split, split, given)
        return expand(b, lambda y: move_axis(y, split, concat), x)[0]
    return _parts(b, x, name, size, split, concat, out)


def _parts(b: Any, x: Any, name: Any, size: int, split: int, concat: int, out: ShapedArray) -> Any:
    return _exchange(
        b,
        "all_to_all",
        "all_to_all",
        (name,),
        x,
        out,
        split_dimension=types.integer(split),
        concat_dimension=types.integer(concat),
        split_count=types.integer(size),
    ).result


def emit_permutation(b: Any, x: Any, names: Sequence[Any], pairs: Sequence[tuple[int, int]]) -> Any:
    """The value that another device sends to this one, or zeros.

    Devices are counted along `names`, the last one fastest.
    """
    (out,) = b.out_avals
    groups = _of(b, "ppermute", names).groups(names)
    numbers = [(group[source], group[target]) for group in groups for source, target in pairs]
    empty = "dense<> : tensor<0x2xi64>"
    attributes = {
        "source_target_pairs": types.matrix(tuple(numbers)) if numbers else types.attribute(empty),
        "channel_handle": types.attribute("#stablehlo.channel_handle<handle = 1, type = 1>"),
    }
    return b.op("stablehlo.collective_permute", x, attributes=attributes, aval=out)


def emit_index(b: Any, name: Any) -> Any:
    """Where this device is along the axis `name` of the mesh."""
    manual = _of(b, "axis_index", (name,))
    if manual.sizes[name] == 1:
        return b.constant(0, _INDEX)
    if not manual.is_whole:
        return manual.indices[name]
    stride, size = np.uint32(manual.stride(name)), np.uint32(manual.sizes[name])
    number = b.op("stablehlo.partition_id", aval=_NUMBER)

    def place(number: Any) -> Any:
        return convert(rem(div(number, stride), size), np.dtype("int32"))

    (found,) = expand(b, place, number, avals=[_NUMBER])
    return found


def once_in_each_part(
    b: Any,
    values: Sequence[Any],
    avals: Sequence[ShapedArray],
    write: Callable[[Any, Sequence[Any]], object],
) -> None:
    """Write what has effects and no results, where the compiler still divides the work.

    The first of the devices that share a part does it. XLA refuses such an operation without a
    device.
    """
    outer = b.module.manual
    names = [name for name in outer.sizes if name not in outer.names]
    whole = [f"[{', '.join(['{}'] * aval.physical().ndim)}]" for aval in avals]
    made = computation(b, values, [], names, b.module.mesh, whole, [])
    b.module.manual = Manual(outer.sizes, frozenset(outer.sizes), {})
    try:
        with b.block(made.regions[0], avals) as (inner, args):
            place = inner.constant(0, _INDEX)
            for name in names:
                place = inner.op("stablehlo.add", place, emit_index(inner, name), aval=_INDEX)
            is_first = inner.compare("EQ", place, inner.constant(0, _INDEX), _INDEX)
            choice = inner.ops("stablehlo.if", [is_first], [], regions=2)
            with inner.block(choice.regions[0], []) as (there, _):
                write(there, args)
                there.terminate("stablehlo.return", [])
            with inner.block(choice.regions[1], []) as (elsewhere, _):
                elsewhere.terminate("stablehlo.return", [])
            inner.terminate("sdy.return", [])
    finally:
        b.module.manual = outer

"""Named axes: where an example or a device is along them, and whether values differ among them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from perspex import tree
from perspex.arguments.types import Array
from perspex.hlo.manual import Grouped
from perspex.layout.context import get_abstract_mesh
from perspex.ops import casts
from perspex.ops import collectives as ops
from perspex.ops.collectives import varying
from perspex.ops.elementwise import add, mul
from perspex.tracing.axes import bound_axis
from perspex.tracing.trace import typeof

T = TypeVar("T")

__all__ = ["axis_index", "axis_size", "pcast"]

_CASTS = {
    ("invarying", "varying"): ops.pvary,
    ("invarying", "reduced"): casts.preduced,
    ("varying", "unreduced"): casts.vary_unreduced_cast,
    ("reduced", "varying"): casts.reduced_vary_cast,
}
AxisName = Hashable
"""What names an axis: anything hashable but a tuple; a tuple of names stands for several axes."""


def names_of(axis_name: Any) -> tuple[AxisName, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def sizes_of(what: str, names: Sequence[AxisName]) -> list[int]:
    """The sizes of named axes; `NameError` for one that is not around."""
    return [bound_axis(name, what).size for name in names]


def tracked(names: Sequence[AxisName]) -> frozenset[str]:
    """The names that are axes of a mesh along which types say what varies."""
    found: Any = [name for name in names if bound_axis(name, "").is_tracked]
    return frozenset(found)


def on_each(x: Any, names: Sequence[AxisName]) -> Any:
    """`x`, as a value of each device along `names`."""
    found = tracked(names)
    return varying(x, found) if found else x


def in_groups(
    what: str, names: Sequence[AxisName], groups: Sequence[Sequence[int]]
) -> tuple[Grouped, int]:
    """The axis of a mesh whose devices exchange values in groups, and the size of a group.

    Raises `NotImplementedError` for another axis, or where types say what varies along it, and
    `ValueError` unless each place along the axis is in one group, and all groups have one size.
    """
    sizes_of(what, names)
    axis = bound_axis(names[0], what)
    if len(names) > 1 or not axis.is_device or axis.is_tracked:
        raise NotImplementedError(
            f"{what}: axis_index_groups is supported along one axis of a mesh, inside "
            f"shard_map(check_vma=False) and pmap, got {tuple(names)}. Elsewhere, reshape the "
            "axis in two, map over each with a name of its own, and name the one inside the groups"
        )
    places = sorted([i for group in groups for i in group])
    if places != list(range(axis.size)) or len({len(group) for group in groups}) != 1:
        raise ValueError(
            f"{what}: axis_index_groups must have each of the {axis.size} places along "
            f"{names[0]!r} once, in groups of one size, got {[list(g) for g in groups]}"
        )
    found = tuple([tuple([int(i) for i in group]) for group in groups])
    return Grouped(str(names[0]), found), len(found[0])


def is_bound(name: AxisName) -> bool:
    try:
        bound_axis(name, "")
    except NameError:
        return False
    return True


def axis_index(axis_name: AxisName) -> Array:
    """The number of this example along a named axis.

    Args:
      axis_name: a name, or a tuple of names that are counted as one axis in row-major order.

    Returns:
      An int32 scalar that differs from example to example.

    Raises:
      NameError: for a name that no `vmap` around has given.

    >>> from perspex import lax, vmap
    >>> vmap(lambda: lax.axis_index("i"), axis_name="i", axis_size=3)()
    Array([0, 1, 2], dtype=int32)
    """
    names = names_of(axis_name)
    sizes = sizes_of("axis_index", names)
    if not names:
        return np.int32(0)  # type: ignore[return-value]
    index: Any = None
    for name, size in zip(names, sizes, strict=True):
        here = ops.axis_index(axis_name=name, is_tracked=bound_axis(name, "").is_tracked)
        index = here if index is None else add(mul(index, np.int32(size)), here)
    return index


def axis_size(axis_name: AxisName) -> int:
    """How many examples there are along a named axis, as a Python integer.

    Args:
      axis_name: a name, or a tuple of names, whose sizes are multiplied.

    Returns:
      A Python integer.

    Raises:
      NameError: for a name that no `vmap` around has given.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> vmap(lambda x: x / lax.axis_size("i"), axis_name="i")(jnp.ones(4))
    Array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    return math.prod(sizes_of("axis_size", names_of(axis_name)))


def pcast(x: T, axis_name: AxisName, *, to: str) -> T:
    """Say that a value may differ from device to device, or is part of a sum, inside `shard_map`.

    No numbers move. Operations make values varying by themselves where they need it. What a loop
    carries has to be of one type from the start, and a branch returns the type of the other.

    Args:
      x: a pytree of arrays.
      axis_name: the axis of the mesh, or a tuple of axes.
      to: `"varying"`, for what is the same on all devices, or reduced; `"unreduced"`, for varying
        values that stand for their sum, which `psum` and `psum_scatter` take; `"reduced"`, for what
        is the same on all devices, and whose cotangent is to stay unreduced.

    Returns:
      A pytree like `x`, of the other types along the axes.

    Raises:
      NameError: for a name that no `shard_map` around maps over.
      TypeError: for a set of axes.
      ValueError: for another `to`, and for a value that cannot be turned into that.

    >>> import perspex, perspex.numpy as pnp
    >>> from perspex import lax
    >>> mesh, P = perspex.make_mesh((1,), ("i",)), perspex.sharding.PartitionSpec
    >>> f = lambda: lax.pcast(pnp.ones(2), "i", to="varying")
    >>> perspex.shard_map(f, mesh=mesh, in_specs=(), out_specs=P("i"))()
    Array([1., 1.], dtype=float32)
    """
    if isinstance(axis_name, (set, frozenset)):
        raise TypeError(
            f"pcast: axis_name must be a name or a tuple of names, got {axis_name}; the order of "
            "a set is not known"
        )
    if to not in ("varying", "unreduced", "reduced"):
        raise ValueError(f"pcast: `to` must be 'varying', 'unreduced' or 'reduced', got {to!r}")
    names = names_of(axis_name)
    sizes_of("pcast", names)
    along = tuple([name for name in names if name in tracked(names)])

    def one(leaf: Any) -> Any:
        aval = typeof(leaf)
        given = casts.state_of("pcast", aval, names)
        if given == to:
            raise ValueError(f"pcast: the value is {to} along {names} already; leave it out")
        if (given, to) not in _CASTS:
            raise ValueError(
                f"pcast: a value of type {aval.str_short()}, {given} along {names}, cannot become "
                f"{to}; pcast turns invarying into varying or reduced, varying into unreduced, and "
                "reduced into varying"
            )
        cast = _CASTS[given, to]
        if cast is ops.pvary or not along:
            return on_each(leaf, names)
        return cast(leaf, axes=along, mesh=get_abstract_mesh())

    return tree.map(one, x)

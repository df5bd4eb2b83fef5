"""Changing what types say of how arrays lie: along explicit axes of a mesh, and which those are."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Set
from typing import Any

from perspex import config, tree
from perspex.base.tree_paths import PyTree
from perspex.layout.context import canonical, get_abstract_mesh, use_abstract_mesh
from perspex.layout.types import explicit_part
from perspex.ops.placing import reshard as reshard_p
from perspex.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from perspex.tracing.forbidding import check_moves
from perspex.tracing.staging import JaxprTrace
from perspex.tracing.trace import bottom, state, typeof


def reshard(xs: PyTree, out_shardings: PyTree) -> PyTree:
    """The arrays of a pytree, of types that say that they lie as asked.

    Args:
      xs: a pytree of arrays.
      out_shardings: shardings, or specs inside `with set_mesh(mesh):`; a prefix of the tree.

    Returns:
      The arrays. Devices exchange numbers where they have to.

    Raises:
      ValueError: if the sharding cannot divide an array, names an axis that is not explicit, or
        there is none.

    >>> import perspex, perspex.numpy as pnp
    >>> with perspex.set_mesh(perspex.make_mesh((1,), ("x",))):
    ...     reshard(pnp.zeros(4), perspex.P("x")).aval
    ShapedArray(float32[4@x])
    """
    leaves, structure = tree.flatten(xs)
    places = tree.broadcast_prefix(
        out_shardings, xs, is_leaf=lambda place: place is None, name="reshard"
    )
    found = []
    for x, place in zip(leaves, places, strict=True):
        asked = canonical(place, "reshard", "out_shardings", anywhere=True)
        if asked is None:
            raise ValueError(
                f"reshard takes shardings over the axes of a mesh as out_shardings, got {place!r}"
            )
        mesh = getattr(place, "mesh", None)
        concrete = mesh if isinstance(mesh, Mesh) else None
        asked = _full(asked, typeof(x).ndim)
        found.append(reshard_p(x, dst_sharding=asked, concrete_mesh=concrete))
    return tree.unflatten(structure, found)


@contextlib.contextmanager
def no_collectives(new_val: Set[str]) -> Iterator[None]:
    """Forbid that devices exchange numbers along explicit axes of a mesh.

    Args:
      new_val: a set of their names.

    Returns:
      A context manager. Types tell whether what is traced inside of it would exchange numbers.

    Raises:
      TypeError: if `new_val` is no set.
      ForbiddenCollectiveError: when the `with` ends, or the program, if an operation would.

    >>> import perspex, perspex.numpy as pnp
    >>> with perspex.set_mesh(perspex.make_mesh((1,), ("x",))), no_collectives({"x"}):
    ...     pnp.sin(reshard(pnp.zeros(2), perspex.P("x")))
    Array([0., 0.], dtype=float32)
    """
    trace: Any = state.trace
    while not isinstance(trace, JaxprTrace) and trace is not bottom():
        trace = trace.parent
    written: list[Any] = getattr(trace, "eqns", [])
    start = len(written)
    with config.no_collectives(new_val):
        yield
        check_moves(written[start:], config.no_collectives.value)


def _full(sharding: NamedSharding, ndim: int) -> NamedSharding:
    """The sharding with a partition for each axis."""
    spec = sharding.spec
    parts = [*[names or None for names in spec.names()], *[None] * (ndim - len(spec))]
    return sharding.update(spec=spec.update(partitions=parts))


def _into(xs: PyTree, mesh: AbstractMesh) -> PyTree:
    """Arrays with the part of their types that a mesh with other types of axes leaves."""

    def cast(x: Any) -> Any:
        aval = typeof(x)
        left = None if aval.cut is None else explicit_part(aval.cut.update(mesh=mesh), aval.shape)
        asked = NamedSharding(mesh, PartitionSpec()) if left is None else left
        return reshard_p(x, dst_sharding=_full(asked, aval.ndim), concrete_mesh=None)

    return tree.map(cast, xs)


def _with_types(what: str, axes: Any, kind: AxisType, places: PyTree = None) -> Any:
    """The mesh around, or that of the shardings `places`, with other types of some axes.

    `None` if there is no mesh, or nothing to change.
    """
    around = get_abstract_mesh()
    named = [p.mesh.abstract_mesh for p in tree.leaves(places) if isinstance(p, NamedSharding)]
    for mesh in named:
        if mesh != (named[0] if around.empty else around):
            raise ValueError(
                f"{what}: the shardings must be over one mesh, that of set_mesh where there is "
                f"one, got {mesh} and {named[0] if around.empty else around}"
            )
    mesh = around if not around.empty else named[0] if named else None
    if mesh is None:
        return None
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    manual = [name for name in names if name in mesh.manual_axes]
    if manual:
        raise NotImplementedError(
            f"{what}: {manual[0]!r} is an axis that shard_map maps over: inside of it each device "
            "runs its own program, and the axis stays manual"
        )
    changed = mesh.update_axis_types(dict.fromkeys(names, kind))
    return None if changed == mesh else changed


def _given(what: str, name: str, value: PyTree, kwargs: dict[str, Any]) -> PyTree:
    """The argument of that name: `value` if that was given before, else taken from `kwargs`."""
    if value is not None:
        return value
    if name not in kwargs:
        raise TypeError(f"{what}: missing required keyword argument: {name!r}")
    return kwargs.pop(name)


def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: Any = None
) -> Any:
    """Let the compiler decide how values lie along axes of a mesh, inside of a function.

    Args:
      f: the function; a decorator is returned without it.
      axes: names of axes of the mesh; all of them if not given.
      out_sharding: how the results lie: a tree of shardings, or a prefix of theirs.

    Returns:
      A function of positional arrays. It takes the parameter `out_sharding` if that is not given
      here.

    Raises:
      TypeError: if no `out_sharding` is given.

    >>> import perspex, perspex.numpy as pnp
    >>> with perspex.set_mesh(perspex.make_mesh((1,), ("x",))):
    ...     auto_axes(pnp.sin, out_sharding=perspex.P("x"))(pnp.zeros(2)).sharding.spec
    P('x',)
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    def decided(*args: Any, **kwargs: Any) -> Any:
        place = _given("auto_axes", "out_sharding", out_sharding, kwargs)
        mesh = _with_types("auto_axes", axes, AxisType.Auto, place)
        if mesh is None:
            return f(*args, **kwargs)
        with use_abstract_mesh(mesh):
            out = f(*_into(args, mesh), **kwargs)
        return reshard(out, place)

    return decided


def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Any:
    """Have types say how values lie along axes of a mesh, inside of a function.

    Args:
      f: the function; a decorator is returned without it.
      axes: names of axes of the mesh; all of them if not given.
      in_sharding: how the positional arguments lie: a tree of shardings, or a prefix of theirs.

    Returns:
      A function of arrays. It takes the parameter `in_sharding` if that is not given here.

    Raises:
      TypeError: if no `in_sharding` is given.
      ValueError: if no mesh is set.

    >>> import perspex, perspex.numpy as pnp
    >>> types = perspex.sharding.AxisType
    >>> with perspex.set_mesh(perspex.make_mesh((1,), ("x",), types.Auto)):
    ...     f = explicit_axes(lambda x: print(x.aval), in_sharding=perspex.P("x"))
    ...     f(pnp.zeros(2))
    float32[2@x]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    def typed(*args: Any, **kwargs: Any) -> Any:
        place = _given("explicit_axes", "in_sharding", in_sharding, kwargs)
        before = get_abstract_mesh()
        mesh = _with_types("explicit_axes", axes, AxisType.Explicit)
        if before.empty:
            raise ValueError(
                "explicit_axes needs a mesh: call the function inside `with jax.set_mesh(mesh):`"
            )
        with use_abstract_mesh(before if mesh is None else mesh):
            out = f(*reshard(args, place), **kwargs)
        return _into(out, before)

    return typed

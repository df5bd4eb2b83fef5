"""The meshes around: what a bare `PartitionSpec` refers to, and where uncommitted values go.

All of them are in one flag, which is part of the key of compiled calls: a function that was traced
under one mesh is traced again under another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from perspex import config
from perspex.layout.abstract import AbstractMesh
from perspex.layout.mesh import Mesh, MeshContext
from perspex.layout.named import NamedSharding
from perspex.layout.spec import PartitionSpec
from perspex.layout.types import without_ones

EMPTY = AbstractMesh((), ())


def context_mesh() -> Mesh | None:
    """The mesh of the innermost `with mesh:` of this thread, or that of `set_mesh`."""
    around = config.mesh.value
    if around is None:
        return None
    return around.entered[-1] if around.entered else around.concrete


def devices_mesh() -> Mesh | None:
    """The mesh of `set_mesh`, on whose devices everything runs that is not committed elsewhere."""
    around = config.mesh.value
    return None if around is None else around.concrete


def _change(**changes: Any) -> Any:
    """Set parts of the context of this thread; returns the one before."""
    around = (config.mesh.value or MeshContext())._replace(**changes)
    return config.mesh.cell.swap_local(around if any(around) else None)


def canonical(
    given: Any, what: str, name: str = "out_sharding", anywhere: bool = False
) -> NamedSharding | None:
    """The sharding that an argument asks for, over an abstract mesh; `None` if for none.

    It can only name explicit axes. Raises `TypeError` for anything that is no sharding, and
    `ValueError` where there is no mesh, or, unless it may be `anywhere`, another one.
    """
    if given is None:
        return None
    around = get_abstract_mesh()
    if isinstance(given, PartitionSpec):
        if around.empty:
            raise ValueError(
                f"{what}: {name}={given} names axes of a mesh, but no mesh is set: use it inside "
                "`with jax.set_mesh(mesh):`, or pass NamedSharding(mesh, spec)"
            )
        given = NamedSharding(around, given)
    if not isinstance(given, NamedSharding):
        raise TypeError(
            f"{what}: {name} is a NamedSharding or a PartitionSpec, got {given!r} of type "
            f"{type(given).__name__}"
        )
    mesh, spec = given.mesh.abstract_mesh, given.spec
    if mesh.empty:
        return None
    both_auto = mesh.are_all_axes_auto and around.are_all_axes_auto
    if not (anywhere or around.empty or mesh == around or both_auto):
        raise ValueError(
            f"{what}: the mesh of {name}, {mesh}, must be that of set_mesh, {around}; pass a "
            "PartitionSpec alone"
        )
    for names in (*spec.names(), spec.unreduced, spec.reduced):
        for axis in names or ():
            if axis not in mesh.explicit_axes:
                raise ValueError(
                    f"{what}: {name} can only name axes of type Explicit, but {spec} names "
                    f"{axis!r} of {mesh}; along the others lax.with_sharding_constraint says how "
                    "a value lies"
                )
    if config.remove_size_one_mesh_axis_from_type.value:
        spec = without_ones(spec, mesh)
    return NamedSharding(mesh, spec)


def canonical_if_explicit(given: Any) -> NamedSharding | None:
    """What the type of an array that lies so says; `None` if it says nothing."""
    if isinstance(given, PartitionSpec):
        mesh = get_abstract_mesh()
        return None if mesh.empty else NamedSharding(mesh, given)
    return given if given.__class__ is NamedSharding else None


class set_mesh:
    """Set the mesh that this thread works on, for good or in `with`.

    A bare `PartitionSpec` refers to it, and everything that is not committed elsewhere runs on its
    devices. Along its explicit axes, types say how arrays lie.

    Args:
      mesh: the mesh; `None` for no mesh.

    Raises:
      ValueError: for anything else, inside of a traced function, or if an axis of the mesh is of
        type `Manual`.

    >>> import perspex
    >>> with set_mesh(perspex.make_mesh((1,), ("x",))):
    ...     get_mesh().axis_names
    ('x',)
    """

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(
                f"set_mesh takes a Mesh, got a value of type {type(mesh).__name__}; "
                "use_abstract_mesh takes an AbstractMesh"
            )
        if config.trace_depth.value:
            raise ValueError("set_mesh cannot be called inside a traced function; call it outside")
        if mesh is not None and mesh.manual_axes:
            raise ValueError(
                f"set_mesh takes a mesh of automatic and explicit axes, but {mesh.manual_axes} of "
                f"{mesh} are manual: shard_map makes axes manual"
            )
        self.mesh = mesh
        abstract = None if mesh is None else mesh.abstract_mesh
        self._before = _change(concrete=mesh, abstract=abstract, entered=())

    def __enter__(self) -> Mesh | None:
        return self.mesh

    def __exit__(self, *error: object) -> None:
        config.mesh.cell.set_local(self._before)


def get_mesh() -> Mesh:
    """The mesh of `set_mesh` or of the innermost `with mesh:`.

    Returns:
      A `Mesh`.

    Raises:
      ValueError: if no mesh is set in this thread.

    >>> import perspex
    >>> with set_mesh(perspex.make_mesh((1,), ("x",))):
    ...     get_mesh().size
    1
    """
    mesh = context_mesh()
    if mesh is None:
        raise ValueError("there is no mesh in this thread: set_mesh(mesh) or `with mesh:` sets one")
    return mesh


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh of this thread, without the devices; none if no mesh is set.

    Returns:
      An `AbstractMesh`.

    Raises:
      Nothing.

    >>> import perspex
    >>> with set_mesh(perspex.make_mesh((1,), ("x",))):
    ...     get_abstract_mesh().axis_names
    ('x',)
    """
    around = config.mesh.value
    if around is None:
        return EMPTY
    if around.abstract is not None:
        return around.abstract
    return around.entered[-1].abstract_mesh if around.entered else EMPTY


@contextlib.contextmanager
def use_abstract_mesh(mesh: AbstractMesh) -> Iterator[None]:
    """Have types refer to a mesh inside the `with`.

    Args:
      mesh: an `AbstractMesh`.

    Returns:
      A context manager.

    Raises:
      TypeError: for anything else.

    >>> with use_abstract_mesh(AbstractMesh((2,), ("x",))):
    ...     get_abstract_mesh().size
    2
    """
    if not isinstance(mesh, AbstractMesh):
        raise TypeError(
            f"use_abstract_mesh takes an AbstractMesh, got a value of type {type(mesh).__name__}; "
            "mesh.abstract_mesh is that of a Mesh"
        )
    before = _change(abstract=None if mesh.empty else mesh)
    try:
        yield
    finally:
        config.mesh.cell.set_local(before)

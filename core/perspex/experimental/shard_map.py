"""`shard_map` under the name and with the parameters that it had before it was `jax.shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perspex.api import shard_map as mapping
from perspex.base.public import publish as _publish
from perspex.base.tree_paths import PyTree
from perspex.sharding import Mesh

__all__ = ["shard_map"]


def shard_map(
    f: Callable[..., Any], mesh: Mesh, in_specs: PyTree, out_specs: PyTree, check_rep: bool = True
) -> Any:
    """Run a function on each device of a mesh, on its part of the arguments.

    JAX deprecates this name; `shard_map` of the package is the same with `check_vma`.

    Args:
      f: a function of pytrees of arrays: of what one device has.
      mesh: the mesh.
      in_specs: how each argument is cut: a `PartitionSpec`, or a prefix of their tree.
      out_specs: how the results of the devices make up the whole.
      check_rep: have types say along which axes of the mesh values differ, and check `out_specs`.

    Returns:
      A function of whole arrays.

    Raises:
      ValueError: as `perspex.shard_map` does.

    >>> import perspex, perspex.numpy as pnp
    >>> from perspex.experimental.shard_map import shard_map
    >>> mesh, P = perspex.make_mesh((1,), ("i",)), perspex.P
    >>> shard_map(lambda x: 2 * x, mesh, in_specs=P("i"), out_specs=P("i"))(pnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    return mapping.shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep
    )


_publish(globals())

"""A pytree as one vector: `jax.flatten_util`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perspex import numpy as pnp
from perspex import tree
from perspex.base.tree_paths import PyTree

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: PyTree) -> tuple[Any, Callable[[Any], Any]]:
    """All numbers of a pytree in one vector, and the function that puts them back.

    Args:
      pytree: a pytree of arrays; their dtypes are promoted to one.

    Returns:
      The vector of shape `(n,)`, and a function from such a vector to a pytree like the given one,
      with its shapes and dtypes. Where all leaves have one dtype, it takes a vector of any dtype,
      which the leaves then have. It raises `ValueError` for a vector of another length, and
      `TypeError` for one of another dtype where the leaves have several.

    Raises:
      TypeError: for leaves that are not arrays.
      ValueError: from the function that is returned, for a vector of another shape.

    >>> vector, unravel = ravel_pytree({"w": pnp.ones((2, 2)), "b": pnp.zeros(2)})
    >>> vector
    Array([0., 0., 1., 1., 1., 1.], dtype=float32)
    >>> unravel(vector * 3)["b"]
    Array([0., 0.], dtype=float32)
    """
    leaves, treedef = tree.flatten(pytree)
    leaves = [pnp.asarray(leaf) for leaf in leaves]
    shapes = [leaf.shape for leaf in leaves]
    kinds = [leaf.dtype for leaf in leaves]
    sizes = [leaf.size for leaf in leaves]
    total = sum(sizes)
    common = pnp.result_type(*kinds) if kinds else None
    is_mixed = any(kind != common for kind in kinds)
    flat = [pnp.ravel(leaf) for leaf in leaves]
    if is_mixed:
        flat = [part.astype(common) for part in flat]
    vector = pnp.concatenate(flat) if flat else pnp.zeros(0)

    def unravel(vector: Any) -> Any:
        if pnp.shape(vector) != (total,):
            raise ValueError(f"unravel takes a vector of shape ({total},), got {pnp.shape(vector)}")
        vector = pnp.asarray(vector)
        if is_mixed and vector.dtype != common:
            raise TypeError(
                f"unravel takes a vector of dtype {common}, got {vector.dtype}; convert it first"
            )
        parts, start = [], 0
        for shape, dtype, size in zip(shapes, kinds, sizes, strict=True):
            part = vector[start : start + size].reshape(shape)
            parts.append(part.astype(dtype) if is_mixed else part)
            start += size
        return tree.unflatten(treedef, parts)

    return vector, unravel

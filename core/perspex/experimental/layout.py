"""In which order the memory of an array has its axes: `jax.experimental.layout`.

Perspex leaves that to XLA, which has the axes of arguments and results in the order of the shape.
`Array.format` says so, and `device_put` takes a `Format`.
"""

from __future__ import annotations

from typing import Any

from perspex import tree
from perspex.base.tree_paths import PyTree
from perspex.layout.formats import Format as Format
from perspex.layout.formats import Layout as Layout
from perspex.tracing.trace import typeof

__all__ = ["Format", "Layout", "with_layout_constraint"]


def with_layout_constraint(x: PyTree, layouts: Any) -> PyTree:
    """`x`, whose axes the memory is to have in an order; XLA fuses operations over such a wish.

    Args:
      x: a pytree of arrays.
      layouts: a `Layout` for each, with as many axes: a tree like `x`, or one that ends earlier.

    Returns:
      The arrays. The layout of values inside of a program remains XLA's choice.

    Raises:
      ValueError: for another number of axes.

    >>> import perspex.numpy as pnp
    >>> with_layout_constraint(pnp.zeros((2, 3)), Layout((1, 0))).shape
    (2, 3)
    """
    leaves, treedef = tree.flatten(x)
    for leaf, layout in zip(leaves, tree.flatten_axes("layouts", treedef, layouts), strict=True):
        if len(layout.major_to_minor) != typeof(leaf).ndim:
            raise ValueError(
                f"{layout} is for arrays with {len(layout.major_to_minor)} axes, got one of shape "
                f"{typeof(leaf).shape}"
            )
    return x

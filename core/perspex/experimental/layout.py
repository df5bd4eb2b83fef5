"""In which order the memory of an array has its axes: `jax.experimental.layout`.

Perspex leaves that to XLA, which has the axes of arguments and results in the order of the shape.
`Array.format` says so, and `device_put` takes a `Format`.
"""

from __future__ import annotations

from perspex.base.tree_paths import PyTree
from perspex.layout.formats import Format as Format
from perspex.layout.formats import Layout as Layout
from perspex.tracing.array_type import Array
from perspex.tracing.trace import typeof

__all__ = ["Format", "Layout", "with_layout_constraint"]


def with_layout_constraint(x: Array, layout: Layout) -> PyTree:
    """`x`, whose axes the memory is to have in an order; XLA fuses operations over such a wish.

    Args:
      x: an array.
      layout: a `Layout` with as many axes.

    Returns:
      The array. The layout of values inside of a program remains XLA's choice.

    Raises:
      ValueError: for another number of axes.

    >>> import perspex.numpy as pnp
    >>> with_layout_constraint(pnp.zeros((2, 3)), Layout((1, 0))).shape
    (2, 3)
    """
    if len(layout.major_to_minor) != typeof(x).ndim:
        raise ValueError(
            f"{layout} is for arrays with {len(layout.major_to_minor)} axes, got one of shape "
            f"{typeof(x).shape}"
        )
    return x

"""In which order the memory of an array has its axes: `jax.experimental.layout`.

Perspex leaves that to XLA, which has the axes of arguments and results in the order of the shape.
`Array.format` says so, and `device_put` takes a `Format`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from perspex import tree
from perspex.base.tree_paths import PyTree
from perspex.jitted.signature import function_name
from perspex.layout.formats import Format as Format
from perspex.layout.formats import Layout as Layout
from perspex.tracing.trace import typeof

__all__ = ["Format", "Layout", "explicit_layout", "with_layout_constraint"]


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
        if isinstance(layout, Layout):
            layout.check_compatible_aval(typeof(leaf).shape)
    return x


def explicit_layout(f: Callable[..., Any] | None = None, /, *, in_layouts: Any = None) -> Any:
    """A function whose arguments the memory is to have in an order.

    Args:
      f: takes and returns pytrees of arrays. Without it, a decorator.
      in_layouts: for the positional arguments a `Layout` or `Layout.AUTO` each: a tree like their
        tuple, or one that ends earlier. The function takes it as a keyword if it is not given here.

    Returns:
      A function of the same arguments and results. Their layout remains XLA's choice.

    Raises:
      TypeError: if `in_layouts` is given nowhere.
      ValueError: for a layout with another number of axes.

    >>> import perspex.numpy as pnp
    >>> explicit_layout(pnp.sum, in_layouts=Layout((1, 0)))(pnp.ones((2, 3)))
    Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(explicit_layout, in_layouts=in_layouts)

    @functools.wraps(f)
    def laid_out(*args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.pop("in_layouts", None) if in_layouts is None else in_layouts
        if wanted is None:
            raise TypeError(
                f"explicit_layout of `{function_name(f)}` was given no in_layouts; pass it to "
                "explicit_layout, or with each call"
            )
        return f(*with_layout_constraint(args, wanted), **kwargs)

    return laid_out

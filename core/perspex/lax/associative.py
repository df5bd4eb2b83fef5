"""`associative_scan`: all partial results of an associative operation of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from perspex import tree
from perspex.arguments.axes import canonical_axis
from perspex.ir.avals import shaped
from perspex.ops.prefixes import prefixes
from perspex.ops.shape import rev

T = TypeVar("T")

__all__ = ["associative_scan"]


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: T, reverse: bool = False, axis: int = 0
) -> T:
    """Combine elements along an axis, keeping what the combination is so far at each place.

    `cumsum` for any associative operation; the result does not depend on how the elements are
    paired up, so it takes `log2(n)` steps, each on whole arrays.

    Args:
      fn: takes two pytrees of arrays, cut from `elems` along `axis`, and combines them place by
        place; it must be associative.
      elems: a pytree of arrays of the same length along `axis`.
      reverse: combine from the end.
      axis: the axis to go along.

    Returns:
      A pytree of arrays of the shapes of `elems`.

    Raises:
      ValueError: for arrays of different lengths or an axis that is out of range.

    >>> import perspex.numpy as pnp
    >>> from perspex import lax
    >>> lax.associative_scan(pnp.multiply, pnp.arange(1, 6))
    Array([  1,   2,   6,  24, 120], dtype=int32)
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, treedef = tree.flatten(elems)
    if not leaves:
        raise ValueError("lax.associative_scan: `elems` holds no arrays; pass at least one")
    shapes = [shaped(x).shape for x in leaves]
    axis, *_ = [canonical_axis(axis, len(shape)) for shape in shapes]
    lengths = [shape[axis] for shape in shapes]
    if len(set(lengths)) > 1:
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. "
            f"(saw: {shapes}, axis {axis}); pad or cut them to one length"
        )

    def combine(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        out = fn(tree.unflatten(treedef, left), tree.unflatten(treedef, right))
        return treedef.flatten_up_to(out)

    if reverse:
        leaves = [rev(x, dimensions=(axis,)) for x in leaves]
    found = prefixes(combine, leaves, lengths[0], axis)
    if reverse:
        found = [rev(x, dimensions=(axis,)) for x in found]
    return tree.unflatten(treedef, found)

"""Slices given by a start and a size: indices whose start may be computed while running."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex.base.dimensions import is_known, size
from perspex.base.pytree_registry import register_pytree_node_class

_ABSENT = object()


@register_pytree_node_class
class Slice:
    """The index that `ds` makes.

    A pytree: a start that is an array is its leaf; the other numbers are part of its structure.
    """

    __slots__ = ("size", "start", "stride")

    def __init__(self, start: Any, size: Any, stride: int = 1) -> None:
        if stride < 0:
            raise ValueError(f"ds: the stride must not be negative, got {stride}")
        self.start, self.size, self.stride = start, size, stride

    @property
    def is_dynamic_start(self) -> bool:
        """Whether the start is an array."""
        return not _is_number(self.start)

    @property
    def is_dynamic_size(self) -> bool:
        """Whether the size is an array, which no index takes."""
        return not _is_number(self.size)

    def tree_flatten(self) -> tuple[tuple[Any, Any], tuple[Any, Any, int]]:
        start, size = self.is_dynamic_start, self.is_dynamic_size
        leaves = self.start if start else None, self.size if size else None
        return leaves, (None if start else self.start, None if size else self.size, self.stride)

    @classmethod
    def tree_unflatten(cls, fixed: tuple[Any, Any, int], leaves: tuple[Any, Any]) -> Slice:
        # What a leaf is replaced by is not looked at.
        made: Slice = object.__new__(cls)
        made.start = fixed[0] if leaves[0] is None else leaves[0]
        made.size = fixed[1] if leaves[1] is None else leaves[1]
        made.stride = fixed[2]
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Slice):
            return NotImplemented
        mine, theirs = [(s.start, s.size, s.stride) for s in (self, other)]
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Slice(start={self.start!r}, size={self.size!r}, stride={self.stride})"


def _is_number(n: Any) -> bool:
    return is_known(n) or isinstance(n, np.integer)


def ds(start: Any, size: Any = _ABSENT, stride: int | None = None) -> slice | Slice:
    """A slice given by its start and its size, for indexing arrays and refs.

    In `x[ds(i, n)]` the start `i` may be an array, also a traced one, since the shape depends on
    the size alone. `ds(n)` is `:n`, and `ds(None)` is `:`.

    With a stride, an index of an array counts as JAX does: `ds(i, n, stride)` is
    `i : i + n : stride` if `i` is a number, and `n` elements if it is an array. An index of a ref
    always names `n` elements.

    Args:
      start: an integer, or a scalar array of integers; where a slice with a start that is an array
        would reach outside, it is moved inside.
      size: the number of elements, known while tracing; but see above.
      stride: the distance between neighbours, known while tracing; 1 if not given.

    Returns:
      An index, or part of one.

    Raises:
      ValueError: for a stride that is negative or not an integer.

    >>> import perspex.numpy as jnp
    >>> x, i = jnp.arange(10), jnp.int32(4)
    >>> x[ds(i, 2)]
    Array([4, 5], dtype=int32)
    """
    if start is None:
        if size is _ABSENT:
            return slice(None, None, stride)
        start = 0
    step = 1 if stride is None else stride
    if not isinstance(step, int):
        raise ValueError(f"ds: the stride must be an integer, got {step!r}")
    if size is _ABSENT:
        start, size = 0, start
    return Slice(start, size, step)


def static_size(part: Slice) -> Any:
    """The number of elements of a slice; `TypeError` if it is not known."""
    try:
        return size(part.size)
    except TypeError:
        raise TypeError(
            f"ds: the size must be an integer that is known while tracing, got {part.size!r}; "
            "read a part of the greatest size and mask what is too much"
        ) from None

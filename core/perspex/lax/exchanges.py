"""Exchanges that are begun and awaited, and those of as many rows as the data say."""

from __future__ import annotations

from typing import Any

from perspex import tree
from perspex.arguments.arrays import aval_of
from perspex.arguments.types import Array, ArrayLike
from perspex.base.pytree_registry import register_pytree_node_class
from perspex.lax.collectives import Groups, psum_scatter
from perspex.lax.named_axes import AxisName, names_of, on_each, sizes_of
from perspex.ops import ragged_exchange as ops

__all__ = ["psum_scatter_start", "ragged_all_to_all"]


@register_pytree_node_class
class Future:
    """The result of an exchange that has been begun: `done()` awaits it."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def done(self) -> Any:
        """The result."""
        return self._value

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self._value,), None

    @classmethod
    def tree_unflatten(cls, _: None, values: tuple[Any]) -> Future:
        return cls(values[0])


def psum_scatter_start(
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> Any:
    """Begin a `psum_scatter`: what stands between it and `done()` need not wait for it.

    In the program it is one operation. Compilers for accelerators begin such an operation as early
    and await it as late as they can.

    Args:
      x: a pytree of arrays of numbers.
      axis_name: a name or a tuple of names.
      scatter_dimension: the axis of `x` that is divided among the examples.
      axis_index_groups: must be `None`.
      tiled: whether each example gets a piece of the axis, and not one element.

    Returns:
      A pytree like `x` of futures, whose method `done()` gives the result.

    Raises:
      ValueError: for an axis that does not exist or does not divide.
      NameError: for a name that no `vmap` around has given.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> x = jnp.array([[1.0, 2.0], [10.0, 20.0]])
    >>> vmap(lambda x: lax.psum_scatter_start(x, "i").done(), axis_name="i")(x)
    Array([11., 22.], dtype=float32)
    """
    found = psum_scatter(
        x,
        axis_name,
        scatter_dimension=scatter_dimension,
        axis_index_groups=axis_index_groups,
        tiled=tiled,
    )
    return tree.map(Future, found)


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: AxisName,
    axis_index_groups: Groups = None,
) -> Array:
    """Send slices of rows to all examples, and write what arrives into `output`.

    Example `i` sends to example `j` the `send_sizes[j]` rows of `operand` from `input_offsets[j]`
    on, and says that they go to the rows of the output of `j` from `output_offsets[j]` on. From `j`
    it gets `recv_sizes[j]` rows. Several slices for each example stand together. No two slices go
    to one row; for a derivative, none comes from the row of another either.

    Args:
      operand: the rows to send, an array of one axis or more.
      output: the rows to write into, of the shape and dtype of those of `operand`.
      input_offsets, send_sizes, output_offsets, recv_sizes: integers, as many as there are examples
        or a multiple of that.
      axis_name: the name of the axis.
      axis_index_groups: must be `None`.

    Returns:
      An array like `output`, with the rows that arrived in it.

    Raises:
      ValueError: for other shapes and dtypes.
      NameError: for a name that no `vmap` or `shard_map` around has given.
      NotImplementedError: for groups, and for several names.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> rows, sizes = jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 1], [1, 1]])
    >>> send = lambda x, out, n, to: lax.ragged_all_to_all(
    ...     x, out, jnp.array([0, 1]), n, to, n, axis_name="i"
    ... )
    >>> vmap(send, axis_name="i")(rows, 0 * rows, sizes, jnp.array([[0, 0], [1, 1]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    names = names_of(axis_name)
    if axis_index_groups is not None or len(names) != 1:
        raise NotImplementedError(
            "ragged_all_to_all: axis_index_groups and several names are not supported; give each "
            "axis a name of its own"
        )
    (size,) = sizes_of("ragged_all_to_all", names)
    values = (operand, output, input_offsets, send_sizes, output_offsets, recv_sizes)
    rows, into, *offsets = [aval_of("ragged_all_to_all", value) for value in values]
    ops.check_slices(rows, into, offsets, size)
    primitive: Any = ops.ragged_all_to_all
    out: Array = primitive(
        *[on_each(value, names) for value in values], axis_name=names, axis_size=size
    )
    return out

"""Reductions of sliding windows: pooling, moving sums and the like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from perspex import tree
from perspex.arguments.arrays import aval_of
from perspex.arguments.static import integers
from perspex.control.reduce import reduce_window_p
from perspex.ir.avals import ShapedArray
from perspex.lax import elementwise
from perspex.lax.reductions import by_identity, scalar_program
from perspex.ops import sliding
from perspex.ops import window_reductions as ops
from perspex.tracing.primitive import Primitive

__all__ = ["padtype_to_pads", "reduce_window", "reduce_window_shape_tuple"]

Padding = str | sliding.PaddingType | Sequence[tuple[int, int]]
"""A padding by name, or `(low, high)` for each axis."""


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduce each window that slides over an array by a function of two scalars.

    `lax.add`, `max` and `min` with their identities become `reduce_window_sum` and its kin. Maxima
    and minima hand their derivative to the first extreme element of a window, as XLA does; the
    derivative of any other computation is written out over the elements of a window.

    Args:
      operand: an array, or a pytree of arrays of one shape that are reduced together.
      init_value: scalars of the same structure and dtypes: identities of `computation`, which
        stand for what is padded.
      computation: an associative function of what there is so far and an element.
      window_dimensions: the size of the window along each axis, 1 where it does not slide.
      window_strides: how far the window moves along each axis; 1 if not given.
      padding: `"VALID"`, `"SAME"`, `"SAME_LOWER"`, or `(low, high)` for each axis.
      base_dilation: the distance of the operand's elements; 1 if not given.
      window_dilation: the distance of the window's elements; 1 if not given.

    Returns:
      Arrays in the structure of `operand`, with an element for each window.

    Raises:
      TypeError: for wrong numbers of entries or dtypes that differ.
      ValueError: for structures that differ.
      NotImplementedError: if `computation` closes over values being traced.

    Max pooling, and average pooling:

    >>> import numpy as np
    >>> from perspex import lax
    >>> x = np.arange(16.0).reshape(4, 4)
    >>> lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2))
    Array([[ 5.,  7.],
           [13., 15.]], dtype=float32)
    >>> lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 2)) / 4
    Array([[ 2.5,  4.5],
           [10.5, 12.5]], dtype=float32)
    """
    name = "reduce_window"
    leaves, structure = tree.flatten(operand)
    inits, found = tree.flatten(init_value)
    if not leaves:
        raise ValueError("reduce_window must have at least one operand; got none")
    if structure != found:
        raise ValueError(
            f"reduce_window: operand and init_value must have the same structure, got {structure} "
            f"and {found}"
        )
    avals = [aval_of(name, x) for x in leaves]
    shape = avals[0].shape
    windows = _windows(
        name, shape, window_dimensions, window_strides, base_dilation, window_dilation
    )
    params = windows._replace(padding=_padding(name, shape, windows, padding))._asdict()
    if len(leaves) == 1:
        primitive = by_identity(_MONOIDS, computation, inits[0])
        if primitive is not None:
            return tree.unflatten(structure, [primitive(leaves[0], **params)])
    scalars = [ShapedArray((), aval.dtype) for aval in avals]
    program = scalar_program(name, computation, structure, scalars)
    return tree.unflatten(structure, reduce_window_p(*leaves, *inits, jaxpr=program, **params))


_MONOIDS: dict[Any, Primitive] = {
    elementwise.add: ops.reduce_window_sum,
    elementwise.max: ops.reduce_window_max,
    elementwise.min: ops.reduce_window_min,
}


def _windows(
    name: str, shape: Sequence[int], window: Any, strides: Any, base: Any, gaps: Any
) -> ops.WindowParams:
    """The params of windows, without padding."""
    window = integers(name, "window_dimensions", window)
    if len(window) != len(shape):
        raise TypeError(
            f"{name} got the wrong number of window_dimensions for operand: got operand shape "
            f"{tuple(shape)} with window_dimensions {window}."
        )
    ones = (1,) * len(shape)
    found = ops.WindowParams(
        window,
        ones if strides is None else integers(name, "window_strides", strides),
        ((0, 0),) * len(shape),
        ones if base is None else integers(name, "base_dilation", base),
        ones if gaps is None else integers(name, "window_dilation", gaps),
    )
    found.check(name, len(shape))
    return found


def _padding(
    name: str, shape: Sequence[int], windows: ops.WindowParams, padding: Any
) -> sliding.Pads:
    if isinstance(padding, (str, sliding.PaddingType)):
        # As in JAX, by the size before it is dilated.
        reach = list(map(sliding.dilated, windows.window_dimensions, windows.window_dilation))
        return tuple(sliding.pads_by_name(shape, reach, windows.window_strides, padding))
    return pairs(name, padding, len(shape))


def pairs(name: str, padding: Any, ndim: int) -> sliding.Pads:
    """`(low, high)` for each of `ndim` axes, as tuples; `ValueError` for anything else."""
    try:
        found = tuple([(low, high) for low, high in padding])
    except TypeError:
        raise ValueError(
            f"padding argument to {name} should be a string or a sequence of (low, high) pairs, "
            f"got {padding}"
        ) from None
    if len(found) != ndim:
        raise ValueError(f"{name}: padding must have {ndim} (low, high) pairs, got {padding}")
    return tuple([integers(name, "padding", pair) for pair in found])  # type: ignore[misc]


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of the result of `reduce_window`.

    Args:
      operand_shape: the shape of the operand.
      window_dimensions, window_strides, base_dilation, window_dilation: as for `reduce_window`.
      padding: `(low, high)` for each axis.

    Returns:
      A tuple of integers.

    Raises:
      TypeError: for a wrong number of entries.
      ValueError: for a wrong number of pads.

    >>> from perspex import lax
    >>> lax.reduce_window_shape_tuple((8, 8), (2, 3), (2, 1), ((0, 0), (1, 1)))
    (4, 8)
    """
    name = "reduce_window_shape_tuple"
    shape = integers(name, "operand_shape", operand_shape)
    windows = _windows(
        name, shape, window_dimensions, window_strides, base_dilation, window_dilation
    )
    return windows._replace(padding=pairs(name, padding, len(shape))).counts(shape)


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | sliding.PaddingType,
) -> list[tuple[int, int]]:
    """The `(low, high)` padding of each axis that a name means.

    Args:
      in_shape, window_shape, window_strides: an entry for each axis that the window slides along.
      padding: `"VALID"`: none; `"SAME"`: as much as gives a window for each stride, the odd element
        at the end; `"SAME_LOWER"`: the odd element at the start.

    Returns:
      A list of pairs of integers.

    Raises:
      RuntimeError: for another name.
      TypeError: if `padding` is not a name.
      ValueError: for lengths that differ, or a stride of zero.

    >>> from perspex import lax
    >>> lax.padtype_to_pads((8, 8), (3, 2), (1, 2), "SAME")
    [(1, 1), (0, 0)]
    """
    name = "padtype_to_pads"
    shape = integers(name, "in_shape", in_shape)
    window = integers(name, "window_shape", window_shape)
    strides = integers(name, "window_strides", window_strides)
    if not len(shape) == len(window) == len(strides):
        raise ValueError(
            f"{name}: in_shape, window_shape and window_strides must have equal lengths, got "
            f"{shape}, {window} and {strides}"
        )
    if math.prod(strides) == 0:
        raise ValueError(f"{name}: window_strides must be positive, got {strides}")
    return sliding.pads_by_name(shape, window, strides, padding)

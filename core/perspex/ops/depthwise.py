"""Convolutions of each feature by itself, written out for CPUs as sums of shifted products.

XLA has no fast code for them there. Written out, with a product for each element of the window,
they become one loop, which takes a seventh of the time or less. But XLA takes longer to compile
that loop, so small convolutions stay as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.base.dimensions import is_static
from perspex.ir.avals import ShapedArray
from perspex.ops.elementwise import add, mul
from perspex.ops.shape import pad, part, slice
from perspex.ops.sliding import Slide
from perspex.ops.structural import broadcast_in_dim, reshape, transpose
from perspex.tracing.trace import typeof

# The axes of `lhs`, `rhs` and the result by role: see `convolution.ConvDimensionNumbers`.
Numbers = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
# So many elements a window has at most, and so many products there are at least.
_LARGEST, _LEAST = 49, 2**20


def is_written_out(
    operands: Sequence[ShapedArray], out: ShapedArray, numbers: Numbers, groups: int
) -> bool:
    """Whether a convolution has a kernel for each feature, and is worth writing out."""
    lhs, rhs = operands
    lhs_spec, rhs_spec, _ = numbers
    features = lhs.shape[lhs_spec[1]]
    if not is_static(out.shape) or not groups == features == rhs.shape[rhs_spec[0]]:
        return False
    if not lhs.dtype == rhs.dtype == out.dtype or out.dtype not in (np.float32, np.float64):
        return False
    window = math.prod([rhs.shape[i] for i in rhs_spec[2:]])
    return window <= _LARGEST and out.size * window >= _LEAST


def written_out(
    lhs: Any, rhs: Any, out: ShapedArray, numbers: Numbers, slides: Sequence[Slide]
) -> Any:
    """The sum over the places in the window, each a part of `lhs` times a number per feature."""
    lhs_spec, rhs_spec, out_spec = numbers
    x = transpose(lhs, permutation=tuple([lhs_spec[out_spec.index(i)] for i in range(out.ndim)]))
    around = [(0, 0, 0)] * out.ndim
    for axis, slide in zip(out_spec[2:], slides, strict=True):
        around[axis] = (*slide.padding, slide.base - 1)
    x = pad(x, np.zeros((), out.dtype), padding_config=tuple(around))
    kernel = transpose(rhs, permutation=(*rhs_spec[2:], *rhs_spec[:2]))
    *window, features, _ = typeof(kernel).shape
    rows = reshape(kernel, new_sizes=(math.prod(window), features))
    total = None
    for i, place in enumerate(itertools.product(*map(range, window))):
        starts, ends, steps = [0] * out.ndim, list(typeof(x).shape), [1] * out.ndim
        for axis, k, slide in zip(out_spec[2:], place, slides, strict=True):
            starts[axis], steps[axis] = k * slide.gap, slide.stride
            ends[axis] = starts[axis] + (out.shape[axis] - 1) * slide.stride + 1
        shifted = slice(
            x, start_indices=tuple(starts), limit_indices=tuple(ends), strides=tuple(steps)
        )
        row = reshape(part(rows, i, i + 1, 0, typeof(rows).shape), new_sizes=(features,))
        dims = (out_spec[1],)
        row = broadcast_in_dim(row, shape=out.shape, broadcast_dimensions=dims, sharding=None)
        total = mul(shifted, row) if total is None else add(total, mul(shifted, row))
    return total

"""Convolutions."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import aval_of
from perspex.arguments.glossary import describe
from perspex.arguments.sharded import WORDS, OutSharding, decided
from perspex.arguments.static import integers
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.lax.conv_dimensions import (
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    pads_back,
)
from perspex.lax.linear import PrecisionLike, dot_general
from perspex.lax.windows import Padding, pairs
from perspex.ops import convolution as ops
from perspex.ops.elementwise import eq
from perspex.ops.precision import canonical_precision
from perspex.ops.shape import iota, rev
from perspex.ops.sliding import PaddingType, Pads, dilated, pads_by_name
from perspex.ops.structural import broadcast_in_dim, convert, reshape, transpose
from perspex.tracing.trace import typeof

__all__ = [
    "conv", "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_patches",
    "conv_transpose", "conv_with_general_padding",
]  # fmt: skip

# ---- Convolutions -------------------------------------------------------------------------------


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The convolution of the spatial axes: sums of products of a kernel with sliding windows.

    As everywhere in machine learning, the kernel is not mirrored: signal processing calls this a
    correlation.

    Args:
      lhs: an array with axes batch, features and the spatial ones, in any order.
      rhs: the kernel, of the same dtype and rank: output features, input features, spatial axes.
      window_strides: how far the window moves along each spatial axis.
      padding: `"VALID"`, `"SAME"`, `"SAME_LOWER"`, or `(low, high)` for each spatial axis, which
        may be negative.
      lhs_dilation: the distance between the elements of `lhs`, for transposed convolutions.
      rhs_dilation: the distance between the elements of the kernel ("atrous" convolution).
      dimension_numbers: which axis is which, see `conv_dimension_numbers`.
      feature_group_count: cuts features into groups which meet only the kernels of their group;
        as many as there are features make a depthwise convolution.
      batch_group_count: cuts the batch into groups which meet only the kernels of their group.
      precision: how exactly accelerators multiply; `default_matmul_precision` if not given.
      preferred_element_type: the dtype to accumulate in, which is that of the result.

    Returns:
      An array with axes batch, output features and one index for each window.

    Raises:
      TypeError: for dtypes or ranks that differ.
      ValueError: for sizes that do not fit.
      RuntimeError: for an unknown name of a padding.

    >>> import numpy as np
    >>> from perspex import lax
    >>> x, kernel = np.arange(5.0).reshape(1, 1, 5), np.array([[[1.0, 10.0]]])
    >>> lax.conv_general_dilated(x, kernel, (1,), "VALID")
    Array([[[10., 21., 32., 43.]]], dtype=float32)
    """
    name = "conv_general_dilated"
    left, right = aval_of(name, lhs).shape, aval_of(name, rhs).shape
    numbers = conv_dimension_numbers(left, right, dimension_numbers)
    spatial = len(left) - 2
    strides = integers(name, "window_strides", window_strides)
    if len(strides) != spatial:
        raise ValueError(
            f"{name} window and window_strides must have the same number of dimensions, but got "
            f"{spatial} and {len(strides)}"
        )
    ones = (1,) * spatial
    lhs_gaps = ones if lhs_dilation is None else integers(name, "lhs_dilation", lhs_dilation)
    rhs_gaps = ones if rhs_dilation is None else integers(name, "rhs_dilation", rhs_dilation)
    if isinstance(padding, (str, PaddingType)):
        if any(d != 1 for d in lhs_gaps):
            raise ValueError(
                f"{name}: a padding by name, {padding!r}, is not defined with lhs_dilation "
                f"{lhs_gaps}; give (low, high) pairs, or use conv_transpose"
            )
        if any(n < 1 for n in strides) or len(rhs_gaps) != spatial:
            raise ValueError(
                f"{name}: window_strides and rhs_dilation must be {spatial} positive numbers, got "
                f"{strides} and {rhs_gaps}"
            )
        if any(n < 1 for n in rhs_gaps):
            raise TypeError(f"{name}: all dilations must be positive, got {rhs_gaps}")
        reach = [dilated(right[i], d) for i, d in zip(numbers.rhs_spec[2:], rhs_gaps, strict=True)]
        places = [left[i] for i in numbers.lhs_spec[2:]]
        pads = tuple(pads_by_name(places, reach, strides, padding))
    else:
        pads = _pads(name, padding, [left[i] for i in numbers.lhs_spec[2:]], lhs_gaps)
    preferred = preferred_element_type
    convolve = functools.partial(
        ops.conv_general_dilated,
        window_strides=strides,
        padding=pads,
        lhs_dilation=lhs_gaps,
        rhs_dilation=rhs_gaps,
        dimension_numbers=numbers,
        feature_group_count=int(feature_group_count),
        batch_group_count=int(batch_group_count),
        precision=canonical_precision(precision),
        preferred_element_type=None if preferred is None else dtypes.canonicalize_dtype(preferred),
    )
    return decided(out_sharding, convolve, lhs, rhs)


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of `lhs` of shape `(n, c, ...)` with a kernel of shape `(o, c, ...)`.

    Args:
      padding: `"VALID"`, `"SAME"` or `"SAME_LOWER"`.

    Returns:
      An array of shape `(n, o, ...)`.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.conv(np.ones((1, 3, 8, 8)), np.ones((4, 3, 3, 3)), (1, 1), "SAME").shape
    (1, 4, 8, 8)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """`conv` with dilations and any padding.

    Returns:
      An array of shape `(n, o, ...)`.

    >>> import numpy as np
    >>> from perspex import lax
    >>> x, kernel = np.ones((1, 3, 8, 8)), np.ones((4, 3, 3, 3))
    >>> lax.conv_with_general_padding(x, kernel, (1, 1), ((1, 1), (0, 0)), None, (1, 2)).shape
    (1, 4, 8, 4)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


_CHANNELS_LAST = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def _pads(name: str, padding: Any, places: Sequence[int], gaps: Sequence[int]) -> Pads:
    """Padding given as pairs: one for each spatial axis, which takes away no more than there is."""
    try:
        count = len(padding)
    except TypeError:
        count = len(places)
    if count != len(places):
        raise TypeError(
            f"{name}: padding must have {len(places)} (low, high) pairs, got {count}: {padding}"
        )
    pads = pairs(name, padding, len(places))
    places = [dilated(n, d) for n, d in zip(places, gaps, strict=False)]
    if any(low + high + n < 0 for (low, high), n in zip(pads, places, strict=True)):
        raise ValueError(
            f"{name}: the padding {pads} takes away more than the sizes {tuple(places)}"
        )
    return pads


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """The transposed convolution: the elements of `lhs` are moved `strides` apart first.

    It restores the shapes that a strided convolution reduces. It is the transpose of
    `conv_general_dilated` with the same kernel only with `transpose_kernel=True`.

    Args:
      lhs, rhs: as for `conv_general_dilated`.
      strides: the distance that the elements of `lhs` get.
      padding: `"SAME"` gives `strides` times the size, `"VALID"` the size that the transpose of a
        `"VALID"` convolution has. Pairs are those of the convolution over the dilated `lhs`.
      use_consistent_padding: take pairs as those of the convolution whose transpose this is.
      dimension_numbers: as for `conv_general_dilated`, but features last if not given.
      transpose_kernel: mirror the kernel, and exchange its input and output features.

    Returns:
      An array with axes batch, output features and the spatial ones, as `dimension_numbers` says.

    References:
      Dumoulin and Visin, "A guide to convolution arithmetic for deep learning" (2016)

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.conv_transpose(np.ones((1, 4, 1)), np.ones((3, 1, 1)), (2,), "SAME")[0, :, 0]
    Array([1., 1., 2., 1., 2., 1., 2., 1.], dtype=float32)
    """
    name = "conv_transpose"
    left, right = aval_of(name, lhs).shape, aval_of(name, rhs).shape
    if dimension_numbers is None:
        if len(left) not in _CHANNELS_LAST:
            raise ValueError(
                f"{name}: dimension_numbers must be given for {len(left)} axes; only 2 to 5 have a "
                "default"
            )
        dimension_numbers = _CHANNELS_LAST[len(left)]
    numbers = conv_dimension_numbers(left, right, dimension_numbers)
    steps = integers(name, "strides", strides)
    spatial = numbers.rhs_spec[2:]
    gaps = (1,) * len(spatial)
    if rhs_dilation is not None:
        gaps = integers(name, "rhs_dilation", rhs_dilation)
    reach = [dilated(right[i], gap) for i, gap in zip(spatial, gaps, strict=True)]
    pads: Any = padding
    if isinstance(padding, str) and padding.upper() in ("SAME", "VALID"):
        pads = [pads_back(k, step, padding) for k, step in zip(reach, steps, strict=True)]
    elif use_consistent_padding and not isinstance(padding, (str, PaddingType)):
        given = pairs(name, padding, len(spatial))
        pads = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(reach, given, strict=True)]
    if transpose_kernel:
        rhs = rev(rhs, dimensions=spatial)
        made, taken, *rest = numbers.rhs_spec
        numbers = numbers._replace(rhs_spec=(taken, made, *rest))
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * len(spatial),
        pads,
        steps,
        gaps,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


# ---- Patches ------------------------------------------------------------------------------------


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The windows that a convolution would slide over, each laid out along the feature axis.

    Args:
      lhs: an array with axes batch, features (`c`) and the spatial ones.
      filter_shape: the size of the window along each spatial axis.

    Returns:
      An array with `c * prod(filter_shape)` features, those of one feature of `lhs` together.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.conv_general_dilated_patches(np.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")[0]
    Array([[0., 1., 2.],
           [1., 2., 3.]], dtype=float32)
    """
    name = "conv_general_dilated_patches"
    window = integers(name, "filter_shape", filter_shape)
    aval = aval_of(name, lhs)
    numbers = conv_dimension_numbers(aval.shape, (1,) * aval.ndim, dimension_numbers)
    features, size = aval.shape[numbers.lhs_spec[1]], math.prod(window)
    # Kernel k has a one at place k; each feature meets them all.
    square = (size, size)
    int32 = np.dtype("int32")
    ones = eq(
        iota(dtype=int32, shape=square, dimension=0), iota(dtype=int32, shape=square, dimension=1)
    )
    kernels = reshape(convert(ones, aval.dtype), new_sizes=(size, 1, *window))
    full = (features, *typeof(kernels).shape)
    kernels = broadcast_in_dim(kernels, shape=full, broadcast_dimensions=tuple(range(1, len(full))))
    kernels = reshape(kernels, new_sizes=(features * size, 1, *window))
    place = tuple([numbers.rhs_spec.index(i) for i in range(aval.ndim)])
    return conv_general_dilated(
        lhs,
        transpose(kernels, permutation=place),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=features,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """A convolution with a kernel of its own for each window.

    Args:
      lhs: an array with axes batch, features (`c`) and the spatial ones.
      rhs: an array with axes output features, `c * prod(filter_shape)` (as the patches have them),
        and the spatial axes of the result, arranged as `dimension_numbers` says.
      filter_shape: the size of the window along each spatial axis.

    Returns:
      An array with axes batch, output features and the spatial ones, as `dimension_numbers` says.

    Raises:
      TypeError: if `rhs` has other sizes than the patches, or dtypes differ.
      ValueError: for sizes that do not fit.

    >>> import numpy as np
    >>> from perspex import lax
    >>> x, kernels = np.arange(4.0).reshape(1, 1, 4), np.array([[[1.0, 2, 3], [0, 0, 1]]])
    >>> lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,))
    Array([[[0., 2., 9.]]], dtype=float32)
    """
    name = "conv_general_dilated_local"
    left, right = aval_of(name, lhs).shape, aval_of(name, rhs).shape
    numbers = conv_dimension_numbers(left, right, dimension_numbers)
    pair = canonical_precision(precision)
    patches = conv_general_dilated_patches(
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        # An algorithm is none for the patches, which add nothing up.
        precision=pair[0] if isinstance(pair, tuple) and len(pair) == 2 else None,
    )
    _, rhs_spec, out_spec = numbers
    dims = (((out_spec[1],), (rhs_spec[1],)), (out_spec[2:], rhs_spec[2:]))
    out = dot_general(patches, rhs, dims, precision=pair)
    # The spatial axes, batch, features.
    order = (*out_spec[2:], out_spec[0], out_spec[1])
    return transpose(out, permutation=tuple([order.index(i) for i in range(len(order))]))


describe(
    (conv_general_dilated, conv, conv_with_general_padding, conv_transpose)
    + (conv_general_dilated_patches, conv_general_dilated_local),
    {
        "lhs": "an array with axes batch, features and the spatial ones, in this order.",
        "rhs": "the kernel, with axes output features, input features and the spatial ones.",
        "window_strides": "how far the window moves along each spatial axis.",
        "padding": '`"VALID"`, `"SAME"`, `"SAME_LOWER"`, or `(low, high)` for each spatial axis.',
        "lhs_dilation": "the distance between the elements of `lhs`; 1 if not given.",
        "rhs_dilation": "the distance between the elements of the kernel; 1 if not given.",
        "dimension_numbers": "which axis is which, see `conv_dimension_numbers`.",
        "precision": "how exactly accelerators multiply; `default_matmul_precision` if not given.",
        "preferred_element_type": "the dtype to accumulate in, which is that of the result.",
        "out_sharding": WORDS,
    },
    "TypeError: for dtypes or numbers of axes that differ.\n"
    "ValueError: for sizes that do not fit.\n"
    "RuntimeError: for an unknown name of a padding.",
)

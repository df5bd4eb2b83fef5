"""Convolutions, and the bookkeeping of their axes, shapes and paddings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.lax.arrays import ArrayLike, DTypeLike, aval_of, check_unsharded, integers
from perspex.lax.linear import PrecisionLike, dot_general
from perspex.lax.windows import Padding, pairs
from perspex.ops import convolution as ops
from perspex.ops.convolution import ConvDimensionNumbers
from perspex.ops.elementwise import eq
from perspex.ops.linear import canonical_precision
from perspex.ops.shape import iota, rev
from perspex.ops.sliding import PaddingType, count, dilated, pads_by_name
from perspex.ops.structural import broadcast_in_dim, convert, reshape, transpose
from perspex.runtime.array import Array
from perspex.tracing.trace import typeof

ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]
"""What names the axes of a convolution: nothing, three strings, or positions."""

Axes = tuple[int, ...]


# ---- Axes ---------------------------------------------------------------------------------------


def conv_dimension_numbers(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> ConvDimensionNumbers:
    """The positions of the axes of a convolution by role.

    Args:
      lhs_shape, rhs_shape: the shapes of the operands.
      dimension_numbers: three strings for `lhs`, the kernel and the result, a letter an axis: `N`
        batch, `C` features, `O` and `I` output and input features, any others the spatial axes;
        `None` for `("NCHW", "OIHW", "NCHW")` with as many spatial axes as there are; or a
        `ConvDimensionNumbers`, which is given back.

    Errors:
      `TypeError` for shapes of different lengths and strings that do not name all axes alike.

    >>> conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).rhs_spec
    (3, 2, 0, 1)
    """
    ndim = len(lhs_shape)
    if ndim != len(rhs_shape):
        raise TypeError(
            f"convolution requires lhs and rhs ndim to be equal, got {ndim} and {len(rhs_shape)}; "
            "add axes of size one"
        )
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(ndim))] * 3)
    if not isinstance(dimension_numbers, (tuple, list)):
        raise TypeError(
            "convolution dimension_numbers must be None, three strings or a ConvDimensionNumbers, "
            f"got {dimension_numbers!r}"
        )
    if len(dimension_numbers) != 3:
        raise TypeError(
            "convolution dimension_numbers list/tuple must be length 3, got "
            f"{len(dimension_numbers)}."
        )
    if not all(isinstance(spec, str) for spec in dimension_numbers):
        found = tuple([type(spec) for spec in dimension_numbers])
        raise TypeError(f"convolution dimension_numbers elements must be strings, got {found}.")
    for i, spec in enumerate(dimension_numbers):
        if len(spec) != ndim:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and "
                f"rhs, got {len(spec)} for lhs and rhs shapes {tuple(lhs_shape)} and "
                f"{tuple(rhs_shape)}."
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Axes, Axes, Axes]:
    """For each of three strings, the positions of batch, features and the spatial axes.

    The spatial axes come in the order that they have in the kernel's string.

    Errors:
      `TypeError` for strings without the letters of a role, with a letter twice, or with different
      spatial letters.

    >>> conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    given = tuple(dimension_numbers)
    roles = ("NC", "OI", "NC")
    for i, (spec, letters) in enumerate(zip(given, roles, strict=True)):
        if any(spec.count(letter) != 1 for letter in letters):
            raise TypeError(
                f"convolution dimension_numbers[{i}] must contain the characters {letters[0]!r} "
                f"and {letters[1]!r} exactly once, got {spec}."
            )
        if len(set(spec)) != len(spec):
            raise TypeError(
                f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {spec}."
            )
    spatial = [c for c in given[1] if c not in "OI"]
    if any(
        set(spec) - set(letters) != set(spatial) for spec, letters in zip(given, roles, strict=True)
    ):
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of spatial "
            f"characters, got {given}."
        )
    lhs, rhs, out = [
        tuple([spec.index(c) for c in (*letters, *spatial)])
        for spec, letters in zip(given, roles, strict=True)
    ]
    return lhs, rhs, out


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
    out_sharding: Any = None,
) -> Array:
    """The convolution of the spatial axes: sums of products of a kernel with sliding windows.

    As everywhere in machine learning, the kernel is not mirrored: this is what signal processing
    calls a correlation.

    Args:
      lhs: an array with axes batch, features and the spatial ones, in any order.
      rhs: the kernel, of the same dtype and rank: output features, input features, spatial axes.
      window_strides: how far the window moves along each spatial axis.
      padding: `"VALID"`, `"SAME"`, `"SAME_LOWER"`, or `(low, high)` for each spatial axis, which
        may be negative.
      lhs_dilation: the distance of the elements of `lhs`, for transposed convolutions.
      rhs_dilation: the distance of the elements of the kernel ("atrous" convolution).
      dimension_numbers: which axis is which, see `conv_dimension_numbers`.
      feature_group_count: cuts features into groups which meet only the kernels of their group;
        as many as there are features make a depthwise convolution.
      batch_group_count: cuts the batch into groups which meet only the kernels of their group.
      precision: how exactly accelerators multiply; `default_matmul_precision` if not given.
      preferred_element_type: the dtype to accumulate in, which is that of the result.

    Returns:
      An array with axes batch, output features and one index for each window.

    Errors:
      `TypeError` for dtypes or ranks that differ; `ValueError` for sizes that do not fit;
      `RuntimeError` for an unknown name of a padding.

    >>> import numpy as np
    >>> x, kernel = np.arange(5.0).reshape(1, 1, 5), np.array([[[1.0, 10.0]]])
    >>> conv_general_dilated(x, kernel, (1,), "VALID")
    Array([[[10., 21., 32., 43.]]], dtype=float32)
    """
    name = "conv_general_dilated"
    check_unsharded(name, out_sharding)
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
        if any(n < 1 for n in (*strides, *rhs_gaps)) or len(rhs_gaps) != spatial:
            raise ValueError(
                f"{name}: window_strides and rhs_dilation must be {spatial} positive numbers, got "
                f"{strides} and {rhs_gaps}"
            )
        reach = [dilated(right[i], d) for i, d in zip(numbers.rhs_spec[2:], rhs_gaps, strict=True)]
        places = [left[i] for i in numbers.lhs_spec[2:]]
        pads = tuple(pads_by_name(places, reach, strides, padding))
    else:
        pads = pairs(name, padding, spatial)
    preferred = preferred_element_type
    return ops.conv_general_dilated(
        lhs,
        rhs,
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


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of `lhs` of shape `(n, c, ...)` with a kernel of shape `(o, c, ...)`.

    Arguments and errors are those of `conv_general_dilated`.

    >>> import numpy as np
    >>> conv(np.ones((1, 3, 8, 8)), np.ones((4, 3, 3, 3)), (1, 1), "SAME").shape
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

    Arguments and errors are those of `conv_general_dilated`.

    >>> import numpy as np
    >>> x, kernel = np.ones((1, 3, 8, 8)), np.ones((4, 3, 3, 3))
    >>> conv_with_general_padding(x, kernel, (1, 1), ((1, 1), (0, 0)), None, (1, 2)).shape
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
    """The convolution that takes the shapes of a strided one back: `strides` spread `lhs` out.

    Dumoulin and Visin, "A guide to convolution arithmetic for deep learning" (2016), calls it
    transposed convolution. It is the transpose of `conv_general_dilated` with the same kernel only
    with `transpose_kernel=True`.

    Args:
      lhs, rhs: as for `conv_general_dilated`.
      strides: the distance that the elements of `lhs` get.
      padding: `"SAME"` gives `strides` times the size, `"VALID"` what the transpose of a `"VALID"`
        convolution has. Pairs are those of the convolution over the spread-out `lhs`; with
        `use_consistent_padding`, those of the convolution of which this is the transpose.
      rhs_dilation: the distance of the elements of the kernel.
      dimension_numbers: as for `conv_general_dilated`, but features last if not given.
      transpose_kernel: mirror the kernel, and exchange its input and output features.
      precision, preferred_element_type: as for `conv_general_dilated`.

    >>> import numpy as np
    >>> conv_transpose(np.ones((1, 4, 1)), np.ones((3, 1, 1)), (2,), "SAME")[0, :, 0]
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
        pads = [_pads_back(k, step, padding) for k, step in zip(reach, steps, strict=True)]
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


def _pads_back(k: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding of a transposed convolution with a kernel that reaches over `k` places."""
    total = k + stride - 2
    if padding.upper() == "SAME":
        low = k - 1 if stride > k - 1 else -(-total // 2)
    else:
        total += max(k - stride, 0)
        low = k - 1
    return low, total - low


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
      lhs: an array of inexact numbers with axes batch, features (`c`) and the spatial ones.
      filter_shape: the size of the window along each spatial axis.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision,
        preferred_element_type: as for `conv_general_dilated`.

    Returns:
      An array with `c * prod(filter_shape)` features, those of one feature of `lhs` together.

    >>> import numpy as np
    >>> conv_general_dilated_patches(np.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")[0]
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
      lhs: an array of inexact numbers with axes batch, features (`c`) and the spatial ones.
      rhs: an array with axes output features, `c * prod(filter_shape)` (as the patches have them),
        and the spatial axes of the result, arranged as `dimension_numbers` says.
      filter_shape: the size of the window along each spatial axis.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as for
        `conv_general_dilated`.

    Errors:
      `TypeError` if `rhs` has other sizes than the patches.

    >>> import numpy as np
    >>> x, kernels = np.arange(4.0).reshape(1, 1, 4), np.array([[[1.0, 2, 3], [0, 0, 1]]])
    >>> conv_general_dilated_local(x, kernels, (1,), "VALID", (2,))
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
        precision=pair and pair[0],
    )
    _, rhs_spec, out_spec = numbers
    dims = (((out_spec[1],), (rhs_spec[1],)), (out_spec[2:], rhs_spec[2:]))
    out = dot_general(patches, rhs, dims, precision=pair)
    # The spatial axes, batch, features.
    order = (*out_spec[2:], out_spec[0], out_spec[1])
    return transpose(out, permutation=tuple([order.index(i) for i in range(len(order))]))


# ---- Shapes -------------------------------------------------------------------------------------


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Padding,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """The shape of the convolution of `(n, c, ...)` with `(o, c, ...)`.

    Errors:
      `TypeError` for a wrong number of pads.

    >>> conv_shape_tuple((2, 3, 8, 8), (4, 3, 3, 3), (1, 2), "VALID")
    (2, 4, 6, 3)
    """
    name = "conv_shape_tuple"
    steps = integers(name, "strides", strides)
    if isinstance(pads, (str, PaddingType)):
        found = pads_by_name(lhs_shape[2:], rhs_shape[2:], steps, pads)
    else:
        found = list(pads)
    if len(found) != len(lhs_shape) - 2:
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected {len(lhs_shape) - 2}, got "
            f"{len(found)}."
        )
    spatial = [
        count(n + low + high, k, step)
        for n, k, step, (low, high) in zip(lhs_shape[2:], rhs_shape[2:], steps, found, strict=True)
    ]
    return lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """The shape of a convolution with the axes that `dimension_numbers` names.

    >>> names = ("NHWC", "HWIO", "NHWC")
    >>> conv_general_shape_tuple((2, 8, 8, 3), (3, 3, 3, 4), (1, 1), "SAME", names)
    (2, 8, 8, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple(
        [lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs], window_strides, padding
    )
    return _arranged(shape, out)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """The shape of a transposed convolution with the axes that `dimension_numbers` names.

    >>> names = ("NHWC", "HWIO", "NHWC")
    >>> conv_transpose_shape_tuple((2, 8, 8, 3), (3, 3, 3, 4), (2, 2), "SAME", names)
    (2, 16, 16, 4)
    """
    name = "conv_transpose_shape_tuple"
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    steps = integers(name, "window_strides", window_strides)
    places, window = [lhs_shape[i] for i in lhs[2:]], [rhs_shape[i] for i in rhs[2:]]
    if isinstance(padding, str):
        pads = [_pads_back(k, step, padding) for k, step in zip(window, steps, strict=True)]
    else:
        pads = list(pairs(name, padding, len(places)))
    spatial = [
        count(dilated(n, step) + low + high, k, 1)
        for n, k, step, (low, high) in zip(places, window, steps, pads, strict=True)
    ]
    return _arranged((lhs_shape[lhs[0]], rhs_shape[rhs[0]], *spatial), out)


def _arranged(shape: Sequence[int], places: Axes) -> tuple[int, ...]:
    """The shape whose axis `places[i]` has size `shape[i]`."""
    return tuple([shape[places.index(i)] for i in range(len(places))])

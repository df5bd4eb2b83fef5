"""The bookkeeping of convolutions: axes by role, and shapes."""

from __future__ import annotations

from collections.abc import Sequence

from perspex.arguments.glossary import describe
from perspex.arguments.static import integers
from perspex.lax.windows import Padding, pairs
from perspex.ops.convolution import ConvDimensionNumbers
from perspex.ops.sliding import PaddingType, count, dilated, pads_by_name

__all__ = [
    "ConvGeneralDilatedDimensionNumbers", "conv_dimension_numbers", "conv_general_permutations",
    "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple",
]  # fmt: skip

ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]
"""What names the axes of a convolution: nothing, three strings, or positions."""

Axes = tuple[int, ...]


def conv_dimension_numbers(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> ConvDimensionNumbers:
    """The positions of the axes of a convolution by role.

    Args:
      lhs_shape, rhs_shape: the shapes of the operands.
      dimension_numbers: three strings for `lhs`, the kernel and the result, with a letter for each
        axis: `N` batch, `C` features, `O` and `I` output and input features, any others the spatial
        axes; `None` for `("NCHW", "OIHW", "NCHW")` with as many spatial axes as there are; or a
        `ConvDimensionNumbers`, which is returned as it is.

    Returns:
      A `ConvDimensionNumbers`.

    Raises:
      TypeError: for shapes of different lengths, or strings that do not name all axes alike.

    >>> from perspex import lax
    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).rhs_spec
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

    Args:
      dimension_numbers: three strings, for `lhs`, the kernel and the result, as
        `conv_dimension_numbers` takes them.

    Returns:
      Three tuples of positions, for `lhs`, the kernel and the result.

    Raises:
      TypeError: for strings without the letters of a role, with a letter twice, or with different
        spatial letters.

    >>> from perspex import lax
    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
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


def pads_back(k: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding of a transposed convolution with a kernel that reaches over `k` places."""
    total = k + stride - 2
    if padding.upper() == "SAME":
        low = k - 1 if stride > k - 1 else -(-total // 2)
    else:
        total += max(k - stride, 0)
        low = k - 1
    return low, total - low


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Padding,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """The shape of the convolution of `(n, c, ...)` with `(o, c, ...)`.

    Args:
      lhs_shape: the shape `(n, c, ...)`.
      rhs_shape: the shape `(o, c, ...)` of the kernel.
      strides: how far the window moves along each spatial axis.
      pads: a padding by name, or `(low, high)` for each spatial axis.
      batch_group_count: the number of groups that the batch is cut into.

    Returns:
      A tuple of integers.

    Raises:
      TypeError: for a wrong number of pads.
      RuntimeError: for an unknown name of a padding.

    >>> from perspex import lax
    >>> lax.conv_shape_tuple((2, 3, 8, 8), (4, 3, 3, 3), (1, 2), "VALID")
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

    Returns:
      A tuple of integers.

    Raises:
      TypeError: for a wrong number of pads, or strings that do not name all axes alike.
      RuntimeError: for an unknown name of a padding.

    >>> from perspex import lax
    >>> names = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_shape_tuple((2, 8, 8, 3), (3, 3, 3, 4), (1, 1), "SAME", names)
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

    Returns:
      A tuple of integers.

    Raises:
      TypeError: for strings that do not name all axes alike.
      ValueError: for a wrong number of pads.

    >>> from perspex import lax
    >>> names = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_transpose_shape_tuple((2, 8, 8, 3), (3, 3, 3, 4), (2, 2), "SAME", names)
    (2, 16, 16, 4)
    """
    name = "conv_transpose_shape_tuple"
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    steps = integers(name, "window_strides", window_strides)
    places, window = [lhs_shape[i] for i in lhs[2:]], [rhs_shape[i] for i in rhs[2:]]
    if isinstance(padding, str):
        pads = [pads_back(k, step, padding) for k, step in zip(window, steps, strict=True)]
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


describe(
    (conv_general_shape_tuple, conv_transpose_shape_tuple),
    {
        "lhs_shape": "the shape of `lhs`.",
        "rhs_shape": "the shape of the kernel.",
        "window_strides": "how far the window moves along each spatial axis.",
        "padding": "a padding by name, or `(low, high)` for each spatial axis.",
        "dimension_numbers": "three strings, see `conv_dimension_numbers`.",
    },
)

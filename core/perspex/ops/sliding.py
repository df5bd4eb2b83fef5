"""Windows that slide along axes: how many there are, and how they are padded.

Convolutions and reductions of windows share this arithmetic. Along one axis, an operand of `n`
elements is dilated (zeros, or nothing that counts, between its elements), then padded, and a window
whose `k` elements may have gaps as well moves over it in steps:

    dilated(n, d) = (n - 1) d + 1            what n elements with a dilation d reach over
    count = (dilated(n) + low + high - dilated(k)) // stride + 1
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from perspex.base.dimensions import greatest

Pads = tuple[tuple[int, int], ...]


def dilated(n: int, dilation: int) -> int:
    """What `n` elements reach over that are `dilation` apart."""
    return 0 if n.__class__ is int and not n else (n - 1) * dilation + 1


def count(n: int, window: int, stride: int) -> int:
    """How many windows there are in `n` places, when both are dilated and padded already."""
    return greatest(0, (n - window) // stride + 1)


class PaddingType(enum.Enum):
    """Paddings by name: none, or as much as gives a window for each stride."""

    VALID = 1
    SAME = 2
    SAME_LOWER = 3


def pads_by_name(
    shape: Sequence[int], window: Sequence[int], strides: Sequence[int], padding: Any
) -> list[tuple[int, int]]:
    """The `(low, high)` padding of each axis that a name means, for dilated sizes.

    `"VALID"` pads nothing. `"SAME"` pads so that there are `ceil(n / stride)` windows, the odd
    element at the end; `"SAME_LOWER"` has it at the start.
    """
    if isinstance(padding, str):
        try:
            padding = PaddingType[padding.upper()]
        except KeyError:
            raise RuntimeError(
                "Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got "
                f"{padding}."
            ) from None
    if not isinstance(padding, PaddingType):
        raise TypeError(f"Unknown padding type: {padding}; name it or give (low, high) pairs")
    if padding is PaddingType.VALID:
        return [(0, 0)] * len(shape)
    pads = []
    for n, k, step in zip(shape, window, strides, strict=True):
        total = greatest(0, (-(-n // step) - 1) * step + k - n)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if padding is PaddingType.SAME else (more, less))
    return pads


class Slide(NamedTuple):
    """How a window slides along one axis; `base` and `gap` dilate the operand and the window."""

    stride: int
    padding: tuple[int, int]
    base: int
    gap: int

    def windows(self, n: int, k: int) -> int:
        """How many windows of `k` elements there are in `n`."""
        return count(dilated(n, self.base) + sum(self.padding), dilated(k, self.gap), self.stride)

    def padding_back(self, n: int, k: int, m: int) -> tuple[int, int]:
        """The padding with which the `m` windows of `k` of `n` elements slide back.

        What an element sends to the windows it is in comes back when the mirrored window slides
        over the results, these dilated by `stride`, in steps of `base`.
        """
        reach = dilated(k, self.gap)
        low = reach - self.padding[0] - 1
        return low, dilated(n, self.base) + reach - 1 - dilated(m, self.stride) - low

"""`mulhi`: the high half of products of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ops import elementwise as ops
from perspex.ops.families import INTEGER, binary
from perspex.ops.lowering import expand
from perspex.tracing.trace import typeof


def _high_half(x: Any, y: Any) -> Any:
    """From four products of half words: no integer is wider than the operands."""
    number = typeof(x).dtype
    half = dtypes.itemsize_bits(number) // 2
    signed = dtypes.issubdtype(number, np.signedinteger)
    shift = ops.shift_right_arithmetic if signed else ops.shift_right_logical
    bits, mask = number.type(half), number.type((1 << half) - 1)
    x_low, x_high = ops.bitwise_and(x, mask), shift(x, bits)
    y_low, y_high = ops.bitwise_and(y, mask), shift(y, bits)
    carried = ops.shift_right_logical(ops.mul(x_low, y_low), bits)
    middle = ops.add(ops.mul(x_high, y_low), carried)
    rest = ops.add(ops.bitwise_and(middle, mask), ops.mul(x_low, y_high))
    high = ops.add(ops.mul(x_high, y_high), shift(middle, bits))
    return ops.add(high, shift(rest, bits))


mulhi = binary(
    "mulhi", lambda b, x, y: expand(b, _high_half, x, y, avals=[b.out_avals[0]] * 2)[0], INTEGER
)
mulhi.says(
    "The high half of the product of integers, which is twice as wide as they are.",
    "mulhi(100000, 100000) -> 2",
    'Warren, "Hacker\'s Delight", 2nd ed., section 8-2',
)

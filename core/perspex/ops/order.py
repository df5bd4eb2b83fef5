"""Comparisons in the total order of floats: NaNs have places in it, and -0 comes before 0.

The order is that of IEEE 754: negative NaNs, minus infinity, numbers, infinity, positive NaNs.
Integers and booleans have one order anyway.
"""

from __future__ import annotations

from typing import Any

from perspex.ir.avals import ShapedArray
from perspex.ops.families import ORDERED, Elementwise, as_bool


def _total(name: str, direction: str) -> Elementwise:
    def emit(b: Any, x: Any, y: Any) -> Any:
        (out,), given = b.out_avals, b.in_avals[0]
        return b.compare(direction, x, y, ShapedArray(out.shape, given.dtype), is_total=True)

    return Elementwise(name, emit, ORDERED, (None, None), as_bool)


eq_to = _total("eq_to", "EQ")
eq_to.says("Whether `x` equals `y` in the total order.", "eq_to(2.0, 1.0) -> False")
le_to = _total("le_to", "LE")
le_to.says("Whether `x` is at most `y` in the total order.", "le_to(2.0, 1.0) -> False")
lt_to = _total("lt_to", "LT")
lt_to.says("Whether `x` comes before `y` in the total order.", "lt_to(2.0, 1.0) -> False")

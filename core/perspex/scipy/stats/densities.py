"""What the distributions share: standardized arguments, supports, tails.

A function of a distribution promotes its arguments to one floating dtype and moves the argument to
the standard distribution, `y = (x - loc) / scale`. The rest is a formula for that one.
"""

from __future__ import annotations

import math
from typing import Any

from perspex import dtypes
from perspex import numpy as pnp
from perspex.numpy.promotion import Array, promote_all
from perspex.tracing.trace import typeof

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def floats(name: str, *args: Any) -> Any:
    """Arguments at one floating dtype, and one shape unless they are scalars."""
    args = promote_all(name, *args, to=dtypes.to_inexact_dtype)
    if typeof(args[0]).dtype.kind == "c":
        raise ValueError(f"{name} does not support complex arguments; take real ones")
    return args


def inside(condition: Any, value: Any, outside: float) -> Array:
    """`value` where the argument is in the support of the distribution."""
    return pnp.where(condition, value, outside)


def at(condition: Any, x: Any, elsewhere: float) -> Array:
    """`x` where a formula holds; elsewhere a number at which it and its derivative are finite."""
    return pnp.where(condition, x, elsewhere)

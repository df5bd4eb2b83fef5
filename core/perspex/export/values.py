"""The value of a symbolic dimension as an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import ShapedArray
from perspex.tracing.primitive import Primitive


class DimAsValue(Primitive):
    """A scalar whose value is that of the dimension `dim`."""

    name = "dim_as_value"

    def type(self, *, dim: Any) -> ShapedArray:
        return ShapedArray((), dtypes.canonicalize_dtype(np.dtype("int64")), weak_type=True)

    def lower(self, b: Any, *, dim: Any) -> Any:
        return b.constant(dim, b.out_avals[0])

    def evaluate(self, *, dim: Any) -> Any:
        raise dim.not_known("used as an array outside of the function that is exported")

    on_host = True


dim_as_value = DimAsValue()

"""Tangents and cotangents that are zero, as rules of users ask for them and return them."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import ShapedArray
from perspex.ops.structural import zeros
from perspex.tracing.trace import typeof
from perspex.transforms.jvp import is_differentiable, tangent_aval


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, for rules that ask for it.

    Attributes:
      aval, shape, dtype: the type of the tangent; that of an integer has the dtype `float0`.
    """

    __slots__ = ("aval_of_primal", "dtype", "shape")

    def __init__(self, aval: ShapedArray) -> None:
        self.aval_of_primal = aval
        self.shape = aval.shape
        self.dtype = aval.dtype if is_differentiable(aval) else dtypes.float0

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    @staticmethod
    def from_primal_value(value: Any) -> SymbolicZero:
        """The zero tangent of an array.

        >>> SymbolicZero.from_primal_value(2.0).shape
        ()
        """
        return SymbolicZero(typeof(value))

    def instantiate(self) -> Any:
        """Zeros of that type."""
        return zero_tangent(self.aval_of_primal)

    def __repr__(self) -> str:
        return "SymbolicZero"


def zero_tangent(aval: ShapedArray) -> Any:
    """The zero tangent of values of type `aval`, as an array."""
    if not is_differentiable(aval):
        return np.zeros(aval.shape, dtypes.float0)
    return zeros(tangent_aval(aval))

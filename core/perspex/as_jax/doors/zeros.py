"""Zeros and unknowns in JAX's rules: `ad.Zero` and `ad.UndefinedPrimal`.

Our rules say `None` for a tangent or cotangent that is zero, and `Linear` for an operand in which
an equation is linear.
"""

from __future__ import annotations

from typing import Any

from perspex.base.pytree_registry import register_pytree_node
from perspex.ir.avals import ShapedArray
from perspex.ops.structural import zeros
from perspex.rules.zeros import SymbolicZero, zero_tangent
from perspex.tracing.primitive import Linear
from perspex.tracing.trace import typeof
from perspex.transforms.jvp import is_differentiable


class Zero:
    """A tangent or cotangent of type `aval` that is known to be zero."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.aval.shape)

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @staticmethod
    def from_primal_value(value: Any) -> Zero:
        """The zero tangent of an array."""
        return Zero(tangent_type(typeof(value)))

    def instantiate(self) -> Any:
        """Zeros of that type."""
        return zeros(self.aval)


class UndefinedPrimal:
    """Stands in a transpose rule for an operand in which the equation is linear."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))
register_pytree_node(UndefinedPrimal, lambda x: ((), x.aval), lambda aval, _: UndefinedPrimal(aval))


def tangent_type(aval: ShapedArray) -> ShapedArray:
    """The type of tangents of values of type `aval`; that of integers has the dtype `float0`."""
    if is_differentiable(aval):
        return aval.strip_weak_type()
    return typeof(zero_tangent(aval))


def is_undefined_primal(x: Any) -> bool:
    """Whether `x` stands for an operand in which an equation is linear."""
    return type(x) is UndefinedPrimal


def instantiate_zeros(tangent: Any) -> Any:
    """The tangent, as an array also where it is known to be zero."""
    return tangent.instantiate() if isinstance(tangent, (Zero, SymbolicZero)) else tangent


def to_jax(tangent: Any, aval: ShapedArray) -> Any:
    """A tangent as JAX's rules take it, for a primal of type `aval`."""
    return Zero(tangent_type(aval)) if tangent is None else tangent


def from_jax(tangent: Any) -> Any:
    """A tangent or cotangent as our rules return it."""
    if tangent is Zero or isinstance(tangent, (Zero, SymbolicZero)):
        return None
    return tangent


def undefined(x: Any) -> Any:
    """An operand of a transpose rule as JAX has it."""
    return UndefinedPrimal(x.aval) if x.__class__ is Linear else x


def linear(x: Any) -> Any:
    """An operand of a transpose rule as ours has it."""
    return Linear(x.aval) if x.__class__ is UndefinedPrimal else x

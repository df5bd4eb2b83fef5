"""`jax.experimental.hijax`: types and operations of libraries.

The classes are here, so that a library can define its own; to use one in a program is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perspex.as_jax.doors.faces import AbstractValue as AbstractValue
from perspex.as_jax.doors.zeros import instantiate_zeros as instantiate_zeros

__all__ = [
    "AbstractValue", "HiPrim", "HiPrimitive", "HiType", "VJPHiPrimitive", "aval_method",
    "aval_property", "instantiate_zeros", "register_hitype",
]  # fmt: skip

_WHY = (
    "types of libraries (jax.experimental.hijax) are not supported by Perspex: a program holds "
    "arrays and random keys. Use a pytree of arrays; for flax.nnx, leave `flax_hijax_variable` off"
)


class HiType(AbstractValue):
    """A type that a library defines."""


class HiPrim:
    """An operation on such types."""

    multiple_results = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}: {_WHY}")

    def __init_subclass__(cls, **options: Any) -> None:
        """A library may define its own."""


HiPrimitive = VJPHiPrimitive = HiPrim


class aval_method:  # noqa: N801 - the name in JAX
    """Marks a function as a method of values of such a type."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class aval_property:  # noqa: N801 - the name in JAX
    """Marks a function as a property of values of such a type."""

    def __init__(self, fget: Callable[..., Any]) -> None:
        self.fget = fget


def register_hitype(kind: type, typeof: Callable[[Any], Any]) -> None:
    """Note the type of values of a class: none can enter a program."""

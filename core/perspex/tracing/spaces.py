"""In which memory results lie, given where operands do.

Operands with axes lie in one memory, and so do the results. A scalar lies wherever the others do:
every operation can read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.ir.avals import ShapedArray
from perspex.layout.memories import MemorySpace

DEVICE = MemorySpace.Device


def joined(name: str, avals: Sequence[ShapedArray]) -> MemorySpace:
    """Where the results of an operation lie; `ValueError` if its operands lie in several places."""
    if all([aval.memory_space is MemorySpace.Any for aval in avals]):
        return MemorySpace.Any
    sized = [aval for aval in avals if aval.ndim]
    for aval in sized[1:]:
        if aval.memory_space is not sized[0].memory_space:
            raise ValueError(
                f"memory_space of all inputs passed to `{name}` must be the same. Got one operand "
                f"with type {sized[0].str_short(short_dtypes=False)} and another with type "
                f"{aval.str_short(short_dtypes=False)}. Move one of them to the memory of the "
                "other: jax.device_put(x, jax.memory.Space.Device)"
            )
    return sized[0].memory_space if sized else DEVICE


def of_first(name: str, avals: Sequence[ShapedArray]) -> MemorySpace:
    """Where the results of an operation lie that leaves them where its first operand is."""
    return avals[0].memory_space


def over(out: Any, space: MemorySpace) -> Any:
    """The type of a result, or the tuple of those of several, that lies in that memory."""
    if isinstance(out, ShapedArray):
        return out.update(memory_space=space)
    return tuple([aval.update(memory_space=space) for aval in out])

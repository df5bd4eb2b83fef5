"""Typed PRNG keys: arrays whose elements are keys, and not the numbers in them.

A concrete typed key is a Python object around the array of its numbers, which jaxlib can hold;
while a function is traced it is a tracer like any other, with the dtype `key<fry>`. To jaxlib's
C++ it is a container of that array, so that calls with typed keys are repeated without Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from perspex.base.pytree_registry import call_registry
from perspex.ir.avals import ShapedArray
from perspex.tracing.array_type import Array


class KeyArray(Array):
    """An array of keys of type `aval`, over the array `base` of their numbers."""

    __slots__ = ("__weakref__", "aval", "base")

    def __init__(self, aval: ShapedArray, base: Any) -> None:
        assert base.shape == aval.physical().shape, (base.shape, aval)
        self.aval = aval
        self.base = base

    if TYPE_CHECKING:

        @property
        def dtype(self) -> Any:
            """A `KeyType`, which is no dtype of NumPy's."""

    @property
    def sharding(self) -> Any:
        return self.base.sharding

    @property
    def device(self) -> Any:
        return self.base.device

    @property
    def committed(self) -> bool:
        return self.base.committed

    @property
    def is_fully_addressable(self) -> bool:
        return self.base.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        return self.base.is_fully_replicated

    def devices(self) -> set[Any]:
        """The devices that hold the keys."""
        return self.base.devices()

    @property
    def addressable_shards(self) -> list[Any]:
        """The parts of the array, one for each device that holds one."""
        return [shard.of_keys(self.aval) for shard in self.base.addressable_shards]

    @property
    def nbytes(self) -> int:
        return self.base.nbytes

    def block_until_ready(self) -> KeyArray:
        """Wait until the keys are computed; returns the array."""
        self.base.block_until_ready()
        return self

    def is_deleted(self) -> bool:
        """Whether the numbers have been given up."""
        return self.base.is_deleted()

    def delete(self) -> None:
        """Give up the memory of the keys."""
        self.base.delete()

    def byteswap(self) -> Never:
        """Refused: the numbers in a key have no meaning of their own."""
        raise NotImplementedError("a typed key has no bytes to swap; see random.key_data(key)")

    def __bool__(self) -> bool:
        raise TypeError("a typed key has no truth value; random.bernoulli(key) draws a boolean")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "a typed key is not an array of numbers; random.key_data(key) gives the numbers in it"
        )

    def __reduce__(self) -> Any:
        return KeyArray, (self.aval, self.base)

    def __copy__(self) -> KeyArray:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> KeyArray:
        return KeyArray(self.aval, self.base.__deepcopy__(memo))

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self.base}"

    __str__ = __repr__


def _numbers(keys: KeyArray) -> tuple[tuple[Any], ShapedArray]:
    return (keys.base,), keys.aval


def _keys(aval: ShapedArray, numbers: tuple[Any]) -> KeyArray:
    keys: KeyArray = object.__new__(KeyArray)
    keys.aval = aval
    (keys.base,) = numbers
    return keys


call_registry.register_node(KeyArray, _numbers, _keys)

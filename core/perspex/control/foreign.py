"""Calls of compiled functions that are registered with XLA: the primitive of `perspex.ffi`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perspex.base import effects
from perspex.base.effects import Effects
from perspex.control.vmap_methods import Opaque
from perspex.hlo import foreign, lapack, types
from perspex.ir.avals import ShapedArray

# What the names of targets begin with that jaxlib brings along.
_LAPACK = "lapack_"


class HashableArray:
    """A NumPy array as a param: equal to another one with the same numbers, and never changed."""

    __slots__ = ("value",)

    def __init__(self, value: np.ndarray) -> None:
        self.value = value.copy()
        self.value.setflags(write=False)

    def _key(self) -> tuple[Any, ...]:
        return self.value.shape, self.value.dtype, self.value.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashableArray) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"HashableArray({self.value!r})"


class FrozenDict:
    """A dictionary as a param."""

    __slots__ = ("items",)

    def __init__(self, value: Mapping[str, Any]) -> None:
        self.items = {name: hashable(name, x) for name, x in value.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenDict) and self.items == other.items

    def __hash__(self) -> int:
        return hash(frozenset(self.items.items()))

    def __repr__(self) -> str:
        return f"FrozenDict({self.items!r})"


def hashable(name: str, value: Any) -> Any:
    """The value of an attribute of a call, as it stands in the params of the equation.

    Raises:
      TypeError: if it has no hash, and is neither an array nor a dictionary.
    """
    if isinstance(value, np.ndarray):
        return HashableArray(value)
    if isinstance(value, Mapping):
        return FrozenDict(value)
    try:
        hash(value)
    except TypeError:
        raise TypeError(f"Non-hashable keyword argument to ffi_call {name}: {value}") from None
    return value


def _attribute(value: Any) -> Any:
    if isinstance(value, HashableArray):
        return types.attribute_of(value.value)
    if isinstance(value, FrozenDict):
        return types.dictionary({name: _attribute(x) for name, x in value.items.items()})
    return types.attribute_of(value)


class ForeignCall(Opaque):
    """`ffi_call`. Params are the arguments of `perspex.ffi.ffi_call`.

    Layouts are in XLA's order here: the axis that changes fastest in memory is the first.
    """

    name = "ffi_call"

    def type(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        outs: tuple[ShapedArray, ...] = params["result_avals"]
        return outs

    def effects(self, params: dict[str, Any]) -> Effects:
        return frozenset([effects.ffi]) if params["has_side_effect"] else effects.no_effects

    def lower(self, b: Any, *values: Any, **params: Any) -> list[Any]:
        target, version = params["target_name"], params["custom_call_api_version"]
        if target.startswith(_LAPACK):
            lapack.register()
        config = params["legacy_backend_config"]
        if version >= 4:
            config = {name: _attribute(value) for name, value in params["attributes"]}
        elif params["attributes"]:
            raise ValueError(
                "The use of ffi_call attributes requires a custom call API version of at least 4; "
                f"got api_version={version}. Pass legacy_backend_config, as text."
            )
        call = foreign.custom_call(
            target,
            values,
            [types.tensor_type(aval) for aval in b.out_avals],
            backend_config=config,
            has_side_effect=params["has_side_effect"],
            api_version=version,
            operand_output_aliases=dict(params["input_output_aliases"]),
            operand_layouts=params["input_layouts"],
            result_layouts=params["output_layouts"],
            ip=b.ip,
            loc=b.loc,
        )
        return list(call.results)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        raise self._without_derivative(params)

    def transpose(self, cts: Any, *operands: Any, **params: Any) -> Any:
        raise self._without_derivative(params)

    def _without_derivative(self, params: dict[str, Any]) -> Exception:
        return ValueError(
            f"The FFI call to `{params['target_name']}` cannot be differentiated. "
            "You can use `perspex.custom_jvp` or `perspex.custom_vjp` to add support."
        )

    def batch(
        self, axis_size: int, operands: Any, axes: Any, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        return self.by_method(axis_size, operands, axes, params)

    def in_batch(
        self, grown: Sequence[bool], axis_size: int, params: dict[str, Any]
    ) -> dict[str, Any]:
        inputs = zip(params["input_layouts"], grown, strict=True)
        return {
            **super().in_batch(grown, axis_size, params),
            "input_layouts": tuple([_outermost(at) if more else at for at, more in inputs]),
            "output_layouts": tuple(map(_outermost, params["output_layouts"])),
        }


def _outermost(layout: tuple[int, ...]) -> tuple[int, ...]:
    """The layout with one more axis in front, across which neighbours are farthest apart."""
    return (*[axis + 1 for axis in layout], 0)


ffi_call_p = ForeignCall()

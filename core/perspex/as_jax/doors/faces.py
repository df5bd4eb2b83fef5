"""What JAX's objects have and ours lack: names that are put on the classes of the core.

This happens when a library asks for the inside for the first time. Nothing of the core reads these
names, and none replaces one of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from perspex.as_jax.doors import primitive as opened
from perspex.as_jax.doors.linear_util import UNKNOWN
from perspex.as_jax.doors.zeros import tangent_type as tangent_type
from perspex.base.effects import no_effects
from perspex.base.name_stack import Piece, Transform, stack_of
from perspex.base.source import Source
from perspex.ir import avals, jaxpr
from perspex.layout.one_device import SingleDeviceSharding
from perspex.runtime.dispatch import EVAL, eager_callable
from perspex.sharding import NamedSharding
from perspex.tracing import primitive as primitives
from perspex.tracing import trace
from perspex.tracing.trace import under


class _AbstractKind(type):
    def __instancecheck__(cls, x: Any) -> bool:
        if cls.__module__ == __name__ and isinstance(x, avals.ShapedArray):
            return True
        return type.__instancecheck__(cls, x)


class AbstractValue(metaclass=_AbstractKind):
    """The type of a value; that of an array is a `ShapedArray`, which is one of them."""


class SourceInfo(NamedTuple):
    """Where an equation was written."""

    traceback: Any
    name_stack: Any


class NameStack(NamedTuple):
    """The names around an equation: those that the user gave, and the transformations there."""

    stack: tuple[Piece, ...] = ()

    def extend(self, name: str) -> NameStack:
        """With one name more inside."""
        return NameStack((*self.stack, name))

    def transform(self, name: str) -> NameStack:
        """With one transformation more inside."""
        return NameStack((*self.stack, Transform(name)))

    def __add__(self, other: Any) -> NameStack:
        return NameStack((*self.stack, *other.stack))

    def __str__(self) -> str:
        return stack_of(*self.stack).text


def _source_info(eqn: Any) -> SourceInfo:
    at = eqn.source
    return SourceInfo(at, NameStack(at.names.pieces if isinstance(at, Source) else ()))


def source_of(info: Any) -> Any:
    """Our form of where an equation was written."""
    return info.traceback if isinstance(info, SourceInfo) else None


def _impl(self: Any, *args: Any, **params: Any) -> Any:
    return under(EVAL, EVAL.bind, self, args, params)


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Compile and run one operation."""
    return under(EVAL, _compiled(prim, tuple(params.items())), *args)


@functools.lru_cache(maxsize=1024)
def _compiled(prim: Any, params: tuple[Any, ...]) -> Any:
    return eager_callable(prim, dict(params), lambda executable: None)


def _abstract_eval(self: Any, *given: Any, **params: Any) -> tuple[Any, Any]:
    return self.typed(given, params), self.effects(params) or no_effects


def _lattice_join(self: Any, other: Any) -> Any:
    return self


def _to_concrete(self: Any) -> Any:
    return self.concrete_value()


class _Default:
    """An attribute that an object may have of its own instead."""

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self.get = get

    def __get__(self, owner: Any, kind: type) -> Any:
        return self if owner is None else self.get(owner)


def _devices(sharding: Any) -> tuple[Any, ...]:
    return tuple(sorted(sharding.addressable_devices, key=lambda device: device.id))


_FACES: dict[type, dict[str, Any]] = {
    primitives.Primitive: {
        "impl": _impl,
        "abstract_eval": _abstract_eval,
        "bind_with_trace": opened.bind_with_trace,
        "get_bind_params": opened.get_bind_params,
        "call_primitive": False,
        "map_primitive": False,
        "skip_canonicalization": False,
    },
    jaxpr.JaxprEqn: {"source_info": property(_source_info), "ctx": None},
    jaxpr.Jaxpr: {
        "debug_info": UNKNOWN,
        "jaxpr": property(lambda self: self),
        "is_high": False,
        "in_avals": property(lambda self: [v.aval for v in self.invars]),
        "out_avals": property(lambda self: [v.aval for v in self.outvars]),
    },
    jaxpr.ClosedJaxpr: {"debug_info": UNKNOWN, "is_high": False},
    jaxpr.Var: {"suffix": "", "count": property(id)},
    avals.ShapedArray: {
        "to_tangent_aval": tangent_type,
        "to_ct_aval": tangent_type,
        "at_least_vspace": tangent_type,
        "named_shape": property(lambda self: {}),
        "is_high": False,
    },
    SingleDeviceSharding: {"_addressable_device_assignment": property(_devices)},
    NamedSharding: {"_addressable_device_assignment": property(_devices)},
    trace.Tracer: {
        "full_lower": lambda self: self,
        "to_concrete_value": _to_concrete,
        "is_known": lambda self: False,
    },
    trace.Trace: {
        "main": _Default(lambda self: self),
        "parent_trace": _Default(lambda self: getattr(self, "parent", None)),
        "stage_value": lambda self, value: value,
        "process_primitive": lambda self, p, args, params: self.bind(p, tuple(args), params),
    },
}


def put_on() -> None:
    """Put the names on; a class that has one already keeps it."""
    for kind, names in _FACES.items():
        for name, value in names.items():
            if not hasattr(kind, name):
                setattr(kind, name, value)

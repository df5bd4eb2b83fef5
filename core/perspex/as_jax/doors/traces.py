"""Traces that libraries write: `jax.core.Trace` and `jax.core.Tracer`."""

from __future__ import annotations

from typing import Any

from perspex.as_jax.doors.linear_util import wrap_init
from perspex.rules.custom_call import custom_jvp_call, custom_vjp_call
from perspex.tracing import trace as ours
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import state


class _TraceKind(type):
    """Every trace is an instance of `Trace`, and every tracer one of `Tracer`."""

    everything: type

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.everything) if cls.is_open else type.__instancecheck__(cls, x)

    def __subclasscheck__(cls, kind: type) -> bool:
        whole = cls.everything if cls.is_open else cls
        return type.__subclasscheck__(whole, kind)

    @property
    def is_open(cls) -> bool:
        return cls.__module__ == __name__


class Trace(ours.Trace, metaclass=_TraceKind):
    """A trace as JAX has it: `process_primitive` is what it makes of an operation."""

    everything = ours.Trace

    def __init__(self, *args: Any) -> None:
        super().__init__()
        self.parent = state.trace

    def bind(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if primitive is custom_jvp_call or primitive is custom_vjp_call:
            return self._custom(primitive, args, params)
        found = self.process_primitive(primitive, args, params)
        return list(found) if primitive.multiple_results else found

    def _custom(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """A function with a rule of its own: the library is given the function."""
        closed = params["call_jaxpr"]

        def primal(*xs: Any) -> list[Any]:
            return eval_jaxpr(closed.jaxpr, closed.consts, *xs)

        fun = wrap_init(primal)
        if primitive is custom_jvp_call:
            return self.process_custom_jvp_call(primitive, fun, None, args, symbolic_zeros=False)
        return self.process_custom_vjp_call(
            primitive, fun, None, None, args, out_trees=None, symbolic_zeros=False
        )

    def process_primitive(self, primitive: Any, tracers: Any, params: dict[str, Any]) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no process_primitive")

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, tracers: Any, *, symbolic_zeros: bool
    ) -> Any:
        """The function, without its rule."""
        return fun.call_wrapped(*tracers)

    def process_custom_vjp_call(
        self,
        primitive: Any,
        fun: Any,
        fwd: Any,
        bwd: Any,
        tracers: Any,
        *,
        out_trees: Any,
        symbolic_zeros: bool,
    ) -> Any:
        """The function, without its rule."""
        return fun.call_wrapped(*tracers)


class Tracer(ours.Tracer, metaclass=_TraceKind):
    """A tracer as JAX has it: its trace, and the type of what it stands for."""

    everything = ours.Tracer
    __slots__ = ("_trace", "aval")

    def __init__(self, trace: Any, aval: Any) -> None:
        self._trace = trace
        self.aval = aval

    def full_lower(self) -> Any:
        """What it stands for, if it needs no trace."""
        return self

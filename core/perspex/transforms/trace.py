"""A trace on top of another: what forward mode and batching have in common.

A transforming trace is current while the function to transform runs. It takes its own tracers apart
and calls the rule of the operation *below*, in the trace that was current when it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perspex import config, source
from perspex.tracing import Primitive, Trace, state, under

Made = tuple[Primitive, Any]
"""The operation that made a tracer, and where in the user's code."""

_capture = source.capture
_set_depth = config.trace_depth.cell.set_local


class TransformTrace(Trace):
    """A trace whose operations are those of `parent`, transformed."""

    __slots__ = ("parent",)

    def __init__(self) -> None:
        super().__init__()
        self.parent: Trace = state.trace

    def below(self, f: Callable[..., Any], args: Sequence[Any], params: dict[str, Any]) -> Any:
        """`f(*args, **params)` with the parent as the current trace.

        Only for `bind`, where this trace is the current one: then there is no state to save, and
        the C++ flag is touched only where compiled calls may run (0.15 us less than `under`).
        """
        parent = state.trace = self.parent
        if parent.jit_key == self.jit_key:
            try:
                return f(*args, **params)
            finally:
                state.trace = self
        _set_depth(parent.jit_key)
        try:
            return f(*args, **params)
        finally:
            state.trace = self
            _set_depth(self.jit_key)

    def made(self, primitive: Primitive) -> Made:
        """What errors say of the results of an operation; only for `bind`.

        For a parent that evaluates. One that writes equations down has it in these.
        """
        return primitive, state.source or _capture(4)

    @staticmethod
    def origin(made: Made | None) -> str:
        """A sentence for errors, or nothing."""
        return f"It was made by `{made[0]}` at {source.summary(made[1])}." if made else ""

    def atop(self, f: Callable[..., Any], *args: Any) -> Any:
        """`f(*args)` with this trace current, on top of whatever trace is current now.

        For what runs later than the operation it belongs to: a function that is being staged, a
        rule in forward mode. What it closes over of this trace means the same there.
        """
        parent, alive = self.parent, self.alive
        try:
            self.parent, self.alive = state.trace, True
            return under(self, f, *args)
        finally:
            self.parent, self.alive = parent, alive

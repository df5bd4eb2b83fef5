"""A trace on top of another: what forward mode and batching have in common.

A transforming trace is current while the function to transform runs. It takes its own tracers apart
and calls the rule of the operation *below*, in the trace that was current when it was made.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from perspex import config
from perspex.advice.story import forbid_static
from perspex.base import source
from perspex.ir.avals import ShapedArray
from perspex.tracing import provenance
from perspex.tracing.past import UNKNOWN, Argument, Names, Past, Result
from perspex.tracing.trace import Trace, Tracer, bottom, concrete_value, once_more, state, under

_capture = source.capture
_set_depth = config.trace_depth.cell.set_local


class TransformTracer(Tracer):
    """A value with what a transform adds to it; `_inner` stands for it in the trace below."""

    __slots__ = ("_past", "_trace", "aval")
    _trace: TransformTrace
    # Unknown until it is noted.
    _past: Past

    @property
    def _inner(self) -> Any:
        raise NotImplementedError


class PrimalTracer(TransformTracer):
    """A value with what belongs to its derivatives.

    Outside `jit` the primal is a number, on which Python may depend: derivatives are taken at it.
    """

    __slots__ = ("primal",)
    primal: Any

    @property
    def _inner(self) -> Any:
        return self.primal

    def concrete_value(self) -> Any:
        return concrete_value(self.primal)

    def __bool__(self) -> bool:
        return bool(self.primal)

    def __int__(self) -> int:
        return int(self.primal)

    def __index__(self) -> int:
        return operator.index(self.primal)

    def item(self, *args: int) -> Any:
        """The primal as a Python number, which has no derivative."""
        return self.primal.item(*args)


class TransformTrace(Trace):
    """A trace whose operations are those of `parent`, transformed.

    It `remembers` where its values come from if they are computed at once: those that are written
    down have equations that say it. `arg_names` knows the user's function, for errors.
    """

    __slots__ = ("arg_names", "parent", "remembers")
    # What happens to the function while this trace is current, in errors.
    doing = ""

    def __init__(self, arg_names: Names | None = None) -> None:
        super().__init__()
        self.arg_names = arg_names
        self.parent: Trace = state.trace
        trace: Any = self.parent
        while trace is not bottom() and not trace.writes:
            trace = trace.parent
        self.remembers = trace is bottom()

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

    def past_of(self, primitive: Any, args: Sequence[Any], aval: ShapedArray) -> Result:
        """Where a result of an operation comes from; only for `bind`."""
        pasts = [x._past for x in args if isinstance(x, TransformTracer)]
        return Result(primitive, state.source or _capture(4), aval, pasts)

    def remember(self, primitive: Any, args: Sequence[Any], outs: Iterable[Any]) -> None:
        """Note the origin of those results of an operation that have none; only for `bind`."""
        for y in outs:
            if isinstance(y, TransformTracer) and y._trace is self and y._past is UNKNOWN:
                y._past = self.past_of(primitive, args, y.aval)

    def run(self, f: Callable[..., Any], args: Sequence[Any]) -> Any:
        """What the function gives for its arguments, some of which are tracers of this trace."""
        if self.remembers:
            for i, x in enumerate(args):
                if isinstance(x, TransformTracer) and x._trace is self:
                    around = x._inner._past if isinstance(x._inner, TransformTracer) else None
                    x._past = Argument(self.arg_names, i, x.aval, around)
        try:
            return under(self, f, *args)
        except provenance.ABOUT_OPERANDS as error:
            provenance.annotate(error)
            raise
        finally:
            self.alive = False

    @property
    def name(self) -> str:
        """What the user's function is called, if that is known."""
        return self.arg_names.name if self.arg_names else ""

    def layer(self) -> str:
        """A sentence on what the values of this trace stand for, or nothing."""
        return ""

    def describe(self, tracer: Any) -> str:
        lines, x = [], tracer
        while isinstance(x, TransformTracer):
            lines.append(x._trace.layer())
            x = x._inner
        if isinstance(x, Tracer):
            lines.append(x._trace.describe(x))
            # A transform of a number is as traced as that of an array.
            forbid_static()
        else:
            lines.append(self._tell(tracer))
        return "\n".join(filter(None, lines))

    def _tell(self, tracer: TransformTracer) -> str:
        past, name = tracer._past, self.name
        if isinstance(past, Argument) and past.arg_names:
            what, function = past.arg_names[past.index], past.arg_names.name
            origin = f"It is {what} of the function `{function}` that is being {self.doing}."
        elif isinstance(past, Result):
            during = f" while `{name}` was {self.doing}" if name else ""
            origin = f"It was made by `{past.primitive}` at {source.summary(past.at)}{during}."
        else:
            return ""
        return provenance.tell(tracer, origin)

    def atop(self, f: Callable[..., Any], *args: Any) -> Any:
        """`f(*args)` with this trace current, on top of whatever trace is current now.

        For what runs later than the operation it belongs to: a function that is being staged, a
        rule in forward mode. What it closes over of this trace means the same there.
        """
        with once_more:
            parent, alive = self.parent, self.alive
            try:
                self.parent, self.alive = state.trace, True
                return under(self, f, *args)
            finally:
                self.parent, self.alive = parent, alive

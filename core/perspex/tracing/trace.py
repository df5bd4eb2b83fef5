"""Traces and tracers: how one program text gets many meanings.

Every operation of the language ends in `Primitive.__call__`, which hands itself to the *current
trace* of the thread. A trace gives operations their meaning: the bottom trace evaluates them, a
staging trace writes them down, a transforming trace calls the rule of its transform with its parent
as the current trace. There is no stack to search: code that starts a trace makes it current with
`under`, and the previous one is current again when it ends.

A tracer is a value that stands for an array inside a trace. It knows its aval and its trace.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

from perspex import config, errors
from perspex.advice import messages
from perspex.base import source
from perspex.ir.avals import ShapedArray, shaped
from perspex.tracing.array_type import Array

_depth = config.trace_depth.cell


class Trace:
    """The meaning of operations while it is current.

    `alive` is false once the traced function has returned: tracers found after that have leaked.
    `jit_key` is what the C++ fast paths see: 0 lets them run, 1 sends every call to Python.
    """

    __slots__ = ("__weakref__", "alive")
    jit_key = 1
    # Whether operations become equations, instead of being done.
    writes = False
    # The trace below, if there is one.
    parent: Any = None

    def __init__(self) -> None:
        self.alive = True

    def bind(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        raise NotImplementedError

    def describe(self, tracer: Tracer) -> str:
        """Where the tracer's value comes from, for error messages: whole lines, or nothing."""
        return ""


class _State(threading.local):
    # The class attributes are what a thread sees that has not started a trace: the bottom trace.
    trace: Any = None
    # While a jaxpr is interpreted: where its current equation was written, for the ones it becomes.
    source: Any = None


state = _State()

# Held while a trace that may be over is current once more: for a rule that closes over values of
# it, or for a function that is staged late. Such a trace belongs to a remembered program, which
# other threads use, too.
once_more = threading.RLock()


def set_bottom(trace: Trace) -> None:
    """Make `trace` the meaning of operations outside every trace. Called once, at import."""
    _State.trace = trace


def under(trace: Trace, f: Callable[..., Any], *args: Any) -> Any:
    """`f(*args)` with `trace` as the current trace."""
    previous, depth = state.trace, _depth.get_local()
    # An interrupt may arrive between any two instructions: nothing is changed outside `try`.
    try:
        state.trace = trace
        _depth.set_local(trace.jit_key)
        return f(*args)
    finally:
        state.trace = previous
        _depth.set_local(depth)


def in_its_place(rule: Callable[..., Any], *args: Any) -> Any:
    """`rule(*args)`, a rule of the user's: what it does is in its lines.

    The equation that is being interpreted has another, which counts for the rules that are ours.
    """
    outer, code = state.source, getattr(rule, "__code__", None)
    if outer is None or code is None or source.is_internal(code.co_filename):
        return rule(*args)
    try:
        state.source = None
        return source.named_as(outer.names, rule, *args)
    finally:
        state.source = outer


@contextlib.contextmanager
def current(trace: Trace) -> Iterator[None]:
    """A context in which `trace` is current; `under` is the faster way to call one function."""
    previous, depth = state.trace, _depth.get_local()
    try:
        state.trace = trace
        _depth.set_local(trace.jit_key)
        yield
    finally:
        state.trace = previous
        _depth.set_local(depth)


class Folding(Trace):
    """Evaluates operations on known values, and leaves those on tracers to the trace around it."""

    __slots__ = ("around", "parent")

    def __init__(self) -> None:
        super().__init__()
        self.around: Trace = state.trace
        self.parent = bottom()

    def bind(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        trace = self.around if any([isinstance(x, Tracer) for x in args]) else self.parent
        return under(trace, trace.bind, primitive, args, params)


def reset() -> None:
    """Leave every trace. A kernel does this before each cell, in case the last was interrupted."""
    state.trace = _State.trace
    state.source = None
    _depth.set_local(_State.trace.jit_key)
    config.axis_env.cell.set_local(())


def bottom() -> Trace:
    """The trace that evaluates."""
    return _State.trace


class Tracer(Array):
    """Stands for an array while a function is traced. Has the array's shape and dtype, no value."""

    __slots__ = ("__weakref__",)
    aval: ShapedArray
    _trace: Trace

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval.str_short(short_dtypes=False)})"

    def __bool__(self) -> bool:
        one = self.aval.size == 1
        error = errors.TracerBoolConversionError if one else errors.TracerTruthValueError
        raise error(messages.bool_conversion(*self._asked()))

    def __int__(self) -> int:
        raise errors.ConcretizationTypeError(messages.concretization("int()", *self._asked()))

    def __float__(self) -> float:
        raise errors.ConcretizationTypeError(messages.concretization("float()", *self._asked()))

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        raise errors.ConcretizationTypeError(messages.concretization("format()", *self._asked()))

    def __complex__(self) -> complex:
        raise errors.ConcretizationTypeError(messages.concretization("complex()", *self._asked()))

    def __index__(self) -> int:
        raise errors.TracerIntegerConversionError(messages.integer_conversion(*self._asked()))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise errors.TracerArrayConversionError(messages.array_conversion(*self._asked()))

    def item(self, *args: int) -> Any:
        """Not available while tracing: there is no value yet."""
        raise errors.ConcretizationTypeError(messages.concretization(".item()", *self._asked()))

    def tolist(self) -> Any:
        """Not available while tracing: there is no value yet."""
        raise errors.ConcretizationTypeError(messages.concretization(".tolist()", *self._asked()))

    def tobytes(self, order: str = "C") -> bytes:
        """Not available while tracing: there is no value yet."""
        raise errors.ConcretizationTypeError(messages.concretization(".tobytes()", *self._asked()))

    def block_until_ready(self) -> Tracer:
        return self

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        return self

    def concrete_value(self) -> Any:
        """The array that this tracer stands for where that is known already, else `None`."""
        return None

    def _asked(self) -> tuple[str, str]:
        """The `_story` for an error that says that there is no value yet; raises for a leak."""
        if not self._trace.alive:
            raise leaked(self)
        return self._story()

    def _story(self) -> tuple[str, str]:
        """What an error says of this tracer: its type, and where its value comes from."""
        return self.aval.str_short(short_dtypes=False), self._trace.describe(self)


class Reference:
    """A mutable array, as far as traces know of it (`ops.refs.Ref` is the whole).

    `staged` is the tracer of the ref where a program is written that takes or makes it; `None` if
    the ref holds its value itself.
    """

    __slots__ = ("__weakref__", "aval", "staged")
    aval: Any
    staged: Tracer | None
    # Whether there has been one: calls without refs pay one truth test.
    exist: ClassVar[bool] = False

    def __new__(cls, *args: Any) -> Self:
        Reference.exist = True
        return object.__new__(cls)


def typeof(x: Any) -> ShapedArray:
    """The aval of a tracer, an array, a NumPy array or a number; `TypeError` for anything else."""
    return shaped(x)


def concrete_value(x: Any) -> Any:
    """`x` without what transforms add to it, or `None` if it has no value now.

    Outside `jit` a function is differentiated at numbers: its tracers have values. Python may read
    them; what it does with them is constant to the derivative.
    """
    return x.concrete_value() if isinstance(x, Tracer) else x


def is_concrete(x: Any) -> bool:
    """Whether `x` has a value now."""
    return not isinstance(x, Tracer) or x.concrete_value() is not None


def story(tracer: Tracer) -> tuple[str, str]:
    """What an error says of a tracer: its type, and whole sentences on where it comes from."""
    return tracer._story()


def _holder(trace: Trace) -> Tracer | None:
    return next((x for x in gc.get_referrers(trace) if isinstance(x, Tracer)), None)


def refuse_leaks(trace: Trace) -> None:
    """Raise if a tracer of a trace that has ended is still held somewhere.

    For `check_tracer_leaks`. The caller holds none any more itself.
    """
    held = _holder(trace)
    if held is not None:
        del held
        gc.collect()  # slow, so only now: the tracer may be part of a cycle that nobody holds
        held = _holder(trace)
    if held is not None:
        kind, origin = held._story()
        name = source.expression_for(held)
        by = f" as `{name}`" if name else ""
        raise errors.UnexpectedTracerError(
            f"Leaked trace: a traced array with shape {kind} is still held{by}, although the "
            f"traced function has returned.\n{origin}\n"
            "Remedy: return the value from the traced function and use what the call returns."
        )


def leaked(tracer: Tracer) -> errors.UnexpectedTracerError:
    """The error for a tracer that was used after its traced function had returned."""
    kind, story = tracer._story()
    name = source.expression_for(tracer)
    return errors.UnexpectedTracerError(messages.leaked_tracer(kind, story, source.here(), name))

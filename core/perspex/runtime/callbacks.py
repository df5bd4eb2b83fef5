"""Compiled programs that call Python: how they are run, how they fail, and when they are done.

XLA calls a Python function with NumPy arrays, on the thread that started the program or on one of
its own, at a time of its choosing. So each run of such a program copies the `contextvars` of its
caller, which is how a notebook knows the cell that output belongs to. Programs with effects leave a
token that says when they are done; `effects_barrier` waits for all of them. Ordered effects of one
thread pass a token from program to program, as an array.

XLA cannot be told to stop, but a callback can: an interrupt ends a program at its next callback.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from perspex import config, dtypes
from perspex.base import source, xla
from perspex.errors import JaxRuntimeError
from perspex.ir.avals import ShapedArray
from perspex.runtime import client as platform
from perspex.runtime import interruptible
from perspex.runtime.keys import KeyArray
from perspex.runtime.transfer import put
from perspex.sharding import NamedSharding
from perspex.tracing.trace import bottom, under

ArrayImpl = xla.ArrayImpl

# At most this many programs with effects are under way; the next one waits for the first.
_MOST_PENDING = 256
_pending: deque[Run] = deque()


_is_inside = contextvars.ContextVar("perspex_is_inside_callback", default=False)


class Run:
    """One run of a program: the context of its caller, and whether it must stop.

    `returned` says whether XLA has taken it over, `token` when it is done.
    """

    __slots__ = ("_waiter", "cancelled", "context", "returned", "token")

    def __init__(self) -> None:
        self.context = contextvars.copy_context()
        self.cancelled = False
        self.returned = False
        self.token: Any = None
        self._waiter: threading.Thread | None = None

    def settle(self) -> None:
        """Let a run that was cancelled end: its callbacks would take the next run for theirs."""
        if not self.cancelled:
            return
        if _is_inside.get():  # a callback of a program that must stop
            raise KeyboardInterrupt
        while not self.returned:
            time.sleep(0.005)
        if self.token is not None:
            with contextlib.suppress(JaxRuntimeError):
                interruptible.call(self.token.block_until_ready)

    def is_over(self) -> bool:
        """Whether no callback can come any more; `False` where that takes long to find out."""
        if not self.returned or self.token is None:
            return self.returned
        # A token can be waited for, and not asked.
        if self._waiter is None:
            self._waiter = threading.Thread(target=self._wait, daemon=True)
            self._waiter.start()
        self._waiter.join(0.01 if _is_inside.get() else 0.1)
        return not self._waiter.is_alive()

    def _wait(self) -> None:
        with contextlib.suppress(JaxRuntimeError):
            self.token.block_until_ready()

    def has_context_of(self, other: Run) -> bool:
        """Whether callbacks of both runs see the same context variables."""
        mine, theirs = self.context, other.context
        return len(mine) == len(theirs) and all(
            theirs.get(variable, _is_inside) is value for variable, value in mine.items()
        )


class _Failure:
    """What a callback raised, its text, and whether the user has seen it."""

    __slots__ = ("error", "text", "told")

    def __init__(self, text: str, error: BaseException) -> None:
        self.text = text
        self.error = error
        self.told = False


# Errors of programs that were waited for to make room.
_errors: deque[JaxRuntimeError] = deque(maxlen=8)
# What callbacks raised recently, for the errors that XLA raises in turn.
_failures: deque[_Failure] = deque(maxlen=8)
# How often an ordered callback has failed: a token from before may be one that never comes.
_broken = 0


class _Tokens(threading.local):
    def __init__(self) -> None:
        # device -> the token of the last ordered effect of this thread, and `_broken` at that time
        self.by_sharding: dict[Any, tuple[Any, int]] = {}


_tokens = _Tokens()


class HostCall:
    """A function of arrays as XLA calls it: with NumPy arrays, from any thread.

    `function` takes arrays of types `in_avals` and returns a list of what has to be of types
    `out_avals`; `what` is what the user called, at `at`. With `ordered` a token comes first among
    arguments and results.
    """

    def __init__(
        self,
        function: Callable[..., Sequence[Any]],
        name: str,
        what: str,
        in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray],
        at: source.Source | None,
        ordered: bool,
    ) -> None:
        self.function = function
        self.name = name
        self.what = what
        self.in_avals = [aval.strip_weak_type() for aval in in_avals]
        self.out_avals = list(out_avals)
        self.at = at
        self.ordered = ordered
        self.wide = config.enable_x64.value
        # The run that is going on: C++ does not say to which run a call belongs (see `Engines`).
        self.run: Run | None = None

    def __call__(self, *buffers: np.ndarray) -> tuple[Any, ...]:
        global _broken
        token, values = (buffers[:1], buffers[1:]) if self.ordered else ((), buffers)
        try:
            run = self.run
            assert run is not None
            if run.cancelled:
                raise KeyboardInterrupt
            # A copy, because several calls may run at once, and a context lets only one in.
            outs = run.context.copy().run(under, bottom(), self._call, values)
        except BaseException as error:
            text = (
                f"the callback `{self.name}` of {self.what} at {source.summary(self.at)} "
                f"raised {type(error).__name__}: {error}"
            )
            _failures.append(_Failure(text, error.with_traceback(_user_part(error.__traceback__))))
            _broken += self.ordered
            raise RuntimeError(text) from error
        return (*token, *outs)

    def _call(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        _is_inside.set(True)  # in a context of this call alone
        with config.enable_x64(self.wide):
            args = [from_host(x, aval) for x, aval in zip(values, self.in_avals, strict=True)]
            return to_host(self.function(*args), self.out_avals, self.what)


def _user_part(tb: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames between XLA and the callback, which are ours."""
    first = tb
    while first is not None and source.is_internal(first.tb_frame.f_code.co_filename):
        first = first.tb_next
    return first or tb


def from_host(value: Any, aval: ShapedArray) -> Any:
    """The array of type `aval` with these numbers, on the host's first device."""
    device = platform.client("cpu").local_devices()[0]
    array = put(value, device, aval=aval.physical())
    return KeyArray(aval, array) if aval.is_extended else array


def to_host(outs: Sequence[Any], avals: Sequence[ShapedArray], what: str) -> list[np.ndarray]:
    """What a callback returned as NumPy arrays of the types that were promised.

    Raises `TypeError` if there are more or fewer results, or one has another shape or dtype.
    """
    if len(outs) != len(avals):
        raise TypeError(
            f"{what}: the callback returned {len(outs)} arrays, but result_shape_dtypes has "
            f"{len(avals)}; make them agree"
        )
    return [
        _to_host(out, aval, i, what) for i, (out, aval) in enumerate(zip(outs, avals, strict=True))
    ]


def _to_host(out: Any, aval: ShapedArray, i: int, what: str) -> np.ndarray:
    if aval.is_extended and isinstance(out, KeyArray):
        out = out.base
    wanted = aval.physical()
    value = np.asarray(out)
    dtype = value.dtype
    if dtype != wanted.dtype and dtypes.canonicalize_dtype(dtype) == wanted.dtype:
        # NumPy computes with 64 bits where arrays have 32.
        with np.errstate(over="ignore"):
            value = value.astype(wanted.dtype)
    if value.shape != wanted.shape or value.dtype != wanted.dtype:
        raise TypeError(
            f"{what}: result {i} of the callback is {dtype}{list(value.shape)}, but "
            f"result_shape_dtypes says {wanted.str_short(short_dtypes=False)}; "
            "make them agree (x.astype, x.reshape)"
        )
    return value


# ---- Running ------------------------------------------------------------------------------------


class Engine:
    """An executable that calls Python, and the functions that it calls."""

    __slots__ = ("calls", "executable", "run")

    def __init__(self, executable: Any, calls: Sequence[HostCall]) -> None:
        self.executable = executable
        self.calls = calls
        self.run: Run | None = None  # the last one


class Engines:
    """The executables of one program that calls Python: usually one.

    XLA does not tell a callback which run it belongs to. So an executable serves runs of one
    context at a time; another thread that calls the program meanwhile gets its own executable.
    """

    def __init__(self, first: Engine, another: Callable[[], Engine]) -> None:
        self.first = first
        self._all = [first]
        self._another = another
        self._lock = threading.Lock()

    def begin(self) -> tuple[Engine, Run]:
        """An engine that is free for a run in this context, and the run."""
        run = Run()
        while True:
            with self._lock:
                for engine in self._all:
                    last = engine.run
                    if last is None or (
                        not last.cancelled and (last.has_context_of(run) or last.is_over())
                    ):
                        engine.run = run
                        for call in engine.calls:
                            call.run = run
                        return engine, run
                cancelled = [e.run for e in self._all if e.run is not None and e.run.cancelled]
            for last in cancelled:
                last.settle()
                last.cancelled = False
            if not cancelled:
                made = self._another()
                with self._lock:
                    self._all.append(made)


def execute(
    engines: Engines,
    buffers: list[Any],
    handlers: Sequence[Any],
    token_sharding: Any,
    token_place: int | None,
    has_effects: bool,
) -> list[Any]:
    """Run a program that calls Python functions.

    With ordered effects `token_place` is where the token goes among the buffers; it comes back as
    the first result, which is not returned.
    """
    engine, run = engines.begin()
    if token_place is not None:
        buffers.insert(token_place, _take_token(token_sharding))
    broken = _broken

    def start() -> list[Any]:
        try:
            results = engine.executable.execute_sharded(buffers, with_tokens=True)
            run.token = results.consume_token()
            return results.consume_with_handlers(handlers)
        finally:
            run.returned = True

    try:
        # XLA may run all of it before it returns.
        outs = interruptible.call(start)
    except KeyboardInterrupt:
        run.cancelled = True
        raise
    except JaxRuntimeError as error:
        found = explained(error)
        raise found from found.__cause__
    if has_effects:
        _pending.append(run)
        if len(_pending) > _MOST_PENDING:
            _make_room()
    if token_place is not None:
        _tokens.by_sharding[token_sharding] = (outs.pop(0), broken)
    return outs


def _make_room() -> None:
    run = _pending.popleft()
    try:
        run.token.block_until_ready()
    except JaxRuntimeError as error:  # that of another call; the next barrier raises it
        _errors.append(error)


def _take_token(sharding: Any) -> Any:
    token, broken = _tokens.by_sharding.pop(sharding, (None, _broken))
    if token is not None and broken == _broken:
        return token
    return put(
        np.False_, sharding if isinstance(sharding, NamedSharding) else xla.device_of(sharding)
    )


def wait_in_order() -> None:
    """Wait until the ordered effects that this thread has started have happened."""
    for sharding in list(_tokens.by_sharding):
        wait(_take_token(sharding).block_until_ready)


def wait(until_ready: Callable[[], Any]) -> None:
    """`until_ready()`; an error of a callback has the callback's exception as its cause."""
    try:
        until_ready()
    except JaxRuntimeError as error:
        found = explained(error)
        raise found from found.__cause__


def explained(error: JaxRuntimeError) -> BaseException:
    """The error of a program whose callback failed, with the callback's exception as its cause."""
    failure = _failure_behind(error)
    if failure is None:
        return error
    failure.told = True
    if isinstance(failure.error, KeyboardInterrupt):
        return KeyboardInterrupt()
    found = JaxRuntimeError(failure.text)
    found.__cause__ = failure.error
    return found


def _failure_behind(error: JaxRuntimeError) -> _Failure | None:
    text = str(error)
    return next((failure for failure in reversed(_failures) if failure.text in text), None)


def effects_barrier() -> None:
    """Wait until everything that computations print, write and call has happened.

    Computations run asynchronously, so `debug.print` and callbacks may run after the call has
    returned. After the barrier they have run. The end of a notebook's cell and the end of the
    program are barriers too.

    Returns:
      `None`.

    Raises:
      JaxRuntimeError: if a callback has failed and no error was raised for it yet; the callback's
        exception is the cause.
      RuntimeError: inside a callback, where the barrier would wait for ever.

    >>> import perspex
    >>> f = perspex.jit(lambda x: perspex.debug.print("x = {}", x))
    >>> f(3); perspex.effects_barrier()
    x = 3
    """
    if _is_inside.get():
        raise RuntimeError(
            "effects_barrier was called in a callback, where it would wait for its own program; "
            "call it outside the program"
        )
    while _pending:
        try:
            run = _pending.popleft()
        except IndexError:  # another thread waits, too
            break
        try:
            interruptible.call(run.token.block_until_ready)
        except KeyboardInterrupt:
            run.cancelled = True
            cancel_effects()
            raise
        except JaxRuntimeError as error:
            _errors.append(error)
    if not _errors and not _failures:
        return  # as at the end of most cells
    untold = [error for error in _errors if not _was_told(error)]
    found = explained(untold[0]) if untold else None
    _errors.clear()
    _failures.clear()
    if found is not None:
        raise found


def _was_told(error: JaxRuntimeError) -> bool:
    failure = _failure_behind(error)
    return failure is not None and failure.told


def cancel_effects() -> None:
    """Have the computations under way that have effects end at their next callback.

    Nobody waits for them any more.
    """
    while _pending:
        _pending.popleft().cancelled = True
    _errors.clear()


atexit.register(effects_barrier)

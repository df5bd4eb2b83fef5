"""Which keys were made of which, and what was drawn with them: a record for whoever wants to look.

While nobody records, a random function pays for one truth test. While somebody does, a call is kept
as a tuple: the arrays of keys themselves, by which they can be told apart later, and the line. No
number is looked at, so nothing waits for a device.

Keys that are traced are kept as the variables that stand for them. Of a compiled program the first
runs are kept, under its name, if it draws with a key that it is given or has captured. A captured
key is known when the program is traced; the run that follows is the same use.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from perspex.base import events, source
from perspex.base.source import Source
from perspex.base.xla import ArrayImpl
from perspex.runtime import key_reuse
from perspex.runtime.keys import KeyArray
from perspex.tracing.staging import JaxprTracer
from perspex.tracing.trace import state
from perspex.transforms import vmap
from perspex.transforms.jvp import JvpTracer
from perspex.transforms.trace import TransformTracer
from perspex.transforms.vmap import BatchTrace, BatchTracer

# Arrays of keys of more numbers are not kept.
MOST_NUMBERS = 1 << 14
# How many calls are kept; the oldest go first.
MOST_CALLS = 5_000


class Call(NamedTuple):
    """A call of a function that makes keys or uses one.

    `given` are the numbers of the key that was used, an array or the variable of a traced program;
    `made` those of the keys that came out. `None` stands for none, or for too many. `at` is the
    user's line, `caller` the line outside of all functions that led there, where that is another
    one. `run` is what `Recorder.run` was.
    """

    function: str
    given: Any
    made: Any
    at: Source | None
    caller: Source | None
    run: Any


class Recorder:
    """Keeps the calls. `run` is for the user: it is kept with each call, and may say which cell."""

    def __init__(self, limit: int = MOST_CALLS) -> None:
        self.run: Any = None
        self.total = 0
        self._calls: deque[tuple[Any, ...]] = deque(maxlen=limit)
        # Numbers with which a program draws that was traced and has not run, by their ids.
        self._traced: dict[int, Any] = {}
        # Keys with which all examples of a `vmap` drew, and where.
        self.unmapped: deque[tuple[Any, Source | None]] = deque(maxlen=limit)

    def add(self, function: str, given: Any, made: Any, depth: int = 1) -> None:
        """Keep one call, made by the user's innermost line, at least `depth` frames up.

        The library's own calls and programs are left out.
        """
        if inside.program or events.is_unheard():
            return
        at = caller = None
        frame = source.user_frame(depth + 1)
        if frame is not None:
            code = frame.f_code
            at = code, frame.f_lasti
            if code.co_name != "<module>":
                caller = _caller(frame.f_back)
        self.total += 1
        self._calls.append((function, numbers_of(given), numbers_of(made), at, caller, self.run))

    def expect(self, key: Any) -> None:
        """Note that a program uses a captured key: its next run is the use that was just added."""
        numbers = numbers_of(key)
        if numbers.__class__ is ArrayImpl and not (inside.program or events.is_unheard()):
            if len(self._traced) >= MOST_CALLS:
                self._traced.clear()
            self._traced[id(numbers)] = numbers

    def add_run(self, name: str, key: Any, made: None) -> None:
        """Keep that a program runs which uses `key`."""
        if self._traced.pop(id(numbers_of(key)), None) is None:
            self.add(name, key, made, 2)

    def add_unmapped(self, key: Any) -> None:
        """Keep that all examples of a `vmap` draw with `key`."""
        if not (inside.program or events.is_unheard()):
            self.unmapped.append((numbers_of(key), state.source or source.capture(2)))

    @property
    def calls(self) -> list[Call]:
        """The calls that are kept, in order."""
        return self.since(0)

    @property
    def forgotten(self) -> int:
        """How many older calls are not kept any more."""
        return self.total - len(self._calls)

    def since(self, total: int) -> list[Call]:
        """The calls that are kept of those after the first `total`."""
        first = max(0, total - self.forgotten)
        return [
            Call(function, given, made, at and Source(*at), caller and Source(*caller), run)
            for function, given, made, at, caller, run in list(self._calls)[first:]
        ]

    def clear(self) -> None:
        """Forget all calls."""
        self._calls.clear()
        self._traced.clear()
        self.unmapped.clear()
        self.total = 0


# Read by every random function: `None` means free.
recorder: Recorder | None = None


class _Inside(threading.local):
    """Whether the calls of this thread are not the user's: it traces a random function."""

    program = False


inside = _Inside()


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Keep no record of what this thread does meanwhile.

    For whoever draws with a key only to show what it gives: that is no use of the key.
    """
    before, inside.program = inside.program, True
    try:
        yield
    finally:
        inside.program = before


def noted(
    name: str, run: Callable[..., Any], arguments: Sequence[Any], makes_keys: bool = False
) -> Any:
    """`run(*arguments)`, whose first argument is a key, with a note of it."""
    record = recorder
    with unrecorded():
        out = run(*arguments)
    if record is not None:
        record.add(name, arguments[0], out if makes_keys else None, 2)
        if name != "fold_in" and _is_written():
            record.expect(arguments[0])
        if not makes_keys and state.trace.parent is not None and _is_unmapped(arguments[0]):
            record.add_unmapped(arguments[0])
    return out


def _is_unmapped(key: Any) -> bool:
    """Whether the code that runs is mapped over an axis that `key` does not have."""
    mapped = set()
    while isinstance(key, TransformTracer):
        mapped.add(id(key._trace))
        key = key._inner
    trace = state.trace
    # What is traced into a program is batched with it, if at all.
    while trace is not None and not trace.writes:
        if trace.__class__ is BatchTrace and id(trace) not in mapped and trace.axis.size > 1:
            return True
        trace = trace.parent
    return False


def _is_written() -> bool:
    """Whether the code that runs becomes part of a program."""
    trace = state.trace
    while trace is not None and not trace.writes:
        trace = trace.parent
    return trace is not None


def start(limit: int = MOST_CALLS) -> Recorder:
    """Begin to record, in all threads, and return the record.

    >>> from perspex import random
    >>> record = start()
    >>> key, sub = random.split(random.key(0))
    >>> stop()
    >>> [call.function for call in record.calls]
    ['key', 'split']
    """
    global recorder
    recorder = Recorder(limit)
    key_reuse.watcher = recorder.add_run
    vmap.on_unmapped = recorder.add_unmapped
    return recorder


def stop() -> None:
    """Record no more."""
    global recorder
    recorder = key_reuse.watcher = vmap.on_unmapped = None


def numbers_of(keys: Any) -> Any:
    """The array of the numbers of keys, or the variable of traced ones; `None` if there is none."""
    if keys is None:
        return None
    kind = keys.__class__
    if kind is KeyArray:
        keys = keys.base
        return keys if keys.aval.size <= MOST_NUMBERS else None
    if kind is ArrayImpl:
        return keys if keys.aval.size <= MOST_NUMBERS else None
    if kind is np.ndarray and keys.dtype == np.uint32:
        return keys.copy() if keys.size <= MOST_NUMBERS else None
    if kind is JaxprTracer:
        return keys._var
    if kind is JvpTracer:
        return numbers_of(keys.primal)
    if kind is BatchTracer and keys.axis in (0, None):
        return numbers_of(keys.value)
    return None


def _caller(frame: FrameType | None) -> tuple[CodeType, int] | None:
    """The instruction outside of all functions that led to `frame`."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and not source.is_internal(code.co_filename):
            return code, frame.f_lasti
        frame = frame.f_back
    return None

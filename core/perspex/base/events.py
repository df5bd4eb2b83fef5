"""What the machine does on the user's behalf, published as it happens.

The core publishes; a listener (the panel, the clock, a test) subscribes, and the core never knows
it. A site reads `listeners` first, so that nothing is computed when nobody listens.

Kinds and their `data`:

* `trace`: a Python function became a jaxpr (`eqns`, its number of equations; `program`, a weak
  reference to the jaxpr, which is what tells it from all others, while it lives and later).
* `lower`: the jaxpr became StableHLO (`program`; `lowering`, a number that no other one has).
* `compile`: XLA made an executable (`lowering`; `device`; `source`, if it was not XLA but a cache;
  `apart`, if XLA did it in a process of its own; `origin`, what it was made of, for as long as that
  is there: see `jitted.compiled.Origin`).
* `failed`: a stage (`stage`: one of the three above) ended with an exception.
* `cache`: a compiled function was looked up outside the fast path (`hit`; `cause` of a miss, and
  `differences`, the same as data).
* `recompile`: something like it had been compiled before, and now it has been compiled for this
  call (`lowering`; `differences`, `combination` and `cause`; `trace`, `lower` and `compile`, in
  seconds; `compiles` so far, and `compiles_here`, from this line; see `jitted.misses`).
* `transfer`: numbers moved between host and device (`direction`, `bytes`).
* `wait`: Python waited for the device, if only for a moment worth telling of.
* `stale`: a variable that a function captured has changed (`state`: `found`, `gone` if the old
  value is back, `retraced`; `variable`, `old`, `new`; where it was `changed`, and `traced`).
* `delete`: a buffer was given up, by donation or `delete()`.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from perspex.base import source


class Event(NamedTuple):
    """One thing that happened.

    `kind` is one of those in the module's docstring; `name` the function or array it happened to;
    `start` its begin by `time.perf_counter`, and `seconds` how long it took; `signature` the types
    of its arguments, as in `f32[3], i32[]`; `at` the user's line, for `source.summary`.
    """

    kind: str
    name: str
    start: float
    seconds: float
    signature: str
    at: source.Source | None
    data: dict[str, Any]


class Phase:
    """Work that is going on: a context around a stage, which is in `running` meanwhile.

    Another thread may look there to say what takes so long. `kind` and `name` are those of the
    event at its end; `start` is by `time.perf_counter`, and so is `end` when it is over.
    `is_apart` says that another process does the work, which an interrupt ends. A stage that fails
    publishes the event `failed`.
    """

    __slots__ = ("_before", "_is_heard", "end", "is_apart", "kind", "name", "start", "thread")

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        self.end: float | None = None
        self.is_apart = False

    def __enter__(self) -> Phase:
        self.thread = threading.get_ident()
        self._before = processor()
        self.start = time.perf_counter()
        self._is_heard = not _looking.is_on
        if self._is_heard:
            running.append(self)
        return self

    def __exit__(self, raised: type[BaseException] | None, *rest: object) -> None:
        self.end = time.perf_counter()
        if not self._is_heard:
            return
        running.remove(self)
        count_as_phase(self._before)
        if raised is not None:
            publish("failed", self.name, self.start, stage=self.kind)


# Outermost first, of all threads.
running: list[Phase] = []


class _Looking(threading.local):
    is_on = False


_looking = _Looking()


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Publish nothing of what this thread does inside the context.

    For code that lowers a program only to look at it, which is not the user's work.

    >>> import perspex, perspex.numpy as pnp
    >>> seen = []
    >>> stop = subscribe(seen.append)
    >>> with unheard():
    ...     _ = perspex.jit(lambda x: x + 1)(pnp.zeros(3))
    >>> stop()
    >>> seen
    []
    """
    before, _looking.is_on = _looking.is_on, True
    try:
        yield
    finally:
        _looking.is_on = before


def is_unheard() -> bool:
    """Whether what this thread does is inside `unheard`."""
    return _looking.is_on


class _Spent(threading.local):
    thread = process = 0.0


_spent = _Spent()


def processor() -> tuple[float, float]:
    """The seconds for which the processors have run this thread, and the whole process."""
    return time.thread_time(), time.process_time()


def seconds_in_phases() -> float:
    """For how long the processor has run this thread in phases so far, by `time.thread_time`."""
    return _spent.thread


def outside_of_phases() -> tuple[float, float]:
    """What `processor` says, but for what belongs to phases of this thread."""
    thread, process = processor()
    return thread - _spent.thread, process - _spent.process


def count_as_phase(before: tuple[float, float]) -> None:
    """Count the processor time since then, unless a phase of this thread is running.

    For work that is published as an event without being in `running` meanwhile. `before` is what
    `processor` said.
    """
    me = threading.get_ident()
    if not any(phase.thread == me for phase in running.copy()):
        thread, process = processor()
        _spent.thread += thread - before[0]
        _spent.process += process - before[1]


def forget_phases() -> None:
    """Forget the phases of this thread, where none can be running.

    An interrupt may come between the beginning of one and the statement that would end it.
    """
    thread = threading.get_ident()
    for phase in running.copy():
        if phase.thread == thread:
            running.remove(phase)


Listener = Callable[[Event], None]

# Read by every publishing site: empty means free.
listeners: tuple[Listener, ...] = ()
# The listeners, each with the kinds that it wants (`None`: all); by kind once looked up.
_subscriptions: tuple[tuple[Listener, frozenset[str] | None], ...] = ()
_audiences: dict[str, tuple[Listener, ...]] = {}
_subscribing = threading.Lock()


def _set_subscriptions(new: tuple[tuple[Listener, frozenset[str] | None], ...]) -> None:
    global listeners, _subscriptions, _audiences
    _subscriptions, _audiences = new, {}
    listeners = tuple([listener for listener, _ in new])


def subscribe(listener: Listener, kinds: Iterable[str] | None = None) -> Callable[[], None]:
    """Call `listener(event)` for each event from now on; returns a function that stops it.

    With `kinds`, only for events of these kinds. The listener runs in the thread where the event
    happens and must be quick. An exception in it is reported through `sys.unraisablehook` and does
    not reach the user's computation.

    >>> import perspex, perspex.numpy as pnp
    >>> seen = []
    >>> stop = subscribe(lambda event: seen.append((event.kind, event.name)))
    >>> _ = perspex.jit(lambda x: x + 1)(pnp.zeros(3))
    >>> stop()
    >>> ("compile", "<lambda>") in seen
    True
    """
    entry = listener, None if kinds is None else frozenset(kinds)
    with _subscribing:
        _set_subscriptions((*_subscriptions, entry))

    def unsubscribe() -> None:
        with _subscribing:
            _set_subscriptions(tuple([other for other in _subscriptions if other is not entry]))

    return unsubscribe


def audience(kind: str) -> tuple[Listener, ...]:
    """The listeners for events of that kind; for sites that run often, such as transfers."""
    audiences = _audiences  # before the subscriptions, so that old ones get into no new table
    found = audiences.get(kind)
    if found is None:
        found = audiences[kind] = tuple(
            [listener for listener, kinds in _subscriptions if kinds is None or kind in kinds]
        )
    return found


def is_inside(kind: str) -> bool:
    """Whether a phase of that kind is going on in this thread."""
    thread = threading.get_ident()
    return any(phase.kind == kind and phase.thread == thread for phase in running.copy())


def publish(
    kind: str,
    name: str,
    start: float,
    signature: str = "",
    at: source.Source | None = None,
    **data: Any,
) -> None:
    """Call the listeners with an event that began at `start` and has just ended."""
    heard_by = audience(kind) if listeners else ()
    if not heard_by or _looking.is_on:
        return
    if at is None:
        at = source.capture(2)
    event = Event(kind, name, start, time.perf_counter() - start, signature, at, data)
    for listener in heard_by:
        try:
            listener(event)
        except Exception as error:
            report_ignored(error, "in a listener to Perspex's events", listener)


def report_ignored(error: BaseException, where: str, culprit: object) -> None:
    """Report an exception that nobody can catch, as Python itself does."""
    # `sys.unraisablehook` takes arguments of a type that only Python can make, so the exception is
    # raised where Python ignores those: in what is called as an object goes.
    short_lived = _Ignored(error, where, culprit)
    reference = weakref.ref(short_lived, _Ignored(error, where, culprit))
    del short_lived
    del reference


class _Ignored:
    def __init__(self, error: BaseException, where: str, culprit: object) -> None:
        self.error, self.where, self.culprit = error, where, culprit

    def __call__(self, gone: object) -> None:
        raise self.error

    def __repr__(self) -> str:
        return f"<{self.where}: {self.culprit!r}>"

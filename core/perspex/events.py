"""What the machine does on the user's behalf, published as it happens.

The core publishes; who listens (the panel, the clock, a test) subscribes, and the core never knows
who. A site asks `listeners` first, so that nothing is computed when nobody listens.

Kinds and their `data`:

* `trace`: a Python function became a jaxpr (`eqns`, its number of equations).
* `lower`: the jaxpr became StableHLO (`bytes` of text are not computed).
* `compile`: XLA made an executable (`device`).
* `cache`: a compiled function was looked up outside the fast path (`hit`; `cause` of a miss).
* `transfer`: numbers moved between host and device (`direction`, `bytes`).
* `delete`: a buffer was given up, by donation or `delete()`.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from perspex import source


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
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
    event that tells of the end, `start` is by `time.perf_counter`.
    """

    __slots__ = ("kind", "name", "start", "thread")

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name

    def __enter__(self) -> Phase:
        self.start = time.perf_counter()
        self.thread = threading.get_ident()
        running.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        running.remove(self)


# Outermost first, of all threads.
running: list[Phase] = []

Listener = Callable[[Event], None]

# Read by every publishing site: empty means free.
listeners: tuple[Listener, ...] = ()


def subscribe(listener: Listener) -> Callable[[], None]:
    """Call `listener(event)` for each event from now on; returns a function that stops it.

    The listener runs in the thread where the event happens and must be quick. An exception in it
    is reported through `sys.unraisablehook` and does not reach the user's computation.

    >>> import perspex, perspex.numpy as pnp
    >>> seen = []
    >>> stop = subscribe(lambda event: seen.append((event.kind, event.name)))
    >>> _ = perspex.jit(lambda x: x + 1)(pnp.zeros(3))
    >>> stop()
    >>> ("compile", "<lambda>") in seen
    True
    """
    global listeners
    listeners = (*listeners, listener)

    def unsubscribe() -> None:
        global listeners
        listeners = tuple([other for other in listeners if other is not listener])

    return unsubscribe


def publish(
    kind: str,
    name: str,
    start: float,
    signature: str = "",
    at: source.Source | None = None,
    **data: Any,
) -> None:
    """Tell the listeners of something that began at `start` and has just ended."""
    if not listeners:
        return
    if at is None:
        at = source.capture(2)
    event = Event(kind, name, start, time.perf_counter() - start, signature, at, data)
    for listener in listeners:
        try:
            listener(event)
        except Exception as error:
            # What Python itself does with an exception that has nobody to go to.
            sys.unraisablehook(
                SimpleNamespace(
                    exc_type=type(error),
                    exc_value=error,
                    exc_traceback=error.__traceback__,
                    err_msg="Exception ignored in a listener to Perspex's events",
                    object=listener,
                )
            )

"""What is known of measurements before one is made: `runtime.profile` is slow to import.

Whether a session of it measures the calls of this thread, and what it and `runtime.communication`
say of lines.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from perspex import config


class Place(NamedTuple):
    """A line of a file, or of a cell."""

    file: str
    line: int


class Exchange(NamedTuple):
    """A kind of collective at one line, over all runs of that line in a run of the program.

    `place` is the line, or `None` where no line is known. `sent` are the bytes that each device
    sends, by the ring algorithms; `times` is how often. `group` is the number of devices that
    exchange with each other, the largest one. `share` is the part of the program's work, by the
    estimate that a profile shares out the time of fusions with.
    """

    place: Place | None
    collective: str
    sent: float
    times: float
    group: int
    share: float


here = threading.local()
"""Its `session` is the one that measures this thread, where there is one."""


def is_on() -> bool:
    """Whether this thread is measuring."""
    return bool(config.profiling.value) and hasattr(here, "session")


def measured(executable: Any, ready: Callable[[], Callable[[Any], Any]], args: Any) -> Any:
    """What `ready()(args)` gives, measured as a run of that executable."""
    return here.session.call(executable, ready, args)

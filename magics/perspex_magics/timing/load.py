"""How much of the machine other processes have used meanwhile: a busy machine makes times long.

Linux counts for how long its processors have worked, and for how long each process has. What is
left of the first without this process is the others' work. Where `/proc` is missing, or counts
nothing, nothing is said.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

_FILE = "/proc/stat"
# Its first line has the times of all processors together, in this order: user, nice, system, idle,
# iowait, irq, softirq, steal. Times of guests are in the first two already.
_COLUMNS, _IDLE = 8, (3, 4)
# The counters go in steps of 10 ms: shorter times say nothing.
LEAST_SECONDS = 0.2
# The part of the machine from which on others make times longer.
_LARGE = 0.25


class Sample(NamedTuple):
    """Seconds, all of them since some moment of the past.

    `busy` is how long the machine's processors have worked, `total` how long they have worked or
    waited for work, `own` how long they have worked for this process.
    """

    at: float
    busy: float
    total: float
    own: float


class Load(NamedTuple):
    """How many processors other processes have used on average, and how many there are."""

    used: float
    processors: int

    def text(self) -> str:
        """`other processes used 1.6 of 2 processors`."""
        noun = "processor" if self.processors == 1 else "processors"
        return f"other processes used {self.used:.2g} of {self.processors} {noun}"


def sample() -> Sample | None:
    """The counters now; `None` if there are none."""
    now, found = time.perf_counter(), counters()
    return None if found is None else Sample(now, *found, time.process_time())


def counters() -> tuple[float, float] | None:
    """The seconds for which all processors have worked, and have been there."""
    try:
        with open(_FILE, "rb", buffering=0) as file:
            line = file.read(256).partition(b"\n")[0].split()
        ticks = [int(word) for word in line[1 : 1 + _COLUMNS]]
        second = os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return None
    if len(ticks) < _COLUMNS or not any(ticks):
        return None
    total = sum(ticks)
    return (total - sum(ticks[i] for i in _IDLE)) / second, total / second


def load(before: Sample | None, now: Sample | None, ours: float = 0.0) -> Load | None:
    """What other processes used of the machine between two samples; `None` if that is little.

    `ours` are seconds of processors that other processes have worked for this one.

    >>> load(Sample(0.0, 10.0, 100.0, 1.0), Sample(2.0, 13.0, 104.0, 1.5))
    Load(used=1.25, processors=2)
    >>> load(Sample(0.0, 10.0, 100.0, 1.0), Sample(2.0, 11.6, 104.0, 2.5)) is None
    True
    """
    if before is None or now is None or now.at - before.at < LEAST_SECONDS:
        return None
    seconds, total = now.at - before.at, now.total - before.total
    others = now.busy - before.busy - (now.own - before.own) - ours
    if total <= 0 or others < _LARGE * total:
        return None
    processors = max(1, round(total / seconds))
    return Load(min(others / seconds, float(processors)), processors)

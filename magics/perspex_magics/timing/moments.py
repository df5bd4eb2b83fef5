"""What the threads of a process had done at some moments of a cell, read by another thread."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from perspex.base import events
from perspex.runtime import threads
from perspex_magics.timing.inside import Inside

# Between two moments, in seconds: a part of the time so far, and within these bounds.
_PART, _SHORTEST, _LONGEST = 0.02, 0.01, 0.1
# The least where Python runs, which must stop for each, and where nothing is to be told apart: this
# part of the time.
_WHERE_PYTHON_RUNS, _RUNNING = 0.06, 0.9
# A thread that ran for a smaller part of the time was not inside a program of XLA's.
_SOME = 0.2
# When there are so many, every other one is forgotten.
_MOST = 4096


class Moment(NamedTuple):
    """A time, and for how long the processors have run the cell's thread, the process and XLA.

    All in seconds since some moment of the past, and `at` by `time.perf_counter`. `lent` is for how
    long the cell's thread itself has computed programs of XLA's, as far as that was seen.
    """

    at: float
    thread: float
    process: float
    xla: float
    lent: float = 0.0

    def __sub__(self, other: Moment) -> Moment:
        """By how much each clock differs."""
        return Moment(*[mine - its for mine, its in zip(self, other, strict=True)])


class Moments:
    """The moments of one cell, which has begun in this thread.

    `xla` are XLA's threads. `spans` are begins and lengths of the phases that are over by now.
    """

    def __init__(self, xla: Sequence[int], spans: Sequence[tuple[float, float]] = ()) -> None:
        self.xla, self.spans = xla, spans
        self.begun = time.perf_counter()
        self.found: list[Moment] = []
        self.due = self.begun
        # Windows and macOS have no such clocks, and say nothing of XLA's threads either.
        clock = getattr(time, "pthread_getcpuclockid", None)
        self._inside = Inside(threading.get_ident(), threading.get_native_id())
        self._clock: int | None = clock(self._inside.thread) if clock and xla else None
        self._looked, self._ran = self.begun, time.thread_time()
        # What the thread had run when it was last known what it did.
        self._undecided = self._ran
        self._lent = 0.0

    def look(self) -> float:
        """Read the clocks, if it is time; returns in how many seconds it is. From any thread."""
        now = time.perf_counter()
        if self._clock is None:
            return _LONGEST
        if now < self.due:
            return self.due - now
        try:
            thread = time.clock_gettime(self._clock)
        except OSError:  # it has ended
            return _LONGEST
        then, ran, least, found = self._looked, self._ran, _SHORTEST, self.found
        part = (thread - ran) / (now - then)
        may_compute = part > _SOME and self._is_outside_of_phases(then)
        if may_compute and self._inside.look():
            self._lent += thread - self._undecided
        elif part > _RUNNING:
            least = _WHERE_PYTHON_RUNS
        self._looked, self._ran = now, thread
        if not (may_compute and self._inside.is_unsure):
            self._undecided = thread
        xla = sum(map(threads.used, self.xla))
        found.append(Moment(now, thread, time.process_time(), xla, self._lent))
        if len(found) > _MOST:
            self.found = found[::2]
        wait = min(max(_PART * (now - self.begun), least), _LONGEST)
        self.due = now + wait
        return wait

    def _is_outside_of_phases(self, then: float) -> bool:
        """Whether the thread has been in none since some time."""
        if any(sum(span) > then for span in self.spans[-1:]):
            return False
        return not any(phase.thread == self._inside.thread for phase in events.running.copy())

    def between(self, spans: Sequence[tuple[float, float]], after: float) -> Iterator[Moment]:
        """What came from each moment to the next, `after` some time and in none of the spans.

        `spans` are begins and lengths, in their order.
        """
        i = 0
        for then, now in itertools.pairwise(self.found.copy()):
            while i < len(spans) and sum(spans[i]) <= then.at:
                i += 1
            if then.at >= after and (i == len(spans) or spans[i][0] >= now.at):
                yield now - then

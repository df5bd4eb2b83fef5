"""What the threads of a process had done at some moments of a cell, read by another thread."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from perspex.runtime import threads

# Between two moments, in seconds: a part of the time so far, and within these bounds.
_PART, _SHORTEST, _LONGEST = 0.02, 0.01, 0.1
# The least where Python runs, which must stop for each, and where nothing is to be told apart: this
# part of the time.
_WHERE_PYTHON_RUNS, _RUNNING = 0.06, 0.9
# When there are so many, every other one is forgotten.
_MOST = 4096


class Moment(NamedTuple):
    """A time, and for how long the processors have run the cell's thread, the process and XLA.

    All in seconds since some moment of the past, and `at` by `time.perf_counter`.
    """

    at: float
    thread: float
    process: float
    xla: float

    def __sub__(self, other: Moment) -> Moment:
        """By how much each clock differs."""
        return Moment(*[mine - its for mine, its in zip(self, other, strict=True)])


class Moments:
    """The moments of one cell, which has begun in this thread; `xla` are XLA's threads."""

    def __init__(self, xla: Sequence[int]) -> None:
        self.xla = xla
        self.begun = time.perf_counter()
        self.found: list[Moment] = []
        self.due = self.begun
        # Windows and macOS have no such clocks, and say nothing of XLA's threads either.
        clock = getattr(time, "pthread_getcpuclockid", None)
        self._clock: int | None = clock(threading.get_ident()) if clock and xla else None
        self._ran = time.thread_time()

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
        xla = sum(map(threads.used, self.xla))
        moment, found = Moment(now, thread, time.process_time(), xla), self.found
        then, ran = (found[-1].at, found[-1].thread) if found else (self.begun, self._ran)
        is_python = thread - ran > _RUNNING * (now - then)
        least = _WHERE_PYTHON_RUNS if is_python else _SHORTEST
        found.append(moment)
        if len(found) > _MOST:
            self.found = found[::2]
        wait = min(max(_PART * (now - self.begun), least), _LONGEST)
        self.due = now + wait
        return wait

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

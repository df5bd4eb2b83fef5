"""A thread that looks at some things again and again while there is something to see."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from perspex.base import events
from perspex_magics.session import Session

# Called in the pulse's thread; returns in how many seconds at most it is to be called again, or
# `None` if there is nothing to see.
Look = Callable[[], float | None]

# The first look while cells run, in seconds: the thread of a cell must wait for each.
_FIRST = 0.04


class Pulse:
    """Looks at some things in a thread of its own, and sleeps when nothing is seen.

    The first look comes `first` seconds after `wake`: what is over by then costs nothing. When one
    look is due, all are called. Before the thread sleeps it looks twice in a row.
    """

    def __init__(self, name: str, *looks: Look, first: float = 0.0) -> None:
        self.name, self.looks = name, looks
        self.first = first
        # Held while the thread sleeps; to release it costs a tenth of what an `Event` does.
        self._sleep = threading.Lock()
        self._sleep.acquire()
        self._is_closed = False
        self.is_asleep = False
        self.thread: threading.Thread | None = None

    def add(self, look: Look) -> None:
        """Look at one more thing."""
        self.looks = (*self.looks, look)

    def wake(self) -> None:
        """There is something to see, or soon will be."""
        if self.thread is None or not self.thread.is_alive():
            # The first time; or a fork, into which threads do not come along.
            self.is_asleep = False
            self.thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self.thread.start()
        elif self.is_asleep:
            self.is_asleep = False
            self._release()

    def close(self) -> None:
        """Look no more; the thread ends."""
        self._is_closed = True
        self._release()

    def _release(self) -> None:
        with contextlib.suppress(RuntimeError):  # released already
            self._sleep.release()

    def _run(self) -> None:
        while not self._is_closed:
            wait: float | None = self.first
            while wait is not None and not self._is_closed:
                time.sleep(wait)
                wait = self._look()
            self.is_asleep = True
            # What came a moment ago has taken this thread to be awake.
            if self._look() is None:
                self._sleep.acquire()
            self.is_asleep = False

    def _look(self) -> float | None:
        waits = []
        for look in self.looks:
            try:
                wait = look()
            except Exception as error:
                events.report_ignored(error, "while a cell runs, in", look)
            else:
                waits += [] if wait is None else [wait]
        return min(waits, default=None)


class CellPulse(Pulse):
    """The pulse of a notebook, for what is looked at while its cells run."""

    def __init__(self) -> None:
        super().__init__("perspex-cells", first=_FIRST)


def cell_pulse(session: Session) -> CellPulse:
    """The one of this notebook, which is made when it is first asked for."""
    found = session.find(CellPulse)
    if found is None:
        found = session.keep(CellPulse())
        session.on_unload(found.close)
    return found

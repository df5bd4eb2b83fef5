"""The line under a cell that has waited for the device for long, while it waits.

    waiting for `loss` (`step`): 35.0 s; it took 1.20 s the last time

The thread of the heartbeat looks whether the cell stands where it stood while the device has not
finished. The line goes when the wait is over: what is saved says nothing of it.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
import uuid
from types import FrameType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex.base import events
from perspex.base.recent import Recent
from perspex.runtime import array as concrete
from perspex.runtime import interruptible, stopping, watching
from perspex.runtime.resumable import Moment
from perspex_magics.compiling.stopped import Stopping, names_of
from perspex_magics.display import notices
from perspex_magics.display.markup import listed
from perspex_magics.display.table import Report
from perspex_magics.display.units import count, duration
from perspex_magics.restart.magic import Restart
from perspex_magics.session import find
from perspex_magics.timing.inside import Inside

# Seconds until a wait is shown, and between two updates.
_LONG, _REFRESH = 2.0, 0.95
# Waits that are remembered by what was waited for.
MOST_TIMES = 256
_WAITING = {concrete.__file__, interruptible.__file__}

# How long it took the last time.
Times = Recent[str, float]


class Wait:
    """What one cell waits for, if it does, and the line that says so."""

    def __init__(self, shell: InteractiveShell, thread: int, times: Times) -> None:
        self.shell, self.thread, self.times = shell, thread, times
        self.inside = Inside(thread, threading.get_native_id())
        self.context = contextvars.copy_context()
        self.publisher = shell.display_pub
        self.began = time.monotonic()
        self.place: tuple[int, int] | None = None
        self.since = self.shown = 0.0
        self.what = self.display_id = ""

    def look(self, now: float) -> None:
        """Show or update the line, or take it away."""
        run = watching.running.get(self.thread)
        if run is not None:
            self._look_at(run, now)
            return
        frame = sys._current_frames().get(self.thread)
        place = None if frame is None else (id(frame), frame.f_lasti)
        if place is None or place != self.place or self._is_staging():
            self.end(now)
            self.place, self.since = place, now
            return
        missing = stopping.unready()
        what = self._missing(missing) if missing else self.inside.look()
        if not what:
            self.end(now)
            return
        self.what = what
        if now - self.since >= _LONG and now - self.shown >= _REFRESH:
            self._show(now, frame)

    def _missing(self, arrays: list[Any]) -> str:
        """Names the variables and the program of arrays that are not computed yet."""
        # The oldest is the one that runs.
        names, made = names_of(self.shell, arrays), stopping.maker(arrays[0])
        if names and made:
            return f"{listed(names)} (`{made[0].name}`)"
        return listed(names) or (f"a result of `{made[0].name}`" if made else "unnamed arrays")

    def _look_at(self, run: Any, now: float) -> None:
        """Show how far the loop of a call has come that is made in turns."""
        moment = Moment(run)
        if moment.seconds < _LONG or now - self.shown < _REFRESH or not self._has_kernel:
            return
        self.shown, self.since = now, now - moment.seconds
        self.what = f"`{moment.program}`"
        which = "the loop" if moment.loops == 1 else f"loop {moment.loop} of {moment.loops}"
        text = f"{self.what}: turn {count(moment.turn)}"
        if moment.turns is not None:
            text += f" of {count(moment.turns)}"
        text += f" of {which} at {moment.at}, {duration(moment.seconds)}"
        if moment.turns is not None and moment.turn:
            left = moment.seconds / moment.turn * (moment.turns - moment.turn)
            text += f"; about {duration(left)} left"
        data = {
            "waiting": True,
            "what": self.what,
            "seconds": moment.seconds,
            "before": self.times.peek(self.what),
            "turn": moment.turn,
            "turns": moment.turns,
        }
        self._publish(data, text)

    def end(self, now: float) -> None:
        """The wait is over: remember how long it was, and take the line away."""
        if self.what:
            self.times[self.what] = now - self.since
        if self.display_id:
            self._put({"waiting": False}, "", True)
        self.what = self.display_id = ""

    @property
    def _has_kernel(self) -> bool:
        """Whether a line can be taken back: a terminal cannot do that."""
        return hasattr(self.shell, "kernel")

    def _is_staging(self) -> bool:
        return any(phase.thread == self.thread for phase in events.running.copy())

    def _show(self, now: float, frame: FrameType | None) -> None:
        if not self._has_kernel:
            return
        self.shown, before = now, self.times.peek(self.what)
        is_waiting = frame is not None and frame.f_code.co_filename in _WAITING
        doing = "waiting for" if is_waiting else "the device is computing"
        text = f"{doing} {self.what}: {duration(now - self.since)}"
        if before is not None:
            text += f"; it took {duration(before)} the last time"
        if self._is_deaf():
            text += ". An interrupt does not reach it; Restart in the panel keeps the variables"
        data = {"waiting": True, "what": self.what, "seconds": now - self.since, "before": before}
        self._publish(data, text)

    def _publish(self, data: dict[str, Any], text: str) -> None:
        update = bool(self.display_id)
        self.display_id = self.display_id or f"perspex-wait-{uuid.uuid4().hex}"
        self._put(data, text, update)

    def _is_deaf(self) -> bool:
        """Whether an interrupt has come in vain, in a kernel that can restart itself."""
        loops, restart = find(self.shell, Stopping), find(self.shell, Restart)
        # Most often it ends within a moment.
        is_pressed = loops is not None and self.began < loops.pressed < time.monotonic() - _LONG
        return is_pressed and restart is not None and not restart.obstacle

    def _put(self, data: dict[str, Any], text: str, update: bool) -> None:
        if self.shell.display_pub is not self.publisher:
            return  # the cell is collecting outputs for itself
        report = Report(*([text] if text else []), style="font-size:85%")
        self.context.copy().run(
            notices.tell, "wait", data, report, display_id=self.display_id, update=update
        )

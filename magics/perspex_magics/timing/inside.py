"""Which program a thread computes inside of its own call, seen from another thread.

On CPUs, XLA runs a program in the thread that calls it if it takes it for cheap. It counts the
operations in a loop once, and those that only move numbers not at all, so such a call may take
seconds. Nothing speaks of it, as C++ repeats calls without Python. But where the thread stands can
be seen, and that it runs on while somebody else has Python's lock.
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import os
import re
import sys
import time
from types import FrameType
from typing import Any

import perspex
from perspex.base import source
from perspex.runtime.executable import Executable
from perspex_magics.keys.lineage import expression_at
from perspex_magics.timing.unfinished import is_compiled

_CORE = os.path.dirname(perspex.__file__) + os.sep
_UNKNOWN = object()
# C's functions, called with Python's lock: whoever gave it away would get it back 5 ms later.
_libc = ctypes.PyDLL(None) if sys.platform == "linux" else None
_MOST_BYTES = 4096
_STATE = re.compile(rb"^State:\s*(\w).*^voluntary_ctxt_switches:\s*(\d+)", re.MULTILINE | re.DOTALL)
# For how many seconds a thread runs on without Python's lock where it is in a long call, and how
# long somebody who has it waits for that: another program may have the processor.
_RUNS_ON, _PATIENCE = 300e-6, 10e-3
_NAP = 50  # microseconds


class Inside:
    """Says what one thread computes in calls of programs; to be asked by one other thread."""

    def __init__(self, thread: int, number: int) -> None:
        """`number` is the thread's `native_id`."""
        self.thread = thread
        self._file = f"/proc/self/task/{number}/status".encode()
        # Where the thread stood the last time, and how often it had waited by then.
        self._last: tuple[int, int, int | None] = 0, 0, None
        # Whether the last look has found a program that the thread may have called since.
        self.is_unsure = False

    def look(self) -> str:
        """The program that the thread has computed since the last look.

        It is empty if the thread does something else, or nobody can tell.
        """
        frame = sys._current_frames().get(self.thread)
        found = "" if frame is None else _program(frame)
        state = _state(self._file) if found else None
        if frame is None or state is None:
            self._last, self.is_unsure = (0, 0, None), False
            return ""
        waits, sleeps = state
        now = id(frame), frame.f_lasti, waits
        before, self._last = self._last, now
        self.is_unsure = now != before or not (sleeps or self._runs_on(waits))
        return "" if self.is_unsure else found

    def _runs_on(self, waits: int) -> bool:
        """Whether the thread still computes while this one has Python's lock.

        A short call ends and waits for the lock. On a busy machine it may not have come to that
        when the other thread has looked and gives the lock away again.
        """
        end = time.perf_counter() + _PATIENCE
        try:
            clock = time.pthread_getcpuclockid(self.thread)
            least = time.clock_gettime(clock) + _RUNS_ON
            while _libc and _state(self._file) == (waits, False):
                if time.clock_gettime(clock) > least:
                    return True
                if time.perf_counter() > end:
                    break
                _libc.usleep(_NAP)
        except OSError:  # it has ended
            pass
        return False


def _state(file: bytes) -> tuple[int, bool] | None:
    """How often a thread has waited so far, and whether it waits; `None` if nobody says that."""
    if _libc is None or (number := _libc.open(file, os.O_RDONLY | os.O_CLOEXEC)) < 0:
        return None
    buffer = ctypes.create_string_buffer(_MOST_BYTES)
    size = _libc.read(number, buffer, _MOST_BYTES)
    _libc.close(number)
    found = _STATE.search(buffer.raw[:size])
    return None if found is None else (int(found[2]), found[1] != b"R")


def _program(frame: FrameType) -> str:
    """What runs at a place that has called C++."""
    if not frame.f_code.co_filename.startswith(_CORE):
        return _called(frame)
    at: FrameType | None = frame
    while at is not None and at.f_code.co_filename.startswith(_CORE):
        if at.f_code is Executable.run.__code__:
            executable: Executable = at.f_locals["self"]
            return f"`{executable.name}`"
        at = at.f_back
    return "an operation"


def _called(frame: FrameType) -> str:
    """The program that a line of the user's calls; empty if it calls something else."""
    at = source.Source(frame.f_code, frame.f_lasti)
    try:
        tree = ast.parse(expression_at(at), mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    function = _value(tree.func, frame) if isinstance(tree, ast.Call) else None
    if not is_compiled(function):
        return ""
    name = getattr(function, "__name__", "")  # that of a `partial` has none
    return f"`{name}`" if name else "a program"


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What a name or an attribute stands for, found without running anything."""
    if isinstance(node, ast.Name):
        known = frame.f_locals
        return known[node.id] if node.id in known else frame.f_globals.get(node.id, _UNKNOWN)
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, frame)
        found = inspect.getattr_static(owner, node.attr, _UNKNOWN)
        return found.__func__ if isinstance(found, staticmethod) else found
    return _UNKNOWN

"""Whether other processes run."""

from __future__ import annotations

import time
from collections.abc import Iterable

# Seconds for processes that somebody has told to end.
_PATIENCE = 120.0


def is_running(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def have_ended(pids: Iterable[int]) -> bool:
    """Whether processes end that were told to, by somebody who does not wait for it."""
    end = time.monotonic() + _PATIENCE
    left = list(pids)
    while left and time.monotonic() < end:
        left = [pid for pid in left if is_running(pid)]
        time.sleep(0.02)
    return not left

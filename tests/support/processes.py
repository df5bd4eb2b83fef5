"""Whether other processes run."""

from __future__ import annotations


def is_running(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False

"""Out of memory: an error instead of a killed process, and a note on it of who holds the memory.

Linux promises more memory than there is, and kills a process that takes it. So a program that needs
much is compared with what is left before it runs.

The core knows arrays and no names. A notebook, which knows names, adds a function to `owners`. In
plain Python the list is empty, and the error stays as it is.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perspex.base import public
from perspex.errors import JaxRuntimeError
from perspex.runtime.client import live_arrays

# Programs that need less run without a look at what is left: those take longer than the look.
LARGE = 64 << 20
# The part of a device's memory from which on a program is large there.
_LARGE_PART = 64
# What is left to everything else.
_RESERVE = 256 << 20
# Programs that wait to run have not taken their memory yet. With less than this to spare, they are
# waited for before anything is compared.
_TIGHT = 4 << 30

# Each returns a short text about the largest arrays and who holds them, or an empty one.
owners: list[Callable[[], str]] = []

_PREFIX = "RESOURCE_EXHAUSTED"
_TOLD = "_owners_noted"


def available() -> int | None:
    """The bytes that this process can still take, or `None` where that cannot be known.

    It is what the machine has without swapping, or less where a control group has a limit.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            left = next(int(line.split()[1]) << 10 for line in file if "MemAvailable" in line)
    except (OSError, StopIteration):
        return None
    limit, used, stat, reclaimable = _group()
    if limit is None:
        return left
    try:
        room = int(limit.read_text()) - int(used.read_text())
        for line in stat.read_text().splitlines():
            name, _, number = line.partition(" ")
            if name == reclaimable:
                room += int(number)
    except (OSError, ValueError):  # there is no limit: "max"
        return left
    return min(left, room)


@functools.cache
def _group() -> tuple[Path | None, Path, Path, str]:
    """The files of this process's control group: the limit, what is used, and the parts of it."""
    root = Path("/sys/fs/cgroup")
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, kinds, path = line.split(":", 2)
        for kind, base, names, reclaimable in (
            ("memory", root / "memory", "memory.limit_in_bytes memory.usage_in_bytes", "total_"),
            ("", root, "memory.max memory.current", ""),
        ):
            # Inside a container its own group is the root.
            for folder in (base / path.lstrip("/"), base):
                limit, used = (folder / name for name in names.split())
                if kinds == kind and limit.exists():
                    return limit, used, folder / "memory.stat", f"{reclaimable}inactive_file"
    return None, root, root, ""


def limit(device: Any) -> int | None:
    """The bytes that a device has for programs, or `None` where it does not say."""
    return (device.memory_stats() or {}).get("bytes_limit")


def large_on(device: Any) -> int | None:
    """From how many bytes on a program looks at what is left; `None` for never.

    A look takes as long as some dispatches, so on accelerators only those programs take it that
    need a part of the memory with which few others fit beside them.
    """
    if device.platform == "cpu":
        return LARGE
    found = limit(device)
    return None if found is None else max(LARGE, found // _LARGE_PART)


def reserved(device: Any) -> int:
    """The bytes that a device's allocator has taken beforehand and not given to arrays."""
    stats = device.memory_stats() or {}
    found: int = stats.get("pool_bytes", 0) - stats.get("bytes_in_use", 0)
    return max(found, 0)


def left_on(device: Any) -> int | None:
    """The bytes that are free on a device, or `None` where it does not say."""
    stats = device.memory_stats() or {}
    if "bytes_limit" not in stats:
        return None
    found: int = stats["bytes_limit"] - stats.get("bytes_in_use", 0)
    return found


def check_device(name: str, nbytes: int, device: Any) -> None:
    """Raise `JaxRuntimeError` if a program that needs so many bytes of a device cannot get them.

    Programs that wait in the device's queue may still free memory; they are waited for first.
    """
    left = left_on(device)
    if left is None or nbytes <= left:
        return
    _settle()
    left = left_on(device) or 0
    if nbytes <= left:
        return
    error = JaxRuntimeError(
        f"{_needing(name, nbytes)} of {device} for its results and "
        f"temporary values, and {max(left, 0) / 2**30:.3g} GiB are free there. Free arrays, or "
        "work on smaller parts."
    )
    explain(error)
    raise error


def _needing(name: str, nbytes: int) -> str:
    """The beginning of an error; it names what the user called, if that is a function of ours."""
    return f"{_PREFIX}: `{public.called() or name}` needs {nbytes / 2**30:.3g} GiB"


def check_room(name: str, nbytes: int) -> None:
    """Raise `JaxRuntimeError` if a program that needs so many bytes would find no room for them."""
    left = available()
    if left is None or nbytes + _TIGHT <= left:
        return
    _settle()
    left = available() or 0
    if nbytes + _RESERVE <= left:
        return
    error = JaxRuntimeError(
        f"{_needing(name, nbytes)} for its results and temporary values, "
        f"and {max(left, 0) / 2**30:.3g} GiB are left. Running it would get the process killed; "
        "free arrays, or work on smaller parts."
    )
    explain(error)
    raise error


def _settle() -> None:
    """Wait until all programs that were started have taken their memory, or have failed.

    The error of one that failed is not that of the program that asks for room: whoever reads its
    results gets it.
    """
    for array in live_arrays():
        if not array.is_deleted():
            with contextlib.suppress(JaxRuntimeError):
                array.block_until_ready()


def is_exhausted(error: BaseException) -> bool:
    """Whether `error` says that there is no memory left."""
    if isinstance(error, JaxRuntimeError):
        return str(error).startswith(_PREFIX)
    return isinstance(error, MemoryError)


def explain(error: BaseException) -> str:
    """Add to an out-of-memory `error` a note on who holds the memory; returns the note, if any.

    The functions in `owners` are called last added first, until one has an answer. An error gets
    at most one note.
    """
    if not is_exhausted(error) or _TOLD in vars(error):
        return ""
    vars(error)[_TOLD] = True
    note = next(filter(None, (about() for about in reversed(owners))), "")
    if note:
        error.add_note(note)
    return note

"""The process begins again: the same number and addresses, and nothing else of what it was.

`exec` replaces the program of a process. Whoever started the kernel sees it running all the time,
so this needs no help of a front end or of a server, and works while a thread is stuck inside XLA.

The new program inherits one open file besides the standard streams. The file has no name, so
nobody else can open it, and nothing has to be removed.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import IO, NoReturn

VARIABLE = "PERSPEX_INHERITED_FILE"
# How the launcher was started; empty for a kernel that was started in another way.
command: list[str] = []
# What is left to do before, and the file to inherit.
_last: Callable[[], IO[bytes]] | None = None
_lock = threading.Lock()


def can() -> bool:
    """Whether this process can begin again."""
    return bool(command) and os.name == "posix"


def arm(last: Callable[[], IO[bytes]]) -> None:
    """From now on, the end of the process is a beginning; `last` gives the file to inherit."""
    global _last
    _last = last


def is_armed() -> bool:
    """Whether the end of the process is a beginning."""
    return _last is not None


def run() -> NoReturn:
    """Begin again. Called by one thread; another one that calls it waits for its own end."""
    with _lock:
        assert _last is not None
        file = _last()
        for number in _open_files():
            if number > 2:
                os.set_inheritable(number, False)
        os.set_inheritable(file.fileno(), True)
        os.environ[VARIABLE] = str(file.fileno())
        os.execv(command[0], command)


def inherited() -> IO[bytes] | None:
    """The file that the former program of this process has left, if there was one."""
    number = os.environ.pop(VARIABLE, "")
    if not number.isdigit():
        return None
    try:
        file = open(int(number), "rb", buffering=0)  # noqa: SIM115
    except OSError:
        return None
    os.set_inheritable(file.fileno(), False)
    return file


def _open_files() -> list[int]:
    """The numbers of the open files of this process."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            listed = [int(name) for name in os.listdir(folder)]
        except (OSError, ValueError):
            continue
        return [number for number in listed if _is_open(number)]
    return [number for number in range(3, os.sysconf("SC_OPEN_MAX")) if _is_open(number)]


def _is_open(number: int) -> bool:
    try:
        os.get_inheritable(number)
    except OSError:
        return False
    return True


def standard_streams() -> dict[int, int]:
    """Copies of the files behind standard output and error, which ipykernel has replaced."""
    copies = {}
    for stream in (sys.__stdout__, sys.__stderr__, sys.stdout, sys.stderr):
        number = getattr(stream, "_original_stdstream_fd", None)
        original = getattr(stream, "_original_stdstream_copy", None)
        if isinstance(number, int) and isinstance(original, int) and number not in copies:
            copies[number] = os.dup(original)
    return copies

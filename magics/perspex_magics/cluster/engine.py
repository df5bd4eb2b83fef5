"""What runs in an engine, sent there by the notebook: joining the others, and beginning a cell."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import time
from typing import Any

from IPython.core.getipython import get_ipython

import perspex
from perspex import distributed
from perspex.runtime import client
from perspex.runtime.processes import joining
from perspex_magics.cluster.notes import Noted
from perspex_magics.memory.reach import Walk
from perspex_magics.session import part
from perspex_magics.timing.clock import Clock, Reading


def whereabouts() -> tuple[str, int]:
    """The machine of this process, and its number there."""
    return socket.gethostname(), os.getpid()


def free_address() -> str:
    """An address of this machine that the others reach, at a port that is free."""
    with socket.socket() as free:
        free.bind(("", 0))
        return f"{_address()}:{free.getsockname()[1]}"


def _address() -> str:
    """The number of this machine in its network; its own alone where it has no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        try:
            out.connect(("192.0.2.1", 9))  # reserved for documentation; nothing is sent
        except OSError:
            return "127.0.0.1"
        found: str = out.getsockname()[0]
        return found


def join(address: str, count: int, me: int, devices: int, heartbeat: int) -> int:
    """Join the other engines, and get ready for cells; returns the number of all devices."""
    perspex.config.update("num_cpu_devices", devices)
    # SIGTERM is to end an engine.
    perspex.config.update("enable_preemption_service", False)
    distributed.initialize(
        address,
        count,
        me,
        initialization_timeout=60,
        heartbeat_timeout_seconds=heartbeat,
        shutdown_timeout_seconds=1,
    )
    shell: Any = get_ipython()
    shell.run_line_magic("load_ext", "perspex")
    # Cells are measured, to be shown beside those of the others.
    part(shell, Clock).observe(_nobody)
    _noted.listen()
    # An interrupt ends a cell, and never what is between cells.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return perspex.device_count()


# How much of a value is shown.
_MOST_SHOWN = 60
_noted = Noted()


def held(variable: str) -> str:
    """A short text of what this process holds in a variable of the notebook."""
    shell: Any = get_ipython()
    names: dict[str, Any] = shell.user_ns
    if variable not in names:
        return "unchanged"
    value = names[variable]
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        text = repr(value)
        return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    return f"an object of type {type(value).__name__}"


def _nobody(reading: Reading) -> None:
    """`report` looks for readings when it is asked."""


def report() -> dict[str, Any]:
    """The time of the last cell by its parts, when it began and ended, and bytes of memory."""
    shell: Any = get_ipython()
    last = part(shell, Clock).last
    found: dict[str, Any] = {"count": 0, "held": Walk().buffers(client.live_arrays()).nbytes}
    found["notes"] = _noted.notes()
    found["memory"] = importlib.import_module("psutil").Process().memory_info().rss
    if last is not None:
        began = time.time() - (time.perf_counter() - last.start)
        found |= last.data() | {"count": last.count, "began": began, "ended": began + last.wall}
    return found


def begin(number: int, failures: int) -> None:
    """Begin the cell of that number; all compare anew what they run once one of them has failed."""
    shell: Any = get_ipython()
    _noted.clear()
    shell.execution_count = number - 1  # IPython counts before it runs a cell
    if joining.agreement is not None:
        joining.agreement.begin(failures)

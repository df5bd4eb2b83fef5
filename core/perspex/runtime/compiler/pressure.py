"""Caches are emptied before a process holds more compiled programs than it can.

On the CPU each of XLA's executables is some six memory mappings. Linux gives a process 65,530 of
them (`vm.max_map_count`), and XLA (jaxlib 0.10 to 0.12) crashes on the first that is refused: after
about ten thousand programs, which a long session with many shapes compiles. So the caches of
compiled programs register here, and are emptied when the mappings become many. What is in use
stays, what is called again is compiled again.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable

_EVERY = 64  # compilations from one look to the next, which takes up to 20 ms
_SHARE = 0.6  # of what the system allows
# Where the system does not count mappings: empty the caches after this many compilations.
_MOST_PROGRAMS = 8_192

_caches: list[Callable[[], None]] = []
_compiled = itertools.count(1)
# The mappings that were left the last time, and the number of that compilation.
_least = 0
_emptied = 0


def register(clear: Callable[[], None]) -> Callable[[], None]:
    """Add a cache of compiled programs, given by the function that empties it: a decorator."""
    _caches.append(clear)
    return clear


def forget() -> None:
    """Empty all caches of compiled programs."""
    for clear in _caches:
        clear()


def relieve() -> None:
    """Empty the caches if there is too much in them; called once for each compilation."""
    global _least, _emptied
    number = next(_compiled)
    if number % _EVERY:
        return
    held = mappings()
    if (
        held < max(_SHARE * _allowed(), 1.25 * _least)
        if held
        else (number - _emptied < _MOST_PROGRAMS)
    ):
        return
    _emptied = number
    forget()
    gc.collect()  # programs and what holds them are cycles
    _least = mappings()


def mappings() -> int:
    """How many memory mappings this process has; 0 where the system does not say."""
    try:
        with open("/proc/self/maps", "rb") as file:
            return file.read().count(b"\n")
    except OSError:
        return 0


def _allowed() -> int:
    try:
        with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 65_530

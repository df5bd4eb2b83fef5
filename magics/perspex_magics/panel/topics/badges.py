"""The topic `badges`: what somebody should look at in a tab that is not in front.

Reused keys and stale captures are those that notices under cells told of while a page was open;
they go when their cell has run again. Variables with NaN, and memory that is nearly full, are
looked for when the kernel is idle.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from IPython.core.interactiveshell import InteractiveShell

from perspex.runtime import client
from perspex.runtime.array import ArrayImpl
from perspex_magics.display import notices
from perspex_magics.display.arrays import look, sampled
from perspex_magics.display.markup import listed
from perspex_magics.display.units import count, size
from perspex_magics.memory.reach import Walk
from perspex_magics.notebook.user_names import user_names
from perspex_magics.panel.places import Places, Run
from perspex_magics.panel.rows import BadgeRow
from perspex_magics.panel.texts import cut
from perspex_magics.panel.topics.topic import Topic

# The part of the machine's memory above which arrays hold too much of it.
_MUCH = 0.6
_MOST_CELLS = 1_000
# The tab of each kind of notice.
_TABS = {"keyreuse": "keys", "stale": "program"}


class BadgesTopic(Topic):
    """A row for each kind of thing to look at, as long as there is one."""

    name = "badges"

    def __init__(self, shell: InteractiveShell, places: Places) -> None:
        super().__init__(shell, places)
        # What notices told of: by kind, the functions or keys by the run of the cell.
        self._told: dict[str, dict[Run, list[str]]] = {kind: {} for kind in _TABS}

    def begin(self) -> None:
        self._names = user_names(self.shell)
        self._stop = notices.observe(self._hear)

    def end(self) -> None:
        self._stop()

    def _hear(self, kind: str, data: dict[str, Any]) -> None:
        cells = self._told.get(kind)
        if cells is None:
            return
        said = data["told"] if kind == "keyreuse" else [str(data["function"])]
        if len(cells) < _MOST_CELLS:
            cells.setdefault(self.places.run(), []).extend(said)
        self.changed()

    def cell_ended(self, count: int) -> None:
        self.changed()

    def refresh(self) -> float | None:
        rows = [row for row in (self._keys(), self._stale(), self._nans(), self._memory()) if row]
        self.table.keep({row.id for row in rows})
        for row in rows:
            self.table.put(row)
        return None

    def _all(self, kind: str) -> list[str]:
        cells = self._told[kind]
        for run in [one for one in cells.copy() if not self.places.is_last(one)]:
            cells.pop(run, None)
        return list(dict.fromkeys(one for said in cells.copy().values() for one in said))

    def _keys(self) -> BadgeRow | None:
        n = len(self._all("keyreuse"))
        said = "A key was" if n == 1 else f"{count(n)} keys were"
        return _row("keys", 1, f"{said} used more than once.", n)

    def _stale(self) -> BadgeRow | None:
        functions = self._all("stale")
        text = f"Compiled with values that have changed since: {listed(functions)}."
        return _row("program", 2, text, len(functions))

    def _nans(self) -> BadgeRow | None:
        found = []
        for name, value in self._names.look().named(ArrayImpl):
            self.check()
            if value.dtype.kind in "fV" and _has_nan(value):
                found.append(name)
        return _row("memory", 3, f"NaN in {listed(found)}.", len(found))

    def _memory(self) -> BadgeRow | None:
        """Whether arrays hold most of the machine's memory."""
        is_known = client.started and hasattr(os, "sysconf")
        if not is_known or client.default_backend() != "cpu":
            return None
        held = Walk(check=self.check).buffers(client.live_arrays()).nbytes
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        text = f"Arrays hold {size(held)} of this machine's {size(whole)} of memory."
        return _row("memory", 4, text, int(held > _MUCH * whole))


def _row(tab: str, order: int, text: str, number: int) -> BadgeRow | None:
    if not number:
        return None
    return BadgeRow(id=f"{tab}{order}", order=order, tab=tab, text=cut(text), count=number)


def _has_nan(value: Any) -> bool:
    """Whether an array has NaN among the numbers that can be read for nothing."""
    numbers, _ = look(value)
    if numbers is None or numbers.size == 0:
        return False
    read, _ = sampled(numbers)
    return bool(np.isnan(read.astype(np.float32)).any())

"""The topic `engines`: the processes of `%cluster`, their memory, and where time went."""

from __future__ import annotations

from typing import Any

from perspex_magics.cluster.engines import Engines
from perspex_magics.cluster.magic import Cluster
from perspex_magics.panel.rows import EngineRow
from perspex_magics.panel.topics.topic import Topic, magics

# Seconds until an engine that has not answered yet is looked at again.
_SOON = 0.2
_PARTS = ("wall", "trace", "lower", "compile", "device", "transfer", "python", "idle")


class EnginesTopic(Topic):
    """A row for each engine of a cluster that runs."""

    name = "engines"

    def cell_ended(self, count: int) -> None:
        self.changed()

    def refresh(self) -> float | None:
        engines = magics(self.shell, Cluster).engines
        if engines is None or not engines.pids:
            self.table.keep(set())
            return None
        reports = engines.reports()
        dead = engines.dead()
        first = min([one["began"] for one in reports if one and one["count"]], default=0.0)
        rows = [_row(engines, i, one, first, i in dead) for i, one in enumerate(reports)]
        self.table.keep({row.id for row in rows})
        for row in rows:
            self.table.put(row)
        waits = [one for i, one in enumerate(reports) if one is None and i not in dead]
        return _SOON if waits and engines.has_run else None


def _row(
    engines: Engines, process: int, report: dict[str, Any] | None, first: float, is_dead: bool
) -> EngineRow:
    has_run = bool(report and report["count"])
    parts = {name: (report or {}).get(name, 0.0) for name in _PARTS}
    return EngineRow(
        id=str(process),
        order=process,
        process=process,
        pid=engines.pids[process],
        alive=not is_dead,
        memory=engines.memory(process, report),
        bytes=report["held"] if report else None,
        count=report["count"] if report else 0,
        began=report["began"] - first if report and has_run else None,
        ended=report["ended"] - first if report and has_run else None,
        **parts,
    )

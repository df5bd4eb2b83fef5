"""The record of a notebook's random calls, and which cell made each."""

from __future__ import annotations

from typing import Any

from perspex.random import lineage as recording
from perspex_magics.keys.lineage import Lineage


class Record:
    """The calls of one notebook, and which cell made them.

    A cell is known by its id or, where the front end gives none, by its text.
    """

    def __init__(self) -> None:
        self.recorder: recording.Recorder | None = None
        self.latest: dict[int, object] = {}

    def on(self) -> None:
        """Begin to record."""
        if self.recorder is None or self.recorder is not recording.recorder:
            self.recorder = recording.start()

    def off(self) -> None:
        """Stop recording and clear the record."""
        if self.recorder is not None and self.recorder is recording.recorder:
            recording.stop()
        self.recorder = None

    def begin_cell(self, info: Any) -> None:
        """From here on calls belong to this run of the cell."""
        run = hash(getattr(info, "cell_id", None) or info.raw_cell), object()
        self.latest[run[0]] = run
        if self.recorder is not None:
            self.recorder.run = run

    def is_current(self, run: Any) -> bool:
        """Whether the cell has not run again since."""
        return run is None or self.latest.get(run[0]) is run

    @property
    def lineage(self) -> Lineage:
        """What the record says now."""
        assert self.recorder is not None
        return Lineage(self.recorder.calls, self.is_current)

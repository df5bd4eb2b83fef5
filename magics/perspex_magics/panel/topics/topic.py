"""The base of topics: a table, and how it is kept up to date while a page shows it.

All of it happens in the outbox's thread, except for the two ends of a cell and the events that a
topic subscribes to: these only note that there is news.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from IPython.core.interactiveshell import InteractiveShell

from perspex_magics.panel.contract import Topic as Name
from perspex_magics.panel.places import Places
from perspex_magics.panel.tables import Table
from perspex_magics.session import part

T = TypeVar("T")


class CellBeganError(Exception):
    """A cell has begun: long work is given up, and done again when the kernel is idle."""


class Topic:
    """One table of a notebook. `changed` is called, from any thread, when it has news."""

    name: ClassVar[Name]
    # The most rows that are kept.
    most: ClassVar[int] = 4_000
    # Whether its rows are kept while no page shows them, because nothing else records them.
    keeps: ClassVar[bool] = False

    def __init__(self, shell: InteractiveShell, places: Places) -> None:
        self.shell, self.places = shell, places
        self.changed: Callable[[], None] = _nobody
        self.is_interrupted = False
        self.table = Table(self.most)

    def begin(self) -> None:
        """A page begins to show the topic."""

    def end(self) -> None:
        """No page shows the topic any more."""

    def check(self) -> None:
        """End a long `refresh`, which calls this now and then, when a cell has begun."""
        if self.is_interrupted:
            raise CellBeganError

    def cell_began(self) -> None:
        """A cell begins; called in its thread."""
        self.is_interrupted = True

    def cell_ended(self, count: int) -> None:
        """A cell has ended; called in its thread. `count` is its number, or 0 for none."""

    def refresh(self) -> float | None:
        """Bring the table up to date; returns the seconds until the next time, or `None`."""
        raise NotImplementedError


def _nobody() -> None:
    """Before a page shows the topic, nobody is notified."""


def magics(shell: InteractiveShell, kind: type[T]) -> T:
    """A feature of this notebook that has magics, by their class."""
    return part(shell, kind)

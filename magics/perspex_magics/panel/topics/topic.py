"""What a topic is: a table, and how it is kept up to date while somebody looks.

All of it happens in the outbox's thread, but for the two ends of a cell and what a topic listens to
itself: these note that there is news, and nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from IPython.core.interactiveshell import InteractiveShell

from perspex_magics.panel.places import Places
from perspex_magics.panel.tables import Table

T = TypeVar("T")


class CellBeganError(Exception):
    """A cell has begun: what takes long is given up, and done when the kernel is idle again."""


class Topic:
    """One table of a notebook. `changed` is called, from any thread, when it has news."""

    name: ClassVar[str]
    # At most so many rows are kept.
    most: ClassVar[int] = 4_000
    # Whether its rows stay for the next who looks: those of which nothing else has a record.
    keeps: ClassVar[bool] = False

    def __init__(self, shell: InteractiveShell, places: Places) -> None:
        self.shell, self.places = shell, places
        self.changed: Callable[[], None] = _nobody
        self.is_interrupted = False
        self.table = Table(self.most)

    def begin(self) -> None:
        """Somebody begins to look."""

    def end(self) -> None:
        """Nobody looks any more."""

    def check(self) -> None:
        """Called now and then by a `refresh` that may take long; ends it when a cell begins."""
        if self.is_interrupted:
            raise CellBeganError

    def cell_began(self) -> None:
        """A cell begins, in whose thread this is called."""
        self.is_interrupted = True

    def cell_ended(self, count: int) -> None:
        """A cell is over, in whose thread this is called; `count` is its number, or 0 for none."""

    def refresh(self) -> float | None:
        """Bring the table up to date; returns after how many seconds to do it again, if at all."""
        raise NotImplementedError


def _nobody() -> None:
    """Whom to tell before somebody looks."""


def magics(shell: InteractiveShell, kind: type[T]) -> T:
    """A feature of this notebook that has magics, by their class."""
    found: Any = shell.magics_manager.registry[kind.__name__]
    return found

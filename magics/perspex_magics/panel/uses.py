"""Which programs the last cells used, so that a panel can follow what the user does.

A repeated call of a compiled function passes no Python, so nobody sees it. What a cell used is
therefore what it compiled, and the jitted functions that its text names, also through functions of
the user that it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex.base.recent import Recent
from perspex.base.source import Source
from perspex.jitted.compiled import Compiled
from perspex_magics.compiling.compilations import Compilation
from perspex_magics.display.functions import owner_of
from perspex_magics.panel.places import Places

_NAME = re.compile(r"[^\W\d]\w*")
# Functions of the user that one cell is followed into, and what is kept.
_MOST_FUNCTIONS = 200
_MOST_KEPT = 10_000
_MOST_TEXT = 100_000


def source_of(one: Compilation, places: Places) -> Source | None:
    """The line that called a program; under a cell magic, a line of the cell with an equation.

    Most equations may have lines of functions that the cell calls, which stand in other cells.
    """
    if places.of(one.at) is not None:
        return one.at
    closed = one.origin and one.origin.closed()
    sources = [eqn.source for eqn in closed.eqns if eqn.source] if closed is not None else []
    inside = (at for at in sources if at.frame.function == "<module>" or one.outputs is None)
    return next((at for at in inside if places.of(at) is not None), None)


class Uses:
    """The number of the last cell that used each program."""

    def __init__(self, shell: InteractiveShell, places: Places, total: int) -> None:
        self.shell, self.places = shell, places
        # By the number of a compilation: the cell. Those that are not looked at yet: the number of
        # a cell, and how many compilations there were at its end.
        self._cells: Recent[int, int] = Recent(_MOST_KEPT)
        self._ended: list[tuple[int, int]] = []
        self._total = total

    def cell_ended(self, count: int, total: int) -> None:
        """A cell has ended; called in its thread."""
        if count:
            self._ended.append((count, total))

    def look(self, done: Iterable[Compilation]) -> None:
        """Find out what the cells used that have ended since the last look."""
        ended, self._ended = self._ended, []
        for count, total in ended:
            before, self._total = self._total, total
            owners = {id(owner) for owner in self._named(count)}
            cell = self.places.cells.get(count)
            for one in done:
                owner = one.origin and one.origin.owner()
                if (
                    before < one.number <= total
                    or id(owner) in owners
                    or (one.outputs is not None and cell and self._cell_of(one) == cell)
                ):
                    self._cells.put(one.number, count)

    def last(self, one: Compilation) -> int:
        """The number of the last cell that used a program."""
        return self._cells.peek(one.number) or self.places.number_of(source_of(one, self.places))

    def cell(self, one: Compilation) -> int:
        """The number of the cell that a program is made of, by its last run, or 0."""
        return 0 if one.outputs is None else self.last(one)

    def clear(self) -> None:
        self._cells.clear()
        self._ended.clear()

    def _cell_of(self, one: Compilation) -> str:
        at = source_of(one, self.places)
        return "" if at is None else self.places.cell_of(at.frame.file)

    def _named(self, count: int) -> list[Compiled]:
        """The jitted functions that a cell names, and those that functions it names do."""
        history: Any = self.shell.history_manager
        texts: list[str] = [] if history is None else history.input_hist_parsed
        text = texts[count][:_MOST_TEXT] if count < len(texts) else ""
        found: list[Compiled] = []
        names, seen = list(dict.fromkeys(_NAME.findall(text))), set[str]()
        functions = 0
        while names:
            name = names.pop()
            value = self.shell.user_ns.get(name) if name not in seen else None
            seen.add(name)
            owner = owner_of(value)
            if owner is not None:
                found.append(owner)
            elif type(value) is FunctionType and functions < _MOST_FUNCTIONS:
                functions += 1
                names += _names_in(value.__code__)
        return found


def _names_in(code: CodeType) -> list[str]:
    inside = [one for one in code.co_consts if isinstance(one, CodeType)]
    return [*code.co_names, *[name for one in inside for name in _names_in(one)]]

"""How a stale capture is shown in a notebook: below the cell, in the place of Python's warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TextIO

from perspex.errors import StaleCaptureWarning
from perspex.jitted import stale
from perspex_magics.display import markup, notices
from perspex_magics.display.table import Cell, Column, Table

_SMALL = "font-size:var(--jp-ui-font-size1,13px)"


def show_warnings() -> Callable[[], object]:
    """Show our warnings as notices; returns a function that ends that."""
    before = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if isinstance(message, StaleCaptureWarning) and file is None:
            show_notice(message)
        else:
            before(message, category, filename, lineno, file, line)

    warnings.showwarning = show

    def restore() -> None:
        if warnings.showwarning is show:
            warnings.showwarning = before

    return restore


def show_notice(warning: StaleCaptureWarning) -> None:
    """Show a warning below its cell."""
    changes = [change._asdict() for change in warning.changes]
    data = {"function": warning.function, "changes": changes}
    notices.show("stale", data, f"Stale capture: {warning}", _html(warning))


def _code(text: str) -> Cell:
    return Cell(text, markup.tag("code", markup.escape(text)))


_COLUMNS = (
    Column("variable", "variable", _code),
    Column("old", "traced with", _code),
    Column("new", "now", _code),
    Column("traced", "traced in"),
    Column("changed", "changed in"),
)


def _html(warning: StaleCaptureWarning) -> str:
    escape, tag = markup.escape, markup.tag
    rows: list[Any] = [
        (change.variable, change.old, change.new, change.traced, change.changed)
        for change in warning.changes[: stale.MOST_SHOWN]
    ]
    if len(warning.changes) > stale.MOST_SHOWN:
        more = f"and {len(warning.changes) - stale.MOST_SHOWN} more"
        rows.append(Cell(more, escape(more)))
    name = tag("code", escape(warning.function))
    return tag(
        "div",
        tag("strong", "Stale capture:"),
        " ",
        name,
        " ran with old values.",
        Table(_COLUMNS, rows, style=markup.MONO).html(),
        tag("span", markup.coded(warning.remedy), style=markup.MUTED),
        style=f"border-left:3px solid var(--jp-warn-color1,#e08000);padding:0 0.6em;{_SMALL}",
    )

"""How a stale capture is shown in a notebook: below the cell, in the place of Python's warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TextIO

from perspex.errors import StaleCaptureWarning
from perspex.jitted import stale
from perspex_magics.display import markup, notices

_CELL = "text-align:left;padding:0.1em 0.8em 0.1em 0"
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


def _html(warning: StaleCaptureWarning) -> str:
    escape, tag = markup.escape, markup.tag
    rows = [
        tag(
            "tr",
            tag("td", tag("code", escape(change.variable)), style=_CELL),
            tag("td", tag("code", escape(change.old)), style=_CELL),
            tag("td", tag("code", escape(change.new)), style=_CELL),
            tag("td", escape(change.traced), style=_CELL),
            tag("td", escape(change.changed), style=_CELL),
        )
        for change in warning.changes[: stale.MOST_SHOWN]
    ]
    if len(warning.changes) > stale.MOST_SHOWN:
        more = f"and {len(warning.changes) - stale.MOST_SHOWN} more"
        rows.append(tag("tr", tag("td", more, style=_CELL)))
    titles = ("variable", "traced with", "now", "traced in", "changed in")
    head = tag("tr", *[tag("th", title, style=_CELL, scope="col") for title in titles])
    name = tag("code", escape(warning.function))
    return tag(
        "div",
        tag("strong", "Stale capture:"),
        " ",
        name,
        " ran with old values.",
        tag("table", tag("thead", head), tag("tbody", *rows), style=markup.MONO),
        tag("span", markup.coded(stale.remedy(warning.function)), style=markup.MUTED),
        style=f"border-left:3px solid var(--jp-warn-color1,#e08000);padding:0 0.6em;{_SMALL}",
    )

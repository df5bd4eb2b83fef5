"""Notices: a line or a card under a cell, besides its outputs.

A notice is a bundle: data under a MIME type of our own, for the panel; HTML without scripts; and
text, for terminals and for readers of the notebook file. A notice with a `display_id` can be
replaced while the kernel lives, also from other threads that run in the cell's context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from IPython.display import display

from perspex_magics.display.table import Report

# Called with the kind and the data of each notice, in the thread that shows it.
Observer = Callable[[str, dict[str, Any]], None]
_observers: tuple[Observer, ...] = ()


def observe(observer: Observer) -> Callable[[], None]:
    """Pass all notices to an observer; returns the function that ends that."""
    global _observers
    _observers = (*_observers, observer)

    def stop() -> None:
        global _observers
        _observers = tuple([one for one in _observers if one is not observer])

    return stop


def show(
    kind: str,
    data: dict[str, Any],
    text: str,
    html: str,
    *,
    display_id: str | None = None,
    update: bool = False,
) -> None:
    """Show a notice under the cell that runs, or in the place of an earlier one.

    Args:
      kind: names the MIME type, `application/vnd.perspex.{kind}+json`.
      data: what the notice says, as JSON.
      text: the same for a terminal.
      html: the same as markup, from `perspex_magics.display.markup`.
      display_id: under which it can be replaced.
      update: whether to replace the notice of that `display_id`.
    """
    for observer in _observers:
        observer(kind, data)
    bundle = {f"application/vnd.perspex.{kind}+json": data, "text/html": html, "text/plain": text}
    if display_id is None:
        display(bundle, raw=True)
    else:
        display(bundle, raw=True, display_id=display_id, update=update)


def tell(
    kind: str,
    data: dict[str, Any],
    report: Report,
    *,
    display_id: str | None = None,
    update: bool = False,
) -> None:
    """Show a report as a notice; the arguments are those of `show`."""
    show(kind, data, report.text(), report.html(), display_id=display_id, update=update)

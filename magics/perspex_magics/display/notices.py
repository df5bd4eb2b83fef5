"""Notices: a line or a card under a cell, besides its outputs.

A notice is a bundle: data under a MIME type of our own, for the panel; HTML without scripts; and
text, for terminals and for readers of the notebook file. A notice with a `display_id` can be
replaced while the kernel lives, also from other threads that run in the cell's context.

Each kind has a page (`perspex.advice.explain`). Findings name theirs in a last line; the lines of
clocks and the answers of magics, which are read often, only where the mouse rests on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from IPython.display import display
from markupsafe import Markup

from perspex.advice import explain
from perspex_magics.display.markup import MUTED, coded, tag
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


_MOST_TOLD = 3
_WARNING = (
    "border-left:3px solid var(--jp-warn-color1,#e08000);padding:0 0.6em;"
    "font-size:var(--jp-ui-font-size1,13px)"
)
# Whether a notice of this kind says in a line of its own where its page is.
KINDS = {
    "behind": True,
    "buffers": False,
    "clock": False,
    "differs": True,
    "error": True,
    "fixed": True,
    "heartbeat": False,
    "keyreuse": True,
    "pinned": True,
    "precision": True,
    "profile": False,
    "recompile": True,
    "restarted": False,
    "stale": True,
    "stopped": True,
    "storm": True,
    "wait": False,
}


def show(
    kind: str,
    data: dict[str, Any],
    text: str,
    html: str,
    *,
    display_id: str | None = None,
    update: bool = False,
    page: str = "",
) -> None:
    """Show a notice under the cell that runs, or in the place of an earlier one.

    Args:
      kind: names the MIME type, `application/vnd.perspex.{kind}+json`.
      data: what the notice says, as JSON.
      text: the same for a terminal.
      html: the same as markup, from `perspex_magics.display.markup`.
      display_id: under which it can be replaced.
      update: whether to replace the notice of that `display_id`.
      page: the name of the page that explains it; by default that of the kind.
    """
    for observer in _observers:
        observer(kind, data)
    if text:
        text, html = _pointed(text, html, page or kind, KINDS[kind])
    bundle = {f"application/vnd.perspex.{kind}+json": data, "text/html": html, "text/plain": text}
    if display_id is None:
        display(bundle, raw=True)
    else:
        display(bundle, raw=True, display_id=display_id, update=update)


def warn(kind: str, told: list[str], title: str, magic: str) -> None:
    """Show a sentence for each problem that a cell has, each after a title.

    Args:
      kind: as in `show`; the data are the sentences, under `told`.
      told: the sentences, with code in backquotes.
      title: what the problems are called.
      magic: lists all of them. If there are many, the rest is counted.
    """
    shown = told[:_MOST_TOLD]
    if len(told) > _MOST_TOLD:
        shown.append(f"{len(told) - _MOST_TOLD} more: see `{magic}`.")
    rows = [tag("div", tag("strong", f"{title}:"), " ", coded(text)) for text in shown]
    html = tag("div", *rows, style=_WARNING)
    show(kind, {"told": shown}, "\n".join([f"{title}: {text}" for text in shown]), html)


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


def _pointed(text: str, html: str, page: str, as_line: bool) -> tuple[str, str]:
    """Text and markup of a notice that say where its page is."""
    pointer = explain.pointer(page)
    if not as_line:
        return text, tag("div", Markup(html), title=pointer.replace("`", ""))
    # Below the text of the notice, which is indented by a rule.
    line = tag("div", coded(pointer), style=f"{MUTED};font-size:85%;padding-left:10px")
    return f"{text}\n{pointer}", tag("div", Markup(html), line)

"""Compiler text, shown verbatim: jaxprs, StableHLO, HLO."""

from __future__ import annotations

from markupsafe import Markup

from perspex_magics.display.markup import LINE, MONO, MUTED, escape, tag


class Listing:
    """A titled text that folds away in a notebook and is plain text elsewhere.

    Args:
      title: what it is.
      text: its lines.
      lines: the number of lines to report, if `text` does not hold all of them.
    """

    def __init__(self, title: str, text: str, lines: int | None = None) -> None:
        self.title, self.text = title, text
        self.lines = text.count("\n") + 1 if lines is None else lines

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.folded(is_open=True)

    def folded(self, *, is_open: bool) -> Markup:
        """It as script-free HTML, unfolded or not."""
        said = f"{self.title} · {self.lines} {'line' if self.lines == 1 else 'lines'}"
        summary = tag("summary", escape(said), style=MUTED)
        text = preformatted(self.text)
        return tag("details", summary, text, **({"open": ""} if is_open else {}))


def preformatted(text: str) -> Markup:
    """`text` in a box that scrolls both ways."""
    style = (
        f"{MONO};margin:0;padding:4px 8px;max-height:32em;overflow:auto;white-space:pre;"
        f"border-left:2px solid {LINE};background:transparent"
    )
    # What scrolls can be reached by the keyboard.
    return tag("pre", escape(text), style=style, tabindex="0")

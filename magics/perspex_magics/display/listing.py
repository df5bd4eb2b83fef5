"""Compiler text, shown verbatim: jaxprs, StableHLO, HLO."""

from __future__ import annotations

import re

from markupsafe import Markup

from perspex_magics.display.markup import LINE, MONO, MUTED, escape, joined, tag

# Types, texts and words of each form, in this order, as in the panel's panes.
_TOKENS = {
    "jaxpr": re.compile(
        r"(:[a-z]\w*\[[^\]]*\])|((?!))|(?:(?<== )|(?<=\n)\s+)([a-z][\w-]*)(?=[\[ ])"
    ),
    "stablehlo": re.compile(
        r"((?:tensor|tuple)<[^>]*>)|(\"[^\"]*\")"
        r"|\b((?:stablehlo|chlo|func|sdy)\.\w+|call|return|module)\b"
    ),
    "hlo": re.compile(
        r"([a-z]\w*\[[\d,]*\](?:\{[^}]*\})?)|(\"(?:[^\"\\]|\\.)*\")|(?<= )([a-z][\w-]*)(?=\()"
    ),
}
# The colours of JupyterLab's editor; elsewhere the text's own.
_COLOURS = (
    "color:var(--jp-mirror-editor-variable-3-color,inherit)",
    "color:var(--jp-mirror-editor-string-color,inherit)",
    "color:var(--jp-mirror-editor-keyword-color,inherit);font-weight:600",
)
# A longer text has more markup than a page draws at once.
_MOST_COLOURED = 100_000


class Listing:
    """A titled text that folds away in a notebook and is plain text elsewhere.

    Args:
      title: what it is.
      text: its lines.
      lines: the number of lines to report, if `text` does not hold all of them.
      form: `jaxpr`, `stablehlo` or `hlo`, whose types and operations have the panel's colours.
    """

    def __init__(self, title: str, text: str, lines: int | None = None, *, form: str = "") -> None:
        self.title, self.text, self.form = title, text, form
        self.lines = text.count("\n") + 1 if lines is None else lines

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.folded(is_open=True)

    def folded(self, *, is_open: bool) -> Markup:
        """It as script-free HTML, unfolded or not."""
        said = f"{self.title} · {self.lines} {'line' if self.lines == 1 else 'lines'}"
        summary = tag("summary", escape(said), style=MUTED)
        text = preformatted(coloured(self.text, self.form))
        return tag("details", summary, text, **({"open": ""} if is_open else {}))


def coloured(text: str, form: str) -> Markup:
    """`text` as markup, in colours if its form has some.

    >>> print(coloured("a < b", ""))
    a &lt; b
    """
    tokens = _TOKENS.get(form)
    if tokens is None or len(text) > _MOST_COLOURED:
        return escape(text)
    parts: list[str] = []
    end = 0
    for found in tokens.finditer(text):
        kind = found.lastindex
        if kind is None:
            continue
        start, after = found.span(kind)
        parts += [text[end:start], tag("span", found[kind], style=_COLOURS[kind - 1])]
        end = after
    return joined([*parts, text[end:]])


def preformatted(text: str) -> Markup:
    """`text` in a box that scrolls both ways."""
    style = (
        f"{MONO};margin:0;padding:4px 8px;max-height:32em;overflow:auto;white-space:pre;"
        f"border-left:2px solid {LINE};background:transparent"
    )
    # What scrolls can be reached by the keyboard.
    return tag("pre", escape(text), style=style, tabindex="0")

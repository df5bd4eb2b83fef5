"""Errors about traced values, as cards: the value's way to the line that failed, and the remedy.

In a notebook the traceback ends in the first line of the error and the remedy, and the card below
it, as an output of its own, has the whole story: JupyterLab and nbconvert draw tracebacks as
preformatted text, in which a table would be unreadable. The remedy is in both, because a
notebook that runs as a program shows the traceback alone. A front end without HTML prints the
traceback and below it the rest of the story: each line once. The error itself is complete: its
message has everything as text, for terminals and for code that catches it.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from IPython.core.interactiveshell import InteractiveShell
from markupsafe import Markup

from perspex import errors
from perspex.advice import explain
from perspex.advice.story import Card, Message, Patch, Remedy, Step, imports_told, remedy_lines
from perspex.base import source
from perspex.errors import card_of
from perspex.tracing.provenance import LINES_SHOWN, noted
from perspex_magics.display import notices
from perspex_magics.display.markup import LINE, MONO, MUTED, coded, escape, tag
from perspex_magics.display.table import Cell, Column, Table

_ERROR = "var(--jp-error-color1,#d32f2f)"
_GOOD = "var(--jp-success-color1,#388e3c)"
_LABEL = {"aria-label": "Where the value comes from, and what to write instead"}
_HEAD = re.compile(r"%%(\w+)(.*)")
_STATIC = re.compile(r"(--static[= ]\s*)(\S+)")


class Told(NamedTuple):
    """A card, and all of it as text; the error's note that has it, where its message has not."""

    card: Card
    text: str
    note: Message | None = None


def read(error: BaseException) -> Told | None:
    """The card of an error; `None` for errors that are not about traced values."""
    card = card_of(error)
    if card is not None:
        return Told(card, str(error))
    note = noted(error)
    return None if note is None else Told(note.card, f"{error}\n{note}", note)


def abridged(card: Card) -> str:
    """What the traceback says above a card."""
    return "\n".join(filter(None, [card.headline, *remedy_lines(card.remedy)]))


def below(told: Told) -> str:
    """What a card says as text: that of the story which the traceback above it does not say.

    Jupyter Console and the like print the traceback and then this.
    """
    above = set("\n".join([told.card.headline, *remedy_lines(told.card.remedy)]).splitlines())
    lines = (told.text if told.note is None else told.note).splitlines()
    return "\n".join([line for line in lines if line not in above])


def has_html(shell: InteractiveShell) -> bool:
    """Whether the shell belongs to a kernel, whose front end draws outputs."""
    return getattr(shell, "kernel", None) is not None


def show(name: str, told: Told) -> None:
    """Show a card under the cell; `name` is the error's class."""
    data = {"error": name, **told.card.as_data()}
    notices.show("error", data, below(told), card_html(told.card), page=_page(name))


def _page(name: str) -> str:
    """The page of an error; Python's own errors with a card have that of cards."""
    return name if name in explain.pages(vars(errors)) else "error"


# ---- Markup -------------------------------------------------------------------------------------


def card_html(card: Card) -> Markup:
    """The card as script-free HTML."""
    rows = [tag("div", _inline(card.headline), style="font-weight:600")]
    rows += [tag("div", _inline(text), style=MUTED) for text in card.origin.splitlines()]
    if len(card.steps) > 1:
        rows.append(_way(card.steps, card.left_out))
    rows += [tag("div", _inline(text)) for text in card.why.splitlines()]
    rows += _remedy(card.remedy)
    style = (
        f"border-left:3px solid {_ERROR};padding:4px 12px;margin:4px 0;"
        "color:var(--jp-ui-font-color1,inherit);line-height:1.5"
    )
    return tag("div", *rows, style=style, role="region", **_LABEL)


_COLUMNS = (
    Column("where", write=lambda where: Cell(where, _inline(where)), style=MUTED),
    Column("code", write=lambda code: code, style="white-space:pre"),
    Column("operation", style=MUTED),
)


def _way(steps: Sequence[Step], left_out: int) -> Markup:
    rows: list[Any] = []
    for step in steps:
        code = step.text.strip("`") if not step.operation else step.text
        weight = 600 if step is steps[-1] else 400
        shown = Cell(code, tag("code", escape(code), style=f"{MONO};font-weight:{weight}"))
        rows.append((step.where, shown, f"{step.operation} {step.kind}".strip()))
    if left_out:
        more = f"… {left_out} more line{'s' if left_out > 1 else ''}"
        middle = len(rows) - LINES_SHOWN // 2
        rows.insert(middle, Cell(more, tag("span", escape(more), style=MUTED)))
    table = Table(_COLUMNS, rows, caption="From the arguments to here", is_ruled=False)
    return tag("div", table.html(), style="overflow-x:auto")


def _remedy(remedy: Remedy) -> list[Markup]:
    if not remedy.text:
        return []
    rows: list[Markup] = []
    patch = remedy.patch
    text = remedy.text if patch is not None else remedy.text.rstrip(".") + "."
    rows.append(tag("div", tag("b", "Remedy: "), _inline(text), style="margin-top:4px"))
    if patch is not None:
        lines = source.line_name(patch.file, patch.first)
        lines += f" to {patch.last}" if patch.last > patch.first else ""
        rows.append(tag("div", escape(f"Instead of {lines}"), style=MUTED))
        rows.append(_code(patch.before, _ERROR))
        rows.append(tag("div", "write", style=MUTED))
        rows.append(_code(patch.after, _GOOD))
        rows += [tag("div", _inline(text)) for text in (imports_told(patch),) if text]
    if remedy.otherwise:
        rows.append(tag("div", _inline(f"Or {remedy.otherwise}.")))
    return rows


def _code(lines: Sequence[str], colour: str) -> Markup:
    style = (
        f"{MONO};margin:2px 0;padding:2px 8px;white-space:pre;overflow-x:auto;"
        f"border-left:2px solid {colour};border-bottom:1px solid {LINE};background:transparent"
    )
    return tag("pre", escape("\n".join(lines)), style=style)


def _inline(text: str) -> Markup:
    """A sentence as markup, with what stands between backticks as code."""
    return coded(text, style=MONO)


# ---- Magics -------------------------------------------------------------------------------------


def static_in_magic(file: str, names: Sequence[str], is_function: bool) -> Patch | None:
    """How a cell under magics of ours says that names are static.

    For `perspex.advice.static.register_static_speller`.
    """
    if source.cell_name(file) is None:
        return None
    lines = [line.rstrip("\n") for line in linecache.getlines(file)]
    rows = [i for i, line in enumerate(lines) if line.strip()]
    heads = []
    for i in rows:
        found = _HEAD.match(lines[i])
        if not found:
            break
        heads.append((i, found[1], found[2]))
    given = ",".join(names)
    for i, magic, options in heads:
        if magic == "jit":
            return _line(file, i, lines[i], _with_static(options, given))
    for i, magic, options in heads[:1]:
        if "--jit" in options.split() and not is_function:
            rest = " ".join(word for word in options.split() if word != "--jit")
            below = f"%%{magic} {rest}".rstrip()
            return _line(file, i, lines[i], f"%%jit --static {given}", below)
    return None


def _with_static(options: str, names: str) -> str:
    if _STATIC.search(options):
        return "%%jit" + _STATIC.sub(rf"\g<1>\g<2>,{names}", options, count=1)
    return f"%%jit --static {names}{options}".rstrip()


def _line(file: str, i: int, before: str, *after: str) -> Patch:
    return Patch(file, i + 1, i + 1, (before,), after)

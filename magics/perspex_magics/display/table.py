"""Tables and the sentences around them: written once, shown as text, as HTML and as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup

from perspex_magics.display.markup import LINE, MUTED, coded, escape, tag

_EDGE = "padding:1px 12px 1px 0;border:none;background:transparent;vertical-align:baseline"
_ACROSS = f"{_EDGE};text-align:left"
_RULED = f"{_EDGE};border-bottom:1px solid {LINE}"
# Overrides the notebook's own style of tables.
_TABLE = "border-collapse:collapse;border:none;margin:2px 0;font-size:inherit;table-layout:auto"


class Cell(NamedTuple):
    """A place of a table whose look is more than its text."""

    text: str
    html: Markup


@dataclass(frozen=True)
class Column:
    """One column: what it is called as data and in its head, and how its values are written.

    A column of numbers is aligned to the right.
    """

    key: str
    title: str = ""
    write: Callable[[Any], str | Cell] = str
    is_number: bool = False
    style: str = ""

    def cell(self, value: Any) -> Cell:
        """A value of the column as text and as markup."""
        written = self.write(value)
        return written if isinstance(written, Cell) else Cell(written, escape(written))

    def look(self, edge: str) -> str:
        """The style of its cells."""
        aligned = f"{edge};text-align:{'right' if self.is_number else 'left'}"
        return f"{aligned};{self.style}" if self.style else aligned


@dataclass(frozen=True)
class Table:
    """Rows of values, one for each column; a row that is a single cell stands across all columns.

    Empty columns are left out. There is a head if any column has a title. The first column is the
    row header.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any] | Cell]
    caption: str = ""  # of the HTML
    label: str = ""  # for those who do not see it
    style: str = ""
    indent: str = ""  # of the text
    is_ruled: bool = True

    def data(self) -> list[dict[str, Any]]:
        """The values as they are, by the keys of the columns."""
        keys = [column.key for column in self.columns]
        rows = [row for row in self.rows if not isinstance(row, Cell)]
        return [dict(zip(keys, row, strict=True)) for row in rows]

    def _written(self) -> tuple[list[Column], list[list[Cell] | Cell]]:
        """The columns that are used, and the cells of these."""
        lines: list[list[Cell] | Cell] = [
            row
            if isinstance(row, Cell)
            else [c.cell(value) for c, value in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]
        full = [line for line in lines if not isinstance(line, Cell)]
        used = [i for i in range(len(self.columns)) if any(line[i].text for line in full)]
        cells = [line if isinstance(line, Cell) else [line[i] for i in used] for line in lines]
        return [self.columns[i] for i in used], cells

    def text(self) -> str:
        """The table for a terminal."""
        columns, lines = self._written()
        texts = [line.text if isinstance(line, Cell) else [c.text for c in line] for line in lines]
        if texts and any(column.title for column in columns):
            texts.insert(0, [column.title for column in columns])
        full = [row for row in texts if not isinstance(row, str)]
        widths = [max(len(row[i]) for row in full) for i in range(len(columns))]
        made = []
        for row in texts:
            if not isinstance(row, str):
                row = "  ".join(
                    cell.rjust(width) if column.is_number else cell.ljust(width)
                    for cell, width, column in zip(row, widths, columns, strict=True)
                )
            made.append(f"{self.indent}{row}".rstrip())
        return "\n".join(made)

    def html(self) -> Markup:
        """The table for a notebook, without scripts."""
        columns, lines = self._written()
        looks = [column.look(_RULED if self.is_ruled else _EDGE) for column in columns]
        parts = []
        if self.caption:
            side = f"{MUTED};text-align:left;caption-side:top;padding:0"
            parts.append(tag("caption", escape(self.caption), style=side))
        if lines and any(column.title for column in columns):
            head = [
                tag("th", escape(c.title), style=f"{look};{MUTED};font-weight:normal", scope="col")
                if c.title
                else tag("td", style=look)  # a header without words tells a screen reader nothing
                for c, look in zip(columns, looks, strict=True)
            ]
            parts.append(tag("tr", *head, style=_ROW))
        for line in lines:
            if isinstance(line, Cell):
                across = tag("td", line.html, style=_ACROSS, colspan=str(max(len(columns), 1)))
                parts.append(tag("tr", across, style=_ROW))
                continue
            name = tag("th", line[0].html, style=f"{looks[0]};font-weight:normal", scope="row")
            rest = zip(line[1:], looks[1:], strict=True)
            cells = [tag("td", cell.html, style=look) for cell, look in rest]
            parts.append(tag("tr", name, *cells, style=_ROW))
        style = f"{_TABLE};{self.style}" if self.style else _TABLE
        label = {"aria-label": self.label} if self.label else {}
        return tag("table", *parts, style=style, **label)


_ROW = "background:transparent"


class Sentence(NamedTuple):
    """A sentence of a report; what stands between backquotes is code."""

    text: str
    style: str = ""

    def html(self) -> Markup:
        """The sentence as markup."""
        return tag("div", coded(self.text), style=self.style)


class Report:
    """Sentences and tables, one below the other.

    A plain string is a muted sentence, and an empty one a blank line of the text.
    """

    def __init__(
        self, *parts: str | Sentence | Table, style: str = "", scrolls: bool = False
    ) -> None:
        self.parts = parts
        self.style = style
        # What scrolls can be reached by the keyboard.
        self.attributes = {"tabindex": "0"} if scrolls else {}
        if scrolls:
            self.style = ";".join(filter(None, [style, "max-height:40em;overflow:auto"]))

    def text(self) -> str:
        """The report for a terminal."""
        texts = [
            part.text() if isinstance(part, Table) else getattr(part, "text", part)
            for part in self.parts
            if not isinstance(part, Table) or part.rows
        ]
        return "\n".join(map(str, texts)).rstrip("\n")

    def html(self) -> Markup:
        """The report for a notebook, without scripts."""
        shown = [
            (Sentence(part, MUTED) if isinstance(part, str) else part).html()
            for part in self.parts
            if (part.rows if isinstance(part, Table) else part)
        ]
        return tag("div", *shown, style=self.style, **self.attributes)

    __repr__ = text
    _repr_html_ = html

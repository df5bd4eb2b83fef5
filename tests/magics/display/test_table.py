"""Tables and reports: what is written once is the same as text, as HTML and as data."""

from __future__ import annotations

import html
import re
from pathlib import Path

from markupsafe import Markup

import perspex_magics
from perspex_magics.display.table import Cell, Column, Report, Sentence, Table
from perspex_magics.display.units import size

COLUMNS = (
    Column("name", "name"),
    Column("nbytes", "bytes", size, is_number=True),
    Column("unused", "unused"),
)
ROWS = [("w", 4_096_000, ""), ("a < b", 12, ""), Cell("and 3 more", Markup("and <i>3</i> more"))]


def words(markup: str) -> list[str]:
    return html.unescape(re.sub(r"<[^>]*>", " ", markup)).split()


def test_text_html_and_data_agree() -> None:
    table = Table(COLUMNS, ROWS)
    assert table.text().split("\n") == [
        "name      bytes",
        "w      3.91 MiB",
        "a < b      12 B",
        "and 3 more",
    ]
    assert words(table.html()) == table.text().split()
    assert table.data() == [
        {"name": "w", "nbytes": 4_096_000, "unused": ""},
        {"name": "a < b", "nbytes": 12, "unused": ""},
    ]


def test_html_names_columns_and_rows_and_has_no_markup_of_values() -> None:
    markup = Table(COLUMNS, [("<script>\u202e", 1, "")]).html()
    assert "<script" not in markup and "&lt;script&gt;\\u202e" in markup
    assert markup.count('scope="col"') == 2 and markup.count('scope="row"') == 1


def test_a_table_without_titles_has_no_head() -> None:
    table = Table((Column("name"), Column("value", is_number=True)), [("a", "1"), ("bb", "22")])
    assert table.text() == "a    1\nbb  22" and 'scope="col"' not in table.html()


def test_a_report_is_its_parts_in_order() -> None:
    report = Report(
        Sentence("`f` did it."), Table(COLUMNS, [("w", 1, "")], indent="  "), "", "last"
    )
    assert repr(report) == "`f` did it.\n  name  bytes\n  w       1 B\n\nlast"
    assert words(report.html()) == ["f", "did", "it.", "name", "bytes", "w", "1", "B", "last"]
    assert "<code>f</code> did it." in report.html()


def test_an_empty_table_is_not_shown() -> None:
    report = Report("nothing", "", Table(COLUMNS, []))
    assert report.text() == "nothing" and "<table" not in report.html()


def test_nobody_else_makes_tables_of_rows() -> None:
    """Only arrays and their placement are drawn otherwise, as grids of numbers."""
    package = Path(perspex_magics.__file__).parent
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r'tag\(\s*"table"', path.read_text(encoding="utf-8"))
    }
    assert found == {"display/arrays.py", "display/placement.py", "display/table.py"}

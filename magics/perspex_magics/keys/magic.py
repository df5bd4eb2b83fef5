"""`%keys`: how random keys were derived, and which of them were used twice."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from IPython.core.completer import CompletionContext
from IPython.core.error import UsageError
from IPython.display import display

from perspex.random.lineage import Call
from perspex_magics.display import units
from perspex_magics.display.markup import LINE, MONO, MUTED, escape, joined, tag
from perspex_magics.display.table import Cell, Column, Report, Table
from perspex_magics.keys.lineage import Key, Lineage, Site, expression_at, names_at, place_of
from perspex_magics.keys.names import Names, numbers_of_keys
from perspex_magics.keys.record import Record
from perspex_magics.keys.reuse import Watch, watch_keys
from perspex_magics.notebook.magic import Magic
from perspex_magics.notebook.options import WordParser
from perspex_magics.session import Session

_BAD = "color:var(--jp-error-color1,#d32f2f)"
_WORDS = ("clear", "off", "on", "quiet")
# Further lines of one kind are counted but not shown.
_MOST_LINES = 40


parser = WordParser(
    "keys",
    """Show how random keys were derived, what was drawn with them, and which keys were used
twice.

    NAME   only the keys in this variable
    clear  empty the record
    off    stop recording
    on     start recording again, and say under a cell which keys it used twice
    quiet  record, but say nothing under cells""",
    """Drawing with a key uses it, and so does splitting it. fold_in and clone do not, but
folding in the same number twice gives the same key. Running a cell again replaces what
it did before. Of a compiled function that draws with a key that it is given, the first
runs are recorded. `random.clone(key)` says that a key is meant to be used again.""",
    usage="%keys [NAME | clear | off | on | quiet] [--help]",
)
parser.add_argument("what", nargs="?", default="", metavar="NAME", help="see above")


class KeysMagics(Magic):
    """Show how random keys were derived, and which were used twice.

    `%keys --help` lists the options.
    """

    line_parser = parser

    def __init__(self, session: Session, record: Record, watch: Watch) -> None:
        super().__init__(session)
        self.record, self.watch = record, watch

    def completions(self, rest: str, context: CompletionContext) -> list[str] | None:
        if rest.split():
            return []
        variables = [(n, x) for n, x in list(self.shell.user_ns.items()) if n[0] != "_"]
        names = [n for n, x in variables if numbers_of_keys(x) is not None]
        return [*sorted(names), *_WORDS, "--help"]

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> None:
        record = self.record
        if options.what in ("on", "quiet"):
            self.watch.is_quiet = options.what == "quiet"
        if options.what == "off":
            record.off()
        elif options.what in ("on", "quiet"):
            record.on()
        elif record.recorder is None:
            raise UsageError("%keys: recording is off; `%keys on` starts it")
        elif options.what == "clear":
            record.recorder.clear()
        elif options.what:
            display(self._of_name(options.what))
        else:
            display(_whole(record.lineage, record.recorder.forgotten, self.shell.user_ns))

    def _of_name(self, name: str) -> Report:
        namespace = self.shell.user_ns
        if name not in namespace:
            raise UsageError(f"%keys: there is no variable `{name}`")
        array = numbers_of_keys(namespace[name])
        if array is None:
            kind = type(namespace[name]).__name__
            raise UsageError(f"%keys: `{name}` is of type {kind}, not a key or an array of keys")
        rows = story(self.record.lineage, array, namespace)
        return _report(rows or [Row("", f"{name}: not made or used while keys were recorded")])


# ---- What is shown ------------------------------------------------------------------------------


class Row(NamedTuple):
    """One line: what it hangs on, what it says, where that is, and a remark."""

    indent: str
    text: str
    place: str = ""
    remark: str = ""
    is_bad: bool = False


def _report(rows: list[Row]) -> Report:
    """Lines in columns."""
    style = (
        f"{MONO};white-space:pre;overflow:auto;padding:4px 8px;"
        f"border-left:2px solid {LINE};background:transparent"
    )
    # A line without a place has nothing to be aligned.
    cells = [(row, row) if row.place else _whole_line(row) for row in rows]
    return Report(Table(_COLUMNS, cells, is_ruled=False), style=style)


def _spans(row: Row, *parts: tuple[str, str]) -> Cell:
    """Texts of a line, each with its colour."""
    shown = [tag("span", escape(text), style=_BAD if row.is_bad else look) for text, look in parts]
    return Cell("".join(text for text, _ in parts), joined(shown))


def _first(row: Row) -> Cell:
    """What a line hangs on, and what it says."""
    return _spans(row, (row.indent, MUTED), (row.text, ""))


def _rest(row: Row) -> Cell:
    """Where that is, and a remark."""
    return _spans(row, (row.place, MUTED), (row.remark and f"  {row.remark}", ""))


def _whole_line(row: Row) -> Cell:
    return _spans(row, (row.indent, MUTED), (row.text, ""), (row.remark and f"  {row.remark}", ""))


_COLUMNS = (Column("text", write=_first), Column("rest", write=_rest))


def story(
    lineage: Lineage, array: Any, namespace: Mapping[str, Any], most: int | None = None
) -> list[Row]:
    """Where the keys in an array come from and what used them; empty if it was not recorded.

    At most `most` keys are listed.
    """
    found = lineage.find(array)[:most]
    twice = {id(key) for key, _ in lineage.used_twice()} if found else set()
    return list(_of_keys(found, Names(lineage, namespace), twice)) if found else []


def _whole(lineage: Lineage, forgotten: int, namespace: Mapping[str, Any]) -> Report:
    twice = list(lineage.used_twice())
    names = Names(lineage, namespace)
    rows = []
    if twice:
        count = f"{units.count(len(twice))} keys were" if len(twice) > 1 else "1 key was"
        rows.append(Row("", f"{count} used more than once:", is_bad=True))
        # Keys of one line that were used by the same lines are shown once.
        alike = Counter(tuple(_misused(key, calls, names)) for key, calls in twice)
        for lines, n in list(alike.items())[:_MOST_LINES]:
            what = lines[0]._replace(text=f"{lines[0].text} ({n} keys)") if n > 1 else lines[0]
            rows += [what, *lines[1:]]
        if len(alike) > _MOST_LINES:
            rows.append(Row("  ", f"and {len(alike) - _MOST_LINES} more"))
        rows.append(Row("", "Draw with new keys instead: key, sub = random.split(key)"))
        rows.append(Row("", ""))
    bad = {id(call) for _, calls in twice for call in calls}
    tree = [row for site in lineage.roots.values() for row in _tree(site, bad)]
    rows += tree or [Row("", "No key has been made or used.")]
    if forgotten:
        rows.append(Row("", f"{units.count(forgotten)} older calls are no longer recorded."))
    return _report(rows)


def _misused(key: Key, calls: list[Call], names: Names) -> Iterator[Row]:
    """A key that was used twice, and by what."""
    yield Row("  ", names.of(key), *_origin(key), is_bad=True)
    yield from _counted("    ", calls, is_bad=True)


def _origin(key: Key) -> tuple[str, str]:
    """Where a key was made, and by what."""
    if key.made is None:
        return ("", "in traced code" if key.traced else "not made here")
    return place_of(key.made), f"by {_text(key.made)}"


def _counted(indent: str, calls: Iterable[Call], is_bad: bool = False) -> Iterator[Row]:
    """Calls, grouped by place."""
    times = Counter((_text(call), place_of(call)) for call in calls)
    for (text, place), n in times.items():
        yield Row(indent, text, place, f"{n} times" if n > 1 else "", is_bad)


_NO_USE = "no use recorded"


def _of_keys(keys: list[Key], names: Names, twice: set[int]) -> Iterator[Row]:
    """Where keys come from, up to the first, and what used them; `twice` are those used twice."""
    for key in keys[:_MOST_LINES]:
        yield Row("", names.of(key))
        ancestor: Key | None = key
        made = []
        while ancestor is not None:
            made.append(ancestor.made)
            ancestor = ancestor.parent
        unknown = made[-1] is None
        yield from _counted("  from ", [call for call in made if call is not None])
        if unknown:
            yield Row("  from ", "a key that was not made here")
        calls = list(_counted("  used by ", key.uses, is_bad=id(key) in twice))
        yield from calls or [Row("  ", _NO_USE)]
    if len(keys) > _MOST_LINES:
        yield Row("", f"and {len(keys) - _MOST_LINES} more keys")


def _tree(site: Site, bad: set[int], indent: str = "", below: str = "") -> Iterator[Row]:
    """A site and those below it."""
    if not site.is_shown:
        return
    if site.call is None:
        yield Row(indent, _unknown(site.function))
    else:
        times = f"{units.count(len(site.calls))} times" if len(site.calls) > 1 else ""
        names = ", ".join(names_at(site.call.at)) if site.keys else ""
        if not site.calls:
            times = "the cell has run again since"
        remark = "  ".join(filter(None, [f"→ {names}" if names else "", times]))
        is_bad = any(id(call) in bad for call in site.calls)
        yield Row(indent, _text(site.call), place_of(site.call), remark, is_bad)
    shown = [other for other in site.below.values() if other.is_shown]
    for i, other in enumerate(shown):
        if i == _MOST_LINES:
            yield Row(below + "└─ ", f"and {len(shown) - i} more lines")
            break
        last = i == len(shown) - 1
        yield from _tree(
            other, bad, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")
        )


def _unknown(function: str) -> str:
    """The name of a root of the tree whose keys have an unknown origin."""
    if function in ("", "<module>"):
        return "keys in a traced cell" if function else "keys that were not made here"
    return f"keys in `{function}` while it was traced"


def _text(call: Call) -> str:
    """A call as written, or the name of its function where the source cannot be read."""
    text = expression_at(call.at)
    if len(text) > 60:
        text = text[:57] + "..."
    return text or call.function


# ---- In a shell ---------------------------------------------------------------------------------


def record_keys(session: Session) -> None:
    """Record the calls that make and use keys, and bring `%keys`."""
    record = session.keep(Record())
    record.on()
    session.on_unload(record.off)
    session.on_cell(begin=record.begin_cell)
    KeysMagics(session, record, watch_keys(session, record)).register()

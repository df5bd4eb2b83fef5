"""`%keys`: where the keys of random numbers come from, and which of them was used twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand
from IPython.display import display

from perspex.random import lineage as recording
from perspex.random.lineage import Call
from perspex.runtime.array import ArrayImpl
from perspex.runtime.keys import KeyArray
from perspex_magics.display.markup import LINE, MONO, MUTED, escape, tag
from perspex_magics.keys.lineage import (
    Key,
    Lineage,
    Site,
    argument_at,
    expression_at,
    names_at,
    place_of,
)
from perspex_magics.notebook.options import MagicParser

_BAD = "color:var(--jp-error-color1,#d32f2f)"
_WORDS = ("clear", "off", "on")
# More lines of one kind are counted, and not shown.
_MOST_LINES = 40
_KEY_LENGTHS = (2, 4)


class _KeysParser(MagicParser):
    sign = "%"


parser = _KeysParser(
    "keys",
    """Show which random keys were made of which, what was drawn with them, and the keys
that were used twice.

    NAME   only the keys in this variable
    clear  forget what was recorded
    off    record no more
    on     record again""",
    """A key is used by drawing with it and by splitting it. fold_in and clone leave it as
good as new, but folding the same number in twice gives the same key. What a cell did
does not count any more when the cell has run again. Calls inside a compiled function
are seen when it is traced, not when it runs.""",
    usage="%keys [NAME | clear | off | on] [--help]",
)
parser.add_argument("what", nargs="?", default="", metavar="NAME", help="see above")


class Record:
    """The calls of one notebook, and which cell made them.

    A cell is known by its id or, where the front end gives none, by its text.
    """

    def __init__(self) -> None:
        self.recorder: recording.Recorder | None = None
        self.latest: dict[int, object] = {}

    def on(self) -> None:
        """Begin to record."""
        if self.recorder is None or self.recorder is not recording.recorder:
            self.recorder = recording.start()

    def off(self) -> None:
        """Stop recording, and forget what there is."""
        if self.recorder is not None and self.recorder is recording.recorder:
            recording.stop()
        self.recorder = None

    def begin_cell(self, info: Any) -> None:
        """From here on calls belong to this run of the cell."""
        run = hash(getattr(info, "cell_id", None) or info.raw_cell), object()
        self.latest[run[0]] = run
        if self.recorder is not None:
            self.recorder.run = run

    def is_current(self, run: Any) -> bool:
        """Whether the cell has not run again since."""
        return run is None or self.latest.get(run[0]) is run

    @property
    def lineage(self) -> Lineage:
        """What the record says now."""
        assert self.recorder is not None
        return Lineage(self.recorder.calls, self.is_current)


@magics_class
class KeysMagics(Magics):
    """`%keys` in one notebook."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell, record: Record) -> None:
        super().__init__(shell)
        self.record = record

    @no_var_expand
    @line_magic
    def keys(self, line: str) -> None:
        """Show which random keys were made of which, and which were used twice.

        `%keys --help` tells more.
        """
        options = parser.parse(line)
        record = self.record
        if options.help:
            print(parser.format_help())
        elif options.what == "off":
            record.off()
        elif options.what == "on":
            record.on()
        elif record.recorder is None:
            raise UsageError("%keys: nothing is recorded; `%keys on` begins to")
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
            raise UsageError(f"%keys: `{name}` is a {kind}, and no key or array of keys")
        rows = story(self.record.lineage, array, namespace)
        return Report(rows or [Row("", f"{name}: not made or used while keys were recorded")])


# ---- What is shown ------------------------------------------------------------------------------


class Row(NamedTuple):
    """One line: what it hangs on, what it says, where that is, and a remark."""

    indent: str
    text: str
    place: str = ""
    remark: str = ""
    is_bad: bool = False


class Report:
    """Lines in columns, as text and as HTML."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.width = max((len(row.indent + row.text) for row in rows if row.place), default=0)

    def _padding(self, row: Row) -> str:
        """The space between a line's text and its place."""
        return " " * (self.width + 2 - len(row.indent + row.text))

    def __repr__(self) -> str:
        lines = []
        for row in self.rows:
            padding = self._padding(row) if row.place else ""
            remark = f"  {row.remark}" if row.remark else ""
            lines.append(f"{row.indent}{row.text}{padding}{row.place}{remark}".rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        lines = []
        for row in self.rows:
            style = _BAD if row.is_bad else ""
            line = tag("span", escape(row.indent), style=MUTED)
            line += tag("span", escape(row.text), style=style)
            if row.place:
                line += self._padding(row) + tag("span", escape(row.place), style=style or MUTED)
            if row.remark:
                line += "  " + tag("span", escape(row.remark), style=style)
            lines.append(line)
        style = (
            f"{MONO};margin:0;padding:4px 8px;overflow:auto;white-space:pre;"
            f"border-left:2px solid {LINE};background:transparent"
        )
        return tag("pre", "\n".join(lines), style=style)


class Names:
    """What keys are called: by the notebook's variables now, or by the line that made them."""

    def __init__(self, lineage: Lineage, namespace: Mapping[str, Any]) -> None:
        self.bound: dict[Key, str] = {}
        for name, value in list(namespace.items()):
            array = None if name.startswith("_") else numbers_of_keys(value)
            keys = [] if array is None else lineage.find(array)
            for i, key in enumerate(keys):
                self.bound.setdefault(key, name if len(keys) == 1 else f"{name}[{i}]")

    def of(self, key: Key) -> str:
        """The name of a key."""
        if key in self.bound:
            return self.bound[key]
        names = names_at(key.made.at) if key.made else []
        if len(names) == 1 and key.made and key.made.function == "split":
            return f"{names[0]}[{key.row}]"
        if key.row < len(names):
            return names[key.row]
        return argument_at(key.uses[0].at) if key.uses else "a key"


def story(
    lineage: Lineage, array: Any, namespace: Mapping[str, Any], most: int | None = None
) -> list[Row]:
    """Where the keys in an array come from and what used them; empty if nobody recorded that.

    Of more than `most` keys the others are left out.
    """
    found = lineage.find(array)[:most]
    twice = {id(key) for key, _ in lineage.used_twice()} if found else set()
    return list(_of_keys(found, Names(lineage, namespace), twice)) if found else []


def numbers_of_keys(value: Any) -> Any:
    """The array of the numbers of a key or an array of them; `None` for anything else."""
    if value.__class__ is KeyArray:
        return value.base
    if value.__class__ is ArrayImpl and value.dtype.name == "uint32":
        return value if value.shape[-1:] and value.shape[-1] in _KEY_LENGTHS else None
    return None


def _whole(lineage: Lineage, forgotten: int, namespace: Mapping[str, Any]) -> Report:
    twice = list(lineage.used_twice())
    names = Names(lineage, namespace)
    rows = []
    if twice:
        count = f"{len(twice)} keys were" if len(twice) > 1 else "1 key was"
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
        rows.append(Row("", f"{forgotten} older calls are forgotten."))
    return Report(rows)


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
    """Calls, those of one place together."""
    times = Counter((_text(call), place_of(call)) for call in calls)
    for (text, place), n in times.items():
        yield Row(indent, text, place, f"{n} times" if n > 1 else "", is_bad)


_NO_USE = "no use was seen; what compiled functions do with it is not recorded"


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
        times = f"{len(site.calls)} times" if len(site.calls) > 1 else ""
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
    """What a root of the tree is called of which it is not known how its keys were made."""
    if function in ("", "<module>"):
        return "keys in a traced cell" if function else "keys that were not made here"
    return f"keys in `{function}` while it was traced"


def _text(call: Call) -> str:
    """A call as it is written, or its function's name where the source cannot be read."""
    text = expression_at(call.at)
    if len(text) > 60:
        text = text[:57] + "..."
    return text or call.function


# ---- In a shell ---------------------------------------------------------------------------------

_LINE = re.compile(r"[^#]*?%keys\s+([\w-]*)$")


def _completer(namespace: Mapping[str, Any]) -> Any:
    """Completes the words of `%keys`, and the variables that hold keys."""

    @context_matcher(identifier="perspex_keys")  # type: ignore[untyped-decorator]
    def match(context: CompletionContext) -> SimpleMatcherResult:
        found = _LINE.match(context.text_until_cursor)
        if not found:
            return {"completions": []}
        variables = [(n, x) for n, x in list(namespace.items()) if n[0] != "_"]
        names = [n for n, x in variables if numbers_of_keys(x) is not None]
        words = [w for w in (*sorted(names), *_WORDS, "--help") if w.startswith(found[1])]
        return {"completions": [SimpleCompletion(word) for word in words], "suppress": True}

    return match


def record_keys(shell: InteractiveShell) -> Callable[[], object]:
    """Record the calls that make and use keys, and bring `%keys`; returns what ends both."""
    record = Record()
    record.on()
    shell.register_magics(KeysMagics(shell, record))
    shell.events.register("pre_run_cell", record.begin_cell)
    matcher = _completer(shell.user_ns)
    if shell.Completer is not None:
        shell.Completer.custom_matchers.append(matcher)

    def undo() -> None:
        record.off()
        shell.events.unregister("pre_run_cell", record.begin_cell)
        shell.magics_manager.magics["line"].pop("keys", None)
        if shell.Completer is not None:
            shell.Completer.custom_matchers.remove(matcher)

    return undo

"""`%buffers`: the arrays that are alive, who holds them, and a way to be rid of them."""

from __future__ import annotations

import copy
import gc
import re
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
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

from perspex_magics.display import notices
from perspex_magics.display.markup import LINE, MONO, MUTED, escape, tag
from perspex_magics.memory.owners import outputs, report, variables
from perspex_magics.memory.reach import Buffer, Owner, Report, arrays_in, go_on, size_text
from perspex_magics.memory.release import drop_last_error
from perspex_magics.notebook.options import MagicParser
from perspex_magics.notebook.user_names import user_names

_MOST_ROWS = 20
_MOST_ALSO = 3


class _Parser(MagicParser):
    sign = "%"


parser = _Parser(
    "buffers",
    """List the arrays that are alive and who holds them, or free those of some variables.

Each buffer is counted once; a row is what lies behind one name. Names
are variables, outputs `Out[n]`, variables in the frames of the last error, and
compiled functions, for their constants.""",
    """Nothing waits for the device, and nothing is copied.

    %buffers --top 5
    %buffers free params batch

`free` removes these variables, and with them the buffers that nothing else refers
to. What something else holds stays: another variable, an output that holds more than
that, a compiled function, a library.""",
    usage="%buffers [--top N] [--all] [--numpy] [--help] | %buffers free NAME ...",
)
parser.add_argument("--top", type=int, default=None, metavar="N", help="how many rows (20)")
parser.add_argument("--all", action="store_true", help="a row for each buffer, and all rows")
parser.add_argument("--numpy", action="store_true", help="NumPy arrays behind names as well")
parser.add_argument("words", nargs="*", help="`free` and the names of variables", metavar="free")


@dataclass(frozen=True)
class Row:
    """What lies behind one owner."""

    owner: str
    what: str
    nbytes: int
    device: str
    cell: str  # where the variable was set
    also: str  # who else holds it
    holder: Owner | None  # the same as `owner`, not as text

    def data(self) -> dict[str, Any]:
        """The row as JSON."""
        return {name: value for name, value in vars(self).items() if name != "holder"}


# ---- Which cell set a variable ------------------------------------------------------------------


class Setters:
    """For each variable that is an array, the cell at whose end it was first seen to be this one.

    Containers are changed in place and cannot be watched at no cost, so nothing is said of them.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell, self.names = shell, user_names(shell)
        self.seen: dict[str, tuple[weakref.ref[Any], int]] = {}

    def note(self, result: Any) -> None:
        """Called at the end of each cell; some 0.1 us for each array of the notebook."""
        count = getattr(result, "execution_count", None)
        if count is None:
            return
        for name, value in self.names.new_arrays(result.info):
            self.seen[name] = (weakref.ref(value), count)

    def cell(self, name: str) -> str:
        """`In[3]`, or nothing where that is not known."""
        known = self.seen.get(name)
        if known is None or known[0]() is not self.shell.user_ns.get(name):
            return ""
        return f"In[{known[1]}]"


def list_buffers(shell: InteractiveShell) -> Callable[[], object]:
    """Bring `%buffers` into a shell; returns a function that takes it out."""
    setters = Setters(shell)
    shell.register_magics(BufferMagics(shell, setters))
    shell.events.register("post_run_cell", setters.note)
    matcher = _names_matcher(shell)
    if shell.Completer is not None:
        shell.Completer.custom_matchers.append(matcher)

    def undo() -> None:
        shell.events.unregister("post_run_cell", setters.note)
        if shell.Completer is not None:
            shell.Completer.custom_matchers.remove(matcher)
        shell.magics_manager.magics["line"].pop("buffers", None)

    return undo


def _names_matcher(shell: InteractiveShell) -> Any:
    @context_matcher(identifier="perspex_buffers")  # type: ignore[untyped-decorator]
    def match_names(context: CompletionContext) -> SimpleMatcherResult:
        found = re.match(r"\s*%buffers\s+(free\s)?", context.text_until_cursor)
        words: Iterable[str] = ()
        if found and found[1]:
            words = (name for name, value in variables(shell).items() if arrays_in(value))
        elif found and found.end() == len(context.text_until_cursor) - len(context.token):
            words = ["free", *parser._option_string_actions]
        fitting = sorted(word for word in words if word.startswith(context.token))
        return {
            "completions": [SimpleCompletion(word, type="variable") for word in fitting],
            "suppress": bool(found),
        }

    return match_names


# ---- The table ----------------------------------------------------------------------------------


def rows(
    found: Report, setters: Setters, each: bool = False, check: Callable[[], None] = go_on
) -> list[Row]:
    """The rows of the table, by owner or for `each` buffer; what no name holds comes last.

    `check` is called at each step, and may raise what ends it.
    """
    groups: dict[Any, list[Buffer]] = {}
    for i, buffer in enumerate(found.buffers):
        check()
        owner = buffer.ways[0][0] if buffer.ways else None
        groups.setdefault((owner, i if each else 0), []).append(buffer)
    made = [_row(owner, buffers, setters, check) for (owner, _), buffers in groups.items()]
    return sorted(made, key=lambda row: (row.owner == _NOBODY, -row.nbytes))


_NOBODY = "(no name)"


def _row(
    owner: Owner | None, buffers: list[Buffer], setters: Setters, check: Callable[[], None]
) -> Row:
    largest = buffers[0]
    cell = also = ""
    devices: set[str] = set()
    holders: dict[Owner, None] = {}
    for buffer in buffers:
        check()
        devices.add(buffer.device)
        holders.update(dict.fromkeys(buffer.owners))
    if owner is None:
        name = _NOBODY
    else:
        name = owner.text(largest.ways[0][1]) if len(buffers) == 1 else owner.text()
        if owner.kind == "variable":
            cell = setters.cell(owner.name)
        others = dict.fromkeys([holder.text() for holder in holders if holder != owner])
        also = ", ".join(list(others)[:_MOST_ALSO])
        if len(others) > _MOST_ALSO:
            also += f", {len(others) - _MOST_ALSO} more"
    what = largest.type if len(buffers) == 1 else f"{len(buffers):,} arrays"
    size = sum([buffer.nbytes for buffer in buffers])
    return Row(name, what, size, ", ".join(sorted(devices)), cell, also, owner)


def _summary(found: Report, hidden: list[Row]) -> list[str]:
    count = len(found.buffers)
    nobody = sum(buffer.nbytes for buffer in found.buffers if not buffer.ways)
    lines = [
        f"{size_text(found.nbytes)} in {count:,} buffer{'s' * (count != 1)}"
        + (f"; for {size_text(nobody)} of it no name was found" if nobody else "")
    ]
    if hidden:
        left = size_text(sum(row.nbytes for row in hidden))
        lines.append(f"{len(hidden):,} more rows ({left}); `%buffers --all` lists everything")
    if nobody and not found.complete:
        lines.append("There was too much to look through: some of that may have a name.")
    return lines


_COLUMNS = ("held by", "what", "bytes", "device", "set in", "also held by")


def _cells(row: Row) -> tuple[str, ...]:
    return (row.owner, row.what, size_text(row.nbytes), row.device, row.cell, row.also)


def _text(shown: list[Row], lines: list[str]) -> str:
    table = [_COLUMNS, *map(_cells, shown)] if shown else []
    used = [i for i in range(len(_COLUMNS)) if any(row[i] for row in table[1:])]
    widths = {i: max(len(row[i]) for row in table) for i in used}
    aligned = [
        "  ".join(f"{row[i]:>{widths[i]}}" if i == 2 else f"{row[i]:<{widths[i]}}" for i in used)
        for row in table
    ]
    return "\n".join([*(line.rstrip() for line in aligned), *lines])


def _html(shown: list[Row], lines: list[str]) -> str:
    table = [_cells(row) for row in shown]
    used = [i for i in range(len(_COLUMNS)) if any(row[i] for row in table)]
    edge = f"padding:1px 12px 1px 0;border-bottom:1px solid {LINE}"
    sides = {i: f"text-align:{'right' if i == 2 else 'left'};{edge}" for i in used}
    head = "".join(
        tag("th", escape(_COLUMNS[i]), style=f"{sides[i]};{MUTED}", scope="col") for i in used
    )
    body = "".join(
        tag("tr", *(tag("td", escape(row[i]), style=f"{sides[i]};{MONO}") for i in used))
        for row in table
    )
    caption = tag("caption", "<br>".join(map(escape, lines)), style=f"text-align:left;{MUTED}")
    return tag("table", caption, tag("tr", head) if table else "", body)


# ---- Freeing ------------------------------------------------------------------------------------


def free(shell: InteractiveShell, names: list[str]) -> str:
    """Remove variables, and the outputs that hold nothing else; says which memory that freed.

    Nothing is deleted that somebody still refers to: what the last reference is gone of goes by
    itself, and it is looked up what did. The last error is let go of if its frames hold any of it.

    Raises `UsageError`, before anything is changed, for a name that is no variable with arrays.
    """
    namespace = shell.user_ns
    for name in names:
        if name not in variables(shell):
            raise UsageError(f"%buffers free: there is no variable `{name}`; nothing was removed")
        if not arrays_in(namespace[name]):
            raise UsageError(f"%buffers free: `{name}` holds no arrays; nothing was removed")
    wanted = dict.fromkeys(names)
    behind, dropped = _behind(shell, wanted)
    for name in wanted:
        del namespace[name]
        shell.user_ns_hidden.pop(name, None)
    _drop_outputs(shell, dropped)
    failed = any(b.is_alive() and b.failed for b in behind) and drop_last_error(shell)
    if any(b.is_alive() for b in behind):
        gc.collect()  # what is in cycles
    keys = {key for b in behind for key in b.keys}
    # One that was not computed before may have an address by now.
    alive = {id(b.array()) for b in behind if b.is_alive()}
    found = report(shell).buffers
    kept = [b for b in found if id(b.array) in alive or not keys.isdisjoint(b.keys)]
    nbytes = sum(b.nbytes for b in behind) - sum(b.nbytes for b in kept)
    return _said(wanted, nbytes, kept, dropped, failed)


class _Behind(NamedTuple):
    """A buffer behind a variable that is to go; holds nothing of it."""

    array: weakref.ref[Any]
    keys: Sequence[Hashable]
    nbytes: int
    failed: bool  # whether the last error holds it

    def is_alive(self) -> bool:
        return self.array() is not None


def _behind(shell: InteractiveShell, names: Collection[str]) -> tuple[list[_Behind], set[str]]:
    """The buffers behind variables, and the outputs that may go with these."""
    found = report(shell).buffers
    behind = [b for b in found if any(_is_one_of(owner, names) for owner in b.owners)]
    noted = [
        _Behind(weakref.ref(b.array), b.keys, b.nbytes, any(o.kind == "error" for o in b.owners))
        for b in behind
    ]
    return noted, _outputs_to_drop(behind, found, names)


def _is_one_of(owner: Owner, names: Collection[str]) -> bool:
    return owner.kind == "variable" and owner.name in names


def _others(buffer: Buffer, names: Collection[str], dropped: Collection[str]) -> list[Owner]:
    """Who holds a buffer besides these variables; the last error can be let go of."""
    return [
        owner
        for owner in buffer.owners
        if not (_is_one_of(owner, names) or owner.kind == "error" or owner.name in dropped)
    ]


def _outputs_to_drop(
    behind: list[Buffer], all_buffers: list[Buffer], names: Collection[str]
) -> set[str]:
    """The outputs that go with the buffers `behind` the names.

    An output goes if all that it holds goes, and a buffer if all outputs do that hold it.
    """
    dropped = {o.name for buffer in behind for o in buffer.owners if o.kind == "output"}
    while True:
        gone = [buffer for buffer in behind if not _others(buffer, names, dropped)]
        staying = {o.name for b in all_buffers if b not in gone for o in b.owners} & dropped
        if not staying:
            return dropped
        dropped -= staying


def _drop_outputs(shell: InteractiveShell, names: Collection[str]) -> None:
    """Take outputs out of `Out`, of `_1` and of the last three."""
    if not names:
        return
    namespace = shell.user_ns
    gone = {id(value) for name, value in outputs(shell).items() if name in names}
    hidden = shell.user_ns_hidden
    for space in (namespace.get("_oh", {}), namespace, hidden):
        for key in [key for key in space if re.fullmatch(r"_?\d+", str(key))]:
            if id(space[key]) in gone:
                del space[key]
    result = shell.last_execution_result
    if result is not None and id(result.result) in gone:
        # The old one stays what it is, for those who keep it.
        shell.last_execution_result = copy.copy(result)
        shell.last_execution_result.result = None
    for name in ("_", "__", "___"):
        for space in (namespace, hidden):
            if id(space.get(name)) in gone:
                space[name] = ""
        if id(getattr(shell.displayhook, name, None)) in gone:
            setattr(shell.displayhook, name, "")


def _said(
    names: Collection[str],
    nbytes: int,
    kept: list[Buffer],
    dropped: Collection[str],
    failed: bool,
) -> str:
    lines = [f"Removed {', '.join(names)}: {size_text(nbytes)} freed."]
    if dropped:
        which = ", ".join(sorted(dropped))
        lines.append(f"Removed {which} as well: there was nothing else in it.")
    if failed:
        lines.append("The last error was let go of: its frames held some of that.")
    for buffer in kept[:_MOST_ALSO]:
        others = [owner.text() for owner in buffer.owners]
        more = f" and {len(others) - 2} more" if len(others) > 2 else ""
        by = f"also held by {', '.join(others[:2])}{more}"
        if not others:
            by = "something else refers to it, and no name of that was found"
        lines.append(f"Kept {buffer.type}, {size_text(buffer.nbytes)}: {by}.")
    if left := kept[_MOST_ALSO:]:
        size = size_text(sum(buffer.nbytes for buffer in left))
        lines.append(f"Kept {len(left)} more for the same reason, {size}.")
    return "\n".join(lines)


@magics_class
class BufferMagics(Magics):
    """`%buffers` in one notebook."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell, setters: Setters) -> None:
        super().__init__(shell)
        self.setters = setters

    @no_var_expand
    @line_magic
    def buffers(self, line: str) -> None:
        """List the arrays that are alive and who holds them, or free those of some variables.

        `%buffers --help` lists the options.
        """
        options = parser.parse(line)
        if options.help:
            print(parser.format_help())
            return
        words = options.words
        if words:
            if words[0] != "free":
                parser.error(f"unknown word {words[0]!r}; `free` is the only one")
            names = [name for word in words[1:] for name in word.split(",") if name]
            if not names:
                parser.error("`free` needs the names of variables")
            if options.all or options.numpy or options.top is not None:
                parser.error("`free` takes no options")
            print(free(self.shell, names))
            return
        if options.top is not None and options.top < 1:
            parser.error("--top needs a number above 0")
        self._list(options.top, options.all, options.numpy)

    def _list(self, top: int | None, every: bool, numpy: bool) -> None:
        listed = report(self.shell, numpy=numpy)
        found = rows(listed, self.setters, each=every)
        most = top or (len(found) if every else _MOST_ROWS)
        shown, hidden = found[:most], found[most:]
        lines = _summary(listed, hidden)
        data = {
            "bytes": listed.nbytes,
            "buffers": len(listed.buffers),
            "complete": listed.complete,
            "rows": [row.data() for row in shown],
        }
        notices.show("buffers", data, _text(shown, lines), _html(shown, lines))

"""`%buffers`: the live arrays, what holds them, and how to free them."""

from __future__ import annotations

import argparse
import copy
import gc
import re
import weakref
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from IPython.core.completer import CompletionContext
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from perspex_magics.display import notices
from perspex_magics.display.markup import MONO
from perspex_magics.display.table import Column, Report, Table
from perspex_magics.display.units import count, many, size
from perspex_magics.memory import allocator
from perspex_magics.memory.owners import outputs, report, variables
from perspex_magics.memory.reach import Buffer, Owner, arrays_in, go_on
from perspex_magics.memory.reach import Report as Found
from perspex_magics.memory.release import drop_last_error
from perspex_magics.notebook.magic import Magic
from perspex_magics.notebook.options import WordParser
from perspex_magics.notebook.user_names import user_names
from perspex_magics.session import Session

_MOST_ROWS = 20
_MOST_ALSO = 3


parser = WordParser(
    "buffers",
    """List the live arrays and what holds them, or free those of some variables.

Each buffer is counted once. A row shows the memory behind one name: a variable, an
output `Out[n]`, a variable in a frame of the last error, or a compiled function with
its constants.""",
    """Listing neither waits for the device nor copies anything.

    %buffers --top 5
    %buffers free params batch

`free` removes the variables, and the buffers that nothing else refers to. A buffer
stays if anything else holds it: another variable, an output with more in it, a compiled
function, a library.""",
    usage="%buffers [--top N] [--all] [--numpy] [--help] | %buffers free NAME ...",
)
parser.add_argument("--top", type=int, default=None, metavar="N", help="the number of rows (20)")
parser.add_argument("--all", action="store_true", help="list every buffer, each in its own row")
parser.add_argument("--numpy", action="store_true", help="include NumPy arrays that names lead to")
parser.add_argument("words", nargs="*", help="`free` and the names of variables", metavar="free")


@dataclass(frozen=True)
class Row:
    """The memory behind one owner."""

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

    Containers change in place and cannot be watched for free, so they are not covered.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell, self.names = shell, user_names(shell)
        self.seen: dict[str, tuple[weakref.ref[Any], int]] = {}

    def note(self, result: Any) -> None:
        """Called at the end of each cell; some 0.1 us for each array of the notebook."""
        number = getattr(result, "execution_count", None)
        if number is None:
            return
        for name, value in self.names.new_arrays(result.info):
            self.seen[name] = (weakref.ref(value), number)

    def cell(self, name: str) -> str:
        """`In[3]`, or nothing where that is not known."""
        known = self.seen.get(name)
        if known is None or known[0]() is not self.shell.user_ns.get(name):
            return ""
        return f"In[{known[1]}]"


def list_buffers(session: Session) -> None:
    """Bring `%buffers` into a notebook."""
    setters = session.keep(Setters(session.shell))
    BufferMagics(session, setters).register()
    session.on_cell(end=setters.note)


# ---- The table ----------------------------------------------------------------------------------


def rows(
    found: Found, setters: Setters, each: bool = False, check: Callable[[], None] = go_on
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
    what = largest.type if len(buffers) == 1 else f"{count(len(buffers))} arrays"
    nbytes = sum([buffer.nbytes for buffer in buffers])
    return Row(name, what, nbytes, ", ".join(sorted(devices)), cell, also, owner)


def _summary(found: Found, hidden: list[Row]) -> list[str]:
    nobody = sum(buffer.nbytes for buffer in found.buffers if not buffer.ways)
    lines = [
        f"{size(found.nbytes)} in {many(len(found.buffers), 'buffer')}"
        + (f"; no name was found for {size(nobody)} of it" if nobody else "")
    ]
    if hidden:
        left = size(sum(row.nbytes for row in hidden))
        lines.append(f"{count(len(hidden))} more rows ({left}); `%buffers --all` lists everything")
    if nobody and not found.complete:
        lines.append("Search limit reached; some of these buffers may still be held by a name.")
    return lines


_COLUMNS = (
    Column("owner", "held by", style=MONO),
    Column("what", "what", style=MONO),
    Column("nbytes", "bytes", size, is_number=True, style=MONO),
    Column("device", "device", style=MONO),
    Column("cell", "set in", style=MONO),
    Column("also", "also held by", style=MONO),
)


# ---- Freeing ------------------------------------------------------------------------------------


def free(shell: InteractiveShell, names: list[str]) -> str:
    """Remove variables, and the outputs that hold nothing else; returns what that freed as text.

    Nothing that is still referenced is deleted: Python frees what loses its last reference, and a
    second walk finds what went. The last error is dropped if its frames hold any of it.

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
    """Who holds a buffer besides these variables; the last error does not count."""
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
    lines = [f"Removed {', '.join(names)}: {size(nbytes)} freed."]
    if dropped:
        which = ", ".join(sorted(dropped))
        lines.append(f"Removed {which} as well: it held nothing else.")
    if failed:
        lines.append("Dropped the last error: its frames held some of these arrays.")
    for buffer in kept[:_MOST_ALSO]:
        others = [owner.text() for owner in buffer.owners]
        more = f" and {len(others) - 2} more" if len(others) > 2 else ""
        by = f"also held by {', '.join(others[:2])}{more}"
        if not others:
            by = "still referenced, but by nothing with a name"
        lines.append(f"Kept {buffer.type}, {size(buffer.nbytes)}: {by}.")
    if left := kept[_MOST_ALSO:]:
        nbytes = sum(buffer.nbytes for buffer in left)
        lines.append(f"Kept {count(len(left))} more for the same reason, {size(nbytes)}.")
    return "\n".join(lines)


class BufferMagics(Magic):
    """List the live arrays and what holds them, or free those of some variables.

    `%buffers --help` lists the options.
    """

    line_parser = parser

    def __init__(self, session: Session, setters: Setters) -> None:
        super().__init__(session)
        self.setters = setters

    def completions(self, rest: str, context: CompletionContext) -> list[str] | None:
        given = rest.split()
        if given[:1] == ["free"]:
            return sorted(name for name, x in variables(self.shell).items() if arrays_in(x))
        return None if given else sorted(["free", *parser._option_string_actions])

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> None:
        words = options.words
        if words:
            if words[0] != "free":
                parser.error(f"unknown word {words[0]!r}; the only command is `free`")
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
        table = Table(_COLUMNS, [tuple(row.data().values()) for row in shown])
        data = {
            "bytes": listed.nbytes,
            "buffers": len(listed.buffers),
            "complete": listed.complete,
            "rows": table.data(),
        }
        said = [*_summary(listed, hidden), *allocator.told()]
        notices.tell("buffers", data, Report(table, *said))

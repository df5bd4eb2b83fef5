"""Source locations: which line of the user's code made this equation.

Every traced equation asks, so the question must cost next to nothing; few equations are ever shown,
so the answer may cost something. `capture` therefore keeps only a code object and an instruction
offset of the innermost frame that is not ours, interned as a `Source`. Its `frame` (file, line,
column, function) is worked out on first use and kept.

Why not `jaxlib`'s `Traceback.get_traceback()`: it records the whole stack. Measured on Python 3.11
with four frames of ours between the user and `capture` (3.13: up to half as much again):

    stack depth          5 frames     50 frames
    get_traceback        0.19 us      0.55 us, and 50 pointers kept per equation
    capture()            0.40 us      0.40 us
    capture(3)           0.24 us      0.24 us
    capture(5)           0.12 us      0.12 us

`sys._getframe(n)` passes over frames without making frame objects, while the walk through `f_back`
makes one per frame: a caller that knows how many frames between it and the user are ours says so.

What always holds: no frame object is kept, so no array in a local variable stays alive because of a
location; two captures of one instruction are the same object (until the table of sources, full at
10,000 code objects, starts afresh), so a source is a cheap dict key.
"""

from __future__ import annotations

import linecache
import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import numpy

from perspex.base import xla
from perspex.base.name_stack import NO_NAMES, NameStack, Piece, Transform

_getframe = sys._getframe


class Frame(NamedTuple):
    """A place in the user's code. Lines count from 1, columns from 0 and in UTF-8 bytes."""

    file: str
    line: int
    column: int
    function: str
    end_line: int
    end_column: int


class Source:
    """An instruction of the user's code, remembered while tracing and resolved when asked for."""

    __slots__ = ("_frame", "code", "lasti", "names", "plain", "scope")

    def __init__(
        self,
        code: CodeType | None,
        lasti: int,
        frame: Frame | None = None,
        names: NameStack = NO_NAMES,
        plain: Source | None = None,
    ) -> None:
        self.code = code
        self.lasti = lasti
        self._frame = frame
        self.names = names
        self.scope = names.text  # as in "jvp(encoder)/attention"
        self.plain = self if plain is None else plain  # the same without names

    @property
    def frame(self) -> Frame:
        """File, line, column and function; worked out once (2 us), then kept."""
        frame = self._frame
        if frame is None:
            assert self.code is not None  # what has no code came from a pickle, with its frame
            frame = self._frame = _resolve(self.code, self.lasti)
        return frame

    def __reduce__(self) -> tuple[Any, ...]:
        # Code objects do not pickle; places do.
        return Source, (None, self.lasti, self.frame, self.names)

    def inside(self, names: NameStack) -> Source:
        """With `names` around the names that it has; `names[source]` keeps the answer."""
        return Source(
            self.code, self.lasti, self._frame, names.holding(self.names), plain=self.plain
        )

    def __repr__(self) -> str:
        return f"Source({summary(self)})"


def _directory(path: str) -> str:
    return os.path.join(os.path.abspath(path), "")


# NumPy and friends call us back with the user's arrays: the line that counts is still the user's.
_our_directories = [
    _directory(os.path.dirname(file))
    for file in (os.path.dirname(__file__), numpy.__file__, xla.JAXLIB_FILE)
]
_our_directories.append(
    _directory(os.path.join(os.path.dirname(numpy.__file__), os.pardir, "opt_einsum"))
)
# File names seen so far that are ours. A plain set: every capture asks it (15 ns).
_ours: set[str] = set()
_not_ours: set[str] = set()
# id(code) -> lasti -> Source. The sources keep the code alive, so an id stands for one code object.
# Ids are the keys because a code object's own hash runs over all its instructions.
_sources: dict[int, dict[int, Source]] = {}
_MOST_CODES = 10_000
# id(code) -> (code, its positions by instruction): unpacking a line table is linear in its length.
_positions: dict[int, tuple[CodeType, list[tuple[Any, ...]]]] = {}
_MOST_TABLES = 64
_cell_namers: list[Callable[[str], str | None]] = []


class _Here(threading.local):
    """Where this thread is among the names of scopes and transformations."""

    names = NO_NAMES


_here = _Here()
# How many names are open on all threads: while there is none, `capture` pays for one truth test.
_open_names = 0
_counting = threading.Lock()


def capture(skip: int = 1) -> Source | None:
    """The innermost instruction on this thread's stack that is not in Perspex's own code.

    Args:
      skip: how many frames up from here the search begins; the frames below are known to be ours.
        1 begins at the caller. Each frame that need not be looked at saves 0.09 us.

    Returns:
      An interned `Source`, or `None` where no frame is the user's.

    Errors:
      `ValueError` if the stack has fewer than `skip` frames.

    >>> from perspex.base.source import capture
    >>> capture().frame.function
    '<module>'
    """
    frame: Any = _getframe(skip)
    code = frame.f_code
    while code.co_filename in _ours:
        frame = frame.f_back
        if frame is None:
            return None
        code = frame.f_code
    found: Source | None
    try:
        found = _sources[id(code)][frame.f_lasti]
    except KeyError:
        found = _capture_first(frame)
    return found if not _open_names else _here.names[found]


def user_frame(skip: int = 1) -> FrameType | None:
    """The frame whose instruction `capture(skip)` would name."""
    frame: FrameType | None = _getframe(skip)
    while frame is not None:
        name = frame.f_code.co_filename
        if name not in _ours and not is_internal(name):
            break
        frame = frame.f_back
    return frame


def _capture_first(frame: FrameType | None) -> Source | None:
    """What `capture` does at a place that it has not seen: tell our files from the user's."""
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    code, lasti = frame.f_code, frame.f_lasti
    if len(_sources) >= _MOST_CODES:
        _sources.clear()
    places = _sources.setdefault(id(code), {})
    return places.setdefault(lasti, Source(code, lasti))


def names_here() -> NameStack | None:
    """The names that this thread is inside; `None` if it is inside none."""
    names = _here.names
    return names if names.pieces else None


def enter_scope(name: Piece) -> NameStack:
    """Give what this thread captures from now on a name, inside of the names that it has.

    Returns:
      What `exit_scope` takes.
    """
    global _open_names
    before = _here.names
    with _counting:
        _open_names += 1
    _here.names = before.within(name)
    return before


def exit_scope(before: NameStack) -> None:
    """Go back to the names that there were before the matching `enter_scope`."""
    global _open_names
    with _counting:
        _open_names -= 1
    _here.names = before


def swap_names(names: NameStack) -> NameStack:
    """Make `names` the names of this thread, and return those that it had."""
    before = _here.names
    _here.names = names
    return before


def enter_program() -> NameStack:
    """Leave the names of scopes: a program must not depend on those around its first use.

    Returns:
      What `swap_names` takes to come back.
    """
    before = _here.names
    if before.pieces:
        _here.names = before.program
    return before


def named_as(names: NameStack, f: Callable[..., Any], *args: Any) -> Any:
    """`f(*args)`, whose equations have `names` and no others around them."""
    before = enter_scope("")
    try:
        _here.names = names
        return f(*args)
    finally:
        exit_scope(before)


def transformed(name: str, f: Callable[..., Any], *args: Any) -> Any:
    """`f(*args)`, whose equations say that a transformation made them: `jvp(layer)`."""
    before = enter_scope(Transform(name))
    try:
        return f(*args)
    finally:
        exit_scope(before)


def _resolve(code: CodeType, lasti: int) -> Frame:
    table = _positions.get(id(code))
    if table is None:
        if len(_positions) >= _MOST_TABLES:
            _positions.clear()
        table = _positions[id(code)] = code, list(code.co_positions())
    first = code.co_firstlineno
    # Two bytes per instruction; -1 is a frame that has not started.
    line, end_line, column, end_column = (
        table[1][lasti // 2] if lasti >= 0 else (first, first, 0, 0)
    )
    line = first if line is None else line
    return Frame(
        code.co_filename,
        line,
        column or 0,
        code.co_qualname,
        line if end_line is None else end_line,
        end_column or 0,
    )


def is_internal(filename: str) -> bool:
    """Whether code of that file name is ours, and not the user's.

    >>> from perspex.base.source import __file__, is_internal
    >>> is_internal(__file__), is_internal("/home/ada/train.py")
    (True, False)
    """
    if filename in _ours:
        return True
    if filename in _not_ours:
        return False
    ours = filename.startswith(("<frozen ", "<perspex", *_our_directories))
    if len(_not_ours) >= _MOST_CODES:
        _not_ours.clear()
    (_ours if ours else _not_ours).add(filename)
    return ours


def register_internal(path: str) -> None:
    """Count the code in a directory (or one file) as ours: locations point to its callers.

    Args:
      path: a package's directory, as in `os.path.dirname(__file__)`, or a single file.
    """
    path = os.path.abspath(path)
    _not_ours.clear()
    _our_directories.append(path if os.path.isfile(path) else _directory(path))
    _sources.clear()


def register_cell_namer(namer: Callable[[str], str | None]) -> Callable[[], None]:
    """Let a notebook name its cells.

    Args:
      namer: takes the file name of a code object and returns what the user calls it, as in
        `"Cell In[3]"`, or `None` where the file is no cell of its.

    Returns:
      A function that takes the namer away again.

    >>> from perspex.base.source import capture, register_cell_namer, summary
    >>> remove = register_cell_namer(lambda file: "Cell In[3]" if "doctest" in file else None)
    >>> summary(capture())
    'Cell In[3]:1'
    >>> remove()
    """
    _cell_namers.append(namer)
    return lambda: _cell_namers.remove(namer)


def cell_name(filename: str) -> str | None:
    """What the notebook calls the cell that this file name stands for; `None` if it is no cell."""
    for namer in _cell_namers:
        name = namer(filename)
        if name is not None:
            return name
    return None


def summary(source: Source | None) -> str:
    """One short phrase for messages: `train.py:12 (loss)`, or in a notebook `Cell In[3]:2 (f)`.

    Args:
      source: what `capture` returned; `None` gives `unknown location`.
    """
    if source is None:
        return "unknown location"
    frame = source.frame
    function = frame.function.rpartition("<locals>.")[2]
    at = line_name(frame.file, frame.line)
    return at + ("" if function == "<module>" else f" ({function})")


def line_name(file: str, line: int) -> str:
    """A line of a file as messages show it: `train.py:12`, `Cell In[3]:2`."""
    return f"{cell_name(file) or os.path.basename(file)}:{line}"


def resolve(source: Source | None) -> Frame | None:
    """The frame of a source; `None` where `capture` found none. Warm: 0.06 us."""
    return None if source is None else source.frame


def here() -> str:
    """The summary of the user's line that is running now, for messages."""
    return summary(capture(2))


def expression_for(value: Any) -> str:
    """What the user's innermost function calls an object: `w`, `kept[0]`, `model.w`; or nothing.

    Looks at the variables of that function and of its module, and one level into containers and
    attributes. For messages only: it may take a while.
    """
    frame: FrameType | None = _getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    # What was assigned by name before what is inside of something; locals before globals.
    scopes = [dict(frame.f_locals), dict(frame.f_globals)]
    for scope in scopes:
        for name, held in scope.items():
            if held is value:
                return name
    for scope in scopes:
        for name, held in scope.items():
            inside = _inside(held, value)
            if inside:
                return name + inside
    return ""


def _inside(held: Any, value: Any) -> str:
    """How `value` is reached from the object `held` that holds it."""
    if isinstance(held, (list, tuple)):
        return next((f"[{i}]" for i, item in enumerate(held) if item is value), "")
    if isinstance(held, dict):
        return next((f"[{key!r}]" for key, item in held.items() if item is value), "")
    if isinstance(held, (type, ModuleType)):
        return ""
    attributes = getattr(held, "__dict__", None)
    if isinstance(attributes, dict):
        return next((f".{key}" for key, item in attributes.items() if item is value), "")
    return ""


def statement() -> str:
    """The text of the user's line that is running now; empty if its file cannot be read."""
    at = capture(2)
    if at is None:
        return ""
    frame = at.frame
    lines = [linecache.getline(frame.file, n) for n in range(frame.line, frame.end_line + 1)]
    return "".join(lines).strip()


def stacklevel() -> int:
    """The `stacklevel` with which `warnings.warn` names the user's line.

    Returns:
      The level for a `warnings.warn` in the function that calls this; at least 1.
    """
    frame: FrameType | None = _getframe(1)
    level = 1
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level

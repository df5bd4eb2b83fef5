"""What the functions of one notebook did while they were traced, and would do once only."""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from perspex.api import shapes, stages
from perspex.base import events, source
from perspex.runtime.dispatch import EVAL
from perspex.tracing.trace import Tracer, state
from perspex_magics.display.summaries import brief
from perspex_magics.fixed import sources
from perspex_magics.fixed.files import Files, path_read
from perspex_magics.fixed.flows import Flows, shown_values
from perspex_magics.keys.lineage import expression_at
from perspex_magics.notebook.kinds import dict_of, is_a, items, stops
from perspex_magics.notebook.names import CALLED, READ, SHOWN

# Of how many lines readings are kept.
_MOST = 2_000
# What is looked for among the notebook's variables goes so far into them.
_MOST_ITEMS = 64
_HEAD = re.compile(r"(?:[ \t]*\n)*(?:%%[^\n]*(?:\n|$))+")
# The modules of the core that trace for a look at the program.
_LOOKS = tuple([module.__file__ for module in (shapes, stages)])
_OURS = source.is_internal


@dataclass
class Reading:
    """One line that did something while a function was traced.

    `times` is how often, and `value` what came of it last, as a short text. `is_look` says that
    the trace was only to look at the program, `entered` that the value may have become part of it.
    """

    kind: str
    text: str
    place: str
    function: str
    value: str
    at: source.Source
    times: int = 1
    is_look: bool = False
    entered: bool | None = None
    # The function that was called, if it is another than the one that was traced within it.
    outermost: str = ""
    last: Any = None
    arguments: list[str] = field(default_factory=list)


class Record:
    """The readings of one notebook, the latest of each line."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.readings: dict[tuple[Any, ...], Reading] = {}
        # Those of the cell that runs.
        self.new: list[Reading] = []
        self.is_on = True
        # Generators that a trace has made, by id, and whether from no seed; kept so that the ids
        # stay their own. And the owners of generators that a trace has seeded.
        self.made: dict[int, tuple[Any, bool]] = {}
        self.seeded: set[str] = set()
        # The last trace that was found to be kept.
        self.kept: Any = None
        # The reading of a line in the trace that goes on, which keeps its id.
        self.now: dict[tuple[source.Source, str], tuple[Any, Reading]] = {}

    # ---- what cells call ---------------------------------------------------------------------

    def called(self, function: Any) -> Any:
        """What is called instead of `function`, while something is traced."""
        kind = sources.kind_of(function)
        if kind is None and function is getattr(builtins, "input", None):
            kind = sources.INPUT
        if kind is None or not self.is_on or not self._is_kept():
            return function
        count = len(self.new)

        def seen(*args: Any, **named: Any) -> Any:
            if kind == sources.PRINT:
                self._print(args, named, count)
                return function(*args, **named)
            if kind == sources.FILE:
                path = path_read(function, args, named)
                if path is not None:
                    self._note(kind, _Shown(self.files.note(_traced_function(), path)))
                return function(*args, **named)
            inside = kind == sources.ITEM and not _is_outside(args[:1], sys._getframe(1))
            value = function(*args, **named)
            if kind == sources.SEED:
                self.seeded.add(_home(function))
            elif kind == sources.GENERATOR:
                self.made[id(value)] = value, not (args or named)
            elif kind == sources.TEXT:
                if _has_tracer((*args, *named.values())):
                    self._note(kind, _Shown(value))
            elif kind == sources.RANDOM:
                if not self._is_repeatable(function):
                    self._note(kind, args[0] if value is None and args else value)
            elif not inside:
                self._note(kind, value)
            return value

        return seen

    def shown(self, value: Any) -> Any:
        """A value that is put into a text, or a tuple of them, while something is traced."""
        is_tuple = type(value) is tuple and _has_tracer(value, 0)
        if (is_tuple or is_a(value, Tracer)) and self.is_on and self._is_kept():
            traced = next(filter(_is_tracer, value)) if is_tuple else value
            self._note(sources.TEXT, _Shown(traced))
        return value

    def read(self, value: Any) -> Any:
        """An item of the environment, while something is traced."""
        if self.is_on and self._is_kept():
            self._note(sources.ENVIRONMENT, value)
        return value

    def _is_kept(self) -> bool:
        """Whether what runs is written down as a program that is to be run again."""
        trace = state.trace
        if trace is self.kept:
            return True
        if events.is_unheard():  # a remedy is tried
            return False
        if not events.is_inside("trace") or _writing() is None:
            return False
        self.kept = trace
        return True

    # ---- what is kept ------------------------------------------------------------------------

    def _print(self, args: Any, named: Any, count: int) -> None:
        texts = [r for r in self.new[count:] if r.kind == sources.TEXT]
        if not (texts or _has_tracer(args)):
            return
        for reading in texts:
            self.new.remove(reading)
            self.readings = {k: r for k, r in self.readings.items() if r is not reading}
            self.now.pop((reading.at, reading.kind), None)
        self._note(sources.PRINT, "")

    def _is_repeatable(self, function: Any) -> bool:
        """Whether every trace draws the same, as from a generator that it seeds itself."""
        if self.made:
            owner = sources.owner_of(function)
            made = self.made.get(id(owner))
            if made is not None and made[0] is owner:
                return not made[1]
        return bool(self.seeded) and _home(function) in self.seeded

    def _note(self, kind: str, value: Any) -> None:
        at = source.capture()
        if at is None:
            return
        known = self.now.get((at, kind))
        if known is not None and known[0] is _writing():
            # The same line again, as in a loop of many.
            known[1].times += 1
            known[1].last = value
            return
        name = _traced_function()
        key = (kind, at.frame.file, at.frame.line, at.frame.column, name)
        found = self.readings.pop(key, None)
        if found is None or not any(found is each for each in self.new):
            text = expression_at(at)
            found = Reading(kind, text, source.summary(at), name, "", at, times=0)
            found.is_look, found.outermost = _is_look(), _outermost()
            self.new.append(found)
        found.times += 1
        found.last = value
        self.readings[key] = found
        self.now[at, kind] = _writing(), found
        while len(self.readings) > _MOST:
            del self.readings[next(iter(self.readings))]

    def take(self) -> list[Reading]:
        """The readings since the last call."""
        new, self.new = self.new, []
        self.made.clear()
        self.seeded.clear()
        self.now.clear()
        self.kept = None
        for reading in new:
            reading.value, reading.last = _text(reading.last), None
            reading.entered = enters(reading)
            reading.text, reading.arguments = _shown(reading)
        return new


class _Shown(str):
    """A text that is shown as it is."""


def _text(value: Any) -> str:
    if type(value) is _Shown:
        return value
    if type(value) is float:
        return f"{value:.6g}"
    return brief(value) if type(value) is not str or value else ""


def enters(reading: Reading) -> bool:
    """Whether what was read may have become part of the program, as far as its text shows."""
    if reading.kind in (sources.PRINT, sources.INPUT):
        return True
    flows = flows_of(reading.at.frame.file)
    if reading.kind == sources.TEXT:
        node = None if flows is None else flows.node_at(_position(reading))
        return flows is None or node is None or not flows.is_raised(node)
    call = None if flows is None else flows.call_at(_position(reading))
    is_clock = reading.kind == sources.CLOCK
    if flows is None or call is None:
        return not is_clock
    if getattr(call.func, "attr", "") == "shuffle":
        return True
    return flows.enters(call, is_clock)


def _shown(reading: Reading) -> tuple[str, list[str]]:
    """The text of the expression that shows values, and the values in it."""
    flows = flows_of(reading.at.frame.file)
    node = None if flows is None else flows.node_at(_position(reading))
    if flows is None or node is None or reading.kind not in (sources.PRINT, sources.TEXT):
        return reading.text, []
    values = []
    if reading.kind == sources.TEXT:
        node = flows.text_around(node)
        values = shown_values(node)
    elif isinstance(node, ast.Call):
        values = [value for each in node.args for value in shown_values(each)]
    return ast.unparse(node), [ast.unparse(value) for value in values]


def function_text(reading: Reading) -> str:
    """The text of the function that a reading is in, the same wherever that stands."""
    flows = flows_of(reading.at.frame.file)
    node = None if flows is None else flows.node_at(_position(reading))
    return reading.text if flows is None or node is None else ast.unparse(flows.function_of(node))


def _position(reading: Reading) -> tuple[int, int, int, int]:
    at = reading.at.frame
    return at.line, at.column, at.end_line, at.end_column


def flows_of(file: str) -> Flows | None:
    """The tree of a file or a cell, without the lines of magics at its top."""
    return _flows("".join(linecache.getlines(file)))


@functools.lru_cache(maxsize=32)
def _flows(text: str) -> Flows | None:
    head = _HEAD.match(text)
    if head is not None:
        text = "\n" * head[0].count("\n") + text[head.end() :]
    try:
        return Flows(ast.parse(text))
    except (SyntaxError, ValueError):
        return None


# ---- traces ------------------------------------------------------------------------------------


def _writing() -> Any:
    trace = state.trace
    while trace is not None and not trace.writes:
        trace = trace.parent
    return trace


def _outermost() -> str:
    """The function whose trace is the outermost of this thread."""
    trace, name = state.trace, ""
    while trace is not None:
        name = getattr(trace, "name", "") or name
        trace = trace.parent
    return name


def _traced_function() -> str:
    return getattr(_writing(), "name", "") or "function"


def _frames(frame: FrameType | None) -> list[FrameType]:
    """The user's frames from this one out to what began the outermost trace."""
    found: list[FrameType] = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    last = max(
        (i for i, each in enumerate(found) if each.f_code.co_name == "stage"), default=len(found)
    )
    return [each for each in found[:last] if not _OURS(each.f_code.co_filename)]


def _is_look() -> bool:
    """Whether somebody asked for the program alone, without running it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename in _LOOKS:
            return True
        frame = frame.f_back
    return False


def _is_outside(values: Any, frame: FrameType) -> bool:
    """Whether an object was there before the trace: a variable around the traced function."""
    inside = _frames(frame)
    for value in values:
        if _held_in(list(frame.f_globals.values()), value):
            return True
        made_here = [
            name
            for each in inside
            for name, held in each.f_locals.items()
            if held is value
            and name not in each.f_code.co_freevars
            and name not in each.f_code.co_varnames[: each.f_code.co_argcount]
        ]
        if not made_here and any(
            held is value or _held_in([held], value)
            for each in inside
            for held in each.f_locals.values()
        ):
            return True
    return False


def _held_in(holders: list[Any], value: Any) -> bool:
    for held in holders:
        if held is value:
            return True
        found = items(held)
        if found is not None and found[1] <= _MOST_ITEMS:
            if any(item is value for _, item in found[0]):
                return True
        elif found is None and any(item is value for item in (dict_of(held) or {}).values()):
            return True
    return False


def _is_tracer(value: Any) -> bool:
    return is_a(value, Tracer)


def _has_tracer(values: Any, depth: int = 3) -> bool:
    for value in values:
        if is_a(value, Tracer):
            return True
        found = items(value) if depth else None
        inside = [item for _, item in found[0]] if found and found[1] <= _MOST_ITEMS else []
        if inside and _has_tracer(inside, depth - 1):
            return True
    return False


def _home(function: Any) -> str:
    """The module whose generator a function draws from."""
    owner = sources.owner_of(function)
    return f"{type(owner).__module__}.{id(owner)}"


# ---- in a process -------------------------------------------------------------------------------

_records: list[Record] = []


def install(record: Record) -> Callable[[], None]:
    """Have cells call a record; returns a function that ends that.

    The names stay, as code that calls them may still be there.
    """
    _records.append(record)
    for name, method in ((CALLED, "called"), (READ, "read"), (SHOWN, "shown")):
        setattr(builtins, name, _asking(method))
    return lambda: _records.remove(record)


def _asking(method: str) -> Callable[[Any], Any]:
    def ask(value: Any) -> Any:
        if state.trace is EVAL:
            return value
        found = value
        try:
            for record in _records:
                found = getattr(record, method)(found)
        except BaseException as error:
            if stops(error):
                raise
            events.report_ignored(error, "while looking at a call of", value)
        return found

    return ask

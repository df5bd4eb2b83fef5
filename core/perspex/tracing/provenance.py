"""Where a traced value comes from: its way from the arguments through the user's lines.

Every equation of a trace knows its line. The walk goes from a variable to the equation that made
it, then to the operands of that equation, and so on. Tracing records nothing for it; the walk runs
when an error is raised. A transform that computes at once has no equations; there the walk follows
the value's `past`. Of several ways from an argument, the error shows the shortest, with one step
for each of the user's lines.
"""

from __future__ import annotations

import inspect
import linecache
import weakref
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from perspex import errors
from perspex.advice import suggest
from perspex.advice.story import (
    WAY,
    Argument,
    Card,
    Message,
    Remedy,
    Step,
    Story,
    remedy_lines,
    remember,
)
from perspex.base import source
from perspex.ir.jaxpr import Var
from perspex.tracing import past
from perspex.tracing.trace import Tracer, bottom, state

# The errors of operations about their operands.
ABOUT_OPERANDS = (TypeError, ValueError, IndexError)
# A way shows at most so many lines: half from its beginning, half from its end.
LINES_SHOWN = 12
_MOST_ARGUMENTS = 4
_LONGEST_LINE = 60
# In the place of a type, in the step of the line that failed.
NEEDED = "needed here"
# How general advice begins, in messages that were written without the user's line.
_GENERAL = "Remedy: "


def tell(tracer: Any, origin: str) -> str:
    """`origin` and, below it, the way of a tracer from the arguments.

    The story is remembered for the message that is composed next (`advice.story.recall`).
    """
    story = find_story(tracer, source.capture())
    text = "\n".join([origin, *told(story)])
    remember(text, story)
    return text


def told(story: Story) -> list[str]:
    """A way as lines of text; none where there is no step before the last."""
    if len(story.steps) < 2:
        return []
    rows = [
        (s.where, s.text, f"{s.operation} " if s.operation else "", s.kind) for s in story.steps
    ]
    first = max(len(row[0]) for row in rows)
    second = max(len(row[1]) for row in rows)
    lines = [
        f"  {where:<{first}}  {text:<{second}}  {operation}{kind}"
        for where, text, operation, kind in rows
    ]
    if story.left_out:
        more = f"  … {story.left_out} more line{'s' if story.left_out > 1 else ''}"
        lines.insert(len(lines) - LINES_SHOWN // 2, more)
    return [WAY, *lines]


def find_story(tracer: Any, needed: source.Source | None) -> Story:
    """The story of a tracer; `needed` is where it was asked for its value."""
    trace, walk = tracer._trace, _Walk()
    walk.go(tracer)
    arguments = walk.arguments
    lines = walk.lines()
    here = source.resolve(needed)
    if here is not None and (not lines or lines[-1].where != _where(here)):
        lines.append(Step(_where(here), line_text(here), "", NEEDED))
    left_out = max(0, len(lines) - LINES_SHOWN)
    if left_out:
        half = LINES_SHOWN // 2
        lines = [*lines[:half], *lines[-half:]]
    shown = [Step(f"argument of `{name}`", f"`{a.name}`", "", a.kind) for name, a in arguments]
    if len(shown) > _MOST_ARGUMENTS:
        more = len(shown) - _MOST_ARGUMENTS + 1
        shown[_MOST_ARGUMENTS - 1 :] = [Step("", f"and {more} more arguments", "", "")]
    return Story(
        trace.name,
        (*shown, *lines),
        left_out,
        tuple([argument for _, argument in arguments]),
        _jitted(trace, walk),
        tuple(dict.fromkeys([*walk.files(), *_own_file(trace)])),
        not walk.depends,
        any(getattr(around, "doing", "") == "differentiated" for around in _current_traces()),
        trace.writes,
    )


def _current_traces() -> Iterator[Any]:
    """The traces that are at work, from the innermost on."""
    trace: Any = state.trace
    while trace is not bottom():
        yield trace
        trace = trace.parent


def _own_file(trace: Any) -> list[str]:
    """The file of the function that is traced, where that is known."""
    function = getattr(trace.arg_names, "fun", None)
    code = getattr(inspect.unwrap(function), "__code__", None) if function else None
    return [code.co_filename] if code else []


def _where(frame: source.Frame) -> str:
    return source.summary(source.Source(None, 0, frame))


def explain(error: BaseException, tb: TracebackType | None) -> tuple[Card, str] | None:
    """A card, and its text, for an error about operands: shapes that do not fit, a traced length.

    `None` where the error did not come from an operation of ours on traced values, or where its
    message tells their story already.
    """
    frames = list(_frames(tb))
    last = max((i for i, at in enumerate(frames) if not _is_ours(at)), default=-1)
    if errors.card_of(error) is not None or last < 0 or last + 1 >= len(frames):
        return None
    user, called = frames[last], frames[last + 1].tb_frame
    needed = source.Source(user.tb_frame.f_code, user.tb_lasti)
    stories = [(x, find_story(x, needed)) for x in _operands(called)]
    if not stories:
        return None
    merged = dict.fromkeys([step for _, story in stories for step in story.steps])
    # The last line of each is the one that failed.
    steps = [step for step in merged if step.kind != NEEDED]
    steps += [step for step in merged if step.kind == NEEDED]
    lengths = [
        story for x, story in stories if not x.shape and getattr(x.dtype, "kind", "") in ("i", "u")
    ]
    remedy = suggest.at_operation(user.tb_frame, user.tb_lasti, lengths)
    story = Story("", tuple(steps), arguments=stories[0][1].arguments)
    way, lines = told(story), advised(error, remedy)
    if not way and not lines:
        return None
    headline, _, rest = str(error).partition("\n")
    if lines:
        rest = rest.partition(_GENERAL)[0].rstrip()
    card = Card(headline, "", rest, remedy, _where(needed.frame), story.steps)
    return card, "\n".join([*way, *lines])


def advised(error: BaseException, remedy: Remedy) -> list[str]:
    """A remedy as lines of text below the message of an error, which may have a general one."""
    lines = [line for line in remedy_lines(remedy) if line]
    if lines and _GENERAL in str(error):
        lines[0] = lines[0].replace(_GENERAL, "Here: ", 1)
    return lines


def annotate(error: Exception) -> None:
    """Give an error that leaves a function that is being traced the way of its operands.

    It becomes a note, which Python shows below the message wherever it shows the error: in scripts,
    in threads, in logs. Of nested traces the innermost sees most, so the first note stays.
    """
    if noted(error) is not None:
        return
    try:
        found = explain(error, error.__traceback__)
    except Exception:  # the error itself is what the user must see
        return
    if found is not None:
        card, text = found
        error.add_note(Message(text, card))


def noted(error: BaseException) -> Message | None:
    """The note of `annotate`, which has a card."""
    notes = getattr(error, "__notes__", ())
    return next((note for note in notes if isinstance(note, Message)), None)


def _frames(tb: TracebackType | None) -> Iterator[TracebackType]:
    while tb is not None:
        yield tb
        tb = tb.tb_next


def _is_ours(at: TracebackType) -> bool:
    return source.is_internal(at.tb_frame.f_code.co_filename)


def _operands(frame: FrameType) -> list[Any]:
    """The tracers with a story among the arguments that a function was called with."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[:count]
    given = [frame.f_locals.get(name) for name in names]
    if names[:1] == ("self",) and not isinstance(given[0], Tracer):
        # A method of ours, as `set` in `x.at[i].set(y)`.
        given[:1] = [getattr(given[0], name, None) for name in _slots(given[0])]
    found: dict[int, Any] = {}
    while given:
        x = given.pop(0)
        if isinstance(x, (list, tuple)):
            given = [*x, *given]
        elif isinstance(x, dict):
            given = [*x.values(), *given]
        elif isinstance(x, slice):
            given = [x.start, x.stop, x.step, *given]
        elif isinstance(x, Tracer):
            teller = _teller(x)
            if teller is not None:
                found[id(teller)] = teller
    return list(found.values())


def _slots(x: Any) -> Sequence[str]:
    """The attributes that an object of ours stores, found without computing anything."""
    slots = getattr(type(x), "__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _jitted(trace: Any, walk: _Walk) -> weakref.ref[Any] | None:
    """What jitted the function, if its arguments are given by nothing that traces.

    And if it is computed while no transform is at work: what that computes is traced in a `jit`,
    though it be of known numbers.
    """
    owner = getattr(trace.arg_names, "owner", None)
    only = walk.depth == 1 and trace.parent is bottom()
    only = only and (not walk.found or all(around.writes for around in _current_traces()))
    return weakref.ref(owner) if owner is not None and only else None


class _Passed(NamedTuple):
    """An operation on the way. Outer traces began first: theirs are those of the lowest `depth`."""

    depth: int
    order: int
    primitive: Any
    at: source.Source | None
    results: Sequence[Any]


class _Walk:
    """The shortest ways from a value back to the arguments that it depends on."""

    def __init__(self) -> None:
        self.arguments: list[tuple[str, Argument]] = []
        # How many traces it has been through.
        self.depth = 0
        # Whether there is something among the ends that may be another value next time.
        self.depends = False
        self.found: list[_Passed] = []

    def go(self, tracer: Any) -> None:
        """Walk back from a tracer, and on in the traces around its own."""
        depth = self.depth
        self.depth += 1
        if tracer._trace.writes:
            self._through_equations(tracer._trace, tracer._var, -depth)
        else:
            self._through_past(tracer._past, -depth)

    def _through_past(self, own: past.Past, depth: int) -> None:
        results, arguments = past.look_back([own])
        self.found += [_Passed(depth, r.order, r.primitive, r.at, [r.aval]) for r in results]
        self.depends |= bool(arguments) or any(r.primitive.takes_axis for r in results)
        for given in arguments:
            if given.arg_names is not None:
                name = given.arg_names[given.index].strip("`")
                self.arguments.append((given.arg_names.name, _argument(name, given.aval)))

    def _through_equations(self, trace: Any, var: Var, depth: int) -> None:
        made = {v: (i, eqn) for i, eqn in enumerate(trace.eqns) for v in eqn.outvars}

        def operands(at: Var) -> list[Var]:
            eqn = made[at][1] if at in made else None
            return [v for v in eqn.invars if isinstance(v, Var)] if eqn else []

        reader = past.readers([var], operands)
        ends = [v for v in reader if v not in made]
        arguments = [end for end in ends if end in trace.invars]
        outer = self._outer(trace, ends)
        # With no argument among its ends, the way of a value is all that leads to it.
        on_way = past.on_ways(reader, [*arguments, *[v for v, _ in outer]] or ends or [var])
        on_way[var] = None
        equations = {i: eqn for i, eqn in [made[v] for v in on_way.keys() & made.keys()]}
        self.found += [
            _Passed(depth, i, eqn.primitive, eqn.source, [v.aval for v in eqn.outvars])
            for i, eqn in equations.items()
        ]
        captured = [x for x, _, v in trace.captured.values() if v in ends]
        self.depends |= (
            bool(arguments)
            or any(isinstance(x, Tracer) for x in captured)
            or any(eqn.primitive.takes_axis for eqn in equations.values())
        )
        for end in sorted(arguments, key=trace.invars.index):
            index, names = trace.invars.index(end), trace.arg_names
            known = names and index < len(names)
            name = names[index].strip("`") if known else f"argument {index}"
            self.arguments.append((trace.name, _argument(name, end.aval)))
        for _, tracer in outer:
            self.go(tracer)

    def _outer(self, trace: Any, ends: Sequence[Var]) -> list[tuple[Var, Any]]:
        """The captured tracers among the ends of a walk, where they have a story."""
        found = []
        for captured, _, var in trace.captured.values():
            teller = _teller(captured) if isinstance(captured, Tracer) and var in ends else None
            if teller is not None:
                found.append((var, teller))
        return found

    def files(self) -> list[str]:
        """The files of the lines on the way."""
        frames = [source.resolve(passed.at) for passed in self.found]
        return [frame.file for frame in frames if frame is not None]

    def lines(self) -> list[Step]:
        """One step for each line, in the order in which they ran: outer traces began first."""
        steps: dict[tuple[str, int, str], Step] = {}
        for passed in sorted(self.found, key=lambda passed: passed[:2]):
            frame = source.resolve(passed.at)
            if frame is None:
                continue
            key = frame.file, frame.line, frame.function
            # A line that runs again moves to where its last operation is.
            steps.pop(key, None)
            steps[key] = Step(
                _where(frame), line_text(frame), str(passed.primitive), kind_of(passed.results)
            )
        return list(steps.values())


def _teller(tracer: Any) -> Any:
    """Of a tracer and those inside of it, the one that has a story; `None` if none has."""
    outermost = tracer
    while not tracer._trace.writes and hasattr(tracer, "_inner"):
        if not isinstance(tracer._inner, Tracer):
            return outermost if outermost._past is not past.UNKNOWN else None
        tracer = tracer._inner
    return tracer if tracer._trace.writes else None


def _argument(name: str, aval: Any) -> Argument:
    return Argument(
        name,
        kind_of([aval]),
        # A Python `bool` is no weaker than an array of booleans.
        is_number=not aval.shape and (aval.weak_type or aval.dtype == bool),
        is_whole=name.isidentifier(),
    )


def kind_of(avals: Sequence[Any]) -> str:
    """The type of a result as a step shows it."""
    first: str = avals[0].str_short(short_dtypes=False)
    return first if len(avals) == 1 else f"{first}, …"


def line_text(frame: source.Frame) -> str:
    """A line of the user's; if it is too long, the part around the operation."""
    line = linecache.getline(frame.file, frame.line)
    text = line.strip()
    if len(text) <= _LONGEST_LINE:
        return text
    column = len(line.encode()[: frame.column].decode(errors="ignore"))
    begin = column - (len(line) - len(line.lstrip())) - _LONGEST_LINE // 3
    begin = max(0, min(begin, len(text) - _LONGEST_LINE))
    cut = text[begin : begin + _LONGEST_LINE]
    before, after = "…" if begin else "", "…" if begin + _LONGEST_LINE < len(text) else ""
    return f"{before}{cut[len(before) : len(cut) - len(after)]}{after}"

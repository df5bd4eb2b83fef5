"""Where a traced value comes from: its way from the arguments through the user's lines.

Every equation of a trace knows its line, so the way is found by going back from a variable to the
equation that made it, and from its operands on. Nothing is noted for it while tracing: the walk
begins when an error asks. Of several ways from an argument the shortest is told, one step for each
line of the user's.
"""

from __future__ import annotations

import inspect
import linecache
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any

from perspex import errors, remedies, source
from perspex.jaxpr import JaxprEqn, Literal, Var
from perspex.remedies.story import (
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
from perspex.tracing import Tracer, bottom

# Of the lines on a way at most so many are shown: the first and the last half of them.
LINES_SHOWN = 12
_MOST_ARGUMENTS = 4
_LONGEST_LINE = 60
# In the place of a type, in the step of the line that failed.
NEEDED = "needed here"
# How general advice begins, in messages that were written without the user's line.
_GENERAL = "Remedy: "


def tell(trace: Any, tracer: Any, origin: str) -> str:
    """`origin` and, below it, the way of a staging trace's tracer from the arguments.

    The story is remembered for the message that is composed next (`remedies.story.recall`).
    """
    story = find_story(trace, tracer, source.capture())
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
        more = f"  … {story.left_out} line{'s' if story.left_out > 1 else ''} more"
        lines.insert(len(lines) - LINES_SHOWN // 2, more)
    return [WAY, *lines]


def find_story(trace: Any, tracer: Any, needed: source.Source | None) -> Story:
    """The story of a tracer of a staging trace; `needed` is where it was asked for its value."""
    walk = _Walk()
    walk.go(trace, tracer._var)
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
        shown[_MOST_ARGUMENTS - 1 :] = [Step("", f"and {more} arguments more", "", "")]
    return Story(
        trace.name,
        (*shown, *lines),
        left_out,
        tuple([argument for _, argument in arguments]),
        _jitted(trace, walk),
        tuple(dict.fromkeys([*walk.files(), *_own_file(trace)])),
    )


def _own_file(trace: Any) -> list[str]:
    """The file of the function that is traced, where that is known."""
    owner = getattr(trace.arg_names, "owner", None)
    function = getattr(owner, "fun", getattr(trace.arg_names, "f", None))
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
    stories = [(x, find_story(x._trace, x, needed)) for x in _operands(called)]
    if not stories:
        return None
    merged = dict.fromkeys([step for _, story in stories for step in story.steps])
    # The last line of each is the one that failed.
    steps = [step for step in merged if step.kind != NEEDED]
    steps += [step for step in merged if step.kind == NEEDED]
    lengths = [
        story for x, story in stories if not x.shape and getattr(x.dtype, "kind", "") in ("i", "u")
    ]
    remedy = remedies.at_operation(user.tb_frame, user.tb_lasti, lengths)
    story = Story("", tuple(steps), arguments=stories[0][1].arguments)
    way, lines = told(story), advice(error, remedy)
    if not way and not lines:
        return None
    headline, _, rest = str(error).partition("\n")
    if lines:
        rest = rest.partition(_GENERAL)[0].rstrip()
    card = Card(headline, "", rest, remedy, _where(needed.frame), story.steps)
    return card, "\n".join([*way, *lines])


def advice(error: BaseException, remedy: Remedy) -> list[str]:
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
    """The tracers of staging traces among the arguments that a function was called with."""
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
            inner = _innermost(x)
            if hasattr(inner._trace, "eqns"):
                found[id(inner)] = inner
    return list(found.values())


def _slots(x: Any) -> Sequence[str]:
    """The names of what an object of ours keeps; it computes nothing to be asked for them."""
    slots = getattr(type(x), "__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _jitted(trace: Any, walk: _Walk) -> weakref.ref[Any] | None:
    """What jitted the function, if its arguments are given by nothing that traces."""
    owner = getattr(trace.arg_names, "owner", None)
    only = len(walk.traces) == 1 and trace.parent is bottom()
    return weakref.ref(owner) if owner is not None and only else None


class _Walk:
    """The shortest ways from a variable back to the arguments that it depends on."""

    def __init__(self) -> None:
        self.arguments: list[tuple[str, Argument]] = []
        self.traces: list[Any] = []
        self._found: list[tuple[int, int, JaxprEqn]] = []

    def go(self, trace: Any, var: Var) -> None:
        """Walk back from a variable of a trace, and on in the traces around it."""
        depth = len(self.traces)
        self.traces.append(trace)
        made = {v: (i, eqn) for i, eqn in enumerate(trace.eqns) for v in eqn.outvars}
        # The line that reads each variable, on the shortest way from where the walk began.
        reader: dict[Var, Var | None] = {var: None}
        queue = deque([var])
        ends: list[Var] = []
        while queue:
            at = queue.popleft()
            if at not in made:
                ends.append(at)
                continue
            for operand in made[at][1].invars:
                if operand.__class__ is not Literal and operand not in reader:
                    reader[operand] = at
                    queue.append(operand)
        arguments = [end for end in ends if end in trace.invars]
        outer = self._outer(trace, ends)
        on_way: set[Var] = set()
        # With no argument among its ends, the way of a value is all that leads to it.
        for end in [*arguments, *[v for v, _ in outer]] or ends or [var]:
            at_: Var | None = end
            while at_ is not None and at_ not in on_way:
                on_way.add(at_)
                at_ = reader[at_]
        on_way.add(var)
        equations = {i: (-depth, i, eqn) for i, eqn in [made[v] for v in on_way & made.keys()]}
        self._found += equations.values()
        for end in sorted(arguments, key=trace.invars.index):
            self.arguments.append((trace.name, _argument(trace, end)))
        for _, tracer in outer:
            if hasattr(tracer._trace, "eqns"):
                self.go(tracer._trace, tracer._var)

    def _outer(self, trace: Any, ends: Sequence[Var]) -> list[tuple[Var, Any]]:
        """The captured tracers among the ends of a walk, down to those of staging traces."""
        found = []
        for captured, _, var in trace.captured.values():
            if isinstance(captured, Tracer) and var in ends:
                found.append((var, _innermost(captured)))
        return found

    def files(self) -> list[str]:
        """The files of the lines on the way."""
        frames = [source.resolve(eqn.source) for _, _, eqn in self._found]
        return [frame.file for frame in frames if frame is not None]

    def lines(self) -> list[Step]:
        """One step for each line, in the order in which they ran: outer traces began first."""
        steps: dict[tuple[str, int, str], Step] = {}
        for _, _, eqn in sorted(self._found, key=lambda found: found[:2]):
            frame = source.resolve(eqn.source)
            if frame is None:
                continue
            key = frame.file, frame.line, frame.function
            # A line that runs again moves to where its last operation is.
            steps.pop(key, None)
            steps[key] = Step(
                _where(frame),
                line_text(frame),
                str(eqn.primitive),
                kind_of(eqn.outvars),
            )
        return list(steps.values())


def _innermost(tracer: Any) -> Any:
    """The tracer inside of those of transforming traces."""
    while isinstance(inner := getattr(tracer, "primal", getattr(tracer, "value", None)), Tracer):
        tracer = inner
    return tracer


def _argument(trace: Any, var: Var) -> Argument:
    index = trace.invars.index(var)
    names = trace.arg_names
    name = names[index].strip("`") if names and index < len(names) else f"argument {index}"
    return Argument(
        name,
        kind_of([var]),
        is_number=not var.aval.shape and var.aval.weak_type,
        is_whole=name.isidentifier(),
    )


def kind_of(variables: Sequence[Var]) -> str:
    """The type of a result as a step shows it."""
    first = variables[0].aval.str_short(short_dtypes=False)
    return first if len(variables) == 1 else f"{first}, …"


def line_text(frame: source.Frame) -> str:
    """A line of the user's; of one that is too long to show, what is around the operation."""
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

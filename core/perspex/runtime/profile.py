"""Device time by line of the user's code, from jaxlib's profiler in this process.

XLA records the begin and end of each instruction of a program, by name. Two steps lead from an
instruction to a line: its name has the number of an operation of the module (`hlo.numbering`), and
the module, lowered once more, has the equation of each operation, and so its line. Times are right
even if the executable was first compiled for the same program in another place. Programs that no
user wrote (a single operation of the array namespace) count for the line of the call. Instructions
that XLA added (copies) count for the line of what they serve.

During a profile every call goes through Python, which notes its line and waits for it. So programs
run one at a time, and everything that the profiler records during a call belongs to that program.

On GPUs, XLA starts most kernels in graphs, whose parts the profiler cannot tell apart. What is
measured there is the same program without graphs.

On a CPU, an instruction's time runs from its begin to its end, whatever the number of threads that
worked on it. Instructions that overlap share the time of the overlap. If an instruction does the
work of several lines (a fusion, or a small loop that XLA compiled to one kernel), its time is split
by an estimate of their work; `shared` says how much time was split.
"""

from __future__ import annotations

import bisect
import contextlib
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from perspex import config
from perspex.base import events, source, xla
from perspex.hlo.instructions import Instructions, Share
from perspex.hlo.numbering import Origin, origins
from perspex.ir.jaxpr import ClosedJaxpr, sub_jaxprs
from perspex.runtime.kernels import Kernel, is_holding, is_move, owners
from perspex.runtime.measuring import Place as Place
from perspex.runtime.measuring import here

_MARK = "perspex call "
_END = "end: "
# Planes of accelerators; their line of instructions, or the statistic that names one.
_DEVICE, _OPERATIONS, _INSTRUCTION = "/device:", "XLA Ops", "hlo_op"
# Statistics of an event that tell which end belongs to which beginning.
_LINKS = ("_p", "_c")
_NANO = 1e-9
# At most so many calls are measured; later ones just run.
_MOST_RUNS = 100_000


@dataclass
class LineTime:
    """Seconds of device time of a line, and in how many runs of programs.

    `shared` is the part of them that was shared out between several lines by a guess.
    """

    seconds: float = 0.0
    shared: float = 0.0
    runs: int = 0


@dataclass
class ProgramTime:
    """What one executable took, in all its runs."""

    executable: Any
    runs: int = 0
    seconds: float = 0.0


@dataclass
class Profile:
    """What was measured: by line, and by program.

    `device` is all device time, `unplaced` the part of it that belongs to no line, `wall` the time
    that passed, `missed` the number of calls that were too many to be measured.
    """

    lines: dict[Place, LineTime] = field(default_factory=dict)
    programs: list[ProgramTime] = field(default_factory=list)
    device: float = 0.0
    unplaced: float = 0.0
    wall: float = 0.0
    missed: int = 0


class BusyError(RuntimeError):
    """Device time is being measured already."""


class _Run(NamedTuple):
    executable: Any
    at: source.Source | None


class Session:
    """A context in which device time is measured; afterwards `profile` says it.

    Only what the thread that entered runs is measured. One at a time in a process: `BusyError`
    where there is one already. `start` and `stop` do the same without a `with`.

    >>> import perspex, perspex.numpy as pnp
    >>> f = perspex.jit(lambda x: pnp.sin(x) @ x)
    >>> with Session() as session:
    ...     _ = f(pnp.ones((200, 200)))
    >>> found = session.profile()
    >>> found.programs[-1].executable.name, found.device > 0
    ('<lambda>', True)
    """

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._missed = 0
        self._data = b""
        self._wall = self._compiling = 0.0
        self._end = contextlib.ExitStack()

    def __enter__(self) -> Session:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Measure from here on what this thread runs."""
        with contextlib.ExitStack() as started:
            if not _one_at_a_time.acquire(blocking=False):
                raise BusyError("another cell is already measuring device time; wait until it ends")
            started.callback(_one_at_a_time.release)
            started.enter_context(config.profiling(True))
            here.session = self
            started.callback(vars(here).pop, "session", None)
            options = xla.ProfileOptions()
            options.python_tracer_level = 0
            options.enable_hlo_proto = False
            session = xla.ProfilerSession(options)
            start = time.perf_counter()

            def collect() -> None:
                self._wall = time.perf_counter() - start - self._compiling
                self._data = session.stop()

            started.callback(collect)
            self._end = started.pop_all()

    def stop(self) -> None:
        """Measure no more."""
        self._end.close()

    def call(self, executable: Any, ready: Callable[[], Callable[[Any], Any]], args: Any) -> Any:
        """Run a program alone, with a mark around it that the profiler sees.

        `ready` gives what runs it, and may have to compile it for that, which is no time of a cell.
        """
        start = time.perf_counter()
        run = ready()
        self._compiling += time.perf_counter() - start
        number = len(self._runs)
        if number >= _MOST_RUNS:
            self._missed += 1
            return run(args)
        self._runs.append(_Run(executable, source.capture()))
        with xla.TraceMe(f"{_MARK}{number}"):
            outs = run(args)
            for out in outs:
                array = out if out.__class__ is xla.ArrayImpl else out.base
                if not array.is_deleted():
                    array.block_until_ready()
        return outs

    def profile(self) -> Profile:
        """What was measured, after the context."""
        with events.unheard():  # programs are lowered again, to be looked at
            return self._read()

    def _read(self) -> Profile:
        found = Profile(wall=self._wall, missed=self._missed)
        programs: dict[int, Program] = {}
        totals: dict[int, ProgramTime] = {}
        for number, spans in _spans_by_run(self._data, self._runs, programs).items():
            executable, at = self._runs[number]
            program = programs[id(executable)]
            total = totals.get(id(executable))
            if total is None:
                total = totals[id(executable)] = ProgramTime(executable)
                found.programs.append(total)
            seconds = _own_times(spans)
            total.runs += 1
            total.seconds += sum([s for _, s, _ in seconds])
            _add_lines(found, program, at, seconds)
        found.device = sum([total.seconds for total in totals.values()])
        return found


_one_at_a_time = threading.Lock()


# ---- Reading what the profiler saw --------------------------------------------------------------


class _Span(NamedTuple):
    """An instruction from its begin to its end; several threads may have worked on it.

    `holds` says that it is a loop, a branch or a call, in which others are carried out.
    """

    start: float
    end: float
    name: str
    holds: bool


class Program:
    """An executable, to be looked up: its instructions, and the lines behind its operations."""

    def __init__(self, executable: Any) -> None:
        self.instructions = Instructions(
            "\n".join(m.to_string() for m in executable.measurable.xla.hlo_modules())
        )
        self.is_ours = executable.is_ours
        self._executable = executable
        self._lines: list[Place | None] | None = None  # by the numbers of equations
        self._origins: list[Origin] = []  # by the numbers of operations
        self._parts: dict[tuple[str, bool], list[tuple[Place | None, float]]] = {}

    def place(self, number: int | None, kind: str) -> Place | None:
        """The line of the operation of that number, for an instruction of a kind."""
        if self._lines is None:
            numbers: dict[Any, int] = {}
            self._lines = []
            _number(self._executable.closed, None, numbers, self._lines)
            made = self._executable.lowered_again(numbers, self._executable.is_watched)
            self._origins = origins(made.module.module)
        if number is None or number >= len(self._origins):
            return None
        equation = self._origins[number].of(kind)
        return None if equation is None else self._lines[equation]

    def parts(self, name: str, alone: bool) -> list[tuple[Place | None, float]]:
        """To which lines the time of an instruction goes, in parts of one.

        `alone` says that the profiler saw nothing inside of it.
        """
        found = self._parts.get((name, alone))
        if found is None:
            one = self.instructions.by_name.get(name)
            if one is None:  # a copy, for one, that the program does not speak of
                return [(None, 1.0)]
            shares = [Share(one.number, one.kind, 1.0)]
            if alone:
                shares = self.instructions.shares(name)
            by_place: dict[Place | None, float] = defaultdict(float)
            for number, kind, part in shares:
                by_place[self.place(number, kind)] += part
            if by_place.keys() == {None}:
                by_place = {self._served(name): 1.0}
            unplaced = by_place.pop(None, 0.0) if len(by_place) > 1 else 0.0
            found = [(place, part / (1.0 - unplaced)) for place, part in by_place.items()]
            self._parts[name, alone] = found
        return found

    def _served(self, name: str) -> Place | None:
        """The line that an instruction of XLA's serves, such as a copy of what a loop carries."""
        places = (self.place(one.number, one.kind) for one in self.instructions.around(name))
        return next((place for place in places if place is not None), None)


def _number(
    closed: ClosedJaxpr, around: Place | None, numbers: dict[Any, int], lines: list[Place | None]
) -> None:
    """Number the equations of a program and of those in it, each with its line."""
    for eqn in closed.eqns:
        frame = source.resolve(eqn.source)
        place = around if frame is None else Place(frame.file, frame.line)
        for key in eqn.outvars or (eqn,):
            numbers.setdefault(key, len(lines))
        lines.append(place)
        for sub in sub_jaxprs(eqn.params):
            _number(sub, place, numbers, lines)


class _Seen(NamedTuple):
    """An event of the profiler; `link` connects an instruction with its end."""

    time: float
    duration: float
    name: str
    thread: int
    link: int | None
    # What an accelerator did.
    kernel: Kernel | None = None


def _events(data: bytes) -> list[_Seen]:
    found: list[_Seen] = []
    with warnings.catch_warnings():
        # From jaxlib, when it makes the class of statistics; it aborts where that is an error.
        warnings.simplefilter("ignore", DeprecationWarning)
        for plane in xla.ProfileData.from_serialized_xspace(data).planes:
            if plane.name.startswith(_DEVICE):
                found += _kernels(plane)
                continue
            for thread, line in enumerate(plane.lines):
                for event in line.events:
                    name = event.name
                    if name.startswith("Threadpool"):
                        continue
                    links = [value for key, value in event.stats if key in _LINKS]
                    start, duration = event.start_ns * _NANO, event.duration_ns * _NANO
                    found.append(_Seen(start, duration, name, thread, links[0] if links else None))
    return found


def _kernels(plane: Any) -> Iterator[_Seen]:
    """What an accelerator carried out: kernels with what they say of their instructions.

    GPUs have a line for each of their streams, and name the instruction in a statistic; TPUs have a
    line of instructions. Other lines repeat these in sum.
    """
    lines = list(plane.lines)
    named = [line for line in lines if line.name == _OPERATIONS]
    for thread, line in enumerate(named or lines):
        for event in line.events:
            said = next((value for key, value in event.stats if key == _INSTRUCTION), "")
            if not (said or named) and is_move(event.name):
                continue  # a copy that is no instruction's
            one = str(event.name if named else said).partition(" = ")[0].removeprefix("%")
            start, duration = event.start_ns * _NANO, event.duration_ns * _NANO
            yield _Seen(start, duration, one, thread, None, Kernel(event.name, one))


def _spans_by_run(
    data: bytes, runs: Sequence[_Run], programs: dict[int, Program]
) -> dict[int, list[_Span]]:
    """The instructions that the profiler saw, by the run in which they were carried out."""
    marks: list[_Seen] = []
    begins: list[_Seen] = []
    ends: dict[int | None, _Seen] = {}
    for seen in _events(data):
        if seen.name.startswith(_MARK):
            marks.append(seen)
        elif seen.name.startswith(_END):
            ends[seen.link] = seen
        else:
            begins.append(seen)
    begins.sort(key=lambda seen: seen.time)
    marks.sort(key=lambda seen: seen.time)
    found: dict[int, list[_Span]] = {}
    at = 0
    for mark in marks:
        number = int(mark.name.removeprefix(_MARK))
        executable = runs[number].executable
        program = programs.get(id(executable))
        if program is None:
            program = programs[id(executable)] = Program(executable)
        known = program.instructions.by_name
        end = mark.time + mark.duration
        inside = []
        while at < len(begins) and begins[at].time < end:
            if begins[at].time >= mark.time:
                inside.append(begins[at])
            at += 1
        kernels = [one for one in inside if one.kernel is not None]
        if kernels:
            # What the host did meanwhile was to start them.
            found[number] = _of_kernels(kernels, program.instructions)
            continue
        inside = [one for one in inside if one.name in known]
        found[number] = _spans(inside, ends, end, program.instructions)
    return found


def _of_kernels(seen: Sequence[_Seen], program: Instructions) -> list[_Span]:
    """What an accelerator carried out in one run."""
    names = owners([one.kernel for one in seen if one.kernel is not None], program)
    return [
        _Span(one.time, one.time + one.duration, name, is_holding(program.by_name.get(name)))
        for one, name in zip(seen, names, strict=True)
    ]


def _spans(
    begins: Sequence[_Seen],
    ends: Mapping[int | None, _Seen],
    latest: float,
    instructions: Instructions,
) -> list[_Span]:
    """The instructions of one run, up to its end.

    The profiler's event lasts as long as the thread that began an instruction was busy with it. It
    is over when its end is noted, maybe by another thread, which took it to an end; but that thread
    first goes on with what waited for it, and notes the end after that.
    """
    by_thread: dict[int, list[float]] = defaultdict(list)
    for one in begins:
        by_thread[one.thread].append(one.time)
    all_threads = [one.time for one in begins]
    spans = []
    for one in begins:
        left = one.time + one.duration
        noted = ends.get(one.link)
        holds = is_holding(instructions.by_name[one.name])
        end = latest if noted is None else min(latest, noted.time)
        if not holds:
            # The profiler may have stopped before a late note; then any thread counts.
            times = all_threads if noted is None else by_thread[noted.thread]
            after = bisect.bisect_left(times, left)
            end = min([end, *times[after : after + 1]])
        spans.append(_Span(one.time, max(end, left), one.name, holds))
    return spans


def _own_times(spans: Sequence[_Span]) -> list[tuple[str, float, bool]]:
    """Each instruction with its own seconds, and whether nothing was seen inside of it.

    What is carried out at the same time shares that time. A loop's own time is that in which
    nothing in it is carried out.
    """
    ordered = sorted(spans, key=lambda span: (span.start, -span.end))
    # A call that XLA has made one kernel holds others in name only.
    holds = [
        span.holds and i + 1 < len(ordered) and ordered[i + 1].start < span.end
        for i, span in enumerate(ordered)
    ]
    changes = [(span.end, False, i) for i, span in enumerate(ordered)]
    changes += [(span.start, True, i) for i, span in enumerate(ordered)]
    changes.sort()
    own = [0.0] * len(ordered)
    working: dict[int, None] = {}
    holding: dict[int, None] = {}
    last = 0.0
    for now, begins, i in changes:
        if working:
            for j in working:
                own[j] += (now - last) / len(working)
        elif holding:
            own[next(reversed(holding))] += now - last
        last = now
        group = holding if holds[i] else working
        if begins:
            group[i] = None
        else:
            group.pop(i, None)  # what took no time ends before it begins
    return [(span.name, own[i], not holds[i]) for i, span in enumerate(ordered)]


def _add_lines(
    found: Profile,
    program: Program,
    at: source.Source | None,
    seconds: Sequence[tuple[str, float, bool]],
) -> None:
    """Add one run of a program, which the line `at` has called."""
    frame = source.resolve(at)
    caller = None if frame is None else Place(frame.file, frame.line)
    times: dict[Place | None, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for name, spent, alone in seconds:
        parts = [(caller, 1.0)] if program.is_ours else program.parts(name, alone)
        for place, part in parts:
            time_of_line = times[caller if place is None else place]
            time_of_line[0] += spent * part
            time_of_line[1] += spent * part if len(parts) > 1 else 0.0
    for place, (spent, shared) in times.items():
        if place is None:
            found.unplaced += spent
            continue
        line = found.lines.setdefault(place, LineTime())
        line.seconds += spent
        line.shared += shared
        line.runs += 1

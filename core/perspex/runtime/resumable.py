"""Calls that are made in turns: their loops return what they carry, and are entered again with it.

A program is cut at the loops that it has at its top, also in functions that it calls:

    equations, begin -> state        one program before each loop
    advance(state, limit) -> state   one program for each loop, run until the loop has ended
    equations -> results             one program after the last loop

`limit` is how many turns make up `_PERIOD`, by the time that the last ones took. So the state of
the loop is there many times a second, at the price of a dispatch: for who wants to see it, or keep
it, or stop the call and go on with it later. The program of the user stays as it was, and so do its
key and its derivatives: what is cut is what a call would run.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import config, tree
from perspex.base import source
from perspex.base.tree_paths import PyTree
from perspex.hlo.watched import COUNT
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from perspex.runtime import stopping, watching
from perspex.runtime.callbacks import wait
from perspex.runtime.executable import Executable, compile_lowered
from perspex.runtime.lowered import Lowered
from perspex.runtime.placement import Spread
from perspex.transforms.higher_order import HigherOrder, Turns
from perspex.transforms.programs import cut, partition

# Seconds of one program. A kernel that hears of an interrupt gives it a little more than this.
_PERIOD = 0.04
# The first programs make 1, 16, 256 ... turns, as nobody knows how long one takes.
_GROWTH = 16
_MOST = 2**31 - 1
# Seconds that an interrupt waits for the program that runs.
_PATIENCE = 0.25
_LOOK = 0.002

_LIMIT = Var(COUNT)


class Part(NamedTuple):
    """A program that is a part of another: what it reads and what it gives, variables of that."""

    closed: ClosedJaxpr
    reads: list[Var]
    gives: list[Any]
    donated: list[bool]


class Loop(NamedTuple):
    """A loop: its turns, the program that makes some, and the state of it as variables."""

    eqn: JaxprEqn
    turns: Turns
    part: Part
    state: list[Var]


class Plan(NamedTuple):
    """The parts of a program: one before each loop, and one after the last.

    `last` says after which part a variable is not read any more.
    """

    parts: list[Part]
    loops: list[Loop]
    last: dict[Var, int]


def _inlined(closed: ClosedJaxpr, operands: Sequence[Any]) -> tuple[list[JaxprEqn], list[Any]]:
    """The equations of a program without constants on other operands, and its results."""
    at: dict[Var, Any] = dict(zip(closed.jaxpr.invars, operands, strict=True))
    eqns = []
    for eqn in closed.eqns:
        outs = [Var(v.aval) for v in eqn.outvars]
        eqns.append(eqn.replace(invars=[_read(at, v) for v in eqn.invars], outvars=outs))
        at.update(zip(eqn.outvars, outs, strict=True))
    return eqns, [_read(at, v) for v in closed.jaxpr.outvars]


def _read(at: dict[Var, Any], v: Any) -> Any:
    return v if v.__class__ is Literal else at.get(v, v)


def _opened(eqns: Iterable[JaxprEqn], at: dict[Var, Any]) -> list[JaxprEqn]:
    """The equations, with those of called functions that have loops in place of the calls.

    `at` says which results stand for others then.
    """
    found: list[JaxprEqn] = []
    for eqn in eqns:
        eqn = eqn.replace(invars=[_read(at, v) for v in eqn.invars])
        primitive = eqn.primitive
        if primitive.is_call and primitive.may_take_long(eqn.params):
            inner, outs = _inlined(eqn.params["jaxpr"], eqn.invars)
            here: dict[Var, Any] = {}
            found += _opened(inner, here)
            at.update(zip(eqn.outvars, [_read(here, v) for v in outs], strict=True))
        else:
            found.append(eqn)
    return found


def _turns(eqn: JaxprEqn) -> Turns | None:
    primitive = eqn.primitive
    if not isinstance(primitive, HigherOrder) or not primitive.is_loop:
        return None
    return primitive.in_turns(eqn.params) if primitive.may_take_long(eqn.params) else None


def _free(eqns: Sequence[JaxprEqn], outs: Sequence[Any]) -> list[Var]:
    """The variables that equations and results read and do not bind, in order."""
    bound, found = set[Var](), dict[Var, None]()
    for eqn in eqns:
        found.update((v, None) for v in eqn.invars if v.__class__ is Var and v not in bound)
        bound.update(eqn.outvars)
    found.update((v, None) for v in outs if v.__class__ is Var and v not in bound)
    return list(found)


class _Planning:
    """How a program is cut."""

    def __init__(self, closed: ClosedJaxpr) -> None:
        self.jaxpr = closed.jaxpr
        self.values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))

    def part(
        self,
        eqns: Sequence[JaxprEqn],
        outs: Sequence[Any],
        name: str,
        extra: Sequence[Var] = (),
        donated: Sequence[Var] = (),
    ) -> Part:
        """The program of some equations; `extra` are its last arguments."""
        free = [v for v in _free(eqns, outs) if v not in extra]
        reads, consts = partition(free, [v in self.values for v in free])
        invars = [*reads, *extra]
        jaxpr = Jaxpr(consts, invars, outs, eqns, name)
        closed = ClosedJaxpr(jaxpr, [self.values[v] for v in consts])
        return Part(closed, invars, list(outs), [v in donated for v in invars])

    def plan(self) -> Plan | None:
        """The parts; `None` if there is no loop to enter again."""
        at: dict[Var, Any] = {}
        eqns = _opened(self.jaxpr.eqns, at)
        results = [_read(at, v) for v in self.jaxpr.outvars]
        groups: list[list[JaxprEqn]] = [[]]
        found: list[tuple[JaxprEqn, Turns]] = []
        for eqn in eqns:
            turns = _turns(eqn)
            if turns is None:
                groups[-1].append(eqn)
            else:
                found.append((eqn, turns))
                groups.append([])
        if not found:
            return None
        parts: list[Part] = []
        loops: list[Loop] = []
        # What is read after each group, by its loop among others.
        needed = [_free(groups[-1], results)]
        for group, (eqn, _) in zip(groups[-2::-1], found[::-1], strict=True):
            after = [v for v in needed[-1] if v not in eqn.outvars]
            needed.append(_free([*group, eqn], after))
        needed = needed[::-1][1:]
        for group, (eqn, turns), later in zip(groups, found, needed, strict=False):
            begins, state = _inlined(turns.begin, eqn.invars)
            fixed, _ = partition(eqn.invars, [not flag for flag in turns.fixed])
            made = {v for other in group for v in other.outvars}
            keeps = [v for v in dict.fromkeys([*fixed, *later]) if v in made]
            # Each turn of the loop replaces the state, which is nobody else's then.
            mine = [Var(x.aval) for x in state]
            part = self.part([*group, *begins], [*keeps, *state], "begin")
            parts.append(part._replace(gives=[*keeps, *mine]))
            turning, outs = _inlined(turns.advance, [*fixed, *mine, _LIMIT])
            advance = self.part(turning, outs, "turns", [*mine, _LIMIT], mine)
            loops.append(Loop(eqn, turns, advance, mine))
        # What loops gave is handed on as it is.
        of_loops = {v for eqn, _ in found for v in eqn.outvars}
        own = [v for v in results if v in of_loops]
        parts.append(self.part(groups[-1], results, "end", donated=own))
        last: dict[Var, int] = {}
        for i, part in enumerate(parts):
            last.update(dict.fromkeys(part.reads, i))
            if i < len(loops):
                last.update(dict.fromkeys(loops[i].part.reads, i))
        return Plan(parts, loops, last)


class Cut:
    """A program in parts, and the executables of these, as they are needed."""

    def __init__(self, of: Executable, plan: Plan) -> None:
        self.plan = plan
        self.name, self.program_name = of.name, of.program_name
        self.place, self.committed, self.options = of.place, of.committed, of.compiler_options
        self.known: dict[tuple[int, bool], Executable] = {}

    def executable(self, part: Part) -> Executable:
        key = id(part.closed), stopping.are_wanted()
        found = self.known.get(key)
        if found is None:
            lowered = Lowered(
                part.closed,
                self.name,
                self.place,
                committed=self.committed,
                donated=part.donated,
                keep_unused=True,
                is_ours=True,
                watched=key[1],
                program_name=f"{self.program_name}_{part.closed.jaxpr.name}",
            )
            found = self.known[key] = compile_lowered(lowered, self.options)
        return found


# By executable: each is cut once, and the programs of its parts live as long.
_plans: weakref.WeakKeyDictionary[Executable, Cut | None] = weakref.WeakKeyDictionary()


def cut_of(executable: Executable) -> Cut | None:
    """The parts of a program; `None` if it is to be run as it is."""
    if executable not in _plans:
        plan = None
        if executable.place.__class__ is not Spread:
            plan = _Planning(executable.closed).plan()
        _plans[executable] = None if plan is None else Cut(executable, plan)
    return _plans[executable]


class Moment:
    """What a loop has done by now.

    `program` is the function that was called, `at` the line of the loop, `loop` its number among
    the `loops` of the call, from 1 on. It has made `turn` turns of `turns`, or of a number that is
    not known (`None`), and took `seconds` for them.
    """

    __slots__ = ("_run", "_version", "at", "loop", "loops", "program", "seconds", "turn", "turns")

    def __init__(self, run: Run) -> None:
        loops = run.cut.plan.loops
        self.loop, self.loops = min(run.place + 1, len(loops)), len(loops)
        loop = loops[self.loop - 1]
        self._run, self._version = run, run.version
        self.program, self.at = run.cut.name, source.summary(loop.eqn.source)
        self.turn, self.turns = run.turn, loop.turns.length
        self.seconds = run.spent

    def _still(self) -> Run:
        if self._run.version != self._version:
            raise RuntimeError(
                f"the loop of `{self.program}` has gone on since turn {self.turn:,}, in the memory "
                "of its values; read them in the function that watch_loops calls"
            )
        return self._run

    @property
    def values(self) -> list[Any]:
        """Copies of what the loop carries: the arrays in the order of the carry, and rows of ys.

        Rows that a scan has not reached are zero.
        """
        return [x.copy() for x in self._still().of_loop()]

    @property
    def result(self) -> PyTree:
        """What the call would return if the loop ended here, with `None` for what comes later."""
        return self._still().result()

    def __repr__(self) -> str:
        of = "" if self.turns is None else f" of {self.turns:,}"
        return f"Moment({self.program}, turn {self.turn:,}{of} of the loop at {self.at})"


class Run:
    """One call that is made in turns."""

    def __init__(self, executable: Executable, cut: Cut, args: Sequence[Any]) -> None:
        self.cut = cut
        self.out_tree = executable.out_tree
        self.values: dict[Var, Any] = dict(zip(executable.closed.invars, args, strict=True))
        # Arguments that the call takes along: they go with the last part that reads them.
        self.donated = [
            x
            for x, flag in zip(args, executable.donated, strict=True)
            if flag and hasattr(x, "delete")
        ]
        # The loop, the turns that it has made, and how many it is to make next.
        self.place, self.turn, self.limit = 0, 0, 1
        # What it carries by now; `None` before it has begun. `version` counts them.
        self.state: list[Any] | None = None
        self.version = 0
        # What the program that runs has given, as soon as it has.
        self.given: list[list[Any]] = []
        # Seconds in the turns of this loop.
        self.spent = 0.0

    def go(self, look: Callable[[Run], object]) -> list[Any]:
        """Go on to the end; returns the results. `look` is called after each program of turns."""
        plan, me = self.cut.plan, threading.get_ident()
        outer = watching.running.get(me)
        watching.running[me] = self
        try:
            while self.place < len(plan.loops):
                loop = plan.loops[self.place]
                if self.state is None:
                    self._begin(plan.parts[self.place], loop)
                while self._advance(loop):
                    look(self)
                self._leave(loop)
            outs = self._call(plan.parts[-1], ())
        except BaseException:
            self._settle()
            raise
        finally:
            if outer is None:
                watching.running.pop(me, None)
            else:
                watching.running[me] = outer
        for x in self.donated:
            x.delete()
        return outs

    def of_loop(self) -> list[Any]:
        """The values of the loop: those of its results, where it has begun."""
        if self.state is None:
            return []
        loop = self.cut.plan.loops[self.place]
        return self.state[len(self.state) - len(loop.eqn.outvars) :]

    def result(self) -> PyTree:
        """The results as far as they are there, in memory of their own."""
        known = dict(self.values)
        if self.state is not None:
            eqn = self.cut.plan.loops[self.place].eqn
            known.update(zip(eqn.outvars, self.of_loop(), strict=True))
        found = [
            v.val if v.__class__ is Literal else self._copy(known.get(v))
            for v in self.cut.plan.parts[-1].gives
        ]
        return found if self.out_tree is None else tree.unflatten(self.out_tree, found)

    def _copy(self, x: Any) -> Any:
        is_gone = getattr(x, "is_deleted", bool)() or stopping.reason(x)
        return None if is_gone or x is None else x.copy()

    def _call(self, part: Part, extra: Sequence[Any]) -> list[Any]:
        reads = part.reads[: len(part.reads) - len(extra)]
        given = [*[self.values[v] for v in reads], *extra]
        executable = self.cut.executable(part)
        with watching.kept_in(self.given):
            return executable.run(given)

    def _begin(self, part: Part, loop: Loop) -> None:
        outs = self._call(part, ())
        kept, state = cut(outs, len(outs) - len(loop.state))
        self.values.update(zip(part.gives, kept, strict=False))
        self.turn, self.limit, self.spent = loop.turns.left, 1, 0.0
        self.given.clear()
        self.state = state
        self.version += 1

    def _advance(self, loop: Loop) -> bool:
        """Make some turns; whether there may be more."""
        assert self.state is not None
        start = time.perf_counter()
        outs = self._call(loop.part, [*self.state, np.asarray(self.limit, np.int32)])
        wait(outs[-1].block_until_ready)
        number = self._take(loop, outs)
        took = max(time.perf_counter() - start, 1e-9)
        self.spent += took
        has_ended = number < self.limit or self.turn == loop.turns.length
        self.limit = max(1, min(int(number * _PERIOD / took), self.limit * _GROWTH, _MOST))
        return not has_ended

    def _take(self, loop: Loop, outs: Sequence[Any]) -> int:
        """Count the turns that were made, and keep what they gave."""
        number = int(outs[-1])
        self.given.clear()
        self.state, self.turn = list(outs[:-1]), self.turn + number * loop.turns.steps
        self.version += 1
        return number

    def _leave(self, loop: Loop) -> None:
        """The loop has ended: its results are values like others, and what nobody reads goes."""
        plan = self.cut.plan
        self.values.update(zip(loop.eqn.outvars, self.of_loop(), strict=True))
        results = plan.parts[-1].gives
        for v in [v for v in self.values if plan.last.get(v, -1) <= self.place]:
            if v not in results:
                x = self.values.pop(v)
                if any(x is y for y in self.donated):
                    x.delete()
        self.state = None
        self.place += 1

    def _settle(self) -> None:
        """The call has been left: wait for the turns that are being made, if they end soon."""
        if self.state is None or not self.given:
            return
        loop = self.cut.plan.loops[self.place]
        (outs,) = self.given
        end = time.monotonic() + _PATIENCE
        while not (outs[-1].is_deleted() or outs[-1].is_ready()):
            if time.monotonic() > end:
                return
            time.sleep(_LOOK)
        if not (outs[-1].is_deleted() or stopping.reason(outs[-1])):
            executable = self.cut.executable(loop.part)
            self._take(loop, executable.typed(outs))


class LoopWatch:
    """A context in which calls of compiled programs with long loops are made in turns.

    `moment` is the last `Moment` of a call in it.
    """

    def __init__(self, report: Callable[[Moment], object] | None, every: float) -> None:
        self.report, self.every = report, every
        self.moment: Moment | None = None
        self._left: Run | None = None
        self._told = 0.0
        self._end = contextlib.ExitStack()

    def __enter__(self) -> LoopWatch:
        with contextlib.ExitStack() as started:
            started.enter_context(config.profiling(True))
            started.callback(setattr, watching.here, "watch", watching.innermost())
            watching.here.watch = self
            self._end = started.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        self._end.close()

    def run(self, executable: Executable, args: Sequence[Any]) -> list[Any] | None:
        """The results of a call; `None` if it has no loop to watch."""
        parts = cut_of(executable)
        return None if parts is None else self._go(Run(executable, parts, args))

    def resume(self) -> PyTree:
        """Go on with the call that an interrupt or an error has ended; returns its results.

        `RuntimeError` if there is none, or if what its loop carried was lost.
        """
        run, self._left = self._left, None
        if run is None:
            raise RuntimeError("no call of a loop was ended here: there is nothing to go on with")
        count = len(run.cut.plan.parts[-1].gives)
        if run.out_tree is not None and run.out_tree.num_leaves != count:
            raise RuntimeError(
                f"`{run.cut.name}` writes into refs, and cannot go on; call it again"
            )
        if run.state is not None and any(x.is_deleted() for x in run.state):
            raise RuntimeError(
                f"what the loop of `{run.cut.name}` carried was not there when it was interrupted; "
                "call the function again"
            )
        outs = self._go(run)
        return outs if run.out_tree is None else tree.unflatten(run.out_tree, outs)

    def _go(self, run: Run) -> list[Any]:
        self._told = time.perf_counter()
        watching.stopped.clear()
        try:
            return run.go(self._look)
        except BaseException as error:
            self._left = run
            if isinstance(error, KeyboardInterrupt):
                watching.stopped[:] = [run]
            raise
        finally:
            self.moment = Moment(run)

    def _look(self, run: Run) -> None:
        now = time.perf_counter()
        if now - self._told < self.every:
            return
        self._told, self.moment = now, Moment(run)
        if self.report is not None:
            watching.here.watch = None  # what it calls is not watched
            try:
                self.report(self.moment)
            finally:
                watching.here.watch = self

"""Ending programs that run: the pages that watched loops read, and what becomes of their results.

Each program with a loop that is worth watching has a page among its arguments (`hlo.watched`).
`stop` writes into the page of now, and each loop that reads it ends after the turn that it is in.
A page that was written to is never used again. The next calls get another, because the number of
the page is part of what C++ tells calls apart by: a repeated call goes through Python once, and
finds its executable there. So nothing has to be reset, and no program can miss a stop or get one
that was meant for another. One thread can be stopped, that of a notebook's cells (`enable`). The
programs of other threads read a page that nobody writes to.

What a stopped program returns is not what it computes, and neither is anything that was computed
from it. So every array that was not there when the page was written is given up: reading it is an
error that says why. The exception is the state of a loop. Where a program returns what a loop of
its own returns, that is a value of the loop at a turn, and is kept as such (`Stopped.value`).

Programs that run are seen by the memory of the page: XLA holds it until the last of them has ended.
"""

from __future__ import annotations

import itertools
import operator
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import config, tree
from perspex.base import xla
from perspex.hlo.watched import PAGE, SIZE
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal, sub_jaxprs
from perspex.runtime import client, interruptible

# Seconds for which programs may still end by themselves before they are stopped, for which a
# stopped one is waited for, and between two looks.
GRACE, PATIENCE, _LOOK = 0.1, 0.1, 0.002
# Seconds until XLA lets go of the memory of a program that has ended.
_LAG = 0.01
# So many times the grace, it is watched whether a queue moves.
_MOST = 2.5
# XLA takes the memory of a processor as it is where it begins at a multiple of so many bytes.
_ALIGNED = 64


class Page:
    """The memory that the watched loops of all devices read, until it is written to."""

    def __init__(self) -> None:
        count = SIZE + _ALIGNED // PAGE.dtype.itemsize
        memory = np.zeros(count, PAGE.dtype)
        first = -memory.ctypes.data % _ALIGNED // PAGE.dtype.itemsize
        self.memory = memory[first : first + SIZE]
        self.arrays: dict[Any, Any] = {}
        # XLA holds such a view for as long as a program may read it.
        self.views: list[weakref.ref[np.ndarray]] = []

    def on(self, device: Any) -> Any:
        """The page as an array on a device."""
        found = self.arrays.get(device)
        if found is None:
            view = np.ndarray(SIZE, PAGE.dtype, self.memory)
            self.views.append(weakref.ref(view))
            found = xla.batched_device_put(
                PAGE, client.sharding(device), [view], [device], False, enable_x64=True
            )
            client.unlisted.add(id(found))
            self.arrays[device] = found
        return found

    def close(self) -> None:
        """Leave the page to the programs that run.

        Later, where a call of one has not returned in the thread that an interrupt has left it
        to: deleting an argument waits for the call, and the call for Python, which this holds.
        """
        if any(not work.kind for work in interruptible.left):
            _unclosed.append(self)
            return
        for array in self.arrays.values():
            client.unlisted.discard(id(array))
            array.delete()
        self.arrays.clear()

    def is_read(self) -> bool:
        """Whether a program that reads it still runs, once it has been closed."""
        xla.release_garbage()
        return any(view() is not None for view in self.views)


class Stopped(NamedTuple):
    """A program whose loop was stopped.

    `value` is what it returned: the values of its loop after the last turn that was made.
    Where it returns something else, that is `None`. A program with several loops `is_mixed`: more
    than one may have been stopped, inner ones in the middle of a turn of the outer one.
    """

    name: str
    value: Any
    is_mixed: bool = False


class Outcome(NamedTuple):
    """What `stop` has done.

    `programs` were stopped and have a value; `given_up` are arrays that have none any more, and
    `twins` stand for those of them whose computation goes on, by place in `given_up`.
    `is_draining`: programs were left to end by themselves, because one after the other did.
    """

    programs: tuple[Stopped, ...] = ()
    given_up: tuple[Any, ...] = ()
    twins: tuple[Any, ...] = ()
    is_draining: bool = False
    is_stopped: bool = False


_lock = threading.RLock()
_page, _numbers = Page(), itertools.count(1)
# That of threads whose programs nobody stops.
_others = Page()
# Those that were left while a call had not returned.
_unclosed: list[Page] = []
# Executables by the identity of the shardings of their results, each of which is its own.
_makers: dict[int, tuple[weakref.ref[Any], int]] = {}
# Watched executables that were run in this cell, as `jit(f)(x)` may leave nothing else of one.
_run: deque[Any] = deque(maxlen=32)
# Results of so many bytes are held while they are computed.
_SMALL = 2**24
# Why an array was given up, by its identity.
reasons: dict[int, tuple[weakref.ref[Any], str]] = {}


# Arrays that were given up and are not computed yet. C++ repeats no call while there are some.
pending: list[Any] = []
# The arrays that were there when `halt` wrote into the page, until `settle`.
_halted: list[Any] | None = None


def are_wanted() -> bool:
    """Whether programs are to be compiled so that they can be stopped."""
    return config.stoppable_loops.value is True


def enable() -> None:
    """Make this thread the one whose programs are stopped: that of a notebook's cells."""
    if not config.stops.value:
        config.stops.cell.set_local(next(_numbers))


def keep(executable: Any) -> None:
    """Keep a watched executable that runs until `release`, so that a loop's state has a name."""
    if config.stops.value:
        _run.append(executable)


def release() -> None:
    """A cell has ended: nothing of it is stopped any more."""
    _run.clear()
    client.held.clear()


def page(device: Any) -> Any:
    """What a watched program on a device is called with in this thread, here and now."""
    return (_page if config.stops.value else _others).on(device)


def launched(
    program: Any, buffers: Sequence[Any], handlers: Sequence[Any], kept: list[Any] | None
) -> list[Any]:
    """The results of a program of XLA's, without a step of Python from its run to the arrays.

    So an interrupt that comes while a program runs in the call finds them, and keeps them. `kept`
    has them before it can come.
    """
    consume = operator.methodcaller("consume_with_handlers", handlers)
    found = map(consume, map(program.execute_sharded, (buffers,)))
    if kept is not None:
        kept.extend(found)
        return kept[-1]
    if not config.stops.value:
        return next(found)
    # `float(jit(f)(x)[0])` holds what is computed from a result, and not the result.
    started: list[list[Any]] = []
    client.held.append(started)
    started.extend(found)
    results = started[-1]
    if sum([x.nbytes for x in results]) > _SMALL:
        client.held.clear()
    return results


def own_shardings(executable: Any, count: int, tokens: int) -> list[Any]:
    """Shardings for the results of an executable, by which `stop` recognizes them.

    The first results are `tokens`.
    """
    made = [xla.SingleDeviceSharding(executable.device) for _ in range(count)]
    this = weakref.ref(executable)
    for i, sharding in enumerate(made[tokens:]):
        _makers[id(sharding)] = this, i
    # A result that lives longer keeps its sharding, so that no other has its identity.
    weakref.finalize(executable, _forget, [id(sharding) for sharding in made])
    return made


def _forget(numbers: Sequence[int]) -> None:
    for number in numbers:
        _makers.pop(number, None)


def maker(array: Any) -> tuple[Any, int] | None:
    """The watched executable that an array is a result of, and which of them."""
    found = _makers.get(id(xla.sharding_of(array)))
    executable = None if found is None else found[0]()
    return None if found is None or executable is None else (executable, found[1])


def states(jaxpr: Jaxpr, given: Sequence[bool] = ()) -> list[bool]:
    """Which results of a program are those of a loop in it, or in a call or branch of it.

    `given` says the same of its operands.
    """
    of_loops: set[Any] = set(itertools.compress(jaxpr.invars, given))
    for eqn in jaxpr.eqns:
        primitive: Any = eqn.primitive
        if getattr(primitive, "is_loop", False):
            of_loops.update(eqn.outvars)
        elif primitive.higher_order and (programs := primitive.alternatives(eqn.params)):
            found = [_states_of(closed.jaxpr, eqn.invars, of_loops) for closed in programs]
            of_loops.update(
                v
                for v, *each in zip(eqn.outvars, *found, strict=True)
                if all(is_kept for _, is_kept in each) and any(is_state for is_state, _ in each)
            )
    return [v.__class__ is not Literal and v in of_loops for v in jaxpr.outvars]


def _states_of(
    jaxpr: Jaxpr, operands: Sequence[Any], of_loops: set[Any]
) -> list[tuple[bool, bool]]:
    """Of each result of a call: whether it is a loop's, and whether it is that or not computed."""
    own = operands[len(operands) - len(jaxpr.invars) :]  # behind the index of a branch
    found = states(jaxpr, [v.__class__ is not Literal and v in of_loops for v in own])
    whole = {*jaxpr.invars}
    return [
        (is_state, is_state or v.__class__ is Literal or v in whole)
        for is_state, v in zip(found, jaxpr.outvars, strict=True)
    ]


def reason(array: Any) -> str | None:
    """Why an array has been given up, if `stop` has done that."""
    found = reasons.get(id(array))
    return None if found is None or found[0]() is not array else found[1]


def unready() -> list[Any]:
    """The arrays that are not computed yet, oldest first."""
    return [
        x for x in reversed(client.live_arrays()) if x.aval is not None and not client.is_there(x)
    ]


def stop(grace: float = GRACE, what: str = "its program") -> Outcome:
    """Stop all programs that run and have watched loops, and give their results up.

    Programs that end within `grace` seconds are left alone, and so is a queue in which one after
    the other ends: its results may be all that there is of a long computation. `what` was
    interrupted, for the errors. To be called in the thread that was interrupted.
    """
    with _lock:
        left, is_moving = _after(unready(), grace)
        if is_moving:
            return Outcome(is_draining=bool(left))
        old = _turn_page()
        if old is None:
            return Outcome()
        old.close()
        end = time.monotonic() + _LAG
        while old.is_read():
            if time.monotonic() > end:
                break
            time.sleep(_LOOK)
        else:
            return Outcome()
        # Now: once the page is written to, what is there may be of a loop that was stopped.
        left = [x for x in left if not client.is_there(x)]
        old.memory[:] = 1
        return _given_up(left, what)


def halt() -> None:
    """Stop the same from another thread, while the one that can be stopped is in C++.

    That one calls `settle` as soon as it sees the interrupt.
    """
    global _halted
    with _lock:
        if _halted is None and _page.arrays:
            _halted = [x for x in client.live_arrays() if client.is_there(x)]
            _page.memory[:] = 1


def settle(what: str) -> Outcome | None:
    """Give up the results of what `halt` has stopped, before anyone sees them."""
    global _halted
    with _lock:
        if _halted is None:
            return None
        known, _halted = set(map(id, _halted)), None
        held = list(client.held)  # `live_arrays` lets go of results that are there
        old = _turn_page()
        if old is not None:
            old.close()
        # Of the arrays that have come since and are there, those of loops.
        new = [
            x for x in reversed(client.live_arrays()) if id(x) not in known and x.aval is not None
        ]
        del held
        return _given_up([x for x in new if not client.is_there(x) or maker(x)], what)


def _turn_page() -> Page | None:
    """The page of until now, if a program may read it; from here on there is another."""
    global _page
    old = _page
    if not old.arrays:
        return None
    _page = Page()
    config.stops.cell.set_local(next(_numbers))
    return old


def _given_up(arrays: Sequence[Any], what: str) -> Outcome:
    """Take arrays their values, after a page has been written to."""
    end = time.monotonic() + PATIENCE
    programs = _values(arrays)
    twins = tuple(map(_copy, arrays))
    for x in arrays:
        _say_why(x, what)
    pending.extend(arrays)
    while drop() and time.monotonic() < end:
        time.sleep(_LOOK)
    return Outcome(programs, tuple(arrays), twins, is_stopped=True)


def drop() -> bool:
    """Delete arrays that were given up and are computed by now; whether some are not.

    Not before: another thread may wait for one, and would be left in C++ for ever.
    """
    if not _unclosed and not pending:
        return False
    with _lock:
        unclosed = _unclosed[:]
        _unclosed.clear()
        for one in unclosed:
            one.close()
        for x in pending:
            if not x.is_deleted() and x.is_ready():
                x.delete()
        pending[:] = [x for x in pending if not x.is_deleted()]
        return bool(pending)


def _after(arrays: Sequence[Any], grace: float) -> tuple[list[Any], bool]:
    """Those of the arrays that are not there after some time, and whether they are on their way.

    They are as long as one of them is there in every `grace` seconds.
    """
    left, start = list(arrays), time.monotonic()
    last = start
    while left:
        now = time.monotonic()
        if now - last >= grace:
            return left, False
        if now - start >= _MOST * grace:
            return left, True
        time.sleep(_LOOK)
        before, left = len(left), [x for x in left if not client.is_there(x)]
        if len(left) < before:
            last = time.monotonic()
    return left, bool(arrays)


def _values(arrays: Sequence[Any]) -> tuple[Stopped, ...]:
    """The values of loops among arrays, those of the oldest call of each program."""
    found: dict[Any, dict[int, list[Any]]] = {}
    for x in arrays:
        made = maker(x)
        if made is not None and made[0].states[made[1]]:
            found.setdefault(made[0], {}).setdefault(made[1], []).append(x)
    return tuple(
        [
            Stopped(made.name, _result(made, of), _loops_in(made.closed) > 1)
            for made, of in found.items()
        ]
    )


def _loops_in(closed: ClosedJaxpr) -> int:
    """How many loops a run of a program may stop in."""
    count = 0
    for eqn in closed.eqns:
        primitive: Any = eqn.primitive
        if primitive.higher_order and primitive.may_take_long(eqn.params):
            branches = primitive.alternatives(eqn.params)
            each = [_loops_in(program) for program in branches or sub_jaxprs(eqn.params)]
            count += (max(each) if branches else sum(each)) + primitive.is_loop
    return count


def _result(executable: Any, found: dict[int, list[Any]]) -> Any:
    calls = max(map(len, found.values()))
    # One of which there are fewer is of a later call: that of the oldest is gone.
    leaves = [
        _copy(found[i][0]) if len(found.get(i, ())) == calls else None
        for i in range(len(executable.states))
    ]
    structure = executable.out_tree
    return leaves if structure is None else tree.unflatten(structure, leaves)


def _copy(x: Any) -> Any:
    """What an array will hold, as another array."""
    device = xla.device_of(xla.sharding_of(x))
    lies = client.sharding(device)
    return xla.batched_copy([x], [client.device_list(device)], [lies], [xla.ALWAYS_COPY])[0]


def _say_why(x: Any, what: str) -> None:
    number = id(x)

    def forget(_: object) -> None:
        reasons.pop(number, None)

    text = (
        f"Array of type {x.aval.str_short(short_dtypes=False)} has no value: it was not computed "
        f"when {what} was interrupted, which stopped the program behind it. Run what makes it again"
    )
    reasons[number] = weakref.ref(x, forget), text

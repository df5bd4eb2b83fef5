"""The time of a compiled function, stage by stage and call by call.

A compiled call returns before the device is done, so a clock around the call alone measures little.
Here each call is followed by waiting for its results, and both parts are kept: `call` is the time
until Python has the arrays, `wait` the time from then on until they are computed. On a
CPU small programs run within the call. The first calls, which compile and warm caches up, are
apart; `queued` is what one call takes when many are handed over before anybody waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from perspex import tree
from perspex.api.jit import jit
from perspex.api.waiting import block_until_ready
from perspex.base import events
from perspex.runtime.array import ArrayImpl
from perspex_magics.display.markup import shortened
from perspex_magics.display.table import Column, Report, Table
from perspex_magics.display.units import duration, many

_WARM_UP = 3
_FEWEST = 5
_MOST = 5_000
# A queue of so many calls at most, and so much of the time budget.
_MOST_QUEUED = 200
_PART_QUEUED = 0.2
_STAGES = ("trace", "lower", "compile")
_QUANTILES = {"min": 0.0, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "95 %": 0.95, "max": 1.0}
_STAGE_COLUMNS = (
    Column("stage"),
    Column("seconds", write=duration, is_number=True),
    Column("note"),
)
_RUN_COLUMNS = (
    Column("part"),
    *(Column(name, name, duration, is_number=True) for name in _QUANTILES),
)
_DONE = "already done"
_FOUND = {
    "xla": "by XLA",
    "memory": "found in memory",
    "disk": "loaded from disk",
}


@dataclass(frozen=True)
class Stage:
    """One stage of making the program, in seconds, with a note.

    `seconds` is `None` where the stage was over before anybody measured.
    """

    name: str
    seconds: float | None
    note: str


@dataclass(frozen=True)
class Measured:
    """What was measured. Arrays have one number for each run, in seconds.

    Attributes:
      name: the function.
      signature: the types of its arguments.
      device: where it ran.
      stages: making the program, once.
      first: the first call, after compiling.
      warm_up: how many calls more were not counted.
      call: until Python had the results in hand.
      wait: from then on, until the numbers were there.
      queued: per call, of many that were handed over without waiting; `None` if one alone took
        longer than there was time for.
    """

    name: str
    signature: str
    device: str
    stages: tuple[Stage, ...]
    first: float
    warm_up: int
    call: np.ndarray[Any, Any]
    wait: np.ndarray[Any, Any]
    queued: float | None

    @property
    def total(self) -> np.ndarray[Any, Any]:
        """Call and wait together."""
        return self.call + self.wait

    def quantiles(self) -> dict[str, dict[str, float]]:
        """Of `call`, `wait` and `total`."""
        parts = {"call": self.call, "wait": self.wait, "total": self.total}
        levels = list(_QUANTILES.values())
        return {
            name: dict(zip(_QUANTILES, map(float, np.quantile(part, levels)), strict=True))
            for name, part in parts.items()
        }

    def sentence(self) -> str:
        """How the measurement was done."""
        runs = f"{many(len(self.call), 'run')} on {self.device}, each waited for"
        first = f"the first took {duration(self.first)}"
        return f"{runs}, after {1 + self.warm_up} warm-up runs that are not counted ({first})."

    def tables(self) -> tuple[Table, Table]:
        """Making the program, by stages, and the runs, by their parts."""
        stages = [(stage.name, stage.seconds, stage.note) for stage in self.stages]
        runs = [(name, *levels.values()) for name, levels in self.quantiles().items()]
        count = many(len(self.call), "run")
        return (
            Table(_STAGE_COLUMNS, stages, caption="Compiling, once", indent="  ", is_ruled=False),
            Table(_RUN_COLUMNS, runs, caption=count, indent="  "),
        )

    def text(self) -> str:
        """All of it, as tables."""
        queued = f"  queued: {duration(self.queued)} per call, without waiting in between"
        return Report(
            f"{shortened(self.name)}({shortened(self.signature, 400)})",
            *self.tables(),
            *([] if self.queued is None else [queued]),
            self.sentence(),
        ).text()


def measure(fun: Callable[..., Any], *args: Any, seconds: float = 1.0, **kwargs: Any) -> Measured:
    """Measure a function of arrays; it is compiled, unless it is compiled already.

    Args:
      fun: the function. It is called many times, with the same arguments.
      seconds: how long the calls may take in all, though there are at least 5.

    Errors:
      `TypeError` for what cannot be called, `ValueError` for a function that takes its arguments'
      memory away (donation), or no time.
    """
    if not callable(fun):
        raise TypeError(f"timings takes a function, got a {type(fun).__name__}")
    if not seconds > 0:
        raise ValueError(f"timings: the time to measure must be positive, got {seconds}")
    compiled = fun if hasattr(fun, "trace") and hasattr(fun, "lower") else jit(fun)
    stages, signature = _stages(compiled, args, kwargs)
    out, call, wait = _timed(compiled, args, kwargs)
    first = call + wait
    gone = [x for x in tree.leaves((args, kwargs)) if x.__class__ is ArrayImpl and x.is_deleted()]
    if gone:
        raise ValueError(
            f"timings: `{_name(fun)}` donates {len(gone)} of its arguments (donate_argnums), so it "
            "can be called with them only once; measure it without donation"
        )
    arrays = [x for x in tree.leaves(out) if x.__class__ is ArrayImpl]
    devices = sorted({str(device) for x in arrays for device in x.devices()})
    for _ in range(_WARM_UP):
        _timed(compiled, args, kwargs)
    runs: list[tuple[float, float]] = []
    ends = time.perf_counter() + seconds
    while len(runs) < _FEWEST or (len(runs) < _MOST and time.perf_counter() < ends):
        _, call, wait = _timed(compiled, args, kwargs)
        runs.append((call, wait))
    calls, waits = np.array(runs).T
    typical = float(np.median(calls + waits))
    return Measured(
        _name(fun),
        signature,
        ", ".join(devices) or "the host",
        stages,
        first,
        _WARM_UP,
        calls,
        waits,
        _queued(compiled, args, kwargs, typical, _PART_QUEUED * seconds),
    )


def _stages(compiled: Any, args: Any, kwargs: Any) -> tuple[tuple[Stage, ...], str]:
    """Make the program stage by stage, each told by the event that it is."""
    heard: list[events.Event] = []
    thread = threading.get_ident()

    def hear(event: events.Event) -> None:
        if threading.get_ident() == thread:
            heard.append(event)

    stop = events.subscribe(hear, _STAGES)
    try:
        traced = compiled.trace(*args, **kwargs)
        equations = len(traced.jaxpr.eqns)
        traced.lower().compile()
    finally:
        stop()
    # Stages of functions that the function calls are part of its own tracing.
    last = {event.kind: event for event in heard}
    notes = {"trace": many(equations, "equation"), "lower": ""}
    if "compile" in last:
        data = last["compile"].data
        notes["compile"] = _FOUND[data["source"]]
        if data["source"] != "xla":
            notes["compile"] += f"; XLA took {duration(data['compiled_in'])} for it once"
    stages = tuple(
        [
            Stage(k, last[k].seconds, notes[k]) if k in last else Stage(k, None, _DONE)
            for k in _STAGES
        ]
    )
    signature = ", ".join([aval.str_short() for aval in traced.jaxpr.in_avals])
    return stages, signature


def _timed(compiled: Any, args: Any, kwargs: Any) -> tuple[Any, float, float]:
    before = time.perf_counter()
    out = compiled(*args, **kwargs)
    between = time.perf_counter()
    block_until_ready(out)
    return out, between - before, time.perf_counter() - between


def _queued(compiled: Any, args: Any, kwargs: Any, typical: float, seconds: float) -> float | None:
    count = min(_MOST_QUEUED, int(seconds / typical)) if typical else _MOST_QUEUED
    if count < 2:
        return None
    before = time.perf_counter()
    out = None
    for _ in range(count):
        out = compiled(*args, **kwargs)
    block_until_ready(out)
    return (time.perf_counter() - before) / count


def _name(fun: Any) -> str:
    return getattr(fun, "__name__", type(fun).__name__)

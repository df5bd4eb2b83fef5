"""`%cost` and `%%cost`: XLA's estimate of what an expression or a cell costs, before it runs."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from perspex import local_devices, tree
from perspex.api.stages import Compiled, Traced
from perspex_magics.commands.inspection import InspectingMagic, inspecting_magic, parsers
from perspex_magics.display.markup import MONO, MUTED
from perspex_magics.display.table import Column, Report, Table
from perspex_magics.display.units import count, size
from perspex_magics.timing import links

_ABOUT = """FLOPs and bytes are XLA's estimate for the optimized program. XLA counts the body of
a loop once, only the most expensive branch of a conditional, and nothing inside a
custom call; notes say which of these the program has. What devices send each other
stands below, with the part of the time that it may take: the devices are measured
once, or the flags link_bandwidth and device_flops say what they can do."""

line_parser, cell_parser = parsers(
    "cost",
    (
        "Show what an expression costs: FLOPs, bytes, memory, kernels.",
        f"The expression is compiled and not run.\n{_ABOUT}\n\n"
        "    %cost loss(w, x)\n    %cost grad(loss)(w, x)",
    ),
    (
        "Show what a cell costs without running it: FLOPs, bytes, memory, kernels.",
        f"{_ABOUT}\n",
    ),
)
cell_magic_of_cost = inspecting_magic(cell_parser)


class CostMagics(InspectingMagic):
    """Show what a cell or an expression costs without running it.

    The names in it that hold arrays, numbers or containers of them are its inputs.
    `%%cost --help` and `%cost --help` list the options.
    """

    cell_magic = cell_magic_of_cost
    expressions = line_parser

    def show(self, what: str, traced: Traced, options: argparse.Namespace) -> Report:
        return cost_of(what, traced)


_COLUMNS = (
    Column("name"),
    Column("value", is_number=True, style=MONO),
    Column("remark", style=MUTED),
)


def cost_of(what: str, traced: Traced) -> Report:
    """What a traced program costs on the device that it would run on, and what that leaves out."""
    compiled = traced.lower().compile()
    program = Kernels.of(compiled.as_text())
    devices = max([s.num_devices for s in tree.leaves(compiled.output_shardings)], default=1)
    sent = _sent(traced, compiled, devices) if devices > 1 else []
    rows = [*_work(compiled), *_memory(compiled), program.row, *sent]
    each = [f"The figures are those of each of {devices} devices."] if devices > 1 else []
    table = Table(_COLUMNS, rows, caption=f"cost of {what}", is_ruled=False)
    return Report(table, *each, *program.notes)


def _work(compiled: Compiled) -> list[tuple[str, str, str]]:
    """The rows of XLA's cost analysis. What it does not know it leaves out, or makes negative."""
    found = compiled.cost_analysis()
    flops, moved = found.get("flops", 0.0), found.get("bytes accessed", 0.0)
    special = found.get("transcendentals", 0.0)
    rows = [("FLOPs", _known(flops, count), "")]
    if special:
        rows.append(
            ("transcendentals", _known(special, count), "exp, log, sin, ...; not counted as FLOPs")
        )
    rows.append(("bytes accessed", _known(moved, size), "read and written by all kernels"))
    if flops >= 0 and moved > 0:
        rows.append(("arithmetic intensity", f"{flops / moved:.3g}", "FLOPs per byte accessed"))
    return rows


def _memory(compiled: Compiled) -> list[tuple[str, str, str]]:
    memory = compiled.memory_analysis()
    return [
        ("arguments", size(memory.argument_size_in_bytes), ""),
        ("results", size(memory.output_size_in_bytes), ""),
        ("temporaries", size(memory.temp_size_in_bytes), "in addition, while the program runs"),
    ]


def _sent(traced: Traced, compiled: Compiled, devices: int) -> list[tuple[str, str, str]]:
    """What devices send each other by line, with the part of the time that it may take."""
    exchanges = compiled.communication()
    if exchanges and links.known_rates() is None and len(local_devices()) > 1:
        links.measured()
    parts = links.predicted(traced, exchanges, devices)
    rows = []
    for i, one in enumerate(exchanges):
        at = f" in line {one.place.line}" if one.place else ""
        time = "" if parts is None else f"; predicted part of the time: {100 * parts[i]:.3g} %"
        rows.append((one.collective + at, size(one.sent), f"sent by each device{time}"))
    return rows


_COMPUTATION = re.compile(r"(?m)^(ENTRY )?%?([\w.\-]+) \(.*\{$\n((?:^ .*\n)*)")
_OPERATION = re.compile(r"(?m)^ +(?:ROOT )?%?[\w.\-]+ = .*? ([a-z][\w\-]*)\((.*)$")
_CALLED = re.compile(
    r"(?:body|condition|to_apply|(?:true|false)_computation)=%?([\w.\-]+)"
    r"|branch_computations=\{([^}]*)\}"
)
_TIMES = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_CONTROL = ("while", "conditional", "call")
# These compute nothing: they name memory that exists already.
_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", *_CONTROL}


@dataclass(frozen=True)
class Kernels:
    """The kernels that an optimized program starts one by one, by kind.

    `loops` are the numbers of iterations, `None` where XLA does not know; `foreign` what custom
    calls call.
    """

    kinds: Counter[str]
    loops: list[int | None]
    foreign: list[str]
    has_branches: bool

    @classmethod
    def of(cls, text: str) -> Kernels:
        """Read them from the text of optimized HLO: the entry, loop bodies and branches."""
        bodies = {}
        todo = []
        for entry, name, body in _COMPUTATION.findall(text):
            bodies[name] = body
            if entry:
                todo.append(name)
        found = cls(Counter(), [], [], "conditional(" in text)
        seen: set[str] = set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            for kind, rest in _OPERATION.findall(bodies.get(name, "")):
                if kind in _CONTROL:
                    for one, several in _CALLED.findall(rest):
                        todo += re.findall(r"[\w.\-]+", one or several)
                if kind == "while":
                    times = _TIMES.search(rest)
                    found.loops.append(int(times[1]) if times else None)
                if kind == "custom-call":
                    target = _TARGET.search(rest)
                    found.foreign.append(target[1] if target else "unnamed")
                if kind not in _FREE:
                    found.kinds[kind] += 1
        return found

    @property
    def row(self) -> tuple[str, str, str]:
        """The number of kernels and their kinds."""
        kinds = ", ".join(f"{count(n)} {kind}" for kind, n in self.kinds.most_common())
        return "kernels", count(self.kinds.total()), kinds

    @property
    def notes(self) -> list[str]:
        """What the estimate of FLOPs and bytes leaves out in this program."""
        notes = []
        if self.loops:
            times = ", ".join("unknown" if n is None else count(n) for n in self.loops)
            notes.append(f"Loop bodies are counted once; iterations: {times}.")
        if self.has_branches:
            notes.append("For conditionals, only the most expensive branch is counted.")
        if self.foreign:
            names = ", ".join(dict.fromkeys(self.foreign))
            notes.append(f"Work inside custom calls is not counted: {names}.")
        return notes


def _known(number: float, write: Callable[[float], str]) -> str:
    """A number of XLA's cost analysis, which marks what it cannot know as negative."""
    return "unknown" if number < 0 else write(number)

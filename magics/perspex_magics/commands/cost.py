"""`%cost` and `%%cost`: what XLA says that an expression or a cell costs, before it is run."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)
from IPython.display import display

from perspex import tree
from perspex.api.stages import Compiled, Traced
from perspex_magics.commands.inspection import inspected, inspecting_magic
from perspex_magics.display.markup import MONO, MUTED, escape, tag
from perspex_magics.notebook.options import LineParser, MagicParser
from perspex_magics.programs.runner import Runner

_ABOUT = """FLOPs and bytes are XLA's estimate for the optimized program. It counts the body
of a loop once, of a conditional the dearest branch, and nothing inside a custom
call; notes say which of them the program has."""

line_parser = LineParser(
    "cost",
    """Show what an expression costs: FLOPs, bytes, memory, kernels.

The names in it that hold arrays, numbers or containers of them are its inputs.""",
    f"""It is compiled and not run. {_ABOUT}

    %cost loss(w, x)
    %cost grad(loss)(w, x)""",
    usage="%cost [--static NAME,...] [--help] EXPRESSION",
)
cell_parser = MagicParser(
    "cost",
    """Show what a cell costs, and do not run it: FLOPs, bytes, memory, kernels.

The names that the cell reads and that hold arrays, numbers or containers of them are
its inputs; what it assigns and its last expression are its results.""",
    f"""{_ABOUT}
Magics may stand below:

    %%cost
    %%grad w
    ((x @ w - y) ** 2).mean()""",
)
for _parser in (line_parser, cell_parser):
    _parser.add_names("--static", help="names whose values Python may depend on")

cell_magic_of_cost = inspecting_magic(cell_parser)


@magics_class
class CostMagics(Magics):
    """`%cost` and `%%cost` in one notebook."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell, runner: Runner) -> None:
        super().__init__(shell)
        self.runner = runner

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def cost(
        self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None
    ) -> None:
        """Show what a cell or an expression costs, and do not run it.

        The names in it that hold arrays, numbers or containers of them are its inputs.
        `%%cost --help` and `%cost --help` list the options.
        """
        found = inspected(self.runner, line_parser, line, cell, local_ns)
        if found is not None:
            what, traced, _ = found
            display(Cost.of(what, traced))


@dataclass(frozen=True)
class Cost:
    """A table of what a program costs, as text and as HTML.

    `rows` are a name, a value and a remark; `notes` say what the figures leave out.
    """

    title: str
    rows: list[tuple[str, str, str]]
    notes: list[str]

    @classmethod
    def of(cls, what: str, traced: Traced) -> Cost:
        """The cost of a traced program on the device that it would run on."""
        compiled = traced.lower().compile()
        program = Kernels.of(compiled.as_text())
        rows = [*_work(compiled), *_memory(compiled), program.row]
        devices = max([s.num_devices for s in tree.leaves(compiled.output_shardings)], default=1)
        each = [f"All of it is what each of {devices} devices does."] if devices > 1 else []
        return cls(f"cost of {what}", rows, each + program.notes)

    def __repr__(self) -> str:
        wide = max(len(name) for name, _, _ in self.rows)
        right = max(len(value) for _, value, _ in self.rows)
        lines = [
            f"{name:<{wide}}  {value:>{right}}  {remark}".rstrip()
            for name, value, remark in self.rows
        ]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        rows = []
        for name, value, remark in self.rows:
            cells = [
                tag("th", escape(name), style="text-align:left;font-weight:normal", scope="row"),
                tag("td", escape(value), style=f"{MONO};text-align:right"),
                tag("td", escape(remark), style=f"{MUTED};text-align:left"),
            ]
            rows.append(tag("tr", *cells, style="background:transparent"))
        caption = tag("caption", escape(self.title), style=f"{MUTED};text-align:left")
        notes = [tag("div", escape(note), style=MUTED) for note in self.notes]
        return tag("div", tag("table", caption, tag("tbody", *rows)), *notes)


def _work(compiled: Compiled) -> list[tuple[str, str, str]]:
    """The rows of XLA's cost analysis. What it does not know it leaves out, or makes negative."""
    found = compiled.cost_analysis()
    flops, moved = found.get("flops", 0.0), found.get("bytes accessed", 0.0)
    special = found.get("transcendentals", 0.0)
    rows = [("FLOPs", _count(flops), "")]
    if special:
        rows.append(("transcendentals", _count(special), "exp, log, sin, ...; not among the FLOPs"))
    rows.append(("bytes accessed", _bytes(moved), "read and written by all kernels"))
    if flops >= 0 and moved > 0:
        rows.append(("arithmetic intensity", f"{flops / moved:.3g}", "FLOPs per byte accessed"))
    return rows


def _memory(compiled: Compiled) -> list[tuple[str, str, str]]:
    memory = compiled.memory_analysis()
    return [
        ("arguments", _bytes(memory.argument_size_in_bytes), ""),
        ("results", _bytes(memory.output_size_in_bytes), ""),
        ("temporaries", _bytes(memory.temp_size_in_bytes), "besides these two, while it runs"),
    ]


_COMPUTATION = re.compile(r"(?m)^(ENTRY )?%?([\w.\-]+) \(.*\{$\n((?:^ .*\n)*)")
_OPERATION = re.compile(r"(?m)^ +(?:ROOT )?%?[\w.\-]+ = .*? ([a-z][\w\-]*)\((.*)$")
_CALLED = re.compile(
    r"(?:body|condition|to_apply|(?:true|false)_computation)=%?([\w.\-]+)"
    r"|branch_computations=\{([^}]*)\}"
)
_TIMES = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_CONTROL = ("while", "conditional", "call")
# Not computed by anything: names for memory that is there already.
_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", *_CONTROL}


@dataclass(frozen=True)
class Kernels:
    """What is started one by one when an optimized program runs, by kind.

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
        """How many there are, and of which kinds."""
        kinds = ", ".join(f"{n} {kind}" for kind, n in self.kinds.most_common())
        return "kernels", str(self.kinds.total()), kinds

    @property
    def notes(self) -> list[str]:
        """What the estimate of FLOPs and bytes does not see in this program."""
        notes = []
        if self.loops:
            times = ", ".join("unknown" if n is None else str(n) for n in self.loops)
            notes.append(f"Loop bodies are counted once; iterations: {times}.")
        if self.has_branches:
            notes.append("Of a conditional the dearest branch is counted.")
        if self.foreign:
            names = ", ".join(dict.fromkeys(self.foreign))
            notes.append(f"Work inside custom calls is not counted: {names}.")
        return notes


def _count(number: float) -> str:
    """A number of operations: `524288`, `1.05e+09`; XLA marks what it cannot know as negative."""
    if number < 0:
        return "unknown"
    return f"{number:.0f}" if number < 1e7 else f"{number:.3g}"


def _bytes(number: float) -> str:
    """A size of memory: `96 B`, `1.50 KiB`.

    >>> _bytes(96), _bytes(1536)
    ('96 B', '1.50 KiB')
    """
    if number < 0:
        return "unknown"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return f"{number:.0f} B" if unit == "B" else f"{number:.2f} {unit}"

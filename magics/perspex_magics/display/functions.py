"""How a compiled function looks in a notebook: for which types it has been compiled, and how big
the programs are."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from perspex.api.stages import Compiled as CompiledStage
from perspex.api.stages import Lowered, Traced
from perspex.base import xla
from perspex.ir.jaxpr import count_eqns
from perspex.jitted.compiled import Compiled
from perspex_magics.display.arrays import bytes_text
from perspex_magics.display.listing import Listing
from perspex_magics.display.markup import LINE, MONO, MUTED, escape, shortened, tag

PjitFunction = xla.PjitFunction

_MOST_ROWS = 12
_HEAD = ("types", "equations", "arguments", "results", "temporary", "code")


def function_html(fun: Any) -> str | None:
    """What `jit` made, with a row for each type of arguments that it was compiled for."""
    owner = _owner(fun)
    if owner is None:
        # One of the functions of ours that are compiled, too.
        return None
    count = len(owner.executables)
    said = "compiled for one signature" if count == 1 else f"compiled for {count} signatures"
    said = said if count else "not compiled yet: it will be when it is called"
    heading = tag(
        "div",
        tag("strong", escape(name_of(fun)), style=MONO),
        tag("span", escape(f" · {said}"), style=MUTED),
    )
    return tag("div", heading, _programs(owner) if count else "")


def name_of(fun: Any) -> str:
    """A compiled function in a word."""
    owner = _owner(fun)
    return f"<{type(fun).__name__}>" if owner is None else f"jit({shortened(owner.name)})"


def _owner(fun: Any) -> Compiled | None:
    owner = getattr(getattr(fun, "retrace", None), "__self__", None)
    return owner if isinstance(owner, Compiled) else None


def traced_html(traced: Traced) -> str:
    """A traced function: its jaxpr."""
    return _stage(f"{traced.fun_name}, traced", str(traced.jaxpr))


def lowered_html(lowered: Lowered) -> str:
    """A lowered function: its StableHLO."""
    return _stage("lowered", lowered.as_text())


def compiled_html(compiled: CompiledStage) -> str:
    """An executable: the optimized HLO."""
    return _stage("compiled", compiled.as_text())


def _stage(title: str, text: str) -> str:
    return Listing(shortened(title), text).folded(is_open=True)


def _programs(owner: Compiled) -> str:
    lines = []
    for key, executable in itertools.islice(list(owner.executables.items()), _MOST_ROWS):
        signature = key[0]
        program = owner.programs.get(signature)
        stats = executable.xla.get_compiled_memory_stats()
        cells = [
            shortened(", ".join([aval.str_short() for aval in signature.avals]) or "no arrays"),
            str(count_eqns(program.closed.jaxpr)) if program is not None else "",
            bytes_text(stats.argument_size_in_bytes),
            bytes_text(stats.output_size_in_bytes),
            bytes_text(stats.temp_size_in_bytes),
        ]
        if stats.generated_code_size_in_bytes:  # not told on CPU
            cells.append(bytes_text(stats.generated_code_size_in_bytes))
        lines.append(cells)
    columns = max(map(len, lines))
    rows = [_row("th", _HEAD[:columns], scope="col"), *(_row("td", cells) for cells in lines)]
    more = len(owner.executables) - _MOST_ROWS
    table = tag("table", *rows, style=f"{MONO};border-collapse:collapse;border:none;margin:2px 0")
    return table + (tag("div", escape(f"and {more} more"), style=MUTED) if more > 0 else "")


def _row(kind: str, cells: Sequence[str], **attributes: str) -> str:
    shown = [tag(kind, escape(x), style=_style(i), **attributes) for i, x in enumerate(cells)]
    return tag("tr", *shown)


def _style(column: int) -> str:
    side = "right" if column else "left"
    return f"text-align:{side};padding:1px 12px 1px 0;border:none;border-bottom:1px solid {LINE}"

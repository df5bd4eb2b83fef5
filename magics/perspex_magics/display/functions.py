"""The display of a compiled function: the types it was compiled for, and the sizes of its
programs."""

from __future__ import annotations

import itertools
from typing import Any

from markupsafe import Markup

from perspex.api.stages import Compiled as CompiledStage
from perspex.api.stages import Lowered, Traced
from perspex.base import xla
from perspex.ir.jaxpr import count_eqns
from perspex.jitted.compiled import Compiled
from perspex_magics.display.listing import Listing
from perspex_magics.display.markup import MONO, MUTED, escape, shortened, tag
from perspex_magics.display.table import Column, Report, Table
from perspex_magics.display.units import count, size

PjitFunction = xla.PjitFunction

_MOST_ROWS = 12
_COLUMNS = (
    Column("types", "types"),
    Column("equations", "equations", count, is_number=True),
    Column("arguments", "arguments", size, is_number=True),
    Column("results", "results", size, is_number=True),
    Column("temporary", "temporary", size, is_number=True),
    # Not told on CPU.
    Column("code", "code", lambda nbytes: size(nbytes) if nbytes else "", is_number=True),
)


def function_html(fun: Any) -> Markup | None:
    """What `jit` made, with a row for each type of arguments that it was compiled for."""
    owner = owner_of(fun)
    if owner is None:
        # One of the functions of ours that are compiled, too.
        return None
    count = len(owner.executables)
    said = "compiled for one signature" if count == 1 else f"compiled for {count} signatures"
    said = said if count else "not compiled yet; the first call compiles it"
    heading = tag(
        "div",
        tag("strong", escape(name_of(fun)), style=MONO),
        tag("span", escape(f" · {said}"), style=MUTED),
    )
    return tag("div", heading, _programs(owner) if count else "")


def name_of(fun: Any) -> str:
    """A compiled function in a word."""
    owner = owner_of(fun)
    return f"<{type(fun).__name__}>" if owner is None else f"jit({shortened(owner.name)})"


def owner_of(fun: Any) -> Compiled | None:
    """The Python side of what `jit` made; `None` for anything else."""
    if not isinstance(fun, PjitFunction):
        return None
    owner = getattr(getattr(fun, "retrace", None), "__self__", None)
    return owner if isinstance(owner, Compiled) else None


def traced_html(traced: Traced) -> Markup:
    """A traced function: its jaxpr."""
    return _stage(f"{traced.fun_name}, traced", str(traced.jaxpr), "jaxpr")


def lowered_html(lowered: Lowered) -> Markup:
    """A lowered function: its StableHLO."""
    return _stage("lowered", lowered.as_text(), "stablehlo")


def compiled_html(compiled: CompiledStage) -> Markup:
    """An executable: the optimized HLO."""
    return _stage("compiled", compiled.as_text(), "hlo")


def _stage(title: str, text: str, form: str) -> Markup:
    return Listing(shortened(title), text, form=form).folded(is_open=True)


def _programs(owner: Compiled) -> Markup:
    rows = []
    for key, executable in itertools.islice(list(owner.executables.items()), _MOST_ROWS):
        signature = key[0]
        program = owner.programs.get(signature)
        stats = executable.xla.get_compiled_memory_stats()
        rows.append(
            (
                shortened(", ".join([aval.str_short() for aval in signature.avals]) or "no arrays"),
                None if program is None else count_eqns(program.closed.jaxpr),
                stats.argument_size_in_bytes,
                stats.output_size_in_bytes,
                stats.temp_size_in_bytes,
                stats.generated_code_size_in_bytes,
            )
        )
    more = len(owner.executables) - _MOST_ROWS
    table = Table(_COLUMNS, rows, style=MONO)
    return Report(table, f"and {count(more)} more" if more > 0 else "").html()

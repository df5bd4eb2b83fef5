"""Perspex in IPython: `%load_ext perspex` brings the magics and the displays.

It works in any IPython, in a terminal as in Jupyter; the Perspex kernel loads it by itself. One
module holds one magic; the rest is what magics share.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex.api.stages import Compiled, Lowered, Traced
from perspex.base import source
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr
from perspex.runtime.array import ArrayImpl
from perspex.runtime.keys import KeyArray
from perspex.tracing import trace as tracing
from perspex_magics.captures.watcher import watch_captures
from perspex_magics.cluster.magic import drive_cluster
from perspex_magics.commands.cost import CostMagics
from perspex_magics.commands.grad import GradMagics
from perspex_magics.commands.hlo import HloMagics
from perspex_magics.commands.jaxpr import JaxprMagics
from perspex_magics.commands.jit import JitMagics
from perspex_magics.commands.vmap import VmapMagics
from perspex_magics.compiling.abandoned import compile_apart, tell_what_goes_on
from perspex_magics.compiling.cache import follow_compilations
from perspex_magics.compiling.callables import call_by_paths
from perspex_magics.compiling.heartbeat import show_heartbeat
from perspex_magics.compiling.recompiles import recompile_cards
from perspex_magics.compiling.stopped import stop_loops
from perspex_magics.display.arrays import array_html, keys_html
from perspex_magics.display.functions import (
    PjitFunction,
    compiled_html,
    function_html,
    lowered_html,
    traced_html,
)
from perspex_magics.display.listing import preformatted
from perspex_magics.display.trees import container_html, dataclass_html
from perspex_magics.errors.debugging import debug_user_frames
from perspex_magics.errors.explain import explain_pages
from perspex_magics.errors.tracebacks import show_user_frames
from perspex_magics.fixed.magic import note_what_is_fixed
from perspex_magics.keys.magic import record_keys
from perspex_magics.memory.buffers import list_buffers
from perspex_magics.memory.guard import guard_memory
from perspex_magics.memory.release import release_after_errors
from perspex_magics.notebook.cell import cell_namer
from perspex_magics.notebook.effects import finish_effects
from perspex_magics.notebook.magic import Magic, complete_magics
from perspex_magics.notebook.options import help_alone
from perspex_magics.notebook.timed import time_in_place
from perspex_magics.panel.service import serve_panel
from perspex_magics.programs.runner import Runner
from perspex_magics.restart.magic import offer_restarts
from perspex_magics.session import Session, begin, session_of
from perspex_magics.timing.clock import time_cells
from perspex_magics.timing.profile import profile_cells

_PROGRAM_MAGICS = (JitMagics, GradMagics, VmapMagics, JaxprMagics, HloMagics, CostMagics)
_CELL_MAGICS = {kind.cell_magic.parser.magic: kind.cell_magic for kind in _PROGRAM_MAGICS}
_LINE_PARSERS = {
    kind.expressions.magic: kind.expressions for kind in _PROGRAM_MAGICS if kind.expressions
}
# Each changes a shell by way of its session. In this order at the end of a cell.
_FEATURES: list[Callable[[Session], None]] = [
    show_user_frames,
    debug_user_frames,
    explain_pages,
    stop_loops,
    lambda session: session.on_unload(time_in_place(session.shell)),
    finish_effects,
    lambda session: session.on_unload(watch_captures(session.shell, tracing_magics=_CELL_MAGICS)),
    call_by_paths,
    recompile_cards,
    list_buffers,
    release_after_errors,
    guard_memory,
    tell_what_goes_on,
    compile_apart,
    follow_compilations,
    show_heartbeat,
    record_keys,
    note_what_is_fixed,
    drive_cluster,
    offer_restarts,
    time_cells,
    profile_cells,
    lambda session: session.on_unload(serve_panel(session.shell)),
]
# Each returns markup, or nothing for what is to look as it always did.
_DISPLAYS: dict[type, Callable[[Any], str | None]] = {
    ArrayImpl: array_html,
    KeyArray: keys_html,
    dict: container_html,
    list: container_html,
    tuple: container_html,
    # A dataclass is known by no base class.
    object: dataclass_html,
    PjitFunction: function_html,
    Traced: traced_html,
    Lowered: lowered_html,
    Compiled: compiled_html,
    ClosedJaxpr: lambda jaxpr: preformatted(str(jaxpr)),
    Jaxpr: lambda jaxpr: preformatted(str(jaxpr)),
}

# So that locations and tracebacks show the cell, and not the magic that ran it.
source.register_internal(os.path.dirname(__file__))


def outside_traces(info: Any) -> None:
    """Begin each cell outside every trace, wherever an interrupt left the last one."""
    tracing.reset()


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Bring the magics, displays and completions into a shell; again is harmless."""
    session = begin(shell)
    if session is None:
        return
    runner = session.keep(Runner(shell, _CELL_MAGICS, _LINE_PARSERS))
    for kind in _PROGRAM_MAGICS:
        kind(session, runner).register()

    if shell.display_formatter is not None:
        html = shell.display_formatter.formatters["text/html"]
        for shown, display in _DISPLAYS.items():
            if shown in html.type_printers:
                continue  # somebody has seen to it before
            html.for_type(shown, display)
            session.on_unload(functools.partial(html.pop, shown, None))

    session.on_cell(begin=outside_traces)
    session.on_unload(source.register_cell_namer(cell_namer(shell)))
    for feature in _FEATURES:
        feature(session)

    magics = session.every(Magic)
    complete_magics(session, magics)
    transform = help_alone([magic.cell_parser for magic in magics if magic.cell_parser])
    shell.input_transformers_cleanup.insert(0, transform)
    session.on_unload(lambda: shell.input_transformers_cleanup.remove(transform))


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take everything out again."""
    session = session_of(shell)
    if session is not None:
        session.close()

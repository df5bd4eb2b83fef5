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
from perspex_magics.commands.cost import CostMagics, cell_magic_of_cost
from perspex_magics.commands.cost import line_parser as cost_line
from perspex_magics.commands.grad import GradMagics, cell_magic_of_grad
from perspex_magics.commands.grad import line_parser as grad_line
from perspex_magics.commands.hlo import HloMagics, cell_magic_of_hlo
from perspex_magics.commands.hlo import line_parser as hlo_line
from perspex_magics.commands.jaxpr import JaxprMagics, cell_magic_of_jaxpr
from perspex_magics.commands.jaxpr import line_parser as jaxpr_line
from perspex_magics.commands.jit import JitMagics, cell_magic_of_jit
from perspex_magics.commands.vmap import VmapMagics, cell_magic_of_vmap
from perspex_magics.commands.vmap import line_parser as vmap_line
from perspex_magics.compiling.abandoned import compile_apart, tell_what_goes_on
from perspex_magics.compiling.cache import follow_compilations
from perspex_magics.compiling.heartbeat import show_heartbeat
from perspex_magics.compiling.recompiles import recompile_cards
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
from perspex_magics.errors.tracebacks import show_user_frames
from perspex_magics.keys.magic import record_keys
from perspex_magics.memory.buffers import list_buffers
from perspex_magics.memory.buffers import parser as buffers_line
from perspex_magics.memory.release import release_after_errors
from perspex_magics.notebook.cell import cell_namer
from perspex_magics.notebook.effects import finish_effects
from perspex_magics.notebook.options import MagicParser, completer, help_alone
from perspex_magics.notebook.timed import time_in_place
from perspex_magics.panel.service import serve_panel
from perspex_magics.programs.runner import Runner
from perspex_magics.timing.clock import parser as clock_line
from perspex_magics.timing.clock import time_cells
from perspex_magics.timing.profile import cell_parser as profile_cell
from perspex_magics.timing.profile import line_parser as profile_line
from perspex_magics.timing.profile import profile_cells

_CELL_MAGICS = {
    magic.parser.magic: magic
    for magic in (
        cell_magic_of_jit,
        cell_magic_of_grad,
        cell_magic_of_vmap,
        cell_magic_of_jaxpr,
        cell_magic_of_hlo,
        cell_magic_of_cost,
    )
}
_LINE_PARSERS = {
    parser.magic: parser for parser in (grad_line, vmap_line, jaxpr_line, hlo_line, cost_line)
}
# Of line magics that take no expression.
_PLAIN_PARSERS: list[MagicParser] = [buffers_line, clock_line, profile_line]
_PARSERS = [
    *(magic.parser for magic in _CELL_MAGICS.values()),
    profile_cell,
    *_LINE_PARSERS.values(),
    *_PLAIN_PARSERS,
]
# Each changes a shell and returns what takes the change back. In this order at the end of a cell.
_FEATURES: list[Callable[[InteractiveShell], Callable[[], object]]] = [
    show_user_frames,
    time_in_place,
    finish_effects,
    functools.partial(watch_captures, tracing_magics=_CELL_MAGICS),
    recompile_cards,
    list_buffers,
    release_after_errors,
    tell_what_goes_on,
    compile_apart,
    follow_compilations,
    show_heartbeat,
    record_keys,
    time_cells,
    profile_cells,
    serve_panel,
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
# What a shell must be rid of when the extension is unloaded.
_loaded: dict[InteractiveShell, list[Callable[[], object]]] = {}

# So that locations and tracebacks show the cell, and not the magic that ran it.
source.register_internal(os.path.dirname(__file__))


def outside_traces(info: Any) -> None:
    """Begin each cell outside every trace, wherever an interrupt left the last one."""
    tracing.reset()


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Bring the magics, displays and completions into a shell; again is harmless."""
    if shell in _loaded:
        return
    undo: list[Callable[[], object]] = []
    runner = Runner(shell, _CELL_MAGICS, _LINE_PARSERS)
    for magics in (JitMagics, GradMagics, VmapMagics, JaxprMagics, HloMagics, CostMagics):
        shell.register_magics(magics(shell, runner))
    known = shell.magics_manager.magics
    undo += [functools.partial(known["cell"].pop, name, None) for name in _CELL_MAGICS]
    undo += [functools.partial(known["line"].pop, name, None) for name in _LINE_PARSERS]

    transform = help_alone(_PARSERS)
    shell.input_transformers_cleanup.insert(0, transform)
    undo.append(lambda: shell.input_transformers_cleanup.remove(transform))

    if shell.display_formatter is not None:
        html = shell.display_formatter.formatters["text/html"]
        for kind, display in _DISPLAYS.items():
            if kind in html.type_printers:
                continue  # somebody has seen to it before
            html.for_type(kind, display)
            undo.append(functools.partial(html.pop, kind, None))

    if shell.Completer is not None:
        matcher = completer(_PARSERS, shell.user_ns)
        shell.Completer.custom_matchers.append(matcher)
        undo.append(lambda: shell.Completer.custom_matchers.remove(matcher))

    shell.events.register("pre_run_cell", outside_traces)
    undo.append(lambda: shell.events.unregister("pre_run_cell", outside_traces))

    undo.append(source.register_cell_namer(cell_namer(shell)))
    undo += [feature(shell) for feature in _FEATURES]
    _loaded[shell] = undo


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take everything out again."""
    for step in reversed(_loaded.pop(shell, [])):
        step()

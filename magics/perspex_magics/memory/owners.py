"""Who holds the memory: the arrays that are alive, by the names that lead to them.

The device knows buffers, Python knows names, and nothing connects the two but a walk: from the
variables of the notebook, its outputs, the frames of the last error, the constants of compiled
functions and the programs that magics remember, into what these hold. What no walk arrives at is
listed as held by no name.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex.base import source
from perspex.jitted import compiled as compiled
from perspex.runtime import client
from perspex.runtime.array import ArrayImpl
from perspex_magics.display.units import size
from perspex_magics.memory.parts import IPYTHON, frame_values
from perspex_magics.memory.reach import ATOMS, Owner, Report, Walk, go_on
from perspex_magics.notebook.own_modules import INSTALLED, is_own
from perspex_magics.programs.runner import Runner
from perspex_magics.session import find

_LAST = re.compile(r"__?_?|_\d+")
_OUTPUT_NAME = re.compile(r"_\d+|__?_?|_i+\d*|_[oid]h")


# ---- From where to look ------------------------------------------------------------------------


def variables(shell: InteractiveShell) -> dict[str, Any]:
    """The notebook's variables, without what IPython keeps there."""
    hidden = shell.user_ns_hidden
    return {
        name: value
        for name, value in list(shell.user_ns.items())
        if not _OUTPUT_NAME.fullmatch(name) and hidden.get(name, _NOTHING) is not value
    }


_NOTHING = object()


def add_names(walk: Walk, shell: InteractiveShell) -> None:
    """The notebook's variables, the user's own modules among them, and its outputs."""
    later = []
    for name, value in variables(shell).items():
        # First what has nothing in it, so that no large container can use up the looks for it.
        if type(value) is ArrayImpl:
            walk.add(value, Owner("variable", name))
        elif issubclass(type(value), types.ModuleType):
            later += [(v, Owner("module", f"{name}.{n}")) for n, v in _module_names(value)]
        elif type(value) not in ATOMS:
            later.append((value, Owner("variable", name)))
    later += [(value, Owner("output", name)) for name, value in outputs(shell).items()]
    for value, owner in later:
        walk.add(value, owner)


def outputs(shell: InteractiveShell) -> dict[str, Any]:
    """`Out[n]`, and of `_`, `__`, `___` and `_n` those that are not among them."""
    history = list((shell.user_ns.get("_oh") or {}).items())
    found = {f"Out[{number}]": value for number, value in history}
    kept = {id(value) for value in found.values()}
    # IPython has a second list of what it has put there, which `del _4` leaves as it is.
    names = list((shell.user_ns_hidden | shell.user_ns).items())
    last = [(name, value) for name, value in names if _LAST.fullmatch(name)]
    return found | {name: value for name, value in last if id(value) not in kept}


def _module_names(module: types.ModuleType) -> list[tuple[str, Any]]:
    """What a module of the user's own holds; nothing of those that were installed."""
    if not is_own(module):
        return []
    return [(n, v) for n, v in list(vars(module).items()) if not n.startswith("__")]


def chain(error: BaseException | None) -> list[BaseException]:
    """An error with its causes, its contexts and, of a group, its members; each once."""
    found: dict[int, BaseException] = {}
    stack = [error]
    while stack:
        error = stack.pop()
        if error is None or id(error) in found:
            continue
        found[id(error)] = error
        stack += [error.__context__, error.__cause__]
        if isinstance(error, BaseExceptionGroup):
            stack += error.exceptions
    return list(found.values())


def frames(error: BaseException | None) -> Iterator[FrameType]:
    """The frames that an error and those behind it keep, each once, callers first."""
    seen = set()
    for each in chain(error):
        tb = each.__traceback__
        while tb is not None:
            if id(tb.tb_frame) not in seen:
                seen.add(id(tb.tb_frame))
                yield tb.tb_frame
            tb = tb.tb_next


def add_error(walk: Walk, error: BaseException | None) -> None:
    """What the frames of an error hold, and the error itself."""
    _add_frames(walk, "error", frames(error))
    for each in chain(error):
        values = [each.args, vars(each), getattr(each, "obj", None)]
        walk.add(values, Owner("error", "a value", type(each).__name__))


def add_running(walk: Walk) -> None:
    """What the functions hold that are running in this thread, up to the cell that called them."""
    running = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(IPYTHON):
        running.append(frame)
        frame = frame.f_back
    _add_frames(walk, "running", reversed(running))


def _add_frames(walk: Walk, kind: str, found: Iterable[FrameType]) -> None:
    """The variables of frames; the user's frames first, then those of Perspex between them."""
    inner = []
    caller = ""
    for frame in found:
        file = frame.f_code.co_filename
        if source.is_internal(file):
            inner.append((frame, f"Perspex, below {caller}" if caller else "Perspex"))
        elif not file.startswith(IPYTHON) and (caller or not file.startswith(INSTALLED)):
            name = frame.f_code.co_name
            caller = "the cell" if name == "<module>" else f"{name}()"
            _add_locals(walk, kind, frame, caller)
    for frame, function in inner:
        _add_locals(walk, kind, frame, function)


def _add_locals(walk: Walk, kind: str, frame: FrameType, function: str) -> None:
    for name, value in frame_values(frame):
        walk.add(value, Owner(kind, name, function))


def add_programs(walk: Walk, shell: InteractiveShell) -> None:
    """The constants of compiled functions, and what the programs of magics keep."""
    for function in compiled.owners():
        held = [program.closed.consts for program in list(function.programs.values())]
        held += [executable.consts for executable in list(function.executables.values())]
        for consts in held:
            if consts:  # a process that has run for long has thousands without
                walk.add(consts, Owner("compiled", function.name))
    runner = find(shell, Runner)
    if runner is None:
        return
    kept_by: list[tuple[Any, Any]] = [*runner.cells.entries(), *runner.calls.entries()]
    for key, kept in kept_by:
        held = [captured for _, captured, _ in list(kept.entries)]
        walk.add([key, held], Owner("program", "a cell's program"))


def _walk(shell: InteractiveShell, numpy: bool = False, check: Callable[[], None] = go_on) -> Walk:
    """A walk that goes into no namespace of the notebook by way of an object."""
    walk = Walk(shell.user_ns.get("__name__", "__main__"), numpy, check)
    walk.closed |= {id(shell.user_ns), id(shell.user_ns.get("_oh")), id(shell.user_ns_hidden)}
    return walk


def report(
    shell: InteractiveShell,
    *,
    numpy: bool = False,
    running: bool = False,
    check: Callable[[], None] = go_on,
) -> Report:
    """All buffers that are alive in this process, and who holds them.

    Args:
      numpy: whether to list NumPy arrays that names lead to as well.
      running: whether to look at the functions that are running.
      check: is called at each step, and may raise what ends the search.
    """
    walk = _walk(shell, numpy, check)
    add_names(walk, shell)
    if running:
        add_running(walk)
    add_error(walk, getattr(sys, "last_value", None))
    add_programs(walk, shell)
    return walk.buffers(client.live_arrays())


def is_reached(shell: InteractiveShell, values: list[Any]) -> bool:
    """Whether a name of the notebook leads to one of these."""
    walk = _walk(shell)
    walk.kinds = set(map(type, values))
    add_names(walk, shell)
    return any(id(value) in walk.found for value in values)


def pinned(shell: InteractiveShell, error: BaseException | None, least: int = 0) -> Report:
    """The buffers that the frames of `error` hold and nothing else does that we know of.

    Nothing is looked for where all live arrays together have less than `least` bytes.
    """
    alive = [x for x in client.live_arrays() if not x.is_deleted() and x.aval is not None]
    if sum([x.nbytes for x in alive]) < least:
        return Report([], True)
    walk = _walk(shell)
    add_error(walk, error)
    if not walk.found:
        return Report([], True)
    add_names(walk, shell)
    add_programs(walk, shell)
    found = walk.buffers()
    alone = [b for b in found.buffers if all(owner.kind == "error" for owner, _ in b.ways)]
    return Report(alone, found.complete)


def largest(shell: InteractiveShell, most: int = 5) -> str:
    """One line about who holds most, for an error that says there is no memory left."""
    found = report(shell, running=True)
    if not found.nbytes:
        return ""
    sizes: dict[str, int] = {}
    for buffer in found.buffers:
        name = buffer.ways[0][0].text() if buffer.ways else "no name"
        sizes[name] = sizes.get(name, 0) + buffer.nbytes
    top = sorted(sizes.items(), key=lambda item: -item[1])
    shown = [f"{name} {size(nbytes)}" for name, nbytes in top[:most]]
    more = f", {len(top) - most} more" if len(top) > most else ""
    total = size(found.nbytes)
    return f"Live arrays hold {total}: {', '.join(shown)}{more}. `%buffers` lists them."

"""What code reads *of* a variable: `cfg["lr"]` and no other item, `W.shape` and no element.

Each reading of a global or closure variable is a path: steps from the variable to the part that is
used, and how it is used. Code that hands the variable on reads all of it, which is the empty path.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from perspex_magics.notebook.names import GLOBAL_LOADS


class Step(NamedTuple):
    """A step of a path.

    `kind` is `item` or `attribute` with their `key`; or, as a last step, `length`, `has` with the
    key that is looked for, `written` for what is assigned and not read, or `called later` for a
    function that a callback runs with each call of the program.
    """

    kind: str
    key: Any = None


Path = tuple[Step, ...]
WHOLE: Path = ()

WRITTEN = Step("written")
CALLED_LATER = Step("called later")
_LENGTH = Step("length")
_CONSTANTS = {"LOAD_CONST", "LOAD_SMALL_INT"}
_CELL_LOADS = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
_KEY_LOADS = {"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_NAME", "LOAD_GLOBAL"}
_CALLBACKS = {"callback", "io_callback", "pure_callback"}
_NOT_DONE = {"PUSH_NULL", "PRECALL", "COPY_FREE_VARS", "RESUME", "KW_NAMES"}


def is_cell_load(instruction: dis.Instruction) -> bool:
    """Whether an instruction loads a variable of the function or of one around it."""
    return instruction.opname in _CELL_LOADS


def find_paths(instructions: Iterable[dis.Instruction]) -> list[tuple[str, bool, Path]]:
    """Each reading of a variable: its name, whether it is a closure's, and the path.

    >>> def f(x):
    ...     return x * cfg["lr"] + len(sizes)
    >>> for name, _, path in find_paths(dis.get_instructions(f)):
    ...     print(name, [step.kind for step in path])
    cfg ['item']
    len []
    sizes ['length']
    """
    done = [each for each in instructions if each.opname not in _NOT_DONE]
    found = []
    for at, each in enumerate(done):
        is_cell = each.opname in _CELL_LOADS
        if is_cell or each.opname in GLOBAL_LOADS:
            found.append((each.argval, is_cell, _path(done, at)))
    return found


def _path(done: Sequence[dis.Instruction], start: int) -> Path:
    path: list[Step] = []
    before = done[start - 1] if start else None
    if before is not None and before.opname in _ATTRIBUTES and before.argval in _CALLBACKS:
        return (CALLED_LATER,)
    at = start + 1
    while at < len(done):
        now = done[at]
        following = done[at + 1] if at + 1 < len(done) else None
        if now.opname in _ATTRIBUTES:
            taken = _get(done, at) if now.argval == "get" else None
            if taken is not None:
                step, at = taken
                path.append(step)
                continue
            path.append(Step("attribute", now.argval))
            at += 1
        elif now.opname in _CONSTANTS and following is not None and _is_item(following):
            path.append(Step("item", now.argval))
            at += 2
        elif _is_written(done, at):
            return (*path, WRITTEN)
        elif _is_call(now, 1) and before is not None and before.argval == "len":
            return (*path, _LENGTH)
        elif now.opname == "CONTAINS_OP" and before is not None and before.opname in _CONSTANTS:
            return (*path, Step("has", before.argval))
        else:
            break
    return tuple(path)


def _is_item(instruction: dis.Instruction) -> bool:
    return instruction.opname == "BINARY_SUBSCR" or (
        instruction.opname == "BINARY_OP" and instruction.argrepr == "[]"
    )


def _is_call(instruction: dis.Instruction, count: int) -> bool:
    return instruction.opname == "CALL" and instruction.arg == count


def _get(done: Sequence[dis.Instruction], at: int) -> tuple[Step, int] | None:
    """The step of `.get(key)` or `.get(key, default)` that begins there, and where it ends."""
    loads = 0
    while at + 1 + loads < len(done) and loads < 3:
        now = done[at + 1 + loads]
        if loads and _is_call(now, loads):
            return Step("item", done[at + 1].argval), at + 2 + loads
        is_constant = now.opname in _CONSTANTS
        if not is_constant and not (loads and now.opname in _KEY_LOADS):
            return None
        loads += 1
    return None


def _is_written(done: Sequence[dis.Instruction], at: int) -> bool:
    """Whether an item of what is on the stack is assigned: `d[k] = v`, `d[k] += v`."""
    depth = 0
    for now in done[at : at + 8]:
        if now.opname in _CONSTANTS or now.opname in _KEY_LOADS or now.opname in _CELL_LOADS:
            depth += 1
        elif now.opname in {"LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"}:
            return False
        elif now.opname in {"STORE_SUBSCR", "DELETE_SUBSCR"} or now.opname == "COPY":
            # A key is copied only where the item is replaced by something made of it.
            return depth == 1
        elif now.opname not in _ATTRIBUTES or not depth:
            return False
    return False

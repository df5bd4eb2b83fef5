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

    `kind` is `item` or `attribute` with their `key`, or `at key` for an item whose key is a
    variable: then `key` is the name of a global with the path to the key, or `None` for other
    variables. Or it is a last step: `length`, `has` with the key that is looked for, `by key` for
    such keys that are not written in the code, `written` for items that are assigned and not read,
    `structure` where only the form of a tree counts, or `called later` for a function that a
    callback runs with each call of the program.
    """

    kind: str
    key: Any = None


Path = tuple[Step, ...]
WHOLE: Path = ()

WRITTEN, BY_KEY = Step("written"), Step("by key")
CALLED_LATER, STRUCTURE = Step("called later"), Step("structure")
_LENGTH = Step("length")
_CONSTANTS = {"LOAD_CONST", "LOAD_SMALL_INT"}
_CELL_LOADS = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
_KEY_LOADS = {"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_NAME", "LOAD_GLOBAL"}
_GETS = {"get", "getenv"}
_CALLBACKS = {"io_callback", "pure_callback"}
_STRUCTURES = {"structure", "tree_structure"}
_NOT_DONE = {"PUSH_NULL", "PRECALL", "COPY_FREE_VARS", "RESUME", "KW_NAMES"}


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
    if before is not None and before.opname in _ATTRIBUTES:
        if before.argval in _CALLBACKS or _is_debug_callback(done, start - 1):
            return (CALLED_LATER,)
        if before.argval in _STRUCTURES and done[start + 1].opname == "CALL":
            return (STRUCTURE,)
    at = start + 1
    while at < len(done):
        now = done[at]
        following = done[at + 1] if at + 1 < len(done) else None
        if now.opname in _ATTRIBUTES:
            taken = _get(done, at) if now.argval in _GETS else None
            if taken is not None:
                if now.argval == "getenv":
                    path.append(Step("attribute", "environ"))
                step, at = taken
                path.append(step)
                if step is BY_KEY:
                    return tuple(path)
                continue
            path.append(Step("attribute", now.argval))
            at += 1
        elif now.opname in _CONSTANTS and following is not None and _is_item(following):
            path.append(Step("item", now.argval))
            at += 2
        elif (use := _use_by_key(done, at)) is not None:
            step, at = use
            path.append(step)
            if step is WRITTEN:
                return tuple(path)
        elif _is_call(now, 1) and before is not None and before.argval == "len":
            return (*path, _LENGTH)
        elif now.opname == "CONTAINS_OP" and before is not None:
            is_constant = before.opname in _CONSTANTS
            return (*path, Step("has", before.argval) if is_constant else BY_KEY)
        else:
            break
    return tuple(path)


def _is_debug_callback(done: Sequence[dis.Instruction], at: int) -> bool:
    """Whether `debug.callback` has been loaded there: other methods may have that name."""
    return at > 0 and done[at].argval == "callback" and done[at - 1].argval == "debug"


def _is_item(instruction: dis.Instruction) -> bool:
    return instruction.opname == "BINARY_SUBSCR" or (
        instruction.opname == "BINARY_OP" and instruction.argrepr == "[]"
    )


def _is_call(instruction: dis.Instruction, count: int) -> bool:
    return instruction.opname == "CALL" and instruction.arg == count


def _get(done: Sequence[dis.Instruction], at: int) -> tuple[Step, int] | None:
    """The step of `.get(key)` or `.get(key, default)` that begins there, and where it ends."""
    count, now = 0, at + 1
    while count < 3 and now < len(done):
        if count and _is_call(done[now], count):
            key = done[at + 1]
            is_constant = key.opname in _CONSTANTS
            return (Step("item", key.argval) if is_constant else BY_KEY), now + 1
        end = _after_load(done, now)
        if end is None:
            return None
        count, now = count + 1, end
    return None


def _use_by_key(done: Sequence[dis.Instruction], at: int) -> tuple[Step, int] | None:
    """How an item of what is on the stack is used whose key is loaded there, and where that ends.

    `d[k] = v` and `d[k] += v` write to it, and so does `del d[k]`. A key is copied only where the
    item is replaced by something made of it.
    """
    end = _after_load(done, at)
    if end is None or end >= len(done):
        return None
    if done[end].opname in {"STORE_SUBSCR", "DELETE_SUBSCR", "COPY"}:
        return WRITTEN, end
    return (Step("at key", _source(done, at, end)), end + 1) if _is_item(done[end]) else None


def _source(done: Sequence[dis.Instruction], at: int, end: int) -> tuple[str, Path] | None:
    """The global that a key is loaded from, and the path to the key."""
    if done[at].opname not in GLOBAL_LOADS:
        return None
    steps: list[Step] = []
    for each in done[at + 1 : end]:
        if each.opname in _ATTRIBUTES:
            steps.append(Step("attribute", each.argval))
        elif each.opname in _CONSTANTS:
            steps.append(Step("item", each.argval))
    return done[at].argval, tuple(steps)


def _after_load(done: Sequence[dis.Instruction], at: int) -> int | None:
    """Where a value has been loaded that is a constant, a variable, or a part of a variable."""
    kind = done[at].opname
    if kind not in _CONSTANTS and kind not in _KEY_LOADS and kind not in _CELL_LOADS:
        return None
    at += 1
    while at < len(done):
        if done[at].opname == "LOAD_ATTR":
            at += 1
        elif done[at].opname in _CONSTANTS and at + 1 < len(done) and _is_item(done[at + 1]):
            at += 2
        else:
            break
    return at

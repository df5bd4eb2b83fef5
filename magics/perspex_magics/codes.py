"""What a code object means, and what it reads: worked out once, as it takes some 50 us."""

from __future__ import annotations

import dis
import types
from collections.abc import Hashable, Iterator

_MOST = 10_000
_GLOBAL_LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_STORES = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF"}
_METHOD_LOADS = {"LOAD_METHOD", "LOAD_ATTR"}
# These return nothing: who only calls them writes to the object, and does not read it.
_WRITING = {"append", "appendleft", "add", "extend", "insert", "update", "write"}
_CONSTRUCTORS = {"__init__", "__post_init__", "__new__"}


class Code:
    """What of a code object decides about its meaning, and the names in it.

    `reads` are the globals whose values it may depend on: not those that it assigns itself or only
    appends to, such as a count or a log of its traces. `names` are all names that may be attributes
    and all strings that could be names; `stored` the variables of the module or of functions around
    it that it assigns, and `stored_attributes` the attributes.
    """

    __slots__ = ("code", "meaning", "names", "reads", "stored", "stored_attributes")

    def __init__(self, code: types.CodeType) -> None:
        self.code = code
        self.meaning = _meaning(code)
        self.names = frozenset(_all_names(code))
        loaded: set[str] = set()
        self.stored: set[str] = set()
        self.stored_attributes: set[str] = set()
        for part in _parts(code):
            instructions = [i for i in dis.get_instructions(part) if i.opname != "CACHE"]
            for at, following in zip(instructions, [*instructions[1:], None], strict=True):
                if at.opname in _GLOBAL_LOADS:
                    if not _only_writes(following):
                        loaded.add(at.argval)
                elif at.opname in _STORES:
                    if at.argval not in part.co_cellvars:
                        self.stored.add(at.argval)
                elif at.opname == "STORE_ATTR" and part.co_name not in _CONSTRUCTORS:
                    self.stored_attributes.add(at.argval)
        self.reads = frozenset(loaded - self.stored)


def _only_writes(following: dis.Instruction | None) -> bool:
    return (
        following is not None and following.opname in _METHOD_LOADS and following.argval in _WRITING
    )


_known: dict[int, Code] = {}


def known_code(code: types.CodeType) -> Code:
    """The same object for the same code."""
    found = _known.get(id(code))
    if found is None:
        if len(_known) >= _MOST:
            _known.clear()
        found = _known[id(code)] = Code(code)
    return found


def _parts(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those of the functions and classes inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _parts(constant)


def _meaning(code: types.CodeType) -> Hashable:
    """Equal for equal texts wherever they stand: without file, lines and docstring."""
    constants: list[Hashable] = [
        _meaning(c) if isinstance(c, types.CodeType) else (type(c), repr(c)) for c in code.co_consts
    ]
    if constants and isinstance(code.co_consts[0], str) and not _loads_first_constant(code):
        constants[0] = type(None), "None"
    return (
        code.co_code,
        tuple(constants),
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_posonlyargcount,
        code.co_flags & ~_HAS_DOCSTRING,
        code.co_exceptiontable,
    )


# `inspect.CO_HAS_DOCSTRING` of Python 3.13; no flag of earlier versions.
_HAS_DOCSTRING = 0x4000000


def _loads_first_constant(code: types.CodeType) -> bool:
    return any(
        instruction.opcode in dis.hasconst and instruction.arg == 0
        for instruction in dis.get_instructions(code)
    )


def _all_names(code: types.CodeType) -> Iterator[str]:
    for part in _parts(code):
        yield from part.co_names
        yield from (c for c in part.co_consts if isinstance(c, str) and c.isidentifier())

"""What a code object means, and what it reads: worked out once, as it takes some 50 us."""

from __future__ import annotations

import dis
import types
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from perspex_magics.captures.homes import is_harmless
from perspex_magics.captures.paths import WHOLE, Path, find_paths
from perspex_magics.notebook.names import CALLED, GLOBAL_LOADS, READ, READ_BY_NAME, SHOWN

_MOST = 10_000
_STORES = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF"}
_ATTRIBUTE_LOADS = {"LOAD_METHOD", "LOAD_ATTR"}
_ATTRIBUTE_STORES = {"STORE_ATTR", "DELETE_ATTR"}
_CALLS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX"}
# Who only calls these writes to the object and does not read it, where they return nothing.
WRITING = frozenset({"append", "appendleft", "add", "extend", "insert", "update", "write"})
_CONSTRUCTORS = {"__init__", "__post_init__", "__new__"}
# What cells call around the user's expressions: it means nothing.
_SEEN = {CALLED, READ, SHOWN}
_NOT_DONE = {"CACHE", "EXTENDED_ARG", "NOP"}
# With these, code may read attributes whose names are not written in it.
BY_OTHER_NAMES = {
    *("getattr", "hasattr", "delattr", "vars", "dir", "locals", "__import__", "import_module"),
    *("__dict__", "__getattribute__", "__getstate__", "__reduce__", "__reduce_ex__", "__slots__"),
    *("format", "format_map", "attrgetter", "methodcaller", "_getframe", "modules"),
}
# Who calls one of these may read anything.
READS_ANYTHING = READ_BY_NAME - {"locals", "vars"}


class Write(NamedTuple):
    """A call of a method that may write to its object, and whether what it returns is dropped."""

    method: str
    is_dropped: bool


class Code:
    """What of a code object decides about its meaning, and the names in it.

    `reads` are the globals whose values it may depend on: not those that it assigns itself or only
    calls methods like `append` of, without a look at what these return, such as a log of its
    traces. `names` are all names of attributes that it reads and all strings that could be names.

    `writes` and `attribute_writes` are the globals and the attributes of which it only calls such
    methods, and how. Whether that reads them depends on what they are.

    `is_open` says that it may read attributes by names that are not written in it, and
    `reads_anything` that nothing is known of what it reads.

    `stored` are the variables of the module or of functions around it that it assigns.
    `stored_attributes` are the attributes, and `stored_on_first` those of its first parameter.
    `loaded_attributes` are those that it reads; `taken_from_names` those that it reads of a local
    variable or an attribute, and `taken_from_globals` those of a global, with its name before.

    `paths` are the parts of globals that it reads, by name, and `cell_paths` those of closures'
    variables. A variable that is missing in them is read as a whole.
    """

    __slots__ = (
        "attribute_writes",
        "cell_paths",
        "code",
        "is_open",
        "loaded_attributes",
        "meaning",
        "names",
        "paths",
        "reads",
        "reads_anything",
        "stored",
        "stored_attributes",
        "stored_on_first",
        "taken_from_globals",
        "taken_from_names",
        "writes",
    )

    def __init__(self, code: types.CodeType) -> None:
        self.code = code
        self.meaning = _meaning(code)
        self.is_open = self.reads_anything = False
        self.stored: set[str] = set()
        self.stored_attributes: set[str] = set()
        self.stored_on_first: set[str] = set()
        self.loaded_attributes: set[str] = set()
        self.taken_from_names: set[str] = set()
        self.taken_from_globals: set[tuple[str, str]] = set()
        self.paths: dict[str, frozenset[Path]] = {}
        self.cell_paths: dict[str, frozenset[Path]] = {}
        found_paths: list[tuple[str, bool, Path]] = []
        loads = _Loads()
        attribute_loads = _Loads()
        others: set[str] = set()
        stored_elsewhere: set[str] = set()
        for part in _parts(code):
            others |= {c for c in part.co_consts if isinstance(c, str) and c.isidentifier()}
            first = part.co_varnames[0] if part is code and part.co_argcount else None
            instructions = [i for i in dis.get_instructions(part) if i.opname not in _NOT_DONE]
            found_paths += find_paths(instructions)
            has_super = "super" in part.co_names
            self.is_open = self.is_open or not BY_OTHER_NAMES.isdisjoint(part.co_names)
            for i, at in enumerate(instructions):
                kind, name = at.opname, at.argval
                if kind in GLOBAL_LOADS and name in _SEEN:
                    continue
                if kind in GLOBAL_LOADS:
                    loads.add(name, instructions, i)
                    others.add(name)
                elif kind in _STORES:
                    if name not in part.co_cellvars:
                        self.stored.add(name)
                    others.add(name)
                elif kind in _ATTRIBUTE_LOADS:
                    attribute_loads.add(name, instructions, i)
                    self.loaded_attributes.add(name)
                    owner = _owner_of_load(instructions, i)
                    if owner is not None and owner.opname in GLOBAL_LOADS:
                        self.taken_from_globals.add((owner.argval, name))
                    elif owner is not None and (
                        owner.opname.startswith("LOAD_") or (has_super and owner.opname == "CALL")
                    ):
                        self.taken_from_names.add(name)
                elif kind in _ATTRIBUTE_STORES:
                    if kind == "STORE_ATTR" and part.co_name not in _CONSTRUCTORS:
                        owner = _owner_of_store(instructions, i)
                        is_on_first = first is not None and _local(owner) == first
                        (self.stored_on_first if is_on_first else stored_elsewhere).add(name)
                elif at.opcode in dis.hasname:
                    others.add(name)
                    if kind == "LOAD_SUPER_ATTR":
                        self.taken_from_names.add(name)
                    elif kind == "IMPORT_NAME" and not is_harmless(name):
                        self.is_open = True
                elif kind == "MATCH_CLASS":
                    self.is_open = True
        for name, is_cell, path in found_paths:
            paths = self.cell_paths if is_cell else self.paths
            paths[name] = paths.get(name, frozenset()) | {path}
        for paths in (self.paths, self.cell_paths):
            for name in [name for name, known in paths.items() if WHOLE in known]:
                del paths[name]
        self.stored_attributes = self.stored_on_first | stored_elsewhere
        self.stored_on_first -= stored_elsewhere
        self.writes = loads.writes(self.stored)
        self.attribute_writes = attribute_loads.writes(others)
        self.names = frozenset(others | (self.loaded_attributes - self.attribute_writes.keys()))
        dropped = {n for n, uses in self.writes.items() if all(use.is_dropped for use in uses)}
        self.reads = frozenset(loads.found.keys() - self.stored - dropped)
        self.reads_anything = not READS_ANYTHING.isdisjoint(loads.found)


class _Loads:
    """Names that code loads, and the writing methods that it calls of them, if nothing else."""

    def __init__(self) -> None:
        self.found: dict[str, set[Write | None]] = {}

    def add(self, name: str, instructions: list[dis.Instruction], at: int) -> None:
        following = instructions[at + 1] if at + 1 < len(instructions) else None
        write: Write | None = None
        if following is not None and following.opname in _ATTRIBUTE_LOADS:
            method = following.argval
            if method in WRITING:
                write = Write(method, _is_dropped(instructions, at + 1))
        self.found.setdefault(name, set()).add(write)

    def writes(self, others: set[str]) -> dict[str, frozenset[Write]]:
        """The names of which nothing but writing methods is called, and which are not `others`."""
        return {
            name: frozenset(use for use in uses if use is not None)
            for name, uses in self.found.items()
            if None not in uses and name not in others
        }


def _is_dropped(instructions: list[dis.Instruction], at: int) -> bool:
    """Whether what a method that is loaded there returns is thrown away where it is called.

    Follows the depth of the stack to the call, on one of the ways through the arguments.
    """
    depth, index = 0, at + 1
    at_offset = {instruction.offset: i for i, instruction in enumerate(instructions)}
    while index < len(instructions):
        now = instructions[index]
        leaves_loop = now.opname == "FOR_ITER"
        depth += dis.stack_effect(now.opcode, now.arg, jump=leaves_loop)
        if now.opname in _CALLS and depth <= 0:
            # Lower still where the method itself is an argument.
            following = instructions[index + 1].opname if index + 1 < len(instructions) else ""
            return depth >= -1 and following == "POP_TOP"
        if leaves_loop or now.opname == "JUMP_FORWARD":
            index = at_offset.get(now.argval, len(instructions))
        else:
            index += 1
    return False


def _owner_of_load(instructions: list[dis.Instruction], at: int) -> dis.Instruction | None:
    """What loads the object of which an attribute is loaded; a copy is of what is below it."""
    while at > 0:
        at -= 1
        if instructions[at].opname != "COPY":
            return instructions[at]
    return None


def _owner_of_store(instructions: list[dis.Instruction], at: int) -> dis.Instruction | None:
    """What loads the object of which an attribute is assigned, as in `o.n = 1` and `o.n += 1`."""
    if at > 0 and instructions[at - 1].opname == "SWAP":
        name = instructions[at].argval
        for i in range(at - 2, 1, -1):
            loads_old = instructions[i].opname == "LOAD_ATTR" and instructions[i].argval == name
            if loads_old and instructions[i - 1].opname == "COPY":
                return instructions[i - 2]
        return None
    return instructions[at - 1] if at > 0 else None


def _local(instruction: dis.Instruction | None) -> str | None:
    """The local variable that an instruction loads last."""
    if instruction is None or "LOAD_FAST" not in instruction.opname:
        return None
    found = instruction.argval
    return found[-1] if isinstance(found, tuple) else found


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

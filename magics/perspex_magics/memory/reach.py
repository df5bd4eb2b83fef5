"""Which arrays can be reached from a value, by which path, and what buffers they are.

Several arrays of Python may share one buffer, so buffers are told apart by their address. Nothing
here waits for the device, copies an array or changes anything.
"""

from __future__ import annotations

import asyncio
import itertools
import reprlib
import types
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from traitlets import HasTraits

from perspex.base import xla
from perspex.base.name_stack import NameStack
from perspex.base.source import Frame, Source
from perspex.errors import JaxRuntimeError
from perspex.ir.jaxpr import Jaxpr, JaxprEqn, Var
from perspex.jitted.compiled import Compiled
from perspex.runtime.array import ArrayImpl
from perspex.runtime.keys import KeyArray
from perspex.tracing.trace import Trace, Tracer
from perspex_magics.captures.objects import Text
from perspex_magics.memory.parts import inside, is_numbers
from perspex_magics.timing.unfinished import is_there

# So many containers and objects are entered, at about 1 us each, and so many items of one looked
# at, at 30 ns; for what lies behind no name is known.
_MOST_ENTERED = 50_000
_MOST_ITEMS = 100_000
_ITEMS_FOR_ONE = 32
# A list in a list in a list ...
_DEEPEST = 24
ATOMS = frozenset(
    [int, float, complex, bool, str, bytes, type(None), range, slice, types.BuiltinFunctionType]
    + [np.float32, np.float64, np.int32, np.int64, np.bool_]
)
# IPython itself consists of objects with traits, and a loop of events holds what everybody waits
# for. A trace holds what it captured, which the user's own variables hold as well, among thousands
# of equations. The constants of compiled functions are owners of their own; what such a function
# remembers besides, and where calls stand in the source, has no arrays, but grows all day.
_OPAQUE = (
    *(Trace, Jaxpr, JaxprEqn, Var, Compiled, Source, Frame, NameStack),
    *(ArrayImpl, types.ModuleType, Tracer, np.generic, np.dtype, types.CodeType),
    *(HasTraits, asyncio.AbstractEventLoop),
)
_OF_JAXLIB = (xla.PjitFunction, xla.pytree.PyTreeDef)

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 40


# The steps to an array from its owner, the last one first: `((None, "w"), 0)` is `['w'][0]`.
Path = tuple[Any, Any] | None


def path_text(path: Path) -> str:
    """A path as it would be written.

    >>> path_text(((None, "w"), 0))
    "['w'][0]"
    """
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(step if isinstance(step, Text) else f"[{_short.repr(step)}]")
    return "".join(reversed(steps))


class Owner(NamedTuple):
    """Something that holds arrays: a variable, an output, a variable of a frame, a program."""

    kind: str  # variable, module, output, error, running, compiled, program
    name: str
    function: str = ""  # whose variable it is

    def text(self, path: Path = None) -> str:
        """The owner and the way from there, as in `params['w']`."""
        name = self.name + path_text(path)
        match self.kind:
            case "error":
                return f"{name} in {self.function} (the last error)"
            case "running":
                return f"{name} in {self.function} (running)"
            case "compiled":
                return f"compiled {self.name} (a constant)"
            case "program":
                return f"{self.name} (remembered)"
        return name


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory of a device or, if asked for, of NumPy, and all ways to it that were found."""

    array: Any
    nbytes: int
    found: tuple[Any, ...]  # the array, then its owners, each with a path
    keys: Sequence[Hashable]  # what tells it from others, for each of its parts

    @property
    def ways(self) -> list[tuple[Owner, Path]]:
        """The owners, each with a path from it, as they were found."""
        return list(zip(self.found[1::2], self.found[2::2], strict=True))

    @property
    def type(self) -> str:
        """`f32[3,4]`."""
        if isinstance(self.array, np.ndarray):
            return f"{self.array.dtype}[{','.join(map(str, self.array.shape))}] (NumPy)"
        aval = self.array.aval
        return "unknown" if aval is None else str(aval.str_short())

    @property
    def device(self) -> str:
        if isinstance(self.array, np.ndarray):
            return "host"
        devices = self.array.devices()
        return str(*devices) if len(devices) == 1 else f"{len(devices)} devices"

    @property
    def owners(self) -> list[Owner]:
        """Who holds it, each once."""
        return list(dict.fromkeys(owner for owner, _ in self.ways))


@dataclass(eq=False)
class Report:
    """Buffers, the largest first; `complete` if everything could be looked through."""

    buffers: list[Buffer]
    complete: bool

    @property
    def nbytes(self) -> int:
        return sum([buffer.nbytes for buffer in self.buffers])


def go_on() -> None:
    """Nothing stops a walk."""


class Walk:
    """Collects the arrays that are reached, with the ways to them.

    `check` is called at each step, and may raise what ends the walk.
    """

    def __init__(
        self, main: str = "__main__", numpy: bool = False, check: Callable[[], None] = go_on
    ) -> None:
        self.check = check
        self.left = _MOST_ENTERED
        self.complete = True
        self.main = main  # the module whose classes are the user's
        self.closed: set[int] = set()  # what is not entered, by identity
        self.kinds = {ArrayImpl, np.ndarray} if numpy else {ArrayImpl}
        # By the identity of an array: the array, its first owner and path, the second ones, ...
        self.found: dict[int, tuple[Any, ...]] = {}
        self.closed.add(id(self))

    def add(self, value: Any, owner: Owner) -> None:
        """Note all arrays in `value`, which is what `owner` names."""
        kinds, found = self.kinds, self.found
        seen = set(self.closed)
        stack: list[tuple[Any, Path, int]] = [([value], None, -1)]
        while stack:
            if self.left <= 0:
                self.complete = False
                return
            self.check()
            holder, path, depth = stack.pop()
            for step, part in self._inside(holder):
                cls = type(part)
                if cls in ATOMS:
                    continue
                if cls is KeyArray:
                    part, cls = part.base, ArrayImpl
                way = None if depth < 0 else (path, step)
                if cls in kinds:
                    known = found.get(id(part), (part,))
                    if len(known) == 1 or known[-2] is not owner:
                        found[id(part)] = (*known, owner, way)
                if id(part) not in seen and not _is_opaque(part, cls):
                    if depth < _DEEPEST:
                        seen.add(id(part))
                        stack.append((part, way, depth + 1))
                    else:
                        self.complete = False

    def _inside(self, value: Any) -> Iterable[tuple[Any, Any]]:
        """The values in a container or an object, each with the step to it; not too many."""
        found, size = inside(value, self.main)
        self.left -= 1 + min(size, _MOST_ITEMS) // _ITEMS_FOR_ONE
        if size <= _MOST_ITEMS:
            return found
        self.complete = False
        return itertools.islice(found, _MOST_ITEMS)

    def buffers(self, alive: Iterable[Any] = ()) -> Report:
        """What was found and what is `alive` besides, by buffer."""
        found = self.found
        entries = list(found.values())
        entries += [(array,) for array in alive if id(array) not in found]
        # An array over several devices comes before its parts, which are arrays themselves, and
        # those that jaxlib made for itself, which have no type, come last.
        entries.sort(key=lambda entry: 2 * _is_untyped(entry[0]) - _is_spread(entry[0]))
        by_key: dict[Hashable, Buffer] = {}
        buffers = []
        for entry in entries:
            self.check()
            array = entry[0]
            keys, nbytes = _identity(array)
            if nbytes < 0:
                continue
            buffer = by_key.get(keys[0])
            if buffer is None:
                buffer = Buffer(array, nbytes, entry, keys)
                by_key.update(dict.fromkeys(keys, buffer))
                buffers.append(buffer)
            else:
                buffer.found += entry[1:]
        return Report(sorted(buffers, key=_by_size), self.complete)


def _is_opaque(value: Any, cls: type) -> bool:
    """Whether a value, which is of this class, is not looked into.

    Objects of jaxlib hold none of ours but for functions and the data of trees. A program that is
    being lowered consists of thousands, and a registry of trees leads to all classes in it.
    """
    if issubclass(cls, np.ndarray):
        return is_numbers(value)
    if cls.__module__.startswith("jaxlib."):
        return cls not in _OF_JAXLIB
    return issubclass(cls, _OPAQUE)


def _by_size(buffer: Buffer) -> int:
    return -buffer.nbytes


def _is_untyped(array: Any) -> bool:
    return type(array) is ArrayImpl and array.aval is None


def _is_spread(array: Any) -> bool:
    return type(array) is ArrayImpl and xla.sharding_of(array).num_devices > 1


def _identity(array: Any) -> tuple[Sequence[Hashable], int]:
    """What tells a buffer from others, for each of its parts, and its bytes on all devices.

    Fewer bytes than none are those of an array that is gone.
    """
    if type(array) is not ArrayImpl:
        while isinstance(array.base, np.ndarray):
            array = array.base
        return (id(array),), array.nbytes
    if array.is_deleted():
        return (None,), -1
    spread = _is_spread(array)
    measured = spread or array.aval is None
    nbytes: int = array.on_device_size_in_bytes() if measured else array.nbytes
    try:
        # To ask for the address of memory that is still to be computed would wait for it; of an
        # array that another thread has deleted in the meantime, it is an error.
        if nbytes and is_there(array):
            parts = xla.parts_of(array) if spread else (array,)
            return [part.unsafe_buffer_pointer() for part in parts], nbytes
    except JaxRuntimeError:  # what should have computed it failed
        pass
    return [("array", id(array))], nbytes


def arrays_in(value: Any) -> list[Any]:
    """The arrays in a value."""
    walk = Walk()
    walk.add(value, Owner("variable", ""))
    return [entry[0] for entry in walk.found.values()]

"""Optimized HLO, read from its text: what a profile needs to know of each instruction.

jaxlib gives the optimized program as text only. From that come the names, kinds and sizes of the
instructions, the computations that they call, and the number of the operation of the module that
each one belongs to (`hlo.numbering`).
"""

from __future__ import annotations

import functools
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from perspex.hlo.numbering import number_in

_HEAD = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r" +(?:ROOT )?%?([\w.\-]+) = (\([^=]*?\)|\S+) ([a-z][\w\-]*)\((.*)$")
_SHAPE = re.compile(r"[a-z]\w*\[([\d,]*)\]")
_OPERAND = re.compile(r"%([\w.\-]+)")
_CALLED = re.compile(
    r"(?:calls|body|condition|to_apply|true_computation|false_computation)=%?([\w.\-]+)"
    r"|(?:branch_computations|called_computations)=\{([^}]*)\}"
)
_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_CONTRACTED = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")
_WINDOW = re.compile(r"window=\{size=([\dx]+)")
# In long tuples.
_COMMENT = re.compile(r"/\*.*?\*/")
_DTYPE = re.compile(r"(pred|token|[a-z]+(\d+)\w*)\[([\d,]*)\]")
_PARTITIONS = re.compile(r"\bnum_partitions=(\d+)")
_REPLICAS = re.compile(r"\breplica_count=(\d+)")
# Three ways to write them: in full, as a reshape of all numbers, and as axes of a mesh, of which
# one with numbers in brackets is a part.
_GROUPS = re.compile(
    r"replica_groups=(?:\{\{([\d,]*)\}|\[\d+,(\d+)\]<=|mesh\[([^]]*)\] *\{([^}]*)\})"
)
_AXIS = re.compile(r"'([^']*)'(?::\(\d+\)(\d+))?(?:=(\d+))?")
_NO_IDENTIFIER = re.compile(r"\W")
_METADATA = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}')

# What runs the instructions of other computations, one by one or as one kernel.
_RUNS_OTHERS = {"fusion", "call", "while", "conditional", "async-start"}
_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast", "iota"}
# In loops over elements these take about ten times as long as a sum.
_DEAR = {
    *("exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "tanh", "sine"),
    *("cosine", "tan", "power", "sqrt", "rsqrt", "cbrt", "erf", "atan2", "divide", "remainder"),
}
_TEN = 10.0

# How many times the bytes of its operands a device sends in a group of n, by the ring algorithms.
_SENDS: dict[str, Callable[[int], float]] = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "reduce-scatter": lambda n: (n - 1) / n,
    "all-gather": lambda n: n - 1,
    "all-to-all": lambda n: (n - 1) / n,
    "ragged-all-to-all": lambda n: (n - 1) / n,
    "collective-permute": lambda n: 1,
    "collective-broadcast": lambda n: (n - 1) / n,
}


class Instruction(NamedTuple):
    """One instruction: its `weight` is a guess of its work, for sharing time out.

    `runs` are the computations that it runs, each `trips` times; `number` that of its operation, or
    `None` where the compiler has added it; `operands` are their names. A collective has the bytes
    that each device `sent`, and the size of the `group` that exchanges.
    """

    name: str
    kind: str
    weight: float
    number: int | None
    runs: tuple[str, ...]
    trips: int
    sent: float = 0.0
    group: int = 1
    operands: tuple[str, ...] = ()


class Place(NamedTuple):
    """Where an instruction stands: its computation, and its number in that."""

    computation: str
    number: int


class Share(NamedTuple):
    """A part of the time of an instruction, for the operation of that number.

    `kind` is that of the instruction which XLA has made of the operation.
    """

    number: int | None
    kind: str
    part: float


class Instructions:
    """The instructions of an optimized program, by computation and by name."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, list[Instruction]] = {}
        self.by_name: dict[str, Instruction] = {}
        self.entry = ""
        # By name: which instructions use one, and which runs the computation that it is in.
        self._users: dict[str, list[str]] | None = None
        self._runners: dict[str, str] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        bytes_of: dict[str, float] = {}
        current: list[Instruction] = []
        devices = 1
        for row in text.splitlines():
            if row.startswith("HloModule"):
                counts = [pattern.search(row) for pattern in (_PARTITIONS, _REPLICAS)]
                devices = math.prod([int(found[1]) for found in counts if found])
            if not row.startswith(" "):
                head = _HEAD.match(row)
                if head:
                    current = self.computations.setdefault(head[2], [])
                    shapes, bytes_of = {}, {}
                    if head[1]:
                        self.entry = head[2]
                continue
            found = _INSTRUCTION.match(_COMMENT.sub("", row) if "/*" in row else row)
            if found:
                one = _instruction(found, shapes)
                if devices > 1:
                    bytes_of[one.name] = _bytes(found[2])
                    one = _exchange(one, found[4], bytes_of, devices)
                current.append(one)
                self.by_name[one.name] = one

    def shares(self, name: str) -> list[Share]:
        """How the time of an instruction is shared out to operations; the parts make one."""
        one = self.by_name[name]
        weights: dict[tuple[int | None, str], float] = {}
        for inner, times in self._inside(one, 1.0):
            if inner.weight:
                key = inner.number, inner.kind
                weights[key] = weights.get(key, 0.0) + times * inner.weight
        # Instructions that the compiler added count with the ones that it added them to.
        named = {key: weight for key, weight in weights.items() if key[0] is not None}
        total = sum(named.values())
        if not total:
            return [Share(one.number, one.kind, 1.0)]
        return [Share(number, kind, weight / total) for (number, kind), weight in named.items()]

    @functools.cached_property
    def places(self) -> dict[str, Place]:
        """The place of each instruction; XLA runs those of a computation in this order."""
        return {
            one.name: Place(computation, i)
            for computation, instructions in self.computations.items()
            for i, one in enumerate(instructions)
        }

    @functools.cached_property
    def by_kernel(self) -> dict[str, str]:
        """The instructions by the names that kernels made of them have, where that is clear."""
        found: dict[str, str] = {}
        for name in self.by_name:
            kernel = _NO_IDENTIFIER.sub("_", name)
            found[kernel] = "" if kernel in found else name
        return found

    def runner(self, outer: str, inner: str) -> int | None:
        """The index of the instruction of a computation that carries out another one."""
        for i, one in enumerate(self.computations.get(outer, ())):
            for run in one.runs:
                if run == inner or self.runner(run, inner) is not None:
                    return i
        return None

    def around(self, name: str) -> Iterator[Instruction]:
        """What an instruction serves, the nearest first: for one that the compiler has added.

        Those that use its result come first, then those that it has its operands from, and at last
        the loop, branch or call that it is in, and what that serves.
        """
        users = self._users
        if users is None:
            users = self._users = {}
            for inside in self.computations.values():
                for one in inside:
                    for operand in one.operands:
                        users.setdefault(operand, []).append(one.name)
                    for run in one.runs:
                        for inner in self.computations.get(run, ()):
                            self._runners[inner.name] = one.name
        seen = {name}
        yield from self._reached(name, lambda one: users.get(one, ()), seen)
        yield from self._reached(name, lambda one: self.by_name[one].operands, seen)
        runner = self._runners.get(name)
        if runner is not None:
            yield self.by_name[runner]
            yield from self.around(runner)

    def _reached(
        self, name: str, step: Callable[[str], Iterable[str]], seen: set[str]
    ) -> Iterator[Instruction]:
        waiting = deque(step(name))
        while waiting:
            now = waiting.popleft()
            if now not in seen and now in self.by_name:
                seen.add(now)
                yield self.by_name[now]
                waiting.extend(step(now))

    def everything(self) -> Iterator[tuple[Instruction, float]]:
        """All that a run carries out, and how often; of a branch, all cases."""
        for one in self.computations.get(self.entry, ()):
            yield from self._inside(one, 1.0)

    def _inside(self, one: Instruction, times: float) -> Iterator[tuple[Instruction, float]]:
        if not one.runs:
            yield one, times
        for computation in one.runs:
            for inner in self.computations.get(computation, ()):
                yield from self._inside(inner, times * one.trips)


def _instruction(found: re.Match[str], shapes: dict[str, tuple[int, ...]]) -> Instruction:
    name, types, kind, rest = found.groups()
    sizes = [tuple(map(int, filter(None, s.split(",")))) for s in _SHAPE.findall(types)]
    shapes[name] = sizes[0] if sizes else ()
    runs: tuple[str, ...] = ()
    trips = 1
    if kind in _RUNS_OTHERS:
        called = [one or several for one, several in _CALLED.findall(_METADATA.sub("", rest))]
        runs = tuple([name for text in called for name in re.findall(r"[\w.\-]+", text)])
        if kind == "while":
            known = _TRIPS.search(rest)
            trips = int(known[1]) if known else 1
    op_name = _NAME.search(rest)
    number = number_in(op_name[1]) if op_name else None
    elements = sum(map(math.prod, sizes))
    weight = _weight(kind, float(elements), rest, shapes)
    operands = tuple(_OPERAND.findall(rest.partition(")")[0]))
    return Instruction(name, kind, weight, number, runs, trips, operands=operands)


def _bytes(types: str) -> float:
    """The size of what an instruction gives."""
    return sum(
        [
            math.prod(map(int, filter(None, dims.split(",")))) * (int(bits) / 8 if bits else 1)
            for name, bits, dims in _DTYPE.findall(types)
            if name != "token"
        ]
    )


def _exchange(one: Instruction, rest: str, bytes_of: dict[str, float], devices: int) -> Instruction:
    """The same, with what its devices send if it is a collective."""
    kind = one.kind.removesuffix("-start")
    if kind not in _SENDS:
        return one
    group = 2 if kind == "collective-permute" else _group(rest) or devices
    operands = _OPERAND.findall(rest.partition(")")[0])
    given = sum([bytes_of.get(name, 0.0) for name in operands])
    return one._replace(kind=kind, sent=given * _SENDS[kind](group), group=group)


def _group(rest: str) -> int:
    """How many devices exchange with each other; 0 if nothing is said, which means all.

    >>> _group("replica_groups={{0,1,2},{3,4,5}}"), _group("replica_groups=[2,4]<=[8], x=1")
    (3, 4)
    >>> _group("replica_groups=mesh['a'=8,'b'=4] {'b'}"), _group("replica_groups={}")
    (4, 0)
    >>> _group("replica_groups=mesh['a'=8,'b'=4] {'a':(2)4,'b'}")
    16
    """
    found = _GROUPS.search(rest)
    if found is None:
        return 0
    full, reshaped, mesh, axes = found.groups()
    if axes is not None:
        sizes = {name: int(size) for name, _, size in _AXIS.findall(mesh)}
        return math.prod([int(part) if part else sizes[n] for n, part, _ in _AXIS.findall(axes)])
    return int(reshaped) if reshaped else full.count(",") + 1


def _weight(kind: str, elements: float, rest: str, shapes: dict[str, tuple[int, ...]]) -> float:
    if kind in _FREE:
        return 0.0
    if kind in _DEAR:
        return _TEN * elements
    operands = [shapes.get(name, ()) for name in _OPERAND.findall(rest.partition(")")[0])]
    if kind == "dot" and operands:
        found = _CONTRACTED.search(rest)
        axes = list(map(int, filter(None, found[1].split(",")))) if found else []
        return 2 * elements * math.prod([operands[0][i] for i in axes if i < len(operands[0])])
    if kind == "convolution" and len(operands) > 1:
        # All of the kernel for each element, but for the axis of features of the result.
        return 2 * elements * math.prod(operands[1]) / max(1, max(operands[1], default=1))
    if kind == "reduce" and operands:
        return float(math.prod(operands[0]))
    if kind == "reduce-window":
        found = _WINDOW.search(rest)
        return elements * (math.prod(map(int, found[1].split("x"))) if found else 1)
    return elements

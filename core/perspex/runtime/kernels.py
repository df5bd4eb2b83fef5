"""Whose work the kernels of an accelerator are: the instruction behind each of them.

A TPU names the instructions themselves. So do most kernels of a GPU, in a statistic, but those of
NVIDIA's libraries have no name there, or in a loop that of the loop. XLA carries out a program in
the order of its text: such a kernel belongs to a call between the instructions whose kernels came
before and after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from perspex.hlo.instructions import Instruction, Instructions, Place

_HOLDING = ("while", "conditional", "call")
# What a library does, and whose kernels have names of its own.
_CALL = "custom-call"
_MOVES = ("Memcpy", "Memset")


class Kernel(NamedTuple):
    """What the profiler saw: the kernel's own name, and its instruction, "" if it knows none."""

    name: str
    instruction: str


def owners(kernels: Sequence[Kernel], program: Instructions) -> list[str]:
    """The instructions of the kernels of a run, in their order; "" where nobody knows."""
    found = [_named(kernel, program) for kernel in kernels]
    told = set(found)
    for first, last in _gaps(kernels, found, program):
        before = next(filter(None, reversed(found[:first])), "")
        after = next(filter(None, found[last:]), "")
        calls = [name for name in _between(program, before, after) if name not in told]
        for i in range(first, last if calls else first):
            found[i] = calls[(i - first) * len(calls) // (last - first)]
    return [
        name or (kernel.instruction if kernel.instruction in program.by_name else "")
        for name, kernel in zip(found, kernels, strict=True)
    ]


def is_holding(instruction: Instruction | None) -> bool:
    """Whether others are carried out in an instruction, one by one."""
    return instruction is not None and instruction.kind in _HOLDING


def is_move(name: str) -> bool:
    """Whether a kernel of that name moves bytes, and is of no library."""
    return name.startswith(_MOVES)


def _named(kernel: Kernel, program: Instructions) -> str:
    """The instruction that a kernel names itself, in one way or the other."""
    one = program.by_name.get(kernel.instruction)
    if one is not None and not is_holding(one):
        return one.name
    return program.by_kernel.get(kernel.name, "")


def _gaps(
    kernels: Sequence[Kernel], found: Sequence[str], program: Instructions
) -> Iterator[tuple[int, int]]:
    """Begin and end of each row of kernels, one after the other, that are of a library."""
    first = None
    for i, (kernel, name) in enumerate(zip(kernels, found, strict=True)):
        is_vague = not kernel.instruction or kernel.instruction in program.by_name
        if not name and is_vague and not is_move(kernel.name):
            first = i if first is None else first
        elif first is not None:
            yield first, i
            first = None
    if first is not None:
        yield first, len(found)


def _between(program: Instructions, before: str, after: str) -> list[str]:
    """The calls of libraries that are carried out between two instructions.

    Without a first one, those from the begin of the program; without a last one, those to its end.
    """
    entry = program.computations.get(program.entry, ())
    first = program.places.get(before, Place(program.entry, 0))
    last = program.places.get(after, Place(program.entry, len(entry)))
    if first.computation != last.computation:  # into a loop or out of it
        inwards = program.runner(first.computation, last.computation)
        outwards = program.runner(last.computation, first.computation)
        return [
            *_calls(program, first.computation, first.number, inwards),
            *_calls(program, last.computation, outwards or 0, last.number),
        ]
    if not before or first.number < last.number:
        return _calls(program, first.computation, first.number, last.number)
    # The next turn of a loop.
    return [
        *_calls(program, first.computation, first.number, None),
        *_calls(program, last.computation, 0, last.number),
    ]


def _calls(program: Instructions, computation: str, start: int, stop: int | None) -> list[str]:
    inside = program.computations.get(computation, ())[start:stop]
    return [one.name for one in inside if one.kind == _CALL]

"""What devices send each other in a run of a program, by line of the user's code.

It is read from the optimized program, so it has what the partitioner added, too: a sum over an axis
that is cut, a product of arrays that lie differently. Lines are found as for a profile.
"""

from __future__ import annotations

from typing import Any

from perspex.base import events
from perspex.runtime.measuring import Exchange, Place
from perspex.runtime.placement import Spread
from perspex.runtime.profile import Program


def communication(executable: Any) -> list[Exchange]:
    """The exchanges of a run of an executable, those that send the most first.

    Loops whose number of steps XLA does not know count once, and of a branch all cases count.
    """
    place = executable.place
    if place.__class__ is not Spread or place.mesh.size < 2:
        return []
    with events.unheard():  # the program is lowered again, to be looked at
        return _read(Program(executable))


def _read(program: Program) -> list[Exchange]:
    found: dict[tuple[Place | None, str], list[float]] = {}
    whole = 0.0
    for one, times in program.instructions.everything():
        whole += times * one.weight
        if one.group > 1:
            at = program.place(one.number, one.kind)
            sums = found.setdefault((at, one.kind), [0.0, 0.0, 0.0, 0.0])
            sums[0] += times * one.sent
            sums[1] += times
            sums[2] = max(sums[2], one.group)
            sums[3] += times * one.weight
    exchanges = [
        Exchange(at, kind, sent, times, int(group), weight / whole if whole else 0.0)
        for (at, kind), (sent, times, group, weight) in found.items()
    ]
    return sorted(exchanges, key=lambda one: -one.sent)

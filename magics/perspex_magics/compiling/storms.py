"""The line under a cell outside of `jit` that compiled the same operations for many shapes.

Each operation on arrays is a program of its own, compiled for each shape. A loop over arrays of
different sizes compiles on each turn, which looks as if the operations were slow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from perspex import config
from perspex.base import source
from perspex_magics.compiling.compilations import Compilation, Recorder
from perspex_magics.compiling.recompiles import Told
from perspex_magics.display import notices
from perspex_magics.display.markup import LINE, coded, listed, tag
from perspex_magics.display.units import count, duration
from perspex_magics.keys.lineage import expression_at
from perspex_magics.session import Session

# An operation counts that a cell compiled for so many types, and a cell that compiled so long.
MANY_TYPES, LEAST_SECONDS = 5, 0.25

_SIZE = re.compile(r"(?<=[\[,])\d+")


class Storm(NamedTuple):
    """Operations that were compiled for many types in one cell, the most expensive first.

    `names` are the user's expressions, where they can be found.
    """

    names: list[str]
    types: int
    programs: int
    seconds: float
    at: str

    def __str__(self) -> str:
        return (
            f"{listed(self.names)} were compiled for {count(self.types)} shapes: "
            f"{count(self.programs)} programs, {duration(self.seconds)}, most of them at "
            f"{self.at}. Outside of `jit` each operation has a program for each shape: pad to one "
            "size, or use `%%jit`, which compiles one program for each shape."
        )


def storm_in(compiled: Sequence[Compilation]) -> Storm | None:
    """The storm in what a cell has compiled, if it is one."""
    alike: dict[tuple[str, str, str], list[Compilation]] = {}
    for one in compiled:
        if one.is_library and one.found != "memory":
            # Operations of one gradient have many types, too, but not the same with other sizes.
            same = one.name, _SIZE.sub("", one.signature), source.summary(one.at)
            alike.setdefault(same, []).append(one)
    groups = [same for same in alike.values() if _types(same) >= MANY_TYPES]
    groups.sort(key=lambda same: -sum([one.seconds for one in same]))
    every = [one for same in groups for one in same]
    seconds = sum([one.seconds for one in every])
    if not every or seconds < LEAST_SECONDS:
        return None
    places = [source.summary(one.at) for one in every]
    at = max(set(places), key=places.count)
    types = max([_types(same) for same in groups])
    names = [expression_at(same[-1].at) or same[-1].name for same in groups]
    return Storm(list(dict.fromkeys(names)), types, len(every), seconds, at)


def _types(compiled: Sequence[Compilation]) -> int:
    return len({one.signature for one in compiled})


def tell_of_storms(session: Session, recorder: Recorder) -> None:
    """Look at the end of each cell at what it has compiled."""
    seen = recorder.total
    told = Told()

    def begin(info: Any) -> None:
        nonlocal seen
        seen = recorder.total

    def end(result: Any) -> None:
        new = recorder.total - seen
        if new < MANY_TYPES or not config.recompile_cards.value:
            return
        storm = storm_in([one for one in recorder.done.copy() if one.number > seen])
        if storm is not None and told.has_doubled(storm.at, storm.programs):
            _show(storm)

    session.on_cell(begin, end)


def _show(storm: Storm) -> None:
    html = tag(
        "div", coded(str(storm)), style=f"border-left:2px solid {LINE};padding:0 8px;margin:2px 0"
    )
    data = {
        "names": storm.names,
        "shapes": storm.types,
        "programs": storm.programs,
        "seconds": storm.seconds,
        "at": storm.at,
    }
    notices.show("storm", data, str(storm), html)

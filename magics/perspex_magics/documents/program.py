"""One program in its four forms, line by line, and which lines belong together.

Source, jaxpr, StableHLO and optimized HLO are linked by equations. The jaxpr's printer numbers
them. The module is written a second time with these numbers in its locations. What XLA has made of
it names the operations of the module by position (`perspex.hlo.numbering`), so that its links are
right even if the executable was first compiled for the same program in another place, and nothing
is compiled for the sake of them.
"""

from __future__ import annotations

import contextlib
import gc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from perspex.api.stages import Traced
from perspex.base import events, source
from perspex.base.effects import has_order
from perspex.hlo.numbering import origins
from perspex.ir import printing
from perspex.runtime.transfer import signature
from perspex.transforms.higher_order import Work, equation_work
from perspex_magics.documents.listings import links_of, optimized, packed, stablehlo
from perspex_magics.documents.sources import excerpts

# So many objects are made before Python looks for garbage among them.
_RARE = 10_000_019


def document(
    traced: Traced, *, name: str | None = None, cell_of: Callable[[str], str] = lambda file: ""
) -> dict[str, Any]:
    """The `Program` of the panel's schema (`panel/schema.json`) for a traced function.

    It is compiled if no call has done so, which nobody is told of.

    Args:
      traced: what `jit(f).trace(*args)` gives.
      name: what the program is called, if not by the function's name.
      cell_of: the id of the notebook's cell that a file name stands for, or nothing.

    >>> import perspex, perspex.numpy as pnp
    >>> found = document(perspex.jit(lambda x: pnp.sin(x) * 2).trace(pnp.zeros(3)))
    >>> found["equations"]["primitive"], found["equations"]["inputs"], found["jaxpr"]["links"]
    (['sin', 'mul'], [[], [0]], [[0, 1]])
    """
    return {**outline(traced, name=name, cell_of=cell_of), **compiled(traced)}


def outline(
    traced: Traced, *, name: str | None = None, cell_of: Callable[[str], str] = lambda file: ""
) -> dict[str, Any]:
    """A document without what has to be lowered for it: the lines of the user and the jaxpr."""
    with _aside():
        jaxpr = traced.jaxpr.jaxpr
        listing = printing.listing(jaxpr)
        entries = listing.entries
        works = [equation_work(entry.eqn) for entry in entries]
        places = {i: entry.eqn.source for i, entry in enumerate(entries) if entry.eqn.source}
        texts, links = zip(*listing.lines, strict=True)
        return {
            "name": traced.fun_name if name is None else name,
            "signature": signature(traced.jaxpr.in_avals),
            "sources": excerpts(places, cell_of),
            "equations": _equations(entries, works),
            "jaxpr": packed(texts, list(map(links_of, links))),
            "notes": _notes(traced, entries, works),
        }


def compiled(traced: Traced) -> dict[str, Any]:
    """The rest of the document: StableHLO, and optimized HLO."""
    with _aside():
        executable = traced.compiled()
        lowered = executable.lowered_again(_numbers(printing.listing(traced.jaxpr.jaxpr).entries))
        return {
            "stablehlo": stablehlo(lowered.as_text(debug_info=True)),
            "hlo": optimized(executable.as_text(), origins(lowered.compiler_ir())),
        }


def _numbers(entries: Sequence[printing.Entry]) -> dict[Any, int]:
    """Equations by the variables that they bind, or themselves if they bind none."""
    numbers: dict[Any, int] = {}
    for i, entry in enumerate(entries):
        for key in entry.eqn.outvars or (entry.eqn,):
            numbers.setdefault(key, i)
    return numbers


@contextlib.contextmanager
def _aside() -> Iterator[None]:
    """Tell nobody of what is done, and have Python look for garbage next to never meanwhile.

    That was half of the time of a long document. No garbage is made here, and all that is made is
    held until the end. The thread of a cell that runs meanwhile has the same threshold.
    """
    young, *older = gc.get_threshold()
    gc.set_threshold(_RARE, *older)
    try:
        with events.unheard():
            yield
    finally:
        now, *older = gc.get_threshold()
        if now == _RARE:  # if not, the user has set another since
            gc.set_threshold(young, *older)


def _equations(entries: Sequence[printing.Entry], works: Sequence[Work]) -> dict[str, list[Any]]:
    """The columns of a table of the equations."""
    numbers = _numbers(entries)
    lines: dict[str, int] = {"": 0}
    places: dict[source.Source | None, int] = {None: 0}
    at, inputs = [], []
    for entry in entries:
        eqn = entry.eqn
        place = places.get(eqn.source)
        if place is None:
            frame = eqn.source.frame
            text = source.line_name(frame.file, frame.line)
            place = places[eqn.source] = lines.setdefault(text, len(lines))
        at.append(place)
        read = {numbers[v]: None for v in eqn.invars if not hasattr(v, "val") and v in numbers}
        inputs.append(list(read))
    return {
        "primitive": [entry.eqn.primitive.name for entry in entries],
        "outputs": [entry.outputs for entry in entries],
        "parent": [entry.parent for entry in entries],
        "inputs": inputs,
        "lines": list(lines),
        "at": at,
        "flops": [work.flops for work in works],
        "bytes": [work.traffic for work in works],
    }


def _notes(traced: Traced, entries: Sequence[printing.Entry], works: Sequence[Work]) -> list[str]:
    """What a reader has to know of the figures and the links."""
    # Programs that are called more than once are printed first, and stand in none's either.
    ours = set(map(id, traced.jaxpr.eqns))
    parts = [
        work.flops for entry, work in zip(entries, works, strict=True) if id(entry.eqn) in ours
    ]
    if None in parts:
        unknown = [i for i, work in enumerate(works) if work.flops is None]
        holders = {entries[i].parent for i in unknown}
        counted = Counter(entries[i].eqn.primitive.name for i in unknown if i not in holders)
        names = ", ".join(f"{n} {name}" for name, n in sorted(counted.items()))
        notes = [f"FLOPs unknown: the program contains {names}."]
    else:
        total = sum(part for part in parts if part is not None)
        notes = [f"{total:,.0f} FLOPs in one run: one for each sum, product or sine."]
    if has_order(traced.jaxpr.effects):
        notes.append(
            "StableHLO and HLO are not linked, because ordered effects change the program before "
            "it is lowered."
        )
    return notes

"""One program in its four forms, line by line, and which lines belong together.

Source, jaxpr, StableHLO and optimized HLO are linked by equations. The jaxpr's printer numbers
them. The module is written a second time with these numbers in its locations. What XLA has made of
it names the operations of the module by position (`perspex.hlo.numbering`), so that its links are
right even if the executable was first compiled for the same program in another place, and nothing
is compiled for the sake of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from perspex import events, pretty, source
from perspex.api.stages import Traced
from perspex.control.higher_order import equation_work
from perspex.effects import has_order
from perspex.hlo.numbering import origins
from perspex.runtime.transfer import signature
from perspex_magics.documents.listings import folded, line, optimized, stablehlo
from perspex_magics.documents.sources import excerpts


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
    >>> [(one["primitive"], one["inputs"], one["flops"]) for one in found["equations"]]
    [('sin', [], 3.0), ('mul', [0], 3.0)]
    """
    with events.unheard():
        return _document(traced, name, cell_of)


def _document(traced: Traced, name: str | None, cell_of: Callable[[str], str]) -> dict[str, Any]:
    jaxpr = traced.jaxpr.jaxpr
    listing = pretty.listing(jaxpr)
    entries = listing.entries
    numbers: dict[Any, int] = {}
    for i, entry in enumerate(entries):
        for key in entry.eqn.outvars or (entry.eqn,):
            numbers.setdefault(key, i)
    equations = [_equation(entry, numbers) for entry in entries]
    places = {i: entry.eqn.source for i, entry in enumerate(entries) if entry.eqn.source}
    compiled = traced.compiled()
    lowered = compiled.lowered_again(numbers)
    return {
        "name": traced.fun_name if name is None else name,
        "signature": signature(traced.jaxpr.in_avals),
        "sources": excerpts(places, cell_of),
        "equations": equations,
        "jaxpr": folded([line(text, links) for text, links in listing.lines]),
        "stablehlo": stablehlo(lowered.as_text(debug_info=True)),
        "hlo": optimized(compiled.as_text(), origins(lowered.compiler_ir())),
        "notes": _notes(traced, equations),
    }


def _equation(entry: pretty.Entry, numbers: dict[Any, int]) -> dict[str, Any]:
    eqn = entry.eqn
    work = equation_work(eqn)
    inputs = {numbers[v]: None for v in eqn.invars if not hasattr(v, "val") and v in numbers}
    frame = source.resolve(eqn.source)
    return {
        "primitive": eqn.primitive.name,
        "outputs": entry.outputs,
        "parent": entry.parent,
        "inputs": list(inputs),
        "at": "" if frame is None else source.line_name(frame.file, frame.line),
        "flops": work.flops,
        "bytes": work.traffic,
    }


def _notes(traced: Traced, equations: list[dict[str, Any]]) -> list[str]:
    """What a reader has to know of the figures and the links."""
    parts = [equation_work(eqn).flops for eqn in traced.jaxpr.eqns]
    if None in parts:
        holders = {one["parent"] for one in equations if one["flops"] is None}
        unknown = Counter(
            one["primitive"]
            for i, one in enumerate(equations)
            if one["flops"] is None and i not in holders
        )
        names = ", ".join(f"{n} {name}" for name, n in sorted(unknown.items()))
        notes = [f"The FLOPs of a run are not known, because of: {names}."]
    else:
        total = sum(part for part in parts if part is not None)
        notes = [f"{total:,.0f} FLOPs in one run: one for each sum, product or sine."]
    if has_order(traced.jaxpr.effects):
        notes.append(
            "Effects in order: the order is made part of the program before it is lowered, "
            "so StableHLO and HLO are not linked."
        )
    return notes

"""Programs whose values vary along more axes of a mesh, inside `shard_map`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops.collectives import varying
from perspex.tracing.staging import eval_jaxpr
from perspex.transforms.programs import by_program, program

Axes = frozenset[str]


@by_program
def leveled(closed: ClosedJaxpr, given: tuple[Axes, ...], results: tuple[Axes, ...]) -> ClosedJaxpr:
    """The program whose arguments and results vary along these axes too."""
    avals = [
        aval.update(vma=aval.vma | vma) for aval, vma in zip(closed.in_avals, given, strict=True)
    ]

    def run(*args: Any) -> Sequence[Any]:
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        return [varying(y, vma) for y, vma in zip(outs, results, strict=True)]

    return program(run, avals, closed.jaxpr.name)

"""Parts of lower rules: operations made of other primitives, and static slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import config
from perspex.hlo import types
from perspex.ir.avals import WIDE, ShapedArray
from perspex.ir.jaxpr import Jaxpr
from perspex.tracing.staging import stage


def expand(
    b: Any, f: Callable[..., Any], *values: Any, avals: Sequence[ShapedArray] | None = None
) -> list[Any]:
    """Emit the operations that `f`, a function on arrays, does; returns its results as a list.

    `avals` are the types of `values`; those of the equation's operands if not given.
    """

    def flat(*xs: Any) -> list[Any]:
        out = f(*xs)
        return list(out) if isinstance(out, (tuple, list)) else [out]

    avals = b.in_avals if avals is None else avals
    wide = any([aval.dtype in WIDE for aval in (*avals, *b.out_avals)])
    with config.enable_x64(wide or config.enable_x64.value):
        jaxpr, consts = stage(flat, avals)
    for eqn in jaxpr.eqns:
        eqn.source = None  # all of it belongs where the equation itself was written
    return inline(b, jaxpr, consts, values)


def inline(b: Any, jaxpr: Jaxpr, consts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Emit a program with its constants here; returns its results."""
    if not consts:
        return b.inline(jaxpr, values)
    given = [
        b.constant(np.asarray(x), var.aval) for x, var in zip(consts, jaxpr.constvars, strict=True)
    ]
    whole = jaxpr.replace(constvars=(), invars=[*jaxpr.constvars, *jaxpr.invars])
    return b.inline(whole, [*given, *values])


def emit_part(b: Any, x: Any, given: ShapedArray, out: ShapedArray, start: int, axis: int) -> Any:
    """Emit the slice of type `out` of the value `x` of type `given` that begins at `start`."""
    starts = tuple([start if i == axis else 0 for i in range(given.ndim)])
    stops = tuple([i + n for i, n in zip(starts, out.shape, strict=True)])
    return b.op(
        "stablehlo.slice",
        x,
        attributes={
            "start_indices": types.integers(starts),
            "limit_indices": types.integers(stops),
            "strides": types.integers((1,) * given.ndim),
        },
        aval=out,
    )

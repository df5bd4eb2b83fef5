"""How the results of gather and scatter are cut: what their `cut` rules are.

Axes of an operand that are read or written as a whole stay cut, and so do those along which operand
and indices go together. Everything else has to be whole: which device has what is not known before
the indices are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.errors import ShardingTypeError
from perspex.ir.avals import ShapedArray
from perspex.ops.windows import GatherDimensionNumbers, ScatterDimensionNumbers, window_dims
from perspex.tracing import cuts
from perspex.tracing.cuts import Names, Parts


def _agree(*given: Names) -> bool:
    """Whether axes that go together are cut in at most one way."""
    return len({names for names in given if names}) <= 1


def _refused(what: str, avals: Sequence[ShapedArray]) -> ShardingTypeError:
    types = ", ".join([aval.str_short() for aval in avals])
    return ShardingTypeError(
        f"Use `.at[...].{what}(out_sharding=)` to say how the result is cut: that could not be "
        f"resolved unambiguously (or would require collectives on inputs). Got types {types}"
    )


def gather_cut(
    self: Any,
    out: ShapedArray,
    operand: ShapedArray,
    indices: ShapedArray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    **params: Any,
) -> Parts:
    """How what is read is cut."""
    offset, collapsed, index_map, batching, indices_batching = dimension_numbers
    given, lanes = cuts.parts(operand), list(cuts.parts(indices))
    together = list(zip(batching, indices_batching, strict=True))
    free = [i for i in range(indices.ndim) if i not in indices_batching]
    if (
        any(given[i] and slice_sizes[i] != operand.shape[i] for i in index_map)
        or not all(_agree(given[i], lanes[j]) for i, j in together)
        or any(lanes[i] for i in free)
    ):
        raise _refused("get", (operand, indices))
    for i, j in together:
        lanes[j] = lanes[j] or given[i]
    kept = iter([given[i] for i in window_dims(operand.ndim, collapsed, batching)])
    rest = iter(lanes)
    return tuple([next(kept if i in offset else rest) for i in range(out.ndim)])


def scatter_cut(
    self: Any,
    out: ShapedArray,
    operand: ShapedArray,
    indices: ShapedArray,
    updates: ShapedArray,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    **params: Any,
) -> Parts:
    """How the operand with what is written is cut."""
    window, dropped, _, batching, indices_batching = dimension_numbers
    given, lanes, written = cuts.parts(operand), cuts.parts(indices), cuts.parts(updates)
    others = [i for i in range(updates.ndim) if i not in window]
    places = [others[j] for j in indices_batching]
    together = list(zip(batching, indices_batching, places, strict=True))
    pairs = list(zip(window, window_dims(operand.ndim, dropped, batching), strict=True))
    if (
        not all(_agree(given[i], lanes[j], written[k]) for i, j, k in together)
        or any(
            (given[i] or written[k])
            and (given[i] != written[k] or operand.shape[i] != updates.shape[k])
            for k, i in pairs
        )
        or any(given[i] for i in dropped)
        or any(written[i] for i in others if i not in places)
        or any(lanes[i] for i in range(indices.ndim) if i not in indices_batching)
    ):
        raise _refused("set/add/mul", (operand, indices, updates))
    found = list(given)
    for i, j, k in together:
        found[i] = found[i] or lanes[j] or written[k]
    return tuple(found)

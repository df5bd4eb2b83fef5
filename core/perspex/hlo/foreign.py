"""Calls of functions that are registered with XLA.

`custom_call` writes where MLIR's context says, unless it is told where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perspex.base.xla import ir
from perspex.hlo import types


def custom_call(
    target: str,
    operands: Sequence[Any],
    result_types: Sequence[Any],
    *,
    backend_config: str | bytes | Mapping[str, Any] | None = None,
    has_side_effect: bool = False,
    called_computations: Sequence[str] = (),
    api_version: int = 4,
    operand_output_aliases: Mapping[int, int] | None = None,
    operand_layouts: Sequence[Sequence[int]] | None = None,
    result_layouts: Sequence[Sequence[int]] | None = None,
    extra_attributes: Mapping[str, Any] | None = None,
    ip: Any = None,
    loc: Any = None,
) -> Any:
    """Emit a call of a registered function; returns the operation.

    Args:
      backend_config: text, or for `api_version` 4 a dictionary of MLIR attributes.
      operand_output_aliases: from the index of an operand to that of the result that takes over
        its memory.
      operand_layouts, result_layouts: the axes of each, the one that changes fastest in memory
        first.
    """
    if isinstance(backend_config, Mapping):
        config: Any = types.dictionary(dict(backend_config))
    else:
        config = types.string(backend_config or "")
    attributes = {
        "call_target_name": types.string(target),
        "has_side_effect": types.boolean(has_side_effect),
        "api_version": types.integer(api_version, 32),
        "called_computations": types.array([types.symbol(name) for name in called_computations]),
        "backend_config": config,
        **(extra_attributes or {}),
    }
    if operand_output_aliases:
        pairs = tuple(sorted(operand_output_aliases.items()))
        attributes["output_operand_aliases"] = types.aliases(pairs, len(result_types) == 1)
    for name, layouts in (("operand_layouts", operand_layouts), ("result_layouts", result_layouts)):
        if layouts is not None:
            attributes[name] = types.array([_layout(layout) for layout in layouts])
    return ir.Operation.create(
        "stablehlo.custom_call",
        results=list(result_types),
        operands=list(operands),
        attributes=attributes,
        ip=ip,
        loc=loc,
    )


def _layout(minor_to_major: Sequence[int]) -> Any:
    numbers = np.asarray(minor_to_major, np.int64)
    index = ir.IndexType.get(types.context)
    return ir.DenseIntElementsAttr.get(numbers, type=index, context=types.context)

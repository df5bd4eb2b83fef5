"""Attributes that XLA hands on to whoever runs a program: `mhlo.frontend_attributes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perspex.base.xla import ir
from perspex.hlo import types
from perspex.hlo.numbering import walk

_NAME = "mhlo.frontend_attributes"
# Operations that say nothing of how anything runs.
_PLAIN = {"stablehlo.constant", "stablehlo.return", "func.return", "func.func"}


def mark(operation: Any, attributes: Mapping[str, str]) -> None:
    """Add attributes to an operation; what it has already stays, being said closer to it."""
    if operation.name in _PLAIN:
        return
    found = operation.attributes
    held = {name: types.string(value) for name, value in attributes.items()}
    if _NAME in found:
        held |= {entry.name: entry.attr for entry in found[_NAME]}
    found[_NAME] = types.dictionary(held)


def mark_function(call: Any, attributes: Mapping[str, str]) -> None:
    """Add attributes to all operations of the function that the operation `call` calls."""
    module = call
    while module.parent is not None:
        module = module.parent
    symbol = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    _mark_all(ir.SymbolTable(module.operation)[symbol].operation, attributes)


def lower_marked(b: Any, eqn: Any, values: list[Any], params: dict[str, Any]) -> Any:
    """Lower an equation whose source has attributes: all operations that it becomes have them."""
    block = b.ip.block
    before = len(block.operations)
    out = eqn.primitive.lower(b, *values, **params)
    for operation in list(block.operations)[before:]:
        _mark_all(operation.operation, dict(eqn.source.names.attributes))
    return out


def _mark_all(operation: Any, attributes: Mapping[str, str]) -> None:
    def each(operation: Any) -> Any:
        mark(operation, attributes)
        return ir.WalkResult.ADVANCE

    walk(operation, each)

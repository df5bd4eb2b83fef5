"""Numbers for the operations of a module, so that XLA's instructions lead back to them.

XLA keeps the name in an operation's location as the `op_name` of its instructions, through fusion
and inlining. We put the operation's number into that name, as in `attention/dot_general#12`: its
position in the module, in the order of `walk`. Source lines would not do, because programs that
compute the same share an executable, wherever they were written. But their modules agree operation
by operation, so a number from one executable is right for both modules.

The numbers are written just before XLA compiles, into a copy of the module. That takes 2 us an
operation; XLA takes about 100.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from perspex.base.xla import ir
from perspex.hlo import types

# Kinds of instructions, and the operations that become them.
PRODUCTS = ("dot", "convolution")
_PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")
_REARRANGING = ("stablehlo.transpose", "stablehlo.reshape", "stablehlo.convert")
_LONGEST_CHAIN = 4
# Behind what XLA has put in front, for operations of functions and loops that it has inlined.
_NUMBER = re.compile(r"#(\d+)$")
# The end of MLIR's message about an exception in Python.
_INTERRUPTED = re.compile(r"\nKeyboardInterrupt\b.*\s*$")


def named(name: str, number: int) -> str:
    """A location's name with a number."""
    return f"{name}#{number}"


def number_in(name: str) -> int | None:
    """The number in the name of a location, or of an instruction's `op_name`.

    >>> number_in("jit#4/attention/dot_general#12"), number_in("dot_general")
    (12, None)
    """
    found = _NUMBER.search(name)
    return int(found[1]) if found else None


def walk(operation: Any, visit: Callable[[Any], Any]) -> None:
    """Call `visit` with each operation, in the order of the text.

    An exception in it becomes a `RuntimeError` in MLIR; an interrupt stays an interrupt.
    """
    try:
        operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    except RuntimeError as error:
        if _INTERRUPTED.search(str(error)):
            raise KeyboardInterrupt from None
        raise


def numbered_bytecode(module: Any) -> bytes:
    """The binary form of a module with each operation's number in its location's name."""
    copy = module.operation.clone()
    context = types.context
    count = 0

    def number(operation: Any) -> Any:
        nonlocal count
        at = operation.location
        if isinstance(at, ir.NameLoc):
            name = named(at.name_str, count)
            operation.location = ir.Location.name(name, at.child_loc, context)
        count += 1
        return ir.WalkResult.ADVANCE

    walk(copy, number)
    out = io.BytesIO()
    copy.write_bytecode(out)
    return out.getvalue()


class Origin(NamedTuple):
    """The number in an operation's location; of one that only rearranges a product, that of the
    product as well.

    XLA makes one product of both and names it after the latter, a transpose mostly.
    """

    number: int | None
    product: int | None = None

    def of(self, kind: str) -> int | None:
        """The number for an instruction of that kind which XLA has made of the operation."""
        is_product = kind in PRODUCTS and self.product is not None
        return self.product if is_product else self.number


def origins(module: Any) -> list[Origin]:
    """What the locations of a module's operations say, by the operations' numbers."""
    found: list[Origin] = []

    def read(operation: Any) -> Any:
        behind = operation
        for _ in range(_LONGEST_CHAIN):
            if behind.name not in _REARRANGING:
                break
            behind = behind.operands[0].owner
            if isinstance(behind, ir.Block):
                break
        is_product = not isinstance(behind, ir.Block) and behind.name in _PRODUCTS
        found.append(Origin(_number_of(operation), _number_of(behind) if is_product else None))
        return ir.WalkResult.ADVANCE

    walk(module.operation, read)
    return found


def _number_of(operation: Any) -> int | None:
    at = operation.location
    return number_in(at.name_str) if isinstance(at, ir.NameLoc) else None

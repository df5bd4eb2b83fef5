"""Modules in contexts of their own, for XLA to compile while other threads write theirs.

MLIR's contexts are not made for threads, and all modules that we write share one. So what XLA
compiles is read again from its bytes, into a context that nothing else uses meanwhile. jaxlib takes
the bytes, too, but then makes a context for each program, and looks for operations of other
versions of StableHLO: that takes it 2 ms longer, a tenth of what XLA needs for a small program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from perspex.base.xla import ir, make_context

T = TypeVar("T")
# A context keeps the constants and names of all modules that were in it: after so many bytes of
# them it is left to the garbage collector.
MOST = 1 << 20

# Contexts that nothing uses, and how many bytes have been read into them.
_idle: list[tuple[Any, int]] = []


def with_own_module(code: bytes, use: Callable[[Any], T]) -> T:
    """`use(module)` for the module with the bytecode `code`, which no other thread can reach."""
    try:
        context, held = _idle.pop()
    except IndexError:
        context, held = make_context(), 0
    try:
        return use(ir.Module.parse(code, context))
    finally:
        held += len(code)
        if held < MOST:
            _idle.append((context, held))

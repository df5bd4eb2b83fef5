"""Modules in contexts of their own, for XLA to compile while other threads write theirs.

MLIR's contexts are not made for threads, and all modules that we write share one. A program without
callbacks is handed to XLA as bytes; with callbacks jaxlib takes a module object only, so the bytes
are read again, into a context that nothing else uses meanwhile. A context costs 2 ms and is kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from perspex.base.xla import ir, make_context

_idle: list[Any] = []


@contextlib.contextmanager
def own_module(code: bytes) -> Iterator[Any]:
    """The module with the bytecode `code`, shared with no other thread while this lasts."""
    try:
        context = _idle.pop()
    except IndexError:
        context = make_context()
    try:
        yield ir.Module.parse(code, context)
    finally:
        _idle.append(context)

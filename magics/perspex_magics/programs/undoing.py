"""Objects and containers that a cell changes in place, put back if it fails while it is traced.

A cell that sets `model.w` has put a traced value there. If the cell fails, the value outlives its
trace, and the array that it took the place of is lost: so what objects held is noted before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

# More objects than a model consists of; they are noted once for each trace.
_MOST_OBJECTS = 10_000


def _holder(value: Any) -> dict[Any, Any] | list[Any] | None:
    """What an object or a container keeps its parts in; `None` where it has none of the user's."""
    if type(value) in (dict, list):
        found: dict[Any, Any] | list[Any] = value
        return found
    if isinstance(value, (type, ModuleType, FunctionType)):
        return None
    if type(value).__module__.partition(".")[0] in ("perspex", "jaxlib", "numpy", "builtins"):
        return None
    attributes = getattr(value, "__dict__", None)
    return attributes if type(attributes) is dict else None


@contextmanager
def contents_restored_on_error(values: Iterable[Any]) -> Iterator[None]:
    """Put back what objects and containers hold, and those in them, if the block fails."""
    before: dict[int, tuple[Any, Any]] = {}
    pending = list(values)
    while pending and len(before) < _MOST_OBJECTS:
        value = pending.pop()
        if type(value) is tuple:
            pending += value
            continue
        holder = _holder(value)
        if holder is None or id(holder) in before:
            continue
        before[id(holder)] = holder, holder.copy()
        pending += holder.values() if isinstance(holder, dict) else holder
    try:
        yield
    except BaseException:
        for holder, kept in before.values():
            _put_back(holder, kept)
        raise


def _put_back(holder: Any, kept: Any) -> None:
    """Make a container hold what it held, in place."""
    if isinstance(holder, list):
        if len(holder) != len(kept) or any(a is not b for a, b in zip(holder, kept, strict=True)):
            holder[:] = kept
        return
    for name in holder.keys() - kept.keys():
        del holder[name]
    for name, value in kept.items():
        if name not in holder or holder[name] is not value:
            holder[name] = value

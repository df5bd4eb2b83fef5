"""What the user calls a jitted method or object: `model.layers[2].step`, by the names that hold it.

Many objects share the name of a class or of its method. The notebook's variables tell them apart;
they are walked once for all that is displayed at a time, and only then.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from perspex.base.xla import PjitFunction
from perspex.jitted.compiled import Compiled
from perspex.jitted.fused import Fused
from perspex.jitted.stale import Called, Traced, namers
from perspex_magics.captures.objects import parts, step_text
from perspex_magics.notebook.kinds import is_a, items
from perspex_magics.session import Session

# So many values are looked at, so deep, and in containers of no more items.
_MOST = 5_000
_MOST_DEEP = 5
_MOST_ITEMS = 256
_HOMES = (type, types.ModuleType)
_PLAIN = (types.FunctionType, types.BuiltinFunctionType, functools.partial)
# What these hold has no path that users would write.
_CLOSED = (*_PLAIN, types.MethodType, PjitFunction)


def call_by_paths(session: Session) -> None:
    """Have messages about stale captures call methods and objects by their paths."""

    def called(traced: Traced) -> Called | None:
        owner: Any = None if traced.owner is None else traced.owner()
        paths = Paths(session.shell.user_ns)
        path = paths.of(owner)
        if path is None:
            return None
        function = owner.fun
        is_method = is_a(function, types.MethodType)
        return Called(path, True, paths.of_value(function.__self__) if is_method else None)

    namers.append(called)
    session.on_unload(lambda: namers.remove(called))


class Paths:
    """The paths to what the names of one notebook hold, as they are at the first question."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._found: dict[int, str] | None = None

    def of(self, owner: Compiled | None) -> str | None:
        """The path of a jitted method or object; `None` where its own name says enough."""
        if owner is None or is_a(owner, Fused):
            return None
        for fast in list(owner.callables):
            path = self._path(fast)
            # A variable may have another name than its function, which is what errors say.
            if path is not None and not path.isidentifier():
                return path
        function: Any = owner.fun
        if is_a(function, types.MethodType):
            of = self._path(function.__self__)
            return None if of is None else f"{of}.{function.__name__}"
        return None if is_a(function, _PLAIN) else self._path(function)

    def of_value(self, value: Any) -> str | None:
        """The path of an object."""
        return self._path(value)

    def _path(self, value: Any) -> str | None:
        if self._found is None:
            # The values are kept meanwhile by the names that they were found by.
            self._found = {id(each): path for each, path in _walk(self._namespace)}
        return self._found.get(id(value))


def _walk(namespace: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """What the user's names hold, each once with its shortest path."""
    waiting = deque(
        (value, name, 0)
        for name, value in list(namespace.items())
        if not name.startswith("_") and name not in ("In", "Out") and not is_a(value, _HOMES)
    )
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        value, path, depth = waiting.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value, path
        found = items(value)
        if (
            depth == _MOST_DEEP
            or is_a(value, _CLOSED)
            or (found is not None and found[1] > _MOST_ITEMS)
        ):
            continue
        for step, part in parts(value):
            if not is_a(part, _HOMES):
                waiting.append((part, path + step_text(step), depth + 1))

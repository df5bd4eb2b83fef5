"""Attributes of operations, for XLA and those who read its programs.

`jax.experimental.xla_metadata`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any

from perspex import tree
from perspex.base import source
from perspex.base.flags import UserContext
from perspex.base.name_stack import Attributes, NameStack
from perspex.ops.metadata import xla_metadata_value_p

__all__ = ["set_xla_metadata"]

# What is open on this thread: programs traced under it are others.
_open = UserContext(())


class _Marking:
    """The context and the decorator."""

    def __init__(self, pairs: tuple[tuple[str, str], ...]) -> None:
        self.pairs = pairs
        self._before: list[tuple[NameStack, Any]] = []

    def __enter__(self) -> None:
        context = _open((*_open.value, *self.pairs))
        context.__enter__()
        self._before.append((source.enter_scope(Attributes(self.pairs)), context))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        names, context = self._before.pop()
        source.exit_scope(names)
        context.__exit__(kind, error, traceback)

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """`fun`, which runs in this context."""

        @functools.wraps(fun)
        def marked(*args: Any, **kwargs: Any) -> Any:
            with _Marking(self.pairs):  # one of its own: calls may run on several threads
                return fun(*args, **kwargs)

        return marked


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Give operations attributes, which lowered programs have as `mhlo.frontend_attributes`.

    Attributes change nothing of what is computed. A derivative has those of what it differentiates,
    unless they were given to a value.

    Args:
      x: arrays, whose operations get the attributes. Without it, the result is a context, or a
        decorator, for all operations inside.
      kwargs: the attributes. Values are texts, numbers or booleans.

    Returns:
      `x`, or the context.

    Raises:
      TypeError: for a value that has no hash.

    >>> from perspex import jit, lax
    >>> def f(x):
    ...     with set_xla_metadata(layer=2):
    ...         return lax.sin(x)
    >>> '{layer = "2"}' in jit(f).lower(1.0).as_text()
    True
    """
    hash(tuple(kwargs.values()))
    pairs = tuple([(name, _text(value)) for name, value in kwargs.items()])
    if x is None:
        return _Marking(pairs)
    return tree.map(lambda leaf: xla_metadata_value_p(leaf, xla_metadata_kvs=pairs), x)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Names for parts of a computation: `named_scope` and `named_call`.

Names change nothing of what is computed. They are kept with the source lines of equations, which
costs a computation without names nothing, and end up as the locations of the module's operations:
`jit(f).lower(x).as_text(debug_info=True)` and XLA's profiles show them as `encoder/attention/sin`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from perspex.base import source
from perspex.base.name_stack import NameStack
from perspex.jitted.signature import function_name

F = TypeVar("F", bound=Callable[..., Any])


class named_scope:  # noqa: N801 - used like a function, under the name that JAX gives it
    """Name the equations that are traced inside a `with` block or a decorated function.

    Scopes nest. The derivative of what is inside has its name too: `jvp(layer)` where it goes
    forward, `transpose(jvp(layer))` where it goes backward, and `vmap(layer)` where it is mapped. A
    function compiled or looped over inside one starts its own path: its program is shared by all
    who call it, and only the call has the name.

    Args:
      name: a piece of the path that locations show.

    Returns:
      A context manager, which is a decorator too.

    Raises:
      TypeError: if the name is not a string.

    >>> import perspex
    >>> import perspex.numpy as pnp
    >>> @perspex.named_scope("layer")
    ... def layer(x):
    ...     with perspex.named_scope("attention"):
    ...         return pnp.sin(x)
    >>> "layer/attention/sin" in perspex.jit(layer).lower(1.0).as_text(debug_info=True)
    True
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"named_scope takes its name as a string, got {name!r}")
        self.name = name
        self._before: list[NameStack] = []

    def __enter__(self) -> str:
        self._before.append(source.enter_scope(self.name))
        return self.name

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        source.exit_scope(self._before.pop())

    def __call__(self, fun: F) -> F:
        """`fun`, which runs in this scope."""

        @functools.wraps(fun)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            with named_scope(self.name):  # one of its own: calls may run on several threads
                return fun(*args, **kwargs)

        return scoped  # type: ignore[return-value]


def named_call(fun: F, *, name: str | None = None) -> F:
    """A function whose equations carry a name: it runs in a `named_scope`.

    Args:
      fun: any function.
      name: the name of the scope; by default that of `fun`.

    Returns:
      A function that does what `fun` does.

    Raises:
      TypeError: if the name is not a string.

    >>> import perspex
    >>> import perspex.numpy as pnp
    >>> f = named_call(lambda x: pnp.sin(x), name="wave")
    >>> "wave/sin" in perspex.jit(f).lower(1.0).as_text(debug_info=True)
    True
    """
    return named_scope(function_name(fun) if name is None else name)(fun)

"""Functions with a rule of their own for `vmap`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from perspex import lax, tree
from perspex.rules.custom_vmap import custom_vmap as custom_vmap

__all__ = ["custom_vmap", "sequential_vmap"]

P = ParamSpec("P")
R = TypeVar("R")


def sequential_vmap(f: Callable[P, R]) -> custom_vmap[P, R]:
    """A function whose `vmap` is a loop: one example after the other, with `lax.map`.

    Args:
      f: a function of pytrees of arrays.

    Returns:
      A `custom_vmap` function.

    Raises:
      TypeError: if `f` is not a function.

    >>> import perspex, perspex.numpy as pnp
    >>> perspex.vmap(sequential_vmap(lambda x: x * 2))(pnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    made = custom_vmap(f)
    function: Callable[..., Any] = made

    @made.def_vmap
    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> tuple[Any, Any]:
        del axis_size
        leaves, treedef = tree.flatten(args)
        flags = tree.leaves(in_batched)

        def one(mine: list[Any]) -> Any:
            mapped = iter(mine)
            every = [next(mapped) if flag else x for x, flag in zip(leaves, flags, strict=True)]
            return function(*tree.unflatten(treedef, every))

        out = lax.map(one, [x for x, flag in zip(leaves, flags, strict=True) if flag])
        return out, tree.map(lambda _: True, out)

    return made

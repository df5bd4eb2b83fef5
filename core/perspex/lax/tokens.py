"""Tokens, by which programs say what comes after what."""

from __future__ import annotations

from typing import Any

from perspex.base.pytree_registry import register_pytree_node_class
from perspex.ops import tokens as ops

__all__ = ["after_all", "create_token"]


@register_pytree_node_class
class Token:
    """A value without content. A pytree: loops carry it, and functions take and return it."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def block_until_ready(self) -> Token:
        """Wait until what the token comes after has been computed; returns the token."""
        self._value.block_until_ready()
        return self

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self._value,), None

    @classmethod
    def tree_unflatten(cls, _: None, values: tuple[Any]) -> Token:
        return cls(values[0])


def create_token(_: object = None) -> Token:
    """A token that comes after nothing.

    Args:
      _: ignored.

    Returns:
      A token.

    Raises:
      Nothing.

    >>> from perspex import jit, lax
    >>> type(jit(lax.after_all)(lax.create_token())).__name__
    'Token'
    """
    primitive: Any = ops.create_token
    return Token(primitive())


def after_all(*operands: Token) -> Token:
    """A token that comes after others.

    Effects keep the order of the program by themselves (`jax.debug.callback` with `ordered=True`):
    they need no tokens.

    Args:
      operands: tokens.

    Returns:
      A token.

    Raises:
      TypeError: if an operand is no token.

    >>> from perspex import lax
    >>> token = lax.after_all(lax.create_token(), lax.create_token())
    """
    for i, operand in enumerate(operands):
        if not isinstance(operand, Token):
            raise TypeError(
                f"Arguments to after_all must be tokens, got a value of type {type(operand)} at "
                f"position {i}; lax.create_token makes one"
            )
    primitive: Any = ops.after_all
    return Token(primitive(*[operand._value for operand in operands]))

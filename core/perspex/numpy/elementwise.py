"""Elementwise functions from rows: a function, one line of documentation, an example.

The family of a row converts the operands, and describes them for all its functions:

    sin = unary("sin", ops.sin, "The sine of ...", "jnp.sin(0.0)", "Array(0., ...)")

is a function like any other, with a name, a signature, a docstring and an example that doctest
runs. The function of a row gets converted operands; a primitive is one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from perspex.arguments.arrays import arraylike
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy.promotion import inexact, numeric, promote, promote_inexact, promote_numeric


class Unary(Protocol):
    """An elementwise function of one array."""

    __name__: str
    fast: Any

    def __call__(self, x: ArrayLike, /) -> Array: ...


class Binary(Protocol):
    """An elementwise function of two arrays."""

    __name__: str
    fast: Any

    def __call__(self, x: ArrayLike, y: ArrayLike, /) -> Array: ...


class Family(NamedTuple):
    """What functions of one kind share: the conversion, and descriptions of operands and result."""

    convert: Callable[..., Any]
    operands: str
    returns: str


ANY = Family(arraylike, "an array or a number.", "An array of the shape and dtype of `x`.")
NUMBERS = Family(
    numeric,
    "an array or a number; booleans count as integers.",
    "An array of the shape of `x`, of its dtype or the integers that booleans become.",
)
FLOATS = Family(
    inexact,
    "an array or a number; integers and booleans become floats.",
    "An array of floats, or of complex numbers for complex `x`, of the shape of `x`.",
)
TRUTH = Family(arraylike, "an array or a number.", "An array of booleans of the shape of `x`.")

_PAIR = "arrays or numbers, which are promoted to one dtype and broadcast."
_COMMON = "An array of the common shape and dtype."
PAIR = Family(promote, _PAIR, _COMMON)
PAIR_OF_NUMBERS = Family(
    promote_numeric, f"{_PAIR[:-1]}; booleans\n      count as integers.", _COMMON
)
PAIR_OF_FLOATS = Family(
    promote_inexact, "arrays or numbers, promoted to one floating or complex dtype.", _COMMON
)
PAIR_TRUTH = Family(promote, _PAIR, "An array of booleans of the common shape.")

NO_ARRAY = "TypeError: if an operand is not an array or a number."
NO_INTEGER = "TypeError: if an operand is neither of integers nor of booleans."
COMPLEX = "TypeError: if an operand is complex, or not an array or a number."
_SHAPES = "ValueError: if the shapes do not broadcast (`TypeError` for equal ranks)."


def unary(
    name: str,
    function: Callable[[Any], Any],
    summary: str,
    example: str,
    printed: str,
    family: Family = FLOATS,
    *,
    returns: str = "",
    raises: str = NO_ARRAY,
) -> Unary:
    """A function of one array: `function` of the operand that the family converts.

    Args:
      name: its name in the module that calls this.
      function: takes the converted array.
      summary: the first line of the documentation, or more of it.
      example: an expression; `jnp` is the namespace.
      printed: the text that Python prints for it.
      family: how the operand is converted.
      returns: the description of the result, if it is not that of the family.
      raises: the description of errors.
    """
    convert = family.convert

    def elementwise(x: ArrayLike, /) -> Array:
        return function(convert(name, x))

    args = f"x: {family.operands}"
    return _public(
        elementwise, name, summary, args, returns or family.returns, raises, example, printed
    )


def binary(
    name: str,
    function: Callable[[Any, Any], Any],
    summary: str,
    example: str,
    printed: str,
    family: Family = PAIR,
    *,
    numbered: bool = False,
    returns: str = "",
    raises: str = NO_ARRAY,
) -> Binary:
    """A function of two arrays, called `x` and `y`, or `x1` and `x2` if they are `numbered`.

    The other arguments are those of `unary`; errors of shapes are added to `raises`.
    """
    convert = family.convert

    def plain(x: ArrayLike, y: ArrayLike, /) -> Array:
        return function(*convert(name, x, y))

    def with_numbers(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return function(*convert(name, x1, x2))

    made, names = (with_numbers, "x1, x2") if numbered else (plain, "x, y")
    args = f"{names}: {family.operands}"
    raises = f"{raises}\n  {_SHAPES}"
    return _public(made, name, summary, args, returns or family.returns, raises, example, printed)


def _public(
    function: Any,
    name: str,
    summary: str,
    args: str,
    returns: str,
    raises: str,
    example: str,
    printed: str,
) -> Any:
    """The function as the module of the row has it, compiled when it is called eagerly."""
    function.__name__ = function.__qualname__ = name
    # As in a named tuple: the module where the row stands, so that pickle and doctest find it.
    function.__module__ = sys._getframe(2).f_globals["__name__"]
    function.__doc__ = (
        f"{summary}\n\nArgs:\n  {args}\n\nReturns:\n  {returns}\n\nRaises:\n  {raises}\n\n"
        f">>> import perspex.numpy as jnp\n>>> {example}\n{printed}\n"
    )
    return fused(function)

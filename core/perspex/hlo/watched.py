"""Loops that end when somebody writes into memory: their programs have one more argument, a page.

A page is an array of small numbers, all zero. The condition of a watched loop also reads the one at
`turn & 63`: an element that moves, because LLVM reads a fixed one once, before a small loop. Python
writes ones into the page, and each watched loop ends after the turn that it is in.

The page goes through the module as an argument in front of each function's. It has no place in the
program that the user sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.base.xla import ir
from perspex.hlo import types
from perspex.hlo.builder import Builder, Module
from perspex.ir.avals import ShapedArray

# How many numbers a page has: four cache lines, and a power of two.
SIZE = 64
PAGE = ShapedArray((SIZE,), np.dtype("int32"))
COUNT = ShapedArray((), np.dtype("int32"))
_ONE = ShapedArray((1,), np.dtype("int32"))
_FLAG = ShapedArray((), np.dtype("bool"))


class WatchedModule(Module):
    """A module whose entry point takes a page first."""

    def hidden(self, visibility: str) -> list[Any]:
        return [types.tensor_type(PAGE)]

    def writer(self, block: Any, hidden: Sequence[Any]) -> Builder:
        return WatchedBuilder(self, ir.InsertionPoint(block), hidden[0])


class WatchedBuilder(Builder):
    """A builder that knows the page."""

    __slots__ = ("page",)

    def __init__(self, module: Module, ip: Any, page: Any) -> None:
        super().__init__(module, ip)
        self.page = page

    def at(self, ip: Any) -> Builder:
        return WatchedBuilder(self.module, ip, self.page)

    def arguments_of(self, values: Sequence[Any]) -> Sequence[Any]:
        return [self.page, *values]


def is_watched(b: Builder) -> bool:
    """Whether a loop that is written with this builder can be watched."""
    return b.__class__ is WatchedBuilder


def unless_stopped(b: Any, going: Any, turn: Any) -> Any:
    """Whether to go on after `turn` turns: if `going` says so and the page does not end it."""
    place = b.op("stablehlo.and", turn, b.constant(SIZE - 1, COUNT), aval=COUNT)
    attributes = {"slice_sizes": types.integers((1,))}
    found = b.op("stablehlo.dynamic_slice", b.page, place, attributes=attributes, aval=_ONE)
    is_zero = b.compare("EQ", b.reshape(found, COUNT), b.constant(0, COUNT), COUNT)
    return b.op("stablehlo.and", going, is_zero, aval=_FLAG)


def has_number(aval: ShapedArray) -> bool:
    """Whether `number_in` can read a value of this type."""
    is_plain = aval.physical() is aval and aval.dtype.kind in "iuf" and aval.dtype.itemsize > 1
    return is_plain and aval.size > 0


def number_in(b: Any, value: Any, aval: ShapedArray) -> Any:
    """The last element of a value as some number: it changes as the value does."""
    if aval.shape:
        attributes = {
            "start_indices": types.integers(tuple([size - 1 for size in aval.shape])),
            "limit_indices": types.integers(aval.shape),
            "strides": types.integers((1,) * aval.ndim),
        }
        one = ShapedArray((1,) * aval.ndim, aval.dtype)
        value = b.op("stablehlo.slice", value, attributes=attributes, aval=one)
    scalar = ShapedArray((), aval.dtype)
    value = b.reshape(value, scalar)
    if aval.dtype.kind == "f":
        scalar = ShapedArray((), np.dtype(f"int{8 * aval.dtype.itemsize}"))
        value = b.op("stablehlo.bitcast_convert", value, aval=scalar)
    return value if scalar is COUNT else b.convert(value, COUNT)


def next_turn(b: Any, turn: Any) -> Any:
    """The number of the turn after this one."""
    return b.op("stablehlo.add", turn, b.constant(1, COUNT), aval=COUNT)

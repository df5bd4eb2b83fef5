"""A function of pytrees as the flat function that the transforms take, for one call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import tree
from perspex.control.bodies import ArgumentNames, check_results, parameter, place
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray, shaped
from perspex.jitted.signature import function_name, paths
from perspex.ops.structural import broadcast_in_dim, convert


def check_callable(fun: Any) -> None:
    """Raise `TypeError` unless `fun` is a function that gives its results when it is called."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}")
    code = getattr(fun, "__code__", None)
    # Most functions have a code object, whose flags are twenty times as fast to read.
    if inspect.isgeneratorfunction(fun) if code is None else code.co_flags & inspect.CO_GENERATOR:
        raise TypeError(f"Expected a function, got a generator function: {place(fun)}")


def argument_avals(what: str, leaves: Sequence[Any], paths: Callable[[int], str]) -> list[Any]:
    """The types of flat arguments; `paths(i)` says in an error which one it is."""
    avals = []
    for i, leaf in enumerate(leaves):
        try:
            avals.append(shaped(leaf))
        except TypeError:
            raise TypeError(
                f"{what}: {paths(i)} is of type {type(leaf)}, which is not an array; "
                "pass arrays and numbers, and let the function close over the rest"
            ) from None
    return avals


class Call:
    """One call of `fun` on arguments whose leaves are given later.

    Its arguments are those at the `positions`, all of them if not given, and those by name; what
    stands at other positions is part of the function.

    Calling it gives the flat results, those of the auxiliary output after the others; then
    `out_tree`, `aux_tree` and `count`, the number of results that are not auxiliary, are known.
    """

    def __init__(
        self,
        what: str,
        fun: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any] | None = None,
        positions: Sequence[int] | None = None,
        has_aux: bool = False,
    ) -> None:
        self.what = what
        self.fun = fun
        self.args = list(args)
        self.positions = range(len(args)) if positions is None else positions
        self.has_aux = has_aux
        chosen = tuple([args[i] for i in self.positions])
        positional, self.in_tree = tree.flatten(chosen)
        named, self.named_tree = tree.flatten(kwargs or {})
        self.leaves = [*positional, *named]
        self.name = function_name(fun)
        self.out_tree: Any = None
        self.aux_tree: Any = None
        self.count = 0

    @functools.cached_property
    def avals(self) -> list[ShapedArray]:
        """The types of the leaves, which must all be arrays."""
        return argument_avals(self.what, self.leaves, self.path)

    @property
    def names(self) -> ArgumentNames:
        """What the leaves are called, for errors of traced code."""
        return ArgumentNames(self.fun, self.in_tree, self.positions, self.named_tree)

    def path(self, i: int) -> str:
        """Which argument the leaf `i` is: `argument params['w']`."""
        count = self.in_tree.num_leaves
        treedef = self.in_tree if i < count else self.named_tree
        found = paths(treedef)[i if i < count else i - count]
        if i >= count:
            return f"kwargs{tree.keystr(found)}"
        at = self.positions[found[0].idx]
        return f"argument {parameter(self.fun, at, f'{at}')}{tree.keystr(found[1:])}"

    def __call__(self, *leaves: Any) -> list[Any]:
        count = self.in_tree.num_leaves
        args = list(self.args)
        given = tree.unflatten(self.in_tree, leaves[:count])
        for at, x in zip(self.positions, given, strict=True):
            args[at] = x
        out = self.fun(*args, **tree.unflatten(self.named_tree, leaves[count:]))
        if not self.has_aux:
            results, self.out_tree = tree.flatten(out)
            self.count = len(results)
            check_results(self.what, self.fun, results, out)
            return results
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            size = f" of length {len(out)}" if isinstance(out, (tuple, list)) else ""
            raise TypeError(
                f"{self.what}: expected function with aux output to return a two-element tuple, "
                f"but got type {type(out)}{size}; return `(result, aux)` or leave has_aux out"
            )
        results, self.out_tree = tree.flatten(out[0])
        check_results(self.what, self.fun, results, out[0])
        self.count = len(results)
        aux, self.aux_tree = tree.flatten(out[1])
        return [*results, *aux]

    def is_result(self, i: int) -> bool:
        return i < self.count

    def aux(self, outs: Sequence[Any]) -> Any:
        """The auxiliary output among the flat results."""
        return tree.unflatten(self.aux_tree, outs[self.count :])


def array_of(x: Any, aval: ShapedArray) -> Any:
    """A tangent or cotangent as an array of a type with the weak type of `aval`; `None` is zero."""
    if aval.is_float0:
        return np.zeros(aval.shape, aval.dtype) if x is None else x
    if x is None:
        x = aval.dtype.type(0)
        return convert(
            broadcast_in_dim(x, shape=aval.shape, broadcast_dimensions=()),
            aval.dtype,
            aval.weak_type,
        )
    if x.__class__ in PYTHON_SCALARS or isinstance(x, (np.generic, np.ndarray)):
        dims = tuple(range(shaped(x).ndim))
        x = broadcast_in_dim(x, shape=aval.shape, broadcast_dimensions=dims)
    return convert(x, aval.dtype, aval.weak_type)

"""Functions with a rule of their own: how calls are taken apart, checks of what rules return."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from perspex import dtypes, tree
from perspex.control.bodies import check_results, not_an_array, parameter
from perspex.ir.avals import ShapedArray, shaped
from perspex.jitted.signature import function_name, paths
from perspex.ops.structural import convert
from perspex.rules.custom_call import Rule, call_function
from perspex.rules.zeros import SymbolicZero
from perspex.runtime.dispatch import EVAL, without_numbers
from perspex.tracing.trace import Tracer, state
from perspex.transforms.jvp import is_differentiable

P = ParamSpec("P")
R = TypeVar("R")


class CustomFunction(Generic[P, R]):
    """A function that is called as it is, and transformed by a rule that its user gives.

    `what` is the name of the decorator, `missing` the error where there is no rule.
    """

    what: str
    missing: str
    # Whether the function is given arrays for numbers outside every trace, too.
    takes_arrays = False

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        if not callable(fun):
            raise TypeError(f"{self.what} takes a function, got {fun!r} of type {type(fun)}")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.name = function_name(fun)
        self.rule: Any = None
        try:
            self.signature: inspect.Signature | None = inspect.signature(fun)
        except (TypeError, ValueError):
            self.signature = None
        # The number of arguments where a call may be taken as it is: all are given by position.
        self.count = _plain_count(self.signature)
        self.nondiff_argnums = self._numbers(nondiff_argnums, nondiff_argnames)

    def _numbers(self, argnums: Sequence[int], argnames: Sequence[str]) -> tuple[int, ...]:
        given = (argnums,) if isinstance(argnums, int) else argnums
        numbers = {operator.index(n) for n in given}
        names = list(self.signature.parameters) if self.signature else []
        for name in (argnames,) if isinstance(argnames, str) else argnames:
            if name not in names:
                raise ValueError(
                    f"{self.what}: nondiff_argnames names {name!r}, but `{self.name}` has the "
                    f"parameters {', '.join(names) or '(unknown)'}"
                )
            numbers.add(names.index(name))
        for n in numbers:
            if n < 0 or (self.count is not None and n >= self.count):
                raise ValueError(
                    f"{self.what}: nondiff_argnums has {n}, but `{self.name}` has "
                    f"{self.count if self.count is not None else 'positional'} arguments; "
                    "count them from 0"
                )
        return tuple(sorted(numbers))

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.rule is None:
            raise AttributeError(self.missing.format(name=self.name))
        if state.trace is EVAL:
            if self.takes_arrays:
                arrays: Any = without_numbers(args)
                return self.fun(*arrays, **kwargs)
            return self.fun(*args, **kwargs)
        given: tuple[Any, ...] = args
        if kwargs or len(args) != self.count:
            given = self.by_position(args, kwargs)
        leaves, rule = self.call_of(given)
        outs = call_function(*leaves, call=rule)
        return tree.unflatten(rule.out_tree, outs)

    def by_position(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, those with defaults among them."""
        if self.signature is None:
            if not kwargs:
                return tuple(args)
            reason = "its signature is not known"
        else:
            try:
                bound = self.signature.bind(*args, **kwargs)
            except TypeError as error:
                reason = str(error)
            else:
                bound.apply_defaults()
                if not bound.kwargs:
                    return bound.args
                reason = f"{', '.join(bound.kwargs)} can be given by name only"
        raise TypeError(
            f"the arguments of the {self.what} function `{self.name}` could not be resolved to "
            f"positional arguments, which is how its rule gets them: {reason}"
        )

    def call_of(self, args: Sequence[Any]) -> tuple[list[Any], FunctionRule]:
        """The arrays of a call, and the function of them with its rule."""
        given = [x for i, x in enumerate(args) if i not in self.nondiff_argnums]
        leaves, in_tree = tree.flatten(tuple(given))
        wrong = not_an_array(leaves)
        if wrong is not None:
            raise TypeError(
                f"{self.what}: {self.argument_path(in_tree, wrong)} of `{self.name}` is of type "
                f"{type(leaves[wrong])}, which is not an array; mark the argument with "
                "nondiff_argnums, or let the function close over it"
            )
        static = {i: args[i] for i in self.nondiff_argnums if i < len(args)}
        return without_numbers(leaves), self.make_rule(static, in_tree, len(args))

    def make_rule(self, static: dict[int, Any], in_tree: Any, count: int) -> FunctionRule:
        raise NotImplementedError

    def argument_path(self, in_tree: Any, i: int) -> str:
        """Which argument a leaf is: `argument params['w']`."""
        found = paths(in_tree)[i]
        # The position among all arguments, those of `nondiff_argnums` before it too.
        at = found[0].idx
        for n in self.nondiff_argnums:
            at += n <= at
        return f"argument {parameter(self.fun, at, str(at))}{tree.keystr(found[1:])}"


def _plain_count(signature: inspect.Signature | None) -> int | None:
    if signature is None:
        return None
    kinds = [p.kind for p in signature.parameters.values()]
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len(kinds) if all(kind in plain for kind in kinds) else None


class FunctionRule(Rule):
    """A call of a `CustomFunction` as a function of flat lists.

    Arguments at the positions of `static` are part of the function. `out_tree`, and `out_avals`
    where the function was staged, are known when function or rule have run.
    """

    def __init__(self, owner: Any, static: dict[int, Any], in_tree: Any, count: int) -> None:
        self.owner = owner
        self.static = static
        self.in_tree = in_tree
        self.count = count
        self.name = owner.name
        self.out_tree: Any = None
        self.out_avals: Sequence[ShapedArray] | None = None

    def primal(self, *leaves: Any) -> list[Any]:
        out = self.owner.fun(*self.arguments(tree.unflatten(self.in_tree, leaves)))
        outs, self.out_tree = tree.flatten(out)
        check_results(self.owner.what, self.owner.fun, outs, out)
        return outs

    def arguments(self, given: Sequence[Any]) -> Sequence[Any]:
        """All arguments, given those that are not static."""
        if not self.static:
            return given
        rest = iter(given)
        return [self.static[i] if i in self.static else next(rest) for i in range(self.count)]

    def note_types(self, avals: Sequence[ShapedArray]) -> None:
        self.out_avals = avals

    def check_primals(self, what: str, outs: Sequence[Any], out_tree: Any) -> None:
        """Raise `TypeError` unless a rule gives results like those of the function, if known."""
        if self.out_tree is None:
            self.out_tree = out_tree
            return
        if out_tree != self.out_tree:
            raise TypeError(
                f"{what} must return what `{self.name}` returns as the first of its two results, "
                f"but that is of the structure {out_tree}, and `{self.name}` returns "
                f"{self.out_tree}"
            )
        for i, aval in enumerate(self.out_avals or ()):
            found = shaped(outs[i])
            if found.shape != aval.shape or found.dtype != aval.dtype:
                raise TypeError(
                    f"{what} must return what `{self.name}` returns as the first of its two "
                    f"results, but {self.result_path(i)} is {type_text(found)}, and `{self.name}` "
                    f"returns {type_text(aval)}"
                )

    def result_path(self, i: int) -> str:
        """Which result a leaf is: `result['loss']`."""
        return f"result{tree.keystr(paths(self.out_tree)[i])}"


def pair_of(found: Any, what: str, meaning: str) -> tuple[Any, Any]:
    """The two results of a rule."""
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        size = f" of length {len(found)}" if isinstance(found, (tuple, list)) else ""
        kind = (
            type_text(found.aval) if isinstance(found, Tracer) else f"{type(found).__name__}{size}"
        )
        raise TypeError(
            f"{what} must produce a pair (list or tuple of length two), {meaning}, but got {kind}"
        )
    return found[0], found[1]


def type_text(aval: ShapedArray) -> str:
    """A type as errors show it: `float32[3]`."""
    return aval.str_short(short_dtypes=False)


def fitted(
    x: Any,
    aval: ShapedArray,
    convertible: Callable[[Any, Any], bool],
    error: Callable[[str], Exception],
) -> Any:
    """The tangent or cotangent `x` for a value of type `aval`; `None` for zeros by their type.

    `convertible(dtype, wanted)` says whether a float of another precision is converted; `error`
    makes an exception from what is wrong.
    """
    if x.__class__ is SymbolicZero:
        shape, dtype = x.shape, x.dtype
    elif getattr(x, "dtype", None) == dtypes.float0:
        shape, dtype = np.shape(x), dtypes.float0
    else:
        try:
            given = shaped(x)
        except TypeError:
            raise error(f"a value of type {type(x)}, which is not an array") from None
        shape, dtype = given.shape, given.dtype
        more = sorted(given.vma - aval.vma)
        if more:
            raise error(
                f"type {type_text(given)}, which varies along {more} of the mesh where the value "
                "does not: add up with lax.psum"
            )
    wanted = aval.dtype if is_differentiable(aval) else dtypes.float0
    if shape != aval.shape:
        raise error(f"shape {shape}, and not {aval.shape}: the shapes do not match")
    if dtype != wanted:
        kinds = {getattr(d, "kind", "") for d in (dtype, wanted)}
        numbers = dtype != dtypes.float0 and wanted != dtypes.float0
        same_kind = len(kinds - {"V", "f"}) == 0 or kinds == {"c"}
        if not (numbers and same_kind and convertible(dtype, wanted)):
            raise error(f"dtype {_dtype_name(dtype)}, and not {_dtype_name(wanted)}")
        return None if x.__class__ is SymbolicZero else convert(x, wanted)
    if x.__class__ is SymbolicZero or wanted == dtypes.float0:
        return None
    return x


def _dtype_name(dtype: Any) -> str:
    return "float0" if dtype == dtypes.float0 else str(dtype.name)

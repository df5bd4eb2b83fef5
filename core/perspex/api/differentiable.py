"""What derivatives require of a call: its arguments, their dtypes, and its result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeAlias, TypedDict, TypeVar

import numpy as np

from perspex import dtypes, tree
from perspex.api.calls import Call
from perspex.control.bodies import place
from perspex.ir.avals import ShapedArray
from perspex.ir.references import is_ref_type
from perspex.jitted.signature import function_name, name_after
from perspex.tracing.array_type import ArrayLike
from perspex.transforms.jvp import is_differentiable

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
A = TypeVar("A", bound=ArrayLike)
Numbers: TypeAlias = int | Sequence[int]  # the positions of arguments


class Options(TypedDict, total=False):
    """The rarer arguments of `grad` and `value_and_grad`."""

    holomorphic: bool
    allow_int: bool
    reduce_axes: tuple[()]


def argument_positions(argnums: Any) -> tuple[int, ...]:
    given = (argnums,) if not isinstance(argnums, Sequence) else tuple(argnums)
    for n in given:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
            raise TypeError(
                f"argnums must be an integer or a tuple of integers, got {argnums!r} "
                f"of type {type(argnums)}"
            )
    if not given:
        raise ValueError("argnums is empty: name at least one argument of the derivative")
    if len(set(given)) != len(given):
        raise ValueError(f"argnums {argnums} names an argument twice")
    return tuple([int(n) for n in given])


def call_of(
    what: str,
    fun: Callable[..., Any],
    numbers: tuple[int, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    has_aux: bool,
) -> Call:
    """The call as a function of the arguments at positions `numbers` alone."""
    least = max([n + 1 if n >= 0 else -n for n in numbers])
    if len(args) < least:
        shown = numbers[0] if len(numbers) == 1 else numbers
        raise TypeError(
            f"differentiating with respect to argnums={shown} requires at least {least} positional "
            f"arguments to be passed by the caller, but got only {len(args)} positional arguments, "
            f"for {place(fun)}; pass those arguments by position."
        )
    # What is given by name is part of the function.
    of_args = functools.partial(fun, **kwargs) if kwargs else fun
    positions = [n % len(args) for n in numbers]
    return Call(what, of_args, args, positions=positions, has_aux=has_aux)


def check_inputs(what: str, call: Call, holomorphic: bool, allow_int: bool) -> None:
    for i, aval in enumerate(call.avals):
        dtype = aval.dtype
        if is_ref_type(aval):
            raise TypeError(
                f"{what} cannot differentiate with respect to a Ref-typed argument "
                f"({call.path(i)}), because the gradient for a ref must itself be accumulated into "
                "a ref. Use vjp, and give the function that it returns a ref for the gradient: "
                "`pull.with_refs(grad_ref)(ct)`. Ref arguments that argnums does not select are "
                "fine."
            )
        if aval.is_extended or not (is_differentiable(aval) or allow_int):
            raise TypeError(
                f"{what} requires real- or complex-valued inputs (input dtype that is a sub-dtype "
                f"of np.inexact), but got {dtype.name} for {call.path(i)} of {place(call.fun)}. "
                "Convert it with astype(float), or write 2.0 for 2. If you want to use Boolean- or "
                "integer-valued inputs, use vjp or set allow_int to True."
            )
        if holomorphic and dtype.kind != "c":
            raise TypeError(
                f"{what} with holomorphic=True requires inputs with complex dtype, "
                f"but got {dtype.name} for {call.path(i)} of {place(call.fun)}."
            )


def check_scalar(
    what: str, value: Any, avals: Sequence[ShapedArray], call: Call, holomorphic: bool
) -> None:
    if call.out_tree != tree.structure(0):
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output was {value}, from "
            f"{place(call.fun)}. Return one number, and the rest as auxiliary output: has_aux=True"
        )
    (aval,) = avals
    if aval.shape:
        raise TypeError(
            "Gradient only defined for scalar-output functions. Output had shape: "
            f"{aval.shape}, from {place(call.fun)}. To get the gradient, reduce the "
            "output to a scalar with output.sum(), or use jacobian to differentiate a function "
            "with a non-scalar output."
        )
    check_outputs(what, aval, call, holomorphic)


def check_outputs(what: str, aval: ShapedArray, call: Call, holomorphic: bool) -> None:
    kind = np.complexfloating if holomorphic else np.floating
    if not aval.is_extended and dtypes.issubdtype(aval.dtype, kind):
        return
    if holomorphic:
        raise TypeError(
            f"{what} with holomorphic=True requires outputs with complex dtype, "
            f"but got {aval.dtype.name} from {place(call.fun)}."
        )
    remedy = (
        "For holomorphic differentiation, pass holomorphic=True. For differentiation of "
        "non-holomorphic functions involving complex outputs, use vjp directly."
        if aval.dtype.kind == "c"
        else "For differentiation of functions with integer outputs, use vjp directly."
    )
    raise TypeError(
        f"{what} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), "
        f"but got {aval.dtype.name} from {place(call.fun)}. {remedy}"
    )


def described(made: Callable[..., Any], fun: Callable[..., Any], text: str) -> Callable[..., Any]:
    """Give `made` the name of `fun`, and documentation."""
    name_after(made, fun)
    made.__doc__ = text.format(fun=function_name(fun))
    return made


def check_reduce_axes(what: str, axes: Sequence[Any]) -> None:
    """JAX still has this argument, and takes no axis any more."""
    if axes:
        raise NotImplementedError(
            f"{what}: reduce_axes is not supported; sum over the axis with lax.psum in the function"
        )

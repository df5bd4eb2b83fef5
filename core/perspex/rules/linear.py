"""Linear functions: their transpose, and functions that come with one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import dtypes, tree
from perspex.api.calls import Call, array_of, check_callable
from perspex.base.source import transformed
from perspex.base.tree_paths import PyTree
from perspex.control.bodies import place
from perspex.ir.avals import ShapedArray, shaped
from perspex.jitted.signature import function_name
from perspex.rules.function import type_text
from perspex.rules.linear_call import Transposed, linear_call_p
from perspex.tracing.primitive import Linear
from perspex.tracing.staging import stage, stage_closed
from perspex.transforms.dce import dce_jaxpr
from perspex.transforms.jvp import is_differentiable
from perspex.transforms.transpose import backward_pass


def linear_transpose(
    fun: Callable[..., PyTree], *primals: PyTree, reduce_axes: Sequence[Any] = ()
) -> Callable[[PyTree], tuple[PyTree, ...]]:
    """The transpose of a linear function: like `vjp`, but without a point to evaluate it at.

    Args:
      fun: a linear function of pytrees of arrays, of floating point numbers throughout or of
        integers throughout. Constants that it adds are ignored.
      primals: arguments of the right types, whose values do not matter, or objects with `shape`
        and `dtype`.
      reduce_axes: only `()`.

    Returns:
      A function from a cotangent of the result, of its structure and types, to the tuple of those
      of the arguments.

    Raises:
      TypeError: for arguments that have no shape and dtype, for integers mixed with other numbers,
        and for a cotangent of another structure or type.
      NotImplementedError: for an operation in which `fun` is not linear, and for `reduce_axes`.

    >>> import perspex.numpy as pnp
    >>> linear_transpose(lambda x, y: 2 * x - pnp.sum(y), 1.0, pnp.ones(2))(3.0)
    (Array(6., dtype=float32, weak_type=True), Array([-3., -3.], dtype=float32))
    """
    check_callable(fun)
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to transpose is deprecated; leave it out")
    examples = tree.map(_example, primals)
    call = Call("linear_transpose", fun, examples)
    jaxpr, consts = stage(call, call.avals, call.name)
    out_avals = [v.aval for v in jaxpr.outvars]
    _check_numbers(call, out_avals)
    constants = dict(zip(jaxpr.constvars, consts, strict=True))
    smaller, _ = dce_jaxpr(jaxpr, [True] * len(out_avals))
    smaller = smaller.replace(invars=jaxpr.invars)
    residuals = [constants[v] for v in smaller.constvars]

    def transposed(ct: Any) -> tuple[Any, ...]:
        cts, ct_tree = tree.flatten(ct)
        if ct_tree != call.out_tree:
            raise TypeError(
                "cotangent tree does not match function output: expected "
                f"{call.out_tree}, got {ct_tree}"
            )
        for c, aval in zip(cts, out_avals, strict=True):
            given = shaped(c)
            if given.shape != aval.shape or given.dtype != aval.dtype:
                raise TypeError(
                    "cotangent type does not match function output: expected "
                    f"{type_text(aval)}, got {type_text(given)}; convert it with `.astype` or "
                    "`.reshape`"
                )
        linear = [Linear(v.aval) for v in smaller.invars]
        try:
            found = transformed("transpose", backward_pass, smaller, residuals, linear, cts)
        except (NotImplementedError, TypeError, ValueError) as error:
            known = "must be linear" in str(error)
            if not (known or isinstance(error, NotImplementedError)):
                raise
            raise NotImplementedError(
                f"linear_transpose: {place(fun)} is not linear in its arguments: {error}"
            ) from None
        pulled: tuple[Any, ...] = tree.unflatten(
            call.in_tree, [array_of(c, a) for c, a in zip(found, call.avals, strict=True)]
        )
        return pulled

    return transposed


def _example(x: Any) -> Any:
    """An argument of the type of `x`, which may be only its description."""
    try:
        shaped(x)
    except TypeError:
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise
        return np.broadcast_to(np.zeros((), dtypes.canonicalize_dtype(x.dtype)), x.shape)
    return x


def _check_numbers(call: Call, out_avals: Sequence[ShapedArray]) -> None:
    floating = [is_differentiable(aval) for aval in (*call.avals, *out_avals)]
    whole = [
        not aval.is_extended and dtypes.issubdtype(aval.dtype, np.integer)
        for aval in (*call.avals, *out_avals)
    ]
    if not (all(floating) or all(whole)):
        ins = [aval.dtype.name for aval in call.avals]
        outs = [aval.dtype.name for aval in out_avals]
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer "
            f"-> integer functions, but got {ins} -> {outs}; let the function close over the rest"
        )


def linear_call(
    fun: Callable[[PyTree, PyTree], PyTree],
    fun_transpose: Callable[[PyTree, PyTree], PyTree],
    residual_args: PyTree,
    linear_args: PyTree,
) -> PyTree:
    """Call a linear function that comes with its transpose.

    Args:
      fun: `fun(residual_args, linear_args)`, linear in its second argument.
      fun_transpose: `fun_transpose(residual_args, ct)` returns a cotangent of `linear_args`.
      residual_args: a pytree of arrays, without derivatives.
      linear_args: a pytree of arrays.

    Returns:
      What `fun` returns. Its derivative is `fun`, and the transpose of that is `fun_transpose`.

    Raises:
      TypeError: for a derivative with respect to `residual_args`, and where `fun_transpose` returns
        another structure or other types than `linear_args` have.

    >>> import perspex
    >>> def divide(x, y):
    ...     return linear_call(lambda y, x: x / y, lambda y, ct: ct / y, y, x)
    >>> perspex.grad(divide)(3.0, 4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    check_callable(fun)
    check_callable(fun_transpose)
    call = Call("linear_call", fun, (residual_args, linear_args))
    closed, consts = stage_closed(call, call.avals, call.name)
    residual_tree = tree.structure(residual_args)
    linear_tree = tree.structure(linear_args)
    count = residual_tree.num_leaves

    def flat_transpose(*args: Any) -> list[Any]:
        # The first of the residuals are what `fun` closes over.
        residuals = args[len(consts) : len(consts) + count]
        cts = args[len(consts) + count :]
        found = fun_transpose(
            tree.unflatten(residual_tree, residuals), tree.unflatten(call.out_tree, cts)
        )
        leaves, found_tree = tree.flatten(found)
        if found_tree != linear_tree:
            raise TypeError(
                f"transpose output pytree structure must match that of linear inputs: "
                f"{place(fun_transpose)} returned {found_tree}, and linear_args are {linear_tree}"
            )
        for x, aval in zip(leaves, call.avals[count:], strict=True):
            given = shaped(x)
            if given.shape != aval.shape or given.dtype != aval.dtype:
                raise TypeError(
                    f"transpose output types must match those of linear inputs: "
                    f"{place(fun_transpose)} returned {type_text(given)} for {type_text(aval)}"
                )
        return leaves

    outs = linear_call_p(
        *consts,
        *call.leaves,
        callee=closed,
        num_res=len(consts) + count,
        transpose=Transposed(flat_transpose, function_name(fun_transpose)),
    )
    return tree.unflatten(call.out_tree, outs)

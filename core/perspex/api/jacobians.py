"""Jacobians and Hessians: all derivatives of a function at a point, as arrays.

Unit vectors, all at once by batching, are pushed through the function (`jacfwd`, a column of the
matrix each) or pulled back (`jacrev`, a row each).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from perspex import dtypes, tree
from perspex.api.calls import Call, array_of, check_callable
from perspex.api.differentiable import (
    argument_positions,
    call_of,
    check_inputs,
    check_outputs,
    described,
)
from perspex.api.points import linearized_call
from perspex.base.dimensions import Symbolic
from perspex.base.source import transformed
from perspex.ir.avals import ShapedArray, shaped
from perspex.ops.elementwise import eq
from perspex.ops.shape import iota, slice
from perspex.ops.structural import convert, move_axis, reshape, to_front
from perspex.tracing.trace import typeof
from perspex.transforms.jvp import jvp
from perspex.transforms.programs import pick, with_gaps
from perspex.transforms.vmap import batch

P = ParamSpec("P")


def _basis(avals: Sequence[ShapedArray]) -> tuple[list[np.ndarray], list[int]]:
    """The unit vectors of the space of some arrays, stacked along a first axis; their sizes."""
    sizes = [aval.size for aval in avals]
    if any([isinstance(n, Symbolic) for n in sizes]):
        total = sum(sizes)
        rows, columns = [
            iota(dtype=np.dtype("int32"), shape=(total, total), dimension=d) for d in (0, 1)
        ]
        blocks = _blocks(eq(rows, columns), 1, avals)
        return [convert(x, aval.dtype) for x, aval in zip(blocks, avals, strict=True)], sizes
    whole = np.eye(sum(sizes), dtype=bool)
    cuts = np.split(whole, np.cumsum(sizes)[:-1], axis=1) if sizes else []
    found = [
        part.reshape(len(whole), *aval.shape).astype(aval.dtype)
        for part, aval in zip(cuts, avals, strict=True)
    ]
    return found, sizes


def _blocks(whole: Any, axis: int, avals: Sequence[ShapedArray]) -> list[Any]:
    """One axis cut into the arrays that it enumerates, and each given their shape there."""
    shape = typeof(whole).shape
    found, start = [], 0
    for aval in avals:
        low, high = [0] * len(shape), list(shape)
        low[axis], high[axis] = start, start + aval.size
        part = slice(whole, start_indices=tuple(low), limit_indices=tuple(high), strides=None)
        start += aval.size
        sizes = (*shape[:axis], *aval.shape, *shape[axis + 1 :])
        found.append(reshape(part, new_sizes=sizes))
    return found


def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """The Jacobian, a column at a time by forward mode: for more results than arguments.

    Args:
      fun: a function of pytrees of arrays.
      argnums: which positional arguments to differentiate with respect to; a tuple gives a tuple of
        Jacobians.
      has_aux: `fun` returns a pair; its second part is not differentiated.
      holomorphic: differentiate a complex function with respect to complex arguments.

    Returns:
      A function of the same arguments that returns, in the structure of the results, that of the
      arguments; each leaf has the shape of the result and then that of the argument. An integer
      result has zeros of its dtype.

    Raises:
      TypeError: for arguments of a dtype that has no derivative, and for results that are booleans
        or keys.

    >>> import perspex.numpy as pnp
    >>> jacfwd(lambda x: x**2)(pnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable(fun)
    numbers = argument_positions(argnums)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        call = call_of("jacfwd", fun, numbers, args, kwargs, has_aux)
        for aval in call.avals:
            _check_forward_input(aval, holomorphic)
        basis, _ = _basis(call.avals)
        aux: list[Any] = []

        def columns(*tangents: Any) -> list[Any]:
            outs, ts = transformed("jvp", jvp, call, call.leaves, tangents, call.names)
            for y in outs[: call.count]:
                _check_forward_output(shaped(y), holomorphic)
            aux.extend(outs[call.count :])
            return [
                array_of(t, shaped(y))
                for t, y in zip(ts[: call.count], outs[: call.count], strict=True)
            ]

        size = sum([aval.size for aval in call.avals])
        outs, axes = transformed("vmap", batch, columns, size, basis, [0] * len(basis))
        found = []
        for y, at in zip(outs, axes, strict=True):
            whole = to_front(y, at, size)
            ndim = typeof(whole).ndim
            blocks = _blocks(move_axis(whole, 0, ndim - 1), ndim - 1, call.avals)
            found.append(_arguments(call, blocks, argnums))
        result = tree.unflatten(call.out_tree, found)
        return (result, tree.unflatten(call.aux_tree, aux)) if has_aux else result

    return described(jacobian, fun, "Jacobian of {fun}, by forward mode.")


def _check_forward_input(aval: ShapedArray, holomorphic: bool) -> None:
    if holomorphic:
        if aval.dtype.kind != "c":
            raise TypeError(
                "jacfwd with holomorphic=True requires inputs with complex dtype, "
                f"but got {aval.dtype.name}."
            )
    elif aval.is_extended or not dtypes.issubdtype(aval.dtype, np.floating):
        raise TypeError(
            "jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), "
            f"but got {aval.dtype.name}. For holomorphic differentiation, pass holomorphic=True. "
            "For differentiation of non-holomorphic functions involving complex inputs or integer "
            "inputs, use jvp directly."
        )


def _check_forward_output(aval: ShapedArray, holomorphic: bool) -> None:
    if holomorphic and aval.dtype.kind != "c":
        raise TypeError(
            "jacfwd with holomorphic=True requires outputs with complex dtype, but got "
            f"{aval.dtype.name}."
        )
    if aval.is_extended or aval.dtype == bool:
        raise TypeError(
            f"jacfwd requires outputs that are numbers, but got {aval.dtype.name}; convert it, or "
            "return it as auxiliary output"
        )


def _arguments(call: Call, leaves: Sequence[Any], argnums: Any) -> Any:
    """Leaves in the structure of the arguments that were asked for."""
    found = tree.unflatten(call.in_tree, leaves)
    return found if isinstance(argnums, Sequence) else found[0]


def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """The Jacobian, a row at a time by reverse mode: for more arguments than results.

    Args:
      fun: a function of pytrees of arrays.
      argnums: which positional arguments to differentiate with respect to; a tuple gives a tuple of
        Jacobians.
      has_aux: `fun` returns a pair; its second part is not differentiated.
      holomorphic: differentiate a complex function with respect to complex arguments.
      allow_int: let arguments be integers or booleans, whose Jacobians have the dtype `float0`.

    Returns:
      A function of the same arguments that returns, in the structure of the results, that of the
      arguments; each leaf has the shape of the result and then that of the argument.

    Raises:
      TypeError: for arguments and results of a dtype that has no derivative.

    >>> import perspex.numpy as pnp
    >>> jacrev(lambda x: x**2)(pnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable(fun)
    numbers = argument_positions(argnums)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        call = call_of("jacrev", fun, numbers, args, kwargs, has_aux)
        check_inputs("jacrev", call, holomorphic, allow_int)
        outs, point, residuals = linearized_call(call)
        for aval in point.out_avals:
            check_outputs("jacrev", aval, call, holomorphic)
        basis, _ = _basis(point.out_avals)
        size = sum([aval.size for aval in point.out_avals])

        def rows(*cts: Any) -> list[Any]:
            given = tree.unflatten(point.out_tree, cts)
            pulled = point.pull(residuals, given)
            found = pick(tree.leaves(pulled), point.wanted)
            avals = pick(point.in_avals, point.wanted)
            # A Jacobian is weakly typed where the argument is.
            return [array_of(c, aval) for c, aval in zip(found, avals, strict=True)]

        found, axes = transformed("vmap", batch, rows, size, basis, [0] * len(basis))
        columns = [
            _blocks(to_front(y, at, size), 0, point.out_avals)
            for y, at in zip(found, axes, strict=True)
        ]
        by_output = []
        for k, out in enumerate(point.out_avals):
            mine = with_gaps([column[k] for column in columns], point.wanted)
            leaves = [
                np.zeros((*out.shape, *aval.shape), dtypes.float0) if x is None else x
                for x, aval in zip(mine, point.in_avals, strict=True)
            ]
            by_output.append(_arguments(call, leaves, argnums))
        result = tree.unflatten(point.out_tree, by_output)
        return (result, call.aux(outs)) if has_aux else result

    return described(jacobian, fun, "Jacobian of {fun}, by reverse mode.")


def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """The matrix of second derivatives, forward over reverse.

    Args:
      fun: a function of pytrees of arrays.
      argnums: which positional arguments to differentiate with respect to; a tuple gives nested
        tuples.
      has_aux: `fun` returns a pair; its second part is not differentiated.
      holomorphic: differentiate a complex function with respect to complex arguments.

    Returns:
      A function of the same arguments that returns, in the structure of the results, twice nested
      that of the arguments.

    Raises:
      TypeError: for arguments and results of a dtype that has no derivative.

    >>> import perspex.numpy as pnp
    >>> hessian(lambda x: pnp.sum(x**3))(pnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    rows = jacrev(fun, argnums, has_aux, holomorphic)
    return jacfwd(rows, argnums, has_aux, holomorphic)


jacobian = jacrev

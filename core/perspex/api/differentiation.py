"""Derivatives of functions of pytrees: `grad`, `jvp`, `vjp`, `linearize`.

Forward mode pushes tangents through a function as it runs. Reverse mode linearizes it at a point,
which evaluates it and leaves a linear program of tangents, and runs that program backwards. The
tangents of integers and booleans have the dtype `float0`, which holds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, Unpack, overload

import numpy as np

from perspex import dtypes, tree
from perspex.api.calls import Call, argument_avals, array_of, check_callable
from perspex.api.differentiable import (
    A,
    Numbers,
    Options,
    P,
    R,
    S,
    T,
    argument_positions,
    call_of,
    check_inputs,
    check_reduce_axes,
    check_scalar,
    described,
)
from perspex.api.jit import jit
from perspex.api.points import VJP, Pull, Push, is_cut_as, linearized_call, tangent_out
from perspex.base.pytree_registry import Partial
from perspex.base.source import transformed
from perspex.ir.avals import ShapedArray, shaped
from perspex.ops.placing import resharded
from perspex.ops.refs import get as get_ref
from perspex.ops.refs import set as set_ref
from perspex.ops.structural import scalar_like
from perspex.sharding import NamedSharding, PartitionSpec
from perspex.tracing.array_type import Array
from perspex.tracing.trace import Reference
from perspex.transforms import jvp as forward
from perspex.transforms.discharge import Valued
from perspex.transforms.jvp import is_differentiable

_FLOAT0 = dtypes.float0


# ---- Forward mode -------------------------------------------------------------------------------


@overload
def jvp(
    fun: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, S]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[R, R, S]: ...


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """Push tangents through a function: the Jacobian at a point times a vector.

    Args:
      fun: a function of pytrees of arrays.
      primals: a tuple of its arguments, where to differentiate.
      tangents: a tuple of the same structure, shapes and dtypes. Integers and booleans have
        tangents of dtype `float0`. Tangents that explicit axes of a mesh cut in another way than
        their primals are moved to where those lie.
      has_aux: `fun` returns a pair; its second part is not differentiated.

    Returns:
      `(results, tangents of the results)`, and the auxiliary output if there is one.

    Raises:
      TypeError: for tangents of another structure or dtype than the primals, and for values that
        are not arrays.
      ValueError: for tangents of another shape.

    >>> import perspex.numpy as pnp
    >>> jvp(pnp.sin, (0.0,), (2.0,))
    (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            "primal and tangent arguments to jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}."
        )
    call = Call("jvp", fun, tuple(primals), has_aux=has_aux)
    given, given_tree = tree.flatten(tuple(tangents))
    if given_tree != call.in_tree or type(primals) is not type(tangents):
        raise TypeError(
            "primal and tangent arguments to jvp must have the same tree structure; primals have "
            f"tree structure {tree.structure(primals)} whereas tangents have tree structure "
            f"{tree.structure(tangents)}."
        )
    ts = [
        _tangent_in(t, aval, call.path(i))
        for i, (t, aval) in enumerate(zip(given, call.avals, strict=True))
    ]
    if Reference.exist:
        ts = [get_ref(t) if isinstance(t, Reference) else t for t in ts]
        valued = Valued(call, call.leaves, [t is not None for t in ts])
        outs, out_ts = transformed("jvp", forward.jvp, valued, valued.values, ts, call.names)
        for i, y, t in zip(
            valued.written, outs[valued.count :], out_ts[valued.count :], strict=True
        ):
            set_ref(call.leaves[i], None, y)
            set_ref(given[i], None, array_of(t, shaped(y)))
        outs, out_ts = outs[: valued.count], out_ts[: valued.count]
    else:
        outs, out_ts = transformed("jvp", forward.jvp, call, call.leaves, ts, call.names)
    results = outs[: call.count]
    tangents_out = [
        tangent_out(t, shaped(y), as_primal=True)
        for t, y in zip(out_ts[: call.count], results, strict=True)
    ]
    found = tree.unflatten(call.out_tree, results), tree.unflatten(call.out_tree, tangents_out)
    return (*found, call.aux(outs)) if has_aux else found


def _tangent_in(t: Any, aval: ShapedArray, where: str) -> Any:
    """A tangent from the user, checked; `None` if it is zero by its type."""
    if getattr(t, "dtype", None) == _FLOAT0:
        shape, dtype = np.shape(t), _FLOAT0
    else:
        given = argument_avals("jvp", [t], lambda _: f"the tangent of {where}")[0]
        shape, dtype = given.shape, given.dtype
        if shape == aval.shape and not is_cut_as(given, aval):
            t = resharded(t, _as_primal(given, aval))
    expected = aval.dtype if is_differentiable(aval) else _FLOAT0
    if dtype != expected:
        raise TypeError(
            "primal and tangent arguments to jvp do not match; dtypes must be equal, or in case of "
            f"int/bool primal dtype the tangent dtype must be float0. Got primal dtype "
            f"{aval.dtype.name} and so expected tangent dtype {_dtype_name(expected)}, but got "
            f"tangent dtype {_dtype_name(dtype)} instead, for {where}."
        )
    if shape != aval.shape:
        raise ValueError(
            "jvp called with different primal and tangent shapes; "
            f"Got primal shape {aval.shape} and tangent shape as {shape}, for {where}"
        )
    return None if expected == _FLOAT0 else t


def _as_primal(given: ShapedArray, aval: ShapedArray) -> NamedSharding:
    """How a primal is cut, on the mesh of a tangent if it is not cut at all."""
    if aval.cut is not None:
        return aval.cut
    assert given.cut is not None
    return NamedSharding(given.cut.mesh, PartitionSpec(*[None] * aval.ndim))


def _dtype_name(dtype: Any) -> str:
    return "float0" if dtype == _FLOAT0 else str(dtype.name)


# ---- Linearization and reverse mode -------------------------------------------------------------


@overload
def linearize(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, S]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[..., R], S]: ...


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Evaluate a function at a point, and return its derivative there as a linear function.

    The derivative costs no more than its linear part: what depends on the primals alone has been
    computed. Use it for many tangents at one point.

    Args:
      fun: a function of pytrees of arrays.
      primals: its arguments.
      has_aux: `fun` returns a pair; its second part is not differentiated.

    Returns:
      `(results, function from tangents of the arguments to tangents of the results)`, and the
      auxiliary output if there is one.

    Raises:
      TypeError: if `fun` is not a function, or an argument or a result is not an array.
      ValueError: from the linear function, for tangents of another shape or dtype.

    >>> import perspex.numpy as pnp
    >>> y, df = linearize(lambda x: x**2, 3.0)
    >>> df(1.0), df(2.0)
    (Array(6., dtype=float32, weak_type=True), Array(12., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    call = Call("linearize", fun, primals, has_aux=has_aux)
    outs, point, residuals = linearized_call(call)
    results = tree.unflatten(call.out_tree, outs[: call.count])
    push = Partial(Push(point), residuals)
    return (results, push, call.aux(outs)) if has_aux else (results, push)


@overload
def vjp(
    fun: Callable[..., R],
    *primals: Any,
    has_aux: Literal[False] = False,
    reduce_axes: tuple[()] = (),
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, S]],
    *primals: Any,
    has_aux: Literal[True],
    reduce_axes: tuple[()] = (),
) -> tuple[R, Callable[[Any], tuple[Any, ...]], S]: ...


def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()
) -> Any:
    """Evaluate a function at a point, and return the function that pulls cotangents back.

    Args:
      fun: a function of pytrees of arrays.
      primals: its arguments.
      has_aux: `fun` returns a pair; its second part is not differentiated.
      reduce_axes: only `()`.

    Returns:
      `(results, function from a cotangent of the results to the tuple of those of the arguments)`,
      and the auxiliary output if there is one.

    Raises:
      TypeError: if `fun` is not a function, or an argument or a result is not an array.
      ValueError: from the function that is returned, for cotangents of another structure or type.
      NotImplementedError: for `reduce_axes`.

    >>> import perspex.numpy as pnp
    >>> y, pull = vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pull(1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    check_reduce_axes("vjp", reduce_axes)
    call = Call("vjp", fun, primals, has_aux=has_aux)
    outs, point, residuals = linearized_call(call)
    results = tree.unflatten(call.out_tree, outs[: call.count])
    pull = VJP(Pull(point), residuals)
    return (results, pull, call.aux(outs)) if has_aux else (results, pull)


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two passes of reverse mode as two functions, each compiled once.

    `vjp` gives a new function at every point; compiled, that would be a new program every time.

    Args:
      fun: a function of pytrees of arrays.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: `fun` returns a pair; its second part is not differentiated.
      jitted: compile both functions.

    Returns:
      `(fwd, bwd)`: `fwd(*args)` gives `(results, residuals)`, and the auxiliary output if there is
      one; `bwd(residuals, cotangent of the results)` gives the tuple of the cotangents of the
      arguments, or just the one if `argnums` is a number.

    Raises:
      TypeError: if `fun` is not a function, or the call has too few arguments.

    >>> import perspex.numpy as pnp
    >>> fwd, bwd = fwd_and_bwd(lambda x, y: pnp.sin(x) * y, argnums=(0, 1))
    >>> y, residuals = fwd(0.0, 2.0)
    >>> bwd(residuals, 1.0)
    (Array(2., dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    numbers = argument_positions(argnums)

    def fwd(*args: Any) -> Any:
        call = call_of("fwd_and_bwd", fun, numbers, args, {}, has_aux)
        outs, point, residuals = linearized_call(call)
        results = tree.unflatten(call.out_tree, outs[: call.count])
        pull = VJP(Pull(point), residuals)
        return (results, pull, call.aux(outs)) if has_aux else (results, pull)

    def bwd(residuals: Any, cotangents: Any) -> Any:
        found = residuals(cotangents)
        return found if isinstance(argnums, Sequence) else found[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


# ---- Gradients ----------------------------------------------------------------------------------


@overload
def grad(
    fun: Callable[Concatenate[A, P], Any], argnums: Literal[0] = 0, **options: Unpack[Options]
) -> Callable[Concatenate[A, P], Array]: ...
@overload
def grad(
    fun: Callable[Concatenate[T, P], Any], argnums: Literal[0] = 0, **options: Unpack[Options]
) -> Callable[Concatenate[T, P], T]: ...
@overload
def grad(
    fun: Callable[P, Any], argnums: Numbers = 0, has_aux: bool = False, **options: Unpack[Options]
) -> Callable[P, Any]: ...


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """The gradient of a function with a scalar result.

    Args:
      fun: a function of pytrees of arrays that returns a floating point scalar.
      argnums: which positional arguments to differentiate with respect to; a tuple gives a tuple of
        gradients.
      has_aux: `fun` returns a pair; its second part is not differentiated.
      holomorphic: differentiate a complex function with respect to complex arguments.
      allow_int: let arguments be integers or booleans, whose gradients have the dtype `float0`.
      reduce_axes: only `()`.

    Returns:
      A function of the same arguments that returns the gradient, of the structure and types of the
      arguments, and the auxiliary output if there is one.

    Raises:
      TypeError: for results that are not scalars, and for arguments and results of a dtype that has
        no derivative.
      NotImplementedError: for `reduce_axes`.

    >>> import perspex.numpy as pnp
    >>> grad(lambda x: x**3)(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    check_reduce_axes("grad", reduce_axes)
    both = _value_and_grad("grad", fun, argnums, has_aux, holomorphic, allow_int)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return described(
        gradient,
        fun,
        f"Gradient of {{fun}} with respect to positional argument(s) {argnums}. Takes the same "
        "arguments as {fun} but returns the gradient, which has the same shape as the arguments "
        f"at positions {argnums}.",
    )


@overload
def value_and_grad(
    fun: Callable[Concatenate[A, P], R], argnums: Literal[0] = 0, **options: Unpack[Options]
) -> Callable[Concatenate[A, P], tuple[R, Array]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[T, P], R], argnums: Literal[0] = 0, **options: Unpack[Options]
) -> Callable[Concatenate[T, P], tuple[R, T]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[T, P], tuple[R, S]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[T, P], tuple[tuple[R, S], T]]: ...
@overload
def value_and_grad(
    fun: Callable[P, Any], argnums: Numbers = 0, has_aux: bool = False, **options: Unpack[Options]
) -> Callable[P, tuple[Any, Any]]: ...


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """The value and the gradient of a function with a scalar result, from one evaluation.

    Args:
      fun: a function of pytrees of arrays that returns a floating point scalar.
      argnums: which positional arguments to differentiate with respect to; a tuple gives a tuple of
        gradients.
      has_aux: `fun` returns a pair; its second part is not differentiated.
      holomorphic: differentiate a complex function with respect to complex arguments.
      allow_int: let arguments be integers or booleans, whose gradients have the dtype `float0`.
      reduce_axes: only `()`.

    Returns:
      A function of the same arguments that returns `(value, gradient)`; with `has_aux`
      `((value, aux), gradient)`.

    Raises:
      TypeError: for results that are not scalars, and for arguments and results of a dtype that has
        no derivative.
      NotImplementedError: for `reduce_axes`.

    >>> import perspex.numpy as pnp
    >>> value_and_grad(lambda x: x**3)(2.0)
    (Array(8., dtype=float32, weak_type=True), Array(12., dtype=float32, weak_type=True))
    """
    check_reduce_axes("value_and_grad", reduce_axes)
    both = _value_and_grad("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int)
    return described(
        both,
        fun,
        f"Value and gradient of {{fun}} with respect to positional argument(s) {argnums}. Takes "
        "the same arguments as {fun} but returns a two-element tuple where the first element is "
        "the value of {fun} and the second element is the gradient, which has the same shape as "
        f"the arguments at positions {argnums}.",
    )


def _value_and_grad(
    what: str,
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> Callable[..., Any]:
    check_callable(fun)
    numbers = argument_positions(argnums)

    def both(*args: Any, **kwargs: Any) -> Any:
        call = call_of(what, fun, numbers, args, kwargs, has_aux)
        check_inputs(what, call, holomorphic, allow_int)
        outs, point, residuals = linearized_call(call)
        value = tree.unflatten(call.out_tree, outs[: call.count])
        check_scalar(what, value, point.out_avals, call, holomorphic)
        one = scalar_like(outs[0], 1)
        found = point.pull(residuals, tree.unflatten(call.out_tree, [one]))
        gradient = found if isinstance(argnums, Sequence) else found[0]
        return ((value, call.aux(outs)), gradient) if has_aux else (value, gradient)

    return both

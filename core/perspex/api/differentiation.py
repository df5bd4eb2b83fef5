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
    weak_if,
)
from perspex.api.jit import jit
from perspex.base.pytree_registry import Partial
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.jaxpr import Jaxpr
from perspex.tracing.array_type import Array
from perspex.tracing.primitive import Linear
from perspex.tracing.staging import eval_jaxpr
from perspex.transforms import jvp as forward
from perspex.transforms.jvp import is_differentiable
from perspex.transforms.linearize import linearize as linearized
from perspex.transforms.programs import pick, with_gaps
from perspex.transforms.transpose import backward_pass

_FLOAT0 = dtypes.float0


def _tangent_out(t: Any, aval: ShapedArray) -> Any:
    """A tangent or cotangent as it is handed to the user."""
    if not is_differentiable(aval):
        return np.zeros(aval.shape, _FLOAT0)
    return array_of(t, aval)


def _named(aval: ShapedArray) -> str:
    return aval.str_short(short_dtypes=False)


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
        tangents of dtype `float0`.
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
    outs, out_ts = forward.jvp(call, call.leaves, ts, call.names)
    results = outs[: call.count]
    tangents_out = [
        _tangent_out(t, shaped(y)) for t, y in zip(out_ts[: call.count], results, strict=True)
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


def _dtype_name(dtype: Any) -> str:
    return "float0" if dtype == _FLOAT0 else str(dtype.name)


# ---- Linearization and reverse mode -------------------------------------------------------------


class _Point:
    """What the derivative of a call at a point needs beside the residuals: static and hashable."""

    def __init__(self, call: Call, found: Any) -> None:
        self.name = call.name
        self.jaxpr: Jaxpr = found.jaxpr
        self.in_tree, self.out_tree = call.in_tree, call.out_tree
        self.in_avals = call.avals
        self.wanted = [is_differentiable(aval) for aval in call.avals]
        self.out_avals = [shaped(y) for y in found.outs[: call.count]]
        self.nonzero = found.nonzero[: call.count]

    def push(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        """Tangents of the results."""
        given, given_tree = tree.flatten(tangents)
        if given_tree != self.in_tree:
            raise TypeError(
                f"the linearized function {self.name} takes tangents of the structure "
                f"{self.in_tree}, got {given_tree}"
            )
        for t, aval in zip(given, self.in_avals, strict=True):
            self._check_tangent(t, aval)
        avals = weak_if(given, self.in_avals, self.out_avals)
        outs = eval_jaxpr(self.jaxpr, residuals, *pick(given, self.wanted))
        return tree.unflatten(
            self.out_tree,
            [
                _tangent_out(t, aval)
                for t, aval in zip(with_gaps(outs, self.nonzero), avals, strict=True)
            ],
        )

    def _check_tangent(self, t: Any, aval: ShapedArray) -> None:
        if getattr(t, "dtype", None) == _FLOAT0:
            if not is_differentiable(aval) and np.shape(t) == aval.shape:
                return
            shown = f"float0[{','.join(map(str, np.shape(t)))}]"
        else:
            given = shaped(t)
            if given.shape == aval.shape and given.dtype == aval.dtype:
                return
            shown = _named(given)
        raise ValueError(
            "linearized function called on tangent values inconsistent with the original primal "
            f"values: got tangent type {shown} for primal type {_named(aval)}; "
            "convert it with `.astype` or `.reshape`"
        )

    def pull(
        self, residuals: Sequence[Any], *given: Any, plain: bool = True, mapped: bool = False
    ) -> tuple[Any, ...]:
        """Cotangents of the arguments.

        They are weakly typed where the arguments are; `plain` cotangents of the results, which have
        a dtype of their own where the results have none, make them strong. `mapped` ones are those
        of a Jacobian, one of many.
        """
        if len(given) != 1:
            raise TypeError(
                f"the function returned by `vjp` applied to `{self.name}` was called with "
                f"{len(given)} arguments, but it takes one, with the structure of the result of "
                f"`{self.name}`: for a tuple of results call it with a tuple, `pull((ct_a, ct_b))`"
            )
        (ct,) = given
        cts, ct_tree = tree.flatten(ct)
        if ct_tree != self.out_tree:
            raise ValueError(
                "unexpected tree structure.\nThe argument to a VJP function returned by `vjp` must "
                f"match the pytree structure of the results of the differentiated function "
                f"`{self.name}`: it is {ct_tree}, and that of the results is {self.out_tree}"
            )
        for c, aval in zip(cts, self.out_avals, strict=True):
            self._check_cotangent(c, aval)
        linear = [Linear(v.aval) for v in self.jaxpr.invars]
        found = backward_pass(self.jaxpr, residuals, linear, pick(cts, self.nonzero))
        avals = weak_if(cts, self.out_avals, self.in_avals) if plain else self.in_avals
        # As in JAX: a complex number made of a real one has a dtype of its own.
        real = not mapped and any(aval.dtype.kind == "f" for aval in self.out_avals)
        made = [aval for aval in avals if real and aval.dtype.kind == "c"]
        pulled: tuple[Any, ...] = tree.unflatten(
            self.in_tree,
            [
                _tangent_out(c, aval.strip_weak_type() if c is not None and aval in made else aval)
                for c, aval in zip(with_gaps(found, self.wanted), avals, strict=True)
            ],
        )
        return pulled

    def _check_cotangent(self, ct: Any, aval: ShapedArray) -> None:
        if not is_differentiable(aval):
            return
        given = argument_avals("vjp", [ct], lambda _: "a cotangent")[0]
        if given.shape != aval.shape or given.dtype != aval.dtype:
            raise ValueError(
                "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
                f"{_named(given)}, but expected {_named(aval)} because the corresponding output of "
                f"the differentiated function had JAX type {_named(aval)}"
            )


class _Push:
    """The derivative of a call as a function of tangents, shown by what it takes and gives."""

    __slots__ = ("point",)

    def __init__(self, point: _Point) -> None:
        self.point = point

    def __call__(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        return self.point.push(residuals, *tangents)

    def __repr__(self) -> str:
        point = self.point
        return f"jvp of {point.name}: {_types(point.in_avals)} -> {_types(point.out_avals)}"


class _Pull:
    """The transpose of the derivative of a call as a function of cotangents."""

    __slots__ = ("point",)

    def __init__(self, point: _Point) -> None:
        self.point = point

    def __call__(self, residuals: Sequence[Any], *cotangents: Any) -> Any:
        return self.point.pull(residuals, *cotangents)

    def __repr__(self) -> str:
        point = self.point
        return f"vjp of {point.name}: {_types(point.out_avals)} -> {_types(point.in_avals)}"


def _types(avals: Sequence[ShapedArray]) -> str:
    return f"({', '.join(map(_named, avals))})"


def linearized_call(call: Call) -> tuple[list[Any], _Point, list[Any]]:
    wanted = [is_differentiable(aval) for aval in call.avals]
    found = linearized(call, call.leaves, wanted, call.name, call.is_result, call.names)
    return found.outs, _Point(call, found), found.residuals


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
    push = Partial(_Push(point), residuals)
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
    pull = Partial(_Pull(point), residuals)
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
        pull = Partial(_Pull(point), residuals)
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
        one = point.out_avals[0].dtype.type(1)
        found = point.pull(residuals, tree.unflatten(call.out_tree, [one]), plain=False)
        gradient = found if isinstance(argnums, Sequence) else found[0]
        return ((value, call.aux(outs)), gradient) if has_aux else (value, gradient)

    return both

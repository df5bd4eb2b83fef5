"""Functions that close over arrays: `closure_convert`, and `custom_gradient` built on the idea."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import dtypes, tree
from perspex.api.calls import Call, check_callable
from perspex.base.pytree_registry import Partial
from perspex.base.tree_paths import PyTree
from perspex.control.bodies import place
from perspex.ir.avals import shaped
from perspex.jitted.signature import function_name
from perspex.rules.custom_vjp import custom_vjp
from perspex.tracing.staging import eval_jaxpr, stage
from perspex.tracing.trace import Tracer, typeof
from perspex.transforms.jvp import is_differentiable
from perspex.transforms.programs import cut, merge, partition, pick


def closure_convert(
    fun: Callable[..., PyTree], *example_args: PyTree
) -> tuple[Callable[..., PyTree], list[Any]]:
    """Turn the values that a function closes over into arguments, for derivatives.

    Use it in a function that takes a function and has a rule of its own: the rule is given
    arguments alone.

    Args:
      fun: a function of pytrees of arrays.
      example_args: arguments of the types that it will be called with.

    Returns:
      A function `converted(*args, *consts)`, and the list `consts` of the traced floating point
      values that `fun` closes over. Other values stay part of the function.

    Raises:
      TypeError: if `fun` is not a function, or an argument is not an array.

    >>> import perspex, perspex.numpy as pnp
    >>> def slope(c):
    ...     converted, consts = closure_convert(lambda x: c * pnp.sin(x), 0.0)
    ...     return converted(0.0, *consts) + len(consts)
    >>> perspex.grad(slope)(2.0)
    Array(0., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    call = Call("closure_convert", fun, example_args)
    jaxpr, consts = stage(call, call.avals, call.name)
    hoisted = [isinstance(c, Tracer) and is_differentiable(typeof(c)) for c in consts]
    own, found = partition(consts, hoisted)

    def converted(*args: Any) -> Any:
        given, mine = cut(args, len(args) - len(found))
        leaves, in_tree = tree.flatten(tuple(given))
        if in_tree != call.in_tree or len(mine) != len(found):
            raise TypeError(
                f"the closure of `{call.name}` produced by closure_convert takes arguments of the "
                f"structure {call.in_tree}, and then the {len(found)} values returned with it; got "
                f"{in_tree} and {len(mine)} values"
            )
        outs = eval_jaxpr(jaxpr, merge(hoisted, own, mine), *leaves)
        return tree.unflatten(call.out_tree, outs)

    return converted, found


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Define a function together with how cotangents are pulled back: a decorator.

    Args:
      fun: returns its result, and a function from the cotangent of the result to the tuple of those
        of the arguments; for one argument it may be that cotangent itself. It may close over
        values computed on the way.

    Returns:
      A function that returns the first of the two, with the second as its rule for reverse mode.

    Raises:
      TypeError: if `fun` is not a function; at a call, if it does not return a pair, or the second
        part does not return one cotangent for each argument.

    >>> import perspex
    >>> @custom_gradient
    ... def square(x):
    ...     return x**2, lambda ct: 10 * ct * x
    >>> square(3.0), perspex.grad(square)(3.0)
    (9.0, Array(30., dtype=float32, weak_type=True))
    """
    check_callable(fun)

    def both(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        found = fun(*args, **kwargs)
        if not isinstance(found, (tuple, list)) or len(found) != 2 or not callable(found[1]):
            raise TypeError(
                f"the custom_gradient function {place(fun)} must return a pair, its result and a "
                f"function of the cotangent of the result, but it returned {type(found).__name__}"
            )
        return found[0], found[1]

    @functools.wraps(fun)
    def primal(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[0]

    def fwd(*args: Any) -> tuple[Any, Any]:
        out, rule = both(*args)
        outs, out_tree = tree.flatten(out)
        avals = [shaped(y) for y in outs]
        wanted = [is_differentiable(aval) for aval in avals]
        found_tree = None

        def flat(*given: Any) -> list[Any]:
            nonlocal found_tree
            nothing = [np.zeros(aval.shape, dtypes.float0) for aval in avals]
            cts = merge(wanted, partition(nothing, wanted)[0], given)
            found = rule(tree.unflatten(out_tree, cts))
            if isinstance(found, list):
                found = tuple(found)
            if len(args) == 1 and not isinstance(found, tuple):
                found = (found,)
            if not isinstance(found, tuple) or len(found) != len(args):
                raise TypeError(
                    f"the function of the cotangent that the custom_gradient function {place(fun)} "
                    f"returns must give a tuple of {len(args)} cotangents, one for each argument, "
                    f"but it returned {tree.structure(found)}"
                )
            leaves, found_tree = tree.flatten(found)
            return leaves

        jaxpr, consts = stage(flat, pick(avals, wanted), function_name(rule))

        def pull(consts: Any, ct: Any) -> Any:
            given = pick(tree.leaves(ct), wanted)
            return tree.unflatten(found_tree, eval_jaxpr(jaxpr, consts, *given))

        return out, Partial(pull, consts)

    def bwd(pull: Any, ct: Any) -> Any:
        return pull(ct)

    made = custom_vjp(primal)
    made.defvjp(fwd, bwd)
    return made

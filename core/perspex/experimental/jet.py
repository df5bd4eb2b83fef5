"""Taylor mode: higher derivatives along a curve in one pass, `jax.experimental.jet`.

Every differentiable operation has a rule, control flow included; see `transforms.taylor`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from perspex import numpy as pnp
from perspex import tree
from perspex.api.calls import Call, argument_avals, array_of
from perspex.arguments.types import Array, ArrayLike
from perspex.base.public import publish as _publish
from perspex.base.tree_paths import PyTree
from perspex.ir.avals import ShapedArray
from perspex.tracing.trace import typeof
from perspex.transforms.jvp import is_differentiable
from perspex.transforms.taylor import scaled, taylor

__all__ = ["jet"]


def jet(
    fun: Callable[..., PyTree],
    primals: Sequence[ArrayLike],
    series: Sequence[Sequence[ArrayLike]],
    factorial_scaled: bool = True,
) -> tuple[PyTree, PyTree]:
    """The value of a function along a curve, and its derivatives up to some order.

    The curve is `x(s)`, with `x(0)` and its derivatives given; the result is `f(x(s))` at `s = 0`
    with its derivatives. A function with a rule of its own (`custom_jvp`, `custom_vjp`) is expanded
    like any other, without the rule.

    Args:
      fun: a function of arrays that returns a pytree of arrays.
      primals: a tuple or list of the arguments at `s = 0`, each an array or a number.
      series: for each argument its derivatives of order 1, 2, ... with respect to `s`: as many for
        each argument, arrays of the argument's shape, or numbers. Those of integers do not count.
      factorial_scaled: whether terms are derivatives. If false, they are coefficients of `s^k`, of
        the arguments and of the result: the derivative of order `k` over `k!`.

    Returns:
      The results of `fun(*primals)`, and a pytree like it that has in the place of each array the
      list of its derivatives.

    Raises:
      TypeError: if `fun` is not a function.
      ValueError: if the terms of the arguments differ in number or do not have their shapes, or an
        argument or a term is a container of arrays.

    References:
      A. Griewank and A. Walther, "Evaluating Derivatives", chapter 13.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental.jet import jet
    >>> value, (first, second) = jet(lambda x: x**3, (jnp.float32(2.0),), ([1.0, 0.0],))
    >>> first, second
    (Array(12., dtype=float32), Array(12., dtype=float32))
    """
    orders = {len(terms) for terms in series}
    if len(orders) != 1 or len(primals) != len(series):
        raise ValueError(
            "jet terms have inconsistent lengths for different arguments: there are "
            f"{len(primals)} arguments, with {[len(terms) for terms in series]} terms"
        )
    (order,) = orders
    for i, (x, terms) in enumerate(zip(primals, series, strict=True)):
        if not tree.all_leaves([x]):
            raise ValueError(f"primal value at position {i} is not an array; pass its leaves")
        for j, term in enumerate(terms):
            if not tree.all_leaves([term]):
                raise ValueError(f"term {j} for argument {i} is not an array; pass its leaves")
    factors = [math.factorial(k) if factorial_scaled else 1 for k in range(1, order + 1)]
    call = Call("jet", fun, tuple(primals))
    given = [
        _terms(aval, terms, factors, i)
        for i, (aval, terms) in enumerate(zip(call.avals, series, strict=True))
    ]
    outs, found = taylor(call, call.leaves, given, order, call.names)
    of_results = [
        [_zeros(typeof(y))] * order
        if terms is None
        else [scaled(t, factor) for t, factor in zip(terms, factors, strict=True)]
        for y, terms in zip(outs, found, strict=True)
    ]
    return tree.unflatten(call.out_tree, outs), tree.unflatten(call.out_tree, of_results)


def _zeros(aval: ShapedArray) -> Array:
    """The terms of a result that does not change; floats where it is of another kind."""
    return pnp.zeros(aval.shape, aval.dtype if is_differentiable(aval) else float)


def _terms(
    aval: ShapedArray, terms: Sequence[Any], factors: Sequence[int], argument: int
) -> list[Any] | None:
    """The coefficients of an argument, of its type."""
    if not is_differentiable(aval):
        return None
    what = f"jet: the terms of argument {argument}"
    for term in argument_avals(what, terms, lambda j: f"term {j}"):
        if term.shape not in ((), aval.shape):
            raise ValueError(f"{what}, of shape {aval.shape}, have its shape; got {term.shape}")
    return [
        scaled(array_of(term, aval), 1 / factor)
        for term, factor in zip(terms, factors, strict=True)
    ]


# The name in JAX of `jet` with the coefficients of a polynomial instead of derivatives.
jet2 = functools.partial(jet, factorial_scaled=False)

_publish(globals())

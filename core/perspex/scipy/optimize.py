"""`minimize`: the minimum of a function of many variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes, lax
from perspex import numpy as pnp
from perspex.api.differentiation import value_and_grad
from perspex.arguments.types import Array, ArrayLike
from perspex.ir.avals import shaped

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(NamedTuple):
    """What `minimize` returns.

    `x`: the solution. `success`: whether the gradient is small enough there. `status`: 0 for
    success, 1 when `maxiter` was reached, 3 when no better point was found along the last
    direction. `fun`, `jac`, `hess_inv`: the value, the gradient, and an estimate of the inverse of
    the matrix of second derivatives. `nfev`, `njev`, `nit`: how many values, gradients and steps it
    took.
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array
    nfev: Array
    njev: Array
    nit: Array


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Minimize a smooth function of many variables, from a starting point.

    It runs compiled, batched and on any device. It is not differentiable in reverse mode; for the
    derivative of a solution, solve `grad(fun)(x) = 0` with `lax.custom_root`.

    Args:
      fun: `fun(x, *args)` takes an array of shape `(n,)` and returns a floating point scalar.
      x0: where to start, of shape `(n,)` and floating dtype.
      args: further arguments of `fun`.
      method: `"BFGS"`.
      tol: the gradient's norm at which to stop; short for `options={"gtol": tol}`.
      options: `gtol` (1e-5), `norm` of the gradient (`inf`), `maxiter` (200 n) and
        `line_search_maxiter` (40), the most points to look at along one direction.

    Returns:
      An `OptimizeResults`, a named tuple: `x` is the solution, `success` whether it is one.

    Raises:
      TypeError: if `args` is not a tuple, or `x0` not a vector of floats.
      ValueError: for another method, and unknown options.

    References:
      J. Nocedal and S. J. Wright, "Numerical Optimization" (2006), chapter 6; the line search:
      A. S. Lewis and M. L. Overton, "Nonsmooth optimization via quasi-Newton methods" (2013).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy.optimize import minimize
    >>> found = minimize(lambda x: jnp.sum((x - 3.0) ** 2), jnp.zeros(2), method="BFGS")
    >>> bool(found.success), [round(float(x), 3) for x in found.x]
    (True, [3.0, 3.0])
    """
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args must be a tuple, got {args!r}; write (value,) for one")
    if method.lower() != "bfgs":
        raise ValueError(f"Method {method} not recognized; use 'BFGS'")
    aval = shaped(x0)
    if aval.ndim != 1 or not dtypes.issubdtype(aval.dtype, np.floating):
        raise TypeError(
            f"minimize: x0 must be a vector of floats, got {aval.str_short(short_dtypes=False)}; "
            "flatten_util.ravel_pytree makes one of a tree"
        )
    settings: dict[str, Any] = {
        "gtol": 1e-5 if tol is None else tol,
        "norm": np.inf,
        "maxiter": None,
        "line_search_maxiter": 40,
    }
    unknown = set(options or {}) - set(settings)
    if unknown:
        raise ValueError(f"minimize: no options {sorted(unknown)}; there are {sorted(settings)}")
    settings.update(options or {})
    if settings["maxiter"] is None:
        settings["maxiter"] = 200 * aval.size
    return _bfgs(lambda x: fun(x, *args), pnp.asarray(x0), **settings)


# After so many points on one line its direction is not trusted any more.
_LONG_SEARCH = 10


class _State(NamedTuple):
    x: Any
    value: Any
    before: Any  # the value one step earlier
    slope: Any
    inverse: Any
    count: Any
    steps: Any
    stuck: Any


def _bfgs(
    fun: Callable[[Any], Any],
    x0: Any,
    gtol: float,
    norm: float,
    maxiter: int,
    line_search_maxiter: int,
) -> OptimizeResults:
    both = value_and_grad(fun)
    eye = pnp.eye(x0.size, dtype=x0.dtype)

    def converged(slope: Any) -> Any:
        return pnp.linalg.norm(slope, ord=norm) < gtol

    def going(state: _State) -> Any:
        return ~converged(state.slope) & (state.steps < maxiter) & ~state.stuck

    def step(state: _State) -> _State:
        direction = -(state.inverse @ state.slope)
        found = _along(both, state, direction, line_search_maxiter)
        s, y = found.x - state.x, found.slope - state.slope
        curvature = y @ s
        # Weak Wolfe conditions make the curvature positive; without them the estimate stays.
        safe = pnp.where(curvature > 0, curvature, 1)
        left = eye - pnp.outer(s, y) / safe
        updated = left @ state.inverse @ left.T + pnp.outer(s, s) / safe
        inverse = pnp.where(curvature > 0, updated, state.inverse)
        # Rounding may have spoilt the estimate, which a long search shows: forget it.
        long = found.count > _LONG_SEARCH
        inverse = pnp.where(long, eye, inverse)
        return _State(
            found.x,
            found.value,
            state.value,
            found.slope,
            inverse,
            state.count + found.count,
            state.steps + 1,
            ~found.good,
        )

    value, slope = both(x0)
    # As if the step before had taken away half of the slope's length.
    before = value + pnp.sqrt(slope @ slope) / 2
    first = _State(
        x0, value, before, slope, eye, pnp.asarray(1), pnp.asarray(0), pnp.asarray(False)
    )
    last = lax.while_loop(going, step, first)
    success = converged(last.slope)
    status = pnp.where(success, 0, pnp.where(last.stuck, 3, 1))
    return OptimizeResults(
        last.x,
        success,
        status,
        last.value,
        last.slope,
        last.inverse,
        last.count,
        last.count,
        last.steps,
    )


class _Point(NamedTuple):
    t: Any
    low: Any
    high: Any
    x: Any
    value: Any
    slope: Any
    good: Any
    count: Any


def _along(both: Callable[[Any], Any], state: _State, direction: Any, most: int) -> _Point:
    """A point along a direction with a lower value and a less steep slope.

    Bisection: a point that is too high becomes the upper end of the interval, a point that is too
    steep the lower end. Without an upper end the step doubles. If the search fails, the result is
    the starting point. It begins where a parabola has its minimum that falls as far as the function
    fell in the step before, but not beyond 1 (Nocedal and Wright, equation 3.60): a gradient alone
    says nothing of how far to go.
    """
    descent = state.slope @ direction
    dtype = state.x.dtype

    def going(point: _Point) -> Any:
        return ~point.good & (point.count < most)

    def look(point: _Point) -> _Point:
        x = state.x + point.t * direction
        value, slope = both(x)
        # Not `>`, so that NaN counts as too high.
        high = ~(value <= state.value + 1e-4 * point.t * descent)
        steep = slope @ direction < 0.9 * descent
        upper = pnp.where(high, point.t, point.high)
        lower = pnp.where(~high & steep, point.t, point.low)
        t = pnp.where(pnp.isinf(upper), 2 * lower, (lower + upper) / 2)
        return _Point(t, lower, upper, x, value, slope, ~high & ~steep, point.count + 1)

    none = pnp.zeros((), dtype)
    guess = 2.02 * (state.value - state.before) / descent
    start = _Point(
        pnp.where((guess > 0) & (guess < 1), guess, 1).astype(dtype),
        none,
        pnp.full((), np.inf, dtype),
        state.x,
        state.value,
        state.slope,
        pnp.asarray(False),
        pnp.asarray(0),
    )
    found = lax.while_loop(going, look, start)
    return found._replace(
        x=pnp.where(found.good, found.x, state.x),
        value=pnp.where(found.good, found.value, state.value),
        slope=pnp.where(found.good, found.slope, state.slope),
    )

"""Ordinary differential equations, with derivatives: `jax.experimental.ode`.

`odeint` integrates by the explicit Runge-Kutta method of Dormand and Prince. Its gradient is that
of the adjoint method: another equation, which runs backwards in time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import perspex.numpy as pnp
from perspex import config, dtypes, lax, tree
from perspex.api.differentiation import vjp
from perspex.api.jit import jit
from perspex.api.mapping import vmap
from perspex.base.public import publish as _publish
from perspex.base.tree_paths import PyTree
from perspex.flatten_util import ravel_pytree
from perspex.ir.avals import shaped
from perspex.numpy.promotion import promote_dtypes
from perspex.rules.closures import closure_convert
from perspex.rules.custom_vjp import custom_vjp

__all__ = ["odeint"]

Dynamics = Callable[..., Any]


class _Settings(NamedTuple):
    """The keyword arguments of `odeint`."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float


# The tableau of Dormand and Prince (1980): when each stage is evaluated, from which other stages,
# the weights of the solution, and those of the embedded solution of order 4.
_NODES = [0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1]
_STAGES: list[list[float]] = [
    [0, 0, 0, 0, 0, 0, 0],
    [1 / 5, 0, 0, 0, 0, 0, 0],
    [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
    [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
]
_WEIGHTS = _STAGES[-1]
# Of the solution minus the embedded one, with which its step is judged (that of L. F. Shampine).
_EMBEDDED = [1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60]
_ERROR = [w - e for w, e in zip(_WEIGHTS, _EMBEDDED, strict=True)]
# Of the solution in the middle of a step (Shampine, "Some practical Runge-Kutta formulas", 1986).
_MIDDLE = [
    6025192743 / 30085553152 / 2, 0, 51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2, 187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2,
]  # fmt: skip
# The polynomial of degree 4 through both ends of a step and its middle, with the slopes at the
# ends: its coefficients, highest first, from `dt dy0, dt dy1, y0, y1, y_middle`.
_QUARTIC = [
    [-2, 2, -8, -8, 16],
    [5, -3, 18, 14, -32],
    [-4, 1, -11, -5, 16],
    [1, 0, 0, 0, 0],
    [0, 0, 1, 0, 0],
]


def odeint(
    func: Dynamics,
    y0: PyTree,
    t: Any,
    *args: PyTree,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> PyTree:
    """The solution of an ordinary differential equation, at given times.

    The steps adapt to the error. In reverse mode the gradient with respect to `y0`, `t` and `args`
    is the solution of another such equation, as exact as `rtol` and `atol` say; forward mode is not
    available. Values that `func` closes over count as arguments.

    Args:
      func: the time derivative `func(y, t, *args)` of the state `y`, of the structure of `y`.
      y0: the state at the time `t[0]`, a pytree of arrays.
      t: times, floats of shape `(n,)`, in strictly increasing order.
      args: further arguments of `func`, pytrees of arrays and numbers.
      rtol, atol: the error that a step may make, relative and absolute.
      mxstep: the greatest number of steps between two of the times.
      hmax: the longest step.

    Returns:
      A pytree like `y0`, whose arrays have one more axis in front, of length `n`.

    Raises:
      TypeError: if an argument is not an array or a number, or `t` is not an array of floats.

    References:
      J. R. Dormand and P. J. Prince, "A family of embedded Runge-Kutta formulae", 1980; E. Hairer,
      S. P. Norsett and G. Wanner, "Solving Ordinary Differential Equations I", II.4; for the
      gradient, appendix C of arXiv:1806.07366.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental.ode import odeint
    >>> decay = odeint(lambda y, t, rate: -rate * y, 1.0, jnp.array([0.0, 1.0]), 2.0)
    >>> decay.round(4)
    Array([1.    , 0.1353], dtype=float32)
    """
    for arg in tree.leaves(args):
        try:
            shaped(arg)
        except TypeError:
            raise TypeError(
                f"The contents of odeint *args must be arrays or scalars, but got {arg}. Let "
                "`func` close over anything else."
            ) from None
    if not dtypes.issubdtype(getattr(t, "dtype", None), np.floating):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    converted, consts = closure_convert(func, y0, t[0], *args)
    settings = _Settings(rtol, atol, mxstep, hmax)
    return _solved(converted, settings, y0, t, *args, *consts)


@functools.partial(jit, static_argnums=(0, 1))
def _solved(func: Dynamics, settings: _Settings, y0: PyTree, times: Any, *args: PyTree) -> PyTree:
    """`odeint` with the state as a vector."""
    y0, unravel = ravel_pytree(y0)

    def flat(y: Any, t: Any, *args: Any) -> Any:
        return ravel_pytree(func(unravel(y), t, *args))[0]

    return vmap(unravel)(_integrated(flat, settings, y0, times, *args))


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _integrated(func: Dynamics, settings: _Settings, y0: Any, times: Any, *args: PyTree) -> Any:
    """The state, a vector, at each of the times."""
    with config.default_matmul_precision("highest"):

        def slope(y: Any, t: Any) -> Any:
            return func(y, t, *args)

        def until(carry: Any, target: Any) -> tuple[Any, Any]:
            def is_short(state: Any) -> Any:
                steps, _, _, t, dt, _, _ = state
                return (t < target) & (steps < settings.mxstep) & (dt > 0)

            def step(state: Any) -> Any:
                steps, y, f, t, dt, before, coefficients = state
                after, f_after, error, stages = runge_kutta_step(slope, y, f, t, dt)
                ratio = mean_error_ratio(error, settings.rtol, settings.atol, y, after)
                quartic = interp_fit_dopri(y, after, stages, dt)
                next_dt = pnp.clip(optimal_step_size(dt, ratio), 0.0, settings.hmax)
                taken = (after, f_after, t + dt, next_dt, t, quartic)
                repeated = (y, f, t, next_dt, before, coefficients)
                chosen = [pnp.where(ratio <= 1, a, b) for a, b in zip(taken, repeated, strict=True)]
                return (steps + 1, *chosen)

            _, *after = lax.while_loop(is_short, step, (0, *carry))
            _, _, t, _, before, coefficients = after
            part = ((target - before) / (t - before)).astype(coefficients.dtype)
            return tuple(after), pnp.polyval(coefficients, part)

        f0 = slope(y0, times[0])
        first = initial_step_size(slope, times[0], y0, 4, settings.rtol, settings.atol, f0)
        dt = pnp.clip(first, 0.0, settings.hmax)
        start = (y0, f0, times[0], dt, times[0], pnp.stack([y0] * 5))
        _, ys = lax.scan(until, start, times[1:])
        return pnp.concatenate([y0[None], ys])


# ---- One step. JAX's module has these names and parameters, and libraries call them -------------


def runge_kutta_step(
    func: Dynamics, y0: Any, f0: Any, t0: Any, dt: Any
) -> tuple[Any, Any, Any, Any]:
    """The state after a step, its slope, the estimated error, and the slopes of all stages."""
    nodes, table = pnp.array(_NODES, dt.dtype), pnp.array(_STAGES, f0.dtype)
    h = dt.astype(f0.dtype)

    def stage(i: Any, stages: Any) -> Any:
        found = func(y0 + h * pnp.dot(table[i], stages), t0 + dt * nodes[i])
        return stages.at[i].set(found)

    stages = lax.fori_loop(1, 7, stage, pnp.zeros((7, *f0.shape), f0.dtype).at[0].set(f0))
    after = y0 + h * pnp.dot(pnp.array(_WEIGHTS, f0.dtype), stages)
    return after, stages[-1], h * pnp.dot(pnp.array(_ERROR, f0.dtype), stages), stages


def interp_fit_dopri(y0: Any, y1: Any, k: Any, dt: Any) -> Any:
    """The polynomial of `fit_4th_order_polynomial`, from the slopes `k` of all stages."""
    h = dt.astype(y0.dtype)
    middle = y0 + h * pnp.dot(pnp.array(_MIDDLE, y0.dtype), k)
    return fit_4th_order_polynomial(y0, y1, middle, k[0], k[-1], h)


def fit_4th_order_polynomial(y0: Any, y1: Any, y_mid: Any, dy0: Any, dy1: Any, dt: Any) -> Any:
    """The coefficients of a polynomial in the part of the step, highest first: `(5, n)`."""
    known = pnp.stack([dt * dy0, dt * dy1, y0, y1, y_mid])
    return pnp.dot(pnp.array(_QUARTIC, y0.dtype), known)


def abs2(x: Any) -> Any:
    """The square of the absolute value."""
    return pnp.abs(x) ** 2


def mean_error_ratio(error_estimate: Any, rtol: Any, atol: Any, y0: Any, y1: Any) -> Any:
    """The root mean square of the error over what is allowed: at most 1 for a step that is kept."""
    allowed = atol + rtol * pnp.maximum(pnp.abs(y0), pnp.abs(y1))
    return pnp.sqrt(pnp.mean(abs2(error_estimate / allowed.astype(error_estimate.dtype))))


def optimal_step_size(
    last_step: Any,
    mean_error_ratio: Any,
    safety: float = 0.9,
    ifactor: float = 10.0,
    dfactor: float = 0.2,
    order: float = 5.0,
) -> Any:
    """The length of the next step: `dfactor` to `ifactor` times the last, no shorter if kept."""
    least = pnp.where(mean_error_ratio < 1, 1.0, dfactor)
    factor = pnp.minimum(ifactor, pnp.maximum(safety * mean_error_ratio ** (-1 / order), least))
    return last_step * pnp.where(mean_error_ratio == 0, ifactor, factor)


def initial_step_size(
    fun: Dynamics, t0: Any, y0: Any, order: int, rtol: Any, atol: Any, f0: Any
) -> Any:
    """The length of the first step (Hairer, Norsett and Wanner, II.4), of a method of `order`."""
    y, f = promote_dtypes("odeint", y0, f0, to=dtypes.to_inexact_dtype)
    scale = (atol + rtol * pnp.abs(y)).astype(y.dtype)
    d0, d1 = pnp.linalg.norm(y / scale), pnp.linalg.norm(f / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = pnp.where(small, 1e-6, 0.01 * d0 / d1)
    f1 = fun(y + h0.astype(y.dtype) * f, t0 + h0)
    d2 = pnp.linalg.norm((f1 - f) / scale) / h0
    flat = (d1 <= 1e-15) & (d2 <= 1e-15)
    shallow = pnp.maximum(1e-6, h0 * 1e-3)
    h1 = pnp.where(flat, shallow, (0.01 / pnp.maximum(d1, d2)) ** (1 / (order + 1)))
    return pnp.minimum(100 * h0, h1)


# ---- The derivative -----------------------------------------------------------------------------


def _forward(
    func: Dynamics, settings: _Settings, y0: Any, times: Any, *args: PyTree
) -> tuple[Any, Any]:
    ys = _integrated(func, settings, y0, times, *args)
    return ys, (ys, times, args)


def _backward(func: Dynamics, settings: _Settings, residuals: Any, ct: Any) -> tuple[Any, ...]:
    """The cotangents of `y0`, the times and the arguments, by the adjoint equation."""
    ys, times, args = residuals

    def adjoint(state: Any, t: Any, *args: Any) -> Any:
        """The state and all cotangents in negative time, as the solver goes forward."""
        y, y_ct, *_ = state
        slope, pull = vjp(func, y, -t, *args)
        return (-slope, *pull(y_ct))

    def earlier(carry: Any, i: Any) -> tuple[Any, Any]:
        y_ct, start_ct, args_ct = carry
        # To observe later means to go on along the slope.
        time_ct = pnp.dot(func(ys[i], times[i], *args), ct[i]).real
        start_ct = start_ct - time_ct
        interval = pnp.stack([-times[i], -times[i - 1]])
        state = (ys[i], y_ct, start_ct, args_ct)
        path = odeint(adjoint, state, interval, *args, **settings._asdict())
        _, y_ct, start_ct, args_ct = tree.map(lambda x: x[1], path)
        return (y_ct + ct[i - 1], start_ct, args_ct), time_ct

    with config.default_matmul_precision("highest"):
        start = (ct[-1], 0.0, tree.map(pnp.zeros_like, args))
        order = pnp.arange(len(times) - 1, 0, -1)
        (y_ct, start_ct, args_ct), time_cts = lax.scan(earlier, start, order)
    times_ct = pnp.concatenate([pnp.asarray(start_ct)[None], time_cts[::-1]])
    return y_ct, times_ct.astype(times.dtype), *args_ct


_integrated.defvjp(_forward, _backward)

_publish(globals())

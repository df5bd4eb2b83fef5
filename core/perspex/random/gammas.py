"""The gamma distribution and what is made of it: beta, Dirichlet, chi-squared, t, F, and balls.

A gamma variate of shape `a >= 1` is `d V`, where `d = a - 1/3` and `V = (1 + x / (3 sqrt(d)))^3`
for a normal `x`, accepted with a probability that depends on both: Marsaglia and Tsang, "A simple
method for generating gamma variables" (ACM TOMS 26, 2000). One of shape `a < 1` is one of shape
`a + 1` times `u^(1/a)`.

Samples are differentiable in `a`: they move with it as if the uniform number behind them, their
distribution function, stayed the same (`ops.incomplete.gamma_sample`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.api.mapping import vmap
from perspex.ir.avals import shaped
from perspex.lax.control import while_loop
from perspex.numpy.promotion import check_arraylike
from perspex.ops.elementwise import stop_gradient
from perspex.ops.incomplete import gamma_sample, log_gamma_sample
from perspex.ops.keys import random_split
from perspex.ops.shape import unstack
from perspex.ops.structural import broadcast_in_dim, reshape
from perspex.random.arguments import (
    Shape,
    as_dtype,
    as_shape,
    common_shape,
    float_dtype,
    no_sharding,
    on_key,
    shape_of,
    spread,
)
from perspex.random.normals import real_normal
from perspex.random.uniforms import unit
from perspex.tracing.trace import typeof

METHODS = "exact", "approximate"


def check_parameters(name: str, shape: Any, *parameters: Any) -> Shape:
    """The shape of samples with these parameters, which must be arrays that broadcast to it."""
    check_arraylike(name, *parameters)
    shape = None if shape is None else as_shape(name, shape)
    return common_shape(name, shape, *[shape_of(p) for p in parameters])


def check_method(name: str, method: str) -> bool:
    """Whether the approximate method is asked for."""
    if method not in METHODS:
        raise ValueError(f"method argument to `{name}` must be one of {METHODS}, got {method!r}")
    return method == "approximate"


def filled(name: str, x: Any, shape: Shape) -> Any:
    """An array or a scalar at the shape of the samples."""
    x = spread(name, x, shape)
    if typeof(x).shape == shape:
        return x
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=())


def gamma(
    key: Any,
    a: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    method: str = "exact",
    out_sharding: Any = None,
) -> Any:
    """Samples with density proportional to `x**(a - 1) * exp(-x)` for `x >= 0`.

    They are differentiable in `a` (Figurnov et al., "Implicit reparameterization gradients",
    https://arxiv.org/abs/1805.08498).

    Args:
      key: one key, typed or raw.
      a: the shape parameter, positive numbers that broadcast to `shape`; 0 gives 0, less NaN.
      shape: the shape of the result; by default that of `a`.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      method: `"exact"`, by rejection, or `"approximate"`, without a loop: the cube of a normal
        variate (Wilson and Hilferty, 1931) for `a + 4`, led back to `a`; its distribution function
        is off by less than 0.002. Its numbers are not those that JAX gives.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors:
      `ValueError` for another dtype, an unknown method, a shape that does not fit and an array of
      keys; `TypeError` for what is no key, shape or array.

    >>> from perspex import random
    >>> random.gamma(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    no_sharding("gamma", out_sharding)
    dtype = float_dtype("gamma", dtype)
    approximate = check_method("gamma", method)
    return _gamma(key, a, check_parameters("gamma", shape, a), dtype, approximate)


def loggamma(
    key: Any,
    a: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    method: str = "exact",
    out_sharding: Any = None,
) -> Any:
    """The logarithms of gamma samples: precise where `a` is so small that these would be zero.

    Args and errors: as `gamma`.

    >>> from perspex import random
    >>> bool(random.loggamma(random.key(0), 1e-4) < -100)
    True
    """
    no_sharding("loggamma", out_sharding)
    dtype = float_dtype("loggamma", dtype)
    approximate = check_method("loggamma", method)
    return _loggamma(key, a, check_parameters("loggamma", shape, a), dtype, approximate)


@on_key("gamma", static=3)
def _gamma(key: Any, a: Any, shape: Shape, dtype: Any, approximate: bool) -> Any:
    return gamma_samples(key, as_dtype(a, dtype), shape, False, approximate)


@on_key("loggamma", static=3)
def _loggamma(key: Any, a: Any, shape: Shape, dtype: Any, approximate: bool) -> Any:
    return gamma_samples(key, as_dtype(a, dtype), shape, True, approximate)


def gamma_samples(
    key: Any, a: Any, shape: Shape, logarithm: bool = True, approximate: bool = False
) -> Any:
    """Samples or their logarithms, for a typed key and an `a` of the dtype of the samples."""
    a = filled("gamma", a, shape)
    if approximate:
        drawn = _approximate(key, a)
        return drawn if logarithm else pnp.exp(drawn)
    count = math.prod(shape)
    given = reshape(stop_gradient(a), new_sizes=(count,))
    keys = random_split(key, shape=(count,))
    drawn = vmap(lambda k, x: _one(k, x, logarithm))(keys, given)
    drawn = reshape(drawn, new_sizes=shape)
    return (log_gamma_sample if logarithm else gamma_sample)(a, drawn)


def _one(key: Any, a: Any, logarithm: bool) -> Any:
    """One gamma variate, by Marsaglia and Tsang."""
    dtype = a.dtype
    zero, one, two = [dtype.type(n) for n in (0, 1, 2)]
    third, squeeze = dtype.type(1 / 3), dtype.type(0.0331)
    key, last = unstack(random_split(key, shape=(2,)), axis=0)
    large = a >= one
    d = pnp.where(large, a, a + one) - third
    c = third / pnp.sqrt(d)

    def rejected(state: Any) -> Any:
        _, square, v, u = state
        doubtful = u >= one - squeeze * (square * square)
        bound = square * dtype.type(0.5) + d * (one - v + pnp.log(v))
        return doubtful & (pnp.log(u) >= bound)

    def draw(state: Any) -> Any:
        key, normal_key, uniform_key = unstack(random_split(state[0], shape=(3,)), axis=0)

        def again(inner: Any) -> Any:
            inner_key, use = unstack(random_split(inner[0], shape=(2,)), axis=0)
            x = real_normal(use, (), dtype)
            return inner_key, x, one + x * c

        start = normal_key, zero, dtype.type(-1)
        _, x, v = while_loop(lambda inner: inner[2] <= zero, again, start)
        return key, x * x, (v * v) * v, unit(uniform_key, (), dtype)

    # The first state is one that is rejected.
    _, _, v, _ = while_loop(rejected, draw, (key, zero, one, two))
    if logarithm:
        log_u = pnp.log1p(-unit(last, (), dtype))
        boost = pnp.where(large | (log_u == zero), zero, log_u * (one / a))
        return pnp.log(d) + pnp.log(v) + boost
    u = one - unit(last, (), dtype)
    return d * v * pnp.where(large, one, pnp.power(u, one / a))


def _approximate(key: Any, a: Any) -> Any:
    """The logarithm of a variate of shape `a + 4`, and of four factors `u^(1 / (a + j))`."""
    aval = typeof(a)
    dtype, steps = aval.dtype, 4
    first, second = unstack(random_split(key, shape=(2,)), axis=0)
    b = a + dtype.type(steps)
    x = real_normal(first, aval.shape, dtype)
    ninth = 1 / (9 * b)
    root = pnp.maximum(1 - ninth + x * pnp.sqrt(ninth), dtypes.finfo(dtype).tiny)
    logs = pnp.log1p(-unit(second, (steps, *aval.shape), dtype))
    factors = sum(logs[j] / (a + dtype.type(j)) for j in range(steps))
    return pnp.log(b) + 3 * pnp.log(root) + factors


def beta(
    key: Any,
    a: Any,
    b: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    method: str = "exact",
    out_sharding: Any = None,
) -> Any:
    """Samples with density proportional to `x**(a - 1) * (1 - x)**(b - 1)` for `0 <= x <= 1`.

    Args:
      key: one key, typed or raw.
      a, b: positive numbers or arrays that broadcast to `shape`.
      shape: the shape of the result; by default that to which `a` and `b` broadcast.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      method: that of the two gamma samples `x` and `y` of which `x / (x + y)` is the result.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors: as `gamma`.

    >>> from perspex import random
    >>> bool(random.beta(random.key(0), 2.0, 3.0) < 1)
    True
    """
    no_sharding("beta", out_sharding)
    dtype = float_dtype("beta", dtype)
    approximate = check_method("beta", method)
    return _beta(key, a, b, check_parameters("beta", shape, a, b), dtype, approximate)


@on_key("beta", static=3)
def _beta(key: Any, a: Any, b: Any, shape: Shape, dtype: Any, approximate: bool) -> Any:
    keys = unstack(random_split(key, shape=(2,)), axis=0)
    logs = [
        gamma_samples(k, as_dtype(p, dtype), shape, True, approximate)
        for k, p in zip(keys, (a, b), strict=True)
    ]
    most = pnp.maximum(*logs)
    x, y = [pnp.exp(v - most) for v in logs]
    return x / (x + y)


def dirichlet(
    key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Vectors of positive numbers with sum 1, of density proportional to `prod(x**(alpha - 1))`.

    Args:
      key: one key, typed or raw.
      alpha: positive numbers of shape `(..., n)`.
      shape: the shape of the result but for its last axis, to which that of `alpha` without its
        last axis broadcasts, and is the default.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of shape `(*shape, n)` and the given dtype.

    Errors:
      `ValueError` for an `alpha` without axes; else as `gamma`.

    >>> import numpy as np
    >>> from perspex import random
    >>> random.dirichlet(random.key(0), np.ones(3), (2,)).shape
    (2, 3)
    """
    no_sharding("dirichlet", out_sharding)
    dtype = float_dtype("dirichlet", dtype)
    check_arraylike("dirichlet", alpha)
    given = shaped(alpha).shape
    if not given:
        raise ValueError("dirichlet: alpha must have at least one axis, got a scalar")
    shape = None if shape is None else as_shape("dirichlet", shape)
    shape = common_shape("dirichlet", shape, given[:-1])
    return _dirichlet(key, alpha, (*shape, given[-1]), dtype)


@on_key("dirichlet", static=2)
def _dirichlet(key: Any, alpha: Any, shape: Shape, dtype: Any) -> Any:
    logs = gamma_samples(key, as_dtype(alpha, dtype), shape)
    weights = pnp.exp(logs - stop_gradient(pnp.max(logs, -1, keepdims=True)))
    return weights / pnp.sum(weights, -1, keepdims=True)


def chisquare(
    key: Any,
    df: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    method: str = "exact",
    out_sharding: Any = None,
) -> Any:
    """Sums of the squares of `df` normal variates; `df` may be any positive number.

    Args:
      key: one key, typed or raw.
      df: the degrees of freedom, numbers that broadcast to `shape`.
      shape: the shape of the result; by default that of `df`.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      method: that of `gamma`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors: as `gamma`.

    >>> from perspex import random
    >>> bool(random.chisquare(random.key(0), 3.0) > 0)
    True
    """
    no_sharding("chisquare", out_sharding)
    dtype = float_dtype("chisquare", dtype)
    approximate = check_method("chisquare", method)
    return _chisquare(key, df, check_parameters("chisquare", shape, df), dtype, approximate)


@on_key("chisquare", static=3)
def _chisquare(key: Any, df: Any, shape: Shape, dtype: Any, approximate: bool) -> Any:
    return _chi_squared(key, as_dtype(df, dtype), shape, approximate)


def _chi_squared(key: Any, df: Any, shape: Shape, approximate: bool = False) -> Any:
    return pnp.exp(gamma_samples(key, df / typeof(df).dtype.type(2), shape, True, approximate)) * 2


def f(
    key: Any,
    dfnum: Any,
    dfden: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Ratios of two chi-squared variates, each divided by its degrees of freedom.

    Args:
      key: one key, typed or raw.
      dfnum, dfden: the degrees of freedom of numerator and denominator, which broadcast to `shape`.
      shape: the shape of the result; by default that to which they broadcast.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors: as `gamma`.

    >>> from perspex import random
    >>> bool(random.f(random.key(0), 3.0, 4.0) > 0)
    True
    """
    no_sharding("f", out_sharding)
    dtype = float_dtype("f", dtype)
    return _f(key, dfnum, dfden, check_parameters("f", shape, dfnum, dfden), dtype)


@on_key("f", static=2)
def _f(key: Any, dfnum: Any, dfden: Any, shape: Shape, dtype: Any) -> Any:
    dfnum, dfden = [spread("f", as_dtype(x, dtype), shape) for x in (dfnum, dfden)]
    below, above = unstack(random_split(key, shape=(2,)), axis=0)
    return (_chi_squared(above, dfnum, shape) / dfnum) / (_chi_squared(below, dfden, shape) / dfden)


def t(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Samples of Student's distribution with `df` degrees of freedom.

    Args:
      key: one key, typed or raw.
      df: positive numbers that broadcast to `shape`.
      shape: the shape of the result; by default that of `df`.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors: as `gamma`.

    >>> from perspex import random
    >>> random.t(random.key(0), 3.0, (2, 3)).shape
    (2, 3)
    """
    no_sharding("t", out_sharding)
    dtype = float_dtype("t", dtype)
    return _t(key, df, check_parameters("t", shape, df), dtype)


@on_key("t", static=2)
def _t(key: Any, df: Any, shape: Shape, dtype: Any) -> Any:
    first, second = unstack(random_split(key, shape=(2,)), axis=0)
    half = spread("t", as_dtype(df, dtype), shape) / dtype.type(2)
    drawn = gamma_samples(second, half, shape, False)
    return real_normal(first, shape, dtype) * pnp.sqrt(half / drawn)


def generalized_normal(
    key: Any, p: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Samples with density proportional to `exp(-abs(x)**p)`.

    Args:
      key: one key, typed or raw.
      p: a positive number, or an array that broadcasts to `shape`.
      shape: the shape of the result.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors: as `gamma`.

    >>> from perspex import random
    >>> random.generalized_normal(random.key(0), 1.5, (2, 3)).shape
    (2, 3)
    """
    no_sharding("generalized_normal", out_sharding)
    dtype = float_dtype("generalized_normal", dtype)
    shape = check_parameters("generalized_normal", as_shape("generalized_normal", shape), p)
    return _generalized_normal(key, p, shape, dtype)


@on_key("generalized_normal", static=2)
def _generalized_normal(key: Any, p: Any, shape: Shape, dtype: Any) -> Any:
    return _powered(key, as_dtype(p, dtype), shape, dtype)


def _powered(key: Any, p: Any, shape: Shape, dtype: Any) -> Any:
    first, second = unstack(random_split(key, shape=(2,)), axis=0)
    size = gamma_samples(first, dtype.type(1) / p, shape, False)
    return random_signs(second, shape, dtype) * pnp.power(size, dtype.type(1) / p)


def random_signs(key: Any, shape: Shape, dtype: Any) -> Any:
    """-1 and 1, both equally likely, as floats."""
    default = dtypes.canonicalize_dtype("float64")
    return pnp.where(unit(key, shape, default) < 0.5, dtype.type(1), dtype.type(-1))


def ball(
    key: Any,
    d: int,
    p: Any = 2,
    shape: Any = (),
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Points of the unit ball of the norm `sum(abs(x)**p) ** (1/p)`, all equally likely.

    By Barthe et al., "A probabilistic approach to the geometry of the lpn-ball"
    (Annals of Probability 33, 2005).

    Args:
      key: one key, typed or raw.
      d: the dimension, a positive integer.
      p: a positive number.
      shape: the shape of the batch of points.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of shape `(*shape, d)`.

    Errors: as `gamma`.

    >>> from perspex import random
    >>> point = random.ball(random.key(0), 3)
    >>> bool((point**2).sum() < 1)
    True
    """
    no_sharding("ball", out_sharding)
    dtype = float_dtype("ball", dtype)
    check_arraylike("ball", p)
    (d,) = as_shape("ball", (d,))
    return _ball(key, p, (*as_shape("ball", shape), d), dtype)


@on_key("ball", static=2)
def _ball(key: Any, p: Any, shape: Shape, dtype: Any) -> Any:
    p = as_dtype(p, dtype)
    first, second = unstack(random_split(key, shape=(2,)), axis=0)
    x = _powered(first, p, shape, dtype)
    rest = -pnp.log1p(-unit(second, shape[:-1], dtype))
    total = pnp.sum(pnp.power(pnp.abs(x), p), -1) + rest
    return x / pnp.power(total, dtype.type(1) / p)[..., np.newaxis]

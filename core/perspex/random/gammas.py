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
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.api.mapping import vmap
from perspex.arguments.arrays import spread, spread_array
from perspex.arguments.dtypes import float_dtype
from perspex.arguments.shapes import iterated_shape
from perspex.arguments.sharded import OutSharding
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape
from perspex.lax.control import while_loop
from perspex.ops.elementwise import stop_gradient
from perspex.ops.incomplete import gamma_sample, log_gamma_sample
from perspex.ops.keys import random_split
from perspex.ops.shape import unstack
from perspex.ops.structural import reshape
from perspex.random.arguments import drawn_shape
from perspex.random.continuous import exponential
from perspex.random.normals import real_normal
from perspex.random.sampling import sampler
from perspex.random.uniforms import unit
from perspex.tracing.trace import typeof

__all__ = [
    "ball",
    "beta",
    "chisquare",
    "dirichlet",
    "f",
    "gamma",
    "generalized_normal",
    "loggamma",
    "t",
]


@sampler(float_dtype)
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density `x**(a - 1) * exp(-x) / Gamma(a)` for `x >= 0`; mean `a`.

    They are differentiable in `a` (Figurnov et al.).

    Args:
      a: the shape parameter, positive numbers that broadcast to `shape`; 0 gives 0, less NaN.
      method: `"exact"`, by rejection (Marsaglia and Tsang), or `"approximate"`, without a loop: the
        cube of a normal variate (Wilson and Hilferty) for `a + 4`, led back to `a`; its
        distribution function is off by less than 0.002, and its numbers are not those of JAX.

    References:
      G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26
      (2000). E. B. Wilson, M. M. Hilferty, "The distribution of chi-square", PNAS 17 (1931).
      M. Figurnov et al., "Implicit reparameterization gradients", arXiv:1805.08498.

    >>> from perspex import random
    >>> random.gamma(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    return gamma_samples(key, a, shape, False, method)


@sampler(float_dtype)
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """The logarithms of gamma samples: precise where `a` is so small that these would be zero.

    The density is `exp(a * x - exp(x)) / Gamma(a)`.

    Args:
      a: the shape parameter of `gamma`, positive numbers that broadcast to `shape`.

    >>> from perspex import random
    >>> bool(random.loggamma(random.key(0), 1e-4) < -100)
    True
    """
    return gamma_samples(key, a, shape, True, method)


def gamma_samples(
    key: Any, a: Any, shape: Shape, logarithm: bool = True, method: str = "exact"
) -> Any:
    """Samples or their logarithms, for a typed key and an `a` of the dtype of the samples."""
    a = spread(a, shape)
    if method == "approximate":
        drawn = _approximate(key, a)
        return drawn if logarithm else pnp.exp(drawn)
    count = math.prod(shape)
    given = reshape(stop_gradient(a), new_sizes=(count,))
    keys = random_split(key, shape=(count,))
    drawn = _each(keys, given, logarithm)
    drawn = reshape(drawn, new_sizes=shape)
    return (log_gamma_sample if logarithm else gamma_sample)(a, drawn)


def _each(keys: Any, a: Any, logarithm: bool) -> Any:
    """One gamma variate for each key and each element of the vector `a`, by Marsaglia and Tsang."""
    dtype = a.dtype
    zero, one, two = [dtype.type(n) for n in (0, 1, 2)]
    third, squeeze = dtype.type(1 / 3), dtype.type(0.0331)
    normals = vmap(lambda key: real_normal(key, (), dtype))
    uniforms = vmap(lambda key: unit(key, (), dtype))
    keys, last = _split(keys, 2)
    large = a >= one
    d = pnp.where(large, a, a + one) - third
    c = third / pnp.sqrt(d)

    def rejected(_: Any, square: Any, v: Any, u: Any) -> Any:
        doubtful = u >= one - squeeze * (square * square)
        bound = square * dtype.type(0.5) + d * (one - v + pnp.log(v))
        return doubtful & (pnp.log(u) >= bound)

    def draw(keys: Any, *_: Any) -> Any:
        keys, normal_keys, uniform_keys = _split(keys, 3)

        def again(inner_keys: Any, *_: Any) -> Any:
            inner_keys, use = _split(inner_keys, 2)
            x = normals(use)
            return inner_keys, x, one + x * c

        start = normal_keys, spread(zero, a.shape), spread(dtype.type(-1), a.shape)
        _, x, v = _repeated(lambda _, x, v: v <= zero, again, start)
        return keys, x * x, (v * v) * v, uniforms(uniform_keys)

    # The first state is one that is rejected.
    start = keys, *[spread(number, a.shape) for number in (zero, one, two)]
    _, _, v, _ = _repeated(rejected, draw, start)
    if logarithm:
        log_u = pnp.log1p(-uniforms(last))
        boost = pnp.where(large | (log_u == zero), zero, log_u * (one / a))
        return pnp.log(d) + pnp.log(v) + boost
    u = one - uniforms(last)
    return d * v * pnp.where(large, one, pnp.power(u, one / a))


def _split(keys: Any, count: int) -> list[Any]:
    """So many vectors of keys, each made of the vector `keys`."""
    return unstack(vmap(lambda key: random_split(key, shape=(count,)))(keys), axis=1)


def _repeated(going: Callable[..., Any], turn: Callable[..., Any], state: Any) -> Any:
    """A loop over the vectors `state`: an element takes turns as long as it is `going`.

    What `vmap` makes of a loop does the same, but `checkify` does not look into that.
    """

    def turned(state: Any) -> Any:
        flags = going(*state)
        return tuple(
            [pnp.where(flags, new, old) for new, old in zip(turn(*state), state, strict=True)]
        )

    return while_loop(lambda state: pnp.any(going(*state)), turned, state)


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


@sampler(float_dtype)
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density proportional to `x**(a - 1) * (1 - x)**(b - 1)` for `0 <= x <= 1`.

    They are `x / (x + y)` of two gamma samples.

    Args:
      a, b: positive numbers or arrays that broadcast to `shape`.

    >>> from perspex import random
    >>> bool(random.beta(random.key(0), 2.0, 3.0) < 1)
    True
    """
    keys = unstack(random_split(key, shape=(2,)), axis=0)
    logs = [gamma_samples(k, p, shape, True, method) for k, p in zip(keys, (a, b), strict=True)]
    most = pnp.maximum(*logs)
    x, y = [pnp.exp(v - most) for v in logs]
    return x / (x + y)


@sampler(float_dtype, fits=False)
def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Vectors of positive numbers with sum 1, of density proportional to `prod(x**(alpha - 1))`.

    Args:
      alpha: positive numbers of shape `(..., n)`.
      shape: the shape of the result without its last axis. The default is that of `alpha`, which
        otherwise broadcasts to it.

    Returns:
      An array of shape `(*shape, n)` and dtype `dtype`.

    Raises:
      TypeError: if `key` is not a key, `shape` is not a sequence of sizes, or `alpha` is not an
          array.
      ValueError: if `key` is an array of keys, `dtype` is not a floating dtype, `alpha` is a
          number, or it does not broadcast to `shape`.

    >>> import numpy as np
    >>> from perspex import random
    >>> random.dirichlet(random.key(0), np.ones(3), (2,)).shape
    (2, 3)
    """
    given = typeof(alpha).shape
    if not given:
        raise ValueError("dirichlet: alpha must have at least one axis, got a scalar")
    shape = drawn_shape("dirichlet", shape, given[:-1])
    logs = gamma_samples(key, alpha, (*shape, given[-1]))
    weights = pnp.exp(logs - stop_gradient(pnp.max(logs, -1, keepdims=True, initial=-np.inf)))
    return weights / pnp.sum(weights, -1, keepdims=True)


@sampler(float_dtype)
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density proportional to `x**(df / 2 - 1) * exp(-x / 2)` for `x >= 0`.

    For a whole `df` they are sums of the squares of `df` standard normal variates.

    Args:
      df: the degrees of freedom, positive numbers that broadcast to `shape`.

    >>> from perspex import random
    >>> bool(random.chisquare(random.key(0), 3.0) > 0)
    True
    """
    return _chi_squared(key, df, shape, method)


def _chi_squared(key: Any, df: Any, shape: Shape, method: str = "exact") -> Any:
    return pnp.exp(gamma_samples(key, df / typeof(df).dtype.type(2), shape, True, method)) * 2


@sampler(float_dtype)
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Ratios of two chi-squared variates, each divided by its degrees of freedom.

    With `r = dfnum / dfden` the density is proportional to
    `x**(dfnum / 2 - 1) * (1 + r * x)**(-(dfnum + dfden) / 2)` for `x >= 0`.

    Args:
      dfnum, dfden: the degrees of freedom of numerator and denominator, which broadcast to `shape`.

    >>> from perspex import random
    >>> bool(random.f(random.key(0), 3.0, 4.0) > 0)
    True
    """
    dfnum, dfden = spread_array(dfnum, shape), spread_array(dfden, shape)
    below, above = unstack(random_split(key, shape=(2,)), axis=0)
    return (_chi_squared(above, dfnum, shape) / dfnum) / (_chi_squared(below, dfden, shape) / dfden)


@sampler(float_dtype)
def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples of Student's distribution: density proportional to `(1 + x**2/df)**(-(df + 1)/2)`.

    Args:
      df: the degrees of freedom, positive numbers that broadcast to `shape`.

    >>> from perspex import random
    >>> random.t(random.key(0), 3.0, (2, 3)).shape
    (2, 3)
    """
    first, second = unstack(random_split(key, shape=(2,)), axis=0)
    half = spread_array(df, shape) / dtype.type(2)
    drawn = gamma_samples(second, half, shape, False)
    return real_normal(first, shape, dtype) * pnp.sqrt(half / drawn)


@sampler(float_dtype)
def generalized_normal(
    key: ArrayLike,
    p: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density proportional to `exp(-abs(x)**p)`.

    Args:
      p: a positive number, or an array that broadcasts to `shape`.

    >>> from perspex import random
    >>> random.generalized_normal(random.key(0), 1.5, (2, 3)).shape
    (2, 3)
    """
    first, second = unstack(random_split(key, shape=(2,)), axis=0)
    size = gamma_samples(first, dtype.type(1) / p, shape, False)
    return random_signs(second, shape, dtype) * pnp.power(size, dtype.type(1) / p)


def random_signs(key: Any, shape: Shape, dtype: Any) -> Any:
    """-1 and 1, both equally likely, as floats."""
    default = dtypes.canonicalize_dtype("float64")
    return pnp.where(unit(key, shape, default) < 0.5, dtype.type(1), dtype.type(-1))


@sampler(float_dtype, static=("d",), fits=False)
def ball(
    key: ArrayLike,
    d: int,
    p: ArrayLike = 2,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Points of the unit ball of the norm `sum(abs(x)**p) ** (1/p)`, all equally likely.

    Args:
      d: the dimension of the space, an integer that is not negative.
      p: a positive number.
      shape: the shape of the batch of points.

    Returns:
      An array of shape `(*shape, d)` and dtype `dtype`.

    References:
      F. Barthe et al., "A probabilistic approach to the geometry of the lpn-ball", Annals of
      Probability 33 (2005).

    >>> from perspex import random
    >>> point = random.ball(random.key(0), 3)
    >>> bool((point**2).sum() < 1)
    True
    """
    first, second = unstack(random_split(key, shape=(2,)), axis=0)
    x = generalized_normal(first, p, (*shape, *iterated_shape("ball", (d,))), dtype)
    total = pnp.sum(pnp.power(pnp.abs(x), p), -1) + exponential(second, shape, dtype)
    return x / pnp.power(total, dtype.type(1) / p)[..., np.newaxis]

"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, as_dtype, check_arraylike, expand, spread
from perspex.arguments.glossary import describe
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.lax.control import scan
from perspex.numpy.arithmetic import add, divide, multiply, subtract
from perspex.numpy.convolution import convolve
from perspex.numpy.creation import asarray
from perspex.numpy.editing import trim_zeros
from perspex.numpy.linalg import eigvals
from perspex.numpy.promotion import beside_numbers, promote_dtypes, strong
from perspex.numpy.selection import known
from perspex.ops import elementwise as ops
from perspex.ops.shape import concatenate, pad, part
from perspex.ops.structural import broadcast_in_dim
from perspex.rules.custom_jvp import custom_jvp
from perspex.tracing.trace import typeof

__all__ = ["poly", "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval"]

# A thousand steps that are written out take XLA a second to compile, a loop of them 0.05.
WRITTEN_OUT = 16


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """The value of a polynomial, by Horner's rule.

    Args:
      p: coefficients, the highest power first: a vector, or an array with them along the first
        axis.
      x: the places where to evaluate it, an array or a number.
      unroll: has no effect: the rule is written out for up to 16 coefficients, and is a loop for
        more.

    Returns:
      An array of the shape of `x` broadcast with the other axes of `p`.

    >>> import perspex.numpy as jnp
    >>> jnp.polyval(jnp.array([1.0, 0.0, -1.0]), 3.0)
    Array(8., dtype=float32)
    """
    check_arraylike("polyval", p, x)
    if not np.ndim(p):
        raise ValueError("polyval: p must be an array of coefficients, got a scalar")
    return _polyval(p, x)


@fused
def _polyval(p: Any, x: Any) -> Any:
    p, x = [strong(v) for v in promote_dtypes("polyval", p, x)]
    shape = np.broadcast_shapes(p.shape[1:], np.shape(x))
    return _horner(p, spread(x, shape))


@custom_jvp
def _horner(p: Any, x: Any) -> Any:
    return _steps(p, x)


def _by_x(t: Any, out: Any, p: Any, x: Any) -> Any:
    """What a tangent of x adds: nothing to a constant, however large it is."""
    slope = _horner(_slope(p), x)
    return ops.mul(t, slope) if p.shape[0] > 1 else slope


# The slope is a polynomial, too: nothing of the steps is kept for it.
_horner.defjvps(lambda t, out, p, x: _steps(t, x), _by_x)


def _slope(p: Any) -> Any:
    rest = part(p, 0, max(p.shape[0] - 1, 0), 0, p.shape)
    degrees = np.arange(rest.shape[0], 0, -1).astype(p.dtype)
    return ops.mul(rest, broadcast_in_dim(degrees, shape=rest.shape, broadcast_dimensions=(0,)))


def _steps(p: Any, x: Any) -> Any:
    """The polynomial with the coefficients `p[0]`, `p[1]`, ... at `x`, which has all axes."""
    n, shape = p.shape[0], typeof(x).shape

    def coefficient(k: int) -> Any:
        return spread(part(p, k, k + 1, 0, p.shape).reshape(p.shape[1:]), shape)

    def step(total: Any, c: Any) -> tuple[Any, None]:
        return ops.add(ops.mul(total, x), spread(c, shape)), None

    if not n:
        return spread(p.dtype.type(0), shape)
    total = coefficient(0)
    if n > WRITTEN_OUT:
        return scan(step, total, part(p, 1, n, 0, p.shape), unroll=8)[0]
    for k in range(1, n):
        total, _ = step(total, coefficient(k))
    return total


def _aligned(name: str, a1: Any, a2: Any) -> list[Any]:
    """Two vectors of coefficients as long as the longer one."""
    check_arraylike(name, a1, a2)
    both = [asarray(v) for v in promote_dtypes(name, a1, a2)]
    weak = all([v.aval.weak_type for v in both])
    if any(v.ndim > 1 for v in both):
        raise ValueError(f"{name} takes vectors, got shapes {both[0].shape} and {both[1].shape}")
    both = [expand(strong(v), range(1 - v.ndim)) for v in both]
    size = max(v.size for v in both)
    both = [pad(v, v.dtype.type(0), padding_config=((size - v.size, 0, 0),)) for v in both]
    return [as_dtype(v, v.dtype, weak) for v in both]


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    >>> import perspex.numpy as jnp
    >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([1, 1]))
    Array([1, 3, 4], dtype=int32)
    """
    return add(*_aligned("polyadd", a1, a2))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    >>> import perspex.numpy as jnp
    >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([1, 1]))
    Array([1, 1, 2], dtype=int32)
    """
    return subtract(*_aligned("polysub", a1, a2))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
      trim_leading_zeros: leave out zeros in front; the coefficients must be concrete then.

    Returns:
      A vector of floats, or of complex numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.polymul(jnp.array([1, 1]), jnp.array([1, -1]))
    Array([ 1.,  0., -1.], dtype=float32)
    """
    check_arraylike("polymul", a1, a2)
    x, y = (asarray(v) for v in promote_dtypes("polymul", a1, a2, to=dtypes.to_inexact_dtype))
    if trim_leading_zeros and (x.size > 1 or y.size > 1):
        x, y = trim_zeros(x, "f"), trim_zeros(y, "f")
    x, y = (v if v.size else spread(v.dtype.type(0), (1,)) for v in (x, y))
    return convolve(x, y)


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The coefficients of the derivative of order `m`.

    Args:
      m: the number of differentiations.

    >>> import perspex.numpy as jnp
    >>> jnp.polyder(jnp.array([1.0, 0.0, -1.0]))
    Array([2., 0.], dtype=float32)
    """
    check_arraylike("polyder", p)
    order = concrete("polyder: m", operator.index, m)
    if order < 0:
        raise ValueError(f"polyder: the order of the derivative must not be negative, got {order}")
    return _polyder(p, order)


@fused(static=("m",))
def _polyder(p: Any, m: int) -> Any:
    (x,) = promote_dtypes("polyder", p, to=dtypes.to_inexact_dtype)
    x = asarray(x)
    if not m:
        return x
    n = x.shape[0]
    kept = max(n - m, 0)
    factors = np.ones(kept)
    for k in range(m):
        factors *= np.arange(n - 1 - k, n - 1 - k - kept, -1)
    return multiply(part(x, 0, kept, 0, x.shape), factors.astype(x.dtype))


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The coefficients of the integral of order `m`.

    Args:
      m: the number of integrations.
      k: the constants of integration, in the order in which they come in; 0 by default.

    >>> import perspex.numpy as jnp
    >>> jnp.polyint(jnp.array([2.0, 0.0]))
    Array([1., 0., 0.], dtype=float32)
    """
    constants = 0 if k is None else k
    check_arraylike("polyint", p, constants)
    order = concrete("polyint: m", operator.index, m)
    if order < 0:
        raise ValueError(f"polyint: the order of the integral must not be negative, got {order}")
    if np.shape(constants) not in ((), (1,), (order,)):
        raise ValueError(
            f"polyint: k must be a number or one for each of {order} integrations, got shape "
            f"{np.shape(constants)}"
        )
    return _polyint(p, constants, order)


@fused(static=("m",))
def _polyint(p: Any, k: Any, m: int) -> Any:
    x, constants = promote_dtypes("polyint", p, k, to=dtypes.to_inexact_dtype)
    x = asarray(x)
    if not m:
        return x
    whole = concatenate(strong(x), spread(strong(constants), (m,)), dimension=0)
    size = whole.shape[0]
    # The coefficient of x**e was integrated as often as constants came in before it, at most m.
    factors = np.ones(size)
    for i in range(size):
        power = size - 1 - i
        for e in range(power, max(power - m, 0), -1):
            factors[i] *= e
    return divide(whole, factors.astype(x.dtype))


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and remainder of two polynomials.

    Args:
      u, v: vectors of coefficients of the dividend and of the divisor.
      trim_leading_zeros: leave out what is nearly zero in front of the remainder, which must be
        concrete then and is constant to derivatives, as in JAX.

    Returns:
      Two vectors of floats or of complex numbers.

    Raises:
      TypeError: if an argument is not an array or a number.
      IndexError: for a divisor without coefficients.

    >>> import perspex.numpy as jnp
    >>> jnp.polydiv(jnp.array([1.0, 0.0, -1.0]), jnp.array([1.0, 1.0]))[0]
    Array([ 1., -1.], dtype=float32)
    """
    check_arraylike("polydiv", u, v)
    quotient, rest = _polydiv(u, v)
    if trim_leading_zeros:
        host = known("polydiv with trim_leading_zeros=True", rest)
        large = np.abs(host) >= np.sqrt(dtypes.finfo(host.dtype).eps)
        rest = asarray(host[large.argmax() if large.any() else host.size :])
    return quotient, rest


@fused
def _polydiv(u: Any, v: Any) -> Any:
    x, y = (asarray(w) for w in promote_dtypes("polydiv", u, v, to=dtypes.to_inexact_dtype))
    n, m = x.shape[0], y.shape[0]
    if not m:
        raise IndexError("polydiv: the divisor has no coefficients")
    if n < m:
        return spread(x.dtype.type(0), (1,)), x
    weak = x.aval.weak_type and y.aval.weak_type
    x, y = strong(x), strong(y)
    scale = part(y, 0, 1, 0, (m,))
    digits = []
    for k in range(n - m + 1):
        digit = ops.div(part(x, k, k + 1, 0, (n,)), scale)
        digits.append(digit)
        taken = ops.mul(spread(digit, (m,)), y)
        x = ops.sub(x, pad(taken, x.dtype.type(0), padding_config=((k, n - m - k, 0),)))
    return concatenate(*digits, dimension=0), as_dtype(x, x.dtype, weak)


def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with given roots, or of a characteristic polynomial.

    Args:
      seq_of_zeros: a vector of roots, or a square matrix, whose eigenvalues are the roots.

    >>> import perspex.numpy as jnp
    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    roots = arraylike("poly", seq_of_zeros)
    if roots.ndim == 2 and roots.shape[0] == roots.shape[1]:
        roots = eigvals(roots)
    if roots.ndim > 1:
        raise ValueError(
            f"poly takes a vector of roots or a square matrix, got shape {roots.shape}"
        )
    return _poly(expand(beside_numbers(roots), range(1 - roots.ndim)))


@fused
def _poly(roots: Any) -> Any:
    (x,) = promote_dtypes("poly", roots, to=dtypes.to_inexact_dtype)
    x = strong(x)
    one = spread(x.dtype.type(1), (1,))
    n = x.shape[0]
    if not n:
        return one.reshape(())
    out = one
    for k in range(n):
        factor = concatenate(one, ops.neg(part(x, k, k + 1, 0, (n,))), dimension=0)
        out = convolve(out, factor)
    return out


_COEFFICIENTS = "a vector of coefficients, the highest power first."

describe(
    [polyadd, polysub],
    dict.fromkeys(("a1", "a2"), _COEFFICIENTS),
    "TypeError: if an operand is not an array.\nValueError: for more than one axis.",
    "A vector of the common dtype, as long as the longer one.",
)
describe(
    [polyval, polymul, polyder, polyint, polydiv, poly],
    dict.fromkeys(("a1", "a2", "p"), _COEFFICIENTS),
    "TypeError: if an argument is not an array or a number.\n"
    "ValueError: for shapes that do not fit, and a negative order.",
    "A vector of floats, or of complex numbers.",
)

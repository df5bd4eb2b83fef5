"""Greatest common divisors, a Bessel function, windows, and angles without jumps."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import as_dtype, check_arraylike, spread, weak_like
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.shapes import common_shape
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.lax.control import while_loop
from perspex.numpy.arithmetic import absolute, floor_divide, remainder
from perspex.numpy.creation import array, ones
from perspex.numpy.promotion import beside_numbers, inexact, promote_all, promote_dtypes
from perspex.ops import cumulative
from perspex.ops import elementwise as ops
from perspex.ops.bessel import bessel_i
from perspex.ops.reductions import reduce_or
from perspex.ops.shape import concatenate
from perspex.ops.shape import slice as slice_

__all__ = ["bartlett", "blackman", "gcd", "hamming", "hanning", "i0", "kaiser", "lcm", "unwrap"]

# ---- Divisors -----------------------------------------------------------------------------------


@fused
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of two integers, elementwise.

    >>> import perspex.numpy as jnp
    >>> jnp.gcd(jnp.array([12, 18]), 8)
    Array([4, 2], dtype=int32)
    """
    return _gcd(*_integers("gcd", x1, x2))


@fused
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of two integers, elementwise; 0 where one is 0.

    >>> import perspex.numpy as jnp
    >>> jnp.lcm(jnp.array([4, 0]), 6)
    Array([12,  0], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    divisor = _gcd(x, y)
    zero = weak_like(divisor, 0)
    multiple = ops.mul(x, floor_divide(y, divisor))
    return ops.select(ops.eq(divisor, zero), zero, multiple)


def _integers(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    x, y = promote_all(name, x, y)
    if not dtypes.issubdtype(x.dtype, np.integer):
        raise ValueError(f"{name} takes integers, got {x.dtype.name}; convert them with astype")
    shape = common_shape(np.shape(x), np.shape(y))
    x, y = [beside_numbers(spread(v, shape)) for v in (x, y)]
    return absolute(x), absolute(y)


def _gcd(x: Any, y: Any) -> Any:
    """Euclid's algorithm, until it has ended for all elements."""
    zero, one = weak_like(x, 0), weak_like(x, 1)

    def unfinished(pair: tuple[Any, Any]) -> Any:
        return reduce_or(ops.ne(pair[1], zero), axes=tuple(range(pair[1].ndim)))

    def step(pair: tuple[Any, Any]) -> tuple[Any, Any]:
        a, b = pair
        going = ops.ne(b, zero)
        rest = ops.rem(a, ops.select(going, b, one))
        return ops.select(going, b, a), ops.select(going, rest, b)

    return while_loop(unfinished, step, (x, y))[0]


# ---- A Bessel function --------------------------------------------------------------------------


@fused
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 0, of each element.

    Args:
      x: an array or a number; integers and booleans become floats.

    Returns:
      An array of floats of the shape of `x`.

    Raises:
      TypeError: if `x` is not an array or a number.
      ValueError: for complex numbers.

    References:
      NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov/10.25.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.i0(1.0):.4f}"
    '1.2661'
    """
    x = inexact("i0", x)
    if x.dtype.kind == "c":
        raise ValueError("i0 takes reals; take the real part of complex numbers")
    return bessel_i(x, order=0)


# ---- Windows ------------------------------------------------------------------------------------


def _window(name: str, size: Any, values: Any) -> Any:
    """A window of `size` points, with values that NumPy computes."""
    size = concrete(f"{name}: M", operator.index, size)
    dtype = dtypes.canonicalize_dtype(float)
    return ones(size) if size <= 1 else array(values(size).astype(dtype))


def bartlett(M: int) -> Array:
    """Bartlett's window of `M` points, which rises and falls in straight lines.

    >>> import perspex.numpy as jnp
    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("bartlett", M, np.bartlett)


def blackman(M: int) -> Array:
    """Blackman's window of `M` points, a sum of three cosines.

    >>> import perspex.numpy as jnp
    >>> jnp.blackman(3).round()
    Array([-0.,  1., -0.], dtype=float32)
    """
    return _window("blackman", M, np.blackman)


def hamming(M: int) -> Array:
    """Hamming's window of `M` points, a cosine on a pedestal.

    >>> import perspex.numpy as jnp
    >>> jnp.hamming(3)
    Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _window("hamming", M, np.hamming)


def hanning(M: int) -> Array:
    """Hann's window of `M` points, a raised cosine.

    >>> import perspex.numpy as jnp
    >>> jnp.hanning(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _window("hanning", M, np.hanning)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """Kaiser's window of `M` points; the greater `beta`, the narrower it is.

    Args:
      beta: the shape of the window, a number; 0 gives a rectangle.

    Returns:
      A vector of `M` floats, of the dtype of `beta` if there are several.

    >>> import perspex.numpy as jnp
    >>> jnp.kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    size = concrete("kaiser: M", operator.index, M)
    if size <= 1:
        return ones(size)
    beta = inexact("kaiser", beta)
    places = np.linspace(-1, 1, size)
    scale = array(np.sqrt(1 - places**2).astype(beta.dtype))
    return _kaiser(scale, beta)


@fused
def _kaiser(scale: Any, beta: Any) -> Any:
    return ops.div(i0(ops.mul(scale, beta)), i0(as_dtype(beta, scale.dtype)))


# ---- Angles -------------------------------------------------------------------------------------


def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * np.pi
) -> Array:
    """Angles along an axis without the jumps of multiples of a period.

    Args:
      p: an array of reals, of one axis or more.
      discont: the least difference of neighbours that counts as a jump; half a period at least.
      axis: the axis along which neighbours stand.
      period: the period; jumps are multiples of it.

    Returns:
      An array of the shape of `p`, of the dtype that `p` and `period` promote to.

    Raises:
      TypeError: if `p` is not an array.
      ValueError: for complex numbers, and for an axis that is not there.

    >>> import perspex.numpy as jnp
    >>> jnp.unwrap(jnp.array([340, 10, 40]), period=360)
    Array([340, 370, 400], dtype=int32)
    """
    return _unwrap(p, discont, period, concrete("unwrap: axis", operator.index, axis))


@fused(static=("axis",))
def _unwrap(p: Any, discont: Any, period: Any, axis: int) -> Any:
    check_arraylike("unwrap", p, *(() if discont is None else (discont,)), period)
    p, period = promote_dtypes("unwrap", p, period)
    if p.dtype.kind == "c":
        raise ValueError("unwrap takes reals; take jnp.angle of complex numbers first")
    axis = canonical_axis(axis, p.ndim)
    if p.shape[axis] == 0:
        return p
    two, zero = p.dtype.type(2), p.dtype.type(0)
    half = floor_divide(period, two) if p.dtype.kind in "iu" else ops.div(period, two)
    first, rest = _part(p, axis, 0, 1), _part(p, axis, 1, p.shape[axis])
    step = ops.sub(rest, _part(p, axis, 0, p.shape[axis] - 1))
    short = ops.sub(remainder(ops.add(step, half), period), half)
    # Half a period up stays up.
    up = ops.bitwise_and(ops.eq(short, ops.neg(half)), ops.gt(step, zero))
    short = ops.select(up, half, short)
    least = half if discont is None else as_dtype(discont, p.dtype)
    kept = ops.lt(ops.abs(step), least)
    correction = ops.select(kept, zero, ops.sub(short, step))
    moved = ops.add(rest, cumulative.cumsum(correction, axis=axis, reverse=False))
    return concatenate(first, moved, dimension=axis)


def _part(x: Any, axis: int, start: int, stop: int) -> Any:
    starts, stops = [0] * x.ndim, list(x.shape)
    starts[axis], stops[axis] = start, stop
    return slice_(x, start_indices=tuple(starts), limit_indices=tuple(stops), strides=None)


describe(
    [gcd, lcm],
    dict.fromkeys(("x1", "x2"), "an array of integers or an integer; both are promoted."),
    "TypeError: if an operand is not an array or a number.\n"
    "ValueError: for floats, booleans and complex numbers.\n"
    "ValueError: if the shapes do not broadcast (`TypeError` for equal ranks).",
    "An array of integers of the common shape and dtype.",
)
describe(
    [bartlett, blackman, hamming, hanning, kaiser],
    {"M": "the number of points, which must be known while tracing."},
    "TypeError: if `M` is negative or not an integer.\nConcretizationTypeError: if `M` is traced.",
    "A vector of `M` floats of the default dtype.",
)

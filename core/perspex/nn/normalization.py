"""Functions along axes: log-sum-exp, softmax, one-hot, standardization."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import as_dtype, expand
from perspex.arguments.axes import canonical_axes, canonical_axis, hashable_axis
from perspex.arguments.glossary import describe
from perspex.arguments.sharded import OutSharding, lying
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike, Axis, DTypeLike
from perspex.base.dimensions import size as as_size
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy.promotion import inexact, promote_dtypes, strengthened, strong
from perspex.ops.elementwise import stop_gradient
from perspex.ops.reductions import reduce_max

__all__ = ["log_softmax", "logmeanexp", "logsumexp", "one_hot", "softmax", "standardize"]


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...


def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """`log(sum(b * exp(a)))` along `axis`, without overflow.

    Args:
      a: exponents, real or complex.
      axis: an axis or several; `None` for all of them.
      b: factors that broadcast with `a`; 1 if not given. Their sum may be negative only with
        `return_sign`; else the result is NaN there.
      return_sign: return also the sign of the sum.

    Returns:
      An array of floats without the axes `axis`; with `return_sign` a pair of it and the signs.

    >>> logsumexp(pnp.array([0.0, 0.0]))
    Array(0.6931472, dtype=float32)
    """
    axis = hashable_axis("logsumexp", axis)
    return _logsumexp(a, b, where, axis=axis, keepdims=keepdims, return_sign=return_sign)


def _greatest(x: Any, axis: Axis, where: Any) -> Any:
    """The greatest elements along `axis`, which stays as an axis of size one.

    What is subtracted from exponents and made up for later changes neither the result nor its
    derivative, so this has none; and NaNs, which exponents keep, need not be kept here.
    """
    x = stop_gradient(x)
    if where is not None:
        x = pnp.where(where, x, -np.inf)
    axes = canonical_axes(axis, x.ndim)
    return expand(reduce_max(x, axes=axes, keeps_nans=False), axes)


@fused(static=("axis", "keepdims", "return_sign"))
def _logsumexp(a: Any, b: Any, where: Any, axis: Any, keepdims: bool, return_sign: bool) -> Any:
    def to(dtype: Any) -> Any:  # booleans beside the `-inf` of what is left out become floats
        beside = where is not None and dtype.kind == "b"
        return dtypes.canonicalize_dtype(float) if beside else dtypes.to_inexact_dtype(dtype)

    given = [a] if b is None else [a, b]
    a, *rest = map(strengthened, promote_dtypes("logsumexp", *given, to=to))
    if rest:
        (b,) = rest
        a = pnp.where(b != 0, a, -np.inf)
        a, b = pnp.broadcast_arrays(a, b)
    real = a.real if dtypes.issubdtype(a.dtype, np.complexfloating) else a
    top = _greatest(real, axis, where)
    top = pnp.where(pnp.isfinite(top), top, pnp.zeros_like(top))
    above = a - top
    # What is left out has the derivative 0, whatever it is.
    terms = pnp.exp(above if where is None else pnp.where(where, above, 0))
    if b is not None:
        terms = terms * b
    total = pnp.sum(terms, axis=axis, keepdims=keepdims, where=where)
    sign = pnp.sign(total)
    signed = b is not None
    if return_sign or (signed and not dtypes.issubdtype(a.dtype, np.complexfloating)):
        total = pnp.abs(total)
    out = pnp.log(total) + (top if keepdims else pnp.squeeze(top, axis=axis)).astype(total.dtype)
    if return_sign:
        return out, sign
    if signed and not dtypes.issubdtype(out.dtype, np.complexfloating):
        out = pnp.where(sign < 0, np.nan, out)
    return out


def logmeanexp(
    x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """`log(mean(exp(x)))` along `axis`, without overflow.

    Args:
      x: exponents.
      axis: an axis or several; `None` for all of them.

    Returns:
      An array of floats without the axes `axis`.

    >>> logmeanexp(pnp.array([1000.0, 1000.0]))
    Array(1000., dtype=float32)
    """
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    counted = pnp.broadcast_to(True if where is None else where, pnp.shape(x))
    return total - pnp.log(pnp.sum(counted, axis=axis, keepdims=keepdims).astype(total.dtype))


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """`exp(x) / sum(exp(x))` along `axis`: positive numbers that sum to one.

    Returns:
      An array of floats of the shape of `x`; elements outside `where` are zero.

    >>> softmax(pnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    return _softmax(x, where, axis=hashable_axis("softmax", axis))


def _exponents(name: str, x: Any, where: Any) -> Any:
    """`x` as floats. With `where`, integers take the default dtype, as they do beside `-inf`."""
    out = inexact(name, x)
    if where is None or dtypes.issubdtype(shaped(x).dtype, np.inexact):
        return out
    return as_dtype(out, dtypes.canonicalize_dtype(float), shaped(out).weak_type)


@fused(static=("axis",))
def _softmax(x: Any, where: Any, axis: Any) -> Any:
    x = _exponents("softmax", x, where)
    top = _greatest(x, axis, where)
    terms = pnp.exp((x if where is None else pnp.where(where, x, -np.inf)) - top)
    out = terms / pnp.sum(terms, axis, where=where, keepdims=True)
    return out if where is None else pnp.where(where, out, 0)


def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of `softmax`, computed without leaving logarithms.

    Returns:
      An array of floats of the shape of `x`; elements outside `where` are minus infinity.

    >>> log_softmax(pnp.array([0.0, 0.0]))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return _log_softmax(x, where, axis=hashable_axis("log_softmax", axis))


@fused(static=("axis",))
def _log_softmax(x: Any, where: Any, axis: Any) -> Any:
    x = _exponents("log_softmax", x, where)
    top = _greatest(x, axis, where)
    shifted = (x if where is None else pnp.where(where, x, -np.inf)) - top
    total = pnp.log(pnp.sum(pnp.exp(shifted), axis, where=where, keepdims=True))
    out = shifted - total
    return out if where is None else pnp.where(where, out, -np.inf)


def one_hot(
    x: ArrayLike,
    num_classes: int,
    *,
    dtype: DTypeLike | None = None,
    axis: int = -1,
    out_sharding: OutSharding = None,
) -> Array:
    """Integers as indicator vectors of length `num_classes` along a new axis.

    Args:
      x: integers; those outside `[0, num_classes)` give zeros.
      num_classes: the length of the new axis.
      dtype: the dtype of the result; the default float if not given.
      axis: where the new axis is in the result.
      out_sharding: how the result lies along explicit axes of the mesh of `set_mesh`.

    Returns:
      An array with one axis more than `x`, of zeros and ones.

    Raises:
      TypeError: if `dtype` is not a dtype, `x` holds something other than numbers, or
        `num_classes` is negative or not an integer.
      ValueError: if `axis` is out of range.

    >>> one_hot(pnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    dtype = dtypes.check_user_dtype(float if dtype is None else dtype, "one_hot")
    count = concrete("one_hot: num_classes", as_size, num_classes)
    if count < 0:
        raise TypeError(f"one_hot: num_classes must not be negative, got {count}")
    found = _one_hot(x, num_classes=count, dtype=dtype, axis=axis)
    return lying("one_hot", out_sharding, found)


@fused(static=("num_classes", "dtype", "axis"))
def _one_hot(x: Any, num_classes: int, dtype: Any, axis: int) -> Any:
    x = pnp.asarray(x)
    at = canonical_axis(axis, x.ndim + 1)
    shape = [1] * (x.ndim + 1)
    shape[at] = num_classes
    classes = pnp.arange(num_classes, dtype=x.dtype).reshape(shape)
    return (pnp.expand_dims(x, at) == classes).astype(dtype)


def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """`(x - mean) / sqrt(variance + epsilon)`, with those along `axis` if they are not given.

    Args:
      mean, variance: what to use instead of the mean and the variance along `axis`.
      epsilon: a number that keeps the root from zero.
      algorithm: `"fast"` takes the variance for `E[x^2] - E[x]^2`, which loses digits where the
        mean is far from zero; `"stable"` for `E[(x - E[x])^2]`.

    Returns:
      An array of floats of the shape of `x`.

    >>> standardize(pnp.array([-1.0, 1.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    axis = hashable_axis("standardize", axis)
    stable = algorithm == "stable"
    return _standardize(x, mean, variance, epsilon, where, axis=axis, stable=stable)


@fused(static=("axis", "stable"))
def _standardize(
    x: Any, mean: Any, variance: Any, epsilon: Any, where: Any, axis: Any, stable: bool
) -> Any:
    x = inexact("standardize", x)
    x = strong(x) if x.shape else x
    if mean is None:
        mean = pnp.mean(x, axis, keepdims=True, where=where)
    if variance is None and stable:
        variance = pnp.mean(pnp.square(x - mean), axis, keepdims=True, where=where)
    elif variance is None:
        # E[x^2] - E[x]^2, which rounding may take below zero.
        square = pnp.mean(pnp.square(x), axis, keepdims=True, where=where)
        variance = pnp.maximum(square - pnp.square(mean), 0)
    return (x - mean) * (1 / pnp.sqrt(variance + epsilon))


describe(
    [logmeanexp, logsumexp, softmax, log_softmax, standardize],
    {
        "x": "an array or a number.",
        "axis": "an axis or several, along which to sum; `None` for all of them.",
        "keepdims": "keep the reduced axes, with size one.",
        "where": "booleans that broadcast with the elements: which of them take part.",
    },
    "TypeError: if an argument is not an array or a number.\n"
    "ValueError: if `axis` is out of range.",
)

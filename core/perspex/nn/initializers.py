"""Initial weights of neural networks.

An initializer is a function `(key, shape, dtype=None) -> array`. `zeros` and `ones` are
initializers; the others are made by functions of the distribution's parameters. The dtype given
when it is called wins over the one it was made with; without either it is the default float dtype.

Those of `variance_scaling` keep the variance of signals the same from layer to layer. An axis of
inputs and one of outputs have sizes `in` and `out`; with the product `r` of the other sizes that
are not batches, `fan_in = in r` and `fan_out = out r`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from perspex import dtypes, random
from perspex import numpy as pnp
from perspex.arguments.glossary import describe as _describe
from perspex.arguments.shapes import canonical_shape as _canonical_shape
from perspex.arguments.sharded import OutSharding, lying
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform",
    "he_normal", "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal",
    "lecun_uniform", "normal", "ones", "orthogonal", "truncated_normal", "uniform",
    "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip

Axis = int | Sequence[int]


class Initializer(Protocol):
    """Makes an array of a shape from a key; see the module."""

    def __call__(
        self,
        key: ArrayLike | None,
        shape: Shape,
        dtype: DTypeLike | None = None,
        out_sharding: OutSharding = None,
    ) -> Array: ...


_WORDS = {
    "key": "one key, typed or raw.",
    "shape": "the shape of the result.",
    "out_sharding": "must be `None`.",
    "in_axis": "the axis of inputs, or several.",
    "out_axis": "the axis of outputs, or several.",
    "batch_axis": "the axis of independent weights, or several; none by default.",
    "dtype": "the dtype of the weights where the initializer is called without one; the default\n"
    "float dtype if not given.",
}
_CALLED = """

Args:
  key: one key, typed or raw.
  shape: the shape of the result.
  dtype: the dtype of the result; by default that with which the initializer was made.
  out_sharding: must be `None`.

Returns:
  An array of shape `shape` and dtype `dtype`.

Raises:
  TypeError: if `key` is not a key, `shape` not a shape, or `dtype` not a dtype.
  NotImplementedError: if `out_sharding` is given.
"""
_FLOATS = "ValueError: if the dtype is one of integers; raised when the initializer is called."
_MAKES = """\
A function `(key, shape, dtype=None, out_sharding=None)` that returns an array."""


def _initializer(
    name: str, dtype: DTypeLike | None, draw: Callable[[Any, Any, Any], Array], what: str
) -> Initializer:
    """The initializer that draws with `draw(key, shape, dtype)`."""
    made_with = dtype

    def init(
        key: ArrayLike | None,
        shape: Shape,
        dtype: DTypeLike | None = None,
        out_sharding: OutSharding = None,
    ) -> Array:
        out = draw(key, _canonical_shape(name, shape), _dtype(dtype, made_with))
        return lying(name, out_sharding, out)

    init.__doc__ = what + _CALLED
    return init


# ---- Constants and plain distributions -----------------------------------------------------------


def zeros(
    key: ArrayLike | None,
    shape: Shape,
    dtype: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of zeros: an initializer.

    Args:
      key: is not used.
      dtype: the dtype of the weights; the default float dtype if not given.

    Raises:
      TypeError: if `shape` is not a shape or `dtype` is not a dtype.

    >>> zeros(None, (2,))
    Array([0., 0.], dtype=float32)
    """
    return pnp.zeros(shape, _dtype(dtype, None), out_sharding=out_sharding)


def ones(
    key: ArrayLike | None,
    shape: Shape,
    dtype: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of ones: an initializer.

    Args:
      key: is not used.
      dtype: the dtype of the weights; the default float dtype if not given.

    Raises:
      TypeError: if `shape` is not a shape or `dtype` is not a dtype.

    >>> ones(None, (2,), "int32")
    Array([1, 1], dtype=int32)
    """
    return pnp.ones(shape, _dtype(dtype, None), out_sharding=out_sharding)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that gives `value`; it does not use its key.

    Args:
      value: a number, or an array that broadcasts to the shape of the weights.

    Raises:
      TypeError: if `value` is not an array or a number; raised when the initializer is called.

    >>> constant(7)(None, (2,))
    Array([7., 7.], dtype=float32)
    """
    return _initializer(
        "constant", dtype, lambda _, shape, found: pnp.full(shape, value, found), "A given value."
    )


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that gives numbers between 0 and `scale`, uniformly distributed.

    Args:
      scale: the upper end, a number or an array that broadcasts to the shape of the weights.

    >>> w = uniform(3.0)(random.key(0), (1000,))
    >>> bool((w >= 0).all() & (w < 3).all())
    True
    """

    def draw(key: Any, shape: Any, found: Any) -> Any:
        return random.uniform(key, shape, found) * pnp.asarray(scale, found)

    return _initializer("uniform", dtype, draw, "Numbers uniformly distributed from 0 to a scale.")


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that gives normally distributed numbers around 0.

    Args:
      stddev: the standard deviation, a number or an array that broadcasts to the shape of the
        weights.

    >>> w = normal(5.0)(random.key(0), (1000,))
    >>> bool(abs(w.std() - 5) < 0.2)
    True
    """

    def draw(key: Any, shape: Any, found: Any) -> Any:
        return random.normal(key, shape, found) * pnp.asarray(stddev, found)

    return _initializer("normal", dtype, draw, "Normally distributed numbers around 0.")


def truncated_normal(
    stddev: ArrayLike = 1e-2,
    dtype: DTypeLike | None = None,
    lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:
    """Make an initializer that gives `stddev` times truncated standard normal numbers.

    Args:
      stddev: the factor; the standard deviation of the weights is smaller.
      lower, upper: the ends of the standard normal numbers before they are multiplied.

    >>> w = truncated_normal(1.0)(random.key(0), (1000,))
    >>> bool(abs(w).max() <= 2)
    True
    """

    def draw(key: Any, shape: Any, found: Any) -> Any:
        samples = random.truncated_normal(key, lower, upper, shape, found)
        return samples * pnp.asarray(stddev, found)

    return _initializer("truncated_normal", dtype, draw, "Truncated normal numbers around 0.")


# ---- Variance scaling ----------------------------------------------------------------------------


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: Axis = -2,
    out_axis: Axis = -1,
    batch_axis: Axis = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Make an initializer whose numbers have the variance `scale / n`.

    Args:
      scale: a positive number.
      mode: what `n` is: `"fan_in"`, `"fan_out"`, `"fan_avg"` (their mean) or `"fan_geo_avg"` (their
        geometric mean).
      distribution: `"truncated_normal"` (at two deviations), `"normal"` or `"uniform"`.
      dtype: floating or complex; the default float dtype if not given.

    Raises:
      ValueError: if a mode, distribution or dtype is unknown, or a shape has fewer than two axes;
        raised when the initializer is called.

    >>> w = variance_scaling(2.0, "fan_in", "normal")(random.key(0), (100, 50))
    >>> bool(abs(w.std() - (2 / 100) ** 0.5) < 0.01)
    True
    """

    def draw(key: Any, sizes: Any, found: Any) -> Any:
        found = np.dtype(found)
        fans = _fans(sizes, in_axis, out_axis, batch_axis)
        part = dtypes.finfo(found).dtype if dtypes.issubdtype(found, np.inexact) else found
        variance = part.type(scale / _denominator(mode, *fans))
        return _distributed(key, sizes, found, variance, distribution)

    what = f"Numbers of variance `{scale} / {mode}`, drawn from the distribution {distribution!r}."
    return _initializer("variance_scaling", dtype, draw, what)


# The standard deviations of a normal distribution that ends at 2, real, and complex by modulus.
_TRUNCATED = 0.87962566103423978
_TRUNCATED_COMPLEX = 0.95311164380491208


def _distributed(key: Any, shape: Any, dtype: np.dtype, variance: Any, distribution: str) -> Any:
    part = variance.dtype.type
    floating = dtypes.issubdtype(dtype, np.floating)
    if distribution == "normal":
        return random.normal(key, shape, dtype) * np.sqrt(variance)
    if distribution == "uniform":
        if floating:
            return random.uniform(key, shape, dtype, -1) * np.sqrt(part(3) * variance)
        return _complex(key, shape, variance, None) * np.sqrt(variance)
    if distribution == "truncated_normal":
        if floating:
            deviation = np.sqrt(variance) / part(_TRUNCATED)
            return random.truncated_normal(key, -2, 2, shape, dtype) * deviation
        deviation = np.sqrt(variance) / part(_TRUNCATED_COMPLEX)
        return _complex(key, shape, variance, 2.0) * deviation
    raise ValueError(
        f"invalid distribution for variance scaling initializer: {distribution}; it is one of "
        "'truncated_normal', 'normal' and 'uniform'"
    )


def _complex(key: Any, shape: Any, variance: Any, limit: float | None) -> Any:
    """Complex numbers of modulus one in the mean square: uniform, or normal up to `limit`."""
    first, second = random.split(key)
    area = random.uniform(first, shape, variance.dtype)
    if limit is None:
        modulus = pnp.sqrt(2 * area)
    else:
        modulus = pnp.sqrt(-pnp.log(1 - (1 - math.exp(-(limit**2))) * area))
    angle = 2 * np.pi * random.uniform(second, shape, variance.dtype)
    return modulus * pnp.exp(1j * angle)


def _fans(shape: tuple[int, ...], in_axis: Any, out_axis: Any, batch: Any) -> tuple[float, float]:
    if len(shape) < 2 and in_axis == -2:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor "
            "with default in_axis. Must be at least 2D or specify in_axis explicitly."
        )
    inputs, outputs, copies = [
        math.prod([shape[a] for a in (axes if isinstance(axes, Sequence) else (axes,))])
        for axes in (in_axis, out_axis, batch)
    ]
    rest = math.prod(shape) / inputs / outputs / copies
    return inputs * rest, outputs * rest


def _denominator(mode: str, fan_in: float, fan_out: float) -> float:
    fans = {
        "fan_in": fan_in,
        "fan_out": fan_out,
        "fan_avg": (fan_in + fan_out) / 2,
        "fan_geo_avg": math.sqrt(fan_in * fan_out),
    }
    if mode not in fans:
        raise ValueError(
            f"invalid mode for variance scaling initializer: {mode}; it is one of {', '.join(fans)}"
        )
    return fans[mode]


def glorot_uniform(
    in_axis: Axis = -2, out_axis: Axis = -1, batch_axis: Axis = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Make the initializer that keeps the variance of signals and gradients, uniform.

    It is `variance_scaling(1, "fan_avg", "uniform")`.

    References:
      X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural
      networks", AISTATS 2010.

    >>> glorot_uniform()(random.key(0), (3, 2)).shape
    (3, 2)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(
    in_axis: Axis = -2, out_axis: Axis = -1, batch_axis: Axis = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Make the initializer that keeps the variance of signals and gradients, normal.

    It is `variance_scaling(1, "fan_avg", "truncated_normal")`.

    References:
      X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural
      networks", AISTATS 2010.

    >>> glorot_normal()(random.key(0), (3, 2)).shape
    (3, 2)
    """
    return variance_scaling(
        1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype
    )


def lecun_uniform(
    in_axis: Axis = -2, out_axis: Axis = -1, batch_axis: Axis = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Make the initializer that keeps the variance of signals, uniform.

    It is `variance_scaling(1, "fan_in", "uniform")`.

    References:
      Y. LeCun et al., "Efficient backprop", in: Neural networks, tricks of the trade (1998).

    >>> lecun_uniform()(random.key(0), (3, 2)).shape
    (3, 2)
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(
    in_axis: Axis = -2, out_axis: Axis = -1, batch_axis: Axis = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Make the initializer that keeps the variance of signals, normal.

    It is `variance_scaling(1, "fan_in", "truncated_normal")`.

    References:
      Y. LeCun et al., "Efficient backprop", in: Neural networks, tricks of the trade (1998).

    >>> lecun_normal()(random.key(0), (3, 2)).shape
    (3, 2)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(
    in_axis: Axis = -2, out_axis: Axis = -1, batch_axis: Axis = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Make the initializer that keeps the variance of signals through rectified units, uniform.

    It is `variance_scaling(2, "fan_in", "uniform")`.

    References:
      K. He et al., "Delving deep into rectifiers", arXiv:1502.01852.

    >>> he_uniform()(random.key(0), (3, 2)).shape
    (3, 2)
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(
    in_axis: Axis = -2, out_axis: Axis = -1, batch_axis: Axis = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Make the initializer that keeps the variance of signals through rectified units, normal.

    It is `variance_scaling(2, "fan_in", "truncated_normal")`.

    References:
      K. He et al., "Delving deep into rectifiers", arXiv:1502.01852.

    >>> he_normal()(random.key(0), (3, 2)).shape
    (3, 2)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


# ---- Orthogonal matrices ------------------------------------------------------------------------


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Make an initializer that gives `scale` times a matrix with orthonormal rows or columns.

    The matrix is uniformly distributed.

    Args:
      scale: a number.
      column_axis: the axis of the weights that is the columns; all others, merged, are the rows.

    Raises:
      ValueError: if a shape has fewer than two axes; raised when the initializer is called.

    References:
      A. Saxe, J. McClelland, S. Ganguli, "Exact solutions to the nonlinear dynamics of learning in
      deep linear neural networks", arXiv:1312.6120.

    >>> w = orthogonal()(random.key(0), (3, 2))
    >>> bool(pnp.allclose(w.T @ w, pnp.eye(2), atol=1e-6))
    True
    """

    def draw(key: Any, sizes: Any, found: Any) -> Any:
        if len(sizes) < 2:
            raise ValueError(f"orthogonal initializer requires at least a 2D shape, got {sizes}")
        rows = sizes[column_axis]
        columns = math.prod(sizes) // rows if rows else 0
        tall = (max(rows, columns), min(rows, columns))
        q, r = pnp.linalg.qr(random.normal(key, tall, found))
        # The signs that make the factorization unique make its distribution uniform.
        q = q * pnp.sign(pnp.diag(r))
        q = q.T if rows <= columns else q
        axis = column_axis % len(sizes)
        q = pnp.moveaxis(q.reshape(rows, *sizes[:axis], *sizes[axis + 1 :]), 0, axis)
        return pnp.asarray(scale, found) * q

    return _initializer("orthogonal", dtype, draw, "A matrix with orthonormal rows or columns.")


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Make an initializer of convolution kernels, orthogonal at the centre and zero elsewhere.

    The kernel has shape `(*spatial, in, out)` with `in <= out`.

    Args:
      scale: a number, the factor of the orthogonal matrix.
      column_axis: the axis of that matrix that is its columns.

    Raises:
      ValueError: if a shape has not three to five axes, or more inputs than outputs; raised when
        the initializer is called.

    References:
      L. Xiao et al., "Dynamical isometry and a mean field theory of CNNs", arXiv:1806.05393.

    >>> w = delta_orthogonal()(random.key(0), (3, 2, 2))
    >>> bool(pnp.allclose(w[1].T @ w[1], pnp.eye(2), atol=1e-6)), bool((w[0] == 0).all())
    (True, True)
    """

    def draw(key: Any, sizes: Any, found: Any) -> Any:
        if not 3 <= len(sizes) <= 5:
            raise ValueError(
                f"Delta orthogonal initializer requires a 3D, 4D or 5D shape, got {sizes}"
            )
        if sizes[-1] < sizes[-2]:
            raise ValueError(f"`fan_in` must be less or equal than `fan_out`, got shape {sizes}")
        matrix = orthogonal(scale, column_axis)(key, sizes[-2:], found)
        centre = tuple([(n - 1) // 2 for n in sizes[:-2]])
        return pnp.zeros(sizes, found).at[centre].set(matrix)

    what = "A kernel that is an orthogonal matrix at the centre and zero elsewhere."
    return _initializer("delta_orthogonal", dtype, draw, what)


# ---- Arguments ----------------------------------------------------------------------------------


def _dtype(dtype: Any, made_with: Any) -> Any:
    found = made_with if dtype is None else dtype
    if found is None:
        return dtypes.canonicalize_dtype(pnp.float_)
    return dtypes.check_user_dtype(found, "initializer")


_describe([zeros, ones], _WORDS, returns="An array of shape `shape` and dtype `dtype`.")
_describe([uniform, normal, truncated_normal], _WORDS, _FLOATS, _MAKES)
_describe([constant, variance_scaling, orthogonal, delta_orthogonal], _WORDS, returns=_MAKES)
_describe(
    [glorot_uniform, glorot_normal, lecun_uniform, lecun_normal, he_uniform, he_normal],
    _WORDS,
    "ValueError: if a shape has fewer than two axes, or the dtype is one of integers;\n"
    "raised when the initializer is called.",
    _MAKES,
)

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
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from perspex import dtypes, random
from perspex import numpy as pnp
from perspex.lax.arrays import check_unsharded
from perspex.numpy.promotion import Array, ArrayLike, DTypeLike

Axis = int | Sequence[int]


class Initializer(Protocol):
    """Makes an array of a shape from a key; see the module."""

    def __call__(
        self, key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None
    ) -> Array: ...


def zeros(key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """An initializer that gives zeros; the key is not used.

    >>> zeros(None, (2,))
    Array([0., 0.], dtype=float32)
    """
    check_unsharded("zeros", out_sharding)
    return pnp.zeros(shape, _dtype(dtype, None))


def ones(key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """An initializer that gives ones; the key is not used.

    >>> ones(None, (2,), "int32")
    Array([1, 1], dtype=int32)
    """
    check_unsharded("ones", out_sharding)
    return pnp.ones(shape, _dtype(dtype, None))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that gives `value`, a number or an array that broadcasts to the shape.

    >>> constant(7)(None, (2,))
    Array([7., 7.], dtype=float32)
    """
    made_with = dtype

    def init(
        key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None
    ) -> Array:
        check_unsharded("constant", out_sharding)
        return pnp.full(shape, value, _dtype(dtype, made_with))

    return init


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that gives numbers between 0 and `scale`, uniformly distributed.

    >>> w = uniform(3.0)(random.key(0), (1000,))
    >>> bool((w >= 0).all() & (w < 3).all())
    True
    """
    made_with = dtype

    def init(
        key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None
    ) -> Array:
        check_unsharded("uniform", out_sharding)
        found = _dtype(dtype, made_with)
        return random.uniform(key, _shape(shape), found) * pnp.asarray(scale, found)

    return init


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that gives normally distributed numbers around 0.

    >>> w = normal(5.0)(random.key(0), (1000,))
    >>> bool(abs(w.std() - 5) < 0.2)
    True
    """
    made_with = dtype

    def init(
        key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None
    ) -> Array:
        check_unsharded("normal", out_sharding)
        found = _dtype(dtype, made_with)
        return random.normal(key, _shape(shape), found) * pnp.asarray(stddev, found)

    return init


def truncated_normal(
    stddev: ArrayLike = 1e-2,
    dtype: DTypeLike | None = None,
    lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:
    """An initializer that gives `stddev` times standard normal numbers from `lower` to `upper`.

    >>> w = truncated_normal(1.0)(random.key(0), (1000,))
    >>> bool(abs(w).max() <= 2)
    True
    """
    made_with = dtype

    def init(
        key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None
    ) -> Array:
        check_unsharded("truncated_normal", out_sharding)
        found = _dtype(dtype, made_with)
        samples = random.truncated_normal(key, lower, upper, _shape(shape), found)
        return samples * pnp.asarray(stddev, found)

    return init


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: Axis = -2,
    out_axis: Axis = -1,
    batch_axis: Axis = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """An initializer whose numbers have the variance `scale / n`.

    Args:
      scale: a positive number.
      mode: what `n` is: `"fan_in"`, `"fan_out"`, `"fan_avg"` (their mean) or `"fan_geo_avg"` (their
        geometric mean).
      distribution: `"truncated_normal"` (at two deviations), `"normal"` or `"uniform"`.
      in_axis, out_axis, batch_axis: an axis or several, of inputs, outputs and independent weights.
      dtype: floating or complex.

    Errors:
      `ValueError` for unknown modes, distributions and dtypes, and for shapes of fewer than two
      axes; raised when the initializer is called.

    >>> w = variance_scaling(2.0, "fan_in", "normal")(random.key(0), (100, 50))
    >>> bool(abs(w.std() - (2 / 100) ** 0.5) < 0.01)
    True
    """
    made_with = dtype

    def init(
        key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None
    ) -> Array:
        check_unsharded("variance_scaling", out_sharding)
        sizes, found = _shape(shape), np.dtype(_dtype(dtype, made_with))
        fans = _fans(sizes, in_axis, out_axis, batch_axis)
        part = dtypes.finfo(found).dtype if dtypes.issubdtype(found, np.inexact) else found
        variance = part.type(scale / _denominator(mode, *fans))
        return _distributed(key, sizes, found, variance, distribution)

    return init


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
    in_axis: Axis = -2,
    out_axis: Axis = -1,
    batch_axis: Axis = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """`variance_scaling(1, "fan_avg", "uniform")`: Glorot and Bengio (2010). Arguments as there.

    >>> glorot_uniform()(random.key(0), (3, 2)).shape
    (3, 2)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(
    in_axis: Axis = -2,
    out_axis: Axis = -1,
    batch_axis: Axis = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """`variance_scaling(1, "fan_avg", "truncated_normal")`: Glorot and Bengio (2010).

    >>> glorot_normal()(random.key(0), (3, 2)).shape
    (3, 2)
    """
    return variance_scaling(
        1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype
    )


def lecun_uniform(
    in_axis: Axis = -2,
    out_axis: Axis = -1,
    batch_axis: Axis = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """`variance_scaling(1, "fan_in", "uniform")`: LeCun and others, "Efficient backprop" (1998).

    >>> lecun_uniform()(random.key(0), (3, 2)).shape
    (3, 2)
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(
    in_axis: Axis = -2,
    out_axis: Axis = -1,
    batch_axis: Axis = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """`variance_scaling(1, "fan_in", "truncated_normal")`: as `lecun_uniform`, but normal.

    >>> lecun_normal()(random.key(0), (3, 2)).shape
    (3, 2)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(
    in_axis: Axis = -2,
    out_axis: Axis = -1,
    batch_axis: Axis = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """`variance_scaling(2, "fan_in", "uniform")`, for rectified units: He and others (2015).

    >>> he_uniform()(random.key(0), (3, 2)).shape
    (3, 2)
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(
    in_axis: Axis = -2,
    out_axis: Axis = -1,
    batch_axis: Axis = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """`variance_scaling(2, "fan_in", "truncated_normal")`, for rectified units: He et al. (2015).

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
    """An initializer that gives `scale` times a matrix with orthonormal rows or columns.

    The matrix has the axis `column_axis` for columns and all others, merged, for rows; it is
    uniformly distributed. Saxe, McClelland and Ganguli (2014).

    Errors:
      `ValueError` for shapes of fewer than two axes, raised when the initializer is called.

    >>> w = orthogonal()(random.key(0), (3, 2))
    >>> bool(pnp.allclose(w.T @ w, pnp.eye(2), atol=1e-6))
    True
    """
    made_with = dtype

    def init(
        key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None
    ) -> Array:
        check_unsharded("orthogonal", out_sharding)
        sizes, found = _shape(shape), _dtype(dtype, made_with)
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

    return init


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """An initializer of convolution kernels, orthogonal at the centre and zero elsewhere.

    The kernel has shape `(*spatial, in, out)` with `in <= out`. Xiao and others (2018).

    Errors:
      `ValueError` for shapes that have not three to five axes, or more inputs than outputs.

    >>> w = delta_orthogonal()(random.key(0), (3, 2, 2))
    >>> bool(pnp.allclose(w[1].T @ w[1], pnp.eye(2), atol=1e-6)), bool((w[0] == 0).all())
    (True, True)
    """
    made_with = dtype

    def init(
        key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None
    ) -> Array:
        check_unsharded("delta_orthogonal", out_sharding)
        sizes, found = _shape(shape), _dtype(dtype, made_with)
        if not 3 <= len(sizes) <= 5:
            raise ValueError(
                f"Delta orthogonal initializer requires a 3D, 4D or 5D shape, got {sizes}"
            )
        if sizes[-1] < sizes[-2]:
            raise ValueError(f"`fan_in` must be less or equal than `fan_out`, got shape {sizes}")
        matrix = orthogonal(scale, column_axis)(key, sizes[-2:], found)
        centre = tuple([(n - 1) // 2 for n in sizes[:-2]])
        return pnp.zeros(sizes, found).at[centre].set(matrix)

    return init


# ---- Arguments ----------------------------------------------------------------------------------


def _dtype(dtype: Any, made_with: Any) -> Any:
    found = made_with if dtype is None else dtype
    if found is None:
        return dtypes.canonicalize_dtype(pnp.float_)
    return dtypes.check_user_dtype(found, "initializer")


def _shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)

"""Convolution and correlation of vectors.

A convolution is a product of matrices: blocks of one vector, as rows, times a band that holds the
other one shifted along. The band has zeros in its corners, which would make NaN of infinities and
spread NaN to results that do not depend on it. So where not all numbers are finite, windows of one
vector are multiplied with the other one, which takes XLA five to ten times longer on CPUs. Short
vectors need neither.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import check_arraylike, expand, spread
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.lax.branches import cond
from perspex.lax.convolution import conv_general_dilated
from perspex.lax.linear import PrecisionLike
from perspex.numpy.arithmetic import conj
from perspex.numpy.creation import asarray
from perspex.numpy.indexing.parse import INT32, Index, Picks
from perspex.numpy.indexing.read import read
from perspex.numpy.products import dot
from perspex.numpy.promotion import promote_dtypes, strong
from perspex.ops import elementwise as ops
from perspex.ops.precision import canonical_precision
from perspex.ops.reductions import reduce_and
from perspex.ops.shape import pad, part, rev
from perspex.ops.structural import convert, reshape
from perspex.rules.custom_vmap import custom_vmap

__all__ = ["convolve", "correlate"]

# The longest piece of the shorter vector that goes into one band.
_BAND = 256
# Up to this length products with each element are added.
_SHORT = 8


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of two vectors.

    >>> import perspex.numpy as jnp
    >>> jnp.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0]))
    Array([ 1., 12., 23., 30.], dtype=float32)
    """
    _check("convolve", a, v, mode)
    return _convolve(a, v, mode, canonical_precision(precision), _dtype(preferred_element_type))


def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The correlation of two vectors: sums of products with `conj(v)`, shifted along.

    >>> import perspex.numpy as jnp
    >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5]))
    Array([3.5], dtype=float32)
    """
    _check("correlate", a, v, mode)
    return _correlate(a, v, mode, canonical_precision(precision), _dtype(preferred_element_type))


def _check(name: str, a: Any, v: Any, mode: str) -> None:
    check_arraylike(name, a, v)
    shapes = np.shape(a), np.shape(v)
    if any(len(s) != 1 for s in shapes):
        raise ValueError(f"{name} takes vectors, got shapes {shapes[0]} and {shapes[1]}")
    if (0,) in shapes:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {shapes[0]} and {shapes[1]}")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}")


def _dtype(dtype: Any) -> Any:
    return None if dtype is None else dtypes.check_user_dtype(dtype, "preferred_element_type")


@fused(static=("mode", "precision", "preferred"))
def _convolve(a: Any, v: Any, mode: str, precision: Any, preferred: Any) -> Any:
    x, y, weak = _promoted("convolve", a, v)
    if x.size < y.size:
        x, y = y, x
    out = _trimmed(_full(x, y, precision, preferred), x.size, y.size, mode)
    return out if preferred is not None else convert(out, out.dtype, weak)


@fused(static=("mode", "precision", "preferred"))
def _correlate(a: Any, v: Any, mode: str, precision: Any, preferred: Any) -> Any:
    x, y, weak = _promoted("correlate", a, v)
    y = rev(conj(y), dimensions=(0,))
    swap = x.size < y.size
    if swap:
        x, y = y, x
    out = _trimmed(_full(x, y, precision, preferred), x.size, y.size, mode, from_end=swap)
    return out if preferred is not None else convert(out, out.dtype, weak)


def _promoted(name: str, a: Any, v: Any) -> tuple[Any, Any, bool]:
    """Two strong arrays of one dtype, and whether the result is weak."""
    x, y = promote_dtypes(name, a, v, to=dtypes.to_inexact_dtype)
    return strong(asarray(x)), strong(asarray(y)), shaped(x).weak_type and shaped(y).weak_type


def _trimmed(out: Any, n: int, m: int, mode: str, from_end: bool = False) -> Any:
    """The part of the full convolution of vectors of sizes `n >= m` that a mode gives.

    The middle of an even number is the first of two, counted from either end.
    """
    start, size = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[
        mode
    ]
    if from_end:
        start = out.size - start - size
    return part(out, start, start + size, 0, out.shape)


def _full(x: Any, kernel: Any, precision: Any, preferred: Any) -> Any:
    """The full convolution with the shorter vector `kernel`."""
    out = np.dtype(x.dtype if preferred is None else preferred)
    wide = np.dtype("float32") if dtypes.itemsize_bits(out) < 32 else out
    x, kernel = convert(x, wide), convert(kernel, wide)
    if kernel.size <= _SHORT:
        return convert(_by_element(x, kernel), out)
    bands = functools.partial(_by_bands, precision=precision)
    windows = functools.partial(_by_windows, precision=precision)
    return convert(cond(_all_finite(x, kernel), bands, windows, x, kernel), out)


@custom_vmap
def _all_finite(x: Any, y: Any) -> Any:
    def finite(z: Any) -> Any:
        if z.dtype.kind == "c":
            return ops.bitwise_and(finite(ops.real(z)), finite(ops.imag(z)))
        return reduce_and(ops.is_finite(z), axes=tuple(range(z.ndim)))

    return ops.bitwise_and(finite(x), finite(y))


@_all_finite.def_vmap
def _(axis_size: int, in_batched: Any, x: Any, y: Any) -> tuple[Any, bool]:
    """For all examples at once: else each would be computed in both ways."""
    return _all_finite(x, y), False


def _by_element(x: Any, kernel: Any) -> Any:
    m = kernel.size
    total: Any = None
    for i in range(m):
        factor = part(kernel, i, i + 1, 0, (m,))
        # Filled up after the product, or infinity would meet the zeros.
        shifted = _padded(ops.mul(x, spread(factor, x.shape)), i, m - 1 - i)
        total = shifted if total is None else ops.add(total, shifted)
    return total


def _by_windows(x: Any, kernel: Any, *, precision: Any) -> Any:
    reach = (kernel.size - 1,) * 2
    out = conv_general_dilated(
        expand(x, (0, 1)),
        expand(rev(kernel, dimensions=(0,)), (0, 1)),
        (1,),
        [reach],
        precision=precision,
    )
    return reshape(out, new_sizes=(out.size,))


def _by_bands(x: Any, kernel: Any, *, precision: Any) -> Any:
    m = kernel.size
    total: Any = None
    for low in range(0, m, _BAND):
        high = min(low + _BAND, m)
        piece = _by_band(x, part(kernel, low, high, 0, (m,)), precision)
        shifted = _padded(piece, low, m - high)
        total = shifted if total is None else ops.add(total, shifted)
    return total


def _padded(x: Any, low: int, high: int) -> Any:
    return pad(x, x.dtype.type(0), padding_config=((low, high, 0),)) if low or high else x


def _by_band(x: Any, kernel: Any, precision: Any) -> Any:
    n, m = x.size, kernel.size
    rows = -(-n // m)
    blocks = reshape(_padded(x, 0, rows * m - n), new_sizes=(rows, m))
    # Row i of the band is the kernel moved on by i places.
    width = 2 * m - 1
    places = np.arange(width)[None, :] - np.arange(m)[:, None] + m - 1
    band = read(_padded(kernel, m - 1, m - 1), Index((Picks(places.astype(INT32)),)))
    products = dot(blocks, band, precision=precision)
    # What a block sends beyond its end is added to the next one.
    own = reshape(part(products, 0, m, 1, (rows, width)), new_sizes=(rows * m,))
    beyond = part(products, m, width, 1, (rows, width))
    beyond = pad(beyond, beyond.dtype.type(0), padding_config=((0, 0, 0), (0, 1, 0)))
    beyond = reshape(beyond, new_sizes=(rows * m,))
    out = ops.add(_padded(own, 0, m), _padded(beyond, m, 0))
    return part(out, 0, n + m - 1, 0, out.shape)


describe(
    [convolve, correlate],
    {
        **dict.fromkeys(("a", "v"), "a vector that is not empty; both are promoted."),
        "mode": '`"full"`: all places where they overlap; `"same"`: as many as the longer one has\n'
        'elements; `"valid"`: those where they overlap completely.',
        "precision": "how exactly accelerators multiply: a `lax.Precision`, its name, or a pair.",
        "preferred_element_type": "the dtype to accumulate in, which is that of the result.",
    },
    "TypeError: if an argument is not an array.\nValueError: for other shapes and modes.",
    "A vector of floats, or of complex numbers.",
)

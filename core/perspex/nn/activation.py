"""Activation functions: elementwise, one program each when called eagerly."""

from __future__ import annotations

import numpy as np

from perspex import numpy as pnp
from perspex.arguments.arrays import arraylike
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy.promotion import inexact, strong
from perspex.ops import elementwise as ops
from perspex.ops import special
from perspex.ops.structural import convert

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "swish",
]


@fused
def identity(x: ArrayLike) -> Array:
    """Return `x` as an array.

    Returns:
      An array of the shape and dtype of `x`.

    >>> identity(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return pnp.asarray(x)


@fused
def relu(x: ArrayLike) -> Array:
    """`max(x, 0)`, with the derivative 0 at 0.

    Args:
      x: numbers; booleans count as integers, and complex numbers are compared as they are sorted.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      TypeError: if `x` is not an array or a number.

    >>> relu(pnp.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    x = arraylike("relu", x)
    if x.dtype.kind == "c":
        return pnp.where(pnp.greater(x, 0), x, pnp.maximum(ops.stop_gradient(x), 0))
    if x.dtype == bool:
        x = convert(x, shaped(0).dtype, True)
    return ops.relu(x)


@fused
def relu6(x: ArrayLike) -> Array:
    """`min(max(x, 0), 6)`, with the derivative 0 at 0 and at 6.

    >>> relu6(pnp.array([-1.0, 2.0, 7.0]))
    Array([0., 2., 6.], dtype=float32)
    """
    inside = pnp.logical_and(pnp.greater(x, 0), pnp.less(x, 6))
    return pnp.where(inside, x, pnp.minimum(pnp.maximum(ops.stop_gradient(x), 0), 6.0))


@fused
def sigmoid(x: ArrayLike) -> Array:
    """`1 / (1 + exp(-x))`.

    >>> sigmoid(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    x = inexact("sigmoid", x)
    return ops.logistic(x)


@fused
def softplus(x: ArrayLike) -> Array:
    """`log(1 + exp(x))`, without overflow.

    >>> softplus(0.0)
    Array(0.6931472, dtype=float32, weak_type=True)
    """
    return pnp.logaddexp(x, 0)


@fused
def log_sigmoid(x: ArrayLike) -> Array:
    """`log(sigmoid(x))`, without underflow.

    >>> log_sigmoid(0.0)
    Array(-0.6931472, dtype=float32, weak_type=True)
    """
    return -softplus(pnp.negative(x))


@fused
def soft_sign(x: ArrayLike) -> Array:
    """`x / (|x| + 1)`.

    >>> soft_sign(1.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    x = pnp.asarray(x)
    return x / (pnp.abs(x) + 1)


@fused
def silu(x: ArrayLike) -> Array:
    """`x * sigmoid(x)`, also called swish.

    References:
      S. Elfwing et al., arXiv:1702.03118.

    >>> silu(pnp.array([0.0, 1.0]))
    Array([0.       , 0.7310586], dtype=float32)
    """
    x = pnp.asarray(x)
    return x * sigmoid(x)


swish = silu


@fused
def mish(x: ArrayLike) -> Array:
    """`x * tanh(softplus(x))`.

    References:
      D. Misra, arXiv:1908.08681.

    >>> mish(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x = pnp.asarray(x)
    return x * pnp.tanh(softplus(x))


@fused
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """`x` where positive, else `alpha * (exp(x) - 1)`.

    Args:
      alpha: what the result goes to for very negative `x`, with the sign changed.

    References:
      D.-A. Clevert et al., arXiv:1511.07289.

    >>> elu(pnp.array([0.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    x = pnp.asarray(x)
    # The argument of expm1 is kept finite where its result is not taken.
    return pnp.where(x > 0, x, alpha * pnp.expm1(pnp.where(x > 0, 0.0, x)))


@fused
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """`max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))`.

    Args:
      alpha: what the result goes to for very negative `x`, with the sign changed; not 0.

    References:
      J. T. Barron, arXiv:1704.07483.

    >>> celu(pnp.array([0.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    x = pnp.asarray(x)
    return pnp.maximum(x, 0.0) + alpha * pnp.expm1(pnp.minimum(x, 0.0) / alpha)


@fused
def selu(x: ArrayLike) -> Array:
    """`1.0507 * elu(x, 1.6733)`: it keeps mean 0 and variance 1 from layer to layer.

    References:
      G. Klambauer et al., arXiv:1706.02515.

    >>> selu(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return scale * elu(x, alpha)


@fused
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """`x` where not negative, else `negative_slope * x`.

    Args:
      negative_slope: the derivative where `x` is negative.

    >>> leaky_relu(pnp.array([-1.0, 2.0]))
    Array([-0.01,  2.  ], dtype=float32)
    """
    x = pnp.asarray(x)
    return pnp.where(x >= 0, x, negative_slope * x)


@fused
def hard_tanh(x: ArrayLike) -> Array:
    """`x` clipped to [-1, 1].

    Returns:
      An array of the shape and dtype of `x`; booleans become integers.

    >>> hard_tanh(pnp.array([-3.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    x = pnp.asarray(x)
    return pnp.where(x > 1, 1, pnp.where(x < -1, -1, x))


@fused
def hard_sigmoid(x: ArrayLike) -> Array:
    """`relu6(x + 3) / 6`.

    >>> hard_sigmoid(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return relu6(x + 3.0) / 6.0


@fused
def hard_silu(x: ArrayLike) -> Array:
    """`x * hard_sigmoid(x)`, also called hard swish.

    References:
      A. Howard et al., arXiv:1905.02244.

    >>> hard_silu(pnp.array([-4.0, 3.0]))
    Array([-0.,  3.], dtype=float32)
    """
    x = pnp.asarray(x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@fused
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """`(x + sqrt(x**2 + b)) / 2`.

    Args:
      b: a number that is not negative, how smooth the bend is; 0 gives `relu`.

    References:
      J. T. Barron, arXiv:2112.11687.

    >>> squareplus(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    x = pnp.asarray(x)
    return (x + pnp.sqrt(pnp.square(x) + b)) / 2


@fused(static=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """`x * P(X <= x)` for a standard normal `X`.

    Args:
      approximate: whether to use the authors' formula with `tanh` instead of the error function.

    References:
      D. Hendrycks, K. Gimpel, arXiv:1606.08415.

    >>> gelu(pnp.array([0.0, 1.0]), approximate=False)
    Array([0.       , 0.8413447], dtype=float32)
    """
    x = inexact("gelu", x)
    x = strong(x) if x.shape else x
    if approximate:
        inner = np.sqrt(2 / np.pi).astype(x.dtype) * (x + 0.044715 * (x**3))
        return x * (0.5 * (1.0 + pnp.tanh(inner)))
    return 0.5 * x * special.erfc(-x * np.sqrt(0.5).astype(x.dtype))


@fused(static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The gated linear unit: the first half along `axis` times the `sigmoid` of the second half.

    Args:
      axis: the axis to halve.

    Returns:
      An array with half as many elements along `axis`; integers become floats.

    Raises:
      TypeError: if `x` holds something other than numbers, such as a string.
      ValueError: if the axis has an odd size.
      IndexError: if there is no such axis.

    >>> glu(pnp.array([1.0, 0.0]))
    Array([0.5], dtype=float32)
    """
    x = pnp.asarray(x)
    if x.shape[axis] % 2:
        raise ValueError(f"glu halves axis {axis}, which has the odd size {x.shape[axis]}")
    first, second = pnp.split(x, 2, axis)
    return first * sigmoid(second)


@fused
def log1mexp(x: ArrayLike) -> Array:
    """`log(1 - exp(-x))` for positive `x`, accurate near 0 and for large `x`.

    References:
      M. Maechler, "Accurately computing log(1 - exp(-|a|))" (2012).

    >>> log1mexp(1.0)
    Array(-0.45867515, dtype=float32, weak_type=True)
    """
    x = inexact("log1mexp", x)
    small = x < np.log(2.0).astype(x.dtype)
    return pnp.where(
        small, pnp.log(-pnp.expm1(-x)), pnp.log1p(-pnp.exp(-pnp.where(small, pnp.ones_like(x), x)))
    )


@fused
def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, `x` above 1, and `(x + 1)**2 / 4` between: a `softplus` with exact zeros.

    >>> sparse_plus(0.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    x = pnp.asarray(x)
    return pnp.where(x <= -1.0, 0.0, pnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@fused
def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 below -1, 1 above 1, and `(x + 1) / 2` between: the derivative of `sparse_plus`.

    >>> sparse_sigmoid(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return 0.5 * pnp.clip(x + 1.0, 0.0, 2.0)


_RETURNS = "An array of the shape of `x`; integers and booleans become floats."
describe(
    [gelu, hard_sigmoid, log1mexp, log_sigmoid, relu, relu6, sigmoid, softplus, sparse_sigmoid],
    {"x": "an array or a number."},
    "TypeError: if `x` is not an array or a number.",
    _RETURNS,
)
describe(
    [
        celu,
        elu,
        glu,
        hard_silu,
        hard_tanh,
        identity,
        leaky_relu,
        mish,
        selu,
        silu,
        soft_sign,
        sparse_plus,
        squareplus,
    ],
    {"x": "an array, a number, or a list of numbers."},
    "TypeError: if `x` holds something other than numbers, such as a string.",
    _RETURNS,
)

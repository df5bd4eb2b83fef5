"""Images and other arrays, resized.

Along each axis, an element of the result is a weighted mean of those elements of the input that lie
near its place: `sum over i of w(|i - place|) x[i]` with weights that sum to one. For all axes
together these are products with a matrix each.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import arraylike
from perspex.arguments.axes import canonical_axis
from perspex.arguments.static import integers
from perspex.arguments.types import Array, ArrayLike, Shape
from perspex.jitted.fused import fused
from perspex.lax.linear import PrecisionLike
from perspex.ops.precision import Precision, canonical_precision

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """How elements are weighted; functions take these members or their names.

    * `NEAREST` (`"nearest"`): one element.
    * `LINEAR` (`"linear"`, `"bilinear"`, `"trilinear"`, `"triangle"`).
    * `CUBIC` (`"cubic"`, `"bicubic"`, `"tricubic"`): Keys (1981) with `a = -0.5`; `CUBIC_PYTORCH`
      (`"cubic-pytorch"`, `"bicubic-pytorch"`) is the same with antialiasing; without, it has
      `a = -0.75` and repeats the elements at the border.
    * `LANCZOS3`, `LANCZOS5` (`"lanczos3"`, `"lanczos5"`): Duchon (1979), radius 3 or 5.
    * `AREA` (`"area"`): by the area that the elements have in common.
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name.

        Raises:
          ValueError: for an unknown name.

        >>> from perspex.image import ResizeMethod
        >>> ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
        """
        try:
            return _NAMES[s]
        except KeyError:
            names = ", ".join(_NAMES)
            raise ValueError(f'Unknown resize method "{s}"; it is one of {names}') from None


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR,
    "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR,
    "triangle": ResizeMethod.LINEAR,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}


def resize(
    image: ArrayLike,
    shape: Shape,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Array stretched or shrunk to another shape.

    Args:
      image: an array of numbers, of any number of axes.
      shape: the shape of the result; axes that keep their size are left alone.
      method: a `ResizeMethod` or its name, such as `"linear"`.
      antialias: when shrinking, widen the weights so that all elements take part.
      precision: how exactly accelerators multiply: a name or a member of `lax.Precision`.

    Returns:
      An array of shape `shape`, of floating or complex dtype; of the dtype of `image` for
      `"nearest"`.

    Raises:
      TypeError: if `image` is not an array or a number.
      ValueError: for another number of axes and unknown methods.

    >>> import perspex.numpy as jnp
    >>> from perspex import image
    >>> image.resize(jnp.array([0.0, 4.0]), (4,), "linear")
    Array([0., 1., 3., 4.], dtype=float32)
    """
    x = arraylike("resize", image)
    sizes = _shape("resize", shape, x.ndim)
    found = _method(method)
    axes = tuple([i for i in range(x.ndim) if sizes[i] != x.shape[i]])
    if found is ResizeMethod.NEAREST:
        return _nearest(x, sizes, axes)
    return _resize(x, sizes, axes, found, bool(antialias), canonical_precision(precision))


def scale_and_translate(
    image: ArrayLike,
    shape: Shape,
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Array scaled and moved along some axes: `out[i * scale + translation]` is `image[i]`.

    Places are counted from the edges of elements; outside of `image` there are zeros.

    Args:
      image: an array of numbers.
      shape: the shape of the result.
      spatial_dims: the axes to scale, distinct.
      scale, translation: a number for each of `spatial_dims`; may be traced and differentiated.
      method: a `ResizeMethod` or its name; not `"nearest"`.
      antialias: when shrinking, widen the weights so that all elements take part.
      precision: how exactly accelerators multiply: a name or a member of `lax.Precision`.

    Returns:
      An array of shape `shape`, of floating or complex dtype.

    Raises:
      TypeError: if `image` is not an array or a number.
      ValueError: for another number of axes or of numbers, repeated axes and unknown methods.

    >>> import perspex.numpy as jnp
    >>> from perspex import image
    >>> x = jnp.array([1.0, 2.0, 3.0])
    >>> image.scale_and_translate(x, (4,), (0,), jnp.ones(1), jnp.ones(1), "linear")
    Array([0., 1., 2., 3.], dtype=float32)
    """
    name = "scale_and_translate"
    x = arraylike(name, image)
    sizes = _shape(name, shape, x.ndim)
    found = _method(method)
    if found is ResizeMethod.NEAREST:
        raise ValueError(
            f"{name}: Nearest neighbor resampling is not currently supported for {name}."
        )
    axes = tuple([canonical_axis(axis, x.ndim) for axis in spatial_dims])
    scale, translation = pnp.asarray(scale), pnp.asarray(translation)
    wanted = (len(axes),)
    if len(set(axes)) != len(axes) or scale.shape != wanted or translation.shape != wanted:
        raise ValueError(
            f"{name}: spatial_dims must be distinct, with a scale and a translation each; got "
            f"spatial_dims={tuple(spatial_dims)} and shapes {scale.shape} and {translation.shape}"
        )
    return _moved(
        x, scale, translation, sizes, axes, found, bool(antialias), canonical_precision(precision)
    )


def _shape(name: str, shape: Sequence[int], ndim: int) -> tuple[int, ...]:
    sizes = integers(name, "the shape", shape)
    if len(sizes) != ndim:
        raise ValueError(
            f"{name}: shape must have length equal to the number of dimensions of the image; got "
            f"{sizes} for {ndim} axes"
        )
    return sizes


def _method(method: str | ResizeMethod) -> ResizeMethod:
    return ResizeMethod.from_string(method) if isinstance(method, str) else method


@fused(static=("sizes", "axes"))
def _nearest(x: Any, sizes: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    for axis in axes:
        n, m = x.shape[axis], sizes[axis]
        places = np.floor((np.arange(m, dtype=np.float32) + 0.5) * n / m)
        x = pnp.take(x, places.astype(np.int32), axis, mode="clip")
    return x


@fused(static=("sizes", "axes", "method", "antialias", "precision"))
def _resize(
    x: Any,
    sizes: tuple[int, ...],
    axes: tuple[int, ...],
    method: Any,
    antialias: bool,
    precision: Any,
) -> Any:
    x = _inexact(x)
    part = x.real.dtype
    weights = []
    for axis in axes:
        n, m = x.shape[axis], sizes[axis]
        scale = part.type(m / n if n else 1)
        weights.append(_weights(n, m, scale, part.type(0), method, antialias, part))
    return _weighted(x, axes, weights, precision)


@fused(static=("sizes", "axes", "method", "antialias", "precision"))
def _moved(
    x: Any,
    scale: Any,
    translation: Any,
    sizes: tuple[int, ...],
    axes: tuple[int, ...],
    method: Any,
    antialias: bool,
    precision: Any,
) -> Any:
    x = _inexact(x)
    part = x.real.dtype
    weights = [
        _weights(
            x.shape[axis],
            sizes[axis],
            scale[i].astype(part),
            translation[i].astype(part),
            method,
            antialias,
            part,
        )
        for i, axis in enumerate(axes)
    ]
    return _weighted(x, axes, weights, precision)


def _inexact(x: Any) -> Any:
    return x.astype(dtypes.to_inexact_dtype(x.dtype))


def _weighted(x: Any, axes: tuple[int, ...], weights: Sequence[Any], precision: Any) -> Any:
    """The products with a matrix along each axis."""
    for axis, matrix in zip(axes, weights, strict=True):
        product = pnp.tensordot(x, matrix.astype(x.dtype), ((axis,), (0,)), precision=precision)
        x = pnp.moveaxis(product, -1, axis)
    return x


# ---- Weights ------------------------------------------------------------------------------------


def _weights(
    n: int, m: int, scale: Any, translation: Any, method: Any, antialias: bool, dtype: Any
) -> Any:
    """The matrix of `n` rows that makes `m` elements; each column sums to one, or is zero."""
    step = 1 / scale
    place = (pnp.arange(m, dtype=dtype) + 0.5) * step - translation * step - 0.5
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        weights = _repeating_border(place, n)
        return pnp.where((place >= -0.5) & (place <= n - 0.5), weights, 0)
    index = pnp.arange(n, dtype=dtype)[:, None]
    if method is ResizeMethod.AREA:
        high = pnp.minimum(index + 0.5, place + step / 2)
        low = pnp.maximum(index - 0.5, place - step / 2)
        weights = pnp.maximum(high - low, 0)
    else:
        width = pnp.maximum(step, 1) if antialias else 1
        weights = _KERNELS[method](abs(place - index) / width)
    total = pnp.sum(weights, axis=0, keepdims=True)
    enough = abs(total) > 1000 * float(np.finfo(np.float32).eps)
    weights = pnp.where(enough, weights / pnp.where(total != 0, total, 1), 0)
    return pnp.where((place >= -0.5) & (place <= n - 0.5), weights, 0)


def _repeating_border(place: Any, n: int) -> Any:
    """The cubic weights if the first and the last element continue beyond the border."""
    reach = 2
    index = pnp.arange(-reach, n + reach, dtype=place.dtype)[:, None]
    weights = _keys(-0.75)(abs(place - index))
    inside = pnp.clip(pnp.arange(-reach, n + reach), 0, max(n - 1, 0))
    return pnp.zeros((n, weights.shape[1]), place.dtype).at[inside].add(weights)


def _triangle(x: Any) -> Any:
    return pnp.maximum(0, 1 - x)


def _keys(a: float) -> Callable[[Any], Any]:
    """The cubic convolution kernel with slope `a` at 1: Keys (1981)."""

    def kernel(x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return pnp.where(x < 1, near, pnp.where(x < 2, far, 0))

    return kernel


def _lanczos(radius: float) -> Callable[[Any], Any]:
    """`sinc(x) sinc(x / radius)` up to `radius`."""

    def kernel(x: Any) -> Any:
        return pnp.where(x > radius, 0, pnp.sinc(x) * pnp.sinc(x / radius))

    return kernel


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.CUBIC: _keys(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _keys(-0.5),
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
}

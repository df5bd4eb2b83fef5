"""Layers as pairs of functions: `jax.example_libraries.stax`.

They are for examples; Flax and Equinox have the ones to build with. A layer is `(init, apply)`:
`init(key, input_shape)` returns the shape of its result and its parameters, `apply(params, inputs,
rng=None)` the result. A size of -1 stands for the batch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import perspex.numpy as pnp
from perspex import lax, random
from perspex.api.shapes import ShapeDtypeStruct, eval_shape
from perspex.nn import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from perspex.nn.initializers import glorot_normal, normal, ones, zeros

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
    "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "elu", "gelu", "glorot",
    "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal", "ones", "parallel",
    "randn", "relu", "selu", "serial", "shape_dependent", "sigmoid", "softmax", "softplus",
    "standardize", "zeros",
]  # fmt: skip

Shape = tuple[int, ...]
Layer = tuple[Callable[..., Any], Callable[..., Any]]

# The names that these had first.
glorot, logsoftmax, randn = glorot_normal, log_softmax, normal

_NORMAL, _TINY, _GLOROT = normal(), normal(1e-6), glorot_normal()


def Dense(out_dim: int, W_init: Any = _GLOROT, b_init: Any = _NORMAL) -> Layer:
    """A layer `x @ W + b`.

    Args:
      out_dim: the size of the last axis of the result.
      W_init, b_init: initializers.

    >>> init, apply = Dense(4)
    >>> shape, params = init(random.key(0), (-1, 3))
    >>> shape, apply(params, pnp.ones((2, 3))).shape
    ((-1, 4), (2, 4))
    """

    def init(rng: Any, input_shape: Shape) -> Any:
        first, second = random.split(rng)
        w = W_init(first, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (w, b_init(second, (out_dim,)))

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        w, b = params
        return pnp.dot(inputs, w) + b

    return init, apply


def _shape_after(f: Callable[..., Any], input_shape: Shape, *params: Any) -> Shape:
    """The shape of `f(x, *params)` for `x` of a shape in which -1 stands for the batch."""
    unknown = [i for i, n in enumerate(input_shape) if n == -1]
    size = 1
    given = ShapeDtypeStruct(tuple([size if n == -1 else n for n in input_shape]), pnp.float32)
    found = list(eval_shape(f, given, *params).shape)
    for i in unknown:
        found[i] = -1
    return tuple(found)


def _convolution(
    product: Callable[[Any, Any], Any],
    numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    W_init: Any,
    b_init: Any,
) -> Layer:
    given, kernel, result = numbers
    weights = W_init or glorot_normal(kernel.index("I"), kernel.index("O"))

    def init(rng: Any, input_shape: Shape) -> Any:
        sizes = iter(filter_shape)
        known = {"O": out_chan, "I": input_shape[given.index("C")]}
        kernel_shape = [known[c] if c in known else next(sizes) for c in kernel]
        first, second = random.split(rng)
        w = weights(first, kernel_shape)
        b = b_init(second, [out_chan if c == "C" else 1 for c in result])
        return _shape_after(product, input_shape, w), (w, b)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        w, b = params
        return product(inputs, w) + b

    return init, apply


def GeneralConv(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _TINY,
) -> Layer:
    """A convolution, plus a number for each channel of the result.

    Args:
      dimension_numbers: the axes of the inputs, the kernel and the result, such as
        `("NHWC", "HWIO", "NHWC")`.
      out_chan: the number of channels of the result.
      filter_shape: the sizes of the kernel.
      strides, padding: as for `lax.conv_general_dilated`.
      W_init, b_init: initializers.
    """

    numbers: Any = tuple(dimension_numbers)

    def product(x: Any, w: Any) -> Any:
        steps = strides or (1,) * len(filter_shape)
        return lax.conv_general_dilated(x, w, steps, padding, dimension_numbers=numbers)

    return _convolution(product, dimension_numbers, out_chan, filter_shape, W_init, b_init)


def GeneralConvTranspose(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _TINY,
) -> Layer:
    """A transposed convolution, plus a number for each channel of the result.

    Args:
      dimension_numbers, out_chan, filter_shape, W_init, b_init: as for `GeneralConv`.
      strides, padding: as for `lax.conv_transpose`.
    """

    numbers: Any = tuple(dimension_numbers)

    def product(x: Any, w: Any) -> Any:
        steps = strides or (1,) * len(filter_shape)
        return lax.conv_transpose(x, w, steps, padding, dimension_numbers=numbers)

    return _convolution(product, dimension_numbers, out_chan, filter_shape, W_init, b_init)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: Any = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Standardize over `axis`, then multiply by a parameter and add another.

    Args:
      axis: one axis, or several.
      epsilon: added to the variance.
      center, scale: whether there is something to add, and to multiply with.
      beta_init, gamma_init: initializers of these.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Shape) -> Any:
        shape = tuple([n for i, n in enumerate(input_shape) if i not in axes])
        first, second = random.split(rng)
        beta = beta_init(first, shape) if center else ()
        gamma = gamma_init(second, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        z = standardize(inputs, axes, epsilon=epsilon)
        z = pnp.expand_dims(gamma, axes) * z if scale else z
        return z + pnp.expand_dims(beta, axes) if center else z

    return init, apply


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer without parameters that applies `fun(x, **fun_kwargs)`."""

    def init(rng: Any, input_shape: Shape) -> Any:
        return input_shape, ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return fun(inputs, **fun_kwargs)

    return init, apply


Tanh = elementwise(pnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(pnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = elementwise(lambda x: x)


def _pool(
    reduced: Callable[..., Any],
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Any,
    spec: str | None,
) -> Layer:
    window = list(window_shape)
    steps = list(strides or (1,) * len(window))
    whole = (0, len(window) + 1) if spec is None else (spec.index("N"), spec.index("C"))
    for i in sorted(whole):
        window.insert(i, 1)
        steps.insert(i, 1)

    def pooled(x: Any) -> Any:
        return reduced(x, tuple(window), tuple(steps), padding)

    def init(rng: Any, input_shape: Shape) -> Any:
        return _shape_after(pooled, input_shape), ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return pooled(inputs)

    return init, apply


def _largest(x: Any, window: Shape, steps: Shape, padding: Any) -> Any:
    return lax.reduce_window(x, -pnp.inf, lax.max, window, steps, padding)


def _sum(x: Any, window: Shape, steps: Shape, padding: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, window, steps, padding)


def _mean(x: Any, window: Shape, steps: Shape, padding: Any) -> Any:
    # At a padded edge there are fewer numbers in the window.
    return _sum(x, window, steps, padding) / _sum(pnp.ones_like(x), window, steps, padding)


def MaxPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """The largest numbers of windows.

    Args:
      window_shape: the sizes of a window.
      strides, padding: as for `lax.reduce_window`.
      spec: the axes of the inputs; `"N...C"` if not given.
    """
    return _pool(_largest, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """The sums of windows; parameters as for `MaxPool`."""
    return _pool(_sum, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """The means of windows; parameters as for `MaxPool`."""
    return _pool(_mean, window_shape, strides, padding, spec)


def _flatten() -> Layer:
    def init(rng: Any, input_shape: Shape) -> Any:
        return (input_shape[0], math.prod(input_shape[1:])), ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return pnp.reshape(inputs, (inputs.shape[0], -1))

    return init, apply


Flatten = _flatten()


def FanOut(num: int) -> Layer:
    """`num` times the inputs, for `parallel`."""

    def init(rng: Any, input_shape: Shape) -> Any:
        return [input_shape] * num, ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return [inputs] * num

    return init, apply


def _fan_in_sum() -> Layer:
    def init(rng: Any, input_shape: Sequence[Shape]) -> Any:
        return input_shape[0], ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return sum(inputs)

    return init, apply


FanInSum = _fan_in_sum()


def FanInConcat(axis: int = -1) -> Layer:
    """The inputs, joined along `axis`."""

    def init(rng: Any, input_shape: Sequence[Shape]) -> Any:
        joined = list(input_shape[0])
        joined[axis] = sum([shape[axis] for shape in input_shape])
        return tuple(joined), ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return pnp.concatenate(inputs, axis)

    return init, apply


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Keep numbers with the probability `rate`, and set the others to zero.

    Args:
      rate: the probability of keeping a number, by which it is divided.
      mode: `"train"`; otherwise nothing happens.

    `apply` takes a random key as `rng`; without one it raises `ValueError`.
    """

    def init(rng: Any, input_shape: Shape) -> Any:
        return input_shape, ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "a Dropout layer draws random numbers: call apply(params, inputs, rng=key)"
            )
        if mode != "train":
            return inputs
        return pnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return init, apply


# ---- Layers of layers ---------------------------------------------------------------------------


def _keys(kwargs: dict[str, Any], count: int) -> Any:
    rng = kwargs.pop("rng", None)
    return (None,) * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """Layers, one after the other.

    >>> init, apply = serial(Dense(5), Relu, Dense(2), Softmax)
    >>> _, params = init(random.key(0), (-1, 3))
    >>> apply(params, pnp.ones((4, 3))).shape
    (4, 2)
    """

    def init(rng: Any, input_shape: Any) -> Any:
        params = []
        for start, _ in layers:
            rng, mine = random.split(rng)
            input_shape, found = start(mine, input_shape)
            params.append(found)
        return input_shape, params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs, len(layers))
        for (_, run), mine, key in zip(layers, params, keys, strict=True):
            inputs = run(mine, inputs, rng=key, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Layers side by side: each takes one of the inputs.

    >>> init, apply = serial(FanOut(2), parallel(Dense(3), Identity), FanInSum)
    >>> shape, params = init(random.key(0), (-1, 3))
    >>> shape
    (-1, 3)
    """

    def init(rng: Any, input_shape: Any) -> Any:
        keys = random.split(rng, len(layers))
        found = [
            start(key, shape)
            for (start, _), key, shape in zip(layers, keys, input_shape, strict=True)
        ]
        return tuple([shape for shape, _ in found]), tuple([params for _, params in found])

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs, len(layers))
        return [
            run(mine, x, rng=key, **kwargs)
            for (_, run), mine, x, key in zip(layers, params, inputs, keys, strict=True)
        ]

    return init, apply


def shape_dependent(make_layer: Callable[[Shape], Layer]) -> Layer:
    """The layer `make_layer(input_shape)`, made when the shape is known."""

    def init(rng: Any, input_shape: Shape) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init, apply

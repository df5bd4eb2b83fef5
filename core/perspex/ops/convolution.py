"""`conv_general_dilated`: sums of products of a kernel with the windows it slides over.

    out[n, o, s] = sum over c, k of lhs[n, c, s stride + k rhs_dilation - low] rhs[o, c, k]

where `lhs` is dilated first. It is linear in both operands, and its transposes are convolutions
with the roles of batch and features changed. Feature groups cut the features of `lhs` and the
kernels into groups that meet only each other; batch groups cut the batch of `lhs` instead, which is
what makes the transposes of grouped convolutions convolutions, and batches of them groups.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.errors import ShardingTypeError
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ops import depthwise
from perspex.ops.elementwise import add, complex, imag, real, sub
from perspex.ops.expansions import real_dtype
from perspex.ops.families import product_rule
from perspex.ops.lowering import expand
from perspex.ops.precision import Choice, precision_config
from perspex.ops.shape import rev
from perspex.ops.sliding import Pads, Slide, dilated
from perspex.ops.structural import convert, is_linear, merge_axis, split_axis, without, zeros
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof

Axes = tuple[int, ...]


class ConvDimensionNumbers(NamedTuple):
    """The axes of a convolution by role.

    * `lhs_spec`: batch, features, then the spatial axes of `lhs`;
    * `rhs_spec`: output features, input features, then the spatial axes of the kernel;
    * `out_spec`: batch, features, then the spatial axes of the result.
    """

    lhs_spec: Axes
    rhs_spec: Axes
    out_spec: Axes


class ConvParams(NamedTuple):
    """The params of a convolution, which have these names in a program, as one value."""

    window_strides: Axes
    padding: Pads
    lhs_dilation: Axes
    rhs_dilation: Axes
    dimension_numbers: ConvDimensionNumbers
    feature_group_count: int
    batch_group_count: int
    precision: Choice
    preferred_element_type: np.dtype | None

    @property
    def slides(self) -> list[Slide]:
        """How the window slides along each spatial axis."""
        fields = (self.window_strides, self.padding, self.lhs_dilation, self.rhs_dilation)
        return [Slide(*axis) for axis in zip(*fields, strict=True)]

    def convolve(self, lhs: Any, rhs: Any) -> Any:
        return conv_general_dilated(lhs, rhs, **self._asdict())


class ConvGeneralDilated(Primitive):
    """The convolution; see the module."""

    name = "conv_general_dilated"
    degree = 2
    makes_nan = True
    printed: ClassVar[dict[str, Any]] = {"out_sharding": None}

    def type(self, lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> ShapedArray:
        p = ConvParams(**params)
        _check(self.name, lhs, rhs, p)
        lhs_spec, rhs_spec, out_spec = p.dimension_numbers
        shape = [0] * lhs.ndim
        shape[out_spec[0]] = lhs.shape[lhs_spec[0]] // p.batch_group_count
        shape[out_spec[1]] = rhs.shape[rhs_spec[0]]
        for i, slide in enumerate(p.slides, 2):
            shape[out_spec[i]] = slide.windows(lhs.shape[lhs_spec[i]], rhs.shape[rhs_spec[i]])
        dtype = p.preferred_element_type or lhs.dtype
        return ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type)

    def cut(
        self, out: ShapedArray, lhs: ShapedArray, rhs: ShapedArray, **params: Any
    ) -> cuts.Parts:
        p = ConvParams(**params)
        lhs_spec, _, out_spec = p.dimension_numbers
        given = cuts.parts(lhs)
        if rhs.cut is not None or given[lhs_spec[1]]:
            raise ShardingTypeError(
                "Please specify the output sharding via `out_sharding` parameter of "
                f"`conv_general_dilated`: the operands have types {lhs.str_short()} and "
                f"{rhs.str_short()}"
            )
        order = [lhs_spec[out_spec.index(i)] for i in range(out.ndim)]
        turned = lhs.update(
            shape=tuple([lhs.shape[i] for i in order]),
            sharding=None if lhs.cut is None else lhs.cut.update(spec=[given[i] for i in order]),
        )
        return cuts.resized(self.name, turned, out)

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        # Products with padding among them.
        kernel, out_features = operands[1], params["dimension_numbers"].rhs_spec[0]
        terms = kernel.size // max(1, kernel.shape[out_features])
        return 2.0 * results[0].size * terms

    def lower(self, b: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
        p = ConvParams(**params)
        (out,) = b.out_avals
        kernel = b.in_avals[1].shape
        if 0 in [kernel[i] for i in p.dimension_numbers.rhs_spec[2:]]:
            raise ValueError(
                f"{self.name}: the window has no elements, as rhs has the shape {kernel}; "
                "XLA needs windows of at least one element along each axis"
            )
        groups, avals = p.batch_group_count, [aval.uncut() for aval in b.in_avals]
        if groups > 1 and b.platform == "cpu":
            # XLA does the same, but only after it has ended the process for some shardings.
            at, into, *_ = p.dimension_numbers.lhs_spec
            by_features = p._replace(feature_group_count=groups, batch_group_count=1)

            def convolve(x: Any, y: Any) -> Any:
                return by_features.convolve(merge_axis(split_axis(x, at, groups), at, into), y)

            return expand(b, convolve, lhs, rhs, avals=avals)[0]
        numbers, features = p.dimension_numbers, p.feature_group_count
        if b.platform == "cpu" and depthwise.is_written_out(avals, out, numbers, features):
            write = partial(depthwise.written_out, out=out, numbers=numbers, slides=p.slides)
            return expand(b, write, lhs, rhs, avals=avals)[0]
        if out.dtype.kind != "c":
            return _emit(b, lhs, rhs, p)
        # XLA convolves real numbers only on accelerators; three products make one of complex ones,
        # by Gauss: (a + ib)(c + id) = t - b(c + d) + i(t + a(d - c)) with t = c(a + b).
        part = real_dtype(out.dtype)
        product = p._replace(preferred_element_type=part).convolve

        def gauss(x: Any, y: Any) -> Any:
            (a, b_), (c, d) = [(convert(real(z), part), convert(imag(z), part)) for z in (x, y)]
            total = product(add(a, b_), c)
            return complex(sub(total, product(b_, add(c, d))), add(total, product(a, sub(d, c))))

        return expand(b, gauss, lhs, rhs)[0]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        return product_rule(self, primals, tangents, params)

    def transpose(self, ct: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
        linear = lhs if is_linear(lhs) else rhs
        left, right = typeof(lhs), typeof(rhs)
        if 0 in (*left.shape, *right.shape, *typeof(ct).shape):
            found = zeros(linear.aval.strip_weak_type())
        else:
            # A convolution in a wider type: what comes back is rounded once.
            dtype = typeof(ct).dtype
            p = ConvParams(**params)._replace(preferred_element_type=None)
            if is_linear(lhs):
                found = _back_to_lhs(ct, convert(rhs, dtype), left, p)
            else:
                found = _back_to_rhs(ct, convert(lhs, dtype), right, p)
            found = convert(found, linear.dtype)
        return [found, None] if is_linear(lhs) else [None, found]

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        p = ConvParams(**params)
        (lhs, rhs), (lhs_at, rhs_at) = operands, axes
        if axis_size == 0:  # an axis of no elements does not come apart again
            one = [
                typeof(x) if at is None else typeof(x).update(shape=without(typeof(x).shape, [at]))
                for x, at in zip(operands, axes, strict=True)
            ]
            out = self.type(*one, **params)
            return zeros(out.update(shape=(0, *out.shape))), 0
        lhs_spec, rhs_spec, out_spec = p.dimension_numbers
        groups = p.feature_group_count * p.batch_group_count
        if lhs_at is not None and rhs_at is not None:
            # Each element of the batch is a group.
            over_batch = p.batch_group_count > 1
            lhs = merge_axis(lhs, lhs_at, lhs_spec[0] if over_batch else lhs_spec[1])
            rhs = merge_axis(rhs, rhs_at, rhs_spec[0])
            if over_batch:
                p = p._replace(batch_group_count=p.batch_group_count * axis_size)
            else:
                p = p._replace(feature_group_count=p.feature_group_count * axis_size)
        elif lhs_at is not None:
            # More of the batch, within each of its groups.
            lhs = _merge_within(lhs, lhs_at, lhs_spec[0], p.batch_group_count)
        else:
            # More output features, within each group.
            rhs = _merge_within(rhs, rhs_at, rhs_spec[0], groups)
        out = p.convolve(lhs, rhs)
        if rhs_at is None:
            return split_axis(out, out_spec[0], axis_size), out_spec[0]
        if lhs_at is not None or groups == 1:
            return split_axis(out, out_spec[1], axis_size), out_spec[1]
        out = split_axis(out, out_spec[1], groups)
        out = split_axis(out, out_spec[1] + 1, axis_size)
        # Groups, batch, features: bring groups and features together.
        return merge_axis(out, out_spec[1], out_spec[1] + 1), out_spec[1]


def _emit(b: Any, lhs: Any, rhs: Any, p: ConvParams) -> Any:
    return b.op(
        "stablehlo.convolution",
        lhs,
        rhs,
        attributes={
            "window_strides": types.integers(p.window_strides),
            "padding": types.matrix(p.padding),
            "lhs_dilation": types.integers(p.lhs_dilation),
            "rhs_dilation": types.integers(p.rhs_dilation),
            "window_reversal": types.booleans((False,) * len(p.padding)),
            "dimension_numbers": types.attribute(_written(p.dimension_numbers)),
            "feature_group_count": types.integer(p.feature_group_count),
            "batch_group_count": types.integer(p.batch_group_count),
            "precision_config": precision_config(p.precision),
        },
    )


# ---- Transposes ---------------------------------------------------------------------------------


def _back_to_lhs(ct: Any, rhs: Any, lhs: ShapedArray, p: ConvParams) -> Any:
    lhs_spec, rhs_spec, out_spec = p.dimension_numbers
    sizes = [
        (lhs.shape[i], typeof(rhs).shape[j], typeof(ct).shape[k])
        for i, j, k in zip(lhs_spec[2:], rhs_spec[2:], out_spec[2:], strict=True)
    ]
    pads = [slide.padding_back(*ns) for slide, ns in zip(p.slides, sizes, strict=True)]
    groups = p.feature_group_count * p.batch_group_count
    if groups > 1:
        # Kernel (g, o), c becomes kernel (g, c), o: each group keeps its own.
        rhs = split_axis(rhs, rhs_spec[0], groups)
        rhs = merge_axis(rhs, rhs_spec[0], rhs_spec[1])
    if len(rhs_spec) > 2:
        rhs = rev(rhs, dimensions=rhs_spec[2:])
    back = p._replace(
        window_strides=p.lhs_dilation,
        padding=tuple(pads),
        lhs_dilation=p.window_strides,
        dimension_numbers=ConvDimensionNumbers(out_spec, _swapped(rhs_spec), lhs_spec),
        feature_group_count=groups,
        batch_group_count=1,
    )
    found = back.convolve(ct, rhs)
    if p.batch_group_count > 1:
        found = split_axis(found, lhs_spec[1], p.batch_group_count)
        found = merge_axis(found, lhs_spec[1], lhs_spec[0])
    return found


def _back_to_rhs(ct: Any, lhs: Any, rhs: ShapedArray, p: ConvParams) -> Any:
    lhs_spec, rhs_spec, out_spec = p.dimension_numbers
    ct_shape, lhs_shape = typeof(ct).shape, typeof(lhs).shape
    pads = []
    for i, slide in enumerate(p.slides, 2):
        # The cotangent slides over lhs and stops when each element of the kernel was met.
        reach = dilated(ct_shape[out_spec[i]], slide.stride)
        places = dilated(lhs_shape[lhs_spec[i]], slide.base)
        kernel = dilated(rhs.shape[rhs_spec[i]], slide.gap)
        low, _ = slide.padding
        pads.append((low, kernel + reach - places - low - 1))
    back = p._replace(
        window_strides=p.rhs_dilation,
        padding=tuple(pads),
        rhs_dilation=p.window_strides,
        dimension_numbers=ConvDimensionNumbers(
            _swapped(lhs_spec), _swapped(out_spec), _swapped(rhs_spec)
        ),
        # Sums over the batch: what were groups of features are now groups of the batch.
        feature_group_count=p.batch_group_count,
        batch_group_count=p.feature_group_count,
    )
    return back.convolve(lhs, ct)


# ---- Axes ---------------------------------------------------------------------------------------


def _merge_within(x: Any, source: int, axis: int, groups: int) -> Any:
    """Merge axis `source` into `axis`, between its groups and what they hold."""
    if groups == 1:
        return merge_axis(x, source, axis)
    # Groups in front, then the new axis, then the rest of the old one.
    x = split_axis(x, axis + (axis >= source), groups)
    slow = axis + (axis >= source)
    x = merge_axis(x, source + (source > slow), axis + 1)
    return merge_axis(x, axis, axis)


def _swapped(spec: Axes) -> Axes:
    """The axes with the roles of the first two exchanged."""
    return (spec[1], spec[0], *spec[2:])


def _written(numbers: ConvDimensionNumbers) -> str:
    """The dimension numbers as MLIR writes them: `[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]`."""
    parts = []
    for spec, letters in zip(numbers, ("bf", "oi", "bf"), strict=True):
        names = {axis: letters[i] if i < 2 else str(i - 2) for i, axis in enumerate(spec)}
        parts.append(f"[{', '.join([names[i] for i in range(len(spec))])}]")
    return f"#stablehlo.conv<{parts[0]}x{parts[1]}->{parts[2]}>"


# ---- Checks -------------------------------------------------------------------------------------


def _check(name: str, lhs: ShapedArray, rhs: ShapedArray, p: ConvParams) -> None:
    """Raise `TypeError` or `ValueError` unless the params fit the operands."""
    _check_dtypes(name, lhs, rhs, p.preferred_element_type)
    _check_groups(name, lhs, rhs, p.dimension_numbers, p.feature_group_count)
    _check_batches(name, lhs, rhs, p.dimension_numbers, p.batch_group_count)
    if p.feature_group_count > 1 and p.batch_group_count > 1:
        raise ValueError(
            f"{name}: at most one of feature_group_count and batch_group_count may exceed 1, got "
            f"{p.feature_group_count} and {p.batch_group_count}"
        )
    if lhs.ndim < 2:
        raise TypeError(
            f"{name} takes a batch axis, a feature axis and spatial axes, got shape {lhs.shape}"
        )
    for word in ("window_strides", "padding", "lhs_dilation", "rhs_dilation"):
        values = getattr(p, word)
        if len(values) != lhs.ndim - 2:
            raise ValueError(
                f"{name}: window and {word} must have the same number of dimensions, got "
                f"{lhs.ndim - 2} and {len(values)}"
            )
        if word != "padding" and any(v < 1 for v in values):
            raise ValueError(f"{name}: {word} must be positive, got {values}")


def _check_dtypes(name: str, lhs: ShapedArray, rhs: ShapedArray, preferred: Any) -> None:
    for aval in (lhs, rhs):
        if aval.is_extended:
            raise TypeError(f"{name} does not accept dtype {aval.dtype.name}")
    if lhs.dtype != rhs.dtype:
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got {lhs.dtype.name}, "
            f"{rhs.dtype.name}; convert one of them"
        )
    if preferred is None:
        return
    kinds = [
        next((k for k in (np.complexfloating, np.floating) if dtypes.issubdtype(d, k)), None)
        for d in (lhs.dtype, preferred)
    ]
    integers = dtypes.issubdtype(lhs.dtype, np.integer)
    if kinds[0] is not kinds[1] and not (integers and kinds[1] is np.floating):
        raise TypeError(
            f"{name}: preferred_element_type {preferred.name} and the operands' dtype "
            f"{lhs.dtype.name} must be of one kind, integer, floating or complex"
        )


def _check_groups(
    name: str, lhs: ShapedArray, rhs: ShapedArray, numbers: ConvDimensionNumbers, groups: int
) -> None:
    if groups < 1:
        raise ValueError(f"{name}: feature_group_count must be a positive integer, got {groups}")
    features, taken = lhs.shape[numbers.lhs_spec[1]], rhs.shape[numbers.rhs_spec[1]]
    made = rhs.shape[numbers.rhs_spec[0]]
    if features % groups or features // groups != taken:
        raise ValueError(
            f"{name}: the input features of lhs, divided by feature_group_count, must be those of "
            f"the kernel, got {features} / {groups} and {taken} for shapes {lhs.shape} and "
            f"{rhs.shape} with {numbers}"
        )
    if made % groups:
        raise ValueError(
            f"{name}: feature_group_count {groups} must divide the output features {made} of the "
            f"kernel of shape {rhs.shape}"
        )


def _check_batches(
    name: str, lhs: ShapedArray, rhs: ShapedArray, numbers: ConvDimensionNumbers, groups: int
) -> None:
    if groups < 1:
        raise ValueError(f"{name}: batch_group_count must be a positive integer, got {groups}")
    batch, made = lhs.shape[numbers.lhs_spec[0]], rhs.shape[numbers.rhs_spec[0]]
    if batch % groups or made % groups:
        raise ValueError(
            f"{name}: batch_group_count {groups} must divide the batch {batch} of lhs and the "
            f"output features {made} of the kernel"
        )


conv_general_dilated = ConvGeneralDilated()

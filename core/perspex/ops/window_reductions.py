"""Reductions of sliding windows: sums, maxima, minima, and what their derivatives are made of.

The derivative of a maximum takes the tangent of the element that it is. `select_and_gather_add`
gets it: it reduces pairs, and of each two keeps the one whose first number is greater. It is linear
in the tangents; its transpose `select_and_scatter_add` adds cotangents up where the maxima are, and
each is the transpose of the other, so that all derivatives of pooling exist. Where elements of a
window tie, the first one counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ew
from perspex.ops.families import NUMBER, ORDERED, REAL, check_dtype
from perspex.ops.indexing import scatter_add
from perspex.ops.lowering import expand
from perspex.ops.reductions import emit_region, highest, lowest
from perspex.ops.shape import iota, pad
from perspex.ops.sliding import Pads, Slide
from perspex.ops.structural import Structural, check_rank, inserted, reshape, to_front, zeros
from perspex.ops.windows import FILL_OR_DROP, ScatterDimensionNumbers
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof

Axes = tuple[int, ...]


# ---- Shapes -------------------------------------------------------------------------------------


class WindowParams(NamedTuple):
    """The params of a reduction of windows, which have these names in a program, as one value."""

    window_dimensions: Axes
    window_strides: Axes
    padding: Pads
    base_dilation: Axes
    window_dilation: Axes

    @property
    def slides(self) -> list[Slide]:
        """How the window slides along each axis."""
        _, *fields = self
        return [Slide(*axis) for axis in zip(*fields, strict=True)]

    def check(self, name: str, ndim: int) -> None:
        """Raise `TypeError` unless each axis has an entry, positive except for the padding."""
        for word in ("window_dimensions", "window_strides", "base_dilation", "window_dilation"):
            values = getattr(self, word)
            check_rank(name, word, values, ndim)
            if any(v < 1 for v in values):
                raise TypeError(
                    f"{name} {word} must have every element be strictly positive, got {values}"
                )
        check_rank(name, "padding", self.padding, ndim)

    def counts(self, shape: Sequence[int]) -> Axes:
        """How many windows there are along each axis."""
        axes = zip(self.slides, shape, self.window_dimensions, strict=True)
        return tuple([slide.windows(n, k) for slide, n, k in axes])


def window_shape(shape: Sequence[int], **params: Any) -> Axes:
    """How many windows there are along each axis."""
    return WindowParams(**params).counts(shape)


def window_type(name: str, x: ShapedArray, **params: Any) -> Axes:
    """The shape of a reduction of windows, after checks."""
    windows = WindowParams(**params)
    windows.check(name, x.ndim)
    return windows.counts(x.shape)


def batched_windows(params: dict[str, Any], at: int) -> dict[str, Any]:
    """The params of windows that do not reach along a new axis `at`."""
    return {
        name: inserted(values, at, (0, 0) if name == "padding" else 1)
        for name, values in params.items()
    }


def emit_windows(
    b: Any, operands: Sequence[Any], inits: Sequence[Any], avals: Sequence[ShapedArray], params: Any
) -> Any:
    """Emit a `reduce_window` whose region is yet empty."""
    return b.ops(
        "stablehlo.reduce_window",
        [*operands, *inits],
        avals,
        {
            "window_dimensions": types.integers(params["window_dimensions"]),
            "window_strides": types.integers(params["window_strides"]),
            "base_dilations": types.integers(params["base_dilation"]),
            "window_dilations": types.integers(params["window_dilation"]),
            "padding": types.matrix(params["padding"]),
        },
        regions=1,
    )


class WindowReduction(Primitive):
    """One number for each window."""

    accepts = ORDERED

    def type(self, x: ShapedArray, **params: Any) -> ShapedArray:
        check_dtype(self.name, x.dtype, self.accepts)
        return ShapedArray(window_type(self.name, x, **params), x.dtype, x.weak_type)

    def cut(self, out: ShapedArray, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.resized(self.name, x, out)

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return float(results[0].size * math.prod(params["window_dimensions"]))


# ---- Sums ---------------------------------------------------------------------------------------


class ReduceWindowSum(Structural, WindowReduction):
    """The sum of each window."""

    name = "reduce_window_sum"
    accepts = NUMBER
    makes_nan = True

    def lower(self, b: Any, x: Any, **params: Any) -> Any:
        return _lower_monoid(b, ew.add, 0, x, params)

    def transpose(self, ct: Any, x: Any, **params: Any) -> Any:
        if 0 in x.shape or 0 in typeof(ct).shape:
            return [zeros(x.aval.strip_weak_type())]
        p, m = WindowParams(**params), typeof(ct).shape
        axes = zip(p.slides, x.shape, p.window_dimensions, m, strict=True)
        pads = [slide.padding_back(*sizes) for slide, *sizes in axes]
        strides, none = p.window_strides, (1,) * x.ndim
        if any(step > 1 for step in strides) or any(n < 0 for pair in pads for n in pair):
            # Dilate the cotangents here: XLA reduces windows of what has no gaps much faster.
            config = tuple([(*pair, step - 1) for pair, step in zip(pads, strides, strict=True)])
            ct = pad(ct, typeof(ct).dtype.type(0), padding_config=config)
            pads = [(0, 0)] * x.ndim
        back = p._replace(window_strides=p.base_dilation, padding=tuple(pads), base_dilation=none)
        found = self(ct, **back._asdict())
        return [found]

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        return self(*operands, **batched_windows(params, axes[0])), axes[0]


def _lower_monoid(b: Any, combine: Primitive, identity: Any, x: Any, params: Any) -> Any:
    (out,) = b.out_avals
    scalar = ShapedArray((), out.dtype)
    reduce = emit_windows(b, [x], [b.constant(identity, scalar)], [out], params)
    emit_region(b, reduce.regions[0], combine, scalar)
    return reduce.result


# ---- Extrema ------------------------------------------------------------------------------------


class ReduceWindowExtremum(WindowReduction):
    """The greatest or the least element of each window; where there is none, the limit."""

    def __init__(self, name: str, combine: Primitive, select: str) -> None:
        super().__init__()
        self.name = name
        self.combine = combine
        self.select = select

    def identity(self, dtype: np.dtype) -> Any:
        return lowest(dtype) if self.combine is ew.max else highest(dtype)

    def lower(self, b: Any, x: Any, **params: Any) -> Any:
        return _lower_monoid(b, self.combine, self.identity(b.out_avals[0].dtype), x, params)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        out = self(x, **params)
        if t is None:
            return out, None
        return out, select_and_gather_add(t, x, select_prim=self.select, **params)

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        return self(*operands, **batched_windows(params, axes[0])), axes[0]


# ---- Their derivatives --------------------------------------------------------------------------

_WORST = {"ge": lowest, "le": highest}


def _check_selection(name: str, first: ShapedArray, operand: ShapedArray, select: str) -> None:
    if select not in _WORST:
        raise ValueError(f"{name}: select_prim must be 'ge' or 'le', got {select!r}")
    check_dtype(name, operand.dtype, REAL)
    check_dtype(name, first.dtype, NUMBER)


def _emit_choice(b: Any, region: Any, select: str, value: ShapedArray, other: ShapedArray) -> None:
    """The function of two pairs that gives the one whose first number is ahead."""
    with b.block(region, [value, other, value, other]) as (inner, (left, i, right, j)):
        ahead = inner.compare(select.upper(), left, right, value)
        best = inner.op("stablehlo.select", ahead, left, right, aval=value)
        theirs = inner.op("stablehlo.select", ahead, i, j, aval=other)
        inner.terminate("stablehlo.return", [best, theirs])


class SelectAndGatherAdd(Primitive):
    """Of each window of `operand` the element of `tangents` where the extreme is; 0 where none."""

    name = "select_and_gather_add"

    def type(
        self, tangents: ShapedArray, operand: ShapedArray, *, select_prim: str, **params: Any
    ) -> ShapedArray:
        _check_selection(self.name, tangents, operand, select_prim)
        if tangents.shape != operand.shape:
            raise TypeError(
                f"{self.name}: tangents and operand must have equal shapes, got {tangents.shape} "
                f"and {operand.shape}"
            )
        return ShapedArray(window_type(self.name, operand, **params), tangents.dtype)

    def cut(
        self, out: ShapedArray, tangents: ShapedArray, operand: ShapedArray, **params: Any
    ) -> cuts.Parts:
        return cuts.resized(self.name, operand, out)

    def lower(self, b: Any, tangents: Any, operand: Any, *, select_prim: str, **params: Any) -> Any:
        (given, keys), (out,) = b.in_avals, b.out_avals
        value, other = ShapedArray((), keys.dtype), ShapedArray((), given.dtype)
        inits = [b.constant(_WORST[select_prim](keys.dtype), value), b.constant(0, other)]
        avals = [ShapedArray(out.shape, keys.dtype), out]
        reduce = emit_windows(b, [operand, tangents], inits, avals, params)
        _emit_choice(b, reduce.regions[0], select_prim, value, other)
        return reduce.results[1]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        # Which elements are chosen is locally constant.
        t = tangents[0]
        return self(*primals, **params), None if t is None else self(t, primals[1], **params)

    def transpose(self, ct: Any, tangents: Any, operand: Any, **params: Any) -> Any:
        return [select_and_scatter_add(ct, operand, **params), None]

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        return _batch_selection(self, axis_size, operands, axes, params)


class SelectAndScatterAdd(Primitive):
    """Zeros like `operand`, with each element of `source` added where its window is extreme."""

    name = "select_and_scatter_add"
    # Named by JAX only where it has them.
    quiet: ClassVar[dict[str, Any]] = {"base_dilation": ..., "window_dilation": ...}

    def type(
        self, source: ShapedArray, operand: ShapedArray, *, select_prim: str, **params: Any
    ) -> ShapedArray:
        _check_selection(self.name, source, operand, select_prim)
        shape = window_type(self.name, operand, **params)
        if source.shape != shape:
            raise TypeError(
                f"{self.name}: source must have the shape of the windows, {shape}, "
                f"got {source.shape}"
            )
        return ShapedArray(operand.shape, source.dtype)

    def cut(
        self, out: ShapedArray, source: ShapedArray, operand: ShapedArray, **params: Any
    ) -> cuts.Parts:
        return cuts.parts(operand)

    def lower(self, b: Any, source: Any, operand: Any, *, select_prim: str, **params: Any) -> Any:
        given, keys = b.in_avals
        if 0 in given.shape or 0 in keys.shape:
            return b.constant(0, b.out_avals[0])
        dilations = (*params["base_dilation"], *params["window_dilation"])
        if all(d == 1 for d in dilations) and all(n >= 0 for p in params["padding"] for n in p):
            return self._emit(b, source, operand, select_prim, params)
        return self._by_places(b, source, operand, select_prim, params)

    def _emit(self, b: Any, source: Any, operand: Any, select: str, params: Any) -> Any:
        given, keys = b.in_avals
        (out,) = b.out_avals
        pads, ndim = params["padding"], keys.ndim
        padded, whole = keys, out
        if any(p != (0, 0) for p in pads):
            # XLA's CPU backend takes no padding here.
            shape = [n + low + high for n, (low, high) in zip(keys.shape, pads, strict=True)]
            padded, whole = keys.update(shape=tuple(shape)), out.update(shape=tuple(shape))
            worst = b.constant(_WORST[select](keys.dtype), ShapedArray((), keys.dtype))
            operand = b.op(
                "stablehlo.pad",
                operand,
                worst,
                attributes={
                    "edge_padding_low": types.integers(tuple([p[0] for p in pads])),
                    "edge_padding_high": types.integers(tuple([p[1] for p in pads])),
                    "interior_padding": types.integers((0,) * ndim),
                },
                aval=padded,
            )
        value, scalar = ShapedArray((), keys.dtype), ShapedArray((), given.dtype)
        found = b.ops(
            "stablehlo.select_and_scatter",
            [operand, source, b.constant(0, scalar)],
            [whole],
            {
                "window_dimensions": types.integers(params["window_dimensions"]),
                "window_strides": types.integers(params["window_strides"]),
                "padding": types.matrix(((0, 0),) * ndim),
            },
            regions=2,
        )
        with b.block(found.regions[0], [value, value]) as (inner, (left, right)):
            inner.terminate("stablehlo.return", [inner.compare(select.upper(), left, right, value)])
        emit_region(b, found.regions[1], ew.add, scalar)
        if whole is out:
            return found.result
        lows = tuple([p[0] for p in pads])
        return b.op(
            "stablehlo.slice",
            found.result,
            attributes={
                "start_indices": types.integers(lows),
                "limit_indices": types.integers(
                    tuple([low + n for low, n in zip(lows, keys.shape, strict=True)])
                ),
                "strides": types.integers((1,) * ndim),
            },
        )

    def _by_places(self, b: Any, source: Any, operand: Any, select: str, params: Any) -> Any:
        """What `select_and_scatter` cannot express: find the places, then add there."""
        given, keys = b.in_avals
        int32 = np.dtype("int32")
        value, place = ShapedArray((), keys.dtype), ShapedArray((), int32)
        everywhere = ShapedArray(keys.shape, int32)
        (places,) = expand(b, lambda: _places(keys.shape), avals=[])
        inits = [
            b.constant(_WORST[select](keys.dtype), value),
            # Windows without an element have their place outside the array.
            b.constant(keys.size, place),
        ]
        avals = [ShapedArray(given.shape, keys.dtype), everywhere.update(shape=given.shape)]
        reduce = emit_windows(b, [operand, places], inits, avals, params)
        _emit_choice(b, reduce.regions[0], select, value, place)

        def add_up(source: Any, places: Any) -> Any:
            found = scatter_add(
                zeros(ShapedArray((keys.size,), given.dtype)),
                reshape(places, new_sizes=(given.size, 1)),
                reshape(source, new_sizes=(given.size,)),
                dimension_numbers=ScatterDimensionNumbers((), (0,), (0,)),
                indices_are_sorted=False,
                unique_indices=False,
                mode=FILL_OR_DROP,
            )
            return reshape(found, new_sizes=keys.shape)

        return expand(b, add_up, source, reduce.results[1], avals=[given, avals[1]])[0]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        t = tangents[0]
        return self(*primals, **params), None if t is None else self(t, primals[1], **params)

    def transpose(self, ct: Any, source: Any, operand: Any, **params: Any) -> Any:
        return [select_and_gather_add(ct, operand, **params), None]

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        return _batch_selection(self, axis_size, operands, axes, params)


def _places(shape: Axes) -> Any:
    """The number of each element, in row-major order."""
    flat = iota(dtype=np.dtype("int32"), shape=(math.prod(shape),), dimension=0)
    return reshape(flat, new_sizes=shape)


def _batch_selection(
    primitive: Primitive, axis_size: int, operands: Any, axes: Any, params: dict[str, Any]
) -> Any:
    first, second = [to_front(x, at, axis_size) for x, at in zip(operands, axes, strict=True)]
    select = params.pop("select_prim")
    return primitive(first, second, select_prim=select, **batched_windows(params, 0)), 0


reduce_window_sum = ReduceWindowSum()
reduce_window_max = ReduceWindowExtremum("reduce_window_max", ew.max, "ge")
reduce_window_min = ReduceWindowExtremum("reduce_window_min", ew.min, "le")
select_and_gather_add = SelectAndGatherAdd()
select_and_scatter_add = SelectAndScatterAdd()

"""Reductions of one operand along axes, and the positions of extremes.

`reduce_sum`, which the rules of transposition are written with, is in `structural`. Reductions by
any function hold a program and stand with the other higher-order operations, in `control.reduce`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from perspex import dtypes
from perspex.base.dimensions import is_at_least, may_exceed
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.layout.abstract import UnreducedKind
from perspex.layout.named import NamedSharding
from perspex.ops import elementwise as ew
from perspex.ops.elementwise import div, eq, mul, select
from perspex.ops.families import ANY, BITS, NUMBER, ORDERED, check_dtype
from perspex.ops.lowering import expand
from perspex.ops.shape import concatenate, iota, part
from perspex.ops.structural import (
    batch_reduction,
    broadcast_in_dim,
    check_axes,
    convert,
    full_like,
    reduce_sum,
    reshape,
    transpose,
    without,
)
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof


def lowest(dtype: np.dtype) -> Any:
    """The number that the maximum with any other leaves: minus infinity, where there is one."""
    return _extreme(dtype, -1)


def highest(dtype: np.dtype) -> Any:
    """The number that the minimum with any other leaves."""
    return _extreme(dtype, 1)


def _extreme(dtype: np.dtype, sign: int) -> Any:
    if dtype.kind == "b":
        return np.bool_(sign > 0)
    if dtypes.issubdtype(dtype, np.integer):
        whole = dtypes.iinfo(dtype)
        return dtype.type(whole.max if sign > 0 else whole.min)
    infinite = dtype.type(sign * np.inf)
    if dtype.kind == "c" or np.isinf(infinite):
        return infinite
    info = dtypes.finfo(dtype)  # a float8 without infinities
    return info.max if sign > 0 else info.min


def emit_reduce(
    b: Any,
    combine: Primitive,
    identity: Any,
    x: Any,
    axes: tuple[int, ...],
    out: ShapedArray | None = None,
) -> Any:
    """Emit the reduction of `x` along `axes` by the elementwise primitive `combine`.

    The result has type `out`, that of the equation if not given.
    """
    out = b.out_avals[0] if out is None else out
    scalar = ShapedArray((), out.dtype)
    init = b.constant(identity, scalar)
    reduce = b.ops(
        "stablehlo.reduce", [x, init], [out], {"dimensions": types.integers(axes)}, regions=1
    )
    emit_region(b, reduce.regions[0], combine, scalar)
    return reduce.result


def emit_region(b: Any, region: Any, combine: Primitive, scalar: ShapedArray) -> None:
    """Fill `region` with the function of two scalars that `combine` is."""
    with b.block(region, [scalar, scalar]) as (inner, operands):
        inner.in_avals, inner.out_avals = [scalar, scalar], [scalar]
        inner.terminate("stablehlo.return", [combine.lower(inner, *operands)])


class Reduction(Primitive):
    """A reduction by an associative operation with an identity."""

    # The operation, and the dtypes that it reduces.
    combine: Primitive
    kind: str

    def identity(self, dtype: np.dtype) -> Any:
        raise NotImplementedError

    def type(self, x: ShapedArray, *, axes: tuple[int, ...], **params: Any) -> ShapedArray:
        check_axes(self.name, axes, x.ndim)
        check_dtype(self.name, x.dtype, self.kind)
        weak = x.weak_type and self.kind is not BITS
        return ShapedArray(without(x.shape, axes), x.dtype, weak)

    def cut(
        self, out: ShapedArray, x: ShapedArray, *, axes: tuple[int, ...], **params: Any
    ) -> cuts.Parts:
        return cuts.without(cuts.parts(x), axes)

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return float(operands[0].size)

    def check_asked(
        self, asked: NamedSharding, avals: Sequence[ShapedArray], params: dict[str, Any]
    ) -> None:
        if not asked.spec.is_plain:
            cuts.check_summed(self.name, asked, avals[0], params["axes"], self.sums)

    # How its results can be unreduced.
    sums: UnreducedKind | None = None

    def lower(self, b: Any, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        return emit_reduce(b, self.combine, self.identity(b.in_avals[0].dtype), x, axes)

    def jvp(self, primals: Any, tangents: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        out = self(x, axes=axes, **params)
        return out, None if t is None else self.tangent(t, x, out, axes)

    def tangent(self, t: Any, x: Any, out: Any, axes: tuple[int, ...]) -> Any:
        return None

    def batch(
        self, axis_size: int, operands: Any, axes_: Any, *, axes: tuple[int, ...], **params: Any
    ) -> Any:
        return batch_reduction(self, operands[0], axes_[0], axes, **params)


# XLA's CPU backend gives reductions of 4096 elements and more to a library whose extrema leave NaNs
# out (jaxlib 0.10 to 0.12). Below a fourth of that, with some margin, its own loops are right.
_EXACT_EXTREMA = 1_024


def _loses_nans(b: Any, given: ShapedArray) -> bool:
    """Whether XLA's maximum and minimum of so many elements may leave NaNs out."""
    floating = dtypes.issubdtype(given.dtype, np.floating)
    return b.platform == "cpu" and floating and may_exceed(given.size, _EXACT_EXTREMA)


class ReduceExtremum(Reduction):
    """The greatest or the least element; NaN where there is one. Complex: by real part first.

    Elements that tie share the derivative, which is NaN where the result is. With
    `keeps_nans=False` a NaN may be left out, which can save a pass.
    """

    kind = ANY
    quiet: ClassVar[dict[str, Any]] = {"keeps_nans": False}
    printed: ClassVar[dict[str, Any]] = {"out_sharding": None}

    def __init__(self, name: str, combine: Primitive) -> None:
        super().__init__()
        self.name = name
        self.combine = combine

    def identity(self, dtype: np.dtype) -> Any:
        return lowest(dtype) if self.combine is ew.max else highest(dtype)

    def lower(
        self, b: Any, x: Any, *, axes: tuple[int, ...], keeps_nans: bool = True, **params: Any
    ) -> Any:
        (given,), (out,) = b.in_avals, b.out_avals
        found = self.plain(b, x, given, out, axes)
        if not (keeps_nans and _loses_nans(b, given)):
            return found
        nans = b.compare("NE", x, x, given)
        flags = out.update(dtype=np.dtype(bool))
        any_nan = emit_reduce(b, ew.bitwise_or, False, nans, axes, flags)
        return b.op("stablehlo.select", any_nan, b.constant(np.nan, out), found)

    def plain(self, b: Any, x: Any, given: ShapedArray, out: ShapedArray, axes: Any) -> Any:
        """Emit the reduction as XLA does it: what it makes of NaNs is in `_loses_nans`."""
        return emit_reduce(b, self.combine, self.identity(given.dtype), x, axes, out)

    def tangent(self, t: Any, x: Any, out: Any, axes: tuple[int, ...]) -> Any:
        shape = typeof(x).shape
        kept = tuple([i for i in range(len(shape)) if i not in axes])
        reached = eq(x, broadcast_in_dim(out, shape=shape, broadcast_dimensions=kept))
        # Products, and no `select`: nothing equals a NaN, and 0/0 has to reach the elements.
        part = convert(reached, typeof(x).dtype)
        count = reduce_sum(part, axes=axes)
        return div(reduce_sum(ew.mul(t, part), axes=axes), count)


class ReduceProd(Reduction):
    """The product."""

    name = "reduce_prod"
    makes_nan = True
    kind = NUMBER
    combine = ew.mul

    def identity(self, dtype: np.dtype) -> Any:
        return 1

    def tangent(self, t: Any, x: Any, out: Any, axes: tuple[int, ...]) -> Any:
        x, t = _rows(x, axes), _rows(t, axes)
        if typeof(x).shape[0] == 0:
            return None  # the product of nothing is one
        # Halve by d(ab) = da b + a db. Unlike the product divided by each factor, zeros are fine.
        while (n := typeof(x).shape[0]) > 1:
            half = n // 2
            a, b, x = _cut(x, half)
            da, db, t = _cut(t, half)
            product, change = mul(a, b), ew.add(mul(da, b), mul(a, db))
            if n % 2:
                product = concatenate(product, x, dimension=0)
                change = concatenate(change, t, dimension=0)
            x, t = product, change
        return reshape(t, new_sizes=typeof(out).shape)


def _rows(x: Any, axes: Sequence[int]) -> Any:
    """`x` with the axes that are reduced merged into one, in front."""
    shape = typeof(x).shape
    kept = [i for i in range(len(shape)) if i not in axes]
    x = transpose(x, permutation=(*axes, *kept))
    rest = without(shape, axes)
    size = int(np.prod([shape[i] for i in axes], dtype=np.int64))
    return reshape(x, new_sizes=(size, *rest))


def _cut(x: Any, half: int) -> tuple[Any, Any, Any]:
    """The first `half` rows, as many again, and the rest."""
    shape = typeof(x).shape
    ends = (0, half, 2 * half, shape[0])
    first, second, rest = [part(x, ends[i], ends[i + 1], 0, shape) for i in range(3)]
    return first, second, rest


class ReduceBits(Reduction):
    """Bit by bit `and`, `or` or `xor` of integers; of booleans, their logic."""

    kind = BITS

    def __init__(self, name: str, combine: Primitive, ones: bool) -> None:
        super().__init__()
        self.name = name
        self.combine = combine
        self.ones = ones

    def identity(self, dtype: np.dtype) -> Any:
        if dtype.kind == "b" or not self.ones:
            return dtype.type(self.ones)
        info = dtypes.iinfo(dtype)
        return dtype.type(-1 if info.min < 0 else info.max)


reduce_max = ReduceExtremum("reduce_max", ew.max)
reduce_max.sums = UnreducedKind.max
reduce_min = ReduceExtremum("reduce_min", ew.min)
reduce_min.sums = UnreducedKind.min
reduce_prod = ReduceProd()
reduce_and = ReduceBits("reduce_and", ew.bitwise_and, True)
reduce_or = ReduceBits("reduce_or", ew.bitwise_or, False)
reduce_xor = ReduceBits("reduce_xor", ew.bitwise_xor, False)


# From here two passes with simple reductions, which XLA's CPU backend vectorizes, beat one that
# carries the position along: 0.2 ms instead of 4 for a million float32.
_TWO_PASSES_SIZE = 16_384
_TWO_PASSES_AXIS = 256


class ArgExtremum(Primitive):
    """The position along an axis of the first greatest or least element, or of the first NaN."""

    def __init__(self, name: str, direction: str, reduction: ReduceExtremum) -> None:
        super().__init__()
        self.name = name
        self.direction = direction
        self.reduction = reduction

    def type(self, x: ShapedArray, *, axes: tuple[int, ...], index_dtype: np.dtype) -> ShapedArray:
        (axis,) = axes
        if not 0 <= axis < x.ndim:
            raise ValueError(f"{self.name}: axis {axis} is out of range for shape {x.shape}")
        check_dtype(self.name, x.dtype, ORDERED)
        if not dtypes.issubdtype(index_dtype, np.integer):
            raise TypeError(f"{self.name}: index_dtype must be an integer type, got {index_dtype}")
        if x.shape[axis] == 0:
            raise ValueError(
                f"{self.name}: the axis {axis} of shape {x.shape} is empty: no extreme value"
            )
        return ShapedArray(without(x.shape, axes), index_dtype)

    def cut(
        self, out: ShapedArray, x: ShapedArray, *, axes: tuple[int, ...], **params: Any
    ) -> cuts.Parts:
        return cuts.without(cuts.parts(x), axes)

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return float(operands[0].size)

    def lower(self, b: Any, x: Any, *, axes: tuple[int, ...], index_dtype: np.dtype) -> Any:
        (given,), (axis,) = b.in_avals, axes
        if (
            b.platform == "cpu"
            and dtypes.issubdtype(given.dtype, np.floating)
            and is_at_least(given.size, _TWO_PASSES_SIZE)
            and is_at_least(given.shape[axis], _TWO_PASSES_AXIS)
            and given.shape[axis] < 2**30
        ):
            return self._in_two_passes(b, x, axis)
        return self._in_one_pass(b, x, axis)

    def _in_two_passes(self, b: Any, x: Any, axis: int) -> Any:
        (given,), (out,) = b.in_avals, b.out_avals
        n = given.shape[axis]
        best_type = out.update(dtype=given.dtype)
        best = self.reduction.plain(b, x, given, best_type, (axis,))

        def first(x: Any, best: Any) -> Any:
            kept = tuple([i for i in range(given.ndim) if i != axis])
            best = broadcast_in_dim(best, shape=given.shape, broadcast_dimensions=kept)
            # NaNs count less than all others, so that `best` need not be NaN where there is one.
            place = iota(dtype=np.dtype("int32"), shape=given.shape, dimension=axis)
            far = select(eq(x, best), ew.add(place, full_like(place, n)), full_like(place, 2 * n))
            place = reduce_min(select(ew.ne(x, x), place, far), axes=(axis,))
            last = full_like(place, n)
            place = select(ew.lt(place, last), place, ew.sub(place, last))
            return convert(place, out.dtype)

        return expand(b, first, x, best, avals=[given, best_type])[0]

    def _in_one_pass(self, b: Any, x: Any, axis: int) -> Any:
        (given,), (out,) = b.in_avals, b.out_avals
        value, index = ShapedArray((), given.dtype), ShapedArray((), out.dtype)
        places = ShapedArray(given.shape, out.dtype)
        iota_ = b.op(
            "stablehlo.iota", attributes={"iota_dimension": types.integer(axis)}, aval=places
        )
        inits = [b.constant(self.reduction.identity(given.dtype), value), b.constant(0, index)]
        reduce = b.ops(
            "stablehlo.reduce",
            [x, iota_, *inits],
            [ShapedArray(out.shape, given.dtype), out],
            {"dimensions": types.integers((axis,))},
            regions=1,
        )
        flag = ShapedArray((), np.dtype(bool))
        block = b.block(reduce.regions[0], [value, index, value, index])
        with block as (inner, (left, i, right, j)):

            def either(op: str, p: Any, q: Any) -> Any:
                return inner.op(f"stablehlo.{op}", p, q, aval=flag)

            # NaN counts as more extreme than any number; of equals, the first one wins.
            ahead = either(
                "or",
                inner.compare(self.direction, left, right, value),
                inner.compare("NE", left, left, value),
            )
            tied = either(
                "and", inner.compare("EQ", left, right, value), inner.compare("LT", i, j, index)
            )
            best = inner.op("stablehlo.select", ahead, left, right, aval=value)
            place = inner.op("stablehlo.select", either("or", ahead, tied), i, j, aval=index)
            inner.terminate("stablehlo.return", [best, place])
        return reduce.results[1]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        return self(*primals, **params), None

    def batch(
        self, axis_size: int, operands: Any, axes_: Any, *, axes: tuple[int, ...], **params: Any
    ) -> Any:
        return batch_reduction(self, operands[0], axes_[0], axes, **params)


argmax = ArgExtremum("argmax", "GT", reduce_max)
argmin = ArgExtremum("argmin", "LT", reduce_min)

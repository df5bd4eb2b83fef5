"""Sorting and the greatest elements along an axis.

The order is that of NumPy: NaNs come last, `-0.0` and `0.0` are equal, complex numbers go by real
part first; but where the processor takes subnormal numbers for zero, as XLA tells it to, they are
equal to zero. Derivatives move tangents to where the elements went.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.base.dimensions import is_at_least
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops import elementwise as ew
from perspex.ops.elementwise import bitwise_and, bitwise_xor, lt, select
from perspex.ops.expansions import real_dtype
from perspex.ops.indexing import gather
from perspex.ops.lowering import expand
from perspex.ops.passing import bitcast_convert_type
from perspex.ops.reductions import reduce_max, reduce_min
from perspex.ops.shape import iota
from perspex.ops.structural import full_like, reshape, to_front, transpose, zeros, zeros_like
from perspex.ops.windows import GatherDimensionNumbers, GatherScatterMode
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import stage
from perspex.tracing.trace import typeof

_FLAG = ShapedArray((), np.dtype(bool))
# From here the sort by integer keys pays for the second program that goes with it.
_KEYED_SIZE = 1_024


def take_along(x: Any, places: Any, axis: int) -> Any:
    """`x[..., places[..., i, ...], ...]`: elements of each line along `axis`, by position in it."""
    given, wanted = typeof(x), typeof(places)
    if not wanted.size:
        return zeros(given.update(shape=wanted.shape))
    others = tuple([i for i in range(given.ndim) if i != axis])
    return gather(
        x,
        reshape(places, new_sizes=(*wanted.shape, 1)),
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), others, others),
        slice_sizes=(1,) * given.ndim,
        unique_indices=True,
        indices_are_sorted=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def _position_dtype(n: int) -> np.dtype:
    return np.dtype("int32" if n < 2**31 else "int64")


# ---- The order ----------------------------------------------------------------------------------


class _Order(NamedTuple):
    """What emits whether one number is before another, and whether they are equal."""

    before: Callable[[], Any]
    equal: Callable[[], Any]


_WAYS = ("LT", "EQ")


def _emit_order(b: Any, x: Any, y: Any, scalar: ShapedArray) -> list[_Order]:
    """How `x` and `y` compare, for each part that numbers go by."""
    if scalar.dtype.kind == "c":
        half = scalar.update(dtype=real_dtype(scalar.dtype))
        parts = []
        for name in ("stablehlo.real", "stablehlo.imag"):
            p, q = b.op(name, x, aval=half), b.op(name, y, aval=half)
            parts += _emit_order(b, p, q, half)
        return parts
    if not dtypes.issubdtype(scalar.dtype, np.floating):
        return [_Order(*[functools.partial(b.compare, way, x, y, scalar) for way in _WAYS])]
    if b.platform == "cpu":
        return [_floats_by_order(b, x, y, scalar)]
    return [_floats_by_bits(b, x, y, scalar)]


def _floats_by_order(b: Any, x: Any, y: Any, scalar: ShapedArray) -> _Order:
    """In comparisons that XLA's CPU backend compiles to few instructions."""

    def both(op: str, p: Any, q: Any) -> Any:
        return b.op(f"stablehlo.{op}", p, q, aval=_FLAG)

    def before() -> Any:
        is_first = b.compare("LT", x, y, scalar)
        nan_y, number_x = b.compare("NE", y, y, scalar), b.compare("EQ", x, x, scalar)
        return both("or", is_first, both("and", nan_y, number_x))

    def equal() -> Any:
        nan_x, nan_y = b.compare("NE", x, x, scalar), b.compare("NE", y, y, scalar)
        return both("or", b.compare("EQ", x, y, scalar), both("and", nan_x, nan_y))

    return _Order(before, equal)


def _floats_by_bits(b: Any, x: Any, y: Any, scalar: ShapedArray) -> _Order:
    """In the total order of IEEE 754, with one zero, and one NaN that is the greatest.

    On GPUs, XLA recognizes exactly these instructions and sorts with CUB, which is 16 times faster.
    """
    p, q = [_one_of_each(b, value, scalar) for value in (x, y)]
    return _Order(*[functools.partial(b.compare, way, p, q, scalar, True) for way in _WAYS])


def _one_of_each(b: Any, x: Any, scalar: ShapedArray) -> Any:
    """A float with one zero and one NaN in the place of all of them."""
    zero, nan = b.constant(0, scalar), b.constant(np.nan, scalar)
    is_zero, is_nan = b.compare("EQ", x, zero, scalar), b.compare("NE", x, x, scalar)
    number = b.op("stablehlo.select", is_zero, zero, x, aval=scalar)
    return b.op("stablehlo.select", is_nan, nan, number, aval=scalar)


def _emit_before(b: Any, pairs: Sequence[tuple[Any, Any]], scalars: Sequence[ShapedArray]) -> Any:
    """Whether a row is before another, given pairs of their keys."""
    parts = []
    for (x, y), scalar in zip(pairs, scalars, strict=True):
        parts += _emit_order(b, x, y, scalar)
    result = parts[-1].before()
    for part in reversed(parts[:-1]):
        rest = b.op("stablehlo.and", part.equal(), result, aval=_FLAG)
        result = b.op("stablehlo.or", part.before(), rest, aval=_FLAG)
    return result


def _integer_key(bits: Any, x: Any) -> Any:
    """Integers in the order of the floats `x`, whose bits they are made from.

    Among numbers of one sign, bits are in the order of magnitudes. NaNs become the greatest.
    """
    nan = np.array(np.nan, typeof(x).dtype).view(typeof(bits).dtype)
    key = _flip_negative(bits)
    return select(ew.ne(x, x), full_like(key, abs(int(nan))), key)


def _flip_negative(bits: Any) -> Any:
    """Reverse the order of negative integers. Its own inverse."""
    magnitude = full_like(bits, dtypes.iinfo(typeof(bits).dtype).max)
    return select(lt(bits, zeros_like(bits)), bitwise_xor(bits, magnitude), bits)


# ---- Sort ---------------------------------------------------------------------------------------


class Sort(Primitive):
    """The operands in the order of the first `num_keys` of them, along the axis `dimension`."""

    name = "sort"
    multiple_results = True
    memory = None

    def type(
        self, *avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int
    ) -> tuple[ShapedArray, ...]:
        if not avals:
            raise TypeError("sort requires at least one operand")
        shape = avals[0].shape
        if any(a.shape != shape for a in avals):
            shapes = ", ".join([str(a.shape) for a in avals])
            raise TypeError(f"sort: operands must have equal shapes, got {shapes}; broadcast them")
        if not 0 <= dimension < len(shape):
            raise ValueError(f"sort: axis {dimension} is out of bounds for shape {shape}")
        if not 1 <= num_keys <= len(avals):
            raise ValueError(
                f"sort: num_keys must be between 1 and the number of operands, {len(avals)}, "
                f"got {num_keys}"
            )
        if any(a.is_extended for a in avals):
            raise TypeError(
                "sort: typed PRNG keys have no order; sort positions and index with them"
            )
        return avals

    def cut(self, out: Any, *avals: ShapedArray, dimension: int, **params: Any) -> list[cuts.Parts]:
        for aval in avals:
            cuts.uncut(self.name, "an operand", aval, (dimension,))
        return [cuts.merged(self.name, avals)] * len(avals)

    def lower(self, b: Any, *xs: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
        given = b.in_avals[0]
        if (
            b.platform == "cpu"
            and len(xs) == 1
            and is_at_least(given.size, _KEYED_SIZE)
            and given.dtype.name in ("float32", "float64")
        ):
            return [self._by_integers(b, xs[0], given, dimension)]
        return self._emit(b, xs, b.in_avals, dimension, is_stable, num_keys)

    def _emit(
        self,
        b: Any,
        xs: Sequence[Any],
        avals: Sequence[ShapedArray],
        dimension: int,
        is_stable: bool,
        num_keys: int,
    ) -> list[Any]:
        sort = b.ops(
            "stablehlo.sort",
            xs,
            avals,
            {"dimension": types.integer(dimension), "is_stable": types.boolean(is_stable)},
            regions=1,
        )
        scalars = [a.update(shape=(), weak_type=False) for a in avals]
        twice = [s for s in scalars for _ in range(2)]
        with b.block(sort.regions[0], twice) as (inner, values):
            pairs = list(zip(values[::2], values[1::2], strict=True))
            before = _emit_before(inner, pairs[:num_keys], scalars[:num_keys])
            inner.terminate("stablehlo.return", [before])
        return list(sort.results)

    def _by_integers(self, b: Any, x: Any, given: ShapedArray, dimension: int) -> Any:
        """Emit the sort of one array of floats as one of integers.

        XLA's CPU backend has a fast path for those: 36 ms for a million float32, where it takes
        190 with the comparison of floats. What is equal to zero is different as integers, so
        arrays that hold different such numbers are left to the comparison.
        """
        bits_dtype = np.dtype(f"int{given.dtype.itemsize * 8}")
        keyed = given.update(dtype=bits_dtype, weak_type=False)
        limits = dtypes.iinfo(bits_dtype)
        normal = np.array(dtypes.finfo(given.dtype).smallest_normal).view(bits_dtype)

        def prepare(x: Any) -> tuple[Any, Any]:
            bits = bitcast_convert_type(x, new_dtype=bits_dtype)
            axes = tuple(range(given.ndim))
            is_zero = lt(bitwise_and(bits, full_like(bits, limits.max)), full_like(bits, normal))
            low = reduce_min(select(is_zero, bits, full_like(bits, limits.max)), axes=axes)
            high = reduce_max(select(is_zero, bits, full_like(bits, limits.min)), axes=axes)
            return _integer_key(bits, x), lt(low, high)

        key, different_zeros = expand(b, prepare, x, avals=[given])
        choice = b.ops("stablehlo.if", [different_zeros], [given], regions=2)
        with b.block(choice.regions[0], []) as (inner, _):
            inner.terminate("stablehlo.return", self._emit(inner, [x], [given], dimension, True, 1))
        with b.block(choice.regions[1], []) as (inner, _):
            (found,) = self._emit(inner, [key], [keyed], dimension, True, 1)
            (bits,) = expand(inner, _flip_negative, found, avals=[keyed])
            out = inner.op("stablehlo.bitcast_convert", bits, aval=given)
            inner.terminate("stablehlo.return", [out])
        return choice.result

    def jvp(self, primals: Any, tangents: Any, *, dimension: int, **params: Any) -> Any:
        shape = typeof(primals[0]).shape
        if 0 in shape or all(t is None for t in tangents):
            return self(*primals, dimension=dimension, **params), [None] * len(primals)
        places = iota(dtype=_position_dtype(shape[dimension]), shape=shape, dimension=dimension)
        *outs, order = self(*primals, places, dimension=dimension, **params)
        return outs, [None if t is None else take_along(t, order, dimension) for t in tangents]

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, dimension: int, **params: Any
    ) -> Any:
        fronted = [to_front(x, at, axis_size) for x, at in zip(operands, axes, strict=True)]
        return self(*fronted, dimension=dimension + 1, **params), [0] * len(fronted)


# ---- Top k --------------------------------------------------------------------------------------


class TopK(Primitive):
    """The `k` greatest elements along an axis in descending order, and their positions.

    Of equal elements, those that come first come first. NaNs are greatest.
    """

    name = "top_k"
    multiple_results = True

    def type(
        self, x: ShapedArray, *, axis: int, is_stable: bool, k: int
    ) -> tuple[ShapedArray, ...]:
        if x.dtype.kind == "c" or x.is_extended:
            raise ValueError(f"top_k: values of dtype {x.dtype.name} have no order")
        if k < 0:
            raise ValueError(f"top_k: k must not be negative, got {k}")
        if not 0 <= axis < x.ndim:
            raise ValueError(f"top_k: axis {axis} is out of bounds for shape {x.shape}")
        if k > x.shape[axis]:
            raise ValueError(
                f"top_k: k must be no larger than the axis, got k={k} for axis {axis} of shape "
                f"{x.shape}"
            )
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        places = ShapedArray(shape, _position_dtype(x.shape[axis]), x.weak_type)
        return x.update(shape=shape), places

    def cut(self, out: Any, x: ShapedArray, *, axis: int, **params: Any) -> list[cuts.Parts]:
        cuts.uncut(self.name, "the operand", x, (axis,))
        return [cuts.parts(x)] * 2

    def lower(self, b: Any, x: Any, *, axis: int, is_stable: bool, k: int) -> Any:
        (given,) = b.in_avals
        last = given.ndim - 1
        if axis == last:
            return self._emit(b, x, b.out_avals, k)
        swap = list(range(given.ndim))
        swap[axis], swap[last] = last, axis
        swapped = [a.update(shape=[a.shape[i] for i in swap]) for a in b.out_avals]
        (turned,) = expand(b, lambda v: transpose(v, permutation=tuple(swap)), x)
        found = self._emit(b, turned, swapped, k)
        return expand(
            b,
            lambda *outs: [transpose(v, permutation=tuple(swap)) for v in outs],
            *found,
            avals=swapped,
        )

    def _emit(self, b: Any, x: Any, avals: Sequence[ShapedArray], k: int) -> list[Any]:
        return list(b.ops("chlo.top_k", [x], avals, {"k": types.integer(k)}).results)

    def jvp(self, primals: Any, tangents: Any, *, axis: int, **params: Any) -> Any:
        outs = self(*primals, axis=axis, **params)
        (t,) = tangents
        if t is None or not typeof(outs[0]).size:
            return outs, [None, None]
        return outs, [take_along(t, outs[1], axis), None]

    def batch(self, axis_size: int, operands: Any, axes: Any, *, axis: int, **params: Any) -> Any:
        (at,) = axes
        return self(operands[0], axis=axis + (axis >= at), **params), [at, at]


@functools.lru_cache(maxsize=64)
def _ordered(is_greater: bool, value: ShapedArray, place: ShapedArray) -> ClosedJaxpr:
    """Whether the first of two values with their places comes first."""
    compare = ew.gt if is_greater else lt
    jaxpr, _ = stage(lambda x, y, i, j: [compare(x, y)], [value, value, place, place])
    return ClosedJaxpr(jaxpr.replace(eqns=[eqn.replace(source=None) for eqn in jaxpr.eqns]))


class ApproxTopK(Primitive):
    """`top_k`, or of the least elements, some of which may be missing on accelerators.

    On CPUs none is. Without `aggregate_to_topk`, which asks for candidates, all elements are
    returned everywhere.
    """

    name = "approx_top_k"
    multiple_results = True

    def type(
        self,
        x: ShapedArray,
        *,
        k: int,
        reduction_dimension: int,
        aggregate_to_topk: bool,
        **params: Any,
    ) -> tuple[ShapedArray, ...]:
        axis = reduction_dimension % x.ndim
        count = k if aggregate_to_topk else x.shape[axis]
        return top_k.type(x, axis=axis, is_stable=True, k=count)

    def cut(self, out: Any, x: ShapedArray, **params: Any) -> list[cuts.Parts]:
        return top_k.cut(out, x, axis=params["reduction_dimension"] % x.ndim)

    def lower(
        self,
        b: Any,
        x: Any,
        *,
        reduction_dimension: int,
        is_max_k: bool,
        aggregate_to_topk: bool,
        **params: Any,
    ) -> Any:
        axis = reduction_dimension % b.in_avals[0].ndim
        count = b.out_avals[0].shape[axis]
        if b.platform != "cpu" and aggregate_to_topk:
            return self._call(b, x, axis, count, is_max_k, **params)

        def exact(v: Any) -> list[Any]:
            found, places = top_k(v if is_max_k else ew.neg(v), axis=axis, is_stable=True, k=count)
            return [found if is_max_k else ew.neg(found), places]

        return expand(b, exact, x)

    def _call(
        self,
        b: Any,
        x: Any,
        axis: int,
        count: int,
        is_max_k: bool,
        *,
        recall_target: float,
        reduction_input_size_override: int,
        **_: Any,
    ) -> list[Any]:
        """Emit the call of XLA's own algorithm, for TPUs (Chern et al. 2022), or a sort."""
        given, outs = b.in_avals[0], b.out_avals
        places = outs[1]
        scalar = given.update(shape=(), weak_type=False)
        place = places.update(shape=(), weak_type=False)
        (numbers,) = expand(
            b, lambda: iota(dtype=places.dtype, shape=given.shape, dimension=axis), avals=[]
        )
        least = b.constant(-np.inf if is_max_k else np.inf, scalar)
        order = _ordered(is_max_k, scalar, place)
        config = {
            "top_k": types.integer(count),
            "recall_target": types.attribute(f"{recall_target!r} : f32"),
            "aggregate_to_topk": types.boolean(True),
            "reduction_dim": types.integer(axis),
            "reduction_input_size_override": types.integer(reduction_input_size_override),
        }
        if b.platform != "tpu":
            config["is_fallback"] = types.boolean(True)
        attributes = {
            "call_target_name": types.string("ApproxTopK"),
            "called_computations": types.array([types.symbol(b.module.function(order, "order"))]),
            "mhlo.backend_config": types.dictionary(config),
            "backend_config": types.string(""),
        }
        operands = [x, numbers, least, b.constant(-1, place)]
        return list(b.ops("stablehlo.custom_call", operands, outs, attributes).results)

    def jvp(self, primals: Any, tangents: Any, *, reduction_dimension: int, **params: Any) -> Any:
        outs = self(*primals, reduction_dimension=reduction_dimension, **params)
        (t,) = tangents
        if t is None or not typeof(outs[0]).size:
            return outs, [None, None]
        return outs, [take_along(t, outs[1], reduction_dimension % typeof(t).ndim), None]

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, reduction_dimension: int, **params: Any
    ) -> Any:
        (x,), (at,) = operands, axes
        axis = reduction_dimension % (typeof(x).ndim - 1)
        return self(x, reduction_dimension=axis + (axis >= at), **params), [at, at]


sort = Sort()
top_k = TopK()
approx_top_k = ApproxTopK()

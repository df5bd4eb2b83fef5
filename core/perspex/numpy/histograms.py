"""Counting: how many elements fall into which bin."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, as_dtype, check_arraylike, expand, flat, spread
from perspex.arguments.glossary import describe
from perspex.arguments.sharded import WORDS, OutSharding, decided
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy.arithmetic import add, divide, multiply, subtract
from perspex.numpy.calculus import diff
from perspex.numpy.creation import asarray
from perspex.numpy.indexing.parse import INT32, place_dtype
from perspex.numpy.logic import greater, less, logical_or
from perspex.numpy.promotion import promote_dtypes, strong
from perspex.numpy.ranges import linspace
from perspex.numpy.reductions import max as max_
from perspex.numpy.reductions import min as min_
from perspex.numpy.reductions import sum as sum_
from perspex.numpy.selection import as_given, known, where
from perspex.numpy.shaping import reshape
from perspex.numpy.sorting import searchsorted
from perspex.numpy.turning import flip
from perspex.ops import elementwise as ops
from perspex.ops.indexing import scatter_add
from perspex.ops.shape import part, stack
from perspex.ops.structural import convert
from perspex.ops.windows import FILL_OR_DROP, ScatterDimensionNumbers

__all__ = ["bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The count of each of the numbers 0, 1, 2, ... in a vector.

    Args:
      x: a vector of integers or booleans; negative numbers count as 0.
      minlength: the least size of the result.
      length: the size of the result; greater numbers are not counted. It must be given while
        tracing; by default the size reaches to the greatest number.
      out_sharding: how the result lies along explicit axes of the mesh of `set_mesh`. The compiler
        decides how all else lies.

    Returns:
      A vector of int32, or of the dtype of `weights`.

    Raises:
      TypeError: for other numbers than integers.
      ValueError: for other shapes.
      ConcretizationTypeError: for traced arrays without `length`.

    >>> import perspex.numpy as jnp
    >>> jnp.bincount(jnp.array([0, 1, 1, 3]))
    Array([1, 2, 0, 1], dtype=int32)
    """
    check_arraylike("bincount", x, *([] if weights is None else [weights]))
    places = as_given(x)
    if not (places.dtype == bool or dtypes.issubdtype(places.dtype, np.integer)):
        raise TypeError(f"bincount: x must be of integers, got {places.dtype.name}")
    if places.ndim != 1:
        raise ValueError(f"bincount: x must be a vector, got shape {places.shape}")
    if weights is not None and np.shape(weights) != places.shape:
        raise ValueError(
            f"bincount: weights must have the shape of x, got {np.shape(weights)} and "
            f"{places.shape}"
        )
    least = concrete("bincount: minlength", operator.index, minlength)
    if length is not None:
        size = concrete("bincount: length", operator.index, length)
    else:
        remedy = "give the size of the result: bincount(x, length=n)."
        host = known("bincount without a length", places, remedy)
        size = max(int(host.max()) + 1, 1, least) if host.size else least
    one = place_dtype().type(1)
    weights = one if weights is None else weights
    return decided(out_sharding, functools.partial(_bincount, size=size), places, weights)


@fused(static=("size",))
def _bincount(places: Any, weights: Any, size: int) -> Any:
    places = arraylike("bincount", places)
    most = np.iinfo(np.int32).max
    if places.dtype != np.bool_ and dtypes.iinfo(places.dtype).max > most:
        places = ops.min(places, places.dtype.type(most))
    if dtypes.issubdtype(places.dtype, np.signedinteger):
        places = ops.max(places, places.dtype.type(0))
    lines = convert(places, INT32)
    return tally(lines, arraylike("bincount", weights), size)


def tally(lines: Any, weights: Any, size: int) -> Any:
    """The sums of the weights for each line, a vector; lines outside are left out."""
    out = spread(weights.dtype.type(0), (size,))
    if not size or not lines.size:
        return out
    return scatter_add(
        out,
        reshape(lines, (lines.size, 1)),
        spread(weights, lines.shape),
        dimension_numbers=ScatterDimensionNumbers((), (0,), (0,)),
        indices_are_sorted=False,
        unique_indices=False,
        mode=FILL_OR_DROP,
    )


def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """The number of the bin that each element falls into: `bins[i - 1] <= x < bins[i]`.

    Args:
      x: an array or a number.
      bins: the edges, a vector that ascends or descends.
      right: the right edge belongs to a bin, not the left one.
      method: has no effect: a method of `searchsorted`.

    Returns:
      An array of int32 of the shape of `x`.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: for edges that are not a vector, and for another `method`.

    >>> import perspex.numpy as jnp
    >>> jnp.digitize(jnp.array([0.5, 1.0, 9.0]), jnp.array([0.0, 1.0, 2.0]))
    Array([1, 2, 3], dtype=int32)
    """
    check_arraylike("digitize", x, bins)
    if np.ndim(bins) != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array, got {np.shape(bins)}")
    if not np.size(bins):
        return spread(INT32.type(0), np.shape(x))
    return _digitize(x, bins, bool(right), method or "scan")


@fused(static=("right", "method"))
def _digitize(x: Any, bins: Any, right: bool, method: str) -> Any:
    edges = arraylike("digitize", bins)
    n = edges.shape[0]
    side = "left" if right else "right"
    ascending = searchsorted(edges, x, side=side, method=method)
    backwards = searchsorted(flip(edges), x, side=side, method=method)
    descending = ops.sub(INT32.type(n), backwards)
    first, last = part(edges, 0, 1, 0, (n,)), part(edges, n - 1, n, 0, (n,))
    # An edge that is NaN is above all others, where `sort` puts it.
    from_nan = ops.bitwise_and(ops.ne(first, first), ops.eq(last, last))
    falls = ops.bitwise_or(less(last, first), from_nan)
    return where(reshape(falls, ()), descending, ascending)


# ---- Histograms ---------------------------------------------------------------------------------


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """The edges of the bins of a histogram.

    Args:
      weights: has no effect.

    Returns:
      A vector of floats.

    >>> import perspex.numpy as jnp
    >>> jnp.histogram_bin_edges(jnp.array([0.0, 3.0]), bins=3)
    Array([0., 1., 2., 3.], dtype=float32)
    """
    check_arraylike("histogram_bin_edges", a)
    return _edges("histogram_bin_edges", asarray(a), bins, range)


def _edges(name: str, x: Any, bins: Any, range_: Any) -> Any:
    if isinstance(bins, str):
        raise NotImplementedError(f"{name}: bins={bins!r} is not supported; give their number")
    if np.ndim(bins):
        check_arraylike(name, bins)
        (edges,) = promote_dtypes(name, bins, to=dtypes.to_inexact_dtype)
        return asarray(edges)
    count = concrete(f"{name}: the number of bins must be known", operator.index, bins)
    bounds = None if range_ is None else tuple(range_)
    return _even_edges(x, bounds, count)


@fused(static=("count",))
def _even_edges(x: Any, bounds: Any, count: int) -> Any:
    (values,) = promote_dtypes("histogram", x, to=dtypes.to_inexact_dtype)
    dtype = values.dtype
    if bounds is not None:
        low, high = (as_dtype(asarray(b), dtype) for b in bounds)
    elif values.size:
        low, high = min_(values), max_(values)
    else:
        low, high = dtype.type(0), dtype.type(1)
    same = ops.eq(low, high)
    half = where(same, dtype.type(0.5), dtype.type(0))
    return linspace(subtract(low, half), add(high, half), count + 1, dtype=dtype)


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    out_sharding: OutSharding = None,
) -> tuple[Array, Array]:
    """The number of elements in each bin, and the edges of the bins.

    A bin has its left edge; the last one has both.

    Returns:
      Two vectors of floats: the counts, and one more edges.

    >>> import perspex.numpy as jnp
    >>> jnp.histogram(jnp.array([1.0, 2.0, 4.0]), bins=3, range=(0, 6))
    (Array([1., 1., 1.], dtype=float32), Array([0., 2., 4., 6.], dtype=float32))
    """
    check_arraylike("histogram", a, *([] if weights is None else [weights]))
    if weights is not None and np.shape(weights) != np.shape(a):
        raise ValueError(
            "histogram: weights should have the same shape as a, got "
            f"{np.shape(weights)} and {np.shape(a)}"
        )
    # The edges have the dtype of what is counted, also where they are given in another.
    counted = [a] if weights is None else [a, weights]
    x, *rest = promote_dtypes("histogram", *counted, to=dtypes.to_inexact_dtype)
    edges = as_dtype(_edges("histogram", x, bins, range), x.dtype)
    each = rest[0] if rest else x.dtype.type(1)
    count = functools.partial(_histogram, density=bool(density))
    return decided(out_sharding, count, x, edges, each), edges


@fused(static=("density",))
def _histogram(x: Any, edges: Any, weights: Any, density: bool) -> Any:
    x = flat(x)
    n = edges.shape[0]
    if n < 2:
        return spread(x.dtype.type(0), (0,))
    lines, outside = _lines(x, edges)
    counted = where(outside, x.dtype.type(0), flat(asarray(weights)))
    counts = part(tally(lines, counted, n), 1, n, 0, (n,))
    if density:
        return divide(divide(counts, diff(edges)), sum_(counts))
    return counts


def _lines(x: Any, edges: Any) -> tuple[Any, Any]:
    """The number of the right edge of the bin of each element, and which are in no bin."""
    n = edges.shape[0]
    first, last = (part(edges, k, k + 1, 0, (n,)) for k in (0, n - 1))
    first, last = spread(first, x.shape), spread(last, x.shape)
    lines = searchsorted(edges, x, side="right")
    lines = where(ops.eq(x, last), INT32.type(n - 1), lines)
    return lines, logical_or(less(x, first), greater(x, last))


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """The number of points of the plane in each rectangle, and the edges along both axes.

    Args:
      x, y: the coordinates of the points, vectors.
      bins: a number or edges for both axes, or a pair of those.
      range: a pair of outermost edges for each axis, or `None`.

    Returns:
      The counts, of shape `(bins along x, bins along y)`, and two vectors of edges.

    >>> import perspex.numpy as jnp
    >>> jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), bins=2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    check_arraylike("histogram2d", x, y)
    if np.shape(x) != np.shape(y) or np.ndim(x) != 1:
        raise ValueError(
            f"histogram2d: x and y must be vectors of one size, got {np.shape(x)} and {np.shape(y)}"
        )
    if not isinstance(bins, (list, tuple)):
        bins = [bins, bins]  # type: ignore[list-item]
    elif len(bins) != 2:
        bins = [asarray(bins)] * 2
    sample = stack(*[asarray(v) for v in map(strong, promote_dtypes("histogram2d", x, y))], axis=1)
    counts, edges = histogramdd(sample, bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """The number of points in each box, and the edges of the boxes along each axis.

    Args:
      sample: the points: an array of shape `(number of points, D)`.
      bins: a number for all axes, or a number or edges for each.
      range: a pair of outermost edges for each axis, or `None`.

    Returns:
      The counts, an array of `D` axes, and a list of `D` vectors of edges. Counts are
      integers; with `weights` or `density` they have the dtype of the edges.

    >>> import perspex.numpy as jnp
    >>> jnp.histogramdd(jnp.array([[0.0], [1.0], [1.0]]), bins=2)[0]
    Array([1, 2], dtype=int32)
    """
    given = [sample] if weights is None else [sample, weights]
    promoted = promote_dtypes("histogramdd", *given, to=dtypes.to_inexact_dtype)
    x, *rest = [asarray(strong(v)) for v in promoted]
    weights = rest[0] if rest else None
    if x.ndim != 2:
        raise ValueError(f"histogramdd: sample must have two axes, got shape {x.shape}")
    count, axes = x.shape
    if weights is not None and np.shape(weights) != (count,):
        raise ValueError(
            f"histogramdd: weights must have one number for each of {count} points, got shape "
            f"{np.shape(weights)}"
        )
    if range is not None and len(range) != axes:
        raise ValueError(f"histogramdd: range must have one pair for each of {axes} axes")
    asked: Any = bins
    each = asked if isinstance(asked, (list, tuple)) or np.ndim(asked) else [asked] * axes
    if len(each) != axes:
        raise ValueError(
            f"histogramdd: there must be bins for each of {axes} axes, got {len(each)}"
        )
    columns = [part(x, d, d + 1, 1, x.shape) for d in np.arange(axes).tolist()]
    edges = [
        _edges("histogramdd", column, b, None if range is None else range[d])
        for d, (column, b) in enumerate(zip(columns, each, strict=True))
    ]
    return _histogramdd(x, edges, weights, bool(density)), edges


@fused(static=("density",))
def _histogramdd(x: Any, edges: Any, weights: Any, density: bool) -> Any:
    line: Any = INT32.type(0)
    outside: Any = spread(np.bool_(False), (x.shape[0],))
    shape = tuple([e.shape[0] - 1 for e in edges])
    for d, edge in enumerate(edges):
        column = reshape(part(x, d, d + 1, 1, x.shape), (x.shape[0],))
        column, edge = promote_dtypes("histogramdd", column, edge)
        place, beyond = _lines(column, edge)
        outside = logical_or(outside, beyond)
        line = add(multiply(line, shape[d]), subtract(place, 1))
    size = int(np.prod(shape))
    line = where(outside, INT32.type(size), line)
    values = arraylike("histogramdd", place_dtype().type(1) if weights is None else weights)
    counts = reshape(tally(line, values, size), shape)
    if not density:
        return counts
    counts = as_dtype(counts, x.dtype)
    total = divide(counts, sum_(counts))
    for d, edge in enumerate(edges):
        width = expand(diff(edge), [k for k in np.arange(len(shape)).tolist() if k != d])
        total = divide(total, width)
    return total


describe(
    [bincount, histogram_bin_edges, histogram, histogram2d, histogramdd],
    {
        "a": "the elements to count, an array of any shape.",
        "bins": "the number of bins of equal width, or the edges in ascending order.",
        "range": "the outermost edges; by default the least and the greatest element.",
        "weights": "the count of each element, of the shape of the elements; 1 by default.",
        "density": "divide the counts by their sum and by the widths of the bins.",
        "out_sharding": WORDS,
    },
    "TypeError: if an argument is not an array or a number.\n"
    "ValueError: for bins, ranges and weights that do not fit.\n"
    "NotImplementedError: for the name of a rule as `bins`.",
)

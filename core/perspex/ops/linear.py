"""`dot_general`: sums of products over any axes, which all products of matrices are.

The result has the batch axes, then the remaining axes of the left operand, then those of the right
one. Every rule is bookkeeping of axes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ops.expansions import real_dtype
from perspex.ops.families import add_any
from perspex.ops.precision import Algorithm, Choice, Plan, planned, precision_config
from perspex.ops.structural import convert, is_linear, transpose
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof

Axes = tuple[int, ...]


# ---- Dimension numbers --------------------------------------------------------------------------


class Dimensions(tuple[tuple[Axes, Axes], tuple[Axes, Axes]]):
    """`((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))`; printed with lists, as JAX does."""

    __slots__ = ()

    def __str__(self) -> str:
        pairs = [f"({list(left)}, {list(right)})" for left, right in self]
        return f"({', '.join(pairs)})"


class Layout(NamedTuple):
    """The axes of both operands by role; `kept` are those that reach the result one by one."""

    lhs_contract: Axes
    rhs_contract: Axes
    lhs_batch: Axes
    rhs_batch: Axes
    lhs_kept: Axes
    rhs_kept: Axes


def layout(dimension_numbers: Any, lhs_ndim: int, rhs_ndim: int) -> Layout:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    return Layout(
        lhs_contract,
        rhs_contract,
        lhs_batch,
        rhs_batch,
        _others(lhs_ndim, lhs_contract, lhs_batch),
        _others(rhs_ndim, rhs_contract, rhs_batch),
    )


def _others(ndim: int, *taken: Axes) -> Axes:
    return tuple([i for i in range(ndim) if not any(i in axes for axes in taken)])


def _order(values: Sequence[int]) -> Axes:
    """The positions of the values in ascending order of them."""
    return tuple(sorted(range(len(values)), key=values.__getitem__))


def check_dimensions(
    lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: Any, name: str = "dot_general"
) -> None:
    """Raise `TypeError` unless the axes are there and match."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    sides = (("lhs", lhs, lhs_contract, lhs_batch), ("rhs", rhs, rhs_contract, rhs_batch))
    for side, aval, contract, batch in sides:
        axes = (*contract, *batch)
        if any(not 0 <= a < aval.ndim for a in axes):
            raise TypeError(
                f"{name}: {side} has shape {aval.shape}, so its dimension numbers must be at "
                f"least 0 and below {aval.ndim}; got contracting {contract} and batch {batch}"
            )
        if len(set(axes)) != len(axes):
            raise TypeError(
                f"{name}: an axis of {side} is named twice, in contracting {contract} and "
                f"batch {batch}"
            )
    pairs = (("contracting", lhs_contract, rhs_contract), ("batch", lhs_batch, rhs_batch))
    for role, left, right in pairs:
        sizes = [lhs.shape[a] for a in left], [rhs.shape[a] for a in right]
        if sizes[0] != sizes[1]:
            raise TypeError(
                f"{name} requires {role} dimensions to have the same sizes: axes {left} of "
                f"lhs shape {lhs.shape} and axes {right} of rhs shape {rhs.shape}"
            )


# ---- Dtypes -------------------------------------------------------------------------------------


def _bits(dtype: Any) -> int:
    """The bits of a number, or of a part of a complex number."""
    return 1 if dtype.kind == "b" else dtypes.itemsize_bits(real_dtype(dtype))


def _rank(dtype: Any) -> tuple[Any, ...]:
    """XLA's order of dtypes: the wider range, then the finer grain, then the longer word."""
    part = real_dtype(dtype)
    floating = dtypes.issubdtype(part, np.floating)
    info = dtypes.finfo(part) if floating else None
    grain = (info.maxexp, info.nmant) if info is not None else (-1, -1)
    signed = not dtypes.issubdtype(dtype, np.unsignedinteger) and dtype.kind != "b"
    return dtype.kind == "c", *grain, _bits(dtype), signed


def _is_float8(dtype: Any) -> bool:
    return dtype.name.startswith("float8")


def result_dtype(lhs: Any, rhs: Any, preferred: Any, by_algorithm: bool = False) -> Any:
    """The dtype of the product of two dtypes; one `by_algorithm` may be narrower than both."""
    if preferred is None or lhs == rhs == preferred:
        return max(lhs, rhs, key=_rank)
    found = max(lhs, rhs, key=_rank)
    widens = by_algorithm or dtypes.issubdtype(found, np.floating)
    if not widens and _bits(preferred) < _bits(found):
        raise TypeError(
            f"dot_general: preferred_element_type {preferred.name} must not be narrower than "
            f"{found.name}, the type of the product"
        )
    return preferred


# ---- The primitive ------------------------------------------------------------------------------


class DotGeneral(Primitive):
    """Sums of products over the contracting axes, for each index of the batch axes."""

    name = "dot_general"
    degree = 2
    makes_nan = True
    quiet: ClassVar[dict[str, Any]] = {"precision": None, "preferred_element_type": None}

    def type(
        self,
        lhs: ShapedArray,
        rhs: ShapedArray,
        *,
        dimension_numbers: Any,
        precision: Choice,
        preferred_element_type: np.dtype | None,
    ) -> ShapedArray:
        for aval in (lhs, rhs):
            if aval.is_extended:
                raise TypeError(f"dot_general does not accept dtype {aval.dtype.name}")
        check_dimensions(lhs, rhs, dimension_numbers)
        axes = layout(dimension_numbers, lhs.ndim, rhs.ndim)
        shape = [
            *[lhs.shape[i] for i in (*axes.lhs_batch, *axes.lhs_kept)],
            *[rhs.shape[i] for i in axes.rhs_kept],
        ]
        by_algorithm = isinstance(precision, Algorithm)
        dtype = result_dtype(lhs.dtype, rhs.dtype, preferred_element_type, by_algorithm)
        return ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type)

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        (contracted, _), _ = params["dimension_numbers"]
        terms = math.prod([operands[0].shape[i] for i in contracted])
        return 2.0 * results[0].size * terms  # a product and a sum for each

    def lower(
        self,
        b: Any,
        lhs: Any,
        rhs: Any,
        *,
        dimension_numbers: Any,
        precision: Choice,
        preferred_element_type: np.dtype | None,
    ) -> Any:
        (out,) = b.out_avals
        left, right = [a.dtype for a in b.in_avals]
        plan = Plan(left, right, out.dtype, None)
        if isinstance(precision, Algorithm):
            plan = planned(precision, b.platform, left, right, out.dtype)
        # XLA multiplies operands of one dtype, but any two float8s.
        elif left != right and not (_is_float8(left) and _is_float8(right)):
            plan = Plan(out.dtype, out.dtype, out.dtype, None)
        lhs, rhs = [
            v if a.dtype == wanted else b.convert(v, a.update(dtype=wanted))
            for v, a, wanted in zip((lhs, rhs), b.in_avals, plan[:2], strict=True)
        ]
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        numbers = (
            f"#stablehlo.dot<lhs_batching_dimensions = {list(lhs_batch)}, "
            f"rhs_batching_dimensions = {list(rhs_batch)}, "
            f"lhs_contracting_dimensions = {list(lhs_contract)}, "
            f"rhs_contracting_dimensions = {list(rhs_contract)}>"
        )
        attributes = {
            "dot_dimension_numbers": types.attribute(numbers),
            "precision_config": precision_config(precision),
        }
        if plan.attribute is not None:
            attributes["algorithm"] = plan.attribute
        total = out.update(dtype=plan.total)
        found = b.op("stablehlo.dot_general", lhs, rhs, attributes=attributes, aval=total)
        return found if total is out else b.convert(found, out)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        (x, y), (tx, ty) = primals, tangents
        out = self(x, y, **params)
        if not dtypes.issubdtype(typeof(out).dtype, np.inexact):
            return out, None
        terms = [] if tx is None else [self(tx, y, **params)]
        terms += [] if ty is None else [self(x, ty, **params)]
        if len(terms) == 2:
            return out, add_any(*terms)
        return out, terms[0] if terms else None

    def transpose(
        self,
        ct: Any,
        lhs: Any,
        rhs: Any,
        *,
        dimension_numbers: Any,
        precision: Choice,
        **params: Any,
    ) -> Any:
        axes = layout(dimension_numbers, typeof(lhs).ndim, typeof(rhs).ndim)
        batch, left = len(axes.lhs_batch), len(axes.lhs_kept)
        ct_batch = tuple(range(batch))
        ct_left = tuple(range(batch, batch + left))
        ct_right = tuple(range(batch + left, typeof(ct).ndim))
        if is_linear(lhs):
            # Contract what came from rhs. The axes of rhs that are left come in ascending order:
            # that of rhs_contract, not of lhs_contract.
            numbers = Dimensions(((ct_right, axes.rhs_kept), (ct_batch, axes.rhs_batch)))
            found = self(ct, rhs, dimension_numbers=numbers, precision=precision, **params)
            order = [axes.lhs_contract[i] for i in _order(axes.rhs_contract)]
            return [in_order(found, (*axes.lhs_batch, *axes.lhs_kept, *order), lhs.aval), None]
        if ct_right:
            # With lhs first the axes of a matrix `w` in `x @ w` come as they are in `w`.
            numbers = Dimensions(((axes.lhs_kept, ct_left), (axes.lhs_batch, ct_batch)))
            found = self(lhs, ct, dimension_numbers=numbers, precision=precision, **params)
        else:  # a vector: as a row in front it spares XLA the transpose of lhs
            numbers = Dimensions(((ct_left, axes.lhs_kept), (ct_batch, axes.lhs_batch)))
            found = self(ct, lhs, dimension_numbers=numbers, precision=precision, **params)
        order = [axes.rhs_contract[i] for i in _order(axes.lhs_contract)]
        return [None, in_order(found, (*axes.rhs_batch, *order, *axes.rhs_kept), rhs.aval)]

    def batch(
        self, axis_size: int, operands: Any, axes_: Any, *, dimension_numbers: Any, **params: Any
    ) -> Any:
        (x, y), (x_at, y_at) = operands, axes_
        numbers, at = _batched(dimension_numbers, typeof(x).ndim, typeof(y).ndim, x_at, y_at)
        return self(x, y, dimension_numbers=numbers, **params), at


# Bookkeeping that every layer of a network repeats.
@functools.lru_cache(maxsize=1024)
def _batched(
    dimension_numbers: Any, lhs_ndim: int, rhs_ndim: int, lhs_at: int | None, rhs_at: int | None
) -> tuple[Dimensions, int]:
    """The dimension numbers of the product of batches, and where its batch axis is."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_contract, lhs_batch = shifted(lhs_contract, lhs_at), shifted(lhs_batch, lhs_at)
    rhs_contract, rhs_batch = shifted(rhs_contract, rhs_at), shifted(rhs_batch, rhs_at)
    if lhs_at is not None and rhs_at is not None:
        lhs_batch, rhs_batch = (lhs_at, *lhs_batch), (rhs_at, *rhs_batch)
        return Dimensions(((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))), 0
    numbers = Dimensions(((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)))
    # The batch axis of one operand alone is one more of its axes that are kept.
    axes = layout(numbers, lhs_ndim, rhs_ndim)
    if lhs_at is not None:
        return numbers, len(lhs_batch) + axes.lhs_kept.index(lhs_at)
    return numbers, len(lhs_batch) + len(axes.lhs_kept) + axes.rhs_kept.index(rhs_at)


def shifted(axes: Axes, at: int | None) -> Axes:
    """The axes of an operand that has got one more axis at `at`."""
    return axes if at is None else tuple([a + (a >= at) for a in axes])


def in_order(x: Any, axes: Sequence[int], aval: ShapedArray) -> Any:
    """`x`, whose axis `i` is axis `axes[i]` of an array of type `aval`, as such an array."""
    permutation = _order(axes)
    if permutation != tuple(range(len(axes))):
        x = transpose(x, permutation=permutation)
    return convert(x, aval.dtype)


dot_general = DotGeneral()

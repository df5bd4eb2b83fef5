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
from perspex.base.dtype_families import SMALL_INTS
from perspex.errors import ShardingTypeError
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.layout.named import NamedSharding
from perspex.layout.spec import PartitionSpec
from perspex.ops.expansions import real_dtype
from perspex.ops.families import product_rule
from perspex.ops.precision import Algorithm, Choice, Plan, planned, precision_config
from perspex.ops.structural import convert, is_linear, transpose
from perspex.tracing import cuts
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
    quiet: ClassVar[dict[str, Any]] = {
        "precision": None,
        "preferred_element_type": None,
        "out_sharding": ...,
    }

    def type(
        self,
        lhs: ShapedArray,
        rhs: ShapedArray,
        *,
        dimension_numbers: Any,
        precision: Choice,
        preferred_element_type: np.dtype | None,
        out_sharding: Any = None,
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

    def cut(
        self,
        out: ShapedArray,
        lhs: ShapedArray,
        rhs: ShapedArray,
        *,
        dimension_numbers: Any,
        **params: Any,
    ) -> cuts.Parts:
        axes = layout(dimension_numbers, lhs.ndim, rhs.ndim)
        left, right = cuts.parts(lhs), cuts.parts(rhs)
        types = f"{lhs.str_short()} and {rhs.str_short()}"
        for i, j in zip(axes.lhs_batch, axes.rhs_batch, strict=True):
            if left[i] and right[j] and left[i] != right[j]:
                raise ShardingTypeError(
                    "dot_general requires lhs batch dimensions and rhs batch dimensions to have "
                    f"the same sharding, got {types}; reshard one of them"
                )
        for i, j in zip(axes.lhs_contract, axes.rhs_contract, strict=True):
            if left[i] and right[j]:
                raise ShardingTypeError(
                    "Contracting dimensions are sharded and it is ambiguous how the output should "
                    "be sharded. Please specify the output sharding via the `out_sharding` "
                    f"parameter. The operands have types {types}"
                )
        batch = [left[i] or right[j] for i, j in zip(axes.lhs_batch, axes.rhs_batch, strict=True)]
        kept = [left[i] for i in axes.lhs_kept]
        return (*batch, *kept, *[right[j] for j in axes.rhs_kept])

    def check_asked(
        self, asked: NamedSharding, avals: Sequence[ShapedArray], params: dict[str, Any]
    ) -> None:
        cuts.only_sums(self.name, asked)
        if asked.spec.unreduced:
            contract, _ = params["dimension_numbers"]
            given = [
                [cuts.parts(aval)[i] for i in axes]
                for aval, axes in zip(avals, contract, strict=True)
            ]
            if given[0] != given[1] or asked.spec.unreduced != {n for ns in given[0] for n in ns}:
                raise ShardingTypeError(
                    "dot_general: the contracting dimensions of both operands must be sharded "
                    f"along the axes along which the result is unreduced, {asked.spec}, got types "
                    f"{avals[0].str_short()} and {avals[1].str_short()}"
                )

    def pending(self, *avals: ShapedArray, **params: Any) -> cuts.Sums:
        # What is reduced is whole, and only its cotangent is parts of a sum.
        for aval in avals:
            if cuts.sums(aval).unreduced:
                raise ShardingTypeError(
                    f"dot_general takes no operands that are unreduced, got type "
                    f"{aval.str_short()}; reduce it with jax.sharding.reshard"
                )
        return cuts.NO_SUMS

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
        **params: Any,
    ) -> Any:
        (out,) = b.out_avals
        left, right = [a.dtype for a in b.in_avals]
        plan = Plan(left, right, out.dtype, None)
        if isinstance(precision, Algorithm):
            plan = planned(precision, b.platform, left, right, out.dtype)
        # XLA multiplies operands of one dtype, but any two float8s. That of jaxlib 0.12 compiles no
        # sums of narrow integers in a wider dtype on CPUs.
        elif (left != right and not (_is_float8(left) and _is_float8(right))) or (
            left in SMALL_INTS and out.dtype not in SMALL_INTS and b.platform == "cpu"
        ):
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
        return product_rule(self, primals, tangents, params)

    def transpose(
        self,
        ct: Any,
        lhs: Any,
        rhs: Any,
        *,
        dimension_numbers: Any,
        precision: Choice,
        out_sharding: Any = None,
        **params: Any,
    ) -> Any:
        to_lhs = is_linear(lhs)
        wanted, other = (lhs, rhs) if to_lhs else (rhs, lhs)
        back = _back(dimension_numbers, typeof(lhs).ndim, typeof(rhs).ndim, to_lhs)
        x, y = (ct, other) if back.ct_first else (other, ct)
        params = _put_back(params, wanted.aval, back.into, (x, y))
        found = self(x, y, dimension_numbers=back.numbers, precision=precision, **params)
        if back.permutation is not None:
            found = transpose(found, permutation=back.permutation)
        found = convert(found, wanted.aval.dtype, typeof(found).weak_type)
        return [found, None] if to_lhs else [None, found]

    def batch(
        self, axis_size: int, operands: Any, axes_: Any, *, dimension_numbers: Any, **params: Any
    ) -> Any:
        (x, y), (x_at, y_at) = operands, axes_
        numbers, at = _batched(dimension_numbers, typeof(x).ndim, typeof(y).ndim, x_at, y_at)
        if "out_sharding" in params:
            cut, place = (x, x_at) if x_at is not None else (y, y_at)
            asked = cuts.batched(params["out_sharding"], cuts.parts(typeof(cut))[place], at)
            params = {**params, "out_sharding": asked}
        return self(x, y, dimension_numbers=numbers, **params), at


def _put_back(
    params: dict[str, Any], aval: ShapedArray, axes: Sequence[int], operands: Sequence[Any]
) -> dict[str, Any]:
    """The params of a product of `operands` that is the cotangent of a value of type `aval`.

    Axis `i` of the product is axis `axes[i]` of the value. Where anything is cut, the result is cut
    as the value is: the axes that are contracted may be cut in both operands.
    """
    found = [typeof(x).cut for x in operands]
    if aval.cut is None and found == [None, None]:
        return params
    cut = aval.cotangent().cut
    mesh = next(c.mesh for c in (cut, *found) if c is not None)
    spec = PartitionSpec() if cut is None else cut.spec
    turned = spec.update(partitions=[cuts.parts(aval)[i] for i in axes])
    return {**params, "out_sharding": NamedSharding(mesh, turned)}


class _Back(NamedTuple):
    """The product that is the cotangent of an operand, of the result's and the other operand.

    Axis `i` of it is axis `into[i]` of the operand: a `permutation` puts them in order, `None` if
    they are. `ct_first` says that the result's cotangent is the left operand.
    """

    numbers: Dimensions
    into: Axes
    permutation: Axes | None
    ct_first: bool


# Bookkeeping that every layer of a network repeats, here and below.
@functools.lru_cache(maxsize=1024)
def _back(dimension_numbers: Any, lhs_ndim: int, rhs_ndim: int, to_lhs: bool) -> _Back:
    axes = layout(dimension_numbers, lhs_ndim, rhs_ndim)
    batch, left = len(axes.lhs_batch), len(axes.lhs_kept)
    ct_batch = tuple(range(batch))
    ct_left = tuple(range(batch, batch + left))
    ct_right = tuple(range(batch + left, batch + left + len(axes.rhs_kept)))
    into: Axes
    if to_lhs:
        # Contract what came from rhs. The axes of rhs that are left come in ascending order: that
        # of rhs_contract, not of lhs_contract.
        numbers = ((ct_right, axes.rhs_kept), (ct_batch, axes.rhs_batch))
        order = [axes.lhs_contract[i] for i in _order(axes.rhs_contract)]
        into = (*axes.lhs_batch, *axes.lhs_kept, *order)
    else:
        # With lhs first the axes of a matrix `w` in `x @ w` come as they are in `w`. A vector as a
        # row in front spares XLA the transpose of lhs.
        numbers = ((axes.lhs_kept, ct_left), (axes.lhs_batch, ct_batch))
        if not ct_right:
            numbers = ((ct_left, axes.lhs_kept), (ct_batch, axes.lhs_batch))
        order = [axes.rhs_contract[i] for i in _order(axes.lhs_contract)]
        into = (*axes.rhs_batch, *order, *axes.rhs_kept)
    permutation = _order(into)
    is_sorted = permutation == tuple(range(len(into)))
    ct_first = to_lhs or not ct_right
    return _Back(Dimensions(numbers), into, None if is_sorted else permutation, ct_first)


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

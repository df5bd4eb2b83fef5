"""`ragged_dot_general`: products of matrices over groups of consecutive places of one axis.

How long the groups are is data. Where the groups are of an axis that the left operand keeps, each
has a matrix of its own on the right; groups of a contracting axis are summed one by one; groups of
a batch axis change nothing. Every group is computed over the whole axis, with zeros in place of
the others: the work is that of one product times the number of groups.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.ir.avals import ShapedArray
from perspex.ops.cumulative import cumsum
from perspex.ops.elementwise import bitwise_and, le, lt, select, sub
from perspex.ops.families import product_rule
from perspex.ops.linear import Dimensions, dot_general, in_order, layout, shifted
from perspex.ops.lowering import expand
from perspex.ops.precision import Choice
from perspex.ops.shape import iota
from perspex.ops.structural import (
    broadcast_in_dim,
    is_linear,
    move_axis,
    to_front,
    transpose,
    zeros_like,
)
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof

Axes = tuple[int, ...]


@dataclasses.dataclass(frozen=True, init=False)
class RaggedDotDimensionNumbers:
    """Which axes a `ragged_dot_general` contracts, which are batches, and which is in groups.

    Args:
      dot_dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
      lhs_ragged_dimensions: the one axis of `lhs` that is in groups.
      rhs_group_dimensions: the axis of `rhs` along which each group has its matrix, if the ragged
        axis is neither contracted nor a batch axis; else nothing.

    Returns:
      The dimension numbers.

    >>> RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0]).lhs_ragged_dimensions
    (0,)
    """

    dot_dimension_numbers: tuple[tuple[Axes, Axes], tuple[Axes, Axes]]
    lhs_ragged_dimensions: Axes
    rhs_group_dimensions: Axes

    def __init__(
        self,
        dot_dimension_numbers: Any,
        lhs_ragged_dimensions: Sequence[int],
        rhs_group_dimensions: Sequence[int],
    ) -> None:
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dot_dimension_numbers
        pairs = ((tuple(lhs_contract), tuple(rhs_contract)), (tuple(lhs_batch), tuple(rhs_batch)))
        object.__setattr__(self, "dot_dimension_numbers", pairs)
        object.__setattr__(self, "lhs_ragged_dimensions", tuple(lhs_ragged_dimensions))
        object.__setattr__(self, "rhs_group_dimensions", tuple(rhs_group_dimensions))


# ---- The axes by role ---------------------------------------------------------------------------

KEPT, CONTRACTED, BATCH = "kept", "contracted", "batch"


class _Roles(NamedTuple):
    """The axes of both operands by role; `rhs_kept` lacks the axis of the groups.

    `role` is that of the ragged axis. `lhs_before` are the axes of the left operand that have group
    sizes of their own each, `rhs_before` those of the right one, if the ragged axis is contracted.
    """

    lhs_contract: Axes
    rhs_contract: Axes
    lhs_batch: Axes
    rhs_batch: Axes
    lhs_kept: Axes
    rhs_kept: Axes
    role: str
    ragged: int
    group: int | None
    lhs_before: Axes
    rhs_before: Axes

    @property
    def rhs_ragged(self) -> int:
        """The axis of the right operand that is contracted with the ragged one."""
        return self.rhs_contract[self.lhs_contract.index(self.ragged)]


def _roles(numbers: RaggedDotDimensionNumbers, lhs_ndim: int, rhs_ndim: int) -> _Roles:
    axes = layout(numbers.dot_dimension_numbers, lhs_ndim, rhs_ndim)
    (ragged,) = numbers.lhs_ragged_dimensions
    group = numbers.rhs_group_dimensions[0] if numbers.rhs_group_dimensions else None
    lhs_before, rhs_before = axes.lhs_batch, axes.rhs_batch
    if ragged in axes.lhs_contract:
        role, at = CONTRACTED, axes.lhs_contract.index(ragged)
        lhs_before += axes.lhs_contract[:at]
        rhs_before += axes.rhs_contract[:at]
    elif ragged in axes.lhs_batch:
        role, lhs_before = BATCH, axes.lhs_batch[: axes.lhs_batch.index(ragged)]
    else:
        role, lhs_before = KEPT, lhs_before + axes.lhs_kept[: axes.lhs_kept.index(ragged)]
    rhs_kept = tuple([i for i in axes.rhs_kept if i != group])
    return _Roles(*axes._replace(rhs_kept=rhs_kept), role, ragged, group, lhs_before, rhs_before)


def _check(
    lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray, numbers: RaggedDotDimensionNumbers
) -> _Roles:
    name = "ragged_dot_general"
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(f"{name} takes one ragged axis of lhs, got {numbers.lhs_ragged_dimensions}")
    (ragged,) = numbers.lhs_ragged_dimensions
    if not 0 <= ragged < lhs.ndim:
        raise TypeError(f"{name}: lhs of shape {lhs.shape} has no axis {ragged} to be ragged")
    if not dtypes.issubdtype(sizes.dtype, np.integer):
        raise TypeError(f"{name}: group_sizes must be integers, got {sizes.dtype.name}")
    if not sizes.ndim:
        raise TypeError(f"{name}: group_sizes must have one axis or more, got a scalar")
    roles = _roles(numbers, lhs.ndim, rhs.ndim)
    before = tuple([lhs.shape[i] for i in roles.lhs_before])
    if sizes.ndim > 1 and sizes.shape[:-1] != before:
        raise TypeError(
            f"{name}: group_sizes must have shape (g,) or {(*before, 'g')}, since axis {ragged} of "
            f"lhs of shape {lhs.shape} is ragged; got {sizes.shape}"
        )
    groups = numbers.rhs_group_dimensions
    wanted = 1 if roles.role == KEPT else 0
    if len(groups) != wanted:
        raise TypeError(
            f"{name}: a ragged axis that is {roles.role} takes {wanted} group axes of rhs, got "
            f"{groups}"
        )
    if groups:
        (group,) = groups
        if not 0 <= group < rhs.ndim or group in (*roles.rhs_contract, *roles.rhs_batch):
            raise TypeError(
                f"{name}: axis {group} cannot be the group axis of rhs of shape {rhs.shape}: it "
                "must be there, and be neither contracted nor a batch axis"
            )
        if rhs.shape[group] != sizes.shape[-1]:
            raise TypeError(
                f"{name}: axis {group} of rhs of shape {rhs.shape} must have one matrix for each "
                f"of the {sizes.shape[-1]} groups of group_sizes"
            )
    return roles


# ---- The primitive ------------------------------------------------------------------------------


class RaggedDotGeneral(Primitive):
    """Sums of products over groups of places, as the module says."""

    name = "ragged_dot_general"
    makes_nan = True
    printed: ClassVar[dict[str, Any]] = {"group_offset": None, "out_sharding": None}

    def type(
        self,
        lhs: ShapedArray,
        rhs: ShapedArray,
        sizes: ShapedArray,
        *,
        ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
        **params: Any,
    ) -> ShapedArray:
        numbers = ragged_dot_dimension_numbers
        roles = _check(lhs, rhs, sizes, numbers)
        whole: ShapedArray = dot_general.type(
            lhs, rhs, dimension_numbers=numbers.dot_dimension_numbers, **params
        )
        batch = len(roles.lhs_batch) + len(roles.lhs_kept)
        shape = (*whole.shape[:batch], *[rhs.shape[i] for i in roles.rhs_kept])
        if roles.role == CONTRACTED:
            shape = (sizes.shape[-1], *shape)
        return whole.update(shape=shape, weak_type=False)

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        lhs, rhs, sizes = operands
        roles = _roles(params["ragged_dot_dimension_numbers"], lhs.ndim, rhs.ndim)
        terms = np.prod([lhs.shape[i] for i in roles.lhs_contract], dtype=float)
        times = sizes.shape[-1] if roles.role == KEPT else 1
        return float(2.0 * results[0].size * terms * times)

    def lower(self, b: Any, *values: Any, **params: Any) -> Any:
        return expand(b, lambda *xs: _composed(*xs, **params), *values)[0]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        return product_rule(self, primals, tangents, params)

    def transpose(
        self,
        ct: Any,
        lhs: Any,
        rhs: Any,
        sizes: Any,
        *,
        ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
        **params: Any,
    ) -> Any:
        numbers = ragged_dot_dimension_numbers
        roles = _roles(numbers, typeof(lhs).ndim, typeof(rhs).ndim)
        if roles.role == BATCH:
            pairs = Dimensions(numbers.dot_dimension_numbers)
            return [*dot_general.transpose(ct, lhs, rhs, dimension_numbers=pairs, **params), None]
        if roles.role == CONTRACTED and typeof(sizes).ndim > 1 and len(roles.lhs_contract) > 1:
            raise NotImplementedError(
                "ragged_dot_general has no derivative where several axes are contracted, one of "
                f"them in groups whose sizes of shape {typeof(sizes).shape} are not the same for "
                "all; reshape the operands so that one axis is contracted"
            )
        wanted = lhs if is_linear(lhs) else rhs
        other, found, axes = _adjoint(roles, is_linear(lhs))
        operands = (ct, rhs) if is_linear(lhs) else (lhs, ct)
        if other:
            operands = operands[::-1]
        out = self(*operands, sizes, ragged_dot_dimension_numbers=found, **params)
        out = in_order(out, axes, wanted.aval)
        return [out, None, None] if is_linear(lhs) else [None, out, None]

    def batch(
        self,
        axis_size: int,
        operands: Any,
        axes: Any,
        *,
        ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
        **params: Any,
    ) -> Any:
        numbers = ragged_dot_dimension_numbers
        ndims = [typeof(x).ndim - (at is not None) for x, at in zip(operands, axes, strict=True)]
        roles = _roles(numbers, ndims[0], ndims[1])
        lhs, rhs = [
            to_front(x, at, axis_size) for x, at in zip(operands[:2], axes[:2], strict=True)
        ]
        sizes, at = operands[2], axes[2]
        if at is not None or ndims[2] > 1:
            sizes = to_front(sizes, at, axis_size)
            before = [lhs.shape[i + 1] for i in roles.lhs_before]
            if ndims[2] == 1 and before:
                shape = (axis_size, *before, sizes.shape[-1])
                sizes = broadcast_in_dim(
                    sizes, shape=shape, broadcast_dimensions=(0, len(shape) - 1)
                )
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
        moved = RaggedDotDimensionNumbers(
            (
                (shifted(lhs_contract, 0), shifted(rhs_contract, 0)),
                ((0, *shifted(lhs_batch, 0)), (0, *shifted(rhs_batch, 0))),
            ),
            shifted(numbers.lhs_ragged_dimensions, 0),
            shifted(numbers.rhs_group_dimensions, 0),
        )
        out = self(lhs, rhs, sizes, ragged_dot_dimension_numbers=moved, **params)
        return (move_axis(out, 1, 0), 0) if roles.role == CONTRACTED else (out, 0)


def _adjoint(r: _Roles, of_lhs: bool) -> tuple[bool, RaggedDotDimensionNumbers, Axes]:
    """The product that gives the cotangent of one operand, and the axes of that in its result.

    It is one of the cotangent and the operand that is left, in the order of the equation, or the
    other way round.
    """
    # The axes of the cotangent: the groups, if the ragged axis is summed; batch, lhs, rhs.
    first = 1 if r.role == CONTRACTED else 0
    batch = tuple(range(first, first + len(r.lhs_batch)))
    left = tuple(range(first + len(batch), first + len(batch) + len(r.lhs_kept)))
    behind = first + len(batch) + len(left)
    right = tuple(range(behind, behind + len(r.rhs_kept)))
    Numbers = RaggedDotDimensionNumbers
    if r.role == KEPT and of_lhs:
        # The cotangent is ragged as lhs was, and meets the same matrices.
        at = batch[-1] + 1 if batch else 0
        pairs = ((right, r.rhs_kept), (batch, r.rhs_batch))
        assert r.group is not None
        numbers = Numbers(pairs, (at + r.lhs_kept.index(r.ragged),), (r.group,))
        return False, numbers, (*r.lhs_batch, *r.lhs_kept, *_by(r.rhs_contract, r.lhs_contract))
    if r.role == KEPT:
        # Rows of a group are summed up: the group is an axis of the result.
        pairs = ((r.lhs_kept, left), (r.lhs_batch, batch))
        assert r.group is not None
        axes = (r.group, *r.rhs_batch, *_by(r.lhs_contract, r.rhs_contract), *r.rhs_kept)
        return False, Numbers(pairs, (r.ragged,), ()), axes
    if of_lhs:
        # Each place of the ragged axis is in one group, whose cotangent it meets.
        pairs = ((r.rhs_kept, right), (r.rhs_batch, batch))
        axes = (*r.lhs_batch, *_by(r.rhs_contract, r.lhs_contract), *r.lhs_kept)
        return True, Numbers(pairs, (r.rhs_ragged,), (0,)), axes
    pairs = ((r.lhs_kept, left), (r.lhs_batch, batch))
    axes = (*r.rhs_batch, *_by(r.lhs_contract, r.rhs_contract), *r.rhs_kept)
    return False, Numbers(pairs, (r.ragged,), (0,)), axes


def _by(order: Axes, axes: Axes) -> Axes:
    """`axes` in the ascending order of the axes that they are contracted with."""
    return tuple([axes[i] for i in sorted(range(len(axes)), key=order.__getitem__)])


# ---- What it consists of ------------------------------------------------------------------------


def _composed(
    lhs: Any,
    rhs: Any,
    sizes: Any,
    *,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Choice,
    preferred_element_type: Any,
) -> Any:
    r = _roles(ragged_dot_dimension_numbers, lhs.ndim, rhs.ndim)
    pairs: Any = ragged_dot_dimension_numbers.dot_dimension_numbers
    if r.role != BATCH:
        before = tuple([lhs.shape[i] for i in r.lhs_before])
        if sizes.ndim == 1:
            sizes = broadcast_in_dim(
                sizes, shape=(*before, *sizes.shape), broadcast_dimensions=(len(before),)
            )
        lhs = _by_group(lhs, r.ragged, r.lhs_before, sizes)
        contract, batch = shifted(r.lhs_contract, 0), shifted(r.lhs_batch, 0)
        if r.role == KEPT:
            assert r.group is not None
            pairs = (((*contract, 0), (*r.rhs_contract, r.group)), (batch, r.rhs_batch))
        else:
            rhs = _by_group(rhs, r.rhs_ragged, r.rhs_before, sizes)
            both = (0, *batch), (0, *shifted(r.rhs_batch, 0))
            pairs = ((contract, shifted(r.rhs_contract, 0)), both)
    return dot_general(
        lhs,
        rhs,
        dimension_numbers=Dimensions(pairs),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _by_group(x: Any, ragged: int, before: Axes, sizes: Any) -> Any:
    """One copy of `x` for each group, in front: it has zeros at the places of the others.

    Axis `i` of `sizes` is axis `before[i]` of `x`, the last one that of the groups.
    """
    shape = (sizes.shape[-1], *x.shape)
    places = (*shifted(before, 0), 0)
    ascending = tuple(sorted(range(len(places)), key=places.__getitem__))
    ends = cumsum(sizes, axis=sizes.ndim - 1, reverse=False)
    first, behind = [
        broadcast_in_dim(
            transpose(v, permutation=ascending),
            shape=shape,
            broadcast_dimensions=tuple(sorted(places)),
        )
        for v in (sub(ends, sizes), ends)
    ]
    at = iota(dtype=sizes.dtype, shape=shape, dimension=ragged + 1)
    copies = broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(1, x.ndim + 1)))
    return select(bitwise_and(le(first, at), lt(at, behind)), copies, zeros_like(copies))


ragged_dot_general = RaggedDotGeneral()

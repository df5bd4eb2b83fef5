"""Gather and scatter: reading and writing windows at places computed while running.

Both follow XLA's definition: an index vector says where in the operand a window starts, and the
dimension numbers say which axes are which. They are each other's transposes, hence one file.

A window that does not lie inside the operand is moved until it does (`CLIP`), or read as the fill
value and not written (`FILL_OR_DROP`). `PROMISE_IN_BOUNDS` leaves that to the platform: reads clip.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops.elementwise import add, bitwise_and, div, eq, ge, le, max, min, mul, neg, select
from perspex.ops.elementwise import sub as sub
from perspex.ops.lowering import expand
from perspex.ops.shape import iota
from perspex.ops.structural import (
    broadcast_in_dim,
    full_like,
    is_linear,
    reshape,
    to_front,
    zeros,
    zeros_like,
)
from perspex.ops.window_cuts import gather_cut, scatter_cut
from perspex.ops.windows import (
    CLIP,
    FILL_OR_DROP,
    ZERO,
    Axes,
    FillValue,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_dims,
    check_index,
    check_updates,
    check_windows,
    clip_indices,
    default_fill,
    entry,
    index_number,
    shifted,
    update_program,
    window_dims,
    window_sizes,
)
from perspex.tracing import spaces
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof


class Gather(Primitive):
    """The windows of size `slice_sizes` of the operand that start at the given indices."""

    name = "gather"
    degree = 1
    only_moves = True
    cut = gather_cut

    def type(
        self,
        operand: ShapedArray,
        indices: ShapedArray,
        *,
        dimension_numbers: GatherDimensionNumbers,
        slice_sizes: Axes,
        unique_indices: bool,
        indices_are_sorted: bool,
        mode: GatherScatterMode,
        fill_value: FillValue | None,
    ) -> ShapedArray:
        offset, collapsed, index_map, batching, indices_batching = dimension_numbers
        words = ("start_index_map", "collapsed_slice_dims", "start_indices_batching_dims")
        check_index(
            "gather", operand, indices, index_map, collapsed, batching, indices_batching, words
        )
        if len(slice_sizes) != operand.ndim:
            raise TypeError(
                f"gather: slice_sizes must have one entry for each of the {operand.ndim} axes of "
                f"the operand, got {slice_sizes}"
            )
        if any(not 0 <= s <= n for s, n in zip(slice_sizes, operand.shape, strict=True)):
            raise TypeError(
                f"gather: slice_sizes {slice_sizes} do not fit in the operand of shape "
                f"{operand.shape}"
            )
        if any(slice_sizes[d] != 1 for d in collapsed) or any(slice_sizes[d] > 1 for d in batching):
            raise TypeError(
                f"gather: slice_sizes must be 1 along collapsed_slice_dims {collapsed} and "
                f"operand_batching_dims {batching}, got {slice_sizes}"
            )
        window = [slice_sizes[d] for d in window_dims(operand.ndim, collapsed, batching)]
        ndim = indices.ndim - 1 + len(offset)
        check_dims("gather", "offset_dims", offset, ndim)
        if len(offset) != len(window):
            raise TypeError(
                f"gather: a window runs over {len(window)} axes, offset_dims are {offset}"
            )
        lanes, inner = iter(indices.shape[:-1]), iter(window)
        shape = [next(inner if i in offset else lanes) for i in range(ndim)]
        return ShapedArray(shape, operand.dtype, operand.weak_type)

    def traffic(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return float(operands[1].nbytes + 2 * results[0].nbytes)

    def checked(self, checks: Any, operand: Any, indices: Any, **params: Any) -> Any:
        numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
        check_windows(checks, self, operand, indices, sizes, numbers)
        return self(operand, indices, **params)

    def lower(
        self,
        b: Any,
        operand: Any,
        indices: Any,
        *,
        mode: GatherScatterMode,
        fill_value: FillValue | None,
        **params: Any,
    ) -> Any:
        if mode is FILL_OR_DROP:
            (out,) = expand(
                b, lambda x, i: fill_outside(x, i, fill_value, **params), operand, indices
            )
            return out
        # XLA moves windows inside by itself.
        offset, collapsed, index_map, batching, indices_batching = params["dimension_numbers"]
        numbers = types.attribute(
            f"#stablehlo.gather<offset_dims = {list(offset)}, "
            f"collapsed_slice_dims = {list(collapsed)}, "
            f"operand_batching_dims = {list(batching)}, "
            f"start_indices_batching_dims = {list(indices_batching)}, "
            f"start_index_map = {list(index_map)}, "
            f"index_vector_dim = {b.in_avals[1].ndim - 1}>"
        )
        return b.op(
            "stablehlo.gather",
            operand,
            indices,
            attributes={
                "dimension_numbers": numbers,
                "slice_sizes": types.integers(params["slice_sizes"]),
                "indices_are_sorted": types.boolean(params["indices_are_sorted"]),
            },
        )

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        operand, out = in_avals[0], out_avals[0]
        extra = operand.physical().shape[operand.ndim :]
        numbers = params["dimension_numbers"]
        offset = (*numbers.offset_dims, *range(out.ndim, out.ndim + len(extra)))
        return {
            **params,
            "dimension_numbers": numbers._replace(offset_dims=offset),
            "slice_sizes": (*params["slice_sizes"], *extra),
        }

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        out = self(*primals, **params)
        if tangents[0] is None:
            return out, None
        if params["fill_value"] is not None:
            params = {**params, "fill_value": ZERO}
        return out, self(tangents[0], primals[1], **params)

    def transpose(
        self,
        ct: Any,
        operand: Any,
        indices: Any,
        *,
        dimension_numbers: GatherDimensionNumbers,
        unique_indices: bool,
        indices_are_sorted: bool,
        mode: GatherScatterMode,
        **params: Any,
    ) -> Any:
        added = scatter_add(
            zeros(operand.aval.strip_weak_type()),
            indices,
            ct,
            dimension_numbers=ScatterDimensionNumbers(*dimension_numbers),
            unique_indices=unique_indices,
            indices_are_sorted=indices_are_sorted,
            mode=mode,
        )
        return [added, None]

    def batch(
        self,
        axis_size: int,
        operands: Any,
        axes: Any,
        *,
        dimension_numbers: GatherDimensionNumbers,
        slice_sizes: Axes,
        unique_indices: bool,
        indices_are_sorted: bool,
        **params: Any,
    ) -> Any:
        (x, i), (x_at, i_at) = operands, axes
        offset, collapsed, index_map, batching, indices_batching = dimension_numbers
        if x_at is not None:
            x = to_front(x, x_at, axis_size)
            collapsed, index_map, batching = map(shifted, (collapsed, index_map, batching))
        if i_at is not None:
            i = to_front(i, i_at, axis_size)
            indices_batching = shifted(indices_batching)
            indices_are_sorted = False
        if i_at is None:
            # The batch axis becomes one more axis of the window.
            offset, slice_sizes = (0, *shifted(offset)), (axis_size, *slice_sizes)
        elif x_at is None:
            # Lanes may read the same elements.
            offset, unique_indices = shifted(offset), False
        else:
            offset, slice_sizes = shifted(offset), (1 if axis_size else 0, *slice_sizes)
            batching, indices_batching = (0, *batching), (0, *indices_batching)
        out = self(
            x,
            i,
            dimension_numbers=GatherDimensionNumbers(
                offset, collapsed, index_map, batching, indices_batching
            ),
            slice_sizes=slice_sizes,
            unique_indices=unique_indices,
            indices_are_sorted=indices_are_sorted,
            **params,
        )
        return out, 0


def fill_outside(
    operand: Any,
    indices: Any,
    fill_value: FillValue | None,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Axes,
    **params: Any,
) -> Any:
    """The gather of the windows inside, and `fill_value` in place of the others."""
    aval = typeof(operand)
    largest = [aval.shape[d] - slice_sizes[d] for d in dimension_numbers.start_index_map]
    inside: Any = np.bool_(True)
    for k, limit in enumerate(largest):
        column = entry(indices, k)
        inside = bitwise_and(inside, ge(column, index_number(indices, 0)))
        inside = bitwise_and(inside, le(column, index_number(indices, limit)))
    out = gather(
        operand,
        indices,
        dimension_numbers=dimension_numbers,
        slice_sizes=slice_sizes,
        mode=CLIP,
        fill_value=None,
        **params,
    )
    full = typeof(out).shape
    # Of the shape of the lanes; with empty index vectors everything is inside.
    lanes = tuple([i for i in range(len(full)) if i not in dimension_numbers.offset_dims])
    lanes = lanes if largest else ()
    mask = broadcast_in_dim(inside, shape=full, broadcast_dimensions=lanes)
    fill = default_fill(aval.dtype) if fill_value is None else fill_value
    number = np.asarray(fill.value).astype(aval.dtype)[()]
    return select(mask, out, broadcast_in_dim(number, shape=full, broadcast_dimensions=()))


# ---- Scatter ------------------------------------------------------------------------------------


class Scatter(Primitive):
    """The operand with the windows at the given indices updated.

    `update_jaxpr` computes an element from the old one and from its update; `None` takes the
    update, the last one written where several meet.
    """

    name = "scatter"
    printed: ClassVar[dict[str, Any]] = {"update_consts": ()}
    # The operation that combines an element and its update.
    combine: Primitive | None = None
    cut = scatter_cut
    memory = staticmethod(spaces.of_first)

    def __call__(self, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
        if "update_jaxpr" not in params:
            combine = self.combine
            params["update_jaxpr"] = (
                None if combine is None else update_program(combine, typeof(operand).dtype)
            )
        return super().__call__(operand, indices, updates, **params)

    def type(
        self,
        operand: ShapedArray,
        indices: ShapedArray,
        updates: ShapedArray,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **params: Any,
    ) -> ShapedArray:
        check_updates(self.name, operand, indices, updates, dimension_numbers)
        return ShapedArray(operand.shape, operand.dtype, operand.weak_type)

    def checked(self, checks: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
        numbers, out = params["dimension_numbers"], self(operand, indices, updates, **params)
        sizes = window_sizes(numbers, typeof(operand).ndim, typeof(updates).shape)
        if check_windows(checks, self, operand, indices, sizes, numbers):
            checks.nans(self, [out])  # only then, as in JAX
        return out

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return float(operands[2].size) if self.combine is not None else 0.0

    def traffic(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        # Old elements are read where they are combined; what is not updated stays where it is.
        _, indices, updates = operands
        return float(indices.nbytes + updates.nbytes * (2 if self.combine is None else 3))

    def lower(
        self,
        b: Any,
        operand: Any,
        indices: Any,
        updates: Any,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        mode: GatherScatterMode,
        update_jaxpr: ClosedJaxpr | None,
        indices_are_sorted: bool,
        unique_indices: bool,
    ) -> Any:
        (out,) = b.out_avals
        given, index, update = b.in_avals
        window, dropped, index_map, batching, indices_batching = dimension_numbers
        if mode is CLIP:
            sizes = window_sizes(dimension_numbers, given.ndim, update.shape)
            largest = [given.shape[d] - sizes[d] for d in index_map]
            (indices,) = expand(b, lambda i: clip_indices(i, largest), indices, avals=[index])
        numbers = types.attribute(
            f"#stablehlo.scatter<update_window_dims = {list(window)}, "
            f"inserted_window_dims = {list(dropped)}, "
            f"input_batching_dims = {list(batching)}, "
            f"scatter_indices_batching_dims = {list(indices_batching)}, "
            f"scatter_dims_to_operand_dims = {list(index_map)}, "
            f"index_vector_dim = {index.ndim - 1}>"
        )
        scatter = b.ops(
            "stablehlo.scatter",
            [operand, indices, updates],
            [out],
            {
                "scatter_dimension_numbers": numbers,
                "indices_are_sorted": types.boolean(indices_are_sorted),
                "unique_indices": types.boolean(unique_indices),
            },
            regions=1,
        )
        scalar = ShapedArray((), out.dtype)
        with b.block(scatter.regions[0], [scalar, scalar]) as (inner, values):
            if update_jaxpr is None:
                inner.terminate("stablehlo.return", values[1:])
            else:
                inner.terminate("stablehlo.return", inner.inline(update_jaxpr.jaxpr, values))
        return scatter.result

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        operand, updates = in_avals[0], in_avals[2]
        extra = range(updates.ndim, updates.physical().ndim)
        numbers = params["dimension_numbers"]
        window = (*numbers.update_window_dims, *extra)
        assert len(extra) == operand.physical().ndim - operand.ndim
        return {**params, "dimension_numbers": numbers._replace(update_window_dims=window)}

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        x, i, u = primals
        tx, _, tu = tangents
        if tx is None and tu is None:
            return self(x, i, u, **params), None
        if params.pop("update_jaxpr", None) is not None:
            raise NotImplementedError(
                "scatter_apply has no derivative; write x.at[i].set(f(x[i])) instead"
            )
        tx = zeros_like(x) if tx is None else tx
        tu = zeros_like(u) if tu is None else tu
        if params["unique_indices"]:
            return self(x, i, u, **params), self(tx, i, tu, **params)
        # Which of several updates of one element is written is up to the platform. So number the
        # updates, write the numbers, and see which ones stand: the others count for nothing, in
        # the result and in its tangent alike.
        shape = typeof(u).shape
        size = math.prod(shape)
        dtype = np.dtype("uint32" if size < 2**32 - 1 else "uint64")
        count = iota(dtype=dtype, shape=(size,), dimension=0)
        numbers = reshape(add(count, full_like(count, 1)), new_sizes=shape)
        zero = zeros(ShapedArray(typeof(x).shape, dtype))
        written = self(zero, i, numbers, **params)
        kept = eq(written, zero)
        won = eq(numbers, read_windows(written, i, u, **params))
        return tuple(
            scatter_add(select(kept, a, zeros_like(a)), i, select(won, c, zeros_like(c)), **params)
            for a, c in ((x, u), (tx, tu))
        )

    def transpose(self, ct: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
        if not params["unique_indices"] or params.pop("update_jaxpr", None) is not None:
            raise NotImplementedError(
                "scatter is linear in its operands only with unique_indices=True"
            )
        u = updates if not is_linear(updates) else zeros(updates.aval.strip_weak_type())
        return [
            self(ct, indices, zeros_like(u), **params) if is_linear(operand) else None,
            None,
            read_windows(ct, indices, updates, **params) if is_linear(updates) else None,
        ]

    def batch(
        self,
        axis_size: int,
        operands: Any,
        axes: Any,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        indices_are_sorted: bool,
        **params: Any,
    ) -> Any:
        x, i, u = operands
        window, dropped, index_map, batching, indices_batching = dimension_numbers
        x = to_front(x, axes[0], axis_size)
        u = to_front(u, axes[2], axis_size)
        dropped, index_map, batching = map(shifted, (dropped, index_map, batching))
        if axes[1] is None:
            # The batch axis becomes one more axis of the window.
            window = (0, *shifted(window))
        else:
            i = to_front(i, axes[1], axis_size)
            window, indices_are_sorted = shifted(window), False
            batching, indices_batching = (0, *batching), (0, *shifted(indices_batching))
        out = self(
            x,
            i,
            u,
            dimension_numbers=ScatterDimensionNumbers(
                window, dropped, index_map, batching, indices_batching
            ),
            indices_are_sorted=indices_are_sorted,
            **params,
        )
        return out, 0


def read_windows(
    operand: Any,
    indices: Any,
    updates: Any,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
    update_jaxpr: Any = None,
) -> Any:
    """The windows of the operand that a scatter of such updates writes; 0 outside."""
    operand_aval, aval = typeof(operand), typeof(updates)
    sizes = window_sizes(dimension_numbers, operand_aval.ndim, aval.shape)
    return gather(
        operand,
        indices,
        dimension_numbers=GatherDimensionNumbers(*dimension_numbers),
        slice_sizes=tuple(sizes),
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        mode=mode,
        fill_value=ZERO,
    )


class ScatterAdd(Scatter):
    """The operand with the updates added at the given indices."""

    name = "scatter-add"
    degree = 1
    combine = add

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        x, i, u = primals
        tx, _, tu = tangents
        out = self(x, i, u, **params)
        if tu is None:
            return out, tx
        return out, self(zeros_like(x) if tx is None else tx, i, tu, **params)

    def transpose(self, ct: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
        read = read_windows(ct, indices, updates, **params) if is_linear(updates) else None
        return [ct if is_linear(operand) else None, None, read]


class ScatterSub(ScatterAdd):
    """The operand with the updates subtracted at the given indices."""

    name = "scatter-sub"
    combine = sub

    def transpose(self, ct: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
        to_operand, _, read = super().transpose(ct, operand, indices, updates, **params)
        return [to_operand, None, None if read is None else neg(read)]


class ScatterMul(Scatter):
    """The operand with the elements at the given indices multiplied by the updates."""

    name = "scatter-mul"
    combine = mul

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        x, i, u = primals
        tx, _, tu = tangents
        out = self(x, i, u, **params)
        tangent = None if tx is None else self(tx, i, u, **params)
        if tu is not None:
            params.pop("update_jaxpr", None)
            if not params["unique_indices"]:
                tu = mul(tu, rest_of_product(x, i, u, **params))
            term = mul(x, scatter_add(zeros_like(x), i, tu, **params))
            tangent = term if tangent is None else add(tangent, term)
        return out, tangent

    def transpose(self, ct: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
        if not is_linear(operand):
            raise NotImplementedError("scatter-mul is transposed in its operand only")
        return [self(ct, indices, updates, **params), None, None]


def rest_of_product(x: Any, i: Any, u: Any, **params: Any) -> Any:
    """For each update, the product of the others that are for the same element.

    By division, where none of them is zero. One zero leaves the product of the rest to itself and
    nothing to the others; two leave nothing to anybody.
    """
    zero, one = zeros_like(u), full_like(u, 1)
    vanishes = eq(u, zero)
    nonzero = select(vanishes, one, u)
    product = scatter_mul(full_like(x, 1), i, nonzero, **params)
    zeros_met = scatter_add(zeros_like(x), i, select(vanishes, one, zero), **params)
    product = read_windows(product, i, u, **params)
    zeros_met = read_windows(zeros_met, i, u, **params)
    alone = eq(zeros_met, select(vanishes, one, zero))
    return select(alone, div(product, nonzero), zero)


class ScatterExtremum(Scatter):
    """The operand with the elements at the given indices and their updates compared."""

    def __init__(self, name: str, combine: Primitive) -> None:
        super().__init__()
        self.name, self.combine = name, combine

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        x, i, u = primals
        tx, _, tu = tangents
        out = self(x, i, u, **params)
        if tx is None and tu is None:
            return out, None
        params.pop("update_jaxpr", None)
        # The tangents of all that equal the extremum, in equal shares: none where that is NaN.
        from_x = eq(x, out)
        if tx is not None:  # what no update meets stays, NaN also
            met = scatter_add(zeros_like(x), i, full_like(u, 1), **params)
            from_x = max(from_x, eq(met, zeros_like(x)))
        from_u = eq(u, read_windows(out, i, u, **params))
        share_x = select(from_x, full_like(x, 1), zeros_like(x))
        share_u = select(from_u, full_like(u, 1), zeros_like(u))
        count = max(scatter_add(share_x, i, share_u, **params), full_like(x, 1))
        moved_x = zeros_like(x) if tx is None else select(from_x, tx, zeros_like(x))
        if tu is None:
            return out, div(moved_x, count)
        moved_u = select(from_u, tu, zeros_like(u))
        return out, div(scatter_add(moved_x, i, moved_u, **params), count)


gather, scatter = Gather(), Scatter()
scatter_add, scatter_sub, scatter_mul = ScatterAdd(), ScatterSub(), ScatterMul()
scatter_min = ScatterExtremum("scatter-min", min)
scatter_max = ScatterExtremum("scatter-max", max)

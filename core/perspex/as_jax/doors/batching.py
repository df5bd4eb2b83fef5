"""`jax.interpreters.batching`: rules for batches, as libraries register and call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perspex.as_jax.doors.linear_util import Store, transformation_with_aux2
from perspex.as_jax.doors.rules import AxisData as AxisData
from perspex.as_jax.doors.rules import axis_primitive_batchers as axis_primitive_batchers
from perspex.as_jax.doors.rules import fancy_primitive_batchers as fancy_primitive_batchers
from perspex.as_jax.doors.rules import primitive_batchers as primitive_batchers
from perspex.ops.structural import broadcast_in_dim, move_axis, reshape
from perspex.tracing.axes import Axis
from perspex.tracing.trace import typeof
from perspex.transforms import vmap
from perspex.transforms.vmap import BatchTrace as BatchTrace
from perspex.transforms.vmap import BatchTracer as BatchTracer
from perspex.transforms.vmap import batch_jaxpr

__all__ = [
    "AxisData", "BatchTrace", "BatchTracer", "axis_primitive_batchers", "batch_jaxpr_axes",
    "batch_subtrace", "bdim_at_front", "broadcast", "defbroadcasting", "defreducer",
    "defvectorized", "fancy_primitive_batchers", "matchaxis", "moveaxis", "not_mapped",
    "primitive_batchers", "zero_if_mapped",
]  # fmt: skip

# The axis of what is the same for all examples.
not_mapped = None
moveaxis = move_axis


class _ZeroIfMapped:
    """An axis for results: the first where there is a batch."""

    def __repr__(self) -> str:
        return "zero_if_mapped"


zero_if_mapped = _ZeroIfMapped()


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """`x` repeated along a new axis."""
    aval = typeof(x)
    shape = list(aval.shape)
    shape.insert(axis, sz)
    dims = tuple([i for i in range(len(shape)) if i != axis])
    return broadcast_in_dim(x, shape=tuple(shape), broadcast_dimensions=dims)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """A batch with its axis in front; what is the same for all is repeated."""
    return broadcast(x, size, 0) if bdim is None else move_axis(x, bdim, 0)


def matchaxis(axis_name: Any, sz: int, mesh_axis: Any, src: Any, dst: Any, x: Any) -> Any:
    """`x` with its batch axis moved from `src` to `dst`, repeated if it has none."""
    if src == dst:
        return x
    if src is None:
        return broadcast(x, sz, dst)
    if dst is None:
        raise ValueError(f"a batch with the axis {src} cannot be one value for all examples")
    return move_axis(x, src, dst)


def defvectorized(prim: Any) -> None:
    """Say that a primitive works element by element: all batch axes are in one place."""

    def batch(operands: Sequence[Any], axes: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        at = next(i for i in axes if i is not None)
        if any(i != at for i in axes):
            raise ValueError(
                f"{prim}: the operands have their batch axes in different places, {tuple(axes)}; "
                "use defbroadcasting"
            )
        return prim.bind(*operands, **params), at

    primitive_batchers[prim] = batch


def defbroadcasting(prim: Any) -> None:
    """Say that a primitive works element by element and broadcasts axes of length one."""

    def batch(operands: Sequence[Any], axes: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        avals = [typeof(x) for x in operands]
        shape, at = next(
            (aval.shape, i) for aval, i in zip(avals, axes, strict=True) if i is not None
        )
        pairs = list(zip(avals, axes, strict=True))
        if not all(aval.shape == shape and i == at for aval, i in pairs if aval.ndim):
            at = 0
            operands = [
                bdim_at_front(x, i, 1) if aval.ndim else x
                for x, (aval, i) in zip(operands, pairs, strict=True)
            ]
            ndim = max([typeof(x).ndim for x in operands])
            operands = [
                x if i is None else _widened(x, ndim) for x, i in zip(operands, axes, strict=True)
            ]
        out = prim.bind(*operands, **params)
        return out, [at] * len(out) if prim.multiple_results else at

    primitive_batchers[prim] = batch


def _widened(x: Any, ndim: int) -> Any:
    shape = typeof(x).shape
    return reshape(x, new_sizes=(*shape, *[1] * (ndim - len(shape))))


def defreducer(prim: Any, ident: Any = None) -> None:
    """Say that a primitive reduces its operand along the axes of the param `axes`."""

    def batch(
        operands: Sequence[Any], axes_in: Sequence[Any], *, axes: Sequence[int], **params: Any
    ) -> tuple[Any, Any]:
        (operand,), (at,) = operands, axes_in
        moved = tuple([a + (a >= at) for a in axes])
        left = [i for i in range(typeof(operand).ndim) if i not in moved]
        return prim.bind(operand, axes=moved, **params), left.index(at)

    primitive_batchers[prim] = batch


def batch_jaxpr_axes(
    closed_jaxpr: Any, axis_data: Any, in_axes: Sequence[int | None], out_axes_dest: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """The program for a whole batch, with the axes of its results.

    Raises:
      NotImplementedError: for axes other than the first, which is where batches are here.
    """
    if any(at not in (None, 0) for at in in_axes):
        raise NotImplementedError(
            f"batch_jaxpr_axes: the batch axes {tuple(in_axes)} are not all 0; move them first"
        )
    axis = Axis(axis_data.size, axis_data.name)
    wanted = tuple([at is not zero_if_mapped and at is not None for at in out_axes_dest])
    given = tuple([i is not None for i in in_axes])
    closed, batched = batch_jaxpr(closed_jaxpr, axis, given, wanted)
    return closed, [0 if flag else None for flag in batched]


@transformation_with_aux2
def batch_subtrace(
    f: Callable[..., Any], store: Store, tag: Any, axis_data: AxisData, in_dims: Any, *in_vals: Any
) -> tuple[Any, ...]:
    """A flat function on batches, whose second result gives the batch axes of its results."""
    dims = in_dims() if callable(in_dims) else in_dims
    outs, found = vmap.batch(f, Axis(axis_data.size, axis_data.name), in_vals, dims)
    store.store(tuple(found))
    return tuple(outs)

"""`reduce` and `reduce_window`: reductions by any function of two scalars.

The function is a program among the params, hence they stand above the transforms. The derivative,
and batches of it with an initial value each, are written out as a tree: neighbours are combined,
all at once by the batched program, until one is left.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops.shape import concatenate, pad, part, slice, stack
from perspex.ops.sliding import dilated
from perspex.ops.structural import (
    broadcast_in_dim,
    check_axes,
    reshape,
    to_front,
    transpose,
    without,
    zeros,
)
from perspex.ops.window_reductions import batched_windows, emit_windows, window_shape, window_type
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import typeof
from perspex.transforms.jvp import is_differentiable, jvp_jaxpr, tangent_aval
from perspex.transforms.programs import by_program, cut, with_gaps
from perspex.transforms.vmap import batch_jaxpr


class Reduce(Primitive):
    """Operands reduced together along `dimensions`, starting from as many initial values.

    `jaxpr` takes what there is so far of each operand, then an element of each, all scalars.
    """

    name = "reduce"
    makes_nan = True
    multiple_results = True

    def typed(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        # Not cached: the key would keep every program alive.
        return self.fresh_type(avals, params)

    def type(
        self, *avals: ShapedArray, dimensions: tuple[int, ...], jaxpr: ClosedJaxpr
    ) -> tuple[ShapedArray, ...]:
        operands, inits = _checked(self.name, avals, jaxpr)
        shape = operands[0].shape
        check_axes(self.name, dimensions, len(shape))
        return tuple(
            [
                ShapedArray(without(shape, dimensions), x.dtype, x.weak_type and init.weak_type)
                for x, init in zip(operands, inits, strict=True)
            ]
        )

    def cut(
        self, out: Any, *avals: ShapedArray, dimensions: tuple[int, ...], **params: Any
    ) -> list[cuts.Parts]:
        operands, _ = cut(avals, len(avals) // 2)
        return [cuts.without(cuts.merged(self.name, operands), dimensions)] * len(out)

    def lower(
        self, b: Any, *values: Any, dimensions: tuple[int, ...], jaxpr: ClosedJaxpr
    ) -> list[Any]:
        reduce = b.ops(
            "stablehlo.reduce",
            values,
            b.out_avals,
            {"dimensions": types.integers(dimensions)},
            regions=1,
        )
        with b.block(reduce.regions[0], jaxpr.in_avals) as (inner, args):
            inner.terminate("stablehlo.return", inner.inline(jaxpr.jaxpr, args))
        return list(reduce.results)

    def jvp(
        self, primals: Any, tangents: Any, *, dimensions: tuple[int, ...], jaxpr: ClosedJaxpr
    ) -> Any:
        outs = self(*primals, dimensions=dimensions, jaxpr=jaxpr)
        smooth, duals = _with_tangents(jaxpr, primals, tangents)
        if not duals:
            return outs, [None] * len(outs)
        operands, inits = cut(duals, len(duals) // 2)
        found = _reduced(_dual(jaxpr), operands, inits, dimensions)
        return outs, with_gaps(found[len(outs) :], smooth)

    def batch(
        self,
        axis_size: int,
        operands: Any,
        axes: Any,
        *,
        dimensions: tuple[int, ...],
        jaxpr: ClosedJaxpr,
    ) -> Any:
        xs, inits = cut(operands, len(operands) // 2)
        at, init_at = cut(axes, len(xs))
        xs = [to_front(x, a, axis_size) for x, a in zip(xs, at, strict=True)]
        shifted = tuple([d + 1 for d in dimensions])
        if all(a is None for a in init_at):
            outs = self(*xs, *inits, dimensions=shifted, jaxpr=jaxpr)
            return outs, [0] * len(outs)
        shape = (axis_size, *without(typeof(xs[0]).shape[1:], dimensions))
        starts = [
            broadcast_in_dim(x, shape=shape, broadcast_dimensions=() if a is None else (0,))
            for x, a in zip(inits, init_at, strict=True)
        ]
        return _reduced(jaxpr, xs, starts, shifted), [0] * len(xs)


def _checked(name: str, avals: Sequence[ShapedArray], jaxpr: ClosedJaxpr) -> list[Any]:
    """Operands and initial values, after checks of what all reductions by programs ask."""
    operands, inits = cut(avals, len(avals) // 2)
    if not operands or len(operands) != len(inits):
        raise TypeError(
            f"{name} takes operands and as many initial values, got {len(operands)} and "
            f"{len(inits)}"
        )
    shape = operands[0].shape
    if any(x.shape != shape for x in operands):
        shapes = ", ".join([str(x.shape) for x in operands])
        raise TypeError(f"{name}: operands must have equal shapes, got {shapes}")
    if any(init.shape for init in inits):
        shapes = ", ".join([str(init.shape) for init in inits])
        kind = TypeError if name == "reduce_window" else ValueError  # as in JAX
        raise kind(f"{name}: initial values must be scalars, got shapes {shapes}")
    given = [x.dtype for x in operands]
    for what, found in (("initial values", inits), ("the computation's results", jaxpr.out_avals)):
        if [a.dtype for a in found] != given or any(a.shape for a in found):
            raise TypeError(
                f"{name}: {what} must be scalars of the operands' dtypes "
                f"({_names(operands)}), got ({_names(found)}); convert them"
            )
    return [operands, inits]


def _names(avals: Sequence[ShapedArray]) -> str:
    return ", ".join([a.str_short(short_dtypes=False) for a in avals])


def _with_tangents(
    jaxpr: ClosedJaxpr, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[tuple[bool, ...], list[Any]]:
    """Which operands can have tangents; operands, their tangents, initial values, theirs.

    The second is empty where there is nothing to differentiate.
    """
    count = len(primals) // 2
    smooth = tuple([is_differentiable(a) for a in jaxpr.in_avals[:count]])
    if not any(t is not None and s for t, s in zip(tangents, smooth * 2, strict=True)):
        return smooth, []
    full = [
        zeros(tangent_aval(typeof(x))) if t is None else t
        for x, t, s in zip(primals, tangents, smooth * 2, strict=True)
        if s
    ]
    operands, inits = cut(primals, count)
    dt, dt_inits = cut(full, sum(smooth))
    return smooth, [*operands, *dt, *inits, *dt_inits]


@by_program
def _dual(jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """The program on dual numbers: values and tangents so far, values and tangents of elements."""
    count = len(jaxpr.out_avals)
    smooth = tuple([is_differentiable(a) for a in jaxpr.in_avals])
    program, _ = jvp_jaxpr(jaxpr, smooth, True)
    invars = program.jaxpr.invars
    so_far, element, dt_so_far, dt_element = cut(invars, count, count, sum(smooth[:count]))
    return ClosedJaxpr(program.jaxpr.replace(invars=[*so_far, *dt_so_far, *element, *dt_element]))


def _reduced(
    jaxpr: ClosedJaxpr, operands: Sequence[Any], inits: Sequence[Any], dimensions: tuple[int, ...]
) -> list[Any]:
    """The reduction as a tree. The initial values are scalars or have the shape of the result."""
    given = typeof(operands[0]).shape
    kept = [i for i in range(len(given)) if i not in dimensions]
    shape = tuple([given[i] for i in kept])
    n = 1
    for d in dimensions:
        n *= given[d]
    inits = [
        x if typeof(x).shape == shape else broadcast_in_dim(x, shape=shape, broadcast_dimensions=())
        for x in inits
    ]
    if n == 0:
        return inits
    rows = [
        reshape(transpose(x, permutation=(*dimensions, *kept)), new_sizes=(n, *shape))
        for x in operands
    ]
    while n > 1:
        left, right = ([_every_other(x, i, n - n % 2) for x in rows] for i in (0, 1))
        combined = _combine(jaxpr, left, right)
        if n % 2:
            last = [part(x, n - 1, n, 0, typeof(x).shape) for x in rows]
            combined = [
                concatenate(*pair, dimension=0) for pair in zip(combined, last, strict=True)
            ]
        rows, n = combined, n - n // 2
    total = [reshape(x, new_sizes=shape) for x in rows]
    return _combine(jaxpr, inits, total)


def _every_other(x: Any, first: int, stop: int) -> Any:
    shape = typeof(x).shape
    return slice(
        x,
        start_indices=(first, *[0] * (len(shape) - 1)),
        limit_indices=(stop, *shape[1:]),
        strides=(2, *[1] * (len(shape) - 1)),
    )


def _combine(jaxpr: ClosedJaxpr, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    """The program of scalars applied to all elements of arrays of one shape."""
    shape, size = typeof(left[0]).shape, typeof(left[0]).size
    flat = [reshape(x, new_sizes=(size,)) for x in (*left, *right)]
    whole, _ = batch_jaxpr(jaxpr, size, (True,) * len(flat), True)
    outs = eval_jaxpr(whole.jaxpr, whole.consts, *flat)
    return [reshape(x, new_sizes=shape) for x in outs]


class ReduceWindow(Primitive):
    """The reductions of each window of the operands, from as many initial values.

    Initial values are identities where there is padding, which XLA may or may not count as them.
    """

    name = "reduce_window"
    makes_nan = True
    multiple_results = True
    printed: ClassVar[dict[str, Any]] = {"consts": ()}

    def typed(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        # Not cached: the key would keep every program alive.
        return self.fresh_type(avals, params)

    def type(
        self, *avals: ShapedArray, jaxpr: ClosedJaxpr, **params: Any
    ) -> tuple[ShapedArray, ...]:
        operands, _ = _checked(self.name, avals, jaxpr)
        shape = window_type(self.name, operands[0], **params)
        return tuple([ShapedArray(shape, x.dtype) for x in operands])

    def cut(self, out: Any, *avals: ShapedArray, **params: Any) -> list[cuts.Parts]:
        operands, _ = cut(avals, len(avals) // 2)
        return [cuts.resized(self.name, x, y) for x, y in zip(operands, out, strict=True)]

    def lower(self, b: Any, *values: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
        operands, inits = cut(values, len(values) // 2)
        reduce = emit_windows(b, operands, inits, b.out_avals, params)
        with b.block(reduce.regions[0], jaxpr.in_avals) as (inner, args):
            inner.terminate("stablehlo.return", inner.inline(jaxpr.jaxpr, args))
        return list(reduce.results)

    def jvp(self, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
        outs = self(*primals, jaxpr=jaxpr, **params)
        smooth, duals = _with_tangents(jaxpr, primals, tangents)
        if not duals:
            return outs, [None] * len(outs)
        operands, inits = cut(duals, len(duals) // 2)
        rows = [_rows(x, init, params) for x, init in zip(operands, inits, strict=True)]
        found = _reduced(_dual(jaxpr), rows, inits, (0,))
        return outs, with_gaps(found[len(outs) :], smooth)

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, jaxpr: ClosedJaxpr, **params: Any
    ) -> Any:
        xs, inits = cut(operands, len(operands) // 2)
        at, init_at = cut(axes, len(xs))
        xs = [to_front(x, a, axis_size) for x, a in zip(xs, at, strict=True)]
        params = batched_windows(params, 0)
        if all(a is None for a in init_at):
            outs = self(*xs, *inits, jaxpr=jaxpr, **params)
            return outs, [0] * len(outs)
        # With an initial value each, which is also what they are padded with.
        shape = (axis_size, *window_shape(typeof(xs[0]).shape, **params)[1:])
        starts = [
            broadcast_in_dim(x, shape=shape, broadcast_dimensions=() if a is None else (0,))
            for x, a in zip(inits, init_at, strict=True)
        ]
        rows = [_rows(x, init, params, a) for x, init, a in zip(xs, inits, init_at, strict=True)]
        return _reduced(jaxpr, rows, starts, (0,)), [0] * len(xs)


def _rows(x: Any, init: Any, params: dict[str, Any], batched: int | None = None) -> Any:
    """All windows, taken apart: element `k` of each of them is row `k` of the result.

    `batched` says whether there is an initial value for each index of the first axis.
    """
    window, gaps, steps = [
        params[name] for name in ("window_dimensions", "window_dilation", "window_strides")
    ]
    config = tuple(
        [(*p, d - 1) for p, d in zip(params["padding"], params["base_dilation"], strict=True)]
    )
    shape = window_shape(typeof(x).shape, **params)
    if batched is None:
        padded = pad(x, init, padding_config=config)
    else:
        padded, _ = pad.batch(typeof(x).shape[0], (x, init), (0, 0), padding_config=config[1:])
    rows = []
    for offsets in itertools.product(*[range(k) for k in window]):
        start = tuple([i * gap for i, gap in zip(offsets, gaps, strict=True)])
        reach = [dilated(n, step) for n, step in zip(shape, steps, strict=True)]
        if 0 in shape:
            start = (0,) * len(shape)
        stop = tuple([i + n for i, n in zip(start, reach, strict=True)])
        rows.append(slice(padded, start_indices=start, limit_indices=stop, strides=steps))
    return stack(*rows, axis=0)


reduce_p = Reduce()
reduce_window_p = ReduceWindow()

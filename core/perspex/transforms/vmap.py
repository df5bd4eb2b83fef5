"""Batching: one function call instead of a loop over an axis.

A `BatchTracer` stands for one example of a batch; it holds the array of all of them and the place
of the batch axis. An operation on one calls the `batch` rule of its primitive, under the trace
below. Values that do not depend on the batch are not wrapped, and operations on them run once.

The axis may have a name. A collective (`ops.collectives`) is an operation that names it in its
params, and the innermost batch of that name carries it out: its `batch` rule, which is asked
whether or not an operand is batched, sees the examples as what they are, the rows of one array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from perspex import config
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops.structural import to_front
from perspex.tracing import cuts
from perspex.tracing.axes import Axis
from perspex.tracing.past import UNKNOWN, Names
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import refuse_leaks
from perspex.transforms.programs import by_program, program
from perspex.transforms.trace import TransformTrace, TransformTracer

on_unmapped: Callable[[Any], object] | None = None
"""Gets each key that all examples of a batch draw with; `None`: nobody asks."""

# The types of examples by those of batches; avals are few, and live for ever.
_examples: dict[tuple[ShapedArray, int], ShapedArray] = {}


def _example(batch: ShapedArray, axis: int) -> ShapedArray:
    found = _examples[batch, axis] = cuts.without_axis(batch, axis)
    return found


class BatchTracer(TransformTracer):
    """One example of the batch that `value` holds along `axis`."""

    __slots__ = ("axis", "value")

    def __init__(self, trace: BatchTrace, value: Any, axis: int) -> None:
        self._trace = trace
        self._past = UNKNOWN
        self.value = value
        self.axis = axis
        key = shaped(value), axis
        aval = _examples.get(key)
        self.aval = _example(*key) if aval is None else aval

    @property
    def _inner(self) -> Any:
        return self.value

    def __repr__(self) -> str:
        whole = shaped(self.value).str_short(short_dtypes=False)
        return f"BatchTracer({self.aval.str_short(short_dtypes=False)} of {whole}, {self.axis=})"


class BatchTrace(TransformTrace):
    """Batches: every operation on examples is its `batch` rule."""

    __slots__ = ("axis",)
    doing = "mapped"

    def __init__(self, axis: Axis, arg_names: Names | None = None) -> None:
        super().__init__(arg_names)
        self.axis = axis

    def bind(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if primitive.untraced:
            outs = primitive.call_batched(self, args, **params)
            if self.remembers:
                self.remember(primitive, args, outs)
            return outs
        operands: list[Any] = []
        axes: list[int | None] = []
        batched = False
        for x in args:
            if x.__class__ is BatchTracer and x._trace is self:
                operands.append(x.value)
                axes.append(x.axis)
                batched = True
            else:
                operands.append(x)
                axes.append(None)
        if not (batched or (primitive.takes_axis and self._is_named_by(primitive, params))):
            if primitive.consumes_key and on_unmapped is not None and self.axis.size > 1:
                on_unmapped(args[0])
            return self.below(self.parent.bind, (primitive, args, params), {})
        mine = self.axis if primitive.takes_axis else self.axis.size
        out, axis = self.below(primitive.batch, (mine, operands, axes), params)
        if primitive.multiple_results:
            outs = self.examples(out, axis)
            if self.remembers:
                self.remember(primitive, args, outs)
            return outs
        if axis is None:
            return out
        example = BatchTracer(self, out, axis)
        if self.remembers:
            example._past = self.past_of(primitive, args, example.aval)
        return example

    def examples(self, values: Iterable[Any], axes: Iterable[int | None]) -> list[Any]:
        """What stands in this trace for one example of each of the batches `values`."""
        pairs = zip(values, axes, strict=True)
        return [x if at is None else BatchTracer(self, x, at) for x, at in pairs]

    def batches(self, xs: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
        """The batches that `xs` stand for, and the axis of each; `None` for other values."""
        mine = [x.__class__ is BatchTracer and x._trace is self for x in xs]
        return (
            [x.value if own else x for x, own in zip(xs, mine, strict=True)],
            [x.axis if own else None for x, own in zip(xs, mine, strict=True)],
        )

    def _is_named_by(self, primitive: Primitive, params: dict[str, Any]) -> bool:
        name = self.axis.name
        return name is not None and name in primitive.axis_names(params)

    def layer(self) -> str:
        return f"It stands for each of the {self.axis.size} examples of a vmap."


def batch(
    f: Callable[..., Sequence[Any]],
    axis: Axis | int,
    args: Sequence[Any],
    axes: Sequence[int | None],
    arg_names: Names | None = None,
) -> tuple[list[Any], list[int | None]]:
    """Results of the flat function `f` on each example, and where the batch axis is in each.

    `axis` is the number of examples, or that with a name. `axes[i]` is the batch axis of `args[i]`;
    `None` gives the same value to all examples, and is the axis of a result that all examples have
    in common. `arg_names` tells errors what the user's function and its arguments are called.
    """
    axis = axis if isinstance(axis, Axis) else Axis(axis)
    trace = BatchTrace(axis, arg_names)
    examples = trace.examples(args, axes)
    if axis.name is None:
        outs = trace.run(f, examples)
    else:
        with config.axis_env((*config.axis_env.value, axis)):
            outs = trace.run(f, examples)
    found = trace.batches(outs)
    if config.check_tracer_leaks.value:
        del examples, outs
        refuse_leaks(trace)
    return found


def batched_aval(aval: ShapedArray, axis: Axis | int, at: int = 0) -> ShapedArray:
    """The type of a batch of values of type `aval`; `axis` may be the number of them."""
    if isinstance(axis, Axis):
        return cuts.with_axis(aval, axis.size, at, axis.cut)
    return cuts.with_axis(aval, axis, at)


@by_program
def batch_jaxpr(
    closed: ClosedJaxpr,
    axis: Axis | int,
    batched: tuple[bool, ...],
    instantiate: tuple[bool, ...] | bool = False,
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program that does for a whole batch what `closed` does for one example.

    Arguments marked `batched`, and results marked in the second value returned, have the batch
    axis in front. Results marked `instantiate` are repeated if they do not depend on the batch.
    """
    outs = len(closed.out_avals)
    wanted = (instantiate,) * outs if isinstance(instantiate, bool) else instantiate
    out_batched: tuple[bool, ...] = ()

    def whole(*args: Any) -> list[Any]:
        nonlocal out_batched
        f = functools.partial(eval_jaxpr, closed.jaxpr, closed.consts)
        results, axes = batch(f, axis, args, [0 if b else None for b in batched])
        out_batched = tuple([want or at is not None for want, at in zip(wanted, axes, strict=True)])
        return [
            to_front(y, at, axis) if flag else y
            for y, at, flag in zip(results, axes, out_batched, strict=True)
        ]

    avals = [
        batched_aval(aval, axis) if flag else aval
        for aval, flag in zip(closed.in_avals, batched, strict=True)
    ]
    return program(whole, avals, closed.jaxpr.name), out_batched

"""`custom_vmap`: a function with a rule for batches.

The rule runs when the call is batched. Forward mode gives a call of the differentiated function
with the differentiated rule. Where such a call is split into what is known now and what is not, as
reverse mode does, the rule is dropped, because it has no halves: `vmap` of `grad` batches the
function's own operations, and `grad` of `vmap` differentiates the rule. It is dropped also where a
program is batched, or differentiated, by what the function closes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from perspex.ir.jaxpr import ClosedJaxpr
from perspex.jitted.call import jit_p
from perspex.ops.structural import to_front, zeros_like
from perspex.rules.calls import plain_call
from perspex.rules.custom_call import (
    Closing,
    CustomCall,
    Derived,
    LiveBatch,
    Rule,
    Selected,
    call_function,
    with_values,
)
from perspex.tracing.axes import Axis
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import typeof
from perspex.transforms.higher_order import batch_in_front
from perspex.transforms.jvp import is_differentiable, jvp, jvp_jaxpr
from perspex.transforms.linearize import Rest
from perspex.transforms.programs import cut, like_primals, pick, with_gaps
from perspex.transforms.vmap import BatchTrace, batch_jaxpr


class BatchRule(Rule):
    """A function of flat lists with a rule for batches."""

    def vmap(
        self, axis: Axis, values: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[list[Any], list[int | None]]:
        """The results for a batch of arguments, and where they have its axis."""
        raise NotImplementedError

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        rule = DualRule(self, tuple([t is not None for t in tangents]))
        outs = call_function(*primals, *pick(tangents, rule.nonzero), call=rule)
        return rule.results(outs)

    def live(self, trace: BatchTrace, axes: Sequence[int | None]) -> LiveBatch:
        return LiveFunction(self, trace, axes)

    def closing(self, consts: Sequence[Any]) -> Rule:
        return ClosingBatch(self, consts)

    def selected(self, used: tuple[bool, ...]) -> Rule:
        return SelectedBatch(self, used)

    def batched(self, trace: BatchTrace, args: Sequence[Any]) -> list[Any]:
        values, axes = trace.batches(args)
        if all(at is None for at in axes):
            return super().batched(trace, args)
        outs, places = trace.below(self.vmap, (trace.axis, values, axes), {})
        return trace.examples(outs, places)


class LiveFunction(BatchRule, LiveBatch):
    """A call in a batch that none of its arguments is part of, though it may close over one.

    So the rule does not apply to this batch, but still to those around it.
    """

    jvp = LiveBatch.jvp

    def __init__(self, inner: BatchRule, trace: BatchTrace, axes: Sequence[int | None]) -> None:
        LiveBatch.__init__(self, inner, trace, axes)
        self.rule = inner

    def primal(self, *args: Any) -> list[Any]:
        outs, self.out_axes = self.on_examples(self.inner.primal, args, self.axes)
        return outs

    def vmap(
        self, axis: Axis, values: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[list[Any], list[int | None]]:
        places: list[int | None] = []

        def rule(*args: Any) -> list[Any]:
            outs, places[:] = self.rule.vmap(axis, args, axes)
            return outs

        outs, mine = self.on_examples(rule, values, self.axes)
        # Two axes in one array: that of this batch at `m`, that of the other one at `p` without it.
        found = [
            p if p is None or m is None or p < m else p + 1
            for p, m in zip(places, mine, strict=True)
        ]
        self.out_axes = [
            m if m is None or p is None or p > m else m - 1
            for p, m in zip(found, mine, strict=True)
        ]
        return outs, found

    def settled(self) -> Rule:
        if all(at is None for at in self.out_axes):
            return self.inner.settled()
        return LiveBatch.settled(self)


class DualRule(BatchRule, Derived):
    """The function with tangents, and the rule with tangents, of all results that can have one."""

    def __init__(self, inner: BatchRule, nonzero: tuple[bool, ...]) -> None:
        super().__init__(inner)
        self.nonzero = nonzero

    def primal(self, *args: Any) -> list[Any]:
        primals, given = cut(args, len(self.nonzero))
        return _with_tangents(*jvp(self.inner.primal, primals, with_gaps(given, self.nonzero)))

    def vmap(
        self, axis: Axis, values: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[list[Any], list[int | None]]:
        primals, given = cut(values, len(self.nonzero))
        at_primal, at_given = cut(axes, len(self.nonzero))
        ts, at_tangent = with_gaps(given, self.nonzero), with_gaps(at_given, self.nonzero)
        # The rule for one function is given one axis for a primal and its tangent.
        both = [
            None if a is None and b is None else 0
            for a, b in zip(at_primal, at_tangent, strict=True)
        ]
        primals = [
            x if want is None else to_front(x, at, axis)
            for x, at, want in zip(primals, at_primal, both, strict=True)
        ]
        ts = [
            t if want is None or t is None else to_front(t, at, axis)
            for t, at, want in zip(ts, at_tangent, both, strict=True)
        ]
        places: list[int | None] = []

        def rule(*args: Any) -> list[Any]:
            outs, places[:] = self.inner.vmap(axis, args, both)
            return outs

        outs, tangents = jvp(rule, primals, ts)
        found = _with_tangents(outs, tangents)
        return found, [*places, *pick(places, _differentiable(outs))]

    def results(self, found: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results and tangents among what the call returned."""
        count = 0
        while count + sum(_differentiable(found[:count])) < len(found):
            count += 1
        outs, tangents = cut(found, count)
        return outs, with_gaps(tangents, _differentiable(outs))


def _differentiable(outs: Sequence[Any]) -> list[bool]:
    return [is_differentiable(typeof(y)) for y in outs]


def _with_tangents(outs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    found = [
        zeros_like(y) if t is None else t
        for y, t, can in zip(outs, tangents, _differentiable(outs), strict=True)
        if can
    ]
    avals = [typeof(y) for y, can in zip(outs, _differentiable(outs), strict=True) if can]
    return [*outs, *like_primals(found, avals)]


class ClosingBatch(BatchRule, Closing):
    """The rule of a function that closes over traced values, which are not examples themselves."""

    def vmap(
        self, axis: Axis, values: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[list[Any], list[int | None]]:
        consts, args = cut(values, len(self.values))
        places: list[int | None] = []

        def rule(*args: Any) -> list[Any]:
            outs, places[:] = self.inner.vmap(axis, args, axes[len(consts) :])
            return outs

        return with_values(rule, args, self.values, consts), places


class SelectedBatch(BatchRule, Selected):
    """The same for some of the results."""

    def vmap(
        self, axis: Axis, values: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[list[Any], list[int | None]]:
        outs, places = self.inner.vmap(axis, values, axes)
        return pick(outs, self.used), pick(places, self.used)


class CustomVmapCall(CustomCall):
    """A function with a rule for batches."""

    name = "custom_vmap_call"
    program = "call"
    slot = "rule"
    quiet: ClassVar[dict[str, Any]] = {"num_consts": 0, "name": ...}

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
        rule, num_consts = params["rule"], params["num_consts"]
        nonzero = tuple([t is not None for t in tangents])
        dual, out_nonzero = jvp_jaxpr(params["call"], nonzero, True)
        given = [*primals, *pick(tangents, nonzero)]
        if any(nonzero[:num_consts]) or not isinstance(rule, BatchRule):
            found = eval_jaxpr(dual.jaxpr, (), *given)
        else:
            first = 0 if rule.takes_consts else num_consts
            params.update(call=dual, rule=DualRule(rule, nonzero[first:]))
            found = self(*given, **params)
        outs, ts = cut(found, len(out_nonzero))
        return outs, with_gaps(ts, out_nonzero)

    def batch(
        self, axis: Axis, operands: Any, axes: Any, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        rule, num_consts = params["rule"], params["num_consts"]
        if isinstance(rule, BatchRule) and all(at is None for at in axes[:num_consts]):
            first = 0 if rule.takes_consts else num_consts
            return rule.vmap(axis, operands[first:], axes[first:])
        body, flags = batch_jaxpr(params["call"], axis, tuple([at is not None for at in axes]))
        outs = eval_jaxpr(body.jaxpr, (), *batch_in_front(operands, axes))
        return outs, [0 if flag else None for flag in flags]

    def split(
        self, unknown: Sequence[bool], *operands: Any, call: ClosedJaxpr, name: str, **params: Any
    ) -> tuple[list[Any], Rest | None]:
        return jit_p.split(unknown, *operands, **plain_call(call, name, inline=False))


custom_vmap_call = CustomVmapCall()

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

from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn
from perspex.jitted.call import jit_p
from perspex.ops.structural import to_front, zeros_like
from perspex.rules.custom_call import LiveBatch, Rule, Selected, call_function, transposed_call
from perspex.tracing.axes import Axis
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import typeof
from perspex.transforms.dce import dce_closed
from perspex.transforms.higher_order import HigherOrder, batch_in_front, check_operands
from perspex.transforms.jvp import is_differentiable, jvp, jvp_jaxpr
from perspex.transforms.programs import cut, pick, spread
from perspex.transforms.vmap import BatchTrace, BatchTracer, batch_jaxpr


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

    def batched(self, trace: BatchTrace, args: Sequence[Any]) -> list[Any]:
        mine = [x.__class__ is BatchTracer and x._trace is trace for x in args]
        if not any(mine):
            return super().batched(trace, args)
        values = [x.value if own else x for x, own in zip(args, mine, strict=True)]
        axes = [x.axis if own else None for x, own in zip(args, mine, strict=True)]
        outs, places = trace.below(self.vmap, (trace.axis, values, axes), {})
        return [
            y if at is None else BatchTracer(trace, y, at)
            for y, at in zip(outs, places, strict=True)
        ]


class LiveFunction(BatchRule, LiveBatch):
    """A call in a batch of which it gets no argument, though it may close over one.

    So the rule is not for this batch, but still for those around it.
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


class DualRule(BatchRule):
    """The function with tangents, and the rule with tangents, of all results that can have one."""

    def __init__(self, inner: BatchRule, nonzero: tuple[bool, ...]) -> None:
        self.inner = inner
        self.nonzero = nonzero
        self.name, self.rule_name, self.equation = inner.name, inner.rule_name, inner.equation

    def primal(self, *args: Any) -> list[Any]:
        primals, given = cut(args, len(self.nonzero))
        return _with_tangents(*jvp(self.inner.primal, primals, spread(given, self.nonzero)))

    def vmap(
        self, axis: Axis, values: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[list[Any], list[int | None]]:
        primals, given = cut(values, len(self.nonzero))
        at_primal, at_given = cut(axes, len(self.nonzero))
        ts, at_tangent = spread(given, self.nonzero), spread(at_given, self.nonzero)
        # The rule for one function is given one axis for a primal and its tangent.
        both = [
            None if a is None and b is None else 0
            for a, b in zip(at_primal, at_tangent, strict=True)
        ]
        primals = [
            x if want is None else to_front(x, at, axis.size)
            for x, at, want in zip(primals, at_primal, both, strict=True)
        ]
        ts = [
            t if want is None or t is None else to_front(t, at, axis.size)
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
        return outs, spread(tangents, _differentiable(outs))


def _differentiable(outs: Sequence[Any]) -> list[bool]:
    return [is_differentiable(typeof(y)) for y in outs]


def _with_tangents(outs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    found = [zeros_like(y) if t is None else t for y, t in zip(outs, tangents, strict=True)]
    return [*outs, *pick(found, _differentiable(outs))]


class CustomVmapCall(HigherOrder):
    """The call as an equation; the first `num_consts` operands are those it closes over."""

    name = "custom_vmap_call"
    quiet: ClassVar[dict[str, Any]] = {"num_consts": 0, "name": ...}

    def params(self, rule: Rule, closed: ClosedJaxpr, consts: Sequence[Any]) -> dict[str, Any]:
        """The params of the equation for a call of a function that closes over `consts`."""
        return {"call": closed, "name": rule.name, "num_consts": len(consts), "rule": rule}

    def type(self, *avals: ShapedArray, call: ClosedJaxpr, name: str, **params: Any) -> Any:
        check_operands(f"custom_vmap_call of {name}", avals, call.in_avals)
        return tuple(call.out_avals)

    def lower(self, b: Any, *values: Any, call: ClosedJaxpr, **params: Any) -> list[Any]:
        inlined: list[Any] = b.inline(call.jaxpr, values)
        return inlined

    def jvp(
        self,
        primals: Any,
        tangents: Any,
        *,
        call: ClosedJaxpr,
        num_consts: int,
        rule: Rule,
        name: str,
    ) -> tuple[list[Any], list[Any]]:
        nonzero = tuple([t is not None for t in tangents])
        dual, out_nonzero = jvp_jaxpr(call, nonzero, True)
        given = [*primals, *pick(tangents, nonzero)]
        if any(nonzero[:num_consts]) or not isinstance(rule, BatchRule):
            found = eval_jaxpr(dual.jaxpr, (), *given)
        else:
            found = self(
                *given,
                call=dual,
                name=name,
                num_consts=num_consts,
                rule=DualRule(rule, nonzero[num_consts:]),
            )
        outs, ts = cut(found, len(out_nonzero))
        return outs, spread(ts, out_nonzero)

    def batch(
        self,
        axis: Axis,
        operands: Any,
        axes: Any,
        *,
        call: ClosedJaxpr,
        num_consts: int,
        rule: Rule,
        name: str,
    ) -> tuple[list[Any], list[int | None]]:
        if isinstance(rule, BatchRule) and all(at is None for at in axes[:num_consts]):
            return rule.vmap(axis, operands[num_consts:], axes[num_consts:])
        body, flags = batch_jaxpr(call, axis, tuple([at is not None for at in axes]))
        outs = eval_jaxpr(body.jaxpr, (), *batch_in_front(operands, axes))
        return outs, [0 if flag else None for flag in flags]

    def split(
        self, unknown: Sequence[bool], *operands: Any, call: ClosedJaxpr, name: str, **params: Any
    ) -> Any:
        donated = (False,) * len(operands)
        return jit_p.split(
            unknown,
            *operands,
            jaxpr=call,
            name=name,
            donated_invars=donated,
            inline=False,
            keep_unused=False,
        )

    def transpose(self, cts: Any, *operands: Any, call: ClosedJaxpr, **params: Any) -> list[Any]:
        return transposed_call(call, cts, operands)

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        if all(used):
            return eqn
        params = eqn.params
        body, _ = dce_closed(params["call"], tuple(used), (True,) * len(eqn.invars))
        rule, wanted = params["rule"], tuple(used)
        fewer = (
            SelectedBatch(rule, wanted) if isinstance(rule, BatchRule) else Selected(rule, wanted)
        )
        return eqn.replace(
            outvars=pick(eqn.outvars, used),
            params={**params, "call": body, "rule": fewer},
        )


class SelectedBatch(BatchRule):
    """The same for some of the results."""

    def __init__(self, inner: BatchRule, used: tuple[bool, ...]) -> None:
        self.inner = inner
        self.used = used
        self.name, self.rule_name, self.equation = inner.name, inner.rule_name, inner.equation

    def primal(self, *args: Any) -> list[Any]:
        return pick(self.inner.primal(*args), self.used)

    def vmap(
        self, axis: Axis, values: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[list[Any], list[int | None]]:
        outs, places = self.inner.vmap(axis, values, axes)
        return pick(outs, self.used), pick(places, self.used)


custom_vmap_call = CustomVmapCall()

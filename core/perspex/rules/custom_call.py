"""Calls of functions with a rule of their own: `custom_jvp`, `custom_vjp`, `custom_vmap`.

Such a call has two forms, and is bound in the first:

* a `FunctionCall` still holds the Python function. Outside every trace the function is called. In
  forward mode its rule is called instead. On a batch both run on examples. So Python may depend on
  concrete values in the function and in the rule.
* where a program is written the function is staged, and the call becomes a `CustomCall`: one
  equation with the function's program and with its rule, which runs only when the program is
  transformed. Lowered, the equation is the program alone.

A `Rule` works on flat lists; `rules.function` makes one of a user's function over pytrees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from perspex import errors
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn, Var
from perspex.ops.elementwise import stop_gradient
from perspex.ops.structural import move_axis, to_front
from perspex.rules.calls import WholeCall, transposed_call
from perspex.runtime.dispatch import without_numbers
from perspex.tracing.axes import Axis
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import JaxprTrace, eval_jaxpr, stage_closed
from perspex.tracing.trace import Tracer, once_more, state, typeof, under
from perspex.transforms.checks import Checks
from perspex.transforms.dce import dce_closed, without_effects
from perspex.transforms.higher_order import batch_in_front
from perspex.transforms.identity import HowToTransform
from perspex.transforms.jvp import is_differentiable, jvp_jaxpr
from perspex.transforms.programs import cut, pick, with_gaps
from perspex.transforms.vmap import BatchTrace, batch, batch_jaxpr


class Rule(HowToTransform):
    """A function of flat lists, and how its results and their tangents are computed.

    `name` is that of the user's function, `rule_name` that of the rule. `equation` is the primitive
    that a program has for the call.
    """

    name: str
    rule_name: str
    equation: Any
    # Whether the rule takes what the function closes over, before the arguments.
    takes_consts = False

    def primal(self, *args: Any) -> list[Any]:
        """The results of the function."""
        raise NotImplementedError

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results, and their tangents; `None` is the tangent zero."""
        raise NotImplementedError

    def dual(self, args: Sequence[Any]) -> list[Any]:
        """`jvp` as a function of one list, primals and then tangents, that returns one."""
        outs, tangents = self.jvp(*_halves(args))
        return [*outs, *tangents]

    def shown(self) -> dict[str, Any]:
        """Params of the equation that are there to be printed."""
        return {}

    def batched(self, trace: BatchTrace, args: Sequence[Any]) -> list[Any]:
        """The call where some of `args`, or of what the function closes over, are examples."""
        values, axes = trace.batches(args)
        live = self.live(trace, axes)
        outs = trace.below(call_function, values, {"call": live})
        return trace.examples(outs, live.out_axes)

    def live(self, trace: BatchTrace, axes: Sequence[int | None]) -> LiveBatch:
        """The rule for the batch of a trace."""
        return LiveBatch(self, trace, axes)

    def settled(self) -> Rule:
        """The rule as a program keeps it after the current traces have ended."""
        return self

    def closing(self, consts: Sequence[Any]) -> Rule:
        """The rule of a function that closes over traced values."""
        return Closing(self, consts)

    def selected(self, used: tuple[bool, ...]) -> Rule:
        """The rule for some of the results."""
        return Selected(self, used)

    def close_over(self, values: Sequence[Any]) -> None:
        """Take note of what the function closes over, if some of it is traced."""

    def note_types(self, avals: Sequence[ShapedArray]) -> None:
        """Take note of the types of the results, as soon as they are known."""

    def __repr__(self) -> str:
        return self.rule_name


# ---- The call of a Python function --------------------------------------------------------------


class FunctionCall(Primitive):
    """A call that has not been traced; its only param is the `Rule`, with the function in it."""

    name = "custom_call"
    multiple_results = True
    untraced = True
    on_host = True

    def typed(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        raise AssertionError("a call of a Python function has no types before it is staged")

    def evaluate(self, *args: Any, call: Rule) -> list[Any]:
        try:
            return call.primal(*args)
        except errors.UnexpectedTracerError as error:
            raise _closes_over(call, str(error)) from error

    def staged(
        self, avals: Sequence[ShapedArray], args: Sequence[Any], *, call: Rule
    ) -> tuple[Primitive, tuple[Any, ...], dict[str, Any]]:
        closed, consts = stage_closed(call.primal, avals, call.name)
        check_constants(call, consts)
        call.note_types(closed.out_avals)
        params = call.equation.params(call.settled(), closed, consts)
        return call.equation, (*consts, *args), params

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, call: Rule
    ) -> tuple[list[Any], list[Any]]:
        try:
            return call.jvp(without_numbers(primals), tangents)
        except errors.UnexpectedTracerError as error:
            raise _closes_over(call, str(error)) from error

    def taylor(self, series: Any, *args: Any, call: Rule) -> Any:
        # As in JAX, the function itself is expanded: a rule is for first derivatives.
        return series.inline(call.primal, args)

    def call_batched(self, trace: BatchTrace, args: Sequence[Any], *, call: Rule) -> list[Any]:
        return call.batched(trace, args)


call_function = FunctionCall()


def check_constants(call: Rule, consts: Sequence[Any]) -> None:
    """What a function closes over must come from the traces around the call, or be known there."""
    for const in consts:
        trace = state.trace
        while isinstance(const, Tracer) and const._trace is not trace:
            if isinstance(trace, JaxprTrace) and id(const) in trace.captured:
                break
            trace = getattr(trace, "parent", None)
            if trace is None:
                raise _closes_over(call, const._story()[1])


def _closes_over(call: Rule, story: str) -> errors.UnexpectedTracerError:
    return errors.UnexpectedTracerError(
        f"the function `{call.name}` has a rule of its own ({call.rule_name}), and closes over a "
        "value that you differentiate with respect to. The rule does not know that value. Pass "
        f"that value to `{call.name}` as an argument, and take it into account in the rule."
        + (f"\n{story}" if story else "")
    )


def closes_over_the_past(name: str, rule_name: str, error: Exception) -> Exception:
    return errors.UnexpectedTracerError(
        f"the rule `{rule_name}` of the function `{name}` closes over a traced value, and the "
        f"function that was traced has returned. Pass that value to `{name}` as an argument."
        f"\n{error}"
    )


# ---- The call as an equation --------------------------------------------------------------------


class CustomCall(WholeCall):
    """A call of a program with a rule of its own, which stands in the param `slot`.

    The first `num_consts` operands are what the function closes over.
    """

    program = "call_jaxpr"
    slot: ClassVar[str]
    quiet: ClassVar[dict[str, Any]] = {"num_consts": 0}

    def params(self, rule: Rule, closed: ClosedJaxpr, consts: Sequence[Any]) -> dict[str, Any]:
        """The params of the equation for a call of a function that closes over `consts`."""
        if any(isinstance(const, Tracer) for const in consts):
            rule = rule.closing(consts)
        return {
            **rule.shown(),
            self.program: closed,
            "name": rule.name,
            "num_consts": len(consts),
            self.slot: rule,
        }

    def checked(self, checks: Checks, *operands: Any, **params: Any) -> list[Any]:
        # The rule is not checked, and does not know of errors: they come from the function alone.
        closed = params[self.program]
        if checks.finds(closed):
            checks.inline(closed, [_constant(x) for x in operands])
            params[self.program] = without_effects(closed)
        return self(*operands, **params)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
        rule: Rule = params[self.slot]
        num_consts = params["num_consts"]
        closed_over = tangents[:num_consts]
        if any(t is not None for t in closed_over):
            nonzero = [t is not None for t in closed_over] + [False] * (len(tangents) - num_consts)
            if any(jvp_jaxpr(params[self.program], tuple(nonzero))[1]):
                raise _closes_over(rule, "")
            tangents = [*[None] * num_consts, *tangents[num_consts:]]
        first = 0 if rule.takes_consts else num_consts
        try:
            return rule.jvp(primals[first:], tangents[first:])
        except errors.UnexpectedTracerError as error:
            raise closes_over_the_past(rule.name, rule.rule_name, error) from error

    def taylor(self, series: Any, *operands: Any, **params: Any) -> Any:
        closed: ClosedJaxpr = params[self.program]
        return series.inline(functools.partial(eval_jaxpr, closed.jaxpr, closed.consts), operands)

    def batch(
        self, axis: Axis, operands: Any, axes: Any, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        batched = tuple([at is not None for at in axes])
        # All results have the axis, as then they have it whatever the rule returns.
        body, _ = batch_jaxpr(params[self.program], axis, batched, True)
        rule: Rule = params[self.slot]
        first = 0 if rule.takes_consts else params["num_consts"]
        places = [0 if flag else None for flag in batched[first:]]
        params[self.program] = body
        params[self.slot] = Batched(rule, axis, places, [0] * len(body.out_avals))
        outs = self(*batch_in_front(operands, axes), **params)
        return outs, [0] * len(outs)

    def transpose(self, cts: Any, *operands: Any, **params: Any) -> list[Any]:
        return transposed_call(params[self.program], cts, operands)

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        params, rule = eqn.params, eqn.params[self.slot]
        keep = (True,) * len(eqn.invars)
        body, _ = dce_closed(params[self.program], tuple(used), keep)
        if not all(used):
            rule = rule.selected(tuple(used))
        return eqn.replace(
            outvars=pick(eqn.outvars, used),
            params={**params, self.program: body, self.slot: rule},
        )


def _constant(x: Any) -> Any:
    return stop_gradient(x) if is_differentiable(typeof(x)) else x


class CustomJvpCall(CustomCall):
    """A function with a rule for tangents."""

    name = "custom_jvp_call"
    slot = "jvp"


class CustomVjpCall(CustomCall):
    """A function with a rule for cotangents: its tangents are `custom_lin` of those given."""

    name = "custom_vjp_call"
    slot = "fwd"


custom_jvp_call = CustomJvpCall()
custom_vjp_call = CustomVjpCall()


# ---- Rules made of rules ------------------------------------------------------------------------


class Dense:
    """A function of one list, with `None` for zeros in it and in the result, on arrays alone.

    `given` are the arrays among `args`, and `here` marks them.
    """

    def __init__(self, f: Callable[[list[Any]], list[Any]], args: Sequence[Any]) -> None:
        self.f = f
        self.here = [x is not None for x in args]
        self.given = pick(args, self.here)
        self.found: list[bool] = []

    def __call__(self, *given: Any) -> list[Any]:
        outs = self.f(with_gaps(given, self.here))
        self.found = [y is not None for y in outs]
        return pick(outs, self.found)

    def restored(self, outs: Sequence[Any]) -> list[Any]:
        """What belongs to each result, with `None` for zeros; known when the function has run."""
        return with_gaps(outs, self.found)


def _halves(xs: Sequence[Any]) -> list[list[Any]]:
    return cut(xs, len(xs) // 2)


class Derived(Rule):
    """A rule made of another one."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.name, self.rule_name, self.equation = inner.name, inner.rule_name, inner.equation
        self.takes_consts = inner.takes_consts

    def shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = self.inner.shown()
        return shown

    def close_over(self, values: Sequence[Any]) -> None:
        self.inner.close_over(values)


class Closing(Derived):
    """The rule of a function that closes over traced values, as a rule that takes these first.

    The rule itself does not take them: it closes over the same values, as a rule does that calls
    the function. So it is staged, and what it is given takes their place.
    """

    def __init__(self, inner: Rule, values: Sequence[Any]) -> None:
        super().__init__(inner)
        self.takes_consts = True
        self.values = list(values)
        inner.close_over(self.values)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        consts, primals = cut(primals, len(self.values))
        dense = Dense(self.inner.dual, [*primals, *tangents[len(consts) :]])
        found = with_values(dense, dense.given, self.values, consts)
        outs, ts = _halves(dense.restored(found))
        return outs, ts


def with_values(
    f: Callable[..., list[Any]], args: Sequence[Any], values: Sequence[Any], instead: Sequence[Any]
) -> list[Any]:
    """`f(*args)` for a flat function that closes over `values`, with others in their place."""
    trace = JaxprTrace("rule")
    trace.captured.update([(id(x), (x, x, Var(typeof(x)))) for x in values])
    with once_more:
        # Their own trace may be over. Here they are only names, also in what is called here.
        over = {x._trace for x in values if isinstance(x, Tracer) and not x._trace.alive}
        try:
            for other in over:
                other.alive = True
            outs = under(trace, f, *[trace.argument(typeof(x)) for x in args])
            jaxpr, consts = trace.finish(outs)
        finally:
            trace.alive = False
            for other in over:
                other.alive = False
    return eval_jaxpr(jaxpr, [*instead, *consts[len(values) :]], *args)


class Selected(Derived):
    """The same for some of the results."""

    def __init__(self, inner: Rule, used: tuple[bool, ...]) -> None:
        super().__init__(inner)
        self.used = used

    def primal(self, *args: Any) -> list[Any]:
        return pick(self.inner.primal(*args), self.used)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs, out_tangents = self.inner.jvp(primals, tangents)
        return pick(outs, self.used), pick(out_tangents, self.used)


class Batched(Derived):
    """The rule for batches: the rule for one example, batched.

    `out_axes` says where results have the axis. If it is not given, the first to run decides. The
    rule leaves results that have no axis without one. The function gives them one, because the
    rule, when it runs later, may return them with an axis.
    """

    def __init__(
        self,
        inner: Rule,
        axis: Axis,
        axes: Sequence[int | None],
        out_axes: Sequence[int | None] = (),
    ) -> None:
        super().__init__(inner)
        self.axis = axis
        self.axes = list(axes)
        self.out_axes = list(out_axes)

    def on_examples(self, f: Any, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return batch(f, self.axis, args, axes)

    def primal(self, *args: Any) -> list[Any]:
        outs, places = self.on_examples(self.inner.primal, args, self.axes)
        if not self.out_axes:
            self.out_axes = [0 if at is None else at for at in places]
        return self.moved(outs, places)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        dense = Dense(self.inner.dual, [*primals, *tangents])
        found, places = self.on_examples(dense, dense.given, pick(self.axes * 2, dense.here))
        outs, ts = _halves(dense.restored(found))
        at_primal, at_tangent = _halves(dense.restored(places))
        if not self.out_axes:
            self.out_axes = [
                b if a is None else a for a, b in zip(at_primal, at_tangent, strict=True)
            ]
        return self.moved(outs, at_primal), self.moved(ts, at_tangent)

    def moved(self, ys: Sequence[Any], places: Sequence[int | None]) -> list[Any]:
        """The results, or their tangents, with their axes at `out_axes`."""
        return [
            None if y is None else self.with_axis(y, at, wanted)
            for y, at, wanted in zip(ys, places, self.out_axes, strict=True)
        ]

    def with_axis(self, y: Any, at: int | None, wanted: int | None) -> Any:
        if at == wanted:
            return y
        front = to_front(y, at, self.axis)
        return front if not wanted else move_axis(front, 0, wanted)


class LiveBatch(Batched):
    """The rule for the batch of a trace that has not ended.

    It runs in that trace, so that the function may close over one of its examples.
    """

    def __init__(self, inner: Rule, trace: BatchTrace, axes: Sequence[int | None]) -> None:
        super().__init__(inner, trace.axis, axes)
        self.trace = trace

    def on_examples(self, f: Any, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self.trace.batches(self.trace.atop(f, *self.trace.examples(args, axes)))

    def settled(self) -> Rule:
        return Batched(self.inner.settled(), self.axis, self.axes, self.out_axes)

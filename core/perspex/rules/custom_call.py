"""Calls of functions that bring a rule of their own: `custom_jvp`, `custom_vjp`, `custom_vmap`.

Such a call has two forms, and is bound in the first:

* a `FunctionCall` still holds the Python function. Outside every trace it is called, in forward
  mode its rule is called in its place, on a batch both run on examples. So Python may depend on
  concrete values in the function and in the rule.
* where a program is written the function is staged, and the call becomes a `CustomCall`: one
  equation with the function's program and with its rule, which runs when the program is transformed
  and not before. Lowered, it is the program alone.

A `Rule` works on flat lists. What makes one of a user's function over pytrees is in `api`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from perspex import dtypes, errors
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn, Var
from perspex.ops.structural import is_linear, move_axis, to_front, zeros
from perspex.tracing.axes import Axis
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import JaxprTrace, eval_jaxpr, stage_closed
from perspex.tracing.trace import Trace, Tracer, once_more, state, typeof, under
from perspex.transforms.dce import dce_closed
from perspex.transforms.higher_order import HigherOrder, batch_in_front, check_operands
from perspex.transforms.identity import HowToTransform
from perspex.transforms.jvp import is_differentiable, tangent_aval
from perspex.transforms.linearize import Rest
from perspex.transforms.programs import cut, merge, partition, pick, spread
from perspex.transforms.transpose import transpose_jaxpr
from perspex.transforms.vmap import BatchTrace, BatchTracer, batch, batch_jaxpr


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, for rules that ask for it.

    Attributes:
      aval, shape, dtype: the type of the tangent; that of an integer has the dtype `float0`.
    """

    __slots__ = ("aval_of_primal", "dtype", "shape")

    def __init__(self, aval: ShapedArray) -> None:
        self.aval_of_primal = aval
        self.shape = aval.shape
        self.dtype = aval.dtype if is_differentiable(aval) else dtypes.float0

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    @staticmethod
    def from_primal_value(value: Any) -> SymbolicZero:
        """The zero tangent of an array.

        >>> SymbolicZero.from_primal_value(2.0).shape
        ()
        """
        return SymbolicZero(typeof(value))

    def instantiate(self) -> Any:
        """Zeros of that type."""
        return zero_tangent(self.aval_of_primal)

    def __repr__(self) -> str:
        return "SymbolicZero"


def zero_tangent(aval: ShapedArray) -> Any:
    """The zero tangent of values of type `aval`, as an array."""
    if not is_differentiable(aval):
        return np.zeros(aval.shape, dtypes.float0)
    return zeros(tangent_aval(aval))


class Rule(HowToTransform):
    """A function of flat lists, and how its results and their tangents are computed.

    `name` is that of the user's function, `rule_name` that of the rule.
    """

    name: str
    rule_name: str
    equation: Any
    # Whether what the function closes over is given to the rule, before the arguments.
    takes_consts = False

    def primal(self, *args: Any) -> list[Any]:
        """The results of the function."""
        raise NotImplementedError

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results, and their tangents; `None` is the tangent zero."""
        raise NotImplementedError

    def shown(self) -> dict[str, Any]:
        """Params of the equation that are there to be printed."""
        return {}

    def batched(self, trace: BatchTrace, args: Sequence[Any]) -> list[Any]:
        """The call on examples, some of `args`, or of what the function closes over."""
        axes = [x.axis if _is_of(x, trace) else None for x in args]
        values = [x.value if _is_of(x, trace) else x for x in args]
        live = self.live(trace, axes)
        outs = trace.below(call_function, values, {"call": live})
        return [
            y if at is None else BatchTracer(trace, y, at)
            for y, at in zip(outs, live.out_axes, strict=True)
        ]

    def live(self, trace: BatchTrace, axes: Sequence[int | None]) -> LiveBatch:
        """The rule for the batch of a trace."""
        return LiveBatch(self, trace, axes)

    def settled(self) -> Rule:
        """The rule as a program keeps it, when the traces of now are gone."""
        return self

    def close_over(self, values: Sequence[Any]) -> None:
        """Hear of what the function closes over, where some of it is traced."""

    def note_types(self, avals: Sequence[ShapedArray]) -> None:
        """Hear of which types the results are, as soon as they are known."""

    def __repr__(self) -> str:
        return self.rule_name


def _is_of(x: Any, trace: Trace) -> bool:
    return x.__class__ is BatchTracer and x._trace is trace


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
        return call.jvp(primals, tangents)

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
        "value by which is being differentiated, of which the rule knows nothing. Pass that value "
        f"to `{call.name}` as an argument, and take account of it in the rule."
        + (f"\n{story}" if story else "")
    )


def closes_over_the_past(name: str, rule_name: str, error: Exception) -> Exception:
    return errors.UnexpectedTracerError(
        f"the rule `{rule_name}` of the function `{name}`, which was called in a function traced "
        f"before, closes over a value of that trace. Pass that value to `{name}` as an argument."
        f"\n{error}"
    )


# ---- The call as an equation --------------------------------------------------------------------


class CustomCall(HigherOrder):
    """A call of a program with a rule of its own, which stands in the param `slot`.

    The first `num_consts` operands are what the function closes over.
    """

    slot: ClassVar[str]
    quiet: ClassVar[dict[str, Any]] = {"num_consts": 0}

    def params(self, rule: Rule, closed: ClosedJaxpr, consts: Sequence[Any]) -> dict[str, Any]:
        """The params of the equation for a call of a function that closes over `consts`."""
        if any(isinstance(const, Tracer) for const in consts):
            rule = Closing(rule, consts)
        return {
            **rule.shown(),
            "call_jaxpr": closed,
            "name": rule.name,
            "num_consts": len(consts),
            self.slot: rule,
        }

    def type(self, *avals: ShapedArray, call_jaxpr: ClosedJaxpr, name: str, **params: Any) -> Any:
        check_operands(f"{self.name} of {name}", avals, call_jaxpr.in_avals)
        return tuple(call_jaxpr.out_avals)

    def lower(self, b: Any, *values: Any, call_jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
        inlined: list[Any] = b.inline(call_jaxpr.jaxpr, values)
        return inlined

    def jvp(
        self, primals: Any, tangents: Any, *, num_consts: int, **params: Any
    ) -> tuple[list[Any], list[Any]]:
        rule: Rule = params[self.slot]
        if any(t is not None for t in tangents[:num_consts]):
            raise _closes_over(rule, "")
        first = 0 if rule.takes_consts else num_consts
        try:
            return rule.jvp(primals[first:], tangents[first:])
        except errors.UnexpectedTracerError as error:
            raise closes_over_the_past(rule.name, rule.rule_name, error) from error

    def batch(
        self,
        axis: Axis,
        operands: Any,
        axes: Any,
        *,
        call_jaxpr: ClosedJaxpr,
        num_consts: int,
        **params: Any,
    ) -> tuple[list[Any], list[int | None]]:
        batched = tuple([at is not None for at in axes])
        # All results have the axis, as then they have it whatever the rule returns.
        body, _ = batch_jaxpr(call_jaxpr, axis, batched, True)
        rule: Rule = params[self.slot]
        first = 0 if rule.takes_consts else num_consts
        places = [0 if flag else None for flag in batched[first:]]
        params[self.slot] = Batched(rule, axis, places, [0] * len(body.out_avals))
        outs = self(
            *batch_in_front(operands, axes), call_jaxpr=body, num_consts=num_consts, **params
        )
        return outs, [0] * len(outs)

    def split(self, unknown: Sequence[bool], *operands: Any, **params: Any) -> Any:
        # The rule is one for all results: the equation waits for the last of its operands.
        return [None] * len(params["call_jaxpr"].out_avals), Rest(self, operands, params)

    def transpose(
        self, cts: Any, *operands: Any, call_jaxpr: ClosedJaxpr, **params: Any
    ) -> list[Any]:
        return transposed_call(call_jaxpr, cts, operands)

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        if all(used):
            return eqn
        params = eqn.params
        keep = (True,) * len(eqn.invars)
        body, _ = dce_closed(params["call_jaxpr"], tuple(used), keep)
        rule = Selected(params[self.slot], tuple(used))
        return eqn.replace(
            outvars=pick(eqn.outvars, used),
            params={**params, "call_jaxpr": body, self.slot: rule},
        )


def transposed_call(closed: ClosedJaxpr, cts: Any, operands: Sequence[Any]) -> list[Any]:
    """The cotangents of the operands of a call in which it is linear."""
    from_ops = tuple([is_linear(x) for x in operands])
    nonzero = tuple([ct is not None for ct in cts])
    body, found = transpose_jaxpr(closed, from_ops, nonzero)
    given = [*partition(operands, from_ops)[0], *pick(cts, nonzero)]
    outs = eval_jaxpr(body.jaxpr, (), *given)
    return merge(from_ops, [None] * from_ops.count(False), spread(outs, found))


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


class Derived(Rule):
    """A rule made of another one."""

    def __init__(self, inner: Rule) -> None:
        self.inner = inner
        self.name, self.rule_name, self.equation = inner.name, inner.rule_name, inner.equation
        self.takes_consts = inner.takes_consts

    def shown(self) -> dict[str, Any]:
        return self.inner.shown()

    def close_over(self, values: Sequence[Any]) -> None:
        self.inner.close_over(values)


class Closing(Derived):
    """The rule of a function that closes over traced values, as a rule that takes these first.

    The rule itself knows nothing of it: it closes over the same values, as a rule does that calls
    the function. So it is staged, and what it is given takes their place.
    """

    def __init__(self, inner: Rule, values: Sequence[Any]) -> None:
        super().__init__(inner)
        self.takes_consts = True
        self.values = list(values)
        inner.close_over(self.values)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        consts, primals = cut(primals, len(self.values))
        nonzero = [t is not None for t in tangents[len(consts) :]]
        given = [*primals, *pick(tangents[len(consts) :], nonzero)]
        out_nonzero: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            outs, found = self.inner.jvp(*_dual(args, len(primals), nonzero))
            out_nonzero[:] = [t is not None for t in found]
            return [*outs, *pick(found, out_nonzero)]

        found = with_values(flat, given, self.values, consts)
        outs, ts = cut(found, len(out_nonzero))
        return outs, spread(ts, out_nonzero)


def _dual(args: Sequence[Any], count: int, nonzero: Sequence[bool]) -> tuple[Any, Any]:
    primals, given = cut(args, count)
    return primals, spread(given, nonzero)


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

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs, out_tangents = self.inner.jvp(primals, tangents)
        return pick(outs, self.used), pick(out_tangents, self.used)


class Batched(Derived):
    """The rule for batches: the rule for one example, batched.

    `out_axes` says where results have the axis. The first to run decides if it is not given: a
    rule leaves results without it that have none, the function does not, because the rule, when it
    runs later, may give one to them.
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
        return [
            self.place(y, at, want) for y, at, want in zip(outs, places, self.out_axes, strict=True)
        ]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        nonzero = [t is not None for t in tangents]
        out_nonzero: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            outs, found = self.inner.jvp(*_dual(args, len(primals), nonzero))
            out_nonzero[:] = [t is not None for t in found]
            return [*outs, *pick(found, out_nonzero)]

        axes = [*self.axes, *pick(self.axes, nonzero)]
        found, places = self.on_examples(flat, [*primals, *pick(tangents, nonzero)], axes)
        outs, found = cut(found, len(out_nonzero))
        at_primal, at_tangent = cut(places, len(out_nonzero))
        ts, at_tangent = spread(found, out_nonzero), spread(at_tangent, out_nonzero)
        if not self.out_axes:
            self.out_axes = [
                b if a is None else a for a, b in zip(at_primal, at_tangent, strict=True)
            ]
        wanted = self.out_axes
        return (
            [self.place(y, at, want) for y, at, want in zip(outs, at_primal, wanted, strict=True)],
            [
                None if t is None else self.place(t, at, want)
                for t, at, want in zip(ts, at_tangent, wanted, strict=True)
            ],
        )

    def place(self, y: Any, at: int | None, wanted: int | None) -> Any:
        if at == wanted:
            return y
        front = to_front(y, at, self.axis.size)
        return front if not wanted else move_axis(front, 0, wanted)


class LiveBatch(Batched):
    """The rule for the batch of a trace that is at work.

    It runs in that trace, so that what is closed over may be one of its examples.
    """

    def __init__(self, inner: Rule, trace: BatchTrace, axes: Sequence[int | None]) -> None:
        super().__init__(inner, trace.axis, axes)
        self.trace = trace

    def on_examples(self, f: Any, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        trace = self.trace
        examples = [
            x if at is None else BatchTracer(trace, x, at) for x, at in zip(args, axes, strict=True)
        ]
        outs = trace.atop(f, *examples)
        return (
            [y.value if _is_of(y, trace) else y for y in outs],
            [y.axis if _is_of(y, trace) else None for y in outs],
        )

    def settled(self) -> Rule:
        return Batched(self.inner.settled(), self.axis, self.axes, self.out_axes)

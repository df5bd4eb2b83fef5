"""`jax.interpreters.partial_eval`: programs from functions, and programs in two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

from perspex.as_jax.doors.linear_util import WrappedFun, flat_function
from perspex.as_jax.doors.rules import dce_rules as dce_rules
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal
from perspex.tracing.staging import JaxprTrace as DynamicJaxprTrace
from perspex.tracing.staging import JaxprTracer as DynamicJaxprTracer
from perspex.tracing.staging import hoist_consts as convert_constvars_jaxpr
from perspex.tracing.staging import stage
from perspex.tracing.trace import typeof, under
from perspex.transforms import dce
from perspex.transforms.linearize import PartialTrace, split_jaxpr

__all__ = [
    "DynamicJaxprTrace", "DynamicJaxprTracer", "JaxprTrace", "JaxprTracer", "PartialVal", "Val",
    "abstract_eval_fun", "close_jaxpr", "convert_constvars_jaxpr", "custom_partial_eval_rules",
    "dce_jaxpr", "dce_jaxpr_call_rule", "dce_jaxpr_closed_call_rule", "dce_jaxpr_consts",
    "dce_rules", "move_binders_to_back", "partial_eval_jaxpr_nounits",
    "prune_closed_jaxpr_outputs", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits",
]  # fmt: skip

JaxprTrace = PartialTrace
JaxprTracer = DynamicJaxprTracer
Val = Any
Flags = bool | Sequence[bool]


class PartialVal(tuple[Any, Any]):
    """A value that is known (`(None, value)`) or of which the type is known (`(aval, None)`)."""

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """A type, for a value to come."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether there is a value."""
        return self[0] is None

    def get_known(self) -> Any:
        """The value; `None` if it is not known."""
        return self[1]

    def get_aval(self) -> ShapedArray:
        """The type."""
        found: ShapedArray = typeof(self[1]) if self.is_known() else self[0]
        return found


def trace_to_jaxpr_dynamic(
    fun: WrappedFun,
    in_avals: Sequence[ShapedArray],
    *,
    keep_inputs: Sequence[bool] | None = None,
    lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """The program of a flat function, the types of its results, and its constants."""
    keep = keep_inputs or [True] * len(in_avals)
    flat = flat_function(fun)

    def kept(*args: Any) -> Any:
        return flat(*[x for x, flag in zip(args, keep, strict=True) if flag])

    jaxpr, consts = stage(kept, in_avals, getattr(fun, "__name__", "function"))
    if auto_dce:
        jaxpr, _ = dce_jaxpr(jaxpr, True, True)
    return jaxpr, [v.aval for v in jaxpr.outvars], consts


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: Flags = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Do what depends on known values alone, and write the rest down.

    Returns the program of the rest, which takes its constants and then the unknown arguments; the
    results, known or as types; and the constants.
    """
    trace = PartialTrace(getattr(fun, "__name__", "function"))
    try:
        args = [p.get_known() if p.is_known() else trace.argument(p.get_aval()) for p in pvals]
        outs = list(under(trace, flat_function(fun), *args))
        wanted = _flags(instantiate, len(outs))
        late = [want or trace.is_unknown(y) for want, y in zip(wanted, outs, strict=True)]
        jaxpr, consts = trace.finish([y for y, flag in zip(outs, late, strict=True) if flag])
    finally:
        trace.alive = False
    found = [
        PartialVal.unknown(typeof(y)) if flag else PartialVal.known(y)
        for y, flag in zip(outs, late, strict=True)
    ]
    return convert_constvars_jaxpr(jaxpr), found, consts


def _flags(flags: Flags, count: int) -> list[bool]:
    return [flags] * count if isinstance(flags, bool) else list(flags)


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Flags, instantiate: Flags = False, live_inputs: Flags = True
) -> tuple[Jaxpr, list[bool]]:
    """The program of the results that are used, and which arguments it still takes.

    Arguments marked `instantiate` stay in any case, and so do all constants.
    """
    smaller, needed = dce.dce_jaxpr(jaxpr, _flags(used_outputs, len(jaxpr.outvars)))
    kept = [a or b for a, b in zip(needed, _flags(instantiate, len(needed)), strict=True)]
    invars = [v for v, flag in zip(jaxpr.invars, kept, strict=True) if flag]
    return smaller.replace(constvars=jaxpr.constvars, invars=invars), kept


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: Flags = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Like `dce_jaxpr`, without the constants that are not used, and which these are."""
    smaller, kept = dce_jaxpr(jaxpr, used_outputs, instantiate)
    read = {v for eqn in smaller.eqns for v in (*eqn.invars,) if not isinstance(v, Literal)}
    read.update([v for v in smaller.outvars if not isinstance(v, Literal)])
    used = [v in read for v in jaxpr.constvars]
    constvars = [v for v in jaxpr.constvars if v in read]
    return smaller.replace(constvars=constvars), used, kept


def _dce_call(used_outputs: Sequence[bool], eqn: Any) -> tuple[list[bool], Any]:
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    found = eqn.primitive.dce(eqn, list(used_outputs))
    left = {id(v) for v in found.invars}
    return [id(v) in left for v in eqn.invars], found


def dce_jaxpr_call_rule(
    used_outputs: Sequence[bool], live_ins: Any, eqn: Any = None
) -> tuple[list[bool], Any]:
    """Which operands a call needs for the results that are used, and the smaller call."""
    return _dce_call(used_outputs, live_ins if eqn is None else eqn)


dce_jaxpr_closed_call_rule = dce_jaxpr_call_rule


def partial_eval_jaxpr_nounits(
    jaxpr: ClosedJaxpr, unknowns: Sequence[bool], instantiate: Flags
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[ShapedArray]]:
    """A program in two: what depends on known arguments alone, and the rest.

    The first gives its results and then the residuals; the rest takes those first. Also returns
    which results are unknown, and the types of the residuals.
    """
    wanted = instantiate if isinstance(instantiate, bool) else tuple(instantiate)
    halves = split_jaxpr(jaxpr, tuple(unknowns), wanted)
    count = halves.out_unknown.count(False)
    residuals = halves.known.out_avals[count:]
    return halves.known, halves.unknown, list(halves.out_unknown), residuals


def prune_closed_jaxpr_outputs(jaxpr: ClosedJaxpr, used_outputs: Sequence[bool]) -> ClosedJaxpr:
    """The program with those results alone."""
    smaller, _ = dce_jaxpr(jaxpr.jaxpr, used_outputs, True)
    return ClosedJaxpr(smaller, jaxpr.consts)


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """A program without constants as one that can be called."""
    return jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr)


def move_binders_to_back(closed_jaxpr: ClosedJaxpr, to_move: Sequence[bool]) -> ClosedJaxpr:
    """The program with some arguments after all others."""
    jaxpr = closed_jaxpr.jaxpr
    pairs = list(zip(jaxpr.invars, to_move, strict=True))
    invars = [v for v, flag in pairs if not flag] + [v for v, flag in pairs if flag]
    return ClosedJaxpr(jaxpr.replace(invars=invars), closed_jaxpr.consts)


def abstract_eval_fun(fun: Callable[..., Any], *avals: Any, debug_info: Any, **params: Any) -> Any:
    """The types of the results of a flat function."""
    jaxpr, _ = stage(lambda *args: fun(*args, **params), avals)
    return [v.aval for v in jaxpr.outvars]


class KnownTracer:
    """A known operand, as a rule for partial evaluation is given it."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.aval = typeof(value)
        self.pval = PartialVal.known(value)

    def is_known(self) -> bool:
        """Whether there is a value: there is."""
        return True


class RuleTrace:
    """The trace that a rule for partial evaluation is given."""

    def __init__(self, trace: PartialTrace) -> None:
        self.trace = trace

    def default_process_primitive(
        self, primitive: Any, tracers: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        """Write the operation down if an operand is unknown, else do it."""
        args = tuple([x.value if isinstance(x, KnownTracer) else x for x in tracers])
        if any(self.trace.is_unknown(x) for x in args):
            return DynamicJaxprTrace.bind(self.trace, primitive, args, params)
        return under(self.trace.parent, self.trace.parent.bind, primitive, args, params)


class _PartialRules(MutableMapping[Any, Callable[..., Any]]):
    """Rules `rule(trace, *tracers, **params)` by primitive."""

    def __init__(self) -> None:
        self.given: dict[Any, Callable[..., Any]] = {}

    def __setitem__(self, primitive: Any, rule: Callable[..., Any]) -> None:
        self.given[primitive] = rule

        def split(unknown: Sequence[bool], *operands: Any, **params: Any) -> tuple[Any, None]:
            trace = next(x._trace for x, flag in zip(operands, unknown, strict=True) if flag)
            given = [
                x if flag else KnownTracer(x) for x, flag in zip(operands, unknown, strict=True)
            ]
            return under(trace, lambda: rule(RuleTrace(trace), *given, **params)), None

        primitive.split = split
        primitive.higher_order = True

    def __getitem__(self, primitive: Any) -> Callable[..., Any]:
        return self.given[primitive]

    def __delitem__(self, primitive: Any) -> None:
        del self.given[primitive]
        del primitive.split

    def __iter__(self) -> Iterator[Any]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)


custom_partial_eval_rules = _PartialRules()

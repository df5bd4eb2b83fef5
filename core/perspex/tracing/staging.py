"""From a Python function to a jaxpr.

`stage` calls the function once on tracers. An operation costs one equation, one variable and the
tracer that stands for it. Scalars become literals; arrays and tracers of outer
traces that the function closes over become constant variables, by identity.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from perspex import config, dtypes
from perspex.base import source
from perspex.base.dimensions import Symbolic
from perspex.ir.avals import NOWHERE, PYTHON_SCALARS, WIDE, ShapedArray, shaped
from perspex.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, check
from perspex.ir.references import is_ref_type
from perspex.tracing import provenance
from perspex.tracing.forbidding import check_moves
from perspex.tracing.primitive import Linear, Primitive, refused
from perspex.tracing.trace import Reference, Trace, Tracer, leaked, refuse_leaks, state, under

# The traces under way in all threads, outermost first, for reports on long traces.
writing: list[JaxprTrace] = []

# While there are any: so many collections of recent garbage before one of all, and the number that
# the user has set.
_RARE = 1_000
_full_collections = gc.get_threshold()[2]

_capture = source.capture
# The dtypes that arrays have whether 64 bits are enabled or not: their numbers are literals as is.
_FIXED_DTYPES = frozenset(map(np.dtype, dtypes.scalar_types.values())) - WIDE


class JaxprTracer(Tracer):
    """Stands for a variable of the jaxpr that is being written."""

    __slots__ = ("_trace", "_var", "aval")

    def __init__(self, trace: JaxprTrace, var: Var) -> None:
        self._trace = trace
        self._var = var
        self.aval = var.aval


def _stands_on(trace: Any, base: Trace) -> bool:
    """Whether a trace transforms what `base` writes: then its values mean nothing to `base`."""
    while trace is not None and trace is not base:
        trace = trace.parent
    return trace is base


class JaxprTrace(Trace):
    """Writes every operation down as an equation."""

    __slots__ = ("arg_names", "captured", "eqns", "invars", "mergeable", "merged", "name", "parent")
    writes = True
    # What happens to the function while this trace is current, in errors.
    doing = "traced"

    def __init__(self, name: str, arg_names: Sequence[str] | None = None) -> None:
        super().__init__()
        self.name = name
        self.arg_names = arg_names
        self.eqns: list[JaxprEqn] = []
        self.invars: list[Var] = []
        # id of a captured object -> (the object, kept so that its id stays its own; the constant;
        # its variable)
        self.captured: dict[int, tuple[Any, Any, Var]] = {}
        # By their results, the equations that can be one with the next of their kind; and those
        # that have become one with it.
        self.mergeable: dict[Atom, JaxprEqn] = {}
        self.merged: set[JaxprEqn] = set()
        self.parent = state.trace

    def bind(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        invars: list[Atom] = []
        for arg in args:
            if arg.__class__ is JaxprTracer and arg._trace is self:
                invars.append(arg._var)
            else:
                try:
                    invars.append(self.lift(arg))
                except TypeError as error:
                    raise refused(primitive, error) from None
        if primitive.merges:
            before = self.mergeable.get(invars[0])
            if before is not None and before.primitive is primitive:
                invars, params = primitive.merged(before, params)
                self.merged.add(before)
        avals = tuple([v.aval for v in invars])
        # `Primitive.typed`, written out: this is the hottest line of tracing.
        key = (avals, tuple(params.items())) if params else avals
        out = primitive.types.get(key)
        if out is None:
            if primitive.untraced:
                return self.bind(*primitive.staged(avals, args, **params))
            if len({aval.vma for aval in avals}) > 1 and not primitive.higher_order:
                if not config.auto_pcast.value:
                    raise ValueError(
                        f"{primitive} requires varying manual axes to match while the flag "
                        f"`auto_pcast` is off, got {', '.join([str(aval) for aval in avals])}; "
                        "use lax.pcast(x, axes, to='varying')"
                    )
                vma = NOWHERE.union(*[aval.vma for aval in avals])
                for aval in filter(is_ref_type, avals):
                    if aval.vma != vma:
                        raise ValueError(
                            f"{primitive}: the value or the index varies along the axes "
                            f"{sorted(vma - aval.vma)} of the mesh, and the ref of type {aval} "
                            "does not. Make the ref from a value that varies, as x * 0 does if x "
                            "varies, or as lax.pcast(value, axes, to='varying')"
                        )
                args = tuple([self.varying(x, vma) for x in args])
                return self.bind(primitive, args, params)
            out = primitive.typed(avals, params)
        at = state.source
        if at is None:
            at = _capture(3)
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in out]
            self.eqns.append(JaxprEqn(primitive, invars, outvars, params, at))
            return [JaxprTracer(self, var) for var in outvars]
        outvar = Var(out)
        eqn = JaxprEqn(primitive, invars, [outvar], params, at)
        self.eqns.append(eqn)
        if primitive.merges:
            self.mergeable[outvar] = eqn
        return JaxprTracer(self, outvar)

    # What makes a value vary along more axes of a mesh (`ops.collectives.varying`).
    varying: ClassVar[Any]
    # What makes a ref of its tracer (`ops.refs.Ref.of`).
    reference: ClassVar[Any]
    # What puts a value of NumPy's on a device as an array of the type given (`runtime.dispatch`).
    placed: ClassVar[Any]

    def lift(self, x: Any) -> Atom:
        """The atom that stands for any value in this jaxpr."""
        kind = x.__class__
        if kind is JaxprTracer and x._trace is self:
            return x._var
        if kind in PYTHON_SCALARS:
            aval = shaped(x)
            return Literal(aval.dtype.type(x), aval)
        if isinstance(x, (np.generic, np.ndarray)):
            if x.dtype in _FIXED_DTYPES and isinstance(x, np.generic):
                return Literal(x, ShapedArray((), x.dtype))
            aval = shaped(x)
            if not aval.shape and not aval.is_float0:
                return Literal(np.asarray(x, aval.dtype)[()], aval)
        if isinstance(x, Reference) and x.staged is not None:
            return self._lift_staged(x, x.staged)
        entry = self.captured.get(id(x))
        if entry is None:
            value = x
            if isinstance(x, Tracer):
                if not x._trace.alive or _stands_on(x._trace, self):
                    raise leaked(x)
            elif isinstance(x, np.ndarray):
                # A copy: the user may write into the original after tracing.
                value = np.array(x, dtypes.canonicalize_dtype(x.dtype), copy=True)
                value.flags.writeable = False
            elif isinstance(x, Symbolic):
                return self.lift(x.__jax_array__())
            elif isinstance(x, Linear):
                raise TypeError(f"a number is needed in place of {x!r}")
            entry = self.captured[id(x)] = (x, value, Var(shaped(value)))
        return entry[2]

    def _lift_staged(self, ref: Reference, tracer: Any) -> Var:
        """The variable of a ref that a program takes or makes: this one, or one around it."""
        if tracer._trace is self:
            found: Var = tracer._var
            return found
        if not tracer._trace.alive:
            raise leaked(tracer)
        # Two handles of one ref are one ref.
        entry = self.captured.get(id(tracer))
        if entry is None:
            entry = self.captured[id(tracer)] = (tracer, ref, Var(ref.aval))
        return entry[2]

    def argument(self, aval: ShapedArray) -> Any:
        """A new argument of the jaxpr."""
        var = Var(aval)
        self.invars.append(var)
        tracer = JaxprTracer(self, var)
        return self.reference(tracer) if is_ref_type(aval) else tracer

    def describe(self, tracer: Any) -> str:
        return provenance.tell(tracer, self.origin(tracer))

    def origin(self, tracer: Any) -> str:
        """Where the tracer was made."""
        when = f"while `{self.name}` was {self.doing}."
        for i, var in enumerate(self.invars):
            if var is tracer._var:
                names = self.arg_names
                what = names[i] if names and i < len(names) else f"argument {i}"
                return f"It is {what} of the function `{self.name}` that is being {self.doing}."
        for eqn in self.eqns:
            if any(var is tracer._var for var in eqn.outvars):
                at = source.summary(eqn.source)
                return f"It was made by `{eqn.primitive}` at {at} {when}"
        return f"It was made {when}"

    def finish(self, outs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """The jaxpr with the results `outs`, and the values of its constants."""
        for i, out in enumerate(outs):
            if isinstance(out, Reference):
                raise self.returned(out, i)
        outvars = [self.lift(out) for out in outs]
        captured = self.captured.values()
        consts = [kept(x, v.aval) if isinstance(x, np.ndarray) else x for _, x, v in captured]
        constvars = [var for _, _, var in captured]
        if self.merged:
            read = {v for eqn in self.eqns for v in eqn.invars}.union(outvars)
            self.eqns = [e for e in self.eqns if e not in self.merged or e.outvars[0] in read]
        return Jaxpr(constvars, self.invars, outvars, self.eqns, self.name), consts

    def returned(self, ref: Reference, i: int) -> ValueError:
        """The error for a ref among the results."""
        if ref.staged is None or ref.staged._trace is not self:
            origin = "It was closed over by the function"
        else:
            origin = self.origin(ref.staged).rstrip(".")
        return ValueError(
            f"the function `{self.name}` returned a mutable array reference of type {ref.aval} as "
            f"result {i}, but mutable array references cannot be returned. {origin}. Return its "
            "value `ref[...]`; who passed the ref in, or closes over it, has it already."
        )


def _collect_less() -> None:
    """While programs are written, have Python look through all objects for garbage more rarely.

    It finds none among equations, and looks again each time that they have become a quarter more:
    that was half of the time of tracing 50,000 operations, in pauses that no interrupt ends. Recent
    objects are looked through as ever.
    """
    global _full_collections
    young, middle, full = gc.get_threshold()
    if full < _RARE:
        _full_collections = full
        gc.set_threshold(young, middle, _RARE)


def _collect_as_before() -> None:
    """Have Python look for garbage as often as before programs were written."""
    young, middle, full = gc.get_threshold()
    if full == _RARE:  # if not, the user has set another since
        gc.set_threshold(young, middle, _full_collections)


def stage(
    f: Callable[..., Sequence[Any]],
    avals: Sequence[ShapedArray],
    name: str = "",
    arg_names: Sequence[str] | None = None,
) -> tuple[Jaxpr, list[Any]]:
    """Trace `f`, which takes and returns flat sequences of arrays, at arguments of type `avals`.

    Returns the jaxpr and the values of its constants: arrays, or tracers of enclosing traces.
    """
    trace = JaxprTrace(name or getattr(f, "__name__", "function"), arg_names)
    names = source.enter_program()
    try:
        writing.append(trace)
        _collect_less()
        args = [trace.argument(aval) for aval in avals]
        outs = under(trace, f, *args)
        found = trace.finish(outs)
    except provenance.ABOUT_OPERANDS as error:
        provenance.annotate(error)
        raise
    finally:
        trace.alive = False
        if trace in writing:  # not if an interrupt came before it was
            writing.remove(trace)
        if not writing:
            _collect_as_before()
        source.swap_names(names)
    if config.check_tracer_leaks.value:
        del args, outs
        refuse_leaks(trace)
    if config.enable_checks.value:
        check(found[0])
    if config.no_collectives.value:
        check_moves(found[0].eqns, config.no_collectives.value)
    return found


def stage_closed(
    f: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray], name: str = ""
) -> tuple[ClosedJaxpr, list[Any]]:
    """Like `stage`, for the body of a higher-order primitive.

    The constants become the first arguments of a jaxpr that has none; their values are returned.
    """
    jaxpr, consts = stage(f, avals, name)
    return ClosedJaxpr(hoist_consts(jaxpr)), consts


def hoist_consts(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr whose constant variables are its first arguments."""
    if not jaxpr.constvars:
        return jaxpr
    return jaxpr.replace(constvars=(), invars=[*jaxpr.constvars, *jaxpr.invars])


def are_mixed() -> bool:
    """Whether a program may have 64 bits here, where `enable_x64` is off.

    Rules make numbers, whose width follows the flag: those of its equations with 64 bits
    (`JaxprEqn.is_wide`) run with the flag on, as these were written.
    """
    return ShapedArray.are_wide_used and not config.enable_x64.value


def bind_wide(eqn: JaxprEqn, operands: Sequence[Any]) -> Any:
    """What an equation with 64 bits gives."""
    with config.enable_x64(True):
        return eqn.primitive(*operands, **eqn.params)


def kept(x: Any, aval: ShapedArray) -> Any:
    """An array or number of NumPy's as an operand of that type, 64 bits if it has so many."""
    if aval.dtype not in WIDE or config.enable_x64.value:
        return x
    return JaxprTrace.placed(x, aval)


def number(literal: Literal) -> Any:
    """A literal as an operand: weakly typed, a Python number, if the literal is."""
    if literal.aval.weak_type and not literal.aval.shape:
        value = literal.val.item()
        # Under other settings of `enable_x64` a Python number would have another dtype.
        if shaped(value) is literal.aval:
            return value
    # A Python boolean among the residuals of a rule comes back as one.
    return (
        bool(literal.val) if literal.val.__class__ is np.bool_ else kept(literal.val, literal.aval)
    )


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Run the program on `args` under the current trace.

    Arguments and results are flat lists of arrays; raises `TypeError` when the count is wrong.
    """
    if len(args) != len(jaxpr.invars):
        raise TypeError(f"the jaxpr takes {len(jaxpr.invars)} arguments, got {len(args)}")
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    trace = state.trace
    # What reads or writes refs does so before its trace is asked.
    is_plain = trace.writes or not Reference.exist
    outer, names, mixed = state.source, source.names_here(), are_mixed()
    try:
        for eqn in jaxpr.eqns:
            operands = tuple([number(v) if v.__class__ is Literal else env[v] for v in eqn.invars])
            state.source = eqn.source if names is None else names[eqn.source]
            if mixed and eqn.is_wide:
                out = bind_wide(eqn, operands)
            elif is_plain:
                out = trace.bind(eqn.primitive, operands, eqn.params)
            else:
                out = eqn.primitive(*operands, **eqn.params)
            if eqn.primitive.multiple_results:
                env.update(zip(eqn.outvars, out, strict=True))
            else:
                env[eqn.outvars[0]] = out
    finally:
        state.source = outer
    return [number(v) if v.__class__ is Literal else env[v] for v in jaxpr.outvars]

"""`jax.core` and `jax.extend.core`: programs, traces and types, as libraries handle them."""

from __future__ import annotations

import contextlib
import functools
import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from perspex import config, errors
from perspex.api.waiting import ensure_compile_time_eval as ensure_compile_time_eval
from perspex.as_jax.doors import faces
from perspex.as_jax.doors.linear_util import DebugInfo as DebugInfo
from perspex.as_jax.doors.primitive import Primitive as Primitive
from perspex.as_jax.doors.pxla import pytype_aval_mappings as pytype_aval_mappings
from perspex.as_jax.doors.traces import Trace as Trace
from perspex.as_jax.doors.traces import Tracer as Tracer
from perspex.base.effects import Effect as Effect
from perspex.base.effects import Effects as Effects
from perspex.base.effects import no_effects as no_effects
from perspex.base.xla import ArrayImpl
from perspex.ir.avals import ShapedArray as ShapedArray
from perspex.ir.avals import shaped
from perspex.ir.jaxpr import Atom as Atom
from perspex.ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from perspex.ir.jaxpr import Jaxpr as Jaxpr
from perspex.ir.jaxpr import JaxprEqn as JaxprEqn
from perspex.ir.jaxpr import Literal as Literal
from perspex.ir.jaxpr import Var as Var
from perspex.ir.jaxpr import check, sub_jaxprs
from perspex.runtime.keys import KeyArray
from perspex.tracing.staging import eval_jaxpr as eval_jaxpr_flat
from perspex.tracing.trace import Tracer as AnyTracer
from perspex.tracing.trace import bottom, concrete_value, current, state
from perspex.tracing.trace import typeof as get_aval
from perspex.transforms.vmap import BatchTrace

__all__ = [
    "AbstractToken", "AbstractValue", "Atom", "ClosedJaxpr", "DebugInfo", "DropVar", "Effect",
    "Effects", "InconclusiveDimensionOperation", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal",
    "OpaqueTraceState", "ParamDict", "Primitive", "ShapedArray", "Token", "Trace", "TraceTag",
    "Tracer", "Value", "Var", "array_types", "check_jaxpr", "concrete_or_error",
    "ensure_compile_time_eval", "eval_context", "eval_jaxpr", "find_top_trace", "gensym",
    "get_aval", "get_opaque_trace_state", "jaxpr_as_fun", "jaxprs_in_params", "mapped_aval",
    "max_dim", "min_dim", "new_jaxpr_eqn", "no_effects", "nonempty_axis_env_DO_NOT_USE",
    "physical_aval", "primal_dtype_to_tangent_dtype", "pytype_aval_mappings",
    "raise_to_shaped", "set_current_trace",
    "subjaxprs", "take_current_trace", "trace_state_clean", "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE", "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype",
]  # fmt: skip

faces.put_on()

AbstractValue = faces.AbstractValue
ParamDict = dict[str, Any]
Value = Any
eval_context = ensure_compile_time_eval
# The types that arrays have, and numbers that are taken for arrays.
array_types = {ArrayImpl, AnyTracer, KeyArray}
JaxprTypeError = TypeError


class AbstractToken:
    """The type of a token, which orders effects."""


class Token:
    """A value that orders effects and holds nothing."""

    def __init__(self, buf: Any) -> None:
        self._buf = buf

    def block_until_ready(self) -> None:
        """Wait for what is ordered before it."""
        self._buf.block_until_ready()


class DropVar(Var):
    """A variable for a result that nothing reads."""

    __slots__ = ()


class InconclusiveDimensionOperation(Exception):  # noqa: N818 - the name in JAX
    """An operation on sizes cannot be decided for all their values."""


class TraceTag:
    """Tells the tracers of one trace from those of another."""


def max_dim(d1: int, d2: int) -> int:
    """The larger of two sizes."""
    return max(d1, d2)


def min_dim(d1: int, d2: int) -> int:
    """The smaller of two sizes."""
    return min(d1, d2)


def eval_jaxpr(
    jaxpr: Any, consts: Sequence[Any], *args: Any, propagate_source_info: bool = True
) -> list[Any]:
    """Run the program on `args` under the current trace: a list of results."""
    program = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
    return eval_jaxpr_flat(program, consts, *args)


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> Any:
    """The program as a function of flat arguments; with arguments, what it gives for them."""
    run = functools.partial(eval_jaxpr_flat, closed_jaxpr.jaxpr, closed_jaxpr.consts)
    return run(*args) if args else _named(run, closed_jaxpr.jaxpr.name)


def _named(run: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return run(*args)

    call.__name__ = name or "jaxpr"
    return call


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Any]:
    """The programs among the params of an equation."""
    return sub_jaxprs(params)


def subjaxprs(jaxpr: Any) -> Iterator[Any]:
    """The programs among the params of all equations of a program."""
    return itertools.chain.from_iterable([sub_jaxprs(eqn.params) for eqn in jaxpr.eqns])


def check_jaxpr(jaxpr: Any) -> None:
    """Raise `TypeError` unless the program is well formed and well typed."""
    check(jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr)


def new_jaxpr_eqn(
    invars: Sequence[Any],
    outvars: Sequence[Any],
    primitive: Any,
    params: dict[str, Any],
    effects: Any = None,
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """An equation."""
    return JaxprEqn(primitive, list(invars), list(outvars), params, faces.source_of(source_info))


def gensym(suffix: str = "") -> Callable[[Any], Var]:
    """A function that makes a new variable of a type."""
    return Var


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one example of a batch; that of the batch, if it has no batch axis."""
    if axis is None:
        return aval
    shape = aval.shape
    return aval.update(shape=shape[:axis] + shape[axis + 1 :])


def unmapped_aval(
    size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None
) -> ShapedArray:
    """The type of a batch of examples."""
    if axis is None:
        return aval
    shape = aval.shape
    return aval.update(shape=(*shape[:axis], size, *shape[axis:]))


def raise_to_shaped(aval: ShapedArray, weak_type: bool | None = None) -> ShapedArray:
    """The type without what is known of the value: every type here is one."""
    return aval if weak_type is None else aval.update(weak_type=weak_type)


def valid_jaxtype(x: Any) -> bool:
    """Whether `x` is an array, or a number that is taken for one."""
    try:
        shaped(x)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """`force(val)`, or an error if `val` has no value now; `context` says why it is needed."""
    found = concrete_value(val)
    if found is None and isinstance(val, AnyTracer):
        raise errors.ConcretizationTypeError(
            f"a traced value of type {val.aval.str_short(short_dtypes=False)} has no value now. "
            f"{context}"
        )
    return found if force is None else force(found)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents of values of a dtype."""
    return faces.tangent_type(ShapedArray((), primal_dtype)).dtype


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the array of plain numbers that holds the elements."""
    return aval.physical()


# ---- The current trace --------------------------------------------------------------------------


class OpaqueTraceState:
    """Which trace was current; equal to another if both were made under the same."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Any) -> None:
        self._trace = _tag(trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace is other._trace

    def __hash__(self) -> int:
        return hash(self._trace)


# What stands for each trace that somebody has asked about. It holds no trace: a traced function
# that has returned leaves none of its tracers behind.
_tags: weakref.WeakKeyDictionary[Any, TraceTag] = weakref.WeakKeyDictionary()


def _tag(trace: Any) -> TraceTag:
    found = _tags.get(trace)
    if found is None:
        found = _tags[trace] = TraceTag()
    return found


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Which trace is current, as a value to compare."""
    return OpaqueTraceState(state.trace)


def find_top_trace(_: Any = None) -> Any:
    """The current trace."""
    return state.trace


def trace_state_clean() -> bool:
    """Whether no function is being traced."""
    return state.trace is bottom()


@contextlib.contextmanager
def set_current_trace(trace: Any, check_leaks: bool = False) -> Iterator[None]:
    """Make `trace` the current trace in a context; `None` means the one that evaluates."""
    with current(bottom() if trace is None else trace):
        yield


@contextlib.contextmanager
def take_current_trace() -> Iterator[Any]:
    """Evaluate operations in a context, and give it the trace that was current."""
    trace = state.trace
    with current(bottom()):
        yield trace


def _traces() -> list[Any]:
    found, trace = [], state.trace
    while trace is not None:
        found.append(trace)
        trace = getattr(trace, "parent", None)
    return found


def nonempty_axis_env() -> bool:
    """Whether a named axis is around."""
    return any(axis.name is not None for axis in config.axis_env.value)


def unsafe_am_i_under_a_jit() -> bool:
    """Whether a program is being written."""
    return any(trace.writes for trace in _traces())


def unsafe_am_i_under_a_vmap() -> bool:
    """Whether a batch is around."""
    return any(isinstance(trace, BatchTrace) for trace in _traces())


def unsafe_get_axis_names() -> list[Any]:
    """The names of the axes around."""
    return [axis.name for axis in config.axis_env.value if axis.name is not None]


nonempty_axis_env_DO_NOT_USE = nonempty_axis_env  # noqa: N816 - the name in JAX
unsafe_am_i_under_a_jit_DO_NOT_USE = unsafe_am_i_under_a_jit  # noqa: N816
unsafe_am_i_under_a_vmap_DO_NOT_USE = unsafe_am_i_under_a_vmap  # noqa: N816
unsafe_get_axis_names_DO_NOT_USE = unsafe_get_axis_names  # noqa: N816

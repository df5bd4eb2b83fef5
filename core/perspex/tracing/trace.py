"""Primitives, traces and tracers: how one program text gets many meanings.

Every operation of the language ends in `Primitive.__call__`, which hands itself to the *current
trace* of the thread. A trace gives operations their meaning: the bottom trace evaluates them, a
staging trace writes them down, a transforming trace calls the rule of its transform with its parent
as the current trace. There is no stack to search: whoever starts a trace makes it current with
`under` and the previous one is current again when it ends.

A tracer is a value that stands for an array inside a trace. It knows its aval and its trace.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from perspex import config, errors
from perspex.base import source
from perspex.base.effects import Effects, no_effects
from perspex.ir.avals import ShapedArray, shaped
from perspex.tracing.array_methods import ArrayMethods

_depth = config.trace_depth.cell


class Trace:
    """The meaning of operations while it is current.

    `alive` is false once the traced function has returned: tracers found after that have leaked.
    `jit_key` is what the C++ fast paths see: 0 lets them run, 1 sends every call to Python.
    """

    __slots__ = ("alive",)
    jit_key = 1
    # Whether operations become equations, instead of being done.
    writes = False

    def __init__(self) -> None:
        self.alive = True

    def bind(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        raise NotImplementedError

    def describe(self, tracer: Tracer) -> str:
        """Where the tracer's value comes from, for error messages: whole lines, or nothing."""
        return ""


class _State(threading.local):
    # The class attributes are what a thread sees that has not started a trace: the bottom trace.
    trace: Any = None
    # While a jaxpr is interpreted: where its current equation was written, for the ones it becomes.
    source: Any = None


state = _State()


def set_bottom(trace: Trace) -> None:
    """Make `trace` the meaning of operations outside every trace. Called once, at import."""
    _State.trace = trace


def under(trace: Trace, f: Callable[..., Any], *args: Any) -> Any:
    """`f(*args)` with `trace` as the current trace."""
    previous, depth = state.trace, _depth.get_local()
    # An interrupt may arrive between any two instructions: nothing is changed outside `try`.
    try:
        state.trace = trace
        _depth.set_local(trace.jit_key)
        return f(*args)
    finally:
        state.trace = previous
        _depth.set_local(depth)


def in_its_place(rule: Callable[..., Any], *args: Any) -> Any:
    """`rule(*args)`, a rule of the user's: what it does is in its lines.

    The equation that is being interpreted has another, which counts for the rules that are ours.
    """
    outer, code = state.source, getattr(rule, "__code__", None)
    if outer is None or code is None or source.is_internal(code.co_filename):
        return rule(*args)
    try:
        state.source = None
        return rule(*args)
    finally:
        state.source = outer


@contextlib.contextmanager
def current(trace: Trace) -> Iterator[None]:
    """A context in which `trace` is current; `under` is the faster way to call one function."""
    previous, depth = state.trace, _depth.get_local()
    try:
        state.trace = trace
        _depth.set_local(trace.jit_key)
        yield
    finally:
        state.trace = previous
        _depth.set_local(depth)


def reset() -> None:
    """Leave every trace: what a kernel does before a cell, whatever interrupted the last one."""
    state.trace = _State.trace
    state.source = None
    _depth.set_local(_State.trace.jit_key)
    config.axis_env.cell.set_local(())


def bottom() -> Trace:
    """The trace that evaluates."""
    return _State.trace


class Axis(NamedTuple):
    """The axis of a batch: how many examples there are, and what collectives call it, if at all.

    While a function runs on examples, the named axes around it are in `config.axis_env`; a program
    staged there names its axis in its params, and needs the environment no more.
    """

    size: int
    name: Hashable | None = None


def bound_axis(name: Hashable, what: str) -> Axis:
    """The innermost axis of that name around; `NameError` if there is none.

    `what` is the operation that names it.
    """
    axes = config.axis_env.value
    for axis in reversed(axes):
        if axis.name == name:
            return axis
    raise unbound_axis(name, what, [axis.name for axis in axes])


def unbound_axis(name: Hashable, what: str, known: Sequence[Hashable] = ()) -> NameError:
    """The error for an operation along an axis that no `vmap` around it has named."""
    names = ", ".join([repr(k) for k in dict.fromkeys(known)])
    around = f"; the axes named around it are {names}" if names else ""
    return NameError(
        f"Found an unbound axis name: {name}. `{what}` runs along a named axis{around}. "
        f"Call it inside a function that is mapped with vmap(..., axis_name={name!r})."
    )


class Tracer(ArrayMethods):
    """Stands for an array while a function is traced. Has the array's shape and dtype, no value."""

    __slots__ = ()
    aval: ShapedArray
    _trace: Trace

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval.str_short(short_dtypes=False)})"

    def __bool__(self) -> bool:
        raise errors.TracerBoolConversionError(errors.bool_conversion(*self._asked()))

    def __int__(self) -> int:
        raise errors.ConcretizationTypeError(errors.concretization("int()", *self._asked()))

    def __float__(self) -> float:
        raise errors.ConcretizationTypeError(errors.concretization("float()", *self._asked()))

    def __complex__(self) -> complex:
        raise errors.ConcretizationTypeError(errors.concretization("complex()", *self._asked()))

    def __index__(self) -> int:
        raise errors.TracerIntegerConversionError(errors.integer_conversion(*self._asked()))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise errors.TracerArrayConversionError(errors.array_conversion(*self._asked()))

    def item(self, *args: int) -> Any:
        """Not available while tracing: there is no value yet."""
        raise errors.ConcretizationTypeError(errors.concretization(".item()", *self._asked()))

    def tolist(self) -> Any:
        """Not available while tracing: there is no value yet."""
        raise errors.ConcretizationTypeError(errors.concretization(".tolist()", *self._asked()))

    def tobytes(self, order: str = "C") -> bytes:
        """Not available while tracing: there is no value yet."""
        raise errors.ConcretizationTypeError(errors.concretization(".tobytes()", *self._asked()))

    def block_until_ready(self) -> Tracer:
        return self

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        return self

    def _asked(self) -> tuple[str, str]:
        """The `_story` for an error that says that there is no value yet; raises for a leak."""
        if not self._trace.alive:
            raise leaked(self)
        return self._story()

    def _story(self) -> tuple[str, str]:
        """What an error says of this tracer: its type, and where its value comes from."""
        return self.aval.str_short(short_dtypes=False), self._trace.describe(self)


def typeof(x: Any) -> ShapedArray:
    """The aval of a tracer, an array, a NumPy array or a number; `TypeError` for anything else."""
    return shaped(x)


def is_concrete(x: Any) -> bool:
    """Whether `x` has a value now."""
    return not isinstance(x, Tracer)


class Linear:
    """Stands in a transpose rule for an operand in which the equation is linear."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    def __repr__(self) -> str:
        return f"Linear({self.aval.str_short()})"


class Primitive:
    """An operation of the language with all its rules.

    A subclass states the rules as methods; `params` are keyword-only and hashable.

    * `type(*avals, **params)` gives the aval of the result, or a tuple of avals where
      `multiple_results` is true. It is pure: results are cached by avals and params.
    * `lower(b, *values, **params)` emits StableHLO through the builder `b` and returns the value or
      the list of values; `b.in_avals` and `b.out_avals` are the avals of this equation.
    * `jvp(primals, tangents, **params)` returns primal and tangent results; `None` is a symbolic
      zero, both in `tangents` and in the tangent returned.
    * `transpose(ct, *operands, **params)` gives one cotangent per operand. Operands in which the
      equation is linear are `Linear` placeholders; for the others the cotangent is `None`. `ct` is
      the cotangent of the result, or the list of them (`None` for zero) for multiple results.
    * `batch(axis_size, operands, axes, **params)` applies the operation to operands with one more
      axis at `axes[i]` (`None`: not batched); returns result and its axis, or two lists of them.
      Where `takes_axis` is true, `batch(axis, operands, axes, **params)` gets the `Axis` with its
      name. It is asked also when no operand is batched, if the name is one of `axis_names(params)`.
    * `effects(params)` says what an equation does beyond its results. One with effects stays in its
      program though nobody reads it, and one with ordered effects has the rule
      `sequence(token, *operands, **params)`: the same equation after all that led to `token`;
      returns the token after it, and the results.
    * `evaluate(*operands, **params)`, where `on_host` is true, gives the results outside every
      trace: a call of Python takes the place of a compiled program.
    * `staged(avals, operands, **params)`, where `untraced` is true: the params hold a function of
      Python (`control.custom_call`). Gives the equation that a staging trace writes once the
      function has been traced: primitive, operands, params. `call_batched(trace, operands,
      **params)` is what it is in a batching trace.
    * `flops(operands, results, params)` is how many operations of arithmetic one run of an equation
      of these types takes, one for each element of a sum, a product, a sine; `None` where nobody
      can say. `traffic(operands, results, params)` is how many bytes it reads and writes by itself,
      not fused with others.
    * `physical(in_avals, out_avals, params)` gives the params that do the same to arrays whose
      elements carry trailing axes: what an operation on typed PRNG keys is in terms of numbers.

    Those of `higher_order` hold programs among their params, and have two rules more:

    * `split(unknown, *operands, **params)` evaluates what depends on known operands alone. It
      returns the results, `None` where a result is not known yet, and the equation that gives
      those (primitive, operands, params), or `None` if there are none.
    * `dce(eqn, used)` is the equation without what only unused results need.
    """

    name: str = "primitive"
    multiple_results: bool = False
    # Works element by element; the lowering spreads scalar operands over the result's shape.
    elementwise: bool = False
    # Calls, loops and branches: programs are among the params.
    higher_order: bool = False
    # A call of the program `jaxpr` among the params, with the operands as they are.
    is_call: bool = False
    # `batch` is given the axis with its name: collectives, and programs in which they may stand.
    takes_axis: bool = False
    # A call of a Python function that has not been traced.
    untraced: bool = False
    # Outside every trace `evaluate` is called instead of a compiled program.
    on_host: bool = False
    # `lower` deals with typed keys itself, instead of being given their numbers.
    lowers_keys: bool = False
    # Puts numbers elsewhere and computes none.
    only_moves: bool = False
    # Two in a row are one: `merged(first, params)` gives its operands and params.
    merges: bool = False
    # Params that are not printed: always (`...`), or when they have the given value.
    quiet: ClassVar[dict[str, Any]] = {}
    # Params that JAX prints and that have only one value here.
    printed: ClassVar[dict[str, Any]] = {}
    # In print, the variables of the callee are named as those it is called with.
    same_variables: bool = False
    types: dict[Any, Any]

    def __init__(self) -> None:
        self.types = {}

    def __call__(self, *args: Any, **params: Any) -> Any:
        return state.trace.bind(self, args, params)

    bind = __call__

    def typed(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        """`type`, from the cache."""
        key = (avals, tuple(params.items())) if params else avals
        out = self.types.get(key)
        if out is None:
            out = self.types[key] = self.type(*avals, **params)
        return out

    def __repr__(self) -> str:
        return self.name

    # `*args: Any, **kwargs: Any` lets each primitive state its own signature.

    def type(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("type")

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("lower")

    def jvp(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("jvp")

    def transpose(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("transpose")

    def batch(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("batch")

    def physical(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        raise TypeError(
            f"{self.name} is not defined on typed PRNG keys; "
            "use random.key_data(key) for the numbers in a key"
        )

    def effects(self, params: dict[str, Any]) -> Effects:
        """What an equation with these params does beyond its results."""
        return no_effects

    def flops(
        self,
        operands: Sequence[ShapedArray],
        results: Sequence[ShapedArray],
        params: dict[str, Any],
    ) -> float | None:
        """The operations of arithmetic in one run; `None` where nobody can say."""
        return 0.0 if self.only_moves else None

    def traffic(
        self,
        operands: Sequence[ShapedArray],
        results: Sequence[ShapedArray],
        params: dict[str, Any],
    ) -> float | None:
        """The bytes that one run reads and writes."""
        return float(sum([aval.nbytes for aval in (*operands, *results)]))

    def sequence(self, token: Any, *operands: Any, **params: Any) -> Any:
        raise self.missing("sequence")

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("evaluate")

    def staged(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("staged")

    def call_batched(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("call_batched")

    def axis_names(self, params: dict[str, Any]) -> Iterable[Hashable]:
        """The named axes that an equation with these params runs along."""
        return ()

    def merged(self, first: Any, params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        raise self.missing("merged")

    def split(self, unknown: Sequence[bool], *operands: Any, **params: Any) -> Any:
        raise self.missing("split")

    def dce(self, eqn: Any, used: Sequence[bool]) -> Any:
        raise self.missing("dce")

    def missing(self, rule: str) -> Exception:
        return NotImplementedError(
            f"the primitive `{self.name}` has no {rule} rule; "
            f"define the method `{rule}` of {type(self).__module__}.{type(self).__qualname__}"
        )


def story(tracer: Tracer) -> tuple[str, str]:
    """What an error says of a tracer: its type, and whole sentences on where it comes from."""
    return tracer._story()


def _holder(trace: Trace) -> Tracer | None:
    return next((x for x in gc.get_referrers(trace) if isinstance(x, Tracer)), None)


def refuse_leaks(trace: Trace) -> None:
    """Raise if a tracer of a trace that has ended is still held somewhere.

    For `check_tracer_leaks`. The caller holds none any more itself.
    """
    held = _holder(trace)
    if held is not None:
        del held
        gc.collect()  # slow, so only now: the tracer may be part of a cycle that nobody holds
        held = _holder(trace)
    if held is not None:
        kind, origin = held._story()
        name = source.expression_for(held)
        by = f" as `{name}`" if name else ""
        raise errors.UnexpectedTracerError(
            f"Leaked trace: a traced array with shape {kind} is still held{by}, although the "
            f"function whose tracing made it has returned.\n{origin}\n"
            "Remedy: return the value from the traced function and use what the call returns."
        )


def leaked(tracer: Tracer) -> errors.UnexpectedTracerError:
    """The error for a tracer found outside the function whose tracing made it."""
    kind, story = tracer._story()
    name = source.expression_for(tracer)
    return errors.UnexpectedTracerError(errors.leaked_tracer(kind, story, source.here(), name))


def refused(primitive: Primitive, error: TypeError) -> TypeError:
    """The error for an operand that is no array, with the name of the operation."""
    return TypeError(f"{primitive}: {error}") if type(error) is TypeError else error

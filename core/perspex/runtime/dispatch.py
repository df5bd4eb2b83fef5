"""Eager execution: the bottom trace, which evaluates.

Each primitive with its params becomes a callable of jaxlib's C++ that compiles on the first call
with new types and repeats the call without Python afterwards.
"""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import config, tree
from perspex.base import events, xla
from perspex.base.pytree_registry import call_registry
from perspex.base.recent import Recent
from perspex.dtypes import float0
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray, shaped
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal
from perspex.layout.memories import MemorySpace, kind_of
from perspex.ops.memory import moved
from perspex.ops.placing import in_program
from perspex.runtime import client, invalid, stopping
from perspex.runtime.compiler import pressure
from perspex.runtime.executable import Executable, compile_lowered
from perspex.runtime.lowered import Lowered, Origin
from perspex.runtime.placed import deleted_error, placed
from perspex.runtime.placement import choose_place, settled
from perspex.runtime.processes import joining
from perspex.runtime.transfer import assembled, copy_to, put, signature
from perspex.sharding import NamedSharding, PartitionSpec
from perspex.tracing.primitive import Primitive, refused
from perspex.tracing.staging import JaxprTrace, JaxprTracer, eval_jaxpr, stage
from perspex.tracing.trace import Trace, Tracer, leaked, state, under
from perspex.transforms.identity import (
    key_beside,
    params_identity,
    token_of,
    tokens,
    without_tokens,
)

# Entries of jaxlib's cache of compiled calls, which all callables share.
_FAST_ENTRIES = 16_384
# First-order primitives are kept by params: so many bytes of executables.
_EAGER_CALLABLES = 128 * 2**20
# Calls, loops and branches are found by what their programs do: a loop around a fresh lambda finds
# what was compiled for the last one. What was compiled lives as long as such a program does; of the
# rest, so many bytes of executables are kept.
_EAGER_PROGRAMS = 2**20
# The programs of one function, or of one operation: a loop over more shapes forgets the oldest.
MOST_PROGRAMS = 4_096

_fast_cache = xla.PjitFunctionCache(_FAST_ENTRIES)


def place_argument(x: Any, sharding: Any, layout: Any) -> Any:
    """What C++ calls for an argument of a program over several devices."""
    return placed(x, sharding)


def fast_callable(
    name: str,
    fun: Callable[..., Any],
    miss: Callable[..., Any],
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    key: Any = None,
) -> Any:
    """A C++ callable that repeats compiled calls; it calls `miss` the first time.

    `miss(*args, **kwargs)` returns the result and a `FastPath`, or `None` for a call that must
    always go through Python. With `disable_jit` set, `fun` is called instead.
    """
    return xla.pjit(
        name,
        fun,
        miss,
        list(static_argnums),
        list(static_argnames),
        key,
        call_registry,
        place_argument,
        _fast_cache,
    )


class EvalTrace(Trace):
    """Evaluates: what operations mean outside every traced function."""

    __slots__ = ("callables", "lock", "programs", "weight")
    jit_key = 0

    def __init__(self) -> None:
        super().__init__()
        # Read without a lock, because every eager operation passes here.
        self.callables: dict[Any, Any] = {}
        self.weight = 0
        self.lock = threading.Lock()
        self.programs = Recent[Any, EagerProgram](
            _EAGER_PROGRAMS, weigh=lambda key, program: program.weight
        )

    def bind(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        key = (primitive, *params.items()) if params else primitive
        fast = self.callables.get(key)
        if fast is None:
            if primitive.on_host:
                return primitive.evaluate(*args, **params)
            if primitive.higher_order:
                fast = self.program(primitive, params).fast
            else:
                fast = eager_callable(primitive, params, self.grow)
                with self.lock:
                    self.callables[key] = fast
        return fast(*args)

    def program(self, primitive: Primitive, params: dict[str, Any]) -> EagerProgram:
        """The callable for a primitive that holds programs."""
        key = (primitive, params_identity(params))
        found: EagerProgram | None = self.programs.get(key)
        if found is None:
            token = token_of(params)
            mine = None if token is None else key_beside(token, key)
            found = None if token is None else token.compiled.get(mine)
            self.programs[key] = found = found or EagerProgram(primitive, without_tokens(params))
            if token is not None:
                token.compiled[mine] = found
        return found

    def grow(self, executable: Executable) -> None:
        """Count what was compiled for one operation; the operations seen first go for it."""
        with self.lock:
            self.weight += executable.entry.weight
            if self.weight > _EAGER_CALLABLES:
                # Which one is in use is not known, so that calling them costs nothing.
                for key in list(self.callables)[: len(self.callables) // 2]:
                    del self.callables[key]
                self.weight //= 2

    def clear(self) -> None:
        """Forget what was compiled."""
        with self.lock:
            self.callables.clear()
            self.weight = 0
        self.programs.clear()
        for token in tokens():
            token.compiled.clear()


class EagerProgram:
    """The callable for a loop, a branch or a call, and the bytes that its executables take."""

    __slots__ = ("__weakref__", "fast", "weight")

    def __init__(self, primitive: Primitive, params: dict[str, Any]) -> None:
        self.weight = 0
        if primitive.opens_on_host:
            body = params["jaxpr"]
            if any(eqn.primitive.on_host for eqn in body.eqns):
                self.fast = functools.partial(eval_jaxpr, body.jaxpr, body.consts)
                return
        this = weakref.ref(self)

        def grow(executable: Executable) -> None:
            program = this()
            if program is not None:
                program.weight += executable.entry.weight

        self.fast = eager_callable(primitive, params, grow)


def eager_callable(
    primitive: Primitive, params: dict[str, Any], grow: Callable[[Executable], None]
) -> Any:
    """`primitive` with fixed params as a callable on arrays; `grow` is told what is compiled."""
    programs = Recent[Any, Executable](MOST_PROGRAMS)
    name = primitive.name

    def program(args: Sequence[Any]) -> Executable:
        for x in args:
            if isinstance(x, Tracer):
                raise leaked(x)
        try:
            avals = tuple([shaped(x) for x in args])
        except TypeError as error:
            raise refused(primitive, error) from None
        place, committed = choose_place(args, name)
        key = (avals, place, committed, config.context())
        found = programs.get(key)
        if found is None:
            start = time.perf_counter()

            def body(*xs: Any) -> Any:
                out = primitive(*xs, **params)
                return out if primitive.multiple_results else [out]

            jaxpr, consts = stage(body, avals, name)
            closed = ClosedJaxpr(jaxpr, consts)
            made = weakref.ref(closed)
            events.publish("trace", name, start, signature(avals), eqns=1, program=made)
            ours = not primitive.higher_order
            place, committed = settled(place, committed, jaxpr, args)
            lowered = Lowered(
                closed,
                name,
                place,
                committed=committed,
                is_ours=ours,
                origin=None if ours else Origin(_no_function, made),
                watched=stopping.are_wanted(),
            )
            found = programs[key] = compile_lowered(lowered)
            grow(found)
        return found

    def run(executable: Executable, args: Sequence[Any]) -> Any:
        try:
            return executable(args)
        except invalid.InvalidValueError as error:
            if not primitive.is_call:
                raise
            raise op_by_op(params["jaxpr"].jaxpr, (), args) or error from None

    def miss(*args: Any) -> Any:
        executable = program(args)
        outs = run(executable, args)
        out = outs if primitive.multiple_results else outs[0]
        return out, executable.fast_path(tree.structure(out), out), False

    def evaluate(*args: Any) -> Any:
        outs = run(program(args), args)
        return outs if primitive.multiple_results else outs[0]

    # The table of all callables holds the key as long as `evaluate` lives: it holds no program.
    return fast_callable(name, evaluate, miss, key=name)


def _no_function() -> None:
    """The function of a loop that is called by itself: there is none."""


EVAL = EvalTrace()
pressure.register(xla.PjitFunctionCache.clear_all)
pressure.register(EVAL.clear)


class OpByOp(Trace):
    """Evaluates each operation by itself, those of jitted functions too."""

    __slots__ = ()

    def bind(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if primitive.is_call:
            return eval_jaxpr(params["jaxpr"].jaxpr, (), *args)
        return under(EVAL, EVAL.bind, primitive, args, params)


def op_by_op(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> Exception | None:
    """Evaluate a program operation by operation: the error of the first with an invalid result."""
    try:
        under(OpByOp(), eval_jaxpr, jaxpr, consts, *args)
    except invalid.InvalidValueError as found:
        return found
    return None


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: bool | None = None,
) -> Any:
    """Put every leaf of a pytree on a device, or distribute it over several, copying if needed.

    Args:
      x: a pytree of arrays and numbers.
      device: a device, a sharding, a `memory.Space`, a `PartitionSpec` inside `with mesh:`, or
        (where JAX takes no text) a platform's name, whose first device it means; or a pytree of
        them that is a prefix of `x`. It commits the arrays to that place, so that computations with
        them run there. With `None`, arrays stay where they are, and everything else goes to the
        default device.
      src: where `x` is; arrays know that themselves.
      donate, may_alias: whether the memory of `x` may be reused. Both only permit it, and here no
        memory of `x` is given up.

    Returns:
      A pytree of the same structure, of arrays on the device or devices.

    Raises:
      ValueError: if both `donate` and `may_alias` are True.
      ValueError: for anything else as `device`, and for an array that the sharding cannot cut.

    Inside a traced function, a sharding over several devices is a constraint
    (`lax.with_sharding_constraint`), and a single device changes nothing.

    >>> import numpy as np
    >>> device_put(np.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    guards = xla.guards()
    outer, guards.explicit_device_put = guards.explicit_device_put, True
    try:
        return _device_put(x, device, donate, may_alias)
    finally:
        guards.explicit_device_put = outer


def _device_put(x: Any, device: Any, donate: Any, may_alias: bool | None) -> Any:
    if donate is True and may_alias is True:
        raise ValueError("device_put: may_alias and donate cannot both be True; leave one out")
    if device is None:
        target, committed = None, False
    elif isinstance(device, (dict, list, tuple)):
        leaves, structure = tree.flatten(x)
        places = tree.broadcast_prefix(
            device, x, is_leaf=lambda place: place is None, name="device_put's device"
        )
        found = [device_put(leaf, place) for leaf, place in zip(leaves, places, strict=True)]
        return tree.unflatten(structure, found)
    elif isinstance(device, MemorySpace):
        return tree.map(lambda leaf: _put_in_memory(leaf, device), x)
    else:
        target, committed = client.resolve(device), True
    return tree.map(lambda leaf: _put_leaf(leaf, target, committed), x)


def constant(x: Any, aval: ShapedArray) -> Any:
    """The host value `x` as an array of type `aval`: on the device, or a literal while tracing."""
    trace: Any = state.trace
    bottom: Any = EVAL
    while trace is not bottom and trace.__class__ is not JaxprTrace:
        trace = trace.parent
    if trace is bottom:
        if aval.is_float0:
            return np.zeros(aval.shape, aval.dtype)
        return put(x, client.default_device(), aval=aval)
    value = np.asarray(x, aval.dtype)
    atom: Any = trace.lift(value) if aval.shape else Literal(value[()], aval)
    return JaxprTracer(trace, atom)


def _placed(x: Any, aval: ShapedArray) -> Any:
    return put(x, client.default_device(), aval=aval)


JaxprTrace.placed = staticmethod(_placed)


def without_numbers(xs: Sequence[Any]) -> list[Any]:
    """The values with arrays in place of Python's numbers, which have no shape and dtype."""
    return [constant(x, shaped(x)) if x.__class__ in PYTHON_SCALARS else x for x in xs]


def put_like(out: Any, like: Any) -> Any:
    """`out` where the array `like` lies, if that is committed to a place where `out` can lie."""
    if like.__class__ is not xla.ArrayImpl or not xla.is_committed(like):
        return out
    sharding = xla.sharding_of(like)
    if sharding.__class__ is NamedSharding and like.aval.shape != out.shape:
        return out
    return device_put(out, sharding)


def put_beside(out: Any, like: Any) -> Any:
    """`out`, whole, on each device that holds the array `like`, if that is committed to them."""
    if like.__class__ is not xla.ArrayImpl or not xla.is_committed(like):
        return out
    sharding = xla.sharding_of(like)
    if sharding.__class__ is NamedSharding:
        sharding = NamedSharding(sharding.mesh, PartitionSpec())
    return device_put(out, sharding)


def _put_in_memory(x: Any, space: MemorySpace) -> Any:
    """`x` where it lies, or on the default device, but in that memory."""
    if isinstance(x, Tracer):
        return moved(x, space)
    array = getattr(x, "base", x) if hasattr(x, "aval") else x
    is_array = array.__class__ is xla.ArrayImpl
    lies = xla.sharding_of(array) if is_array else client.sharding(client.default_device())
    return _put_leaf(x, lies.with_memory_kind(kind_of(space)), True)


def _put_leaf(x: Any, sharding: Any, committed: bool) -> Any:
    is_named = sharding.__class__ is NamedSharding
    if isinstance(x, Tracer):
        return in_program(x, sharding)
    if getattr(x, "dtype", None) == float0:
        return x
    from_key = getattr(x, "base", None) if hasattr(x, "aval") else None
    if from_key is not None:
        if is_named:
            sharding.check(x.aval.shape)
        return type(x)(x.aval, _put_leaf(from_key, sharding, committed))
    if not isinstance(x, xla.ArrayImpl):
        if sharding is None:
            return put(x, client.default_device())
        if is_named and not sharding.is_fully_addressable:
            sharding.check(np.shape(x))
            joining.same(np.asarray(x), sharding)
        return put(x, sharding, committed)
    if x.is_deleted():
        raise deleted_error(x)
    lies = xla.sharding_of(x)
    if sharding is None or (lies == sharding and (xla.is_committed(x) or not committed)):
        return x
    if not is_named or lies.__class__ is not NamedSharding:
        if is_named and not sharding.is_fully_addressable:
            sharding.check(x.aval.shape)
            joining.same(assembled(x), sharding)
        return copy_to(x, sharding, committed)
    sharding.check(x.aval.shape)
    if lies.device_list != sharding.device_list or lies.memory_kind != sharding.memory_kind:
        return copy_to(x, sharding)
    # The same devices exchange their parts among themselves.
    return under(EVAL, in_program, x, sharding)

"""Calls of Python from compiled programs: printing, debugging, pure functions, input and output.

    debug_print, debug_callback     no results; for a person who watches
    pure_callback                   results and nothing else: may be dropped, merged, moved
    io_callback                     happens exactly as often as the program says

What is called is a param: an object that takes the arrays and returns the leaves of the results,
and that equals another one for the same function, so that a program traced again is the same
program. Outside every trace nothing is compiled; Python is called there and then. How ordered calls
keep their order is in `transforms.sequence`, how compiled programs call in
`runtime.callbacks`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from perspex import tree
from perspex.base import effects
from perspex.base.effects import Effect, Effects
from perspex.control.vmap_methods import Opaque
from perspex.ir.avals import ShapedArray, shaped
from perspex.ops.manual import once_in_each_part
from perspex.runtime.callbacks import HostCall, from_host, to_host, wait_in_order
from perspex.runtime.dispatch import put_beside
from perspex.runtime.keys import KeyArray
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import Tracer, bottom, leaked, state, typeof
from perspex.transforms.sequence import TOKEN


class Same:
    """A value in params that is the same only as itself: something without a hash."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


def hashable(value: Any) -> Any:
    """`value`, or where it has no hash an object that stands for it."""
    try:
        hash(value)
    except TypeError:
        return Same(value)
    return value


def unwrapped(value: Any) -> Any:
    """What `hashable` was given."""
    return value.value if value.__class__ is Same else value


class FlatCallback:
    """A callback on the leaves of its arguments.

    `static` are those leaves that are no arrays, as pairs of position and value.
    """

    __slots__ = ("callback_func", "in_tree", "static")

    def __init__(
        self, callback_func: Any, in_tree: Any, static: tuple[tuple[int, Any], ...] = ()
    ) -> None:
        self.callback_func = hashable(callback_func)
        self.in_tree = in_tree
        self.static = static

    def __call__(self, *arrays: Any) -> list[Any]:
        args, kwargs = tree.unflatten(self.in_tree, with_static(arrays, self.static))
        return tree.leaves(unwrapped(self.callback_func)(*args, **kwargs))

    @property
    def name(self) -> str:
        function = unwrapped(self.callback_func)
        return getattr(function, "__name__", None) or type(function).__name__

    def _key(self) -> tuple[Any, ...]:
        return self.callback_func, self.in_tree, self.static

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FlatCallback) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"_FlatCallback(callback_func={self.callback_func!r}, in_tree={self.in_tree!r})"


def with_static(arrays: Sequence[Any], static: Sequence[tuple[int, Any]]) -> list[Any]:
    """The arrays with the static values put in at their positions."""
    leaves = list(arrays)
    for at, value in static:
        leaves.insert(at, unwrapped(value))
    return leaves


def arrays_apart(
    args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], Any, tuple[tuple[int, Any], ...]]:
    """The arrays among the leaves, the tree of all, and the others with their positions."""
    leaves, in_tree = tree.flatten((tuple(args), kwargs))
    arrays, static = [], []
    for i, leaf in enumerate(leaves):
        try:
            shaped(leaf)
        except TypeError:
            static.append((i, hashable(leaf)))
        else:
            arrays.append(leaf)
    return arrays, in_tree, tuple(static)


def _beside(out: Any, operands: Sequence[Any]) -> Any:
    """The result of a call with concrete arrays, on the devices to which one is committed."""
    return put_beside(out, next((x for x in operands if getattr(x, "committed", False)), None))


class HostCallback(Opaque):
    """A call of Python as an equation. `what` is the function that users know."""

    on_host = True
    what: str

    def function(self, params: dict[str, Any]) -> tuple[Callable[..., Sequence[Any]], str]:
        """What is called with the arrays and returns the leaves of the results, and its name."""
        callback = params["callback"]
        return callback, callback.name

    def typed(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        # Not cached: the key would keep every callback alive.
        return self.fresh_type(avals, params)

    def type(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return params.get("result_avals", ())

    def cut(self, out: Any, *avals: ShapedArray, **params: Any) -> list[cuts.Parts]:
        # Python is called once, with whole arrays.
        return [((),) * aval.ndim for aval in out]

    def asked(self, params: dict[str, Any]) -> None:
        """None: `sharding` says where Python runs, not how results lie."""

    def lower(self, b: Any, *values: Any, **params: Any) -> list[Any]:
        return self.emit(b, values, b.in_avals, params, bool(self.effects(params)), False)

    def emit(
        self,
        b: Any,
        values: Sequence[Any],
        in_avals: Sequence[ShapedArray],
        params: dict[str, Any],
        has_effect: bool,
        ordered: bool,
    ) -> list[Any]:
        """Write the call. With `ordered` the first value is a token, and so is the first result."""
        function, name = self.function(params)
        outs = self.type(*in_avals, **params)
        call = HostCall(function, name, self.what, in_avals, outs, b.source, ordered)
        tokens = [TOKEN] * ordered
        return b.callback(call, values, [*tokens, *in_avals], [*tokens, *outs], has_effect)

    def evaluate(self, *operands: Any, **params: Any) -> list[Any]:
        outs = self.call(operands, params)
        avals = self.type(*[typeof(x) for x in operands], **params)
        return [_beside(from_host(o, aval), operands) for o, aval in zip(outs, avals, strict=True)]

    def call(self, operands: Sequence[Any], params: dict[str, Any]) -> list[np.ndarray]:
        """Call Python here and now; the results as NumPy arrays of the types promised."""
        args = []
        for x in operands:
            if isinstance(x, Tracer):
                raise leaked(x)
            is_array = hasattr(x, "block_until_ready")
            args.append(x if is_array else from_host(np.asarray(x), typeof(x)))
        if effects.has_order(self.effects(params)):
            wait_in_order()
        function, _ = self.function(params)
        return to_host(function(*args), self.type(*map(typeof, args), **params), self.what)

    def sequence(self, token: Any, *operands: Any, **params: Any) -> tuple[Any, list[Any]]:
        token, *outs = ordered_call_p(
            token, *operands, primitive=self, params=tuple(params.items())
        )
        return token, outs

    def one_by_one(
        self,
        axis_size: int,
        operands: Sequence[Any],
        axes: Sequence[int | None],
        params: dict[str, Any],
        unroll: int = 1,
    ) -> tuple[list[Any], list[int | None]]:
        """A call for each example, in their order."""
        if state.trace is bottom():
            rows = [self.call(_example(operands, axes, i), params) for i in range(axis_size)]
            avals = self.type(*[typeof(x) for x in operands], **params)
            outs = [
                from_host(
                    np.stack([row[i] for row in rows])
                    if rows
                    else np.zeros((0, *aval.physical().shape), aval.physical().dtype),
                    aval.update(shape=(axis_size, *aval.shape)),
                )
                for i, aval in enumerate(avals)
            ]
            outs = [_beside(out, operands) for out in outs]
            return outs, [0] * len(outs)
        return super().one_by_one(axis_size, operands, axes, params, unroll)


def _example(operands: Sequence[Any], axes: Sequence[int | None], i: int) -> list[Any]:
    row = []
    for x, at in zip(operands, axes, strict=True):
        if at is None:
            row.append(x)
        elif isinstance(x, KeyArray):
            aval = x.aval.update(shape=x.shape[:at] + x.shape[at + 1 :])
            row.append(from_host(np.take(np.asarray(x.base), i, at), aval))
        else:
            aval = typeof(x)
            aval = aval.update(shape=aval.shape[:at] + aval.shape[at + 1 :])
            row.append(from_host(np.take(np.asarray(x), i, at), aval))
    return row


class Debug(HostCallback):
    """A call for a person who watches: it has no results, and derivatives leave it out."""

    def effects(self, params: dict[str, Any]) -> Effects:
        return frozenset([params["effect"]])

    def lower(self, b: Any, *values: Any, **params: Any) -> list[Any]:
        manual = b.module.manual
        if manual is None or manual.is_whole:
            return super().lower(b, *values, **params)
        avals = b.in_avals

        def write(inner: Any, args: Sequence[Any]) -> None:
            self.emit(inner, args, avals, params, has_effect=True, ordered=False)

        once_in_each_part(b, values, avals, write)
        return []

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
        return self(*primals, **params), []

    def transpose(self, cts: Any, *operands: Any, **params: Any) -> list[Any]:
        return [None] * len(operands)

    def batch(
        self, axis_size: int, operands: Any, axes: Any, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        return self.one_by_one(axis_size, operands, axes, params)


class DebugCallback(Debug):
    """`debug.callback`. Params: `callback`; its `effect`; `partitioned`."""

    name = "debug_callback"
    what = "debug.callback"

    def type(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return ()

    def function(self, params: dict[str, Any]) -> tuple[Callable[..., Sequence[Any]], str]:
        callback = params["callback"]

        def shown(*arrays: Any) -> tuple[()]:
            callback(*arrays)
            return ()

        return shown, callback.name


class LogRecord(NamedTuple):
    """What a record of `logging` says beside its text: how grave it is, and where it comes from."""

    level: int
    file: str
    line: int
    function: str

    def handle(self, text: str) -> None:
        """Log the text."""
        if _logger.isEnabledFor(self.level):
            fields = (_logger.name, self.level, self.file, self.line, text, (), None, self.function)
            _logger.handle(_logger.makeRecord(*fields))


_logger = logging.getLogger("perspex.debug")


class DebugPrint(Debug):
    """`debug.print`, and `debug.log`, which has a `logging_record`.

    `in_tree` and `static_args` make the arguments again of the operands.
    """

    name = "debug_print"
    what = "debug.print"

    def effects(self, params: dict[str, Any]) -> Effects:
        return frozenset([debug_effect(params["ordered"])])

    def function(self, params: dict[str, Any]) -> tuple[Callable[..., Sequence[Any]], str]:
        fmt, in_tree, static = params["fmt"], params["in_tree"], params["static_args"]
        record: LogRecord | None = params["logging_record"]
        write = print if record is None else record.handle
        options = {name: unwrapped(value) for name, value in params["np_printoptions"]}

        def show(*arrays: Any) -> tuple[()]:
            args, kwargs = tree.unflatten(in_tree, with_static(arrays, static))
            with np.printoptions(**options):
                text = fmt.format(*args, **kwargs) if params["has_placeholders"] else fmt
            write(text)
            return ()

        return show, fmt


class PureCallback(HostCallback):
    """`pure_callback`. Params: `callback`, the `result_avals`, `vmap_method`."""

    name = "pure_callback"
    what = "pure_callback"

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        raise ValueError(
            "Pure callbacks do not support JVP: the derivative of the Python function "
            f"`{params['callback'].name}` is not known. Define it with `perspex.custom_jvp`, in a "
            "function that calls pure_callback."
        )

    def transpose(self, cts: Any, *operands: Any, **params: Any) -> Any:
        raise ValueError(
            "Pure callbacks do not support transpose. Define the derivative with "
            "`perspex.custom_vjp`, in a function that calls pure_callback."
        )

    def batch(
        self, axis_size: int, operands: Any, axes: Any, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        return self.by_method(axis_size, operands, axes, params)


class IOCallback(HostCallback):
    """`io_callback`. Params: `callback`, the `result_avals`, `ordered`."""

    name = "io_callback"
    what = "io_callback"

    def effects(self, params: dict[str, Any]) -> Effects:
        return frozenset([effects.ordered_io if params["ordered"] else effects.io])

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        raise ValueError(
            "IO callbacks do not support JVP. Give them `stop_gradient(x)` for values that they "
            "only read, or define the derivative with `custom_jvp`."
        )

    def transpose(self, cts: Any, *operands: Any, **params: Any) -> Any:
        raise ValueError("IO callbacks do not support transpose.")

    def batch(
        self, axis_size: int, operands: Any, axes: Any, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        if params["ordered"]:
            raise ValueError(
                "Cannot `vmap` ordered IO callback. Examples of a batch have no order; use "
                "ordered=False, or lax.map instead of vmap."
            )
        return self.one_by_one(axis_size, operands, axes, params)


class OrderedCall(Primitive):
    """An ordered callback on its way into a module: it takes a token, and hands it on.

    It is in programs that `transforms.sequence` has made for lowering, and in no others.
    """

    name = "ordered_call"
    multiple_results = True
    lowers_keys = True
    quiet: ClassVar[dict[str, Any]] = {"params": ...}

    def typed(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        return self.fresh_type(avals, params)

    def type(
        self, token: ShapedArray, *avals: ShapedArray, primitive: HostCallback, params: Any
    ) -> tuple[ShapedArray, ...]:
        return (token, *primitive.type(*avals, **dict(params)))

    def lower(
        self, b: Any, token: Any, *values: Any, primitive: HostCallback, params: Any
    ) -> list[Any]:
        given = [token, *values]
        return primitive.emit(b, given, b.in_avals[1:], dict(params), True, True)


def debug_effect(ordered: bool) -> Effect:
    """The kind of effect that debugging has."""
    return effects.ordered_debug if ordered else effects.debug


debug_callback_p = DebugCallback()
debug_print_p = DebugPrint()
pure_callback_p = PureCallback()
io_callback_p = IOCallback()
ordered_call_p = OrderedCall()

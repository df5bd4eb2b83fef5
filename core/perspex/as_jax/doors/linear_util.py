"""`jax.extend.linear_util`: functions with layers of transforms around them."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from perspex import config

_EMPTY = object()


class StoreException(Exception):  # noqa: N818 - the name in JAX
    """A value was read before it was stored, or stored twice."""


class Store:
    """A place for one value that a transform gives beside the results."""

    def __init__(self) -> None:
        self.kept: Any = _EMPTY

    def store(self, value: Any) -> None:
        """Keep the value; raises `StoreException` if there is one."""
        if self.kept is not _EMPTY:
            raise StoreException("Store occupied")
        self.kept = value

    def reset(self) -> None:
        """Forget the value."""
        self.kept = _EMPTY

    @property
    def val(self) -> Any:
        if self.kept is _EMPTY:
            raise StoreException("Store empty")
        return self.kept

    def __bool__(self) -> bool:
        return self.kept is not _EMPTY


class EqualStore(Store):
    """A `Store` that takes an equal value a second time."""

    def store(self, value: Any) -> None:
        if self and not bool(self.kept == value):
            raise StoreException("Store occupied with not-equal value")
        self.kept = value


class DebugInfo(NamedTuple):
    """What a function is traced for, its name and line, and what its arguments are called."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: Any = None

    @property
    def func_name(self) -> str:
        return self.func_src_info.split(" ")[0]

    def resolve_result_paths(self) -> DebugInfo:
        """The same, with the names of results found."""
        if callable(self.result_paths):
            return self._replace(result_paths=tuple(self.result_paths()))
        return self

    def with_unknown_names(self) -> DebugInfo:
        """The same without names of arguments and results."""
        return self._replace(arg_names=None, result_paths=None)


UNKNOWN = DebugInfo("unknown", "<unknown>")


class WrappedFun:
    """A function `f`, and `call_wrapped`, which calls it with all its transforms around it.

    Two are equal if they have the same function, transforms and params.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        f_transformed: Callable[..., Any],
        transforms: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...],
        stores: tuple[Store | None, ...],
        params: tuple[tuple[str, Any], ...],
        in_type: Any,
        debug_info: DebugInfo,
    ) -> None:
        self.f = f
        self.f_transformed = f_transformed
        self.transforms = transforms
        self.stores = stores
        self.params = params
        self.in_type = in_type
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(
        self, gen: Callable[..., Any], static: tuple[Any, ...], store: Store | None
    ) -> WrappedFun:
        """The function with one more transform around it."""
        first = (self.f_transformed,) if store is None else (self.f_transformed, store)
        return WrappedFun(
            self.f,
            functools.partial(gen, *first, *static),
            ((gen, static), *self.transforms),
            (store, *self.stores),
            self.params,
            None,
            self.debug_info,
        )

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """What the function with its transforms gives."""
        return self.f_transformed(*args, **kwargs)

    def populate_stores(self, stores: Sequence[Store | None]) -> None:
        """Store what another of the same transforms has stored."""
        for mine, other in zip(self.stores, stores, strict=True):
            if mine is not None and other is not None:
                mine.store(other.val)

    def replace_debug_info(self, info: DebugInfo) -> WrappedFun:
        """The same function with another `debug_info`."""
        return WrappedFun(
            self.f, self.f_transformed, self.transforms, self.stores, self.params, self.in_type,
            info,
        )  # fmt: skip

    def with_unknown_names(self) -> WrappedFun:
        """The same function without names of arguments and results."""
        return self.replace_debug_info(self.debug_info.with_unknown_names())

    def _key(self) -> tuple[Any, ...]:
        return self.f, self.transforms, self.params, self.in_type, self.debug_info

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __repr__(self) -> str:
        layers = [f"{i}: {gen}" for i, (gen, _) in enumerate(self.transforms)]
        return "\n".join(["Wrapped function:", *layers, f"Core: {self.__name__}"])


def wrap_init(
    f: Callable[..., Any],
    params: dict[str, Any] | None = None,
    *,
    debug_info: DebugInfo | None = None,
) -> WrappedFun:
    """Wrap `f`, so that transforms can be added to it; it gets `params` by name."""
    given = {} if params is None else params
    info = (debug_info or UNKNOWN)._replace(result_paths=None)
    kept = tuple(sorted(given.items()))
    return WrappedFun(f, functools.partial(f, **given), (), (), kept, None, info)


def flat_function(fun: Any) -> Callable[..., Any]:
    """What a library gives as a flat function, as one that is called."""
    return fun.call_wrapped if isinstance(fun, WrappedFun) else fun


def transformation2(gen: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """A transform from `gen(f, *static, *args, **kwargs)`, which calls `f`: a decorator.

    The result takes a `WrappedFun` and the static arguments.
    """

    @functools.wraps(gen)
    def transform(fun: WrappedFun, *static: Any) -> WrappedFun:
        return fun.wrap(gen, static, None)

    return transform


def transformation_with_aux2(
    gen: Callable[..., Any],
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """Like `transformation2`, for `gen(f, store, *static, *args, **kwargs)`: a decorator.

    The transform gives the function, and another one that returns what was stored.
    """

    @functools.wraps(gen)
    def transform(
        fun: WrappedFun, *static: Any, use_eq_store: bool = False, unk_names: bool = False
    ) -> tuple[WrappedFun, Callable[[], Any]]:
        store = EqualStore() if use_eq_store else Store()
        wrapped = fun.wrap(gen, static, store)
        return wrapped.with_unknown_names() if unk_names else wrapped, lambda: store.val

    return transform


def transformation(gen: Callable[..., Iterator[Any]]) -> Callable[..., WrappedFun]:
    """A transform from a generator, which yields arguments, gets results and yields its own."""

    def call(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        steps: Any = gen(*args, **kwargs)
        given, named = next(steps)
        return steps.send(f(*given, **named))

    return transformation2(functools.update_wrapper(call, gen))


def transformation_with_aux(
    gen: Callable[..., Iterator[Any]],
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """Like `transformation`, for a generator that yields its results and one value more."""

    def call(f: Callable[..., Any], store: Store, *args: Any, **kwargs: Any) -> Any:
        steps: Any = gen(*args, **kwargs)
        given, named = next(steps)
        out, aux = steps.send(f(*given, **named))
        store.store(aux)
        return out

    return transformation_with_aux2(functools.update_wrapper(call, gen))


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Which of two stores was filled (`True`: the first), and its value."""
    try:
        first = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("both stores are filled")


def cache(call: Callable[..., Any], *, explain: Any = None) -> Callable[..., Any]:
    """Remember `call(fun, *args)` for as long as the function inside of `fun` lives."""
    known: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(call)
    def remembered(fun: WrappedFun, *args: Any) -> Any:
        found = known.setdefault(fun.f, {})
        key = (fun.transforms, fun.params, fun.in_type, args, config.context())
        if key in found:
            out, stores = found[key]
            fun.populate_stores(stores)
            return out
        out = call(fun, *args)
        found[key] = (out, fun.stores)
        return out

    remembered.cache_clear = known.clear  # type: ignore[attr-defined]
    return remembered


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = None,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """What is known of a function that is traced: its name, and the line where it stands."""
    if sourceinfo is None:
        code = getattr(inspect.unwrap(fun), "__code__", None)
        name = getattr(fun, "__name__", "<unknown>")
        at = f" at {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
        sourceinfo = name + at
    return DebugInfo(traced_for, sourceinfo, None, result_paths_thunk)

"""`jit`: compile a function as a whole."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

import copyreg
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload

from perspex import tree
from perspex.api import stages
from perspex.api.choices import Inline
from perspex.base import xla
from perspex.base.tree_paths import PyTree
from perspex.jitted.compiled import build
from perspex.jitted.signature import Options, Places, unjitted
from perspex.jitted.stale import POLICIES
from perspex.layout.context import context_mesh
from perspex.runtime import client
from perspex.runtime.client import Device
from perspex.sharding import NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class JitWrapped(Protocol[P, R_co]):
    """A jitted function: the parameters and the result of the function, and the stages of `jit`."""

    __name__: str
    __qualname__: str

    @property
    def __wrapped__(self) -> Callable[P, R_co]: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(
        self: JitWrapped[Concatenate[Any, Q], R], instance: object, owner: type[Any] | None = None
    ) -> JitWrapped[Q, R]: ...

    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """The program for arguments of these types, which may be `ShapeDtypeStruct`s."""

    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """What the compiler is given for arguments of these types."""

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The types of the results."""

    def clear_cache(self) -> None:
        """Forget the compiled programs."""

    def retrace(self) -> None:
        """Forget what was traced, also of the jitted functions within."""


@overload
def jit(
    fun: Callable[P, R],
    /,
    *,
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | Sharding | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
    stale: str | None = None,
) -> JitWrapped[P, R]: ...


@overload
def jit(
    *,
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | Sharding | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
    stale: str | None = None,
) -> Callable[[Callable[P, R]], JitWrapped[P, R]]: ...


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | Sharding | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
    stale: str | None = None,
) -> Any:
    """Compile `fun` with XLA: traced once for each type of arguments, then run as one program.

    The function is called with tracers, which know shapes and dtypes and have no values. What it
    does to arrays is compiled; whatever else it does (printing, reading globals) happens while it
    is traced, and not when the compiled program runs again.

    Args:
      fun: takes and returns pytrees of arrays; other arguments must be static. Without it, `jit`
        returns a decorator.
      static_argnums, static_argnames: arguments that Python sees as they are. They must be
        hashable; each new value is a new program.
      donate_argnums, donate_argnames: arguments whose memory the results may take over. They
        cannot be used after the call.
      in_shardings: how arguments lie on several devices: a sharding, a `PartitionSpec` inside
        `with mesh:`, or a prefix of the tuple of arguments, `None` where the argument decides.
        Arguments that lie nowhere in particular are put there; those that lie otherwise are
        refused. Arguments given by name, and static ones, have no place in it.
      out_shardings: the same for the results; `None` where the compiler decides.
      keep_unused: keep arguments that the function does not use, instead of dropping them.
      device, backend: where to run. The default follows the arguments.
      inline: inside another traced function, leave no equation of its own; or an `Inline`.
      compiler_options: names and values of XLA's options.
      stale: in a notebook, what to do when a variable that the function captured has changed:
        `"warn"`, `"retrace"`, `"error"` or `"ignore"`. The default is the flag `stale_captures`.

    Returns:
      A function with the arguments and results of `fun`, and the methods `trace` and `lower` for
      the stages ahead of time, `eval_shape`, `clear_cache`, and `retrace`, which forgets what was
      traced, also of the jitted functions within whose captures have changed.

    Raises:
      TypeError: if `fun` is not a function; at a call, for an argument that is neither an array nor
        static, and for a result that is not an array.
      ValueError: for a static argument that has no hash, a position that `fun` does not have, an
        argument that is static and donated, or an unknown policy.

    >>> import perspex, perspex.numpy as pnp
    >>> @perspex.jit
    ... def norm(x):
    ...     return pnp.sqrt(pnp.sum(x**2))
    >>> norm(pnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    settings = {
        "in_shardings": in_shardings,
        "out_shardings": out_shardings,
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "keep_unused": keep_unused,
        "device": device,
        "backend": backend,
        "inline": inline is Inline.JAX_EARLY or (inline is True),
        "compiler_options": compiler_options,
        "stale": stale,
    }
    if fun is None:
        return functools.partial(jit, **settings)
    if not callable(fun):
        raise TypeError(f"jit takes a function, got {fun!r} of type {type(fun).__name__}")
    if inspect.isgeneratorfunction(fun) or inspect.iscoroutinefunction(fun):
        raise TypeError(f"jit cannot compile {fun}: a generator or coroutine has no array results")
    if stale is not None and stale not in POLICIES:
        raise ValueError(f"jit: stale must be one of {', '.join(POLICIES)}, got {stale!r}")
    static = _resolve(fun, static_argnums, static_argnames, "static")
    donated = _resolve(fun, donate_argnums, donate_argnames, "donate")
    both = (set(static[0]) & set(donated[0])) | (set(static[1]) & set(donated[1]))
    if both:
        raise ValueError(f"jit: arguments {sorted(map(str, both))} are both static and donated")
    place = (
        client.resolve_device(device if device is not None else backend)
        if (device is not None or backend is not None)
        else None
    )
    placed = [_shardings(in_shardings, "in_shardings"), _shardings(out_shardings, "out_shardings")]
    single = {d for _, found in placed for d in found}
    spread = any(isinstance(s, NamedSharding) for p, _ in placed if p for s in p.leaves)
    if single and (len(single) > 1 or spread):
        raise ValueError(
            "jit runs a function on one device or on the devices of one mesh, but got shardings of "
            f"{sorted(map(str, single))} and others"
        )
    if place is not None and (single or any(p is not None for p, _ in placed)):
        raise ValueError("jit takes either a device or in_shardings and out_shardings, not both")
    place = next(iter(single), place)
    options = Options(
        *static,
        *donated,
        keep_unused,
        settings["inline"],
        place,
        tuple(sorted((compiler_options or {}).items())),
        stale,
        *[found for found, _ in placed],
    )
    return _jitted(fun, options)


def _jitted(fun: Callable[..., Any], options: Options) -> Any:
    """The jitted function for checked options."""
    fast, owner = build(fun, options)
    functools.update_wrapper(fast, fun)
    # The C++ callable keeps the Python side alive through its miss handler.
    fast.trace = stages.tracer(owner, fun)
    fast.lower = stages.lowerer(owner, fun)
    fast.eval_shape = stages.shape_evaluator(owner, fun)

    def clear_cache() -> None:
        owner.clear()
        xla.clear_cache(fast)

    fast.clear_cache = clear_cache
    fast.retrace = owner.retrace
    return fast


def by_value(fast: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """How to make a jitted function again: from its function and options, without its programs.

    Raises `TypeError` for a compiled function that `jit` has not made.
    """
    owner = getattr(getattr(fast, "retrace", None), "__self__", None)
    if owner is None:
        raise TypeError(f"cannot pickle `{fast.__qualname__}`: it was not made by `jit`")
    return _jitted, (owner.fun, owner.options)


def _reduced(fast: Any) -> Any:
    """What pickles of a jitted function: its name in a module, or else what it is made of."""
    try:
        if operator.attrgetter(fast.__qualname__)(sys.modules[fast.__module__]) is fast:
            return fast.__qualname__
    except (AttributeError, KeyError):
        pass  # it is not there
    return by_value(fast)


copyreg.pickle(xla.PjitFunction, _reduced)


def _shardings(given: Any, name: str) -> tuple[Places | None, set[Any]]:
    """A pytree of shardings over several devices, and the single devices that are in it instead."""
    if name == "in_shardings" and isinstance(given, list):
        given = tuple(given)  # as the arguments are
    leaves, structure = tree.flatten(given, is_leaf=lambda place: place is None)
    if all(leaf is None for leaf in leaves):
        return None, set()
    is_set = context_mesh() is not None
    try:
        found = [
            # A bare spec is for the mesh that is set now, or else when the function is called.
            leaf
            if leaf is None or (isinstance(leaf, PartitionSpec) and not is_set)
            else client.resolve(leaf)
            for leaf in leaves
        ]
    except ValueError as error:
        raise ValueError(f"jit: {name}: {error}") from None
    single = {xla.device_of(s) for s in found if isinstance(s, SingleDeviceSharding)}
    is_single = single and not any(isinstance(s, NamedSharding) for s in found)
    # A program takes its arguments from any memory of the device.
    if is_single and (name == "in_shardings" or all(map(_is_usual, found))):
        return None, single
    return Places(tuple(found), structure), single


def _is_usual(sharding: Any) -> bool:
    """Whether a sharding leaves the memory for the results open."""
    return sharding is None or sharding.asked_kind is None


def _resolve(
    fun: Callable[..., Any], argnums: Any, argnames: Any, what: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of arguments, each inferred from the other where only one is given."""
    given_nums, given_names = argnums is not None, argnames is not None
    if isinstance(argnums, int):
        argnums = (argnums,)
    if isinstance(argnames, str):
        argnames = (argnames,)
    nums = tuple([_index(n, what) for n in argnums or ()])
    names = tuple(argnames or ())
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what}_argnames must be strings, got {name!r}")
    if not nums and not names:
        return nums, names
    try:
        parameters = list(inspect.signature(unjitted(fun)).parameters.values())
    except (TypeError, ValueError):
        return nums, names
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if not variadic:
        for n in nums:
            if not -len(positional) <= n < len(positional):
                raise ValueError(
                    f"jit: {what}_argnums has {n}, but the function takes only "
                    f"{len(positional)} positional arguments"
                )
        nums = tuple([n % len(positional) for n in nums])
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        known = {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}
        for name in names:
            if name not in known:
                raise ValueError(
                    f"jit: {what}_argnames has {name!r}, but the function has the arguments "
                    f"{sorted(known)}"
                )
    if given_names and not given_nums:
        nums = tuple([i for i, p in enumerate(positional) if p.name in names])
    elif given_nums and not given_names:
        names = tuple(
            [
                positional[n].name
                for n in nums
                if 0 <= n < len(positional)
                and positional[n].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            ]
        )
    return nums, names


def _index(n: Any, what: str) -> int:
    try:
        return n.__index__()
    except AttributeError:
        raise TypeError(f"{what}_argnums must be integers, got {n!r}") from None

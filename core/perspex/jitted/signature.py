"""What a call of a jitted function is compiled for, and how a call is taken apart to find that."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from perspex import config, tree
from perspex.base.xla import PjitFunction
from perspex.ir.avals import ShapedArray, shaped
from perspex.layout.spec import PartitionSpec
from perspex.ops.placing import in_program
from perspex.runtime.client import on_context_mesh


class Options(NamedTuple):
    """What a user chose for a jitted function: the arguments of `jit`."""

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    keep_unused: bool = False
    inline: bool = False
    device: Any = None
    compiler_options: tuple[tuple[str, Any], ...] = ()
    stale: str | None = None
    in_shardings: Places | None = None
    out_shardings: Places | None = None


class Places(NamedTuple):
    """A hashable pytree of shardings, with `None` where none is requested."""

    leaves: tuple[Any, ...]
    structure: Any


def broadcast_places(places: Any, arrays: Any, name: str) -> list[Any]:
    """The sharding for each leaf of `arrays`, from a prefix of their tree."""
    found = tree.broadcast_prefix(places, arrays, is_leaf=lambda place: place is None, name=name)
    return [p if not isinstance(p, PartitionSpec) else on_context_mesh(p) for p in found]


def constrained(arrays: Sequence[Any], shardings: Sequence[Any]) -> list[Any]:
    """Values of a traced function, those with a sharding placed as it says."""
    return [
        x if sharding is None else in_program(x, sharding)
        for x, sharding in zip(arrays, shardings, strict=True)
    ]


class Signature(NamedTuple):
    """What a call is compiled for: everything but the numbers in its arrays.

    The static arguments are places, types and values: 2, 2.0 and `True` are not the same.
    """

    avals: tuple[ShapedArray, ...]
    in_tree: Any
    static: tuple[tuple[Any, type, Any], ...]
    context: tuple[Any, ...]


# What an executable is kept under: signature, device, whether the device was the user's choice.
Key = tuple[Signature, Any, bool]


class Call(NamedTuple):
    """One call, taken apart: the arrays, their tree, and the function of the arrays alone."""

    leaves: list[Any]
    signature: Signature
    flat: Callable[..., Any]
    donated: tuple[bool, ...]


def function_name(fun: Any) -> str:
    """The name of a callable as it is shown."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    name = getattr(fun, "__name__", None)
    return name if name and isinstance(name, str) else type(fun).__name__


def name_after(made: Any, fun: Any, updated: Sequence[str] = ()) -> None:
    """Give a wrapper the name and the documentation of a callable.

    A callable object of a library may have anything under `__name__`; then its class is named.
    `updated` is as in `functools.update_wrapper`.
    """
    if isinstance(getattr(fun, "__name__", ""), str):
        functools.update_wrapper(made, fun, updated=updated)
    else:
        functools.update_wrapper(made, fun, assigned=(), updated=updated)
        made.__name__ = made.__qualname__ = function_name(fun)


def unjitted(fun: Any) -> Any:
    """The function in a jitted one.

    For `inspect`, which asks each of many nested ones twice for the parameters of the next.
    """
    while type(fun) is PjitFunction:
        fun = fun.__wrapped__
    return fun


def parameters_of(fun: Any) -> list[inspect.Parameter]:
    """The parameters of a function; none where Python does not know them."""
    try:
        return list(inspect.signature(unjitted(fun)).parameters.values())
    except (TypeError, ValueError):
        return []


def position_name(parameters: Sequence[inspect.Parameter], i: int) -> str:
    """What the function calls its argument number `i`: `x`, `xs[2]`."""
    for k, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_POSITIONAL:
            return f"{parameter.name}[{i - k}]"
        if k == i:
            return parameter.name
    return f"argument {i}"


def argument_names(parameters: Sequence[inspect.Parameter], in_tree: Any) -> list[str]:
    """`x`, `params['w']`: what each array of a call is called in the function's text."""
    return [leaf_name(parameters, path) for path in paths(in_tree)]


def paths(in_tree: Any) -> list[Any]:
    """The ways to the leaves of a structure."""
    dummy = tree.unflatten(in_tree, list(range(in_tree.num_leaves)))
    return [path for path, _ in tree.flatten_with_path(dummy)[0]]


def leaf_name(parameters: Sequence[inspect.Parameter], path: Any) -> str:
    which = path[1]
    name = which.key if path[0].idx == 1 else position_name(parameters, which.idx)
    return f"{name}{tree.keystr(path[2:])}"


def _check_hashable(value: Any, where: int | str, name: str) -> None:
    try:
        hash(value)
    except TypeError:
        what = f"argument {where}" if isinstance(where, int) else f"`{where}`"
        raise ValueError(
            f"the static {what} of `{name}` is of type {type(value)}, which is not hashable; "
            "pass a tuple instead of a list, or do not mark it static"
        ) from None


def take_apart(
    fun: Callable[..., Any],
    name: str,
    options: Options,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    not_an_array: Callable[[int, Any, Any, TypeError], str],
) -> Call:
    """Separate the arrays of a call from its static arguments.

    `not_an_array(i, leaf, in_tree, error)` words the error for a leaf that is no array.
    """
    static: list[tuple[Any, Any]] = []
    dynamic: list[Any] = list(args)
    for i in options.static_argnums:
        at = i if i >= 0 else i + len(args)
        if 0 <= at < len(args):
            static.append((at, args[at]))
            dynamic[at] = None
    names = sorted([key for key in kwargs if key in options.static_argnames])
    static += [(key, kwargs[key]) for key in names]
    keyed = {key: value for key, value in kwargs.items() if key not in names}
    for where, value in static:
        _check_hashable(value, where, name)
    leaves, in_tree = tree.flatten((tuple(dynamic), keyed))
    avals = []
    for i, leaf in enumerate(leaves):
        try:
            avals.append(shaped(leaf))
        except TypeError as error:
            raise TypeError(not_an_array(i, leaf, in_tree, error)) from None
    statics = dict(static)

    def flat(*flat_args: Any) -> tuple[list[Any], Any]:
        given, named = tree.unflatten(in_tree, flat_args)
        given = [statics.get(i, x) if i in statics else x for i, x in enumerate(given)]
        named.update({key: statics[key] for key in names})
        return tree.flatten(fun(*given, **named))

    typed = tuple([(where, type(value), value) for where, value in static])
    key = Signature(tuple(avals), in_tree, typed, config.context())
    return Call(leaves, key, flat, _donated(options, dynamic, keyed))


def _donated(options: Options, dynamic: list[Any], keyed: dict[str, Any]) -> tuple[bool, ...]:
    if not options.donate_argnums and not options.donate_argnames:
        return ()
    donated: list[bool] = []
    numbers = {i if i >= 0 else i + len(dynamic) for i in options.donate_argnums}
    for i, value in enumerate(dynamic):
        donated += [i in numbers] * len(tree.leaves(value))
    for name in sorted(keyed):
        donated += [name in options.donate_argnames] * len(tree.leaves(keyed[name]))
    return tuple(donated)

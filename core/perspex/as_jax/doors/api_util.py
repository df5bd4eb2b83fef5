"""`jax.api_util`: functions of pytrees as functions of flat lists."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from perspex import tree
from perspex.as_jax.doors.linear_util import DebugInfo as DebugInfo
from perspex.as_jax.doors.linear_util import WrappedFun, transformation2, transformation_with_aux2
from perspex.as_jax.doors.linear_util import debug_info as debug_info
from perspex.tracing.trace import typeof as shaped_abstractify

__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun",
    "flatten_fun_nokwargs", "infer_argnums_and_argnames", "rebase_donate_argnums", "safe_map",
    "shaped_abstractify",
]  # fmt: skip


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: Any, in_tree: Any, *leaves: Any) -> list[Any]:
    """A function of the leaves of `(args, kwargs)`, and the structure of its results."""
    args, kwargs = tree.unflatten(in_tree, leaves)
    outs, out_tree = tree.flatten(f(*args, **kwargs))
    store.store(out_tree)
    return outs


@transformation_with_aux2
def flatten_fun_nokwargs(
    f: Callable[..., Any], store: Any, in_tree: Any, *leaves: Any
) -> list[Any]:
    """A function of the leaves of `args`, and the structure of its results."""
    outs, out_tree = tree.flatten(f(*tree.unflatten(in_tree, leaves)))
    store.store(out_tree)
    return outs


@transformation2
def _with_fixed(
    f: Callable[..., Any], positions: tuple[int, ...], fixed: Sequence[Any], *args: Any, **kw: Any
) -> Any:
    given = list(fixed)
    for i, x in zip(positions, args, strict=True):
        given[i] = x
    return f(*given, **kw)


class _Fixed(tuple[Any, ...]):
    """Arguments that are part of a function; equal only to themselves."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """`f` as a function of the arguments at `dyn_argnums` alone, and those arguments.

    Raises:
      ValueError: for an argument among the others that is not hashable, if it must be.
    """
    numbers = (dyn_argnums,) if isinstance(dyn_argnums, int) else dyn_argnums
    positions = tuple([i % len(args) for i in numbers])
    fixed = [None if i in positions else x for i, x in enumerate(args)]
    if require_static_args_hashable:
        for i, x in enumerate(fixed):
            try:
                hash(x)
            except TypeError:
                raise ValueError(
                    f"Non-hashable static arguments are used in a jitted function: argument {i} "
                    f"is of type {type(x)}; make it hashable, or pass it as an array"
                ) from None
    return _with_fixed(f, positions, _Fixed(fixed)), tuple([args[i] for i in positions])


def donation_vector(
    donate_argnums: Sequence[int], donate_argnames: Sequence[str], in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """Which leaves of the arguments are donated."""
    if kws:
        args, kwargs = in_tree.children()
        names = sorted(in_tree.unflatten([None] * in_tree.num_leaves)[1])
        named = list(zip(names, kwargs.children(), strict=True))
    else:
        args, named = in_tree, []
    flags: list[bool] = []
    for i, child in enumerate(args.children()):
        flags += [i in donate_argnums] * child.num_leaves
    for name, child in named:
        flags += [name in donate_argnames] * child.num_leaves
    return tuple(flags)


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and the names of arguments, where the user gave one of the two."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums or ())
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    count = len(sig.parameters)
    both = [
        (i, name)
        for i, (name, parameter) in enumerate(sig.parameters.items())
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    if argnums is None:
        numbers = tuple([i for i, name in both if name in names])
    elif argnames is None:
        names = tuple([name for i, name in both if i in numbers or i - count in numbers])
    return numbers, names


def rebase_donate_argnums(
    donate_argnums: Iterable[int], static_argnums: Iterable[int]
) -> tuple[int, ...]:
    """The numbers of donated arguments, counted without the static ones."""
    static = sorted(static_argnums)
    return tuple(i - sum(s < i for s in static) for i in sorted(donate_argnums) if i not in static)


def flatten_axes(
    name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list[Any]:
    """The axes for all leaves, from a tree of them that is a prefix."""
    return tree.flatten_axes(name, treedef, axis_tree)


def safe_map(f: Callable[..., Any], *args: Iterable[Any]) -> list[Any]:
    """A list of `f` of the elements of lists, which must be of one length."""
    lists = [list(arg) for arg in args]
    for found in lists[1:]:
        if len(found) != len(lists[0]):
            raise AssertionError(f"length mismatch: {[len(x) for x in lists]}")
    return list(map(f, *lists))

"""Programs made from programs: what the transforms of jaxprs have in common.

A transform of a jaxpr evaluates it under its interpreter and stages what that does. The result is
remembered for as long as the program it was made from lives, so that transforming one program twice
gives one object: the same function of the module, the same executable.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from perspex import config, errors
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal
from perspex.ops.structural import convert
from perspex.tracing.staging import stage
from perspex.tracing.trace import Reference, Tracer, typeof

T = TypeVar("T")


# ---- Lists by flags -----------------------------------------------------------------------------


def cut(xs: Sequence[T], *sizes: int) -> list[Any]:
    """`xs` cut into lists of the given sizes, and the rest.

    >>> cut([1, 2, 3, 4], 1, 2)
    [[1], [2, 3], [4]]
    """
    ends = list(itertools.accumulate(sizes, initial=0))
    pieces = [list(xs[a:b]) for a, b in itertools.pairwise(ends)]
    return [*pieces, list(xs[ends[-1] :])]


def pick(xs: Iterable[T], flags: Iterable[Any]) -> list[T]:
    """The elements whose flag is true.

    >>> pick("abc", [True, False, True])
    ['a', 'c']
    """
    return [x for x, flag in zip(xs, flags, strict=True) if flag]


def partition(xs: Sequence[T], flags: Sequence[Any]) -> tuple[list[T], list[T]]:
    """The elements whose flag is false, and those whose flag is true.

    >>> partition("abc", [True, False, True])
    (['b'], ['a', 'c'])
    """
    return [x for x, f in zip(xs, flags, strict=True) if not f], pick(xs, flags)


def merge(flags: Sequence[Any], rest: Iterable[T], chosen: Iterable[T]) -> list[T]:
    """The list that `partition` by `flags` takes apart into `rest` and `chosen`.

    >>> merge([True, False, True], ["b"], ["a", "c"])
    ['a', 'b', 'c']
    """
    zeros, ones = iter(rest), iter(chosen)
    return [next(ones) if flag else next(zeros) for flag in flags]


def with_gaps(xs: Iterable[T], flags: Sequence[Any]) -> list[T | None]:
    """The elements of `xs` where the flag is true, `None` elsewhere.

    >>> with_gaps([5, 6], [True, False, True])
    [5, None, 6]
    """
    found = iter(xs)
    return [next(found) if flag else None for flag in flags]


# ---- Values -------------------------------------------------------------------------------------


def like_primals(tangents: Iterable[Any], avals: Iterable[ShapedArray]) -> list[Any]:
    """Those tangents or cotangents that are not zero, weakly typed where their primals are.

    So a program and its derivative agree about what goes around a loop.
    """
    return [
        convert(t, typeof(t).dtype, aval.weak_type)
        for t, aval in zip(tangents, avals, strict=True)
        if t is not None
    ]


# ---- Programs -----------------------------------------------------------------------------------


def _number(value: Any, name: str) -> Any:
    """What may stand in an equation: anything but a ref."""
    if isinstance(value, Reference):
        raise NotImplementedError(
            f"the function `{name}` closes over a mutable array reference of type {value.aval}, "
            "but what calls it takes no refs. Read the value before: `value = ref[...]`."
        )
    return value


def embed(jaxpr: Jaxpr, constants: Iterable[tuple[Any, Any]]) -> Jaxpr:
    """The program with the values of some variables written into its equations as literals."""
    literal = {var: Literal(_number(value, jaxpr.name), var.aval) for var, value in constants}
    if not literal:
        return jaxpr
    eqns = [
        eqn.replace(invars=[literal.get(v, v) for v in eqn.invars])
        if any(v in literal for v in eqn.invars)
        else eqn
        for eqn in jaxpr.eqns
    ]
    return jaxpr.replace(eqns=eqns, outvars=[literal.get(v, v) for v in jaxpr.outvars])


def program(
    f: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray], name: str
) -> ClosedJaxpr:
    """The program of a flat function that closes over no tracer.

    Constants that its rules made are written into the equations: a program inside params has none.
    """
    jaxpr, consts = stage(f, avals, name)
    for const in consts:
        if isinstance(const, Tracer):
            raise errors.UnexpectedTracerError(
                f"a rule of a custom_jvp, custom_vjp or custom_vmap function in `{name}` closes "
                f"over a traced value of type {const._story()[0]}. Pass that value to the "
                f"function as an argument.\n{const._story()[1]}"
            )
    closed = embed(jaxpr, zip(jaxpr.constvars, consts, strict=True))
    return ClosedJaxpr(closed.replace(constvars=()))


def by_program(f: Callable[..., T]) -> Callable[..., T]:
    """Remember `f(closed, *key)` for as long as the program `closed` lives.

    The key is hashable. The result must not hold `closed` itself, or both would live for ever.
    """
    known: weakref.WeakKeyDictionary[ClosedJaxpr, dict[Any, T]] = weakref.WeakKeyDictionary()

    @functools.wraps(f)
    def remembered(closed: ClosedJaxpr, *key: Any) -> T:
        found = known.get(closed)
        if found is None:
            found = known[closed] = {}
        full = (key, config.context())
        if full not in found:
            found[full] = f(closed, *key)
        return found[full]

    return remembered

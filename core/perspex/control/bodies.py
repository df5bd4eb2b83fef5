"""User functions as the bodies of loops and branches: staged, checked, remembered.

A body is staged once for each type of its arguments and remembered for as long as the function
lives, so calling a loop again with the same function neither traces nor compiles. What the function
closes over became constants of the body; they are operands of the loop, and a body that closes over
tracers is not remembered, because they are other tracers next time.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from perspex import config, tree
from perspex.base import events, source
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.jaxpr import ClosedJaxpr, Var, count_eqns
from perspex.jitted import stale
from perspex.jitted.compiled import reference
from perspex.jitted.signature import function_name, paths
from perspex.runtime.compiler import pressure
from perspex.runtime.transfer import signature
from perspex.tracing.staging import hoist_consts, stage
from perspex.tracing.trace import Tracer
from perspex.transforms.programs import by_program


class Body(NamedTuple):
    """A staged function: `closed` takes the constants and then the arguments, all flat."""

    closed: ClosedJaxpr
    consts: list[Any]
    out_tree: Any
    traced: stale.Traced | None = None

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.closed.out_avals


def call(f: Callable[..., Any], *args: Any) -> Any:
    """The plain way to apply a function to the arguments of a body."""
    return f(*args)


_bodies: weakref.WeakKeyDictionary[Any, dict[Any, Body]] = weakref.WeakKeyDictionary()


@pressure.register
def clear() -> None:
    """Forget all bodies."""
    _bodies.clear()


def stage_body(
    what: str,
    f: Callable[..., Any],
    in_tree: Any,
    avals: Sequence[ShapedArray],
    apply: Callable[..., Any] = call,
    names: Sequence[str] | None = None,
) -> Body:
    """Stage `apply(f, *args)` for arguments of structure `in_tree` and of types `avals`.

    `what` is the operation that the body is for, in errors. `apply` is a function of a module,
    which is what the remembered body is found by beside `f`. `names` are those of the leaves, if
    the arguments are not those of `f`.
    """
    key = (what, apply, in_tree, tuple(avals), config.context())
    try:
        known = _bodies.setdefault(f, {})
    except TypeError:  # no hash, or no weak reference
        known = {}
    found = known.get(key)
    # A loop is called through Python each time, so there is nothing to gain from an old program.
    if found is None or (found.traced is not None and stale.must_retrace(found.traced, "retrace")):
        with stale.Tracing() as tracing:
            found = _stage(what, f, in_tree, avals, apply, names)
        if not any(isinstance(c, Tracer) for c in found.consts):
            if stale.observers:
                found = found._replace(traced=tracing.remember(function_name(f), reference(f)))
            known[key] = found
    stale.use(found.traced)
    return found


def _stage(
    what: str,
    f: Callable[..., Any],
    in_tree: Any,
    avals: Sequence[ShapedArray],
    apply: Callable[..., Any],
    names: Sequence[str] | None,
) -> Body:
    out_tree = None

    def flat(*args: Any) -> list[Any]:
        nonlocal out_tree
        out = apply(f, *tree.unflatten(in_tree, args))
        leaves, out_tree = tree.flatten(out)
        check_results(what, f, leaves, out)
        return leaves

    name = function_name(f)
    # Inside of a program its time is that of the program.
    is_part = events.is_inside("trace")
    start = time.perf_counter()
    with contextlib.nullcontext() if is_part else events.Phase("trace", name):
        jaxpr, consts = stage(flat, avals, name, names or ArgumentNames(f, in_tree))
    if not is_part and events.listeners:
        at = source.capture()
        # No program by itself, and never lowered as one.
        eqns = count_eqns(jaxpr)
        events.publish("trace", name, start, signature(avals), at, eqns=eqns, program=None)
    return Body(ClosedJaxpr(hoist_consts(jaxpr)), consts, out_tree)


def check_results(what: str, f: Callable[..., Any], leaves: Sequence[Any], out: Any) -> None:
    """Raise `TypeError` unless all leaves of what a function returned are arrays."""
    i = not_an_array(leaves)
    if i is not None:
        path = tree.keystr(tree.leaves_with_path(out)[i][0])
        where = f" at component {path}" if path else ""
        raise TypeError(
            f"{what}: the function {place(f)} returned a value of type {type(leaves[i])}{where}, "
            "which is not an array; return arrays and numbers only"
        )


def not_an_array(leaves: Sequence[Any]) -> int | None:
    """The first leaf that is neither an array nor a number; `None` if there is none."""
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, Tracer):
            try:
                shaped(leaf)
            except TypeError:
                return i
    return None


def place(f: Callable[..., Any]) -> str:
    """A function as an error shows it: its name, and where it was written."""
    inner = f
    while isinstance(inner, functools.partial):
        inner = inner.func
    code = getattr(inspect.unwrap(inner), "__code__", None)
    at = f" at {source.line_name(code.co_filename, code.co_firstlineno)}" if code else ""
    return f"`{function_name(f)}`{at}"


def origin(body: Body, i: int) -> str:
    """Which operation of the user made the result `i` of a body, for errors; may be empty."""
    var = body.closed.jaxpr.outvars[i]
    for eqn in body.closed.eqns:
        if any(found is var for found in eqn.outvars):
            return f" (made by `{eqn.primitive}` at {source.summary(eqn.source)})"
    return ""


def parameter(f: Callable[..., Any], position: int, default: str) -> str:
    """What a function calls its parameter at a position."""
    try:
        found = list(inspect.signature(f).parameters.values())[position]
    except (TypeError, ValueError, IndexError):
        return default
    return default if found.kind is inspect.Parameter.VAR_POSITIONAL else found.name


class ArgumentNames(Sequence[str]):
    """What the flat arguments of a function are called, worked out only if an error asks.

    They are the leaves of a tuple of structure `in_tree`, of what stands at the `positions`, all of
    them if not given; then those of a dict of structure `named_tree`.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        in_tree: Any,
        positions: Sequence[int] | None = None,
        named_tree: Any = None,
    ) -> None:
        self.fun, self.in_tree = fun, in_tree
        self.positions, self.named_tree = positions, named_tree

    @property
    def name(self) -> str:
        return function_name(self.fun)

    def __getitem__(self, i: Any) -> Any:
        count = self.in_tree.num_leaves
        if i >= count:
            path = paths(self.named_tree)[i - count]
            return f"`{path[0].key}{tree.keystr(path[1:])}`"
        path = paths(self.in_tree)[i]
        at = path[0].idx if self.positions is None else self.positions[path[0].idx]
        name = parameter(self.fun, at, f"argument {at}")
        return f"`{name}{tree.keystr(path[1:])}`"

    def __len__(self) -> int:
        return self.in_tree.num_leaves + (self.named_tree.num_leaves if self.named_tree else 0)


# ---- Branches: bodies with constants in common -------------------------------------------------


def with_common_consts(bodies: Sequence[Body]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """The programs of bodies with the constants of all of them as first arguments; the constants.

    What several bodies close over is there once.
    """
    place_of: dict[int, int] = {}
    consts: list[Any] = []
    places = []
    for body in bodies:
        mine = []
        for const in body.consts:
            if id(const) not in place_of:
                place_of[id(const)] = len(consts)
                consts.append(const)
            mine.append(place_of[id(const)])
        places.append(tuple(mine))
    if all(mine == tuple(range(len(consts))) for mine in places):
        return [body.closed for body in bodies], consts
    avals = tuple([shaped(const) for const in consts])
    found = [
        _with_consts(body.closed, mine, avals) for body, mine in zip(bodies, places, strict=True)
    ]
    return found, consts


@by_program
def _with_consts(
    closed: ClosedJaxpr, places: tuple[int, ...], avals: tuple[ShapedArray, ...]
) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    mine = dict(zip(places, jaxpr.invars, strict=False))
    consts = [mine.get(i) or Var(aval) for i, aval in enumerate(avals)]
    return ClosedJaxpr(jaxpr.replace(invars=[*consts, *jaxpr.invars[len(places) :]]))

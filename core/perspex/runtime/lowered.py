"""A jaxpr lowered for a device or a mesh: its module, its arguments and its constants."""

from __future__ import annotations

import itertools
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex.base import events, source, xla
from perspex.base.effects import happens, has_order
from perspex.hlo import Module, types
from perspex.hlo.located import located
from perspex.hlo.watched import WatchedModule
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, count_eqns
from perspex.ops.placing import OnMesh, in_types, results_in_memory
from perspex.runtime import client as platform
from perspex.runtime import stopping
from perspex.runtime.placed import placed
from perspex.runtime.placement import (
    Place,
    Spread,
    arguments,
    by_type,
    devices_of,
    is_abstract,
    platform_of,
    whole,
)
from perspex.runtime.transfer import signature
from perspex.sharding import AbstractMesh, NamedSharding
from perspex.transforms.dce import dce_jaxpr
from perspex.transforms.higher_order import has_long_loop
from perspex.transforms.programs import embed
from perspex.transforms.sequence import sequenced_jaxpr

ArrayImpl = xla.ArrayImpl

# Constants up to this many elements are written into the program, where XLA can fold them; larger
# ones are arguments, so that they are neither printed, hashed nor compiled.
_EMBEDDED_SIZE = 64
_lowerings = itertools.count(1)


def _attribute(sharding: NamedSharding, aval: ShapedArray) -> Any:
    return types.attribute(f"#sdy.sharding{sharding.in_program(aval.physical().ndim)}")


def _same_type(one: ShapedArray, other: ShapedArray) -> bool:
    return one.strip_weak_type() is other.strip_weak_type()


def _same_size(one: ShapedArray, other: ShapedArray) -> bool:
    if one.is_extended or other.is_extended or other.is_float0:
        return False
    return one.size == other.size


def _explicit_mesh(jaxpr: Jaxpr) -> AbstractMesh | None:
    """The mesh that types refer to in a program for a mesh with automatic axes, if any do."""
    for eqn in jaxpr.eqns:
        for v in eqn.outvars:
            if v.aval.cut is not None:
                mesh: AbstractMesh = v.aval.cut.mesh
                return mesh
    return None


class Origin(NamedTuple):
    """The function and the program behind an executable, held weakly.

    The event `compile` has it, so that a listener can look at the program later. The function is
    the `Compiled` of a jitted one, or `None` where an operation was called by itself.
    """

    owner: Callable[[], Any]
    closed: Callable[[], ClosedJaxpr | None]


class Lowered:
    """A program as StableHLO, with what is needed to compile and to call it.

    With `numbers` of its equations, by the variables that these bind, it is for looking at: the
    locations in the module say which equation an operation comes from. So is one for other
    `platforms` than that of its device. One that is `watched` can be stopped, if it has a loop that
    is worth it: it is for running, and not for looking at.
    """

    def __init__(
        self,
        closed: ClosedJaxpr,
        name: str,
        place: Place,
        *,
        committed: bool = False,
        donated: Sequence[bool] = (),
        keep_unused: bool = False,
        is_ours: bool = False,
        at: source.Source | None = None,
        origin: Any = None,
        numbers: Mapping[Any, int] | None = None,
        platforms: Sequence[str] = (),
        watched: bool = False,
        program_name: str = "",
    ) -> None:
        start = time.perf_counter()
        self.number = next(_lowerings)
        self.closed = closed
        self.keep_unused = keep_unused
        # No user has written it: its equations were traced wherever it was called first.
        self.is_ours = is_ours
        # What it is called in messages, and in its module.
        self.name, self.program_name = name, program_name or name
        self.place = place
        self.committed = committed
        self.in_avals = closed.in_avals
        self.in_shardings = [
            sharding if (kind := in_types(aval)) is None else sharding.with_memory_kind(kind)
            for sharding, aval in zip(
                arguments(place, len(closed.in_avals)), closed.in_avals, strict=True
            )
        ]
        self.out_avals = closed.out_avals
        self.signature = signature(self.in_avals)
        self.at = at
        self.origin = origin
        jaxpr, self.kept = self._prune(closed.jaxpr, keep_unused)
        self.donated = list(donated) or [False] * len(self.kept)
        self.has_effects = happens(jaxpr.effects)
        # With ordered effects a token comes after the constants, and as the first result.
        self.is_ordered = has_order(jaxpr.effects)
        if self.is_ordered:
            jaxpr = sequenced_jaxpr(jaxpr)
        jaxpr, self.consts = self._place_constants(jaxpr, closed.consts)
        here = platform_of(place)
        self.is_watched = (
            watched
            and here == "cpu"
            and place.__class__ is not Spread
            and not is_abstract(place)
            and has_long_loop(jaxpr)
        )
        self.states = stopping.states(jaxpr)[self.is_ordered :] if self.is_watched else []
        hidden = self.is_watched + len(self.consts) + self.is_ordered
        given: list[dict[str, Any]] = [{} for _ in range(hidden)] + self._alias(jaxpr)
        results: list[dict[str, Any]] = [{} for _ in jaxpr.outvars]
        mesh, explicit = "", None
        self.said: list[NamedSharding | None] = [None] * len(results)
        self.memories = results_in_memory(jaxpr)
        if place.__class__ is Spread:
            results, mesh = self._spread(jaxpr, given), place.mesh.in_program
            found = place.mesh.abstract_mesh
            explicit = found if found.explicit_axes else _explicit_mesh(jaxpr)
        for i, kind in enumerate(self.memories):
            if kind is not None:
                results[i]["mhlo.memory_kind"] = types.string(kind)
        for var, attributes in zip(reversed(jaxpr.invars), reversed(given), strict=False):
            if (kind := in_types(var.aval)) is not None:
                attributes["mhlo.memory_kind"] = types.string(kind)
        self.is_foreign = tuple(platforms) not in ((), (here,))
        target = platforms[0] if platforms else here
        made = WatchedModule if self.is_watched else Module
        self.module = made(f"jit_{self.program_name}", target, numbers, mesh, explicit)
        self.module.place = place
        with events.Phase("lower", name):
            self.module.main(jaxpr, given, results, platforms)
        if events.listeners:
            events.publish(
                "lower",
                name,
                start,
                self.signature,
                at,
                eqns=count_eqns(closed.jaxpr),
                program=weakref.ref(closed),
                lowering=self.number,
            )

    def _prune(self, jaxpr: Jaxpr, keep_unused: bool) -> tuple[Jaxpr, list[bool]]:
        # Bodies too: in the derivative of one, dead code may be what cannot be lowered.
        smaller, needed = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
        smaller = smaller.replace(constvars=jaxpr.constvars)
        if keep_unused:
            return smaller.replace(invars=jaxpr.invars), [True] * len(needed)
        return smaller, needed

    def _place_constants(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """Large constants become the first arguments, small ones stay in the program."""
        live = {v for eqn in jaxpr.eqns for v in eqn.invars if v.__class__ is not Literal}
        live.update([v for v in jaxpr.outvars if v.__class__ is not Literal])
        hoisted, values, embedded = [], [], []
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            if var not in live:
                continue
            if isinstance(value, np.ndarray) and value.size <= _EMBEDDED_SIZE:
                embedded.append((var, value))
            else:
                hoisted.append(var)
                where = whole(self.place)
                values.append(value if is_abstract(self.place) else placed(value, where))
        jaxpr = jaxpr.replace(constvars=(), invars=[*hoisted, *jaxpr.invars])
        return embed(jaxpr, embedded), values

    def _alias(self, jaxpr: Jaxpr) -> list[dict[str, Any]]:
        """Give each donated argument to a result that fits; one that fits no result is not donated.

        Of the results, one of the same type comes first, then one with as many elements. XLA
        decides whether such a buffer is used: it is not where an element has another size.
        """
        kept = [i for i, keep in enumerate(self.kept) if keep]
        if not any(self.donated):
            return [{} for _ in kept]
        hidden = len(self.consts) + self.is_ordered
        avals = {
            i: v.aval for i, v in zip(kept, jaxpr.invars[hidden:], strict=True) if self.donated[i]
        }
        free = {i: v.aval for i, v in enumerate(jaxpr.outvars) if i or not self.is_ordered}
        given: dict[int, int] = {}
        for same in (_same_type, _same_size):
            for i, aval in avals.items():
                fits = [place for place, result in free.items() if same(aval, result)]
                if i not in given and fits:
                    given[i] = fits[0]
                    del free[fits[0]]
        unusable = [str(aval.strip_weak_type()) for i, aval in avals.items() if i not in given]
        if unusable:
            warnings.warn(
                f"Some donated buffers were not usable: {', '.join(unusable)}.\n`{self.name}` has "
                "no result of their shapes and dtypes left. They stay as they are; donate the "
                "arguments that a result can replace.",
                stacklevel=source.stacklevel(),
            )
        self.donated = [i in given for i in range(len(self.kept))]
        # How results will lie on several devices is not known yet.
        is_known = self.place.__class__ is not Spread
        return [
            {}
            if i not in given
            else {"tf.aliasing_output": types.integer(given[i], 32)}
            if is_known and _same_type(avals[i], jaxpr.outvars[given[i]].aval)
            else {"jax.buffer_donor": types.boolean(True)}
            for i in kept
        ]

    def _spread(self, jaxpr: Jaxpr, given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Write into the attributes of the arguments how they lie; returns those of the results.

        A result says so if the program constrains it.
        """
        kept = [s for s, keep in zip(self.in_shardings, self.kept, strict=True) if keep]
        everywhere = whole(self.place)
        known = [everywhere] * (len(given) - len(kept)) + kept
        for var, sharding, attributes in zip(jaxpr.invars, known, given, strict=True):
            attributes["sdy.sharding"] = _attribute(sharding, var.aval)
        said: dict[Any, NamedSharding] = {
            var: sharding
            for eqn in jaxpr.eqns
            if isinstance(eqn.primitive, OnMesh)
            for var, sharding in zip(eqn.outvars, eqn.primitive.lies(eqn.params), strict=True)
            if sharding is not None
        }
        if self.is_ordered:
            said[jaxpr.outvars[0]] = everywhere  # the token
        found = [
            said.get(v, by_type(self.place.mesh, v.aval)) if isinstance(v, Var) else None
            for v in jaxpr.outvars
        ]
        # One that says everything is that of the result, by its name: XLA has no names.
        self.said = [None if s is None or s.is_open else s for s in found]
        return [
            {} if sharding is None else {"sdy.sharding": _attribute(sharding, v.aval)}
            for v, sharding in zip(jaxpr.outvars, found, strict=True)
        ]

    @property
    def device(self) -> Any:
        """The first of the devices that it is for; `ValueError` if there are none."""
        return devices_of(self.place)[0]

    @property
    def client(self) -> Any:
        """XLA's client for its devices, that of the default device if there are none."""
        return (platform.default_device() if is_abstract(self.place) else self.device).client

    def as_text(self, debug_info: bool = False) -> str:
        return self.module.text(debug_info)

    def to_run(self) -> Lowered:
        """The same program, so that it can be stopped where that is wanted."""
        if not stopping.are_wanted() or self.is_watched or self.is_foreign:
            return self
        made = _again(self, is_ours=self.is_ours, at=self.at, origin=self.origin, watched=True)
        return made if made.is_watched else self


def _again(of: Lowered | Shown, **options: Any) -> Lowered:
    """The program lowered once more, with other options than those that belong to it."""
    return Lowered(
        of.closed,
        of.name,
        of.place,
        committed=of.committed,
        donated=of.donated,
        keep_unused=of.keep_unused,
        program_name=of.program_name,
        **options,
    )


class Shown:
    """What a compiled program tells of the one that it was lowered from."""

    def __init__(self, lowered: Lowered) -> None:
        self.name, self.closed, self.place = lowered.name, lowered.closed, lowered.place
        self.program_name = lowered.program_name
        self.is_ours = lowered.is_ours
        self.in_avals, self.out_avals = lowered.in_avals, lowered.out_avals
        self.in_shardings = lowered.in_shardings
        self.committed, self.donated = lowered.committed, lowered.donated
        self.keep_unused = lowered.keep_unused

    @property
    def shown(self) -> Any:
        """XLA's executable of the program as the user wrote it, to look at."""
        raise NotImplementedError

    def lowered_again(
        self, numbers: Mapping[Any, int] | None = None, watched: bool = False
    ) -> Lowered:
        """The module that it was compiled from, with `numbers` of equations in its locations.

        Without the page that ends its loops, unless it is asked for.
        """
        return _again(self, numbers=numbers, watched=watched)

    def as_text(self) -> str:
        """The optimized HLO, with the names and lines of this program."""
        texts = [module.to_string() for module in self.shown.hlo_modules()]
        with events.unheard():
            own = self.lowered_again().module.module
        return "\n\n".join([located(text, own) for text in texts])

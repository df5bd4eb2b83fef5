"""A jaxpr compiled for a device: lowering, compiling, running, and what the fast path needs."""

from __future__ import annotations

import itertools
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perspex import config
from perspex.base import events, source, xla
from perspex.base.effects import happens, has_order
from perspex.base.pytree_registry import call_registry
from perspex.base.xla import FAST_PATH_NOTICES_DONATION, FastPath, result_handler
from perspex.errors import JaxRuntimeError
from perspex.hlo import Module, types
from perspex.hlo.apart import own_module
from perspex.hlo.located import located
from perspex.hlo.numbering import numbered_bytecode
from perspex.hlo.unlocated import unlocated_bytecode
from perspex.hlo.watched import WatchedModule
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, count_eqns
from perspex.ops.placing import OnMesh, results_in_memory
from perspex.runtime import client as platform
from perspex.runtime import fork, interruptible, invalid, key_reuse, measuring, memory, stopping
from perspex.runtime.callbacks import Engine, Engines, execute
from perspex.runtime.compiler import cache, compiling, disk, pressure
from perspex.runtime.compiler.compiling import Compiled
from perspex.runtime.compiler.kept import Entry
from perspex.runtime.placed import logical, placed
from perspex.runtime.placement import (
    Place,
    Spread,
    arguments,
    by_type,
    devices_of,
    is_abstract,
    platform_of,
    results_of,
    whole,
)
from perspex.runtime.processes import joining
from perspex.runtime.processes.agreement import Program, program
from perspex.runtime.transfer import signature
from perspex.sharding import NamedSharding
from perspex.transforms.dce import dce_jaxpr
from perspex.transforms.higher_order import has_long_loop
from perspex.transforms.programs import embed
from perspex.transforms.sequence import TOKEN, sequenced_jaxpr

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
    return one.size == other.size and one.dtype.itemsize == other.dtype.itemsize


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
    ) -> None:
        start = time.perf_counter()
        self.number = next(_lowerings)
        self.closed = closed
        self.keep_unused = keep_unused
        # No user has written it: its equations were traced wherever it was called first.
        self.is_ours = is_ours
        self.name = name
        self.place = place
        self.committed = committed
        self.in_avals = closed.in_avals
        self.in_shardings = arguments(place, len(self.in_avals))
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
            explicit = place.mesh.abstract_mesh if place.mesh.explicit_axes else None
        for i, kind in enumerate(self.memories):
            if kind is not None:
                results[i]["mhlo.memory_kind"] = types.string(kind)
        self.is_foreign = tuple(platforms) not in ((), (here,))
        target = platforms[0] if platforms else here
        made = WatchedModule if self.is_watched else Module
        self.module = made(f"jit_{name}", target, numbers, mesh, explicit)
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

        Of the results, one of the same type comes first, then one with as many elements of that
        size.
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
        made = Lowered(
            self.closed,
            self.name,
            self.place,
            committed=self.committed,
            donated=self.donated,
            keep_unused=self.keep_unused,
            is_ours=self.is_ours,
            at=self.at,
            origin=self.origin,
            watched=True,
        )
        return made if made.is_watched else self

    def compile(self, compiler_options: Sequence[tuple[str, Any]] = ()) -> Executable:
        """The executable for the device of this lowering.

        `compiler_options` are names and values of XLA's debug options; they go before those of
        the flag.
        """
        if fork.is_child:
            raise fork.refused(f"the compilation of `{self.name}`")
        if self.is_foreign:
            raise ValueError(
                f"`{self.name}` was lowered for other platforms than that of its device, "
                f"{self.device}, which cannot compile it; `as_text()` shows it, and export.export "
                "writes it to a file that runs there"
            )
        start = time.perf_counter()
        compiler_options = (*config.compiler_options.value, *compiler_options)
        options = cache.options_for(self.place, compiler_options)
        with events.Phase("compile", self.name) as phase:
            key = b""  # a program that calls Python functions is not looked for
            if not (self.module.callbacks or self.module.asked):
                key = cache.key(self.module.module, self.place, compiler_options)
            found, where = cache.remembered(key), cache.MEMORY
            if found is None:
                pressure.relieve()
                wanted = cache.Wanted(key, self.place, options, self.name, self.signature)
                stop = interruptible.Stop(phase)
                work, policy = self._compiler(options, stop), disk.policy()
                found, where = interruptible.call(lambda: cache.obtain(wanted, work, policy), stop)
        events.publish(
            "compile",
            self.name,
            start,
            self.signature,
            self.at,
            lowering=self.number,
            device=str(self.place),
            source=where,
            apart=where is cache.XLA and found.apart,
            bytes=found.size,
            compiled_in=found.seconds,
            key=key.hex(),
            origin=self.origin,
        )
        disk.tell()
        return Executable(self, found, compiler_options)

    def _compiler(self, options: Any, stop: interruptible.Stop) -> Callable[[], Compiled]:
        """What makes XLA compile this program, from any thread."""
        client, devices = self.device.client, list(devices_of(self.place))
        # Bytes and not the module: compiling lets other threads run, and MLIR's context, which all
        # modules share, is not made for that.
        code, calls = numbered_bytecode(self.module.module), self.module.callbacks

        is_asked = bool(self.module.asked)
        is_apart = not (calls or is_asked) and compiling.is_for(client, code)

        def work() -> Compiled:
            if is_apart:
                return compiling.apart(client, devices, code, options, self.name, stop)
            stop.enter()
            if not calls:
                return compiling.here(client, devices, code, options)
            with own_module(code) as module:
                return Compiled(
                    client.compile_and_load(module, xla.DeviceList(tuple(devices)), options, calls)
                )

        return work


class Executable:
    """A compiled program. Call it with flat arguments, all of them, on any device."""

    def __init__(
        self,
        lowered: Lowered,
        entry: Entry,
        compiler_options: Sequence[tuple[str, Any]] = (),
    ) -> None:
        self.name = lowered.name
        self.closed = lowered.closed
        self.keep_unused = lowered.keep_unused
        self.is_ours = lowered.is_ours
        # What keeps the program in the cache, which finds it for others as long as it is used.
        self.entry = entry
        self.xla = xla = entry.xla
        self.place = lowered.place
        self.device = lowered.device
        self.in_shardings = lowered.in_shardings
        self.committed = lowered.committed
        self.in_avals = lowered.in_avals
        self.out_avals = lowered.out_avals
        self.kept = lowered.kept
        self.consts = lowered.consts
        self.donated = lowered.donated
        # Each run is waited for where processes exchange numbers.
        self.is_awaited = self.place.__class__ is Spread and joining.connection is not None
        # What the processes whose devices run it compare before the first run.
        self.shared: Program | None = None
        if self.is_awaited and self.place.mesh.is_multi_process:
            code = unlocated_bytecode(lowered.module.module)
            self.shared = program(self.name, lowered.signature, self.place.mesh, code)
        self.engines: Engines | None = None
        if lowered.module.callbacks:
            self.engines = Engines(Engine(xla, lowered.module.callbacks), self._another_engine)
        self.compiler_options = compiler_options
        self.has_effects = lowered.has_effects
        self.is_plain = all(aval.physical() is aval for aval in self.out_avals)
        self.is_watched, self.states = lowered.is_watched, lowered.states
        # How many arguments are in front of those of the program.
        self.hidden = self.is_watched + len(self.consts)
        self.token_place = self.hidden if lowered.is_ordered else None
        self.out_tree: Any = None  # of the results, once a caller has said it
        self._shown: Executable | None = None
        results = [*[TOKEN] * lowered.is_ordered, *self.out_avals]
        if self.is_watched:
            shardings = stopping.own_shardings(self, len(results), lowered.is_ordered)
        else:
            shardings = results_of(xla, self.place, [aval.ndim for aval in results], lowered.said)
        shardings = [
            sharding if kind is None else sharding.with_memory_kind(kind)
            for sharding, kind in zip(shardings, lowered.memories, strict=True)
        ]
        self.handlers = [
            result_handler(aval.physical(), sharding, self.committed)
            for aval, sharding in zip(results, shardings, strict=True)
        ]
        self.out_shardings = shardings[lowered.is_ordered :]
        self.needs = self._needed() if self.device.platform == "cpu" else 0
        # The arguments that are keys with which it draws, and how often that is still told.
        self.draws = () if self.is_ours else key_reuse.drawn_with(self.closed)
        self.told = key_reuse.MOST_TOLD

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        if fork.is_child:
            raise fork.refused(f"the program `{self.name}`")
        if config.no_execution.value:
            raise RuntimeError(
                f"the program `{self.name}` would run, but the flag 'no_execution' is set"
            )
        if config.debug_key_reuse.value:
            return key_reuse.checked(self.name, self.closed, args, self._run)
        if self.is_told:
            self.told -= 1
            key_reuse.tell(self.name, [args[i] for i in self.draws])
        if measuring.is_on():
            return measuring.measured(self, self._run, args)
        return self._run(args)

    @property
    def is_told(self) -> bool:
        """Whether a run says with which keys it draws, as the first ones do while somebody asks."""
        return bool(self.draws and self.told and key_reuse.watcher is not None)

    def _needed(self) -> int:
        """The bytes that a run takes beyond its arguments, if they are many, else 0."""
        stats = self.xla.get_compiled_memory_stats()
        made = stats.output_size_in_bytes - stats.alias_size_in_bytes
        needed = (made + stats.temp_size_in_bytes) * len(devices_of(self.place))
        return needed if needed >= memory.LARGE else 0

    def _check_given_once(self, buffers: Sequence[Any]) -> None:
        """Raise for a donated argument that is there twice: XLA before 0.11 ends the process."""
        donated = [d for d, keep in zip(self.donated, self.kept, strict=True) if keep]
        for i, (x, is_donated) in enumerate(zip(buffers, donated, strict=True)):
            if is_donated and sum(x is other for other in buffers) > 1:
                raise JaxRuntimeError(
                    f"`{self.name}` was given an array of type {x.aval.str_short()} twice, and "
                    f"argument {i} of the program is donated; pass a copy, or donate neither"
                )

    def _run(self, args: Sequence[Any]) -> list[Any]:
        if self.needs:
            memory.check_room(self.name, self.needs)
        buffers = self._in_front()
        try:
            buffers += [
                placed(x, sharding)
                for x, sharding, keep in zip(args, self.in_shardings, self.kept, strict=True)
                if keep
            ]
            if self.shared is not None:
                joining.agreed(self.shared, self.lowered_again)
            if self.place.__class__ is Spread and any(self.donated):
                self._check_given_once(buffers[self.hidden :])
            if self.engines is not None:
                outs = execute(
                    self.engines,
                    buffers,
                    self.handlers,
                    whole(self.place),
                    self.token_place,
                    self.has_effects,
                )
            elif self.is_awaited:
                outs = joining.run(
                    self.name, self.place.mesh.processes, lambda: self._launch(buffers)
                )
            else:
                outs = self._launch(buffers)
        except JaxRuntimeError as error:
            memory.explain(error)
            raise
        if invalid.is_checking():
            invalid.check(self.name, outs)
        if any(self.donated):
            for x, donated in zip(args, self.donated, strict=True):
                if donated and hasattr(x, "delete"):
                    x.delete()
        if not self.is_plain:
            outs = [logical(aval, out) for aval, out in zip(self.out_avals, outs, strict=True)]
        return outs

    def _in_front(self) -> list[Any]:
        """The arguments in front of those of the program."""
        return [stopping.page(self.device), *self.consts] if self.is_watched else [*self.consts]

    def _launch(self, buffers: list[Any]) -> list[Any]:
        if self.is_watched:
            return stopping.launched(self.xla, buffers, self.handlers)
        outs: list[Any] = self.xla.execute_sharded(buffers).consume_with_handlers(self.handlers)
        return outs

    def _another_engine(self) -> Engine:
        """The same program, compiled once more, with callbacks that are not in use."""
        with events.unheard():
            made = self.lowered_again(watched=self.is_watched).compile(self.compiler_options)
        assert made.engines is not None
        return made.engines.first

    def lowered_again(
        self, numbers: Mapping[Any, int] | None = None, watched: bool = False
    ) -> Lowered:
        """The module that it was compiled from, with `numbers` of equations in its locations.

        Without the page that ends its loops, unless it is asked for.
        """
        return Lowered(
            self.closed,
            self.name,
            self.place,
            committed=self.committed,
            donated=self.donated,
            keep_unused=self.keep_unused,
            numbers=numbers,
            watched=watched,
        )

    @property
    def shown(self) -> Any:
        """XLA's executable of the program as the user wrote it, to look at: without a page."""
        if not self.is_watched:
            return self.xla
        if self._shown is None:
            with events.unheard():
                self._shown = self.lowered_again().compile(self.compiler_options)
        return self._shown.xla

    def as_text(self) -> str:
        """The optimized HLO, with the names and lines of this program."""
        texts = [module.to_string() for module in self.shown.hlo_modules()]
        with events.unheard():
            own = self.lowered_again().module.module
        return "\n\n".join([located(text, own) for text in texts])

    def fast_path(self, out_tree: Any, result: Any) -> FastPath | None:
        """The record that lets C++ repeat this call; `None` if it has to come back to Python.

        `result` is what the call returned, a tree of the structure `out_tree`.
        """
        if any(self.donated) and not FAST_PATH_NOTICES_DONATION:
            return None
        if invalid.is_checking() or measuring.is_on() or config.debug_key_reuse.value:
            return None
        if self.engines is not None:
            return None  # each run has its own token and context
        if self.is_told:
            return None
        if stopping.drop():
            return None  # each run looks at whether its arguments have been given up
        if self.needs:
            return None  # each run looks at what memory is left
        if self.is_awaited:
            return None  # `processes.joining.run`
        if any(aval.is_float0 for aval in self.out_avals):
            return None  # C++ would give the booleans that stand for them
        if not self.is_plain:
            # The program returns the numbers of typed keys, and C++ makes keys of them. It cannot
            # for those in a container of a class that only the default registry knows.
            numbers, out_tree = call_registry.flatten(result)
            if any(x.__class__ is not ArrayImpl for x in numbers):
                return None
        if self.is_watched:
            self.out_tree = out_tree
        taken = [whole(self.place)] * self.hidden
        taken += [s for s, keep in zip(self.in_shardings, self.kept, strict=True) if keep]
        return FastPath(
            xla_executable=self.xla,
            out_pytree_def=out_tree,
            in_shardings=taken,
            out_shardings=self.out_shardings,
            out_avals=[aval.physical() for aval in self.out_avals],
            out_committed=[self.committed] * len(self.out_avals),
            # The constants go before the arguments, and are counted here.
            kept_var_bitvec=[True] * self.hidden + self.kept,
            in_device_local_layouts=[None] * len(taken),
            const_args=self._in_front(),
        )

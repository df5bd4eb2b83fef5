"""A program compiled for a device: compiling, running, and what the fast path needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from perspex import config
from perspex.base import events, xla
from perspex.base.pytree_registry import call_registry
from perspex.base.xla import FAST_PATH_NOTICES_DONATION, FastPath, result_handler
from perspex.errors import JaxRuntimeError
from perspex.hlo.numbering import numbered_bytecode
from perspex.hlo.unlocated import unlocated_bytecode
from perspex.runtime import (
    fork,
    interruptible,
    invalid,
    key_reuse,
    measuring,
    memory,
    stopping,
    watching,
)
from perspex.runtime.callbacks import Engine, Engines, execute
from perspex.runtime.compiler import cache, compiling, disk, pressure
from perspex.runtime.compiler.compiling import Compiled
from perspex.runtime.compiler.kept import Entry
from perspex.runtime.lowered import Lowered, Shown
from perspex.runtime.placed import logical, placed
from perspex.runtime.placement import Spread, devices_of, results_of, whole
from perspex.runtime.processes import joining
from perspex.runtime.processes.agreement import Program, program
from perspex.transforms.sequence import TOKEN

ArrayImpl = xla.ArrayImpl

# A number of kernels that no graph has.
_NO_GRAPH = 2**30


class Executable(Shown):
    """A compiled program. Call it with flat arguments, all of them, on any device."""

    def __init__(
        self, lowered: Lowered, entry: Entry, compiler_options: Sequence[tuple[str, Any]] = ()
    ) -> None:
        super().__init__(lowered)
        # What keeps the program in the cache, which finds it for others as long as it is used.
        self.entry = entry
        self.xla = xla = entry.xla
        self.device = lowered.device
        self.kept, self.consts = lowered.kept, lowered.consts
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
        # The same program, compiled to be looked at, and to be measured.
        self._shown: Executable | None = None
        self._measurable: Executable | None = None
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
        self.needs = self._needed()
        # The keys with which it draws, arguments by their places, and constants; and how many of
        # the next runs tell the watcher.
        self.draws = () if self.is_ours else key_reuse.drawn_with(self.closed)
        self.captured = [] if self.is_ours else key_reuse.captured_by(self.closed)
        self.told = key_reuse.MOST_TOLD

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        if fork.is_child:
            raise fork.refused(f"the program `{self.name}`")
        if config.no_execution.value:
            raise RuntimeError(
                f"the program `{self.name}` would run, but the flag 'no_execution' is set"
            )
        if config.debug_key_reuse.value:
            return key_reuse.checked(self.name, self.closed, args, self.run)
        if self.is_told:
            self.told -= 1
            key_reuse.tell(self.name, [*[args[i] for i in self.draws], *self.captured])
        if measuring.is_on():
            return measuring.measured(self, lambda: self.measurable.run, args)
        if config.profiling.value:
            outs = watching.run(self, args)
            if outs is not None:
                return outs
        return self.run(args)

    @property
    def is_watched_for_keys(self) -> bool:
        """Whether somebody wants to know with which keys it draws, if it does."""
        return bool((self.draws or self.captured) and key_reuse.watcher is not None)

    @property
    def is_told(self) -> bool:
        """Whether a run says so, as the first ones do."""
        return bool(self.told and self.is_watched_for_keys)

    def _needed(self) -> int:
        """The bytes that a run takes beyond its arguments, if they are many, else 0.

        Devices of the CPU share the memory of the machine; others have their own.
        """
        least = memory.large_on(self.device)
        if least is None or self.entry.takes is None:
            return 0
        shared = len(devices_of(self.place)) if self.device.platform == "cpu" else 1
        needed = self.entry.takes * shared
        return needed if needed >= least else 0

    def _check_given_once(self, buffers: Sequence[Any]) -> None:
        """Raise for a donated argument that is there twice: XLA before 0.11 ends the process."""
        donated = [d for d, keep in zip(self.donated, self.kept, strict=True) if keep]
        for i, (x, is_donated) in enumerate(zip(buffers, donated, strict=True)):
            if is_donated and sum(x is other for other in buffers) > 1:
                raise JaxRuntimeError(
                    f"`{self.name}` was given an array of type {x.aval.str_short()} twice, and "
                    f"argument {i} of the program is donated; pass a copy, or donate neither"
                )

    def run(self, args: Sequence[Any]) -> list[Any]:
        """The results, whatever the flags say."""
        if self.needs:
            if self.device.platform == "cpu":
                memory.check_room(self.name, self.needs)
            else:
                memory.check_device(self.name, self.needs, self.device)
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
        return self.typed(outs)

    def typed(self, outs: list[Any]) -> list[Any]:
        """The results of XLA's program as those of the program: typed keys for their numbers."""
        if self.is_plain:
            return outs
        return [logical(aval, out) for aval, out in zip(self.out_avals, outs, strict=True)]

    def _in_front(self) -> list[Any]:
        """The arguments in front of those of the program."""
        if not self.is_watched:
            return [*self.consts]
        stopping.keep(self)
        return [stopping.page(self.device), *self.consts]

    def _launch(self, buffers: list[Any]) -> list[Any]:
        kept = watching.kept()
        if self.is_watched or kept is not None:
            return stopping.launched(self.xla, buffers, self.handlers, kept)
        outs: list[Any] = self.xla.execute_sharded(buffers).consume_with_handlers(self.handlers)
        return outs

    def _another_engine(self) -> Engine:
        """The same program, compiled once more, with callbacks that are not in use."""
        with events.unheard():
            made = compile_lowered(
                self.lowered_again(watched=self.is_watched), self.compiler_options
            )
        assert made.engines is not None
        return made.engines.first

    @property
    def measurable(self) -> Executable:
        """The program as a profile runs it: kernel by kernel.

        On GPUs, XLA combines kernels into graphs, and a profiler cannot tell the parts of a graph
        apart.
        """
        if not xla.is_gpu(self.device.client):
            return self
        if self._measurable is None:
            options = (*self.compiler_options, ("xla_gpu_graph_min_graph_size", _NO_GRAPH))
            with events.unheard():
                again = self.lowered_again(watched=self.is_watched)
                self._measurable = compile_lowered(again, options)
        return self._measurable

    @property
    def shown(self) -> Any:
        """XLA's executable of the program as the user wrote it, to look at: without a page."""
        if not self.is_watched:
            return self.xla
        if self._shown is None:
            with events.unheard():
                self._shown = compile_lowered(self.lowered_again(), self.compiler_options)
        return self._shown.xla

    def fast_path(self, out_tree: Any, result: Any) -> FastPath | None:
        """The record that lets C++ repeat this call; `None` if it has to come back to Python.

        `result` is what the call returned, a tree of the structure `out_tree`.
        """
        if any(self.donated) and not FAST_PATH_NOTICES_DONATION:
            return None
        if invalid.is_checking() or config.profiling.value or config.debug_key_reuse.value:
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


def compile_lowered(
    lowered: Lowered, compiler_options: Sequence[tuple[str, Any]] = ()
) -> Executable:
    """The executable for the device of a lowering.

    `compiler_options` are names and values of XLA's debug options; they go before those of
    the flag.
    """
    if fork.is_child:
        raise fork.refused(f"the compilation of `{lowered.name}`")
    if lowered.is_foreign:
        raise ValueError(
            f"`{lowered.name}` was lowered for other platforms than that of its device, "
            f"{lowered.device}, which cannot compile it; `as_text()` shows it, and export.export "
            "writes it to a file that runs there"
        )
    start = time.perf_counter()
    compiler_options = (*config.compiler_options.value, *compiler_options)
    options = cache.options_for(lowered.place, compiler_options)
    with events.Phase("compile", lowered.name) as phase:
        key = b""  # a program that calls Python functions is not looked for
        if not (lowered.module.callbacks or lowered.module.asked):
            key = cache.key(lowered.module.module, lowered.place, compiler_options)
        found, where = cache.remembered(key), cache.MEMORY
        if found is None:
            pressure.relieve()
            wanted = cache.Wanted(key, lowered.place, options, lowered.name, lowered.signature)
            stop = interruptible.Stop(phase)
            work, policy = _compiler(lowered, options, stop), disk.policy()
            disk.keep_tuning(policy, devices_of(lowered.place)[0].client, options)
            found, where = interruptible.call(lambda: cache.obtain(wanted, work, policy), stop)
    events.publish(
        "compile",
        lowered.name,
        start,
        lowered.signature,
        lowered.at,
        lowering=lowered.number,
        device=str(lowered.place),
        source=where,
        apart=where is cache.XLA and found.apart,
        bytes=found.size,
        compiled_in=found.seconds,
        key=key.hex(),
        origin=lowered.origin,
    )
    disk.tell()
    return Executable(lowered, found, compiler_options)


def _compiler(lowered: Lowered, options: Any, stop: interruptible.Stop) -> Callable[[], Compiled]:
    """What makes XLA compile this program, from any thread."""
    client, devices = lowered.device.client, list(devices_of(lowered.place))
    module, calls = lowered.module.module, lowered.module.callbacks
    may_be_apart = config.compiler_process.value is True and not (calls or lowered.module.asked)

    def work() -> Compiled:
        # Bytes and not the module: compiling lets other threads run, and MLIR's context, which all
        # modules share, is not made for that.
        code = numbered_bytecode(module)
        if may_be_apart and compiling.is_for(client, code):
            return compiling.apart(client, devices, code, options, lowered.name, stop)
        stop.enter()
        return compiling.here(client, devices, code, options, calls)

    return work

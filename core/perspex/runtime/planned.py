"""Programs that XLA compiles for a mesh without devices: they can be looked at, and not run.

XLA compiles for devices of a client. So a client of as many processors as the mesh has devices is
made, which computes nothing, and it goes when the program is compiled: a thousand processors have a
thousand threads. What is worth knowing of the program stays: its text, cost and memory.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any, Never

from perspex.base import events, xla
from perspex.hlo.numbering import numbered_bytecode
from perspex.runtime import interruptible
from perspex.runtime.compiler import cache
from perspex.runtime.lowered import Lowered, Shown
from perspex.runtime.placement import results_of


class _Told:
    """What XLA says of an executable, in the words of jaxlib's."""

    def __init__(self, made: Any) -> None:
        self._cost, self._memory = made.cost_analysis(), made.get_compiled_memory_stats()
        self._modules = made.hlo_modules()

    def cost_analysis(self) -> Any:
        return self._cost

    def get_compiled_memory_stats(self) -> Any:
        return self._memory

    def hlo_modules(self) -> Any:
        return self._modules


class Planned(Shown):
    """A compiled program without devices, with the part of an executable that needs none."""

    is_watched = False

    def __init__(self, lowered: Lowered, made: Any) -> None:
        super().__init__(lowered)
        results = [aval.ndim for aval in lowered.out_avals]
        tokens = [0] * lowered.is_ordered
        shardings = results_of(made, self.place, [*tokens, *results], lowered.said)
        self.out_shardings = shardings[lowered.is_ordered :]
        self.xla = _Told(made)

    @property
    def shown(self) -> _Told:
        """What XLA said of it."""
        return self.xla

    @property
    def measurable(self) -> Planned:
        """What a profile would run, if it could."""
        return self

    def __call__(self, args: Sequence[Any]) -> Never:
        raise ValueError(
            f"`{self.name}` was compiled for {self.place.mesh}, which has no devices to run it. "
            "Pass arrays over a Mesh of devices"
        )


def planned(lowered: Lowered, compiler_options: Sequence[tuple[str, Any]]) -> Planned:
    """Compile a lowered program for the mesh without devices that it was lowered for."""
    platform, name = lowered.module.platform, lowered.name
    if platform != "cpu" or lowered.module.callbacks or lowered.module.asked:
        why = (
            f"XLA compiles for {platform} only where such devices are"
            if platform != "cpu"
            else "it calls Python functions"
        )
        raise ValueError(
            f"`{name}` was lowered for {lowered.place.mesh}, which has no devices, and cannot be "
            f"compiled: {why}. Pass shardings over a Mesh of devices, or look at `as_text()`"
        )
    options = cache.options_for(lowered.place, compiler_options)
    code = numbered_bytecode(lowered.module.module)

    def work() -> Any:
        client = xla.make_cpu_client(num_devices=lowered.place.mesh.size)
        return client.compile_and_load(code, client.devices(), options)

    with events.Phase("compile", name) as phase:
        made = Planned(lowered, interruptible.call(work, interruptible.Stop(phase)))
    # The client and its threads go now, and not when Python looks for garbage next.
    gc.collect()
    return made

"""What devices send each other in a second, and which part of a program's time that may take.

A prediction: the bytes that a device sends (`Compiled.communication`) over the bytes that it can
send in a second, beside the operations of its part of the program over those that it can do. Both
rates are measured, by a sum and a product on all devices of this process at once, or they are those
of the flags `link_bandwidth` and `device_flops`, for devices that are not there. Nothing overlaps
in the prediction, and of the work only arithmetic counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import perspex
from perspex import config, lax
from perspex.api.stages import Traced
from perspex.base import events
from perspex.runtime.measuring import Exchange
from perspex.sharding import Mesh, NamedSharding, PartitionSpec
from perspex.transforms.higher_order import program_work
from perspex_magics.timing.roofline import fastest

_NUMBERS = 1 << 19  # of the array of a device: 2 MiB
_ROWS = 256  # of the matrix of a device
# Seconds to spend on each rate, and runs at the least.


@dataclass(frozen=True)
class Rates:
    """The bytes that a device can send in a second, and the operations that it can do."""

    bandwidth: float
    flops: float

    def shares(self, sent: Sequence[float], flops: float) -> list[float]:
        """The part of the time of a run that each exchange takes.

        Args:
          sent: the bytes that a device sends in each exchange.
          flops: the operations of a device.

        >>> Rates(bandwidth=10.0, flops=100.0).shares([5.0, 10.0], 50.0)
        [0.25, 0.5]
        """
        times = [one / self.bandwidth for one in sent]
        whole = sum(times) + flops / self.flops
        return [one / whole if whole else 0.0 for one in times]


def predicted(traced: Traced, exchanges: Sequence[Exchange], devices: int) -> list[float] | None:
    """The part of the time that each exchange may take; `None` unless both rates are known."""
    known = known_rates()
    if known is None:
        return None
    flops = program_work(traced.jaxpr).flops or 0.0
    return known.shares([one.sent for one in exchanges], flops / devices)


def known_rates() -> Rates | None:
    """The rates, if they are configured or have been measured."""
    bandwidth, flops = config.link_bandwidth.value, config.device_flops.value
    if bandwidth and flops:
        return Rates(bandwidth, flops)
    if not measured.cache_info().currsize:
        return None
    here = measured()
    return Rates(bandwidth or here.bandwidth, flops or here.flops)


@functools.cache
def measured() -> Rates:
    """What the devices of this process can do, measured at the first call."""
    devices = perspex.local_devices()
    count = len(devices)
    if count < 2:
        raise ValueError("one device sends nothing; there is no rate to measure")
    mesh = Mesh(np.array(devices), ("i",))
    spec = PartitionSpec("i")
    place = NamedSharding(mesh, spec)

    def on_each(f: Callable[[Any], Any]) -> Any:
        return perspex.jit(perspex.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec))

    with events.unheard():
        numbers = perspex.device_put(np.ones((count, _NUMBERS), np.float32), place)
        add = on_each(lambda x: lax.pcast(lax.psum(x, "i"), "i", to="varying"))
        sending = fastest(lambda: add(numbers))
        matrices = perspex.device_put(np.ones((count, _ROWS, _ROWS), np.float32), place)
        multiply = on_each(lambda x: x @ x)
        computing = fastest(lambda: multiply(matrices))
    sent = 2 * (count - 1) / count * 4 * _NUMBERS
    return Rates(bandwidth=sent / sending, flops=2.0 * _ROWS**3 / computing)

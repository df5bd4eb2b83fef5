"""The roofline: what this machine can do at best, and how near to it a program comes.

After Williams, Waterman and Patterson, "Roofline: an insightful visual performance model" (2009): a
program that does `i` operations of arithmetic for each byte that it moves can do no more in a
second than the processor's peak, nor than `i` times the bytes that the memory moves in a second.
Both peaks are measured, by a product of matrices and by a sum over an array that no cache holds.
That takes less than a second, once in a session. How fast numbers are multiplied depends on their
dtype, by a factor of thirty on some accelerators, so each program is compared with the peak of the
dtype in which it does most of its work, at the default precision.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import perspex
import perspex.numpy as jnp
from perspex import dtypes
from perspex.base import events
from perspex.ir.jaxpr import ClosedJaxpr, sub_jaxprs
from perspex.runtime import client
from perspex.transforms.higher_order import equation_work, program_work

# The rows of the matrices and the numbers of the array: on a processor 4 MB each and 64 MB. On an
# accelerator such a product would be over before the next one is started, and its caches hold
# such an array.
_ON_PROCESSOR = (1024, 1 << 24)
_ON_ACCELERATOR = (8192, 1 << 28)
# The part of an accelerator's memory that may be taken for this: matrices, products, array.
_PART = 0.25
# Seconds to spend on each peak, and runs at the least.
_SECONDS = 0.2
_LEAST_RUNS = 3


@dataclass(frozen=True)
class Peak:
    """Operations of arithmetic on a dtype, and bytes, in a second, at best."""

    flops: float
    bytes: float

    def limit(self, intensity: float) -> float:
        """Operations in a second, at best, of a program with so many for each byte.

        >>> Peak(flops=100.0, bytes=10.0).limit(2.0), Peak(flops=100.0, bytes=10.0).limit(50.0)
        (20.0, 100.0)
        """
        return min(self.flops, intensity * self.bytes)


@dataclass(frozen=True)
class Work:
    """What one run of a program does: its operations, and the bytes that it moves.

    `dtype` is that of most of the operations.
    """

    flops: float
    bytes: float
    dtype: str = "float32"

    def taking(self, seconds: float) -> Position | None:
        """Where the program is if a run takes so long; `None` if that was not measured."""
        return Position(self.flops, self.bytes, seconds, self.dtype) if seconds > 0 else None


@dataclass(frozen=True)
class Position:
    """Where a program is: its operations, the bytes that it moves, and the seconds of one run."""

    flops: float
    bytes: float
    seconds: float
    dtype: str = "float32"

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.bytes

    @property
    def achieved(self) -> float:
        """Operations in a second."""
        return self.flops / self.seconds

    def part(self, peak: Peak) -> float:
        """What it achieves, as a part of what it could."""
        return self.achieved / peak.limit(self.intensity)

    def bound(self, peak: Peak) -> str:
        """What keeps it from more: `arithmetic` or `memory`."""
        return "arithmetic" if peak.limit(self.intensity) == peak.flops else "memory"


def work(closed: ClosedJaxpr, xla: Any) -> Work | None:
    """The work of one run of a program; `None` if it is unknown.

    Operations are those of the equations. Bytes are XLA's estimate for the kernels; XLA counts the
    body of a loop once, so they are not known for a program with loops.

    Args:
      closed: the program, as `jit(f).trace(*args).jaxpr`.
      xla: its executable, as `compile().runtime_executable()`.
    """
    flops = program_work(closed).flops
    if not flops or any("while(" in m.to_string() for m in xla.hlo_modules()):
        return None
    cost = xla.cost_analysis()
    moved = (cost[0] if isinstance(cost, list) else cost).get("bytes accessed", 0.0)
    return Work(flops, moved, main_dtype(closed)) if moved > 0 else None


def main_dtype(closed: ClosedJaxpr) -> str:
    """The dtype in which a program does most of its operations; `float32` where it is no float.

    >>> main_dtype(perspex.jit(lambda x: x @ x).trace(jnp.ones((3, 3), jnp.bfloat16)).jaxpr)
    'bfloat16'
    """
    most = max(closed.eqns, key=lambda eqn: equation_work(eqn).flops or 0.0, default=None)
    if most is None:
        return "float32"
    inner = max(sub_jaxprs(most.params), key=lambda c: program_work(c).flops or 0.0, default=None)
    if inner is not None:
        return main_dtype(inner)
    dtype = most.invars[0].aval.dtype
    return str(dtype) if dtypes.issubdtype(dtype, np.floating) else "float32"


# By dtype.
_peaks: dict[str, Peak] = {}


def known_peak(dtype: str = "float32") -> Peak | None:
    """What the default device can do with a dtype, if that has been measured."""
    return _peaks.get(dtype)


def sizes(device: Any) -> tuple[int, int]:
    """The rows of the matrices and the numbers of the array that measure a device."""
    if device.platform == "cpu":
        return _ON_PROCESSOR
    rows, numbers = _ON_ACCELERATOR
    limit = (device.memory_stats() or {}).get("bytes_limit")
    while limit is not None and 4 * (numbers + 3 * rows**2) > _PART * limit and rows > 1024:
        rows, numbers = rows // 2, numbers // 2
    return rows, numbers


def peak(dtype: str = "float32") -> Peak:
    """What the default device can do with a dtype, measured at the first call for each."""
    if dtype not in _peaks:
        with events.unheard():
            _peaks[dtype] = Peak(flops=_multiplying(dtype), bytes=_moving())
    return _peaks[dtype]


def _multiplying(dtype: str) -> float:
    """Operations of arithmetic in a second."""
    rows, _ = sizes(client.default_device())
    with perspex.enable_x64(dtype == "float64" or perspex.config.enable_x64.value):
        matrix = jnp.full((rows, rows), 1.0 / rows, dtype)
        product = perspex.jit(lambda x, y: x @ y)
        return 2.0 * rows**3 / fastest(lambda: product(matrix, matrix))


@functools.cache
def _moving() -> float:
    """Bytes in a second."""
    _, count = sizes(client.default_device())
    # In place, so that no new memory has to be found.
    increment = perspex.jit(lambda x: x + 1, donate_argnums=0)
    numbers = jnp.zeros(count, jnp.float32)

    def add() -> Any:
        nonlocal numbers
        numbers = increment(numbers)
        return numbers

    return 8.0 * count / fastest(add)


def fastest(run: Callable[[], Any]) -> float:
    """The seconds of the fastest run."""
    run().block_until_ready()  # compiled
    times: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(times) < _LEAST_RUNS or time.perf_counter() < end:
        start = time.perf_counter()
        run().block_until_ready()
        times.append(time.perf_counter() - start)
    return min(times)

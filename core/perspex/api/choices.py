"""Choices that are named by members of a class: when to inline, how hard to compile."""

from __future__ import annotations

import enum


class Inline(enum.Enum):
    """When the body of an inner `jit` takes the place of its call.

    `JAX_EARLY`: while it is traced, as `inline=True` does. The others leave the call in the
    program, and XLA inlines it.
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


class CompilerEffortLevel(enum.IntEnum):
    """How hard XLA tries, for the options `exec_time_optimization_effort` and the like."""

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39

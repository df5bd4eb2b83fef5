"""What the flags `log_compiles` and `explain_cache_misses` write to the logger `perspex`."""

from __future__ import annotations

from typing import Any

from perspex.base import source
from perspex.base.events import Event


def _logger() -> Any:
    import logging  # which a program that logs nothing need not import

    return logging.getLogger("perspex")


# Kinds of events, and how the log calls them.
STAGES = {
    "trace": "tracing %s for jit",
    "lower": "jaxpr to MLIR module conversion jit(%s)",
    "compile": "XLA compilation of jit(%s)",
}


def stage(event: Event) -> None:
    """Log the end of a stage, and the types that XLA compiled a program for."""
    if event.kind == "compile":
        _logger().warning(
            "Compiling jit(%s) with global shapes and types [%s].", event.name, event.signature
        )
    _logger().warning(f"Finished {STAGES[event.kind]} in %.9f sec", event.name, event.seconds)


def miss(event: Event) -> None:
    """Log why a call found no program, if it did not."""
    if event.data["hit"]:
        return
    cause = event.data["cause"] or "first call"
    at = source.summary(event.at) if event.at else "an unknown line"
    _logger().warning(
        "TRACING CACHE MISS at %s:\n  for %s(%s): %s", at, event.name, event.signature, cause
    )

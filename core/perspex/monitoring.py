"""Counters and durations by name, for whoever collects metrics: `jax.monitoring`.

A program records events under names of its choice, and listeners get them. Perspex records the
stages of each compilation, under JAX's names. `perspex.events` says more about them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perspex.base import events

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs",
    "record_event_time_span", "record_scalar", "register_event_duration_secs_listener",
    "register_event_listener", "register_event_time_span_listener", "register_scalar_listener",
    "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener",
]  # fmt: skip

_plain: list[Callable[..., None]] = []
_durations: list[Callable[..., None]] = []
_spans: list[Callable[..., None]] = []
_scalars: list[Callable[..., None]] = []

# What Perspex does, under JAX's names.
_STAGES = {
    "trace": "/jax/core/compile/jaxpr_trace_duration",
    "lower": "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "compile": "/jax/core/compile/backend_compile_duration",
}
_stop: Callable[[], None] | None = None


def _record_stage(event: events.Event) -> None:
    # XLA has compiled nothing where a program of the same content was at hand.
    if event.kind == "compile" and event.data["source"] == "memory":
        return
    record_event_duration_secs(_STAGES[event.kind], event.seconds, fun_name=event.name)


def _follow() -> None:
    """Listen to the stages of compilations while anybody listens to durations."""
    global _stop
    if _durations and _stop is None:
        _stop = events.subscribe(_record_stage, _STAGES)
    elif not _durations and _stop is not None:
        _stop()
        _stop = None


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell the listeners that something happened.

    Args:
      event: its name.
      kwargs: what else there is to say.

    Returns:
      Nothing.

    Raises:
      Exception: whatever a listener raises.

    >>> register_event_listener(print)
    >>> record_event("/batches/skipped")
    /batches/skipped
    >>> unregister_event_listener(print)
    """
    for callback in list(_plain):
        callback(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell the listeners how long something took.

    Args:
      event: its name.
      duration: seconds.
      kwargs: what else there is to say.

    Returns:
      Nothing.

    Raises:
      Exception: whatever a listener raises.

    >>> register_event_duration_secs_listener(print)
    >>> record_event_duration_secs("/epoch", 2.5)
    /epoch 2.5
    >>> unregister_event_duration_listener(print)
    """
    for callback in list(_durations):
        callback(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tell the listeners when something began and ended.

    Args:
      event: its name.
      start_time, end_time: seconds.
      kwargs: what else there is to say.

    Returns:
      Nothing.

    Raises:
      Exception: whatever a listener raises.

    >>> register_event_time_span_listener(print)
    >>> record_event_time_span("/epoch", 1.0, 3.5)
    /epoch 1.0 3.5
    >>> unregister_event_time_span_listener(print)
    """
    for callback in list(_spans):
        callback(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float, **kwargs: str | int) -> None:
    """Tell the listeners a number.

    Args:
      event: its name.
      value: the number.
      kwargs: what else there is to say.

    Returns:
      Nothing.

    Raises:
      Exception: whatever a listener raises.

    >>> register_scalar_listener(print)
    >>> record_scalar("/loss", 0.25)
    /loss 0.25
    >>> unregister_scalar_listener(print)
    """
    for callback in list(_scalars):
        callback(event, value, **kwargs)


def register_event_listener(callback: Callable[..., None]) -> None:
    """Call a function for each `record_event` from now on.

    Args:
      callback: called as `callback(event, **kwargs)`.

    Returns:
      Nothing.

    Raises:
      Nothing.

    >>> register_event_listener(print)
    >>> unregister_event_listener(print)
    """
    _plain.append(callback)


def register_event_duration_secs_listener(callback: Callable[..., None]) -> None:
    """Call a function for each duration from now on, those of compilations included.

    `/jax/core/compile/jaxpr_trace_duration`, `.../jaxpr_to_mlir_module_duration` and
    `.../backend_compile_duration` are those of Perspex, with `fun_name=`. A program that is found
    in memory by its content is not compiled.

    Args:
      callback: called as `callback(event, duration, **kwargs)`.

    Returns:
      Nothing.

    Raises:
      Nothing.

    >>> import perspex
    >>> seen = []
    >>> def note(event, duration, **kwargs):
    ...     seen.append(event.rpartition("/")[2])
    >>> register_event_duration_secs_listener(note)
    >>> _ = perspex.jit(lambda x: x * 3 + 0.123)(1.0)
    >>> unregister_event_duration_listener(note)
    >>> seen[:2]
    ['jaxpr_trace_duration', 'jaxpr_to_mlir_module_duration']
    """
    _durations.append(callback)
    _follow()


def register_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Call a function for each `record_event_time_span` from now on.

    Args:
      callback: called as `callback(event, start_time, end_time, **kwargs)`.

    Returns:
      Nothing.

    Raises:
      Nothing.

    >>> register_event_time_span_listener(print)
    >>> unregister_event_time_span_listener(print)
    """
    _spans.append(callback)


def register_scalar_listener(callback: Callable[..., None]) -> None:
    """Call a function for each `record_scalar` from now on.

    Args:
      callback: called as `callback(event, value, **kwargs)`.

    Returns:
      Nothing.

    Raises:
      Nothing.

    >>> register_scalar_listener(print)
    >>> unregister_scalar_listener(print)
    """
    _scalars.append(callback)


def _remove(callbacks: list[Callable[..., None]], callback: Any) -> None:
    if callback not in callbacks:
        raise AssertionError(f"{callback!r} is not a registered listener of this kind of event")
    callbacks.remove(callback)


def unregister_event_listener(callback: Callable[..., None]) -> None:
    """Call a listener of plain events no more.

    Args:
      callback: what was registered.

    Returns:
      Nothing.

    Raises:
      AssertionError: if it is not registered.

    >>> register_event_listener(print)
    >>> unregister_event_listener(print)
    """
    _remove(_plain, callback)


def unregister_event_duration_listener(callback: Callable[..., None]) -> None:
    """Call a listener to durations no more.

    Args:
      callback: what was registered.

    Returns:
      Nothing.

    Raises:
      AssertionError: if it is not registered.

    >>> register_event_duration_secs_listener(print)
    >>> unregister_event_duration_listener(print)
    """
    _remove(_durations, callback)
    _follow()


def unregister_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Call a listener to time spans no more.

    Args:
      callback: what was registered.

    Returns:
      Nothing.

    Raises:
      AssertionError: if it is not registered.

    >>> register_event_time_span_listener(print)
    >>> unregister_event_time_span_listener(print)
    """
    _remove(_spans, callback)


def unregister_scalar_listener(callback: Callable[..., None]) -> None:
    """Call a listener to numbers no more.

    Args:
      callback: what was registered.

    Returns:
      Nothing.

    Raises:
      AssertionError: if it is not registered.

    >>> register_scalar_listener(print)
    >>> unregister_scalar_listener(print)
    """
    _remove(_scalars, callback)


def clear_event_listeners() -> None:
    """Call no listener any more.

    Returns:
      Nothing.

    Raises:
      Nothing.

    >>> register_event_listener(print)
    >>> clear_event_listeners()
    >>> record_event("/unheard")
    """
    for callbacks in (_plain, _durations, _spans, _scalars):
        callbacks.clear()
    _follow()

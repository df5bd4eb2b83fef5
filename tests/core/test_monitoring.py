"""`jax.monitoring`: listeners get what is recorded, and the stages of compilations."""

from __future__ import annotations

import pytest

import perspex
from perspex import monitoring
from perspex.base import events


def test_each_kind_reaches_its_listeners() -> None:
    seen: list[object] = []

    def note(*args: object, **kwargs: object) -> None:
        seen.append((*args, kwargs))

    monitoring.register_event_listener(note)
    monitoring.register_scalar_listener(note)
    monitoring.register_event_time_span_listener(note)
    monitoring.record_event("/a", where="here")
    monitoring.record_scalar("/b", 2.0)
    monitoring.record_event_time_span("/c", 1.0, 2.0)
    monitoring.record_event_duration_secs("/unheard", 1.0)
    monitoring.clear_event_listeners()
    monitoring.record_event("/a")
    assert seen == [("/a", {"where": "here"}), ("/b", 2.0, {}), ("/c", 1.0, 2.0, {})]


def test_compilations_are_durations() -> None:
    seen: list[tuple[str, str]] = []

    def note(event: str, duration: float, fun_name: str) -> None:
        assert duration >= 0
        seen.append((event, fun_name))

    before = events.listeners
    monitoring.register_event_duration_secs_listener(note)
    counted = perspex.jit(lambda x: x * 17.25 - 3.125)
    counted(1.0)
    counted(2.0)
    monitoring.unregister_event_duration_listener(note)
    assert [event.rpartition("/")[2] for event, _ in seen] == [
        "jaxpr_trace_duration",
        "jaxpr_to_mlir_module_duration",
        "backend_compile_duration",
    ]
    assert {name for _, name in seen} == {"<lambda>"}
    assert events.listeners == before


def test_what_is_not_registered_cannot_be_removed() -> None:
    with pytest.raises(AssertionError, match="not a registered listener"):
        monitoring.unregister_scalar_listener(print)

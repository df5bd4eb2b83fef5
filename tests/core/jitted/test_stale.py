"""What the core does when an observer says that a function's captures have changed."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import perspex
import perspex.numpy as pnp
from perspex import config, lax
from perspex.base import events
from perspex.errors import StaleCaptureError, StaleCaptureWarning
from perspex.jitted import stale
from perspex.jitted.stale import Change, Traced


class World:
    """Variables that functions read, and an observer that knows their values at each trace."""

    def __init__(self) -> None:
        self.k = 1.0
        self.traced: list[weakref.ref[Traced]] = []
        self.looks = 0

    def __call__(self, traced: Traced) -> Any:
        world, then = self, self.k
        self.traced.append(weakref.ref(traced))

        class Record:
            unsure = False

            def changes(self, wait: bool) -> list[Change]:
                world.looks += 1
                return [] if world.k == then else [Change("k", str(then), str(world.k), "there")]

        return Record()

    def set(self, k: float) -> None:
        self.k = k
        for ref in self.traced:
            traced = ref()
            if traced is not None:
                stale.suspect(traced)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    # Shells that other tests have left behind are no part of this.
    monkeypatch.setattr(stale, "observers", ())
    world = World()
    stale.observe(world)
    config.update("stale_captures", "warn")
    yield world
    config.update("stale_captures", "warn")
    # Functions of the library that were traced here have been watched, too.
    perspex.clear_caches()


def quietly(call: Any) -> tuple[float, list[str]]:
    """What a call returns, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = float(call())
    assert all(w.category is StaleCaptureWarning for w in caught)
    return value, [str(w.message) for w in caught]


def test_without_an_observer_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stale, "observers", ())
    times = []

    def f(x: Any) -> Any:
        times.append(1)
        return x + 1

    g = perspex.jit(f)
    g(1.0), g(2.0)
    assert len(times) == 1 and not g.retrace.__self__.watched
    g.retrace()
    assert float(g(1.0)) == 2.0 and len(times) == 2


def test_warn_runs_the_old_program_and_then_says_nothing(world: World) -> None:
    f = perspex.jit(lambda x: x + world.k)
    assert quietly(lambda: f(1.0)) == (2.0, [])
    world.set(5.0)
    value, (text,) = quietly(lambda: f(1.0))
    assert value == 2.0
    assert text.startswith("`<lambda>` was traced with `k` = 1.0; now it is 5.0, changed in there.")
    assert "retrace()" in text and 'config.update("stale_captures", "retrace")' in text
    looks = world.looks
    for _ in range(3):
        assert quietly(lambda: f(1.0)) == (2.0, [])
    # Back on the fast path: nobody asks.
    assert world.looks == looks
    world.set(6.0)
    assert len(quietly(lambda: f(1.0))[1]) == 1
    world.set(1.0)
    assert quietly(lambda: f(1.0)) == (2.0, [])
    world.set(6.0)
    assert len(quietly(lambda: f(1.0))[1]) == 1


def test_the_warning_names_the_users_line(world: World) -> None:
    f = perspex.jit(lambda x: x + world.k)
    f(1.0)
    world.set(2.0)
    with pytest.warns(StaleCaptureWarning) as caught:
        f(1.0)
    assert caught[0].filename == __file__
    assert caught[0].message.function == "<lambda>"
    assert caught[0].message.changes == (Change("k", "1.0", "2.0", "there"),)


def test_retrace(world: World) -> None:
    f = perspex.jit(lambda x: x + world.k)
    f(1.0)
    config.update("stale_captures", "retrace")
    for k in (2.0, 3.0, 2.0):
        world.set(k)
        assert quietly(lambda: f(1.0)) == (1.0 + k, [])


def test_error(world: World) -> None:
    f = perspex.jit(lambda x: x + world.k)
    f(1.0)
    config.update("stale_captures", "error")
    world.set(2.0)
    for _ in range(2):
        with pytest.raises(StaleCaptureError, match="`k` = 1.0; now it is 2.0"):
            f(1.0)
    with pytest.raises(StaleCaptureError):
        perspex.grad(f)(1.0)
    f.retrace()
    assert float(f(1.0)) == 3.0


def test_ignore_until_the_policy_is_another(world: World) -> None:
    f = perspex.jit(lambda x: x + world.k)
    f(1.0)
    config.update("stale_captures", "ignore")
    world.set(2.0)
    for _ in range(2):
        assert quietly(lambda: f(1.0)) == (2.0, [])
    config.update("stale_captures", "retrace")
    assert quietly(lambda: f(1.0)) == (3.0, [])


@pytest.mark.parametrize(
    ("own", "flag", "value", "warned"),
    [("retrace", "ignore", 3.0, 0), ("ignore", "retrace", 2.0, 0), ("warn", "error", 2.0, 1)],
)
def test_a_function_may_have_a_policy_of_its_own(
    world: World, own: str, flag: str, value: float, warned: int
) -> None:
    f = perspex.jit(lambda x: x + world.k, stale=own)
    f(1.0)
    config.update("stale_captures", flag)
    world.set(2.0)
    got, texts = quietly(lambda: f(1.0))
    assert (got, len(texts)) == (value, warned)


def test_all_callables_of_one_function_come_to_python(world: World) -> None:
    def f(x: Any) -> Any:
        return x + world.k

    first, second = perspex.jit(f), perspex.jit(f)
    first(1.0), second(1.0)
    config.update("stale_captures", "retrace")
    world.set(2.0)
    assert float(second(1.0)) == 3.0 and float(first(1.0)) == 3.0


def test_the_inner_function_is_traced_again_with_the_outer(world: World) -> None:
    inner = perspex.jit(lambda x: x + world.k)
    outer = perspex.jit(lambda x: inner(x) * 10)
    outer(1.0)
    world.set(2.0)
    outer.retrace()
    assert quietly(lambda: outer(1.0)) == (30.0, [])
    config.update("stale_captures", "retrace")
    world.set(3.0)
    assert quietly(lambda: outer(1.0)) == (40.0, [])
    assert quietly(lambda: inner(1.0)) == (4.0, [])


def test_a_body_of_a_loop_is_never_old(world: World) -> None:
    def step(c: Any, _: Any) -> Any:
        return c + world.k, None

    def loop() -> Any:
        return lax.scan(step, 0.0, None, length=4)[0]

    f = perspex.jit(loop, stale="retrace")
    assert float(loop()) == 4.0 and float(f()) == 4.0
    world.set(2.0)
    assert quietly(loop) == (8.0, []) and quietly(f) == (8.0, [])


def test_transforms_ask_too(world: World) -> None:
    f = perspex.jit(lambda x: x * world.k)
    assert float(perspex.grad(f)(1.0)) == 1.0
    config.update("stale_captures", "retrace")
    world.set(7.0)
    assert float(perspex.grad(f)(1.0)) == 7.0
    world.set(8.0)
    assert perspex.vmap(f)(pnp.ones(2)).tolist() == [8.0, 8.0]
    world.set(9.0)
    assert float(f.lower(1.0).compile()(1.0)) == 9.0


def test_what_is_unsure_is_looked_at_in_the_call(world: World) -> None:
    f = perspex.jit(lambda x: x + world.k, stale="retrace")
    f(1.0)
    (ref,) = world.traced
    traced = ref()
    assert traced is not None
    stale.settle(traced)
    assert not traced.suspect
    traced.records[0].unsure = True
    stale.settle(traced)
    assert traced.suspect
    world.k = 4.0
    assert float(f(1.0)) == 5.0


def test_events_and_the_cause_of_the_miss(world: World) -> None:
    f = perspex.jit(lambda x: x + world.k, stale="retrace")
    f(1.0)
    seen: list[events.Event] = []
    stop = events.subscribe(seen.append, ["stale", "cache"])
    world.set(2.0)
    f(1.0)
    stop()
    told = [(e.kind, e.data.get("state"), e.data.get("hit")) for e in seen]
    assert told == [("stale", "found", None), ("stale", "retraced", None), ("cache", None, False)]
    assert seen[0].data["variable"] == "k" and "`k`: 1.0 -> 2.0" in seen[2].data["cause"]


def test_programs_go_with_their_function(world: World) -> None:
    inner = perspex.jit(lambda x: x + world.k)

    def calls(f: Any) -> Any:
        return perspex.jit(lambda x: f(x))

    calls(inner)(1.0)
    gc.collect()
    assert [ref() is not None for ref in world.traced] == [True, False]
    del inner
    gc.collect()
    assert not any(ref() for ref in world.traced)


def test_clear_cache_forgets_what_was_captured(world: World) -> None:
    f = perspex.jit(lambda x: x + world.k)
    f(1.0)
    f.clear_cache()
    world.set(2.0)
    assert quietly(lambda: f(1.0)) == (3.0, [])


def test_policies_are_checked() -> None:
    with pytest.raises(ValueError, match="must be one of warn, retrace, error, ignore, got 'no'"):
        perspex.jit(lambda x: x, stale="no")
    with pytest.raises(ValueError, match="expected one of"):
        config.update("stale_captures", "no")
    assert perspex.jit(stale="ignore")(lambda x: x + 1)(1.0) == 2.0

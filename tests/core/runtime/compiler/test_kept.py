"""Executables are in memory while they are used, and so many bytes of them for a while after that.

They are counted by weak references, because the memory of a process says little about a few.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.compiled import X, scale, sources
from support.compiled import folder as folder
from support.compiled import seen as seen
from support.compiled import unpinned as unpinned

import perspex
import perspex.numpy as pnp
from perspex import config, lax
from perspex.runtime.compiler import cache, kept
from perspex.runtime.dispatch import EVAL


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    perspex.clear_caches()
    gc.collect()


def executables() -> int:
    """How many the cache finds, which are all that are alive."""
    for _ in range(2):  # what C++ gives up is found by the second
        gc.collect()
    return len(cache._memory)


def test_an_executable_dies_with_its_function(monkeypatch) -> None:
    monkeypatch.setattr(cache._kept.ready, "most", 0)
    f, g = scale(301.5), scale(302.5)
    f(X)
    entry = weakref.ref(next(iter(cache._memory.values())))
    g(X)
    assert executables() == 2
    del f
    assert executables() == 1 and entry() is None
    np.testing.assert_allclose(g(X), np.sin(X) * 302.5, rtol=1e-6)


def test_what_is_kept_ready_is_bounded_by_bytes(seen, monkeypatch) -> None:
    monkeypatch.setattr(cache._kept.ready, "most", 2**20)
    for i in range(30):
        scale(310.5 + i)(X)
    assert sources(seen, "scaled") == ["xla"] * 30
    assert 2 <= executables() <= 6
    assert sum(entry.weight for entry in cache._kept.ready.values()) <= 2**20


def test_what_is_gone_is_loaded_again(seen, monkeypatch) -> None:
    """Also when it has run, and with what the program needed when it was compiled."""
    monkeypatch.setattr(cache._kept.ready, "most", 0)

    def make() -> Callable[..., Any]:
        return perspex.jit(lambda x: {"sorted": pnp.sort(x) * 2, "sum": x.sum()})

    first = make()(X)
    scale(340.5)(X)
    assert executables() == 1
    again = make()(X)
    assert [e.data["source"] for e in seen if e.name == "<lambda>"] == ["xla", "memory"]
    np.testing.assert_array_equal(again["sorted"], first["sorted"])
    np.testing.assert_allclose(again["sum"], X.sum(), rtol=1e-6)


def test_compressed_programs_are_bounded_by_bytes(seen, monkeypatch) -> None:
    monkeypatch.setattr(cache._kept.ready, "most", 0)

    def held() -> int:
        return sum(len(packed.code) for packed in cache._kept.packed.values())

    scale(350.5)(X)
    most = 4 * held()  # a program is of another size with each version of XLA
    monkeypatch.setattr(cache._kept.packed, "most", most)
    for i in range(1, 12):
        scale(350.5 + i)(X)
    assert 0 < held() <= most
    assert executables() == 1
    seen.clear()
    scale(350.5)(X), scale(361.5)(X)
    assert sources(seen, "scaled")[:1] == ["xla"]


def test_the_last_one_stays_whatever_it_weighs(seen, folder, monkeypatch) -> None:
    monkeypatch.setattr(cache._kept.ready, "most", 0)
    for _ in range(2):
        scale(370.5)(X)
        gc.collect()
    assert sources(seen, "scaled") == ["xla", "memory"]
    assert not cache._kept.packed  # it is on disk


def test_a_program_that_the_disk_does_not_take_is_compressed(seen, folder, monkeypatch) -> None:
    monkeypatch.setattr(cache._kept.ready, "most", 0)
    with config.find("persistent_cache_min_compile_time_secs")(3600):
        for factor in (380.5, 381.5, 380.5):
            scale(factor)(X)
            gc.collect()
    assert sources(seen, "scaled") == ["xla", "xla", "memory"]


def test_bytes_that_cannot_be_loaded_are_compiled_again(seen, monkeypatch) -> None:
    monkeypatch.setattr(cache._kept.ready, "most", 0)
    scale(390.5)(X), scale(391.5)(X)
    gc.collect()
    for key, packed in cache._kept.packed.entries():
        cache._kept.packed.put(key, packed._replace(code=kept.zlib.compress(b"no program")))
    assert executables() <= 1
    np.testing.assert_allclose(scale(390.5)(X), np.sin(X) * 390.5, rtol=1e-6)
    assert sources(seen, "scaled") == ["xla"] * 3


def test_a_pinned_program_stays_ready(seen, unpinned, monkeypatch) -> None:
    monkeypatch.setattr(cache._kept.ready, "most", 0)
    monkeypatch.setattr(cache._kept.packed, "most", 0)
    scale(400.5)(X)
    key = bytes.fromhex(seen[-1].data["key"])
    assert cache.pin(key)
    scale(401.5)(X)
    assert executables() == 2 and cache.is_remembered(key)
    scale(400.5)(X)
    assert sources(seen, "scaled") == ["xla", "xla", "memory"]
    perspex.clear_caches()
    assert cache.remembered_count() == 1


@pytest.mark.parametrize(
    "run",
    [
        lambda k: perspex.grad(perspex.jit(lambda x: (pnp.sin(x) * k).sum()))(X),
        lambda k: lax.scan(lambda c, y: (c * k + y, c), np.float32(1), X),
        lambda k: lax.cond(X[0] > k, lambda x: x * k, lambda x: x - k, X),
    ],
    ids=["grad", "scan", "cond"],
)
def test_eager_calls_of_short_lived_functions_leave_a_few(run, monkeypatch) -> None:
    monkeypatch.setattr(cache._kept.ready, "most", 0)
    monkeypatch.setattr(EVAL.programs, "most", 2**19)
    for i in range(12):
        run(410.5 + i)
    gc.collect()
    # Besides operations on their own, which are kept by their params.
    assert len(EVAL.programs) <= 4 and executables() <= 8


def test_an_eager_loop_is_kept_as_long_as_its_body(seen, monkeypatch) -> None:
    monkeypatch.setattr(cache._kept.ready, "most", 0)
    monkeypatch.setattr(EVAL.programs, "most", 0)

    def body(c: Any, y: Any) -> Any:
        return c * 431.5 + y, c

    first = lax.scan(body, np.float32(1), X)[0]
    scale(432.5)(X)
    gc.collect()
    seen.clear()
    assert float(lax.scan(body, np.float32(1), X)[0]) == float(first)
    assert not seen
    perspex.clear_caches()
    lax.scan(body, np.float32(1), X)
    assert sources(seen, "scan") == ["xla"]


def test_operations_are_bounded_by_bytes(monkeypatch) -> None:
    monkeypatch.setattr("perspex.runtime.dispatch._EAGER_CALLABLES", 2**20)
    for i in range(16):
        lax.slice(pnp.arange(40), (i,), (i + 3,))
    assert len(EVAL.callables) < 16 and EVAL.weight <= 2**20
    np.testing.assert_array_equal(lax.slice(pnp.arange(40), (0,), (3,)), [0, 1, 2])

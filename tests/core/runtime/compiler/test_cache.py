"""Compiled programs are found again in memory; they can be pinned and evicted.

Results are compared with NumPy. Where a program came from is what the `compile` events say, and
that it was not compiled is seen by compiling being made impossible.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from support.compiled import X, entries, scale, sources
from support.compiled import folder as folder
from support.compiled import seen as seen
from support.compiled import unpinned as unpinned

import perspex
import perspex.numpy as pnp
from perspex import debug
from perspex.runtime.compiler import cache, disk


def test_a_function_defined_again_is_not_compiled_again(seen) -> None:
    first, moved = scale(1.25), scale(1.25, text="\n\n# moved\n")
    for f in (first, moved):
        np.testing.assert_allclose(f(X), np.sin(X) * 1.25, rtol=1e-6)
    assert sources(seen) == ["xla", "memory"]
    # What it would have cost is known, and it cost less.
    assert seen[1].data["compiled_in"] > seen[1].seconds


def test_other_programs_are_compiled(seen) -> None:
    for f, x in [
        (scale(1.5), X),
        (scale(1.5000001), X),
        (scale(1.5), X[:2]),
        (scale(1.5), X.astype(np.int32)),
    ]:
        want = np.sin(x.astype(np.float32)) * np.float32(1.5)
        np.testing.assert_allclose(f(x), want, rtol=1e-5)
    assert sources(seen, "scaled") == ["xla"] * 4


def test_captured_arrays(seen) -> None:
    """Large ones are arguments of the program, small ones a part of it: neither is mixed up."""
    for size in (8, 100):
        for fill in (1.0, 2.0):
            captured = pnp.asarray(np.full(size, fill, np.float32))
            small = np.full(size, fill, np.float32)

            def total(x, captured=captured, small=small):
                return (x + captured * small).sum()

            assert float(perspex.jit(total)(np.float32(1))) == size * (1 + fill * fill)
    assert len(sources(seen, "total")) == 4


def test_options_of_the_compiler_are_part_of_the_key(seen) -> None:
    lowered = perspex.jit(lambda x: x * 7.5).lower(X)
    for options in ({}, {"xla_cpu_enable_fast_math": True}, {"xla_cpu_enable_fast_math": False}):
        np.testing.assert_array_equal(lowered.compile(options)(X), X * np.float32(7.5))
    lowered.compile({"xla_cpu_enable_fast_math": True})
    assert sources(seen) == ["xla", "xla", "xla", "memory"]


def test_donation_is_part_of_the_key(seen) -> None:
    def double(x):
        return x * 2.25

    x = pnp.asarray(X)
    perspex.jit(double)(x)
    perspex.jit(double, donate_argnums=0)(x)
    assert sources(seen, "double") == ["xla", "xla"] and x.is_deleted()


def test_functions_that_call_python_are_not_kept(seen, folder, capsys) -> None:
    for word in ("one", "two"):

        def shout(x, word=word):
            debug.print(word + " {}", x)
            return x + 1

        np.testing.assert_array_equal(perspex.jit(shout)(np.float32(3)), 4)
        perspex.effects_barrier()
        assert capsys.readouterr().out == f"{word} 3.0\n"
    assert sources(seen, "shout") == ["xla", "xla"]
    assert disk.flush(30) and all(not e.data["key"] for e in seen if e.name == "shout")


def test_what_is_being_compiled_is_not_started_twice(seen, monkeypatch) -> None:
    begun, go_on, calls = threading.Event(), threading.Event(), []
    inner = cache._compiled

    def slow(compile):
        calls.append(1)
        begun.set()
        assert go_on.wait(30)
        return inner(compile)

    monkeypatch.setattr(cache, "_compiled", slow)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(np.asarray(scale(9.75)(X))))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    time.sleep(0.1)
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert len(results) == 3 and len(calls) == 1
    for result in results:
        np.testing.assert_allclose(result, np.sin(X) * 9.75, rtol=1e-6)
    assert sorted(sources(seen)) == ["memory", "memory", "xla"]


def test_an_error_of_the_compiler_is_not_remembered() -> None:
    lowered = perspex.jit(lambda x: x * 8.5).lower(X)
    for _ in range(2):
        with pytest.raises(Exception, match="no_such_option"):
            lowered.compile({"no_such_option": True})
    np.testing.assert_array_equal(lowered.compile()(X), X * np.float32(8.5))


def test_clear_caches_forgets(seen) -> None:
    scale(2.75)(X)
    perspex.clear_caches()
    assert cache.remembered_count() == 0
    scale(2.75)(X)
    assert sources(seen) == ["xla", "xla"]


def test_what_is_pinned_stays(seen, unpinned, monkeypatch) -> None:
    """When all is forgotten, and when there is no room; until it is let go."""
    kept, other = scale(181.5), scale(182.5)
    np.testing.assert_allclose(kept(X), np.sin(X) * 181.5, rtol=1e-6)
    other(X)
    key = bytes.fromhex(next(e.data["key"] for e in seen if e.name == "scaled"))
    assert cache.pin(key) and cache.is_pinned(key)
    perspex.clear_caches()
    seen.clear()
    np.testing.assert_allclose(kept(X), np.sin(X) * 181.5, rtol=1e-6)
    other(X)
    assert sources(seen, "scaled") == ["memory", "xla"]
    monkeypatch.setattr(cache._kept.ready, "most", 1)
    monkeypatch.setattr(cache._kept.packed, "most", 1)
    for factor in (183.5, 184.5):
        scale(factor)(X)
    assert cache.is_remembered(key)
    cache.unpin(key)
    perspex.clear_caches()
    seen.clear()
    kept(X)
    assert sources(seen, "scaled") == ["xla"]


FORK = """
import os, threading, warnings
from perspex.runtime.compiler import cache
warnings.simplefilter("ignore")
cache._kept.use(b"key", entry := cache.Entry(None, 0.0, 0))
cache._memory[b"key"] = entry
held, go_on = threading.Event(), threading.Event()
def hold():
    with cache._lock, cache._kept.ready._lock, cache._kept.packed._lock:
        held.set()
        go_on.wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if not child:
    os._exit(0 if cache.remembered(b"key") else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no forks")
def test_a_fork_while_another_thread_is_in_the_cache() -> None:
    out = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60)
    assert out.stdout == "0\n", out.stderr


def test_only_so_many_can_be_pinned(unpinned, monkeypatch) -> None:
    monkeypatch.setattr(cache, "MOST_PINNED", 2)
    assert [cache.pin(key) for key in (b"a", b"b", b"c", b"a")] == [True, True, False, True]


def test_a_program_is_evicted_from_memory_and_disk(seen, folder) -> None:
    f = scale(191.5)
    f(X)
    compiled = next(e for e in seen if e.name == "scaled")
    key, origin = bytes.fromhex(compiled.data["key"]), compiled.data["origin"]
    assert disk.flush(30) and len(entries(folder)) == 1
    origin.owner().evict(origin.closed())
    cache.evict(key)
    assert not cache.is_remembered(key) and entries(folder) == []
    seen.clear()
    np.testing.assert_allclose(f(X), np.sin(X) * 191.5, rtol=1e-6)
    assert sources(seen, "scaled") == ["xla"]


def test_a_loop_that_is_called_by_itself_is_known_by_its_program(seen) -> None:
    perspex.lax.scan(lambda c, x: (c + x, c), 0.0, np.arange(193, dtype=np.float32))
    (origin,) = [e.data["origin"] for e in seen if (e.kind, e.name) == ("compile", "scan")]
    assert origin.owner() is None
    assert [eqn.primitive.name for eqn in origin.closed().eqns] == ["scan"]

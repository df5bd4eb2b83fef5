"""Many threads, interrupts and long use in one process; the numbers are held against NumPy's.

PYTHONPATH=core:magics:tests python -m fuzz.stress threads --turns 100
PYTHONPATH=core:magics:tests python -m fuzz.stress interrupts --turns 200
PYTHONPATH=core:magics:tests python -m fuzz.stress memory --turns 2000

`threads` also watches the order in which locks are taken. `memory` makes so many shapes and
closures, and fifty times as many calls, and prints by how many MiB each half of them grows.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fuzz import stress_locks

THREADS = 16
# Seconds in which a part has to end; else all threads are shown, and the process ends.
LONGEST = 900
# How many programs are kept for one function, and executables, where eviction is to be seen.
FEW = 8
Work = Callable[[random.Random], None]


def close(ours: Any, truth: Any) -> None:
    np.testing.assert_allclose(np.asarray(ours), truth, rtol=2e-4, atol=2e-4)


def workloads() -> dict[str, Work]:
    """What a thread may do in a turn; each raises where a number is wrong."""
    import perspex
    import perspex.numpy as jnp
    from perspex import lax

    wave = perspex.jit(lambda x: jnp.sin(x) * 2 + 1)
    gradient = perspex.jit(perspex.grad(lambda x: (x**3).sum()))
    rows = perspex.jit(perspex.vmap(lambda x, y: (x * y).sum(), (0, None)))
    sums = perspex.jit(lambda x: lax.scan(lambda c, v: (c + v, c * 2), 0.0, x))
    powers = perspex.jit(lambda x, n: x**n, static_argnums=1)
    nested = perspex.jit(lambda x: wave(x) + gradient(x))

    def array(draw: random.Random) -> Any:
        return np.array([draw.uniform(-1, 1) for _ in range(draw.randint(1, 12))], np.float32)

    def of_wave(draw: random.Random) -> None:
        x = array(draw)
        close(wave(x), np.sin(x) * 2 + 1)

    def of_gradient(draw: random.Random) -> None:
        x = array(draw)
        close(gradient(x), 3 * x**2)

    def of_rows(draw: random.Random) -> None:
        x = array(draw)
        close(rows(np.stack([x, 2 * x]), x), [(x * x).sum(), 2 * (x * x).sum()])

    def of_sums(draw: random.Random) -> None:
        x = array(draw)
        total, twice = sums(x)
        close(total, x.sum())
        close(twice, 2 * np.concatenate([[0], np.cumsum(x)[:-1]]))

    def of_powers(draw: random.Random) -> None:
        x, n = array(draw), draw.randint(0, 12)
        close(powers(x, n), x**n)

    def of_nested(draw: random.Random) -> None:
        x = array(draw)
        close(nested(x), np.sin(x) * 2 + 1 + 3 * x**2)

    def eagerly(draw: random.Random) -> None:
        x = array(draw)
        y = jnp.asarray(x)
        close((y * 2 + y[::-1]).sum(), (x * 3).sum())
        close(jnp.where(y > 0, y, -y), np.abs(x))

    def of_a_closure(draw: random.Random) -> None:
        x, k = array(draw), draw.randint(0, 50)
        close(perspex.jit(lambda x: x * k + 1)(x), x * k + 1)

    def by_stages(draw: random.Random) -> None:
        x = array(draw)
        close(wave.trace(x).lower().compile()(x), np.sin(x) * 2 + 1)

    def listening(draw: random.Random) -> None:
        heard: list[object] = []
        stop = perspex.events.subscribe(heard.append)
        of_a_closure(draw)
        stop()

    def looking(draw: random.Random) -> None:
        for x in perspex.live_arrays()[:3]:
            repr(x.aval)
        perspex.random.normal(perspex.random.key(draw.randint(0, 5)), (3,)).block_until_ready()

    def forgetting(draw: random.Random) -> None:
        if draw.random() < 0.1:
            perspex.clear_caches()

    return {
        name: work
        for name, work in locals().items()
        if callable(work) and work not in (wave, gradient, rows, sums, powers, nested, array)
    }


@contextlib.contextmanager
def in_time(seconds: float = LONGEST) -> Iterator[None]:
    """Show where all threads are and end the process if the body hangs."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@contextlib.contextmanager
def small_caches() -> Iterator[None]:
    """Everything is evicted all the time, and disk is used too."""
    import perspex
    from perspex.jitted import compiled
    from perspex.runtime import dispatch
    from perspex.runtime.compiler import cache, disk

    compiled.MOST_PROGRAMS = dispatch.MOST_PROGRAMS = FEW
    cache._kept.ready.most = cache._kept.packed.most = 2**20
    with tempfile.TemporaryDirectory() as folder:
        perspex.config.update("compilation_cache_dir", folder)
        yield
        perspex.config.update("compilation_cache_dir", None)
        disk.flush()  # nothing is written into the folder while it is removed


def in_threads(turns: int, seed: int) -> list[str]:
    """Have all threads work; what went wrong."""
    failed: list[str] = []
    works = workloads()
    barrier = threading.Barrier(THREADS)

    def serve(number: int) -> None:
        draw = random.Random(1000 * seed + number)
        barrier.wait()
        for turn in range(turns):
            name = draw.choice(list(works))
            try:
                works[name](draw)
            except BaseException as error:
                failed.append(f"thread {number}, turn {turn}, {name}: {error!r}"[:2000])

    threads = [threading.Thread(target=serve, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


def threads(turns: int, seed: int) -> list[str]:
    """Work in threads while the order of locks is watched, with the notebook's observers."""
    order = stress_locks.watch()
    from IPython.core.interactiveshell import InteractiveShell

    from perspex_magics import load_ipython_extension

    shell = InteractiveShell.instance()
    load_ipython_extension(shell)
    # Collecting garbage ends in our caches at every moment that it may.
    gc.set_threshold(200, 5, 5)
    sys.setswitchinterval(1e-4)
    with in_time(), small_caches():
        failed = in_threads(turns, seed)
    print(
        f"{len(order.sites)} locks, {len(order.seen)} orders of two, {len(order.pairs)} of a kind"
    )
    for (before, after), _ in sorted(order.seen.items()):
        print(f"    {before} -> {after}")
    return failed + ([order.report()] if order.circles() else [])


def interrupts(turns: int, seed: int) -> list[str]:
    """Interrupt the main thread at random moments while other threads work."""
    from perspex.base import imports
    from perspex.runtime import interruptible

    failed: list[str] = []
    works, draw = workloads(), random.Random(seed)
    stop, count = threading.Event(), 0
    done = [0] * 3

    def beside(number: int) -> None:
        mine = random.Random(seed + number)
        while not stop.is_set():
            try:
                works[mine.choice(list(works))](mine)
                done[number] += 1
            except BaseException as error:
                failed.append(f"beside: {error!r}"[:2000])
                return

    threads = [threading.Thread(target=beside, args=(number,)) for number in range(len(done))]
    with in_time():
        for thread in threads:
            thread.start()
        for turn in range(turns):
            try:
                signal.signal(signal.SIGALRM, signal.default_int_handler)
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-4, 0.03))
                # Python itself swallows one that comes in a weak reference's callback.
                end = time.monotonic() + 2
                while time.monotonic() < end:
                    name = draw.choice(list(works))
                    works[name](draw)
            except KeyboardInterrupt:
                count += 1
                imports.free_lock()  # as a notebook does
            except BaseException as error:
                failed.append(f"turn {turn}: {error!r}"[:2000])
            signal.setitimer(signal.ITIMER_REAL, 0)
            if turn % 10 == 0:
                for name, work in works.items():
                    try:
                        work(draw)
                    except BaseException as error:
                        failed.append(f"after turn {turn}, {name}: {error!r}"[:2000])
        stop.set()
        for thread in threads:
            thread.join()
        # What an interrupt abandoned goes on in C++, and Python may not end meanwhile.
        while interruptible.left:
            time.sleep(0.01)
    print(f"{count} interrupts of {turns} turns; beside {done}")
    if count < turns / 2 or not all(done):
        failed.append("too few interrupts, or a thread that did nothing")
    return failed


def resident() -> float:
    """MiB that the process has in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory(turns: int, seed: int) -> list[str]:
    """Grow by little in the second half of each kind of use."""
    import perspex
    import perspex.numpy as jnp

    failed = []
    wave = perspex.jit(lambda x: jnp.sin(x) * 2 + 1)
    x = jnp.ones(7)
    # A new function each time, whose program is one of the few that there are.
    kinds: dict[str, tuple[int, Callable[[int], Any]]] = {
        "calls": (50 * turns, lambda i: wave(x)),
        "eager operations": (10 * turns, lambda i: x * 2 + i),
        "closures": (turns, lambda i: perspex.jit(lambda x: x * (i % 3) + 1)(x)),
        "closures of new programs": (turns, lambda i: perspex.jit(lambda x: x * i + 1)(x)),
        "shapes": (turns, lambda i: wave(np.ones(1 + i, np.float32))),
        "eager shapes": (turns, lambda i: jnp.asarray(np.ones(1 + i, np.float32)) * 2),
        "failing": (turns // 4, lambda i: _fails(perspex, jnp, i)),
    }
    with in_time(), small_caches():
        for name, (count, work) in kinds.items():
            sizes = []
            for part in range(4):
                for i in range(part * count // 4, (part + 1) * count // 4):
                    work(i)
                gc.collect()
                sizes.append(resident())
            growth = sizes[3] - sizes[1]
            print(f"{name}: {count:,}; MiB after each quarter {[round(size, 1) for size in sizes]}")
            if growth > MOST_GROWTH:
                failed.append(f"{name}: the second half grew by {growth:.1f} MiB")
    return failed


# MiB for half of the uses of one kind.
MOST_GROWTH = 10.0


def _fails(perspex: Any, jnp: Any, i: int) -> None:
    with contextlib.suppress(TypeError, ValueError):
        perspex.jit(lambda x: x + jnp.ones(i + 3) @ jnp.ones(i + 4))(jnp.ones(2))


def main() -> int:
    """Run one part; the exit status says whether anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("part", choices=["threads", "interrupts", "memory"])
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    start = time.process_time()
    failed = globals()[given.part](given.turns, given.seed)
    print(
        f"{given.part}: {len(failed)} wrong, {time.process_time() - start:.1f} s of processor time"
    )
    print("\n".join(failed[:20]))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())

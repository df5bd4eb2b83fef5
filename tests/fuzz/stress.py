"""Threads, interrupts and memory: `python -m fuzz.stress [--threads 16] [--seconds 30] ...`.

Prints what happened as JSON and ends with 1 when something was wrong: a result that differs, an
order of locks that can deadlock, or memory that grows with the number of calls.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz import lock_order

# Bytes for each of many calls, closures or shapes, above which memory grows. A shape has a program
# of its own, which XLA holds in about a quarter of a MiB until a cache lets it go.
LEAK = {"calls": 60, "closures": 20_000, "shapes": 400_000}


def work() -> list[tuple[Callable[[], Any], Any]]:
    """Pieces of work with their results, computed by NumPy."""
    import numpy as np

    import perspex as jax
    from perspex import lax
    from perspex import numpy as jnp

    found: list[tuple[Callable[[], Any], Any]] = []
    for n in range(1, 9):
        x = np.linspace(0.1, 1.0, n, dtype=np.float32)
        jitted = jax.jit(lambda v: jnp.sum(jnp.sin(v) * 2))

        def fresh(x: Any = x) -> Any:
            return jax.jit(lambda v: jnp.cumsum(v) + 1)(x)

        def loop(x: Any = x) -> Any:
            return lax.fori_loop(0, 3, lambda i, v: v * 2, jnp.asarray(x))

        found += [
            (lambda jitted=jitted, x=x: jitted(x), np.sum(np.sin(x) * 2)),
            (lambda x=x: jnp.sort(jnp.asarray(x)[::-1]), x),
            (lambda x=x: jax.grad(lambda v: jnp.sum(v**3))(x), 3 * x**2),
            (lambda x=x: jax.vmap(lambda v: v * 2 + 1)(x), 2 * x + 1),
            (fresh, np.cumsum(x) + 1),
            (loop, 8 * x),
        ]
    return found


def wrong(piece: Callable[[], Any], expected: Any) -> str:
    """What is wrong with a result; the empty string if nothing is."""
    import numpy as np

    got = np.asarray(piece())
    return "" if np.allclose(got, expected, rtol=1e-5) else f"got {got}, want {expected}"


def threads(count: int, seconds: float, seed: int) -> dict[str, Any]:
    """Many threads at the same functions, one of them forgetting all caches now and then."""
    import perspex as jax

    pieces, end = work(), time.monotonic() + seconds
    errors: list[str] = []
    done = [0] * count

    def run(number: int) -> None:
        rng = random.Random(seed + number)
        while not done[number] or time.monotonic() < end:
            try:
                said = wrong(*rng.choice(pieces))
                if said:
                    errors.append(said)
                if number == 0 and rng.random() < 0.02:
                    jax.clear_caches()
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")
            done[number] += 1

    running = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(10 * seconds + 120)
    stuck = sum(thread.is_alive() for thread in running)
    return {"runs": sum(done), "errors": errors[:5], "stuck": stuck}


def interrupts(count: int, seed: int) -> dict[str, Any]:
    """Interrupts at random moments of the same work: what runs afterwards is right."""
    rng, pieces = random.Random(seed), work()
    errors: list[str] = []
    hit = 0

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(count):
            piece, expected = rng.choice(pieces)
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 0.03))
                for _ in range(50):
                    piece()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                hit += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            said = wrong(piece, expected)
            if said:
                errors.append(said)
    finally:
        signal.signal(signal.SIGALRM, before)
    return {"interrupts": hit, "errors": errors[:5]}


def resident() -> int:
    """The bytes of memory that this process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def memory(kind: str, count: int) -> dict[str, Any]:
    """How memory grows over so many calls, closures or shapes; the first fifth is not counted."""
    import numpy as np

    import perspex as jax
    from perspex import numpy as jnp

    jitted = jax.jit(lambda v: v * 2 + 1)
    x = np.ones(4, np.float32)

    def one(i: int) -> Any:
        if kind == "calls":
            return jitted(x)
        if kind == "closures":
            return jax.jit(lambda v: v + 1)(x)
        return jnp.sum(np.ones(i % count + 1, np.float32))

    start = count // 5
    for i in range(start):
        one(i)
    before = resident()
    for i in range(start, count):
        one(i)
    slope = (resident() - before) / (count - start)
    return {"bytes for each": round(slope), "grows": slope > LEAK[kind]}


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="fuzz.stress")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--interrupts", type=int, default=200)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--closures", type=int, default=2_000)
    parser.add_argument("--shapes", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    order = lock_order.watch()
    said: dict[str, Any] = {"seed": given.seed}
    if given.threads:
        said["threads"] = threads(given.threads, given.seconds, given.seed)
    if given.interrupts:
        said["interrupts"] = interrupts(given.interrupts, given.seed)
    for kind in LEAK:
        if getattr(given, kind):
            said[kind] = memory(kind, getattr(given, kind))
    said["locks"] = {"taken": order.taken, "cycles": order.cycles()}
    print(json.dumps(said))
    parts = [part for part in said.values() if isinstance(part, dict)]
    bad = ("errors", "stuck", "grows", "cycles")
    return int(any(part.get(key) for part in parts for key in bad))


if __name__ == "__main__":
    sys.exit(main())

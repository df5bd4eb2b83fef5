"""What it costs that loops can be stopped, and how soon an interrupt gives a notebook back.

    python benchmarks/stoppable.py loops        30 loops, watched and not: ratios, same bits
    python benchmarks/stoppable.py interrupts   40 programs in a kernel, stopped at random
    python benchmarks/stoppable.py turns        loops of seconds, plain and under `watch_loops`

The first prints the ratio of the best times of each loop, taken in turns. The second prints how
long each cell went on after the interrupt, and whether the next cell worked.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import perspex
import perspex.numpy as pnp
from perspex import config, lax

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))


def loops() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Functions and their arguments, by name."""
    v8, v1000, m50 = pnp.ones(8), pnp.ones(1000), pnp.eye(50) * 0.5

    def counted(n: int, body: Any) -> Any:
        return lambda *a: lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, body(c[1])), (0, *a)
        )

    def fori(n: int, body: Any) -> Any:
        return lambda *a: lax.fori_loop(0, n, lambda i, c: body(c), a[0])

    def scan(body: Any, n: int | None = None, **more: Any) -> Any:
        return lambda c, *xs: lax.scan(body, c, xs[0] if xs else None, length=n, **more)

    def cell(a: Any) -> Any:
        return lambda h, u: (pnp.tanh(a @ h + u), h)

    def rnn(a: Any, xs: Any) -> Any:
        return lax.scan(cell(a), pnp.zeros(50), xs)

    def turn(x: Any) -> Any:
        return x @ x + 0.1 * x

    def decay(c: Any, _: Any) -> Any:
        return c * 0.999 + 0.1, c[0]

    def inner(n: int, body: Any) -> Any:
        return lambda c, _: (lax.fori_loop(0, n, lambda i, d: body(d), c), None)

    def short_while(c: Any) -> Any:
        return lax.while_loop(
            lambda s: s[0] < 20, lambda s: (s[0] + 1, pnp.sin(s[1]) * 0.9), (0, c)
        )[1]

    return {
        "while, scalar": (counted(1_000_000, lambda x: x * 1.0000001 + 1), (pnp.float32(1),)),
        "while, 8": (counted(100_000, pnp.sin), (v8,)),
        "while, 1000": (counted(10_000, pnp.sin), (v1000,)),
        "while, 50 x 50": (counted(5_000, turn), (m50,)),
        "while, sum": (
            lambda v: lax.while_loop(lambda c: c.sum() > 1, lambda c: c * 0.999, v),
            (v1000,),
        ),
        "while, bound": (
            lambda v, n: lax.fori_loop(0, n, lambda i, c: pnp.sin(c) * 0.9, v),
            (v8, 200_000),
        ),
        "fori, scalar": (fori(2_000_000, lambda x: x * 1.0000001 + 1), (pnp.float32(0),)),
        "fori, 8": (fori(200_000, pnp.sin), (v8,)),
        "fori, 1000": (fori(20_000, pnp.sin), (v1000,)),
        "fori, 50 x 50": (fori(10_000, turn), (m50,)),
        "fori, at": (
            lambda v: lax.fori_loop(0, 200_000, lambda i, c: c.at[i % 1000].add(1.0), v),
            (v1000,),
        ),
        "fori, 8 turns": (fori(8, pnp.sin), (v8,)),
        "scan, ys": (scan(decay, 50_000), (v1000,)),
        "scan, xs": (scan(lambda c, a: (c * 0.9 + a, c.sum())), (v8, pnp.ones((100_000, 8)))),
        "scan, unroll": (scan(decay, 50_000, unroll=4), (v1000,)),
        "scan, reverse": (scan(decay, 50_001, reverse=True), (v1000,)),
        "scan, recurrent": (rnn, (m50, pnp.ones((20_000, 50)))),
        "scan, 200 x 200": (scan(lambda c, _: (pnp.tanh(c @ c), c.sum()), 200), (pnp.eye(200),)),
        "grad of scan": (
            perspex.grad(lambda v: scan(lambda c, _: (pnp.sin(c), c[0]), 20_000)(v)[0].sum()),
            (v8,),
        ),
        "grad, recurrent": (
            perspex.grad(lambda a, xs: rnn(a, xs)[0].sum()),
            (m50, pnp.ones((5_000, 50))),
        ),
        "vmap of while": (
            perspex.vmap(lambda c: lax.while_loop(lambda c: c < 2, lambda c: c * 1.0001, c)),
            (pnp.linspace(1, 2, 64),),
        ),
        "vmap of fori": (perspex.vmap(fori(50_000, pnp.cos)), (v8,)),
        "scan of short fori": (scan(inner(10, lambda d: d * 0.99 + 0.01), 20_000), (v8,)),
        "scan of long fori": (scan(inner(10_000, pnp.sin), 20), (v8,)),
        "fori of while, 8": (fori(5_000, short_while), (v8,)),
        "fori of while, 1000": (fori(500, short_while), (v1000,)),
        "cond in fori": (
            lambda v: lax.fori_loop(
                0,
                100_000,
                lambda i, c: lax.cond(i % 2 == 0, lambda c: c + 1, lambda c: c * 0.5, c),
                v,
            ),
            (v8,),
        ),
        "keys": (
            scan(lambda c, _: (c, perspex.random.normal(perspex.random.key(0), (8,)) + c), 5_000),
            (v8,),
        ),
        "gamma": (lambda k: perspex.random.gamma(k, 1.3, (5_000,)), (perspex.random.key(0),)),
        "conjugate gradients": (
            lambda a, b: perspex.scipy.sparse.linalg.cg(lambda v: a @ v, b, maxiter=300, tol=0)[0],
            (pnp.diag(pnp.linspace(1, 90, 300)), pnp.ones(300)),
        ),
    }


def cost(seconds: float, only: str, clock: Callable[[], float]) -> None:
    """Print the ratio of each loop, by a clock."""
    ratios = []
    for name, (function, args) in loops().items():
        if only not in name:
            continue
        made: dict[bool, Any] = {}
        results = {}
        for watched in (False, True):
            config.update("stoppable_loops", watched)
            jitted = made[watched] = perspex.jit(lambda *a, function=function: function(*a))
            results[watched] = [np.asarray(x) for x in perspex.tree.leaves(jitted(*args))]
            jitted(*args)
        same = all(map(np.array_equal, results[False], results[True]))
        best, end, turn = {False: math.inf, True: math.inf}, time.perf_counter() + seconds, 0
        while turn < 10 or time.perf_counter() < end:
            turn += 1
            for watched in (False, True) if turn % 2 else (True, False):
                start = clock()
                perspex.block_until_ready(made[watched](*args))
                best[watched] = min(best[watched], clock() - start)
        ratios.append(best[True] / best[False])
        said = "same bits" if same else "OTHER BITS"
        print(f"{name:22} {1e3 * best[False]:9.3f} ms  {ratios[-1]:.3f}  {said}", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{len(ratios)} loops: geometric mean {mean:.4f}, worst {max(ratios):.3f}")


def long_loops() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Functions whose loops take seconds, and their arguments."""
    v8, v1000, m50, m200 = pnp.ones(8), pnp.ones(1000), pnp.eye(50) * 0.5, pnp.eye(200) * 0.5

    def counted(n: int, body: Any) -> Any:
        return lambda x: lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, body(c[1])), (0, x)
        )

    def fori(n: int, body: Any) -> Any:
        return lambda x: lax.fori_loop(0, n, lambda i, c: body(c), x)

    def decay(c: Any, _: Any) -> Any:
        return c * 0.999 + 0.1, c[0]

    def inner(c: Any) -> Any:
        return lax.fori_loop(0, 1_000, lambda i, d: pnp.sin(d), c)

    return {
        "while, scalar": (counted(200_000_000, lambda x: x * 0.999 + 1), (pnp.float32(1),)),
        "while, 1000": (counted(300_000, pnp.sin), (v1000,)),
        "while, 200 x 200": (counted(5_000, lambda x: x @ x + 0.1 * x), (m200,)),
        "fori, 8": (fori(30_000_000, pnp.sin), (v8,)),
        "fori, 50 x 50": (fori(200_000, lambda x: x @ x + 0.1 * x), (m50,)),
        "fori of fori": (fori(20_000, inner), (v8,)),
        "scan, ys": (lambda c: lax.scan(decay, c, None, length=5_000_000), (v1000,)),
        "scan, xs": (
            lambda c, xs: lax.scan(lambda c, a: (pnp.tanh(c * 0.9 + a), c.sum()), c, xs),
            (v8, pnp.ones((10_000_000, 8))),
        ),
    }


def turns(rounds: int, only: str, clock: Callable[[], float]) -> None:
    """Print what `watch_loops` costs calls of seconds: the ratio of the best times."""
    ratios = []
    for name, (function, args) in long_loops().items():
        if only not in name:
            continue
        jitted, best = perspex.jit(function), {False: math.inf, True: math.inf}
        results, programs = {}, 0
        for number in range(rounds + 1):
            for watched in (False, True) if number % 2 else (True, False):
                seen: list[Any] = []
                with contextlib.ExitStack() as stack:
                    if watched:
                        stack.enter_context(perspex.watch_loops(seen.append, every=0.0))
                    start = clock()
                    found = perspex.block_until_ready(jitted(*args))
                    took = clock() - start
                if number:  # the first one compiles
                    best[watched] = min(best[watched], took)
                programs = len(seen) or programs
                results[watched] = [np.asarray(x) for x in perspex.tree.leaves(found)]
        same = all(map(np.array_equal, results[False], results[True]))
        ratios.append(best[True] / best[False])
        said = "same bits" if same else "OTHER BITS"
        print(
            f"{name:18} {best[False]:6.2f} s  {ratios[-1]:.3f}  {programs:4} programs  {said}",
            flush=True,
        )
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{len(ratios)} loops: geometric mean {mean:.4f}, worst {max(ratios):.3f}")


SETUP = """
import numpy as np, perspex, perspex.numpy as jnp
from perspex import lax
large, small, m = jnp.ones(10_000), jnp.ones(2), jnp.eye(200) * 0.5
def forever(x): return lax.while_loop(lambda c: c.ravel()[0] > -9, lambda c: jnp.sin(c) + c / 2, x)
def many(x): return lax.fori_loop(0, 2_000_000_000, lambda i, c: jnp.sin(c) + c / 2, x)
def rows(x): return lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=10**9)[0]
def nested(x): return lax.scan(lambda c, _: (forever(c), None), x, None, length=5)[0]
def branch(x): return lax.cond(x.ravel()[0] > 0, forever, lambda x: x, x)
def called(x): return perspex.jit(forever)(x) + 1
def mapped(x): return perspex.vmap(forever)(x)
def slope(x): return perspex.jvp(many, (x,), (x,))[1]
"""
_PROGRAMS = ("forever", "many", "rows", "nested", "branch", "called", "mapped", "slope")
_CELLS = (
    "y = perspex.jit({f})({x})\ny.block_until_ready()",
    "y = perspex.jit({f})({x})\nnp.asarray(y)",
    "float(perspex.jit({f})({x}).ravel()[0])",
    "f, y = perspex.jit({f}), {x}\nfor _ in range(50): y = f(y)",
    "y = perspex.jit({f})({x})\nprint(y)",
)


def interrupts(seed: int) -> None:
    """Print how long each cell goes on after its interrupt."""
    from support.session import open_session

    draw, taken, kept, tops = random.Random(seed), [], 0, 0
    with open_session() as session:
        session.ok(SETUP)
        session.run("1 / 0")  # the first traceback imports what shows it
        for i in range(40):
            program = _PROGRAMS[i % len(_PROGRAMS)]
            x = "m" if program == "mapped" else draw.choice(("large", "m"))
            cell = _CELLS[i // len(_PROGRAMS)].format(f=program, x=x)
            session.ok("_stopped = None")
            msg_id = session.send(f"print('started')\n{cell}")
            session.until_output(msg_id, "started")
            time.sleep(1.0 + draw.random())  # it is compiled by then
            start = time.monotonic()
            session.manager.interrupt_kernel()
            ran = session.wait(msg_id, start)
            follows = session.ok("float((large + 1).sum())").text
            has = session.ok("_stopped is not None").text == "True"
            is_top = program in ("forever", "many", "rows", "nested", "mapped")
            tops, kept = tops + is_top, kept + (is_top and has)
            assert ran.ename == "KeyboardInterrupt" and follows == "20000.0"
            taken.append(ran.seconds)
            print(
                f"{i + 1:2} {1e3 * ran.seconds:5.0f} ms  {program:8} {x:6} state: {has}", flush=True
            )
    within = sum(t <= 0.3 for t in taken)
    print(f"{within} of 40 within 300 ms, worst {1e3 * max(taken):.0f} ms")
    print(f"the state of {kept} of {tops} loops that are a program's result is kept")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("what", choices=["loops", "interrupts", "turns"])
    parser.add_argument("--seconds", type=float, default=3.0, help="for each loop")
    parser.add_argument("--processor", action="store_true", help="processor time: on busy machines")
    parser.add_argument("--only", default="", help="a part of the names of loops")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    clock = time.process_time if options.processor else time.perf_counter
    if options.what == "loops":
        cost(options.seconds, options.only, clock)
    elif options.what == "turns":
        turns(3, options.only, clock)
    else:
        interrupts(options.seed)


if __name__ == "__main__":
    main()

"""Callbacks in order: in one program, from call to call, and by thread."""

from __future__ import annotations

import contextvars
import functools
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.callbacks import after, note
from support.callbacks import nothing_left as nothing_left
from support.callbacks import seen as seen

import perspex
from perspex import debug, jit, lax
from perspex import numpy as pnp
from perspex.experimental import io_callback


def ordered_program(say: Callable[..., Any], x: Any, n: Any) -> Any:
    say("start", x)

    def turn(state: Any) -> Any:
        i, y = state
        say("turn", i)

        def inner(c: Any, j: Any) -> Any:
            say("inner", j)
            return c + j, None

        y, _ = lax.scan(inner, y, pnp.arange(2))
        y = lax.cond(
            i % 2 == 0, lambda y: (say("even", i), y + 1)[1], lambda y: (say("odd", i), y)[1], y
        )
        return i + 1, y

    def more(state: Any) -> Any:
        say("more?", state[0])
        return state[0] < n

    _, y = lax.while_loop(more, turn, (0, x))
    return jit(lambda y: (say("end", y), y * 2)[1])(y)


def ordered_trail(x: int, n: int) -> list[Any]:
    trail: list[Any] = [("start", x), ("more?", 0)]
    for i in range(n):
        trail += [("turn", i), ("inner", 0), ("inner", 1), ("even" if i % 2 == 0 else "odd", i)]
        x += 1 + (i % 2 == 0)
        trail.append(("more?", i + 1))
    return [*trail, ("end", x)]


@pytest.mark.parametrize("donate", [False, True])
def test_order_in_one_program_and_from_call_to_call(seen: list[Any], donate: bool) -> None:
    def say(tag: str, x: Any) -> None:
        note(seen, x, ordered=True, tag=tag)

    f = jit(lambda x, n: ordered_program(say, x, n), donate_argnums=(0,) if donate else ())
    g = jit(lambda x: say("g", x))

    def run() -> Any:
        x, outs = pnp.int32(3), []
        for n in (2, 0, 3):
            x = f(x, n)
            g(n)
            say("eager", n)
            outs.append(int(x) if not donate else None)
        return outs

    x, expected = 3, []
    for n in (2, 0, 3):
        trail = ordered_trail(x, n)
        x = 2 * trail[-1][1]
        expected += [*trail, ("g", n), ("eager", n)]
    assert after(seen, run) == expected
    assert after(seen, run) == expected


@pytest.mark.parametrize("check", [False, True])
def test_on_one_device_a_mapped_function_has_an_order(seen: list[Any], check: bool) -> None:
    mesh = perspex.make_mesh((1,), ("i",), axis_types=(perspex.sharding.AxisType.Auto,))
    specs = {"in_specs": perspex.P("i"), "out_specs": perspex.P("i"), "check_vma": check}

    def f(x: Any) -> Any:
        say = functools.partial(note, seen, ordered=True)
        return ordered_program(lambda tag, x: say(x, tag=tag), x, 2)

    mapped = perspex.shard_map(lambda x: f(x[0])[None], mesh=mesh, **specs)
    trail = ordered_trail(3, 2)
    for call in (mapped, jit(mapped), perspex.pmap(f, axis_name="i")):
        outs: list[Any] = []
        assert after(seen, lambda call=call, outs=outs: outs.append(call(np.int32([3])))) == trail
        assert outs[0].tolist() == [trail[-1][1] * 2]


def test_io_in_order_with_results() -> None:
    count = iter(range(100))

    @jit
    def f(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            i = io_callback(lambda: np.int32(next(count)), pnp.int32(0), ordered=True)
            return c + 1, i

        c, rows = lax.scan(step, x, length=4)
        return c, rows, io_callback(lambda: np.int32(next(count)), pnp.int32(0), ordered=True)

    for first in (0, 5):
        c, rows, last = f(1)
        assert (int(c), rows.tolist(), int(last)) == (5, list(range(first, first + 4)), first + 4)


def test_each_thread_has_an_order_of_its_own(seen: list[Any]) -> None:
    f = jit(lambda x: note(seen, x, ordered=True))

    def work(base: int) -> None:
        for i in range(20):
            f(base + i)

    def run() -> None:
        threads = [threading.Thread(target=work, args=(base,)) for base in (0, 100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = after(seen, run)
    assert [x for x in found if x < 100] == list(range(20))
    assert [x for x in found if x >= 100] == list(range(100, 120))


def test_a_callback_runs_in_the_context_of_its_caller() -> None:
    """Also where another thread has started the same program since."""
    caller: contextvars.ContextVar[int] = contextvars.ContextVar("caller", default=-1)
    inside, calling = threading.Event(), threading.Event()
    found: list[tuple[int, int]] = []

    def meet(x: Any) -> None:
        inside.set()
        assert calling.wait(60)
        time.sleep(0.2)  # until the other call has got as far as it can

    @jit
    def f(x: Any) -> Any:
        debug.callback(meet, x, ordered=True)
        debug.callback(lambda x: found.append((int(x), caller.get())), x, ordered=True)
        return x + 1

    def work(me: int) -> None:
        caller.set(me)
        if me:
            calling.set()
        program(np.int32(me))
        perspex.effects_barrier()

    # Jaxlib's C++ lets only one thread in with arguments of these types.
    program = f.lower(np.int32(0)).compile()
    threads = [threading.Thread(target=work, args=(me,)) for me in range(2)]
    threads[0].start()
    assert inside.wait(60)
    threads[1].start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(0, 0), (1, 1)]

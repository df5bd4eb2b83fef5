"""Callbacks and effects: how often they happen, in which order, with what values; how they fail.

What is expected is written as the Python program that the compiled one stands for.
"""

from __future__ import annotations

import contextvars
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perspex
from perspex import debug, jit, lax, make_jaxpr, pure_callback, random, vmap
from perspex import numpy as pnp
from perspex.errors import JaxRuntimeError
from perspex.experimental import io_callback
from perspex.ir.jaxpr import Jaxpr
from perspex.runtime import callbacks
from perspex.runtime.callbacks import cancel_effects

F32 = perspex.ShapeDtypeStruct((), np.float32)


@pytest.fixture
def seen() -> list[Any]:
    return []


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    cancel_effects()


def note(seen: list[Any], *values: Any, ordered: bool = False, tag: Any = None) -> None:
    """Remember values, as Python numbers, when the program gets here."""

    def write(*arrays: Any) -> None:
        found = [np.asarray(x).tolist() for x in arrays]
        seen.append((tag, *found) if tag is not None else found[0] if len(found) == 1 else found)

    debug.callback(write, *values, ordered=ordered)


def after(seen: list[Any], f: Callable[[], Any]) -> list[Any]:
    """What `f()` leaves in `seen` once all has happened."""
    seen.clear()
    f()
    perspex.effects_barrier()
    return list(seen)


# ---- Printing -----------------------------------------------------------------------------------


def shows(x: Any) -> None:
    debug.print("x {} {y:.2f} {name}", x, y=x * 2, name="static")


@pytest.mark.parametrize("wrap", [lambda f: f, jit, lambda f: jit(jit(f))])
def test_print(wrap: Any, capsys: pytest.CaptureFixture[str]) -> None:
    f = wrap(shows)
    for x in (1.5, 2.5, 1.5):
        f(x)
        perspex.effects_barrier()
        assert capsys.readouterr().out == f"x {x} {2 * x:.2f} static\n"


def test_print_of_containers_and_keys(capsys: pytest.CaptureFixture[str]) -> None:
    @jit
    def f(x: Any, key: Any) -> None:
        debug.print("{} {} {n}", {"a": x, "b": (1,)}, key, n=None)
        debug.print("braces are {{}} {}", 1)

    f(pnp.arange(2), random.key(7))
    perspex.effects_barrier()
    lines = capsys.readouterr().out.splitlines()
    assert "{'a': Array([0, 1], dtype=int32), 'b': (Array(1, dtype=int32),)}" in lines[0]
    assert "key<fry>" in lines[0] and lines[1] == "[0 7] None"
    assert lines[2] == "braces are {} 1"


def test_print_takes_the_print_options_of_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([1 / 3, 2 / 3], np.float32)
    f = jit(lambda x: debug.print("{}", x))
    with np.printoptions(precision=2):
        f(x)
        perspex.effects_barrier()
    f(x)
    perspex.effects_barrier()
    assert capsys.readouterr().out == "[0.33 0.67]\n" * 2


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: debug.print("{} {y}", x), KeyError, "y"),
        (lambda x: debug.print("{} {}", x), IndexError, "out of range"),
        (lambda x: debug.print("{}", x, x), ValueError, "Unused positional"),
        (lambda x: debug.print("{}", x, y=x), ValueError, "f-string"),
        (lambda x: debug.print(x), TypeError, "format string"),
        (lambda x: debug.callback(3, x), TypeError, "must be callable"),
        (lambda x: pure_callback(3, F32, x), TypeError, "must be callable"),
        (lambda x: io_callback(print, None, x, "s"), TypeError, "<class 'str'>"),
        (lambda x: pure_callback(np.sin, 3.0, x), TypeError, "shape and a dtype"),
        (lambda x: pure_callback(np.sin, np.zeros(2), x), ValueError, "64-bit"),
        (lambda x: pure_callback(np.sin, F32, x, vmap_method="no"), ValueError, "vmap_method"),
    ],
)
def test_mistakes_are_found_while_tracing(call: Any, error: Any, match: str) -> None:
    for f in (call, lambda x: make_jaxpr(call)(x)):
        with pytest.raises(error, match=match):
            f(1.0)


# ---- How often ----------------------------------------------------------------------------------


def test_each_call_of_a_compiled_function(seen: list[Any]) -> None:
    @jit
    def f(x: Any) -> Any:
        note(seen, x)
        return x + 1

    assert after(seen, lambda: [f(float(i)) for i in range(5)]) == [0, 1, 2, 3, 4]
    compiled = f.lower(1.0).compile()
    assert after(seen, lambda: [compiled(7.0), compiled(8.0)]) == [7, 8]


def unread_scan(seen: list[Any], x: Any) -> None:
    lax.scan(lambda c, i: (note(seen, c), (c + i, c))[1], x, pnp.arange(3.0))


def unread_fori(seen: list[Any], x: Any) -> None:
    lax.fori_loop(0, 3, lambda i, c: (note(seen, c), c + i)[1], x)


def unread_while(seen: list[Any], x: Any) -> None:
    def body(state: Any) -> Any:
        i, c = state
        note(seen, c)
        return i + 1, c + i

    lax.while_loop(lambda s: s[0] < 3, body, (0.0, x))


def unread_cond(seen: list[Any], x: Any) -> None:
    for i in (0.0, 0.0, 1.0):
        x = x + i
        lax.cond(x > -1, lambda x: note(seen, x), lambda x: None, x)
    lax.cond(x < -1, lambda x: note(seen, x), lambda x: None, x)


def unread_jit(seen: list[Any], x: Any) -> None:
    @jit
    def inner(x: Any, i: Any) -> Any:
        note(seen, x)
        return x + i

    inner(inner(inner(x, 0.0), 1.0), 2.0)


UNREAD = [unread_scan, unread_fori, unread_while, unread_cond, unread_jit]
WAYS = {
    "eager": lambda g: g,
    "jit": jit,
    "jit of jit": lambda g: jit(jit(g)),
    "jvp": lambda g: lambda x: perspex.jvp(g, (x,), (1.0,)),
    "grad": perspex.grad,
}


@pytest.mark.parametrize(
    ("f", "way"),
    # Through a while_loop there is no reverse mode.
    [(f, way) for f in UNREAD for way in WAYS if (f, way) != (unread_while, "grad")],
)
def test_nobody_reads_the_results(f: Any, way: str, seen: list[Any]) -> None:
    """The bodies of what is unread stay for their effects, once for each turn."""

    def g(x: Any) -> Any:
        f(seen, x)
        return pnp.sin(x)

    h = WAYS[way](g)
    assert sorted(after(seen, lambda: h(5.0))) == [5, 5, 6]
    assert sorted(after(seen, lambda: h(5.0))) == [5, 5, 6]


def test_unread_io_stays_and_unread_pure_goes(seen: list[Any]) -> None:
    def remember(x: Any) -> Any:
        seen.append(float(x))
        return np.float32(x)

    @jit
    def f(x: Any) -> Any:
        io_callback(remember, F32, x)
        pure_callback(remember, F32, x + 10)
        return x

    assert after(seen, lambda: f(1.0)) == [1.0]


def primal(x: Any, seen: list[Any]) -> Any:
    note(seen, x, tag="start")

    def step(c: Any, i: Any) -> Any:
        note(seen, c, tag="step")
        note(seen, tag="constant")
        return pnp.sin(c) * i, None

    y, _ = lax.scan(step, x, pnp.arange(1.0, 3.0))
    y = lax.cond(y > 0, lambda y: (note(seen, y, tag="branch"), y * y)[1], lambda y: y, y)
    return jit(lambda y: (note(seen, y, tag="end"), y**3)[1])(y)


def primal_trail(x: float) -> list[Any]:
    trail: list[Any] = [("start", x)]
    for i in (1.0, 2.0):
        trail += [("step", x), ("constant",)]
        x = np.sin(x) * i
    trail.append(("branch", x))
    return [*trail, ("end", x * x)]


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: perspex.grad(f),
        lambda f: jit(perspex.grad(f)),
        lambda f: perspex.grad(jit(f)),
        lambda f: perspex.value_and_grad(perspex.checkpoint(f)),
        lambda f: lambda x: perspex.jvp(f, (x,), (1.0,)),
        lambda f: jit(lambda x: perspex.jvp(f, (x,), (1.0,))),
        lambda f: lambda x: perspex.vjp(f, x)[1](1.0),
        lambda f: perspex.grad(perspex.grad(f)),
        lambda f: lambda x: perspex.linearize(f, x)[1](1.0),
        lambda f: perspex.jacfwd(f),
    ],
)
def test_derivatives_see_the_forward_pass_once(transform: Any, seen: list[Any]) -> None:
    g = transform(lambda x: primal(x, seen))
    for _ in range(2):
        found = sorted(after(seen, lambda: g(0.7)))
        for mine, theirs in zip(found, sorted(primal_trail(0.7)), strict=True):
            assert mine[0] == theirs[0]
            np.testing.assert_allclose(mine[1:], theirs[1:], rtol=1e-5)


def test_while_under_linearize(seen: list[Any]) -> None:
    def f(x: Any) -> Any:
        def body(state: Any) -> Any:
            note(seen, state[0], ordered=True)
            return state[0] + 1, pnp.sin(state[1])

        return lax.while_loop(lambda s: s[0] < 3, body, (0, x))[1]

    assert after(seen, lambda: perspex.linearize(f, 1.0)[1](1.0)) == [0, 1, 2]
    assert after(seen, lambda: perspex.jvp(f, (1.0,), (1.0,))) == [0, 1, 2]


def test_custom_rules_hold_callbacks(seen: list[Any]) -> None:
    @perspex.custom_jvp
    def f(x: Any) -> Any:
        note(seen, x, ordered=True, tag="f")
        return pure_callback(np.sin, F32, x)

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        note(seen, x, ordered=True, tag="rule")
        return f(x), pure_callback(np.cos, F32, x) * t

    for wrap in (lambda g: g, jit):
        g, dg = wrap(f), wrap(perspex.grad(f))
        assert after(seen, lambda g=g: g(0.5)) == [("f", 0.5)]
        assert after(seen, lambda g=dg: g(0.5)) == [("rule", 0.5), ("f", 0.5)]
        np.testing.assert_allclose(dg(0.5), np.cos(0.5), rtol=1e-6)


def test_other_rules_hold_callbacks(seen: list[Any]) -> None:
    @perspex.custom_vjp
    def f(x: Any) -> Any:
        note(seen, x, ordered=True, tag="f")
        return x * x

    def forward(x: Any) -> Any:
        note(seen, x, ordered=True, tag="forward")
        return x * x, x

    def backward(x: Any, ct: Any) -> Any:
        note(seen, ct, ordered=True, tag="backward")
        return (2 * x * ct,)

    f.defvjp(forward, backward)

    def solve(_: Any, b: Any) -> Any:
        note(seen, b, ordered=True, tag="solve")
        return b / 4

    def newton(g: Any, x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            note(seen, x, ordered=True, tag="newton")
            return x - g(x) / (2 * x)

        return lax.fori_loop(0, 2, step, x)

    def square_root(y: Any) -> Any:
        return lax.custom_root(lambda x: x * x - y, 1.0, newton, lambda g, y: y / g(1.0))

    quotient = lambda b: lax.custom_linear_solve(lambda x: 4 * x, b, solve, symmetric=True)  # noqa: E731
    for wrap in (lambda g: g, jit):
        h, g = wrap(f), wrap(perspex.grad(f))
        assert after(seen, lambda h=h: h(3.0)) == [("f", 3.0)]
        assert after(seen, lambda g=g: g(3.0)) == [("forward", 3.0), ("backward", 1.0)]
        g = wrap(perspex.grad(quotient))
        assert after(seen, lambda g=g: g(3.0)) == [("solve", 3.0), ("solve", 1.0)]
        g = wrap(perspex.value_and_grad(square_root))
        assert after(seen, lambda g=g: g(2.0)) == [("newton", 1.0), ("newton", 1.5)]


# ---- Order --------------------------------------------------------------------------------------


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


# ---- vmap ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
@pytest.mark.parametrize("ordered", [False, True])
def test_vmap_of_debugging(wrap: Any, ordered: bool, seen: list[Any]) -> None:
    def f(x: Any, y: Any) -> Any:
        note(seen, x, y, ordered=ordered)
        note(seen, y, ordered=ordered)
        return x

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    g = wrap(vmap(f, in_axes=(1, None)))
    expected: list[Any] = [[x[:, i].tolist(), 5.0] for i in range(3)]
    found = after(seen, lambda: g(x, 5.0))
    assert [row for row in found if row != 5.0] == expected
    assert found.count(5.0) == 1
    assert after(seen, lambda: wrap(vmap(f, in_axes=(1, None)))(x[:, :0], 5.0)) == [5.0]


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((2,), ())] * 3),
        ("sequential_unrolled", [((2,), ())] * 3),
        ("expand_dims", [((3, 2), (1,))]),
        ("broadcast_all", [((3, 2), (3,))]),
        ("legacy_vectorized", [((3, 2), ())]),
    ],
)
def test_vmap_of_pure_callback(method: str, shapes: list[Any], wrap: Any, seen: list[Any]) -> None:
    def host(x: Any, y: Any) -> Any:
        seen.append((x.shape, y.shape))
        y = np.asarray(y)
        return np.asarray(x) * (y[:, None] if y.ndim else y), np.asarray(x).sum(-1)

    def f(x: Any, y: Any) -> Any:
        out = (perspex.ShapeDtypeStruct((2,), np.float32), F32)
        return pure_callback(host, out, x, y, vmap_method=method)

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    found, sums = wrap(vmap(f, in_axes=(1, None)))(x, 2.0)
    np.testing.assert_array_equal(found, x.T * 2)
    np.testing.assert_array_equal(sums, x.sum(0))
    assert seen == shapes


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_vmap_of_io(wrap: Any, seen: list[Any]) -> None:
    def f(x: Any) -> Any:
        return io_callback(lambda x: (seen.append(float(x)), np.float32(x) + 1)[1], F32, x)

    assert wrap(vmap(f))(np.arange(3.0, dtype=np.float32)).tolist() == [1.0, 2.0, 3.0]
    assert sorted(seen) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda x: io_callback(print, None, x, ordered=True), ValueError),
        (lambda x: pure_callback(np.sin, F32, x), NotImplementedError),
        (
            lambda x: lax.cond(x > 1, lambda x: io_callback(print, None, x), lambda x: None, x),
            NotImplementedError,
        ),
        (
            lambda x: lax.while_loop(
                lambda c: c < x, lambda c: (io_callback(print, None, c), c + 1)[1], 0.0
            ),
            NotImplementedError,
        ),
    ],
)
def test_what_vmap_refuses(f: Any, error: Any) -> None:
    with pytest.raises(error, match="(?i)vmap"):
        vmap(f)(np.arange(3.0, dtype=np.float32))


def test_vmap_of_loops_and_branches(seen: list[Any]) -> None:
    def f(n: Any) -> Any:
        lax.cond(n > 1, lambda n: note(seen, n, tag="T"), lambda n: note(seen, n, tag="F"), n)
        return lax.while_loop(lambda c: c < n, lambda c: (note(seen, c), c + 1)[1], 0)

    found = after(seen, lambda: vmap(f)(np.array([1, 2])))
    # Both branches run for all examples, and the loop for all of them until the last one is done.
    assert sorted(found[:4]) == [("F", 1), ("F", 2), ("T", 1), ("T", 2)]
    assert found[4:] == [0, 0, 1, 1]


# ---- Arrays there and back ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6, dtype=np.int8).reshape(2, 3),
        np.array([True, False]),
        np.array([1.5, 2.5], ml_dtypes.bfloat16),
        np.array([1 + 2j, 3], np.complex64),
        np.zeros((0, 3), np.float32),
        np.float16(2.5),
    ],
    ids=lambda x: x.dtype.name,
)
@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_arrays_arrive_as_they_are(x: Any, wrap: Any, seen: list[Any]) -> None:
    def host(v: Any) -> Any:
        assert isinstance(v, perspex.Array) and v.dtype == x.dtype and v.shape == x.shape
        seen.append(v)
        return v

    like = perspex.ShapeDtypeStruct(x.shape, x.dtype)
    out = wrap(lambda x: pure_callback(host, like, x))(x)
    assert out.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(out), x)
    # They outlive the call. A result without elements needs no call.
    assert len(seen) == 1 or not x.size
    for v in seen:
        np.testing.assert_array_equal(np.asarray(v), x)


def test_keys_arrive_as_keys() -> None:
    f = jit(lambda k: pure_callback(random.normal, F32, k))
    assert float(f(random.key(3))) == float(random.normal(random.key(3)))


def test_keys_come_back_and_are_batched(seen: list[Any]) -> None:
    keys = random.split(random.key(1), 3)
    one = perspex.ShapeDtypeStruct((), keys.dtype)
    f = lambda k: pure_callback(lambda k: random.fold_in(k, 7), one, k, vmap_method="sequential")  # noqa: E731
    expected = random.key_data(vmap(lambda k: random.fold_in(k, 7))(keys))
    for wrap in (lambda g: g, jit):
        np.testing.assert_array_equal(random.key_data(wrap(vmap(f))(keys)), expected)
    g = vmap(lambda k: note(seen, random.key_data(k)))
    assert sorted(after(seen, lambda: jit(g)(keys))) == sorted(random.key_data(keys).tolist())


def test_64_bits(x64: None, seen: list[Any]) -> None:
    like = perspex.ShapeDtypeStruct((), np.float64)

    def host(x: Any) -> Any:
        seen.append(pnp.sin(x).dtype)  # on another thread than the flag was set on
        return np.sin(x)

    out = jit(lambda x: pure_callback(host, like, x))(0.5)
    assert float(out) == np.sin(0.5) and seen == [np.float64]


def test_64_bits_of_numpy_become_32() -> None:
    f = jit(lambda x: pure_callback(lambda x: np.float64(x) / 3, F32, x))
    assert float(f(1.0)) == np.float32(1 / 3)


def test_a_callback_may_compute_with_arrays() -> None:
    inner = jit(lambda x: (pnp.sin(x) @ pnp.cos(x)).sum())

    def host(x: Any) -> Any:
        return inner(x) + pnp.sum(x * 2)

    @jit
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 20, lambda i, c: pure_callback(host, F32, x + c) / 1e5, 0.0)

    x = np.full((30, 30), 0.5, np.float32)
    c = 0.0
    for _ in range(20):
        y = x + c
        c = ((np.sin(y) @ np.cos(y)).sum() + 2 * y.sum()) / 1e5
    np.testing.assert_allclose(f(x), c, rtol=1e-4)


# ---- Failure ------------------------------------------------------------------------------------


def boom(*args: Any) -> Any:
    raise ValueError("on purpose")


FAILING: dict[str, Callable[[Any], Any]] = {
    "pure": lambda x: pure_callback(boom, F32, x),
    "io": lambda x: io_callback(boom, None, x),
    "ordered": lambda x: io_callback(boom, None, x, ordered=True),
    "debug": lambda x: debug.callback(boom, x),
    "in a loop": lambda x: lax.fori_loop(0, 3, lambda i, c: (debug.callback(boom, i), c)[1], x),
}


@pytest.mark.parametrize("f", FAILING.values(), ids=FAILING)
def test_an_exception_names_the_callback_and_the_line(f: Any, seen: list[Any]) -> None:
    with pytest.raises(JaxRuntimeError, match="callback `boom` of .*test_callback.py") as caught:
        perspex.block_until_ready(jit(f)(1.0))
        perspex.effects_barrier()
    assert isinstance(caught.value.__cause__, ValueError)
    frames = caught.value.__cause__.__traceback__
    assert frames is not None and frames.tb_frame.f_code.co_name == "boom"
    cancel_effects()
    # Life goes on, in order too.
    assert after(seen, lambda: [jit(lambda x: note(seen, x, ordered=True))(i) for i in (1, 2)]) == [
        1,
        2,
    ]


@pytest.mark.parametrize("f", list(FAILING.values())[:4], ids=list(FAILING)[:4])
def test_an_exception_outside_every_program_is_itself(f: Any) -> None:
    with pytest.raises(ValueError, match="on purpose"):
        f(1.0)


def test_an_exception_that_comes_later_has_its_cause_too() -> None:
    @jit
    def slow(a: Any) -> Any:
        for _ in range(100):
            a = a @ a / 400
        return a[0, 0]

    big = pnp.ones((400, 400))
    slow(big).block_until_ready()
    f = jit(lambda x: (debug.callback(boom, x), x * 2)[1])
    # The operand takes its time, so the call mostly returns before the callback is called.
    for wait in (float, perspex.block_until_ready, lambda _: perspex.effects_barrier()):
        with pytest.raises(JaxRuntimeError, match="callback `boom`") as caught:
            wait(f(slow(big)))
        assert isinstance(caught.value.__cause__, ValueError)
        perspex.effects_barrier()  # says nothing twice


def test_more_programs_under_way_than_are_kept(seen: list[Any]) -> None:
    f = jit(lambda x: note(seen, x))
    assert sorted(after(seen, lambda: [f(i) for i in range(300)])) == list(range(300))
    assert not callbacks._pending


def test_a_barrier_inside_a_callback_is_refused() -> None:
    with pytest.raises(JaxRuntimeError, match="effects_barrier was called in a callback"):
        jit(lambda: debug.callback(perspex.effects_barrier))()
        perspex.effects_barrier()


@pytest.mark.parametrize(
    ("host", "match"),
    [
        (lambda x: np.zeros(3, np.float32), r"float32\[3\].*says float32\[\]"),
        (lambda x: np.int32(3), r"int32\[\].*says float32\[\]"),
        (lambda x: (x, x), "returned 2 arrays"),
        (lambda x: None, "returned 0 arrays"),
    ],
)
def test_results_must_be_as_promised(host: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        pure_callback(host, F32, 1.0)
    with pytest.raises(JaxRuntimeError, match=match):
        perspex.block_until_ready(jit(lambda x: pure_callback(host, F32, x))(1.0))


def test_no_derivative() -> None:
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        perspex.grad(lambda x: pure_callback(np.sin, F32, x))(1.0)
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        perspex.grad(lambda x: io_callback(np.sin, F32, x))(1.0)
    # Where no derivative reaches them there is nothing to differentiate.
    f = lambda x, y: x * pure_callback(np.sin, F32, y)  # noqa: E731
    np.testing.assert_allclose(perspex.grad(f)(2.0, 0.5), np.sin(0.5), rtol=1e-6)


# ---- Programs -----------------------------------------------------------------------------------


def test_effects_of_programs() -> None:
    def names(f: Callable[..., Any]) -> set[str]:
        jaxpr = make_jaxpr(f)(1.0)
        assert jaxpr.effects == jaxpr.jaxpr.effects
        return {repr(effect) for effect in jaxpr.effects}

    assert names(lambda x: x + 1) == set()
    assert names(lambda x: pure_callback(np.sin, F32, x)) == set()
    assert names(lambda x: debug.print("{}", x)) == {"Debug"}
    assert names(jit(lambda x: debug.print("{}", x, ordered=True))) == {"OrderedDebug"}
    assert names(lambda x: lax.map(lambda i: io_callback(print, None, i), pnp.arange(3))) == {"IO"}

    def many(x: Any) -> Any:
        return lax.cond(
            x > 0,
            lambda x: (io_callback(print, None, ordered=True), x)[1],
            lambda x: lax.while_loop(lambda c: c < 3, lambda c: (shows(c), c + 1)[1], x),
            x,
        )

    assert names(many) == {"OrderedIO", "Debug"}


def test_programs_are_the_same_for_the_same_callback(seen: list[Any]) -> None:
    traced = []

    def body(c: Any, x: Any) -> Any:
        traced.append(1)
        debug.callback(seen.append, c)
        return c + x, None

    def loop() -> Any:
        return lax.scan(lambda c, x: body(c, x), 0.0, pnp.arange(3.0))[0]

    compiled = []
    stop = perspex.events.subscribe(
        lambda event: compiled.append(event.name) if event.kind == "compile" else None
    )
    try:
        loop()
        first = len(compiled)
        loop()
    finally:
        stop()
    # Traced again, as the lambda is a new one, but compiled once.
    assert len(traced) == 2 and len(compiled) == first


def test_jaxprs_without_effects_are_not_touched() -> None:
    def f(x: Any) -> Any:
        debug.callback(print, x)
        pnp.sin(x)
        return x

    jaxpr = make_jaxpr(jit(f))(1.0)
    (eqn,) = jaxpr.eqns
    inner: Jaxpr = eqn.params["jaxpr"].jaxpr
    assert [e.primitive.name for e in inner.eqns] == ["debug_callback", "sin"]
    # A compiled program keeps the call, and only that.
    text = jit(f).lower(1.0).as_text()
    assert "python_cpu_callback" in text and "sine" not in text


def test_the_end_of_the_process_waits() -> None:
    program = """
import time
import perspex, perspex.numpy as pnp
from perspex import lax
def slow(i):
    time.sleep(0.02)
    print("turn", i)
f = perspex.jit(lambda x: lax.fori_loop(
    0, 5, lambda i, c: (perspex.debug.callback(slow, i), c @ c / 100)[1], x))
f(pnp.ones((100, 100)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert sorted(ran.stdout.splitlines()) == [f"turn {i}" for i in range(5)]

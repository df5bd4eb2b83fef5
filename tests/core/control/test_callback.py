"""Callbacks and effects: what they print, how often they happen, and what programs say of them.

What is expected is written as the Python program that the compiled one stands for.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.callbacks import F32, after, note
from support.callbacks import nothing_left as nothing_left
from support.callbacks import seen as seen

import perspex
from perspex import debug, jit, lax, make_jaxpr, pure_callback, random
from perspex import numpy as pnp
from perspex.experimental import io_callback
from perspex.ir.jaxpr import Jaxpr

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


def mapped(f: Any) -> Any:
    mesh = perspex.sharding.Mesh(np.array(perspex.devices()[:1]), ("i",))
    spec = perspex.P("i")
    return perspex.jit(perspex.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec))


@pytest.mark.parametrize("over", [mapped, perspex.pmap])
def test_in_a_map_over_one_device(over: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        perspex.debug.print("x {}", x.sum())
        return perspex.pure_callback(np.cos, x, x) + perspex.lax.psum(x, "i")

    over = functools.partial(over, axis_name="i") if over is perspex.pmap else over
    x = np.array([[0.25, 0.5]], np.float32)
    np.testing.assert_allclose(over(f)(x), np.cos(x) + x, rtol=1e-6)
    perspex.effects_barrier()
    assert capsys.readouterr().out == "x 0.75\n"


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

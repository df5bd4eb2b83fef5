"""Tracing and the IR: what a jaxpr holds, how it is checked, printed and run."""

from __future__ import annotations

import copy
import gc

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex.base import source
from perspex.ir import jaxpr as ir
from perspex.ir.avals import ShapedArray, shaped
from perspex.transforms.dce import dce_jaxpr

F = ShapedArray((3,), np.dtype("float32"))


def test_avals_are_interned() -> None:
    assert ShapedArray([3], "float32") is F
    assert ShapedArray((3,), np.float32, True) is not F
    assert F.update(shape=(2,)) is ShapedArray((2,), "float32")
    assert repr(F) == "ShapedArray(float32[3])" and F.str_short() == "f32[3]"


def test_scalars_are_literals_and_arrays_constants() -> None:
    c = perspex.device_put(np.ones(3, np.float32))
    closed = perspex.make_jaxpr(lambda x: x * 2 + c + np.float32(3) + c)(c)
    assert len(closed.consts) == 1 and closed.consts[0] is c
    literals = [v for e in closed.eqns for v in e.invars if isinstance(v, ir.Literal)]
    assert [float(v.val) for v in literals] == [2.0, 3.0]
    ir.check(closed.jaxpr)


def test_each_equation_knows_its_line() -> None:
    def f(x):
        y = pnp.sin(x)
        return y * 2

    first = f.__code__.co_firstlineno
    eqns = perspex.make_jaxpr(f)(np.ones(3)).eqns
    assert [e.source.frame.line - first for e in eqns] == [1, 2]
    assert source.summary(eqns[0].source).startswith(f"test_staging.py:{first + 1} (")


def test_eval_jaxpr_runs_and_restages() -> None:
    closed = perspex.make_jaxpr(lambda x, y: (pnp.cos(x) * y, y))(np.ones(3), 2.0)
    out = perspex.core.eval_jaxpr(closed.jaxpr, closed.consts, np.zeros(3, np.float32), 4.0)
    np.testing.assert_array_equal(out[0], [4, 4, 4])
    again = perspex.make_jaxpr(
        lambda x, y: perspex.core.eval_jaxpr(closed.jaxpr, closed.consts, x, y)
    )(np.ones(3), 2.0)
    assert str(again) == str(closed)
    with pytest.raises(TypeError, match="takes 2 arguments, got 1"):
        perspex.core.eval_jaxpr(closed.jaxpr, closed.consts, 1.0)


def test_dce_keeps_what_is_needed() -> None:
    closed = perspex.make_jaxpr(lambda x, y: (pnp.sin(x), pnp.cos(y) * 2))(np.ones(3), np.ones(3))
    smaller, needed = dce_jaxpr(closed.jaxpr, [True, False])
    assert needed == [True, False]
    assert [e.primitive.name for e in smaller.eqns] == ["sin"]


def test_check_finds_malformed_programs() -> None:
    good = perspex.make_jaxpr(lambda x: pnp.sin(x) + 1)(np.ones(3)).jaxpr
    ir.check(good)
    with pytest.raises(TypeError, match="before it is bound"):
        ir.check(good.replace(eqns=good.eqns[::-1]))
    with pytest.raises(TypeError, match="bound twice"):
        ir.check(good.replace(eqns=[good.eqns[0], good.eqns[0]]))
    wrong = good.eqns[0].replace(outvars=[ir.Var(ShapedArray((4,), "float32"))])
    with pytest.raises(TypeError, match="has results"):
        ir.check(good.replace(eqns=[wrong], outvars=wrong.outvars))


def test_values_that_are_no_arrays() -> None:
    for bad in ("a", None, object(), [1, 2], np.array(["a"]), np.array([object()])):
        with pytest.raises(TypeError, match="not a valid array"):
            shaped(bad)


def test_deep_programs_do_not_recurse() -> None:
    def f(x):
        for _ in range(5000):
            x = x + 1
        return x

    closed = perspex.make_jaxpr(f)(1.0)
    assert len(closed.eqns) == 5000
    assert len(str(closed).splitlines()) == 5002


def test_ensure_compile_time_eval() -> None:
    @perspex.jit
    def f(x):
        with perspex.ensure_compile_time_eval():
            n = int(pnp.asarray(2) * 2)
        return x * n

    np.testing.assert_array_equal(f(np.ones(2, np.float32)), [4, 4])
    assert len(f.trace(np.ones(2, np.float32)).jaxpr.eqns) == 1


def test_garbage_is_looked_for_more_rarely_while_a_program_is_written() -> None:
    full = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            full.append(phase)

    def f(x):
        full.clear()
        kept = [[i] for i in range(30_000)]  # enough for several full collections
        seen.append((gc.get_threshold(), len(full), len(kept)))
        return x

    def g(x):
        raise ValueError

    before = gc.get_threshold()
    gc.set_threshold(50, 2, 2)
    gc.callbacks.append(note)
    try:
        seen: list = []
        perspex.make_jaxpr(lambda x: perspex.jit(f)(x))(1.0)
        (((young, middle, rare), collections, _),) = seen
        assert (young, middle) == (50, 2) and rare > 2 and not collections
        assert gc.get_threshold() == (50, 2, 2)
        with pytest.raises(ValueError):
            perspex.make_jaxpr(g)(1.0)
        assert gc.get_threshold() == (50, 2, 2)
        # What the user sets meanwhile stays.
        perspex.make_jaxpr(lambda x: (gc.set_threshold(60, 3, 3), x)[1])(1.0)
        assert gc.get_threshold() == (60, 3, 3)
        with pytest.raises(KeyboardInterrupt):
            perspex.make_jaxpr(lambda x: _interrupt())(1.0)
        assert gc.get_threshold() == (60, 3, 3)
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_copies_of_tracers() -> None:
    @perspex.jit
    def f(tree):
        return copy.deepcopy(tree)["x"] + copy.copy(tree["x"])

    assert f({"x": 2.0}) == 4.0


@pytest.mark.parametrize("size", [2, 5_000])  # small constants are written into programs
@pytest.mark.parametrize(
    "wrap",
    [
        perspex.jit,
        perspex.checkpoint,
        lambda f: lambda x: perspex.lax.cond(True, f, pnp.negative, x),
        lambda f: lambda x: perspex.lax.scan(lambda c, y: (c, f(y)), 0, x[None])[1][0],
        lambda f: lambda x: perspex.lax.fori_loop(0, 2, lambda i, y: f(y), x),
        lambda f: lambda x: perspex.vmap(perspex.jit(f))(x[None])[0],
        lambda f: lambda x: perspex.vjp(f, x)[1](x)[0],
    ],
)
def test_constants_of_64_bits_keep_them_outside_of_enable_x64(wrap, size) -> None:
    c = np.full(size, 1 + 2.0**-40)

    def tiny(x):
        with perspex.enable_x64(True):
            wide = x.astype(np.float64)
            return ((wide * c - wide) * 2**40).astype(np.float32)

    x = np.arange(1, size + 1, dtype=np.float32)
    f = wrap(tiny)
    for g in (f, perspex.jit(f)):
        np.testing.assert_array_equal(g(pnp.array(x)), x)

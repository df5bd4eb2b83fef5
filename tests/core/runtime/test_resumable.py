"""Calls in turns: they give what plain calls do, and stop and go on between two turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex import config, events, lax
from perspex.experimental import io_callback
from perspex.runtime import resumable, stopping

X = np.linspace(0.5, 1.0, 500, dtype="float32")


def sines(n: int, x: Any) -> Any:
    """So many turns, each of a millisecond by the estimate, of a counted loop."""
    return lax.fori_loop(0, n, lambda i, c: pnp.sin(c) + c * 0.5 - i * 1e-3, x)


def many(x: Any) -> Any:
    """A loop whose number of turns is not known."""
    return lax.while_loop(lambda c: c[0] < 3_000, lambda c: (c[0] + 1, pnp.sin(c[1]) * 0.9), (0, x))


def rows(x: Any, **options: Any) -> Any:
    def step(c: Any, a: Any) -> Any:
        c = pnp.tanh(c * 0.9 + a)
        return c, {"sum": c.sum(), "first": c[:3]}

    return lax.scan(step, x, pnp.linspace(0, 1, 20_011), **options)


def several(x: Any) -> Any:
    a = many(x * 2)[1] + 1
    _, ys = rows(a)
    b = sines(20_000, ys["first"].sum(0)[0] + x)
    return {"a": a, "b": b, "rows": ys["sum"], "x": x}


@perspex.jit
def inner(x: Any) -> Any:
    return many(x)[1] + 1


# As functions of a vector.
LOOPS: dict[str, Callable[[Any], Any]] = {
    "while": many,
    "fori": lambda x: sines(20_000, x),
    "fori of a traced number": lambda x: lax.fori_loop(
        0, pnp.int32(x[0] * 8_000), lambda i, c: pnp.sin(c) + i * 1e-3, x
    ),
    "fori from a number": lambda x: lax.fori_loop(3, 20_000, lambda i, c: c + x * i, 0.0 * x),
    "scan": rows,
    "scan in reverse": lambda x: rows(x, reverse=True),
    "scan that is unrolled": lambda x: rows(x, unroll=4),
    "scan without xs": lambda x: lax.scan(lambda c, _: (pnp.sin(c), c[0]), x, None, length=200_000),
    "scan of weak numbers": lambda x: lax.scan(
        lambda c, a: (c + 1, (c * 0.5, pnp.cos(a).sum())), 0, pnp.zeros((60_000, 500)) + x[0]
    ),
    "scan without a carry": lambda x: lax.map(lambda a: (a * x).sum(), pnp.arange(100_000.0)),
    "loops in a loop": lambda x: lax.fori_loop(
        0, 30, lambda i, c: sines(700, many(c)[1]) * 0.1 + i, x
    ),
    "one after the other": several,
    "in a jitted function": lambda x: inner(inner(x) * 0.5),
    "a result twice": lambda x: (lambda c: (c, c[1], c[1] * 2, x))(many(x)),
    "nothing before or after": lambda x: lax.while_loop(lambda c: c[0] < 900, lambda c: c + 1, x),
    "of no turns": lambda x: lax.while_loop(lambda c: c[0] < 0, lambda c: c + 1, x),
    "of two same values": lambda x: lax.while_loop(
        lambda c: c[0][0] < 900, lambda c: (c[1] + 1, c[0] + 1), (x, x)
    ),
    "keys": lambda x: lax.fori_loop(
        0,
        2_000,
        lambda i, c: (perspex.random.split(c[0])[0], c[1] + perspex.random.normal(c[0], (500,))),
        (perspex.random.key(0), x),
    )[1],
    "captured arrays": lambda x: lax.fori_loop(0, 20_000, lambda i, c: c * 0.9 + X, x),
    "slopes": lambda x: perspex.grad(lambda x: rows(x)[0].sum())(x),
    "a batch": lambda x: perspex.vmap(
        lambda a: lax.while_loop(lambda c: c < 2, lambda c: c * 1.001, a)
    )(x),
}


@pytest.fixture
def stoppable() -> Iterator[None]:
    before = config.stoppable_loops.value
    config.stoppable_loops.set(True)
    yield
    config.stoppable_loops.set(before)


def bits(tree: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in perspex.tree.leaves(tree)]


@pytest.fixture(autouse=True)
def short_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many programs for each loop: more than one has to be entered again."""
    monkeypatch.setattr(resumable, "_PERIOD", 1e-4)
    monkeypatch.setattr(resumable, "_GROWTH", 7)


@pytest.mark.parametrize("f", LOOPS.values(), ids=LOOPS)
def test_the_results_are_those_of_a_plain_call(f: Callable[[Any], Any]) -> None:
    jitted = perspex.jit(f)
    expected = jitted(X)
    with perspex.watch_loops() as loops:
        found = jitted(X)
    assert loops.moment is not None, "it was made in turns"
    assert perspex.tree.structure(found) == perspex.tree.structure(expected)
    for mine, wanted in zip(perspex.tree.leaves(found), perspex.tree.leaves(expected), strict=True):
        assert mine.aval == wanted.aval
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(wanted))
    # Outside it is a plain call again.
    with perspex.watch_loops() as other:
        pass
    np.testing.assert_array_equal(bits(jitted(X))[0], bits(expected)[0])
    assert other.moment is None


@pytest.mark.parametrize("name", ["while", "scan", "loops in a loop", "one after the other"])
@pytest.mark.usefixtures("stoppable")
def test_the_same_where_loops_can_be_stopped(name: str) -> None:
    test_the_results_are_those_of_a_plain_call(LOOPS[name])


def test_a_program_without_a_loop_is_called_as_it_is() -> None:
    with perspex.watch_loops() as loops:
        np.testing.assert_array_equal(perspex.jit(lambda x: x + 1)(X), X + 1)
        short = perspex.jit(lambda x: lax.fori_loop(0, 8, lambda i, c: c + 1, x))
        np.testing.assert_allclose(short(X), X + 8, rtol=1e-6)
    assert loops.moment is None


def test_the_program_and_its_key_stay_as_they_were() -> None:
    f = perspex.jit(many)
    before, traces = str(f.trace(X).jaxpr), []
    f(X)
    stop = events.subscribe(traces.append, ("trace", "recompile"))
    with perspex.watch_loops():
        f(X)
    f(X)
    stop()
    assert str(f.trace(X).jaxpr) == before
    assert not traces


def test_moments_are_reported() -> None:
    found: list[tuple[Any, ...]] = []

    def report(moment: resumable.Moment) -> None:
        (number, values), tree = moment.values, moment.result
        found.append((moment.turn, int(number), int(tree[0]), np.asarray(values)))
        np.testing.assert_array_equal(values, tree[1])
        assert (moment.program, moment.turns, moment.loop, moment.loops) == ("many", None, 1, 1)
        assert moment.at.startswith("test_resumable.py:")

    with perspex.watch_loops(report, every=0.0) as loops:
        perspex.jit(many)(X)
    turns = [turn for turn, *_ in found]
    assert len(turns) > 3 and turns == sorted(set(turns))
    plain = perspex.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: pnp.sin(c) * 0.9, x))
    expected, reached = X, 0
    for turn, number, same, values in found:
        assert turn == number == same
        expected, reached = plain(expected, turn - reached), turn
        np.testing.assert_array_equal(values, expected)
    assert loops.moment is not None and loops.moment.turn == 3_000


def test_rows_that_a_scan_has_reached() -> None:
    found: list[tuple[int, Any]] = []

    def report(moment: resumable.Moment) -> None:
        assert moment.turns == 20_011
        found.append((moment.turn, np.asarray(moment.result[1]["sum"])))

    f = perspex.jit(rows)
    expected = np.asarray(f(X)[1]["sum"])
    with perspex.watch_loops(report, every=0.0):
        f(X)
    assert len(found) > 1
    for turn, sums in found:
        np.testing.assert_array_equal(sums[:turn], expected[:turn])
        assert not sums[turn:].any()


def test_values_of_a_moment_that_has_passed_are_refused() -> None:
    kept: list[resumable.Moment] = []
    with perspex.watch_loops(kept.append, every=0.0):
        perspex.jit(many)(X)
    with pytest.raises(RuntimeError, match="has gone on since turn"):
        _ = kept[0].values


class _End(Exception):
    """What a report raises."""


@pytest.mark.parametrize("name", ["while", "scan", "one after the other", "in a jitted function"])
@pytest.mark.parametrize("error", [_End, KeyboardInterrupt])
def test_a_call_that_was_ended_goes_on(name: str, error: type[BaseException]) -> None:
    """As often as its loops have moments, each time from where it was."""
    f = perspex.jit(LOOPS[name])
    expected = bits(f(X))
    ends, last = 0, (0, 0)

    def report(moment: resumable.Moment) -> None:
        nonlocal last
        if (moment.loop, moment.turn) > last:
            last = moment.loop, moment.turn
            raise error

    found: Any = None
    with perspex.watch_loops(report, every=0.0) as loops:
        call: Callable[[], Any] = lambda: f(X)  # noqa: E731
        while found is None:
            try:
                found = call()
            except error:
                ends, call = ends + 1, loops.resume
                assert loops.moment is not None
                assert len(perspex.tree.leaves(loops.moment.result)) <= len(expected)
    assert ends > 3
    for mine, wanted in zip(bits(found), expected, strict=True):
        np.testing.assert_array_equal(mine, wanted)
    with pytest.raises(RuntimeError, match="nothing to go on with"):
        loops.resume()


def test_results_that_come_later_are_missing() -> None:
    def report(moment: resumable.Moment) -> None:
        if moment.loop == 2:
            raise _End

    with perspex.watch_loops(report, every=0.0) as loops, pytest.raises(_End):
        perspex.jit(several)(X)
    assert loops.moment is not None
    found = loops.moment.result
    expected = perspex.jit(several)(X)
    np.testing.assert_array_equal(found["a"], expected["a"])
    assert found["b"] is None
    turn = loops.moment.turn
    np.testing.assert_array_equal(found["rows"][:turn], expected["rows"][:turn])


@pytest.mark.filterwarnings("error")
def test_donated_arguments_are_taken_along() -> None:
    f = perspex.jit(many, donate_argnums=0)
    expected = bits(f(pnp.array(X)))
    with perspex.watch_loops():
        x = pnp.array(X)
        found = bits(f(x))
        assert x.is_deleted()
    np.testing.assert_array_equal(found[1], expected[1])


def test_other_arguments_stay() -> None:
    x = pnp.array(X)
    with perspex.watch_loops(lambda moment: moment.values, every=0.0):
        y = perspex.jit(lambda x: (x, lax.while_loop(lambda c: c[0] < 900, lambda c: c + 1, x)))(x)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y[0], X)


def test_effects_happen_once_and_in_order() -> None:
    seen: list[tuple[str, int]] = []

    def tell(what: str, i: Any) -> None:
        io_callback(lambda i: seen.append((what, int(i))), None, i, ordered=True)

    @perspex.jit
    def f(x: Any) -> Any:
        tell("before", 0)

        def body(c: Any) -> Any:
            tell("in", c[0])
            return c[0] + 1, pnp.sin(c[1])

        c = lax.while_loop(lambda c: c[0] < 20, body, (0, x))
        tell("after", c[0])
        return c

    f(X)
    perspex.effects_barrier()
    expected = [("before", 0), *[("in", i) for i in range(20)], ("after", 20)]
    assert seen == expected
    seen.clear()
    with perspex.watch_loops() as loops:
        f(X)
        perspex.effects_barrier()
    assert loops.moment is not None and loops.moment.turn == 20
    assert seen == expected


def test_refs_are_written() -> None:
    ref = perspex.new_ref(pnp.zeros(500))

    @perspex.jit
    def f(x: Any) -> Any:
        ref[...] = many(x)[1] + ref[...]

    with perspex.watch_loops() as loops:
        f(X)
    assert loops.moment is not None
    np.testing.assert_array_equal(ref[...], perspex.jit(many)(X)[1])


def test_an_interrupt_within_a_program_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The results of a program are there before Python sees the interrupt."""
    f = perspex.jit(many)
    expected = bits(f(X))
    launched, calls = stopping.launched, []

    def launch(*args: Any) -> Any:
        found = launched(*args)
        calls.append(0)
        if len(calls) in (3, 5):
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(stopping, "launched", launch)
    with perspex.watch_loops() as loops:
        with pytest.raises(KeyboardInterrupt):
            f(X)
        assert loops.moment is not None and loops.moment.turn > 1
        assert loops.moment.turn == int(loops.moment.result[0])
        with pytest.raises(KeyboardInterrupt):
            loops.resume()
        found = bits(loops.resume())
    np.testing.assert_array_equal(found[1], expected[1])


def test_one_context_in_another() -> None:
    with perspex.watch_loops() as outer:
        with perspex.watch_loops() as inner_loops:
            perspex.jit(many)(X)
        assert outer.moment is None and inner_loops.moment is not None
        perspex.jit(many)(X)
        assert outer.moment is not None

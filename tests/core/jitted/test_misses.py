"""Why a function is compiled again: all the nearest earlier calls, and nothing that did not differ.

What differs is written down by hand, or counted by a reference that knows the calls only by the
properties they were made of.
"""

from __future__ import annotations

import gc
import time
import types
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.undisturbed import undisturbed

import perspex
import perspex.numpy as pnp
from perspex import config
from perspex.base import events
from perspex.jitted import misses
from perspex.jitted.comparing import compare
from perspex.jitted.compiled import build
from perspex.jitted.differences import MOST_TOLD, Difference
from perspex.jitted.signature import Key, Options

F = np.float32


@pytest.fixture
def seen() -> Iterator[list[events.Event]]:
    found: list[events.Event] = []
    stop = events.subscribe(found.append, ["cache", "recompile"])
    yield found
    stop()


def told(event: events.Event) -> set[tuple[tuple[str, str, str, str], ...]]:
    """The differences of an event from each of the nearest calls, in texts."""
    return {
        tuple(sorted((d.kind, d.name, *d.texts) for d in differences))
        for way in event.data["differences"]
        for differences in way.latest
    }


def last_miss(seen: list[events.Event]) -> events.Event:
    return [e for e in seen if e.kind == "cache" and not e.data["hit"]][-1]


def recompiles(seen: list[events.Event]) -> list[events.Event]:
    return [e for e in seen if e.kind == "recompile"]


def ones(*shape: int, dtype: Any = F) -> np.ndarray:
    return np.ones(shape, dtype)


class Call(tuple):
    """Arguments of a call."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Call:
        return super().__new__(cls, (args, kwargs))


def fun(x, n=1, *more, mode="a", **named):
    return x


w, b, deep = {"w": F(1)}, {"w": F(1), "b": F(1)}, {"w": [F(1), (F(2),)]}
CASES = [
    # Earlier calls, the new one, and what differs from each of the nearest.
    (
        [Call(ones(3)), Call(ones(2, 2))],
        Call(ones(4)),
        {(("shape", "x", "f32[3]", "f32[4]"),), (("shape", "x", "f32[2,2]", "f32[4]"),)},
    ),
    ([Call(ones(3))], Call(ones(3, dtype=np.int32)), {(("dtype", "x", "f32[3]", "i32[3]"),)}),
    (
        [Call(ones(3))],
        Call(ones(4, dtype=np.int32)),
        {(("dtype", "x", "f32[3]", "i32[4]"), ("shape", "x", "f32[3]", "i32[4]"))},
    ),
    ([Call(F(1))], Call(1.0), {(("weak_type", "x", "f32[]", "f32[] (weakly typed)"),)}),
    ([Call(1)], Call(1.0), {(("dtype", "x", "i32[]", "f32[]"),)}),
    ([Call(1)], Call(F(1)), {(("dtype", "x", "i32[] (weakly typed)", "f32[]"),)}),
    ([Call({"a": w})], Call({"a": b}), {(("tree", "x['a']", "{'w'}", "{'b', 'w'}"),)}),
    (
        [Call(deep)],
        Call({"w": [F(1), (F(2), F(3))]}),
        {(("tree", "x['w'][1]", "(*,)", "(*, *)"),)},
    ),
    ([Call([F(1)])], Call((F(1),)), {(("tree", "x", "[*]", "(*,)"),)}),
    ([Call(F(1), 1)], Call(F(1), 2), {(("number", "n", "1", "2"),)}),
    ([Call(F(1), 1)], Call(F(1), n=1), {(("keyword", "n", "position", "keyword"),)}),
    ([Call(F(1))], Call(F(1), 1), {(("argument", "n", "not given", "1"),)}),
    (
        [Call(F(1), 1, ones(2))],
        Call(F(1), 1, ones(2), ones(3)),
        {(("argument", "more[1]", "not given", "f32[3]"),)},
    ),
    (
        [Call(F(1), 1, ones(2))],
        Call(F(1), 1, ones(3)),
        {(("shape", "more[0]", "f32[2]", "f32[3]"),)},
    ),
    (
        [Call(F(1), mode="a"), Call(F(1), mode=True)],
        Call(F(1), mode="b"),
        {(("static", "mode", "'a'", "'b'"),), (("static", "mode", "True", "'b'"),)},
    ),
    (
        [Call(F(1), other=ones(2))],
        Call(F(1), other=ones(3)),
        {(("shape", "other", "f32[2]", "f32[3]"),)},
    ),
    (
        [Call(F(1), other=ones(2))],
        Call(F(1), another=ones(2)),
        {
            (
                ("argument", "another", "not given", "f32[2]"),
                ("argument", "other", "f32[2]", "not given"),
            )
        },
    ),
]


def own_copy(function: Any) -> Any:
    """A function whose code object no other test has seen."""
    code = function.__code__.replace()
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


@pytest.mark.parametrize(("earlier", "new", "expected"), CASES)
def test_what_differs(seen, earlier, new, expected) -> None:
    f = perspex.jit(own_copy(fun), static_argnames=("n", "mode"))
    for args, kwargs in [*earlier, new]:
        f(*args, **kwargs)
    assert told(last_miss(seen)) == expected
    assert told(recompiles(seen)[-1]) == expected


def test_a_new_combination_of_known_values(seen) -> None:
    # Run with `jax_explain_cache_misses`, JAX 0.12 says of the third call: "different input types:
    # at x, now f32[3] and before f32[4]", though f32[3] is what the first call had.
    f = perspex.jit(own_copy(fun), static_argnames="n")
    f(ones(3), n=1)
    f(ones(4), n=2)
    assert recompiles(seen)[0].data["combination"] is False
    f(ones(3), n=2)
    event = recompiles(seen)[1]
    assert event.data["combination"] is True
    assert told(event) == {
        (("number", "n", "1", "2"),),
        (("shape", "x", "f32[4]", "f32[3]"),),
    }
    assert event.data["cause"].startswith("new combination: ")
    f(ones(3), n=3)
    assert recompiles(seen)[2].data["combination"] is False


def test_a_combination_with_a_single_nearest_call(seen) -> None:
    f = perspex.jit(own_copy(fun), static_argnames=("n", "mode"))
    f(ones(3), n=1, mode="a")
    f(ones(4), n=2, mode="b")
    f(ones(3), n=2, mode="a")
    event = recompiles(seen)[1]
    assert told(event) == {(("number", "n", "1", "2"),)}
    assert event.data["combination"] is True


def test_what_an_absent_argument_has_was_not_seen(seen) -> None:
    f = perspex.jit(own_copy(fun))
    f(ones(3))
    f(ones(3), y=ones(3))
    f(ones(3), y=ones(2))
    assert recompiles(seen)[-1].data["combination"] is False
    f(ones(4), y=ones(2))
    assert recompiles(seen)[-1].data["combination"] is False
    f(ones(4))
    assert recompiles(seen)[-1].data["combination"] is True


def test_order_of_static_keywords_is_no_difference(seen) -> None:
    traced = []

    def f(x, **named):
        traced.append(1)
        return x

    g = perspex.jit(f, static_argnames=("a", "b"))
    g(F(1), a=1, b=2)
    g(F(1), b=2, a=1)
    assert len(traced) == 1 and not recompiles(seen)


class Plain:
    """Objects that are equal only to themselves."""


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@pytest.mark.parametrize("make", [Plain, Broken, lambda: lambda x: x])
def test_fresh_static_objects(seen, make) -> None:
    f = perspex.jit(own_copy(fun), static_argnames="mode")
    for _ in range(2):
        f(F(1), mode=make())
    ((difference,),) = recompiles(seen)[0].data["differences"][0].latest
    assert difference.name == "mode"
    assert difference.kind == "object" and " at 0x" not in difference.texts[0]


class LikeAnArray:
    """Compares element by element."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        return ones(3) == ones(3)

    def __ne__(self, other: object) -> Any:
        return ones(3) != ones(3)


@perspex.tree_util.register_pytree_node_class
class Node:
    def __init__(self, x: Any, kept: Any) -> None:
        self.x, self.kept = x, kept

    def tree_flatten(self) -> Any:
        return (self.x,), self.kept

    @classmethod
    def tree_unflatten(cls, kept: Any, children: Any) -> Any:
        return cls(children[0], kept)


def test_classes_of_users_cannot_break_the_call(seen) -> None:
    f = perspex.jit(own_copy(fun), static_argnames="mode")
    for mode in (LikeAnArray(), LikeAnArray(), Broken()):
        np.testing.assert_array_equal(f(ones(2), mode=mode), [1, 1])
    for kept in (Broken(), Broken()):
        np.testing.assert_array_equal(f(Node(ones(2), kept)).x, [1, 1])
    f({Broken: ones(1)})
    assert [e.data["hit"] for e in seen if e.kind == "cache" and e.name == "fun"] == [False] * 6
    assert len(recompiles(seen)) == 5


def test_texts_of_values_are_short(seen) -> None:
    f = perspex.jit(own_copy(fun), static_argnames="mode")
    f(F(1), mode="a" * 10_000)
    f(F(1), mode=tuple(range(10_000)))
    ((difference,),) = recompiles(seen)[0].data["differences"][0].latest
    assert all(len(text) <= 60 for text in difference.texts)
    assert len(recompiles(seen)[0].data["cause"]) < 200


def test_flags_and_devices(seen) -> None:
    f = perspex.jit(own_copy(fun))
    f(ones(3))
    with config.enable_x64(True):
        f(ones(3))
    assert told(recompiles(seen)[-1]) == {(("config", "enable_x64", "False", "True"),)}
    device = perspex.devices()[0]
    f(perspex.device_put(ones(3), device))
    (way,) = told(recompiles(seen)[-1])
    assert way == (("device", "", f"{device} (not committed)", f"{device} (committed)"),)


def test_a_device_that_follows_from_a_flag_is_no_difference_of_its_own() -> None:
    _, owner = build(own_copy(fun), Options())
    before = owner.call((ones(3),), {}).signature
    with config.default_device(perspex.devices()[0]):
        after = owner.call((ones(3),), {}).signature
    changed = compare((after, "cpu:1", False), [(before, "cpu:0", False)], fun)
    assert [d.kind for d in changed.ways[0].latest[0]] == ["config"]
    moved = compare((before, "cpu:1", False), [(before, "cpu:0", False)], fun)
    assert [d.kind for d in moved.ways[0].latest[0]] == ["device"]


# ---- against a reference --------------------------------------------------------------------


class Made(NamedTuple):
    """A call by its properties; its arguments are made of them."""

    shape: tuple[int, ...]
    dtype: Any
    n: int
    keys: str
    inner: int
    by_keyword: bool
    y: bool
    x64: bool

    def key(self, owner: Any) -> Key:
        p = {k: np.zeros(self.inner, F) for k in self.keys}
        args: tuple[Any, ...] = (np.zeros(self.shape, self.dtype), p)
        kwargs: dict[str, Any] = {"y": F(0)} if self.y else {}
        if self.by_keyword:
            kwargs["n"] = self.n
        else:
            args += (self.n,)
        with config.enable_x64(self.x64):
            return owner.call(args, kwargs).signature, "cpu", False

    def differences(self, old: Made) -> frozenset[tuple[str, str]]:
        """From the properties alone."""
        found = {
            ("shape", "x"): self.shape != old.shape,
            ("dtype", "x"): self.dtype != old.dtype,
            ("number", "n"): self.n != old.n,
            ("keyword", "n"): self.by_keyword != old.by_keyword,
            ("tree", "p"): self.keys != old.keys,
            ("argument", "y"): self.y != old.y,
            ("config", "enable_x64"): self.x64 != old.x64,
        }
        if self.keys == old.keys:
            found |= {("shape", f"p[{k!r}]"): self.inner != old.inner for k in self.keys}
        return frozenset(place for place, differs in found.items() if differs)


made = st.builds(
    Made,
    shape=st.sampled_from([(), (3,), (4,), (3, 4)]),
    dtype=st.sampled_from([np.dtype(F), np.dtype(np.int32)]),
    n=st.sampled_from([1, 2, 3]),
    keys=st.sampled_from(["a", "ab", "b"]),
    inner=st.sampled_from([1, 2]),
    by_keyword=st.booleans(),
    y=st.booleans(),
    x64=st.booleans(),
)


def takes(x, p, n=1, y=None):
    return x


@settings(max_examples=300, deadline=None)
@given(st.lists(made, min_size=2, max_size=MOST_TOLD + 1, unique=True))
def test_the_nearest_calls_are_reported_and_no_others(calls: list[Made]) -> None:
    *earlier, new = calls
    _, owner = build(takes, Options(static_argnames=("n",), static_argnums=(2,)))
    miss = compare(new.key(owner), [call.key(owner) for call in earlier], takes)
    by_hand = [new.differences(old) for old in earlier]
    least = min(map(len, by_hand))
    nearest = [differences for differences in by_hand if len(differences) == least]
    reported = [
        frozenset((d.kind, d.name) for d in differences)
        for way in miss.ways
        for differences in way.latest
    ]
    assert sorted(map(sorted, reported)) == sorted(map(sorted, nearest))
    assert sum(way.calls for way in miss.ways) == len(nearest)

    # Each of its properties was seen in one earlier call or another. Those of `p` are the shapes of
    # its arrays, which only a call with the same keys has.
    def seen(place: tuple[str, str]) -> bool:
        same_keys = place[0] != "shape" or place[1] == "x"
        return any(
            place not in new.differences(old) and (same_keys or old.keys == new.keys)
            for old in earlier
        )

    assert miss.combination == all(seen(place) for place in frozenset().union(*nearest))


@undisturbed
def test_many_earlier_calls_take_no_time() -> None:
    def big(x, p, n):
        return x

    _, owner = build(big, Options(static_argnums=(2,)))
    p = {f"w{i}": ones(2) for i in range(10)}
    keys = [(owner.call((ones(i), p, 0), {}).signature, "cpu", False) for i in range(1, 202)]
    times = []
    for _ in range(20):
        start = time.process_time()
        miss = compare(keys[-1], keys[:-1], big)
        times.append(time.process_time() - start)
    # 0.5 to 1 ms were measured.
    assert min(times) < 0.005
    (way,) = miss.ways
    assert way.calls > 100 and len(way.latest) == MOST_TOLD
    assert "others differ likewise" in miss.cause and len(miss.cause) < 200


def test_a_call_with_many_arrays_is_told_in_few_words() -> None:
    _, owner = build(takes, Options())
    keys = [
        (owner.call((F(1), {f"w{i}": ones(n) for i in range(500)}), {}).signature, "cpu", False)
        for n in (2, 3)
    ]
    miss = compare(keys[1], keys[:1], takes)
    ((differences,),) = [way.latest for way in miss.ways]
    assert len(differences) == 500 and "496 more" in miss.cause


# ---- what is published ----------------------------------------------------------------------


def test_what_it_cost_and_how_often(seen) -> None:
    f = perspex.jit(own_copy(fun))

    def from_here(x):
        return f(x)

    def from_there(x):
        return f(x)

    from_here(ones(1))
    assert not recompiles(seen)
    start = time.perf_counter()
    from_here(ones(2))
    wall = time.perf_counter() - start
    (event,) = recompiles(seen)
    parts = [event.data[stage] for stage in ("trace", "lower", "compile")]
    assert all(part > 0 for part in parts)
    assert sum(parts) <= event.seconds <= wall
    assert event.signature == "f32[2]"
    assert event.at is not None and event.at.frame.function.endswith("from_here")
    from_there(ones(3))
    from_here(ones(4))
    counts = [(e.data["compiles"], e.data["compiles_here"]) for e in recompiles(seen)]
    assert counts == [(2, 2), (3, 1), (4, 3)]
    from_here(ones(4))
    assert len(recompiles(seen)) == 3


def test_none_for_operations_of_ours(seen) -> None:
    for n in (1, 2, 3):
        x = pnp.ones(n)
        pnp.sum(x) + pnp.sort(x)[0] * pnp.linalg.norm(x)
        perspex.random.normal(perspex.random.key(0), (n,))
    assert not recompiles(seen)


def test_the_names_are_those_of_what_is_differentiated(seen) -> None:
    def loss(weights):
        return pnp.sum(weights**2)

    gradient = perspex.jit(perspex.grad(loss))
    gradient(pnp.ones(2))
    gradient(pnp.ones(3))
    assert told(recompiles(seen)[0]) == {(("shape", "weights", "f32[2]", "f32[3]"),)}


def test_functions_jitted_in_a_loop(seen) -> None:
    for rate in range(5):
        perspex.jit(lambda x: x * rate)(F(1))  # noqa: B023
    found = recompiles(seen)
    assert len(found) == 5 - misses.FRESH + 1
    for event in found:
        ((difference,),) = event.data["differences"][0].latest
        assert difference.kind == "function" and difference.name == "<lambda>"
        assert event.data["closes_over"] == ("rate",)
    assert found[-1].data["compiles"] == 5


def test_derivatives_by_different_arguments_are_different_functions(seen) -> None:
    def product(x, y, z):
        return x * y * y * z

    args = F(1), F(2), F(3)
    for number in range(3):
        perspex.jit(perspex.grad(product, number))(*args)
        perspex.jit(perspex.jacfwd(product, (number,)))(*args)
    assert not recompiles(seen)
    for _ in range(misses.FRESH):
        for number in range(3):
            perspex.jit(perspex.grad(product, number))(*args)
    assert len(recompiles(seen)) == 3  # the last turn


def test_functions_that_are_not_the_same_again(seen) -> None:
    def loss(x):
        return pnp.sum(x**2)

    # Different functions of one text, as `grad` makes them, and one text for different types.
    for g in (loss, perspex.grad(loss), perspex.vmap(loss), perspex.jacfwd(loss)):
        perspex.jit(g)(pnp.ones((2, 2)))
    for n in range(1, 5):
        perspex.jit(lambda x: x + 1)(pnp.ones(n))
    # No loop, though one text.
    perspex.jit(perspex.grad(loss))(pnp.ones(2))
    perspex.jit(perspex.grad(loss))(pnp.ones(2))
    perspex.jit(perspex.grad(loss))(pnp.ones(2))
    # The same function is known again, whoever jits it.
    for _ in range(4):
        perspex.jit(loss)(pnp.ones((2, 2)))
    assert not recompiles(seen)


def test_programs_that_were_forgotten(seen) -> None:
    f = perspex.jit(own_copy(fun))
    f(ones(1))
    f(ones(2))
    f.clear_cache()
    f(ones(1))
    f(ones(2))
    causes = [{d[0] for way in told(e) for d in way} for e in recompiles(seen)]
    assert causes == [{"shape"}, {"cleared"}, {"cleared"}]
    f(ones(3))
    assert {d[0] for way in told(recompiles(seen)[-1]) for d in way} == {"shape"}
    f.clear_cache()
    f(ones(4))  # no first call, though nothing is left to compare it with
    assert {d[0] for way in told(recompiles(seen)[-1]) for d in way} == {"cleared"}


def test_programs_that_were_forgotten_for_a_captured_value(seen) -> None:
    function = own_copy(fun)
    fast, owner = build(function, Options())
    fast(ones(1))
    owner.come_to_python()
    owner.clear([Difference("captured", "scale", "2.0", "3.0")])
    fast(ones(1))
    assert told(recompiles(seen)[-1]) == {(("captured", "scale", "2.0", "3.0"),)}


def test_a_value_that_changed_twice_before_the_next_compilation(seen) -> None:
    fast, owner = build(own_copy(fun), Options())
    fast(ones(1))
    for old, new in (("1.0", "2.0"), ("2.0", "3.0")):
        owner.come_to_python()
        owner.clear([Difference("captured", "scale", old, new)])
    owner.clear([Difference("captured", "shift", "0", "4")])
    fast(ones(1))
    assert told(recompiles(seen)[-1]) == {
        (("captured", "scale", "1.0", "3.0"), ("captured", "shift", "0", "4"))
    }
    for old, new in (("3.0", "1.0"), ("1.0", "3.0")):
        owner.come_to_python()
        owner.clear([Difference("captured", "scale", old, new)])
    fast(ones(1))
    assert {d[0] for way in told(recompiles(seen)[-1]) for d in way} == {"cleared"}


def test_a_weak_type_was_not_seen_where_the_dtype_was_another(seen) -> None:
    f = perspex.jit(own_copy(fun))
    f(np.ones(1, np.float32))
    f(np.ones(2, np.int32))
    f(pnp.full(2, 1.0))  # weak type, shape and dtype are new, or their combination is
    assert recompiles(seen)[-1].data["combination"] is False


def test_with_no_listener_nothing_is_compared(monkeypatch) -> None:
    asked: list[str] = []
    find, report = misses.find, misses.report
    monkeypatch.setattr(misses, "find", lambda *args: (asked.append("find"), find(*args))[1])
    monkeypatch.setattr(misses, "report", lambda *args: (asked.append("report"), report(*args))[1])
    f = perspex.jit(own_copy(fun))
    f(ones(1))
    f(ones(2))
    stop = events.subscribe(lambda event: None, ["trace", "compile"])
    f(ones(3))
    stop()
    assert asked == []
    stop = events.subscribe(lambda event: None, ["recompile"])
    f(ones(4))
    stop()
    assert asked == ["find", "report"]


def test_nothing_of_a_function_is_kept_alive(seen) -> None:
    class Static:
        pass

    def once() -> Any:
        static = Static()
        f = perspex.jit(lambda x, s: x, static_argnums=1)
        f(F(1), static)
        f.clear_cache()
        return weakref.ref(static)

    ref = once()
    seen.clear()
    gc.collect()
    assert ref() is None

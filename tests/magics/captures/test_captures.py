"""What a compiled cell depends on: with equal fingerprints, tracing again would be pointless."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex_magics.captures.fingerprint import find_tracer, fingerprint


def made(source: str) -> tuple[Any, dict[str, Any]]:
    """`value` of a little notebook, and its namespace."""
    namespace: dict[str, Any] = {"np": np, "functools": functools}
    exec(source, namespace)
    return namespace["value"], namespace


SAME = [
    "value = 'text'",
    "value = float('nan')",
    "value = [1, 'a', (2.0, None), {'k': {1, 2}}]",
    "value = np.arange(3)",
    "value = np.arange(8).reshape(2, 4)[:, ::2], np.zeros((0, 3)), np.array(1.5)",
    "import ml_dtypes\nvalue = [np.ones(3, ml_dtypes.bfloat16)]",
    "k = 2\ndef g(v): return v + k\ndef value(v): return g(v)",
    "def make(c):\n    return lambda v: v * c\nvalue = make(3)",
    "def value(v, *, d=[1, 2]): return v",
    "def f(n): return f(n - 1)\nvalue = f",
]


@pytest.mark.parametrize("source", SAME)
def test_the_same_text_means_the_same(source: str) -> None:
    assert fingerprint(*made(source)) == fingerprint(*made(source))
    assert hash(fingerprint(*made(source))) == hash(fingerprint(*made(source)))


CHANGES = [
    ("value = 1", "value = 1.0"),
    ("value = 1", "value = True"),
    ("value = 0.0", "value = -0.0"),
    ("value = [1, 2]", "value = (1, 2)"),
    ("value = {'a': 1}", "value = {'b': 1}"),
    ("value = np.arange(3)", "value = np.arange(3.0)"),
    ("value = np.array([1, 2])", "value = np.array([1, 3])"),
    ("value = np.ones((2, 3))", "value = np.ones((3, 2))"),
    ("value = np.array(1.0)", "value = np.array(2.0)"),
    ("def value(v): return v + 1", "def value(v): return v + 2"),
    ("def value(v, d=1): return v", "def value(v, d=2): return v"),
    (
        "k = 2\ndef g(v): return v + k\ndef value(v): return g(v)",
        "k = 3\ndef g(v): return v + k\ndef value(v): return g(v)",
    ),
    (
        "make = lambda c: lambda v: v * c\nvalue = make(3)",
        "make = lambda c: lambda v: v * c\nvalue = make(4)",
    ),
    ("value = functools.partial(max, 1)", "value = functools.partial(max, 2)"),
]


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_a_change_is_seen(before: str, after: str) -> None:
    assert fingerprint(*made(before)) != fingerprint(*made(after))


def test_attributes_and_items_changed_in_place_are_seen() -> None:
    model, namespace = made(
        "class Layer: pass\nclass Slotted:\n    __slots__ = ('w',)\n"
        "value = Layer()\nvalue.inner = Slotted()\nvalue.inner.w = 1\nvalue.list = ['a']"
    )
    seen = {fingerprint(model, namespace)}
    model.inner.w = 2
    seen.add(fingerprint(model, namespace))
    model.list.append("b")
    seen.add(fingerprint(model, namespace))
    assert len(seen) == 3
    assert fingerprint(model, namespace) in seen


def test_classes_changed_in_place_are_seen() -> None:
    source = (
        "__name__ = 'notebook'\nk = 1\nclass Base:\n    b = 1\n"
        "class Model(Base):\n    w = 1\n    def go(self): return self.w * k\n"
        "    @property\n    def p(self): return self.b\nvalue = Model()"
    )
    model, namespace = made(source)
    kind, seen = type(model), [fingerprint(model, namespace)]

    def changed(cls: type, name: str, value: Any) -> None:
        setattr(cls, name, value)
        seen.append(fingerprint(model, namespace))

    changed(kind, "w", 2)
    changed(kind.__base__, "b", 2)
    changed(kind, "go", lambda self: 3)
    changed(kind, "p", property(lambda self: 4))
    assert len(set(seen)) == len(seen) == 5
    kind.w = 1
    kind.w = 2
    assert fingerprint(model, namespace) == seen[-1]
    assert fingerprint(kind, namespace) != fingerprint(kind.__base__, namespace)
    namespace["k"] = 2
    kind.go = made(source)[0].__class__.go
    assert fingerprint(model, namespace) != seen[-1]


def test_what_functions_count_and_log_is_no_change() -> None:
    value, namespace = made(
        "__name__ = 'notebook'\nlog = []\nclass Counted:\n    calls = 0\n"
        "    def go(self):\n        Counted.calls += 1\n        log.append(1)\nvalue = Counted()"
    )
    before = fingerprint(value, namespace)
    value.go()
    assert namespace["Counted"].calls == 1 and namespace["log"] == [1]
    assert fingerprint(value, namespace) == before
    value, namespace = made("log = []\ndef value(v):\n    log.append(v)\n    return v")
    before = fingerprint(value, namespace)
    assert value(1) == 1 and fingerprint(value, namespace) == before


@pytest.mark.parametrize("take", ["own", "own.plain", "own.Layer()"])
def test_modules_of_the_users_own_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: str
) -> None:
    name = f"own_{abs(hash(take))}"
    text = "import numpy as np\nK = 1\ndef plain(v): return v * K\n"
    text += "class Layer:\n    def go(self): return K\n"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    own = importlib.import_module(name)
    value = eval(take, {"own": own})
    before = fingerprint(value, {})
    assert fingerprint(value, {}) == before
    monkeypatch.setattr(own, "K", 2)
    after = fingerprint(value, {})
    assert after != before
    monkeypatch.setattr(own, "K", 1)
    assert fingerprint(value, {}) == before
    # Other people's modules are what they are.
    assert fingerprint(np, {}) == fingerprint(np, {}) != fingerprint(functools, {})


def test_a_jitted_function_is_what_it_computes_and_not_what_was_compiled_of_it() -> None:
    kept = {"scale": 2.0}
    f = perspex.jit(lambda v: v * kept["scale"])
    before = fingerprint(f, {})
    f(jnp.ones(3)), f(1)
    assert fingerprint(f, {}) == before
    kept["scale"] = 3.0
    assert fingerprint(f, {}) != before

    def look(v: Any) -> Any:
        # While it is traced, what was traced of it so far is no part of the function.
        assert find_tracer(f) is None
        return f(v)

    perspex.jit(look)(jnp.ones(4))


def test_arrays_count_by_identity() -> None:
    x, y = jnp.ones(3), jnp.ones(3)
    assert fingerprint([x], {}) == fingerprint([x], {})
    assert fingerprint([x], {}) != fingerprint([y], {})


def test_cycles_end() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert fingerprint(loop, {}) == fingerprint(loop, {})


def test_find_tracer() -> None:
    class Holder:
        pass

    found: dict[str, str | None] = {}

    @perspex.jit
    def f(x: Any) -> Any:
        holder = Holder()
        holder.items = [0, {"w": x}]  # type: ignore[attr-defined]
        found["attribute"] = find_tracer(holder)
        found["closure"] = find_tracer(lambda: x)
        found["itself"] = find_tracer(x)
        found["none"] = find_tracer([1, "a", np.ones(2), jnp])
        return x

    f(1.0)
    assert found == {
        "attribute": ".items[1]['w']",
        "closure": " (the variable x)",
        "itself": "",
        "none": None,
    }

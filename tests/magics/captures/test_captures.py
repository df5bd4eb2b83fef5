"""What a cell captures: while its state is the same, tracing again would be pointless."""

from __future__ import annotations

import functools
import gc
import importlib
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex_magics.captures.kept import Kept, Reads
from perspex_magics.captures.snapshot import of_values
from perspex_magics.captures.tokens import State
from perspex_magics.programs.values import find_tracer


def made(source: str) -> tuple[Any, dict[str, Any]]:
    """`value` of a little notebook, and its namespace."""
    namespace: dict[str, Any] = {"np": np, "functools": functools}
    exec(source, namespace)
    return namespace["value"], namespace


def state(value: Any, namespace: dict[str, Any]) -> State:
    """What would be captured by a cell that reads `value`."""
    return State(of_values(namespace, {"value": value}))


class Cell:
    """A cell that reads `value`: whether it would be traced again."""

    def __init__(self, value: Any, namespace: dict[str, Any]) -> None:
        self.reads = Reads(namespace, {"value": value})
        self.kept: Kept[int] = Kept(8)
        self.count = 0
        assert self.is_traced() and not self.is_traced()

    def is_traced(self) -> bool:
        def make(state: State, last: int | None) -> int:
            self.count += 1
            return self.count

        before = self.count
        self.kept.recall(None, self.reads, make)
        return self.count > before


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
    assert state(*made(source)).is_same(state(*made(source)))


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
    assert not state(*made(before)).is_same(state(*made(after)))


def test_attributes_and_items_changed_in_place_are_seen() -> None:
    model, namespace = made(
        "class Layer: pass\nclass Slotted:\n    __slots__ = ('w',)\n"
        "value = Layer()\nvalue.inner = Slotted()\nvalue.inner.w = 1\nvalue.list = ['a']"
    )
    cell = Cell(model, namespace)
    model.inner.w = 2
    assert cell.is_traced() and not cell.is_traced()
    model.list.append("b")
    assert cell.is_traced() and not cell.is_traced()
    # What was made before is remembered.
    model.list.pop()
    assert not cell.is_traced()
    model.inner.w = 1
    assert not cell.is_traced()


def test_classes_changed_in_place_are_seen() -> None:
    source = (
        "__name__ = 'notebook'\nk = 1\nclass Base:\n    b = 1\n"
        "class Model(Base):\n    w = 1\n    def go(self): return self.w * k\n"
        "    @property\n    def p(self): return self.b\nmodel = Model()\n"
        "def value(): return model.go() + model.p"
    )
    value, namespace = made(source)
    kind = namespace["Model"]
    cell = Cell(value, namespace)
    changes = [
        (kind, "w", 2),
        (kind.__base__, "b", 2),
        (kind, "go", lambda self: self.w),
        (kind, "p", property(lambda self: 4)),
    ]
    for cls, name, item in changes:
        setattr(cls, name, item)
        assert cell.is_traced() and not cell.is_traced(), name
    kind.w = 1
    assert cell.is_traced()
    kind.w = 2
    assert not cell.is_traced()
    kind.go = made(source)[1]["Model"].go
    assert cell.is_traced()
    # It reads the variable of another notebook.
    namespace["k"] = 2
    assert not cell.is_traced()


def test_what_functions_count_and_log_is_no_change() -> None:
    value, namespace = made(
        "__name__ = 'notebook'\nlog = []\nclass Counted:\n    calls = 0\n"
        "    def go(self):\n        Counted.calls += 1\n        log.append(1)\n"
        "counted = Counted()\ndef value(): counted.go()"
    )
    cell = Cell(value, namespace)
    value()
    assert namespace["Counted"].calls == 1 and namespace["log"] == [1]
    assert not cell.is_traced()
    value, namespace = made("log = []\ndef value(v):\n    log.append(v)\n    return v")
    cell = Cell(value, namespace)
    assert value(1) == 1 and not cell.is_traced()


@pytest.mark.parametrize("take", ["own.plain", "own.Layer().go", "lambda: own.plain(1)"])
def test_modules_of_the_users_own_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: str
) -> None:
    name = f"own_{abs(hash(take))}"
    text = "import numpy as np\nK = 1\ndef plain(v): return v * K\n"
    text += "class Layer:\n    def go(self): return K\n"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    own = importlib.import_module(name)
    namespace = {"own": own}
    cell = Cell(eval(take, namespace), namespace)
    monkeypatch.setattr(own, "K", 2)
    assert cell.is_traced()
    monkeypatch.setattr(own, "K", 1)
    assert not cell.is_traced()


def test_other_peoples_modules_are_what_they_are() -> None:
    assert state(np, {}).is_same(state(np, {}))
    assert not state(np, {}).is_same(state(functools, {}))


def test_a_jitted_function_is_what_it_computes_and_not_what_was_compiled_of_it() -> None:
    kept = {"scale": 2.0}
    f = perspex.jit(lambda v: v * kept["scale"])
    cell = Cell(f, globals())
    f(jnp.ones(3)), f(1)
    assert not cell.is_traced()
    kept["scale"] = 3.0
    assert cell.is_traced()

    def look(v: Any) -> Any:
        # While it is traced, what was traced of it so far is no part of the function.
        assert find_tracer(f) is None
        return f(v)

    perspex.jit(look)(jnp.ones(4))


def test_how_a_function_is_jitted_counts() -> None:
    def f(x: Any, n: Any) -> Any:
        return x * n

    plain, static = perspex.jit(f), perspex.jit(f, static_argnames="n")
    assert state(plain, {}).is_same(state(perspex.jit(f), {}))
    assert not state(plain, {}).is_same(state(static, {}))


@pytest.mark.parametrize("size", [3, 5_000])
def test_arrays_count_by_what_they_hold_and_are_not_kept_alive(size: int) -> None:
    x, y, z = jnp.ones(size), jnp.ones(size), jnp.zeros(size)
    before = state([x], {})
    assert before.is_same(state([x], {})) and before.is_same(state([y], {}))
    assert not before.is_same(state([z], {}))
    holder = {"x": jnp.ones(size)}
    cell = Cell(lambda: holder["x"], globals())
    ref = weakref.ref(holder["x"])
    # What holds them is, until the cell runs again.
    holder.clear()
    gc.collect()
    assert size <= 1024 or ref() is None
    assert cell.is_traced()


def test_cycles_end() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert state(loop, {}).is_same(state(loop, {}))
    assert not Cell(loop, {}).is_traced()


def test_no_code_of_the_users_runs() -> None:
    value, namespace = made(
        "__name__ = 'notebook'\nfrom collections.abc import Mapping\nclass Loud(Mapping):\n"
        "    def __init__(self): self.items = {'a': 1}\n"
        "    def __getitem__(self, key): return self.items[key]\n"
        "    def __iter__(self): raise OSError('asked')\n"
        "    __len__ = __hash__ = __eq__ = __repr__ = __getattr__ = __iter__\n"
        "loud = Loud()\ndef value(): return loud['a']"
    )
    cell = Cell(value, namespace)
    namespace["loud"].__dict__["items"]["a"] = 2
    assert cell.is_traced() and not cell.is_traced()


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

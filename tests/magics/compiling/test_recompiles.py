"""The recompile card: what it says under a cell, when there is none, whether its advice helps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from support.shells import Notebook

from perspex.base import events
from perspex_magics.compiling import recompiles

LEAST_SECONDS, is_due = recompiles.LEAST_SECONDS, recompiles.Told.is_due
MIME = "application/vnd.perspex.recompile+json"


@pytest.fixture(autouse=True)
def all_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cards also of one program more, and of programs that another test has compiled already."""
    monkeypatch.setattr(recompiles, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(recompiles.Told, "is_due", lambda told, card: True)


def shown(notebook: Notebook, cell: str) -> list[dict[str, Any]]:
    """The cards under a cell."""
    notebook.ok(cell)
    return [bundle for bundle in notebook.displayed if MIME in bundle]


def card(notebook: Notebook, cell: str) -> tuple[dict[str, Any], str, str]:
    """The only card under a cell: data, text and HTML."""
    (bundle,) = shown(notebook, cell)
    return bundle[MIME], bundle["text/plain"], bundle["text/html"]


DEFINITION = """
from functools import partial
@partial(perspex.jit, static_argnames="n")
def scaled(x, n):
    return x * n
"""


MODEL = """
class Layer:
    def __init__(self, w):
        self.w = w
        self.step = perspex.jit(self.apply)
    def apply(self, x):
        return x * self.w
layers = [Layer(2.0), Layer(3.0)]
"""


def test_a_method_is_called_by_its_path(notebook: Notebook) -> None:
    notebook.ok(MODEL)
    notebook.ok("layers[1].step(np.ones(3, 'f'))")
    data, text, _ = card(notebook, "layers[1].step(np.ones(4, 'f'))")
    assert text.startswith("`layers[1].step` was recompiled: ")
    assert data["function"] == "layers[1].step"
    # Several of them have one card, with the name in their text.
    notebook.ok("layers[0].step(np.ones(3, 'f'))")
    both = "layers[0].step(np.ones(5, 'f')); layers[1].step(np.ones(5, 'f'))"
    assert card(notebook, both)[1].startswith("`apply` was recompiled 2 times: ")


def test_a_session(notebook: Notebook) -> None:
    notebook.ok(DEFINITION)
    assert not shown(notebook, "scaled(np.ones(3, 'f'), n=1)")
    data, text, _ = card(notebook, "# first\nscaled(np.ones(4, 'f'), n=2)")
    number = notebook.shell.execution_count - 1
    assert text.startswith("`scaled` was recompiled: ")
    assert f"Cell In[{number}]:2  `x`: f32[3] -> f32[4]; static `n`: 1 -> 2" in text
    assert "the last time" not in text
    (row,) = data["rows"]
    assert row["at"] == f"Cell In[{number}]:2" and row["combination"] is False

    # Both values were seen before, each in another call.
    data, text, _ = card(notebook, "scaled(np.ones(3, 'f'), n=2)")
    (row,) = data["rows"]
    assert row["combination"] is True and "not in this combination" in text
    assert sorted(d["kind"] for (d,) in row["differences"]) == ["number", "shape"]
    assert {d["name"]: (d["old"], d["new"]) for (d,) in row["differences"]} == {
        "n": ("1", "2"),
        "x": ("f32[4]", "f32[3]"),
    }
    assert not shown(notebook, "scaled(np.ones(3, 'f'), n=2)")
    assert "has been compiled 3 times so far" in text


def test_many_misses_in_a_cell_are_one_card(notebook: Notebook) -> None:
    notebook.ok(DEFINITION)
    data, text, html = card(notebook, "for i in range(1, 9):\n    scaled(np.ones(i, 'f'), n=1)")
    assert data["count"] == 7 and data["compiles"] == data["compiles_here"] == 8
    (row,) = data["rows"]
    assert row["count"] == 7 and row["differences"][0][0]["old"] == "f32[7]"
    assert "recompiled 7 times" in text and "7 times, the last time  `x`: f32[7] -> f32[8]" in text
    assert "Axis 0 of `x` has had the sizes 1, 2 ... 8. Pad it to" in text
    assert html.count("<tr ") == 1
    number, unit = re.search(r"recompiled 7 times: ([\d.]+) (m?s)", text).groups()
    seconds = float(number) / (1e3 if unit == "ms" else 1)
    assert seconds == pytest.approx(data["seconds"], rel=0.01)


def test_no_more_than_five_rows(notebook: Notebook) -> None:
    notebook.ok("f = perspex.jit(lambda tree, x=0.0, y=0.0: x)\nf({})")
    calls = ["f({}, 1.0)", "f({}, y=1.0)", "f([])", "f((1.0,))", "f({}, x=1)", "f(np.ones(2))"]
    data, text, html = card(notebook, "\n".join([*calls, "f({'a': 1}, 1j, np.ones(3))"]))
    assert data["count"] == 7 and len(data["rows"]) == 5
    assert html.count("<tr ") == 5 and "2 more causes" in text


def test_two_functions_are_two_cards(notebook: Notebook) -> None:
    notebook.ok(
        "f = perspex.jit(lambda x: x + 1)\ng = perspex.jit(lambda x: x + 2)\nf(1.0); g(1.0)"
    )
    first, second = shown(notebook, "f(np.ones(2)); g(np.ones(3))")
    number = notebook.shell.execution_count - 2
    assert f"of Cell In[{number}]:1" in first["text/plain"]
    assert f"of Cell In[{number}]:2" in second["text/plain"]


def test_a_cell_under_a_magic(notebook: Notebook) -> None:
    cell = "%%jit --name step\n# not the x of this line\nz = 1.0\ny = jnp.sum(x)"
    notebook.ok("x = jnp.ones(3)")
    assert not shown(notebook, cell)
    notebook.ok("x = jnp.ones(4)")
    data, text, _ = card(notebook, cell)
    number = notebook.shell.execution_count - 1
    assert data["function"] == "step" and data["rows"][0]["at"] == f"Cell In[{number}]:4"
    assert "`x`: f32[3] -> f32[4]" in text and "interactiveshell" not in text


@pytest.mark.parametrize(
    "magic, line", [("%%time\n\n", ":3"), ("%time ", ":1"), ("%timeit -n1 -r1 ", "")]
)
def test_a_call_whose_time_is_measured(notebook: Notebook, magic: str, line: str) -> None:
    notebook.ok(DEFINITION + "scaled(np.ones(3, 'f'), n=1)")
    number = notebook.shell.execution_count
    data, text, _ = card(notebook, f"{magic}scaled(np.ones(4, 'f'), n=1)")
    place = f"Cell In[{number}]{line}" if line else "this cell (timed)"
    assert data["rows"][0]["at"] == place
    assert f"{place}  `x`: f32[3] -> f32[4]" in text and "<timed" not in text


def test_what_a_cell_under_a_magic_captured(notebook: Notebook) -> None:
    cell = (
        "%%jit --static n\ny = helper(jnp.ones(3)) * n\nif mode == 'up':\n    y = jnp.sort(y) + 1"
    )
    notebook.ok("n, mode = 2, 'up'\ndef helper(x): return x + 1")
    assert not shown(notebook, cell)
    changes = {
        "n = 3": ("static", "n", "2", "3", 2),
        "mode = 'down'": ("captured", "mode", "'up'", "'down'", 3),
        "def helper(x): return x - 1": ("captured", "helper", None, None, 2),
    }
    for count, (change, (kind, name, old, new, line)) in enumerate(changes.items(), 2):
        notebook.ok(change)
        data, _, _ = card(notebook, cell)
        ((row,), number) = data["rows"], notebook.shell.execution_count - 1
        (((difference,),), at) = row["differences"], row["at"]
        assert (difference["kind"], difference["name"]) == (kind, name)
        assert old is None or (difference["old"], difference["new"]) == (old, new)
        assert at == f"Cell In[{number}]:{line}" and data["compiles"] == count
    # What was compiled before is compiled no more.
    notebook.ok("n, mode = 3, 'up'\ndef helper(x): return x + 1")
    assert not shown(notebook, cell)


def test_a_captured_value_that_has_changed(notebook: Notebook) -> None:
    notebook.ok("scale = 2.0\n@perspex.jit\ndef f(x):\n    return x * scale\nf(1.0)")
    notebook.ok("perspex.config.update('stale_captures', 'retrace')")
    try:
        data, text, _ = card(notebook, "scale = 3.0\nresult = float(f(1.0))")
    finally:
        notebook.ok("perspex.config.update('stale_captures', 'warn')")
    assert notebook.ns["result"] == 3.0
    assert data["rows"][0]["differences"] == [
        [{"kind": "captured", "name": "scale", "old": "2.0", "new": "3.0"}]
    ]
    assert "If `scale` holds numbers, make it an argument" in text


def test_markup_is_escaped_and_data_is_json(notebook: Notebook) -> None:
    bad = "<script>alert('x')</script>"
    notebook.ok("f = perspex.jit(lambda x, s: x, static_argnums=1)")
    data, _, html = card(notebook, f"f(1.0, 'a'); f(1.0, {bad!r})")
    assert "<script" not in html and "&lt;script&gt;" in html
    assert json.loads(json.dumps(data)) == data
    assert "<style" not in html and "<svg" not in html


def test_threads_of_a_cell_belong_to_it(notebook: Notebook) -> None:
    notebook.ok(DEFINITION + "scaled(1.0, n=1)")
    notebook.ok("from threading import Thread")
    cell = "t = Thread(target=lambda: scaled(1.0, n=2))\nt.start(); t.join()"
    data, _, _ = card(notebook, cell)
    assert data["rows"][0]["differences"] == [
        [{"kind": "number", "name": "n", "old": "1", "new": "2"}]
    ]


def test_silence(notebook: Notebook) -> None:
    notebook.ok(DEFINITION + "scaled(1.0, n=1)")
    notebook.ok("perspex.config.update('recompile_cards', False)")
    try:
        assert not shown(notebook, "scaled(1.0, n=2)")
    finally:
        notebook.ok("perspex.config.update('recompile_cards', True)")
    assert shown(notebook, "scaled(1.0, n=3)")
    notebook.ok("%unload_ext perspex_magics")
    assert not shown(notebook, "scaled(1.0, n=4)")


def test_nothing_for_operations_and_for_what_was_cleared(notebook: Notebook) -> None:
    assert not shown(notebook, "for n in range(1, 6):\n    jnp.sum(jnp.ones(n)) + 1")
    notebook.ok(DEFINITION + "scaled(1.0, n=1)")
    assert not shown(notebook, "scaled.clear_cache()\nscaled(1.0, n=1)")


def test_nothing_for_what_costs_next_to_nothing(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[events.Event] = []
    stop = events.subscribe(found.append, ["recompile"])
    notebook.ok(DEFINITION + "scaled(1.0, n=1); scaled(1.0, n=2)")
    stop()
    (e,) = found
    third = events.Event(e.kind, e.name, e.start, LEAST_SECONDS / 3, e.signature, e.at, e.data)
    monkeypatch.setattr(recompiles, "LEAST_SECONDS", LEAST_SECONDS)
    assert not recompiles.cards([third] * 2)
    assert recompiles.cards([third] * 4)


FIRST = "f = perspex.jit(lambda x, train=False: x.sum() * train, static_argnames='train')\nf(x)"
SOUND = {
    "training and test data": [FIRST, "f(x[:9]), f(x)"],
    "a third set": [FIRST, "f(x[:9])", "f(x[:8])"],
    "both values of a switch": [FIRST, "f(x, train=True)", "f(x, train=False)"],
    "another size with a switch": [FIRST, "f(x[:9], train=True)"],
    "retraced on purpose": [
        "lr = 1.0\nf = perspex.jit(lambda x: x * lr)\nf(x)",
        "lr = 2.0\nf.retrace()\nf(x)",
    ],
}
TOLD = {
    "a shorter last batch": [FIRST, "for size in (4, 4, 2): f(x[:size])"],
    "one size after the other": [FIRST, "f(x[:9])", "f(x[:8])", "f(x[:7])"],
    "a weak type": [FIRST, "f(jnp.asarray(2.0)), f(jnp.float32(2.0))"],
    "a function made again": ["for _ in range(4): perspex.jit(lambda x: x * 3)(x)"],
    "a list instead of a tuple": ["g = perspex.jit(lambda t: t[0])\ng((x, x))", "g([x, x])"],
}


@pytest.fixture
def told(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], int]:
    """How many cards some cells show, whatever they cost."""
    monkeypatch.setattr(recompiles.Told, "is_due", is_due)
    notebook.ok("x = jnp.ones(10)")
    return lambda cells: sum([len(shown(notebook, cell)) for cell in cells])


@pytest.mark.parametrize("cells", SOUND.values(), ids=SOUND)
def test_nothing_for_what_is_sound(told: Callable[[list[str]], int], cells: list[str]) -> None:
    assert told(cells) == 0


@pytest.mark.parametrize("cells", TOLD.values(), ids=TOLD)
def test_a_problem_is_told_once(told: Callable[[list[str]], int], cells: list[str]) -> None:
    assert told(cells) == 1


def test_a_problem_that_grows_is_told_again(told: Callable[[list[str]], int]) -> None:
    sizes = [f"f(x[:{n}])" for n in range(9, 0, -1)]
    # For the fourth program, and for the eighth.
    assert told([FIRST, *sizes]) == 2
    assert told(sizes) == 0


def test_advice_is_about_what_all_nearest_calls_differ_in(notebook: Notebook) -> None:
    notebook.ok("f = perspex.jit(lambda x: x)\nf(1.0); f(1j)")
    # From the first call it differs in weak type, from the second in dtype, from both in shape.
    data, _, _ = card(notebook, "f(np.ones((2, 2), np.float32))")
    (row,) = data["rows"]
    assert [sorted(d["kind"] for d in way) for way in row["differences"]] == [
        ["dtype", "shape"],
        ["shape", "weak_type"],
    ]
    (advice,) = data["advice"]
    assert advice.startswith("`x` has had 0 or 2 axes. ")


ADVICE = [
    # A cell that compiles again, what the card says of it, and the same with the advice followed.
    (
        "f = perspex.jit(lambda x, y: jnp.sum(x) * jnp.sum(y))\nx, y = np.ones((2, 10), 'f')\n"
        "total = [float(f(x[i : i + 4], y[i : i + 4])) for i in range(0, 10, 4)]",
        "Axis 0 of `x`, `y` has had the sizes 2 and 4. Pad them to 4, and mask the rest. "
        "If only the last batch is shorter, drop it.",
        "f = perspex.jit(lambda x, y: jnp.sum(x) * jnp.sum(y))\nx, y = np.ones((2, 10), 'f')\n"
        "total = []\nfor i in range(0, 10, 4):\n"
        "    pad = lambda z: np.pad(z[i : i + 4], (0, max(0, i + 4 - 10)))\n"
        "    total.append(float(f(pad(x), pad(y))))",
    ),
    (
        "f = perspex.jit(lambda x: jnp.sum(x))\n"
        "total = [float(f(np.ones(n, 'f'))) for n in range(1, 9)]",
        "Axis 0 of `x` has had the sizes 1, 2 ... 8. Pad it to one size or to a few,",
        "f = perspex.jit(lambda x: jnp.sum(x))\n"
        "total = [float(f(np.pad(np.ones(n, 'f'), (0, 8 - n)))) for n in range(1, 9)]",
    ),
    (
        "f = perspex.jit(lambda x: x * 2)\ntotal = [float(f(x)) for x in (1, 2.0)]",
        "Pass `x` in one dtype in every call, as in `jnp.asarray(x, jnp.float32)`.",
        "f = perspex.jit(lambda x: x * 2)\n"
        "total = [float(f(jnp.asarray(x, jnp.float32))) for x in (1, 2.0)]",
    ),
    (
        "f = perspex.jit(lambda x: x * 2)\ntotal = [float(f(x)) for x in (1.0, np.float32(2))]",
        "`x` is weakly typed in some calls, as Python numbers are. "
        "Pass `jnp.asarray(x, jnp.float32)`",
        "f = perspex.jit(lambda x: x * 2)\n"
        "total = [float(f(jnp.asarray(x, jnp.float32))) for x in (1.0, np.float32(2))]",
    ),
    (
        "f = perspex.jit(lambda x, n: x * n, static_argnames='n')\n"
        "total = [float(f(1.0, n=n)) for n in (0.5, 1.5)]",
        "do not mark `n` static",
        "f = perspex.jit(lambda x, n: x * n)\ntotal = [float(f(1.0, n=n)) for n in (0.5, 1.5)]",
    ),
    (
        "class Settings:\n    def __init__(self, n): self.n = n\n"
        "f = perspex.jit(lambda x, s: x * s.n, static_argnames='s')\n"
        "total = [float(f(1.0, s=Settings(n))) for n in (2, 2)]",
        "Static `s` is a new object each time, equal to none before. Create it once, or give its "
        "class `__eq__` and `__hash__`, as `@dataclass(frozen=True)` does.",
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Settings:\n    n: int\n"
        "f = perspex.jit(lambda x, s: x * s.n, static_argnames='s')\n"
        "total = [float(f(1.0, s=Settings(n))) for n in (2, 2)]",
    ),
    (
        "f = perspex.jit(lambda x, g: g(x), static_argnames='g')\n"
        "total = [float(f(1.0, g=lambda x: x + 1)) for _ in range(3)]",
        "Static `g` is a new function object each time. Define it once and pass it.",
        "f = perspex.jit(lambda x, g: g(x), static_argnames='g')\ng = lambda x: x + 1\n"
        "total = [float(f(1.0, g=g)) for _ in range(3)]",
    ),
    (
        "def turn(rate):\n    return perspex.jit(lambda x: x * rate)\n"
        "total = [float(turn(n)(2.0)) for n in (0.5, 1.5, 2.5, 3.5)]",
        "call `jit` once, before the loop. Pass what changes (`rate`) as an argument.",
        "f = perspex.jit(lambda x, rate: x * rate)\n"
        "total = [float(f(2.0, n)) for n in (0.5, 1.5, 2.5, 3.5)]",
    ),
    (
        "f = perspex.jit(lambda p: sum(p.values()))\n"
        "total = [float(f(p)) for p in ({'a': 1.0}, {'a': 1.0, 'b': 0.0})]",
        "Pass `p` with the same containers and keys in every call.",
        "f = perspex.jit(lambda p: sum(p.values()))\n"
        "total = [float(f(p)) for p in ({'a': 1.0, 'b': 0.0}, {'a': 1.0, 'b': 0.0})]",
    ),
    (
        "f = perspex.jit(lambda x, y=0.0: x + y)\ntotal = [float(f(1.0)), float(f(1.0, 2.0))]",
        "Pass `y` in every call or in none.",
        "f = perspex.jit(lambda x, y=0.0: x + y)\ntotal = [float(f(1.0, 0.0)), float(f(1.0, 2.0))]",
    ),
    (
        "f = perspex.jit(lambda x, y: x + y)\ntotal = [float(f(1.0, 2.0)), float(f(1.0, y=2.0))]",
        "Pass `y` by position in every call, or always by keyword.",
        "f = perspex.jit(lambda x, y: x + y)\ntotal = [float(f(1.0, y=2.0)), float(f(1.0, y=2.0))]",
    ),
    (
        "f = perspex.jit(lambda x: x + 1)\nx = np.float32(1)\n"
        "total = [float(f(x)), float(f(perspex.device_put(x, perspex.devices()[0])))]",
        "Commit the arguments to one device",
        "f = perspex.jit(lambda x: x + 1)\n"
        "x = perspex.device_put(np.float32(1), perspex.devices()[0])\n"
        "total = [float(f(x)), float(f(x))]",
    ),
    (
        "f = perspex.jit(lambda x: x + 1)\nx = np.float32(1)\ntotal = [float(f(x))]\n"
        "with perspex.config.default_matmul_precision('float32'):\n    total.append(float(f(x)))",
        "Each value of the flag `default_matmul_precision` has its own programs",
        "f = perspex.jit(lambda x: x + 1)\nx = np.float32(1)\ntotal = []\n"
        "with perspex.config.default_matmul_precision('float32'):\n    total += [float(f(x))] * 2",
    ),
]


@pytest.mark.parametrize(("bad", "sentence", "good"), ADVICE)
def test_advice_helps(notebook: Notebook, bad: str, sentence: str, good: str) -> None:
    _, text, html = card(notebook, bad)
    total = notebook.ns["total"]
    assert sentence in text
    assert sentence.split("`")[0] in html
    assert not shown(notebook, good)
    assert notebook.ns["total"] == total

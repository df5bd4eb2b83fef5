"""How arrays look, and that looking at them costs nothing."""

from __future__ import annotations

import collections
import dataclasses
import html.parser
import re
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from support.shells import Notebook

import perspex
import perspex.numpy as jnp
from perspex import random
from perspex_magics.display.arrays import MOST_READ, MOST_SHOWN, array_html, keys_html
from perspex_magics.display.functions import compiled_html, function_html, lowered_html, traced_html
from perspex_magics.display.listing import Listing, preformatted
from perspex_magics.display.markup import escape, tag
from perspex_magics.display.trees import container_html, dataclass_html

HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "'; DROP TABLE cells; --",
    "&lt;already&gt;",
    "javascript:alert(1)",
    "a\u202eb",
    "nul\x00byte",
    "\ud800 lone",
    "]]>",
]
# What an untrusted notebook keeps; anything else would vanish or be dangerous.
TAGS = {"div", "span", "strong", "table", "caption", "tr", "th", "td", "pre", "details", "summary"}
ATTRIBUTES = {"style", "scope", "open"}
# Vanishes there: then text that scrolls may not be reached by the keyboard alone.
ONLY_IF_TRUSTED = {"tabindex"}


class Reader(html.parser.HTMLParser):
    """Collects the text and checks that tags are closed and harmless."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.text: list[str] = []
        self.cells: list[str] = []
        self.feed(markup)
        self.close()
        assert not self.stack

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS and {name for name, _ in attrs} - ONLY_IF_TRUSTED <= ATTRIBUTES
        self.stack.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if "td" in self.stack:
            self.cells[-1] += data


def text_of(x: Any) -> str:
    return " ".join(Reader(array_html(x)).text)


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_gets_through_escape(name: str) -> None:
    for markup in (
        tag("td", escape(name)),
        tag("td", "", style=name),
        Listing(name, name)._repr_html_(),
    ):
        Reader(markup)
        markup.encode("utf-8")
        assert "\x00" not in markup and "\u202e" not in markup
    shown = "".join(Reader(tag("td", escape(name))).text)
    assert shown == name or "\\" in shown


def test_preformatted_keeps_lines() -> None:
    assert "".join(Reader(preformatted("a < b\n  c")).text) == "a < b\n  c"


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (3, 0), (40,), (30, 40), (2, 3, 4, 5)])
def test_values_shown_are_the_arrays(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    reader = Reader(array_html(jnp.asarray(x)))
    assert f"int32[{', '.join(map(str, shape))}]" in " ".join(reader.text)
    shown = {int(cell) for cell in reader.cells if cell not in ("⋯", "")}
    if x.ndim == 0:
        assert "= 0" in " ".join(reader.text)
    elif x.size:
        # At most three slices of an array with more axes, the last of all among them.
        slices = x.reshape(-1, *x.shape[-2:]) if x.ndim > 2 else x[None]
        chosen = slices if len(slices) <= 3 else slices[[0, 1, -1]]
        edge = 3 if x.ndim > 2 else 5
        ends = [
            list(range(n)) if n <= 2 * edge + 1 else [*range(edge), *range(n - edge, n)]
            for n in chosen.shape[1:]
        ]
        assert shown == set(chosen[np.ix_(range(len(chosen)), *ends)].ravel().tolist())


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (np.array([True, False]), ["bool[2]", "True", "False"]),
        (np.array([1.5, -2.0], np.float32), ["1.5", "-2", "min -2", "mean -0.25", "max 1.5"]),
        (np.array([1 + 2j], np.complex64), ["complex64[1]", "1+2j"]),
        (
            np.array([np.nan, np.inf, 1.0], np.float32),
            ["nan", "inf", "of the finite: min 1", "1 NaN", "1 infinite"],
        ),
        (np.array([0.5], ml_dtypes.bfloat16), ["bfloat16[1]", "0.5"]),
        (np.array([3], np.int8), ["int8[1]", "3"]),
    ],
)
def test_dtypes(values: np.ndarray[Any, Any], texts: list[str]) -> None:
    shown = text_of(jnp.asarray(values))
    assert all(text in shown for text in texts), shown


def test_weak_types_and_devices_are_named() -> None:
    shown = text_of(perspex.jit(lambda x: x)(1.0))
    assert "weak type" in shown and str(perspex.devices()[0]) in shown


def test_big_arrays_are_neither_copied_nor_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jnp.arange(3 * MOST_READ, dtype=jnp.float32)
    x.block_until_ready()
    monkeypatch.setattr(np, "asarray", lambda *args: pytest.fail("the array was copied"))
    shown = text_of(x)
    assert x._npy_value is None
    assert "1 in 3 of 300,000 elements" in shown and f"max {3 * MOST_READ - 3:.4g}" in shown
    # NumPy has no such numbers, so that looking at them would need a copy.
    shown = text_of(x.astype(jnp.bfloat16).block_until_ready())
    assert "586 KiB, values not fetched" in shown


def test_an_array_can_be_donated_after_it_was_shown() -> None:
    x = jnp.arange(2.0 * MOST_SHOWN).block_until_ready()
    address = x.unsafe_buffer_pointer()
    array_html(x)
    out = perspex.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert out.unsafe_buffer_pointer() == address


def test_an_array_that_is_not_ready_is_not_waited_for() -> None:
    n = 1000

    @perspex.jit
    def slow(a: Any) -> Any:
        for _ in range(40):
            a = a @ a / n
        return a[:2, :2]

    a = jnp.ones((n, n))
    slow(a).block_until_ready()
    x = slow(a)
    shown = text_of(x)
    assert not x.is_ready(), "the machine was too fast for this test"
    assert "still being computed" in shown


def test_deleted_arrays_can_be_shown() -> None:
    x = jnp.ones(3)
    x.delete()
    assert "deleted" in text_of(x)


# ---- keys, containers, functions ----------------------------------------------------------------


def reading(markup: str | None) -> str:
    assert markup is not None
    return " ".join("".join(Reader(markup).text).split())


def test_keys_show_their_numbers() -> None:
    assert "key<fry>[] · cpu:0 · 00000000 0000002a" in reading(keys_html(random.key(42)))
    keys = random.split(random.key(42), (4, 5))
    words = np.asarray(random.key_data(keys))
    shown = reading(keys_html(keys))
    assert f"[1, 2] {words[1, 2, 0]:08x} {words[1, 2, 1]:08x}" in shown and "8 more" in shown
    keys.delete()
    assert "deleted" in reading(keys_html(keys))


@dataclasses.dataclass
class State:
    step: int
    weights: Any

    @property
    def costly(self) -> Any:
        raise AssertionError("a property was asked for")


class Layer(NamedTuple):
    w: Any
    b: Any


def test_containers_of_arrays_are_trees() -> None:
    w = jnp.ones((3, 4))
    tree = {"layer": Layer(w, None), ("a", 1): [w, State(3, jnp.zeros(2))], "name": "n" * 1000}
    shown = reading(container_html(tree))
    assert "dict · 3 entries · 2 arrays, 56 B" in shown  # 3*4*4 + 2*4, each array once
    for text in ("'layer': Layer · 2 entries", "w: float32[3, 4]", "b: None", "('a', 1): list",
                 "[1]: State · 2 entries", ".step: 3", ".weights: float32[2]"):  # fmt: skip
        assert text in shown, (text, shown)
    assert len(shown) < 2000
    assert "State · 2 entries" in reading(dataclass_html(State(1, w)))


def folds(markup: Any) -> dict[str, bool]:
    """The containers of a tree by their label, and whether they are unfolded."""
    found = re.findall(r"<details( open=\"\")?><summary><span[^>]*>([^<]*): </span>", markup)
    return {label: bool(is_open) for is_open, label in found}


def test_containers_fold_by_size() -> None:
    x = jnp.ones(100)
    layers = [{"w": x, "b": x}] * 3
    assert all(folds(container_html({"params": layers, "more": {"a": {"b": [x]}}})).values())
    # What is long stays folded, and what is short beside it does not.
    mixed = folds(container_html({"long": [x] * 13, "short": [x] * 12}))
    assert mixed == {"&#39;long&#39;": False, "&#39;short&#39;": True}
    # Thirty small entries are too many together.
    assert not any(folds(container_html([{"w": x, "b": x}] * 30)).values())


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (np.arange(3), "int32[3] · cpu:0 = [0, 1, 2]"),
        (np.array([[1.5, -2], [0, 3]]), "float32[2, 2] · cpu:0 = [[1.5, -2], [0, 3]]"),
        (np.arange(8), "int32[8] · cpu:0 = [0, 1, 2, 3, 4, 5, 6, 7]"),
    ],
)
def test_small_values_in_containers_are_seen_at_once(x: Any, said: str) -> None:
    shown = reading(container_html({"x": jnp.asarray(x)}))
    assert f"x': {said}" in " ".join(shown.split()), shown


def test_nine_values_in_a_container_are_folded() -> None:
    markup = container_html({"x": jnp.arange(9)})
    assert markup is not None and " = [" not in markup and markup.count("<details") == 2


def test_what_holds_no_array_looks_as_always() -> None:
    for thing in ({"a": 1}, [np.ones(3)], (), collections.Counter("ab")):
        assert container_html(thing) is None
    for other in (State(1, 2), State, object(), 3, "text"):
        assert dataclass_html(other) is None


def test_containers_that_hold_themselves_or_too_much() -> None:
    x = jnp.ones(2)
    loop: list[Any] = [x]
    loop.append(loop)
    assert "(itself)" in reading(container_html(loop))
    deep: Any = x
    for _ in range(50):
        deep = [deep]
    assert "list" in reading(container_html(deep))
    wide = container_html([x] * 100_000)
    assert wide is not None and len(wide) < 100_000 and "99970 more" in reading(wide)


def test_names_in_containers_are_hostile() -> None:
    hostile = type("<b>Evil\u202e", (dict,), {"__repr__": lambda self: 1 / 0})
    for name in HOSTILE:
        tree = {name: jnp.ones(1), "x": hostile({name: jnp.ones(1)})}
        markup = container_html(tree)
        assert markup is not None and "\u202e" not in markup
        Reader(markup)


def test_other_displays_are_left_alone(notebook: Notebook) -> None:
    notebook.ok("from perspex_magics import load_ipython_extension")
    notebook.ok("class Own(dict):\n    def _repr_html_(self): return '<i>own</i>'")
    html = notebook.shell.display_formatter.formatters["text/html"]
    own = notebook.ok("Own(a=jnp.ones(3))")
    assert html(own) == "<i>own</i>"
    assert html({"a": 1}) is None and html(object()) is None and html(np.ones(3)) is None
    assert "float32[3]" in html({"a": jnp.ones(3)})


def test_compiled_functions_tell_their_signatures() -> None:
    f = perspex.jit(lambda x: jnp.sin(x) * 2)
    assert "not compiled yet" in reading(function_html(f))
    f(jnp.ones(3))
    f(jnp.ones((2, 5)))
    shown = reading(function_html(f))
    # 3 and 10 numbers of 4 bytes, in and out.
    assert "compiled for 2 signatures" in shown
    assert "f32[3]212 B12 B" in shown and "f32[2,5]240 B40 B" in shown
    assert function_html(jnp.add) is None
    traced = f.trace(1.0)
    assert "sin" in reading(traced_html(traced))
    assert "stablehlo.sine" in reading(lowered_html(traced.lower()))
    assert "HloModule" in reading(compiled_html(traced.lower().compile()))

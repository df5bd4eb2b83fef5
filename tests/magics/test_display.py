"""How arrays look, and that looking at them costs nothing."""

from __future__ import annotations

import html.parser
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex_magics.arrays import MOST_SHOWN, array_html
from perspex_magics.listing import Listing, preformatted
from perspex_magics.markup import escape, tag

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
        assert tag in TAGS and {name for name, _ in attrs} <= ATTRIBUTES
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
    shown = {int(cell) for cell in reader.cells if cell != "⋯"}
    corner = x[(0,) * (x.ndim - 2)] if x.ndim > 2 else x
    assert shown <= set(corner.ravel().tolist())
    if 0 < x.size <= 100 and x.ndim in (1, 2):
        ends = [list(range(n)) if n <= 11 else [*range(5), *range(n - 5, n)] for n in x.shape]
        assert shown == set(x[np.ix_(*ends)].ravel().tolist())


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (np.array([True, False]), ["bool[2]", "True", "False"]),
        (np.array([1.5, -2.0], np.float32), ["1.5", "-2", "min -2", "mean -0.25", "max 1.5"]),
        (np.array([1 + 2j], np.complex64), ["complex64[1]", "1+2j"]),
        (np.array([np.nan, np.inf, 1.0], np.float32), ["nan", "inf", "1 NaN", "1 infinite"]),
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


def test_big_arrays_are_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jnp.zeros(MOST_SHOWN + 1)
    monkeypatch.setattr(np, "asarray", lambda *args: pytest.fail("the array was copied"))
    shown = text_of(x)
    assert "values not fetched" in shown and "KiB" in shown


def test_an_array_that_is_not_ready_is_not_waited_for() -> None:
    n = 1000

    @perspex.jit
    def slow(a: Any) -> Any:
        for _ in range(40):
            a = a @ a / n
        return a[:2, :2]

    a = jnp.ones((n, n))
    slow(a).block_until_ready()
    started = time.perf_counter()
    x = slow(a)
    shown = text_of(x)
    shown_after = time.perf_counter() - started
    x.block_until_ready()
    computed_after = time.perf_counter() - started
    assert "still being computed" in shown
    assert shown_after < computed_after / 2


def test_deleted_arrays_can_be_shown() -> None:
    x = jnp.ones(3)
    x.delete()
    assert "deleted" in text_of(x)

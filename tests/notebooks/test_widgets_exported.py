"""Widgets in notebooks that a program runs: pages that need no scripts and no net."""

from __future__ import annotations

import itertools
from html.parser import HTMLParser
from typing import Any

import nbformat
import pytest
from nbconvert import HTMLExporter
from nbconvert.preprocessors.execute import ExecutePreprocessor
from support.session import TIMEOUT, open_session

SETUP = """
import perspex, perspex.numpy as jnp
from perspex import random
@perspex.jit
def step(x):
    return jnp.tanh(x @ x).sum()
step(jnp.ones((4, 4)))
sub = random.split(random.key(42))[1]
a = random.normal(sub, (3,))
b = random.uniform(sub, (3,))
"""
# What each has to say; the numbers of the key are those that jax gives.
WIDGETS = {
    "perspex.key_explorer(sub)": [
        f"{64467757:08x} {2916123636:08x}",
        "random.normal(sub",
        "reused",
    ],
    "perspex.show(step, jnp.ones((4, 4)))": ["def step(x):", "tanh", "stablehlo.", "ENTRY"],
    "perspex.timings(step, jnp.ones((4, 4)), seconds=0.05)": ["median", "trace", "each waited for"],
    "perspex.cache_view()": ["step", "f32[4,4]", "XLA took"],
}
HOSTILE = """
def f(x):
    return jnp.sin(x)  # <img src=x onerror=alert(1)>
f.__name__ = "<img src=x onerror=alert(2)>\\u202e" + "n" * 1_000_000
f = perspex.jit(f)
globals()["<b onclick=alert(3)>" + "k" * 1_000_000] = key = random.key(3)
"""
HOSTILE_WIDGETS = [
    "perspex.show(f, jnp.ones(7))",
    "perspex.timings(f, jnp.ones(7), seconds=0.02)",
    "perspex.cache_view()",
    "perspex.key_explorer(key)",
    "[f, {'<b onclick=alert(4)>' * 10_000: key}]",
    "f",
]
TAGS = {"div", "span", "table", "tr", "th", "td", "caption"}
TAGS |= {"details", "summary", "pre", "strong", "code"}
VIEW = "application/vnd.jupyter.widget-view+json"


class Markup(HTMLParser):
    """The tags, attributes and text of an output."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def executed(kernel: str, cells: list[str]) -> Any:
    """The notebook as `jupyter nbconvert --execute` makes it, with the state of widgets."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    ExecutePreprocessor(timeout=TIMEOUT, kernel_name=kernel).preprocess(notebook, {})
    return notebook


def widget_states(notebook: Any) -> str:
    return str(notebook.metadata.get("widgets", {}))


def html_of(cell: Any) -> str:
    (html,) = [
        output.data["text/html"]
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    return "".join(html)


@pytest.mark.parametrize("kernel", ["perspex", "python3"])
def test_pages_of_nbconvert_need_no_script_and_no_net(kernel: str) -> None:
    load = ["%load_ext perspex"] if kernel == "python3" else []
    notebook = executed(kernel, [*load, SETUP, *WIDGETS])
    page, _ = HTMLExporter().from_notebook_node(notebook)
    # What nbconvert writes in the place of a widget, and what it needs for that.
    assert f'<script type="{VIEW}">' not in page and "tanh" not in widget_states(notebook)
    shown = "".join(Markup(page).text.split())
    for cell, expected in zip(notebook.cells[-len(WIDGETS) :], WIDGETS.values(), strict=True):
        html = html_of(cell)
        found = Markup(html)
        assert "".join(found.text.split()) in shown
        assert found.tags <= TAGS and not {a for a in found.attributes if a.startswith("on")}
        for text in expected:
            assert text in found.text, cell.source


def test_hostile_names_are_short_text_in_pages_of_nbconvert() -> None:
    notebook = executed("perspex", [SETUP, HOSTILE, *HOSTILE_WIDGETS])
    for cell in notebook.cells[2:]:
        html = html_of(cell)
        found = Markup(html)
        assert found.tags <= TAGS and not {a for a in found.attributes if a.startswith("on")}
        assert len(html) < 20_000 and "\u202e" not in html, cell.source


def test_what_a_front_end_saved_is_exported_without_scripts() -> None:
    cells = []
    with open_session() as session:
        session.run(SETUP)
        for widget in WIDGETS:
            data = session.run(widget).data
            assert {VIEW, "text/html", "text/plain"} <= set(data), widget
            output = nbformat.v4.new_output("execute_result", data, execution_count=1)
            cells.append(nbformat.v4.new_code_cell(widget, outputs=[output]))
    page, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    assert f'<script type="{VIEW}">' not in page
    shown = Markup(page).text
    for text in itertools.chain(*WIDGETS.values()):
        assert text in shown, text

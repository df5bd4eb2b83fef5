"""The widgets for programs, timings and the cache, with their JavaScript and without it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.page import validator
from support.shells import Notebook
from support.widgets import asked

import perspex
import perspex.numpy as jnp
from perspex.runtime.compiler import cache
from perspex_magics.documents.program import document
from perspex_magics.panel.topics.programs import compilation
from perspex_magics.timing.measuring import measure
from perspex_magics.widgets import modules, show
from perspex_magics.widgets.cache_view import CacheView
from perspex_magics.widgets.key_explorer import KeyExplorer
from perspex_magics.widgets.key_tree import KeyTree
from perspex_magics.widgets.modules import module
from perspex_magics.widgets.show import Show
from perspex_magics.widgets.timings import Timings

WIDGETS = {"cache": CacheView, "keys": KeyExplorer, "program": Show, "timings": Timings}
VIEW = "application/vnd.jupyter.widget-view+json"
ROOT = Path(__file__).resolve().parents[3]
VIEWS = [*(ROOT / "labextension/src").rglob("*.ts")]


# ---- the JavaScript of the views ----------------------------------------------------------------


def test_each_widget_names_its_module() -> None:
    assert {kind.module: kind for kind in WIDGETS.values()} == WIDGETS
    sources = {path.stem for path in (ROOT / "labextension/src/widgets").glob("*.ts")}
    assert sources == {*WIDGETS, "host"}


@pytest.mark.parametrize("name", WIDGETS)
def test_a_built_widget_is_one_module(name: str, tmp_path: Path) -> None:
    text = module(name)
    if text is None:
        pytest.skip("the widgets have not been built: `make panel` (needs Node.js)")
    assert re.search(r"export ?\{ ?\w+ as default ?\}", text)
    assert not re.search(r"^import\b|\bimport ?\(", text, re.MULTILINE)
    node = shutil.which("node")
    if node is not None:
        (tmp_path / "module.mjs").write_text(text, encoding="utf-8")
        subprocess.run([node, "--check", "module.mjs"], check=True, cwd=tmp_path)


def test_a_widget_that_was_not_built_shows_its_html_and_says_how_to_build_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "STATIC", tmp_path)
    widget = Timings(measure(lambda x: x * 2, jnp.ones(2), seconds=0.01))
    assert not widget.is_built and widget.comm is None
    data, _ = widget._repr_mimebundle_()
    assert VIEW not in data
    assert "median" in data["text/html"] and "<code>make panel</code>" in data["text/html"]
    assert data["text/plain"] == f"{widget.text}\n{modules.MISSING}"


def test_a_widget_that_was_built_is_a_widget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "timings.js").write_text("export default {};")
    monkeypatch.setattr(modules, "STATIC", tmp_path)
    widget = Timings(measure(lambda x: x * 2, jnp.ones(2), seconds=0.01))
    data, _ = widget._repr_mimebundle_()
    assert VIEW in data and widget._esm == "export default {};"
    assert modules.MISSING not in data["text/plain"] and "make panel" not in data["text/html"]


def test_the_data_of_widgets_fit_the_schema() -> None:
    """As JSON, as the page gets it."""

    def check(kind: str, data: dict[str, Any]) -> None:
        validator(kind).validate(json.loads(json.dumps(data)))

    check("Timings", Timings(measure(lambda x: x * 2, jnp.ones(2), seconds=0.01)).data)
    explorer = KeyExplorer(KeyTree([((0, 42), "random.key(42)")], True), None, "note")
    for message in (
        {"do": "look", "node": 0, "preview": "gamma"},
        {"do": "split", "node": 0, "count": 3},
        {"do": "fold_in", "node": 0, "number": 7},
        {"do": "draw", "node": 0, "distribution": "normal", "shape": "(3, 4)"},
        {"do": "draw", "node": 0, "distribution": "gamma", "shape": "0"},
    ):
        assert asked(explorer, message)["ok"], message
        check("KeyTree", explorer.data)
        check("KeyDetail", explorer.detail)


def test_views_never_parse_markup() -> None:
    parsing = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b"
    found = {path.name: re.findall(parsing, path.read_text("utf-8")) for path in VIEWS}
    assert len(found) > 30 and not any(found.values()), found


# ---- names of the package -----------------------------------------------------------------------


def test_the_core_loads_views_only_when_they_are_asked_for() -> None:
    code = """
import sys, perspex
assert {"show", "timings", "cache_view", "key_explorer", "plot"} <= set(dir(perspex))
assert not hasattr(perspex, "no_such_thing")
assert not {"IPython", "ipywidgets", "anywidget", "matplotlib"} & set(sys.modules)
assert not any(name.startswith("perspex_magics") for name in sys.modules)
perspex.plot.timings
assert not {"ipywidgets", "matplotlib"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- programs -----------------------------------------------------------------------------------


def test_show_without_a_notebook_prints(capsys: pytest.CaptureFixture[str]) -> None:
    calls = []

    @perspex.jit
    def f(x: Any, *, scale: Any) -> Any:
        calls.append(x)
        return jnp.tanh(x) * scale

    assert perspex.show(f, perspex.ShapeDtypeStruct((4,), jnp.float32), scale=2.0) is None
    printed = capsys.readouterr().out
    assert printed.startswith("f(f32[4], f32[]*)") and "tanh" in printed
    assert len(calls) == 1  # traced, and not run
    with pytest.raises(TypeError, match="takes a function"):
        perspex.show(3)


def test_show_has_html_of_all_forms() -> None:
    traced = perspex.jit(lambda x: jnp.sin(x)).trace(1.0)
    data, _ = Show(data=document(traced, name="<b>\u202e"))._repr_mimebundle_()
    for text in ("stablehlo.sine", "HloModule", "sin a", "&lt;b&gt;\\u202e"):
        assert text in data["text/html"]
    assert "<b>" not in data["text/html"]


def test_show_counts_the_lines_of_the_source_and_no_names_of_cells() -> None:
    program = document(perspex.jit(lambda x: jnp.sin(x)).trace(1.0))
    for sources, said in [
        ([("Cell In[1]", "a\nb\nc"), ("Cell In[2]", "d")], "source · 4 lines<"),
        ([("Cell In[1]", "a")], "source · 1 line<"),
    ]:
        program["sources"] = [
            {
                "name": name,
                "cell": "",
                "first": 1,
                "lines": {"text": text, "folds": [], "links": []},
            }
            for name, text in sources
        ]
        assert said in Show(data=program).html


def test_show_is_compared_with_what_was_shown_before() -> None:
    first = document(perspex.jit(lambda x: jnp.sin(x)).trace(1.0), name="compared")
    again = document(perspex.jit(lambda x: jnp.sin(x)).trace(1.0), name="compared")
    second = document(perspex.jit(lambda x: jnp.sin(x) * 2).trace(1.0), name="compared")
    other = document(perspex.jit(lambda x: jnp.cos(x)).trace(1.0), name="another")
    # The lines of the test differ, as those of a cell that was edited do.
    for one in (first, again, second, other):
        one["sources"] = []
    versions = show._Versions()
    assert versions.before(first) is None
    assert versions.before(again) is None
    assert versions.before(second) is again
    assert versions.before(other) is None
    assert versions.before(second) is again
    assert versions.before(first) is second
    for i in range(show._MOST_FUNCTIONS):
        versions.before({**first, "name": f"f{i}"})
    assert versions.before(second) is None


def test_show_in_a_notebook_knows_the_version_before(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Show] = []
    monkeypatch.setattr(show, "shown", made.append)
    for body in ("jnp.sin(x)", "jnp.sin(x) * 2"):
        notebook.ok(f"def changed(x):\n    return {body}\nperspex.show(changed, jnp.ones(3))")
    assert [one.previous is None for one in made] == [True, False]
    assert made[1].previous == made[0].data


# ---- timings ------------------------------------------------------------------------------------


def test_a_call_takes_as_long_as_it_does() -> None:
    def wait(x: Any) -> Any:
        time.sleep(0.02)
        return np.asarray(x)

    @perspex.jit
    def f(x: Any) -> Any:
        return perspex.pure_callback(wait, x, x) + 1

    measured = measure(f, jnp.ones(3), seconds=0.2)
    assert (measured.total >= 0.02).all() and measured.total.min() < 0.1
    assert len(measured.call) >= 5 and measured.first >= 0.02
    assert measured.queued is None or measured.queued >= 0.02
    assert measured.signature == "f32[3]"
    quantiles = measured.quantiles()["total"]
    assert quantiles["min"] == measured.total.min() and quantiles["max"] == measured.total.max()


def test_stages_say_what_happened() -> None:
    def f(x: Any) -> Any:
        time.sleep(0.05)  # while it is traced
        return jnp.cos(x) - 0.123456789

    stages = {stage.name: stage for stage in measure(f, 1.0, seconds=0.01).stages}
    assert stages["trace"].seconds >= 0.05 and stages["trace"].note == "2 equations"
    compiled = perspex.jit(f)
    compiled(1.0)
    again = {stage.name: stage for stage in measure(compiled, 1.0, seconds=0.01).stages}
    assert again["trace"].seconds is None and again["trace"].note == "already done"
    assert again["compile"].note.startswith("found in memory; XLA took ")


def test_what_cannot_be_measured() -> None:
    with pytest.raises(TypeError, match="takes a function"):
        measure(3)
    with pytest.raises(ValueError, match="must be positive"):
        measure(lambda x: x, 1.0, seconds=0)
    donating = perspex.jit(lambda x: x + 1, donate_argnums=0)
    with pytest.raises(ValueError, match="donates 1 of its arguments"):
        measure(donating, jnp.ones(3))


def test_timings_as_widget_and_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert perspex.timings(lambda x: x * 2, jnp.ones(2), seconds=0.01) is None
    printed = capsys.readouterr().out
    assert (
        "median" in printed
        and "each waited for, after 4 warm-up runs that are not counted" in printed
    )
    measured = measure(lambda x: x * 2, jnp.ones(2), seconds=0.05)
    widget = Timings(measured)
    assert sum(widget.data["histogram"]["counts"]) + widget.data["outside"] == len(measured.total)
    assert widget.text == measured.text()


# ---- the cache ----------------------------------------------------------------------------------


def test_the_cache_view_follows_the_session(notebook: Notebook) -> None:
    notebook.ok("@perspex.jit\ndef first(x): return x * 3 - 1")
    notebook.ok("first(jnp.ones(3))")
    view = CacheView(notebook.shell)
    assert [row["name"] for row in view.data["rows"]].count("first") == 1
    before = view.data
    notebook.ok("1 + 1")
    assert view.data is before
    notebook.ok("first(jnp.ones(5))")
    rows = [row for row in view.data["rows"] if row["name"] == "first"]
    assert [row["signature"] for row in rows] == ["f32[3]", "f32[5]"]
    assert rows[0]["miss"] is None and "f32[3]" in rows[1]["miss"]["cause"]
    assert "first" in view.text
    view.close()
    count = len(view.data["rows"])
    notebook.ok("first(jnp.ones(7))")
    assert len(view.data["rows"]) == count
    notebook.ok("perspex.cache_view()")
    assert "first" in notebook.out


def test_programs_are_pinned_and_evicted_in_the_cache_view(notebook: Notebook) -> None:
    notebook.ok("@perspex.jit\ndef kept(x): return x * 5 - 1.25")
    notebook.ok("kept(jnp.ones(3))")
    view = CacheView(notebook.shell)

    def row() -> dict[str, Any] | None:
        return next((row for row in view.data["rows"] if row["name"] == "kept"), None)

    id = row()["id"]
    one = compilation(notebook.shell, id)
    key = bytes.fromhex(one.key)
    assert asked(view, {"do": "pin", "id": id})["text"].startswith("Pinned ")
    assert cache.is_pinned(key) and row()["pinned"]
    assert asked(view, {"do": "unpin", "id": id})["ok"]
    assert not cache.is_pinned(key) and not row()["pinned"]
    assert asked(view, {"do": "evict", "id": id})["text"].endswith(
        "The next call compiles it again."
    )
    assert not cache.is_remembered(key) and row() is None
    assert asked(view, {"do": "evict", "id": id}) == {
        "request": "r",
        "ok": False,
        "text": "This program is no longer in the record.",
    }
    notebook.ok("kept(jnp.ones(3))")
    assert row()["found"] == "xla"
    view.close()


def test_all_programs_are_cleared_in_the_cache_view(notebook: Notebook) -> None:
    notebook.ok("perspex.jit(lambda x: x * 7 - 2.5)(jnp.ones(3))")
    view = CacheView(notebook.shell)
    assert view.data["rows"] and cache.remembered_count()
    answer = asked(view, {"do": "clear"})
    assert answer["ok"] and "from memory. Programs on disk remain" in answer["text"]
    assert view.data["rows"] == [] and not cache.remembered_count()
    view.close()


def test_the_cache_view_shows_what_was_done_elsewhere(notebook: Notebook) -> None:
    notebook.ok("@perspex.jit\ndef kept(x): return x * 5 - 1.75")
    notebook.ok("kept(jnp.ones(3))")
    view = CacheView(notebook.shell)
    (row,) = [row for row in view.data["rows"] if row["name"] == "kept"]
    assert not row["pinned"]
    cache.pin(bytes.fromhex(compilation(notebook.shell, row["id"]).key))
    notebook.ok("1 + 1")
    (row,) = [row for row in view.data["rows"] if row["name"] == "kept"]
    assert row["pinned"]
    cache.unpin()
    view.close()


@pytest.mark.parametrize("do", [None, "", "__class__", ["pin"], {}, "forget"])
def test_the_cache_view_does_nothing_else(notebook: Notebook, do: Any) -> None:
    view = CacheView(notebook.shell)
    assert not asked(view, {"do": do, "id": {"x": 1}})["ok"]
    assert asked(view, {"do": "greet"}) == {"request": "r", "ok": True, "text": ""}
    view.close()


def test_the_cache_view_without_a_notebook_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert perspex.cache_view() is None
    assert re.match(r"memory: [\d,]+ hits, [\d,]+ misses", capsys.readouterr().out)

"""The widgets for programs, timings and the cache, and the modules that they are made of."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
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
from perspex_magics.widgets.modules import STATIC, ModuleError, module
from perspex_magics.widgets.show import Show
from perspex_magics.widgets.timings import Timings

ENTRIES = sorted(path.name for path in STATIC.glob("*_widget.js"))
SOURCES = {path.name: path.read_text(encoding="utf-8") for path in STATIC.glob("*.js")}


# ---- the views' modules -------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_widget_is_one_module(entry: str, tmp_path: Path) -> None:
    text = module(entry)
    assert re.findall(r"^export .*", text, re.MULTILINE) == ["export default { render };"]
    assert not re.search(r"^import ", text, re.MULTILINE)
    node = shutil.which("node")
    if node is not None:
        (tmp_path / "module.mjs").write_text(text, encoding="utf-8")
        subprocess.run([node, "--check", "module.mjs"], check=True, cwd=tmp_path)


def test_views_never_parse_markup() -> None:
    parsing = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b"
    found = {name: re.findall(parsing, text) for name, text in SOURCES.items()}
    assert not any(found.values()), found


def test_no_two_views_use_one_name() -> None:
    defined = re.compile(r"^(?:export )?(?:async )?(?:function\*?|class|const|let) (\w+)", re.M)
    views = [text for name, text in SOURCES.items() if name not in ENTRIES]
    counts = Counter(name for text in views for name in defined.findall(text))
    assert not [name for name, n in counts.items() if n > 1]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.js": 'import { x } from "./b.js";\n', "b.js": "const x = 1;\n"}, "not export `x`"),
        ({"a.js": 'import x from "./b.js";\n', "b.js": ""}, "cannot be followed"),
        ({"a.js": 'import { x } from "./a.js";\n'}, "import each other: a.js -> a.js"),
        (
            {
                "a.js": 'import { x } from "./b.js";\nconst y = 1;\n',
                "b.js": "export const x = 1;\nfunction y() {}\n",
            },
            "`y` is defined by both b.js and a.js",
        ),
        (
            {
                "a.js": 'import { x } from "./b.js";\n',
                "b.js": "export const x = 1;\nexport default x;\n",
            },
            "cannot be joined",
        ),
    ],
)
def test_modules_that_cannot_be_joined(
    files: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(modules, "STATIC", tmp_path)
    with pytest.raises(ModuleError, match=re.escape(message)):
        module.__wrapped__("a.js")


def test_joined_modules_stand_before_those_that_need_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "base.js").write_text("export const one = 1;\n")
    (tmp_path / "left.js").write_text(
        'import { one } from "./base.js";\nexport const two = one + 1;\n'
    )
    (tmp_path / "top.js").write_text(
        'import {\n  one,\n} from "./base.js";\nimport { two } from "./left.js";\n'
        "export default one + two;\n"
    )
    monkeypatch.setattr(modules, "STATIC", tmp_path)
    lines = [
        line for line in module.__wrapped__("top.js").splitlines() if "=" in line or "ex" in line
    ]
    assert lines == ["const one = 1;", "const two = one + 1;", "export default one + two;"]


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
    assert "application/vnd.jupyter.widget-view+json" in data
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
    assert (measured.total >= 0.02).all() and np.median(measured.total) < 0.1
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
    assert 0.05 <= stages["trace"].seconds < 0.5 and stages["trace"].note == "2 equations"
    compiled = perspex.jit(f)
    compiled(1.0)
    again = {stage.name: stage for stage in measure(compiled, 1.0, seconds=0.01).stages}
    assert again["trace"].seconds is None and again["trace"].note == "done before"
    assert again["compile"].note.startswith("found in memory; XLA took ")


def test_what_cannot_be_measured() -> None:
    with pytest.raises(TypeError, match="takes a function"):
        measure(3)
    with pytest.raises(ValueError, match="must be positive"):
        measure(lambda x: x, 1.0, seconds=0)
    donating = perspex.jit(lambda x: x + 1, donate_argnums=0)
    with pytest.raises(ValueError, match="takes over the memory of 1 of its arguments"):
        measure(donating, jnp.ones(3))


def test_timings_as_widget_and_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert perspex.timings(lambda x: x * 2, jnp.ones(2), seconds=0.01) is None
    printed = capsys.readouterr().out
    assert "median" in printed and "each waited for, after 4 that are not counted" in printed
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
    assert asked(view, {"do": "pin", "id": id})["text"].endswith("stays in memory.")
    assert cache.is_pinned(key) and row()["pinned"]
    assert asked(view, {"do": "unpin", "id": id})["ok"]
    assert not cache.is_pinned(key) and not row()["pinned"]
    assert asked(view, {"do": "evict", "id": id})["text"].endswith("its next call compiles it.")
    assert not cache.is_remembered(key) and row() is None
    assert asked(view, {"do": "evict", "id": id}) == {
        "request": "r",
        "ok": False,
        "text": "This program is not in the record any more.",
    }
    notebook.ok("kept(jnp.ones(3))")
    assert row()["found"] == "xla"
    view.close()


def test_all_programs_are_cleared_in_the_cache_view(notebook: Notebook) -> None:
    notebook.ok("perspex.jit(lambda x: x * 7 - 2.5)(jnp.ones(3))")
    view = CacheView(notebook.shell)
    assert view.data["rows"] and cache.remembered_count()
    answer = asked(view, {"do": "clear"})
    assert answer["ok"] and "are forgotten; those on disk stay" in answer["text"]
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
    assert re.match(r"memory: \d+ hits, \d+ misses", capsys.readouterr().out)

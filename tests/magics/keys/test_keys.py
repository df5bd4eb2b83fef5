"""`%keys`: which keys came from which, and which were used twice.

What is right is known from the cells: they are written so.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from support.shells import Notebook

from perspex import random
from perspex.base import events
from perspex.random import lineage

PAGE = Path(__file__).resolve().parents[3] / "docs" / "truth" / "keys.md"
ADVICE = "Draw with new keys instead: key, sub = random.split(key)"


@pytest.fixture(params=["key", "PRNGKey"])
def cells(notebook: Notebook, request: pytest.FixtureRequest) -> Notebook:
    """A notebook whose `make` makes keys of either kind."""
    notebook.ok(f"from perspex import random\nmake = random.{request.param}")
    return notebook


@pytest.fixture
def typed(notebook: Notebook) -> Notebook:
    notebook.ok("from perspex import random")
    return notebook


def shown(cells: Notebook, line: str = "%keys") -> str:
    """What the magic shows, with single spaces."""
    assert cells.ok(line) is None
    (bundle,) = cells.displayed
    html = bundle["text/html"]
    assert html.startswith("<div ") and "<table" in html and "<script" not in html
    lines = bundle["text/plain"].split("\n")
    return "\n".join(" ".join(line.split()) for line in lines)


def misused(cells: Notebook) -> list[str]:
    """The lines on keys that were used twice."""
    text = shown(cells)
    return text.split(ADVICE)[0].split("\n")[:-1] if ADVICE in text else []


def number(cells: Notebook) -> int:
    """The number of the cell that ran last."""
    return cells.shell.execution_count - 1


def test_a_tree_by_line_and_variable(cells: Notebook) -> None:
    cells.ok("root = make(0)\nfirst, second = random.split(root)")
    n = number(cells)
    cells.ok("random.normal(first, (3,))")
    cells.ok("third = random.fold_in(second, 7)\nrandom.uniform(third)")
    assert shown(cells).split("\n") == [
        f"make(0) Cell In[{n}]:1 → root",
        f"└─ random.split(root) Cell In[{n}]:2 → first, second",
        f"├─ random.normal(first, (3,)) Cell In[{n + 1}]:1",
        f"└─ random.fold_in(second, 7) Cell In[{n + 2}]:1 → third",
        f"└─ random.uniform(third) Cell In[{n + 2}]:2",
    ]


def test_a_key_used_twice_with_both_lines(cells: Notebook) -> None:
    cells.ok("key = make(0)")
    n = number(cells)
    cells.ok("x = random.normal(key)")
    cells.ok("a = 1\ny = random.uniform(key, (2,))")
    assert misused(cells) == [
        "1 key was used more than once:",
        f"key Cell In[{n}]:1 by make(0)",
        f"random.normal(key) Cell In[{n + 1}]:1",
        f"random.uniform(key, (2,)) Cell In[{n + 2}]:2",
    ]
    html = cells.displayed[0]["text/html"]
    assert html.count("color:var(--jp-error-color1") > 3


TWICE = {
    "drawn twice": ("random.normal(key)", "random.uniform(key)"),
    "drawn and split": ("random.normal(key)", "a, b = random.split(key)"),
    "split twice": ("a, b = random.split(key)", "c = random.split(key, 3)"),
    "a row twice": ("random.normal(keys[1])", "random.bits(keys[1])"),
    "a row by two ways": ("random.normal(list(keys)[2])", "random.normal(keys[2])"),
    "all rows, then one": ("perspex.vmap(random.normal)(keys)", "random.normal(keys[0])"),
    "in a function": ("def f(k): return random.normal(k)\nf(key)", "f(key)  # again"),
    "in a gradient": (
        "perspex.grad(lambda w: w * random.normal(key))(1.0)",
        "random.normal(key)",
    ),
    "folded in twice": (
        "random.normal(random.fold_in(key, 3))",
        "random.uniform(random.fold_in(key, 3))",
    ),
    "as numbers": ("random.normal(key)", "random.normal(random.key_data(key))"),
}


@pytest.mark.parametrize("how", TWICE)
def test_what_is_reuse(cells: Notebook, how: str) -> None:
    first, second = TWICE[how]
    cells.ok("key = make(0)\nkeys = random.split(make(1), 3)")
    cells.ok(first)
    assert misused(cells) == []
    n = number(cells) - 1
    cells.ok(second)
    lines = misused(cells)
    assert lines[0] == "1 key was used more than once:", lines
    assert f"Cell In[{n}]:" in lines[2] and f"Cell In[{n + 2}]:" in lines[3]


ONCE = {
    "split, then drawn": "key, sub = random.split(key)\nrandom.normal(sub)\nrandom.normal(key)",
    "rows": "for k in random.split(key, 4):\n    random.normal(k)",
    "folded in": "for i in range(4):\n    random.normal(random.fold_in(key, i))",
    "cloned": "random.normal(key)\nrandom.normal(random.clone(key))",
    "made again": "random.normal(key)\nkey = make(0)\nrandom.normal(key)",
    "a function of several draws": "random.multivariate_normal(key, np.zeros(2), np.eye(2))",
    "a gradient": "perspex.value_and_grad(lambda w: w * random.normal(key))(1.0)",
    "a choice": "random.choice(key, 10, (3,), replace=False)",
}


@pytest.mark.parametrize("how", ONCE)
def test_what_is_no_reuse(cells: Notebook, how: str) -> None:
    cells.ok("key = make(0)")
    cells.ok(ONCE[how])
    assert misused(cells) == []


def test_a_loop_that_draws_with_one_key(cells: Notebook) -> None:
    cells.ok("key = make(0)\nfor i in range(5):\n    random.normal(key)")
    n = number(cells)
    assert misused(cells)[2:] == [f"random.normal(key) Cell In[{n}]:3 5 times"]


def test_a_loop_is_one_line_of_the_tree(cells: Notebook) -> None:
    cells.ok("key = make(0)")
    n = number(cells)
    cells.ok("for i in range(20):\n    key, sub = random.split(key)\n    random.normal(sub)")
    assert shown(cells).split("\n") == [
        f"make(0) Cell In[{n}]:1 → key",
        f"└─ random.split(key) Cell In[{n + 1}]:2 → key, sub 20 times",
        f"└─ random.normal(sub) Cell In[{n + 1}]:3 20 times",
    ]


def test_running_a_cell_again_is_no_reuse(cells: Notebook) -> None:
    cells.ok("key = make(0)")
    cells.ok("x = random.normal(key)")
    cells.ok("x = random.normal(key)")
    assert misused(cells) == []
    cells.ok("key = make(0)")
    cells.ok("x = random.normal(key)")
    assert misused(cells) == []
    cells.ok("y = random.uniform(key)")
    assert len(misused(cells)) == 4


def test_an_edited_cell_is_known_by_its_id(cells: Notebook) -> None:
    run = cells.shell.run_cell
    run("key = make(0)", store_history=True, cell_id="a")
    run("x = random.normal(key)", store_history=True, cell_id="b")
    run("x = 2 * random.normal(key)", store_history=True, cell_id="b")
    assert misused(cells) == []
    run("x = 2 * random.normal(key)", store_history=True, cell_id="c")
    assert len(misused(cells)) == 4


def test_traced_code(cells: Notebook) -> None:
    cells.ok("@perspex.jit\ndef f(k):\n    a, b = random.split(k)\n    return random.normal(a)")
    cells.ok("f(make(0))\nf(make(1))")
    assert misused(cells) == []
    cells.ok("@perspex.jit\ndef g(k):\n    a = random.normal(k)\n    return a + random.uniform(k)")
    n = number(cells)
    cells.ok("g(make(2))")
    lines = misused(cells)
    assert lines[1] == "k in traced code"
    assert lines[2].startswith(f"random.normal(k) Cell In[{n}]:3 (g), called at Cell In[{n + 1}]:1")
    assert lines[3].startswith(f"random.uniform(k) Cell In[{n}]:4 (g)")
    assert "keys in `g` while it was traced" in shown(cells)


def test_keys_that_come_from_elsewhere(typed: Notebook) -> None:
    typed.ok("fresh = perspex.jit(random.split)(random.wrap_key_data(np.array([1, 2], np.uint32)))")
    typed.ok("random.normal(fresh[0])")
    assert "keys that were not made here\n└─ random.normal(fresh[0])" in shown(typed)


def test_one_variable(cells: Notebook) -> None:
    cells.ok("root = make(0)\nfirst, second = random.split(root)\nrandom.normal(second)")
    n = number(cells)
    assert shown(cells, "%keys second").split("\n") == [
        "second",
        f"from random.split(root) Cell In[{n}]:2",
        f"from make(0) Cell In[{n}]:1",
        f"used by random.normal(second) Cell In[{n}]:3",
    ]
    assert shown(cells, "%keys first").split("\n")[-1] == "no use recorded"
    # The first runs of a compiled function that draws with a key that it is given.
    cells.ok("draw = perspex.jit(lambda key: random.normal(key, (2,)))\ndraw(first)")
    n = number(cells)
    used = shown(cells, "%keys first").split("\n")[-1]
    assert used == f"used by draw(first) Cell In[{n}]:2"
    cells.ok("others = random.split(first, 2)")
    text = shown(cells, "%keys others")
    assert "others[0]" in text and "others[1]" in text


def test_off_on_and_clear(typed: Notebook) -> None:
    assert shown(typed) == "No key has been made or used."
    typed.ok("key = random.key(0)\n%keys off")
    assert lineage.recorder is None
    typed.fails("%keys", UsageError, "`%keys on` starts it")
    typed.ok("random.normal(key)\n%keys on\nrandom.uniform(key)")
    assert "normal" not in shown(typed) and "uniform" in shown(typed)
    typed.ok("%keys clear")
    assert shown(typed) == "No key has been made or used."


USAGE = {
    "%keys nothing": "there is no variable `nothing`",
    "%keys number": "`number` is of type int, not a key",
    "%keys key other": "unrecognized arguments: other",
    "%keys --all": "unrecognized arguments: --all",
}


@pytest.mark.parametrize("line", USAGE)
def test_usage_errors(typed: Notebook, line: str) -> None:
    typed.ok("key = random.key(0)\nnumber = 3")
    typed.fails(line, UsageError, USAGE[line])


def test_help_and_completion(typed: Notebook) -> None:
    typed.ok("%keys --help")
    assert all(word in typed.out for word in ("NAME", "clear", "off", "on "))
    typed.ok("key = random.key(0)\nold = random.PRNGKey(0)\nkid = 3")
    assert complete(typed.shell, "%keys ") == {
        "key",
        "old",
        "clear",
        "off",
        "on",
        "quiet",
        "--help",
    }
    assert complete(typed.shell, "%keys k") == {"key"}
    assert complete(typed.shell, "%keys --h") == {"--help"}


def complete(shell: InteractiveShell, text: str) -> set[str]:
    with provisionalcompleter():
        return {match.text for match in shell.Completer.completions(text, len(text))}


def test_names_cannot_break_the_markup(typed: Notebook) -> None:
    typed.ok("random.normal(random.key(0), ('<script>' and 3,))")
    html = (typed.ok("%keys"), typed.displayed[0]["text/html"])[1]
    assert "&lt;script&gt;" in html and "<script" not in html


def test_unloading_ends_the_record(typed: Notebook) -> None:
    assert lineage.recorder is not None
    typed.ok("%unload_ext perspex_magics")
    assert lineage.recorder is None
    typed.fails("%keys", UsageError, "not found")


def test_the_page_shows_what_happens(typed: Notebook) -> None:
    """The cells of docs/truth/keys.md show what the page says, in a notebook of their own."""
    page = PAGE.read_text(encoding="utf-8")
    cells = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (expected,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert len(cells) == 4
    typed.shell.execution_count = 1
    for cell in cells:
        typed.ok(cell)
    typed.ok("%keys")
    assert typed.displayed[0]["text/plain"] == expected.rstrip("\n")


# ---- The record itself --------------------------------------------------------------------------


def test_without_a_record_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise AssertionError("recorded")

    monkeypatch.setattr(lineage.Recorder, "add", fail)
    lineage.stop()  # a notebook of another test may have left it on
    key, sub = random.split(random.key(0))
    random.normal(sub)
    lineage.start()
    try:
        with pytest.raises(AssertionError, match="recorded"):
            random.normal(key)
    finally:
        lineage.stop()


def test_recording_changes_no_number_and_waits_for_nothing() -> None:
    key = random.PRNGKey(5)
    plain = np.asarray(random.normal(random.split(key)[1], (4,)))
    seen: list[events.Event] = []
    record = lineage.start(limit=3)
    stop = events.subscribe(seen.append)
    try:
        again = random.normal(random.split(key)[1], (4,))
        random.clone(random.key(3))
    finally:
        stop()
        lineage.stop()
    assert not [e for e in seen if e.kind == "wait" or e.data.get("direction") == "out"]
    assert [call.function for call in record.calls] == ["normal", "key", "clone"]
    assert record.forgotten == 1
    np.testing.assert_array_equal(np.asarray(again), plain)

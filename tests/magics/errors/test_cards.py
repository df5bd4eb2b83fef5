"""Errors about traced values in notebooks: a card under the cell, and text in a terminal."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.session import open_session
from support.shells import Notebook

from perspex import errors

CARD = "application/vnd.perspex.error+json"
BRANCH = (
    "@perspex.jit\ndef f(x):\n    y = x * 2\n    if y > 1:\n        y = y + 1\n    return y\nf(1.0)"
)


class Reader(HTMLParser):
    """What a browser would make of a card: its tags, and the texts of some of them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: dict[str, list[str]] = {"td": [], "th": [], "pre": [], "caption": []}
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self.open:
            if tag in self.texts:
                self.texts[tag][-1] += data


@pytest.fixture
def drawing(notebook: Notebook) -> Notebook:
    """A notebook whose front end draws outputs, as that of a kernel does."""
    notebook.shell.kernel = SimpleNamespace()  # type: ignore[attr-defined]
    return notebook


def card_of(notebook: Notebook) -> dict[str, Any]:
    (card,) = [data for data in notebook.displayed if CARD in data]
    return card


def test_a_terminal_shows_text_alone(notebook: Notebook) -> None:
    shown = notebook.fails(BRANCH, errors.TracerBoolConversionError)
    here = notebook.shell.execution_count - 1
    rows = [" ".join(row.split()) for row in shown.splitlines()]
    start = rows.index("From the arguments to here:")
    assert rows[start + 1 : start + 4] == [
        "argument of `f` `x` float32[]",
        f"Cell In[{here}]:3 (f) y = x * 2 mul float32[]",
        f"Cell In[{here}]:4 (f) if y > 1: gt bool[]",
    ]
    assert f"Instead of Cell In[{here}]:4 to 5:" in shown
    assert "    y = jnp.where(y > 1, y + 1, y)" in shown.splitlines()
    assert not [data for data in notebook.displayed if CARD in data]


def test_a_notebook_shows_a_card_below_a_shorter_traceback(drawing: Notebook) -> None:
    shown = drawing.fails(BRANCH, errors.TracerBoolConversionError, "From the arguments to here")
    here = drawing.shell.execution_count - 1
    headline = "Attempted boolean conversion of traced array with shape bool[]."
    told = shown[shown.index(f"TracerBoolConversionError: {headline}") :]
    # The remedy, which those see as well who see no outputs; but not the way.
    assert "\n    y = jnp.where(y > 1, y + 1, y)" in told and "y = x * 2" not in told
    card = card_of(drawing)
    data = card[CARD]
    assert data["error"] == "TracerBoolConversionError" and data["headline"] == headline
    assert [step["text"] for step in data["steps"]] == ["`x`", "y = x * 2", "if y > 1:"]
    patch = data["remedy"]["patch"]
    assert (patch["first"], patch["last"]) == (4, 5)
    assert patch["after"] == ["    y = jnp.where(y > 1, y + 1, y)"]
    page = Reader(card["text/html"])
    assert page.texts["th"] == [
        "argument of f",
        f"Cell In[{here}]:3 (f)",
        f"Cell In[{here}]:4 (f)",
    ]
    assert page.texts["td"][0::2] == ["x", "y = x * 2", "if y > 1:"]
    assert page.texts["td"][1::2] == ["float32[]", "mul float32[]", "gt bool[]"]
    assert page.texts["pre"] == ["    if y > 1:\n        y = y + 1", patch["after"][0]]
    assert page.texts["caption"] == ["From the arguments to here"]
    assert not {"script", "style", "svg", "iframe"} & set(page.tags)
    assert not [name for name in page.attributes if name.startswith("on")]
    # The text has what the traceback has not: a console prints both.
    assert "y = x * 2" in card["text/plain"]
    assert headline not in card["text/plain"] and patch["after"][0] not in card["text/plain"]
    lines = f"{told}\n{card['text/plain']}".splitlines()
    assert set(str(sys.last_value).splitlines()[1:]) <= set(lines)


def test_text_of_the_user_is_escaped(drawing: Notebook) -> None:
    cell = (
        "@perspex.jit\ndef f(x):\n    if x > 0:  # <script>alert(1)</script>\n        x = -x\n"
        "    return x\nf(1.0)"
    )
    drawing.fails(cell, errors.TracerBoolConversionError)
    html = card_of(drawing)["text/html"]
    page = Reader(html)
    assert (
        "script" not in page.tags and "if x > 0:  # <script>alert(1)</script>" in page.texts["td"]
    )


def test_other_errors_have_no_card(drawing: Notebook) -> None:
    drawing.fails("1 / 0", ZeroDivisionError)
    drawing.fails("jnp.ones(3) + jnp.ones(4)", TypeError)
    assert not [data for data in drawing.displayed if CARD in data]


@pytest.mark.parametrize("is_drawn", [False, True])
def test_shapes_that_do_not_fit(notebook: Notebook, is_drawn: bool) -> None:
    if is_drawn:
        notebook.shell.kernel = SimpleNamespace()  # type: ignore[attr-defined]
    cell = "@perspex.jit\ndef f(a, b):\n    c = a[1:]\n    return c + b\nf(np.ones(3), np.ones(4))"
    shown = notebook.fails(cell, TypeError)
    steps = [
        ("a", "float32[3]"),
        ("c = a[1:]", "float32[2]"),
        ("b", "float32[4]"),
        ("return c + b", "needed here"),
    ]
    if not is_drawn:
        assert all(text in shown and kind in shown for text, kind in steps)
        return
    # The message, which tells of shapes, stays where it was.
    assert "incompatible shapes" in shown.splitlines()[-1]
    page = Reader(card_of(notebook)["text/html"])
    found = list(zip(page.texts["td"][0::2], page.texts["td"][1::2], strict=True))
    assert [text for text, _ in found] == [text for text, _ in steps]
    assert all(got.endswith(kind) for (_, got), (_, kind) in zip(found, steps, strict=True))


N = 3
MAGICS = {
    "a cell": ("%%jit\nz = jnp.zeros(n) + 1", "%%jit --static n", "z", np.ones(N)),
    "other options": (
        "%%jit --time\nz = jnp.zeros(n) + 1",
        "%%jit --static n --time",
        "z",
        np.ones(N),
    ),
    "another static name": (
        "%%jit --static m --time\nz = jnp.zeros((m, n))",
        "%%jit --static m,n --time",
        "z",
        np.zeros((2, N)),
    ),
    "a length worked out": (
        "%%jit\nk = n + m\nz = jnp.zeros(k)",
        "%%jit --static m,n",
        "z",
        np.zeros(N + 2),
    ),
    "below an empty line": ("\n%%jit\nz = jnp.zeros(n)", "%%jit --static n", "z", np.zeros(N)),
    "a function of another cell": (
        "%%jit\nz = helper(n)",
        "%%jit --static n",
        "z",
        np.arange(N),
    ),
}


@pytest.mark.parametrize("case", MAGICS)
def test_the_line_of_a_magic_that_makes_names_static(notebook: Notebook, case: str) -> None:
    cell, head, name, want = MAGICS[case]
    notebook.ok("def helper(k):\n    return jnp.arange(k)")
    notebook.ok(f"n, m = {N}, 2")
    result = notebook.run(cell)
    patch = result.error_in_exec.card.remedy.patch
    lines = cell.split("\n")
    row = next(i for i, line in enumerate(lines) if line.startswith("%%"))
    assert (patch.first, patch.last, patch.before) == (row + 1, row + 1, (lines[row],))
    assert patch.after == (head,)
    lines[row : row + 1] = patch.after
    notebook.ok("\n".join(lines))
    np.testing.assert_array_equal(notebook.ns[name], want)


def test_functions_that_a_magic_jits(notebook: Notebook) -> None:
    notebook.ok("%%jit\ndef ramp(k):\n    return jnp.ones(k)")
    result = notebook.run("ramp(3)")
    patch = result.error_in_exec.card.remedy.patch
    assert patch.after == ("%%jit --static k",)
    notebook.ok("%%jit --static k\ndef ramp(k):\n    return jnp.ones(k)")
    np.testing.assert_array_equal(notebook.ok("ramp(3)"), np.ones(3))


def test_jit_as_an_option_of_another_magic(notebook: Notebook) -> None:
    notebook.ok(f"n, x = {N}, jnp.arange(4.0)")
    cell = "%%grad x --jit\nsum(x[i] ** 2 for i in range(n))"
    patch = notebook.run(cell).error_in_exec.card.remedy.patch
    assert patch.after == ("%%jit --static n", "%%grad x")
    notebook.ok("\n".join([*patch.after, cell.split("\n")[1]]))
    np.testing.assert_array_equal(notebook.ns["d_x"], [0, 2, 4, 0])


def test_a_loop_in_a_cell_has_two_remedies(notebook: Notebook) -> None:
    cell = "%%jit\nfor i in range(n):\n    y = y * 2 + i"
    results = []
    for use in ("static", "loop"):
        notebook.ok(f"n, y = {N}, jnp.float32(1)")
        remedy = notebook.run(cell).error_in_exec.card.remedy
        loop = remedy.otherwise.split("`")[-2]
        notebook.ok("from perspex import lax")
        lines = [*remedy.patch.after, *cell.split("\n")[1:]]
        notebook.ok("\n".join(lines) if use == "static" else f"%%jit\n{loop}")
        results.append(float(notebook.ns["y"]))
    assert results == [((1 * 2 + 0) * 2 + 1) * 2 + 2] * 2


def test_what_leaked_into_the_notebook(notebook: Notebook) -> None:
    notebook.ok("kept = []")
    made = notebook.shell.execution_count
    notebook.ok("@perspex.jit\ndef f(x):\n    kept.append(x * 2)\n    return x\nf(1.0)")
    shown = notebook.fails("kept[0] + 1", errors.UnexpectedTracerError)
    assert f"It was stored by `kept.append(x * 2)` at Cell In[{made}]:3." in shown
    assert "as `kept[0]`" in shown


def test_unloading_leaves_nothing_behind(notebook: Notebook) -> None:
    notebook.ok("n = 3")
    notebook.ok("%unload_ext perspex_magics")
    notebook.ok("%load_ext perspex_magics")
    result = notebook.run("%%jit\nz = jnp.zeros(n)")
    assert result.error_in_exec.card.remedy.patch.after == ("%%jit --static n",)


def test_a_kernel_sends_a_proper_error_and_then_the_card(jupyter_home: object) -> None:
    with open_session() as live:
        live.ok("import perspex")
        ran = live.run(BRANCH)
    assert ran.status == "error" and ran.ename == "TracerBoolConversionError"
    assert "y = jnp.where(y > 1, y + 1, y)" in ran.reply["evalue"]
    kinds = [
        output["msg_type"]
        for output in ran.outputs
        if output["msg_type"] == "error" or CARD in output["content"].get("data", {})
    ]
    assert kinds == ["error", "display_data"]
    assert "From the arguments to here" in ran.reply["evalue"]
    assert "From the arguments to here" not in ran.traceback
    assert "TracerBoolConversionError: Attempted boolean conversion" in ran.traceback
    assert "This needs `import perspex.numpy as jnp`." in ran.traceback

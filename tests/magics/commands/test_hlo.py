"""`%hlo` and `%%hlo`.

What is shown must be what `jit` gives for the same function of the same inputs; that this is right
is tested where lowering and compiling are.
"""

from __future__ import annotations

import re

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from support.shells import Notebook

SETUP = """
from perspex import grad, jit, vmap
w = jnp.array([0.5, -1.0, 2.0])
x = jnp.ones((4, 3))
n = 2
def loss(w, x):
    return jnp.tanh(x @ w).sum()
"""
_PLACES = re.compile(r"(?s)FileNames.*?\n\n\n|, metadata=\{[^}]*\}|jit_\w+")


@pytest.fixture
def cells(notebook: Notebook) -> Notebook:
    notebook.ok(SETUP)
    return notebook


def shown(cells: Notebook, cell: str) -> str:
    """The one program that a cell displays, without names and places in the source."""
    assert cells.ok(cell) is None
    (bundle,) = cells.displayed
    assert "<details" in bundle["text/html"] and "<script" not in bundle["text/html"]
    return plain(bundle["text/plain"])


# Settings of XLA, and what follows the name of a module, are only shown with `--all`.
_SETTINGS = re.compile(r"(?m)(?<=^HloModule ), .*$|, backend_config=.*$|\n(?=\n)")


def plain(text: str) -> str:
    return _PLACES.sub("", text).rstrip("\n")


SAME = {
    "loss(w, x)": "jit(loss).lower(w, x)",
    "grad(loss)(w, x)": "jit(grad(loss)).lower(w, x)",
    "jit(loss)(w, x) * n": "jit(lambda w, x, n: jit(loss)(w, x) * n).lower(w, x, n)",
    "x + 1.0": "jit(lambda x: x + 1.0).lower(x)",
}


@pytest.mark.parametrize("expression", SAME)
def test_stablehlo_of_an_expression(cells: Notebook, expression: str) -> None:
    text = shown(cells, f"%hlo {expression} --stage stablehlo")
    assert text.startswith("module") and "stablehlo." in text
    assert text == plain(cells.ok(SAME[expression] + ".as_text()"))


@pytest.mark.parametrize("option", ["", " --stage hlo"])
def test_optimized_hlo_of_an_expression(cells: Notebook, option: str) -> None:
    text = shown(cells, f"%hlo loss(w, x){option}")
    assert text.startswith("HloModule") and "ENTRY" in text
    whole = plain(cells.ok("jit(loss).lower(w, x).compile().as_text()"))
    assert text == _SETTINGS.sub("", whole)


def test_boilerplate_is_shown_when_asked_for(cells: Notebook) -> None:
    noise = ("FileNames", "FunctionNames", "metadata=", "backend_config=", "is_scheduled")
    cells.ok("%hlo loss(w, x)")
    short = cells.displayed[0]["text/plain"]
    cells.ok("%hlo loss(w, x) --all")
    whole = cells.displayed[0]["text/plain"]
    assert not [word for word in noise if word in short]
    assert not [word for word in noise[:3] if word not in whole]
    # Nothing that computes is left out.
    kinds = [re.findall(r" = \S+ ([a-z-]+)\(", text) for text in (short, whole)]
    assert kinds[0] == kinds[1] != []
    cells.ok("%%hlo --all\nx @ w")
    assert "FileNames" in cells.displayed[0]["text/plain"]


def test_types_and_operations_have_the_panels_colours(cells: Notebook) -> None:
    for cell, word, kind in (
        ("%jaxpr loss(w, x)", "tanh", ":f32[4]"),
        ("%hlo loss(w, x) --stage stablehlo", "stablehlo.tanh", "tensor&lt;4xf32&gt;"),
        ("%hlo loss(w, x)", "tanh", "f32[4]"),
    ):
        cells.ok(cell)
        html = cells.displayed[0]["text/html"]
        assert f'keyword-color,inherit);font-weight:600">{word}</span>' in html, cell
        assert f'variable-3-color,inherit)">{kind}' in html, cell


def test_static_names_are_not_inputs(cells: Notebook) -> None:
    text = shown(cells, "%hlo sum(w[i] for i in range(n)) --static n --stage stablehlo")
    assert "tensor<3xf32>" in text and text.count("stablehlo.add") == 2


CELLS = {
    "y = x @ w\ny * 2": "jit(lambda w, x: ((y := x @ w) * 2, y)).lower(w, x)",
    "%%grad w\nloss(w, x)": "jit(grad(loss)).lower(w, x)",
    "%%vmap x\n(x * w).sum()": "jit(lambda w, x: vmap(lambda x: (x * w).sum())(x)).lower(w, x)",
}


@pytest.mark.parametrize("body", CELLS)
def test_a_cell(cells: Notebook, body: str) -> None:
    before = set(cells.ns)
    text = shown(cells, f"%%hlo --stage stablehlo\n{body}")
    assert {name for name in set(cells.ns) - before if not name.startswith("_")} == set()
    assert operations(text) == operations(cells.ok(CELLS[body] + ".as_text()"))


def operations(text: str) -> list[str]:
    """The operations of a StableHLO module, in alphabetical order."""
    return sorted(re.findall(r"stablehlo\.\w+", text))


def test_the_title_says_what_it_is(cells: Notebook) -> None:
    cells.ok("%hlo x @ w")
    assert "optimized HLO of x @ w · inputs x f32[4,3], w f32[3]" in cells.displayed[0]["text/html"]
    cells.ok("%%hlo --stage stablehlo\nx @ w")
    assert "StableHLO of cell · inputs w f32[3], x f32[4,3]" in cells.displayed[0]["text/html"]


def test_inside_a_function_and_a_jitted_cell(cells: Notebook) -> None:
    cells.ok("def look(v):\n    %hlo v * w --stage stablehlo\nlook(x)")
    assert "tensor<4x3xf32>" in cells.displayed[0]["text/plain"]
    cells.ok("%%jit\n%hlo loss(w, x) --stage stablehlo\nz = loss(w, x)")
    assert "stablehlo.tanh" in cells.displayed[0]["text/plain"]


USAGE = {
    "%hlo": "an expression is missing",
    "%hlo loss(w": "not a Python expression",
    "%hlo w --stage jaxpr": "invalid choice: 'jaxpr'",
    "%hlo w + 1 --static x": "does not read `x`",
    "%%hlo --static q\nw": "does not read `q`",
    "%%hlo\n!true\nw": "magics and shell commands",
    "%%grad w\n%%hlo\nw.sum()": "%%hlo has to be the topmost magic",
    "%%jit\n%%hlo --stage hlo\nw.sum()": "%%hlo --stage is for the topmost line",
}


@pytest.mark.parametrize("cell", USAGE)
def test_usage_errors(cells: Notebook, cell: str) -> None:
    cells.fails(cell, UsageError, USAGE[cell])


@pytest.mark.parametrize("cell", ["%%hlo --help", "%hlo --help"])
def test_help(cells: Notebook, cell: str) -> None:
    cells.ok(cell)
    assert "--stage" in cells.out and "--static" in cells.out and "%%%" not in cells.out


COMPLETIONS = {
    "%%hlo --": {"--all", "--help", "--stage", "--static"},
    "%%hlo --stage ": {"hlo", "stablehlo"},
    "%hlo loss(w, x) --stage st": {"stablehlo"},
    "%hlo loss(w, x) --": {"--all", "--help", "--stage", "--static"},
    "%hlo los": {"loss"},
}


@pytest.mark.parametrize("text", COMPLETIONS)
def test_completion(cells: Notebook, text: str) -> None:
    with provisionalcompleter():
        found = {match.text for match in cells.shell.Completer.completions(text, len(text))}
    assert found == COMPLETIONS[text]


def test_errors_name_the_line(cells: Notebook) -> None:
    text = cells.fails("a = 1\n%hlo loss(w, missing)", NameError)
    number = cells.shell.execution_count - 1
    assert f"Cell In[{number}], line 2\n" in text and "perspex_magics" not in text
    text = cells.fails("%%hlo\ny = x\ny @ x", TypeError)
    assert f"Cell In[{number + 1}], line 3\n" in text and "y" not in cells.ns

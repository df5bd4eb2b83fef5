"""The extension in a plain IPython: loading, unloading, completion, displays."""

from __future__ import annotations

import subprocess
import sys

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from support.shells import Notebook

import perspex_magics
from perspex.base import source


@pytest.mark.parametrize("name", ["perspex", "perspex_magics"])
def test_load_ext(shell: InteractiveShell, name: str) -> None:
    notebook = Notebook(shell)
    notebook.fails("%%jit\nx = 1", UsageError, "not found")
    notebook.ok(f"%load_ext {name}")
    notebook.ok("%%jit\nx = 1")
    assert notebook.ns["x"] == 1


def test_unload_leaves_nothing(shell: InteractiveShell) -> None:
    notebook = Notebook(shell)
    html = shell.display_formatter.formatters["text/html"]
    before = (
        dict(html.type_printers),
        list(shell.input_transformers_cleanup),
        list(shell.Completer.custom_matchers),
        source.cell_name("x"),
        {kind: set(names) for kind, names in shell.magics_manager.magics.items()},
    )
    notebook.ok("%load_ext perspex_magics\n%load_ext perspex_magics")
    notebook.ok("%reload_ext perspex_magics")
    notebook.ok("%unload_ext perspex_magics")
    after = (
        dict(html.type_printers),
        list(shell.input_transformers_cleanup),
        list(shell.Completer.custom_matchers),
        source.cell_name("x"),
        {kind: set(names) for kind, names in shell.magics_manager.magics.items()},
    )
    assert after == before
    notebook.fails("%%jit\nx = 1", UsageError, "not found")
    notebook.fails("%grad abs", UsageError, "not found")


def test_core_alone_does_not_load_ipython() -> None:
    code = "import sys, perspex; sys.exit('IPython' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


COMPLETIONS = [
    ("%%jit --", {"--static", "--donate", "--name", "--time", "--show", "--help"}),
    ("%%jit --st", {"--static"}),
    ("%%jit --show ", {"jaxpr", "stablehlo", "hlo"}),
    ("%%jit --show st", {"stablehlo"}),
    ("%%jit --time --s", {"--static", "--show"}),
    ("%%jit --static ste|\nfor i in range(steps): x = x + 1", {"steps"}),
    ("%%grad |\n(w * x).sum()", {"sum", "w", "x"}),
    ("%%grad w,we|\n(w * weight).sum()", {"weight"}),
    ("%%grad w --|\nw", {"--help", "--jit", "--value"}),
    ("%%vmap x\n%%grad w --v|\nw", {"--value"}),
    ("%%vmap x --i|\nx", {"--in"}),
    ("%%jaxpr --", {"--help", "--static"}),
    ("%grad loss(w) --", {"--help", "--jit", "--value", "--wrt"}),
    ("%grad loss(w) ", {"--help", "--jit", "--value", "--wrt"}),
    ("g = %grad loss --w", {"--wrt"}),
    ("%grad loss(w, 2 * bias) --wrt ", {"bias", "decay", "w", "weights"}),
    ("%grad loss --wrt weights,d", {"decay"}),
    ("%vmap loss --o", {"--out"}),
    ("%jaxpr los", {"loss"}),
]


@pytest.mark.parametrize(("text", "expected"), COMPLETIONS, ids=[c[0] for c in COMPLETIONS])
def test_completion(notebook: Notebook, text: str, expected: set[str]) -> None:
    notebook.ok("def loss(weights, decay=0.0): pass")
    cursor = text.find("|") if "|" in text else len(text)
    matches = complete(notebook.shell, text.replace("|", ""), cursor)
    assert matches == expected


def test_completion_elsewhere_is_ipythons(notebook: Notebook) -> None:
    assert "%%jit" in complete(notebook.shell, "%%ji", 4)
    assert complete(notebook.shell, "%%time --st", 11).isdisjoint({"--static"})
    notebook.ok("steps_to_take = 1")
    assert "steps_to_take" in complete(notebook.shell, "%%jit\ny = steps_to", 17)


def complete(shell: InteractiveShell, text: str, cursor: int) -> set[str]:
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        return {match.text for match in shell.Completer.completions(text, cursor)}


def test_locations_name_the_cell(notebook: Notebook) -> None:
    notebook.ok(
        "from perspex.base import source\ndef where(): return source.summary(source.capture())"
    )
    number = notebook.shell.execution_count
    assert notebook.ok("%%jit\n\nplace = where()\nplace").startswith(
        f"Cell In[{number - 1}]:2 (where)"
    )


def test_jaxprs_are_shown_as_html(notebook: Notebook) -> None:
    notebook.ok("jaxpr = perspex.make_jaxpr(lambda x: x + 1)(1.0)")
    jaxpr = notebook.shell.user_ns["jaxpr"]
    bundle, _ = notebook.shell.display_formatter.format(jaxpr)
    assert bundle["text/html"].startswith("<pre ") and "add" in bundle["text/html"]
    assert bundle["text/plain"] == str(jaxpr)


def test_module_reference_is_stable() -> None:
    """What `perspex.load_ipython_extension` names."""
    assert callable(perspex_magics.load_ipython_extension)

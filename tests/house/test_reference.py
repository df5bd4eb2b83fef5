"""The reference of the site has every public name, with what its docstring says."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("IPython", reason="the pages of the site name views of the notebook")


import docstrings
import reference
import smaller
import tables
from perspex import errors
from perspex.base.public import MODULES

sys.path.insert(0, str(Path(__file__).parent))
from test_docstrings import NAMESPACES, functions

ROOT = Path(__file__).resolve().parents[2]
PAGES = dict(reference.pages())
TEXT = "\n".join(PAGES.values())
ANCHORS = set(re.findall(r"\{ #([\w.]+) \}", TEXT))


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_function_has_an_entry(namespace: str) -> None:
    """What the test of docstrings finds in a namespace, found here in another way."""
    names = {f"perspex.{namespace}.{name}" for name, _ in functions(namespace)}
    assert names - ANCHORS == set()


def test_every_name_that_users_import_has_an_entry() -> None:
    """Names in `__all__`, and functions and classes of ours in modules that have no such list."""
    listed = set()
    for home in MODULES:
        module = importlib.import_module(home)
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and str(getattr(value, "__module__", "")).startswith("perspex")
        ]
        listed |= {f"{home}.{n}" for n in names if not inspect.ismodule(getattr(module, n))}
    assert len(listed) > 1500
    assert listed - ANCHORS == set()


def test_links_between_pages_lead_to_entries() -> None:
    for page, text in PAGES.items():
        for path, anchor in re.findall(r"\]\(([\w./-]+\.md)#([\w.]+)\)", text):
            target = re.sub(r"[^/]+/\.\./", "", f"{page.rpartition('/')[0]}/{path}")
            assert f"{{ #{anchor} }}" in PAGES[target], (page, path, anchor)


def test_every_error_has_a_page() -> None:
    made = tables.pages()
    for name in errors.__all__:
        assert f"reference/errors/{name}.md" in made
        assert f"({name}.md)" in made["reference/errors/index.md"]


def test_an_entry_shows_the_parts_of_a_docstring() -> None:
    text = PAGES["reference/perspex.numpy/transcendental.md"].split("{ #perspex.numpy.sin }")[1]
    entry = text.split("\n## ")[0]
    assert "sin(x: ArrayLike, /) -> Array" in entry
    for part in ("The sine of angles", "**Arguments**", "`x`\n:   ", "**Raises**", ">>> jnp.sin("):
        assert part in entry, part


def test_markdown_of_a_docstring() -> None:
    text = "One *line*.\n\nArgs:\n  x, *y: a\n    b.\n\n* an item\n\n>>> 1\n1\n"
    assert docstrings.markdown(text) == (
        "One \\*line\\*.\n\n**Arguments**\n\n`x`, `*y`\n:   a b.\n\n* an item"
        "\n\n```pycon\n>>> 1\n1\n```"
    )


def test_a_stylesheet_keeps_the_rules_that_something_has() -> None:
    sheet = (
        ":root{--icon:url('data:a;b');--used:url(\"data:c{}\")}a{b:c}.on .off,.on{d:e}.off{f:g}"
        "@media print{.off{h:i}}@media screen{.on:not(.off){j:k}.off{l:m}}"
        ".on{background:var(--used)}@font-face{x:y}"
    )
    assert smaller.stylesheet(sheet, {"on"}) == (
        ':root{--used:url("data:c{}")}a{b:c}.on{d:e}@media screen{.on:not(.off){j:k}}'
        ".on{background:var(--used)}@font-face{x:y}"
    )


def test_the_site_names_files_that_are_there() -> None:
    """mkdocs refuses a folder that does not exist, and git keeps no empty one."""
    text = (ROOT / "website" / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"\b(?:assets/[\w.]+|hooks\.py)", text)
    assert len(named) > 3 and "custom_dir" not in text
    assert [name for name in named if not (ROOT / "website" / name).exists()] == []

"""Pages that are notebooks, run from top to bottom, show what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import pages
from support.shells import Notebook

import perspex

DOCS = Path(__file__).resolve().parents[2] / "docs"
MAGICS = DOCS / "magics.md"
PAGES = [
    MAGICS,
    DOCS / "tutorial.md",
    *sorted(DOCS.glob("howto/*.md")),
]
# What only needs a browser, a cluster, a kernel or other programs runs nothing here.
NOTHING = {
    "README",
    "add-a-panel-tab",
    "deploy-on-jupyterhub",
    "restart-and-keep",
    "run-a-notebook",
    "use-another-editor",
    "use-jax-libraries",
    "use-several-processes",
}


@pytest.mark.filterwarnings("default::perspex.errors.StaleCaptureWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_the_page_shows_what_happens(notebook: Notebook, page: Path) -> None:
    perspex.clear_caches()  # what a page says was compiled is compiled by it
    count = pages.check(notebook, page)
    assert count > (25 if page == MAGICS else 0) or page.stem in NOTHING


def test_there_are_thirty_ways() -> None:
    assert len([page for page in DOCS.glob("howto/*.md") if page.stem != "README"]) >= 30


@pytest.mark.parametrize("magic", ["%%jit", "%%grad", "%%vmap", "%%jaxpr", "%%spmd"])
def test_all_magics_are_on_the_page(notebook: Notebook, magic: str) -> None:
    text = MAGICS.read_text(encoding="utf-8")
    assert magic in text
    notebook.ok(f"{magic} --help")
    flags = set(re.findall(r"--[a-z]+", notebook.out)) - {"--help"}
    assert {flag for flag in flags if flag not in text} == set()
    assert set(notebook.shell.magics_manager.magics["cell"]) >= {"jit", "grad", "vmap", "jaxpr"}

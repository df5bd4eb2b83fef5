"""Every error and every notice has a page, and every page is reached by one of them."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("IPython", reason="notices belong to the notebook")

from support.sources import trees

import tables
from perspex import errors
from perspex.advice import explain
from perspex_magics.display.notices import KINDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = explain.pages(vars(errors))
ERRORS = {name for name in PAGES if name[0].isupper()}
# Nobody who uses Perspex meets these, and why.
INSIDE = {
    "BusyError": "%%profile shows its message as a usage error",
    "CellBeganError": "the panel asks again",
    "DamagedError": "the program is compiled again",
    "PanelError": "the build of the wheel says what to do",
    "RefusedError": "the answer to a message that is not one, and a file that is not used",
    "StoreException": "of programs that use `linear_util` of JAX, with a message of its own",
    "StoppedError": "becomes KeyboardInterrupt",
    "UnkeptError": "the reason in the notice `restarted`",
    "_Refused": "ends a trial of a remedy, which is then not shown",
    "_Taken": "takes the place of an error from outside, and is caught where it is raised",
    "_TooLong": "the same as `_Refused`",
}


def _sources() -> Iterator[ast.AST]:
    for tree in trees().values():
        yield from ast.walk(tree)


def _named(base: ast.expr) -> str:
    return base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")


def test_every_error_has_a_page() -> None:
    """Classes are found in the source text, by bases that are exceptions."""
    pythons = {
        name
        for name, value in vars(builtins).items()
        if inspect.isclass(value) and issubclass(value, BaseException)
    }
    bases = {
        node.name: {_named(base) for base in node.bases}
        for node in _sources()
        if isinstance(node, ast.ClassDef)
    }
    found: set[str] = set()
    while True:
        more = {n for n, above in bases.items() if above & (pythons | found)} - found
        if not more:
            break
        found |= more
    assert len(found) > 35
    assert found - ERRORS - set(INSIDE) == set()
    # jaxlib's own class is the one page without a class of ours.
    assert ERRORS - found == set()
    assert set(INSIDE) & ERRORS == set()


def test_every_kind_of_notice_has_a_page() -> None:
    assert {name for name in PAGES if name not in ERRORS} == set(KINDS)
    shown = {
        argument.value
        for node in _sources()
        if isinstance(node, ast.Call)
        and any("notices" in ast.unparse(part) or ast.unparse(part) == "tell"
                for part in [node.func, *node.args[:1]])
        for argument in node.args[:2]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }  # fmt: skip
    assert shown == set(KINDS)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_can_be_read(name: str) -> None:
    page = PAGES[name]
    assert page.startswith("# ") and f"`{name}`" in page.split("\n")[0]
    assert 20 < len(explain.says(page)) < 160
    for path in re.findall(r"\]\(\.\./\.\./([\w./-]+\.md)\)", page):
        assert (ROOT / "docs" / path).exists(), path
    shown = explain.found(name.upper(), PAGES)
    assert "](" not in shown and "../" not in shown
    assert page.count("```") == 2 * page.count("```pycon")


def test_the_site_has_the_same_pages() -> None:
    made = tables.pages()
    for name, page in PAGES.items():
        assert page in made[f"reference/errors/{name}.md"]
        assert f"({name}.md)" in made["reference/errors/index.md"]


def test_an_address_leads_to_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    assert explain.pointer("stale") == "`%explain stale` says more."
    monkeypatch.setattr(explain, "SITE", "https://example.org/perspex/")
    at = "https://example.org/perspex"
    pointer = f"`%explain stale` says more, and {at}/reference/errors/stale.html."
    assert explain.pointer("stale") == pointer
    shown = explain.found("stale", PAGES)
    assert f"[Stale captures]({at}/truth/stale-captures.html)" in shown


def test_a_name_that_is_spelled_wrong() -> None:
    with pytest.raises(LookupError, match=r"`stale-capture`; did you mean .*stale"):
        explain.found("stale-capture", PAGES)
    with pytest.raises(LookupError, match=r"there is no page `zzz`$"):
        explain.found("zzz", PAGES)

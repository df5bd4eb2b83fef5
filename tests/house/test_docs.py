"""What the documentation names exists: paths, modules, links; and its lines can be compared."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
LONGEST = 100

# Where a path on a page may begin, besides the page's own folder.
ROOTS = ["", "core", "core/perspex", "magics", "magics/perspex_magics", "kernel"]
# Packages of the core that are named without `perspex.` in front.
ROOMS = "base|advice|ir|tracing|hlo|ops|transforms|runtime|jitted|control|api|rules|arguments"

# Names with a dot that are no modules: groups of entry points, and the panel's comm target.
OTHERS = {"perspex.ipython", "perspex.panel", "perspex.views"}
# Folders that builds make.
BUILT = {"build/", "dist/", "lib/"}

SPAN = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(?:[\w.-]+/)+[\w.-]+\.(?:py|md|ts|tsx|js|mjs|css|json|ipynb|toml)")
FOLDER = re.compile(r"(?:[\w-]+/)+")
MODULE = re.compile(rf"(?:perspex(?:_magics|_kernel)?|{ROOMS})(?:\.[A-Za-z_]\w*)+")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """The lines of a page that are not code, with their numbers."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def spans(page: Path) -> Iterator[tuple[int, str]]:
    """What stands between backticks."""
    for number, line in prose(page):
        for span in SPAN.findall(line):
            yield number, span


def is_there(path: str, page: Path) -> bool:
    return any((base / path).exists() for base in [page.parent, *(ROOT / r for r in ROOTS)])


def is_module(path: Path) -> bool:
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def resolves(dotted: str) -> bool:
    """Whether a module of ours, or something in one, has this name."""
    full = dotted if dotted.startswith("perspex") else f"perspex.{dotted}"
    parts = full.split(".")
    root = {"perspex": "core", "perspex_magics": "magics", "perspex_kernel": "kernel"}[parts[0]]
    count = len(parts)
    while not is_module(ROOT / root / "/".join(parts[:count])):
        count -= 1
    if count == len(parts):
        return True  # and need not be imported
    found: Any = importlib.import_module(".".join(parts[:count]))
    for part in parts[count:]:
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_paths_exist(page: Path) -> None:
    missing = [
        f"{name(page)}:{number} {span}"
        for number, span in spans(page)
        if (FILE.fullmatch(span) or FOLDER.fullmatch(span))
        and not (span in BUILT or is_there(span, page))
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_modules_exist(page: Path) -> None:
    pytest.importorskip("IPython", reason="pages name views of the notebook, which need IPython")
    missing = [
        f"{name(page)}:{number} {dotted}"
        for number, span in spans(page)
        if (found := MODULE.match(span)) and not FILE.search(span)
        for dotted in [found[0]]
        if dotted not in OTHERS and not resolves(dotted)
    ]
    assert not missing, "\n".join(missing)


def anchors(page: Path) -> set[str]:
    """The places in a page that a link can lead to."""
    heads = [line.lstrip("#").strip() for _, line in prose(page) if line.startswith("#")]
    return {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_resolve(page: Path) -> None:
    broken = []
    for number, line in prose(page):
        for link in LINK.findall(line):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if re.match(r"\w+:", link):
                continue
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{name(page)}:{number} {link}")
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_lines_are_short(page: Path) -> None:
    """Tables and the targets of links may be longer."""
    long = [
        f"{name(page)}:{number} has {len(line)} characters"
        for number, line in prose(page)
        if not line.startswith("|") and len(LINK.sub("]", line)) > LONGEST
    ]
    assert not long, "\n".join(long)


def test_the_map_has_every_room() -> None:
    """The table of floors in architecture.md is the table of layers that the house test keeps."""
    tree = ast.parse((ROOT / "tests" / "house" / "test_layering.py").read_text())
    values = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    layers = [row.split() for row in ast.literal_eval(values["LAYERS"])]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| *(\d+) *\| ([^|]+)\|", page, re.MULTILINE)
    drawn: dict[int, list[str]] = {}
    for floor, rooms in rows:
        drawn.setdefault(int(floor), []).extend(re.findall(r"`(\w+)", rooms))
    assert [sorted(drawn[i]) for i in sorted(drawn)] == [sorted(row) for row in layers]


def test_decisions_are_complete() -> None:
    """Each is short, has the four parts, and stands in the index; the numbers have no gap."""
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    files = sorted(folder.glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in files] == list(range(1, len(files) + 1))
    for path in files:
        text = path.read_text(encoding="utf-8")
        heads = re.findall(r"^## (\w+)$", text, re.MULTILINE)
        assert heads == ["Context", "Decision", "Measurement", "Consequence"], path.name
        assert 10 <= len(text.splitlines()) <= 40, path.name
        assert f"({path.name})" in index, path.name


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_figures_of_speed_are_rows_of_the_table(page: str) -> None:
    """Each pair of times stands in one row of performance.md, Perspex's before JAX's."""
    figure = r"\d[\d.]* (?:ms|us)"
    text = (ROOT / page).read_text(encoding="utf-8")
    pairs = re.findall(rf"({figure})\b.*?({figure})\b", text)
    assert len(pairs) == 3
    table = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    missing = [pair for pair in pairs if not re.search(r" {2,}".join(map(re.escape, pair)), table)]
    assert missing == []
    (rows,) = re.findall(r" target\n(.*?)\n\n", table, re.DOTALL)
    (count,) = re.findall(r"All (\d+) rows", text)
    assert len(rows.splitlines()) == int(count)

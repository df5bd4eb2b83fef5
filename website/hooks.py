"""What mkdocs does besides: pages that are made, links to files of the repository, outputs.

* The reference of functions, options and events comes from the package (`reference.py`), and the
  gallery from the executed notebooks (`gallery.py`).
* Pages of `docs/` link to other files of the repository by their paths. A link to one that has a
  page leads there; the text of any other link stays, as code.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "website"), str(ROOT / "core")]

import gallery  # noqa: E402
import reference  # noqa: E402
import smaller  # noqa: E402
import tables  # noqa: E402
from perspex.advice import explain  # noqa: E402

# Files of the repository that have a page under another path.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "GOVERNANCE.md": "project/governance.md",
    "ROADMAP.md": "project/roadmap.md",
    "FIRST_ISSUES.md": "project/first-issues.md",
}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_OUTPUT = re.compile(r"<p>@@output (\d+)@@</p>")

_made: dict[str, str] = {}
_executed: dict[Path, Any] = {}
_outputs: dict[str, list[str]] = {}
_origins: dict[str, str] = {}


def on_config(config: Any) -> Any:
    """Put the pages that are made into the navigation."""
    with gallery.running() as notebooks:
        _made.update(reference.pages())
    _executed.update({path: done.result() for path, done in notebooks.items()})
    config.site_url = explain.SITE or None
    for section in config.nav:
        for part in section.get("Reference", ()):
            if "Functions" in part:
                part["Functions"] = reference.navigation(_made)
        if "Gallery" in section:
            section["Gallery"] = ["gallery/index.md"]
            section["Gallery"] += [gallery.page_of(path) for path in gallery.notebooks()]
        if "Project" in section:
            there = [page for file, page in PAGES.items() if (ROOT / file).exists()]
            section["Project"] = [page for page in there if page != "index.md"]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made."""
    made = _made | tables.pages()
    for source, page in PAGES.items():
        if page != "index.md" and (ROOT / source).exists():
            made[page] = (ROOT / source).read_text(encoding="utf-8")
            _origins[page] = source
    for path in gallery.notebooks():
        page = gallery.page_of(path)
        made[page], _outputs[page], pictures = gallery.page(path, _executed[path])
        _origins[page] = path.relative_to(ROOT).as_posix()
        for name, content in pictures.items():
            where = posixpath.join(posixpath.dirname(page), "figures", name)
            files.append(File.generated(config, where, content=content))
    made["gallery/index.md"] = tables.gallery_index(_outputs)
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    for path in sorted((ROOT / "website" / "assets").rglob("*")):
        if path.is_file():
            name = path.relative_to(ROOT / "website").as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(text: str, page: Any, config: Any, files: Files) -> str:
    """Lead links to files of the repository to their pages."""
    here = page.file.src_uri
    origin = _origins.get(here, f"docs/{here}")
    if here.startswith("reference/perspex") or here == "reference/index.md":
        return text
    lines, fenced = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        lines.append(line if fenced else _LINK.sub(lambda m: _led(m, origin, here), line))
    return "\n".join(lines)


def _led(found: re.Match[str], origin: str, here: str) -> str:
    mark, shown, link = found.groups()
    if link.startswith("site:"):
        return f"{mark}[{shown}]({_relative(link.removeprefix('site:'), here)})"
    if re.match(r"\w+:|#", link):
        return found[0]
    path, _, anchor = link.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
    if target.startswith("docs/"):
        page = target.removeprefix("docs/")
    elif target in PAGES:
        page = PAGES[target]
    elif target.startswith("examples/") and target.endswith(".ipynb"):
        page = target.replace("examples/", "gallery/", 1).replace(".ipynb", ".md")
    elif (ROOT / target).exists():
        return shown if "`" in shown else f"{shown} (`{target}`)"
    else:
        return found[0]  # mkdocs says that it is broken
    return f"{mark}[{shown}]({_relative(page, here)}{'#' + anchor if anchor else ''})"


def _relative(page: str, here: str) -> str:
    return posixpath.relpath(page, posixpath.dirname(here) or ".")


_NAV = re.compile(r"<(/?)nav\b([^>]*)>")


def on_post_page(text: str, page: Any, config: Any) -> str:
    """Mend what a screen reader would trip over: parts without a name, or with the same one."""
    text = text.replace('data-md-component="search" role="dialog"', _SEARCH)
    text = re.sub(r"<th( style=[^>]*)?></th>", r"<td\1></td>", text)
    # Only the outermost list of pages is a landmark; those within are groups.
    inner: list[bool] = []

    def grouped(found: re.Match[str]) -> str:
        closes, rest = found.groups()
        if closes:
            return "</div>" if inner.pop() else found[0]
        level = re.search(r'data-md-level="(\d)"', rest)
        inner.append(level is not None and level[1] != "0" or len(inner) > 0)
        if not inner[-1]:
            return found[0]
        rest = re.sub(r' aria-expanded="\w+"', "", rest)
        return f'<div{rest} role="group">'

    return _NAV.sub(grouped, text)


_SEARCH = 'data-md-component="search" role="dialog" aria-label="Search"'


def on_post_build(config: Any) -> None:
    """Make the site small."""
    smaller.site(Path(config.site_dir))


def on_page_content(text: str, page: Any, config: Any, files: Files) -> str:
    """Put the outputs of a notebook into its page, and name pictures by where they are."""
    outputs = _outputs.get(page.file.src_uri)
    if outputs is not None:
        up = "../" if config.use_directory_urls else ""
        text = _OUTPUT.sub(lambda m: outputs[int(m[1])], text)
        text = re.sub(r"@@([\w.-]+\.png)@@", rf"{up}figures/\1", text)
    # What scrolls sideways must be reachable by the keyboard.
    return text.replace("<pre><", '<pre tabindex="0"><')

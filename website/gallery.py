"""The example notebooks as pages, with what their cells show in the Perspex kernel.

A notebook is executed once for each state of the sources; what it showed is kept in
`build/gallery`. Those that need libraries of others are shown without outputs.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import os
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
KEPT = ROOT / "build" / "gallery"
# In the order of the gallery; a folder stands for the notebooks in it.
ORDER = ["quickstart", "working_day", "transforms", "many_devices", "new_primitive"]
NEEDS_LIBRARIES = "ecosystem"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_WIDGET = "application/vnd.jupyter.widget-view+json"


def notebooks() -> list[Path]:
    """All example notebooks: first those in order, then the others by name."""
    found = sorted(EXAMPLES.rglob("*.ipynb"), key=lambda p: (len(p.parts), p))
    places = {name: place for place, name in enumerate(ORDER)}
    return sorted(found, key=lambda p: places.get(p.stem, len(places)))


def page_of(path: Path) -> str:
    """The page of a notebook in the site, as mkdocs names its source."""
    return f"gallery/{path.relative_to(EXAMPLES).with_suffix('.md').as_posix()}"


@functools.cache
def _sources() -> bytes:
    found = hashlib.sha256()
    for part in ("core", "magics", "kernel"):
        for path in sorted((ROOT / part).rglob("*.py")):
            found.update(path.read_bytes())
    return found.digest()


@contextmanager
def running() -> Iterator[dict[Path, Future[Any]]]:
    """Execute all notebooks side by side, as most of their time is waiting for compilers."""
    with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        yield {path: pool.submit(executed, path) for path in notebooks()}


def executed(path: Path) -> Any:
    """The notebook with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    if path.parent.name == NEEDS_LIBRARIES:
        return notebook
    key = hashlib.sha256(_sources() + path.read_bytes()).hexdigest()[:16]
    kept = KEPT / f"{path.stem}-{key}.ipynb"
    if kept.exists():
        return nbformat.read(kept, as_version=4)
    print(f"gallery: running {path.relative_to(ROOT)}", flush=True)
    client = NotebookClient(
        notebook,
        kernel_name="perspex",
        timeout=300,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(EXAMPLES)}},
    )
    client.execute()
    KEPT.mkdir(parents=True, exist_ok=True)
    for old in KEPT.glob(f"{path.stem}-*.ipynb"):
        old.unlink()
    nbformat.write(notebook, kept)
    return notebook


def about(notebook: Any) -> tuple[str, str]:
    """The heading of a notebook, and the first sentence below it."""
    head, _, rest = notebook.cells[0].source.partition("\n")
    texts = [rest, *(cell.source for cell in notebook.cells[1:] if cell.cell_type == "markdown")]
    first = next(text.strip() for text in texts if re.match(r"\s*[A-Z]", text))
    sentence = " ".join(first.split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.?!:])\s", sentence)[0]
    return head.removeprefix("# "), f"{sentence[:-1]}." if sentence.endswith(":") else sentence


def page(path: Path, notebook: Any) -> tuple[str, list[str], dict[str, bytes]]:
    """The page of an executed notebook.

    Returns:
      Its Markdown, in which `@@output N@@` stands for an output; the outputs as HTML; and the
      pictures, by name.
    """
    parts, outputs, pictures = [f"---\ntitle: {_plain(about(notebook)[0])}\n---\n"], [], {}
    name = path.relative_to(ROOT).as_posix()
    origin = f"The notebook `{name}`; `make lab` opens it."
    if path.parent.name == NEEDS_LIBRARIES:
        origin = f"The notebook `{name}`, without outputs; `make ecosystem` runs it."
    is_headed = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = cell.source
            head, newline, rest = text.partition("\n")
            if head.startswith("# ") and not is_headed:
                is_headed = True
                text = f"{head}\n\n<p class='pspx-about'>{_code(origin)}</p>\n{newline}{rest}"
            parts.append(text)
        elif cell.source.strip():
            parts.append(f"```python\n{cell.source}\n```")
            for output in cell.get("outputs", ()):
                shown = _output(output, path.stem, pictures)
                if shown:
                    parts.append(f"@@output {len(outputs)}@@")
                    outputs.append(shown)
    return "\n\n".join(parts), outputs, pictures


def _plain(text: str) -> str:
    return re.sub(r"[`*]", "", text).replace(":", " –")


def _code(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)


def _output(output: Any, stem: str, pictures: dict[str, bytes]) -> str:
    if output.output_type == "stream":
        return _text(output.text)
    if output.output_type == "error":
        return _text("\n".join(output.traceback))
    data = output.data
    if "image/png" in data:
        name = f"{stem}-{len(pictures)}.png"
        pictures[name] = base64.b64decode(data["image/png"])
        image = f'<img alt="A figure of the cell above" src="@@{name}@@">'
        return f'<div class="pspx-output">{image}</div>'
    if "text/html" in data:
        return f'<div class="pspx-output pspx-html" tabindex="0">{data["text/html"]}</div>'
    return _text(data.get("text/plain", ""))


def _text(text: str) -> str:
    shown = html.escape(_COLOUR.sub("", text).rstrip())
    return f'<pre class="pspx-output" tabindex="0">{shown}</pre>' if shown else ""

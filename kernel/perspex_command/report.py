"""`perspex report`: what the kernel recorded while a notebook ran, as pages that can be mailed.

The notebook runs in the Perspex kernel, and then the kernel is asked what its magics show. All of
that is HTML without scripts, so the pages need no kernel, no server and no network.
"""

from __future__ import annotations

import argparse
import html
import sys
from pathlib import Path
from typing import Any

from perspex_command.run import export, first_line, run

# What is asked when the notebook has run, and what it is called.
QUESTIONS = {
    "Compiled programs": "%cache --all",
    "Memory": "%buffers --all",
    "Random keys": "%keys",
    "Values": "%whos",
}
_CLOCK = "application/vnd.perspex.clock+json"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto }}
pre, td, code {{ font-family: ui-monospace, monospace; font-size: 13px }}
table {{ border-collapse: collapse }} td, th {{ padding: 2px 10px; text-align: left }}
section {{ overflow-x: auto }} .number {{ text-align: right }}
@media (prefers-color-scheme: dark) {{ body {{ background: #16181d; color: #e6e6e6 }}
a {{ color: #9dbfff }} }}
</style></head><body><main><h1>{title}</h1>{body}</main></body></html>
"""


def main(options: argparse.Namespace, others: list[str]) -> int:
    """Run the notebook, and write the folder."""
    path: Path = options.notebook
    if not path.is_file():
        print(f"perspex report: there is no file {path}", file=sys.stderr)
        return 2
    folder = options.to or path.with_name(f"{path.stem}-report")
    failure = write(path, folder, options.timeout)
    print(f"Written to {folder / 'index.html'}.")
    if failure:
        print(failure, file=sys.stderr)
    return 1 if failure else 0


def write(path: Path, folder: Path, timeout: float | None = None) -> str:
    """Run a notebook and write its report.

    Args:
      path: the notebook; its cells run in its folder.
      folder: where the pages go; it is made.
      timeout: seconds that a cell may take; `None` for no limit.

    Returns:
      The traceback of the cell that failed; the report then has what came before it.
    """
    ran = run(path, timeout, QUESTIONS.values())
    export(ran.notebook, folder / "notebook.html", path.stem)
    answers = dict(zip(QUESTIONS, ran.answers, strict=True))
    page = _page(path.stem, ran.cells, answers, ran.failure)
    (folder / "index.html").write_text(page, encoding="utf-8")
    return ran.failure


def _page(name: str, rows: list[tuple[Any, float]], answers: dict[str, Any], failure: str) -> str:
    parts = ['<p><a href="notebook.html">The notebook with its outputs</a></p>']
    if failure:
        parts.append("<p><strong>A cell failed; the cells after it did not run.</strong></p>")
    parts.append(_section("Cells", _cells(rows)))
    for title, outputs in answers.items():
        shown = "".join(_output(output) for output in outputs) or "<p>Nothing.</p>"
        parts.append(_section(title, shown))
    return _PAGE.format(title=html.escape(f"Report of {name}"), body="".join(parts))


def _section(title: str, body: str) -> str:
    return f"<section tabindex='0'><h2>{html.escape(title)}</h2>{body}</section>"


def _cells(rows: list[tuple[Any, float]]) -> str:
    """Each cell with its time, and the parts that the clock told of."""
    lines = ["<table><tr><th>cell</th><th>time</th><th>parts</th></tr>"]
    for cell, seconds in rows:
        first = html.escape(first_line(cell.source))
        told = [o.data["text/plain"] for o in cell.outputs if _CLOCK in o.get("data", {})]
        parts = html.escape(told[-1]) if told else ""
        lines.append(
            f"<tr><td>{first}</td><td class='number'>{seconds:.3g} s</td><td>{parts}</td></tr>"
        )
    return "".join([*lines, "</table>"])


def _output(output: Any) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return str(data["text/html"])
    return f"<pre>{html.escape(output.get('text') or data.get('text/plain', ''))}</pre>"

"""Run a notebook in the Perspex kernel without a browser.

    perspex run examples/quickstart.ipynb --html build/quickstart.html

Prints a line per code cell with the time it took, as the front end would have seen it, and stops at
the first cell that fails. While a cell runs, a line every five seconds says so. The notebook itself
is not changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from perspex_command.patience import patiently, say


@contextlib.contextmanager
def _without_grammars() -> Iterator[None]:
    """Let jsonschema, which nbformat imports, do without its check of international addresses.

    Where JupyterLab is installed, jsonschema imports `rfc3987_syntax`, which builds 39 grammars: in
    1.3 of the 1.5 seconds that importing nbformat takes. No notebook's schema has such an address.
    """
    name = "rfc3987_syntax"
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # says that there is no such module
    try:
        yield
    finally:
        del sys.modules[name]


with _without_grammars():
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
    from nbconvert import HTMLExporter

_WIDTH = 72


@dataclasses.dataclass
class Run:
    """What came of a notebook: its outputs, the time of each cell, and how it ended."""

    notebook: Any
    # The code cells that ran, with their seconds as a front end sees them.
    cells: list[tuple[Any, float]]
    # The traceback of the cell that failed, if one did.
    failure: str = ""
    # What the kernel showed for each question that was asked at the end.
    answers: list[list[Any]] = dataclasses.field(default_factory=list)


def run(path: Path, timeout: float | None = None, questions: Iterable[str] = ()) -> Run:
    """Execute a notebook, printing as it goes.

    Args:
      path: the notebook; its cells run in its folder.
      timeout: seconds that a cell may take; `None` for no limit.
      questions: cells to run after those of the notebook, or after the one that failed. They do
        not become part of the notebook.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        kernel_name="perspex",
        timeout=timeout,
        # Without the kernel's warning that its sockets, which only this machine reaches, are plain.
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.resolve().parent)}},
    )
    ran = Run(notebook, [])
    started = time.perf_counter()
    with contextlib.ExitStack() as stack:
        with patiently("starting the kernel"):
            stack.enter_context(client.setup_kernel())
        say(started, "the kernel is up")
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            began, mark = time.perf_counter(), ""
            try:
                with patiently(first_line(cell.source)):
                    client.execute_cell(cell, index)
            except CellExecutionError as error:
                ran.failure, mark = str(error), "FAILED  "
            ran.cells.append((cell, time.perf_counter() - began))
            say(began, mark + first_line(cell.source))
            if ran.failure:
                break
        for question in questions:
            notebook.cells.append(nbformat.v4.new_code_cell(question))
            with patiently(first_line(question)):
                answer = client.execute_cell(notebook.cells[-1], len(notebook.cells) - 1)
            ran.answers.append(answer.outputs)
            notebook.cells.pop()
    return ran


def export(notebook: Any, page: Path, name: str) -> None:
    """Write a notebook with its outputs as a page of HTML; its folder is made."""
    page.parent.mkdir(parents=True, exist_ok=True)
    with patiently(f"writing {page.name}"):
        body, _ = HTMLExporter().from_notebook_node(notebook, {"metadata": {"name": name}})
    page.write_text(body, encoding="utf-8")


def first_line(source: str) -> str:
    """How a list of cells names one."""
    lines = source.strip().splitlines()
    more = " ..." if len(lines) > 1 else ""
    return lines[0][: _WIDTH - len(more)] + more


def run_and_export(path: Path, page: Path | None, timeout: float | None = None) -> int:
    """Run a notebook, write it to a page if one is named, and return the exit status."""
    print(path, flush=True)
    started = time.perf_counter()
    ran = run(path, timeout)
    if page is not None:
        export(ran.notebook, page, path.stem)
        say(started, f"in all; written to {page}")
    if ran.failure:
        print(ran.failure, file=sys.stderr)
    return 1 if ran.failure else 0

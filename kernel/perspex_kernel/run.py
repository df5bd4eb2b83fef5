"""Run a notebook in the Perspex kernel without a browser.

    python -m perspex_kernel.run examples/quickstart.ipynb --html build/quickstart.html

Prints a line per code cell with the time it took, as the front end would have seen it, and stops at
the first cell that fails. While a cell runs, a line every five seconds says so. The notebook itself
is not changed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


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
# Seconds without a line, after which whoever waits wonders.
_EVERY = 5.0


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
        with _patiently("starting the kernel"):
            stack.enter_context(client.setup_kernel())
        _say(started, "the kernel is up")
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            began, mark = time.perf_counter(), ""
            try:
                with _patiently(first_line(cell.source)):
                    client.execute_cell(cell, index)
            except CellExecutionError as error:
                ran.failure, mark = str(error), "FAILED  "
            ran.cells.append((cell, time.perf_counter() - began))
            _say(began, mark + first_line(cell.source))
            if ran.failure:
                break
        for question in questions:
            notebook.cells.append(nbformat.v4.new_code_cell(question))
            with _patiently(first_line(question)):
                answer = client.execute_cell(notebook.cells[-1], len(notebook.cells) - 1)
            ran.answers.append(answer.outputs)
            notebook.cells.pop()
    return ran


def export(notebook: Any, page: Path, name: str) -> None:
    """Write a notebook with its outputs as a page of HTML; its folder is made."""
    page.parent.mkdir(parents=True, exist_ok=True)
    with _patiently(f"writing {page.name}"):
        body, _ = HTMLExporter().from_notebook_node(notebook, {"metadata": {"name": name}})
    page.write_text(body, encoding="utf-8")


def _say(began: float, text: str) -> None:
    print(f"{time.perf_counter() - began:8.2f} s  {text}", flush=True)


@contextlib.contextmanager
def _patiently(what: str) -> Iterator[None]:
    """Say every few seconds that something lasts, until it has ended."""
    began, ended = time.perf_counter(), threading.Event()

    def tell() -> None:
        while not ended.wait(_EVERY):
            _say(began, f"still {what}")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def first_line(source: str) -> str:
    """How a list of cells names one."""
    lines = source.strip().splitlines()
    more = " ..." if len(lines) > 1 else ""
    return lines[0][: _WIDTH - len(more)] + more


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--html", type=Path, help="write the executed notebook there")
    parser.add_argument("--timeout", type=float, help="seconds that one cell may take")
    options = parser.parse_args(arguments)
    print(options.notebook, flush=True)
    started = time.perf_counter()
    ran = run(options.notebook, options.timeout)
    if options.html is not None:
        export(ran.notebook, options.html, options.notebook.stem)
        _say(started, f"in all; written to {options.html}")
    if ran.failure:
        print(ran.failure, file=sys.stderr)
    return 1 if ran.failure else 0


if __name__ == "__main__":
    sys.exit(main())

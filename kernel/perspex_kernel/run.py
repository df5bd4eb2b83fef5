"""Run a notebook in the Perspex kernel without a browser.

    python -m perspex_kernel.run examples/quickstart.ipynb --html build/quickstart.html

Prints a line per code cell with the time it took, as the front end would have seen it, and stops at
the first cell that fails. The notebook itself is not changed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter

_WIDTH = 72


def run(path: Path, timeout: float | None = None) -> tuple[Any, str]:
    """Execute a notebook, printing as it goes.

    Args:
      path: the notebook; its cells run in its folder.
      timeout: seconds that a cell may take; `None` for no limit.

    Returns:
      The notebook with its outputs, and the traceback of the cell that failed, if one did.
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
    started = time.perf_counter()
    with client.setup_kernel():
        _say(started, "the kernel is up")
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            began = time.perf_counter()
            try:
                client.execute_cell(cell, index)
            except CellExecutionError as error:
                _say(began, f"FAILED  {_first_line(cell.source)}")
                return notebook, str(error)
            _say(began, _first_line(cell.source))
    return notebook, ""


def _say(began: float, text: str) -> None:
    print(f"{time.perf_counter() - began:8.2f} s  {text}", flush=True)


def _first_line(source: str) -> str:
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
    print(options.notebook)
    started = time.perf_counter()
    notebook, failure = run(options.notebook, options.timeout)
    if options.html is not None:
        options.html.parent.mkdir(parents=True, exist_ok=True)
        resources = {"metadata": {"name": options.notebook.stem}}
        body, _ = HTMLExporter().from_notebook_node(notebook, resources)
        options.html.write_text(body, encoding="utf-8")
        _say(started, f"in all; written to {options.html}")
    if failure:
        print(failure, file=sys.stderr)
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())

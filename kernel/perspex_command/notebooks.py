"""`perspex run` and `perspex demo`: notebooks in the Perspex kernel, without a browser."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from perspex_command.examples import folder
from perspex_command.run import run_and_export

DEMO = "quickstart"


def main(options: argparse.Namespace, others: list[str]) -> int:
    """Run the notebook that was named, or the demonstration."""
    if options.command == "demo":
        return demo(options.html)
    if not options.notebook.is_file():
        print(f"perspex run: there is no file {options.notebook}", file=sys.stderr)
        return 2
    return run_and_export(options.notebook, options.html, options.timeout)


def demo(page: Path) -> int:
    """Run a copy of the first example, and write it to a page."""
    page = page.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(folder() / "data", Path(scratch) / "data")
        notebook = Path(shutil.copy(folder() / f"{DEMO}.ipynb", scratch))
        status = run_and_export(notebook, page)
    if status == 0:
        print(f"Next: open {page} in a browser, or type `perspex lab`.")
    return status

"""What the command understands, and which module does it."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from perspex_command.patience import patiently

# Where each subcommand is, and the extra of the package that brings what it needs.
_MODULES = {
    "lab": ("perspex_command.lab", "lab"),
    "demo": ("perspex_command.notebooks", "notebook"),
    "run": ("perspex_command.notebooks", "notebook"),
    "report": ("perspex_command.report", "notebook"),
    "doctor": ("perspex_command.doctor", ""),
    "explain": ("perspex_command.explain", ""),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status: 0, 1 if something failed, 2 if it was misused."""
    parser = _parser()
    options, others = parser.parse_known_args(arguments)
    if options.version:
        print(f"perspex {version()}")
        return 0
    if options.command is None:
        parser.print_help()
        return 2
    if others and options.command != "lab":
        parser.error(f"unknown argument {others[0]}; see `perspex {options.command} --help`")
    module, extra = _MODULES[options.command]
    try:
        # What runs notebooks imports much, which takes long where nothing was imported before.
        is_heavy = extra == "notebook"
        with patiently("loading what runs notebooks") if is_heavy else contextlib.nullcontext():
            command = importlib.import_module(module)
        status: int = command.main(options, others)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package.startswith("perspex"):
            raise
        what = f"'perspex[{extra}]'" if extra else "--force-reinstall perspex"
        print(
            f"perspex {options.command}: the package `{package}` is not installed.\n"
            f"Install what the command needs: pip install {what}",
            file=sys.stderr,
        )
        return 1
    return status


def version() -> str:
    """The version of the package that is installed."""
    try:
        return metadata.version("perspex")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="perspex", description="A Jupyter kernel you can see through, and its array language."
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    lab = commands.add_parser("lab", help="open JupyterLab with the Perspex kernel on the examples")
    lab.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("perspex-examples"),
        help="opened; made, with copies of the examples, if it does not exist",
    )

    demo = commands.add_parser("demo", help="run an example without a browser and write a page")
    demo.add_argument("--html", type=Path, default=Path("perspex-demo.html"))

    run = commands.add_parser("run", help="run a notebook without a browser")
    run.add_argument("notebook", type=Path)
    run.add_argument("--html", type=Path, help="write the executed notebook there")
    run.add_argument("--timeout", type=float, help="seconds that one cell may take")

    report = commands.add_parser("report", help="run a notebook and write what the kernel recorded")
    report.add_argument("notebook", type=Path)
    report.add_argument("--to", type=Path, help="the folder; by default NOTEBOOK-report")
    report.add_argument("--timeout", type=float, help="seconds that one cell may take")

    explain = commands.add_parser("explain", help="print what an error or a notice means")
    explain.add_argument("name", nargs="?", default="", help="without one, all names are listed")

    doctor = commands.add_parser("doctor", help="look at the installation, and say what to do")
    doctor.add_argument("--json", action="store_true", help="print what was found as JSON")
    return parser

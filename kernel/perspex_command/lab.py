"""`perspex lab`: JupyterLab with the Perspex kernel, on a copy of the examples."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
from pathlib import Path

from perspex_command.examples import folder


def main(options: argparse.Namespace, others: list[str]) -> int:
    """Make the folder if need be, and become JupyterLab."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise ModuleNotFoundError("JupyterLab is not installed", name="jupyterlab")
    place = options.folder.resolve()
    if not place.exists():
        copy(place)
        print(f"Copied the examples to {place}.", flush=True)
    command = arguments(place, others)
    print("Starting JupyterLab; end it with Ctrl+C, twice.", flush=True)
    os.execv(sys.executable, command)


def copy(place: Path) -> None:
    """Copy the examples, without what a notebook leaves behind."""
    shutil.copytree(
        folder(), place, ignore=shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__")
    )


def arguments(place: Path, others: list[str]) -> list[str]:
    """The command line of JupyterLab; what is not understood here is passed on to it."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={place}",
        "--MultiKernelManager.default_kernel_name=perspex",
        # JupyterLab would ask in its first window whether it may fetch news.
        "--LabApp.news_url=None",
        # JupyterLab asks root for this; a container's only user is often root.
        *(["--allow-root"] if is_root else []),
        *others,
    ]

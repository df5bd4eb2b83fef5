"""`perspex lab`: JupyterLab with the Perspex kernel, on a copy of the examples."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
from pathlib import Path

from perspex_command.examples import folder

# Settings that hold unless the user of JupyterLab sets others: nobody is asked about news.
_SETTINGS = Path(__file__).with_name("jupyter")


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
    os.execve(sys.executable, command, {**os.environ, "JUPYTER_CONFIG_PATH": settings()})


def copy(place: Path) -> None:
    """Copy the examples, without what a notebook leaves behind."""
    shutil.copytree(
        folder(), place, ignore=shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__")
    )


def settings() -> str:
    """Where Jupyter looks for settings: in ours, and wherever it was told to look."""
    told = os.environ.get("JUPYTER_CONFIG_PATH")
    return os.pathsep.join([str(_SETTINGS), *([told] if told else [])])


def arguments(place: Path, others: list[str]) -> list[str]:
    """The command line of JupyterLab; what is not understood here is passed on to it."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={place}",
        "--MultiKernelManager.default_kernel_name=perspex",
        # JupyterLab asks root for this; a container's only user is often root.
        *(["--allow-root"] if is_root else []),
        *others,
    ]

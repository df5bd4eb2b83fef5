"""The version is that of the installed package, and nothing is claimed where there is none."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import perspex
from perspex.base import installed

ROOT = Path(__file__).resolve().parents[3]


def test_the_version_is_that_of_the_metadata() -> None:
    try:
        expected = metadata.version("perspex")
    except metadata.PackageNotFoundError:
        expected = installed.UNKNOWN
    assert installed.version() == perspex.__version__ == expected


def test_sources_that_nobody_installed_have_no_version(tmp_path: Path) -> None:
    """The module alone, in a Python that sees no installed packages."""
    shutil.copy(ROOT / "core/perspex/base/installed.py", tmp_path)
    program = "import installed; print(installed.version())"
    command = [sys.executable, "-S", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == installed.UNKNOWN

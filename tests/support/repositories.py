"""git and hatchling for tests of what a repository gives, without any other program."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GIT = shutil.which("git")
needs_git = pytest.mark.skipif(
    GIT is None or not (ROOT / ".git").exists(), reason="needs git and the repository"
)


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"]
    command = [str(GIT), *who, *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def hatchling(folder: Path, *words: str, **environment: str) -> str:
    """What hatchling prints, where git is the only program besides."""
    with tempfile.TemporaryDirectory() as tools:
        if GIT is not None:
            (Path(tools) / "git").symlink_to(GIT)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "hatchling", *words],
            cwd=folder,
            env={"PATH": tools, "HOME": tools, **environment},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()

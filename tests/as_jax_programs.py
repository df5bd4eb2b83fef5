"""Programs for `import jax`, run in a process of their own on Perspex."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support import kept, quick

CORE = Path(__file__).resolve().parents[1] / "core"


def check(program: str, expected: str, folder: Path) -> None:
    """Run a program with Perspex as `jax`; it must print what is expected."""
    path = folder / "program.py"
    path.write_text(program)
    out = subprocess.run(
        [sys.executable, "-m", "perspex.as_jax", str(path)],
        env={**os.environ, "PYTHONPATH": str(CORE)} | kept.environment() | quick.environment(),
        capture_output=True,
        text=True,
    )
    assert out.stdout.strip() == expected.strip(), out.stdout + out.stderr[-2000:]

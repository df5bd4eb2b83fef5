"""An environment of its own for real `jax`, so that the one of Perspex stays without it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def jax_python(directory: Path = ROOT / "build" / "bench-env") -> str:
    """The interpreter of a virtual environment with the `jax` that belongs to our jaxlib.

    Arguments:
      directory: where the environment is, or is made, with this Python's version.

    Returns the path of its interpreter. Raises `subprocess.CalledProcessError` when pip fails.
    """
    jaxlib = version("jaxlib")
    python = directory / "bin" / "python"
    stamp = directory / f"jax-{jaxlib}"
    if not stamp.exists():
        print(f"making {directory} with jax {jaxlib}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(directory)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet"]
        wanted = [f"jax=={jaxlib}", f"jaxlib=={jaxlib}", f"numpy=={version('numpy')}"]
        subprocess.run(install + wanted, check=True)
        stamp.touch()
    return str(python)


if __name__ == "__main__":
    print(jax_python(*map(Path, sys.argv[1:])))

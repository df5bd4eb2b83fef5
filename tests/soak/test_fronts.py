"""Voila starts our kernel, and its page holds what the kernel says.

It is a plugin of every server of Jupyter beside it, so it is not in the environment of the other
tests. `make test-fronts` makes one that has it, and `PERSPEX_FRONTS` names it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import nbformat
import pytest
from support import kept

FRONTS = Path(os.environ.get("PERSPEX_FRONTS", "")).absolute()
pytestmark = pytest.mark.skipif(
    "PERSPEX_FRONTS" not in os.environ, reason="needs Voila; make test-fronts"
)
CELLS = [
    "import jax, jax.numpy as jnp\nrate = 2.0\n@jax.jit\ndef f(x):\n    return rate * x",
    "print(f(jnp.arange(3.0)))",
    "rate = 5.0",
    "f(jnp.arange(3.0))",
]
LONGEST = 200


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def environment(home: Path) -> dict[str, str]:
    """What somebody has who has only the programs of that environment."""
    ours = ("PYTHON", "JUPYTER", "IPYTHON", "VIRTUAL_ENV", "XDG_")
    mine = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    path = f"{FRONTS / 'bin'}{os.pathsep}{mine['PATH']}"
    return {**mine, **kept.environment(), "HOME": str(home), "PATH": path}


@contextmanager
def server(command: list[str], says: str, env: dict[str, str], cwd: Path) -> Iterator[None]:
    """A server, from the line in which it says that it is there until it has ended."""
    command = [str(FRONTS / "bin" / command[0]), *command[1:]]
    process = subprocess.Popen(
        command, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    said = ""
    try:
        for line in process.stdout:
            said += line
            if says in line:
                break
        else:
            raise AssertionError(f"{command[0]} ended:\n{said}")
        # What it says from here on must not fill the pipe.
        rest = Thread(target=process.stdout.read)
        rest.start()
        try:
            yield
        finally:
            process.terminate()
            rest.join()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def test_voila_shows_values_and_notices(tmp_path: Path) -> None:
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS],
        metadata={"kernelspec": {"name": "perspex", "display_name": "Perspex"}},
    )
    nbformat.write(made, tmp_path / "page.ipynb")
    port = free_port()
    command = ["voila", "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1", "page.ipynb"]
    url = f"http://127.0.0.1:{port}/"
    with (
        server(command, url.rstrip("/"), environment(tmp_path), tmp_path),
        urllib.request.urlopen(url, timeout=LONGEST) as answer,
    ):
        page = answer.read().decode()
    assert "[0. 2. 4.]" in page
    # Its page draws other outputs from their data, which it holds.
    assert "application/vnd.perspex.stale+json" in page and "Stale capture" in page
    assert "Array([0., 2., 4.]" in page

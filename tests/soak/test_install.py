"""The wheel in an environment that has nothing else: the library alone, then with the notebook.

It fetches all packages that Perspex needs, so only the tiers above `make test` run it:
`PERSPEX_SOAK=1`. `PERSPEX_PYTHONS` names interpreters, separated by colons; else it is this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = os.environ.get("PERSPEX_PYTHONS", sys.executable).split(":")
pytestmark = [
    pytest.mark.skipif("PERSPEX_SOAK" not in os.environ, reason="fetches all packages; make soak"),
    pytest.mark.timeout(1800),
]


def said(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command prints; it must succeed."""
    # What the tests of the notebook set: folders in which Jupyter would find another kernel.
    ours = ("PYTHON", "JUPYTER", "IPYTHON", "PERSPEX_", "VIRTUAL_ENV", "XDG_")
    environment = {name: v for name, v in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that it gives without Node.js.

    The repository has Node.js, so the archive brings the panel that was built there.
    """
    out = tmp_path_factory.mktemp("dist")
    tool = out / "tool"
    venv.create(tool, with_pip=True, symlinks=True)
    said(tool / "bin" / "pip", "install", "hatchling", "twine")
    said(tool / "bin" / "hatchling", "build", "-t", "sdist", "-d", out, cwd=ROOT)
    (archive,) = out.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(out / "source", filter="data")
    (source,) = (out / "source").iterdir()
    environment = {"PATH": str(tool / "bin"), "HOME": str(out)}
    subprocess.run(
        [tool / "bin" / "hatchling", "build", "-t", "wheel", "-d", out],
        cwd=source,
        env=environment,
        check=True,
    )
    said(tool / "bin" / "twine", "check", "--strict", *out.glob("*.whl"), archive)
    return out


@pytest.mark.parametrize("python", PYTHONS)
def test_a_wheel_in_a_clean_environment(python: str, built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    said(python, "-m", "venv", tmp_path / "env")
    programs = tmp_path / "env" / "bin"
    said(programs / "pip", "install", wheel)

    # A script needs no Jupyter, and the doctor says what is not there without calling it wrong.
    installed = {p["name"] for p in json.loads(said(programs / "pip", "list", "--format=json"))}
    assert not installed & {"ipykernel", "ipython", "jupyterlab", "matplotlib", "jax"}
    program = "import perspex, perspex.numpy as jnp; print(perspex.grad(jnp.sin)(0.0))"
    assert said(programs / "python", "-c", program, cwd=tmp_path).strip() == "1.0"
    assert "Perspex can be used." in said(programs / "perspex", "doctor", cwd=tmp_path)

    said(programs / "pip", "install", f"{wheel}[lab]")
    kernels = json.loads(said(programs / "jupyter", "kernelspec", "list", "--json"))
    assert "perspex" in kernels["kernelspecs"]
    told = json.loads(said(programs / "perspex", "doctor", "--json", cwd=tmp_path))
    states = {finding["about"]: finding["state"] for finding in told}
    assert states["kernel"] == states["panel"] == "ok" and "wrong" not in states.values(), told
    # What JupyterLab finds is told on the other stream.
    listed = subprocess.run(
        [programs / "jupyter", "labextension", "list"], capture_output=True, text=True, cwd=tmp_path
    )
    (line,) = (line for line in listed.stderr.splitlines() if " perspex " in line)
    assert "enabled" in line and "OK" in line
    page = tmp_path / "demo.html"
    assert "the kernel is up" in said(programs / "perspex", "demo", "--html", page, cwd=tmp_path)
    assert page.stat().st_size > 100_000

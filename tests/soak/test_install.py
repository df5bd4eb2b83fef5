"""The wheel in an environment that has nothing else: the library alone, then with the notebook.

It fetches all packages that Perspex needs, so only the tiers above `make test` run it:
`PERSPEX_SOAK=1`. `PERSPEX_PYTHONS` names interpreters, separated by colons; else it is this one.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import psutil
import pytest
from support.repositories import ROOT, hatchling

PYTHONS = os.environ.get("PERSPEX_PYTHONS", sys.executable).split(":")
pytestmark = [
    pytest.mark.skipif("PERSPEX_SOAK" not in os.environ, reason="fetches all packages; make soak"),
    # How long it takes says nothing: `said` ends what does nothing.
    pytest.mark.timeout(0),
]
# Seconds in which a command that is at work prints something or uses a processor.
STUCK = 300


def said(*command: str | Path, cwd: Path | None = None, **more: str) -> str:
    """What a command prints; it must succeed. One that does nothing any more is ended."""
    # What the tests of the notebook set: folders in which Jupyter would find another kernel.
    ours = ("PYTHON", "JUPYTER", "IPYTHON", "PERSPEX_", "VIRTUAL_ENV", "XDG_")
    environment = {name: v for name, v in os.environ.items() if not name.startswith(ours)}
    environment |= more
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=cwd, env=environment)
        before: object = None
        while process.poll() is None:
            now = (out.tell(), err.tell(), used(process.pid))
            if now == before:
                process.kill()
            before = now
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STUCK)
        out.seek(0)
        err.seek(0)
        printed = out.read()
        assert process.returncode == 0, f"{command}\n{printed}\n{err.read()}"
        return printed + (err.read() if "labextension" in command else "")


def used(process: int) -> tuple[float, int]:
    """The processor's seconds that a process and those it started have used, and their number."""
    times = []
    with contextlib.suppress(psutil.NoSuchProcess):
        one = psutil.Process(process)
        for child in (one, *one.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times.append(sum(child.cpu_times()[:2]))
    return sum(times), len(times)


def pip(programs: Path, *what: str | Path) -> None:
    """Install, without compiling modules that nobody imports here."""
    options = ["--no-compile", "--quiet", "--disable-pip-version-check"]
    said(programs / "python", "-m", "pip", "install", *options, *what)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that it gives without Node.js.

    The repository has Node.js, so the archive brings the panel that was built there.
    """
    out = tmp_path_factory.mktemp("dist")
    said(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", out, cwd=ROOT)
    (archive,) = out.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(out / "source", filter="data")
    (source,) = (out / "source").iterdir()
    hatchling(source, "build", "-t", "wheel", "-d", str(out))
    return out


@pytest.mark.parametrize("python", PYTHONS)
def test_a_wheel_in_a_clean_environment(python: str, built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    said(python, "-m", "venv", tmp_path / "env")
    programs = tmp_path / "env" / "bin"
    pip(programs, wheel)

    # A script needs no Jupyter, and the doctor says what is not there without calling it wrong.
    installed = {p["name"] for p in json.loads(said(programs / "pip", "list", "--format=json"))}
    assert not installed & {"ipykernel", "ipython", "jupyterlab", "matplotlib", "jax"}
    program = "import perspex, perspex.numpy as jnp; print(perspex.grad(jnp.sin)(0.0))"
    assert said(programs / "python", "-c", program, cwd=tmp_path).strip() == "1.0"
    assert "Perspex can be used." in said(programs / "perspex", "doctor", cwd=tmp_path)

    pip(programs, f"{wheel}[lab]")
    kernels = json.loads(said(programs / "jupyter", "kernelspec", "list", "--json"))
    assert "perspex" in kernels["kernelspecs"]
    told = json.loads(said(programs / "perspex", "doctor", "--json", cwd=tmp_path))
    states = {finding["about"]: finding["state"] for finding in told}
    assert states["kernel"] == states["panel"] == "ok" and "wrong" not in states.values(), told
    assert {states[name] for name in ("perspex", "jaxlib", "devices")} == {"ok"}
    versions = {finding["says"].split(",")[0] for finding in told if finding["about"] == "panel"}
    assert versions == {wheel.name.split("-")[1]}
    listed = said(programs / "jupyter", "labextension", "list", cwd=tmp_path)
    (line,) = (line for line in listed.splitlines() if " perspex " in line)
    assert "enabled" in line and "OK" in line
    page = tmp_path / "demo.html"
    assert "the kernel is up" in said(programs / "perspex", "demo", "--html", page, cwd=tmp_path)
    assert page.stat().st_size > 100_000

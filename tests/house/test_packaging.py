"""What a wheel holds: the packages, the launcher and the kernelspec, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of this working copy."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = out.glob("*.whl")
    return zipfile.ZipFile(path)


def test_packages(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    version = "0.1.0"
    assert tops == {
        "perspex",
        "perspex_magics",
        "perspex_kernel",
        "perspex_kernel_launcher.py",
        f"perspex-{version}.data",
        f"perspex-{version}.dist-info",
    }
    packaged = {name for name in wheel.namelist() if name.startswith("perspex/")}
    sources = (ROOT / "core" / "perspex").rglob("*.py")
    assert {path.relative_to(ROOT / "core").as_posix() for path in sources} <= packaged


def test_checkers_find_the_types(wheel: zipfile.ZipFile) -> None:
    marked = {name.split("/")[0] for name in wheel.namelist() if name.endswith("/py.typed")}
    assert marked == {"perspex", "perspex_magics", "perspex_kernel"}


def test_kernelspec(wheel: zipfile.ZipFile) -> None:
    folder = "perspex-0.1.0.data/data/share/jupyter/kernels/perspex/"
    found = {name.removeprefix(folder) for name in wheel.namelist() if name.startswith(folder)}
    assert found == {"kernel.json", "logo-32x32.png", "logo-64x64.png", "logo-svg.svg"}
    spec = json.loads(wheel.read(folder + "kernel.json"))
    assert spec["display_name"] == "Perspex" and spec["metadata"]["debugger"] is True
    assert spec["argv"][:4] == ["python", "-P", "-m", "perspex_kernel_launcher"]


def test_version_is_the_packages(wheel: zipfile.ZipFile) -> None:
    import perspex

    metadata = wheel.read("perspex-0.1.0.dist-info/METADATA").decode()
    assert f"\nVersion: {perspex.__version__}\n" in metadata
    assert "Requires-Dist: jax;" not in metadata and "\nRequires-Dist: jaxlib" in metadata

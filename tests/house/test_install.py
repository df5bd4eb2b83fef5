"""`install.py` says what pip does, and speaks while that lasts."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
# In place of Python in the new environment: a pip whose second step ends once `go` is there.
PIP = """#!/bin/sh
echo "Obtaining file:///somewhere"
echo "Collecting jaxlib<0.13,>=0.10.2 (from perspex==0.1)"
while ! test -e "$(dirname "$0")/go"; do sleep 0.01; done
echo "  Downloading jaxlib-0.10.2-cp311-manylinux.whl (85.4 MB)"
echo "Installing collected packages: jaxlib"
exit $(cat "$(dirname "$0")/status")
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with an environment whose pip waits until a line says that it still lasts."""
    spec = importlib.util.spec_from_file_location("install", ROOT / "install.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    said: list[str] = []

    def create(folder: str, **options: object) -> None:
        programs = Path(folder) / "bin"
        programs.mkdir(parents=True)
        (programs / "python").write_text(PIP)
        (programs / "python").chmod(0o755)
        (programs / "status").write_text(given["status"])

    def say(text: str, **options: object) -> None:
        said.append(text)
        if "still finding jaxlib" in text:
            (tmp_path / "env/bin/go").touch()

    given = {"status": "0"}
    monkeypatch.setattr(module.venv, "create", create)
    monkeypatch.setattr(module, "print", say, raising=False)
    monkeypatch.setattr(module, "EVERY", 0.01)
    module.said, module.told = said, given  # type: ignore[attr-defined]
    return module


def steps(said: list[str]) -> list[str]:
    """The lines without times, and without those that only say that a step lasts."""
    return [line.partition(" s  ")[2] for line in said if "  still " not in line]


def test_each_step_is_told_and_so_is_that_it_lasts(install: ModuleType, tmp_path: Path) -> None:
    folder = str(tmp_path / "env")
    assert install.main(folder, ".[dev]") == 0
    assert steps(install.said) == [
        f"making the environment {folder}; the first time takes a minute or more",
        "reading what this repository needs",
        "finding jaxlib",
        "fetching jaxlib, 85.4 MB",
        "unpacking all packages",
        f"done: {folder} is ready",
    ]


def test_where_pip_fails_its_lines_are_shown(install: ModuleType, tmp_path: Path) -> None:
    install.told["status"] = "3"
    assert install.main(str(tmp_path / "env"), ".[dev]") == 3
    *_, end, lines = install.said
    assert end.endswith("pip failed; its last lines:")
    assert lines.startswith("Obtaining file:///somewhere\n") and "Installing collected" in lines

"""The command that runs these tests on a machine with a GPU."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
spec = importlib.util.spec_from_file_location("device_run", RUN)
assert spec is not None and spec.loader is not None
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)


def test_the_report(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    one = f"{RUN.parent / 'test_values.py'}::test_threefry"
    command = [sys.executable, str(RUN), "--offline", "--platform", "cpu"]
    command += ["--report", str(report), "--", one]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    text = report.read_text(encoding="utf-8")
    assert text in ran.stdout
    assert "| values | 1 | 0 | 0 |" in text and "# Tests of cpu (cpu)" in text


def test_a_platform_that_is_not_there(tmp_path: Path) -> None:
    """No test passes on the processor that was to run on a GPU."""
    report = tmp_path / "report.md"
    one = f"{RUN.parent / 'test_values.py'}::test_scatter"
    command = [sys.executable, str(RUN), "--offline", "--report", str(report)]
    ran = subprocess.run(
        [*command, "--platform", "nowhere", "--", one], capture_output=True, text=True, timeout=200
    )
    assert ran.returncode not in (0, 2), ran.stdout
    assert "nowhere" in ran.stdout


def test_what_the_project_needs() -> None:
    """The names of modules, where those of packages differ."""
    found = run.modules_of(["ipython>=9", "a-b[c]>=1,<2", "numpy"])
    assert found == {"IPython": "ipython>=9", "a_b": "a-b[c]>=1,<2", "numpy": "numpy"}
    assert {"jaxlib", "pytest_timeout"} <= run.NEEDED.keys() and "msgspec" in run.WANTED


def test_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """Nothing is run, and the packages are named."""
    monkeypatch.setattr(run, "NEEDED", {"no_such_module": "such-a-package>=1"})
    monkeypatch.setattr(run, "WANTED", {"no_other_module": "other-package"})
    monkeypatch.setattr(run, "has_nvidia", lambda: True)
    monkeypatch.setattr(run, "has_plugin", lambda: False)
    monkeypatch.setattr(run, "run", lambda options: pytest.fail("was run"))
    monkeypatch.setattr(run.sys, "path", [*sys.path])
    assert run.main(["--offline"]) == 2
    said = capsys.readouterr()
    assert "such-a-package>=1" in said.err
    assert "other-package is missing" in said.out and "jax-cuda13-plugin" in said.out


def test_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly what is missing, and the plugin where there is a GPU."""
    asked: list[list[str]] = []
    monkeypatch.setattr(run, "install", lambda packages, options: asked.append(packages))
    monkeypatch.setattr(run, "NEEDED", {"pytest": "pytest", "no_such_module": "such-a-package"})
    monkeypatch.setattr(run, "WANTED", {})
    monkeypatch.setattr(run, "has_nvidia", lambda: True)
    monkeypatch.setattr(run, "has_plugin", lambda: False)
    monkeypatch.setattr(run.sys, "path", [*sys.path])
    assert run.main([]) == 2
    assert asked == [["such-a-package", "jax-cuda13-plugin[with-cuda]>=0.10.2,<0.13"]]

"""`perspex run`: a notebook executed and exported without a browser."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from perspex_command.run import _without_grammars


def run(path: Path, *cells: str) -> subprocess.CompletedProcess[str]:
    notebook = new_notebook(cells=[new_markdown_cell("# A title"), *map(new_code_cell, cells)])
    nbformat.write(notebook, path / "small.ipynb")
    return subprocess.run(
        [sys.executable, "-m", "perspex_command", "run", "small.ipynb", "--html", "out/small.html"],
        cwd=path,
        capture_output=True,
        text=True,
    )


def test_a_notebook_is_run_and_exported(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        "import jax.numpy as jnp\nx = jnp.array([1.25, 2.5])",
        "",
        "%%jit\ny = x * 2\ny",
        "import matplotlib.pyplot as plt\nplt.plot(x)",
    )
    assert ran.returncode == 0, ran.stderr
    lines = re.findall(r"^ *\d+\.\d\d s  (?!still )(.*)", ran.stdout, re.MULTILINE)
    assert lines == [
        "the kernel is up",
        "import jax.numpy as jnp ...",
        "%%jit ...",
        "import matplotlib.pyplot as plt ...",
        "in all; written to out/small.html",
    ]
    html = (tmp_path / "out" / "small.html").read_text()
    assert "A title" in html and "float32[2]" in html and "data:image/png;base64" in html
    assert re.search(r"<td[^>]*>2\.5</td><td[^>]*>5</td>", html)
    # The notebook stays as it was.
    assert not any(cell.get("outputs") for cell in nbformat.read(tmp_path / "small.ipynb", 4).cells)


def test_a_failing_cell_stops_the_run(tmp_path: Path) -> None:
    ran = run(tmp_path, "print('before')", "%%jit\n1 / 0", "print('after')")
    assert ran.returncode == 1
    assert "FAILED  %%jit ..." in ran.stdout and "ZeroDivisionError" in ran.stderr
    html = (tmp_path / "out" / "small.html").read_text()
    assert "before" in html and "ZeroDivisionError" in html and ">after" not in html


def test_a_cell_that_takes_long_is_told_of_while_it_runs(tmp_path: Path) -> None:
    """It ends when it has been read here that it runs: a program that is silent would never end."""
    wait = "import pathlib, time\nwhile not pathlib.Path('go').exists():\n    time.sleep(0.01)"
    nbformat.write(new_notebook(cells=[new_code_cell(wait)]), tmp_path / "small.ipynb")
    command = [sys.executable, "-m", "perspex_command", "run", "small.ipynb"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("s  still import pathlib, time ...\n"):
                break
        (tmp_path / "go").touch()
        rest = process.stdout.read()
    assert process.returncode == 0 and rest.endswith("s  import pathlib, time ...\n")


def test_imports_that_take_long_are_told_of(tmp_path: Path) -> None:
    """What they need is not read for as long as nothing is said."""
    (tmp_path / "nbclient.py").write_text(
        "import pathlib, time\nwhile not pathlib.Path('go').exists():\n    time.sleep(0.01)\n"
        "raise ModuleNotFoundError('no nbclient', name='nbclient')\n"
    )
    command = [sys.executable, "-m", "perspex_command", "run", "small.ipynb"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().endswith("s  still loading what runs notebooks\n")
        (tmp_path / "go").touch()
        assert "package `nbclient` is not installed" in process.stderr.read()


def test_importing_nbformat_builds_no_grammars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "rfc3987_syntax", raising=False)
    with _without_grammars(), pytest.raises(ModuleNotFoundError):
        importlib.import_module("rfc3987_syntax")
    assert "rfc3987_syntax" not in sys.modules


def test_grammars_that_are_there_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    there = ModuleType("rfc3987_syntax")
    monkeypatch.setitem(sys.modules, "rfc3987_syntax", there)
    with _without_grammars():
        assert importlib.import_module("rfc3987_syntax") is there
    assert sys.modules["rfc3987_syntax"] is there

"""Both sides are run in processes of their own, on a suite that was made up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--max-examples", type=int)
    parser.addoption("--hypothesis-disable-deadline", action="store_true")
"""

TESTS = """
import os, sys
def test_the_environment(request):
    assert os.environ["ARRAY_API_TESTS_MODULE"] == "jax.numpy" and "PYTHONPATH" not in os.environ
    assert os.environ["JAX_ENABLE_X64"] == "1"
    assert request.config.getoption("--max-examples") == 7
def test_of_jax_alone():
    assert "perspex" not in sys.modules
def test_of_perspex_alone():
    assert "perspex" in sys.modules
"""


def test_what_only_jax_passes_is_named_and_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    folder = tmp_path / "array_api_tests"
    folder.mkdir()
    (folder / "test_made_up.py").write_text(TESTS)
    said = subprocess.run(
        [sys.executable, "-m", "standard", str(tmp_path), "--seeds", "3", "--examples", "7"]
        + ["--out", str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
    )
    assert said.returncode == 1, said.stdout + said.stderr
    assert said.stdout.splitlines()[2:] == [
        "seed 3: 3 tests on jax (1 failure, 2 passed)",
        "  1 of 2 tests that pass on jax pass on Perspex",
        "  FAILS HERE array_api_tests.test_made_up::test_of_jax_alone: failure",
        "  passes here only: array_api_tests.test_made_up::test_of_perspex_alone",
    ]

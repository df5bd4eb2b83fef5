"""`%cluster` and `%%spmd` without a cluster; tests/kernel/test_cluster.py has one."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.shells import Notebook

from perspex_magics.cluster import engines
from perspex_magics.cluster.engines import ClusterError, Engines, is_running


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("%%spmd\n1", "%cluster start -n 4"),
        ("%cluster restart", "no cluster runs"),
        ("%cluster start -n 0", "at least one engine"),
        ("%cluster begin", "invalid choice"),
        ("%cluster start -n many", "invalid int value"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    notebook: Notebook, capsys: pytest.CaptureFixture[str], cell: str, text: str
) -> None:
    notebook.shell.run_cell(cell)
    assert text in "".join(capsys.readouterr())


def test_status_and_stop_without_a_cluster(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.shell.run_cell("%cluster")
    notebook.shell.run_cell("%cluster stop")
    assert capsys.readouterr().out.splitlines() == [
        "no cluster runs; %cluster start -n 4 starts one with 4 engines",
        "no cluster runs",
    ]


def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(engines.importlib, "import_module", missing)
    with pytest.raises(ClusterError, match=r"pip install 'perspex\[cluster\]'"):
        Engines(2, 1, "").start()


def test_a_process_that_has_ended_does_not_run() -> None:
    assert is_running(engines.os.getpid())
    assert not is_running(2**22 + 1)  # more than Linux gives


def test_ipyparallel_is_imported_only_when_a_cluster_starts() -> None:
    code = (
        "import sys\nfrom IPython.core.interactiveshell import InteractiveShell\n"
        "InteractiveShell.instance().run_line_magic('load_ext', 'perspex_magics')\n"
        "print('ipyparallel' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout == "False\n"

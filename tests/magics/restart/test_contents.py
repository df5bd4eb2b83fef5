"""A session in a file: which names are kept, and what happens where some cannot be made again."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from perspex_magics.restart.archive import Reader
from perspex_magics.restart.contents import Restored, load, save


def again(shell: InteractiveShell) -> tuple[dict[str, Any], Restored]:
    """Save a session, empty the notebook, and load it; returns the names."""
    file = io.BytesIO()
    save(shell, file, waits=True).finish(None)
    for name in [name for name in shell.user_ns if name not in shell.user_ns_hidden]:
        del shell.user_ns[name]
    restored = load(shell, Reader(file))
    return shell.user_ns, restored


def test_one_object_under_two_names(shell: InteractiveShell) -> None:
    shell.run_cell("first = [1]; second = {'of': first}")
    names, _ = again(shell)
    assert names["second"]["of"] is names["first"]


def test_names_of_ipython_are_not_kept(shell: InteractiveShell) -> None:
    shell.run_cell("mine = 1")
    _, restored = again(shell)
    assert "mine" in restored.names and not {"get_ipython", "In", "exit"} & {*restored.names}
    assert shell.user_ns["get_ipython"]() is shell


def test_a_name_that_cannot_be_made_again_costs_no_other(shell: InteractiveShell) -> None:
    shell.run_cell(
        "class Once:\n"
        "    def __reduce__(self):\n"
        "        return refuses, ()\n"
        "def refuses():\n"
        "    raise OSError('no such device')\n"
        "once, sound = Once(), [2]"
    )
    names, restored = again(shell)
    assert [tuple(one) for one in restored.lost] == [("once", "OSError: no such device")]
    assert names["sound"] == [2] and "once" not in names


def test_an_error_of_the_file_ends_it(shell: InteractiveShell) -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    shell.run_cell("import numpy\nx = numpy.ones(3)")
    with pytest.raises(OSError, match="No space"):
        save(shell, Full(), waits=True)


def test_the_folder_and_the_path(shell: InteractiveShell, tmp_path: Path) -> None:
    home = os.getcwd()
    shell.run_cell(f"import os, sys; os.chdir({str(tmp_path)!r}); sys.path.append('/nowhere')")
    file = io.BytesIO()
    save(shell, file, waits=True).finish(None)
    shell.run_cell(f"os.chdir({home!r}); sys.path.remove('/nowhere')")
    try:
        load(shell, Reader(file))
        assert os.getcwd() == str(tmp_path)
        shell.run_cell("there = '/nowhere' in sys.path; sys.path.remove('/nowhere')")
        assert shell.user_ns["there"]
    finally:
        os.chdir(home)

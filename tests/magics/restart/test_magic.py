"""`%restart` as a magic: what it asks for, and what a notebook without our kernel says."""

from __future__ import annotations

import pytest
from support.shells import Notebook

from perspex_magics.restart.magic import Restart
from perspex_magics.session import part


def test_without_the_kernel(notebook: Notebook) -> None:
    notebook.run("%restart")
    assert "%restart: only the Perspex kernel can restart itself" in notebook.out


def test_it_asks_and_the_kernel_takes_it_once(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kernel:
        restart_obstacle = ""

    monkeypatch.setattr(notebook.shell, "kernel", Kernel(), raising=False)
    restart = part(notebook.shell, Restart)
    notebook.ok("%restart --now")
    asked = restart.take()
    assert asked is not None and asked.now and restart.take() is None

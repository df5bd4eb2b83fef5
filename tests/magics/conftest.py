"""A plain IPython in this process, with the extension loaded."""

from __future__ import annotations

import atexit
import builtins
import gc
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from support.shells import Notebook, Told
from traitlets.config import Config

import perspex
from perspex_magics import unload_ipython_extension


@pytest.fixture(scope="session", autouse=True)
def modules_of_cells() -> Iterator[None]:
    """Cells are in no module, as Python finds when it has looked through all there are.

    IPython asks several times for each line of a traceback, and of modules there are thousands
    here: half of the time of a cell that fails.
    """
    usual = inspect.getmodule

    def getmodule(found: Any, name: str | None = None) -> Any:
        code = getattr(found, "f_code", found)
        if inspect.iscode(code) and code.co_filename.startswith("<ipython-input-"):
            return None
        return usual(found, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect, "getmodule", getmodule)
        yield


@pytest.fixture
def shell(jupyter_home: object) -> Iterator[InteractiveShell]:
    """An IPython of its own, as a terminal has."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.clear_instance()
    # IPython keeps out of the way of a `_` that a doctest has left there.
    vars(builtins).pop("_", None)
    shell = InteractiveShell.instance(config=config)
    # `reset` collects garbage: what there was before is not to be looked through each time.
    gc.freeze()
    yield shell
    unload_ipython_extension(shell)
    # What IPython keeps for the end of the process: hundreds of shells would wait there.
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()
    InteractiveShell.clear_instance()


@pytest.fixture
def notebook(shell: InteractiveShell) -> Notebook:
    """A notebook with the extension, `jnp` and `np`."""
    notebook = Notebook(shell)
    notebook.ok("%load_ext perspex_magics")
    notebook.ok("import numpy as np, perspex, perspex.numpy as jnp")
    return notebook


@pytest.fixture
def told(notebook: Notebook) -> Told:
    """The same, which keeps what it warned of."""
    return Told(notebook)


@pytest.fixture
def default_policy() -> Iterator[None]:
    """Stale captures are warned of, before and after."""
    perspex.config.update("stale_captures", "warn")
    yield
    perspex.config.update("stale_captures", "warn")

"""`%debug` begins in the user's function."""

from __future__ import annotations

import sys
from typing import Any

from support.shells import Notebook

from perspex_magics import unload_ipython_extension


def test_the_debugger_begins_in_the_users_frame(notebook: Notebook) -> None:
    notebook.run(
        "def g(y):\n    if y > 0:\n        return y\n    return -y\n"
        "@perspex.jit\ndef f(x): return g(x * 2)\nf(1.)"
    )
    tb = sys.last_traceback
    drawn: Any = notebook.shell.InteractiveTB
    debugger = drawn.debugger_cls()
    debugger.setup(None, tb)
    assert debugger.curframe.f_code.co_name == "g"
    assert "y" in debugger.curframe.f_locals
    # The frames of Perspex are below it.
    assert debugger.curindex < len(debugger.stack) - 1


def test_an_error_of_the_users_own_is_debugged_where_it_is(notebook: Notebook) -> None:
    notebook.run("def h(y): return 1 / y\nh(0)")
    debugger = notebook.shell.InteractiveTB.debugger_cls()
    debugger.setup(None, sys.last_traceback)
    assert debugger.curframe.f_code.co_name == "h"


def test_unloading_takes_it_away(notebook: Notebook) -> None:
    unload_ipython_extension(notebook.shell)
    assert notebook.shell.InteractiveTB.debugger_cls.__name__ != "UserDebugger"

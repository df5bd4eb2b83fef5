"""Forks: a warning before, and an error instead of a deadlock in the child.

XLA computes in threads, and a fork copies none of them. A program in the child would wait for one
of these for ever. So there every call comes to Python, and says what to do.
"""

from __future__ import annotations

import os
import sys
import warnings

from perspex import config
from perspex.base import source

_INSTEAD = (
    'Use processes that do not begin as a fork, multiprocessing.get_context("spawn"), or threads.'
)
# A fork in these modules is followed at once by the execution of another program.
_EXECUTES = {"pty", "ptyprocess.ptyprocess", "ptyprocess._fork_pty", "subprocess"}
# Between the hook and the function in such a module.
_NEAR = 3

# Whether this process was forked from one with XLA's threads. Whoever needs these raises `refused`.
is_child = False


def refused(what: str) -> RuntimeError:
    """The error for what cannot run in such a process."""
    return RuntimeError(
        f"{what} cannot run in this process, which was forked: a fork does not copy the threads "
        f"that Perspex computes with, so it would wait for ever. {_INSTEAD}"
    )


def _warn() -> None:
    frame = sys._getframe(1)
    for _ in range(_NEAR):
        if frame.f_globals.get("__name__") in _EXECUTES:
            return
        if frame.f_back is None:
            break
        frame = frame.f_back
    warnings.warn(
        "os.fork() was called, but a fork does not copy the threads that Perspex computes with. "
        "The child can read arrays that are ready, but every program raises an error there. "
        f"{_INSTEAD}",
        RuntimeWarning,
        stacklevel=source.stacklevel(),
    )


def _note() -> None:
    global is_child
    is_child = True
    # The programs that C++ knows were called under another value.
    config.forked.cell.set_global(True)


def watch() -> None:
    """From now on, when there are threads, warn of forks. Called once."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
        os.register_at_fork(before=_warn, after_in_child=_note)

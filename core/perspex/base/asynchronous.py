"""Errors that are raised in a thread from outside, and taken back where they have not come yet."""

from __future__ import annotations

import ctypes
import threading

_raise = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise.argtypes = (ctypes.c_ulong, ctypes.py_object)


def raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise an error in a thread as soon as it runs Python.

    Args:
      thread: its identity, as `threading.get_ident` gives it.
      error: the class; an instance is made when it is raised.
    """
    _raise(thread, error)


class _Taken(BaseException):
    """Takes the place of an error that is no longer to be raised."""


def take_back() -> None:
    """Have no error raised in this thread that `raise_in` has asked for and that has not come.

    Not by asking for no error: Python 3.11 would look for one before each instruction from then on,
    and would not get beyond the first one where a profiler or a debugger watches.
    """
    try:
        _raise(threading.get_ident(), _Taken)
        while True:
            pass
    except _Taken:
        pass

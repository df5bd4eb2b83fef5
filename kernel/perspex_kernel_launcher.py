"""Starts the Perspex kernel and ends it: `python -P -m perspex_kernel_launcher -f FILE`.

A `random.py` beside a notebook must not replace the standard library's while the kernel starts.
With `-P` Python itself begins without the working directory in `sys.path`. Without it, in an older
kernelspec, the directory leaves the path here, before anything else is imported. The application
puts it back before the first cell runs.
"""

import atexit
import gc
import io
import os
import signal
import sys
from pathlib import Path

FILES = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)


def leave(status: int) -> None:
    """End the process without tearing Python down, as the last of all that is called at exit.

    While Python tears itself down, it ends a daemon thread at its next step. If that thread is
    inside XLA, C++ aborts the process, and a kernel that was asked to stop would look as if it had
    crashed. Tearing down would also write what open files still hold, so this is done here.
    """
    for file in gc.get_objects():
        if type(file) in FILES:
            try:
                file.flush()
            except Exception:
                continue  # it is closed, or broken
    again = sys.modules.get("perspex_kernel.again")
    if again is not None and again.is_armed():
        again.run()  # `%restart`
    os._exit(status)


def status_of(end: SystemExit) -> int:
    """The status with which Python ends the process for this exception."""
    if end.code is None:
        return 0
    return end.code if isinstance(end.code, int) else 1


if __name__ == "__main__":
    if not sys.flags.safe_path and (sys.path[0] == "" or Path(sys.path[0]) == Path.cwd()):
        del sys.path[0]

    # What is registered first is called last.
    status = 1
    atexit.register(lambda: leave(status))

    # A process without the three standard streams would give their numbers to sockets.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            mode = "r+" if number else "r"
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115

    try:
        os.getcwd()
    except FileNotFoundError:
        home = os.path.expanduser("~")
        os.chdir(home if os.path.isdir(home) else "/")
        print(f"the kernel's folder is gone; it starts in {os.getcwd()}", file=sys.stderr)

    # A notebook can be opened whatever the environment says. It tells what was left out.
    os.environ.setdefault("PERSPEX_BAD_VALUES", "default")

    # Each start would tell the front end that a debugger cannot stop in Python's start-up modules.
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")

    try:
        from perspex_kernel.app import PerspexKernelApp
    except ModuleNotFoundError as missing:
        # The package without extras is a library; its kernelspec is there nevertheless.
        if (missing.name or "").startswith("perspex"):
            raise
        sys.exit(
            f"The Perspex kernel needs the package `{missing.name}`: "
            "pip install 'perspex[notebook]'"
        )

    # How `%restart` starts this again. IPython ignores the signal between cells, and a signal that
    # a program ignores when it begins is ignored by Python, too.
    sys.modules["perspex_kernel.again"].command[:] = [sys.executable, *sys.orig_argv[1:]]
    signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        PerspexKernelApp.launch_instance()
        status = 0
    except SystemExit as end:
        status = status_of(end)
        raise

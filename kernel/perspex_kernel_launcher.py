"""Starts the Perspex kernel: `python -m perspex_kernel_launcher -f connection.json`.

It stands outside the package so that the working directory leaves `sys.path` before anything else
is imported: a `random.py` beside a notebook must not replace the standard library's while the
kernel starts. IPython puts the directory back before the first cell runs.
"""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    if sys.path[0] == "" or Path(sys.path[0]) == Path.cwd():
        del sys.path[0]

    # Each start would tell the front end that a debugger cannot stop in Python's start-up modules.
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")

    from perspex_kernel.app import PerspexKernelApp

    PerspexKernelApp.launch_instance()

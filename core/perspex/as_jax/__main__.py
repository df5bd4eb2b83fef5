"""`python -m perspex.as_jax script.py args`: run a program written for jax on Perspex."""

from __future__ import annotations

import os
import runpy
import sys

import perspex.as_jax  # noqa: F401 - makes `import jax` mean Perspex

_USAGE = "usage: python -m perspex.as_jax (script.py | -m module) [args ...]"


def main(argv: list[str]) -> None:
    """Run the script or module that `argv` names, with the rest as its arguments."""
    if not argv or argv[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stdout if argv else sys.stderr)
        raise SystemExit(0 if argv else 2)
    if argv[0] == "-m":
        if len(argv) < 2:
            raise SystemExit(_USAGE)
        sys.argv = argv[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        return
    if not os.path.exists(argv[0]):
        raise SystemExit(f"perspex.as_jax: there is no file {argv[0]!r}")
    sys.argv = argv
    sys.path[0] = os.path.dirname(os.path.abspath(argv[0]))
    runpy.run_path(argv[0], run_name="__main__")


main(sys.argv[1:])

"""The oracle process: reads requests, one JSON object a line, and answers them under real JAX.

Run by `process.Oracle` as `python worker.py jax`. Requests: `{"setup": text}` opens a namespace,
`{"source": text, "flags": [[name, value], ...]}` evaluates in it, `{"recorder": name}` runs
`recorders/NAME.py`. The first answer tells versions.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import types
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any


def serve(library: Any, library_name: str) -> None:
    """Answer requests until standard input ends."""
    # Whatever a case prints must not mix with the answers: keep the pipe, give prints to stderr.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    hello = {name: version(name) for name in (library_name, "jaxlib", "numpy", "ml_dtypes")}
    answers.write(json.dumps(hello | {"python": platform.python_version()}) + "\n")
    answers.flush()
    namespace: dict[str, object] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "setup" in request:
            namespace = library.namespace(request["setup"])
            answer: object = "ready"
        elif "recorder" in request:
            recorder = importlib.import_module(f"recorders.{request['recorder']}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # 64-bit names are asked for on purpose
                answer = recorder.record()
        else:
            answer = library.outcome(namespace, request["source"], request["flags"])
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    # A package of this name without its `__init__`: that imports pytest, which the environment
    # with jax need not have.
    package = types.ModuleType("oracle")
    package.__path__ = [str(Path(__file__).parent)]
    sys.modules["oracle"] = package
    from evaluate import Library

    serve(Library(sys.argv[1]), sys.argv[1])

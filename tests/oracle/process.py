"""`Oracle`: real JAX in another process, asked over a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from types import TracebackType
from typing import Any

from .cases import HERE, Table

Outcome = list[Any]


class Oracle:
    """A long-lived interpreter that has `jax`; use it as a context manager.

    Arguments:
      python: path of an interpreter in whose environment `jax` is installed.
      variables: what it finds in its environment besides.

    Raises `RuntimeError` when that interpreter cannot import `jax`.
    """

    def __init__(self, python: str, variables: dict[str, str] | None = None) -> None:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("JAX_", "PERSPEX_", "PYTHONPATH", "XLA_"))
        }
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 (closed in close)
        self._process = subprocess.Popen(
            [python, str(HERE / "worker.py"), "jax"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            env=environment | {"JAX_PLATFORMS": "cpu"} | (variables or {}),
        )
        self.versions: dict[str, str] = self._read()

    def evaluate(self, table: Table) -> dict[str, Outcome]:
        """The outcomes of all cases of `table`, by the case's key."""
        self._ask({"setup": table.setup})
        return {
            case.key: self._ask({"source": case.source, "flags": case.flags})
            for case in table.cases
        }

    def run(self, recorder: str) -> dict[str, Any]:
        """What `recorders/<recorder>.py` records, by key."""
        return self._ask({"recorder": recorder})

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        self._log.close()

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.communicate()
            self._log.seek(0)
            raise RuntimeError(f"the oracle process ended:\n{self._log.read()}")
        return json.loads(line)

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

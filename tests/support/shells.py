"""A notebook in this process: a plain IPython, run cell by cell."""

from __future__ import annotations

import re
import warnings
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from perspex.errors import StaleCaptureWarning

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# Markup of ours that was taken for text.
_ESCAPED = re.compile(r"&lt;(?:code|details|div|span|strong|table|t[dhr])\b")


class Notebook:
    """Runs cells in a shell as a front end does."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.ns = shell.user_ns
        self.out = ""
        self.displayed: list[dict[str, Any]] = []

    def run(self, cell: str) -> Any:
        """Run a cell; returns IPython's result. What it printed is in `out`."""
        with capture_output() as captured:
            result = self.shell.run_cell(cell, store_history=True)
        self.out = _COLOURS.sub("", captured.stdout + captured.stderr)
        self.displayed = [output.data for output in captured.outputs]
        for bundle in self.displayed:
            assert not _ESCAPED.search(bundle.get("text/html", "")), bundle["text/html"]
        return result

    def ok(self, cell: str) -> Any:
        """Run a cell that must succeed; returns its value."""
        result = self.run(cell)
        assert result.success, self.out
        return result.result

    def fails(self, cell: str, error: type[BaseException], match: str = "") -> str:
        """Run a cell that must fail so; returns the traceback as it is shown."""
        result = self.run(cell)
        raised = result.error_in_exec or result.error_before_exec
        assert isinstance(raised, error), raised
        assert re.search(match, str(raised)), raised
        return self.out


class Told:
    """Runs a cell that must succeed; keeps what it warned of."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.warnings: list[StaleCaptureWarning] = []

    def ok(self, cell: str) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = self.notebook.ok(cell)
        self.warnings = [w.message for w in caught if isinstance(w.message, StaleCaptureWarning)]
        return value

    @property
    def variables(self) -> list[str]:
        return [change.variable for warning in self.warnings for change in warning.changes]

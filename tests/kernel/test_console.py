"""Jupyter Console: a terminal that prints both the traceback and the outputs of a cell."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.session import TIMEOUT

pexpect = pytest.importorskip("pexpect", reason="a terminal of a test's own needs Unix")

PROMPT = r"In \[\d+\]: "
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

# Cells, each with a piece of text of its error that must be there once.
ERRORS = {
    "f(1.0)": [
        "Abstract tracer value encountered where concrete value is expected",
        "Remedy: mark `x` static",
        "From the arguments to here:",
        "float() needs its value",
        "%explain ConcretizationTypeError",
    ],
    "jnp.ones(3) + jnp.ones(4)": ["add got incompatible shapes for broadcasting: (3,), (4,)"],
    "g(jnp.ones(3), jnp.ones(4))": ["incompatible shapes", "From the arguments to here:"],
    "1 / 0": ["ZeroDivisionError: division by zero"],
    "%hlo": ["UsageError"],
    "1 +": ["SyntaxError: "],
}


@pytest.fixture(scope="module")
def console(jupyter_home: object) -> Iterator[Any]:
    """A console with our kernel, as it is after its first cell."""
    arguments = ["-m", "jupyter_console", "--kernel", "perspex", "--simple-prompt"]
    console = pexpect.spawn(
        sys.executable, arguments, encoding="utf-8", timeout=TIMEOUT, dimensions=(200, 200)
    )
    try:
        console.expect(PROMPT)
        run(console, "import perspex, perspex.numpy as jnp; f = perspex.jit(lambda x: float(x))")
        run(console, "g = perspex.jit(lambda a, b: a * 2 + b)")
        yield console
    finally:
        console.sendeof()
        console.close(force=True)


def run(console: Any, cell: str) -> str:
    """Run a cell; returns what is printed up to the next prompt."""
    console.sendline(cell)
    console.expect(PROMPT)
    return _COLOURS.sub("", console.before)


@pytest.mark.parametrize("cell", ERRORS)
def test_an_error_is_printed_once(console: Any, cell: str) -> None:
    printed = run(console, cell)
    for text in ERRORS[cell]:
        assert printed.count(text) == 1, printed

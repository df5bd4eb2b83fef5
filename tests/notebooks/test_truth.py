"""What the notebook tells, as one notebook: the same cells and the same checks in three places.

They run in the Perspex kernel as a front end talks to it, in the Perspex kernel under nbconvert,
and under nbconvert in IPython's own kernel after `%load_ext perspex`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert import HTMLExporter
from nbconvert.preprocessors.execute import ExecutePreprocessor
from support.session import TIMEOUT, open_session

MIME = "application/vnd.perspex.{}+json"

# By what is looked at: a cell, or several of which the last one is looked at.
CELLS = {
    "setup": """
import os, signal, threading, time
import numpy as np
import perspex, perspex.numpy as jnp
%clock on
scale = 2.0
x = jnp.ones(3)
""",
    "clock": """
@perspex.jit
def f(x):
    return jnp.sin(x) * scale
y = f(x)
""",
    "cache": """
@perspex.jit
def f(x):  # defined again
    return jnp.sin(x) * scale
y = f(x)
""",
    "the cache's list": "%cache f",
    "recompilation": "for n in range(4, 44):\n    y = f(jnp.ones(n))",
    "a stale capture": "scale = 3.0\ny = f(x)",
    "the old program": "print(np.allclose(y, 2 * np.sin(1)))",
    "the new program": "f.retrace()\nprint(np.allclose(f(x), 3 * np.sin(1)))",
    # Asleep where it would trace for long, which costs the test no processor time.
    "heartbeat": """
@perspex.jit
def slow(x):
    x = jnp.cos(x)
    time.sleep(2.8)
    return x
y = slow(x)
""",
    "interrupt": """
kept = jnp.arange(3)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
count = 0
while True:
    count += 1
""",
    "after the interrupt": "print(kept.tolist(), count > 0)",
    "an error card": """
@perspex.jit
def choose(x):
    z = x * 2
    if z > 0:
        y = z
    else:
        y = -z
    return y
choose(1.0)
""",
    "memory held by an error": """
def fails(n):
    big = jnp.ones((n, n))
    raise ValueError("on purpose")
fails(700)
""",
    "released": "print(max(a.nbytes for a in perspex.live_arrays()) < 700 * 700)",
}


class Outputs:
    """What one cell showed, in the format of notebooks."""

    def __init__(self, outputs: list[dict[str, Any]]) -> None:
        self.outputs = outputs

    def notices(self, kind: str) -> list[tuple[dict[str, Any], str, str]]:
        """Data, text and HTML of our notices of a kind, in order."""
        bundles = [output.get("data", {}) for output in self.outputs]
        found = [data for data in bundles if MIME.format(kind) in data]
        return [(data[MIME.format(kind)], data["text/plain"], data["text/html"]) for data in found]

    def last(self, kind: str) -> tuple[dict[str, Any], str]:
        """The last of them, without its HTML, of which only is asked that it is there."""
        data, text, html = self.notices(kind)[-1]
        assert html.startswith("<") and "<script" not in html
        return data, text

    @property
    def printed(self) -> str:
        return "".join(o["text"] for o in self.outputs if o["output_type"] == "stream")

    @property
    def text(self) -> str:
        """All that is text."""
        shown = [output.get("data", {}).get("text/plain", "") for output in self.outputs]
        return self.printed + "\n".join(shown)

    @property
    def error(self) -> dict[str, Any]:
        (found,) = [output for output in self.outputs if output["output_type"] == "error"]
        return found


# ---- three places -------------------------------------------------------------------------------


def in_a_front_end(cells: list[str]) -> list[Outputs]:
    """Cell by cell over the protocol; what replaces an output stands behind it."""
    found = []
    with open_session() as session:
        for cell in cells:
            messages = session.run(cell).outputs
            found.append(Outputs([_output(m) for m in messages if m["msg_type"] in _OUTPUTS]))
    return found


_OUTPUTS = {"stream", "display_data", "update_display_data", "execute_result", "error"}


def _output(message: dict[str, Any]) -> dict[str, Any]:
    return {"output_type": message["msg_type"].removeprefix("update_"), **message["content"]}


def under_nbconvert(kernel: str, cells: list[str]) -> list[Outputs]:
    """The notebook executed as `jupyter nbconvert --execute --allow-errors` does."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    runner = ExecutePreprocessor(timeout=TIMEOUT, kernel_name=kernel, allow_errors=True)
    runner.preprocess(notebook, {"metadata": {"path": "."}})
    nbformat.validate(notebook)
    body, _ = HTMLExporter().from_notebook_node(notebook)
    # The card of the error is in the page, with what to write instead.
    assert re.search(r"jnp\.where\(z &gt; 0, z, -z\)", re.sub("</?[a-z]+[^>]*>", "", body))
    return [Outputs(cell.outputs) for cell in notebook.cells]


PLACES: dict[str, Callable[[], list[Outputs]]] = {
    "a front end": lambda: in_a_front_end(list(CELLS.values())),
    "nbconvert": lambda: under_nbconvert("perspex", list(CELLS.values())),
    "nbconvert with IPython's kernel": lambda: under_nbconvert(
        "python3", ["%load_ext perspex", *CELLS.values()]
    )[1:],
}


# ---- one checker --------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_what_the_notebook_tells(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing is compiled yet
    shown = dict(zip(CELLS, PLACES[place](), strict=True))
    failed = [name for name, outputs in shown.items() if _failed(outputs)]
    assert failed == ["interrupt", "an error card", "memory held by an error"]

    reading, _ = shown["clock"].last("clock")
    parts = ["trace", "lower", "compile", "device", "transfer", "python", "idle"]
    assert reading["trace"] > 0 and reading["lower"] > 0 and reading["compile"] > 0
    assert sum(reading[part] for part in parts) == pytest.approx(reading["wall"], rel=1e-6)
    assert set(reading["sources"]) == {"xla"}

    again, text = shown["cache"].last("clock")
    assert again["sources"] == {"memory": 1} and "(memory)" in text
    listed = shown["the cache's list"].text
    assert "compiled by XLA in" in listed and "found in memory in" in listed

    card, text = shown["recompilation"].last("recompile")
    ((row,),) = (card["rows"],)
    ((difference,),) = row["differences"]
    assert (difference["name"], difference["old"], difference["new"]) == ("x", "f32[42]", "f32[43]")
    assert re.fullmatch(r"Cell In\[\d+\]:2", row["at"]) and "Axis 0 of `x` has had" in text

    stale, text = shown["a stale capture"].last("stale")
    assert "`scale` = 2.0; now it is 3.0" in text and re.search(
        r"changed in Cell In\[\d+\]:1", text
    )
    assert shown["the old program"].printed == "True\n"
    assert shown["the new program"].printed == "True\n"

    data, text = shown["heartbeat"].last("heartbeat")
    (stage,) = data["stages"]
    assert stage["phase"] == "trace" and stage["name"] == "slow" and not stage["running"]
    assert 2.8 < stage["seconds"] < TIMEOUT and text.startswith("tracing `slow` took")

    assert shown["interrupt"].error["ename"] == "KeyboardInterrupt"
    assert shown["after the interrupt"].printed == "[0, 1, 2] True\n"

    error = shown["an error card"].error
    card, text = shown["an error card"].last("error")
    assert error["ename"] == "TracerBoolConversionError"
    for told in (error["evalue"], str(card)):
        assert "y = jnp.where(z > 0, z, -z)" in told
    # A console prints the text below the traceback, which has said it.
    assert "y = jnp.where" not in text
    assert re.search(r"Cell In\[\d+\]:3 \(choose\) +z = x \* 2", text) and "`x`" in text

    pinned, text = shown["memory held by an error"].last("pinned")
    assert pinned["bytes"] == 700 * 700 * 4
    assert [(h["name"], h["function"]) for h in pinned["holders"]] == [("big", "fails()")]
    assert shown["released"].printed == "True\n"


def _failed(outputs: Outputs) -> bool:
    return any(output["output_type"] == "error" for output in outputs.outputs)

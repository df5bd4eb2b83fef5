"""Stale captures in a live kernel: one scripted session for each policy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from nbformat.v4 import new_code_cell, new_notebook
from support.session import TIMEOUT, Ran, Session

MIME = "application/vnd.perspex.stale+json"
# Every cell of a small notebook; what `f(2.0)` is afterwards stands in the tests.
SETUP = """
import numpy as np, perspex, perspex.numpy as jnp
perspex.config.update("recompile_cards", False)
scale, cfg, table = 3.0, {"lr": 1.0}, np.zeros(4)

def helper(x):
    return x * scale

@perspex.jit
def f(x):
    return helper(x) * cfg["lr"] + table.sum()
"""
CELLS = [
    "float(f(2.0))",
    "scale = 5.0",
    "float(f(2.0))",
    "cfg['lr'] = 2.0; table[1] = 1.0",
    "float(f(2.0))",
    "def helper(x):\n    return x - scale",
    "float(f(2.0))",
]


def notices(ran: Ran) -> list[dict[str, Any]]:
    """The data of the notices below a cell."""
    bundles = [o["content"]["data"] for o in ran.outputs if o["msg_type"] == "display_data"]
    return [bundle for bundle in bundles if MIME in bundle]


def variables(ran: Ran) -> set[str]:
    return {change["variable"] for bundle in notices(ran) for change in bundle[MIME]["changes"]}


@pytest.fixture
def session(live: Session) -> Iterator[Session]:
    """The module's kernel, with the functions traced anew under the default policy."""
    live.ok("%reset -f")
    live.ok(SETUP)
    live.ok("perspex.config.update('stale_captures', 'warn')")
    yield live


def test_warn(session: Session) -> None:
    results = [session.ok(cell) for cell in CELLS]
    assert [ran.text for ran in results] == ["6.0", "", "6.0", "", "6.0", "", "6.0"]
    assert [variables(ran) for ran in results] == [
        set(),
        set(),
        {"scale"},
        set(),
        {"cfg['lr']", "table"},
        set(),
        {"helper"},
    ]
    # A notice instead of Python's text on stderr, not both.
    assert not any(ran.stderr for ran in results)
    # 2 - 5, times 2, plus 1.
    assert session.ok("f.retrace(); float(f(2.0))").text == "-5.0"
    ran = session.ok("float(f(2.0))")
    assert ran.text == "-5.0" and not notices(ran)


def test_the_notice(session: Session) -> None:
    session.ok("f(2.0)")
    session.ok("name = 1\nscale = '<b>five</b>'; scale = 5.0")
    # The count has gone on already when a cell asks.
    number = session.ok("get_ipython().execution_count").text
    (bundle,) = notices(session.ok("f(2.0)"))
    assert bundle[MIME]["function"] == "f"
    (change,) = bundle[MIME]["changes"]
    assert (change["variable"], change["old"], change["new"]) == ("scale", "3.0", "5.0")
    assert change["changed"] == f"Cell In[{int(number) - 2}]:2"
    assert change["traced"] == f"Cell In[{int(number) - 3}]:1"
    text = bundle["text/plain"]
    assert "`scale` = 3.0; now it is 5.0" in text and "`f.retrace()`" in text
    assert len(text.splitlines()) == 3
    json.dumps(bundle[MIME])
    session.ok("scale = '<script>x</script>'")
    (bundle,) = notices(session.ok("f(2.0)"))
    html = bundle["text/html"]
    tags: set[str] = set()

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            tags.add(tag)

    Tags().feed(html)
    assert tags == {"div", "strong", "code", "table", "tr", "th", "td", "span"}
    assert "&lt;script&gt;" in html


def test_retrace(session: Session) -> None:
    session.ok("perspex.config.update('stale_captures', 'retrace')")
    results = [session.ok(cell) for cell in CELLS]
    # 2 * 3 * 1 + 0; 2 * 5 * 1 + 0; 2 * 5 * 2 + 1; (2 - 5) * 2 + 1.
    assert [ran.text for ran in results] == ["6.0", "", "10.0", "", "21.0", "", "-5.0"]
    assert not any(notices(ran) or ran.stderr for ran in results)


def test_error(session: Session) -> None:
    session.ok("perspex.config.update('stale_captures', 'error')")
    results = [session.run(cell) for cell in CELLS]
    assert [ran.status for ran in results] == ["ok", "ok", "error", "ok", "error", "ok", "error"]
    assert results[2].ename == "StaleCaptureError"
    assert "`scale` = 3.0; now it is 5.0" in results[2].reply["evalue"]
    assert "----> 1 float(f(2.0))" in results[2].traceback
    assert "perspex/" not in results[2].traceback
    assert session.ok("f.retrace(); float(f(2.0))").text == "-5.0"


def test_ignore(session: Session) -> None:
    session.ok("perspex.config.update('stale_captures', 'ignore')")
    results = [session.ok(cell) for cell in CELLS]
    assert [ran.text for ran in results] == ["6.0", "", "6.0", "", "6.0", "", "6.0"]
    assert not any(notices(ran) or ran.stderr for ran in results)


def test_a_loop_in_one_cell(session: Session) -> None:
    loop = "for scale in [1.0, 2.0]: print(float(f(2.0)))"
    session.ok("f(2.0)")
    ran = session.ok(loop)
    assert ran.stdout == "6.0\n6.0\n" and variables(ran) == {"scale"}
    session.ok("perspex.config.update('stale_captures', 'retrace')")
    assert session.ok(loop).stdout == "2.0\n4.0\n"
    ran = session.ok(f"import asyncio\nscale = 4.0\nawait asyncio.sleep(0)\n{loop}\nscale")
    assert ran.stdout == "2.0\n4.0\n" and ran.text == "2.0"


def test_a_change_from_another_thread_between_cells(session: Session) -> None:
    session.ok("f(2.0)\nimport threading\ntimer = threading.Timer(0.2, lambda: cfg.update(lr=9.0))")
    session.ok("timer.start()")
    session.ok("timer.join()")
    assert variables(session.ok("f(2.0)")) == {"cfg['lr']"}


def test_plain_ipykernel_shows_it_too() -> None:
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=TIMEOUT)
    try:
        session = Session(manager, client)
        session.ok("import perspex\n%load_ext perspex\nk = 1.0")
        session.ok("f = perspex.jit(lambda x: x + k); f(1.0)")
        session.ok("k = 2.0")
        assert variables(session.ok("f(1.0)")) == {"k"}
        assert session.ok("get_ipython().kernel.implementation").text == "'ipython'"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_in_a_notebook_run_without_a_front_end(tmp_path: Path) -> None:
    cells = [SETUP, *CELLS]
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "perspex", "display_name": "Perspex"}
    nbformat.write(notebook, tmp_path / "stale.ipynb")
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "stale.ipynb"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    done = nbformat.read(tmp_path / "stale.nbconvert.ipynb", as_version=4)
    shown = [
        change["variable"]
        for cell in done.cells
        for output in cell.outputs
        for change in output.get("data", {}).get(MIME, {"changes": []})["changes"]
    ]
    assert sorted(shown) == ["cfg['lr']", "helper", "scale", "table"]

"""`%load_ext perspex` where the kernel is not ours: IPython's own, and IPython in a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel
from support.page import open_page, opening, run_cell
from support.session import TIMEOUT, Session

ROOT = Path(__file__).resolve().parents[2]
SETUP = "import perspex, perspex.numpy as jnp\nfrom perspex import random\nx = jnp.ones((4, 3))"


@pytest.fixture(scope="module")
def plain(jupyter_home: object) -> Iterator[Session]:
    """IPython's kernel, with the extension loaded by hand."""
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=TIMEOUT)
    try:
        session = Session(manager, client)
        session.ok("loaded = set(get_ipython().magics_manager.magics['line'])")
        session.ok("%load_ext perspex")
        session.ok(SETUP)
        yield session
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def displayed(session: Session, code: str) -> str:
    """The text of what a cell displays; HTML must stand beside it."""
    outputs = session.ok(code).outputs
    bundles = [o["content"]["data"] for o in outputs if o["msg_type"] == "display_data"]
    shown = [data for data in bundles if not any("vnd.perspex" in kind for kind in data)]
    (data,) = shown
    assert data["text/html"].startswith("<")
    return str(data["text/plain"])


def test_it_is_not_our_kernel(plain: Session) -> None:
    kind = plain.ok("type(get_ipython().kernel).__module__").text
    assert "ipykernel" in kind and "perspex" not in kind


MAGICS = {
    "%jaxpr jnp.sin(x)": "sin",
    "%hlo jnp.sin(x)": "HloModule",
    "%hlo jnp.sin(x) --stage stablehlo": "stablehlo.sine",
    "%cost x @ x.T": "FLOPs 96",  # 2 * 4 * 3 * 4
    "%%jaxpr\n%%grad x\n(x ** 2).sum()": "mul",
    "%%hlo\n%%vmap x\nx.sum()": "ENTRY",
    "%%cost\nx + 1": "FLOPs 12",
    "key = random.key(0)\nrandom.normal(key)\n%keys": "└─ random.normal(key)",
}


@pytest.mark.parametrize("cell", MAGICS)
def test_what_shows_something(plain: Session, cell: str) -> None:
    assert MAGICS[cell] in " ".join(displayed(plain, cell).split())


def test_what_computes(plain: Session) -> None:
    assert plain.ok("%%jit\ny = x.sum()\ny").text.startswith("Array(12.")
    assert plain.ok("%grad (lambda v: (v ** 2).sum())(x)").text.startswith("Array([[2., 2., 2.]")
    plain.ok("%%vmap x\nrow = x.sum()")
    assert plain.ok("row").text.startswith("Array([3., 3., 3., 3.]")
    plain.ok("%%grad x --jit\n(x ** 3).sum()")
    assert plain.ok("float(d_x.sum())").text == "36.0"


def test_notices_are_text_too(plain: Session) -> None:
    plain.ok("%clock all")
    ran = plain.ok("z = perspex.jit(lambda v: jnp.cos(v).sum())(x)")
    notices = [
        o["content"]["data"]
        for o in ran.outputs
        if o["msg_type"] == "display_data"
        and any("vnd.perspex" in kind for kind in o["content"]["data"])
    ]
    plain.ok("%clock off")
    assert notices
    for data in notices:
        assert "compile" in data["text/plain"] and "<script" not in data["text/html"]


def test_the_panel_measures_what_the_clock_does_not_show(plain: Session) -> None:
    """Off, as it is here at first, the clock gives readings to the panel and none to the cell."""
    with open_page(plain, opening(topics=["cells"])) as page:
        page.until(lambda: "cells" in page.tables)
        ran = run_cell(plain, "perspex.jit(lambda x: x / 7)(jnp.ones(31))", "quiet")
        page.until(lambda: page.rows("cells") and page.rows("cells")[-1]["status"] == "ok")
        assert page.rows("cells")[-1]["compile"] > 0
        assert not [o for o in ran.outputs if o["msg_type"] == "display_data"]


def test_errors_are_the_cells(plain: Session) -> None:
    ran = plain.run("a = 1\n%cost x @ missing")
    assert ran.ename == "NameError" and "line 2" in ran.traceback
    assert "perspex_magics" not in ran.traceback


def test_unloading_takes_all_back(plain: Session) -> None:
    plain.ok("%unload_ext perspex")
    left = "set(get_ipython().magics_manager.magics['line']) - loaded"
    assert plain.ok(left).text == "set()"
    ran = plain.run("%hlo x")
    assert "not found" in ran.traceback + ran.stderr
    assert plain.ok("'perspex.panel' in get_ipython().kernel.comm_manager.targets").text == "False"
    plain.ok("%load_ext perspex")
    assert "HloModule" in displayed(plain, "%hlo x")


TERMINAL = """\
%load_ext perspex
import perspex.numpy as jnp
from perspex import random
x = jnp.ones((4, 3))
%cost x @ x.T
%hlo x + 1
key = random.key(0)
a, b = random.normal(key), random.uniform(key)
%keys
%unload_ext perspex
%hlo x
exit
"""


def test_a_terminal(jupyter_home: object) -> None:
    path = os.pathsep.join(str(ROOT / part) for part in ("core", "magics", "kernel"))
    ran = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
        input=TERMINAL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, "PYTHONPATH": path},
    )
    text = " ".join(ran.stdout.split())
    assert "FLOPs 96" in text and "HloModule" in text
    assert "1 key was used more than once" in text and "random.uniform(key)" in text
    assert "<" + "pre" not in text
    assert "%hlo` not found" in text + ran.stderr

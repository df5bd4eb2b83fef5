"""The end of a cell waits for what its computations print, call and raise."""

from __future__ import annotations

from support.shells import Notebook

# A turn takes 10 ms and more, so that the calls would return before the loops are done.
DEFINITIONS = """
import time
from perspex import debug, lax

def turn(i):
    time.sleep(0.01)
    print("turn", int(i))

def fail(i):
    raise ValueError(f"turn {i} failed")

def loop(call):
    def body(i, a):
        debug.callback(call, i)
        return a @ a / 100
    return perspex.jit(lambda a: lax.fori_loop(0, 3, body, a))

a = jnp.ones((100, 100))
show, failing = loop(turn), loop(fail)
"""


def test_output_and_errors_belong_to_the_cell(notebook: Notebook) -> None:
    notebook.ok(DEFINITIONS)
    for cell in ("y = show(a)", "%%jit\ny = show(a)", "y = show(a)"):
        notebook.ok(cell)
        assert sorted(notebook.out.splitlines()) == ["turn 0", "turn 1", "turn 2"]
    text = notebook.fails("y = failing(a)", Exception, "the callback `fail` of debug.callback")
    assert "failed" in text and "raise ValueError(f" in text
    notebook.ok("print('next')")
    assert notebook.out == "next\n"


def test_an_error_that_nobody_waited_for(notebook: Notebook) -> None:
    notebook.ok(DEFINITIONS)
    # An operand that takes its time, so that the call mostly returns before the callback fails.
    notebook.ok(
        "@perspex.jit\n"
        "def slow(a):\n"
        "    for _ in range(200):\n"
        "        a = a @ a / 500\n"
        "    return a[:100, :100]\n"
        "big = jnp.ones((500, 500))\n"
        "slow(big).block_until_ready()"
    )
    text = notebook.fails("y = failing(slow(big))", Exception, "the callback `fail`")
    assert "raise ValueError(f" in text
    notebook.ok(
        "try:\n    float(failing(slow(big))[0, 0])\nexcept Exception as error:\n    caught = error"
    )
    assert "the callback `fail`" in str(notebook.ns["caught"])


def test_unloaded_it_waits_no_more(notebook: Notebook) -> None:
    callbacks = notebook.shell.events.callbacks["post_run_cell"]
    assert any(f.__module__ == "perspex_magics.notebook.effects" for f in callbacks)
    notebook.ok("%unload_ext perspex_magics")
    assert not any(f.__module__ == "perspex_magics.notebook.effects" for f in callbacks)

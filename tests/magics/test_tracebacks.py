"""Tracebacks show the user's lines."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell

from shells import Notebook


def frames(shown: str) -> list[str]:
    """Where the frames of a traceback are, as `Cell In[3], line 2` or `File ...`."""
    return [row for row in shown.splitlines() if row.startswith(("Cell ", "File "))]


def test_frames_of_perspex_are_left_out(notebook: Notebook) -> None:
    notebook.ok("def f(x):\n    return x + jnp.ones(4)")
    shown = notebook.fails("x = jnp.ones(3)\nf(x)", Exception)
    here = notebook.shell.execution_count - 1
    assert frames(shown) == [f"Cell In[{here}], line 2", f"Cell In[{here - 1}], line 2, in f(x)"]


def test_tb_shows_all_frames(notebook: Notebook) -> None:
    notebook.fails("jnp.ones(3) + jnp.ones(4)", Exception)
    short = frames(notebook.out)
    notebook.run("%tb")
    assert len(frames(notebook.out)) > len(short) == 1
    assert any("perspex" in row for row in frames(notebook.out))


def test_other_errors_are_as_ever(notebook: Notebook) -> None:
    cell = "def f(x):\n    return x / 0\nf(1)"
    ours = notebook.fails(cell, ZeroDivisionError)
    notebook.ok("%unload_ext perspex_magics")
    theirs = notebook.fails(cell, ZeroDivisionError)
    number = notebook.shell.execution_count - 1
    assert ours.replace(f"In[{number - 2}]", f"In[{number}]") == theirs


def test_causes_are_shown(notebook: Notebook) -> None:
    shown = notebook.fails(
        "try:\n    jnp.ones(3) + jnp.ones(4)\n"
        "except Exception as error:\n    raise RuntimeError('outer') from error",
        RuntimeError,
    )
    assert "direct cause" in shown and "RuntimeError: outer" in shown


def test_syntax_errors_under_a_magic_look_like_others(notebook: Notebook) -> None:
    shown = notebook.fails("%%jit\nx = = 1", SyntaxError)
    assert frames(shown) == [] and "line 2" in shown and "run_cell_magic" not in shown


def test_syntax_errors_elsewhere_keep_their_frames(notebook: Notebook) -> None:
    assert "exec('x = = 1')" in notebook.fails("exec('x = = 1')", SyntaxError)


def test_a_handler_that_is_there_stays(shell: InteractiveShell) -> None:
    seen = []
    shell.set_custom_exc((ValueError,), lambda *args, **kwargs: seen.append(args[1]))
    notebook = Notebook(shell)
    notebook.ok("%load_ext perspex_magics")
    notebook.fails("raise ValueError", ValueError)
    notebook.ok("%unload_ext perspex_magics")
    notebook.fails("raise ValueError", ValueError)
    assert seen == [ValueError, ValueError]


@pytest.mark.parametrize("magic", ["", "%%jit\n"])
def test_interrupts(notebook: Notebook, magic: str) -> None:
    shown = notebook.fails(f"{magic}x = jnp.ones(3)\nraise KeyboardInterrupt", KeyboardInterrupt)
    assert "KeyboardInterrupt" in shown and "perspex_magics" not in shown


def test_verbose_tracebacks_show_all_frames(notebook: Notebook) -> None:
    cell = "perspex.jit(lambda x: 1 if x > 0 else 2)(1.0)"
    notebook.fails(cell, TypeError)
    short = frames(notebook.out)
    notebook.ok("%xmode Verbose")
    notebook.fails(cell, TypeError)
    long = frames(notebook.out)
    assert len(short) == 2 and len(long) > 2
    assert any("tracing.py" in row for row in long)
    assert not any("perspex" in row for row in short)
    notebook.ok("%xmode Context")
    notebook.fails(cell, TypeError)
    # The same frames, in another cell.
    assert [row.partition("]")[2] for row in frames(notebook.out)] == [
        row.partition("]")[2] for row in short
    ]


@pytest.mark.parametrize("mode", ["Plain", "Minimal"])
def test_short_tracebacks_keep_the_message(notebook: Notebook, mode: str) -> None:
    notebook.ok(f"%xmode {mode}")
    shown = notebook.fails("perspex.jit(lambda x: 1 if x > 0 else 2)(1.0)", TypeError)
    assert "jnp.where(x > 0, 1, 2)" in shown and "perspex/" not in shown

"""Tracebacks show the user's lines."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from support.shells import Notebook

from perspex import errors


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
    assert any("tracing/trace.py" in row for row in long)
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


def test_errors_of_scripts(notebook: Notebook, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import perspex, perspex.numpy as jnp\n"
        "@perspex.jit\ndef f(a, b):\n    c = jnp.sin(a)\n    return c + b\n"
        "f(jnp.ones(3), jnp.ones(4))\n"
    )
    notebook.ok(f"%run {script}")
    short = notebook.out
    assert frames(short) == [f"File {script}:6", f"File {script}:5, in f(a, b)"]
    rows = [" ".join(row.split()) for row in short.splitlines()]
    start = rows.index("From the arguments to here:")
    assert rows[start + 1 : start + 5] == [
        "argument of `f` `a` float32[3]",
        "train.py:4 (f) c = jnp.sin(a) sin float32[3]",
        "argument of `f` `b` float32[4]",
        "train.py:5 (f) return c + b needed here",
    ]
    notebook.run("%tb")
    assert len(frames(notebook.out)) > 2
    notebook.ok("%xmode Verbose")
    notebook.ok(f"%run {script}")
    assert len(frames(notebook.out)) > 2
    notebook.ok("%xmode Context")


ENDINGS = {
    "as ever": "def f(x):\n    return x / 0\nf(1)\n",
    "no Python": "x = = 1\n",
    "exit": "import sys\nsys.exit(3)\n",
    "a good end": "import sys\nsys.exit(0)\n",
}


@pytest.mark.parametrize("case", ENDINGS)
def test_other_ends_of_scripts_are_as_ever(notebook: Notebook, tmp_path: Path, case: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(ENDINGS[case])
    notebook.run(f"%run {script}")
    ours = notebook.out
    notebook.ok("%unload_ext perspex_magics")
    notebook.run(f"%run {script}")
    assert ours == notebook.out


def test_errors_that_end_a_thread(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    notebook = Notebook(shell)
    notebook.ok("%load_ext perspex_magics\nimport perspex, perspex.numpy as jnp")
    notebook.ok("import threading\nf = perspex.jit(lambda a, b: a + b)")
    here = notebook.shell.execution_count - 1
    cell = (
        "def work():\n    f(jnp.ones(3), jnp.ones(4))\n"
        "thread = threading.Thread(target=work, name='loader')\nthread.start()\nthread.join()"
    )
    notebook.ok(cell)
    shown = notebook.out
    assert shown.startswith("Exception in thread loader:\nTraceback (most recent call last):\n")
    rows = [row.strip() for row in shown.splitlines()]
    assert f'File "Cell In[{here + 1}]", line 2, in work' in rows
    assert f'File "Cell In[{here}]", line 2, in <lambda>' in rows
    assert "f = perspex.jit(lambda a, b: a + b)" in rows
    assert "perspex/" not in shown and "From the arguments to here:" in rows
    notebook.ok("%xmode Verbose")
    notebook.ok(cell)
    assert "perspex/tracing/staging.py" in notebook.out
    notebook.ok("%xmode Context")


def test_unloading_leaves_scripts_and_threads_alone(shell: InteractiveShell) -> None:
    hook = threading.excepthook
    notebook = Notebook(shell)
    notebook.ok("%load_ext perspex_magics")
    assert threading.excepthook is not hook
    notebook.ok("%unload_ext perspex_magics")
    assert threading.excepthook is hook and "safe_execfile" not in vars(shell)


def test_what_is_timed_has_its_place_in_the_cell(notebook: Notebook) -> None:
    """Of `%%time` and `%time`, which compile code as `<timed exec>` by themselves."""
    number = notebook.shell.execution_count
    cell = "%%time\n\ndef f(v):\n    u = v * 2\n    return float(u)\n1 + 1\nperspex.jit(f)(2.0)"
    shown = notebook.fails(cell, errors.ConcretizationTypeError)
    assert f"Cell In[{number}], line 7" in shown and "----> 7 perspex.jit(f)(2.0)" in shown
    assert f"Cell In[{number}], line 5, in f(v)" in shown
    assert f"Cell In[{number}]:4 (f)  u = v * 2" in shown and "<timed" not in shown
    shown = notebook.fails("a = 2.0\nb = %time perspex.jit(f)(a)", errors.ConcretizationTypeError)
    assert f"Cell In[{number + 1}], line 2" in shown
    assert "----> 2 b = %time perspex.jit(f)(a)" in shown
    shown = notebook.fails("%%time\na = 1\na = (\n", SyntaxError)
    assert f"Cell In[{number + 2}], line 3" in shown
    notebook.ok("def g():\n    q = 0\n    return 1\n    %time 1 / q")
    notebook.ok("def h(q):\n    r = %time 1 / q\n    return r")
    shown = notebook.fails("y = 0\nh(y)", ZeroDivisionError)
    assert f"Cell In[{number + 4}], line 2, in h(q)" in shown
    # The text of another cell is not put in its place.
    assert "----> 2     r = %time" not in shown and "run_line_magic('time', '1 / q')" in shown


def test_timing_itself_is_as_ever(notebook: Notebook) -> None:
    assert notebook.ok("%%time\nk = 3\nk + 1") == 4 and notebook.ns["k"] == 3
    assert "Wall time: " in notebook.out
    assert notebook.ok("%time k + 2") == 5
    assert notebook.ok("%%time\n%time k = 7\nk") == 7
    assert notebook.ok("%timeit -n1 -r1 k") is None
    notebook.ok("%unload_ext perspex_magics")
    shown = notebook.fails("%%time\nk = 1\n1 / 0", ZeroDivisionError)
    assert "<timed exec>" in shown

"""Stale captures: what the policies do, and what a cell is while its captures are watched."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
from support.shells import Told

import perspex
from perspex import config
from perspex.errors import StaleCaptureError

pytestmark = pytest.mark.usefixtures("default_policy", "patient")


JIT = "@perspex.jit\n"


def test_error(told: Told) -> None:
    told.ok("k = 1.0\n" + JIT + "def f(x): return x + k\nf(2.0)")
    config.update("stale_captures", "error")
    told.ok("k = 2.0")
    for _ in range(2):
        text = told.notebook.fails("f(2.0)", StaleCaptureError, "`k` = 1.0; now it is 2.0")
        # The user's line, and none of ours.
        assert "----> 1 f(2.0)" in text and "perspex/" not in text
    told.ok("k = 1.0")
    assert told.ok("float(f(2.0))") == 3.0


def test_ignore_and_a_policy_set_later(told: Told) -> None:
    config.update("stale_captures", "ignore")
    told.ok("k = 1.0\n" + JIT + "def f(x): return x + k\nf(2.0)")
    told.ok("k = 2.0")
    assert told.ok("float(f(2.0))") == 3.0 and not told.warnings
    # What was ignored on the fast path is looked at under the new policy.
    config.update("stale_captures", "retrace")
    assert told.ok("float(f(2.0))") == 4.0


def test_a_policy_of_its_own(told: Told) -> None:
    told.ok(
        "k = 1.0\n"
        "def f(x): return x + k\n"
        "warns, retraces, ignores, refuses = [\n"
        "    perspex.jit(f, stale=p) for p in ('warn', 'retrace', 'ignore', 'error')]\n"
        "def all_of_them(): return [float(g(2.0)) for g in (warns, retraces, ignores)]\n"
        "all_of_them(), refuses(2.0)"
    )
    config.update("stale_captures", "error")
    told.ok("k = 2.0")
    assert told.ok("all_of_them()") == [3.0, 4.0, 3.0] and told.variables == ["k"]
    config.update("stale_captures", "ignore")
    told.notebook.fails("refuses(2.0)", StaleCaptureError, "`k`")


def test_an_outer_function_takes_the_new_inner_one(told: Told) -> None:
    told.ok(
        "k = 1.0\n"
        "inner = perspex.jit(lambda x: x + k)\n"
        "keeps = perspex.jit(lambda x: x + k, stale='ignore')\n"
        "outer = perspex.jit(lambda x: inner(x) * 10)\n"
        "other = perspex.jit(lambda x: keeps(x) * 10)\n"
        "outer(2.0), other(2.0)"
    )
    told.ok("k = 2.0")
    told.ok("outer.retrace(); other.retrace()")
    assert told.ok("float(outer(2.0))") == 40.0 and not told.warnings
    assert told.ok("float(other(2.0))") == 30.0


def test_a_new_function_around_an_old_program(told: Told) -> None:
    """What is built of an old program is as old, whatever it reads itself."""
    told.ok("k = 1.0\ninner = perspex.jit(lambda x: x + k)\ninner(2.0)")
    told.ok("k = 2.0")
    told.ok("outer = perspex.jit(lambda x: inner(x) * 10)\na = float(outer(2.0))")
    assert told.notebook.ns["a"] == 30.0 and told.variables == ["k"]
    told.ok("b = float(outer(2.0))")
    assert told.notebook.ns["b"] == 30.0 and told.variables == ["k"]
    assert told.ok("outer.retrace(); float(outer(2.0))") == 40.0


def test_loops_called_eagerly_are_never_stale(told: Told) -> None:
    told.ok("k = 1.0\ndef step(c, _): return c + k, None")
    loop = "float(perspex.lax.scan(step, 0.0, None, length=3)[0])"
    assert told.ok(loop) == 3.0
    told.ok("k = 2.0")
    assert told.ok(loop) == 6.0 and not told.warnings


def test_each_signature_has_captured_for_itself(told: Told) -> None:
    told.ok("k = 1.0\n" + JIT + "def f(x): return (x + k).sum()\nf(jnp.zeros(1))")
    told.ok("k = 2.0")
    assert told.ok("float(f(jnp.zeros(2)))") == 4.0 and not told.warnings
    assert told.ok("float(f(jnp.zeros(1)))") == 1.0 and told.variables == ["k"]
    told.ok("k = 1.0")
    assert told.ok("float(f(jnp.zeros(2)))") == 4.0 and told.variables == ["k"]


def test_a_new_trace_reads_what_an_array_holds_now(told: Told) -> None:
    told.ok("table = np.zeros(100_000)\nalias = [table]")
    told.ok(JIT + "def f(x): return x + table[70_000]\nf(1.0)")
    # Nothing says that it is `table` that changes here.
    told.ok(
        "def write(): alias[0][70_000] = 5.0\n"
        "write()\n" + JIT + "def g(x): return x + table[70_000]\ny = float(g(1.0))"
    )
    assert told.notebook.ns["y"] == 6.0
    assert told.ok("float(g(1.0))") == 6.0 and not told.warnings
    assert told.ok("float(f(1.0))") == 1.0 and told.variables == ["table"]


def test_ahead_of_time(told: Told) -> None:
    config.update("stale_captures", "retrace")
    told.ok("k = 1.0\n" + JIT + "def f(x): return x + k\nf(2.0)")
    told.ok("k = 5.0")
    assert float(told.ok("f.lower(2.0).compile()(2.0)")) == 7.0


def test_cells_under_our_magics_trace_themselves(told: Told) -> None:
    told.ok("k = [1.0]\nx = jnp.array(2.0)\ndef g(x): return x + k[0]")
    for value in (1.0, 2.0):
        told.ok(f"k[0] = {value}")
        told.ok("%%jit\ny = g(x)\nz = y + k[0]")
        assert float(told.notebook.ns["z"]) == 2 + 2 * value and not told.warnings


@pytest.mark.parametrize("mode", ["all", "last", "last_expr", "last_expr_or_assign", "none"])
def test_what_a_cell_displays_is_as_ever(told: Told, mode: str) -> None:
    cells = [
        "k = 2.0",
        "k = 3.0; k",
        "for k in (1, 2): k",
        "k = 1.0\nk\nk = 2.0\nk + 1",
        "k = 7.0;",
    ]
    shell = told.notebook.shell

    def outputs() -> list[tuple[Any, Any]]:
        found = []
        for cell in cells:
            value = told.ok(cell)
            found.append((value, re.sub(r"Out\[\d+\]", "Out", told.notebook.out)))
        return found

    shell.ast_node_interactivity = mode
    plain = outputs()
    told.ok(JIT + "def f(x): return x + k\n_ = f(1.0)")
    assert outputs() == plain


def test_tracebacks_and_awaits_are_as_ever(told: Told) -> None:
    told.ok("k = 1.0\n" + JIT + "def f(x): return x + k\nf(1.0)")
    text = told.notebook.fails("k = 2.0\n\n\nk = 1 / 0", ZeroDivisionError)
    assert "----> 4 k = 1 / 0" in text
    config.update("stale_captures", "retrace")
    told.ok("import asyncio\nk = 5.0\nawait asyncio.sleep(0)\nk = 6.0\ny = float(f(1.0))")
    assert told.notebook.ns["y"] == 7.0
    told.ok("%%time\nk = 7.0\ny = float(f(1.0))")
    assert told.notebook.ns["y"] == 8.0


def test_a_cell_without_such_names_is_left_alone(told: Told) -> None:
    told.ok("k = 1.0\n" + JIT + "def f(x): return x + k\nf(1.0)")
    compiled = []
    compiler = told.notebook.shell.compile

    def names_of(code: Any) -> set[str]:
        inner = [names_of(c) for c in code.co_consts if hasattr(c, "co_names")]
        return set(code.co_names).union(*inner)

    class Compiler(type(compiler)):  # type: ignore[misc]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            code = super().__call__(*args, **kwargs)
            compiled.append(names_of(code))
            return code

    told.notebook.shell.compile.__class__ = Compiler
    try:
        told.ok("total = 0\nfor i in range(3):\n    total += f(i)\nother = total")
        left_alone, compiled[:] = list(compiled), []
        told.ok("k = 2.0\nother = 3")
    finally:
        told.notebook.shell.compile.__class__ = type(compiler).__mro__[1]
    assert left_alone and not any("__perspex" in name for names in left_alone for name in names)
    assert any("__perspex_rebound__" in names for names in compiled)


def test_what_a_transformer_of_the_users_adds_to_a_cell_is_seen_there(told: Told) -> None:
    class Adding(ast.NodeTransformer):
        def visit_Module(self, tree: ast.Module) -> ast.Module:
            tree.body[:0] = ast.parse("k = 3.0").body
            return tree

    told.ok("k = 1.0\n" + JIT + "def f(x): return x + k\nf(1.0)")
    shell = told.notebook.shell
    # Of ours there is none: for any, IPython goes through each cell's whole tree once more.
    assert not shell.ast_transformers
    config.update("stale_captures", "retrace")
    shell.ast_transformers.append(Adding())
    try:
        assert float(told.ok("f(1.0)")) == 4.0
    finally:
        shell.ast_transformers.clear()


def test_the_policy_is_checked() -> None:
    with pytest.raises(ValueError, match="warn, retrace, error, ignore, got 'never'"):
        perspex.jit(lambda x: x, stale="never")
    with pytest.raises(ValueError, match="expected one of"):
        config.update("stale_captures", "never")

"""`%cost` and `%%cost`, against operations and bytes counted by hand."""

from __future__ import annotations

import re

import pytest
from IPython.core.error import UsageError
from support.shells import Notebook

from perspex_magics.commands.cost import Kernels

SETUP = """
from perspex import grad, lax
w = jnp.ones((64, 16))
x = jnp.ones((32, 64))
n = 10
"""


@pytest.fixture
def cells(notebook: Notebook) -> Notebook:
    notebook.ok(SETUP)
    return notebook


def table(cells: Notebook, cell: str) -> dict[str, str]:
    """The rows that a cell displays, by name, and its notes under an empty name."""
    assert cells.ok(cell) is None
    (bundle,) = cells.displayed
    html = bundle["text/html"]
    assert "<table" in html and "<script" not in html
    rows = {"": ""}
    for line in bundle["text/plain"].split("\n"):
        name, _, rest = line.partition("  ")
        rows["" if line.endswith(".") else name] = line if line.endswith(".") else rest.strip()
        assert name in re.sub(r"<[^>]*>", " ", html)
    return rows


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_a_product_of_matrices(cells: Notebook) -> None:
    rows = table(cells, "%cost x @ w")
    flops = 2 * 32 * 64 * 16
    moved = 4 * (32 * 64 + 64 * 16 + 32 * 16)
    assert rows["FLOPs"] == f"{flops:,}"
    assert rows["bytes accessed"].startswith(f"{moved / 1024:.1f} KiB")
    assert rows["arithmetic intensity"].startswith(f"{flops / moved:.3g} ")
    assert rows["arguments"] == "12.0 KiB" and rows["results"] == "2.00 KiB"
    assert rows["kernels"].startswith("1 ")


def test_what_is_fused_is_one_kernel(cells: Notebook) -> None:
    rows = table(cells, "%cost (x * 2 + 1) * (x - 3)")
    # Per element: two products, one sum, one difference.
    assert rows["FLOPs"] == f"{4 * 32 * 64:,}" and rows["kernels"] == "1  1 fusion"
    assert rows["temporaries"].startswith("0 B")


def test_functions_are_counted_apart(cells: Notebook) -> None:
    rows = table(cells, "%cost jnp.exp(x)")
    assert rows["transcendentals"].startswith(f"{32 * 64:,} ") and rows["FLOPs"] == "0"


def test_a_loop_is_counted_once_and_that_is_said(cells: Notebook) -> None:
    cells.ok("square = jnp.ones((8, 8))\ndef power(a):\n    return a @ a")
    once = table(cells, "%cost power(square)")
    cell = "%cost lax.fori_loop(0, 10, lambda i, a: power(a), square)"
    rows = table(cells, cell)
    assert once["FLOPs"] == f"{2 * 8**3:,}" and once[""] == ""
    assert 2 * 8**3 <= number(rows["FLOPs"]) < 2 * 2 * 8**3
    assert rows[""] == "Loop bodies are counted once; iterations: 10."


def test_what_is_unknown_is_called_so(cells: Notebook) -> None:
    rows = table(cells, "%cost jnp.linalg.qr(x)[0]")
    assert rows["FLOPs"] == "unknown" and "arithmetic intensity" not in rows
    assert rows[""].startswith("Work inside custom calls is not counted: lapack_")


def test_a_conditional(cells: Notebook) -> None:
    rows = table(cells, "%cost lax.cond(x[0, 0] > 0, lambda: x @ w, lambda: x[:, :16] + 1)")
    assert 2 * 32 * 64 * 16 <= number(rows["FLOPs"]) < 2 * 32 * 64 * 16 + 100
    assert rows[""] == "For conditionals, only the most expensive branch is counted."


def test_a_cell(cells: Notebook) -> None:
    before = dict(cells.ns)
    rows = table(cells, "%%cost\ny = x @ w\ny + 1")
    assert "y" not in cells.ns and cells.ns["x"] is before["x"]
    assert rows["FLOPs"] == f"{2 * 32 * 64 * 16 + 32 * 16:,}"
    assert rows["results"] == "4.02 KiB"  # two results of 2 KiB, and the table of the two pointers


def test_magics_below(cells: Notebook) -> None:
    cell = "%%cost\n%%grad w\n(x @ w).sum()"
    # The gradient is a product of an array of ones with x; the value is of no use.
    assert number(table(cells, cell)["FLOPs"]) > 0
    assert "d_w" not in cells.ns


def test_kernels_are_read_from_the_text() -> None:
    text = """HloModule jit_f

%inside (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  ROOT %sine.1 = f32[4]{0} sine(%a)
}

%body (t: (s32[], f32[4])) -> (s32[], f32[4]) {
  %t = (s32[], f32[4]{0}) parameter(0)
  %g.1 = f32[4]{0} get-tuple-element(%t), index=1
  %f.2 = f32[4]{0} fusion(%g.1), kind=kLoop, calls=%inside
  ROOT %r.1 = (s32[], f32[4]{0}) tuple(%g.1, %f.2)
}

%condition (t: (s32[], f32[4])) -> pred[] {
  %t = (s32[], f32[4]{0}) parameter(0)
  ROOT %less = pred[] custom-call(%t), custom_call_target="ask"
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %c = s32[] constant(0)
  %t.1 = (s32[], /*index=1*/f32[4]{0}) tuple(%c, %x)
  %w = (s32[], f32[4]{0}) while(%t.1), condition=%condition, body=%body
  %v = (s32[], f32[4]{0}) while(%w), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"7"}}
  ROOT %y = f32[4]{0} get-tuple-element(%v), index=1
}
"""  # noqa: E501 - a line of HLO
    found = Kernels.of(text)
    assert found.kinds == {"fusion": 1, "custom-call": 1}
    assert found.loops == [None, 7] and found.foreign == ["ask"] and not found.has_branches


USAGE = {
    "%cost": "an expression is missing",
    "%cost x @": "not a Python expression",
    "%cost x --static w": "does not read `w`",
    "%cost x --stage hlo": "unrecognized arguments",
    "%%grad w\n%%cost\nw.sum()": "%%cost has to be the topmost magic",
}


@pytest.mark.parametrize("cell", USAGE)
def test_usage_errors(cells: Notebook, cell: str) -> None:
    cells.fails(cell, UsageError, USAGE[cell])


@pytest.mark.parametrize("cell", ["%%cost --help", "%cost --help"])
def test_help(cells: Notebook, cell: str) -> None:
    cells.ok(cell)
    assert "--static" in cells.out and "%%%" not in cells.out


def test_errors_name_the_line(cells: Notebook) -> None:
    text = cells.fails("a = 1\n%cost x @ missing", NameError)
    number = cells.shell.execution_count - 1
    assert f"Cell In[{number}], line 2\n" in text and "perspex_magics" not in text
    text = cells.fails("%%cost\ny = x\ny @ x", TypeError)
    assert f"Cell In[{number + 1}], line 3\n" in text and "y" not in cells.ns

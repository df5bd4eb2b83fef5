"""`%%profile` and `%profile`. That the times are right is tested where they are measured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from IPython.core.error import UsageError
from support.shells import Notebook

import perspex
from perspex import numpy as jnp
from perspex.base import source
from perspex.runtime.profile import LineTime, Place, Profile, ProgramTime, Session
from perspex_magics.session import part
from perspex_magics.timing import roofline
from perspex_magics.timing.profile import Profiled, ProfileMagics

SETUP = """
x = jnp.full((300, 300), 0.01)
@perspex.jit
def f(x):
    y = x @ x
    z = jnp.sort(y, axis=1)
    return (z @ x).sum()
"""


@pytest.fixture
def cells(notebook: Notebook) -> Notebook:
    notebook.ok(SETUP)
    return notebook


def magics(notebook: Notebook) -> ProfileMagics:
    return part(notebook.shell, ProfileMagics)


def shown(notebook: Notebook) -> dict[str, Any]:
    (bundle,) = notebook.displayed
    assert "<script" not in bundle["text/html"] and "<table" in bundle["text/html"]
    data: dict[str, Any] = bundle["application/vnd.perspex.profile+json"]
    text = bundle["text/plain"]
    assert all(line["at"] in text for line in data["lines"])
    return data


def test_the_lines_of_the_cell_and_of_the_functions_it_calls(cells: Notebook) -> None:
    value = cells.ok("%%profile --all\nfor _ in range(3):\n    a = f(x)\nb = x @ x\na")
    assert float(value) == pytest.approx(float(cells.ns["f"](cells.ns["x"])))
    count = cells.shell.execution_count
    lines = {line["at"]: line for line in shown(cells)["lines"]}
    here, function = f"Cell In[{count - 1}]", f"Cell In[{count - 2}]"
    assert {f"{function}:4", f"{function}:5", f"{function}:6", f"{here}:4"} <= lines.keys()
    assert lines[f"{function}:6"]["runs"] == 3 and lines[f"{here}:4"]["runs"] == 1
    data = shown(cells)
    parts = sum(line["seconds"] for line in data["lines"])
    assert parts + data["unplaced"] == pytest.approx(data["device"], rel=1e-6)
    assert data["device"] <= data["wall"]
    assert {one["name"]: one["runs"] for one in data["programs"]}["f"] == 3


def test_above_a_magic_the_lines_are_those_of_the_cell(cells: Notebook) -> None:
    cells.ok("%%profile\n%%jit\nq = x @ x\nr = jnp.sort(q)")
    assert {"q", "r"} <= cells.ns.keys()
    at = f"Cell In[{cells.shell.execution_count - 1}]"
    assert {f"{at}:3", f"{at}:4"} <= {line["at"] for line in shown(cells)["lines"]}


@pytest.mark.parametrize(
    ("left", "missed", "said"),
    [
        (1, 1, ["1 more line: 1.00 us; `%%profile --all` lists it.", "1 call was not measured"]),
        (
            2,
            3,
            ["2 more lines: 2.00 us; `%%profile --all` lists them.", "3 calls were not measured"],
        ),
    ],
)
def test_what_is_short_or_single_is_said_as_such(left: int, missed: int, said: list[str]) -> None:
    lines = {Place("file.py", 1): LineTime(367e-6, 0.0, 1)}
    lines |= {Place("file.py", 2 + i): LineTime(1e-6, 0.0, 1) for i in range(left)}
    program = ProgramTime(SimpleNamespace(name="true_divide", closed=None, xla=None), 1, 36.7e-6)
    found = Profile(lines, [program], device=367e-6, wall=0.0123, missed=missed)
    text = Profiled(found, everything=False, with_peaks=False).report().text()
    assert "Device time by line: 367 us of the cell's 12.3 ms" in text
    assert "`true_divide`: 36.7 us in 1 run" in text and "file.py:1  367 us  100 %" in text
    assert all(one in text for one in said)


def test_every_cell_while_it_is_on(cells: Notebook) -> None:
    found: list[int] = []
    stop = magics(cells).follow(lambda: found.append(len(magics(cells).lines())))
    cells.ok("%profile on")
    assert "every cell" in cells.out
    cells.ok("c = f(x)")
    assert not cells.displayed and len(found) == 1 and found[0] >= 3
    cells.ok("%%profile\nc = f(x)")  # measured anyway, and shown
    assert shown(cells)["device"] > 0 and len(found) == 2
    cells.ok("%profile off")
    cells.ok("c = f(x)")
    assert len(found) == 2
    stop()


def test_the_latest_of_each_cell_is_kept(cells: Notebook) -> None:
    cells.ok("%%profile\nfor _ in range(4):\n    c = f(x)")
    assert {line.runs for line in magics(cells).lines()} == {4}
    cells.ok("%%profile\nc = f(x)")
    of_function = [line for line in magics(cells).lines() if line.line == 6]
    assert [line.runs for line in of_function] == [1]


def test_a_line_keeps_its_time_while_its_neighbours_are_measured(cells: Notebook) -> None:
    cells.ok(
        "import perspex\nimport perspex.numpy as jnp\n"
        "one = perspex.jit(lambda x: x @ x)\n"
        "two = perspex.jit(lambda x: jnp.sort(x))"
    )
    here = cells.shell.execution_count - 1
    cells.ok("%%profile\n_ = [one(x) for _ in range(3)]")
    cells.ok("%%profile\n_ = [two(x) for _ in range(2)]")
    named = f"Cell In[{here}]"
    found = {
        line.line: line.runs
        for line in magics(cells).lines()
        if source.cell_name(line.file) == named
    }
    assert found == {3: 3, 4: 2}


def test_a_cell_that_fails_fails(cells: Notebook) -> None:
    out = cells.fails("%%profile\nc = f(x)\n1 / 0", ZeroDivisionError)
    assert "----> 3 1 / 0" in out and not cells.displayed
    cells.ok("%%profile\nc = f(x)")
    shown(cells)


def test_nothing_on_the_device(cells: Notebook) -> None:
    cells.ok("%%profile\n1 + 1")
    (bundle,) = [b for b in cells.displayed if "application/vnd.perspex.profile+json" in b]
    assert bundle["text/plain"] == "Nothing ran on the device."


def test_help_and_mistakes(cells: Notebook) -> None:
    cells.ok("%%profile --help")
    assert "--roofline" in cells.out
    cells.ok("%profile")
    assert "not measured" in cells.out
    cells.fails("%profile maybe", UsageError)
    cells.fails("%%profile --nothing\nf(x)", UsageError)


def test_roofline(cells: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program has the peak of the dtype in which it computes."""
    monkeypatch.setattr(roofline, "_SECONDS", 0.0)
    monkeypatch.setattr(roofline, "_peaks", {})
    cells.ok("b = x.astype(jnp.bfloat16)")
    cells.ok("%%profile --roofline\nc = x @ x; d = b @ b")
    data = shown(cells)
    programs = {program["dtype"]: program for program in data["programs"]}
    for dtype, width in (("float32", 4), ("bfloat16", 2)):
        program, peak = programs[dtype], data["peaks"][dtype]
        assert program["flops"] == 2 * 300**3 and program["bytes"] >= 3 * width * 300**2
        # A machine does more than a million operations in a second, and less than a billion
        # billions.
        assert 1e6 < peak["flops"] < 1e18 and 1e6 < peak["bytes"] < 1e15
    assert set(data["peaks"]) == set(programs)
    assert roofline.known_peak("bfloat16") and roofline.known_peak("float64") is None
    assert np.zeros(1).dtype == np.float64  # which is measured with wide types, for a moment
    assert roofline.peak("float64").flops > 1e6 and not perspex.config.enable_x64.value


def test_the_dtype_of_most_of_the_work() -> None:
    def program(x: Any, w: Any) -> Any:
        inside = perspex.jit(lambda w: w @ w @ w)(w)
        return (x + 1.0).sum() + inside.astype(jnp.float32).sum()

    args = jnp.ones(50), jnp.ones((40, 40), jnp.float16)
    assert roofline.main_dtype(perspex.jit(program).trace(*args).jaxpr) == "float16"
    assert roofline.main_dtype(perspex.make_jaxpr(lambda i: i @ i)(jnp.arange(9))) == "float32"
    assert roofline.main_dtype(perspex.make_jaxpr(lambda i: i)(jnp.arange(9))) == "float32"


def test_unloaded_it_is_gone(cells: Notebook) -> None:
    cells.ok("%profile on")
    cells.ok("%unload_ext perspex_magics")
    cells.fails("%%profile\nf(x)", Exception)
    cells.ok("c = f(x)")
    with Session():  # the cell that unloaded it was being measured
        pass


@pytest.mark.parametrize(
    ("platform", "gibibytes", "want"),
    [
        ("cpu", None, (1024, 1 << 24)),
        ("gpu", 80, (8192, 1 << 28)),
        ("gpu", 4, (4096, 1 << 27)),
        ("tpu", None, (8192, 1 << 28)),
    ],
)
def test_the_peak_is_measured_with_sizes_for_the_device(
    platform: str, gibibytes: int | None, want: tuple[int, int]
) -> None:
    """Products that outlast their start, arrays that no cache holds, a quarter of the memory."""
    stats = None if gibibytes is None else {"bytes_limit": gibibytes << 30}
    device = SimpleNamespace(platform=platform, memory_stats=lambda: stats)
    assert roofline.sizes(device) == want

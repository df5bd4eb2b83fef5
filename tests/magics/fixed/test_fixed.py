"""The line under a cell that says what ran once, while a function was traced.

What is right is known from the cells: they are written so.
"""

from __future__ import annotations

import pytest
from support.shells import Notebook

import perspex

from .scenarios import FIXED, SOUND

KIND = "application/vnd.perspex.fixed+json"


@pytest.fixture
def cells(notebook: Notebook) -> Notebook:
    """A notebook with what such cells import."""
    notebook.ok(
        "import os, random, secrets, time, uuid\nfrom perspex import jit, lax\n"
        "import perspex.random as jr"
    )
    return notebook


def told(cells: Notebook, code: str) -> list[str]:
    """What is said under a cell."""
    cells.ok(code)
    found = [bundle for bundle in cells.displayed if KIND in bundle]
    assert len(found) <= 1
    for bundle in found:
        *lines, pointer = bundle["text/plain"].split("\n")
        assert pointer == "`%explain fixed` says more."
        assert lines == [f"Fixed at trace time: {text}" for text in bundle[KIND]["told"]]
        assert "<script" not in bundle["text/html"]
        assert bundle["text/html"].count("<strong>") == len(lines)
    return [text for bundle in found for text in bundle[KIND]["told"]]


@pytest.mark.parametrize("scenario", FIXED)
def test_what_is_fixed_is_told_once(cells: Notebook, scenario: str) -> None:
    codes, text, line = FIXED[scenario]
    found = [(each, code) for code in codes for each in told(cells, code)]
    assert len(found) == 1, found
    sentence, _ = found[0]
    assert f"`{text}` at Cell In[" in sentence
    assert f"]:{line} " in sentence or f"]:{line}." in sentence
    # The same cells again: nothing new.
    assert [each for code in codes for each in told(cells, code)] == []


@pytest.mark.parametrize("scenario", SOUND)
def test_what_is_sound_is_not_told(cells: Notebook, scenario: str) -> None:
    assert [each for code in SOUND[scenario] for each in told(cells, code)] == []


def test_what_is_told_of_a_number(cells: Notebook) -> None:
    (text,) = told(cells, "import random\nrandom.seed(7)\njit(lambda x: x * random.random())(1.0)")
    n = cells.shell.execution_count - 1
    # The first number after this seed.
    assert text == (
        f"`random.random()` at Cell In[{n}]:3 (<lambda>) ran once, while `<lambda>` was traced; "
        "every call reuses 0.323833. Draw with `perspex.random` and a key that is an argument."
    )


def test_the_remedy_for_a_print(cells: Notebook) -> None:
    (text,) = told(
        cells, "@jit\ndef f(x, y):\n    print('at', x, y + 1)\n    return x\nf(1.0, 2.0)"
    )
    assert '`perspex.debug.print("{} {}", x, y + 1)` prints them at each call' in text


def test_what_is_told_of_a_text(cells: Notebook) -> None:
    (text,) = told(cells, "%%jit\ny = jnp.ones(3) * 2\nlabel = f'{1}: {y}'\nprint(label)")
    n = cells.shell.execution_count - 1
    assert text == (
        f"`f'{{1}}: {{y}}'` at Cell In[{n}]:3 ran once, while `cell` was traced. The text holds "
        "the tracer's description, `JaxprTracer(float32[3])`, and no numbers; "
        '`perspex.debug.print("{} {}", 1, y)` prints them at each call.'
    )


def test_the_same_value_in_another_text(cells: Notebook) -> None:
    for text in ("f'{y}'", "f'y is {y}'", "str(y)"):
        (line,) = told(cells, f"%%jit\ny = jnp.ones(3) * 2\nlabel = {text}")
        assert f"`{text}` at" in line


def test_a_format_has_an_error_and_no_line(cells: Notebook) -> None:
    for text in ("f'{y:.3f}'", "'%.3f' % y"):
        cells.fails(
            f"%%jit\ny = jnp.ones(3).sum()\nprint({text})", perspex.errors.ConcretizationTypeError
        )
        assert "debug.print" in cells.out
        assert not [bundle for bundle in cells.displayed if KIND in bundle]


def test_a_line_that_runs_often(cells: Notebook) -> None:
    code = (
        "@jit\ndef f(x):\n    for i in range(3):\n        x = x + np.random.rand()\n    return x\n"
    )
    (text,) = told(cells, f"{code}f(1.0)")
    assert "ran 3 times, while `f` was traced; every call reuses 0." in text
    assert "(the last one)" in text


def test_a_cell_that_fails_for_it(cells: Notebook) -> None:
    cells.ok("kept = []")
    cells.fails(
        "@jit\ndef f(x):\n    kept.append(x * 2)\n    return x\nf(1.0)\nkept[0] + 1",
        perspex.errors.UnexpectedTracerError,
    )
    assert not [bundle for bundle in cells.displayed if KIND in bundle]


def test_many_in_one_cell(cells: Notebook) -> None:
    lines = "".join([f"    x = x + np.random.rand({i})[0]\n" for i in range(1, 6)])
    texts = told(cells, f"@jit\ndef f(x):\n{lines}    return x\nf(1.0)")
    assert len(texts) == 4
    assert texts[-1] == "2 more: see `%fixed`."


def test_markup_in_code_is_text(cells: Notebook) -> None:
    told(cells, "@jit\ndef f(x):\n    print('<b>', x)\n    return x\nf(1.0)")
    (html,) = [b["text/html"] for b in cells.displayed if KIND in b]
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


def test_the_columns_of_errors_stay(cells: Notebook) -> None:
    cells.fails("@jit\ndef f(x):\n    return x + np.random.rand('a')\nf(1.0)", TypeError)
    assert "np.random.rand('a')" in cells.out


def test_quiet_off_and_on(cells: Notebook) -> None:
    cell = "jit(lambda x: x + np.random.rand({}))(1.0)"
    cells.ok("%fixed quiet")
    assert not told(cells, cell.format(2))
    cells.ok("%fixed")
    assert "np.random.rand(2)" in cells.out + str(cells.displayed)
    cells.ok("%fixed off")
    assert not told(cells, cell.format(3))
    cells.ok("%fixed on")
    assert told(cells, cell.format(4))


def test_what_an_error_has_said_is_not_told_by_a_later_cell(cells: Notebook) -> None:
    cells.fails(
        "kept = []\n@jit\ndef f(x):\n    kept.append(x * 2)\n    return x\nf(1.0)\nkept[0] + 1",
        perspex.errors.UnexpectedTracerError,
    )
    assert not told(cells, "jit(lambda x: x + 1)(1.0)")


def test_listed_on_request(cells: Notebook) -> None:
    cells.ok("os.environ['PERSPEX_RATE'] = '0.25'\nkept = []")
    cells.ok(
        "def scaled(x):\n    return x * float(os.environ['PERSPEX_RATE'])\n"
        "@jit\ndef f(x):\n    kept.append(x * 1)\n    return scaled(x)\n"
        "@jit\ndef g(x):\n    return x + np.random.rand()\nf(1.0), g(1.0)"
    )

    def listed(line: str) -> str:
        cells.ok(line)
        (bundle,) = cells.displayed
        assert "<script" not in bundle["text/html"]
        return str(bundle["text/plain"])

    everything = listed("%fixed")
    for part in ("os.environ['PERSPEX_RATE']", "'0.25'", "np.random.rand()", "kept[0]"):
        assert part in everything
    assert ":2 (scaled)" in everything
    of_f = listed("%fixed f")
    assert "0.25" in of_f
    assert "rand" not in of_f
    cells.ok("kept.clear()")
    cells.ok("%fixed clear")
    assert (
        listed("%fixed")
        == "No function did anything once that its calls reuse, as far as cells show it."
    )


def test_without_the_extension(cells: Notebook) -> None:
    cells.ok("@jit\ndef f(x):\n    return x + np.random.rand()")
    cells.ok("%unload_ext perspex_magics")
    assert cells.ok("float(f(1.0))") > 1.0
    assert not cells.displayed
    cells.ok("%load_ext perspex_magics")
    assert told(cells, "jit(lambda x: f(x) * np.random.rand(2))(1.0)")

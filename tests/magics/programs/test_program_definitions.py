"""`%%jit` on a cell of definitions."""

from __future__ import annotations

import numpy as np
import pytest
from IPython.core.error import UsageError
from support.shells import Notebook

from perspex.errors import TracerBoolConversionError


def is_jitted(notebook: Notebook, name: str) -> bool:
    return hasattr(notebook.ns[name], "lower")


def test_each_function_is_jitted(notebook: Notebook) -> None:
    notebook.ok(
        '%%jit\n"""Two functions."""\nimport math\n'
        "def area(r):\n    return math.pi * r * r\n"
        "def volume(r, h):\n    return area(r) * h\n"
    )
    assert is_jitted(notebook, "area") and is_jitted(notebook, "volume")
    np.testing.assert_allclose(notebook.ok("volume(2.0, 3.0)"), 12 * np.pi, rtol=1e-6)
    assert notebook.ns["volume"].__name__ == "volume"


def test_static_and_donated_go_to_those_that_have_them(notebook: Notebook) -> None:
    notebook.ok(
        "%%jit --static n,flag --donate x\n"
        "def repeat(x, n):\n    for _ in range(n): x = x + x\n    return x\n"
        "def sign(v, flag=True):\n    return v if flag else -v\n"
    )
    notebook.ok("x = jnp.array([1.0, 2.0])")
    np.testing.assert_allclose(notebook.ok("repeat(x, 3)"), [8.0, 16.0])
    assert notebook.ok("x.is_deleted()")
    assert float(notebook.ok("sign(2.0, flag=False)")) == -2.0


def test_classes_beside_functions_stay_classes(notebook: Notebook) -> None:
    notebook.ok("%%jit\nclass Config:\n    by = 3\ndef times(x):\n    return x * Config.by")
    assert isinstance(notebook.ns["Config"], type)
    assert float(notebook.ok("times(2.0)")) == 6.0


def test_redefining_takes_effect(notebook: Notebook) -> None:
    notebook.ok("%%jit\ndef f(x): return x + 1")
    assert float(notebook.ok("f(1.0)")) == 2.0
    notebook.ok("%%jit\ndef f(x): return x + 2")
    assert float(notebook.ok("f(1.0)")) == 3.0


def test_a_failure_defines_nothing(notebook: Notebook) -> None:
    shown = notebook.fails("%%jit\ndef f(x): return x\n@missing\ndef g(x): return x", NameError)
    assert "f" not in notebook.ns
    assert "line 3\n" in shown and "perspex_magics" not in shown


def test_errors_inside_show_the_cell(notebook: Notebook) -> None:
    notebook.ok("%%jit\ndef f(x):\n    if x > 0:\n        return x\n    return -x")
    shown = notebook.fails("f(1.0)", TracerBoolConversionError)
    assert "----> 3     if x > 0:" in shown


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ("--static m", "no function here has a parameter `m`"),
        ("--time", "--time is for a cell of statements"),
        ("--show hlo", "--show is for a cell of statements"),
        ("--name g", "--name is for a cell of statements"),
    ],
)
def test_usage_errors(notebook: Notebook, options: str, match: str) -> None:
    notebook.fails(f"%%jit {options}\ndef f(x): return x", UsageError, match)
    assert "f" not in notebook.ns


def test_async_functions_are_refused(notebook: Notebook) -> None:
    notebook.fails("%%jit\nasync def f(x): return x", UsageError, "async")

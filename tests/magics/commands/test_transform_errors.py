"""Errors of transforms in a notebook name the cell and the line, and show the user's frames."""

from __future__ import annotations

import pytest
from support.shells import Notebook

from perspex import errors

SETUP = "from perspex import grad, jit, lax, vmap\nx = jnp.arange(3.)"


def frames(shown: str) -> list[str]:
    return [row for row in shown.splitlines() if row.startswith(("Cell ", "File "))]


@pytest.fixture
def cells(notebook: Notebook) -> Notebook:
    notebook.ok(SETUP)
    return notebook


def test_a_carry_that_changes_its_type(cells: Notebook) -> None:
    number = cells.shell.execution_count
    shown = cells.fails(
        "def step(c, a):\n    d = c.astype(int)\n    return d, a\nlax.scan(step, 1.0, x)", TypeError
    )
    assert frames(shown) == [f"Cell In[{number}], line 4"]
    assert f"body is `step` at Cell In[{number}]:1" in shown
    assert f"(made by `convert_element_type` at Cell In[{number}]:2 (step))" in shown


def test_a_leaked_tracer(cells: Notebook) -> None:
    number = cells.shell.execution_count
    cells.ok("kept = []\ndef f(v):\n    w = v * 2\n    kept.append(w)\n    return w\njit(f)(x)")
    shown = cells.fails("y = 1\nkept[0] + y", errors.UnexpectedTracerError)
    assert frames(shown) == [f"Cell In[{number + 1}], line 2"]
    assert f"It was made by `mul` at Cell In[{number}]:3 (f) while `f` was traced." in shown
    assert f"It was used at Cell In[{number + 1}]:2 as `kept[0]`, after" in shown


def test_reverse_through_a_while_loop(cells: Notebook) -> None:
    number = cells.shell.execution_count
    cells.ok(
        "def g(v):\n    u = v\n    return lax.while_loop(lambda c: c < 10, lambda c: c * 2, u)"
    )
    shown = cells.fails("grad(g)(1.0)", ValueError, "Reverse-mode")
    assert frames(shown) == [f"Cell In[{number + 1}], line 1"]
    assert f"The loop is at Cell In[{number}]:3 (g)." in shown


def test_gradients_that_are_none(cells: Notebook) -> None:
    number = cells.shell.execution_count
    cells.ok("def double(v):\n    return v * 2")
    shown = cells.fails("y = 1\ngrad(double)(x)", TypeError)
    assert frames(shown) == [f"Cell In[{number + 1}], line 2"]
    assert f"Output had shape: (3,), from `double` at Cell In[{number}]:1" in shown
    assert "reduce the output to a scalar with output.sum()" in shown
    shown = cells.fails("grad(double)(3)", TypeError)
    assert f"got int32 for argument v of `double` at Cell In[{number}]:1" in shown
    assert "write 2.0 for 2" in shown
    shown = cells.fails(
        "from perspex import linear_transpose\nlinear_transpose(lambda v: v * v, x)(x)",
        NotImplementedError,
    )
    assert frames(shown) == [f"Cell In[{number + 3}], line 2"]
    assert f"`mul` at Cell In[{number + 3}]:2 (<lambda>) takes two values" in shown


def test_axes_that_do_not_fit(cells: Notebook) -> None:
    shown = cells.fails("vmap(lambda a, b: a)(x, {'k': jnp.ones(4)})", ValueError)
    assert len(frames(shown)) == 1 and "axis 0 of argument b['k'] of type float32[4]" in shown
    shown = cells.fails("vmap(lambda a: a, in_axes=({'k': 0},))(x)", ValueError)
    assert len(frames(shown)) == 1 and "in_axes[0] is a dict, but the value there is an" in shown


def test_the_update_that_an_assignment_means(cells: Notebook) -> None:
    shown = cells.fails("a = jnp.arange(3)\na[0] += 1", TypeError, "immutable")
    assert "Here: `a = a.at[0].add(1)`" in shown
    shown = cells.fails("@jit\ndef f(v):\n    v[1:] = 0\n    return v\nf(x)", TypeError)
    assert "Here: `v = v.at[1:].set(0)`" in shown and "line 3, in f(v)" in shown


def test_unbound_names(cells: Notebook) -> None:
    shown = cells.fails("vmap(lambda a: lax.psum(a, 'j'), axis_name='i')(x)", NameError)
    assert "unbound axis name: j" in shown and "vmap(..., axis_name='j')" in shown
    assert all(row.startswith("Cell ") for row in frames(shown))


WAY = "def f(v, u=1.0):\n    w = v * u\n    return float(w)"
ASKED = {
    "vmap(f)(x)": ("f", ["v"], "mapped"),
    "grad(f)(1.0)": ("f", ["v"], "differentiated"),
    "%vmap f(x, u=x)": ("f", ["v"], "mapped"),
    "%vmap --jit f(x, u=x)": ("f", ["u", "v"], "traced"),
    "%grad f(1.0, 2.0) --wrt u": ("f", ["u"], "differentiated"),
    "%grad f(a * 1.0) --wrt a": ("f", ["a"], "differentiated"),
    "%grad --jit f(1.0)": ("f", ["v"], "traced"),
    "%jaxpr f(a)": ("expression", ["a"], "traced"),
    "%%vmap x\nf(x)": ("cell", ["x"], "mapped"),
    "%%grad a\nf(a)": ("cell", ["a"], "differentiated"),
    "%%vmap x --jit\nf(x)": ("cell", ["x"], "traced"),
}


@pytest.mark.parametrize("asked", ASKED)
def test_the_way_begins_with_what_the_user_gave(cells: Notebook, asked: str) -> None:
    cells.ok(f"a = 2.0\n{WAY}")
    number = cells.shell.execution_count - 1
    shown = cells.fails(asked, errors.ConcretizationTypeError)
    function, arguments, doing = ASKED[asked]
    made = f"It was made by `mul` at Cell In[{number}]:3 (f) while `{function}` was {doing}."
    assert made in shown
    rows = [" ".join(row.split()) for row in shown.splitlines()]
    start = rows.index("From the arguments to here:") + 1
    given = [row for row in rows[start:] if row.startswith("argument of")]
    assert sorted(row.rpartition(" ")[0] for row in given) == sorted(
        [f"argument of `{function}` `{name}`" for name in arguments]
    )
    assert f"Cell In[{number}]:3 (f) w = v * u mul" in "\n".join(rows)

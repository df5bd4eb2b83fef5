"""`%grad`, `%vmap`, `%jaxpr` and their cells in a live Perspex kernel."""

from __future__ import annotations

import json

import numpy as np
from support.session import TIMEOUT, Session

X = np.array([[1.0, 2.0], [0.0, -1.0], [2.0, 0.5]])
W = np.array([0.5, -1.0])
SETUP = f"""
import jax.numpy as jnp
x = jnp.array({X.tolist()})
w = jnp.array({W.tolist()})
def loss(weights, x):
    return ((x @ weights - 1) ** 2).sum()
"""


def numbers(live: Session, expression: str) -> object:
    return json.loads(live.ok(f"print(({expression}).tolist())").stdout)


def test_gradients_of_a_cell_and_of_each_example(live: Session) -> None:
    live.ok(SETUP)
    ran = live.ok("%%grad w --value --jit\nerror = x @ w - 1\n(error**2).sum()")
    assert ran.text.startswith("Array(") and "float32[]" in ran.data["text/html"]
    np.testing.assert_allclose(numbers(live, "d_w"), 2 * X.T @ (X @ W - 1), rtol=1e-5)
    np.testing.assert_allclose(numbers(live, "error"), X @ W - 1, rtol=1e-5)
    live.ok("%%vmap x\n%%grad w\n(x @ w - 1) ** 2")
    np.testing.assert_allclose(numbers(live, "d_w"), 2 * (X @ W - 1)[:, None] * X, rtol=1e-5)
    live.ok("g = %grad loss(w, x)\ns = %vmap loss(w, x) --in None,0")
    np.testing.assert_allclose(numbers(live, "g"), 2 * X.T @ (X @ W - 1), rtol=1e-5)
    np.testing.assert_allclose(numbers(live, "s"), (X @ W - 1) ** 2, rtol=1e-5)


def test_a_jaxpr_is_text_and_html(live: Session) -> None:
    live.ok(SETUP)
    ran = live.ok("%jaxpr loss(w, x)")
    # A line of the clock may follow.
    data, *_ = [o["content"]["data"] for o in ran.outputs if o["msg_type"] == "display_data"]
    assert data["text/plain"].startswith("{ lambda ; a:f32[2] b:f32[3,2]. let")
    assert "inputs w f32[2], x f32[3,2]" in data["text/html"] and "<pre" in data["text/html"]


def test_a_mistake_is_the_cells_error(live: Session) -> None:
    live.ok(SETUP)
    ran = live.run("%%grad w --jit\n\nresidual = x @ w\nresidual")
    assert (ran.status, ran.ename) == ("error", "TypeError")
    assert "----> 4 residual" in ran.traceback and "float32[3]; add .sum()" in ran.traceback
    assert "perspex_magics" not in ran.traceback
    ran = live.run("a = 1\ng = %grad loss(w, x.T)")
    assert (ran.status, ran.ename) == ("error", "TypeError")
    assert "----> 2 g = %grad loss(w, x.T)" in ran.traceback and "in loss(" in ran.traceback
    assert "run_line_magic" not in ran.traceback
    assert live.run("%%vmap x w\nx @ w").ename == "ValueError"
    assert live.ok("'residual' in globals()").text == "False"


def test_completion(live: Session) -> None:
    live.ok(SETUP)
    for code, matches, replaced in [
        ("%%grad w --v", ["--value"], "--v"),
        ("%grad loss(w, x) --wrt we", ["weights"], "we"),
        ("step = %vmap loss --i", ["--in"], "--i"),
        ("%gra", ["%grad", "%%grad"], "%gra"),
        ("%jaxpr los", ["loss"], "los"),
    ]:
        live.client.complete(code, len(code))
        content = live.client.get_shell_msg(timeout=TIMEOUT)["content"]
        assert content["matches"] == matches
        assert code[content["cursor_start"] : content["cursor_end"]] == replaced

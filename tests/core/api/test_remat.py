"""`checkpoint`: the same numbers, computed twice, and less memory in between."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from support import checks

import perspex
from perspex import ad_checkpoint, checkpoint, grad, jit, lax, make_jaxpr, remat
from perspex import checkpoint_policies as policies
from perspex import numpy as pnp
from perspex.ad_checkpoint import checkpoint_name, print_saved_residuals
from perspex.ir.jaxpr import Jaxpr, check, sub_jaxprs

W = np.random.default_rng(0).normal(size=(3, 3))
X = np.array([0.3, -0.5, 0.8])

NAMED = policies.save_only_these_names("hidden")
POLICIES = {
    "none": None,
    "everything": policies.everything_saveable,
    "nothing": policies.nothing_saveable,
    "dots": policies.dots_saveable,
    "named": NAMED,
    "not named": policies.save_anything_except_these_names("hidden"),
    "offload": policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["hidden"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
}


def layer(w: Any, x: Any) -> Any:
    hidden = checkpoint_name(pnp.tanh(w @ x), "hidden")
    return pnp.sin(hidden) * x


def count(jaxpr: Jaxpr, name: str) -> int:
    """How often a primitive occurs, in bodies too."""
    return sum(
        (eqn.primitive.name == name) + sum(count(sub.jaxpr, name) for sub in sub_jaxprs(eqn.params))
        for eqn in jaxpr.eqns
    )


def only(jaxpr: Jaxpr, differentiated: bool) -> list[Jaxpr]:
    """The bodies of checkpoints of a program."""
    return [
        eqn.params["jaxpr"].jaxpr
        for eqn in jaxpr.eqns
        if eqn.primitive.name == "remat2" and eqn.params["differentiated"] == differentiated
    ]


# ---- Values and derivatives ---------------------------------------------------------------------


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("policy", POLICIES)
def test_derivatives(policy: str) -> None:
    f = checkpoint(layer, policy=POLICIES[policy])

    def flat(w: Any, x: Any) -> list[Any]:
        return [f(w, f(w, x))]

    np.testing.assert_allclose(f(W, X), np.sin(np.tanh(W @ X)) * X, rtol=1e-14)
    checks.check_reverse(flat, [W, X])
    if policy in ("none", "named"):
        checks.check_second(flat, [W, X])


@pytest.mark.usefixtures("x64")
def test_batches() -> None:
    f = checkpoint(layer)
    checks.check_batches(lambda w, x: [f(w, x), f(w, X)], [W, X])
    checks.check_batches(lambda w, x: [grad(lambda w: f(w, x).sum())(w)], [W, X], tol=1e-11)


@pytest.mark.usefixtures("x64")
def test_in_loops_branches_and_calls() -> None:
    f = checkpoint(layer)

    def looped(f: Any, w: Any, x: Any) -> list[Any]:
        def step(c: Any, k: Any) -> Any:
            y = lax.cond(k > 1.5, lambda: f(w * k, c), lambda: c * k)
            return y, f(w, y)

        last, ys = lax.scan(step, x, np.arange(1.0, 4.0))
        return [jit(f)(w, last), ys]

    checks.check_derivatives(functools.partial(looped, f), [W, X])
    for got, want in zip(looped(f, W, X), looped(layer, W, X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("policy", ["none", "dots"])
def test_around_loops_branches_and_calls(policy: str) -> None:
    @functools.partial(checkpoint, policy=POLICIES[policy])
    def f(w: Any, x: Any) -> Any:
        last, ys = lax.scan(lambda c, k: (layer(w * k, c), c @ w), x, np.arange(1.0, 4.0))
        y = lax.cond(last[0] > 0, lambda: pnp.exp(last), lambda: jit(layer)(w, last))
        return [checkpoint(layer)(w, y) + lax.fori_loop(0, 2, lambda i, c: pnp.cos(c) * c, y), ys]

    checks.check_reverse(f, [W, X])
    if policy == "none":
        checks.check_forward(f, [W, X])
        checks.check_second(f, [W, X])


@pytest.mark.usefixtures("x64")
def test_custom_rules_inside_and_outside() -> None:
    @perspex.custom_jvp
    def f(x: Any) -> Any:
        return pnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * tangents[0] * pnp.cos(primals[0])))

    @perspex.custom_vjp
    def g(x: Any) -> Any:
        return pnp.sin(x)

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (5.0 * ct * pnp.cos(x),))
    for run in (lambda h: h, jit):
        got = run(grad(checkpoint(lambda x: f(x) * g(x))))(0.4)
        np.testing.assert_allclose(got, 8 * np.sin(0.4) * np.cos(0.4), rtol=1e-14)


def test_integer_arguments_trees_and_names() -> None:
    @checkpoint
    def f(p: Any, n: Any, *, shift: Any = 0.0) -> Any:
        return {"y": p["a"] * n + shift, "n": n + 1}

    out = f({"a": X}, 3, shift=1.0)
    np.testing.assert_allclose(out["y"], np.float32(X) * 3 + 1, rtol=1e-6)
    assert int(out["n"]) == 4 and f.__name__ == "f"
    found = grad(lambda p: f(p, 2)["y"].sum())({"a": X})
    np.testing.assert_allclose(found["a"], np.full(3, 2.0))
    assert remat is checkpoint is ad_checkpoint.checkpoint


# ---- What is stored, and what is computed again -------------------------------------------------


def test_residuals_are_the_arguments() -> None:
    closed = make_jaxpr(grad(lambda w, x: checkpoint(layer)(w, x).sum(), (0, 1)))(W, X)
    check(closed.jaxpr)
    (forward,), (backward,) = only(closed.jaxpr, False), only(closed.jaxpr, True)
    # Nothing but the result is handed on; sin, its argument and the product are made again.
    assert len(forward.outvars) == 1
    assert [count(backward, name) for name in ("tanh", "sin", "name")] == [1, 1, 0]


@pytest.mark.parametrize(
    ("policy", "saved", "again"),
    [
        ("dots", 1, {"tanh": 1, "dot_general": 2}),
        ("named", 1, {"tanh": 0, "dot_general": 2}),
        ("offload", 1, {"tanh": 0, "dot_general": 2}),
        ("nothing", 0, {"tanh": 1, "dot_general": 3}),
        ("everything", 3, {"tanh": 0, "sin": 0, "cos": 0, "dot_general": 2}),
    ],
)
def test_policies(policy: str, saved: int, again: dict[str, int]) -> None:
    f = checkpoint(layer, policy=POLICIES[policy])
    closed = make_jaxpr(grad(lambda w, x: jit(f)(w, x).sum(), (0, 1)))(W, X)
    check(closed.jaxpr)
    bodies = [sub.jaxpr for eqn in closed.eqns for sub in sub_jaxprs(eqn.params)]
    forward = [b for body in bodies for b in only(body, False)]
    backward = [b for body in bodies for b in only(body, True)]
    assert len(forward[0].outvars) == 1 + saved
    assert {name: count(backward[0], name) for name in again} == again


def test_a_policy_is_asked_about_operations_in_calls() -> None:
    inner = jit(lambda w, x: pnp.sin(w @ x))
    f = checkpoint(lambda w, x: pnp.cos(inner(w, x)), policy=policies.dots_saveable)
    closed = make_jaxpr(grad(lambda w: f(w, X).sum()))(W)
    (backward,) = only(closed.jaxpr, True)
    assert count(backward, "dot_general") == 1 and count(backward, "sin") == 2


def test_a_policy_is_asked_about_the_steps_of_a_loop() -> None:
    def f(w: Any, x: Any) -> Any:
        def step(c: Any, k: Any) -> Any:
            y = pnp.sin(c @ w) * k
            return y, (c @ w.T) ** 2

        last, ys = lax.scan(step, x, np.arange(1.0, 4.0, dtype=np.float32))
        return pnp.tanh(last).sum() + ys.sum()

    w, x = np.float32(W), np.float32(X)
    for policy, products in ((policies.dots_saveable, 0), (policies.nothing_saveable, 2)):
        g = checkpoint(f, policy=policy)
        closed = make_jaxpr(grad(g))(w, x)
        check(closed.jaxpr)
        (backward,) = only(closed.jaxpr, True)
        # Three for the cotangents of c and w (twice), and those that are made again.
        loops = [eqn for eqn in backward.eqns if eqn.primitive.name == "scan"]
        counts = [count(eqn.params["jaxpr"].jaxpr, "dot_general") for eqn in loops]
        assert counts == [products, 4]
        for run in (lambda h: h, jit):
            np.testing.assert_allclose(run(grad(g))(w, x), grad(f)(w, x), rtol=1e-5)
            found = run(grad(lambda w, g=g: grad(g)(w, x).sum()))(w)
            np.testing.assert_allclose(found, grad(lambda w: grad(f)(w, x).sum())(w), rtol=1e-4)


def test_policies_by_batch_axes_and_both() -> None:
    batched = ((((2,), (1,)), ((0,), (0,))), False)
    plain = ((((1,), (0,)), ((), ())), True)
    dot, sin = lax.dot_general_p, lax.sin_p
    for dims, want in (batched, plain):
        found = policies.dots_with_no_batch_dims_saveable(dot, dimension_numbers=dims)
        assert found is want
        assert policies.dots_saveable(dot, dimension_numbers=dims)
    assert not policies.dots_with_no_batch_dims_saveable(sin)
    either = policies.save_from_both_policies(policies.dots_saveable, NAMED)
    name = ad_checkpoint.name_p
    assert either(dot) and either(name, name="hidden") and not either(name, name="other")
    offload = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    assert offload(dot, dimension_numbers=plain[0]) == ("device", "pinned_host")
    assert offload(sin) is ad_checkpoint.Recompute
    with pytest.raises(ValueError, match="'a'.* choose one"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a", "b"],
            names_which_can_be_offloaded=["a"],
            offload_src="device",
            offload_dst="pinned_host",
        )


def test_second_derivatives_are_checkpointed_too() -> None:
    f = checkpoint(lambda x: pnp.sin(pnp.sin(x)))
    closed = make_jaxpr(grad(grad(f)))(1.0)
    outside = [eqn.primitive.name for eqn in closed.eqns if eqn.primitive.name in ("sin", "cos")]
    assert outside == []


def test_without_derivatives_it_is_the_body() -> None:
    text = jit(checkpoint(layer)).lower(W, X).as_text()
    assert "optimization_barrier" not in text and "call" not in text
    text = jit(grad(lambda w: checkpoint(layer)(w, X).sum())).lower(W).as_text()
    assert text.count("optimization_barrier") == 1
    f = checkpoint(layer, prevent_cse=False)
    text = jit(grad(lambda w: f(w, X).sum())).lower(W).as_text()
    assert "optimization_barrier" not in text


def memory(f: Any, *args: Any) -> int:
    return jit(grad(f)).lower(*args).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("loop", [False, True])
def test_peak_memory_is_lower(loop: bool) -> None:
    def deep(layer: Any, ws: Any, x: Any) -> Any:
        if loop:
            return lax.scan(lambda x, w: (layer(w, x), None), x, ws)[0].sum()
        for w in ws:
            x = layer(w, x)
        return x.sum()

    def block(w: Any, x: Any) -> Any:
        return pnp.tanh(pnp.sin(x @ w) * 2) + x

    ws, x = np.ones((12, 16, 16), np.float32), np.ones((128, 16), np.float32)
    ws = ws if loop else list(ws)
    plain = memory(functools.partial(deep, block), ws, x)
    dots = checkpoint(block, policy=policies.dots_saveable)
    found = [memory(functools.partial(deep, f), ws, x) for f in (dots, checkpoint(block))]
    assert found[0] < 0.85 * plain
    # 0.4 with the compiler of jaxlib 0.12, 0.69 with that of 0.10.2; as for JAX itself.
    assert found[1] < 0.75 * plain


def test_saved_residuals(capsys: pytest.CaptureFixture[str]) -> None:
    w, x = np.float32(W), np.float32(X)
    print_saved_residuals(checkpoint(layer), w, x)
    arguments = ["f32[3,3] from the argument w", "f32[3] from the argument x"]
    assert capsys.readouterr().out.splitlines() == arguments
    print_saved_residuals(jit(checkpoint(layer, policy=NAMED)), w, x=x)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == arguments
    assert lines[2].startswith("f32[3] named 'hidden' from test_remat.py:") and len(lines) == 3
    print_saved_residuals(lambda x: pnp.sin(x) * w[0], x)
    lines = capsys.readouterr().out.splitlines()
    assert any("output of cos from test_remat.py:" in line for line in lines)


# ---- Static arguments and errors ----------------------------------------------------------------


def test_static_arguments() -> None:
    def f(x: Any, flag: Any, *, power: Any = 1) -> Any:
        return x**power if flag else -x

    for numbers, names in [((1,), ("power",)), (-1, "power")]:
        g = checkpoint(f, static_argnums=numbers, static_argnames=names)
        assert [float(g(3.0, flag, power=2)) for flag in (True, False)] == [9.0, -3.0]
        assert float(grad(g)(3.0, True, power=3)) == 27.0
    g = checkpoint(lambda x, n: x * n[0], static_argnums=1)
    assert float(g(2.0, [3])) == 6.0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: checkpoint(3), TypeError, "Expected a callable"),
        (lambda: checkpoint(lambda x: x)("s"), TypeError, "`x` is of type <class 'str'>"),
        (lambda: checkpoint(lambda x: "s")(1.0), TypeError, "returned a value of type"),
        (lambda: checkpoint(lambda x: x, static_argnums=4)(1.0), ValueError, "from -1 to 0"),
        (lambda: checkpoint(lambda x: x, static_argnums="a"), TypeError, "must be integers"),
        (lambda: checkpoint(lambda x: x, static_argnames=[1]), TypeError, "must be strings"),
        (lambda: checkpoint_name(1.0, 3), TypeError, "must be a string"),
        (lambda: checkpoint_name("s", "a"), TypeError, "name"),
        (lambda: grad(checkpoint(pnp.sin, policy=lambda *a, **k: "x"))(1.0), TypeError, "a bool"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_a_decision_by_an_argument_names_the_remedy() -> None:
    def choose(x: Any, flag: Any) -> Any:
        return x if flag else -x

    with pytest.raises(perspex.errors.TracerBoolConversionError) as info:
        checkpoint(choose)(1.0, True)
    assert "`flag`" in str(info.value)
    assert "checkpoint(choose, static_argnums=...)" in info.value.__notes__[0]


@pytest.mark.parametrize("policy", ["names", "names and dots"])
def test_a_stored_name_is_found_by_equations_before_it(policy: str) -> None:
    # The derivative of `tanh` reads its result, and is written before the result has a name.
    weights = pnp.arange(16.0).reshape(4, 4) / 20
    x = pnp.arange(1.0, 5.0) / 8

    def f(x: Any) -> Any:
        return (checkpoint_name(pnp.tanh(weights @ x), "k") @ weights).sum()

    policies_of = {
        "names": policies.save_only_these_names("k"),
        "names and dots": policies.save_from_both_policies(
            policies.dots_saveable, policies.save_only_these_names("k")
        ),
    }
    slope = 1 - np.tanh(np.asarray(weights) @ np.asarray(x)) ** 2
    expected = np.asarray(weights).T @ (slope * np.asarray(weights).sum(1))
    found = grad(checkpoint(f, policy=policies_of[policy]))
    np.testing.assert_allclose(found(x), expected, rtol=1e-5)
    np.testing.assert_allclose(jit(found)(x), expected, rtol=1e-5)
    twice = perspex.hessian(checkpoint(f, policy=policies_of[policy]))(x)
    np.testing.assert_allclose(twice, perspex.hessian(f)(x), rtol=1e-4, atol=1e-7)

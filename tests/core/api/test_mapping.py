"""`vmap` over pytrees: axes given and asked for, and what is said when they do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex.api.differentiation import grad
from perspex.api.mapping import vmap
from perspex.sharding import AxisType, NamedSharding
from perspex.sharding import PartitionSpec as P

F = np.arange(3, dtype=np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_axes_in_and_out() -> None:
    for axis in (0, 1, -1, -2):
        rows = np.moveaxis(M, axis, 0)
        for out in (0, 1, -1):
            got = vmap(lambda x: x * 2, in_axes=axis, out_axes=out)(M)
            np.testing.assert_array_equal(got, np.moveaxis(rows * 2, 0, out))


def test_trees_of_axes() -> None:
    def f(p: Any, y: Any, *, z: Any) -> Any:
        return {"a": p["u"] * p["v"], "b": (y + z, 1.0)}

    run = vmap(f, in_axes=({"u": 1, "v": None}, None), out_axes={"a": 0, "b": (1, None)})
    got = run({"u": M, "v": 2.0}, F[:2], z=F)
    np.testing.assert_array_equal(got["a"], 2 * M.T)
    np.testing.assert_array_equal(got["b"][0], F[:2, None] + F)
    assert got["b"][1] == 1.0
    np.testing.assert_array_equal(vmap(lambda x, y: x + y, [0, None])(F, 1.0), F + 1)


def test_results_that_are_the_same_for_all() -> None:
    np.testing.assert_array_equal(vmap(lambda x: 7)(F), [7, 7, 7])
    assert vmap(lambda x: 7)(F).weak_type
    got = vmap(lambda x: pnp.sin(M[0]), out_axes=1)(F)
    np.testing.assert_allclose(got, np.sin(M[0])[:, None] + 0 * F, rtol=1e-6)
    np.testing.assert_array_equal(vmap(lambda x: x, None, axis_size=2)(F), [F, F])
    assert vmap(lambda: 1.0, axis_size=4)().shape == (4,)


def test_nested_and_with_other_transforms() -> None:
    outer = vmap(vmap(lambda x, y: x * y, (0, None)), (None, 0))
    np.testing.assert_array_equal(outer(F, F + 1), (F + 1)[:, None] * F)
    got = perspex.jit(vmap(grad(lambda x: pnp.sin(x) * x)))(F)
    np.testing.assert_allclose(got, np.cos(F) * F + np.sin(F), rtol=1e-6)
    total = vmap(lambda x: lax.fori_loop(0, 3, lambda i, c: c + x, 0.0))(F)
    np.testing.assert_array_equal(total, 3 * F)


def test_no_examples() -> None:
    assert vmap(lambda x: x * 2)(np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_typed_keys() -> None:
    random = perspex.random
    keys = random.split(random.key(0), 3)
    got = vmap(lambda k: random.bits(k, (2,)))(keys)
    for i in range(3):
        np.testing.assert_array_equal(got[i], random.bits(keys[i], (2,)))


def test_names_and_documentation() -> None:
    def loss(x: Any) -> Any:
        """The loss."""
        return x

    assert vmap(loss).__name__ == "loss"
    assert vmap(loss).__doc__.startswith("Vectorized version of loss.")
    assert vmap(loss).__doc__.endswith("The loss.")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: vmap(3), TypeError, "Expected a callable value, got 3"),
        (lambda: vmap(abs, in_axes="a"), TypeError, "in_axes must be an int, None, or a tuple"),
        (lambda: vmap(abs, in_axes=1.0), TypeError, "in_axes must be an int, None, or a tuple"),
        (lambda: vmap(abs, in_axes=True), TypeError, "in_axes must be an int"),
        (lambda: vmap(abs, out_axes="a"), TypeError, "out_axes must be an int, None, or"),
        (lambda: vmap(lambda x, y: x, (0,))(F, F), ValueError, r"len\(in_axes\)=1, len\(args\)=2"),
        (lambda: vmap(abs)(1.0), ValueError, "rank should be at least 1, but is only 0"),
        (lambda: vmap(abs, 1)(F), ValueError, "rank should be at least 2, but is only 1"),
        (lambda: vmap(abs, -2)(F), ValueError, "axis -2.*at least 2"),
        (lambda: vmap(abs, None)(F), ValueError, "at least one non-None value in in_axes"),
        (lambda: vmap(lambda: 1)(), ValueError, "at least one argument containing an array"),
        (
            lambda: vmap(lambda x, y: x)({"a": F, "b": M}, y=M),
            ValueError,
            r"(?s)2 axes had size 2, e.g. axis 0 of argument x\['b'\] of type float32\[2,3\].*"
            r"one axis had size 3: axis 0 of argument x\['a'\]",
        ),
        (lambda: vmap(abs, axis_size=2)(F), ValueError, "`axis_size` argument was 2"),
        (
            lambda: vmap(lambda x: x["a"], in_axes=({"a": 0, "c": 0},))({"a": F, "b": F}),
            ValueError,
            r"in_axes\[0\] is a dict with the children",
        ),
        (lambda: vmap(lambda x: (x, x), out_axes=(0,))(F), ValueError, "out_axes is a tuple of"),
        (lambda: vmap(abs, out_axes=None)(F), ValueError, "axis spec None but output was batched"),
        (lambda: vmap(abs, out_axes=1)(F), ValueError, "axis 1 is out of bounds"),
        (lambda: vmap(lambda x: x)({"w": "s"}), TypeError, r"argument x\['w'\] is of type"),
        (lambda: vmap(lambda x: "s")(F), TypeError, "returned a value of type <class 'str'>"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_what_is_not_mapped_may_be_anything() -> None:
    def apply(f: Any, mode: str, options: Any, x: Any) -> Any:
        return f(x) if mode == "plain" else options["scale"] * f(x)

    axes = (None, None, {"scale": 0, "name": None}, 0)
    found = vmap(apply, in_axes=axes)(
        lambda x: x + 1.0, "scaled", {"scale": pnp.arange(3.0), "name": "s"}, pnp.arange(3.0)
    )
    np.testing.assert_array_equal(found, [0.0, 2.0, 6.0])
    with pytest.raises(TypeError, match="vmap: argument mode is of type <class 'str'>"):
        vmap(apply, in_axes=(None, 0, None, 0))(pnp.sin, "s", {}, pnp.arange(3.0))


# ---- `spmd_axis_name`: the specs are those that jax 0.12 makes ----------------------------------

MESH = perspex.make_mesh((1, 1), ("x", "y"), AxisType.Auto)
SPMD = {
    "none": (None, P(None, "y"), P(P.UNCONSTRAINED, None, "y")),
    "one": ("x", P(None, "y"), P("x", None, "y")),
    "two": (("x", "y"), P(), P(("x", "y"))),
}


def constrained(spec: P) -> Callable[[Any], Any]:
    return lambda a: lax.with_sharding_constraint(a * 2, NamedSharding(MESH, spec))


def specs(f: Callable[..., Any]) -> list[P]:
    """The specs of a program's constraints."""
    jaxpr = perspex.make_jaxpr(f)(np.ones((8, 4, 6), np.float32))
    return [e.params["sharding"].spec for e in jaxpr.eqns if "sharding" in e.params]


@pytest.mark.parametrize("name", SPMD)
def test_examples_are_cut_where_a_sharding_is_constrained(name: str) -> None:
    spmd, spec, batched = SPMD[name]
    f = perspex.vmap(constrained(spec), spmd_axis_name=spmd)
    assert specs(f) == [batched]
    assert specs(perspex.grad(lambda a: f(a).sum())) == [batched] * 2
    a = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
    np.testing.assert_array_equal(perspex.jit(f)(a), a * 2)


def test_only_the_vmap_that_names_an_axis_is_cut() -> None:
    inner = perspex.vmap(constrained(P("y")), spmd_axis_name="x")
    assert specs(perspex.vmap(inner)) == [P(P.UNCONSTRAINED, "x", "y")]


def test_an_axis_that_the_constraint_uses_cannot_cut_the_examples() -> None:
    f = perspex.vmap(constrained(P(None, "y")), spmd_axis_name="y")
    with pytest.raises(
        ValueError, match=r"spmd_axis_name \('y',\) cannot appear in .*P\(None, 'y'"
    ):
        f(np.ones((2, 4, 6), np.float32))

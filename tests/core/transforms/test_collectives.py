"""Named axes: collectives against NumPy on the whole batch, their derivatives, their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from perspex import enable_x64, grad, jacfwd, jacrev, jit, jvp, lax, make_jaxpr, vmap
from perspex import numpy as pnp
from perspex.ir.jaxpr import check
from perspex.tracing.axes import Axis
from perspex.tracing.staging import eval_jaxpr
from perspex.transforms.vmap import batch, batch_jaxpr

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
S = np.random.default_rng(1).normal(size=(4, 4, 2)).astype(np.float32)
Z = np.arange(36, dtype=np.float32).reshape(2, 3, 6)

Map = Callable[[Any], Any]


def mapped(f: Map) -> Map:
    return vmap(f, axis_name="i")


def mapped_twice(f: Map) -> Map:
    return vmap(vmap(f, axis_name="j"), axis_name="i")


def rows(y: np.ndarray, count: int = 4) -> np.ndarray:
    """What every example gets."""
    return np.broadcast_to(y, (count, *y.shape))


# ---- What real JAX does not do inside vmap ------------------------------------------------------


@pytest.mark.parametrize("names", [("i", "j"), ("j", "i"), ["i", "j"]])
@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_all_gather_along_two_axes(names: Any, tiled: bool, axis: int) -> None:
    got = mapped_twice(lambda a: lax.all_gather(a, names, axis=axis, tiled=tiled))(Z)
    flat = (Z if names[0] == "i" else Z.swapaxes(0, 1)).reshape(6, 6)
    want = flat.reshape(36) if tiled else np.moveaxis(flat, 0, axis)
    np.testing.assert_array_equal(got, np.broadcast_to(want, (2, 3, *want.shape)))


@pytest.mark.parametrize("names", [("i", "j"), ("j", "i")])
def test_psum_scatter_along_two_axes(names: Any) -> None:
    total = Z.sum((0, 1))
    blocks = total.reshape(2, 3) if names[0] == "i" else total.reshape(3, 2).T
    np.testing.assert_array_equal(mapped_twice(lambda a: lax.psum_scatter(a, names))(Z), blocks)
    double = np.concatenate([Z, -Z], axis=2)
    got = mapped_twice(lambda a: lax.psum_scatter(a, names, tiled=True))(double)
    blocks = np.concatenate([total, -total]).reshape(*([2, 3] if names[0] == "i" else [3, 2]), 2)
    np.testing.assert_array_equal(got, blocks if names[0] == "i" else blocks.swapaxes(0, 1))


@pytest.mark.parametrize("axes", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_all_to_all_along_two_axes_is_that_along_one(axes: tuple[int, int]) -> None:
    x = np.random.default_rng(2).normal(size=(6, 12, 12)).astype(np.float32)
    one = mapped(lambda a: lax.all_to_all(a, "i", *axes, tiled=True))(x)
    two = mapped_twice(lambda a: lax.all_to_all(a, ("i", "j"), *axes, tiled=True))
    np.testing.assert_array_equal(two(x.reshape(2, 3, 12, 12)).reshape(one.shape), one)


def test_an_array_that_all_examples_have_in_common_is_sent_too() -> None:
    same = np.arange(4, dtype=np.float32)
    got = mapped(lambda a: lax.all_to_all(same, "i", 0, 0))(X)
    np.testing.assert_array_equal(got, np.repeat(same[:, None], 4, 1))
    np.testing.assert_array_equal(mapped(lambda a: lax.all_gather(same, "i"))(X)[0], rows(same))
    shift = [(0, 1), (1, 2), (2, 3)]
    got = mapped(lambda a: lax.ppermute(same, "i", shift))(X)
    np.testing.assert_array_equal(got, rows(same) * np.array([[0], [1], [1], [1]]))


@pytest.mark.parametrize("perm", [[(0, 1), (1, 2)], [(3, 0)], [], [(0, 1), (1, 0)]])
def test_who_is_sent_nothing_gets_zeros(perm: list[tuple[int, int]]) -> None:
    want = np.zeros_like(X)
    for src, dst in perm:
        want[dst] = X[src]
    np.testing.assert_array_equal(mapped(lambda a: lax.ppermute(a, "i", perm))(X), want)


def test_pbroadcast() -> None:
    np.testing.assert_array_equal(mapped(lambda a: lax.pbroadcast(a, "i", 2))(X), rows(X[2]))
    got = mapped_twice(lambda a: lax.pbroadcast({"a": a}, "j", 1)["a"])(Z)
    np.testing.assert_array_equal(got, np.repeat(Z[:, 1:2], 3, 1))


def test_integers_and_booleans() -> None:
    flags = X > 0
    got = mapped(lambda a: lax.psum_scatter(a, "i"))(np.repeat(flags[:, :1], 4, 1))
    np.testing.assert_array_equal(got, np.full(4, flags[:, 0].sum()))
    np.testing.assert_array_equal(mapped(lambda a: lax.pmax(a, "i"))(flags), rows(flags.any(0)))
    got = mapped(lambda a: lax.pmin(a, "i"))(np.arange(4) - 2)
    assert got.dtype == np.int32 and got.tolist() == [-2] * 4


# ---- Derivatives --------------------------------------------------------------------------------

LINEAR: dict[str, tuple[Map, np.ndarray]] = {
    "psum": (lambda a: lax.psum(a, "i"), X),
    "pmean": (lambda a: lax.pmean(a, "i"), X),
    "all_gather": (lambda a: lax.all_gather(a, "i", axis=1), X),
    "all_gather tiled": (lambda a: lax.all_gather(a, "i", tiled=True), X),
    "psum_scatter": (lambda a: lax.psum_scatter(a, "i"), S),
    "psum_scatter tiled": (
        lambda a: lax.psum_scatter(a, "i", scatter_dimension=1, tiled=True),
        np.concatenate([S, -S], axis=2),
    ),
    "all_to_all": (lambda a: lax.all_to_all(a, "i", 0, 1), S),
    "all_to_all tiled": (
        lambda a: lax.all_to_all(a, "i", 0, 1, tiled=True),
        np.concatenate([S, 2 * S], axis=1),
    ),
    "ppermute": (lambda a: lax.ppermute(a, "i", [(0, 2), (3, 1)]), X),
    "pshuffle": (lambda a: lax.pshuffle(a, "i", [2, 0, 3, 1]), X),
    "pbroadcast": (lambda a: lax.pbroadcast(a, "i", 1), X),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_in_both_directions(name: str) -> None:
    f, x = LINEAR[name]
    rng = np.random.default_rng(3)
    t = rng.normal(size=x.shape).astype(np.float32)
    y, dy = jvp(mapped(f), (x,), (t,))
    np.testing.assert_array_equal(dy, mapped(f)(t))
    ct = rng.normal(size=y.shape).astype(np.float32)
    # The adjoint, where the batch is differentiated, and where each example is: the loss is the sum
    # of those of all examples, so it is the same.
    whole = grad(lambda x: pnp.vdot(mapped(f)(x), ct))(x)
    np.testing.assert_allclose(np.vdot(whole, t), np.vdot(ct, dy), rtol=2e-5)
    each = vmap(grad(lambda a, c: pnp.vdot(f(a), c)), axis_name="i")(x, ct)
    np.testing.assert_allclose(each, whole, rtol=1e-5, atol=1e-6)
    compiled = jit(vmap(grad(lambda a, c: pnp.vdot(f(a), c)), axis_name="i"))(x, ct)
    np.testing.assert_allclose(compiled, whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("which", [lax.pmax, lax.pmin])
def test_extremes_in_both_directions(which: Any) -> None:
    def loss(x: Any) -> Any:
        return (mapped(lambda a: which(pnp.sin(a), "i") * a)(x) ** 2).sum()

    step = 1e-2
    found = grad(loss)(X)
    for i in np.ndindex(X.shape):
        d = np.zeros_like(X)
        d[i] = step
        np.testing.assert_allclose(
            found[i], (loss(X + d) - loss(X - d)) / (2 * step), rtol=2e-2, atol=2e-2
        )
    each = mapped(grad(lambda a: ((which(pnp.sin(a), "i") * a) ** 2).sum()))(X)
    np.testing.assert_allclose(each, found, rtol=1e-5, atol=1e-6)
    ties = mapped(grad(lambda a: which(a, "i").sum()))(np.ones((4, 2), np.float32))
    np.testing.assert_array_equal(ties, np.ones((4, 2)))


def test_forward_over_reverse_and_jacobians() -> None:
    def loss(a: Any) -> Any:
        return (lax.psum(pnp.sin(a), "i") ** 2).sum() + lax.pmax(a, "i").sum()

    h = mapped(jacfwd(grad(loss)))(X)
    np.testing.assert_allclose(mapped(jacrev(grad(loss)))(X), h, rtol=1e-5, atol=1e-5)

    def f(x: np.ndarray) -> np.ndarray:
        # The derivative of all losses by each example's own argument, written out.
        return 8 * np.sin(x).sum(0) * np.cos(x) + 4 * (x == x.max(0))

    # Along one example, the others held: what `jacfwd` inside the map perturbs is all of them.
    step = 1e-3
    for k in range(3):
        d = np.zeros_like(X, np.float64)
        d[:, k] = step
        want = (f(X + d) - f(X - d)) / (2 * step)
        np.testing.assert_allclose(h[:, :, k], want, rtol=1e-3, atol=1e-3)


# ---- Names --------------------------------------------------------------------------------------


def test_the_innermost_axis_of_a_name_counts() -> None:
    got = vmap(lambda a: vmap(lambda b: lax.psum(b, "i"), axis_name="i")(a), axis_name="i")(X)
    np.testing.assert_allclose(got, np.repeat(X.sum(1)[:, None], 3, 1), rtol=1e-6)


def test_one_function_in_several_environments() -> None:
    traced = []

    @jit
    def share(a: Any) -> Any:
        traced.append(a)
        return a / lax.axis_size("i") + 0 * lax.psum(a, "i")

    for size in (2, 3, 2):
        np.testing.assert_allclose(mapped(share)(np.ones(size)), np.full(size, 1 / size))
    assert len(traced) == 2

    def body(c: Any, _: Any) -> Any:
        traced.append(c)
        return c + lax.axis_size("i"), lax.axis_index("i")

    traced.clear()
    for size in (2, 3, 2):
        last, seen = mapped(lambda a: lax.scan(body, a, None, length=2))(np.zeros(size))
        assert last.tolist() == [2 * size] * size
        assert seen.tolist() == [[i, i] for i in range(size)]
    assert len(traced) == 2


def test_a_jitted_function_without_names_is_traced_once_per_environment() -> None:
    traced = []
    f = jit(lambda a: traced.append(a) or 2 * a)
    for _ in range(2):
        vmap(f)(X)
        vmap(f, axis_name="i")(X)
    assert len(traced) == 2


def test_programs_that_name_an_axis_are_batched_without_batched_operands() -> None:
    f = jit(lambda: (lax.axis_index("i"), 2.0))
    outs, axes = batch(lambda: list(f()), Axis(3, "i"), [], [])
    assert axes == [0, None] and outs[0].tolist() == [0, 1, 2]
    got = vmap(
        lambda: lax.cond(True, lambda: lax.axis_index("i"), lambda: 0), axis_name="i", axis_size=3
    )
    assert got().tolist() == [0, 1, 2]
    got = vmap(
        lambda: lax.while_loop(lambda c: c < lax.axis_index("i"), lambda c: c + 1, 0),
        axis_name="i",
        axis_size=3,
    )
    assert got().tolist() == [0, 1, 2]


def test_jaxpr_form_depends_on_the_name() -> None:
    closed = make_jaxpr(
        lambda a: lax.psum(a, "i") * lax.axis_index("j"), axis_env=[("i", 4), ("j", 3)]
    )(1.0)
    many, _ = batch_jaxpr(closed, Axis(4, "i"), (True,))
    other, _ = batch_jaxpr(closed, Axis(3, "j"), (True,))
    check(many.jaxpr)
    check(other.jaxpr)
    assert [e.primitive.name for e in many.eqns][0] == "reduce_sum"
    assert [e.primitive.name for e in other.eqns][0] == "psum"
    both, batched = batch_jaxpr(many, Axis(3, "j"), (False,))
    assert batched == (True,) and both.out_avals[0].shape == (3,)


def test_the_environment_ends_with_the_call() -> None:
    with pytest.raises(ZeroDivisionError):
        mapped(lambda a: 1 // 0)(X)
    with pytest.raises(NameError):
        lax.axis_size("i")


UNBOUND: dict[str, Callable[[], Any]] = {
    "psum": lambda: lax.psum(1, "i"),
    "pmean": lambda: jit(lambda x: lax.pmean(x, "i"))(X),
    "pmax": lambda: vmap(lambda x: lax.pmax(x, "i"))(X),
    "all_gather": lambda: lax.all_gather(X, "i"),
    "psum_scatter": lambda: lax.psum_scatter(X, "i"),
    "all_to_all": lambda: lax.all_to_all(X, "i", 0, 0),
    "ppermute": lambda: lax.ppermute(X, "i", []),
    "pshuffle": lambda: lax.pshuffle(X, "i", [0]),
    "pbroadcast": lambda: lax.pbroadcast(X, "i", 0),
    "axis_index": lambda: lax.axis_index("i"),
    "axis_size": lambda: lax.axis_size(("i", "j")),
}


@pytest.mark.parametrize("what", UNBOUND)
def test_unbound_names(what: str) -> None:
    with pytest.raises(NameError, match=f"unbound axis name: i.*`{what}`.*axis_name='i'"):
        UNBOUND[what]()
    with pytest.raises(NameError, match="the axes named around it are 'k'"):
        vmap(lambda: UNBOUND[what](), axis_name="k", axis_size=2)()


@pytest.mark.parametrize("what", ["psum", "axis_index"])
def test_compiling_what_has_lost_its_axis(what: str) -> None:
    f = {"psum": lambda a: lax.psum(a, "i"), "axis_index": lambda a: a + lax.axis_index("i")}[what]
    program = make_jaxpr(f, axis_env=[("i", 2)])(1.0)
    with pytest.raises(NameError, match=f"unbound axis name: i.*`{what}`.*vmap"):
        jit(lambda x: eval_jaxpr(program.jaxpr, program.consts, x))(1.0)


def test_arguments_that_cannot_be() -> None:
    for f, kind, text in [
        (lambda a: lax.ppermute(a, "i", [(0, 4)]), ValueError, "every destination in perm"),
        (lambda a: lax.ppermute(a, "i", [(1, 0), (1, 2)]), ValueError, "every source in perm"),
        (lambda a: lax.ppermute(a, ("i", "j"), []), NameError, "unbound axis name: j"),
        (
            vmap(lambda a: lax.ppermute(a, ("i", "j"), []), axis_name="j"),
            NotImplementedError,
            "product of their sizes",
        ),
        (lambda a: lax.pshuffle(a, "i", [0, 1]), ValueError, "has 2 entries.*size 4"),
        (lambda a: lax.pbroadcast(a, "i", 4), ValueError, "no example of the named axis 'i'"),
        (lambda a: lax.psum_scatter(a, "i"), ValueError, "3 and 4; `tiled=True`"),
        (lambda a: lax.all_gather(a, "i", to="there"), ValueError, "'invarying' or 'reduced'"),
        (
            lambda a: lax.psum(a, "i", axis_index_groups=[[0, 1], [2, 3]]),
            NotImplementedError,
            "two",
        ),
        (lambda a: lax.psum("a", "i"), TypeError, "psum"),
    ]:
        with pytest.raises(kind, match=text):
            mapped(f)(X)


@pytest.mark.parametrize("collective", [lax.psum, lax.psum_scatter])
def test_booleans_are_counted_in_32_bits(collective: Any) -> None:
    """As in JAX, also where integers have 64."""
    with enable_x64():
        program = make_jaxpr(lambda v: collective(v, "i"), axis_env=[("i", 2)])(np.zeros(2, bool))
    assert [aval.dtype for aval in program.out_avals] == [np.int32]

"""The functions of `lax` that users call: arguments, weak types, containers, errors that teach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import errors, lax, make_jaxpr
from perspex import numpy as pnp

F = np.array([1.0, 2.0, 3.0], np.float32)


# ---- scan ---------------------------------------------------------------------------------------


def test_scan_goes_through_trees() -> None:
    def body(state: Any, row: Any) -> Any:
        return {"n": state["n"] + 1, "sum": state["sum"] + row["a"]}, (row["b"], [state["n"]])

    init = {"n": 0, "sum": np.float32(0)}
    last, (b, [n]) = lax.scan(body, init, {"a": F, "b": -F})
    assert int(last["n"]) == 3 and float(last["sum"]) == 6.0
    np.testing.assert_array_equal(b, -F)
    np.testing.assert_array_equal(n, [0, 1, 2])


def test_scan_returns_the_containers_of_the_body() -> None:
    assert isinstance(lax.scan(lambda c, x: [c + x, x], 0.0, F), list)


@pytest.mark.parametrize(
    ("init", "body", "dtype", "weak"),
    [
        (0.0, lambda c, x: (c + x, None), "float32", False),
        (0, lambda c, x: (c + x, None), "float32", False),
        (0, lambda c, x: (c + 1, None), "int32", True),
        (1, lambda c, x: (c * 1.5, None), "float32", False),
        (np.float32(0), lambda c, x: (c + x, None), "float32", False),
        (0.0, lambda c, x: (c * 2.0, None), "float32", True),
    ],
)
def test_numbers_give_way(init: Any, body: Any, dtype: str, weak: bool) -> None:
    last, _ = lax.scan(body, init, F)
    assert (last.dtype.name, last.weak_type) == (dtype, weak)


def test_a_body_is_traced_once_or_where_a_number_gives_way_twice() -> None:
    seen = []

    def body(c: Any, x: Any) -> Any:
        seen.append(c.dtype.name)
        return c + x, None

    for _ in range(3):
        lax.scan(body, np.float32(0), F)
    assert seen == ["float32"]
    # The second trace, with the carry as float32, is the one from before.
    lax.scan(body, 0, F)
    assert seen == ["float32", "int32"]
    # Where a number only becomes strongly typed, its first trace will do.
    lax.scan(body, 0.0, F)
    lax.scan(body, 0.0, F)
    assert seen == ["float32", "int32", "float32"]


def test_what_a_body_leaves_alone_does_not_go_through_the_loop() -> None:
    def f(x: Any, xs: Any) -> Any:
        return lax.scan(lambda c, a: ((c[0] + a, c[1]), (c[0] * c[1], a)), (x, x), xs)

    jaxpr = make_jaxpr(f)(np.float32(1), F).jaxpr
    (eqn,) = jaxpr.eqns
    assert eqn.params["num_carry"] == 1 and eqn.params["num_consts"] == 1
    assert jaxpr.outvars[1] is jaxpr.invars[0] and jaxpr.outvars[3] is jaxpr.invars[1]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: lax.scan(3, 0, F), TypeError, "f argument should be callable"),
        (lambda: lax.scan(lambda c, x: c, 0.0, F), TypeError, "must be a pair, got .*float32"),
        (lambda: lax.scan(lambda c, x: {"a": c, "b": x}, 0.0, F), TypeError, "must be a pair"),
        (lambda: lax.scan(lambda c, x: (c, x, x), 0.0, F), TypeError, "must be a pair"),
        (
            lambda: lax.scan(lambda c, x: ({"k": c["k"] > 0}, x), {"k": np.float32(0)}, F),
            TypeError,
            r"(?s)the carry c\['k'\] has type float32\[\] before.*type bool\[\] after.*"
            r"dtypes do not match.*astype\('float32'\)",
        ),
        (
            lambda: lax.scan(lambda c, x: (F, x), 0.0, F),
            TypeError,
            r"(?s)the carry c has type float32\[\].*float32\[3\].*shapes do not.*shape \(\)",
        ),
        (
            lambda: lax.scan(lambda state, x: (None, x), 0.0, F),
            TypeError,
            "(?s)the carry state .*same pytree structure|same pytree structure.*the carry state",
        ),
        (
            lambda: lax.scan(lambda c, x: ({"b": 0.0}, x), {"a": 0.0}, F),
            TypeError,
            r"children \['a'\], but what the body returns for it has \['b'\]",
        ),
        (lambda: lax.scan(lambda c, x: (c, "s"), 0.0, F), TypeError, r"'str'.*component \[1\]"),
        (lambda: lax.scan(lambda c, x: (c, x), {"i": "s"}, F), TypeError, r"init\['i'\].*'str'"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, {"x": "s"}), TypeError, r"xs\['x'\].*'str'"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, None), ValueError, "no values to scan over"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, 3.0), ValueError, "no leading axis.*3.0"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, (F, F[:2])), ValueError, "sizes: 3, 2"),
        (
            lambda: lax.scan(lambda c, x: (c, x), 0.0, F, length=2),
            ValueError,
            r"`length` argument of 2 .* \[3\]",
        ),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, None, -1), ValueError, "must not be negative"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, None, 1.5), TypeError, "must be an integer"),
        (
            lambda: lax.scan(lambda c, x: (c, x), 0.0, F, unroll=-1),
            ValueError,
            "`unroll` must be a bool or a non-negative int",
        ),
    ],
)
def test_scan_errors(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_a_traced_length_is_an_error_that_says_whose() -> None:
    f = perspex.jit(lambda n: lax.scan(lambda c, x: (c, 1), 1.0, None, length=n))
    with pytest.raises(errors.ConcretizationTypeError, match="(?s)`n`.*`length` of lax.scan"):
        f(3)


def test_errors_name_the_line_of_the_body() -> None:
    with pytest.raises(errors.TracerBoolConversionError, match=r"`c\['a'\]`|made by `gt`"):
        lax.scan(lambda c, x: (c if c["a"] > 0 else c, x), {"a": 1.0}, F)


# ---- while_loop and fori_loop -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lax.while_loop(lambda c: c, lambda c: c + 1, 0), r"got output type.*int32\[\]"),
        (lambda: lax.while_loop(lambda c: F > 1, lambda c: c, 0), r"bool\[3\]"),
        (lambda: lax.while_loop(lambda c: None, lambda c: c, 0), r"got pytree PyTreeDef\(None\)"),
        (lambda: lax.while_loop(lambda c: (c > 0,), lambda c: c, 0), "got pytree"),
        (lambda: lax.while_loop(lambda c: c < 3, lambda c: (c, c), 0), "same pytree structure"),
        (
            lambda: lax.while_loop(lambda n: n < 3, lambda n: F, 0.0),
            r"the carry n has type float32",
        ),
        (lambda: lax.while_loop(lambda c: c < 3, 3, 0), "should be callable"),
        (lambda: lax.fori_loop(0, 3, None, 0), "should be callable"),
        (lambda: lax.fori_loop(0.0, 3, lambda i, c: c, 0), "equal types, got float32 and int32"),
        (lambda: lax.fori_loop(None, 3, lambda i, c: c, 0), "must be integers, got None"),
        (lambda: lax.fori_loop(np.arange(2), 3, lambda i, c: c, 0), "must be integer scalars"),
        (
            lambda: lax.fori_loop(0, 3, lambda i, best: best > 0, np.int32(1)),
            r"the carry best has type int32\[\] before",
        ),
    ],
)
def test_loop_errors(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


def test_fori_loop_with_traced_bounds() -> None:
    f = perspex.jit(lambda n, m: lax.fori_loop(n, m, lambda i, c: c + i, 0.0))
    assert [float(f(0, 5)), float(f(5, 0)), float(f(-2, 2))] == [10.0, 0.0, -2.0]
    names = [eqn.primitive.name for eqn in make_jaxpr(f.__wrapped__)(0, 5).jaxpr.eqns]
    assert "while" in names
    with pytest.raises(ValueError, match="loop bounds are statically known"):
        perspex.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 0, unroll=2))(3)


def test_fori_loop_with_known_bounds_is_a_scan() -> None:
    for bounds in ((0, 3), (np.int32(0), np.int32(3)), (0, perspex.device_put(np.int32(3)))):
        jaxpr = make_jaxpr(lambda x, b=bounds: lax.fori_loop(*b, lambda i, c: c * 2, x))(1.0)
        assert [eqn.primitive.name for eqn in jaxpr.jaxpr.eqns] == ["scan"]


def test_the_type_of_the_counter() -> None:
    seen = []

    def body(i: Any, c: Any) -> Any:
        seen.append((i.dtype.name, i.weak_type))
        return c

    # Known bounds are Python integers; traced ones give the counter their dtype.
    for lower, upper in ((0, 3), (np.int8(0), 3)):
        lax.fori_loop(lower, upper, lambda i, c: body(i, c), 0)
    assert seen == [("int32", True)] * 2
    with pytest.raises(TypeError, match="equal types, got int32 and uint8"):
        lax.fori_loop(0, np.uint8(3), body, 0)
    seen.clear()
    perspex.jit(lambda n: lax.fori_loop(0, n, lambda i, c: body(i, c), 0))(np.int8(3))
    perspex.jit(lambda n: lax.fori_loop(n, 7.0, lambda i, c: body(i, c), 0))(np.float32(3))
    assert seen == [("int8", False), ("float32", False)]


# ---- map and associative_scan -------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 0, 1, 2, 3, 7, 9])
def test_map(batch_size: int | None) -> None:
    xs = np.arange(14, dtype=np.float32).reshape(7, 2)
    f = lambda x: (x * x, {"k": x["y"] if isinstance(x, dict) else x + 1})  # noqa: E731
    for run in (lax.map, lambda f, x, **k: perspex.jit(lambda x: lax.map(f, x, **k))(x)):
        square, rest = run(f, xs, batch_size=batch_size)
        np.testing.assert_array_equal(square, xs * xs)
        np.testing.assert_array_equal(rest["k"], xs + 1)


def test_map_errors() -> None:
    with pytest.raises(ValueError, match="no values to scan over"):
        lax.map(lambda x: x, [])
    with pytest.raises(ValueError, match="no leading axis"):
        lax.map(lambda x: x, np.float32(1))
    with pytest.raises(ValueError, match="batch_size must not be negative"):
        lax.map(lambda x: x, F, batch_size=-1)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(length: int, reverse: bool) -> None:
    xs = (np.arange(1, length + 1) % 5 + 0.5).astype(np.float32)
    got = lax.associative_scan(pnp.multiply, xs, reverse=reverse)
    want = np.cumprod(xs[::-1])[::-1] if reverse else np.cumprod(xs)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_associative_scan_of_pairs_along_another_axis() -> None:
    # First-order linear recurrences: (a, b) then (c, d) is (a c, c b + d).
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 6)).astype(np.float32)
    combine = lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1])  # noqa: E731, E741
    _, got = perspex.jit(lambda a, b: lax.associative_scan(combine, (a, b), axis=-1))(a, b)
    state = np.zeros(3, np.float32)
    for i in range(6):
        state = a[:, i] * state + b[:, i]
        np.testing.assert_allclose(np.asarray(got)[:, i], state, rtol=1e-4, atol=1e-5)


def test_associative_scan_of_booleans() -> None:
    x = np.array([False, True, False, False, True])
    got = lax.associative_scan(lambda a, b: a | b, x)
    np.testing.assert_array_equal(got, np.logical_or.accumulate(x))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: lax.associative_scan(3, F), TypeError, "should be callable"),
        (lambda: lax.associative_scan(pnp.add, []), ValueError, "holds no arrays"),
        (lambda: lax.associative_scan(pnp.add, F, axis=1), ValueError, "axis 1 is out of bounds"),
        (lambda: lax.associative_scan(pnp.add, (F, F[:2])), ValueError, "same first dimension"),
    ],
)
def test_associative_scan_errors(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


# ---- cond and switch ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: lax.cond(None, lambda: 1, lambda: 2), TypeError, "predicate is None"),
        (lambda: lax.cond("a", lambda: 1, lambda: 2), TypeError, "must be a scalar, got a of"),
        (lambda: lax.cond(F, lambda: 1, lambda: 2), TypeError, r"of shape \(3,\); use jnp.where"),
        (lambda: lax.cond(1j, lambda: 1, lambda: 2), TypeError, "boolean or number, got complex"),
        (lambda: lax.cond(True, lambda: 1, 2), TypeError, "should be callable"),
        (lambda: lax.cond(True, lambda x: x, lambda x: x, {"a": "s"}), TypeError, r"0\['a'\]"),
        (
            lambda: lax.cond(True, lambda: {"a": 1.0}, lambda: {"a": F}),
            TypeError,
            r"(?s)true_fun is `<lambda>` at .*result\['a'\] of true_fun has type float32\[\], that "
            r"of false_fun has type float32\[3\], so the shapes do not match",
        ),
        (lambda: lax.cond(True, lambda: 1, lambda: 1.5), TypeError, "dtypes do not match"),
        (lambda: lax.cond(True, lambda: (1,), lambda: 1), TypeError, "same pytree structure"),
        (lambda: lax.switch(0, [], 1.0), ValueError, "Empty branch sequence"),
        (lambda: lax.switch(0, [1], 1.0), TypeError, "sequence of callables"),
        (lambda: lax.switch(1.0, [abs, abs], 1.0), TypeError, "must be an integer, got 1.0"),
        (lambda: lax.switch(True, [abs, abs], 1.0), TypeError, "must be an integer, got True"),
        (lambda: lax.switch(F, [abs, abs], 1.0), TypeError, r"must be scalar.*shape \(3,\)"),
        (lambda: lax.switch("a", [abs, abs], 1.0), TypeError, "must be scalar, got a of type"),
        (
            lambda: lax.switch(0, [lambda: F, lambda: F, lambda: 1.0]),
            TypeError,
            "(?s)branch 2 is .*of branch 0 has type",
        ),
        (lambda: lax.cond(1, abs, abs, 2.0, operand=3.0), TypeError, "must be the only operand"),
    ],
)
def test_choice_errors(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_predicates() -> None:
    for pred, want in ((True, 1), (0, 2), (2.5, 1), (np.bool_(False), 2), (np.array(3), 1)):
        assert int(lax.cond(pred, lambda: 1, lambda: 2)) == want
        assert int(perspex.jit(lambda p: lax.cond(p, lambda: 1, lambda: 2))(pred)) == want


def test_operand_by_name() -> None:
    assert float(lax.cond(True, lambda x: x * 2, lambda x: x, operand=3.0)) == 6.0
    assert lax.cond(True, lambda x: 1, lambda x: 2, operand=None) == 1
    assert float(lax.switch(1, [lambda x: x, lambda x: -x], operand=3.0)) == -3.0


def test_results_without_arrays() -> None:
    assert lax.cond(True, lambda: None, lambda: None) is None
    assert lax.scan(lambda c, x: ((), None), (), F) == ((), None)


# ---- disable_jit --------------------------------------------------------------------------------


def test_without_jit_they_are_loops_and_branches_of_python() -> None:
    seen = []

    def note(x: Any) -> Any:
        seen.append(float(x))
        return x

    with perspex.disable_jit():
        last, ys = lax.scan(lambda c, x: (note(c + x), {"k": c}), 0.0, F, reverse=True)
        assert float(last) == 6.0
        np.testing.assert_array_equal(ys["k"], [5.0, 3.0, 0.0])
        assert float(lax.while_loop(lambda c: c < 3, lambda c: note(c + 1.0), 0.0)) == 3.0
        assert float(lax.fori_loop(0, 3, lambda i, c: note(c + i), 0.0)) == 3.0
        assert float(lax.cond(True, lambda: note(1.0), lambda: note(2.0))) == 1.0
        assert float(lax.switch(9, [lambda: note(1.0), lambda: note(7.0)])) == 7.0
        with pytest.raises(ValueError, match="zero-length scan"):
            lax.scan(lambda c, x: (c, x), 0.0, F[:0])
    assert seen == [3.0, 5.0, 6.0, 1.0, 2.0, 3.0, 0.0, 1.0, 3.0, 1.0, 7.0]


def test_cond_with_an_operand_for_each_function() -> None:
    x = pnp.arange(3.0)
    for pred, expected in ((True, [0.0, 1.0, 2.0]), (False, [0.0, -2.0, -4.0])):
        found = lax.cond(pred, x, lambda x: x, (2 * x,), lambda y: -y[0])
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(TypeError, match="should be callable"):
        lax.cond(True, x, lambda x: x, x)


def test_scan_takes_the_option_of_jax_for_its_transpose() -> None:
    def last(w: Any, split: bool) -> Any:
        return lax.scan(
            lambda c, x: (c * w + x, None), 1.0, pnp.arange(3.0), _split_transpose=split
        )[0]

    for split in (False, True):  # w**3 + w + 2
        np.testing.assert_allclose(perspex.grad(last)(2.0, split), 13.0)

"""Transforms outside of `jit`: errors tell the way of a value that is computed at once.

The lines on the way are read off the programs by eye.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from support.wrong_programs import HEAD, NUMBER, failure, load, patched, way

from perspex import errors, vmap
from perspex import numpy as pnp
from perspex.tracing import past

# `float` of a value that comes from both arguments; `unused` is not on the way.
CHAIN = """
from perspex import hessian, jacfwd, jacrev, jvp, linearize, vjp

def f(x, w):
    a = jnp.sin(x)
    unused = jnp.cos(a)
    b = a * w["k"]
    c = jnp.exp(b)
    return float(c) + unused

def examples(x, w):
    return jnp.sum(vmap(f, (0, None))(x, w))

def derivative(x, w):
    return grad(f)(x, w)

W = {"k": 2.0}
"""
LINES = ["a = jnp.sin(x)", 'b = a * w["k"]', "c = jnp.exp(b)", "return float(c) + unused"]
OPERATIONS = ["sin", "mul", "exp", ""]
X, W, BOTH = ["`x`"], ["`w['k']`"], ["`w['k']`", "`x`"]
# What is asked, the arguments on the way, and what is done to the function.
CALLS = [
    ("vmap(f, (0, None))(jnp.ones(3), W)", X, "mapped"),
    ("vmap(f)(jnp.ones(3), {'k': jnp.ones(3)})", BOTH, "mapped"),
    ("vmap(f, in_axes=(None, 0))(1.0, {'k': jnp.ones(3)})", W, "mapped"),
    ("vmap(f)(jnp.ones(3), w={'k': jnp.ones(3)})", BOTH, "mapped"),
    ("grad(f)(1.0, W)", X, "differentiated"),
    ("grad(f, 1)(1.0, W)", W, "differentiated"),
    ("grad(f, (0, 1))(1.0, W)", BOTH, "differentiated"),
    ("grad(f)(1.0, w=W)", X, "differentiated"),
    ("jvp(f, (1.0, W), (1.0, W))", BOTH, "differentiated"),
    ("vjp(f, 1.0, W)", BOTH, "differentiated"),
    ("linearize(f, 1.0, W)", BOTH, "differentiated"),
    ("jacfwd(f)(1.0, W)", X, "differentiated"),
    ("jacrev(f)(1.0, W)", X, "differentiated"),
    ("hessian(f)(1.0, W)", X, "differentiated"),
    ("grad(grad(f))(1.0, W)", X, "differentiated"),
    ("vmap(grad(f), (0, None))(jnp.ones(3), W)", X, "differentiated, mapped"),
    ("vmap(derivative, (0, None))(jnp.ones(3), W)", X, "differentiated, mapped"),
    ("grad(examples)(jnp.ones(3), W)", X, "mapped"),
    (
        "jvp(vmap(f), (jnp.ones(3), {'k': jnp.ones(3)}), (jnp.ones(3), {'k': jnp.ones(3)}))",
        BOTH,
        "mapped",
    ),
]


@pytest.mark.parametrize("call, arguments, doing", CALLS)
def test_the_way_of_a_value_that_is_computed_at_once(
    call: str, arguments: list[str], doing: str
) -> None:
    _, text, card = failure(CHAIN, call, NUMBER)
    # Where `x` is a number, so is its sine.
    first = arguments is W
    outermost = next((name for name in ("derivative", "examples") if name in call), "f")
    given = [step for step in card.steps if step.where == f"argument of `{outermost}`"]
    steps = list(card.steps[len(given) :])
    assert sorted(step.text for step in given) == arguments
    assert [step.text for step in steps] == LINES[first:]
    # Those of the user, and not those of a derivative.
    assert [step.operation for step in steps] == OPERATIONS[first:]
    assert {step.kind for step in steps[:-1]} == {"float32[]"}
    assert f" (f) while `f` was {doing.partition(',')[0]}." in text
    assert ("It stands for each of the 3 examples of a vmap." in text) == ("mapped" in doing)
    assert "return c + unused" in text


def test_what_is_written_instead_is_right() -> None:
    source, _, card = failure(CHAIN, "vmap(f, (0, None))(jnp.ones(3), W)", NUMBER)
    assert card.remedy.patch is not None
    _, namespace = load(patched(source, card.remedy.patch))
    x = np.float32([0.1, 0.2, 0.3])
    want = np.exp(2 * np.sin(x)) + np.cos(np.sin(x))
    np.testing.assert_allclose(namespace["vmap"](namespace["f"], (0, None))(x, {"k": 2.0}), want)


def test_the_way_goes_on_around_what_is_jitted() -> None:
    program = """
    def outer(x):
        a = x + 1
        @jit
        def inner(y):
            b = y * a
            return b if b > 0 else y
        return inner(2.0)
    """
    _, _, card = failure(program, "vmap(outer)(jnp.ones(3))", errors.TracerBoolConversionError)
    want = ["`y`", "`x`", "a = x + 1", "b = y * a", "return b if b > 0 else y"]
    assert way(card) == want
    assert [step.where.partition(":")[0] for step in card.steps[:2]] == [
        "argument of `inner`",
        "argument of `outer`",
    ]


def test_the_way_goes_on_around_another_transform() -> None:
    program = """
    def outer(x):
        a = x + 1
        def inner(y):
            b = y * a
            return float(b)
        return grad(inner)(2.0)
    """
    _, _, card = failure(program, "vmap(outer)(jnp.ones(3))", NUMBER)
    assert sorted(way(card)) == sorted(["`y`", "`x`", "a = x + 1", "b = y * a", "return float(b)"])


def test_the_way_goes_through_another_transform() -> None:
    program = """
    def inner(y):
        b = jnp.sin(y)
        return b * b

    def outer(x):
        a = x + 1
        c = perspex.value_and_grad(inner)(a)
        d = c[0] + c[1]
        return float(d)
    """
    _, _, card = failure(program, "vmap(outer)(jnp.ones(3))", NUMBER)
    assert [step.where for step in card.steps][0] == "argument of `outer`"
    found = way(card)
    lines = ["a = x + 1", "b = jnp.sin(y)", "return b * b", "d = c[0] + c[1]", "return float(d)"]
    assert [line for line in found if line in lines] == lines
    assert {*found} - {*lines} <= {"`x`", "c = perspex.value_and_grad(inner)(a)"}


@pytest.mark.parametrize("rounds", [10, 5_000])
def test_a_loop_has_its_line_once_however_long(rounds: int) -> None:
    program = f"""
    def f(x, y):
        a = x + y
        for _ in range({rounds}):
            b = a * 0.5
            a = b + 1
        return float(a)
    """
    _, _, card = failure(program, "vmap(f)(jnp.ones(3), jnp.ones(3))", NUMBER)
    steps = sorted(way(card)[:2]), way(card)[2:]
    want = ["a = x + y", "b = a * 0.5", "a = b + 1", "return float(a)"]
    assert steps == (["`x`", "`y`"], want)


def test_many_values_side_by_side_have_a_way_too() -> None:
    program = f"""
    def f(x):
        side = [x * i for i in range(20)]
        for _ in range({2 * past.KEPT + 10}):
            side = [side[i] + side[i - 1] for i in range(20)]
        return float(side[3])
    """
    _, _, card = failure(program, "vmap(f)(jnp.ones(3))", NUMBER)
    steps = [
        "side = [x * i for i in range(20)]",
        "side = [side[i] + side[i - 1] for i in range(20)]",
    ]
    assert way(card) == ["`x`", *steps, "return float(side[3])"]


def test_a_past_with_more_than_can_be_looked_at_has_one_way() -> None:
    given = past.Argument(None, 0, None)
    rows: list[past.Past] = [given] * 200
    for _ in range(100):
        rows = [past.Result("add", None, given.aval, [a, rows[0]]) for a in rows]  # type: ignore[arg-type]
    seen = past.readers([rows[1]], lambda past: past.operands, 150)
    assert 150 < len(seen) <= 152
    results, arguments = past.look_back([rows[1]], 50)
    assert arguments == [given] and len(results) == 1


def pasts() -> int:
    gc.collect()
    return sum([isinstance(x, past.Past) for x in gc.get_objects()])


def test_what_is_remembered_does_not_grow_with_a_loop() -> None:
    counted: list[int] = []

    def f(x: Any) -> Any:
        for i in range(6 * past.KEPT):
            x = x * 0.5
            if i % (2 * past.KEPT) == 0:
                counted.append(pasts())
        return x

    before = pasts()
    vmap(f)(pnp.ones(2))
    assert max(counted) - before <= past.KEPT + 10
    assert pasts() == before


def test_no_array_is_kept_for_it() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        y = x * 2
        seen.append(weakref.ref(y.value))
        z = y + 1
        del x, y
        seen.append(seen[0]())
        return z

    vmap(f)(pnp.arange(3.0))
    assert seen == [seen[0], None]


def test_operands_of_an_operation_that_failed() -> None:
    name, namespace = load(
        HEAD
        + "def f(x, w):\n    y = x[:2]\n    return jnp.dot(y, w)\n"
        + "def g(x):\n    y = x[:2]\n    return jnp.dot(y, jnp.ones(4))\n"
    )
    file = name.rpartition("/")[2]
    for call, function, kind, where in (
        ("vmap(f, (0, None))(jnp.ones((5, 3)), jnp.ones(4))", "f", "slice float32[2]", 9),
        ("grad(g)(jnp.ones(3))", "g", "slice float32[2]", 12),
    ):
        with pytest.raises(TypeError) as info:
            eval(call, namespace)
        (note,) = info.value.__notes__
        assert [" ".join(row.split()) for row in note.splitlines()] == [
            "From the arguments to here:",
            f"argument of `{function}` `x` float32[3]",
            f"{file}:{where - 1} ({function}) y = x[:2] {kind}",
            f"{file}:{where} ({function}) "
            + ("return jnp.dot(y, w)" if function == "f" else "return jnp.dot(y, jnp.ones(4))")
            + " needed here",
        ]


@pytest.mark.parametrize("wrap", ["vmap({}, axis_name='i')", "vmap(jit({}), axis_name='i')"])
def test_an_index_of_the_axis_is_no_constant(wrap: str) -> None:
    program = "def f(x):\n    return list(range(lax.axis_index('i')))\n"
    call = wrap.format("f") + "(jnp.ones(3))"
    _, text, _ = failure(program, call, errors.TracerIntegerConversionError)
    assert "depends on no argument" not in text


def test_rules_of_the_users_own_are_on_the_way() -> None:
    program = """
    from perspex import custom_jvp

    @custom_jvp
    def twice(x):
        return 2 * x

    @twice.defjvp
    def rule(primals, tangents):
        return twice(*primals), 2 * tangents[0]

    def f(x):
        y = twice(x)
        return float(y)
    """
    for call in ("vmap(f)(jnp.ones(3))", "grad(f)(1.0)"):
        _, _, card = failure(program, call, NUMBER)
        assert way(card) == ["`x`", "y = twice(x)", "return float(y)"]

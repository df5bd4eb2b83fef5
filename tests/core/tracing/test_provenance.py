"""Errors about traced values: where the value comes from, and a remedy that is right.

The programs are in `wrong_programs` and `wrong_values`. The lines on the way of the value are read
off the program by eye; the remedy is put into the program, which then runs, and is compared with
NumPy.
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from support.unsure_programs import UNSURE
from support.wrong_programs import (
    ARRAY,
    BOOL,
    CHOICES,
    HEAD,
    INDEX,
    MASK,
    NUMBER,
    Case,
    failure,
    load,
    patched,
    way,
    write,
)
from support.wrong_values import VALUES

from perspex import effects_barrier, errors


@pytest.mark.parametrize("case", [*CHOICES, *VALUES], ids=lambda case: case.id)
def test_the_way_and_the_remedy(case: Case) -> None:
    source, text, card = failure(case.program, case.call, case.error)
    assert way(card) == case.way
    patch = card.remedy.patch
    assert patch is not None, text
    assert list(patch.after) == case.new
    assert len(text.splitlines()) <= 25
    # Everything that the card says is in the message.
    for part in (card.headline, *case.way, *[line.strip() for line in case.new]):
        assert part in text
    _, namespace = load(patched(source, patch))
    found = eval(case.call, namespace)
    for got, want in zip(_flat(found), _flat(case.want), strict=True):
        assert np.allclose(got, want, rtol=1e-4) if not isinstance(want, str) else got == want


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _flat(item)]
    return list(np.ravel(value)) if not isinstance(value, str) else [value]


def test_an_assertion_becomes_a_check_on_the_device() -> None:
    program = """
    @jit
    def root(x):
        assert x >= 0, "negative"
        return jnp.sqrt(x)
    """
    source, _, card = failure(program, "root(4.0)", BOOL)
    patch = card.remedy.patch
    assert patch is not None
    _, namespace = load(patched(source, patch))
    assert float(namespace["root"](4.0)) == 2.0
    with pytest.raises(errors.JaxRuntimeError, match="AssertionError: negative"):
        namespace["root"](-4.0).block_until_ready()
        effects_barrier()


def test_a_printed_number_is_printed_by_the_device(capfd: pytest.CaptureFixture[str]) -> None:
    program = """
    @jit
    def f(x):
        y = x * 2
        print("y is", float(y))
        return y
    """
    source, _, card = failure(program, "f(4.0)", NUMBER)
    patch = card.remedy.patch
    assert patch is not None
    assert patch.after == ("    debug.print('y is {}', y)",)
    _, namespace = load(patched(source, patch))
    assert float(namespace["f"](4.0)) == 8.0
    effects_barrier()
    assert capfd.readouterr().out == "y is 8.0\n"


def test_a_store_into_an_array_of_numpy() -> None:
    program = """
    @jit
    def f(x):
        a = np.zeros(3, np.float32)
        a[1] = x * 2
        return a
    """
    source = HEAD + textwrap.dedent(program)
    _, namespace = load(source)
    with pytest.raises(ValueError, match="setting an array element") as info:
        namespace["f"](3.0)
    cause: Any = info.value.__cause__
    patch = cause.card.remedy.patch
    assert patch.after == ("    a = jnp.asarray(a).at[1].set(x * 2)",)
    _, namespace = load(patched(source, patch))
    np.testing.assert_array_equal(namespace["f"](3.0), [0, 6, 0])


def test_two_remedies_in_a_row() -> None:
    """Both places of a program that is wrong twice are mended, one after the other."""
    program = """
    @jit
    def f(x, n):
        y = jnp.zeros(n)
        if x > 0:
            return y + x
        return y - x
    """
    source, _, card = failure(program, "f(2.0, 3)", INDEX)
    assert card.remedy.patch is not None
    source = patched(source, card.remedy.patch)
    _, namespace = load(source)
    with pytest.raises(BOOL) as info:
        namespace["f"](2.0, 3)
    error: Any = info.value
    _, namespace = load(patched(source, error.card.remedy.patch))
    np.testing.assert_array_equal(namespace["f"](2.0, 3), [2, 2, 2])
    np.testing.assert_array_equal(namespace["f"](-2.0, 1), [2])


@pytest.mark.parametrize("case", UNSURE)
def test_no_lines_where_they_might_be_wrong(case: str) -> None:
    program, call = UNSURE[case]
    _, text, card = failure(program, call, BOOL)
    assert card.remedy.patch is None, card.remedy.patch
    assert "`jnp.where(c, a, b)` chooses elements" in text


@pytest.mark.parametrize(
    "program, call, kind, words",
    [
        (
            "f = jit(lambda x, m: x[m].sum())",
            "f(np.ones((2, 3)), np.array([True, False]))",
            MASK,
            "`jnp.nonzero(mask, size=n)`",
        ),
        (
            "@jit\ndef f(x):\n    return x[x > 0] + 1",
            "f(np.ones(3))",
            MASK,
            "`jnp.where(mask, x, 0)` keeps the shape",
        ),
        (
            "f = jit(lambda x: np.asarray_chkfinite(x))",
            "f(np.ones(3))",
            ARRAY,
            "`pure_callback`",
        ),
        ("f = jit(lambda x: x.tolist())", "f(np.ones(3))", NUMBER, "read its value outside"),
        ("f = jit(lambda x: float(x))", "f(np.ones(1))", NUMBER, "`x.astype(float)` converts"),
        (
            "@jit\ndef f(x):\n    return x, len(f'{float(x):.2f}')",
            "f(np.float32(1))",
            NUMBER,
            "`x.astype(float)` converts",
        ),
        (
            "log = {}\n@jit\ndef f(x):\n    log['x'] = float(x)\n    return x",
            "f(np.float32(1))",
            NUMBER,
            "store its value outside",
        ),
        (
            "log = []\n@jit\ndef f(x):\n    log.append(x.item())\n    return x",
            "f(np.float32(1))",
            NUMBER,
            "store its value outside",
        ),
        (
            "@jit\ndef f(x):\n    return jnp.zeros(int(x.sum()))",
            "f(np.ones(2))",
            NUMBER,
            "`x.astype(int)` converts",
        ),
        (
            "f = jit(lambda x: np.save(__import__('io').BytesIO(), x))",
            "f(np.ones(3))",
            ARRAY,
            "`pure_callback`",
        ),
        ("f = jit(lambda i: {'a': [1]}['a'][i])", "f(0)", INDEX, "mark `i` static"),
        ("f = jit(lambda i: 'abc'[i])", "f(np.int32(0))", INDEX, "`lax.fori_loop(0, n, body, x)`"),
    ],
)
def test_the_general_remedy(program: str, call: str, kind: type[Exception], words: str) -> None:
    _, text, card = failure(program, call, kind)
    if "static" not in words:
        assert card.remedy.patch is None, card.remedy.patch
    assert words in text, text


def test_an_argument_is_not_static_where_it_cannot_be() -> None:
    for program, call in (
        # An array has no hash, and stays traced in the function around.
        ("@jit\ndef f(n):\n    return jnp.zeros(n)", "f(np.int32(3))"),
        ("@jit\ndef f(p):\n    return jnp.zeros(p['n'])", "f({'n': 3})"),
        ("@jit\ndef g(n):\n    return jnp.zeros(n)\nf = jit(lambda n: g(n))", "f(3)"),
        ("f = vmap(lambda n: jnp.zeros(n))", "f(np.arange(3))"),
        ("f = jit(vmap(lambda n: jnp.zeros(n)))", "f(np.arange(3))"),
        ("f = jit(lambda x: lax.map(lambda n: jnp.zeros(n), x))", "f(np.arange(3))"),
    ):
        _, text, card = failure(program, call, INDEX)
        assert card.remedy.patch is None and "Or mark" not in card.remedy.otherwise, text
        assert "Remedy: make the sequence an array" in text


def test_both_ways_are_told_where_python_may_depend_on_an_integer() -> None:
    program = """
    @jit
    def f(x, n):
        if n > 2:
            x = x * n
        return x
    """
    source, text, card = failure(program, "f(2.0, 3)", BOOL)
    assert text.splitlines()[-1] == "Or mark `n` static: `@jit(static_argnames='n')`."
    assert card.remedy.patch is not None
    assert card.remedy.patch.after == ("    x = jnp.where(n > 2, x * n, x)",)
    for program in (
        patched(source, card.remedy.patch),
        source.replace("@jit", "@jit(static_argnames='n')"),
    ):
        _, namespace = load(program)
        assert [float(namespace["f"](2.0, n)) for n in (2, 3)] == [2.0, 6.0]


def test_the_remedy_of_an_operation_comes_first() -> None:
    program = """
    @jit
    def f(x, n):
        return jnp.repeat(x, n)
    """
    _, text, card = failure(program, "f(np.ones(2), 3)", NUMBER)
    assert card.remedy.patch is None and "total_repeat_length" in card.remedy.text
    assert text.splitlines()[-1] == "Or mark `n` static: `@jit(static_argnames='n')`."


def test_a_value_that_depends_on_no_argument() -> None:
    program = """
    @jit
    def f(x):
        size = jnp.sum(jnp.ones(3))
        count = size + 1
        return x * float(count)
    """
    _, text, card = failure(program, "f(2.0)", NUMBER)
    assert way(card)[-2:] == ["count = size + 1", "return x * float(count)"]
    assert card.remedy.patch is not None and "argument of" not in text
    _, text, card = failure(
        "@jit\ndef f(x):\n    return x * len(jnp.ones(3).tolist())", "f(2.0)", NUMBER
    )
    assert "it depends on no argument: compute it outside of `f`" in card.remedy.otherwise


def test_a_long_way_is_cut_in_the_middle() -> None:
    lines = "\n".join([f"    y = y * {k}" for k in range(2, 42)])
    program = f"@jit\ndef f(x):\n    y = x + 1\n{lines}\n    return float(y) + 1"
    _, text, card = failure(program, "f(2.0)", NUMBER)
    # 42 lines lead to the value or need it; 12 are shown.
    assert len(card.steps) == 1 + 12 and card.left_out == 42 - 12
    assert way(card)[:3] == ["`x`", "y = x + 1", "y = y * 2"]
    assert way(card)[-2:] == ["y = y * 41", "return float(y) + 1"]
    assert "  … 30 more lines" in text and len(text.splitlines()) <= 25


def test_the_shortest_way_is_told() -> None:
    program = """
    @jit
    def f(x):
        y = x
        for _ in range(30):
            y = y * 2
        z = x + y
        return float(z) + 1
    """
    _, _, card = failure(program, "f(2.0)", NUMBER)
    assert way(card) == ["`x`", "z = x + y", "return float(z) + 1"]


def test_of_a_long_line_what_failed_is_shown() -> None:
    program = f"@jit\ndef f(x):\n    return [{'0, ' * 40}x * 7 + float(x), {'0, ' * 40}]"
    _, _, card = failure(program, "f(2.0)", NUMBER)
    text = way(card)[-1]
    assert "float(x)" in text and text.startswith("…") and text.endswith("…") and len(text) == 60


def test_many_arguments() -> None:
    names = ", ".join(f"a{i}" for i in range(40))
    program = f"@jit\ndef f({names}):\n    return float(sum([{names}])) + 1"
    _, text, card = failure(program, f"f({', '.join(['1.0'] * 40)})", NUMBER)
    assert way(card)[:4] == ["`a0`", "`a1`", "`a2`", "and 37 more arguments"]
    assert len(text.splitlines()) <= 25


def test_helpers_in_other_files() -> None:
    helper = "def scaled(x):\n    return x * 3\n"
    name, namespace = load(helper)
    program = "@jit\ndef f(x):\n    y = scaled(x)\n    return float(y) + 1\n"
    source = HEAD + program
    own = write(source)
    around = {**namespace, "__name__": "program"}
    exec(compile(source, own, "exec"), around)
    with pytest.raises(NUMBER) as info:
        around["f"](1.0)
    error: Any = info.value
    files = [step.where.partition(":")[0] for step in error.card.steps[1:]]
    assert files == [name.rpartition("/")[2], own.rpartition("/")[2]]
    assert way(error.card) == ["`x`", "return x * 3", "return float(y) + 1"]


STRANGE = """
from perspex import ShapeDtypeStruct

class Proxy:
    def __getattr__(self, name):
        raise RuntimeError("none of the user's code is run")

class Other:
    aval = "x"

proxy, other = Proxy(), Other()

@jit
def f(x):
    while x < 10:
        x = x * 2
    return x
"""


def test_a_remedy_never_takes_the_place_of_the_error() -> None:
    source, _, card = failure(STRANGE, "f(3.0)", BOOL)
    assert card.remedy.patch is not None
    _, namespace = load(patched(source, card.remedy.patch))
    assert namespace["f"](3.0) == 12.0


LOOP = """
def f(x):
    y = x
    while y < 10:
        y = y * 2
    return y
"""


@pytest.mark.parametrize(
    "call, is_told",
    [
        ("jit(f)(1.0)", True),
        ("vmap(f)(jnp.ones(2))", True),
        ("grad(lambda x: vmap(f)(x).sum())(jnp.ones(2))", False),
        ("jit(grad(lambda x: vmap(f)(x).sum()))(jnp.ones(2))", False),
        ("grad(jit(f))(1.0)", False),
        ("jit(grad(f))(1.0)", False),
    ],
)
def test_no_loop_of_unknown_length_where_derivatives_are_taken(call: str, is_told: bool) -> None:
    source, text, card = failure(LOOP, call, BOOL)
    assert (
        "while_loop" in "".join(card.remedy.patch.after if card.remedy.patch else ())
    ) == is_told
    if is_told:
        _, namespace = load(patched(source, card.remedy.patch))  # type: ignore[arg-type]
        assert np.all(eval(call, namespace) == 16.0)


@pytest.mark.parametrize(
    "call", ["jit(grad(f))(1.0)", "jit(lambda x: vmap(f)(jnp.ones(2) * x))(1.0)"]
)
def test_no_argument_is_marked_static_around_a_transform(call: str) -> None:
    program = "def f(x):\n    return x if x > 0 else x * x * f(x)\n"
    _, text, card = failure(program, call, BOOL)
    assert "static" not in text.replace("static_argnames", "") and (
        card.remedy.patch is None or "static" not in "".join(card.remedy.patch.after)
    )


@pytest.mark.parametrize("line", ["list(range(x))", "float(x) if 1 else [x][0] and x.tolist()"])
@pytest.mark.parametrize("wrap, is_jitted", [("vmap", False), ("jit", True)])
def test_static_arguments_are_for_what_is_jitted(line: str, wrap: str, is_jitted: bool) -> None:
    program = f"def f(x):\n    return [{line} for _ in [0]]\n"
    kind = INDEX if "range" in line else NUMBER
    call = "vmap(f)(jnp.arange(2))" if wrap == "vmap" else "jit(f)(jnp.arange(2)[0])"
    _, text, _ = failure(program, call, kind)
    assert ("static_argnames" in text) == (is_jitted and "range" in line)


def test_a_function_that_was_given_is_not_replaced() -> None:
    program = "@jit\ndef f(x, act=np.sin):\n    return act(x) * 2\n"
    _, text, _ = failure(program, "f(1.0)", ARRAY)
    assert "jnp.sin" not in text


def test_the_number_of_a_leaked_tracer_is_a_leak() -> None:
    _, namespace = load(HEAD + "kept = []\nvmap(lambda x: kept.append(x * 2) or x)(jnp.ones(2))\n")
    for ask in (float, int, bool, np.asarray):
        with pytest.raises(
            errors.UnexpectedTracerError, match=r"has leaked\.\n.*examples of a vmap"
        ):
            ask(namespace["kept"][0])


RULES = """
from perspex import custom_jvp, custom_vjp

@custom_vjp
def twice(x):
    return 2 * x

def forward(x):
    return twice(x), x

def backward(x, ct):
    d = ct * x
    if d > 1:
        d = d * 1
    return (d,)

twice.defvjp(forward, backward)

@custom_jvp
def thrice(x):
    return 3 * x

@thrice.defjvp
def rule(primals, tangents):
    t = tangents[0] * 3
    t = t if t > 1 else t
    return thrice(*primals), t
"""


@pytest.mark.parametrize(
    "call, line",
    [
        ("jit(grad(twice))(1.0)", "d = ct * x"),
        ("vmap(grad(lambda x: twice(x) + x))(jnp.ones(2))", "d = ct * x"),
        ("jit(grad(jit(twice)))(1.0)", "d = ct * x"),
        ("grad(jit(thrice))(1.0)", "t = tangents[0] * 3"),
    ],
)
def test_what_a_rule_of_the_user_does_is_in_its_lines(call: str, line: str) -> None:
    _, text, card = failure(RULES, call, BOOL)
    assert line in way(card), text

"""What errors say: the operation, what disagrees, the user's own line, and the remedy."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from perspex import errors, grad, jit, jvp, lax, vmap
from perspex import numpy as pnp
from perspex.advice import messages

X = np.arange(3.0, dtype=np.float32)


def line_after(f: Callable[..., Any], offset: int) -> str:
    """A line of a function of this file, as messages show it."""
    return f"{__file__.rpartition('/')[2]}:{f.__code__.co_firstlineno + offset}"


def message(call: Callable[[], Any], kind: type[Exception]) -> str:
    with pytest.raises(kind) as info:
        call()
    return str(info.value)


# ---- Axes of vmap -------------------------------------------------------------------------------


def both(a: Any, b: Any) -> Any:
    return a + b["k"]


def test_sizes_that_disagree_name_the_arguments() -> None:
    text = message(lambda: vmap(both)(X, {"k": np.ones((4, 2), np.float32)}), ValueError)
    assert text.splitlines() == [
        "vmap got inconsistent sizes for array axes to be mapped:",
        "  * one axis had size 3: axis 0 of argument a of type float32[3];",
        "  * one axis had size 4: axis 0 of argument b['k'] of type float32[4,2].",
        "Remedy: `in_axes` gives the axis of each argument, and None for one that all examples "
        "share.",
    ]


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: vmap(both, in_axes=(0, {"k": 1}))(X, {"k": X}),
            ["its argument b['k'] along axis 1", "only 1 (its shape is (3,))", "in_axes[1]['k']"],
        ),
        (
            lambda: vmap(both, in_axes=(0, {"l": 0}))(X, {"k": X}),
            [
                "in_axes[1] is a dict with the children ['l']",
                "the value there has ['k']",
                "The value is the tuple of arguments (a, b) of the function",
            ],
        ),
        (
            lambda: vmap(both, in_axes=((0, 0), 0))(X, {"k": X}),
            ["in_axes[0] is a tuple, but the value there is an array"],
        ),
        (lambda: vmap(both, in_axes=(0,))(X, {"k": X}), ["len(in_axes)=1, len(args)=2"]),
        (lambda: vmap(both, in_axes=None)(X, {"k": X}), ["at least one non-None", "axis_size"]),
        (
            lambda: vmap(lambda *, k: k, axis_size=2)(k=X),
            ["axis_size", "kwargs['k']", "float32[3]"],
        ),
        (lambda: vmap(lambda *, k: k)(k=1.0), ["its kwargs['k'] along axis 0", "only 0"]),
        (
            lambda: vmap(lambda a: {"s": a}, out_axes=None)(X),
            [
                "at vmap out_axes['s'], got axis spec None",
                "`<lambda>` at test_errors.py:",
                "reduce",
            ],
        ),
        (
            lambda: vmap(lambda a: (a, a), out_axes=(0, 2))(X),
            ["at vmap out_axes[1], axis 2 is out of bounds for array of dimension 1"],
        ),
        (
            lambda: vmap(lambda a: (a, a), out_axes=(0, 0, 0))(X),
            ["vmap out_axes is a tuple of length 3", "a tuple of length 2"],
        ),
    ],
)
def test_axes_that_do_not_fit(call: Callable[[], Any], words: list[str]) -> None:
    text = message(call, ValueError)
    assert all(word in text for word in words), text


@pytest.mark.parametrize("in_axes", [1.5, "a", {"a": 0}, (0, 1.5), (True,)])
def test_axes_that_are_no_integers(in_axes: Any) -> None:
    assert "vmap in_axes must be an int, None, or" in message(
        lambda: vmap(both, in_axes), TypeError
    )


def test_no_other_error_is_shown_beside_it() -> None:
    with pytest.raises(ValueError) as info:
        vmap(both, in_axes=(0, {"l": 0}))(X, {"k": X})
    assert info.value.__cause__ is None and info.value.__suppress_context__


def test_results_that_are_no_arrays() -> None:
    for call in (
        lambda: vmap(lambda a: {"u": (a, "b")})(X),
        lambda: lax.scan(lambda c, a: (c, {"u": (a, "b")}), 0.0, X),
        lambda: lax.cond(True, lambda a: {"u": (a, "b")}, lambda a: {"u": (a, "b")}, X),
        lambda: grad(lambda a: {"u": (a, "b")})(1.0),
    ):
        text = message(call, TypeError)
        assert "['u'][1]" in text and "<class 'str'>" in text and "test_errors.py:" in text, text
        assert "not an array" in text, text
    text = message(lambda: jit(lambda a: {"u": (a, "b")})(X), TypeError)
    assert "['u'][1]" in text and "<class 'str'>" in text


# ---- Loops and branches -------------------------------------------------------------------------


def step(state: Any, x: Any) -> Any:
    w = state["w"].astype(int)
    return {"w": w, "b": pnp.stack([state["b"], x])}, x


def test_a_carry_that_changes_its_type() -> None:
    text = message(lambda: lax.scan(step, {"w": 1.0, "b": X[0]}, X), TypeError)
    assert text.splitlines() == [
        "scan body function carry input and carry output must have equal types, but they differ:",
        f"  body is `step` at {line_after(step, 0)}",
        "  the carry state['b'] has type float32[] before the turn but type float32[2] after it "
        f"(made by `stack` at {line_after(step, 2)} (step)), so the shapes do not match",
        "  the carry state['w'] has type float32[] before the turn but type int32[] after it "
        f"(made by `convert_element_type` at {line_after(step, 1)} (step)), so the dtypes do not "
        "match",
        "Return it with shape (), or start from shape (2,).",
    ]


def turn(i: Any, value: Any) -> Any:
    a, b = value
    return a, b + 0.5


@pytest.mark.parametrize(
    "loop, name",
    [
        (lambda init: lax.fori_loop(0, 3, turn, init), "fori_loop"),
        (lambda init: jit(lambda n: lax.fori_loop(0, n, turn, init))(3), "fori_loop"),
        (
            lambda init: lax.while_loop(
                lambda value: value[0] < 1, lambda value: turn(0, value), init
            ),
            "while_loop",
        ),
    ],
)
def test_carries_of_the_other_loops(loop: Any, name: str) -> None:
    text = message(lambda: loop((X[0], np.int32(1))), TypeError)
    assert text.startswith(f"{name} body function carry input and carry output must have equal")
    assert "the carry value[1] has type int32[] before the turn but type float32[] after it" in text
    assert f"(made by `add` at {line_after(turn, 2)} (turn)), so the dtypes do not match" in text
    assert text.endswith("Return it with `.astype('int32')`, or start from float32.")


@pytest.mark.parametrize(
    "body, words",
    [
        (
            lambda c, x: ((c, c), x),
            "the carry c is an array, but what the body returns for it is a",
        ),
        (
            lambda c, x: (None, x),
            "the carry c is an array, but what the body returns for it is None",
        ),
        (
            lambda c, x: c,
            "scan body output must be a pair, got ~float32[] from `<lambda>` at test_err",
        ),
    ],
)
def test_carries_in_other_containers(body: Any, words: str) -> None:
    assert words in message(lambda: lax.scan(body, 1.0, X), TypeError)


def test_lengths_that_differ_are_named() -> None:
    text = message(lambda: lax.scan(step, 0.0, {"a": X, "b": X[:2]}), ValueError)
    assert (
        "different leading axis sizes: 3, 2" in text and "xs['a'] has 3 and xs['b'] has 2" in text
    )


def test_conditions_that_are_no_booleans() -> None:
    text = message(lambda: lax.while_loop(lambda c: c < 2, lambda c: c, X), TypeError)
    assert "boolean scalar" in text and "bool[3]" in text and "`<lambda>` at test_errors.py" in text


def first(x: Any) -> Any:
    return {"k": x, "l": x}


def second(x: Any) -> Any:
    y = x.astype(int)
    return {"k": x, "l": y}


def test_branches_whose_results_differ() -> None:
    text = message(lambda: lax.cond(True, first, second, X), TypeError)
    assert text.splitlines() == [
        "cond branches must have equal output types but they differ.",
        f"  true_fun is `first` at {line_after(first, 0)}",
        f"  false_fun is `second` at {line_after(second, 0)}",
        "  the result['l'] of true_fun has type float32[3], that of false_fun has type int32[3] "
        f"(made by `convert_element_type` at {line_after(second, 1)} (second)), so the dtypes do "
        "not match",
        "Convert one of them with `.astype` or `.reshape`.",
    ]
    text = message(
        lambda: lax.switch(0, [first, first, lambda x: {"k": x, "l": (x, x)}], X), TypeError
    )
    assert "the result of branch 0['l'] is an array, but that of branch 2 is a tuple" in text


def looped(x: Any) -> Any:
    return lax.while_loop(lambda y: y < 10, lambda y: y * 2, x)


@pytest.mark.parametrize("around", [lambda f: f, jit, lambda f: lambda x: vmap(f)(x[None])[0]])
def test_reverse_through_a_while_loop(around: Any) -> None:
    text = message(lambda: grad(around(looped))(pnp.float32(1)), ValueError)
    assert "Reverse-mode differentiation does not work for lax.while_loop" in text
    assert "lax.scan" in text and "forward mode" in text
    assert f"The loop is at {line_after(looped, 1)} (looped)." in text


# ---- Tracers that got out -----------------------------------------------------------------------

kept: list[Any] = []


def leaky(x: Any) -> Any:
    y = x * 2
    kept.append(y)
    return y


class Holder:
    pass


@pytest.mark.parametrize(
    "call, origin",
    [
        (lambda: jit(leaky)(X), "made by `mul` at {line} (leaky) while `leaky` was traced."),
        (lambda: vmap(leaky)(X), "made by `mul` at {line} (leaky) while `leaky` was mapped."),
        (lambda: jit(vmap(leaky))(X), "made by `mul` at {line} (leaky) while `leaky` was traced."),
        (
            lambda: grad(leaky)(1.0),
            "made by `mul` at {line} (leaky) while `leaky` was differentiated.",
        ),
        (
            lambda: jvp(leaky, (1.0,), (1.0,)),
            "made by `mul` at {line} (leaky) while `leaky` was differentiated.",
        ),
        (
            lambda: vmap(grad(leaky))(X),
            "made by `mul` at {line} (leaky) while `leaky` was differentiated.",
        ),
        (lambda: lax.map(leaky, X), "made by `mul` at {line} (leaky) while `leaky` was traced."),
    ],
    ids=["jit", "vmap", "jit of vmap", "grad", "jvp", "vmap of grad", "map"],
)
def test_leaked_tracers_say_where_they_were_made_and_what_holds_them(
    call: Any, origin: str
) -> None:
    kept.clear()
    call()
    with pytest.raises(errors.UnexpectedTracerError) as info:
        kept[0] + 1
    here = f"test_errors.py:{sys._getframe().f_lineno - 1}"
    text = str(info.value)
    assert "It was " + origin.format(line=line_after(leaky, 1)) in text, text
    assert re.search(
        rf"It was used at {here} \(.*\) as `kept\[0\]`, after the traced function had returned",
        text,
    )
    assert "Remedy: return the value from the traced function" in text


def test_what_holds_a_leaked_tracer() -> None:
    jit(lambda x: kept.append(x) or x)(X)
    (tracer,) = kept[-1:]
    kept.clear()
    with pytest.raises(errors.UnexpectedTracerError, match="as `tracer`,"):
        tracer + 1
    table, holder = {"w": tracer}, Holder()
    del tracer
    with pytest.raises(errors.UnexpectedTracerError, match=r"as `table\['w'\]`,"):
        pnp.sin(table["w"])
    holder.w = table.pop("w")  # type: ignore[attr-defined]
    with pytest.raises(errors.UnexpectedTracerError, match=r"as `holder\.w`,"):
        jit(lambda: holder.w * 2)()  # type: ignore[attr-defined]


def test_a_leaked_argument_is_named() -> None:
    seen: list[Any] = []
    jit(lambda rate, x: seen.append(rate) or x)(1.0, X)
    text = message(lambda: seen[0] * 2, errors.UnexpectedTracerError)
    assert "It is `rate` of the function `<lambda>` that is being traced." in text
    lax.scan(lambda total, x: (seen.append(total) or total, x), 0.0, X)
    text = message(lambda: seen[1] * 2, errors.UnexpectedTracerError)
    assert "It is `total` of the function" in text and "as `seen[1]`" in text


def test_values_that_python_asks_for() -> None:
    text = message(lambda: vmap(lambda a: a if a > 0 else -a)(X), errors.TracerBoolConversionError)
    assert "each of the 3 examples of a vmap" in text and "made by `gt` at test_errors.py:" in text
    text = message(lambda: vmap(lambda a: float(a))(X), errors.ConcretizationTypeError)
    assert "each of the 3 examples of a vmap" in text


# ---- Arrays are immutable -----------------------------------------------------------------------


def test_the_update_that_an_assignment_means() -> None:
    a, model = pnp.arange(6.0).reshape(2, 3), Holder()
    model.w = a  # type: ignore[attr-defined]
    i = 1
    with pytest.raises(TypeError, match=r"immutable.*\nHere: `a = a\.at\[0\]\.set\(i \+ 1\)`"):
        a[0] = i + 1
    with pytest.raises(TypeError, match=r"Here: `a = a\.at\[i, :2\]\.add\(1\)`"):
        a[i, :2] += 1
    with pytest.raises(TypeError, match=r"Here: `a = a\.at\[\.\.\., 0\]\.multiply\(2\)`"):
        a[..., 0] *= 2
    with pytest.raises(TypeError, match=r"Here: `model\.w = model\.w\.at\[a > 1\]\.set\(0\)`"):
        model.w[a > 1] = 0  # type: ignore[attr-defined]

    def assigned(x: Any) -> Any:
        x[1] -= 3
        return x

    for around in (jit, vmap, lambda f: grad(lambda x: f(x).sum())):
        with pytest.raises(TypeError, match=r"immutable.*\nHere: `x = x\.at\[1\]\.subtract\(3\)`"):
            around(assigned)(a)


def test_statements_that_are_no_update_get_no_wrong_advice() -> None:
    a = pnp.arange(3)
    with pytest.raises(TypeError) as info:
        a[0], _ = 1, 2
    assert "Here:" not in str(info.value)
    with pytest.raises(TypeError) as info:
        a[0] //= 2
    assert "Here:" not in str(info.value) and "x.at[idx].set(y)" in str(info.value)
    with pytest.raises(TypeError, match="perspex.numpy.delete"):
        del a[0]


def test_the_advice_works() -> None:
    a = pnp.arange(3.0)
    for statement in ("a[1] = 7.0", "a[1] += 7.0", "a[1] -= 7.0", "a[1] *= 7.0", "a[1] /= 7.0"):
        want = {"a": np.arange(3.0, dtype=np.float32)}
        exec(statement, want)
        got = {"a": a}
        exec(messages.item_assignment("", statement).rpartition("Here: ")[2].strip("`"), got)
        np.testing.assert_allclose(got["a"], want["a"], rtol=1e-6)

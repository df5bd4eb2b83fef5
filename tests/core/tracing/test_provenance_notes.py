"""What errors say of operands and of leaks, in threads, as notes, and after pickling."""

from __future__ import annotations

import ast
import gc
import json
import os
import pickle
import textwrap
import threading
import traceback
import weakref
from typing import Any

import numpy as np
import pytest
from support.wrong_programs import (
    BOOL,
    CHOICES,
    HEAD,
    failure,
    load,
    patched,
    way,
    write,
)

from perspex import errors, jit
from perspex import numpy as pnp
from perspex.advice import code, messages
from perspex.tracing import provenance


def test_what_leaked_was_stored_by_a_line() -> None:
    program = """
    kept = []
    class Model:
        pass
    model = Model()
    last = None
    @jit
    def f(x):
        global last
        y = x * 2
        kept.append(y)
        model.w = y
        last = y
        return y
    f(1.0)
    """
    stored = {
        "kept[0] + 1": "kept.append(y)",
        "model.w + 1": "model.w = y",
        "jnp.sin(last)": "last = y",
    }
    source = HEAD + textwrap.dedent(program)
    for use, line in stored.items():
        name, namespace = load(source)
        at = f"{name.rpartition('/')[2]}:{source.splitlines().index('    ' + line) + 1}"
        only = {"kept": [], "model": None, "last": None}
        only.pop(use.split("[")[0].split(".")[0].removeprefix("jnp") or "last")
        namespace.update(only)
        with pytest.raises(errors.UnexpectedTracerError) as info:
            exec(compile(use, write(use), "exec"), namespace)
        assert f"It was stored by `{line}` at {at}." in str(info.value)
        error: Any = info.value
        assert way(error.card)[:2] == ["`x`", "y = x * 2"]


def test_the_operands_of_an_operation_that_failed() -> None:
    program = """
    @jit
    def f(a, b):
        c = a[1:]
        d = b * 2
        return c + d
    @jit
    def g(x, n):
        m = n - 1
        return x[:m]
    @jit
    def h(x, n):
        return x.reshape(n, -1)
    """
    source = HEAD + textwrap.dedent(program)
    _, namespace = load(source)
    with pytest.raises(TypeError) as info:
        namespace["f"](np.ones(3), np.ones(4))
    found = provenance.explain(info.value, info.tb)
    assert found is not None
    assert [(step.text, step.kind) for step in found[0].steps] == [
        ("`a`", "float32[3]"),
        ("c = a[1:]", "float32[2]"),
        ("`b`", "float32[4]"),
        ("d = b * 2", "float32[4]"),
        ("return c + d", "needed here"),
    ]
    for call, want in (("g(np.arange(4), 3)", [0, 1]), ("h(np.arange(4), 2)", [[0, 1], [2, 3]])):
        with pytest.raises((TypeError, IndexError)) as failed:
            eval(call, namespace)
        found = provenance.explain(failed.value, failed.tb)
        assert found is not None and found[0].remedy.patch is not None
        _, mended = load(patched(source, found[0].remedy.patch))
        np.testing.assert_array_equal(eval(call, mended), want)


NOTED = """
@jit
def f(a, b):
    c = a[1:]
    return c + b
@jit
def scanned(xs, w):
    v = w * 2
    return lax.scan(lambda c, x: (c, x @ v), 0.0, xs)
@jit
def stored(x, y):
    z = x[:2]
    return z.at[0].set(y)
@jit
def length(x, n):
    return x.reshape(n, -1)
"""
NOTES = {
    "f(np.ones(3), np.ones(4))": [
        "argument of `f` `a` float32[3]",
        "{}:10 (f) c = a[1:] slice float32[2]",
        "argument of `f` `b` float32[4]",
        "{}:11 (f) return c + b needed here",
    ],
    "scanned(np.ones((2, 3)), np.ones(4))": [
        "argument of `<lambda>` `x` float32[3]",
        "argument of `scanned` `w` float32[4]",
        "{}:14 (scanned) v = w * 2 mul float32[4]",
        "{}:15 (<lambda>) return lax.scan(lambda c, x: (c, x @ v), 0.0, xs) needed here",
    ],
    "stored(np.ones((3, 2)), np.ones(5))": [
        "argument of `stored` `x` float32[3,2]",
        "{}:18 (stored) z = x[:2] slice float32[2,2]",
        "argument of `stored` `y` float32[5]",
        "{}:19 (stored) return z.at[0].set(y) needed here",
    ],
}


@pytest.mark.parametrize("call", NOTES)
def test_python_shows_the_way_of_operands_with_the_error(call: str) -> None:
    name, namespace = load(HEAD + NOTED)
    shown: list[str] = []

    def work() -> None:
        try:
            eval(call, namespace)
        except Exception:
            shown.extend(traceback.format_exc().splitlines())

    # In another thread than the one in which the functions were made.
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert shown.count("From the arguments to here:") == 1
    rows = [" ".join(row.split()) for row in shown]
    rows = rows[rows.index("From the arguments to here:") + 1 :]
    assert rows == [row.format(os.path.basename(name)) for row in NOTES[call]]


def test_a_parse_that_another_thread_disturbs(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, texts = ast.parse, []

    def disturbed(text: str, *args: Any, **kwargs: Any) -> ast.AST:
        texts.append(text)
        if len(texts) == 1:  # as in Python 3.11 where two threads parse at once
            raise SystemError("AST constructor recursion depth mismatch (before=60, after=56)")
        return parse(text, *args, **kwargs)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert code.File("a.py", ["x = 1\n"]).tree is not None and len(texts) == 2


def test_threads_are_told_their_own_way() -> None:
    lines = []
    for i in range(4):
        lines += ["@jit", f"def f{i}(x{i}):", f"    y{i} = x{i} * 2"]
        # So that the others come between.
        lines += [f"    for _ in range({50 * i}):", f"        y{i} = jnp.sin(y{i})"]
        lines += [f"    return y{i} @ jnp.ones(99)"]
        lines += ["@jit", f"def g{i}(x{i}):", f"    return 1 if x{i} > 0 else 2"]
    _, namespace = load(HEAD + "\n".join(lines) + "\n")
    shown: dict[str, list[str]] = {}

    def work(i: int) -> None:
        for turn in range(5):
            for name, argument in ((f"f{i}", np.ones(3 + turn)), (f"g{i}", float(turn))):
                try:
                    namespace[name](argument)
                except TypeError as error:
                    text = "".join(traceback.format_exception(error))
                    shown.setdefault(name, []).append(text.partition("From the arguments")[2])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: len(texts) for name, texts in shown.items()} == {
        f"{name}{i}": 5 for name in "fg" for i in range(4)
    }
    for name, texts in shown.items():
        for text in texts:
            assert f"argument of `{name}`" in text and f"`x{name[1]}`" in text
            assert not [i for i in "0123" if i != name[1] and f"`x{i}`" in text]


def test_a_note_goes_on_from_general_advice() -> None:
    _, namespace = load(HEAD + NOTED)
    with pytest.raises(TypeError) as info:
        namespace["length"](np.arange(4), 2)
    shown = "".join(traceback.format_exception(info.value)).splitlines()
    assert len([row for row in shown if row.startswith("Remedy: ")]) == 1
    assert len([row for row in shown if row.startswith("Here: mark `n` static")]) == 1
    assert shown[-1] == "    @jit(static_argnames='n')" and "" not in shown


def test_an_error_without_operands_has_no_note() -> None:
    _, namespace = load(HEAD + "@jit\ndef f(x):\n    raise ValueError('no')\n")
    for call in ("f(1.0)", "jnp.ones(3) + jnp.ones(4)", "jit(lambda x: len(5))(1.0)"):
        with pytest.raises((TypeError, ValueError)) as info:
            eval(call, namespace)
        assert not hasattr(info.value, "__notes__")


def test_notes_survive_pickling() -> None:
    _, namespace = load(HEAD + NOTED)
    with pytest.raises(TypeError) as info:
        namespace["f"](np.ones(3), np.ones(4))
    again = pickle.loads(pickle.dumps(info.value))
    assert again.__notes__ == info.value.__notes__
    found = provenance.noted(again)
    assert found is not None and way(found.card)[:2] == ["`a`", "c = a[1:]"]


def test_other_errors_have_no_card() -> None:
    _, namespace = load(HEAD + "@jit\ndef f(x):\n    return x + len(5)\n")
    with pytest.raises(TypeError) as info:
        namespace["f"](1.0)
    assert provenance.explain(info.value, info.tb) is None and errors.card_of(info.value) is None
    with pytest.raises(TypeError) as info:
        pnp.ones(3) + pnp.ones(4)
    assert provenance.explain(info.value, info.tb) is None


def test_an_error_that_is_caught_keeps_nothing_alive() -> None:
    _, namespace = load(HEAD + "def f(x, c):\n    return x if (x * c).sum() > 0 else c\n")
    constant = pnp.ones(3)
    gone = weakref.ref(constant)
    f = jit(lambda x, c=constant: namespace["f"](x, c))
    message = ""
    try:
        f(1.0)
    except BOOL as error:
        message = error.args[0]
    assert message.card.steps  # type: ignore[attr-defined]
    del f, constant
    gc.collect()
    assert gone() is None


def test_messages_survive_pickling() -> None:
    _, _, card = failure(CHOICES[0].program, CHOICES[0].call, BOOL)
    assert json.loads(json.dumps(card.as_data()))["steps"][0]["text"] == "`x`"
    with pytest.raises(BOOL) as info:
        jit(lambda x: 1 if x > 0 else 2)(1.0)
    again = pickle.loads(pickle.dumps(info.value))
    assert str(again) == str(info.value) and again.card == info.value.card


def test_code_without_a_text_has_the_general_remedy() -> None:
    namespace = {"jit": jit}
    exec("f = jit(lambda x: 1 if x > 0 else 2)", namespace)
    with pytest.raises(BOOL, match="chooses elements"):
        namespace["f"](1.0)  # type: ignore[operator]


def test_a_story_is_told_of_one_error_only() -> None:
    with pytest.raises(BOOL):
        jit(lambda x: 1 if x > 0 else 2)(1.0)
    text = messages.bool_conversion("bool[]", "It is something else.")
    assert "argument of" not in text

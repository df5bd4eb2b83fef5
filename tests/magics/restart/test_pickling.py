"""Pickles of a notebook's objects: what comes back by value, by name, or not at all."""

from __future__ import annotations

import asyncio
import io
import socket
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex_magics.restart.archive import Reader, UnkeptError, Writer
from perspex_magics.restart.pickling import Pickler, Unpickler, why


def again(x: Any, namespace: dict[str, Any], other: dict[str, Any] | None = None) -> Any:
    """An object after it was pickled in one namespace, and made in another."""
    file, pickle = io.BytesIO(), io.BytesIO()
    writer = Writer(file, waits=True)
    Pickler(pickle, writer, namespace).dump(x)
    writer.finish({})
    made = Unpickler(pickle.getvalue(), Reader(file), namespace if other is None else other)
    return made.load()


def notebook(code: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__", "perspex": perspex, "jnp": jnp}
    exec(code, namespace)
    return namespace


def test_a_function_sees_the_notebook_that_it_is_made_in() -> None:
    before = notebook("rate = 2.0\ndef scale(x):\n    return rate * x")
    after = {"__name__": "__main__", "rate": 5.0}
    scale = again(before["scale"], before, after)
    assert scale.__globals__ is after and scale(2.0) == 10.0
    after["rate"] = 7.0
    assert scale(2.0) == 14.0


def test_the_variables_that_a_function_names_are_not_in_its_pickle() -> None:
    before = notebook("steps = (n for n in range(3))\ndef more():\n    return next(steps)")
    with pytest.raises(NameError, match="steps"):
        again(before["more"], before, {})()


def test_a_function_of_a_library_has_the_modules_variables() -> None:
    """`grad` gives a function that is in no module."""
    before = notebook("slope = perspex.grad(lambda x: x**3)")
    slope = again(before["slope"], before, {"__name__": "__main__"})
    assert slope.__globals__ is before["slope"].__globals__
    assert slope(2.0) == 12.0


def test_a_jitted_function_keeps_its_options() -> None:
    before = notebook(
        "def power(x, n):\n    return x**n\nf = perspex.jit(power, static_argnames='n')"
    )
    f = again(before["f"], before, {"__name__": "__main__"})
    assert f(3.0, n=2) == 9.0
    with pytest.raises(ValueError, match="not hashable|hash"):
        f(3.0, n=[])


def test_a_decorated_function() -> None:
    before = notebook("@perspex.jit\ndef twice(x):\n    return 2 * x")
    assert again(before["twice"], before, {"__name__": "__main__"})(4) == 8


def test_a_custom_derivative() -> None:
    before = notebook(
        "@perspex.custom_jvp\ndef f(x):\n    return x\n"
        "@f.defjvp\ndef _(p, t):\n    return p[0], 5.0 * t[0]"
    )
    assert perspex.grad(again(before["f"], before))(1.0) == 5.0


def test_arrays_are_one_object_wherever_they_are() -> None:
    w = jnp.arange(3.0)
    x, y = again({"a": [w], "b": w}, {}).values()
    assert x[0] is y
    np.testing.assert_array_equal(np.asarray(y), [0.0, 1.0, 2.0])


def test_functions_and_devices_by_name() -> None:
    assert again(jnp.sin, {}) is jnp.sin
    assert again(perspex.devices()[0], {}) is perspex.devices()[0]


def running() -> Any:
    yield sys._getframe()


async def waiting() -> None:
    await asyncio.sleep(0)


def test_what_belongs_to_the_process_is_named() -> None:
    frame = next(running())
    coroutine = waiting()
    process = subprocess.Popen([sys.executable, "-c", ""])
    with socket.socket() as connection:
        cases = {
            "a generator that has begun": running(),
            "a coroutine": coroutine,
            "a thread": threading.Thread(),
            "a lock": threading.RLock(),
            "a connection": connection,
            "a process": process,
            "a frame of a function that ran": frame,
        }
        for said, x in cases.items():
            for held, prefix in ((x, ""), ([x], "it holds ")):
                with pytest.raises(UnkeptError) as raised:
                    again(held, {})
                assert why(raised.value, held) == prefix + said
    coroutine.close()
    process.wait()


def test_a_traced_value_is_named() -> None:
    leaked: list[Any] = []
    perspex.jit(lambda x: leaked.append(x) or x)(1.0)
    with pytest.raises(UnkeptError, match="a traced value"):
        again(leaked, {})


def test_the_reason_of_another_error_is_its_first_line() -> None:
    assert why(TypeError("cannot\nso"), 1) == "TypeError: cannot"
    assert why(RecursionError(), 1) == "it is nested too deeply"

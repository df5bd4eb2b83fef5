"""Programs that fail while they are traced, and what their errors must say.

The lines on the way of a value, the lines to write instead and the results are worked out by hand
or by NumPy. Each program begins below the imports of `HEAD`.
"""

from __future__ import annotations

import itertools
import linecache
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from perspex import errors
from perspex.advice.story import Card, Patch

_numbers = itertools.count()
HEAD = "import math\nimport numpy as np\nimport perspex\nimport perspex.numpy as jnp\n"
HEAD += "from functools import partial\nfrom perspex import grad, jit, lax, vmap\n"


def write(source: str) -> str:
    """A file of that text, as Python's own tools find it."""
    name = f"/nowhere/program_{next(_numbers)}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return name


def load(source: str) -> tuple[str, dict[str, Any]]:
    name = write(source)
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, name, "exec"), namespace)
    return name, namespace


def patched(source: str, patch: Patch) -> str:
    """The program with the remedy written into it, as its reader would."""
    lines = source.splitlines()
    assert lines[patch.first - 1 : patch.last] == list(patch.before)
    lines[patch.first - 1 : patch.last] = patch.after
    return "\n".join([*patch.imports, *lines]) + "\n"


def failure(program: str, call: str, kind: type[Exception]) -> tuple[str, str, Card]:
    """The program as it is run, the error's message, and its card."""
    source = HEAD + textwrap.dedent(program)
    _, namespace = load(source)
    with pytest.raises(kind) as info:
        eval(call, namespace)
    error: Any = info.value
    assert error.card is not None
    return source, str(error), error.card


def way(card: Card) -> list[str]:
    return [step.text for step in card.steps]


V = np.array([-2.0, -0.5, 0.5, 3.0], np.float32)


@dataclass
class Case:
    """A wrong program: what fails, the texts on the way, the new lines, and the right results."""

    id: str
    program: str
    call: str
    error: type[Exception]
    way: list[str]
    new: list[str]
    want: Any


BOOL = errors.TracerBoolConversionError
NUMBER = errors.ConcretizationTypeError
INDEX = errors.TracerIntegerConversionError
ARRAY = errors.TracerArrayConversionError
MASK = errors.NonConcreteBooleanIndexError

CHOICES = [
    Case(
        "if that assigns",
        """
        @jit
        def f(x):
            y = x * 2
            if y > 1:
                z = y + 1
            else:
                z = -y
            return z
        """,
        "[float(f(v)) for v in (0.25, 2.0)]",
        BOOL,
        ["`x`", "y = x * 2", "if y > 1:"],
        ["    z = jnp.where(y > 1, y + 1, -y)"],
        [-0.5, 5.0],
    ),
    Case(
        "if without else",
        """
        @jit
        def f(x):
            y = x
            if x < 0:
                y *= 3
            return y
        """,
        "[float(f(v)) for v in (-1.0, 2.0)]",
        BOOL,
        ["`x`", "if x < 0:"],
        ["    y = jnp.where(x < 0, y * 3, y)"],
        [-3.0, 2.0],
    ),
    Case(
        "if of several assignments",
        """
        @jit
        def f(x):
            a = b = x
            if x < 0:
                a = x * 3
                b = x - 1
            return a + b
        """,
        "[float(f(v)) for v in (-1.0, 2.0)]",
        BOOL,
        ["`x`", "if x < 0:"],
        ["    a, b = (jnp.where(x < 0, x * 3, a), jnp.where(x < 0, x - 1, b))"],
        [-5.0, 4.0],
    ),
    Case(
        "if of statements in a row",
        """
        @jit
        def f(x):
            if x > 0:
                y = x + 1
                z = y * y
            else:
                y = x
                z = y - 1
            return y + z
        """,
        "[float(f(v)) for v in (2.0, -2.0)]",
        BOOL,
        ["`x`", "if x > 0:"],
        [
            "    def if_true():",
            "        y = x + 1",
            "        z = y * y",
            "        return (y, z)",
            "",
            "    def if_false():",
            "        y = x",
            "        z = y - 1",
            "        return (y, z)",
            "",
            "    y, z = lax.cond(x > 0, if_true, if_false)",
        ],
        [12.0, -5.0],
    ),
    Case(
        "if that changes what it reads",
        """
        @jit
        def f(x):
            if x > 1:
                x = x / 2
                x = x * x
            else:
                x = x - 1
            return x
        """,
        "[float(f(v)) for v in (4.0, -2.0)]",
        BOOL,
        ["`x`", "if x > 1:"],
        [
            "    def if_true(x):",
            "        x = x / 2",
            "        x = x * x",
            "        return x",
            "",
            "    def if_false(x):",
            "        x = x - 1",
            "        return x",
            "",
            "    x = lax.cond(x > 1, if_true, if_false, x)",
        ],
        [4.0, -3.0],
    ),
    Case(
        "if that returns, and what follows",
        """
        @jit
        def bump(x):
            if x > 0:
                return x
            return -x
        """,
        "[float(bump(v)) for v in (-2.0, 3.0)]",
        BOOL,
        ["`x`", "if x > 0:"],
        ["    return jnp.where(x > 0, x, -x)"],
        [2.0, 3.0],
    ),
    Case(
        "a chain of elif",
        """
        @jit
        def sign(x):
            if x > 0:
                s = 1.0
            elif x < 0:
                s = -1.0
            else:
                s = 0.0
            return s
        """,
        "[float(sign(v)) for v in (-2.0, 0.0, 3.0)]",
        BOOL,
        ["`x`", "if x > 0:"],
        ["    s = jnp.where(x > 0, 1.0, jnp.where(x < 0, -1.0, 0.0))"],
        [-1.0, 0.0, 1.0],
    ),
    Case(
        "a chain of returns",
        """
        @jit
        def sign(x):
            if x > 0:
                return 1.0
            if x < 0:
                return -1.0
            return 0.0
        """,
        "[float(sign(v)) for v in (-2.0, 0.0, 3.0)]",
        BOOL,
        ["`x`", "if x > 0:"],
        ["    return jnp.where(x > 0, 1.0, jnp.where(x < 0, -1.0, 0.0))"],
        [-1.0, 0.0, 1.0],
    ),
    Case(
        "elif under a condition that Python knows",
        """
        @partial(jit, static_argnums=1)
        def f(x, flag):
            if flag:
                y = x
            elif x > 1:
                y = x * 10
            else:
                y = x - 10
            return y
        """,
        "[float(f(v, False)) for v in (2.0, 1.0)] + [float(f(5.0, True))]",
        BOOL,
        ["`x`", "elif x > 1:"],
        ["    else:", "        y = jnp.where(x > 1, x * 10, x - 10)"],
        [20.0, -9.0, 5.0],
    ),
    Case(
        "functions to choose from",
        """
        def double(x):
            return {"out": 2 * x}
        def halve(x):
            return {"out": x / 2}
        @jit
        def f(x):
            if x.sum() > 0:
                return double(x)
            else:
                return halve(x)
        """,
        "[f(np.float32([s, 2 * s]))['out'] for s in (1, -1)]",
        BOOL,
        ["`x`", "if x.sum() > 0:"],
        ["    return lax.cond(x.sum() > 0, lambda: double(x), lambda: halve(x))"],
        [[2.0, 4.0], [-0.5, -1.0]],
    ),
    Case(
        "containers to choose from",
        """
        params = {"a": {"w": np.float32(1)}, "b": {"w": np.float32(2)}}
        @jit
        def f(x):
            layer = params["a"] if x > 0 else params["b"]
            return layer["w"] * x
        """,
        "[float(f(v)) for v in (2.0, -2.0)]",
        BOOL,
        ["`x`", 'layer = params["a"] if x > 0 else params["b"]'],
        ["    layer = lax.cond(x > 0, lambda: params['a'], lambda: params['b'])"],
        [2.0, -4.0],
    ),
    Case(
        "an array that chooses element by element",
        """
        @jit
        def f(x):
            if x > 0:
                return x
            return -2 * x
        """,
        f"f(np.float32({V.tolist()}))",
        BOOL,
        ["`x`", "if x > 0:"],
        ["    return jnp.where(x > 0, x, -2 * x)"],
        np.where(V > 0, V, -2 * V),
    ),
    Case(
        "tuples to choose from",
        """
        @jit
        def order(a, b):
            if a < b:
                return a, b
            return b, a
        """,
        "[order(1.0, 2.0), order(2.0, 1.0)]",
        BOOL,
        ["`a`", "`b`", "if a < b:"],
        ["    return lax.cond(a < b, lambda: (a, b), lambda: (b, a))"],
        [(1.0, 2.0), (1.0, 2.0)],
    ),
    Case(
        "a conditional expression in a lambda",
        """
        f = jit(lambda x: 1 + (x if x > 0 else -x) * 2)
        """,
        "[float(f(v)) for v in (-2.0, 3.0)]",
        BOOL,
        ["`x`", "f = jit(lambda x: 1 + (x if x > 0 else -x) * 2)"],
        ["f = jit(lambda x: 1 + (jnp.where(x > 0, x, -x)) * 2)"],
        [5.0, 7.0],
    ),
    Case(
        "and, under if",
        """
        @jit
        def inside(x):
            if x > 0 and not x > 1:
                return 1
            return 0
        """,
        "[int(inside(v)) for v in (-1.0, 0.5, 2.0)]",
        BOOL,
        ["`x`", "if x > 0 and not x > 1:"],
        ["    return jnp.where(jnp.logical_and(x > 0, jnp.logical_not(x > 1)), 1, 0)"],
        [0, 1, 0],
    ),
    Case(
        "or, as a value",
        """
        @jit
        def outside(x):
            return x < 0 or x > 1
        """,
        "[bool(outside(v)) for v in (-1.0, 0.5, 2.0)]",
        BOOL,
        ["`x`", "return x < 0 or x > 1"],
        ["    return (x < 0) | (x > 1)"],
        [True, False, True],
    ),
    Case(
        "a chain of comparisons",
        """
        @jit
        def inside(x):
            ok = 0 < x < 1
            return ok
        """,
        "[bool(inside(v)) for v in (-1.0, 0.5, 2.0)]",
        BOOL,
        ["`x`", "ok = 0 < x < 1"],
        ["    ok = (0 < x) & (x < 1)"],
        [False, True, False],
    ),
    Case(
        "not",
        """
        @jit
        def f(x):
            return 10 * (not x)
        """,
        "[int(f(v)) for v in (np.bool_(True), np.bool_(False))]",
        BOOL,
        ["`x`", "return 10 * (not x)"],
        ["    return 10 * (jnp.logical_not(x))"],
        [0, 10],
    ),
    Case(
        "while on one name",
        """
        @jit
        def below(x):
            while x > 1:
                x = x / 2
            return x
        """,
        "[float(below(v)) for v in (12.0, 0.25)]",
        BOOL,
        ["`x`", "while x > 1:"],
        ["    x = lax.while_loop(lambda x: x > 1, lambda x: x / 2, x)"],
        [0.75, 0.25],
    ),
    Case(
        "while on several names",
        """
        @jit
        def halvings(x):
            count = 0
            total = 0
            while x > 1 and count < 100:
                half = x / 2
                total += half
                x = half
                count += 1
            return total + count
        """,
        "[float(halvings(v)) for v in (12.0, 0.25)]",
        BOOL,
        ["`x`", "while x > 1 and count < 100:"],
        [
            "    def goes_on(carry):",
            "        total, x, count = carry",
            "        return (x > 1) & (count < 100)",
            "",
            "    def turn(carry):",
            "        total, x, count = carry",
            "        half = x / 2",
            "        total += half",
            "        x = half",
            "        count += 1",
            "        return total, x, count",
            "",
            "    total, x, count = lax.while_loop(goes_on, turn, (float(total), x, count))",
        ],
        [6 + 3 + 1.5 + 0.75 + 4, 0.0],
    ),
    Case(
        "while that becomes traced in its first turn",
        """
        @jit
        def root(a):
            x = a
            gap = 1
            while gap > 1e-4:
                new = 0.5 * (x + a / x)
                gap = abs(new - x)
                x = new
            return x
        """,
        "[float(root(v)) for v in (4.0, 9.0)]",
        BOOL,
        ["`a`", "gap = abs(new - x)", "while gap > 1e-4:"],
        [
            "    def goes_on(carry):",
            "        gap, x = carry",
            "        return gap > 0.0001",
            "",
            "    def turn(carry):",
            "        gap, x = carry",
            "        new = 0.5 * (x + a / x)",
            "        gap = abs(new - x)",
            "        x = new",
            "        return gap, x",
            "",
            "    gap, x = lax.while_loop(goes_on, turn, (float(gap), x))",
        ],
        [2.0, 3.0],
    ),
    Case(
        "max of two",
        """
        @jit
        def relu(x):
            return max(x, 0.0) + 1
        """,
        "[float(relu(v)) for v in (-2.0, 2.0)]",
        BOOL,
        ["`x`", "return max(x, 0.0) + 1"],
        ["    return jnp.maximum(x, 0.0) + 1"],
        [1.0, 3.0],
    ),
    Case(
        "any of an array",
        """
        @jit
        def negative(x):
            return any(x < 0)
        """,
        f"bool(negative(np.float32({V.tolist()})))",
        BOOL,
        ["`x`", "return any(x < 0)"],
        ["    return jnp.any(x < 0)"],
        True,
    ),
    Case(
        "in a list",
        """
        table = [1, 3, 5]
        @jit
        def odd(i):
            return i in table
        """,
        "[bool(odd(i)) for i in (2, 3)]",
        BOOL,
        ["`i`", "return i in table"],
        ["    return jnp.any(jnp.asarray(table) == i)"],
        [False, True],
    ),
]

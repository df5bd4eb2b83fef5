"""Random small programs of calls, loops and branches: what every composition of transforms gives.

A program is a tree of data that two machines run: NumPy with Python's loops and branches, and
Perspex. Their values must agree, eagerly and compiled; derivatives agree with differences in both
modes, and batches with a loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import checks

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex.ops.structural import reduce_sum
from perspex.transforms.vmap import batch

SIZE = 3


class Plain:
    """NumPy and Python."""

    def sin(self, x: Any) -> Any:
        return np.sin(x)

    def total(self, x: Any) -> Any:
        return x.sum()

    def call(self, f: Any, *args: Any) -> Any:
        return f(*args)

    def cond(self, pred: Any, f: Any, g: Any, *args: Any) -> Any:
        return f(*args) if pred else g(*args)

    def scan(self, f: Any, init: Any, xs: Any, reverse: bool) -> Any:
        ys = np.zeros_like(xs)
        for i in range(len(xs))[::-1] if reverse else range(len(xs)):
            init, ys[i] = f(init, xs[i])
        return init, ys

    def repeat(self, n: int, f: Any, x: Any) -> Any:
        for _ in range(n):
            x = f(x)
        return x

    def rows(self, x: Any, n: int) -> Any:
        return np.stack([x * (k + 1) / n for k in range(n)])

    def add_rows(self, xs: Any) -> Any:
        return xs.sum(0)


class Staged:
    """Perspex: what the loops and branches of `lax` make of the same program."""

    def __init__(self, static: bool) -> None:
        # Loops with known bounds have a reverse mode.
        self.static = static

    def sin(self, x: Any) -> Any:
        return pnp.sin(x)

    def total(self, x: Any) -> Any:
        return reduce_sum(x, axes=(0,))

    def call(self, f: Any, *args: Any) -> Any:
        return perspex.jit(f)(*args)

    def cond(self, pred: Any, f: Any, g: Any, *args: Any) -> Any:
        return lax.cond(pred, f, g, *args)

    def scan(self, f: Any, init: Any, xs: Any, reverse: bool) -> Any:
        return lax.scan(f, init, xs, reverse=reverse)

    def repeat(self, n: int, f: Any, x: Any) -> Any:
        if self.static:
            return lax.fori_loop(0, n, lambda _, c: f(c), x)
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]

    def rows(self, x: Any, n: int) -> Any:
        weights = np.arange(1, n + 1)[:, None] / n * np.ones(SIZE)
        return weights * perspex.ops.structural.broadcast_in_dim(
            x, shape=(n, SIZE), broadcast_dimensions=(1,)
        )

    def add_rows(self, xs: Any) -> Any:
        return reduce_sum(xs, axes=(0,))


Program = list[tuple[Any, ...]]


def run(machine: Any, program: Program, values: list[Any]) -> Any:
    """The value of the last instruction; `values` are those at hand before it."""
    values = list(values)

    def at(i: int) -> Any:
        return values[i % len(values)]

    for kind, i, j, *rest in program:
        x, y = at(i), at(j)
        if kind == "sin":
            out = machine.sin(x)
        elif kind == "mul":
            out = x * y * 0.5
        elif kind == "add":
            out = x + y
        elif kind == "call":
            (body,) = rest
            out = machine.call(lambda a, body=body, y=y: run(machine, body, [y, a]), x)
        elif kind == "cond":
            left, right = rest
            out = machine.cond(
                machine.total(x) > 0.1,
                lambda a, left=left, x=x: run(machine, left, [x, a]),
                lambda a, right=right: run(machine, right, [a]),
                y,
            )
        elif kind == "scan":
            n, reverse, body = rest

            def step(c: Any, row: Any, body: Any = body, x: Any = x) -> Any:
                new = machine.sin(run(machine, body, [x, c, row]))
                return new, new * row

            last, ys = machine.scan(step, x, machine.rows(y, n), reverse)
            out = last + machine.add_rows(ys)
        else:
            n, body = rest
            f = lambda c, body=body, y=y: machine.sin(run(machine, body, [y, c]))  # noqa: E731
            out = machine.repeat(n, f, x)
        values.append(out)
    return values[-1]


def programs(depth: int) -> st.SearchStrategy[Program]:
    index = st.integers(0, 4)
    simple = st.tuples(st.sampled_from(["sin", "mul", "add"]), index, index)
    if depth == 0:
        return st.lists(simple, min_size=1, max_size=2)
    inner = programs(depth - 1)
    nested = st.one_of(
        st.tuples(st.just("call"), index, index, inner),
        st.tuples(st.just("cond"), index, index, inner, inner),
        st.tuples(st.just("scan"), index, index, st.integers(1, 3), st.booleans(), inner),
        st.tuples(st.just("repeat"), index, index, st.integers(0, 3), inner),
    )
    return st.lists(st.one_of(simple, nested), min_size=1, max_size=3)


X = np.array([0.3, -0.7, 0.9])
Y = np.array([-0.2, 0.5, 0.4])
quickly = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def program_of(machine: Any, program: Program) -> Any:
    return lambda x, y: [run(machine, program, [x, y])]


@pytest.mark.usefixtures("x64")
@quickly
@given(programs(2))
def test_values(program: Program) -> None:
    (want,) = program_of(Plain(), program)(X, Y)
    for static in (True, False):
        f = program_of(Staged(static), program)
        np.testing.assert_allclose(f(X, Y)[0], want, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(perspex.jit(f)(X, Y)[0], want, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("x64")
@quickly
@given(programs(2))
def test_derivatives(program: Program) -> None:
    f = program_of(Staged(True), program)
    checks.check_forward(f, [X, Y], tol=1e-6)
    checks.check_reverse(f, [X, Y])
    checks.check_forward(program_of(Staged(False), program), [X, Y], tol=1e-6)


@pytest.mark.usefixtures("x64")
@quickly
@given(programs(2))
def test_batches(program: Program) -> None:
    xs = np.stack([X, -X, X * 0.5, Y])
    for static in (True, False):
        f = program_of(Staged(static), program)
        want = np.stack([program_of(Plain(), program)(x, Y)[0] for x in xs])
        (got,) = checks.mapped(f, 4, [xs, Y], [0, None])
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("x64")
@settings(quickly, max_examples=5)
@given(programs(1))
def test_compositions(program: Program) -> None:
    f = program_of(Staged(True), program)

    def pulled(x: Any, y: Any) -> list[Any]:
        outs, back = checks.pullback(f, [x, y])
        found = back(pnp.sin(outs[0]))
        return [x * 0.0 if ct is None else ct for ct in found]

    def pushed(x: Any, y: Any) -> list[Any]:
        (t,) = checks.forward(f, [x, y], [y, x])
        return [x * 0.0 if t is None else t]

    # Forward over reverse, reverse over reverse, reverse over forward.
    checks.check_forward(pulled, [X, Y], tol=1e-5)
    checks.check_reverse(pulled, [X, Y], tol=1e-10)
    checks.check_reverse(pushed, [X, Y], tol=1e-10)
    # Batches of derivatives, and derivatives of batches.
    xs = np.stack([X, -X, Y])
    for g in (pulled, pushed):
        got = checks.mapped(perspex.jit(g), 3, [xs, Y], [0, None])
        for i, x in enumerate(xs):
            for have, want in zip(got, g(x, Y), strict=True):
                np.testing.assert_allclose(have[i], want, rtol=1e-10, atol=1e-12)

    def many(xs: Any, y: Any) -> list[Any]:
        outs, axes = batch(f, 3, [xs, y], [0, None])
        return [
            perspex.ops.structural.to_front(out, at, 3) for out, at in zip(outs, axes, strict=True)
        ]

    checks.check_forward(many, [xs, Y], tol=1e-6)
    checks.check_reverse(many, [xs, Y])

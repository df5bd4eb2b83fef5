"""Random programs of five to thirty operations, loops and branches nested in them.

Each is run by an interpreter in NumPy, eagerly, compiled, and mapped over a batch, which must all
agree; its derivative must be what central differences of the NumPy interpreter give. Fixed
seeds give the same programs in every run, 500 of them in `make test-all`. `make soak` draws
20,000 new ones each time. `PERSPEX_PROGRAMS` sets the number.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import perspex
from perspex import config, lax
from perspex import numpy as pnp
from perspex.base.xla import jaxlib_version

WANTED = int(os.environ.get("PERSPEX_PROGRAMS", "100"))
# More than these are drawn from a random seed.
MOST_FIXED = 2000
# By size, and each group in parts, so that the processes which run tests have equal shares.
GROUPS, PARTS = 5, 4
SIZE, LANES, STEP = 3, 3, 1e-5

MATRICES = [m / np.linalg.norm(m, 2) for m in np.random.default_rng(5).normal(size=(4, SIZE, SIZE))]


def softplus(xp: Any, x: Any) -> Any:
    return xp.log1p(xp.exp(-abs(x))) + xp.maximum(x, 0.0)


# Functions of vectors whose results are about as large as what they are given.
UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "sin": lambda xp, x: xp.sin(x),
    "cos": lambda xp, x: xp.cos(x + 0.3),
    "tanh": lambda xp, x: xp.tanh(x),
    "bell": lambda xp, x: xp.exp(-(x**2)),
    "fraction": lambda xp, x: x / (1 + x**2),
    "arctan": lambda xp, x: xp.arctan(x) * 0.9,
    "softplus": softplus,
    "root": lambda xp, x: xp.sqrt(1 + x**2) - 1,
    "log": lambda xp, x: xp.log(2 + xp.sin(x)),
    "cube": lambda xp, x: xp.tanh(x) ** 3,
    "relu": lambda xp, x: xp.maximum(x, 0.1) - 0.05,
    "clip": lambda xp, x: xp.clip(x, -1.3, 0.7),
    "abs": lambda xp, x: abs(x - 0.2),
    "where": lambda xp, x: xp.where(x > 0.15, x, 0.5 * x + 0.075),
    "cumsum": lambda xp, x: 0.4 * xp.cumsum(x),
    "flip": lambda xp, x: x[::-1],
    "roll": lambda xp, x: xp.roll(x, 1),
    "sort": lambda xp, x: xp.sort(x),
    "sum": lambda xp, x: x + 0.2 * xp.sum(x),
    "mean": lambda xp, x: x - xp.mean(x),
    "norm": lambda xp, x: x / xp.sqrt(1 + xp.sum(x * x)),
    "softmax": lambda xp, x: xp.exp(x) / xp.sum(xp.exp(x)),
    "outer": lambda xp, x: (x[:, None] * x[None, :] / (1 + x**2)).sum(0) * 0.5,
    "join": lambda xp, x: xp.concatenate([x[1:], x[:1] * 0.7]),
    "take": lambda xp, x: x[np.array([2, 0, 0])] * 0.8,
    "stack": lambda xp, x: xp.stack([x, 0.5 * x]).prod(axis=0),
    "reshape": lambda xp, x: xp.reshape(x, (1, SIZE, 1)).transpose(2, 1, 0)[0, :, 0],
}
# XLA of jaxlib 0.10 may compute the operand of a maximum twice and round it otherwise the second
# time. No element equals the maximum then, and the derivative is 0 / 0: jax 0.10 has the same on
# the same programs, and neither has it with jaxlib 0.12.
if jaxlib_version >= (0, 12):
    UNARY["max"] = lambda xp, x: 0.5 * xp.stack([x, 0.5 * x]).max(axis=0) + 0.3 * xp.max(x)
BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda xp, x, y: 0.6 * (x + y),
    "sub": lambda xp, x, y: 0.6 * (x - y),
    "mul": lambda xp, x, y: xp.sin(x) * y,
    "div": lambda xp, x, y: x / (1.5 + xp.cos(y)),
    "atan2": lambda xp, x, y: xp.arctan2(x, 1.1 + y**2),
    "maximum": lambda xp, x, y: xp.maximum(x, y),
    "hypot": lambda xp, x, y: xp.sqrt(0.1 + x**2 + y**2) * 0.7,
    "dot": lambda xp, x, y: 0.4 * xp.dot(x, y) + 0.5 * x,
    "power": lambda xp, x, y: (1.2 + xp.sin(x)) ** xp.tanh(y),
    "logaddexp": lambda xp, x, y: xp.logaddexp(x, y) * 0.5,
}
BODIES = {"cond": 2, "switch": 3}
NESTED = ("scan", "fori", "while", "cond", "switch", "map", "vmap", "jit", "checkpoint")


@dataclass(frozen=True)
class Step:
    """One operation on values made before, given by their numbers."""

    kind: str
    name: str = ""
    operands: tuple[int, ...] = ()
    bodies: tuple[Program, ...] = ()
    number: int = 0


@dataclass(frozen=True)
class Program:
    """Steps on two vectors; the result is the mean of the last two values."""

    steps: tuple[Step, ...]

    def kinds(self) -> set[str]:
        found = {step.kind for step in self.steps}
        return found.union(*[body.kinds() for step in self.steps for body in step.bodies])

    def __call__(self, run: Callable[[Step, list[Any]], Any], x: Any, y: Any) -> Any:
        values = [x, y]
        for step in self.steps:
            values.append(run(step, [values[i] for i in step.operands]))
        return 0.5 * (values[-1] + values[-2])


@st.composite
def program(draw: Any, size: int, depth: int) -> Program:
    """A program of `size` operations, those of its bodies included, nested `depth` deep."""
    steps: list[Step] = []
    while size > 0:
        i = len(steps)
        operand = st.integers(max(0, i - 4), i + 1)
        simple = ["unary"] * 4 + ["binary"] * 3 + ["matrix"]
        nested = [k for k in NESTED if BODIES.get(k, 1) < size] if depth else []
        kind = draw(st.sampled_from(simple + nested))
        size -= 1
        bodies: tuple[Program, ...] = ()
        name = ""
        if kind == "unary":
            name = draw(st.sampled_from(sorted(UNARY)))
        elif kind == "binary":
            name = draw(st.sampled_from(sorted(BINARY)))
        elif kind != "matrix":
            count = BODIES.get(kind, 1)
            sizes = [draw(st.integers(1, max(1, min(4, size // count)))) for _ in range(count)]
            size -= sum(sizes)
            bodies = tuple([draw(program(n, depth - 1)) for n in sizes])
        steps.append(
            Step(kind, name, (draw(operand), draw(operand)), bodies, draw(st.integers(0, 3)))
        )
    return Program(tuple(steps))


def numpy_step(step: Step, operands: list[Any]) -> Any:
    """The meaning of a step, in Python and NumPy."""
    x, y = operands
    if step.kind == "unary":
        return UNARY[step.name](np, x)
    if step.kind == "binary":
        return BINARY[step.name](np, x, y)
    if step.kind == "matrix":
        return MATRICES[step.number] @ x
    bodies = [lambda a, b, body=body: body(numpy_step, a, b) for body in step.bodies]
    if step.kind == "scan":
        total = np.zeros(SIZE)
        order = range(step.number + 1)
        for k in reversed(order) if step.number % 2 else order:
            x = bodies[0](x, y * (0.3 + 0.2 * k))
            total = total + x
        return 0.5 * x + 0.2 * total
    if step.kind == "fori":
        for k in range(step.number):
            x = bodies[0](x, y + 0.1 * k)
        return x
    if step.kind == "while":
        k = 0
        while k < step.number and np.sum(x) < 5.0:
            x, k = bodies[0](x, y), k + 1
        return x
    if step.kind == "cond":
        return bodies[0 if np.sum(x) > 0.35 else 1](x, y)
    if step.kind == "switch":
        return bodies[int(np.clip(np.floor(x[0] * 2), 0, 2))](x, y)
    if step.kind in ("map", "vmap"):
        return sum(bodies[0](row, y) for row in (x, 0.5 * x)) * 0.5
    return bodies[0](x, y)


def array_step(step: Step, operands: list[Any]) -> Any:
    """The same with our functions, and loops and branches that are traced."""
    x, y = operands
    if step.kind == "unary":
        return UNARY[step.name](pnp, x)
    if step.kind == "binary":
        return BINARY[step.name](pnp, x, y)
    if step.kind == "matrix":
        return MATRICES[step.number] @ x
    bodies = [lambda a, b, body=body: body(array_step, a, b) for body in step.bodies]
    body = bodies[0]
    if step.kind == "scan":
        scales = 0.3 + 0.2 * np.arange(step.number + 1.0)

        def one(carry: Any, scale: Any) -> Any:
            carry = body(carry, y * scale)
            return carry, carry

        x, ys = lax.scan(one, x, scales, reverse=bool(step.number % 2))
        return 0.5 * x + 0.2 * ys.sum(0)
    if step.kind == "fori":
        return lax.fori_loop(0, step.number, lambda k, x: body(x, y + 0.1 * k), x)
    if step.kind == "while":
        return lax.while_loop(
            lambda c: (c[0] < step.number) & (pnp.sum(c[1]) < 5.0),
            lambda c: (c[0] + 1, body(c[1], y)),
            (0, x),
        )[1]
    if step.kind == "cond":
        return lax.cond(pnp.sum(x) > 0.35, bodies[0], bodies[1], x, y)
    if step.kind == "switch":
        which = pnp.clip(pnp.floor(x[0] * 2), 0, 2).astype(int)
        return lax.switch(which, bodies, x, y)
    if step.kind == "map":
        return lax.map(lambda row: body(row, y), pnp.stack([x, 0.5 * x])).sum(0) * 0.5
    if step.kind == "vmap":
        return perspex.vmap(body, (0, None))(pnp.stack([x, 0.5 * x]), y).sum(0) * 0.5
    return {"jit": perspex.jit, "checkpoint": perspex.checkpoint}[step.kind](body)(x, y)


def check(drawn: Program) -> None:
    rng = np.random.default_rng(len(drawn.steps))
    points, directions = rng.normal(size=(2, LANES, 2, SIZE))
    weights = rng.normal(size=SIZE)

    def f(x: Any, y: Any) -> Any:
        return drawn(array_step, x, y)

    def scalar(x: Any, y: Any) -> Any:
        return weights @ f(x, y)

    reverse = "while" not in drawn.kinds()

    def slope(x: Any, y: Any, tx: Any, ty: Any) -> Any:
        if not reverse:  # a loop of unknown length has only forward mode
            return perspex.jvp(scalar, (x, y), (tx, ty))[1]
        gx, gy = perspex.grad(scalar, (0, 1))(x, y)
        return gx @ tx + gy @ ty

    def everything(points: Any, directions: Any) -> Any:
        x, y, tx, ty = *points[0], *directions[0]
        many = perspex.vmap(f)(points[:, 0], points[:, 1])
        slopes = perspex.vmap(slope)(points[:, 0], points[:, 1], directions[:, 0], directions[:, 1])
        return f(x, y), many, slope(x, y, tx, ty), slopes

    def truth(lane: int, step: float = 0.0) -> Any:
        return drawn(numpy_step, *(points[lane] + step * directions[lane]))

    whole = perspex.jit(everything)
    value, values, change, changes = whole(points, directions)
    wanted = np.stack([truth(lane) for lane in range(LANES)])
    close = np.testing.assert_allclose
    close(value, wanted[0], rtol=0, atol=1e-11, err_msg="compiled")
    close(values, wanted, rtol=0, atol=1e-11, err_msg="mapped")
    with perspex.disable_jit():  # every operation by itself; loops and branches in Python
        close(f(*points[0]), wanted[0], rtol=0, atol=1e-11, err_msg="eager")
    close(change, changes[0], rtol=1e-9, atol=1e-9, err_msg="derivative, mapped derivative")
    for lane in range(LANES):
        steps = [STEP, STEP / 8]
        differences = [weights @ (truth(lane, h) - truth(lane, -h)) / (2 * h) for h in steps]
        if abs(differences[0] - differences[1]) > 1e-5 * max(1, abs(differences[1])):
            continue  # a kink or a jump lies between the points
        size = max(1.0, abs(differences[0]))
        close(changes[lane], differences[0], rtol=0, atol=2e-6 * size, err_msg="derivative")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("group", range(GROUPS))
def test_random_programs(group: int, part: int) -> None:
    @settings(
        max_examples=WANTED // (GROUPS * PARTS),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(5 + 5 * group, 10 + 5 * group).flatmap(lambda n: program(n, 2)))
    def each(drawn: Program) -> None:
        with config.enable_x64(True):
            check(drawn)

    if WANTED <= MOST_FIXED:
        each = seed(PARTS * group + part)(each)
    each()

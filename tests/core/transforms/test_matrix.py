"""Every differentiable operation under every transform, against differences and loops in NumPy.

The operations are the records of `tests/core/ops`; a record has a NumPy reference, and all expected
numbers come from that: derivatives are central differences of it in double precision, batches are
loops over it. One compiled program per operation and dtype holds the whole row of the matrix: jvp,
jvp of jvp, the Taylor series, vjp, jvp of vjp, vjp of vjp, vmap, vmap of grad, grad of vmap, and
function and gradient inside `scan`, inside `cond` and under `checkpoint`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.harness import Case, Op, dtype_named, has_rule, is_inexact, many, tangent_of, wide

import perspex
from core import ops
from perspex import config, lax
from perspex import numpy as pnp
from perspex.transforms.taylor import taylor

LANES = 3
STEP, SECOND_STEP = 1e-5, 2e-4
# Of the size of the result: what differences leave in double precision, and single precision has.
FIRST = {"float64": 1e-6, "float32": 2e-3, "complex64": 2e-3}
SECOND = {"float64": 2e-4, "float32": 2e-2, "complex64": 2e-2}
# Where the reference is itself a difference, with its own error: how much more is allowed.
ROUGH = {"random_gamma_grad": 100, "igamma_grad_a": 100}
DTYPES = {"float32": "float64", "float64": "float64", "complex64": "complex128"}


def records() -> list[Op]:
    """The records of all files in `tests/core/ops`."""
    found: dict[int, Op] = {}
    for info in pkgutil.iter_modules(ops.__path__):
        if info.name.startswith("test_"):
            for value in vars(importlib.import_module(f"core.ops.{info.name}")).values():
                if isinstance(value, list):
                    found |= {id(item): item for item in value if isinstance(item, Op)}
    return list(found.values())


def rows() -> list[Case]:
    """One sample of each differentiable record, at each dtype that the record takes."""
    found = []
    for op in records():
        if not has_rule(op, "jvp"):
            continue
        for dtype, double in DTYPES.items():
            if dtype in op.dtypes and double in op.smooth_dtypes():
                cases = [Case(op, s, dtype) for s in op.samples]
                found += [case for case in cases if case.differentiable() and has_slope(case)][:1]
    return found


def has_slope(case: Case) -> bool:
    """Whether a result is of a dtype that has derivatives."""
    with config.enable_x64(True):
        avals = [perspex.ShapeDtypeStruct(x.shape, x.dtype) for x in case.operands]
        outs = perspex.eval_shape(
            lambda *xs: many(case.op.primitive(*xs, **case.sample.params)), *avals
        )
    return any(is_inexact(y.dtype) for y in outs)


class Row(NamedTuple):
    """An operation as a function of its differentiable operands, with points and directions."""

    case: Case
    active: list[int]
    lanes: list[list[np.ndarray]]  # operands of each example; those that are not active are shared
    directions: list[np.ndarray]
    weights: list[np.ndarray | None]

    def full(self, xs: Sequence[Any], lane: int) -> list[Any]:
        operands: list[Any] = list(self.lanes[lane])
        for i, x in zip(self.active, xs, strict=True):
            operands[i] = x
        return operands

    def __call__(self, *xs: Any) -> list[Any]:
        """The inexact results."""
        outs = many(self.case.op.primitive(*self.full(xs, 0), **self.case.sample.params))
        return [y for y, w in zip(outs, self.weights, strict=True) if w is not None]

    def scalar(self, *xs: Any) -> Any:
        """A real number with all results in it."""
        weights = [w for w in self.weights if w is not None]
        terms = [pnp.sum(y * w.astype(y.dtype)) for y, w in zip(self(*xs), weights, strict=True)]
        total = sum(terms[1:], terms[0])
        return total.real if pnp.iscomplexobj(total) else total

    def reference(self, lane: int, step: float = 0.0) -> list[np.ndarray]:
        """The same by NumPy in double precision, `step` along the directions."""
        xs = [
            wide(self.lanes[lane][i]) + step * wide(t)
            for i, t in zip(self.active, self.directions, strict=True)
        ]
        operands = [wide(x) for x in self.full(xs, lane)]
        with np.errstate(all="ignore"):
            outs = many(self.case.op.reference(*operands, **self.case.sample.params))
        return [
            wide(np.asarray(y)) for y, w in zip(outs, self.weights, strict=True) if w is not None
        ]

    def first(self, lane: int) -> list[np.ndarray]:
        plus, minus = self.reference(lane, STEP), self.reference(lane, -STEP)
        return [(p - m) / (2 * STEP) for p, m in zip(plus, minus, strict=True)]

    def second(self, lane: int) -> list[np.ndarray]:
        h = SECOND_STEP
        points = [self.reference(lane, k * h) for k in (-1, 0, 1)]
        return [(m - 2 * y + p) / h**2 for m, y, p in zip(*points, strict=True)]

    def weighted(self, values: Sequence[np.ndarray]) -> float:
        weights = [w for w in self.weights if w is not None]
        return float(sum(np.sum(wide(w) * y).real for w, y in zip(weights, values, strict=True)))


def row(case: Case) -> Row:
    rng = np.random.default_rng(23)
    active = case.differentiable()
    base = case.operands
    lanes = [base]
    for _ in range(LANES - 1):
        drawn = [draw(rng, dtype_named(case.dtype)) for draw in case.sample.operands]
        lanes.append([drawn[i] if i in active else x for i, x in enumerate(base)])
    directions = [tangent_of(base[i], rng) for i in active]
    outs = many(case.op.primitive(*base, **case.sample.params))
    weights = [tangent_of(np.asarray(y), rng) if is_inexact(y.dtype) else None for y in outs]
    return Row(case, active, lanes, directions, weights)


def along(gradient: Sequence[Any], directions: Sequence[Any]) -> Any:
    """The change of a real function along the directions, from its gradient."""
    total = sum(pnp.sum(g * t) for g, t in zip(gradient, directions, strict=True))
    return pnp.real(total)


def matrix(f: Row, xs: list[Any], batch: list[Any]) -> dict[str, Any]:
    """The whole row, to be traced as one program. Gradients are contracted with the directions."""
    ts = [pnp.asarray(t) for t in f.directions]
    spread = [pnp.broadcast_to(t, (LANES, *t.shape)) for t in ts]
    places = tuple(range(len(xs)))
    gradient = perspex.grad(f.scalar, places)

    def slope(*xs: Any) -> Any:
        return perspex.jvp(f, tuple(xs), tuple(ts))[1]

    def descent(*xs: Any) -> Any:
        return along(gradient(*xs), ts)

    def choose(g: Any) -> Any:
        positive = pnp.sum(abs(xs[0])) >= 0  # always, which the compiler does not know
        return lambda *xs: lax.cond(positive, g, lambda *xs: pnp.zeros_like(g(*xs)), *xs)

    def loop(g: Any) -> Any:
        def total(*batch: Any) -> Any:
            def step(carry: Any, xs: Any) -> Any:
                return carry + g(*xs), None

            return lax.scan(step, pnp.zeros((), f.scalar(*xs).dtype), batch)[0]

        return total

    def mapped_sum(*batch: Any) -> Any:
        return pnp.sum(perspex.vmap(f.scalar)(*batch))

    return {
        "jvp of jvp": perspex.jvp(slope, tuple(xs), tuple(ts))[1],
        "jvp of grad": perspex.jvp(descent, tuple(xs), tuple(ts))[1],
        "grad of grad": along(perspex.grad(descent, places)(*xs), ts),
        "taylor": taylor(f, xs, [[t, None] for t in ts], 2)[1],
        "jvp": slope(*xs),
        "grad": along(gradient(*xs), ts),
        "vmap": perspex.vmap(f)(*batch),
        "vmap of jvp": perspex.vmap(slope)(*batch),
        "vmap of grad": perspex.vmap(lambda *xs: along(gradient(*xs), ts))(*batch),
        "grad of vmap": along(perspex.grad(mapped_sum, places)(*batch), spread),
        "grad of scan": along(perspex.grad(loop(f.scalar), places)(*batch), spread),
        "scan of grad": loop(descent)(*batch),
        "grad of cond": along(perspex.grad(choose(f.scalar), places)(*xs), ts),
        "cond of grad": choose(descent)(*xs),
        "grad of checkpoint": along(perspex.grad(perspex.checkpoint(f.scalar), places)(*xs), ts),
        "grad of jit": along(perspex.grad(perspex.jit(f.scalar), places)(*xs), ts),
    }


def assert_near(found: Any, wanted: Any, tolerance: float, what: str) -> None:
    found, wanted = wide(np.asarray(found)), np.asarray(wanted)
    size = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * size, err_msg=what)


@pytest.mark.parametrize("case", rows(), ids=str)
def test_every_transform_of_every_operation(case: Case) -> None:
    with config.enable_x64(True):
        f = row(case)
        xs = [f.lanes[0][i] for i in f.active]
        batch = [np.stack([lane[i] for lane in f.lanes]) for i in f.active]
        found = perspex.jit(lambda xs, batch: matrix(f, xs, batch))(xs, batch)
    rough = ROUGH.get(str(case.op), 1)
    first, second = rough * FIRST[case.dtype], rough * SECOND[case.dtype]
    slopes = [f.first(lane) for lane in range(LANES)]
    descents = [f.weighted(s) for s in slopes]
    curves = f.second(0)
    # What cancels in a sum of many terms is lost: errors are relative to the terms.
    scale = max(1.0, *[float(np.abs(s).sum()) for lane in slopes for s in lane])
    bend = max(1.0, scale, *[float(np.abs(c).sum()) for c in curves])
    for k, (slope, curve) in enumerate(zip(slopes[0], curves, strict=True)):
        assert_near(found["jvp"][k], slope, first, "jvp")
        assert_near(found["jvp of jvp"][k], curve, second * bend, "jvp of jvp")
        terms = found["taylor"][k] or [np.zeros_like(slope)] * 2
        assert_near(terms[0], slope, first, "taylor, order 1")
        assert_near(2 * terms[1], curve, second * bend, "taylor, order 2")
        values = np.stack([f.reference(lane)[k] for lane in range(LANES)])
        assert_near(found["vmap"][k], values, first, "vmap")
        many_slopes = np.stack([s[k] for s in slopes])
        assert_near(found["vmap of jvp"][k], many_slopes, first, "vmap of jvp")
    for name in ("grad", "grad of cond", "cond of grad", "grad of checkpoint", "grad of jit"):
        assert_near(found[name], descents[0], first * scale, name)
    for name in ("grad of vmap", "grad of scan", "scan of grad"):
        assert_near(found[name], sum(descents), LANES * first * scale, name)
    assert_near(found["vmap of grad"], descents, first * scale, "vmap of grad")
    for name in ("jvp of grad", "grad of grad"):
        assert_near(found[name], f.weighted(curves), second * bend, name)


def test_the_matrix_has_all_records_with_a_derivative() -> None:
    listed = {str(case.op) for case in rows()}
    missing = [
        str(op)
        for op in records()
        if has_rule(op, "jvp")
        and any(has_slope(Case(op, s, d)) for s in op.samples for d in op.smooth_dtypes())
        and str(op) not in listed
    ]
    assert not missing

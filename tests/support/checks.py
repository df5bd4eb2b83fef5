"""Derivatives and batches of a flat function, checked against what they mean.

A flat function takes arrays and returns a list of arrays. Forward mode is compared with central
differences, reverse mode with forward mode by `<ct, J t> = <J^T ct, t>`, batching with a Python
loop; each of them eagerly and compiled. Everything in float64, unless a check says otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import perspex
from perspex import config
from perspex.ir.avals import shaped
from perspex.ir.jaxpr import check
from perspex.tracing.primitive import Linear
from perspex.transforms.jvp import is_differentiable, jvp
from perspex.transforms.linearize import linearize
from perspex.transforms.transpose import backward_pass
from perspex.transforms.vmap import batch

Flat = Callable[..., Sequence[Any]]


@pytest.fixture
def x64() -> Iterator[None]:
    """64-bit types, so that finite differences are worth comparing with."""
    with config.enable_x64(True):
        yield


# ---- The transforms as functions of flat functions --------------------------------------------


def forward(f: Flat, args: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Tangents of the results; `None` for a zero one."""
    return jvp(f, args, tangents)[1]


def pullback(f: Flat, args: Sequence[Any]) -> tuple[list[Any], Callable[..., list[Any]]]:
    """Results of `f`, and the function from their cotangents to those of the arguments."""
    wanted = [is_differentiable(shaped(x)) for x in args]
    point = linearize(f, args, wanted)

    def back(*cts: Any) -> list[Any]:
        given = [ct for ct, nonzero in zip(cts, point.nonzero, strict=True) if nonzero]
        linear = [Linear(v.aval) for v in point.jaxpr.invars]
        found = iter(backward_pass(point.jaxpr, point.residuals, linear, given))
        return [next(found) if want else None for want in wanted]

    return point.outs, back


def grad(f: Callable[..., Any], which: int = 0) -> Callable[..., Any]:
    """The gradient of a scalar function of arrays."""

    def gradient(*args: Any) -> Any:
        outs, back = pullback(lambda *xs: [f(*xs)], args)
        found = back(np.ones((), outs[0].dtype))[which]
        return np.zeros_like(args[which]) if found is None else found

    return gradient


def mapped(f: Flat, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> list[Any]:
    """Results of `f` on each example, the examples in front."""
    outs, places = batch(f, size, args, axes)
    return [
        np.moveaxis(np.asarray(y), at, 0) if at is not None else np.stack([np.asarray(y)] * size)
        for y, at in zip(outs, places, strict=True)
    ]


# ---- The checks ---------------------------------------------------------------------------------


def dot(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """The sum of products over all pairs of arrays; `None` counts as zero."""
    return sum(
        float((np.asarray(x, np.float64) * np.asarray(y, np.float64)).sum())
        for x, y in zip(xs, ys, strict=True)
        if x is not None and y is not None
    )


def directions(args: Sequence[Any], seed: int = 0) -> list[Any]:
    """A random tangent for each argument that can have one."""
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=np.shape(x)).astype(np.asarray(x).dtype)
        if is_differentiable(shaped(x))
        else None
        for x in args
    ]


def compiled(f: Flat) -> Flat:
    """`f` traced, checked for well-formedness, and compiled as one program."""

    def run(*args: Any) -> list[Any]:
        check(perspex.make_jaxpr(f)(*args).jaxpr)
        return perspex.jit(f)(*args)

    return run


def check_forward(f: Flat, args: Sequence[Any], tol: float = 2e-7, step: float = 1e-5) -> None:
    """Tangents against central differences."""
    ts = directions(args)
    moved = [
        f(
            *[
                x if t is None else np.asarray(x) + sign * step * t
                for x, t in zip(args, ts, strict=1)
            ]
        )
        for sign in (1, -1)
    ]
    for kind in (lambda g: g, compiled):
        # A compiled function returns arrays: zero tangents are left out of what is compared.
        found = forward(f, args, ts)
        mask = [t is not None for t in found]

        def tangents(*xs: Any, mask: Sequence[bool] = mask) -> list[Any]:
            given = forward(f, xs[: len(args)], xs[len(args) :])
            return list(itertools.compress(given, mask))

        both = [*args, *ts]
        if any(t is None for t in ts):
            continue
        got = iter(kind(tangents)(*both))
        for nonzero, plus, minus in zip(mask, *moved, strict=True):
            want = (np.asarray(plus, np.float64) - np.asarray(minus, np.float64)) / (2 * step)
            have = np.asarray(next(got)) if nonzero else np.zeros_like(want)
            np.testing.assert_allclose(have, want, rtol=tol, atol=tol)


def check_reverse(f: Flat, args: Sequence[Any], tol: float = 1e-12) -> None:
    """Cotangents against tangents, by the adjoint identity, eagerly and compiled."""
    ts = directions(args, 1)
    outs, back = pullback(f, args)
    cts = [np.ones_like(y) if c is None else c for y, c in zip(outs, directions(outs, 2), strict=1)]
    lhs = dot(cts, forward(f, args, ts))
    found = back(*cts)
    np.testing.assert_allclose(dot(found, ts), lhs, rtol=tol, atol=tol)
    present = [ct is not None for ct in found]

    def cotangents(*xs: Any) -> list[Any]:
        given = pullback(f, xs[: len(args)])[1](*xs[len(args) :])
        return list(itertools.compress(given, present))

    again = compiled(cotangents)(*args, *cts)
    np.testing.assert_allclose(dot(again, itertools.compress(ts, present)), lhs, rtol=tol, atol=tol)


def check_second(f: Flat, args: Sequence[Any], tol: float = 1e-6) -> None:
    """The derivative of the gradient of `sum(f)`, forward over reverse, against differences."""

    def gradient(*xs: Any) -> list[Any]:
        outs, back = pullback(f, xs)
        found = back(*[np.ones(y.shape, y.dtype) for y in outs])
        return [
            np.zeros(np.shape(x), np.asarray(x).dtype) if ct is None else ct
            for ct, x in zip(found, args, strict=True)
        ]

    check_forward(gradient, args, tol=tol)
    check_reverse(gradient, args, tol=1e-10)


def check_derivatives(f: Flat, args: Sequence[Any]) -> None:
    """First and second derivatives in both modes."""
    check_forward(f, args)
    check_reverse(f, args)
    check_second(f, args)


def check_batches(f: Flat, args: Sequence[Any], size: int = 3, tol: float = 1e-12) -> None:
    """Every choice of batched arguments against a loop, with the batch axis first and last."""
    rng = np.random.default_rng(7)
    batches = [
        np.stack([np.asarray(x) * (1 + 0.1 * rng.normal()) for _ in range(size)])
        if np.asarray(x).dtype.kind in "fc"
        else np.stack([np.asarray(x)] * size)
        for x in args
    ]
    for choice in itertools.product([False, True], repeat=len(args)):
        if not any(choice):
            continue
        for last in (False, True):
            axes = [np.ndim(x) if last else 0 for x in args]
            given = [
                np.moveaxis(many, 0, at) if own else np.asarray(one)
                for own, many, one, at in zip(choice, batches, args, axes, strict=True)
            ]
            places = [at if own else None for own, at in zip(choice, axes, strict=True)]
            got = mapped(f, size, given, places)
            for i in range(size):
                picked = [
                    many[i] if own else one
                    for own, many, one in zip(choice, batches, args, strict=True)
                ]
                for have, want in zip(got, f(*picked), strict=True):
                    np.testing.assert_allclose(have[i], want, rtol=tol, atol=tol)

"""Forward mode: symbolic zeros, nesting, what Python may do with a dual number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import checks

import perspex
from perspex import errors, make_jaxpr
from perspex import numpy as pnp
from perspex.ir.jaxpr import ClosedJaxpr, check
from perspex.transforms.jvp import JvpTracer, jvp, jvp_jaxpr

X = np.float32(0.5)


def test_values_without_tangent_are_not_wrapped() -> None:
    seen = []

    def f(x: Any, y: Any) -> list[Any]:
        seen.extend([x, y, y * 2, x > 0, x * y])
        return [x * y]

    outs, tangents = jvp(f, [X, X], [X, None])
    assert [isinstance(v, JvpTracer) for v in seen] == [True, False, False, False, True]
    assert float(outs[0]) == 0.25 and float(tangents[0]) == 0.25


def test_zero_tangents_are_none() -> None:
    f = lambda x, y: [x, y, x > 1, pnp.floor(x), 3.0]  # noqa: E731
    assert [t is None for t in jvp(f, [X, X], [X, None])[1]] == [False, True, True, True, True]


def test_python_may_branch_on_concrete_primals() -> None:
    f = lambda x: [x * 2 if x > 0 else -x]  # noqa: E731
    assert [float(jvp(f, [np.float32(v)], [X])[1][0]) for v in (2.0, -2.0)] == [1.0, -0.5]
    g = lambda x: [x * int(x) if x else x]  # noqa: E731
    assert float(jvp(g, [np.float32(3)], [np.float32(1)])[1][0]) == 3.0
    with pytest.raises(errors.ConcretizationTypeError):
        jvp(lambda x: [float(x) * x], [X], [X])
    with pytest.raises(errors.TracerArrayConversionError):
        jvp(lambda x: [np.sin(x)], [X], [X])


def test_under_jit_python_may_not() -> None:
    f = lambda x: jvp(lambda x: [x if x > 0 else -x], [x], [x])[1]  # noqa: E731
    with pytest.raises(errors.TracerBoolConversionError, match="It was made by `gt` at"):
        perspex.jit(f)(X)


@pytest.mark.usefixtures("x64")
def test_nested() -> None:
    def nth(n: int) -> Any:
        if n == 0:
            return lambda x: [pnp.sin(x) * x]
        return lambda x: jvp(nth(n - 1), [x], [1.0])[1]

    x = 0.7
    want = [
        x * np.sin(x),
        np.sin(x) + x * np.cos(x),
        2 * np.cos(x) - x * np.sin(x),
        -3 * np.sin(x) - x * np.cos(x),
    ]
    for n in range(4):
        np.testing.assert_allclose(nth(n)(x)[0], want[n], rtol=1e-14)
        np.testing.assert_allclose(perspex.jit(nth(n))(x)[0], want[n], rtol=1e-14)


def test_no_confusion_of_perturbations() -> None:
    # d/dx (x * d/dy (x + y)) = 1: the inner derivative is 1 and does not depend on x.
    def f(x: Any) -> list[Any]:
        (inner,) = jvp(lambda y: [x + y], [np.float32(1)], [np.float32(1)])[1]
        return [x * inner]

    assert float(jvp(f, [X], [np.float32(1)])[1][0]) == 1.0
    # d/dx (x * d/dy (x * y)) = 2x.
    g = lambda x: [x * jvp(lambda y: [x * y], [np.float32(1)], [np.float32(1)])[1][0]]  # noqa: E731
    assert float(jvp(g, [X], [np.float32(1)])[1][0]) == 2 * 0.5


def test_leaked_tracers_are_found() -> None:
    kept = []
    jvp(lambda x: [kept.append(x) or x], [X], [X])
    with pytest.raises(errors.UnexpectedTracerError):
        kept[0] * 2


def test_jaxpr_form() -> None:
    def f(x: Any, y: Any, n: Any) -> Any:
        return pnp.sin(x) * y, y, n + 1

    closed = ClosedJaxpr(make_jaxpr(f)(X, X, 1).jaxpr)
    both, nonzero = jvp_jaxpr(closed, (True, False, False), False)
    assert nonzero == (True, False, False)
    assert len(both.in_avals) == 4 and len(both.out_avals) == 4
    check(both.jaxpr)
    assert jvp_jaxpr(closed, (True, False, False), False)[0] is both
    filled, nonzero = jvp_jaxpr(closed, (True, False, False), (True, True, False))
    assert nonzero == (True, True, False) and len(filled.out_avals) == 5
    # Integers have no tangents, also when asked for.
    assert jvp_jaxpr(closed, (False, False, False), True)[1] == (True, True, False)


def test_tangents_are_weakly_typed_inside_programs_where_their_primals_are() -> None:
    closed = ClosedJaxpr(make_jaxpr(lambda x: pnp.sin(x) * 2.0)(1.0).jaxpr)
    both, _ = jvp_jaxpr(closed, (True,), False)
    assert [aval.weak_type for aval in both.in_avals] == [True, True]
    assert [aval.weak_type for aval in both.out_avals] == [True, True]


def test_lines_of_the_user() -> None:
    def f(x: Any) -> list[Any]:
        return [pnp.sin(x)]

    jaxpr = make_jaxpr(lambda x: jvp(f, [x], [x])[1])(X).jaxpr
    assert {eqn.source.frame.line for eqn in jaxpr.eqns} == {f.__code__.co_firstlineno + 1}


@pytest.mark.usefixtures("x64")
def test_derivatives_of_a_jitted_function() -> None:
    inner = perspex.jit(lambda x, y: (pnp.sin(x) * y, y * y, x > y))
    f = lambda x, y: list(inner(x, y)[:2])  # noqa: E731
    checks.check_derivatives(f, [np.float64(0.3), np.float64(0.5)])
    checks.check_batches(f, [np.array([0.3, 0.1]), np.array([0.5, 2.0])])

"""Taylor mode against nested forward mode, in double precision; against JAX: the oracle's `jet`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import perspex
from perspex import checkpoint, custom_jvp, custom_vjp, grad, jit, lax, make_jaxpr, nn, vmap
from perspex import numpy as pnp
from perspex.experimental.jet import jet
from perspex.scipy import special

POINT, DERIVATIVES = 0.6, [0.3, -0.7, 0.2]
MATRIX = np.array([[2.0, 0.3], [0.3, 3.0]])


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with perspex.enable_x64(True):
        yield


def matrix(x: Any) -> Any:
    return x * pnp.asarray([[1.0, 0.5], [0.5, -1.0]]) + MATRIX


@custom_jvp
def cubed(x: Any) -> Any:
    return x**3


@cubed.defjvp
def _wrong(primals: Any, tangents: Any) -> Any:
    return cubed(*primals), 7.0 * tangents[0]


@custom_vjp
def inverse(x: Any) -> Any:
    return 1 / x


inverse.defvjp(lambda x: (1 / x, None), lambda _, ct: (7.0 * ct,))

# Functions of a number to floats, most of which JAX has no rule for: loops, branches, matrices.
FUNCTIONS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "elementwise": {
        "tan": pnp.tan,
        "asin": pnp.arcsin,
        "acos": pnp.arccos,
        "atan": pnp.arctan,
        "cbrt": pnp.cbrt,
        "sinc": pnp.sinc,
        "negative power": lambda x: x**-3,
        "power": lambda x: x**x,
        "quotients": lambda x: (1 - x / 3) / (x * x) / x,
        "gammaln": special.gammaln,
        "digamma": special.digamma,
        "bessel": lambda x: special.i0e(x) * special.i1e(x),
        "ndtri": special.ndtri,
        "silu": nn.silu,
        "relu": lambda x: nn.relu(x) * x,
        "complex": lambda x: pnp.abs(pnp.exp(1j * x) + x),
    },
    "arrays": {
        "prod": lambda x: pnp.prod(pnp.stack([x, x * x, 3 * x])),
        "sort": lambda x: pnp.sort(pnp.stack([3 * x, x * x, x])),
        "cumulative": lambda x: lax.cumlogsumexp(pnp.stack([x, x * x, 3 * x])),
        "maximum": lambda x: pnp.max(pnp.stack([x, x * x, 3 * x])),
        "set": lambda x: pnp.zeros(3).at[1].set(x * x),
        "multiply": lambda x: pnp.full(3, x).at[1].mul(x * x),
        "softmax": lambda x: nn.softmax(pnp.stack([x, x * x, 2 * x])),
    },
    "matrices": {
        "cholesky": lambda x: pnp.linalg.cholesky(matrix(x)),
        "inverse": lambda x: pnp.linalg.inv(matrix(x)),
        "solve": lambda x: pnp.linalg.solve(matrix(x), pnp.stack([x, x * x])),
        "eigenvalues": lambda x: pnp.linalg.eigvalsh(matrix(x)),
        "singular values": lambda x: pnp.linalg.svd(matrix(x), compute_uv=False),
        "qr": lambda x: pnp.linalg.qr(matrix(x))[1],
        "slogdet": lambda x: pnp.linalg.slogdet(matrix(x))[1],
    },
    "control": {
        "scan": lambda x: lax.scan(lambda c, k: (pnp.sin(c) * x, c * k), x, pnp.arange(3.0)),
        "scan of another carry": lambda x: lax.scan(lambda c, k: (c + x * k, None), 0.0, MATRIX[0]),
        "while": lambda x: lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x)
        )[1],
        "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: c * pnp.cos(x), 1.0),
        "cond": lambda x: lax.cond(x > 0, pnp.sin, lambda x: 1.0, x),
        "jit": lambda x: jit(lambda x, n: (pnp.sin(x), n * x))(x, 2.0),
        "checkpoint": checkpoint(pnp.sin),
        "vmap": lambda x: vmap(lambda y: y * pnp.sin(x))(pnp.stack([x, 2 * x])),
        "grad": lambda x: grad(pnp.tanh)(x) * x,
        "grad of scan": grad(lambda x: lax.scan(lambda c, _: (pnp.sin(c), None), x, length=3)[0]),
        "linear solve": lambda x: lax.custom_linear_solve(
            lambda v: matrix(x) @ v, pnp.ones(2), lambda f, b: pnp.linalg.solve(matrix(x), b)
        ),
        "root": lambda x: lax.custom_root(
            lambda y: y**3 - x, 1.0, lambda f, _: pnp.cbrt(x), lambda g, y: y / g(1.0)
        ),
    },
}  # fmt: skip


def curve(s: Any) -> Any:
    """The number whose derivatives at 0 are `DERIVATIVES`."""
    terms = [t * s**k / math.factorial(k) for k, t in enumerate(DERIVATIVES, 1)]
    return sum(terms, POINT)


def by_forward_mode(f: Callable[[Any], Any]) -> list[Any]:
    """`f` of the curve, and its derivatives, one forward mode in another."""
    found = []
    g: Any = lambda s: f(curve(s))  # noqa: E731 - the first of several
    for _ in range(len(DERIVATIVES) + 1):
        found.append(g(0.0))
        g = functools.partial(lambda h, s: perspex.jvp(h, (s,), (1.0,))[1], g)
    return found


def by_order(value: Any, terms: Any) -> list[Any]:
    """The results of `jet` as one list for each order."""
    leaves = perspex.tree.leaves(value)
    series = perspex.tree.leaves(terms)
    order = len(series) // len(leaves)
    return [leaves, *[series[k::order] for k in range(order)]]


@pytest.mark.parametrize("group", FUNCTIONS)
def test_jet_is_nested_forward_mode(group: str) -> None:
    functions = FUNCTIONS[group]

    @jit
    def both(point: Any) -> Any:
        wanted = {name: by_forward_mode(f) for name, f in functions.items()}
        found = {name: by_order(*jet(f, (point,), (DERIVATIVES,))) for name, f in functions.items()}
        return wanted, found

    wanted, found = both(POINT)
    for name in functions:
        for k, (one, other) in enumerate(zip(wanted[name], found[name], strict=True)):
            for a, b in zip(perspex.tree.leaves(one), other, strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9, err_msg=f"{name}, order {k}")


def test_derivatives_are_those_of_formulas() -> None:
    value, terms = jet(lambda x: pnp.exp(2 * x), (0.0,), ([1.0, 0.0, 0.0, 0.0, 0.0],))
    assert value == 1 and np.allclose(terms, [2, 4, 8, 16, 32], rtol=1e-13)
    value, terms = jet(lambda x: 1 / (1 - x), (0.0,), ([1.0] + [0.0] * 4,), factorial_scaled=False)
    assert value == 1 and np.allclose(terms, 1, rtol=1e-13)


def test_rules_of_the_user_are_not_used() -> None:
    assert np.allclose(jet(cubed, (2.0,), ([1.0, 0.0],))[1], [12, 12])
    assert np.allclose(jit(lambda x: jet(cubed, (x,), ([1.0, 0.0],))[1])(2.0), [12, 12])
    assert np.allclose(jet(inverse, (2.0,), ([1.0, 0.0],))[1], [-1 / 4, 2 / 8])


def test_other_transforms_around_it() -> None:
    def third(x: Any) -> Any:
        return jet(pnp.sin, (x,), ([1.0, 0.0, 0.0],))[1][2]

    assert np.allclose(grad(third)(0.4), np.sin(0.4))
    assert np.allclose(vmap(third)(pnp.arange(3.0)), -np.cos(np.arange(3)))
    assert np.allclose(jet(third, (0.4,), ([1.0, 0.0],))[1], [np.sin(0.4), np.cos(0.4)])
    assert np.allclose(lax.map(jit(third), pnp.arange(3.0)), -np.cos(np.arange(3)))


def test_results_that_do_not_change() -> None:
    value, terms = jet(lambda x, n: {"a": x > 0, "n": n * 2, "x": x * n}, (0.5, 3), ([1.0], [9.0]))
    assert value == {"a": True, "n": 6, "x": 1.5}
    assert terms == {"a": [0.0], "n": [0.0], "x": [3.0]}
    assert jet(lambda x: x, (0.5,), ([],)) == (0.5, [])


def test_python_reads_the_value() -> None:
    assert jet(lambda x: x * x if x > 0 else -x, (3.0,), ([1.0, 0.0],)) == (9.0, [6.0, 2.0])


def count(f: Callable[[Any], Any], order: int) -> int:
    series = [1.0] + [0.5] * (order - 1)
    return len(make_jaxpr(lambda x: jet(f, (x,), (series,)))(0.5).eqns)


@pytest.mark.parametrize(
    "f",
    [pnp.exp, pnp.sin, pnp.tanh, pnp.log, lambda x: 1 / x],
    ids=["exp", "sin", "tanh", "log", "reciprocal"],
)
def test_the_work_grows_with_the_square_of_the_order(f: Callable[[Any], Any]) -> None:
    # A rule that was applied anew for each order would double it with each.
    few, many = count(f, 5), count(f, 10)
    assert many < 4.5 * few and many < 600


@pytest.mark.parametrize(
    ("f", "primitive"),
    [
        (jit(pnp.sin), "jit"),
        (checkpoint(pnp.sin), "remat2"),
        (lambda x: lax.scan(lambda c, _: (pnp.sin(c), None), x, length=5)[0], "scan"),
        (lambda x: lax.cond(x > 0, pnp.sin, pnp.cos, x), "cond"),
    ],
)
def test_programs_stay_programs(f: Callable[[Any], Any], primitive: str) -> None:
    eqns = make_jaxpr(lambda x: jet(f, (x,), ([1.0, 0.0, 0.0],)))(0.5).eqns
    assert [e.primitive.name for e in eqns].count(primitive) == 1
    assert not {"sin", "cos"} & {e.primitive.name for e in eqns}


@pytest.mark.parametrize(
    ("primals", "series", "text"),
    [
        ((1.0, 2.0), ([1.0], [1.0, 0.0]), "inconsistent lengths for different arguments"),
        ((1.0, 2.0), ([1.0],), "there are 2 arguments, with \\[1\\] terms"),
        (({"a": 1.0},), ([1.0],), "primal value at position 0 is not an array"),
        ((1.0,), ([[1.0]],), "term 0 for argument 0 is not an array"),
        ((np.ones(3),), ([np.ones(2)],), "of shape \\(3,\\), have its shape; got \\(2,\\)"),
    ],
)
def test_refused(primals: Sequence[Any], series: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        jet(lambda *xs: xs[0], primals, series)

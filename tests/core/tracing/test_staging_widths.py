"""Functions that switch 64 bits on for a part: transforms from outside keep what is inside.

What is expected is the same function of 64 bits from end to end, which the oracle holds against
jax. jax 0.12 raises for some of these programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex import lax, scipy

C = np.array([1 + 2.0**-40, 0.75])
INDEX = np.array([1, 0])

BODIES: dict[str, Callable[[Any], Any]] = {
    "literals": lambda x: x * 3 + 0.1,
    "arrays": lambda x: pnp.where(x > C, pnp.sin(x), C * x),
    "indexing": lambda x: pnp.zeros(3).at[INDEX].add(x[INDEX] * x)[:2],
    "pad": lambda x: pnp.pad(x, 1, constant_values=0.1) ** 2,
    "sort": lambda x: pnp.sort(x * C) * C,
    "clip": lambda x: pnp.clip(x, 0.1, 1.0) * x,
    "interp": lambda x: pnp.interp(x, np.arange(4.0), np.arange(4.0) ** 2),
    "integers": lambda x: x * ((x * 2**33).astype(np.int64) // 3 % 1000).astype(x.dtype),
    "random": lambda x: x * perspex.random.normal(perspex.random.key(1), (2,)),
    "scan": lambda x: lax.scan(lambda c, k: (c * k + 1, c * c), x, C)[1],
    "cond": lambda x: lax.cond(x[0] > 0.5, lambda y: y * y * C, lambda y: y / 3, x),
    "jit": perspex.jit(lambda x: pnp.sin(x * C) * 2.5),
    "checkpoint": perspex.checkpoint(lambda x: pnp.sin(x * C) * 2.5),
    "associative scan": lambda x: lax.associative_scan(lambda a, b: a * b * 1.5, x),
    "solve": lambda x: pnp.linalg.solve(np.eye(2) * 2 + 0.1, x) * x,
    "logsumexp": lambda x: scipy.special.logsumexp(x * C) * x,
}

TRANSFORMS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "eager": lambda f: f,
    "jit": perspex.jit,
    "vmap": lambda f: lambda x: perspex.jit(perspex.vmap(f))(x[None])[0],
    "jacfwd": perspex.jacfwd,
    "grad": lambda f: perspex.grad(lambda x: f(x).sum()),
    "jit of hessian": lambda f: perspex.jit(perspex.hessian(lambda x: f(x).sum())),
    "vmap of grad": lambda f: (
        lambda x: perspex.vmap(perspex.grad(lambda y: f(y).sum()))(x[None])[0]
    ),
    "grad of checkpoint": lambda f: perspex.grad(lambda x: perspex.checkpoint(f)(x).sum()),
    "grad of scan": lambda f: perspex.grad(
        lambda x: lax.scan(lambda c, y: (c + f(y).sum(), None), x[0] * 0, x[None])[0]
    ),
    "grad of cond": lambda f: perspex.grad(
        lambda x: lax.cond(x[0] > 0, lambda y: f(y).sum(), lambda y: y.sum(), x)
    ),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("body", BODIES)
def test_transforms_keep_the_width_of_a_part(body: str, transform: str) -> None:
    f = BODIES[body]

    def narrow(x: Any) -> Any:
        with perspex.enable_x64(True):
            return f(x.astype(np.float64)).astype(np.float32)

    x = np.array([0.75, 1.25], np.float32)
    found = TRANSFORMS[transform](narrow)(pnp.array(x))
    with perspex.enable_x64(True):
        expected = TRANSFORMS[transform](f)(pnp.array(x, np.float64))
    assert found.dtype == np.float32 and expected.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)

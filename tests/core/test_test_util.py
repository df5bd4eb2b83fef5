"""`jax.test_util` passes right derivatives and refuses wrong ones."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import perspex
import perspex.numpy as pnp
from perspex import test_util


def test_right_derivatives_pass() -> None:
    def f(x: Any, y: Any) -> Any:
        return {"out": pnp.sin(x["a"]) * y, "sum": pnp.sum(x["a"] ** 2)}

    with perspex.enable_x64(True):
        args = ({"a": pnp.arange(3.0)}, 0.5)
        test_util.check_grads(f, args, order=2)
        test_util.check_grads(lambda z: pnp.exp(z) * z, (0.5 + 0.25j,), order=1)


@perspex.custom_jvp
def wrong(x: Any) -> Any:
    return x**2


wrong.defjvp(lambda primals, tangents: (primals[0] ** 2, 3 * primals[0] * tangents[0]))


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_wrong_derivatives_do_not(mode: str) -> None:
    with pytest.raises(AssertionError):
        test_util.check_grads(wrong, (2.0,), order=1, modes=(mode,), eps=1e-2)


def test_one_direction_at_a_time() -> None:
    f = pnp.cos
    test_util.check_jvp(f, functools.partial(perspex.jvp, f), (0.3,), eps=1e-2)
    test_util.check_vjp(f, functools.partial(perspex.vjp, f), (0.3,), eps=1e-2)

"""Flags that look for mistakes: NaNs, infinities, leaked tracers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perspex
from perspex import jit, lax, vmap
from perspex import numpy as pnp
from perspex.errors import UnexpectedTracerError


def test_debug_nans() -> None:
    log = jit(lambda x: pnp.log(x) + 1)
    with perspex.debug_nans(True):
        for f in (pnp.log, log, jit(lambda x: log(x) * 2), perspex.value_and_grad(log)):
            with pytest.raises(
                FloatingPointError, match=r"\(nan\) encountered in log at test_invalid"
            ):
                f(-1.0)
        assert float(log(1.0)) == 1.0
        with pytest.raises(FloatingPointError, match=r"\(nan\) encountered in div"):
            _ = pnp.zeros(2) / 0.0
        with pytest.raises(FloatingPointError, match=r"\(nan\) encountered in scan"):
            lax.scan(lambda c, _: (pnp.log(c), None), -1.0, length=2)
        # Nothing invalid comes out.
        assert float(jit(lambda x: pnp.where(pnp.isnan(pnp.log(x)), 0.0, 1.0))(-1.0)) == 0.0
        assert np.isinf(pnp.log(0.0))
    assert np.isnan(log(-1.0))


def test_debug_infs() -> None:
    f = jit(lambda x: 1 / x, donate_argnums=0)
    with perspex.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\).* in div"):
        f(pnp.zeros(3))
    assert np.isinf(f(pnp.zeros(3))).all()


LEAKS: dict[str, Callable[[Any], Any]] = {
    "jit": lambda f: jit(f)(1.0),
    "vmap": lambda f: vmap(f)(pnp.arange(2.0)),
    "grad": lambda f: perspex.grad(f)(1.0),
    "jvp": lambda f: perspex.jvp(f, (1.0,), (1.0,)),
    "scan": lambda f: lax.scan(lambda c, _: (f(c), None), 1.0, length=2)[0],
}
# What they give for x * sin(x).
FOUND = {
    "jit": np.sin(1),
    "vmap": [0, np.sin(1)],
    "grad": np.sin(1) + np.cos(1),
    "jvp": [np.sin(1), np.sin(1) + np.cos(1)],
    "scan": np.sin(1) * np.sin(np.sin(1)),
}


@pytest.mark.parametrize("run", LEAKS.values(), ids=LEAKS)
def test_leaks_are_found_at_once(run: Any) -> None:
    kept: list[Any] = []

    def leaks(x: Any) -> Any:
        kept.append(x)
        return x * 2

    run(leaks)  # without the flag nothing happens before the tracer is used
    kept.clear()
    with (
        perspex.checking_leaks(),
        pytest.raises(UnexpectedTracerError, match="Leaked trace: .* still held"),
    ):
        run(leaks)


@pytest.mark.parametrize("name", LEAKS)
def test_nothing_is_found_where_nothing_leaks(name: str) -> None:
    inner = jit(lambda x: lax.cond(x >= 0, pnp.sin, pnp.cos, x))
    with perspex.checking_leaks():
        found = LEAKS[name](lambda x: perspex.checkpoint(inner)(x) * x)
    np.testing.assert_allclose(np.asarray(found), FOUND[name], rtol=1e-6)

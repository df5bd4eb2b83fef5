"""One expression under NumPy and under Perspex: `agree` says that both give the same.

Expressions see the array namespace as `xp` and the arrays given by name. They are evaluated
eagerly, and as a jitted function of the arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import perspex
import perspex.numpy as jnp

NARROW = {"int64": "int32", "float64": "float32", "complex128": "complex64", "uint64": "uint32"}


def narrowed(x: np.ndarray) -> np.ndarray:
    """A NumPy array in the 32 bits that are the default here."""
    return np.asarray(x, NARROW.get(x.dtype.name, x.dtype))


def flattened(result: Any) -> list[Any]:
    """The arrays in a result that is one, or a tuple or list of them."""
    if isinstance(result, (tuple, list)):
        return [leaf for item in result for leaf in flattened(item)]
    return [result]


def compare(got: Any, want: Any, tol: float = 2e-6, dtype: bool = True) -> None:
    """The arrays in `got` are those in `want`: shapes, values and, unless turned off, dtypes."""
    mine, theirs = flattened(got), flattened(want)
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        b = np.asarray(b)
        assert np.shape(a) == b.shape
        if dtype:
            assert a.dtype == NARROW.get(b.dtype.name, b.dtype)
        np.testing.assert_allclose(np.asarray(a).astype(b.dtype), b, tol, tol)


def agree(
    expression: str, arrays: dict[str, np.ndarray], *, jit: bool = True, **options: Any
) -> None:
    """`expression` gives under Perspex, eagerly and jitted, what it gives under NumPy."""
    code = compile(expression, "<expression>", "eval")
    want = eval(code, {"xp": np, "np": np, **arrays})
    mine = {name: jnp.array(value) for name, value in arrays.items()}
    compare(eval(code, {"xp": jnp, "np": np, **mine}), want, **options)
    if jit:
        used = {name: mine[name] for name in code.co_names if name in mine}

        def function(given: dict[str, Any]) -> Any:
            return eval(code, {"xp": jnp, "np": np, **given})

        compare(perspex.jit(function)(used), want, **options)

"""How sorting compares on platforms that are not there: XLA looks for JAX's instructions on GPUs.

What is recorded are the instructions of the comparator, but for constants, which may be shared.
"""

from __future__ import annotations

import re
from typing import Any

CASES = """
jnp.sort(f)
jnp.sort(h)
jnp.sort(i)
jnp.sort(c)
jnp.argsort(f)
jnp.argsort(f, stable=False)
jnp.argsort(i)
jnp.lexsort((f, i))
lax.sort((f, i, h), num_keys=2)
lax.sort((c, f), num_keys=2)
"""
DTYPES = {"f": "float32", "h": "bfloat16", "i": "int32", "c": "complex64"}
_REGION = re.compile(r'"stablehlo\.sort"\(.*?\(\{(.*?)\}\)', re.S)
_OPERATION = re.compile(r"stablehlo\.(\w+)([^:\n]*)")
_COMPARES = re.compile(r"\b(LT|GT|EQ|NE|FLOAT|TOTALORDER|SIGNED|UNSIGNED)\b")


def record() -> dict[str, list[str]]:
    """The instructions of the comparator of each case, in any order."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    found: dict[str, list[str]] = {}
    for source in CASES.strip().splitlines():
        f: Any = eval(f"lambda f, h, i, c: {source}", {"jnp": jnp, "lax": lax})
        arguments = [jax.ShapeDtypeStruct((5_000,), dtype) for dtype in DTYPES.values()]
        for platform in ("cuda", "tpu"):
            traced = jax.jit(f).trace(*arguments)
            text = traced.lower(lowering_platforms=(platform,)).as_text()
            region = _REGION.search(text)
            assert region is not None, text
            rows = [
                " ".join([name, *_COMPARES.findall(rest)])
                for name, rest in _OPERATION.findall(region[1])
                if name not in ("constant", "return")
            ]
            found[f"{platform} / {source}"] = sorted(rows)
    return found

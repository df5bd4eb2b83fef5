"""Records what real JAX says about dtypes: the whole promotion table, families, names, widths.

Run it in an environment that has `jax` (0.12) and none of ours on the path; it rewrites
`tests/data/promotion_table.json`, which the tests of `perspex.dtypes` read:

    python tests/oracle/promotion_table.py

A kind is written as the name of its dtype, with a star when it is weak. Rows are strings of
outcomes, in short names, in the order of `kinds`; `-` stands for an error. `jax` is imported on
use, because test collection imports this file in environments without it.
"""

from __future__ import annotations

import itertools
import json
import random
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

TARGET = Path(__file__).resolve().parent.parent / "data" / "promotion_table.json"


def words(text: str) -> list[str]:
    return text.split()


STRONG = words("""
    bool int1 int2 int4 int8 int16 int32 int64 uint1 uint2 uint4 uint8 uint16 uint32 uint64
    float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz
    float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
    bfloat16 float16 float32 float64 complex64 complex128""")
# Python's numbers are int32* or int64*, and so on. Other weak kinds come out of operations; not
# weak narrow integers, on which JAX 0.12 itself fails with a KeyError.
WEAK = words("int8 uint8 int32 int64 float8_e5m2 bfloat16 float16 float32 float64 complex64")
KINDS = [*STRONG, *(f"{name}*" for name in WEAK)]
PYTHON = {"int": int, "float": float, "complex": complex}
FAMILIES = words("""
    generic number integer signedinteger unsignedinteger inexact floating complexfloating
    bool_ int32 float64""")
TRIPLES = 800


def dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def outcome(f: Any, *args: Any) -> Any:
    try:
        return f(*args)
    except (TypeError, ValueError):
        return "-"


def record() -> dict[str, Any]:
    """Everything, by asking the installed `jax`."""
    import jax
    import jaxlib
    from jax import dtypes
    from jax._src import dtypes as internal

    class Value:
        """Enough of an array of a kind for `result_type`."""

        def __init__(self, kind: str) -> None:
            self.shape = ()
            self.dtype = dtype(kind.rstrip("*"))
            self.aval = jax.core.ShapedArray((), self.dtype, weak_type=kind.endswith("*"))

    values = {kind: Value(kind) for kind in KINDS}

    def short(found: np.dtype) -> str:
        return internal.short_dtype_name(found)

    def joined(*kinds: str) -> str:
        args = [values[kind] for kind in kinds]
        found, weak = dtypes.result_type(*args, return_weak_type_flag=True)
        return short(found) + ("*" if weak else "")

    table: dict[str, Any] = {
        "families": FAMILIES,
        "versions": {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "numpy": np.__version__},
        "kinds": KINDS,
        "result_type": {},
        "triples": {},
    }
    source = random.Random(0)
    triples = [tuple(source.choices(KINDS, k=3)) for _ in range(TRIPLES)]
    for x64, mode in itertools.product((False, True), ("standard", "strict")):
        name = f"{64 if x64 else 32} {mode}"
        with jax.enable_x64(x64), jax.numpy_dtype_promotion(mode):
            table["result_type"][name] = {
                a: " ".join([outcome(joined, a, b) for b in KINDS]) for a in KINDS
            }
            if mode == "standard":
                found = {" ".join(t): outcome(joined, *t) for t in triples}
                # Most triples have no result: a few of those say enough.
                failing = [t for t, out in found.items() if out == "-"]
                table["triples"][name] = {
                    t: out for t, out in found.items() if out != "-" or t in failing[:40]
                }

    spec = {**{name: dtype(name) for name in STRONG}, **PYTHON}
    table["promote_types"] = {
        a: " ".join(
            [
                str(outcome(lambda x, y: short(jax.numpy.promote_types(x, y)), spec[a], spec[b]))
                for b in spec
            ]
        )
        for a in spec
    }
    table["issubdtype"] = {
        name: " ".join([str(int(dtypes.issubdtype(dtype(name), getattr(np, f)))) for f in FAMILIES])
        for name in STRONG
    }
    table["facts"] = {
        name: {
            "short": short(dtype(name)),
            "bits": dtypes.itemsize_bits(dtype(name)),
            "numeric": internal.to_numeric_dtype(dtype(name)).name,
            "inexact": internal.to_inexact_dtype(dtype(name)).name,
            "complex": internal.to_complex_dtype(dtype(name)).name,
            "canonical": dtypes.canonicalize_dtype(dtype(name)).name,
            "python": outcome(lambda d: dtypes.scalar_type_of(d).__name__, dtype(name)),
        }
        for name in STRONG
    }
    return table


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the 64-bit names are asked for on purpose
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(record(), indent=1) + "\n", encoding="utf-8")
    print(f"wrote {TARGET.relative_to(TARGET.parent.parent.parent)}")

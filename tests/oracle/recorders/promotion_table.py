"""Records what real JAX says about dtypes: the whole promotion table, families, names, widths.

A kind is written as the name of its dtype, with a star when it is weak. Rows are strings of
outcomes, in short names, in the order of `KINDS`; `-` stands for an error. `jax` is imported on
use, because tests import this file in environments without it.
"""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np


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
SPEC = [*STRONG, *PYTHON]
FAMILIES = words("""
    generic number integer signedinteger unsignedinteger inexact floating complexfloating
    bool_ int32 float64""")
MODES = [(x64, mode) for x64 in (False, True) for mode in ("standard", "strict")]


def triples() -> list[tuple[str, ...]]:
    """Three kinds each, at random."""
    source = random.Random(0)
    return [tuple(source.choices(KINDS, k=3)) for _ in range(800)]


def mode_name(x64: bool, mode: str) -> str:
    return f"{64 if x64 else 32} {mode}"


def keys() -> set[str]:
    """The keys of all records but those of triples."""
    return {
        *(f"result_type / {mode_name(*mode)} / {kind}" for mode in MODES for kind in KINDS),
        *(f"promote_types / {name}" for name in SPEC),
        *(f"{table} / {name}" for table in ("issubdtype", "facts") for name in STRONG),
    }


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

    def promoted(a: Any, b: Any) -> str:
        return str(outcome(lambda x, y: short(jax.numpy.promote_types(x, y)), a, b))

    table: dict[str, Any] = {}
    for x64, mode in MODES:
        name = mode_name(x64, mode)
        with jax.enable_x64(x64), jax.numpy_dtype_promotion(mode):
            for a in KINDS:
                row = [outcome(joined, a, b) for b in KINDS]
                table[f"result_type / {name} / {a}"] = " ".join(row)
            if mode == "standard":
                found = {" ".join(t): outcome(joined, *t) for t in triples()}
                # Most triples have no result: a few of those say enough.
                failing = [t for t, out in found.items() if out == "-"]
                for t, out in found.items():
                    if out != "-" or t in failing[:40]:
                        table[f"triples / {name} / {t}"] = out
    spec = {**{name: dtype(name) for name in STRONG}, **PYTHON}
    for a in SPEC:
        table[f"promote_types / {a}"] = " ".join([promoted(spec[a], spec[b]) for b in SPEC])
    for name in STRONG:
        row = [str(int(dtypes.issubdtype(dtype(name), getattr(np, f)))) for f in FAMILIES]
        table[f"issubdtype / {name}"] = " ".join(row)
        table[f"facts / {name}"] = {
            "short": short(dtype(name)),
            "bits": dtypes.itemsize_bits(dtype(name)),
            "numeric": internal.to_numeric_dtype(dtype(name)).name,
            "inexact": internal.to_inexact_dtype(dtype(name)).name,
            "complex": internal.to_complex_dtype(dtype(name)).name,
            "canonical": dtypes.canonicalize_dtype(dtype(name)).name,
            "python": outcome(lambda d: dtypes.scalar_type_of(d).__name__, dtype(name)),
        }
    return table

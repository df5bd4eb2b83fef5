"""The text of constants: arrays and scalars of every dtype, ordinary numbers and extreme ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

FLOATS = ("float32", "bfloat16", "float16", "float64")
SMALL_FLOATS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz")
INTEGERS = ("int32", "int8", "int16", "int64", "int4")
UNSIGNED = ("uint8", "uint32", "uint16", "uint64", "uint4")
COMPLEX = ("complex64", "complex128")
# How often each is drawn, within its class.
OFTEN = {"float32": 12, "float64": 6, "int32": 10, "complex64": 4, "uint8": 4, "int8": 2}
WIDE = {"float64", "int64", "uint64", "complex128"}
CLASSES: dict[str, tuple[str, ...]] = {
    "f": FLOATS,
    "i": (*INTEGERS, *UNSIGNED),
    "s": INTEGERS,
    "u": UNSIGNED,
    "b": ("bool",),
    "c": COMPLEX,
    "x": (*FLOATS, *COMPLEX),
    "r": (*FLOATS, *INTEGERS, *UNSIGNED),
    "n": (*FLOATS, *COMPLEX, *INTEGERS, *UNSIGNED),
    "w": ("bool", *INTEGERS, *UNSIGNED),
    "a": (*FLOATS, *COMPLEX, *INTEGERS, *UNSIGNED, "bool", *SMALL_FLOATS),
}
# Where functions break, and where numbers leave the range of their dtype on the way.
EDGES = ("np.nan", "np.inf", "-np.inf", "-0.0", "0.0", "1.0", "-1.0", "0.5")
FAR = ("1e-40", "-1e-42", "3e38", "1e-30", "1e10")
SHAPES = ((), (3,), (2, 3), (3, 3), (1,), (4,), (0,), (3, 1), (1, 3), (2, 1, 3), (2, 0), (8,))


@dataclass(frozen=True)
class Type:
    """What a value of a program is: shape, dtype by name, weak type."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool = False


def draw_dtype(rng: random.Random, kind: str, x64: bool) -> str:
    """A dtype of a class, those that are common drawn more often."""
    names = [name for name in CLASSES[kind] if x64 or name not in WIDE]
    return rng.choices(names, [OFTEN.get(name, 1) for name in names])[0]


def number(rng: random.Random, dtype: str, edges: Sequence[str] = ()) -> str:
    """The text of a number that the dtype can hold; half of them are among `edges`, if given."""
    if dtype == "bool":
        return rng.choice(["True", "False"])
    if dtype.startswith("complex"):
        real, imaginary = (number(rng, "float32", edges) for _ in range(2))
        return f"complex({real}, {imaginary})"
    if dtype.startswith(("int", "uint")):
        info = ml_dtypes.iinfo(dtype) if dtype.endswith("4") and "64" not in dtype else None
        info = info or np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        if edges and rng.random() < 0.5:
            return str(rng.choice([low, low + 1, high, high - 1, 0]))
        return str(rng.randint(max(low, -5), min(high, 6)))
    if edges and rng.random() < 0.5:
        wide = dtype in ("float32", "float64")
        return rng.choice([text for text in edges if wide or text not in FAR])
    if dtype.startswith("float8"):
        return str(rng.choice([-2.0, -1.5, -0.5, 0.25, 0.5, 1.0, 1.75, 3.0, 4.0]))
    return repr(round(rng.gauss(0, 1.5), rng.choice([0, 1, 3, 3])))


def nested(rng: random.Random, shape: tuple[int, ...], dtype: str, edges: Sequence[str]) -> str:
    if not shape:
        return number(rng, dtype, edges)
    return "[" + ", ".join(nested(rng, shape[1:], dtype, edges) for _ in range(shape[0])) + "]"


def array(
    rng: random.Random, shape: tuple[int, ...], dtype: str, edges: Sequence[str] | None = None
) -> str:
    """The text of an array; unless `edges` are given, one in four has extreme numbers."""
    if edges is None:
        edges = (*EDGES, *FAR) if rng.random() < 0.25 else ()
    name = dtype if dtype != "bool" else "bool_"
    if 0 in shape:
        return f"jnp.zeros({shape}, jnp.{name})"
    return f"jnp.array({nested(rng, shape, dtype, edges)}, jnp.{name})"


def scalar(rng: random.Random, kind: str) -> str:
    """The text of a Python number, which is weakly typed."""
    dtype = rng.choice([d for d in CLASSES[kind] if d in ("float32", "int32", "bool", "complex64")])
    if dtype == "int32":
        return str(rng.randint(-3, 4))
    return number(rng, dtype, (*EDGES, *FAR) if rng.random() < 0.15 else ())


def literal(value: Any, weak: bool = False) -> str:
    """The text of an array that is known."""
    value = np.asarray(value)
    name = value.dtype.name if value.dtype.name != "bool" else "bool_"
    if not value.size:
        return f"jnp.zeros({value.shape}, jnp.{name})"
    wide = value
    if name.startswith(("float", "bfloat")):
        wide = value.astype(np.float64)
    elif name.startswith("complex"):
        wide = value.astype(np.complex128)
    elif "int" in name:
        wide = value.astype(np.uint64 if name.startswith("u") else np.int64)
    text = _listed(wide.tolist())
    if weak and not value.shape:
        return f"jnp.asarray({text})"
    return f"jnp.array({text}, jnp.{name})"


def _listed(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_listed(item) for item in value) + "]"
    if isinstance(value, complex):
        return f"complex({_listed(value.real)}, {_listed(value.imag)})"
    if isinstance(value, float):
        if np.isnan(value):
            return "np.nan"
        if np.isinf(value):
            return "np.inf" if value > 0 else "-np.inf"
    return repr(value)

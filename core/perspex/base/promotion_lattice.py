"""The lattice of promotion: which dtype two dtypes meet at.

A node is the name of a dtype, or `i*`, `f*`, `c*`: the weak types of Python's numbers. The result
of an operation is the least upper bound of the nodes of its operands, in the lattice that JAX
defines (https://docs.jax.dev/en/latest/jep/9407-type-promotion.html):

    bool - i* - u8 -- u16 -- u32 -- u64 ---.
              |     `     `      `         |
              |- i8 -- i16 -- i32 -- i64 --+- f* - bf16 -- f32 -- f64
              `- int4, uint4, ...          |    |- f16  -'    `      `
                                           |    |- float8_*, ...     |
                                           |    `----- c* --- c64 -- c128

The narrow types at dead ends (fewer than 8 bits, float8) promote to nothing but themselves. In the
strict mode (`numpy_dtype_promotion`) only weak types promote.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from perspex.base.dtype_families import (
    COMPLEX,
    FLOATS,
    INTS,
    SMALL_FLOATS,
    SMALL_INTS,
    scalar_types,
)

_SMALL_INT_NAMES = [d.name for d in SMALL_INTS]
_SMALL_FLOAT_NAMES = [d.name for d in SMALL_FLOATS]
_EDGES = {
    "bool": ["i*"],
    "i*": ["uint8", "int8", *_SMALL_INT_NAMES],
    "uint8": ["int16", "uint16"],
    "uint16": ["int32", "uint32"],
    "uint32": ["int64", "uint64"],
    "uint64": ["f*"],
    "int8": ["int16"],
    "int16": ["int32"],
    "int32": ["int64"],
    "int64": ["f*"],
    "f*": ["c*", "bfloat16", "float16", *_SMALL_FLOAT_NAMES],
    "bfloat16": ["float32"],
    "float16": ["float32"],
    "float32": ["float64", "complex64"],
    "float64": ["complex128"],
    "c*": ["complex64"],
    "complex64": ["complex128"],
}
# Without 64 bits the signed type that takes a uint32 is int32.
_EDGES_32 = {**_EDGES, "uint32": ["int32", "uint64"]}
_EDGES_STRICT = {
    "i*": ["f*", *(d.name for d in INTS)],
    "f*": ["c*", *(d.name for d in FLOATS)],
    "c*": [d.name for d in COMPLEX],
}


def _above(edges: dict[str, list[str]]) -> dict[str, frozenset[str]]:
    """For each node itself and all nodes above it."""

    @functools.cache
    def reach(node: str) -> frozenset[str]:
        return frozenset((node,)).union(*map(reach, edges.get(node, ())))

    return {node: reach(node) for node in (*scalar_types, "i*", "f*", "c*")}


# By whether 64 bits are enabled.
_ABOVE = _above(_EDGES_32), _above(_EDGES)
_ABOVE_STRICT = _above(_EDGES_STRICT)


def join(nodes: Sequence[str], x64: bool, strict: bool) -> str | None:
    """The least upper bound of nodes, from the sets of what is above each; `None` if none is."""
    above = _ABOVE_STRICT if strict else _ABOVE[x64]
    common = frozenset.intersection(*[above[node] for node in nodes])
    return next((node for node in common if common <= above[node]), None)

"""The file format of exported functions: that of JAX 0.12, a FlatBuffer.

A file has one table with the fields below. The derivative is another such table in it. Shapes are
texts, so that symbolic dimensions can be read; their constraints are not written.
"""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.export import trees
from perspex.export.checks import DisabledSafetyCheck
from perspex.export.parsing import parse
from perspex.export.scopes import SymbolicScope
from perspex.export.tables import BOOL, INT8, UINT16, UINT32, Number, Numbers, Reader, Table, write
from perspex.ir.avals import ShapedArray
from perspex.ops.keys import GENERATORS

# The version of the format that is written, and the version of JAX whose format it is.
VERSION, WRITTEN_AS = 12, "0.12.0"

(
    _VERSION, _NAME, _IN_TREE, _IN_AVALS, _OUT_TREE, _OUT_AVALS, _OLD_DEVICES, _IN_SHARDINGS,
    _OUT_SHARDINGS, _PLATFORMS, _ORDERED, _UNORDERED, _CHECKS, _MODULE, _CONVENTION, _KEPT,
    _CONSTANTS, _VJP, _DEVICES, _AVALS, _MESHES, _SHARDINGS, _IN_AVAL_AT, _OUT_AVAL_AT,
    _IN_SHARDING_AT, _OUT_SHARDING_AT, _JAX_VERSION,
) = range(27)  # fmt: skip

_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128", "bfloat16", "int4", "uint4",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float0", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn", "key<fry>",
    "key<rbg>", "key<urbg>",
)  # fmt: skip
_DTYPES = {name: i for i, name in enumerate(_NAMES)}
_DEVICE_MEMORY = 1
_PLATFORM_CHECK, _CALL_CHECK = 0, 1
# Of an aval: kind, shape, dtype, memory.
_KIND, _SHAPE, _DTYPE, _MEMORY = range(4)


def _dtype_name(aval: ShapedArray) -> str:
    if aval.is_float0:
        return "float0"
    return aval.dtype.name


def _aval_table(aval: ShapedArray) -> Table:
    name = _dtype_name(aval)
    if name not in _DTYPES:
        raise NotImplementedError(f"the file format has no arrays of dtype {name}")
    return Table(
        {
            _KIND: Number(INT8, 0),
            _SHAPE: [str(n) for n in aval.shape],
            _DTYPE: Number(INT8, _DTYPES[name]),
            _MEMORY: Number(INT8, _DEVICE_MEMORY),
        }
    )


def _aval(table: Reader, scope: SymbolicScope) -> ShapedArray:
    number = table.number(_DTYPE, INT8)
    if not 0 <= number < len(_NAMES):
        raise ValueError(f"the file has arrays of an unknown dtype, number {number}")
    name = _NAMES[number]
    if name == "float0":
        dtype: Any = dtypes.float0
    elif name.startswith("key<"):
        dtype = KEY_TYPES[name]
    else:
        dtype = np.dtype(getattr(dtypes, name, name))
    return ShapedArray(parse(",".join(table.strings(_SHAPE)), scope, None), dtype)


KEY_TYPES: dict[str, Any] = {g.dtype.name: g.dtype for g in GENERATORS.values()}


def table_of(exported: Any, vjp_order: int) -> Table:
    """The table of an exported function and of so many orders of its derivative."""
    for effect in (*exported.ordered_effects, *exported.unordered_effects):
        raise NotImplementedError(f"the effect {effect} of `{exported.fun_name}` cannot be written")
    avals = list(dict.fromkeys([*exported.in_avals, *exported.out_avals]))
    index = {aval: i for i, aval in enumerate(avals)}
    vjp = None
    if vjp_order > 0:
        if not exported.has_vjp():
            raise ValueError(
                f"serialization of `{exported.fun_name}`, which does not have vjps of high-enough "
                "order: it comes from a file without them; use a smaller vjp_order"
            )
        vjp = table_of(exported.vjp(), vjp_order - 1)
    no_shardings = {
        side: [Table({0: Number(INT8, 0)}) for _ in found]
        for side, found in (("in", exported.in_avals), ("out", exported.out_avals))
    }
    return Table(
        {
            _VERSION: Number(UINT16, VERSION),
            _NAME: exported.fun_name,
            _IN_TREE: trees.table_of(exported.in_tree),
            _IN_AVALS: [_aval_table(aval) for aval in exported.in_avals],
            _OUT_TREE: trees.table_of(exported.out_tree),
            _OUT_AVALS: [_aval_table(aval) for aval in exported.out_avals],
            _IN_SHARDINGS: no_shardings["in"],
            _OUT_SHARDINGS: no_shardings["out"],
            _PLATFORMS: list(exported.platforms),
            _ORDERED: [],
            _UNORDERED: [],
            _CHECKS: [_check_table(check) for check in exported.disabled_safety_checks],
            _MODULE: exported.mlir_module_serialized,
            _CONVENTION: Number(UINT16, exported.calling_convention_version),
            _KEPT: Numbers(UINT16, exported.module_kept_var_idx),
            _CONSTANTS: Number(BOOL, exported.uses_global_constants),
            _VJP: vjp,
            _DEVICES: Number(UINT32, exported.nr_devices),
            _AVALS: [_aval_table(aval) for aval in avals],
            _MESHES: [],
            _SHARDINGS: [],
            _IN_AVAL_AT: Numbers(UINT32, [index[aval] for aval in exported.in_avals]),
            _OUT_AVAL_AT: Numbers(UINT32, [index[aval] for aval in exported.out_avals]),
            _IN_SHARDING_AT: Numbers(UINT32, [0] * len(exported.in_avals)),
            _OUT_SHARDING_AT: Numbers(UINT32, [0] * len(exported.out_avals)),
            _JAX_VERSION: WRITTEN_AS,
        }
    )


def _check_table(check: DisabledSafetyCheck) -> Table:
    target = check.is_custom_call()
    kind = _PLATFORM_CHECK if target is None else _CALL_CHECK
    return Table({0: Number(INT8, kind), 1: target})


def _check(table: Reader) -> DisabledSafetyCheck:
    kind = table.number(0, INT8)
    if kind == _CALL_CHECK:
        return DisabledSafetyCheck.custom_call(table.string(1))
    if kind == _PLATFORM_CHECK:
        return DisabledSafetyCheck.platform()
    raise ValueError(f"the file turns off an unknown check, number {kind}")


def to_bytes(exported: Any, vjp_order: int) -> bytearray:
    """The bytes of an exported function, with so many orders of its derivative."""
    return write(table_of(exported, vjp_order))


def fields_in(table: Reader) -> dict[str, Any]:
    """The attributes of the exported function in a table; `vjp` is the table of its derivative."""
    scope = SymbolicScope()
    avals = [_aval(aval, scope) for aval in table.tables(_AVALS)]
    in_avals = tuple([avals[i] for i in table.numbers(_IN_AVAL_AT, UINT32)])
    out_avals = tuple([avals[i] for i in table.numbers(_OUT_AVAL_AT, UINT32)])
    if not in_avals:
        in_avals = tuple([_aval(aval, scope) for aval in table.tables(_IN_AVALS)])
    if not out_avals:
        out_avals = tuple([_aval(aval, scope) for aval in table.tables(_OUT_AVALS)])
    effects = [effect.string(0) for slot in (_ORDERED, _UNORDERED) for effect in table.tables(slot)]
    if any("ShapeAssertion" not in effect for effect in effects):
        counts = collections.Counter(effects)
        raise NotImplementedError(f"cannot deserialize a function with the effects {list(counts)}")
    return {
        "fun_name": table.string(_NAME),
        "in_tree": trees.structure_in(table.table(_IN_TREE), in_avals),
        "in_avals": in_avals,
        "out_tree": trees.structure_in(table.table(_OUT_TREE), out_avals),
        "out_avals": out_avals,
        "nr_devices": table.number(_DEVICES, UINT32) or table.number(_OLD_DEVICES, UINT16),
        "platforms": tuple(table.strings(_PLATFORMS)),
        "disabled_safety_checks": tuple([_check(check) for check in table.tables(_CHECKS)]),
        "mlir_module_serialized": table.bytes(_MODULE),
        "calling_convention_version": table.number(_CONVENTION, UINT16),
        "module_kept_var_idx": tuple(table.numbers(_KEPT, UINT16)),
        "uses_global_constants": table.number(_CONSTANTS, BOOL),
        "vjp": table.table(_VJP),
    }

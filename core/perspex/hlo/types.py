"""The MLIR context, and MLIR's types and attributes for ours; all interned.

One context serves the process. Types and attributes are cached because making one costs more
(0.4-1 us) than emitting the operation that carries it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from perspex.base.dimensions import Symbolic, is_static
from perspex.base.xla import ir, load_dialect, make_context
from perspex.ir.avals import ShapedArray

context: Any = make_context()


def _integer(width: int, signed: bool) -> Callable[[], Any]:
    make = ir.IntegerType.get_signless if signed else ir.IntegerType.get_unsigned
    return lambda: make(width, context)


def _float(name: str) -> Callable[[], Any]:
    return lambda: getattr(ir, name).get(context)


def _complex(part: str) -> Callable[[], Any]:
    return lambda: ir.ComplexType.get(getattr(ir, part).get(context))


_ELEMENTS: dict[np.dtype, Callable[[], Any]] = {
    np.dtype("bool"): _integer(1, True),
    **{np.dtype(f"int{n}"): _integer(n, True) for n in (8, 16, 32, 64)},
    **{np.dtype(f"uint{n}"): _integer(n, False) for n in (8, 16, 32, 64)},
    np.dtype("float16"): _float("F16Type"),
    np.dtype("float32"): _float("F32Type"),
    np.dtype("float64"): _float("F64Type"),
    np.dtype("complex64"): _complex("F32Type"),
    np.dtype("complex128"): _complex("F64Type"),
    np.dtype(ml_dtypes.bfloat16): _float("BF16Type"),
    **{
        np.dtype(getattr(ml_dtypes, f"{kind}{n}")): _integer(n, kind == "int")
        for kind in ("int", "uint")
        for n in (2, 4)
    },
    **{
        np.dtype(getattr(ml_dtypes, name)): _float(mlir_name)
        for name, mlir_name in {
            "float4_e2m1fn": "Float4E2M1FNType",
            "float8_e3m4": "Float8E3M4Type",
            "float8_e4m3": "Float8E4M3Type",
            "float8_e4m3b11fnuz": "Float8E4M3B11FNUZType",
            "float8_e4m3fn": "Float8E4M3FNType",
            "float8_e4m3fnuz": "Float8E4M3FNUZType",
            "float8_e5m2": "Float8E5M2Type",
            "float8_e5m2fnuz": "Float8E5M2FNUZType",
            "float8_e8m0fnu": "Float8E8M0FNUType",
        }.items()
    },
}


@functools.cache
def element_type(dtype: np.dtype) -> Any:
    """The MLIR type of one element."""
    try:
        return _ELEMENTS[dtype]()
    except KeyError:
        raise TypeError(f"XLA cannot compute with arrays of dtype {dtype}") from None


# What MLIR calls the size of an axis that is not known.
UNKNOWN_SIZE: int = ir.ShapedType.get_dynamic_size()

_tensor_types: dict[ShapedArray, Any] = {}


def tensor_type(aval: ShapedArray) -> Any:
    """The MLIR tensor type of an aval; a typed key is its numbers."""
    found = _tensor_types.get(aval)
    if found is None:
        physical = aval.physical()
        shape = physical.shape
        if not is_static(shape):
            shape = tuple([UNKNOWN_SIZE if isinstance(n, Symbolic) else n for n in shape])
        elif math.prod(shape) * physical.dtype.itemsize >= 2**63:
            # The compiler ends the process for it.
            raise ValueError(
                f"an array of shape {physical.shape} and dtype {physical.dtype.name} would take "
                "2**63 bytes or more"
            )
        found = _tensor_types[aval] = ir.RankedTensorType.get(
            shape, element_type(physical.dtype), loc=unknown
        )
    return found


unknown: Any = ir.Location.unknown(context)


@functools.cache
def location(file: str, line: int, column: int, name: str) -> Any:
    """A source position, under the name of the operation that was written there."""
    return ir.Location.name(name, ir.Location.file(file, line, column, context), context)


def numbered(at: Any, name: str) -> Any:
    """The location, under another name."""
    place = at.child_loc if isinstance(at, ir.NameLoc) else at
    return ir.Location.name(name, place, context)


@functools.cache
def string(value: str | bytes) -> Any:
    return ir.StringAttr.get(value, context)


@functools.cache
def boolean(value: bool) -> Any:
    return ir.BoolAttr.get(value, context)


@functools.cache
def integer(value: int, width: int = 64) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(width, context), value)


@functools.cache
def integers(values: tuple[int, ...]) -> Any:
    """`array<i64: ...>`: axes, sizes and the like.

    Symbolic sizes are returned as they are, for a builder that writes them as operands.
    """
    if not is_static(values):
        return values
    return ir.DenseI64ArrayAttr.get(list(values), context)


@functools.cache
def booleans(values: tuple[bool, ...]) -> Any:
    return ir.DenseBoolArrayAttr.get(list(values), context)


@functools.cache
def matrix(rows: tuple[tuple[int, ...], ...]) -> Any:
    """`dense<...> : tensor<mxnxi64>`: padding pairs and the like; no rows are rows of two.

    Rows with symbolic sizes are returned as they are, as in `integers`.
    """
    if not all([is_static(row) for row in rows]):
        return rows
    values = np.asarray(rows, np.int64).reshape(len(rows), -1 if rows else 2)
    return ir.DenseIntElementsAttr.get(values, context=context)


@functools.cache
def attribute(text: str) -> Any:
    """Any attribute in MLIR's own notation."""
    if text.startswith("#stablehlo"):
        load_dialect("stablehlo")
    return ir.Attribute.parse(text, context)


@functools.cache
def symbol(name: str) -> Any:
    return ir.FlatSymbolRefAttr.get(name, context)


@functools.cache
def layouts(shapes: tuple[tuple[int, int], ...]) -> Any:
    """How arrays lie in memory, given the numbers of their axes and those of one batch element.

    Matrices lie column after column, everything else row after row.
    """

    def order(ndim: int, core: int) -> str:
        axes = list(range(ndim - 1, -1, -1))
        if core == 2:
            axes[:2] = [ndim - 2, ndim - 1]
        return f"dense<{axes}> : tensor<{ndim}xindex>"

    return attribute(f"[{', '.join([order(*shape) for shape in shapes])}]")


@functools.cache
def aliases(pairs: tuple[tuple[int, int], ...], alone: bool) -> Any:
    """Operands whose memory becomes that of a result; `alone` if it is the only result."""
    texts = [
        f"#stablehlo.output_operand_alias<output_tuple_indices = {[] if alone else [result]}, "
        f"operand_index = {operand}, operand_tuple_indices = []>"
        for operand, result in pairs
    ]
    return attribute(f"[{', '.join(texts)}]")


def attribute_of(value: Any) -> Any:
    """A Python value as an attribute; `TypeError` for a value that is none."""
    if isinstance(value, (bool, np.bool_)):
        return boolean(bool(value))
    if isinstance(value, (ir.Attribute, ir.Type)):
        return value
    if isinstance(value, (str, bytes)):
        return string(value)
    if isinstance(value, (tuple, list)):
        return array([attribute_of(x) for x in value])
    if isinstance(value, dict):
        return dictionary({name: attribute_of(x) for name, x in value.items()})
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, float):
        return ir.FloatAttr.get(ir.F64Type.get(context), value, loc=unknown)
    if isinstance(value, np.dtype):
        return ir.TypeAttr.get(element_type(value), context)
    if isinstance(value, np.generic) and value.dtype.kind in "fiuV":
        element = element_type(value.dtype)
        if isinstance(element, ir.IntegerType):
            return ir.IntegerAttr.get(element, int(value))
        return ir.FloatAttr.get(element, float(value), loc=unknown)
    if isinstance(value, np.ndarray) and 0 in value.strides and value.size:
        raise ValueError(
            "NumPy arrays with zero strides are not supported as MLIR attributes; pass x.copy()"
        )
    if isinstance(value, np.ndarray) and value.ndim:
        return dense(value, ShapedArray(value.shape, value.dtype))
    if isinstance(value, np.ndarray):
        return attribute_of(value[()])
    raise TypeError(
        f"an attribute of an operation is a number, a string, a dtype, a NumPy array, or a list or "
        f"dictionary of such, not a value of type {type(value)}"
    )


def array(items: list[Any]) -> Any:
    return ir.ArrayAttr.get(items, context)


def dictionary(items: dict[str, Any]) -> Any:
    return ir.DictAttr.get(items, context)


def texts(items: Mapping[str, str]) -> Any:
    """A dictionary of strings."""
    return dictionary({name: string(text) for name, text in items.items()})


_dense: dict[Any, Any] = {}


def dense(value: np.ndarray, aval: ShapedArray) -> Any:
    """The elements of a constant of type `aval`; a scalar `value` fills the whole shape."""
    splat = value.ndim == 0 or (value.size and _is_uniform(value))
    if not splat:
        return _elements(np.ascontiguousarray(value), aval)
    scalar = value.reshape(-1)[:1] if value.ndim else value.reshape(1)
    key = (scalar.tobytes(), aval)
    found = _dense.get(key)
    if found is None:
        found = _dense[key] = _elements(scalar, aval)
    return found


def _is_uniform(value: np.ndarray) -> bool:
    raw = value.view(np.uint8) if value.dtype.itemsize == 1 else value
    first = raw.reshape(-1)[0]
    return bool((raw == first).all()) and (value.dtype.kind != "f" or first != 0)


def _elements(value: np.ndarray, aval: ShapedArray) -> Any:
    element = element_type(value.dtype)
    if value.dtype == bool and value.size == 1:
        one = ir.BoolAttr.get(bool(value.reshape(-1)[0]), context)
        return ir.DenseElementsAttr.get_splat(tensor_type(aval), one)
    if value.size == 1:
        return _splat(value.reshape(-1)[0], element, aval)
    if value.dtype.kind == "V" or value.dtype.name.startswith(("bfloat", "float8", "float4")):
        value = value.view(np.uint16 if value.dtype.itemsize == 2 else np.uint8)
    elif value.dtype.name in ("int2", "int4", "uint2", "uint4"):
        value = value.astype(np.int8 if value.dtype.name[0] == "i" else np.uint8)
    return ir.DenseElementsAttr.get(value, type=element, shape=aval.shape, context=context)


def _splat(scalar: Any, element: Any, aval: ShapedArray) -> Any:
    kind = np.dtype(scalar.dtype).kind
    if kind == "c" or (kind == "u" and int(scalar) >= 2**63):  # more than IntegerAttr takes
        return ir.DenseElementsAttr.get(
            np.full(aval.shape, scalar), type=element, shape=aval.shape, context=context
        )
    if kind in "iu" or scalar.dtype.name in ("int2", "int4", "uint2", "uint4"):
        one = ir.IntegerAttr.get(element, int(scalar))
    else:
        one = ir.FloatAttr.get(element, float(scalar), loc=unknown)
    return ir.DenseElementsAttr.get_splat(tensor_type(aval), one)

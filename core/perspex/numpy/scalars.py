"""Scalar types, dtypes and constants.

`jnp.float32` is a class in the way that NumPy's scalar types are: it names a dtype, and calling it
gives an array without axes, since numbers of their own do not exist here.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.glossary import describe
from perspex.arguments.types import ArrayLike, DTypeLike
from perspex.dtypes import finfo as finfo
from perspex.dtypes import iinfo as iinfo
from perspex.dtypes import issubdtype as issubdtype
from perspex.dtypes import promote_types as promote_types
from perspex.dtypes import result_type as result_type
from perspex.numpy import words
from perspex.numpy.creation import asarray
from perspex.runtime.array import Array

__all__ = [
    "ComplexWarning", "array_repr", "array_str", "bfloat16", "bool", "bool_", "can_cast", "cdouble",
    "character", "complex128", "complex64", "complex_", "complexfloating", "csingle", "double",
    "dtype", "e", "euler_gamma", "finfo", "flexible", "float16", "float32", "float4_e2m1fn",
    "float64", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float_", "floating", "generic", "get_printoptions", "iinfo", "inexact", "inf", "int16", "int2",
    "int32", "int4", "int64", "int8", "int_", "integer", "isdtype", "issubdtype", "nan", "ndarray",
    "newaxis", "number", "object_", "pi", "printoptions", "promote_types", "result_type",
    "set_printoptions", "signedinteger", "single", "uint", "uint16", "uint2", "uint32", "uint4",
    "uint64", "uint8", "unsignedinteger",
]  # fmt: skip

# ---- Scalar types -------------------------------------------------------------------------------


class _ScalarMeta(type):
    """The type of scalar types. They equal NumPy's of the same dtype."""

    dtype: np.dtype

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: object) -> builtins.bool:
        return cls is other or cls.dtype.type == other

    def __call__(cls, x: Any) -> Any:
        return asarray(x, dtype=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> builtins.bool:
        return isinstance(instance, cls.dtype.type)

    @property
    def __numpy_dtype__(cls) -> np.dtype:
        return cls.dtype


def _scalar_type(dtype: Any) -> Any:
    dtype = np.dtype(dtype)
    text = f"The dtype {dtype.name}; `{dtype.name}(x)` gives an array of it."
    return _ScalarMeta(
        dtype.name, (), {"dtype": dtype, "__doc__": text, "__module__": "perspex.numpy"}
    )


_types = {name: _scalar_type(dtype) for name, dtype in dtypes.scalar_types.items()}

bool_ = bool = _types["bool"]
int2, int4, int8, int16 = _types["int2"], _types["int4"], _types["int8"], _types["int16"]
int32, int64 = _types["int32"], _types["int64"]
uint2, uint4, uint8, uint16 = _types["uint2"], _types["uint4"], _types["uint8"], _types["uint16"]
uint32, uint64 = _types["uint32"], _types["uint64"]
float4_e2m1fn = _types["float4_e2m1fn"]
float6_e2m3fn, float6_e3m2fn = _types["float6_e2m3fn"], _types["float6_e3m2fn"]
float8_e3m4, float8_e4m3 = _types["float8_e3m4"], _types["float8_e4m3"]
float8_e4m3b11fnuz, float8_e4m3fn = _types["float8_e4m3b11fnuz"], _types["float8_e4m3fn"]
float8_e4m3fnuz, float8_e5m2 = _types["float8_e4m3fnuz"], _types["float8_e5m2"]
float8_e5m2fnuz, float8_e8m0fnu = _types["float8_e5m2fnuz"], _types["float8_e8m0fnu"]
bfloat16, float16 = _types["bfloat16"], _types["float16"]
float32, float64 = _types["float32"], _types["float64"]
complex64, complex128 = _types["complex64"], _types["complex128"]

single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128

# `int1` and `uint1`, where the installed ml_dtypes has them.
_newest: dict[str, Any] = {name: _types[name] for name in ("int1", "uint1") if name in _types}
globals().update(_newest)
__all__ += _newest


# ---- NumPy's families of dtypes -----------------------------------------------------------------

dtype = np.dtype
generic, number, character, flexible = np.generic, np.number, np.character, np.flexible
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
inexact, floating, complexfloating = np.inexact, np.floating, np.complexfloating
object_ = np.object_
ndarray = Array
ComplexWarning = np.exceptions.ComplexWarning
can_cast = np.can_cast


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> builtins.bool:
    """Whether a dtype is of a kind.

    Args:
      dtype: anything that names a dtype.
      kind: a dtype, one of the names `"bool"`, `"signed integer"`, `"unsigned integer"`, `
        `"integral"`, `"real floating"`, `"complex floating"`, `"numeric"`, or a tuple of them.

    Returns:
      True or False.

    Raises:
      TypeError: if `dtype` names no dtype.
      ValueError: for another name of a kind.

    >>> import perspex.numpy as jnp
    >>> jnp.isdtype(jnp.bfloat16, "real floating")
    True
    """
    given = np.dtype(dtype)
    return any(_is_of_kind(given, k) for k in (kind if isinstance(kind, tuple) else (kind,)))


_KINDS = {
    "bool": (np.bool_,),
    "signed integer": (np.signedinteger,),
    "unsigned integer": (np.unsignedinteger,),
    "integral": (np.integer,),
    "real floating": (np.floating,),
    "complex floating": (np.complexfloating,),
    "numeric": (np.number,),
}


def _is_of_kind(dtype: np.dtype, kind: Any) -> builtins.bool:
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype: kind {kind!r} is none of {', '.join(map(repr, _KINDS))}")
        return any(issubdtype(dtype, family) for family in _KINDS[kind])
    return dtype == np.dtype(kind)


# ---- Constants ----------------------------------------------------------------------------------

pi, e, euler_gamma = np.pi, np.e, np.euler_gamma
inf, nan, newaxis = np.inf, np.nan, np.newaxis

# ---- Printing -----------------------------------------------------------------------------------

get_printoptions, set_printoptions = np.get_printoptions, np.set_printoptions
printoptions = np.printoptions


def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: builtins.bool | None = None,
) -> str:
    """The text of an array with its dtype, as `numpy.array_repr` writes it.

    Args:
      arr: an array.

    Returns:
      A string.

    Raises:
      AttributeError: for lists and numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.array_repr(jnp.arange(2))
    'ArrayImpl([0, 1], dtype=int32)'
    """
    return np.array_repr(arr, max_line_width, precision, suppress_small)  # type: ignore[arg-type]


def array_str(
    a: ArrayLike | Sequence[Any],
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: builtins.bool | None = None,
) -> str:
    """The text of the numbers of an array, as `numpy.array_str` writes it.

    Args:
      a: an array, a number, or a list.

    Returns:
      A string.

    Raises:
      ValueError: for lists of unequal lengths.

    >>> import perspex.numpy as jnp
    >>> jnp.array_str(jnp.arange(2))
    '[0 1]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


describe((array_repr, array_str), words.PRINTED)

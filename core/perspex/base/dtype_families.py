"""The dtypes that arrays have, and the families that they belong to.

NumPy's families do not know the dtypes of `ml_dtypes`; the dtype of typed random keys is one that
NumPy does not know at all.
"""

from __future__ import annotations

import contextlib
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
from ml_dtypes import bfloat16, finfo, iinfo

DType = np.dtype[Any]

float0 = np.dtype([("float0", np.void, 0)])
"""The dtype of the tangent of an integer: no bits, because there is nothing to say."""


class extended(np.generic):  # noqa: N801 - NumPy spells scalar types so
    """Scalar type over all dtypes that NumPy does not know; for `issubdtype`."""

    __module__ = "perspex.dtypes"


class prng_key(extended):  # noqa: N801
    """Scalar type of typed random keys; for `issubdtype`.

    >>> issubdtype(KeyType("threefry2x32", "fry", (2,)), prng_key)
    True
    """

    __module__ = "perspex.dtypes"


class KeyType:
    """The dtype of arrays of random keys of one generator, `key<fry>` for threefry.

    Equal arguments give the same object. An element is stored as an array of `key_shape` uint32.

    Args:
      generator: the name of the generator, `threefry2x32`, or what stands for one without.
      tag: its short form, `fry`.
      key_shape: the shape of one key in numbers.

    >>> KeyType("threefry2x32", "fry", (2,))
    key<fry>
    """

    __slots__ = ("generator", "itemsize", "key_shape", "name", "tag")
    _pool: ClassVar[dict[Any, KeyType]] = {}

    type = prng_key
    kind = "V"
    """What NumPy calls dtypes that are neither numbers nor booleans."""
    physical_dtype = np.dtype("uint32")

    generator: Any
    tag: str
    key_shape: tuple[int, ...]
    name: str
    itemsize: int

    def __new__(cls, generator: Any, tag: str, key_shape: tuple[int, ...]) -> KeyType:
        arguments = generator, tag, tuple(key_shape)
        found = cls._pool.get(arguments)
        if found is None:
            found = object.__new__(cls)
            found.generator, found.tag, found.key_shape = arguments
            found.name = f"key<{tag}>"
            found.itemsize = int(np.prod(key_shape)) * cls.physical_dtype.itemsize
            found = cls._pool.setdefault(arguments, found)
        return found

    def __reduce__(self) -> Any:
        return KeyType, (self.generator, self.tag, self.key_shape)

    def __repr__(self) -> str:
        return self.name


def _present(*names: str) -> list[DType]:
    """Those of the dtypes that the installed `ml_dtypes` has."""
    return [np.dtype(getattr(ml_dtypes, name)) for name in names if hasattr(ml_dtypes, name)]


BOOL = np.dtype("bool")
SMALL_INTS = _present("int1", "int2", "int4", "uint1", "uint2", "uint4")
SMALL_FLOATS = _present(
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)
INTS: list[DType] = [
    np.dtype(f"{sign}int{n}") for sign in ("", "u") for n in (8, 16, 32, 64)
] + SMALL_INTS
FLOATS: list[DType] = [
    np.dtype(t) for t in (bfloat16, "float16", "float32", "float64")
] + SMALL_FLOATS
COMPLEX: list[DType] = [np.dtype("complex64"), np.dtype("complex128")]

scalar_types: dict[str, type] = {d.name: d.type for d in (BOOL, *INTS, *FLOATS, *COMPLEX)}
"""The dtypes of arrays of numbers, by name, as scalar types."""

NUMBERS = frozenset((BOOL, *INTS, *FLOATS, *COMPLEX))
_EXTENSIONS = {
    **{d.type: np.floating for d in FLOATS if d.kind != "f" or d.type.__module__ != "numpy"},
    **{
        d.type: np.unsignedinteger if d.name.startswith("u") else np.signedinteger
        for d in SMALL_INTS
    },
}

python_scalar_dtypes: dict[type, DType] = {
    bool: BOOL,
    int: np.dtype("int64"),
    float: np.dtype("float64"),
    complex: np.dtype("complex128"),
}
"""The dtypes of Python numbers when 64 bits are enabled."""

NARROWED = {
    np.dtype("int64"): np.dtype("int32"),
    np.dtype("uint64"): np.dtype("uint32"),
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}


def _scalar_type(x: Any) -> type:
    if isinstance(x, type) and issubclass(x, np.generic):
        return x
    if isinstance(x, KeyType):
        return x.type
    scalar: type = np.dtype(x).type
    return scalar


_subdtypes: dict[Any, bool] = {}


def issubdtype(a: Any, b: Any) -> bool:
    """Whether the dtype `a` is `b` or belongs to the family `b`, as `np.issubdtype`.

    It knows that the narrow floats are `np.floating`, the narrow integers `np.integer`, and that
    typed keys are `prng_key`.

    Args:
      a: a dtype or anything that names one, or a scalar type.
      b: likewise; a family is an abstract scalar type such as `np.inexact`.

    Returns:
      True or False.

    Raises:
      TypeError: if `a` or `b` names no dtype.

    >>> issubdtype("bfloat16", np.inexact), issubdtype("int4", np.signedinteger)
    (True, True)
    """
    try:
        return _subdtypes[a, b]
    except (KeyError, TypeError):
        pass
    if isinstance(b, KeyType):
        return a is b
    scalar, family = _scalar_type(a), _scalar_type(b)
    found = issubclass(scalar, family)
    if not found and scalar in _EXTENSIONS:
        found = issubclass(_EXTENSIONS[scalar], family)
    with contextlib.suppress(TypeError):  # a list of fields does not hash
        _subdtypes[a, b] = found
    return found


def itemsize_bits(dtype: Any) -> int:
    """The size of an element in bits; `int4` has 4, although NumPy stores it in a byte.

    Args:
      dtype: anything that names a dtype, or a `KeyType`.

    Returns:
      An integer.

    Raises:
      TypeError: if it names no dtype.

    >>> itemsize_bits("int4"), itemsize_bits("bool"), itemsize_bits("complex64")
    (4, 8, 64)
    """
    if isinstance(dtype, KeyType):
        return dtype.itemsize * 8
    dtype = np.dtype(dtype)
    info: Any = iinfo if dtype in SMALL_INTS else finfo
    return int(info(dtype).bits) if dtype in SMALL_INTS + SMALL_FLOATS else dtype.itemsize * 8


_short_names: dict[Any, str] = {}


def short_name(dtype: Any) -> str:
    """The name in jaxprs: `f32`, `i8`, `u4`, `c64`, `bf16`, `f8_e4m3fn`, `bool`, `key<fry>`.

    Args:
      dtype: anything that names a dtype, or a `KeyType`.

    Returns:
      A string.

    Raises:
      TypeError: if it names no dtype.

    >>> short_name(np.dtype("float32")), short_name(float0)
    ('f32', 'float0')
    """
    try:
        return _short_names[dtype]
    except KeyError:
        pass
    if isinstance(dtype, KeyType):
        name = dtype.name
    elif np.dtype(dtype) == float0:
        name = "float0"
    else:
        name = np.dtype(dtype).name
        for long, short in (("bfloat", "bf"), ("float", "f"), ("complex", "c"), ("uint", "u")):
            name = name.replace(long, short)
        name = name.replace("int", "i")
    _short_names[dtype] = name
    return name

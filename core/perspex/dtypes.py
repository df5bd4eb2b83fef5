"""Dtypes: which exist, which are allowed now, and which one two of them promote to.

A dtype is an `np.dtype` (those of NumPy and `ml_dtypes`) or a `KeyType`, the dtype of typed random
keys, which NumPy does not know. A *kind* is a pair `(dtype, weak)`: Python numbers are weakly
typed, so `x + 1` keeps the dtype of `x`.

Promotion is the least upper bound in the lattice of `perspex.base.promotion_lattice`.

What always holds: without `enable_x64` every result is 32 bits or narrower, whatever the arguments;
`promote` is a dict lookup when warm (0.2 us), and the flags that it depends on are in the key.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
from ml_dtypes import bfloat16 as bfloat16
from ml_dtypes import finfo as finfo
from ml_dtypes import iinfo as iinfo

from perspex import config
from perspex.base import source
from perspex.base.dimensions import Symbolic
from perspex.base.dtype_families import BOOL, NARROWED, NUMBERS, SMALL_FLOATS, SMALL_INTS, DType
from perspex.base.dtype_families import KeyType as KeyType
from perspex.base.dtype_families import extended as extended
from perspex.base.dtype_families import float0 as float0
from perspex.base.dtype_families import issubdtype as issubdtype
from perspex.base.dtype_families import itemsize_bits as itemsize_bits
from perspex.base.dtype_families import prng_key as prng_key
from perspex.base.dtype_families import python_scalar_dtypes as python_scalar_dtypes
from perspex.base.dtype_families import scalar_types as scalar_types
from perspex.base.dtype_families import short_name as short_name
from perspex.base.promotion_lattice import join
from perspex.errors import TypePromotionError as TypePromotionError

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0",
    "iinfo", "issubdtype", "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip

Kind = tuple[Any, bool]

# By Python type: the kind without and with 64 bits. A bool is never weak: it is the bottom.
_scalar_kinds: dict[type, tuple[Kind, Kind]] = {
    t: ((NARROWED.get(d, d), t is not bool), (d, t is not bool))
    for t, d in python_scalar_dtypes.items()
}

_x64 = config.enable_x64.cell
_mode = config.numpy_dtype_promotion.cell


# -- What a dtype argument means


# One dict without and one with 64 bits, from anything that names a dtype.
_canonical: tuple[dict[Any, DType], dict[Any, DType]] = ({}, {})
_checked: tuple[dict[Any, Any], dict[Any, Any]] = ({}, {})
_of_host: tuple[dict[Any, DType], dict[Any, DType]] = ({}, {})


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that arrays have instead of `dtype`: 32 bits for 64 unless `enable_x64` is on.

    Args:
      dtype: anything that `np.dtype` takes.
      allow_extended_dtype: return a `KeyType` as it is.

    Returns:
      An `np.dtype`, or the `KeyType`.

    Raises:
      TypeError: if it names no dtype.
      ValueError: for a `KeyType` that is not allowed.

    >>> canonicalize_dtype("float64")
    dtype('float32')
    """
    x64 = _x64.value
    try:
        return _canonical[x64][dtype]
    except (KeyError, TypeError):
        pass
    if isinstance(dtype, KeyType):
        if allow_extended_dtype:
            return dtype
        raise ValueError(
            f"canonicalize_dtype got the extended dtype {dtype}; "
            "pass allow_extended_dtype=True to get it back as it is"
        )
    full = np.dtype(dtype)
    found = full if x64 else NARROWED.get(full, full)
    with contextlib.suppress(TypeError):  # a list of fields does not hash
        _canonical[x64][dtype] = found
    return found


def check_user_dtype(dtype: Any, name: str = "") -> Any:
    """The dtype that a user's `dtype=` argument requests, as far as it is enabled.

    Args:
      dtype: an `np.dtype`, a scalar type, a name, a Python number type, a `KeyType`; `None` is the
        default floating dtype. Python's `int`, `float` and `complex` mean the default width.
      name: the function that was asked, for the messages.

    Returns:
      An `np.dtype` or a `KeyType`. It warns (`UserWarning`) where 64 bits are asked for by name
      and are not enabled.

    Raises:
      TypeError: if it is no dtype, or one that arrays cannot have.
      ValueError: for an array.

    >>> check_user_dtype("bfloat16"), check_user_dtype(float)
    (dtype(bfloat16), dtype('float32'))
    """
    x64 = _x64.value
    try:
        return _checked[x64][dtype]
    except (KeyError, TypeError):
        pass
    where = f" in {name}" if name else ""
    if isinstance(dtype, KeyType):
        return dtype
    if dtype is None:
        dtype = float
    if isinstance(dtype, type) and dtype in _scalar_kinds:
        return _scalar_kinds[dtype][x64][0]
    is_value = not isinstance(dtype, (type, np.dtype)) and hasattr(dtype, "dtype")
    if is_value and hasattr(dtype, "shape"):
        raise ValueError(
            f"an array was passed as a dtype{where}; pass its dtype: dtype=x.dtype, not dtype=x"
        )
    try:
        full = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"{error}{where}: {dtype!r} does not name a dtype") from None
    if full not in NUMBERS and full != float0:
        raise TypeError(
            f"only booleans and numbers are supported, got dtype {full}{where}; {_remedy(full)}"
        )
    found = full if x64 else NARROWED.get(full, full)
    if found is not full:
        requested = f" requested{where}" if name else ""
        warnings.warn(
            f"Explicitly requested dtype {full.name}{requested} is not available, and will be "
            f"truncated to dtype {found.name}. To enable more dtypes, set the jax_enable_x64 "
            "configuration option or the JAX_ENABLE_X64 shell environment variable.",
            stacklevel=source.stacklevel(),
        )
        return found
    _checked[x64][dtype] = found
    return found


# -- The dtype of a value


def kind_of(x: Any) -> Kind:
    """The dtype of an array or number, and whether it is weak.

    NumPy's arrays and numbers have the dtype that they get when they become arrays of ours.

    Args:
      x: an array, a tracer, a NumPy array or number, a Python number, or anything with a `dtype`.

    Returns:
      A pair `(dtype, weak)`.

    Raises:
      TypeError: for anything else.

    >>> kind_of(1), kind_of(np.float64(1)), kind_of(True)
    ((dtype('int32'), True), (dtype('float32'), False), (dtype('bool'), False))
    """
    kinds = _scalar_kinds.get(x.__class__)
    if kinds is not None:
        return kinds[_x64.value]
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval.dtype, aval.weak_type
    dtype = getattr(x, "dtype", None)
    if dtype is not None and not isinstance(x, type):
        try:
            return _of_host[_x64.value][dtype], getattr(x, "weak_type", False)
        except KeyError:
            return _host_dtype(dtype, x), getattr(x, "weak_type", False)
    for base in (bool, int, float, complex):  # IntEnum and the like are not weak, as in JAX
        if isinstance(x, base):
            return _scalar_kinds[base][_x64.value][0], False
    if isinstance(x, Symbolic):
        return _scalar_kinds[int][_x64.value][0], True
    raise TypeError(
        f"cannot determine the dtype of {x!r} of type {type(x).__name__}; pass an array or a number"
    )


def _host_dtype(dtype: Any, x: Any) -> Any:
    """The dtype that an array of another library has here; remembered where there is one."""
    if isinstance(dtype, KeyType):
        return dtype
    found = canonicalize_dtype(dtype)
    if dtype not in NUMBERS and dtype != float0:
        raise TypeError(
            f"a value of type {type(x).__name__} with dtype {dtype} is not a valid array: only "
            f"booleans and numbers are; {_remedy(np.dtype(dtype))}"
        )
    _of_host[_x64.value][dtype] = found
    return found


def _remedy(dtype: DType) -> str:
    if not dtype.isnative:
        return f"convert it to native byte order with x.astype('{dtype.newbyteorder('=').name}')"
    if dtype.kind in "US":
        return (
            "convert strings with NumPy first: `np.unique(labels, return_inverse=True)[1]` gives "
            "integer codes, and `np.asarray(texts, float)` reads numbers"
        )
    return "convert it first"


def dtype_of(x: Any) -> Any:
    """The dtype of an array, a tracer or a number.

    Args:
      x: an array, a tracer, a NumPy array or number, or a Python number.

    Returns:
      An `np.dtype` or a `KeyType`.

    Raises:
      TypeError: for anything else.

    >>> dtype_of(2.5), dtype_of(np.arange(3))
    (dtype('float32'), dtype('int32'))
    """
    return kind_of(x)[0]


def is_weakly_typed(x: Any) -> bool:
    """Whether the dtype of a value gives way to that of the other operand.

    Args:
      x: any object.

    Returns:
      True or False; False for what has no dtype.

    Raises:
      Nothing.

    >>> is_weakly_typed(1), is_weakly_typed(np.int32(1)), is_weakly_typed("no number")
    (True, False, False)
    """
    try:
        return kind_of(x)[1]
    except TypeError:
        return False


def is_python_scalar(x: Any) -> bool:
    """Whether a value is exactly a `bool`, `int`, `float` or `complex`; NumPy's numbers are not.

    Args:
      x: any object.

    Returns:
      True or False.

    Raises:
      Nothing.

    >>> is_python_scalar(1.0), is_python_scalar(np.float64(1))
    (True, False)
    """
    return x.__class__ in _scalar_kinds


# -- Promotion


_WEAK_NODES = {"i*": int, "f*": float, "c*": complex}
_promoted: dict[Any, Kind] = {}
_MOST_CACHED = 8


def _weak_node(dtype: DType) -> str:
    if issubdtype(dtype, np.integer):
        return "i*"
    return "f*" if issubdtype(dtype, np.floating) else "c*"


def _join(nodes: list[str], strict: bool) -> str:
    """The least upper bound of nodes; an error that says what to do if there is none."""
    found = join(nodes, _x64.value, strict)
    if found is not None:
        return found
    names = ", ".join([_described(node) for node in dict.fromkeys(nodes)])
    if strict:
        raise TypePromotionError(
            f"Input dtypes ({names}) have no available implicit dtype promotion path when "
            "numpy_dtype_promotion='strict'. Convert the inputs to the dtype of the result with "
            "x.astype(dtype), or set numpy_dtype_promotion='standard'."
        )
    small = [n for n in nodes if not n.endswith("*") and itemsize_bits(n) <= 8 and n != "bool"]
    narrow = [d.name for d in (*SMALL_INTS, *SMALL_FLOATS) if d.name in small]
    raise TypePromotionError(
        f"Input dtypes ({names}) have no available implicit dtype promotion path: "
        f"{' and '.join(narrow)} never promote, because precision would change silently. "
        f"Convert explicitly, e.g. x.astype('{'float32' if 'float' in narrow[0] else 'int32'}')."
    )


def _described(node: str) -> str:
    return f"Python {_WEAK_NODES[node].__name__}" if node in _WEAK_NODES else node


def _check_lattice(dtype: Any) -> None:
    if dtype not in NUMBERS:
        raise ValueError(
            f"{dtype} promotes to no other dtype; "
            + (
                "typed random keys combine only with keys of their own type"
                if isinstance(dtype, KeyType)
                else "only booleans and numbers do"
            )
        )


def promote(kinds: tuple[Kind, ...]) -> Kind:
    """The kind of the result of an operation whose operands have these kinds.

    Args:
      kinds: one pair `(dtype, weak)` for each operand, at least one; `kind_of` gives them.

    Returns:
      A pair `(dtype, weak)`.

    Raises:
      TypePromotionError: where there is no common dtype.
      ValueError: for a dtype of no number.

    >>> promote(((np.dtype("int8"), False), (np.dtype("float32"), True)))
    (dtype('float32'), True)
    """
    key = (kinds, _x64.value, _mode.value)
    try:
        return _promoted[key]
    except KeyError:
        kind = _promote(kinds)
        if len(kinds) <= _MOST_CACHED:  # else each number of concatenated arrays would be a key
            _promoted[key] = kind
        return kind


def _promote(kinds: tuple[Kind, ...]) -> Kind:
    kinds = tuple([(dtype, weak and dtype != BOOL) for dtype, weak in kinds])
    first = kinds[0][0]
    if len(kinds) == 1:
        return kinds[0]
    if all(dtype == first for dtype, _ in kinds) and not all(weak for _, weak in kinds):
        return first, False
    for dtype, _ in kinds:
        _check_lattice(dtype)
    strict = _mode.value == "strict"
    if not strict and all(weak for _, weak in kinds):
        # Weak operands only: they meet as strong ones would, and stay weak.
        return np.dtype(scalar_types[_join([dtype.name for dtype, _ in kinds], strict)]), True
    node = _join([_weak_node(d) if weak else d.name for d, weak in kinds], strict)
    if node in _WEAK_NODES:
        return _scalar_kinds[_WEAK_NODES[node]][_x64.value]
    return canonicalize_dtype(scalar_types[node]), False


def promote_types(a: Any, b: Any) -> DType:
    """The dtype that two dtypes promote to. 64 bits stay 64 bits, also where they are not enabled.

    Args:
      a, b: anything that names a dtype; Python's `int`, `float` and `complex` are weak.

    Returns:
      An `np.dtype`.

    Raises:
      TypePromotionError: where there is no common dtype.
      TypeError: for what names no dtype.
      ValueError: for a dtype that is not one of numbers.

    >>> promote_types("uint8", "int8"), promote_types(float, "bfloat16")
    (dtype('int16'), dtype(bfloat16))
    """
    nodes = []
    for dtype in (a, b):
        node = next((n for n, t in _WEAK_NODES.items() if dtype is t), None)
        if node is None:
            if isinstance(dtype, KeyType) and dtype is a is b:
                return dtype  # type: ignore[return-value]
            dtype = dtype if isinstance(dtype, KeyType) else np.dtype(dtype)
            _check_lattice(dtype)
            node = dtype.name
        nodes.append(node)
    node = _join(nodes, _mode.value == "strict")
    return np.dtype(_WEAK_NODES.get(node) or scalar_types[node])


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype of the result of an operation on `args`.

    Args:
      args: arrays, numbers and dtypes. Python numbers, `int`, `float` and `complex` are weak.
      return_weak_type_flag: return the pair of dtype and whether it is weak.

    Returns:
      An `np.dtype`, or a pair of it and a boolean.

    Raises:
      ValueError: without arguments.
      TypePromotionError: where there is no common dtype.
      TypeError: for what is neither an array, a number nor a dtype.

    >>> result_type(3, np.dtype("int8")), result_type(1, 2.0, return_weak_type_flag=True)
    (dtype('int8'), (dtype('float32'), True))
    """
    if not args:
        raise ValueError("result_type needs at least one array, number or dtype")
    dtype, weak = promote(tuple([_kind_of_argument(x) for x in args]))
    if weak:  # no operation narrows its operands, but as a dtype a weak type is the default one
        unsigned = issubdtype(dtype, np.unsignedinteger)
        dtype = (
            canonicalize_dtype("uint64")
            if unsigned
            else _scalar_kinds[_WEAK_NODES[_weak_node(dtype)]][_x64.value][0]
        )
    return (dtype, weak) if return_weak_type_flag else dtype


def _kind_of_argument(x: Any) -> Kind:
    if isinstance(x, type) and x in _scalar_kinds:
        return _scalar_kinds[x][_x64.value]
    if x is None or isinstance(x, (str, type, np.dtype, KeyType)):
        return check_user_dtype(x, "result_type"), False
    return kind_of(x)


# -- Families and facts


def scalar_type_of(x: Any) -> type:
    """The Python type of the elements: `bool`, `int`, `float` or `complex`.

    Args:
      x: an array, a number, or a dtype.

    Returns:
      A class.

    Raises:
      TypeError: where the elements are not numbers.

    >>> scalar_type_of("bfloat16"), scalar_type_of(np.arange(3))
    (<class 'float'>, <class 'int'>)
    """
    dtype = _kind_of_argument(x)[0]
    for family, scalar in _PYTHON_OF.items():
        if issubdtype(dtype, family):
            return scalar
    raise TypeError(f"the elements of {x!r}, of dtype {dtype}, are not numbers")


_PYTHON_OF = {np.bool_: bool, np.integer: int, np.floating: float, np.complexfloating: complex}


def to_numeric_dtype(dtype: Any) -> Any:
    """The dtype for arithmetic: booleans become `int32`, other dtypes stay as they are.

    Args:
      dtype: anything that names a dtype.

    Returns:
      An `np.dtype`.

    Raises:
      TypeError: if it names no dtype.

    >>> to_numeric_dtype("bool"), to_numeric_dtype("int8")
    (dtype('int32'), dtype('int8'))
    """
    dtype = np.dtype(dtype)
    return np.dtype("int32") if dtype == BOOL else dtype


def to_inexact_dtype(dtype: Any) -> DType:
    """The floating dtype in which functions such as `sin` compute for an argument of `dtype`.

    `float64` for 64-bit integers, `float32` for booleans and the other integers.

    Args:
      dtype: anything that names a dtype.

    Returns:
      An `np.dtype`.

    Raises:
      TypeError: if it names no dtype of numbers.

    >>> to_inexact_dtype("int8"), to_inexact_dtype("bfloat16")
    (dtype('float32'), dtype(bfloat16))
    """
    if isinstance(dtype, KeyType):
        raise TypeError(
            f"dtype {dtype.name} is not a dtype of numbers; random.key_data(key) gives the numbers"
        )
    found: DType = np.dtype(dtype)
    if found == BOOL or issubdtype(found, np.integer):
        return np.dtype("float64" if found.itemsize == 8 else "float32")
    return found


def to_complex_dtype(dtype: Any) -> DType:
    """The complex dtype that holds the values of another dtype.

    Args:
      dtype: anything that names a dtype.

    Returns:
      `complex128` for 64-bit types, `complex64` for the others.

    Raises:
      TypeError: if it names no dtype of numbers.

    >>> to_complex_dtype("float16"), to_complex_dtype("float64")
    (dtype('complex64'), dtype('complex128'))
    """
    found: DType = np.dtype(dtype)
    if issubdtype(found, np.complexfloating):
        return found
    return np.dtype("complex128" if found.itemsize == 8 else "complex64")

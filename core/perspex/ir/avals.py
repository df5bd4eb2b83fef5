"""Abstract values: what tracing knows about an array.

A `ShapedArray` stands for every array of one shape, dtype and weak type. Instances are interned, so
equality and hashing are those of the object's identity and a tuple of avals is a cheap dict key.
That is what makes the type-rule caches of the primitives a single lookup.
"""

from __future__ import annotations

import math
import operator
from typing import Any, ClassVar

import numpy as np

from perspex import dtypes
from perspex.base.dimensions import Symbolic, size

# The axes along which a value outside `shard_map` varies.
NOWHERE: frozenset[str] = frozenset()


class ShapedArray:
    """The type of an array: `shape`, `dtype` and whether the dtype may give way (`weak_type`).

    Inside `shard_map`, `vma` has the axes of the mesh along which the devices may hold different
    values ("varying manual axes").

    Two calls with equal arguments return the same object.

    >>> ShapedArray((3,), np.dtype("float32")) is ShapedArray((3,), np.dtype("float32"))
    True
    """

    __slots__ = ("__weakref__", "dtype", "ndim", "shape", "size", "vma", "weak_type")
    pool: ClassVar[dict[Any, ShapedArray]] = {}

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    vma: frozenset[str]
    ndim: int
    size: int

    def __new__(
        cls,
        shape: Any,
        dtype: Any,
        weak_type: bool = False,
        vma: frozenset[str] = NOWHERE,
        *,
        sharding: None = None,
    ) -> ShapedArray:
        if vma:
            return ShapedArray(shape, dtype, weak_type)._varying(vma)
        try:
            return cls.pool[shape, dtype, weak_type]
        except (KeyError, TypeError):
            pass
        shape = tuple([size(n) for n in shape])
        if not isinstance(dtype, dtypes.KeyType):
            dtype = np.dtype(dtype)
        key = (shape, dtype, bool(weak_type))
        aval = cls.pool.get(key)
        return cls._made(key, NOWHERE) if aval is None else aval

    @classmethod
    def _made(cls, key: Any, vma: frozenset[str]) -> ShapedArray:
        aval: ShapedArray = object.__new__(cls)
        aval.shape, aval.dtype, aval.weak_type = key[:3]
        aval.vma = vma
        aval.ndim = len(aval.shape)
        aval.size = math.prod(aval.shape)
        return cls.pool.setdefault(key, aval)

    def _varying(self, vma: frozenset[str]) -> ShapedArray:
        key = (self.shape, self.dtype, self.weak_type, frozenset(vma))
        found = self.pool.get(key)
        return self._made(key, key[3]) if found is None else found

    def __reduce__(self) -> Any:
        return ShapedArray, (self.shape, self.dtype, self.weak_type, self.vma)

    def update(self, **changes: Any) -> ShapedArray:
        """The aval with `shape`, `dtype`, `weak_type` or `vma` replaced."""
        return ShapedArray(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            changes.get("weak_type", self.weak_type),
            changes.get("vma", self.vma),
        )

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    @property
    def is_extended(self) -> bool:
        """Whether an element is itself a small array: a typed PRNG key."""
        return isinstance(self.dtype, dtypes.KeyType)

    @property
    def is_float0(self) -> bool:
        """Whether it is the tangent of integers, whose elements hold nothing."""
        return bool(self.dtype == dtypes.float0)

    def physical(self) -> ShapedArray:
        """The aval of the array of plain numbers that holds these elements.

        Devices know no elements that hold nothing: they are given booleans instead.
        """
        if isinstance(self.dtype, dtypes.KeyType):
            return ShapedArray((*self.shape, *self.dtype.key_shape), np.dtype("uint32"))
        return ShapedArray(self.shape, np.dtype(bool)) if self.is_float0 else self

    @property
    def nbytes(self) -> int:
        """The bytes of memory that such an array takes."""
        physical = self.physical()
        return physical.size * int(physical.dtype.itemsize)

    def str_short(self, short_dtypes: bool = True) -> str:
        """`f32[3,4]`, as it is written in jaxprs; `f32[3,4]{V:x}` if it varies along `x`."""
        name = dtypes.short_name(self.dtype) if short_dtypes else self.dtype.name
        axes = ",".join(sorted(self.vma))
        vma = f"{{V:{axes if len(self.vma) == 1 else f'({axes})'}}}" if axes else ""
        return f"{name}[{','.join(map(str, self.shape))}]{vma}"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return operator.index(self.shape[0])

    def __str__(self) -> str:
        return ("~" if self.weak_type else "") + self.str_short(short_dtypes=False)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"


PYTHON_SCALARS: dict[type, str] = {bool: "bool", int: "int", float: "float", complex: "complex"}


def scalar_aval(x: Any) -> ShapedArray:
    """The weakly typed aval of a Python number; an integer that fits no width is an error."""
    dtype = dtypes.dtype_of(x)
    if type(x) is int and not (
        (info := np.iinfo(dtype)).min <= x <= info.max  # bool is not `int` by `type`
    ):
        raise OverflowError(
            f"Python int {x} is too large to convert to {dtype.name}; "
            "give it an explicit wider dtype, which needs `enable_x64`"
        )
    return ShapedArray((), dtype, type(x) is not bool)


def shaped(x: Any) -> ShapedArray:
    """The aval of an array, a NumPy array, a NumPy scalar or a Python number.

    Raises `TypeError` for anything else, and `ValueError` for a masked array.
    """
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval
    kind = type(x)
    if kind in PYTHON_SCALARS:
        return scalar_aval(x)
    if isinstance(x, (np.ndarray, np.generic)):
        if x.dtype.hasobject or x.dtype.kind in "USMm":
            raise TypeError(
                f"an array of dtype {x.dtype} is not a valid array of numbers; convert it first"
            )
        if kind is not np.ndarray and isinstance(x, np.ma.MaskedArray):
            raise ValueError(
                "numpy masked arrays are not valid arrays here, because the mask would be lost; "
                "write x.filled(0) for an array with a number in place of what is masked"
            )
        # A scalar has no byte order: to NumPy it is a number.
        dtype = dtypes.dtype_of(x) if isinstance(x, np.ndarray) else x.dtype
        return ShapedArray(x.shape, dtypes.canonicalize_dtype(dtype))
    if isinstance(x, Symbolic):
        return ShapedArray((), dtypes.dtype_of(x), True)
    for base in (bool, int, float, complex):  # subclasses: IntEnum and the like, which are strong
        if isinstance(x, base):
            return ShapedArray((), dtypes.dtype_of(x))
    raise TypeError(
        f"a value of type {kind} is not a valid array: pass an array, a NumPy array or a number"
    )

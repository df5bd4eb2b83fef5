"""Abstract values: what tracing knows about an array.

A `ShapedArray` stands for every array of one shape, dtype and weak type. Instances are interned, so
equality and hashing are those of the object's identity and a tuple of avals is a cheap dict key.
That is what makes the type-rule caches of the primitives a single lookup.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from perspex import dtypes
from perspex.base.dimensions import Symbolic, size
from perspex.layout.context import get_abstract_mesh
from perspex.layout.memories import MemorySpace
from perspex.layout.named import NamedSharding
from perspex.layout.spec import PartitionSpec
from perspex.layout.types import explicit_part

# The axes along which a value outside `shard_map` varies.
NOWHERE: frozenset[str] = frozenset()
_DEVICE = MemorySpace.Device
# The dtypes that NumPy's arrays and numbers have only while `enable_x64` is on.
WIDE = frozenset([np.dtype(name) for name in ("int64", "uint64", "float64", "complex128")])


class ShapedArray:
    """The type of an array: `shape`, `dtype` and whether the dtype may give way (`weak_type`).

    Inside `shard_map`, `vma` has the axes of the mesh along which the devices may hold different
    values ("varying manual axes").

    `cut` says how the array is cut along the explicit axes of a mesh; `None` if it is not, which is
    all that programs without such meshes ever have. `memory_space` is the memory where it lies.

    Two calls with equal arguments return the same object.

    >>> ShapedArray((3,), np.dtype("float32")) is ShapedArray((3,), np.dtype("float32"))
    True
    """

    __slots__ = (
        "__weakref__", "cut", "dtype", "is_extended", "memory_space", "ndim", "shape", "size",
        "vma", "weak_type",
    )  # fmt: skip
    pool: ClassVar[dict[Any, ShapedArray]] = {}
    # Whether any lies in another memory than the device's: where none does, nobody looks.
    are_spaces_used: ClassVar[bool] = False
    # The same for 64 bits, which `enable_x64` may switch on for a part of a program.
    are_wide_used: ClassVar[bool] = False

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    vma: frozenset[str]
    cut: NamedSharding | None
    memory_space: MemorySpace
    ndim: int
    size: int
    is_extended: bool
    """Whether an element is itself a small array: a typed PRNG key."""

    def __new__(
        cls,
        shape: Any,
        dtype: Any,
        weak_type: bool = False,
        vma: frozenset[str] = NOWHERE,
        *,
        sharding: NamedSharding | None = None,
        memory_space: MemorySpace = _DEVICE,
    ) -> ShapedArray:
        if vma or sharding is not None or memory_space is not _DEVICE:
            return ShapedArray(shape, dtype, weak_type)._placed(vma, sharding, memory_space)
        try:
            return cls.pool[shape, dtype, weak_type]
        except (KeyError, TypeError):
            pass
        shape = tuple([size(n) for n in shape])
        if not isinstance(dtype, dtypes.KeyType):
            dtype = np.dtype(dtype)
        key = (shape, dtype, bool(weak_type))
        aval = cls.pool.get(key)
        return cls._made(key, NOWHERE, None, _DEVICE) if aval is None else aval

    @classmethod
    def _made(
        cls, key: Any, vma: frozenset[str], cut: NamedSharding | None, memory_space: MemorySpace
    ) -> ShapedArray:
        aval: ShapedArray = object.__new__(cls)
        aval.shape, aval.dtype, aval.weak_type = key[:3]
        aval.vma, aval.cut, aval.memory_space = vma, cut, memory_space
        aval.ndim = len(aval.shape)
        aval.size = math.prod(aval.shape)
        aval.is_extended = isinstance(aval.dtype, dtypes.KeyType)
        if aval.dtype in WIDE:
            ShapedArray.are_wide_used = True
        return cls.pool.setdefault(key, aval)

    def _placed(
        self, vma: frozenset[str], sharding: NamedSharding | None, memory_space: MemorySpace
    ) -> ShapedArray:
        cut = None if sharding is None else explicit_part(sharding, self.shape)
        if not vma and cut is None and memory_space is _DEVICE:
            return self
        if memory_space is not _DEVICE:
            ShapedArray.are_spaces_used = True
        key = (self.shape, self.dtype, self.weak_type, frozenset(vma), cut, memory_space)
        found = self.pool.get(key)
        return self._made(key, key[3], cut, memory_space) if found is None else found

    def __reduce__(self) -> Any:
        placed = (self.vma, self.cut, self.memory_space)
        return _aval, (self.shape, self.dtype, self.weak_type, *placed)

    def update(self, **changes: Any) -> ShapedArray:
        """The aval with `shape`, `dtype`, `weak_type` or one of the other properties replaced.

        A new shape without a sharding is cut nowhere.
        """
        shape = changes.get("shape", self.shape)
        cut = self.cut
        if "sharding" in changes:
            cut = changes["sharding"]
        elif cut is not None and shape != self.shape:
            cut = None
        return ShapedArray(
            shape,
            changes.get("dtype", self.dtype),
            changes.get("weak_type", self.weak_type),
            changes.get("vma", self.vma),
            sharding=cut,
            memory_space=changes.get("memory_space", self.memory_space),
        )

    @property
    def sharding(self) -> NamedSharding:
        """How the array is cut, over the mesh around if it is not; that may have no axes."""
        if self.cut is not None:
            return self.cut
        return NamedSharding(get_abstract_mesh(), PartitionSpec(*[None] * self.ndim))

    def cotangent(self) -> ShapedArray:
        """The aval of a cotangent: unreduced along the axes along which this is reduced."""
        if self.cut is None or self.cut.spec.is_plain:
            return self
        spec = self.cut.spec
        turned = spec.update(unreduced=spec.reduced, reduced=spec.unreduced, unreduced_kind=None)
        return self.update(sharding=self.cut.update(spec=turned))

    def uncut(self) -> ShapedArray:
        """The aval of an array that is cut nowhere."""
        return self if self.cut is None else self.update(sharding=None)

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    @property
    def is_float0(self) -> bool:
        """Whether it is the tangent of integers, whose elements hold nothing."""
        return bool(self.dtype == dtypes.float0)

    def physical(self) -> ShapedArray:
        """The aval of the array of plain numbers that holds these elements.

        Devices know no elements that hold nothing: they are given booleans instead.
        """
        if self.is_extended:
            shape = (*self.shape, *self.dtype.key_shape)
            where = self.memory_space
            return ShapedArray(shape, np.dtype("uint32"), sharding=self.cut, memory_space=where)
        return self.update(dtype=np.dtype(bool)) if self.is_float0 else self

    @property
    def nbytes(self) -> int:
        """The bytes of memory that such an array takes."""
        physical = self.physical()
        return physical.size * int(physical.dtype.itemsize)

    def str_short(self, short_dtypes: bool = True) -> str:
        """`f32[3,4]`, as it is written in jaxprs.

        `f32<host>[3]` lies in the memory of the host. `f32[3@x,4]` is cut along the axis `x` of a
        mesh, `f32[3,4]{V:x}` varies along it; `U` and `R` mark axes along which it is unreduced and
        reduced.
        """
        short = short_dtypes or self.is_float0
        name = dtypes.short_name(self.dtype) if short else self.dtype.name
        if self.memory_space is not _DEVICE:
            name = f"{name}<{self.memory_space.name.lower()}>"
        sizes, sets = [str(n) for n in self.shape], {"V": self.vma}
        if self.cut is not None:
            sizes, sets = _with_cuts(sizes, sets, self.cut)
        marks = [f"{mark}:{_together(sorted(names))}" for mark, names in sets.items() if names]
        return f"{name}[{','.join(sizes)}]{'{' + ', '.join(marks) + '}' if marks else ''}"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return operator.index(self.shape[0])

    def __str__(self) -> str:
        return ("~" if self.weak_type else "") + self.str_short(short_dtypes=False)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"


def _aval(
    shape: Any,
    dtype: Any,
    weak_type: bool,
    vma: frozenset[str],
    cut: NamedSharding | None,
    memory_space: MemorySpace,
) -> ShapedArray:
    return ShapedArray(shape, dtype, weak_type, vma, sharding=cut, memory_space=memory_space)


def _together(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({','.join(names)})"


def _with_cuts(
    sizes: Sequence[str], sets: dict[str, frozenset[str]], cut: NamedSharding
) -> tuple[list[str], dict[str, frozenset[str]]]:
    """The sizes of axes with the axes of the mesh that cut them, and the sets with those of it."""
    spec = cut.spec
    kind = spec.unreduced_kind
    unreduced = "U" if kind is None or kind.name == "sum" else f"U_{kind.name}"
    marked = [
        f"{n}@{_together(names)}" if names else n
        for n, names in zip(sizes, spec.names(), strict=True)
    ]
    return marked, {**sets, unreduced: spec.unreduced, "R": spec.reduced}


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

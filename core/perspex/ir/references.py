"""The type of a mutable array: `Ref{float32[3]}`."""

from __future__ import annotations

from typing import Any, ClassVar

from perspex.ir.avals import ShapedArray


class AbstractRef:
    """The type of a mutable array whose value has the type `inner_aval`.

    Two calls with equal arguments return the same object.

    Args:
      inner_aval: the type of the value; a weak type becomes strong.
      memory_space: only `None`.
      kind: only `None`.

    Returns:
      An object with these attributes, and with `shape`, `dtype`, `ndim` and `size`.

    Raises:
      NotImplementedError: for a memory space or a kind.

    >>> import numpy as np
    >>> AbstractRef(ShapedArray((3,), np.dtype("float32")))
    Ref{float32[3]}
    """

    __slots__ = ("__weakref__", "inner_aval")
    _pool: ClassVar[dict[ShapedArray, AbstractRef]] = {}

    inner_aval: ShapedArray
    # What other types of values may say: a ref says none of it.
    weak_type = False
    cut = None
    is_extended = False
    is_float0 = False
    memory_space = None
    kind = None

    def __new__(
        cls, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None
    ) -> AbstractRef:
        refuse_memory("AbstractRef", memory_space=memory_space, kind=kind)
        inner_aval = inner_aval.strip_weak_type()
        found = cls._pool.get(inner_aval)
        if found is None:
            found = object.__new__(cls)
            found.inner_aval = inner_aval
            found = cls._pool.setdefault(inner_aval, found)
        return found

    def __reduce__(self) -> Any:
        return AbstractRef, (self.inner_aval,)

    @property
    def vma(self) -> frozenset[str]:
        return self.inner_aval.vma

    @property
    def shape(self) -> tuple[int, ...]:
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        return self.inner_aval.ndim

    @property
    def size(self) -> int:
        return self.inner_aval.size

    @property
    def nbytes(self) -> int:
        """The bytes of memory that the value takes."""
        return self.inner_aval.nbytes

    def update(self, **changes: Any) -> AbstractRef:
        """The type of a ref whose value has another `shape` or `dtype`."""
        return AbstractRef(self.inner_aval.update(**changes))

    def strip_weak_type(self) -> AbstractRef:
        return self

    def str_short(self, short_dtypes: bool = True) -> str:
        """`Ref{f32[3]}`, as it is written in jaxprs."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __len__(self) -> int:
        return len(self.inner_aval)

    def __repr__(self) -> str:
        return self.str_short(short_dtypes=False)


def is_ref_type(aval: Any) -> bool:
    """Whether a type is that of a ref."""
    return aval.__class__ is AbstractRef


def refuse_memory(what: str, **chosen: Any) -> None:
    """Raise `NotImplementedError` for a choice of memory that is not the only one."""
    for name, value in chosen.items():
        if value is not None and value is not False:
            raise NotImplementedError(
                f"{what}({name}={value!r}): refs live in the default memory of their device; "
                f"leave {name} out"
            )

"""Mutable arrays: `new_ref` makes one, and these functions read it and write into it."""

from typing import Any

from perspex.ir.references import AbstractRef as AbstractRef
from perspex.ops import refs
from perspex.ops.refs import Ref as Ref

__all__ = [
    "AbstractRef",
    "Ref",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]


def get(ref: Any, idx: Any = None) -> Any:
    """Read a ref: `ref[idx]`.

    Args:
      ref: a `Ref`, or a view `ref.at[...]` of one.
      idx: integers, slices with a positive step, arrays of integers, `...`; by default all of it.

    Returns:
      An array.

    Raises:
      ValueError: if `ref` is none, and for an index that does not fit.

    Example:
      >>> import perspex
      >>> ref = perspex.new_ref(perspex.numpy.arange(3))
      >>> perspex.ref.get(ref, slice(1, 3))
      Array([1, 2], dtype=int32)
    """
    return refs.get(ref, idx)


def swap(ref: Any, idx: Any, value: Any) -> Any:
    """Write into a ref, and return what was there.

    Args:
      ref: a `Ref`, or a view `ref.at[...]` of one.
      idx: as for `get`.
      value: an array or number with the shape of the part and with the dtype of the ref.

    Returns:
      The part as it was before.

    Raises:
      ValueError: if `ref` is none, for an index that does not fit, for a value of another shape or
        dtype, and for a value that depends on what is differentiated or mapped over where the ref
        does not.

    Example:
      >>> import perspex
      >>> ref = perspex.new_ref(perspex.numpy.arange(3))
      >>> perspex.ref.swap(ref, 0, 7)
      Array(0, dtype=int32)
      >>> ref
      Ref([7, 1, 2], dtype=int32)
    """
    return refs.swap(ref, idx, value)


def set(ref: Any, idx: Any, value: Any) -> None:
    """Write into a ref: `ref[idx] = value`.

    Args:
      ref: a `Ref`, or a view `ref.at[...]` of one.
      idx: as for `get`.
      value: an array or number with the shape of the part and with the dtype of the ref.

    Returns:
      Nothing.

    Raises:
      ValueError: as for `swap`.

    Example:
      >>> import perspex
      >>> ref = perspex.new_ref(perspex.numpy.arange(3))
      >>> perspex.ref.set(ref, 0, 7)
      >>> ref
      Ref([7, 1, 2], dtype=int32)
    """
    refs.set(ref, idx, value)


def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add to a part of a ref. An element that several indices name gets all of their addends.

    Args:
      ref: a `Ref`, or a view `ref.at[...]` of one.
      idx: as for `get`.
      x: an array or number with the shape of the part and with the dtype of the ref.

    Returns:
      Nothing.

    Raises:
      ValueError: as for `swap`.

    Example:
      >>> import perspex
      >>> ref = perspex.new_ref(perspex.numpy.arange(3))
      >>> perspex.ref.addupdate(ref, 1, 10)
      >>> ref
      Ref([ 0, 11,  2], dtype=int32)
    """
    refs.addupdate(ref, idx, x)


def new_ref(init_val: Any, *, memory_space: Any = None, kind: Any = None, pin: bool = False) -> Ref:
    """Make a mutable array.

    Args:
      init_val: its first value, an array or a number. The ref changes no array: it has its own
        memory.
      memory_space, kind, pin: only the defaults.

    Returns:
      A `Ref` of the shape and dtype of `init_val`.

    Raises:
      TypeError: if `init_val` is not an array or a number.
      NotImplementedError: for another memory.

    Example:
      >>> import perspex
      >>> ref = perspex.new_ref(perspex.numpy.zeros(3))
      >>> ref[0] = 1.0
      >>> ref[1:] += 2.0
      >>> ref
      Ref([1., 2., 2.], dtype=float32)
    """
    return refs.new_ref(init_val, memory_space=memory_space, kind=kind, pin=pin)


def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Ref:
    """Make a mutable array whose elements have no value yet: write before you read.

    Args:
      ty: an array, or anything with a shape and a dtype.
      memory_space, pin: only the defaults.

    Returns:
      A `Ref` of that shape and dtype. Here its elements are zeros.

    Raises:
      TypeError: if `ty` has no shape and dtype.
      NotImplementedError: for another memory.

    Example:
      >>> import perspex
      >>> ref = perspex.empty_ref(perspex.ShapeDtypeStruct((2,), "float32"))
      >>> ref[...] = perspex.numpy.ones(2)
      >>> ref
      Ref([1., 1.], dtype=float32)
    """
    return refs.empty_ref(ty, memory_space, pin)


def freeze(ref: Ref) -> Any:
    """End a ref, and return its value.

    Args:
      ref: a ref that this function has made. In a traced function it cannot be used any more.

    Returns:
      The value, an array.

    Raises:
      ValueError: if `ref` is none, is over, or comes from outside of the traced function.

    Example:
      >>> import perspex
      >>> perspex.freeze(perspex.new_ref(3.0))
      Array(3., dtype=float32)
    """
    return refs.freeze(ref)


def free_ref(ref: Ref) -> None:
    """End a ref whose value nobody needs any more.

    Args:
      ref: a ref that this function has made. In a traced function it cannot be used any more.

    Returns:
      Nothing.

    Raises:
      ValueError: if `ref` is none, is over, or comes from outside of the traced function.

    Example:
      >>> import perspex
      >>> perspex.free_ref(perspex.new_ref(3.0))
    """
    refs.free_ref(ref)

"""The methods and operators of arrays, shared by tracers and by concrete arrays.

They forward to the functions of the array namespace, `perspex.numpy`, which lies far above: the
namespace is set once, by `perspex/__init__.py`. Concrete arrays take these methods over in
`runtime.array`, where the operators get a C++ fast path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from perspex.advice import messages
from perspex.base import source

# Filled by `perspex/__init__.py`; `Any` because the layer below cannot know the one above.
face: Any = None


def set_namespace(namespace: Any) -> None:
    """Make `namespace` the one that the methods forward to. Called once, at import."""
    global face
    face = namespace


# Types that an operator takes as the other operand; anything else is `NotImplemented`, so that
# Python tries the other operand's method and then raises its TypeError.
_operand_types: set[type] = {bool, int, float, complex, np.ndarray}


def accept_operand(cls: type) -> None:
    """Let operators take instances of `cls`."""
    _operand_types.add(cls)


def is_operand(x: Any) -> bool:
    """Whether an operator takes `x` beside an array."""
    if x.__class__ in _operand_types:
        return True
    return isinstance(x, (ArrayMethods, np.generic, np.ndarray, bool, int, float, complex))


def accepts(x: Any) -> bool:
    """Whether an operator takes `x` beside an array; if not, Python asks the other operand.

    Raises `TypeError` for lists and the like: Python would say that `x == [1]` is False.
    """
    if is_operand(x):
        return True
    if isinstance(x, (list, tuple, set, dict)):
        raise TypeError(
            f"unsupported operand types: an array and a {type(x).__name__}; "
            "convert it with jnp.array(...)"
        )
    return False


def _binary(name: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        kind = other.__class__
        if kind is self.__class__ or kind in _operand_types or accepts(other):
            return getattr(face, name)(self, other)
        return NotImplemented

    operator.__name__ = name
    return operator


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if accepts(other):
            return getattr(face, name)(other, self)
        return NotImplemented

    operator.__name__ = name
    return operator


def _unary(name: str) -> Callable[[Any], Any]:
    def operator(self: Any) -> Any:
        return getattr(face, name)(self)

    operator.__name__ = name
    return operator


def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(face, name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"`perspex.numpy.{name}` of this array."
    return method


class ArrayMethods:
    """What an array can do, in terms of the array namespace."""

    __slots__ = ()
    __array_priority__ = 100

    aval: Any

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _binary("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _binary("true_divide"), _reflected("true_divide")
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _binary("remainder"), _reflected("remainder")
    __divmod__, __rdivmod__ = _binary("divmod"), _reflected("divmod")
    __pow__, __rpow__ = _binary("power"), _reflected("power")
    __matmul__, __rmatmul__ = _binary("matmul"), _reflected("matmul")
    __and__, __rand__ = _binary("bitwise_and"), _reflected("bitwise_and")
    __or__, __ror__ = _binary("bitwise_or"), _reflected("bitwise_or")
    __xor__, __rxor__ = _binary("bitwise_xor"), _reflected("bitwise_xor")
    __lshift__, __rlshift__ = _binary("left_shift"), _reflected("left_shift")
    __rshift__, __rrshift__ = _binary("right_shift"), _reflected("right_shift")
    __eq__, __ne__ = _binary("equal"), _binary("not_equal")
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __neg__, __pos__ = _unary("negative"), _unary("positive")
    __abs__, __invert__ = _unary("abs"), _unary("bitwise_not")

    # Arrays compare elementwise, so they have no hash, as in NumPy.
    __hash__ = None  # type: ignore[assignment]

    def __round__(self, ndigits: int | None = None) -> Any:
        # Python's `round(x)` is an integer, `round(x, n)` a float.
        return face.astype(face.round(self), int) if ndigits is None else face.round(self, ndigits)

    def __len__(self) -> int:
        return len(self.aval)

    def __iter__(self) -> Iterator[Any]:
        return face.iterate(self)

    def __getitem__(self, index: Any) -> Any:
        return face.getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(messages.item_assignment(type(self).__name__, source.statement()))

    def __delitem__(self, index: Any) -> None:
        raise TypeError(
            f"{type(self).__name__} object does not support item deletion: arrays are immutable. "
            "Use `perspex.numpy.delete`, which returns a new array."
        )

    @property
    def at(self) -> Any:
        """`x.at[idx].set(y)` and its kin: a new array with some elements updated.

        The operations are `set add subtract multiply divide power min max apply get`.
        """
        return face.at(self)

    @property
    def T(self) -> Any:
        """The array with its axes reversed."""
        return face.transpose(self)

    @property
    def mT(self) -> Any:
        """The array with its last two axes swapped."""
        return face.matrix_transpose(self)

    @property
    def real(self) -> Any:
        """The real part."""
        return face.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part; zeros for an array of reals."""
        return face.imag(self)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.size * self.aval.dtype.itemsize

    def astype(self, dtype: Any, copy: bool = False, device: Any = None) -> Any:
        """The array converted to `dtype`."""
        return face.astype(self, dtype, copy=copy, device=device)

    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> Any:
        """The same elements in another shape; one entry may be -1."""
        return face.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        """The array with its axes permuted; reversed when no axes are given."""
        if not axes or axes == (None,):
            return face.transpose(self)
        return face.transpose(self, axes[0] if len(axes) == 1 else axes)

    def flatten(self, order: str = "C") -> Any:
        """The elements in one axis."""
        return face.ravel(self, order=order)

    @property
    def flat(self) -> Any:
        """Refused: an iterator over memory that cannot be written to. Use `x.ravel()`."""
        raise NotImplementedError("arrays have no .flat, which could be assigned to; use x.ravel()")

    def view(self, dtype: Any = None) -> Any:
        """The same bits as another dtype."""
        return face.view(self, dtype)

    def item(self, *args: int) -> Any:
        """The only element, or the one at `args`, as a Python number."""
        return np.asarray(self).item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return np.asarray(self).tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """The bytes of the elements."""
        return np.asarray(self).tobytes(order)  # type: ignore[arg-type]

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return face

    all, any = _method("all"), _method("any")
    argmax, argmin = _method("argmax"), _method("argmin")
    argpartition, argsort = _method("argpartition"), _method("argsort")
    choose, clip, compress = _method("choose"), _method("clip"), _method("compress")
    conj = conjugate = _method("conjugate")
    copy = _method("copy")
    cumprod, cumsum = _method("cumprod"), _method("cumsum")
    diagonal, dot = _method("diagonal"), _method("dot")
    max, mean, min = _method("max"), _method("mean"), _method("min")
    nonzero, partition = _method("nonzero"), _method("partition")
    prod, ptp = _method("prod"), _method("ptp")
    ravel, repeat, round = _method("ravel"), _method("repeat"), _method("round")
    searchsorted, sort, squeeze = _method("searchsorted"), _method("sort"), _method("squeeze")
    std, sum, swapaxes = _method("std"), _method("sum"), _method("swapaxes")
    take, trace, var = _method("take"), _method("trace"), _method("var")

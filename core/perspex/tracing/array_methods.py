"""How the methods and operators of arrays reach the functions of the array namespace.

That namespace, `perspex.numpy`, lies far above: it is set once, by `perspex/__init__.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

# Filled by `perspex/__init__.py`; `Any` because the layer below cannot know the one above.
face: Any = None


def set_namespace(namespace: Any) -> None:
    """Make `namespace` the one that the methods forward to. Called once, at import."""
    global face
    face = namespace


# The version of the array API standard, https://data-apis.org/array-api.
API_VERSION = "2025.12"


_standard: Any = None


def set_standard(namespace: Any) -> None:
    """Make `namespace` what arrays call theirs: `jax.numpy`, where that is Perspex."""
    global _standard
    _standard = namespace


def standard(api_version: str | None) -> Any:
    """The namespace of arrays in the sense of the standard.

    Raises `ValueError` for another version of the standard.
    """
    if api_version is not None and api_version != API_VERSION:
        raise ValueError(
            f"{api_version=!r} is not available; available versions are: {[API_VERSION]}"
        )
    return _standard or face


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
    return isinstance(x, (Operators, np.generic, np.ndarray, bool, int, float, complex))


def declared_array(x: Any) -> Any:
    """What `x.__jax_array__()` gives where an object has it, until something has not; else `x`."""
    while hasattr(type(x), "__jax_array__"):
        x = x.__jax_array__()
    return x


def accepts(x: Any) -> bool:
    """Whether an operator takes `x` beside an array; if not, Python asks the other operand.

    Raises `TypeError` for lists and the like: Python would say that `x == [1]` is False.
    """
    if is_operand(x) or hasattr(type(x), "__jax_array__"):
        return True
    if isinstance(x, (list, tuple, set, dict)):
        raise TypeError(
            f"unsupported operand types: an array and a {type(x).__name__}; "
            "convert it with jnp.array(...)"
        )
    return False


def _binary(name: str) -> Any:
    def operator(self: Any, other: Any) -> Any:
        kind = other.__class__
        if kind is self.__class__ or kind in _operand_types or accepts(other):
            return getattr(face, name)(self, other)
        return NotImplemented

    operator.__name__ = name
    return operator


def _reflected(name: str) -> Any:
    def operator(self: Any, other: Any) -> Any:
        if accepts(other):
            return getattr(face, name)(other, self)
        return NotImplemented

    operator.__name__ = name
    return operator


def _unary(name: str) -> Any:
    def operator(self: Any) -> Any:
        return getattr(face, name)(self)

    operator.__name__ = name
    return operator


_NAMES = ("__module__", "__name__", "__qualname__", "__annotations__")


def forwarded(declared: F) -> F:
    """The method that calls the function of that name, with the signature that is declared."""
    name = declared.__name__

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(face, name)(self, *args, **kwargs)

    method.__doc__ = f"`perspex.numpy.{name}` of this array."
    return functools.update_wrapper(method, declared, _NAMES)  # type: ignore[return-value]


class Operators:
    """The operators of arrays; `Array` says what they take and return."""

    __slots__ = ()
    __array_priority__ = 100

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

    def to_device(self, device: Any, *, stream: None = None) -> Any:
        """The array on `device`: a device, a sharding, or `None` for where it is."""
        if stream is not None:
            raise NotImplementedError(
                f"to_device takes no stream, got {stream}; XLA orders what runs on a device"
            )
        return face.asarray(self, device=device)

    # Arrays compare elementwise, so they have no hash, as in NumPy.
    __hash__ = None  # type: ignore[assignment]

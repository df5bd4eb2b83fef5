"""Public functions made of rows of `ops`: checks of operands, and documentation.

A row says what its function computes and gives an example; the dtypes that it takes and the number
of its operands say the rest.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, Protocol

from perspex.arguments.arrays import aval_of
from perspex.arguments.types import Array, ArrayLike
from perspex.ops.accuracy import Accuracy
from perspex.ops.arithmetic import complex_dtype, widened_dtype
from perspex.ops.expansions import real_dtype
from perspex.ops.families import Elementwise, as_bool
from perspex.ops.structural import broadcast_in_dim


class Unary(Protocol):
    """A function of one operand."""

    def __call__(self, x: ArrayLike) -> Array: ...


class Accurate(Protocol):
    """A function of one operand, whose accuracy can be chosen."""

    def __call__(self, x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array: ...


class Binary(Protocol):
    """A function of two operands."""

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array: ...


def unary(row: Elementwise, name: str = "") -> Unary:
    """The function of one operand for a row, called `name` where the row is called otherwise."""

    def face(x: ArrayLike) -> Array:
        return row(x)

    return _presented(face, row, name)


def accurate(row: Elementwise) -> Accurate:
    """`unary`, with the parameter `accuracy`."""

    def face(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
        if accuracy is None:
            return row(x)
        if not isinstance(accuracy, Accuracy):
            raise NotImplementedError(
                f"{row.name}: accuracy must be a lax.AccuracyMode or a lax.Tolerance, got "
                f"{accuracy!r}"
            )
        return row(x, accuracy=accuracy)

    return _presented(face, row)


def binary(row: Elementwise, name: str = "") -> Binary:
    """The function of two operands for a row, called `name` where the row is called otherwise."""
    name = name or row.name

    def face(x: ArrayLike, y: ArrayLike) -> Array:
        return row(*matched(name, x, y))

    return _presented(face, row, name)


def adopt(module: dict[str, Any]) -> dict[str, Any]:
    """Make the functions that were made here those of the module with these globals.

    Returns them by name: what doctest, which takes no functions from elsewhere, reads in a module's
    `__test__`.
    """
    made = {
        name: value
        for name, value in module.items()
        if isinstance(value, FunctionType) and value.__code__.co_name == "face"
    }
    for face in made.values():
        face.__module__ = module["__name__"]
    return made


# ---- Documentation ------------------------------------------------------------------------------

_DTYPES: dict[Any, str] = {
    as_bool: "bool",
    real_dtype: "that of `x`, or of its parts if it is complex",
    complex_dtype: "complex, with parts of the dtype of `x`",
    widened_dtype: "that of `x` if it is complex, else complex with such parts",
}
_Y = """  y: of the dtype of `x`. Shapes must be equal unless one operand is a scalar; axes of size
    one broadcast."""
_ACCURACY = """  accuracy: which of the compiler's functions it takes: an `AccuracyMode`, or a
    `Tolerance` for the error. It has no effect where the compiler has one function alone."""


def _presented(face: Any, row: Elementwise, name: str = "") -> Any:
    """`face` with the name of the row and its documentation."""
    name = name or row.name
    pair, choice = face.__code__.co_argcount == 2, face.__kwdefaults__
    text = [row.summary, "", "Args:", f"  x: an array or a scalar ({row.kind})."]
    text += [_Y] * pair
    text += [_ACCURACY] * bool(choice)
    like = "both" if pair else "`x`"
    result = f"the shape and dtype of {like}."
    if row.out_dtype:
        result = f"the shape of {like}; its dtype is {_DTYPES[row.out_dtype]}."
    text += ["", "Returns:", f"  An array of {result}"]
    operand, fault = ("an operand", "dtype or shape") if pair else ("`x`", "dtype")
    text += ["", "Raises:"]
    text += [f"  TypeError: if {operand} is not an array or a number, or has another {fault}."]
    text += ["  NotImplementedError: for an `accuracy` of another type."] * bool(choice)
    if row.source:
        text += ["", "References:", f"  {row.source}"]
    face.__name__ = face.__qualname__ = name
    face.__doc__ = "\n".join([*text, "", *_example(name, row.example), ""])
    return face


def _example(name: str, example: str) -> list[str]:
    """The lines of an example such as `sin(0.0) -> 0.`, whose result is an array of its kind."""
    call, result = example.split(" -> ")
    if call.startswith(f"{name}("):
        kind = "complex64" if "j" in result else "float32" if "." in result else "int32"
        dtype = "bool" if result in ("True", "False") else kind
        result = f"Array({result}, dtype={dtype}, weak_type=True)"
    call = call.replace(f"{name}(", f"lax.{name}(")
    return [">>> from perspex import lax", f">>> {call}", result]


# ---- Operands -----------------------------------------------------------------------------------


def matched(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands of one shape, unless one is a scalar; axes of size one are repeated."""
    ax, ay = aval_of(name, x), aval_of(name, y)
    if ax.shape == ay.shape or not ax.shape or not ay.shape:
        return x, y
    if ax.ndim != ay.ndim:
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, got shapes {ax.shape} and "
            f"{ay.shape}; add axes with lax.expand_dims"
        )
    pairs = list(zip(ax.shape, ay.shape, strict=True))
    if any(n != m and n != 1 and m != 1 for n, m in pairs):
        raise TypeError(
            f"{name} got incompatible shapes for broadcasting: {ax.shape}, {ay.shape}; sizes must "
            "be equal or 1"
        )
    shape = tuple([m if n == 1 else n for n, m in pairs])
    return _repeated(x, ax.shape, shape), _repeated(y, ay.shape, shape)


def _repeated(x: Any, given: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    if given == shape:
        return x
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(len(shape))))

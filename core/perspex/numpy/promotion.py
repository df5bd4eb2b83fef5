"""What functions of arrays do to their operands before they bind: check, promote, convert, spread.

All of it happens while tracing, at the price of what is left to do: operands of one aval pass after
two attribute reads, and a Python number beside a strong array becomes a number of its dtype by one
dict lookup. Everything else takes the long way.

What always holds: results have one dtype, and one shape or none, as the elementwise primitives want
them; Python and NumPy numbers stay numbers, which tracing turns into literals.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from perspex import config, dtypes, errors
from perspex.advice import messages
from perspex.arguments.types import Array, ArrayLike, Axis
from perspex.base import source
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray, shaped
from perspex.ir.jaxpr import Literal
from perspex.ops import elementwise as ops
from perspex.ops.structural import broadcast_in_dim, convert_element_type, reshape
from perspex.runtime.client import default_device
from perspex.runtime.dispatch import EVAL
from perspex.runtime.transfer import put
from perspex.tracing.array_methods import is_operand
from perspex.tracing.staging import JaxprTrace, JaxprTracer
from perspex.tracing.trace import Tracer, state

BOOL = np.dtype(bool)

# (aval, type of a Python number) -> what makes the number one of the array's dtype. Only where the
# array decides whatever the flags: a strong dtype beside a weak number.
_literals: dict[tuple[ShapedArray, type], Callable[[Any], Any]] = {}
# The avals of floats and complex numbers: what `inexact` lets through.
_inexact: set[ShapedArray] = set()


# ---- Checks -------------------------------------------------------------------------------------


def check_arraylike(name: str, *args: Any) -> None:
    """Raise `TypeError` for lists, strings and other values that are not arrays or numbers."""
    for i, arg in enumerate(args):
        if arg.__class__ is not JaxprTracer and not is_operand(arg):
            at = f" at position {i}" if len(args) > 1 else ""
            remedy = (
                "; convert it with jnp.array(...)"
                if isinstance(arg, (list, tuple, range))
                else "; pass an array or a number"
            )
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(arg)}{at}{remedy}"
            )


def check_no_out(name: str, out: Any) -> None:
    """Raise `NotImplementedError` if the caller asks to write into an array."""
    if out is not None:
        raise NotImplementedError(
            f"The 'out' argument to jnp.{name} is not supported: arrays never change; "
            "use the value that it returns"
        )


def check_real(name: str, x: Any) -> None:
    """Raise `TypeError` if `x` is an array of complex numbers."""
    if x.dtype.kind == "c":
        raise TypeError(
            f"{name} does not support complex-valued inputs, got {x.dtype.name}; "
            "take the real or the imaginary part with jnp.real or jnp.imag"
        )


def concrete(what: str, convert: Callable[[Any], Any], x: Any) -> Any:
    """`convert(x)` for an argument that must be known while tracing, `what` in the messages.

    Errors:
      `ConcretizationTypeError` for a tracer without a value; those of `convert`.
    """
    try:
        return convert(x)
    except (TypeError, ValueError) as error:
        if isinstance(x, Tracer):
            raise errors.ConcretizationTypeError(
                messages.concretization(what, *x._story())
            ) from None
        raise type(error)(f"{what}: {error}") from None


def canonical_axis(axis: Any, ndim: int) -> int:
    """The axis counted from the front; `ValueError` if there is no such axis."""
    index = operator.index(axis)
    if not -ndim <= index < ndim:
        raise ValueError(f"axis {index} is out of bounds for array of dimension {ndim}")
    return index + ndim if index < 0 else index


def canonical_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The axes counted from the front, all of them for `None`; `ValueError` for duplicates."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, int):
        return (canonical_axis(axis, ndim),)
    given = axis if isinstance(axis, (tuple, list, np.ndarray)) else (axis,)
    axes = tuple([canonical_axis(a, ndim) for a in given])
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return axes


def hashable_axis(name: str, axis: Any) -> Any:
    """`axis` as an integer, a tuple of them or `None`: what a static argument can be."""
    if axis is None or axis.__class__ is int:
        return axis
    try:
        return operator.index(axis)
    except TypeError:
        if not isinstance(axis, Iterable):
            raise TypeError(
                f"{name}: axis must be an integer, a sequence of integers or None, "
                f"got {axis!r} of type {type(axis).__name__}"
            ) from None
    return tuple([operator.index(a) for a in axis])


def canonical_shape(name: str, shape: Any) -> tuple[int, ...]:
    """A shape from an integer or a sequence of them; they must be known while tracing."""
    if shape.__class__ is tuple or shape.__class__ is list:
        sizes = shape
    elif getattr(shape, "ndim", None) == 0 or not isinstance(shape, Iterable):
        sizes = (shape,)
    elif isinstance(shape, (Sequence, np.ndarray)) or hasattr(shape, "aval"):
        sizes = list(shape)
    else:
        raise TypeError(
            f"{name} expected a sequence or a single integer for the shape, got {type(shape)}"
        )
    try:
        canonical = tuple([operator.index(n) for n in sizes])
    except TypeError:
        if any(hasattr(n, "_trace") for n in sizes):
            raise
        raise TypeError(
            f"{name}: shapes must be sequences of concrete integers, got {shape!r}; "
            "under jit, mark the argument that gives the shape with static_argnums"
        ) from None
    if any(n < 0 for n in canonical):
        raise TypeError(f"{name}: negative dimensions are not allowed, got shape {canonical}")
    return canonical


# ---- Values -------------------------------------------------------------------------------------


def constant(x: Any, aval: ShapedArray) -> Array:
    """The host value `x` as an array of type `aval`: on the device, or a literal while tracing."""
    trace: Any = state.trace
    bottom: Any = EVAL
    while trace is not bottom and trace.__class__ is not JaxprTrace:
        trace = trace.parent
    if trace is bottom:
        return put(x, default_device(), aval=aval)
    value = np.asarray(x, aval.dtype)
    atom: Any = trace.lift(value) if aval.shape else Literal(value[()], aval)
    return JaxprTracer(trace, atom)


def as_array(x: ArrayLike) -> Array:
    """An array of ours from what `check_arraylike` lets through."""
    return x if hasattr(x, "aval") else constant(x, shaped(x))  # type: ignore[return-value]


def as_dtype(x: Any, dtype: np.dtype, weak: bool = False) -> Array:
    """`x` as `dtype`: a number becomes a number of that dtype, an array is converted if need be."""
    if x.__class__ in PYTHON_SCALARS:
        return constant(x, ShapedArray((), dtype, True)) if weak else dtype.type(x)
    aval = getattr(x, "aval", None)
    if aval is None:
        if not weak:
            if not hasattr(x, "dtype"):  # a subclass of Python's numbers, such as an IntEnum
                return dtype.type(x)
            return x.astype(dtype) if x.dtype != dtype else x
    elif aval.dtype == dtype and aval.weak_type == weak:
        return x
    return convert_element_type(x, new_dtype=dtype, weak_type=weak)


def filled(value: np.generic, shape: tuple[int, ...]) -> Array:
    """An array of `shape` that repeats the number `value`."""
    if not shape:
        return constant(value, ShapedArray((), value.dtype))
    return broadcast_in_dim(value, shape=shape, broadcast_dimensions=())


def like(x: Any, value: Any) -> Array:
    """The number `value` in the dtype of `x`; weakly typed if `x` is a weakly typed scalar."""
    aval = getattr(x, "aval", None)
    if aval is not None and aval.weak_type and not aval.shape:
        return constant(value, aval)
    return x.dtype.type(value)


def weak_like(x: Any, value: Any) -> Array:
    """The number `value` in the dtype of `x`; weakly typed if `x` is, whatever its shape."""
    aval = getattr(x, "aval", None)
    if aval is not None and aval.weak_type:
        return constant(value, ShapedArray((), aval.dtype, True))
    return x.dtype.type(value)


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex number; other dtypes are their own."""
    return ops.real_dtype(dtype)


# ---- Promotion ----------------------------------------------------------------------------------


def promote(name: str, x: Any, y: Any) -> Sequence[Array]:
    """Two operands at one dtype, and at one shape unless one is a scalar."""
    ax: Any = getattr(x, "aval", None)
    ay: Any = getattr(y, "aval", None)
    if ax is ay and ax is not None:
        return x, y
    if ay is None:
        make = _literals.get((ax, y.__class__))
        if make is not None:
            return x, make(y)
    elif ax is None:
        make = _literals.get((ay, x.__class__))
        if make is not None:
            return make(x), y
    elif _differ_in_shape(ax, ay):
        return broadcast(name, x, y)
    return promote_all(name, x, y)


def _differ_in_shape(x: ShapedArray, y: ShapedArray) -> bool:
    """Whether these strong types need no promotion."""
    return x.dtype == y.dtype and not x.weak_type and not y.weak_type


def promote_inexact(name: str, x: Any, y: Any) -> Sequence[Array]:
    """Two operands at one floating or complex dtype, and one shape unless one is a scalar."""
    ax = getattr(x, "aval", None)
    if ax in _inexact:
        ay = getattr(y, "aval", None)
        if ax is ay:
            return x, y
        if ay is None:
            make = _literals.get((ax, y.__class__))
            if make is not None:
                return x, make(y)
        elif _differ_in_shape(ax, ay):
            return broadcast(name, x, y)
    return promote_all(name, x, y, to=dtypes.to_inexact_dtype)


def promote_numeric(name: str, x: Any, y: Any) -> Sequence[Array]:
    """Two operands at one dtype that is not boolean, and one shape unless one is a scalar."""
    return promote_all(name, x, y, to=dtypes.to_numeric_dtype)


def inexact(name: str, x: Any) -> Array:
    """One operand at a floating or complex dtype."""
    try:
        if x.aval in _inexact:
            return x
    except AttributeError:
        pass
    check_arraylike(name, x)
    aval = shaped(x)
    if dtypes.issubdtype(aval.dtype, np.inexact):
        _inexact.add(aval)
        return as_array(x)
    _check_number(name, aval)
    return as_dtype(x, dtypes.to_inexact_dtype(aval.dtype), aval.weak_type)


def numeric(name: str, x: Any) -> Array:
    """One operand as an array that is not boolean."""
    aval = getattr(x, "aval", None)
    if aval is None:
        check_arraylike(name, x)
        aval = shaped(x)
    if aval.dtype == BOOL:
        return as_dtype(x, dtypes.to_numeric_dtype(aval.dtype))
    return as_array(x)


def arraylike(name: str, x: Any) -> Array:
    """One operand as an array of ours; `TypeError` for lists and other values."""
    if hasattr(x, "aval"):
        return x
    check_arraylike(name, x)
    return constant(x, shaped(x))


def promote_dtypes(
    name: str, *args: Any, to: Callable[[Any], np.dtype] | None = None
) -> list[Array]:
    """Operands at one dtype, raised by `to`; their shapes stay as they are."""
    if len(args) == 2 and to is None:
        x, y = args
        ax: Any = getattr(x, "aval", None)
        ay: Any = getattr(y, "aval", None)
        make = None if ay is not None else _literals.get((ax, y.__class__))
        if make is not None:
            return [x, make(y)]
        if ax is not None and ay is not None and _differ_in_shape(ax, ay):
            return [x, y]
    check_arraylike(name, *args)
    avals = [shaped(x) for x in args]
    for aval in avals:
        if aval.is_extended and any(a.dtype != aval.dtype for a in avals):
            _check_number(name, aval)
    dtype, weak = dtypes.promote(tuple([(a.dtype, a.weak_type) for a in avals]))
    dtype = dtype if to is None else to(dtype)
    if len(args) == 2 and not weak:
        _remember(args, avals, dtype)
    return [as_dtype(x, dtype, weak) for x in args]


def promote_all(name: str, *args: Any, to: Callable[[Any], np.dtype] | None = None) -> list[Array]:
    """Operands at one dtype, raised by `to`, and at one shape unless they are scalars."""
    promoted = promote_dtypes(name, *args, to=to)
    shapes = {s for s in map(np.shape, promoted) if s}
    return promoted if len(shapes) < 2 else broadcast(name, *promoted)


def _remember(args: Sequence[Any], avals: Sequence[ShapedArray], dtype: np.dtype) -> None:
    """Note that a strong array takes numbers of that type, for the next time."""
    for (x, aval), other in zip(zip(args, avals, strict=True), reversed(args), strict=True):
        kind = other.__class__
        weak = kind in PYTHON_SCALARS and kind is not bool
        if (weak or (kind is dtype.type and dtype.itemsize < 8)) and aval.dtype == dtype:
            if hasattr(x, "aval") and not aval.weak_type:
                _literals[aval, kind] = dtype.type
            if dtypes.issubdtype(dtype, np.inexact):
                _inexact.add(aval)


def _check_number(name: str, aval: ShapedArray) -> None:
    if aval.is_extended:
        raise TypeError(
            f"{name} does not accept dtype {aval.dtype.name} beside or as a number; "
            "random.key_data(key) gives the numbers in a key"
        )


# ---- Shapes -------------------------------------------------------------------------------------


# NumPy makes an array of each shape to find the common one, which takes 5 us.
common_shape = functools.lru_cache(maxsize=1024)(np.broadcast_shapes)


def broadcast_shapes(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which NumPy's rules spread all of `shapes`."""
    try:
        return common_shape(*shapes)
    except ValueError:
        kind = TypeError if len({len(s) for s in shapes}) == 1 else ValueError
        raise kind(
            f"{name} got incompatible shapes for broadcasting: {', '.join(map(str, shapes))}; "
            "sizes must be equal or 1, counted from the last axis"
        ) from None


def broadcast(name: str, *args: Any) -> list[Array]:
    """Arrays at the shape that NumPy's rules give; scalars stay scalars."""
    shapes = [x.aval.shape if hasattr(x, "aval") else np.shape(x) for x in args]
    shape = broadcast_shapes(name, *shapes)
    if config.numpy_rank_promotion.value != "allow" and len({len(s) for s in shapes if s}) > 1:
        _rank_promotion(name, shapes)
    return [
        x if not s or s == shape else spread(x, shape) for x, s in zip(args, shapes, strict=True)
    ]


def spread(x: Any, shape: tuple[int, ...]) -> Array:
    """`x` repeated to fill `shape`, which must be compatible; an equation unless it has it."""
    given = np.shape(x)
    if given == shape:
        return as_array(x)
    skip = len(shape) - len(given)
    if skip < 0 or any([n not in (1, m) for n, m in zip(given, shape[skip:], strict=True)]):
        raise ValueError(f"cannot broadcast an array of shape {given} to shape {shape}")
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(skip, len(shape))))


def expand(x: Any, axes: Sequence[int]) -> Array:
    """`x` with axes of size one put in, at the places `axes` of the result."""
    if not axes:
        return x
    shape, kept = _expanded(x.shape, tuple(axes))
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=kept)


@functools.lru_cache(maxsize=1024)
def _expanded(given: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """The shape with the new axes, and the places of the old ones in it."""
    kept = tuple([i for i in range(len(given) + len(axes)) if i not in axes])
    sizes = dict(zip(kept, given, strict=True))
    return tuple([sizes.get(i, 1) for i in range(len(given) + len(axes))]), kept


def flat(x: Any) -> Array:
    """The elements in one axis."""
    return x if x.ndim == 1 else reshape(x, new_sizes=(x.size,))


def _rank_promotion(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    mode = config.numpy_rank_promotion.value
    message = (
        f"Operands of {name} differ in rank: {', '.join(map(str, shapes))}, and "
        f"numpy_rank_promotion is {mode!r}; add axes with reshape, or set it to 'allow'"
    )
    if mode == "raise":
        raise ValueError(message)
    warnings.warn(message, stacklevel=source.stacklevel())


# ---- Choice -------------------------------------------------------------------------------------


def ordered(compare: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """`compare(x, y)`; complex numbers compare by real part, then by imaginary part."""
    if x.dtype.kind != "c":
        return compare(x, y)
    same = ops.eq(ops.real(x), ops.real(y))
    by_imag = compare(ops.imag(x), ops.imag(y))
    return ops.select(same, by_imag, compare(ops.real(x), ops.real(y)))


def to_bool(x: Any) -> Array:
    """Whether the elements of an array differ from zero."""
    return x if x.dtype == BOOL else ops.ne(x, like(x, 0))


def select(name: str, condition: Any, x: Any, y: Any) -> Array:
    """`x` where `condition` holds, else `y`: promoted, and spread over one shape."""
    condition = to_bool(arraylike(name, condition))
    x, y = promote_dtypes(name, x, y)
    shapes = [np.shape(v) for v in (condition, x, y)]
    if len({s for s in shapes if s}) > 1:
        shape = broadcast_shapes(name, *shapes)
        condition, x, y = broadcast(name, condition, x, y)
        if not condition.shape:
            x, y = spread(x, shape), spread(y, shape)
    return ops.select(condition, x, y)

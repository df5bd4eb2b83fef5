"""Universal functions: elementwise functions as objects that also reduce, accumulate and scatter.

`add.reduce` is `sum`, `maximum.accumulate` the running maximum, and `frompyfunc` makes such an
object of any function of numbers. What a function says of itself (its identity, a reduction of its
own) is used; one that says nothing is applied from left to right, by a loop that is compiled once.

The elementwise functions themselves stand in the modules of their subject, where the rest of the
package finds them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import as_array, as_dtype, check_arraylike, expand, spread
from perspex.arguments.axes import canonical_axes, canonical_axis, hashable_axis
from perspex.arguments.refused import check_no_out
from perspex.arguments.types import Array, ArrayLike, Axis, DTypeLike
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.lax.elementwise import stop_gradient
from perspex.numpy import arithmetic, logic, reductions, transcendental
from perspex.numpy.folding import accumulated, applied_at, by_slices, folded
from perspex.numpy.indexing.at import at as at_places
from perspex.numpy.mapping import vectorize
from perspex.numpy.promotion import select, to_bool
from perspex.ops import reductions as reduce_ops
from perspex.ops.structural import reshape, squeeze

__all__ = [
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "frompyfunc", "logaddexp", "logaddexp2",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "subtract", "ufunc",
]  # fmt: skip


class ufunc(functools.partial[Array]):  # noqa: N801 - the name is NumPy's
    """An elementwise function that can be reduced, accumulated and applied at places.

    Made by `frompyfunc`; `add`, `multiply`, `maximum` and others are such objects.

    Attributes:
      nin, nout: the numbers of arrays that it takes and returns.
      nargs: `nin`, if it is not given.
      identity: the number that changes nothing when it is combined; `None` if there is none.

    Args:
      func: a function of `nin` numbers that returns `nout`.
      name: the name; that of `func` by default.
      call: the same function of arrays, which are broadcast; made from `func` if not given.
      reduce, accumulate, at, reduceat: functions with the arguments of the methods of these names
        that do their work.

    Raises:
      TypeError: if `func` is not a function, or a count not an integer.
      ValueError: for counts below 1.

    >>> import perspex.numpy as jnp
    >>> jnp.add.reduce(jnp.arange(4)), jnp.maximum.accumulate(jnp.array([1, 3, 2]))
    (Array(6, dtype=int32), Array([1, 3, 3], dtype=int32))
    """

    # A `partial` of nothing, because one is called in C: `jnp.add(x, y)` takes 3.28 us, where the
    # function in it takes 3.20 and a class with `__call__(self, *args)` 3.5.

    if TYPE_CHECKING:

        def __call__(self, /, *operands: ArrayLike) -> Array: ...

    __module__ = "perspex.numpy"
    nin: int
    nout: int
    nargs: int
    identity: Any
    __name__: str
    _own: dict[str, Callable[..., Any] | None]
    _given: tuple[Any, int, int, dict[str, Any]]

    def __new__(
        cls,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ) -> ufunc:
        if not callable(func):
            raise TypeError(f"ufunc: func must be a function, got {func!r}")
        nin, nout = operator.index(nin), operator.index(nout)
        if nin < 1 or nout < 1:
            raise ValueError(f"ufunc: nin and nout must be at least 1, got {nin} and {nout}")
        made = super().__new__(cls, vectorize(func) if call is None else call)
        functools.update_wrapper(made, func, updated=())
        made.__name__ = str(name or getattr(func, "__name__", type(func).__name__))
        made.nin, made.nout, made.identity = nin, nout, identity
        made.nargs = nin if nargs is None else operator.index(nargs)
        made._own = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}
        made._given = func, nin, nout, {"name": name, "nargs": nargs, "identity": identity}
        made._given[3].update(call=call, **made._own)
        return made

    def __reduce__(self) -> Any:
        if globals().get(self.__name__) is self:
            return _public, (self.__name__,)
        func, nin, nout, options = self._given
        return _remade, (func, nin, nout, options)

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    __str__ = __repr__

    def _check(self, method: str, out: Any, *arrays: Any) -> None:
        if self.nin != 2:
            raise ValueError(
                f"{method} only supported for binary ufuncs: {self.__name__} takes {self.nin} "
                "arrays"
            )
        if self.nout != 1:
            raise ValueError(
                f"{method} only supported for functions returning a single value: "
                f"{self.__name__} returns {self.nout}"
            )
        check_no_out(f"{self.__name__}.{method}", out)
        check_arraylike(f"{self.__name__}.{method}", *arrays)

    def reduce(
        self,
        a: ArrayLike,
        axis: Axis = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """All elements along an axis combined, from the first to the last.

        Args:
          a: an array.
          axis: the axis; `None` combines all elements. Functions that have a reduction of their
            own (`add`, `maximum`, ...) take several axes too.
          dtype: the dtype to compute in, which is that of the result.
          out: not supported: arrays never change.
          keepdims: keep the axis, with size 1.
          initial: the value to begin with, which is the result where there is no element.
          where: booleans that broadcast to `a`: the elements that take part.

        Returns:
          An array without the axis.

        Raises:
          TypeError: if `a` is not an array or a number.
          ValueError: where there is no element, or may be none, and neither an identity nor
            `initial`; for an axis that is not there; for functions that are not binary.
          NotImplementedError: for `out`, and for several axes where the order matters.

        >>> import perspex.numpy as jnp
        >>> jnp.subtract.reduce(jnp.array([10, 3, 2]))
        Array(5, dtype=int32)
        """
        self._check("reduce", out, a)
        name = f"{self.__name__}.reduce"
        axis, dtype = hashable_axis(name, axis), _checked_dtype(name, dtype)
        own = self._own["reduce"]
        if where is not None and self.identity is None and initial is None:
            raise ValueError(
                f"reduction operation '{self.__name__}' does not have an identity, so to use a "
                "where mask one has to specify 'initial'"
            )
        if own is not None:
            return own(a, axis, dtype, None, keepdims, initial, where)
        if isinstance(axis, tuple):
            raise NotImplementedError(
                f"{name}: the order of elements matters, so it takes one axis or None, got {axis}"
            )
        return folded(a, initial, where, self, axis, dtype, keepdims)

    def accumulate(
        self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """The elements up to each one, combined along an axis.

        Args:
          a: an array of at least one axis.
          axis: the axis.
          dtype: the dtype to compute in, which is that of the result.
          out: not supported: arrays never change.

        Returns:
          An array of the shape of `a`.

        Raises:
          TypeError: if `a` is not an array.
          ValueError: for an axis that is not there, or several; for functions that are not binary.
          NotImplementedError: for `out`.

        >>> import perspex.numpy as jnp
        >>> jnp.multiply.accumulate(jnp.array([1, 2, 3, 4]))
        Array([ 1,  2,  6, 24], dtype=int32)
        """
        self._check("accumulate", out, a)
        name = f"{self.__name__}.accumulate"
        own = self._own["accumulate"]
        if axis is None or isinstance(axis, (tuple, list)):
            # NumPy lets None mean the only axis. Of several, only `add` and `multiply` have the
            # elements in an order of their own in JAX, that of `cumsum`.
            if own is None or axis is not None:
                raise ValueError(f"{name} does not allow multiple axes, got axis={axis}")
        elif np.ndim(a) == 0:
            raise ValueError(f"{name}: axis {axis} is out of bounds for array of dimension 0")
        dtype = _checked_dtype(name, dtype)
        if own is not None:
            return own(a, axis, dtype, None)
        axis = canonical_axis(axis, np.ndim(a))
        return accumulated(a, self, axis, dtype, self in _ASSOCIATIVE)

    def at(
        self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True
    ) -> Array:
        """`a` with the function applied at places, once for each time that a place is named.

        Args:
          a: an array.
          indices: an index, as in `a[...]`.
          b: the second operand, broadcast to the places; none if the function takes one array.
          inplace: must be given as `False`, because arrays never change: the result is a new one.

        Returns:
          An array of the shape of `a`.

        Raises:
          NotImplementedError: for `inplace=True`, the way of NumPy.
          TypeError: for a number of operands that the function does not take.

        >>> import perspex.numpy as jnp
        >>> jnp.add.at(jnp.zeros(3), jnp.array([0, 0, 2]), 1.0, inplace=False)
        Array([2., 0., 1.], dtype=float32)
        """
        name = f"{self.__name__}.at"
        if inplace:
            raise NotImplementedError(
                f"{name}: arrays never change, so it cannot work in place as numpy's does; use "
                f"the value that jnp.{name}(..., inplace=False) returns"
            )
        operands = [a] if b is None else [a, b]
        if len(operands) != self.nin or self.nout != 1:
            raise TypeError(
                f"{name}: {self.__name__} takes {self.nin} arrays and returns {self.nout}, but "
                f"{len(operands)} were given and 1 is stored"
            )
        check_arraylike(name, *operands)
        own = self._own["at"]
        return applied_at(self, *operands, indices) if own is None else own(a, indices, b)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:  # noqa: N803 - the public names
        """The function of every element of `A` with every element of `B`.

        Args:
          A, B: arrays or numbers.

        Returns:
          An array whose axes are those of `A`, then those of `B`.

        Raises:
          TypeError: if an operand is not an array or a number.
          ValueError: for functions that are not binary.

        >>> import perspex.numpy as jnp
        >>> jnp.add.outer(jnp.array([10, 20]), jnp.arange(3))
        Array([[10, 11, 12],
               [20, 21, 22]], dtype=int32)
        """
        self._check("outer", None, A, B)
        x, y = as_array(A), as_array(B)
        return self(reshape(x, new_sizes=(*x.shape, *[1] * y.ndim)), y)

    def reduceat(
        self,
        a: ArrayLike,
        indices: ArrayLike,
        axis: int = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """Slices of an axis combined: from each index up to the next.

        Args:
          a: an array of at least one axis.
          indices: integers, of one axis. Where an index is not below the next one, the slice is the
            one element there; the last slice goes to the end.
          axis: the axis.
          dtype: the dtype to compute in; that of `a` if not given.
          out: not supported: arrays never change.

        Returns:
          An array of the shape of `a`, with one element along the axis for each index.

        Raises:
          TypeError: if an argument is not an array.
          ValueError: for arguments of other ranks, indices that are not integers, an axis that is
            not there, and functions that are not binary.
          NotImplementedError: for `out`.

        >>> import perspex.numpy as jnp
        >>> jnp.add.reduceat(jnp.arange(8), jnp.array([0, 4, 6]))
        Array([ 6,  9, 13], dtype=int32)
        """
        self._check("reduceat", out, a, indices)
        if np.ndim(a) == 0:
            raise ValueError("reduceat: a must have 1 or more dimension, got a.shape=()")
        if np.ndim(indices) != 1:
            raise ValueError(
                f"reduceat: indices must be one-dimensional, got indices.shape={np.shape(indices)}"
            )
        if not dtypes.issubdtype(shaped(indices).dtype, np.integer):
            raise ValueError(
                f"reduceat: indices must have an integer type, got {shaped(indices).dtype}"
            )
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError(f"reduceat requires a single integer axis, got {axis}")
        axis, dtype = canonical_axis(axis, np.ndim(a)), _checked_dtype("reduceat", dtype)
        own = self._own["reduceat"]
        if own is not None:
            return own(a, indices, axis, dtype, None)
        return by_slices(a, indices, self, axis, dtype)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A universal function made of a function of numbers.

    Args:
      func: takes `nin` numbers (arrays without axes, while it is traced) and returns `nout`.
      nin, nout: the numbers of operands and of results.
      identity: the number that changes nothing, if there is one: the reduction of no element.

    Returns:
      A `ufunc`: a function of arrays, which are broadcast, with `reduce`, `accumulate`, `at` ...

    Raises:
      TypeError: if `func` is not a function, or a count not an integer.
      ValueError: for counts below 1.

    >>> import perspex.numpy as jnp
    >>> hypot = jnp.frompyfunc(lambda x, y: jnp.sqrt(x * x + y * y), 2, 1)
    >>> hypot.reduce(jnp.array([2.0, 3.0, 6.0]))
    Array(7., dtype=float32)
    """
    return ufunc(func, nin, nout, identity=identity)


def _remade(func: Any, nin: int, nout: int, options: dict[str, Any]) -> ufunc:
    return ufunc(func, nin, nout, **options)


def _public(name: str) -> Any:
    return globals()[name]


def _checked_dtype(name: str, dtype: Any) -> Any:
    return None if dtype is None else dtypes.check_user_dtype(dtype, name)


# ---- Functions that know more of themselves -----------------------------------------------------


# The parameters of a reduction that are not arrays.
_STATIC = ("axis", "dtype", "out", "keepdims")


def _extreme(find: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(
        a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any
    ) -> Any:
        x = as_array(a) if dtype is None else as_dtype(as_array(a), dtype)
        return find(x, axis, out, keepdims, initial, where)

    return reduce


def _bits(primitive: Any, function: Any, identity: Any, truth: bool) -> Callable[..., Any]:
    """A reduction of bits by a primitive; or of the `truth` of numbers, which differ from 0."""

    @fused(static=_STATIC)
    def reduce(
        a: Any, axis: Any, dtype: Any, out: None, keepdims: bool, initial: Any, where: Any
    ) -> Any:
        x = as_array(a)
        if not (truth or x.dtype == bool or dtypes.issubdtype(x.dtype, np.integer)):
            raise ValueError(
                f"{function.__name__}.reduce takes integers or booleans, got dtype={x.dtype}"
            )
        x = x if dtype is None else as_dtype(x, dtype)
        x = to_bool(x) if truth else as_dtype(x, x.dtype)
        axes = canonical_axes(axis, x.ndim)
        if where is not None:
            # -1 wraps to all bits set, in any dtype.
            neutral = np.array(identity).astype(x.dtype)[()]
            x = select("reduce", spread(to_bool(as_array(where)), x.shape), x, neutral)
        total = primitive(x, axes=axes)
        if initial is not None:
            total = function(total, initial)
        return expand(total, axes) if keepdims else total

    return reduce


def _log_sum(exp: Any, log: Any, function: Any) -> Callable[..., Any]:
    """The logarithm of the sum of powers, with the greatest exponent taken out of the sum."""

    @fused(static=_STATIC)
    def reduce(
        a: Any, axis: Any, dtype: Any, out: None, keepdims: bool, initial: Any, where: Any
    ) -> Any:
        x = as_array(a) if dtype is None else as_dtype(as_array(a), dtype)
        x = as_dtype(x, dtypes.to_inexact_dtype(x.dtype))
        axes = canonical_axes(axis, x.ndim)
        if where is not None:
            mask = spread(to_bool(as_array(where)), x.shape)
            x = select("reduce", mask, x, x.dtype.type(-np.inf))
        top = stop_gradient(reductions.max(x, axes, initial=-np.inf, keepdims=True))
        top = select("reduce", logic.isfinite(top), top, x.dtype.type(0))
        total = reductions.sum(exp(arithmetic.subtract(x, top)), axes, keepdims=True)
        total = arithmetic.add(log(total), top)
        if initial is not None:
            total = function(total, initial)
        return total if keepdims else squeeze(total, dimensions=axes)

    return reduce


def _by_update(method: str, promoted: bool = False) -> Callable[..., Any]:
    """By a scatter: of the dtype of the array, or of the one that both promote to."""

    def at(a: Any, indices: Any, b: Any) -> Any:
        x = as_array(a)
        if promoted:
            x = as_dtype(x, dtypes.result_type(x, b))
        return getattr(at_places(x)[indices], method)(b)

    return at


def _of(function: Any, identity: Any = None, **own: Any) -> ufunc:
    return ufunc(function, 2, 1, identity=identity, call=function, **own)


add = _of(
    arithmetic.add, 0, reduce=reductions.sum, accumulate=reductions.cumsum, at=_by_update("add")
)
multiply = _of(
    arithmetic.multiply,
    1,
    reduce=reductions.prod,
    accumulate=reductions.cumprod,
    at=_by_update("multiply"),
)
maximum = _of(arithmetic.maximum, reduce=_extreme(reductions.max), at=_by_update("max", True))
minimum = _of(arithmetic.minimum, reduce=_extreme(reductions.min), at=_by_update("min", True))
subtract = _of(arithmetic.subtract, at=_by_update("subtract"))
negative = ufunc(arithmetic.negative, 1, 1, call=arithmetic.negative)
bitwise_and = _of(
    logic.bitwise_and, -1, reduce=_bits(reduce_ops.reduce_and, logic.bitwise_and, -1, False)
)
bitwise_or = _of(
    logic.bitwise_or, 0, reduce=_bits(reduce_ops.reduce_or, logic.bitwise_or, 0, False)
)
bitwise_xor = _of(
    logic.bitwise_xor, 0, reduce=_bits(reduce_ops.reduce_xor, logic.bitwise_xor, 0, False)
)
logical_and = _of(
    logic.logical_and, True, reduce=_bits(reduce_ops.reduce_and, logic.logical_and, True, True)
)
logical_or = _of(
    logic.logical_or, False, reduce=_bits(reduce_ops.reduce_or, logic.logical_or, False, True)
)
logical_xor = _of(
    logic.logical_xor, False, reduce=_bits(reduce_ops.reduce_xor, logic.logical_xor, False, True)
)
logaddexp = _of(
    transcendental.logaddexp,
    -np.inf,
    reduce=_log_sum(transcendental.exp, transcendental.log, transcendental.logaddexp),
)
logaddexp2 = _of(
    transcendental.logaddexp2,
    -np.inf,
    reduce=_log_sum(transcendental.exp2, transcendental.log2, transcendental.logaddexp2),
)

# Those whose running values may be found pairwise, in as many steps as the length has digits.
_ASSOCIATIVE = frozenset(
    {maximum, minimum, bitwise_and, bitwise_or, bitwise_xor, logical_and, logical_or, logical_xor}
    | {logaddexp, logaddexp2}
)

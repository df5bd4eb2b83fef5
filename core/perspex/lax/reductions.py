"""Reductions and cumulative operations along axes, which are counted from the front.

Nothing is promoted; `perspex.numpy` has the functions that promote and take negative axes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perspex import tree
from perspex.arguments.arrays import aval_of
from perspex.arguments.dtypes import required_dtype
from perspex.arguments.glossary import describe
from perspex.arguments.sharded import WORDS, OutSharding, asked, lying
from perspex.arguments.static import integers
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.control.bodies import place, stage_body
from perspex.control.reduce import reduce_p
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.lax import elementwise
from perspex.ops import cumulative
from perspex.ops import reductions as ops
from perspex.ops.structural import reduce_sum as sum_p
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import Tracer, typeof
from perspex.transforms.programs import embed

__all__ = [
    "argmax", "argmin", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "reduce",
    "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum",
    "reduce_xor",
]  # fmt: skip

# ---- By one operation ---------------------------------------------------------------------------


def reduce_sum(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: OutSharding = None
) -> Array:
    """The sum of the elements along `axes`.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.reduce_sum(np.arange(6).reshape(2, 3), (1,))
    Array([ 3, 12], dtype=int32)
    """
    params = asked("reduce_sum", out_sharding)
    return sum_p(operand, axes=integers("reduce_sum", "axes", axes), **params)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product of the elements along `axes`.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.reduce_prod(np.arange(6).reshape(2, 3), (1,))
    Array([ 0, 60], dtype=int32)
    """
    return ops.reduce_prod(operand, axes=integers("reduce_prod", "axes", axes))


def reduce_max(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: OutSharding = None
) -> Array:
    """The greatest element along `axes`; NaN if there is one; the least number of no elements.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.reduce_max(np.arange(6).reshape(2, 3), (0,))
    Array([3, 4, 5], dtype=int32)
    """
    params = asked("reduce_max", out_sharding)
    return ops.reduce_max(operand, axes=integers("reduce_max", "axes", axes), **params)


def reduce_min(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: OutSharding = None
) -> Array:
    """The least element along `axes`; NaN if there is one; the greatest number of no elements.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.reduce_min(np.arange(6).reshape(2, 3), (0,))
    Array([0, 1, 2], dtype=int32)
    """
    params = asked("reduce_min", out_sharding)
    return ops.reduce_min(operand, axes=integers("reduce_min", "axes", axes), **params)


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bits that are set in all elements along `axes`; of booleans, whether all are true.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.reduce_and(np.array([7, 6, 12]), (0,))
    Array(4, dtype=int32)
    """
    return ops.reduce_and(operand, axes=integers("reduce_and", "axes", axes))


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bits that are set in any element along `axes`; of booleans, whether any is true.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.reduce_or(np.array([1, 2, 8]), (0,))
    Array(11, dtype=int32)
    """
    return ops.reduce_or(operand, axes=integers("reduce_or", "axes", axes))


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bits that are set in an odd number of elements along `axes`; of booleans, their parity.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.reduce_xor(np.array([3, 6, 1]), (0,))
    Array(4, dtype=int32)
    """
    return ops.reduce_xor(operand, axes=integers("reduce_xor", "axes", axes))


# ---- Positions ----------------------------------------------------------------------------------


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The position of the first greatest element along an axis, or of the first NaN.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.argmax(np.array([1.0, 5.0, 5.0]), 0, "int32")
    Array(1, dtype=int32)
    """
    return _position(ops.argmax, operand, axis, index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The position of the first least element along an axis, or of the first NaN.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.argmin(np.array([4.0, 0.5, 2.0]), 0, "int32")
    Array(1, dtype=int32)
    """
    return _position(ops.argmin, operand, axis, index_dtype)


def _position(op: Primitive, operand: Any, axis: Any, index_dtype: Any) -> Any:
    dtype = required_dtype(op.name, index_dtype)
    return op(operand, axes=(operator.index(axis),), index_dtype=dtype)


# ---- By any function ----------------------------------------------------------------------------


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: OutSharding = None,
) -> Any:
    """Reduce along `dimensions` by any function of two scalars.

    `lax.add`, `mul`, `max`, `min`, `bitwise_and`, `bitwise_or` and `bitwise_xor` with their
    identities become `reduce_sum` and its kin, which are faster and have simpler derivatives.

    Args:
      operands: an array, or a pytree of arrays of one shape that are reduced together.
      init_values: scalars of the same structure and dtypes, identities of `computation`: they are
        used once, several times, or where one element is reduced not at all.
      computation: takes what there is so far and an element, in the structure of `operands`, and
        returns what there is then. It should be associative: the order is not defined.
      dimensions: the axes to reduce.
      out_sharding: how the result lies along explicit axes of the mesh of `set_mesh`.

    Returns:
      Arrays in the structure of `operands`, without the axes `dimensions`.

    Raises:
      ValueError: for structures that differ, initial values that are not scalars and axes that are
        not there.
      TypeError: for dtypes that differ.
      NotImplementedError: if `computation` closes over values that are being traced.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.reduce(np.arange(4.0), 0.0, lambda total, x: total + x * x, (0,))
    Array(14., dtype=float32)
    """
    axes = integers("reduce", "dimensions", dimensions)
    leaves, structure = tree.flatten(operands)
    inits, found = tree.flatten(init_values)
    if structure != found:
        raise ValueError(
            f"reduce: operands and init_values must have the same structure, got {structure} and "
            f"{found}"
        )
    if not leaves:
        raise ValueError("reduce: operands hold no array; pass at least one")
    if len(leaves) == 1:
        primitive = by_identity(_MONOIDS, computation, inits[0])
        if primitive is not None:
            out = lying("reduce", out_sharding, primitive(leaves[0], axes=axes))
            return tree.unflatten(structure, [out])
    scalars = [ShapedArray((), aval_of("reduce", x).dtype) for x in leaves]
    program = scalar_program("reduce", computation, structure, scalars)
    outs = reduce_p(*leaves, *inits, dimensions=axes, jaxpr=program)
    return tree.unflatten(structure, [lying("reduce", out_sharding, y) for y in outs])


def by_identity(monoids: Mapping[Any, Primitive], computation: Any, init: Any) -> Primitive | None:
    """The one of `monoids` for this computation, if `init` is known to be its identity."""
    if init.__class__ not in PYTHON_SCALARS and not isinstance(init, np.generic):
        return None
    try:
        primitive = monoids.get(computation)
    except TypeError:  # not hashable
        return None
    # Numbers of another dtype than that of the operand count as well: `-inf` for integers.
    dtype = typeof(init).dtype
    if primitive is None or (isinstance(primitive, ops.ReduceBits) and dtype.kind not in "biu"):
        return None
    identity = getattr(primitive, "identity", lambda _: 0)(dtype)
    return primitive if init == identity else None


_MONOIDS: dict[Any, Primitive] = {
    elementwise.add: sum_p,
    elementwise.mul: ops.reduce_prod,
    elementwise.max: ops.reduce_max,
    elementwise.min: ops.reduce_min,
    elementwise.bitwise_and: ops.reduce_and,
    elementwise.bitwise_or: ops.reduce_or,
    elementwise.bitwise_xor: ops.reduce_xor,
}


def scalar_program(
    what: str, computation: Any, structure: Any, scalars: Sequence[ShapedArray]
) -> ClosedJaxpr:
    """The computation as a program of scalars, without constants; `what` is it for, in errors."""
    pair = tree.structure((tree.unflatten(structure, [0] * len(scalars)),) * 2)
    body = stage_body(what, computation, pair, [*scalars, *scalars])
    if body.out_tree != structure:
        raise ValueError(
            f"{what}: the function {place(computation)} must return the structure of the operands, "
            f"{structure}, got {body.out_tree}"
        )
    if not body.consts:
        return body.closed
    if any(isinstance(c, Tracer) for c in body.consts):
        raise NotImplementedError(
            f"{what}: the function {place(computation)} closes over a value that is being traced, "
            "which a reduction cannot read; pass it along as one more operand"
        )
    jaxpr = body.closed.jaxpr
    consts, invars = jaxpr.invars[: len(body.consts)], jaxpr.invars[len(body.consts) :]
    written_in = embed(jaxpr, zip(consts, body.consts, strict=True))
    return ClosedJaxpr(written_in.replace(invars=invars))


# ---- Cumulative operations ----------------------------------------------------------------------


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The sums of all elements up to each place along an axis.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.cumsum(np.array([1, 2, 3])), lax.cumsum(np.array([1, 2, 3]), reverse=True)
    (Array([1, 3, 6], dtype=int32), Array([6, 5, 3], dtype=int32))
    """
    return _cumulative(cumulative.cumsum, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The products of all elements up to each place along an axis.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.cumprod(np.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    return _cumulative(cumulative.cumprod, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The greatest element up to each place along an axis; NaN from the first NaN on.

    Complex numbers compare by real part first.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.cummax(np.array([3, 1, 4, 1, 5]))
    Array([3, 3, 4, 4, 5], dtype=int32)
    """
    return _cumulative(cumulative.cummax, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The least element up to each place along an axis; NaN from the first NaN on.

    Complex numbers compare by real part first.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.cummin(np.array([3, 1, 4, 1, 5]))
    Array([3, 1, 1, 1, 1], dtype=int32)
    """
    return _cumulative(cumulative.cummin, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The logarithm of the sums of exponentials up to each place along an axis, without overflow.

    Args:
      operand: an array of floats or complex numbers.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.cumlogsumexp(np.array([1000.0, 1000.0])).round(2)
    Array([1000.  , 1000.69], dtype=float32)
    """
    return _cumulative(cumulative.cumlogsumexp, operand, axis, reverse)


def _cumulative(op: Primitive, operand: Any, axis: Any, reverse: Any) -> Any:
    return op(operand, axis=operator.index(axis), reverse=bool(reverse))


for functions, kind in (
    ((reduce_sum, reduce_prod), "numbers"),
    ((reduce_max, reduce_min), "numbers or booleans"),
    ((reduce_and, reduce_or, reduce_xor), "integers or booleans"),
):
    describe(
        functions,
        {
            "operand": f"an array of {kind}.",
            "axes": "the axes to reduce, counted from the front.",
            "out_sharding": WORDS,
        },
        "TypeError: if `operand` is not an array, or has another dtype.\n"
        "ValueError: for an axis that is not there or comes twice.",
        "An array of the dtype of `operand` in its shape without `axes`.",
    )
describe(
    (cumsum, cumprod, cummax, cummin, cumlogsumexp),
    {
        "operand": "an array of numbers.",
        "axis": "the axis to go along, counted from the front.",
        "reverse": "go from the end.",
    },
    "TypeError: if `operand` is not an array, or has another dtype.\n"
    "ValueError: for an axis that is not there.",
    "An array of the shape and dtype of `operand`.",
)
describe(
    (argmax, argmin),
    {
        "operand": "an array of real numbers or booleans.",
        "axis": "the axis to search along, counted from the front, which must not be empty.",
        "index_dtype": "an integer dtype; positions wrap around in one that is too narrow.",
    },
    "ValueError: for an axis that is empty or not there.\n"
    "TypeError: for complex numbers, or an `index_dtype` that is not an integer dtype.",
    "An array of dtype `index_dtype` in the shape of `operand` without `axis`.",
)

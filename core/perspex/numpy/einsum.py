"""`einsum`: sums of products named by their indices.

`opt_einsum` chooses the order; each step is one `dot_general` of two operands, after axes that
occur in one operand only have been summed and axes that occur twice in it have become one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import as_array, as_dtype, check_arraylike
from perspex.arguments.glossary import describe
from perspex.arguments.sharded import OutSharding, decided, lying
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.base.dimensions import Symbolic
from perspex.jitted.fused import fused
from perspex.lax.linear import PrecisionLike, dot_general
from perspex.layout.context import canonical
from perspex.numpy.products import contract
from perspex.numpy.promotion import promote_dtypes
from perspex.ops import elementwise as ops
from perspex.ops.reductions import reduce_or
from perspex.ops.shape import iota
from perspex.ops.structural import convert, reduce_sum, squeeze, transpose
from perspex.tracing.array_methods import declared_array

__all__ = ["einsum", "einsum_path"]


def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike | Sequence[Any],
    out: None = None,
    optimize: str | bool | Sequence[tuple[int, ...]] = "optimal",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Any] = dot_general,
    out_sharding: OutSharding = None,
) -> Array:
    """The sum of products that `subscripts` describes, in Einstein's notation.

    Args:
      subscripts: as in `"ij,jk->ik"`; indices that are not in the result are summed. An ellipsis
        stands for leading axes that broadcast. The other form is `einsum(a, [0, 1], b, [1, 2])`.
      operands: one array for each term.
      out: not supported: arrays never change.
      precision: how exactly accelerators multiply: a `lax.Precision`, its name, or a pair.
      preferred_element_type: the dtype to accumulate in, which is that of the result.
      _dot_general: what multiplies two operands, with the parameters of `lax.dot_general`.
      out_sharding: how the result lies along explicit axes of the mesh of `set_mesh`; as the
        operands say if not given.

    Returns:
      An array with an axis for each index of the result.

    Raises:
      TypeError: if an operand is not an array.
      ValueError: if the subscripts do not fit the operands.
      NotImplementedError: for `out`.

    >>> import perspex.numpy as jnp
    >>> jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((3, 1)))
    Array([[3.],
           [3.]], dtype=float32)
    """
    if out is not None:
        raise NotImplementedError("einsum: arrays are immutable, so `out` cannot be written to")
    arrays, steps = _plan(subscripts, operands, "optimal" if optimize is True else optimize)
    if _dot_general is not dot_general:
        # A product of the caller's own, with the parameters of `lax.dot_general`.
        out = _evaluate(arrays, steps, precision, preferred_element_type, _dot_general)
        return lying("einsum", out_sharding, out)
    run = functools.partial(
        _run, steps=steps, precision=precision, preferred_element_type=preferred_element_type
    )
    if len(steps) > 1:  # how what lies between is cut, nobody says
        return decided(out_sharding, run, *arrays)
    return run(*arrays, out_sharding=out_sharding)


def einsum_path(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike | Sequence[Any],
    optimize: str | bool | Sequence[tuple[int, ...]] = "auto",
) -> tuple[list[tuple[int, ...]], Any]:
    """The order in which `einsum` would multiply, and a description of its cost.

    Args:
      subscripts: as in `"ij,jk->ik"`.
      operands: one array for each term.

    Returns:
      A list of the positions of the operands of each step, and a description by `opt_einsum`.

    >>> import perspex.numpy as jnp
    >>> x = jnp.ones((2, 2))
    >>> jnp.einsum_path("ij,jk,kl", x, x, x)[0][1:]
    [(0, 1)]
    """
    import opt_einsum

    optimize = "optimal" if optimize is True else optimize
    return opt_einsum.contract_path(subscripts, *operands, optimize=optimize)


# The size that symbolic dimensions are taken for.
_TYPICAL = 128


def _plan(subscripts: Any, operands: Any, optimize: Any) -> Any:
    """The operands, and steps of `(positions, terms)` like `((0, 1), "ij,jk->ik")`."""
    import opt_einsum  # 20 ms, and few programs need it

    if isinstance(subscripts, str):
        given = list(operands)
    else:
        interleaved = (subscripts, *operands)
        pairs = len(interleaved) // 2
        given = list(interleaved[0 : 2 * pairs : 2])
        terms = [_letters(term) for term in interleaved[1 : 2 * pairs : 2]]
        result = [f"->{_letters(term)}" for term in interleaved[2 * pairs :]]
        subscripts = ",".join(terms) + "".join(result)
    check_arraylike("einsum", *given)
    given = [declared_array(x) for x in given]
    # What is symbolic counts as a large number: the order of products has to be chosen now.
    shapes = [
        tuple([_TYPICAL if isinstance(n, Symbolic) else n for n in np.shape(x)]) for x in given
    ]
    if optimize is False:  # from left to right, two at a time
        optimize = [(0, 1)] * (len(given) - 1) or [(0,)]
    try:
        _, info = opt_einsum.contract_path(
            subscripts, *shapes, shapes=True, einsum_call=True, use_blas=True, optimize=optimize
        )
    except (ValueError, IndexError, KeyError, AttributeError) as error:
        raise ValueError(f"einsum: {error}") from None
    steps = tuple([(tuple(step[0]), step[2]) for step in info])
    return given, steps


def _letters(term: Any) -> str:
    """`[0, 1]` as `"ab"`: the subscripts of the interleaved form as text."""
    import opt_einsum

    return "".join(["..." if i is Ellipsis else opt_einsum.get_symbol(i) for i in term])


@fused(static=("steps", "precision", "preferred_element_type", "out_sharding"))
def _run(
    *operands: Any,
    steps: Any,
    precision: Any,
    preferred_element_type: Any,
    out_sharding: Any = None,
) -> Any:
    sharding = canonical(out_sharding, "einsum")
    out = _evaluate(operands, steps, precision, preferred_element_type, None, sharding)
    return lying("einsum", out_sharding, out)


def _evaluate(
    operands: Sequence[Any],
    steps: Any,
    precision: Any,
    preferred_element_type: Any,
    product: Any,
    sharding: Any = None,
) -> Any:
    stack = [as_array(x) for x in promote_dtypes("einsum", *operands)]
    if preferred_element_type is None:
        wanted = None
    else:
        wanted = dtypes.check_user_dtype(preferred_element_type, "einsum")
    for positions, text in steps:
        chosen = [stack[i] for i in positions]
        stack = [x for i, x in enumerate(stack) if i not in positions]
        terms, result = text.split("->")
        pieces = terms.split(",")
        if len(chosen) == 1:
            out = _single(chosen[0], pieces[0], result, wanted)
        else:
            (x, y), (left, right) = chosen, pieces
            out = _pair(x, y, left, right, result, precision, wanted, product, sharding)
        stack.append(out)
    (out,) = stack
    return out if wanted is None else convert(out, wanted)


def _single(x: Any, names: str, result: str, wanted: Any) -> Any:
    x, names = _reduce(*_diagonal(x, names, wanted), result, wanted)
    return _arrange(x, names, result)


def _pair(
    x: Any,
    y: Any,
    left: str,
    right: str,
    result: str,
    precision: Any,
    wanted: Any,
    product: Any,
    sharding: Any,
) -> Any:
    # An axis of size one meets an axis of another size: it is dropped, and so broadcasts. Dropping
    # comes first, because it may leave the other operand alone with the name.
    x, left = _drop_broadcast(x, left, y, right)
    y, right = _drop_broadcast(y, right, x, left)
    x, left = _reduce(*_diagonal(x, left, wanted), right + result, wanted)
    y, right = _reduce(*_diagonal(y, right, wanted), left + result, wanted)
    shared = [n for n in left if n in right]
    summed = [n for n in shared if n not in result]
    batch = [n for n in shared if n in result]
    alone = [n for n in right if n not in shared], [n for n in left if n not in shared]
    if product is None and list(result) == [*batch, *alone[0], *alone[1]]:
        # This way round nothing is left to be transposed.
        x, y, left, right = y, x, right, left
        precision = precision[::-1] if isinstance(precision, (tuple, list)) else precision
    summed_axes = tuple(map(left.index, summed)), tuple(map(right.index, summed))
    batch_axes = tuple(map(left.index, batch)), tuple(map(right.index, batch))
    if product is None:
        names = [*batch, *[n for n in (*left, *right) if n not in shared]]
        if sharding is not None:
            places = [result.index(n) for n in names]
            spec = [*sharding.spec.partitions, *[None] * (len(names) - len(sharding.spec))]
            turned = sharding.spec.update(partitions=[spec[i] for i in places])
            sharding = sharding.update(spec=turned)
        out = contract(x, y, summed_axes, batch_axes, precision, wanted, sharding)
    else:
        dims = summed_axes, batch_axes
        out = product(x, y, dims, precision=precision, preferred_element_type=wanted)
    rest = [n for n in (*left, *right) if n not in shared]
    return _arrange(out, "".join([*batch, *rest]), result)


def _diagonal(x: Any, names: str, wanted: Any) -> tuple[Any, str]:
    """Axes with one name become one axis: all off their diagonal is zero, and then summed."""
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            index = np.dtype("int32")
            rows = iota(dtype=index, shape=x.shape, dimension=first)
            columns = iota(dtype=index, shape=x.shape, dimension=second)
            kept = ops.select(ops.eq(rows, columns), x, x.dtype.type(0))
            x = as_dtype(kept, x.dtype, x.aval.weak_type)
            x = _summed(x, (first,), wanted)
            names = names[:first] + names[first + 1 :]
    return x, names


def _reduce(x: Any, names: str, needed: str, wanted: Any) -> tuple[Any, str]:
    """Sum the axes that nobody else names."""
    axes = tuple([i for i, n in enumerate(names) if n not in needed])
    if not axes:
        return x, names
    return _summed(x, axes, wanted), "".join([n for n in names if n in needed])


def _summed(x: Any, axes: tuple[int, ...], wanted: Any) -> Any:
    """The sum along axes, in the dtype to accumulate in; of booleans it is "or"."""
    if wanted is not None and dtypes.result_type(x, wanted) != x.dtype:
        x = convert(x, wanted)
    return reduce_or(x, axes=axes) if x.dtype == bool else reduce_sum(x, axes=axes)


def _drop_broadcast(x: Any, names: str, y: Any, others: str) -> tuple[Any, str]:
    axes = tuple(
        [
            i
            for i, n in enumerate(names)
            if n in others and x.shape[i] == 1 and y.shape[others.index(n)] != 1
        ]
    )
    if not axes:
        return x, names
    return squeeze(x, dimensions=axes), "".join([n for i, n in enumerate(names) if i not in axes])


def _arrange(x: Any, names: str, result: str) -> Any:
    if names == result:
        return x
    return transpose(x, permutation=tuple([names.index(n) for n in result]))


describe(
    [einsum, einsum_path],
    {"optimize": "how `opt_einsum` looks for the order of products; a list of positions is one."},
    "ValueError: if the subscripts do not fit the operands.",
)

"""Loops and branches that are compiled: `scan`, `while_loop`, `fori_loop`, `map`, `cond`, `switch`.

Python's own `for`, `while` and `if` run while a function is traced: a loop is unrolled and a branch
is taken once for all. These functions leave the decision to the program instead. They trace their
bodies once, with tracers for what changes, and so ask that a body gives back what it was given: the
same containers, shapes and dtypes. Under `disable_jit` they are Python's loops and branches.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import config, errors, tree
from perspex.advice import messages
from perspex.arguments.types import ArrayLike
from perspex.base.dimensions import Symbolic, size
from perspex.base.tree_paths import PyTree
from perspex.control.bodies import Body, call, parameter, place, stage_body
from perspex.control.loops import while_p
from perspex.control.passing_through import forward_scan, forward_while
from perspex.control.scan import scan_p
from perspex.ir.avals import ShapedArray, shaped
from perspex.lax.carries import Carry, T, X, Y, check_tree, check_types, promoted, row, type_name
from perspex.ops.elementwise import add, lt
from perspex.ops.shape import concatenate, slice
from perspex.ops.structural import convert, reshape, to_front
from perspex.runtime.array import Array
from perspex.tracing.trace import Tracer, concrete_value, is_concrete
from perspex.transforms.programs import cut, merge, partition
from perspex.transforms.vmap import batch

__all__ = ["fori_loop", "map", "scan", "while_loop"]

# ---- Arguments ----------------------------------------------------------------------------------


def _check_callable(name: str, what: str, function: Any) -> None:
    if not callable(function):
        raise TypeError(f"lax.{name}: {what} argument should be callable, got {function!r}.")


def _avals(name: str, what: str, value: Any, leaves: Sequence[Any]) -> list[ShapedArray]:
    """The types of the leaves of an argument."""
    avals = []
    for i, leaf in enumerate(leaves):
        try:
            avals.append(shaped(leaf))
        except TypeError:
            path = tree.keystr(tree.leaves_with_path(value)[i][0])
            raise TypeError(
                f"lax.{name}: {what}{path} is of type {type(leaf)}, which is not an array; "
                "pass arrays and numbers only"
            ) from None
    return avals


# ---- scan ---------------------------------------------------------------------------------------


def scan(
    f: Callable[[T, X], tuple[T, Y]],
    init: PyTree,
    xs: PyTree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[T, Y]:
    """Apply a function along the first axis of arrays, carrying values along.

    What it computes, in Python:

        def scan(f, init, xs, length=None):
            carry, ys = init, []
            for x in xs:
                carry, y = f(carry, x)
                ys.append(y)
            return carry, stack(ys)

    It is compiled as one loop, whatever its length, and can be differentiated in both directions.

    Args:
      f: takes the carry and one element of `xs`; returns the next carry, of the same containers,
        shapes and dtypes, and a result, which may be `None`.
      init: a pytree of arrays, the carry of the first step. Numbers give way to the dtype that
        `f` returns.
      xs: a pytree of arrays of shapes `(length, ...)`, or `None` if there is nothing to go through.
      length: the number of steps, where it does not follow from `xs`.
      reverse: go from the last element to the first; results stay in the order of `xs`.
      unroll: how many steps one turn of the compiled loop makes; `True` for all of them.
      _split_transpose: accepted for JAX's sake; the backward pass is one loop in either case.

    Returns:
      The last carry, and the results of all steps stacked along a new first axis.

    Raises:
      ValueError: for arrays of different lengths, or no length at all.
      TypeError: for a function that does not return a pair, or whose carry changes its type.

    >>> import perspex.numpy as pnp
    >>> from perspex import lax
    >>> lax.scan(lambda total, x: (total + x, total + x), 0.0, pnp.array([1.0, 2.0, 3.0]))
    (Array(6., dtype=float32), Array([1., 3., 6.], dtype=float32))
    """
    _check_callable("scan", "f", f)
    return _scan("scan", f, call, parameter(f, 0, "carry"), init, xs, length, reverse, unroll)


def _scan(
    name: str,
    f: Callable[..., Any],
    apply: Callable[..., Any],
    carry: Carry,
    init: Any,
    xs: Any,
    length: Any,
    reverse: bool,
    unroll: int | bool,
) -> tuple[Any, Any]:
    """`scan` of the step `apply(f, carry, x)`; `carry` is what `f` calls its carry."""
    leaves, in_tree = tree.flatten(init)
    columns, xs_tree = tree.flatten(xs)
    before = _avals(name, "init", init, leaves)
    x_avals = _avals(name, "xs", xs, columns)
    steps = _length(xs, columns, x_avals, length)
    if not isinstance(unroll, (bool, int, np.integer)) or unroll < 0:
        raise ValueError(f"scan: `unroll` must be a bool or a non-negative int, got {unroll!r}.")
    turns = max(steps, 1) if unroll is True else int(unroll)
    if config.disable_jit.value:
        return _python_scan(f, apply, init, columns, xs_tree, steps, reverse)
    x_avals = [row(name, x) for x in x_avals]
    both = tree.structure((init, xs))
    body = stage_body(name, f, both, [*before, *x_avals], apply)
    leaves, before, body = _settle_scan(
        name, f, apply, carry, both, in_tree, leaves, before, x_avals, body
    )
    found = _bind_scan(body, leaves, columns, steps, bool(reverse), turns)
    out: tuple[Any, Any] = tree.unflatten(body.out_tree, found)
    return out


def _length(xs: Any, columns: Sequence[Any], avals: Sequence[ShapedArray], length: Any) -> Any:
    flat = [x for x, aval in zip(columns, avals, strict=True) if not aval.shape]
    if flat:
        shown = ", ".join([str(x) for x in flat])
        raise ValueError(
            f"scan got value with no leading axis to scan over: {shown}; pass an array"
        )
    lengths = sorted({aval.shape[0] for aval in avals})
    if isinstance(length, Tracer):
        raise errors.ConcretizationTypeError(
            messages.concretization(
                "The `length` of lax.scan",
                *length._story(),
                remedy="`lax.fori_loop` or `lax.while_loop` for a length that is computed; or mark "
                "the argument with `static_argnames`.",
            )
        )
    if length is not None:
        try:
            length = size(length)
        except TypeError:
            raise TypeError(
                f"scan: `length` must be an integer, got {length!r} of type {type(length)}"
            ) from None
        if length < 0:
            raise ValueError(f"scan: `length` must not be negative, got {length}")
        if any(n != length for n in lengths):
            raise ValueError(
                f"scan got `length` argument of {length} which disagrees with leading axis sizes "
                f"{lengths}; leave `length` out"
            )
        return length if isinstance(length, Symbolic) else int(length)
    if not lengths:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    if len(lengths) > 1:
        sizes = [str(aval.shape[0]) for aval in avals]
        paths = [f"xs{tree.keystr(path)}" for path, _ in tree.leaves_with_path(xs)]
        named = " and ".join([f"{p} has {n}" for p, n in zip(paths, sizes, strict=True)])
        raise ValueError(
            f"scan got values with different leading axis sizes: {', '.join(sizes)}. "
            f"They must be equal, but {named}; cut them to one length"
        )
    return lengths[0]


def _settle_scan(
    name: str,
    f: Callable[..., Any],
    apply: Callable[..., Any],
    carry: Carry,
    both: Any,
    in_tree: Any,
    leaves: list[Any],
    before: list[ShapedArray],
    x_avals: list[ShapedArray],
    body: Body,
) -> tuple[list[Any], list[ShapedArray], Body]:
    """Check what the body returns; stage it again where a number gives way to another dtype."""
    parts = body.out_tree.children()
    node = body.out_tree.node_data()
    if len(parts) != 2 or node is None or not issubclass(node[0], (tuple, list)):
        shown = tree.unflatten(body.out_tree, [aval for aval in body.out_avals])
        raise TypeError(
            f"scan body output must be a pair, got {shown} from {place(f)}; "
            "return the carry and a result, `(carry, None)` if there is none"
        )
    check_tree(name, f, carry, in_tree, parts[0])
    settled = promoted(leaves, before, body.out_avals[: len(leaves)])
    if settled is not None:
        leaves, before = settled, [shaped(x) for x in settled]
        body = stage_body(name, f, both, [*before, *x_avals], apply)
    check_types(name, f, carry, in_tree, before, body)
    return leaves, before, body


def _bind_scan(
    body: Body, init: list[Any], xs: list[Any], length: int, reverse: bool, unroll: int
) -> list[Any]:
    closed, consts = body.closed, list(body.consts)
    count = len(init)
    fixed: Sequence[bool] = (False,) * count
    from_xs: Sequence[int | None] = (None,) * (len(body.out_avals) - count)
    forwarding = forward_scan(closed, len(consts), count)
    # The xs themselves are a result only if they are arrays of ours.
    if forwarding is not None and all(
        i is None or isinstance(xs[i], Array) for i in forwarding.from_xs
    ):
        closed, fixed, from_xs = forwarding
    moving, still = partition(init, fixed)
    outs: list[Any] = []
    if not closed.is_idle:
        outs = scan_p(
            *[*consts, *still, *moving, *xs],
            jaxpr=closed,
            length=length,
            reverse=reverse,
            unroll=unroll,
            num_consts=len(consts) + len(still),
            num_carry=len(moving),
        )
    last, ys = cut(outs, len(moving))
    rest = iter(ys)
    return [*merge(fixed, last, still), *[next(rest) if i is None else xs[i] for i in from_xs]]


def _python_scan(
    f: Callable[..., Any],
    apply: Callable[..., Any],
    init: Any,
    columns: Sequence[Any],
    xs_tree: Any,
    length: int,
    reverse: bool,
) -> tuple[Any, Any]:
    if length == 0:
        raise ValueError(
            "zero-length scan is not supported in disable_jit() mode because the output type is "
            "unknown."
        )
    carry, found = init, []
    for i in range(length)[::-1] if reverse else range(length):
        x = tree.unflatten(xs_tree, [column[i] for column in columns])
        carry, y = apply(f, carry, x)
        found.append(y)
    return carry, tree.map(lambda *ys: _stacked(ys), *(found[::-1] if reverse else found))


def _stacked(values: Sequence[Any]) -> Any:
    return concatenate(*[reshape(y, new_sizes=(1, *shaped(y).shape)) for y in values], dimension=0)


# ---- map ----------------------------------------------------------------------------------------


def _map_step(f: Callable[..., Any], carry: Any, x: Any) -> tuple[Any, Any]:
    return carry, f(x)


def _map_batch(f: Callable[..., Any], carry: Any, xs: Any) -> tuple[Any, Any]:
    return carry, _examples(f, xs)


def _examples(f: Callable[..., Any], xs: Any) -> Any:
    """The results of `f` for each element of `xs`, all at once."""
    columns, in_tree = tree.flatten(xs)
    out_tree = None

    def flat(*args: Any) -> list[Any]:
        nonlocal out_tree
        leaves, out_tree = tree.flatten(f(tree.unflatten(in_tree, args)))
        return leaves

    size = shaped(columns[0]).shape[0]
    outs, axes = batch(flat, size, columns, [0] * len(columns))
    leaves = [to_front(y, at, size) for y, at in zip(outs, axes, strict=True)]
    return tree.unflatten(out_tree, leaves)


def map(f: Callable[[X], Y], xs: PyTree, *, batch_size: int | None = None) -> Y:
    """Apply a function to each element along the first axis of arrays, one after the other.

    Unlike `vmap` it needs no more memory than one call does; it is a `scan` without a carry.

    Args:
      f: a function of one element.
      xs: a pytree of arrays of shapes `(n, ...)`.
      batch_size: how many elements to compute at once, as `vmap` does.

    Returns:
      The results, stacked along a new first axis.

    Raises:
      ValueError: for arrays of different lengths, or none.

    >>> import perspex.numpy as pnp
    >>> from perspex import lax
    >>> lax.map(lambda x: x * x, pnp.arange(4))
    Array([0, 1, 4, 9], dtype=int32)
    """
    _check_callable("map", "f", f)
    columns, in_tree = tree.flatten(xs)
    avals = _avals("map", "xs", xs, columns)
    length = _length(xs, columns, avals, None)
    size = operator.index(batch_size) if batch_size else 0
    if size < 0:
        raise ValueError(f"lax.map: batch_size must not be negative, got {batch_size}")
    if not size:
        return _scan("map", f, _map_step, "carry", (), xs, None, False, 1)[1]
    batches = length // size
    if batches == 0:
        return _examples(f, xs)
    cuts = [
        (_rows(x, aval, 0, batches * size), _rows(x, aval, batches * size, length))
        for x, aval in zip(columns, avals, strict=True)
    ]
    whole = tree.unflatten(
        in_tree,
        [
            reshape(x, new_sizes=(batches, size, *aval.shape[1:]))
            for (x, _), aval in zip(cuts, avals, strict=True)
        ],
    )
    found = _scan("map", f, _map_batch, "carry", (), whole, None, False, 1)[1]
    found = tree.map(_merge_rows, found)
    if batches * size == length:
        return found
    rest = _examples(f, tree.unflatten(in_tree, [x for _, x in cuts]))
    return tree.map(lambda x, y: concatenate(x, y, dimension=0), found, rest)


def _rows(x: Any, aval: ShapedArray, start: int, stop: int) -> Any:
    if (start, stop) == (0, aval.shape[0]):
        return x
    rest = aval.shape[1:]
    return slice(
        x, start_indices=(start, *[0] * len(rest)), limit_indices=(stop, *rest), strides=None
    )


def _merge_rows(x: Any) -> Any:
    batches, size, *rest = shaped(x).shape
    return reshape(x, new_sizes=(batches * size, *rest))


# ---- while_loop ---------------------------------------------------------------------------------


def while_loop(
    cond_fun: Callable[[T], ArrayLike], body_fun: Callable[[T], T], init_val: PyTree
) -> T:
    """Repeat a function while a condition holds.

    What it computes, in Python:

        def while_loop(cond_fun, body_fun, init_val):
            val = init_val
            while cond_fun(val):
                val = body_fun(val)
            return val

    Forward mode goes through it, reverse mode does not: the number of turns is not known before.

    Args:
      cond_fun: takes the value and returns a boolean scalar.
      body_fun: takes the value and returns the next one, of the same containers, shapes and dtypes.
      init_val: a pytree of arrays. Numbers give way to the dtype that `body_fun` returns.

    Returns:
      The first value for which the condition does not hold.

    Raises:
      TypeError: for a condition that is not a boolean scalar, or a value that changes its type.

    >>> from perspex import lax
    >>> lax.while_loop(lambda n: n < 100, lambda n: n * 2, 1)
    Array(128, dtype=int32, weak_type=True)
    """
    if not (callable(cond_fun) and callable(body_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    if config.disable_jit.value:
        # A condition that differs from example to example of a `vmap` is none that Python can have.
        with contextlib.suppress(errors.ConcretizationTypeError):
            value = init_val
            while cond_fun(value):
                value = body_fun(value)
            return value
    carry = parameter(body_fun, 0, "value")
    return _while("while_loop", cond_fun, call, body_fun, call, carry, init_val)


def _while(
    name: str,
    cond_fun: Callable[..., Any],
    apply_cond: Callable[..., Any],
    body_fun: Callable[..., Any],
    apply_body: Callable[..., Any],
    carry: Carry,
    init: Any,
) -> Any:
    leaves, in_tree = tree.flatten(init)
    before = _avals(name, "init_val", init, leaves)
    one = tree.structure((init,))
    cond = _condition(name, cond_fun, one, before, apply_cond)
    body = stage_body(name, body_fun, one, before, apply_body)
    check_tree(name, body_fun, carry, in_tree, body.out_tree)
    settled = promoted(leaves, before, body.out_avals)
    if settled is not None:
        leaves, before = settled, [shaped(x) for x in settled]
        cond = _condition(name, cond_fun, one, before, apply_cond)
        body = stage_body(name, body_fun, one, before, apply_body)
    check_types(name, body_fun, carry, in_tree, before, body)
    return tree.unflatten(in_tree, _bind_while(cond, body, leaves))


def _condition(
    name: str, f: Callable[..., Any], in_tree: Any, avals: list[ShapedArray], apply: Any
) -> Body:
    cond = stage_body(name, f, in_tree, avals, apply)
    if cond.out_tree != tree.structure(0):
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got pytree {cond.out_tree} from "
            f"{place(f)}; return one comparison"
        )
    (aval,) = cond.out_avals
    if aval.shape or aval.dtype != np.dtype(bool):
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got output type(s) [{aval!r}] from "
            f"{place(f)}; compare it (`x != 0`), and say of an array whether `.any()` or `.all()` "
            "elements count"
        )
    return cond


def _bind_while(cond: Body, body: Body, init: list[Any]) -> list[Any]:
    cond_jaxpr, body_jaxpr = cond.closed, body.closed
    fixed: Sequence[bool] = (False,) * len(init)
    forwarding = forward_while(body_jaxpr, cond_jaxpr, len(body.consts), len(cond.consts))
    if forwarding is not None:
        body_jaxpr, cond_jaxpr, fixed = forwarding
    moving, still = partition(init, fixed)
    outs = while_p(
        *[*cond.consts, *body.consts, *still, *moving],
        cond_jaxpr=cond_jaxpr,
        cond_nconsts=len(cond.consts),
        body_jaxpr=body_jaxpr,
        body_nconsts=len(body.consts) + len(still),
    )
    return merge(fixed, outs, still)


# ---- fori_loop ----------------------------------------------------------------------------------


def _next(i: Any) -> Any:
    aval = shaped(i)
    one = aval.dtype.type(1)
    return add(i, one.item() if aval.weak_type else one)


def _count_step(f: Callable[..., Any], carry: Any, x: None) -> tuple[Any, None]:
    i, value = carry
    return (_next(i), f(i, value)), None


def _count_turn(f: Callable[..., Any], state: Any) -> Any:
    i, upper, value = state
    return _next(i), upper, f(i, value)


def _counting(state: Any) -> Any:
    i, upper, _ = state
    return lt(i, upper)


def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, T], T],
    init_val: PyTree,
    *,
    unroll: int | bool | None = None,
) -> T:
    """Repeat a function for each integer of a range.

    What it computes, in Python:

        def fori_loop(lower, upper, body_fun, init_val):
            val = init_val
            for i in range(lower, upper):
                val = body_fun(i, val)
            return val

    With bounds that are known while tracing it is a `scan`, which can be differentiated in both
    directions; with traced bounds a `while_loop`, which can be differentiated forwards.

    Args:
      lower, upper: integer scalars of one dtype; known floats are truncated, as by `int`.
      body_fun: takes the integer and the value; returns the next value, of the same containers,
        shapes and dtypes.
      init_val: a pytree of arrays. Numbers give way to the dtype that `body_fun` returns.
      unroll: how many turns to make at once, `True` for all; only with known bounds.

    Returns:
      The value after the last turn; `init_val` if `upper` is not above `lower`.

    Raises:
      TypeError: for bounds that are not integers or have different dtypes, or a value that changes
        its type.
      ValueError: for `unroll` with traced bounds.

    >>> from perspex import lax
    >>> lax.fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, dtype=int32, weak_type=True)
    """
    _check_callable("fori_loop", "body_fun", body_fun)
    low, high = _bounds(lower, upper)
    what = parameter(body_fun, 1, "value")
    if all([is_concrete(x) and not isinstance(x, Symbolic) for x in (lower, upper)]):
        # Known bounds are Python integers, whatever they were: so is the counter.
        start, stop = int(concrete_value(lower)), int(concrete_value(upper))
        if config.disable_jit.value:
            value = init_val
            for i in range(start, stop):
                value = body_fun(i, value)
            return value
        steps, init = max(stop - start, 0), (start, init_val)
        at_once = 1 if unroll is None else unroll
        (_, value), _ = _scan(
            "fori_loop", body_fun, _count_step, ("i", what), init, None, steps, False, at_once
        )
        return value
    if unroll is not None and unroll is not True and unroll != 1:
        raise ValueError(
            "Can only use `unroll` in `fori_loop` if the loop bounds are statically known: "
            "leave it out, or give bounds that are Python integers"
        )
    state = (low, high, init_val)
    names = ("i", "upper", what)
    return _while("fori_loop", _counting, call, body_fun, _count_turn, names, state)[2]


def _bounds(lower: Any, upper: Any) -> tuple[Any, Any]:
    """The bounds, at one dtype."""
    found = []
    for bound in (lower, upper):
        try:
            found.append(shaped(bound))
        except TypeError:
            raise TypeError(
                "lax.fori_loop: lower and upper arguments must be integers, "
                f"got {bound!r} of type {type(bound)}"
            ) from None
    first, second = found
    if first.dtype != second.dtype:
        # A Python integer takes the dtype of the other bound.
        signed = first.dtype.kind == second.dtype.kind == "i"
        if signed and first.weak_type and not second.weak_type:
            lower = convert(lower, second.dtype)
        elif signed and second.weak_type and not first.weak_type:
            upper = convert(upper, first.dtype)
        else:
            raise TypeError(
                "lower and upper arguments to fori_loop must have equal types, got "
                f"{first.dtype.name} and {second.dtype.name}; convert one of them"
            )
    if first.shape or second.shape or first.dtype.kind not in "iufb":
        raise TypeError(
            "lax.fori_loop: lower and upper arguments must be integer scalars, got "
            f"{type_name(first)} and {type_name(second)}"
        )
    return lower, upper

"""`vmap`: a function of one example becomes a function of many."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

from perspex import dtypes, tree
from perspex.api.calls import Call, argument_avals, check_callable
from perspex.base.source import transformed
from perspex.base.tree_paths import PyTree
from perspex.control.bodies import parameter, place
from perspex.ir.avals import ShapedArray, shaped
from perspex.jitted.signature import function_name, name_after
from perspex.ops.refs import set as set_ref
from perspex.ops.structural import broadcast_like, convert, move_axis, reduce_sum, to_front
from perspex.tracing import cuts
from perspex.tracing.axes import Axis
from perspex.tracing.trace import Reference
from perspex.transforms.discharge import Valued
from perspex.transforms.vmap import batch

F = TypeVar("F", bound=Callable[..., Any])


class Container(NamedTuple):
    """What `vmap` does to a class of pytrees whose objects know the shape of what they hold.

    `example(x, axis)` is `x`, whose leaves are examples, with the shape of an example.
    `batch(x, axis, size)` is `x`, a result of the examples, with the shape of a batch.
    """

    example: Callable[[Any, int], Any]
    batch: Callable[[Any, int, int], Any]


# The classes that rooms above register, by `containers[kind] = Container(...)`.
containers: dict[type, Container] = {}


def vmap(
    fun: F,
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | None = None,
    sum_match: bool = False,
) -> F:
    """Map a function over an axis of its arguments, all examples at once.

    Args:
      fun: a function of pytrees of arrays.
      in_axes: which axis of the positional arguments to map over: an integer, `None` for what all
        examples have in common, or a tuple or list with an entry for each argument, which may be a
        tree. Arguments by name are mapped over their first axis. What is not mapped may be
        anything, functions and strings too.
      out_axes: where the results have the axis; a prefix of their structure.
      axis_name: what collectives such as `lax.psum` call the axis inside `fun`.
      axis_size: the number of examples, where no argument tells.
      spmd_axis_name: an automatic axis of a device mesh, or a tuple of some, that cuts the axis of
        the examples where `fun` constrains a sharding. Otherwise the compiler decides that.
      sum_match: where `out_axes` is `None` and the results of the examples differ, add them up.

    Returns:
      A function of arguments with one more axis.

    Raises:
      TypeError: if `fun` is not a function, for axes that are not integers, and for a name that has
        no hash.
      ValueError: for axes that do not exist or whose lengths differ, for a result that differs
        among examples where `out_axes` is `None`, and for a constraint that cuts another axis along
        `spmd_axis_name`.

    >>> import perspex.numpy as pnp
    >>> vmap(lambda x, y: x * y, in_axes=(0, None))(pnp.arange(3), 10)
    Array([ 0, 10, 20], dtype=int32)
    """
    check_callable(fun)
    hash((axis_name, spmd_axis_name))
    spmd = spmd_axis_name if isinstance(spmd_axis_name, tuple) else (spmd_axis_name,)
    spmd = () if spmd_axis_name is None else spmd
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    if not (in_axes is None or isinstance(in_axes, tuple) or _is_axis(in_axes)):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes}."
        )
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        for leaf in tree.leaves(axes):
            if not _is_axis(leaf):
                raise TypeError(
                    f"vmap {what} must be an int, None, or (nested) container with those types as "
                    f"leaves, but got {axes}."
                )

    def mapped(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                "positional arguments passed to the function, but got "
                f"len(in_axes)={len(in_axes)}, len(args)={len(args)}."
            )
        call = Call("vmap", fun, args, kwargs)
        found = _flatten_axes("in_axes", call.in_tree, in_axes, lambda: _arguments(fun, len(args)))
        found += [0] * (len(call.leaves) - len(found))
        columns = {i: column(call, i, at) for i, at in enumerate(found) if at is not None}
        axis = Axis(common_size(call, columns, axis_size), axis_name, spmd=spmd)
        axes = [columns[i].axis if i in columns else None for i in range(len(found))]
        mapped_avals = [shaped(call.leaves[i]) for i in columns]
        if any([aval.cut is not None for aval in mapped_avals]):
            where = [columns[i].axis for i in columns]
            axis = axis._replace(cut=cuts.axis_cut(mapped_avals, where))
        if containers:
            call.fun = _with_containers(fun, in_axes, out_axes, axis.size)
        if Reference.exist:
            outs, places = _batch_refs(call, axis, axes)
        else:
            outs, places = transformed("vmap", batch, call, axis, call.leaves, axes, call.names)
        wanted = _flatten_axes("out_axes", call.out_tree, out_axes, lambda: "result")
        if sum_match:
            outs, places = _sum_match(outs, places, wanted)
        results = [
            _place(call, i, y, at, want, axis)
            for i, (y, at, want) in enumerate(zip(outs, places, wanted, strict=True))
        ]
        return tree.unflatten(call.out_tree, results)

    name_after(mapped, fun)
    name, doc = function_name(fun), getattr(fun, "__doc__", None)
    mapped.__doc__ = (
        f"Vectorized version of {name}. Takes similar arguments as {name} but with additional "
        f"array axes over which {name} is mapped."
    ) + (f"\n\nOriginal documentation:\n\n{doc}" if doc else "")
    return mapped  # type: ignore[return-value]


def _with_containers(
    fun: Callable[..., Any], in_axes: Any, out_axes: Any, size: int
) -> Callable[..., Any]:
    """A function that takes containers with the shape of a batch and returns such."""

    def example(x: Any, axis: int) -> Any:
        return containers[type(x)].example(x, axis)

    def batch(x: Any, axis: int) -> Any:
        return containers[type(x)].batch(x, axis, size)

    def adapted(*args: Any, **kwargs: Any) -> Any:
        args = _adapted(example, args, in_axes)
        return _adapted(batch, fun(*args, **_adapted(example, kwargs, 0)), out_axes)

    name_after(adapted, fun)
    return adapted


def _adapted(adapt: Callable[[Any, int], Any], values: Any, axes: Any) -> Any:
    """A tree with `adapt(x, axis)` for each container `x` that is mapped over an axis."""

    def is_container(x: Any) -> bool:
        return type(x) in containers

    leaves, treedef = tree.flatten(values, is_leaf=is_container)
    if not any(map(is_container, leaves)):
        return values
    found = zip(leaves, tree.flatten_axes("vmap axes", treedef, axes), strict=True)
    new = [x if at is None or not is_container(x) else adapt(x, at) for x, at in found]
    return tree.unflatten(treedef, new)


def _batch_refs(
    call: Call, axis: Axis, axes: Sequence[int | None]
) -> tuple[list[Any], list[int | None]]:
    """`batch` of a call whose arguments may be refs: each example has its part of a mapped one."""
    valued = Valued(call, call.leaves, [at is not None for at in axes])
    outs, places = transformed("vmap", batch, valued, axis, valued.values, axes, call.names)
    count = valued.count
    for i, value, at in zip(valued.written, outs[count:], places[count:], strict=True):
        whole = move_axis(to_front(value, at, axis), 0, axes[i] or 0)
        set_ref(call.leaves[i], None, whole)
    return outs[:count], places[:count]


def _flatten_axes(what: str, treedef: Any, axes: Any, value: Callable[[], str]) -> list[Any]:
    """The axes of all leaves; `value` names their owner in errors."""
    try:
        return tree.flatten_axes(f"vmap {what}", treedef, axes)
    except ValueError as error:
        raise ValueError(
            f"{error}\nThe value is the {value()} of the function; give {what} the same "
            "containers, or one axis for a whole container"
        ) from None


def _arguments(fun: Callable[..., Any], count: int) -> str:
    names = ", ".join([parameter(fun, i, f"argument {i}") for i in range(count)])
    return f"tuple of arguments ({names})"


def _is_axis(x: Any) -> bool:
    """Whether `x` is an integer of Python, as in JAX: neither a NumPy one nor a boolean."""
    return isinstance(x, int) and not isinstance(x, bool)


class Column(NamedTuple):
    """An argument that holds one value for each example, and where: an axis from the front."""

    aval: ShapedArray
    axis: int

    @property
    def length(self) -> int:
        return self.aval.shape[self.axis]


def column(call: Call, i: int, axis: Any) -> Column:
    """The argument `i`, which is mapped over `axis`."""
    (aval,) = argument_avals(call.what, [call.leaves[i]], lambda _: call.path(i))
    axis = operator.index(axis)
    if not -aval.ndim <= axis < aval.ndim:
        named = i >= call.in_tree.num_leaves
        at = "" if named else f" by {tree.axis_path('in_axes', call.in_tree, i)}"
        raise ValueError(
            f"{call.what} was requested to map its {call.path(i)} along axis {axis}, which implies "
            f"that its rank should be at least {axis + 1 if axis >= 0 else -axis}, but is only "
            f"{aval.ndim} (its shape is {aval.shape}); give another axis{at}, or None for a value "
            "that all examples share"
        )
    return Column(aval, axis % aval.ndim)


def common_size(call: Call, columns: dict[int, Column], given: int | None) -> int:
    """The number of examples, on which all arguments must agree."""
    sizes = [column.length for column in columns.values()]
    if given is not None:
        given = operator.index(given)
    if not sizes and given is None:
        if not call.leaves:
            raise ValueError(
                f"{call.what} wrapped function must be passed at least one argument containing an "
                "array or axis_size must be specified"
            )
        raise ValueError(
            f"{call.what} must have at least one non-None value in in_axes or axis_size must be "
            "specified"
        )
    if len({*sizes, *([] if given is None else [given])}) == 1:
        return sizes[0] if sizes else int(given)  # type: ignore[arg-type]
    lines = [] if given is None else [f"  * the `axis_size` argument was {given}"]
    for size, count in Counter(sizes).most_common():
        i, (aval, at) = next((i, c) for i, c in columns.items() if c.length == size)
        example = f"axis {at} of {call.path(i)} of type {aval.str_short(short_dtypes=False)}"
        if count == 1:
            lines.append(f"  * one axis had size {size}: {example}")
        else:
            lines.append(f"  * {count} axes had size {size}, e.g. {example}")
    raise ValueError(
        f"{call.what} got inconsistent sizes for array axes to be mapped:\n"
        + ";\n".join(lines)
        + ".\nRemedy: `in_axes` gives the axis of each argument, and None for one that all "
        "examples share."
    )


def _sum_match(
    outs: Sequence[Any], places: Sequence[int | None], wanted: Sequence[Any]
) -> tuple[list[Any], list[int | None]]:
    """The results, those of all examples added up where one for all is wanted; and their axes."""
    summed = [at is not None and want is None for at, want in zip(places, wanted, strict=True)]
    found = []
    for y, at, add in zip(outs, places, summed, strict=True):
        if add:
            number = convert(y, dtypes.to_numeric_dtype(shaped(y).dtype))
            y = reduce_sum(number, axes=(at,))
        found.append(y)
    return found, [None if add else at for at, add in zip(places, summed, strict=True)]


def _place(call: Call, i: int, y: Any, at: int | None, wanted: Any, axis: Axis) -> Any:
    """The result `i` with the axis of the examples where it was asked for."""
    if wanted is None:
        if at is not None:
            raise ValueError(
                f"at {tree.axis_path('vmap out_axes', call.out_tree, i)}, got axis spec None but "
                f"output was batched on axis {at}: this result of {place(call.fun)} differs "
                "between examples; give the axis along which to stack it, or reduce over them"
            )
        return y
    aval = shaped(y)
    ndim = aval.ndim + (at is None)
    wanted = operator.index(wanted)
    if not -ndim <= wanted < ndim:
        raise ValueError(
            f"at {tree.axis_path('vmap out_axes', call.out_tree, i)}, axis {wanted} is out of "
            f"bounds for array of dimension {ndim}: this result of {place(call.fun)}, counting the "
            "axis of the examples"
        )
    wanted %= ndim
    if at is not None:
        return move_axis(y, at, wanted)
    dims = tuple([i for i in range(ndim) if i != wanted])
    return broadcast_like(y, cuts.with_axis(aval, axis.size, wanted, axis.cut), dims)

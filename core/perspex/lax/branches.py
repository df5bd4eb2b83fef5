"""`cond` and `switch`: one of several functions, chosen while the program runs.

All branches are traced, and must return results of the same containers, shapes and dtypes. Only the
one that is chosen runs, unless the choice differs among the examples of a `vmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from perspex import config, tree
from perspex.arguments.types import ArrayLike
from perspex.base.tree_paths import PyTree
from perspex.control.bodies import Body, origin, place, stage_body, with_common_consts
from perspex.control.cond import cond_p, platform_index_p
from perspex.control.passing_through import forward_cond
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray, shaped
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.lax.carries import differing
from perspex.ops.collectives import varying
from perspex.ops.elementwise import clamp, ne
from perspex.ops.structural import convert
from perspex.runtime.array import Array
from perspex.tracing.trace import is_concrete
from perspex.transforms.varying import leveled

T = TypeVar("T")

__all__ = ["cond", "platform_dependent", "switch"]

_UNSET: Any = object()
_INDEX = np.dtype("int32")


def cond(
    pred: ArrayLike,
    true_fun: Callable[..., T],
    false_fun: Callable[..., T],
    *operands: Any,
    operand: PyTree = _UNSET,
) -> T:
    """Apply one of two functions.

    What it computes, in Python:

        def cond(pred, true_fun, false_fun, *operands):
            return true_fun(*operands) if pred else false_fun(*operands)

    Args:
      pred: a boolean scalar; a number counts as true where it is not zero.
      true_fun, false_fun: functions of the operands, with results of the same containers, shapes
        and dtypes. They may also close over what they need, and take no operands. JAX's older
        order, with an operand for each function, works too: `cond(pred, true_operand, true_fun,
        false_operand, false_fun)`.
      operands: pytrees of arrays.
      operand: the only operand, by name.

    Returns:
      The result of the function that was chosen.

    Raises:
      TypeError: if `pred` is not a scalar, or the results of the functions differ in type.

    >>> from perspex import lax
    >>> lax.cond(3.0 > 2.0, lambda x: x + 1, lambda x: x - 1, 5.0)
    Array(6., dtype=float32, weak_type=True)
    """
    if not callable(true_fun) and len(operands) == 2 and callable(operands[1]):
        # Each with an operand of its own: pred, true_operand, true_fun, false_operand, false_fun.
        operands, functions = (true_fun, operands[0]), (false_fun, operands[1])
        true_fun, false_fun = lambda x, _: functions[0](x), lambda _, x: functions[1](x)
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    operands = _operands("cond", operands, operand)
    aval = _predicate(pred)
    if config.disable_jit.value and is_concrete(pred):
        return true_fun(*operands) if pred else false_fun(*operands)
    if pred.__class__ in PYTHON_SCALARS or isinstance(pred, np.generic):
        index = _INDEX.type(bool(pred))
    else:
        if aval.dtype != bool:
            pred = ne(pred, aval.dtype.type(0))
        index = convert(pred, _INDEX)
    names = ("true_fun", "false_fun")
    outs, out_tree = _branches("cond", index, (true_fun, false_fun), names, operands)
    return tree.unflatten(out_tree, outs)


def _operands(name: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is _UNSET:
        return operands
    if operands:
        raise TypeError(
            f"if `operand` keyword is passed to lax.{name}, it must be the only operand; "
            f"got {operands!r} too"
        )
    return (operand,)


def _predicate(pred: Any) -> ShapedArray:
    if pred is None:
        raise TypeError("cond predicate is None; pass a boolean scalar")
    try:
        aval = shaped(pred)
    except TypeError:
        raise TypeError(
            f"Pred must be a scalar, got {pred} of type {type(pred)}; pass a boolean"
        ) from None
    if aval.shape:
        raise TypeError(
            f"Pred must be a scalar, got {pred} of shape {aval.shape}; "
            "use jnp.where to choose element by element, or `.any()` or `.all()`"
        )
    if aval.is_extended or aval.dtype.kind == "c":
        raise TypeError(f"Pred type must be either boolean or number, got {aval.dtype.name}.")
    return aval


def switch(
    index: ArrayLike, branches: Sequence[Callable[..., T]], *operands: Any, operand: PyTree = _UNSET
) -> T:
    """Apply one of several functions.

    What it computes, in Python:

        def switch(index, branches, *operands):
            index = min(max(0, index), len(branches) - 1)
            return branches[index](*operands)

    Args:
      index: an integer scalar; one that is out of range counts as the nearest that is not.
      branches: functions of the operands, with results of the same containers, shapes and dtypes.
      operands: pytrees of arrays.
      operand: the only operand, by name.

    Returns:
      The result of the function that was chosen.

    Raises:
      TypeError: if `index` is not an integer scalar, or the results of the functions differ in
        type.
      ValueError: if `branches` is empty.

    >>> from perspex import lax
    >>> lax.switch(1, [lambda x: x, lambda x: x * 10, lambda x: x * 100], 2.0)
    Array(20., dtype=float32, weak_type=True)
    """
    functions = tuple(branches)
    if not all(map(callable, functions)):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    operands = _operands("switch", operands, operand)
    try:
        aval = shaped(index)
    except TypeError:
        raise TypeError(
            f"Branch index must be scalar, got {index} of type {type(index)}; pass an integer"
        ) from None
    if aval.shape:
        raise TypeError(f"Branch index must be scalar, got {index} of shape {aval.shape}")
    if aval.is_extended or aval.dtype.kind not in "iu":
        raise TypeError(
            f"Index type must be an integer, got {index} as {aval.dtype.name}; "
            "convert it with `.astype(int)`"
        )
    if not functions:
        raise ValueError("Empty branch sequence")
    if len(functions) == 1:
        return functions[0](*operands)
    last = len(functions) - 1
    if is_concrete(index) and (config.disable_jit.value or isinstance(index, (int, np.integer))):
        chosen = min(max(int(index), 0), last)  # type: ignore[arg-type]
        if config.disable_jit.value:
            return functions[chosen](*operands)
        index = _INDEX.type(chosen)
    else:
        index = clamp(_INDEX.type(0), convert(index, _INDEX), _INDEX.type(last))
    names = [f"branch {i}" for i in range(len(functions))]
    outs, out_tree = _branches("switch", index, functions, names, operands)
    return tree.unflatten(out_tree, outs)


def _branches(
    name: str,
    index: Any,
    functions: Sequence[Callable[..., Any]],
    names: Sequence[str],
    operands: tuple[Any, ...],
    **choice: Any,
) -> tuple[list[Any], Any]:
    leaves, in_tree = tree.flatten(operands)
    avals = []
    for i, leaf in enumerate(leaves):
        try:
            avals.append(shaped(leaf))
        except TypeError:
            path = tree.leaves_with_path(operands)[i][0]
            raise TypeError(
                f"lax.{name}: operand {path[0].idx}{tree.keystr(path[1:])} is of type "
                f"{type(leaf)}, which is not an array; let the functions close over it"
            ) from None
    bodies = [stage_body(name, f, in_tree, avals) for f in functions]
    for i in range(1, len(bodies)):
        _check_same(name, (names[0], functions[0], bodies[0]), (names[i], functions[i], bodies[i]))
    programs, consts = with_common_consts(bodies)
    if name == "cond":
        programs.reverse()
    given = [*consts, *leaves]
    branches = tuple(programs)
    from_operand: Sequence[int | None] = (None,) * len(bodies[0].out_avals)
    forwarding = forward_cond(branches[0], branches[1:])
    if forwarding is not None and all(
        i is None or isinstance(given[i], Array) for i in forwarding.from_operand
    ):
        branches, from_operand = forwarding
    branches, given = _on_devices(index, branches, given)
    idle = all(branch.is_idle for branch in branches)
    outs = [] if idle else cond_p(index, *given, branches=branches, **choice)
    rest = iter(outs)
    found = [next(rest) if i is None else given[i] for i in from_operand]
    return found, bodies[0].out_tree


def _on_devices(
    index: Any, branches: tuple[ClosedJaxpr, ...], operands: list[Any]
) -> tuple[tuple[ClosedJaxpr, ...], list[Any]]:
    """Branches and operands, where devices of a mesh may take different branches (`shard_map`).

    Then results differ among them, and so do operands: what all have in common is made a value of
    each before the branch, because its cotangents are added up by all devices, and not in a branch
    that some of them take.
    """
    vma = shaped(index).vma
    results = [
        vma.union(*[aval.vma for aval in avals])
        for avals in zip(*[branch.out_avals for branch in branches], strict=True)
    ]
    if not any(results):
        return branches, operands
    given = tuple([vma] * len(operands))
    branches = tuple([leveled(branch, given, tuple(results)) for branch in branches])
    return branches, [varying(x, vma) for x in operands]


Branch = tuple[str, Callable[..., Any], Body]


def _check_same(name: str, first: Branch, second: Branch) -> None:
    """Raise `TypeError` unless two branches return results of one type."""
    (name_1, f_1, body_1), (name_2, f_2, body_2) = first, second
    functions = f"\n  {name_1} is {place(f_1)}\n  {name_2} is {place(f_2)}"
    if body_1.out_tree != body_2.out_tree:
        lines = tree.structure_errors(
            body_1.out_tree, body_2.out_tree, f"the result of {name_1}", f"that of {name_2}"
        )
        raise TypeError(
            f"{name} branch outputs must have the same pytree structure, but they differ:"
            f"{functions}\n  " + "\n  ".join(lines) + "\nReturn the same containers from both."
        )
    paths = [
        tree.keystr(path)
        for path, _ in tree.leaves_with_path(
            body_1.out_tree.unflatten(list(range(body_1.out_tree.num_leaves)))
        )
    ]
    lines = []
    for i, (path, a, b) in enumerate(zip(paths, body_1.out_avals, body_2.out_avals, strict=True)):
        same = a.shape == b.shape and a.dtype == b.dtype and a.cut == b.cut
        if not same or a.memory_space is not b.memory_space:
            lines.append(
                f"the result{path} of {name_1} has type {a.str_short(short_dtypes=False)}"
                f"{origin(body_1, i)}, that of {name_2} has type "
                f"{b.str_short(short_dtypes=False)}{origin(body_2, i)}, so the {differing(a, b)} "
                "do not match"
            )
    if lines:
        raise TypeError(
            f"{name} branches must have equal output types but they differ.{functions}\n  "
            + "\n  ".join(lines)
            + "\nConvert one of them with `.astype` or `.reshape`."
        )


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Apply the function for the platform that computations run on.

    Under `jit`, all functions are traced. Which one counts is known when the program is lowered:
    then the others are left out, so they may contain what the platform does not have.

    Args:
      args: pytrees of arrays.
      default: the function for platforms that are not named.
      per_platform: functions by the names of platforms: `cpu`, `cuda`, `rocm`, `tpu`, ...

    Returns:
      The result of the function that was chosen.

    Raises:
      TypeError: if a branch is not a function, or results of branches differ in type.
      ValueError: for a branch `gpu`, which stands for several platforms.
      NotImplementedError: if there is no function for this platform.

    >>> from perspex import lax
    >>> lax.platform_dependent(4.0, cpu=lambda x: x + 1, default=lambda x: x - 1)
    5.0
    """
    functions = dict(per_platform) if default is None else {**per_platform, "default": default}
    for name, f in functions.items():
        if not callable(f):
            raise TypeError(f"lax.platform_dependent: the {name!r} branch must be a callable.")
    if "gpu" in per_platform:
        raise ValueError(
            "lax.platform_dependent: 'gpu' stands for several platforms; use 'cuda' or 'rocm'"
        )
    if not functions:
        raise NotImplementedError("lax.platform_dependent: there is no branch; pass one")
    platforms = tuple([None if name == "default" else (name,) for name in functions])
    index = platform_index_p(platforms=platforms)
    if is_concrete(index):
        return list(functions.values())[int(index)](*args)
    outs, out_tree = _branches(
        "platform_dependent",
        index,
        list(functions.values()),
        [f"the branch {name!r}" for name in functions],
        args,
        branches_platforms=platforms,
    )
    return tree.unflatten(out_tree, outs)

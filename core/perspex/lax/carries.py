"""What a loop carries must come out of a turn as it went in: the checks, and what they say.

Two things may change. A weakly typed start, such as a Python number, takes the dtype that the body
returns. Inside `shard_map`, a start that is the same on all devices becomes a value of each, if the
body returns one that differs among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from perspex import dtypes, tree
from perspex.control.bodies import Body, origin, place
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray
from perspex.ops.collectives import varying
from perspex.ops.structural import convert
from perspex.tracing import cuts

# The types of a carry, of the elements of a scan, and of its outputs.
T = TypeVar("T")
X = TypeVar("X")
Y = TypeVar("Y")

Carry = str | tuple[str, ...]
"""What a body calls its carry, or the components of a carry that is a tuple."""


def promoted(
    leaves: Sequence[Any], before: Sequence[ShapedArray], after: Sequence[ShapedArray]
) -> list[Any] | None:
    """Start values that give way to the type they have after a turn; `None` if none has to.

    Only weakly typed ones take another dtype: Python numbers, and what was computed from nothing
    else.
    """
    found = list(leaves)
    changed = False
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        if not new.vma <= old.vma:
            found[i] = varying(found[i], new.vma)
            changed = True
        if not old.weak_type or new.dtype == old.dtype or new.is_extended:
            continue
        dtype, _ = dtypes.promote(((old.dtype, True), (new.dtype, new.weak_type)))
        if dtype == old.dtype:
            continue
        x = found[i]
        found[i] = dtype.type(x) if x.__class__ in PYTHON_SCALARS else convert(x, dtype)
        changed = True
    return found if changed else None


def row(name: str, aval: ShapedArray) -> ShapedArray:
    """The type of an element of one of the xs of a scan."""
    if aval.cut is not None and aval.cut.spec.partitions[0] is not None:
        raise ValueError(
            f"{name}: the first axis of the xs should be whole on every device, but one has type "
            f"{aval.str_short()}; reshard it"
        )
    return cuts.without_axis(aval, 0)


def check_tree(name: str, f: Callable[..., Any], carry: Carry, in_tree: Any, out_tree: Any) -> None:
    """Raise `TypeError` unless the body `f` returns its carry in the containers it came in."""
    if in_tree == out_tree:
        return
    what = carry if isinstance(carry, str) else f"({', '.join(carry)})"
    lines = tree.structure_errors(
        in_tree, out_tree, f"the carry {what}", "what the body returns for it"
    )
    raise TypeError(
        f"{name} body function carry input and carry output must have the same pytree structure, "
        f"but they differ:\n  body is {place(f)}\n  "
        + "\n  ".join(lines)
        + "\nReturn the carry in the containers in which it came."
    )


def check_types(
    name: str,
    f: Callable[..., Any],
    carry: Carry,
    in_tree: Any,
    before: Sequence[ShapedArray],
    body: Body,
) -> None:
    """Raise `TypeError` unless the first results of a body have the types of its carry."""
    after = body.out_avals[: len(before)]
    wrong = [
        i for i, (old, new) in enumerate(zip(before, after, strict=True)) if differing(old, new)
    ]
    if not wrong:
        return
    dummy = in_tree.unflatten(list(range(in_tree.num_leaves)))
    leaves = [_component(carry, path) for path, _ in tree.leaves_with_path(dummy)]
    lines = []
    for i in wrong:
        old, new = before[i], after[i]
        lines.append(
            f"the carry {leaves[i]} has type {type_name(old)} before the turn but type "
            f"{type_name(new)} after it{origin(body, i)}, so the {differing(old, new)} do not match"
        )
    old, new = before[wrong[0]], after[wrong[0]]
    if old.shape != new.shape:
        remedy = f"Return it with shape {old.shape}, or start from shape {new.shape}."
    elif old.dtype != new.dtype:
        remedy = f"Return it with `.astype({old.dtype.name!r})`, or start from {new.dtype.name}."
    elif old.cut != new.cut:
        remedy = "Return it through `jax.sharding.reshard`, or start from a value that is cut so."
    elif old.memory_space is not new.memory_space:
        space = old.memory_space.name
        remedy = f"Return it with `jax.device_put(..., jax.memory.Space.{space})`."
    else:
        axes = tuple(sorted(old.vma - new.vma))
        remedy = f"Return it with `lax.pcast(..., {axes}, to='varying')`."
    raise TypeError(
        f"{name} body function carry input and carry output must have equal types, but they "
        f"differ:\n  body is {place(f)}\n  " + "\n  ".join(lines) + f"\n{remedy}"
    )


def differing(a: ShapedArray, b: ShapedArray) -> str:
    """In what two types differ, as a word."""
    words = (
        ("shapes", a.shape != b.shape),
        ("dtypes", a.dtype != b.dtype),
        ("shardings", a.shape == b.shape and a.cut != b.cut),
        ("manual axis types", a.vma != b.vma),
        ("memory spaces", a.memory_space is not b.memory_space),
    )
    return " and ".join([word for word, differs in words if differs])


def _component(carry: Carry, path: tuple[Any, ...]) -> str:
    """A leaf of the carry as the body would write it: `state['x'][0]`."""
    if isinstance(carry, str):
        return carry + tree.keystr(path)
    return carry[path[0].idx] + tree.keystr(path[1:])


def type_name(aval: ShapedArray) -> str:
    """A type as messages write it: `float32[3]`."""
    return aval.str_short(short_dtypes=False)

"""How to avoid a recompilation: advice that fits what differed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.jitted.differences import Difference, Way

# No list of advice is longer.
_MOST = 3


def advice(misses: Sequence[Sequence[Way]], closes_over: Sequence[str] = ()) -> list[str]:
    """Sentences that say what to change in the user's code, the most telling first.

    Args:
      misses: what differed in each miss of one function.
      closes_over: the names that the function takes from the one around it.
    """
    found: dict[str, None] = {}
    ways = [way for miss in misses for way in miss]
    for miss in misses:
        told = _told(miss)
        kinds = {difference.kind for difference in told}
        for difference in told:
            if difference.kind == "function":
                found[_hoist(closes_over)] = None
            elif difference.kind == "shape":
                found[_one_shape(difference, _shapes(ways, difference.name))] = None
            elif difference.kind in ("dtype", "weak_type") and "config" in kinds:
                continue  # the flag is what changed it
            elif difference.kind in _SIMPLE:
                found[_SIMPLE[difference.kind](difference)] = None
    return [text for text in found if text][:_MOST]


def _told(miss: Sequence[Way]) -> list[Difference]:
    """What all ways to tell a miss have in common, or else all of them."""
    every = [difference for way in miss for difference in way.latest[0]]
    places = [{(d.kind, d.name) for d in way.latest[0]} for way in miss]
    common = set.intersection(*places)
    return [d for d in every if (d.kind, d.name) in common] or every


def _shapes(ways: Sequence[Way], name: str) -> set[tuple[int, ...]]:
    """The shapes that an argument is known to have had."""
    return {
        aval.shape
        for way in ways
        for differences in way.latest
        for difference in differences
        if difference.kind == "shape" and difference.name == name
        for aval in (difference.old, difference.new)
        if isinstance(aval, ShapedArray)
    }


def _one_shape(difference: Difference, shapes: set[tuple[int, ...]]) -> str:
    name = difference.name
    ranks = sorted({len(shape) for shape in shapes})
    if len(ranks) > 1:
        return (
            f"`{name}` has had {_either(ranks)} axes: give it the same number in every call, or "
            "write the function for one example and `vmap` it."
        )
    axes = [i for i, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1]
    if len(axes) == 1:
        sizes = sorted({shape[axes[0]] for shape in shapes})
        what = f"axis {axes[0]} of `{name}`, which has had the sizes {_listed(sizes)},"
        new = difference.new
        is_shorter = isinstance(new, ShapedArray) and new.shape[0] == sizes[0]
        if axes == [0] and len(sizes) == 2 and is_shorter:
            return (
                f"Pad {what} to {sizes[1]}, and mask the rest. If it is the last batch that is "
                "shorter, drop or pad that one."
            )
    else:
        what = f"`{name}`, which has had {len(shapes)} shapes,"
    return f"Pad {what} to one size or to a few, such as powers of two, and mask the rest."


def _either(numbers: Sequence[int]) -> str:
    return " or ".join(map(str, numbers))


def _listed(sizes: Sequence[int]) -> str:
    if len(sizes) <= 6:
        return ", ".join(map(str, sizes[:-1])) + f" and {sizes[-1]}"
    return f"{sizes[0]}, {sizes[1]} ... {sizes[-1]}"


def _one_dtype(difference: Difference) -> str:
    old, new = difference.old, difference.new
    name = difference.name
    if not isinstance(old, ShapedArray) or not isinstance(new, ShapedArray):
        return ""
    if old.is_extended or new.is_extended:
        return f"Pass `{name}` as the same kind of key in every call."
    # The one of the two that holds the numbers of both, if either does.
    best = max(old.dtype, new.dtype, key=lambda dtype: (_is_inexact(dtype), dtype.itemsize))
    cast = f"`jnp.asarray({name}, jnp.{'bool_' if best.kind == 'b' else best.name})`"
    if difference.kind == "weak_type":
        return (
            f"`{name}` is weakly typed, as Python numbers are, in some calls and not in others: "
            f"pass {cast} in all of them."
        )
    return f"Pass `{name}` in one dtype in every call, as in {cast}."


def _is_inexact(dtype: np.dtype[np.generic]) -> bool:
    return dtype.kind in "fc" or "float" in dtype.name


def _hoist(closes_over: Sequence[str]) -> str:
    names = ", ".join(f"`{name}`" for name in closes_over)
    changing = f" ({names})" if names else ""
    return (
        "`jit` gets a new function object each time, as in a loop: define the function and call "
        f"`jit` once, before the loop. Pass what changes{changing} as an argument."
    )


def _same_object(difference: Difference) -> str:
    name = difference.name
    if str(difference.old).startswith("<function"):
        return f"Static `{name}` is a new function object each time: define it once and pass it."
    return (
        f"Static `{name}` is a new object each time, equal to none before: create it once, or give "
        "its class `__eq__` and `__hash__`, as `@dataclass(frozen=True)` does."
    )


_SIMPLE: dict[str, Callable[[Difference], str]] = {
    "dtype": _one_dtype,
    "weak_type": _one_dtype,
    "object": _same_object,
    "tree": lambda d: f"Pass `{d.name}` with the same containers and keys in every call.",
    "argument": lambda d: f"Pass `{d.name}` in every call or in none.",
    "keyword": lambda d: f"Pass `{d.name}` by position in every call, or always by keyword.",
    "number": lambda d: (
        f"Each value of static `{d.name}` has its own program. If no shape and no Python `if` "
        f"or loop depends on it, do not mark `{d.name}` static."
    ),
    "static": lambda d: (
        f"Each value of static `{d.name}` has its own program, which is kept: using the "
        "same value again compiles nothing."
    ),
    "sharding": lambda d: (
        f"Place `{d.name}` in the same way in every call, with `device_put(x, sharding)`, or set "
        "`jit(in_shardings=...)`."
    ),
    "device": lambda d: (
        "Commit the arguments to one device, with `device_put(x, device)`, in every call or in "
        "none."
    ),
    "config": lambda d: (
        f"Each value of the flag `{d.name}` has its own programs: set it once, at the top."
    ),
    "captured": lambda d: (
        ""
        if str(d.old).startswith(("the function", "'", '"'))
        else f"If `{d.name}` holds numbers, make it an argument: new numbers need no new program."
    ),
}

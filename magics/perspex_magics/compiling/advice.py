"""How to avoid a recompilation: advice that fits what differed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.jitted.differences import Difference, Way
from perspex_magics.display.markup import listed

# No list of advice is longer.
_MOST = 3


def advice(misses: Sequence[Sequence[Way]], closes_over: Sequence[str] = ()) -> list[str]:
    """Sentences that say what to change in the user's code, the most telling first.

    Args:
      misses: what differed in each miss of one function.
      closes_over: the names that the function takes from the one around it.
    """
    found: dict[str | _Sizes, None] = {}
    # By name, whether the last call was a shorter one.
    alike: dict[_Sizes, dict[str, bool]] = {}
    ways = [way for miss in misses for way in miss]
    for miss in misses:
        told = _told(miss)
        kinds = {difference.kind for difference in told}
        for difference in told:
            if difference.kind == "function":
                found[_hoist(closes_over)] = None
            elif difference.kind == "shape":
                sizes = _sizes(difference, _shapes(ways, difference.name))
                found[sizes] = None
                if not isinstance(sizes, str):
                    names = alike.setdefault(sizes, {})
                    names[difference.name] = _is_shortest(difference, sizes)
            elif difference.kind in ("dtype", "weak_type") and "config" in kinds:
                continue  # the flag is what changed it
            elif difference.kind in _SIMPLE:
                found[_SIMPLE[difference.kind](difference)] = None
    texts = [
        x if isinstance(x, str) else _one_size(x, [*alike[x]], any(alike[x].values()))
        for x in found
    ]
    return [text for text in texts if text][:_MOST]


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


class _Sizes(NamedTuple):
    """In what the shapes of an argument differ: the sizes of an axis, if it is one."""

    axis: int | None
    sizes: tuple[int, ...]


def _sizes(difference: Difference, shapes: set[tuple[int, ...]]) -> _Sizes | str:
    """The same for arguments that may share a sentence; the sentence for one that cannot."""
    ranks = sorted({len(shape) for shape in shapes})
    if len(ranks) > 1:
        return (
            f"`{difference.name}` has had {_either(ranks)} axes. Give it the same number in every "
            "call, or write the function for one example and `vmap` it."
        )
    axes = [i for i, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1]
    if len(axes) != 1:
        return _Sizes(None, (len(shapes),))
    return _Sizes(axes[0], tuple(sorted({shape[axes[0]] for shape in shapes})))


def _is_shortest(difference: Difference, found: _Sizes) -> bool:
    """Whether a call had fewer examples than all others, as one with a last batch."""
    new = difference.new
    return found.axis == 0 and isinstance(new, ShapedArray) and new.shape[0] == found.sizes[0]


def _one_size(found: _Sizes, names: Sequence[str], is_shorter: bool) -> str:
    """What to do about arguments whose sizes differ alike."""
    axis, sizes = found
    has, them = ("has", "it") if len(names) == 1 else ("have", "them")
    if axis is None:
        what = f"{listed([*names])} {has} had {sizes[0]} shapes."
    else:
        what = f"Axis {axis} of {listed([*names])} has had the sizes {_in_order(sizes)}."
    some = f"{sizes[1]}" if is_shorter and len(sizes) == 2 else _SOME
    last = " If only the last batch is shorter, drop it." if is_shorter else ""
    return f"{what} Pad {them} to {some}, and mask the rest.{last}"


_SOME = "one size or to a few, such as powers of two"


def _either(numbers: Sequence[int]) -> str:
    return " or ".join(map(str, numbers))


def _in_order(sizes: Sequence[int]) -> str:
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
            f"`{name}` is weakly typed in some calls, as Python numbers are. "
            f"Pass {cast} in all of them."
        )
    return f"Pass `{name}` in one dtype in every call, as in {cast}."


def _is_inexact(dtype: np.dtype[np.generic]) -> bool:
    return dtype.kind in "fc" or "float" in dtype.name


def _hoist(closes_over: Sequence[str]) -> str:
    names = ", ".join(f"`{name}`" for name in closes_over)
    changing = f" ({names})" if names else ""
    return (
        "`jit` gets a new function object each time, as in a loop. Define the function and call "
        f"`jit` once, before the loop. Pass what changes{changing} as an argument."
    )


def _same_object(difference: Difference) -> str:
    name = difference.name
    if str(difference.old).startswith("<function"):
        return f"Static `{name}` is a new function object each time. Define it once and pass it."
    return (
        f"Static `{name}` is a new object each time, equal to none before. Create it once, or give "
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
        f"Each value of static `{d.name}` has its own program. A value that was used before "
        "compiles nothing."
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
        f"Each value of the flag `{d.name}` has its own programs. Set it once, at the top."
    ),
    "captured": lambda d: (
        ""
        if str(d.old).startswith(("the function", "'", '"'))
        else f"If `{d.name}` holds numbers, make it an argument. New numbers need no new program."
    ),
}

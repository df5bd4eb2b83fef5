"""The display of an array: its type, corners of its values, statistics, and its placement.

Invariants: a display computes nothing on a device, waits for nothing, and copies at most
`MOST_SHOWN` numbers to the host. It reads arrays in host memory in place; above `MOST_READ`
numbers, statistics read a sample and say so.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from markupsafe import Markup

from perspex_magics.display.markup import LINE, MONO, MUTED, escape, joined, shortened, tag
from perspex_magics.display.placement import devices_text, ends, placement_html, placement_of
from perspex_magics.display.shards import Shards
from perspex_magics.display.units import count, size

# Copying so many numbers from any device and looking at them takes well under a millisecond.
MOST_SHOWN = 10_000
# Reading so many takes a millisecond or two.
MOST_READ = 100_000
# Rows and columns shown at each end before the middle is left out.
_EDGE = 5
_EDGE_OF_SLICE = 3
# Of an array of three or more axes so many slices are shown, the last of all among them.
_FACETS = 3
_CELL = "text-align:right;padding:1px 8px;border:none;background:transparent"
# Numbers of an array that stand in its line in a container.
_INLINE = 8
# Keys of an array of them.
_KEYS = 12
# What NumPy can look at where it lies.
_IN_PLACE = "fiu"

_Numbers = np.ndarray[Any, Any] | Shards


def array_html(x: Any, *, is_open: bool = True) -> Markup:
    """An array as script-free HTML.

    Args:
      x: a concrete `perspex.Array` of any shape and dtype, deleted or not.
      is_open: whether its values are unfolded; if not, the values of a small array are its line.
    """
    heading = tag("span", heading_of(x), style=MONO)
    where = _placement(x)
    value, why_not = look(x)
    said = why_not if value is None else _statistics(value)
    said = tag("span", escape(f" · {said}" if said else ""), style=MUTED)
    if value is not None and value.ndim == 0:
        said = tag("span", escape(f" = {_number(value[()])}"), style=MONO)
    elif value is not None and not is_open and 0 < value.size <= _INLINE:
        said = tag("span", escape(f" = {_inline(value)}"), style=MONO)
    elif value is not None:
        where += _values(value)
    if not where:
        return tag("div", heading, said)
    summary = tag("summary", heading, said)
    return tag("details", summary, where, **({"open": ""} if is_open else {}))


def _inline(value: _Numbers, at: tuple[int, ...] = ()) -> str:
    """The numbers of a small array in nested brackets."""
    if len(at) == value.ndim:
        return _number(value[at])
    return f"[{', '.join([_inline(value, (*at, i)) for i in range(value.shape[len(at)])])}]"


def _placement(x: Any) -> Markup:
    """Which part is where, if there is more than one device to be."""
    if x.is_deleted() or len(x.sharding.device_set) == 1:
        return Markup()
    placement = placement_of(x.shape, x.sharding)
    shown = placement_html(placement) if placement.divided else escape(placement.said)
    return tag("div", shown, style=f"{MUTED};margin-left:1.4em")


def keys_html(keys: Any, *, is_open: bool = True) -> Markup:
    """Typed keys: what they are, and their numbers in hexadecimal.

    Args:
      keys: a `KeyArray` of any shape.
      is_open: whether the numbers are unfolded.
    """
    heading = tag("span", heading_of(keys), style=MONO)
    numbers, why_not = look(keys.base)
    if numbers is None:
        return tag("div", heading, tag("span", escape(f" · {why_not}"), style=MUTED))
    places = list(itertools.islice(np.ndindex(keys.shape), _KEYS))
    shown = [f"{_where(at)}{_words(numbers, at)}" for at in places]
    if keys.size > _KEYS:
        shown.append(f"⋯ {keys.size - _KEYS} more")
    if not keys.shape:
        return tag("div", heading, tag("span", escape(f" · {shown[0]}"), style=MONO))
    lines = [tag("div", escape(line), style=f"{MONO};padding:0 8px") for line in shown]
    summary = tag("summary", heading)
    return tag("details", summary, _placement(keys), *lines, **({"open": ""} if is_open else {}))


def _where(at: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, at))}] " if at else ""


def _words(numbers: _Numbers, at: tuple[int, ...]) -> str:
    return " ".join([f"{int(numbers[(*at, i)]):08x}" for i in range(numbers.shape[-1])])


def heading_of(x: Any) -> Markup:
    """What an array is, as markup: type, shape, devices, and how it is divided over several."""
    facts = [f"{x.dtype.name}[{', '.join(map(str, x.shape))}]"]
    if x.weak_type:
        facts.append("weak type")
    if not x.is_deleted():
        facts.append(devices_text(x.devices()))
        spec = getattr(x.sharding, "spec", None)
        facts += [] if spec is None else [shortened(str(spec))]
    first, *rest = facts
    more = [tag("span", escape(f" · {fact}"), style=MUTED) for fact in rest]
    return joined([tag("strong", first), *more])


def look(x: Any) -> tuple[_Numbers | None, str]:
    """The numbers of an array, if reading them is free; otherwise the reason why it is not."""
    if x.is_deleted():
        return None, "deleted: its memory was given up"
    if not x.is_ready():
        return None, "still being computed"
    if not x.is_fully_addressable:
        return None, "parts of it are in other processes"
    if x.size <= MOST_SHOWN:
        return np.asarray(x), ""
    devices = x.sharding.device_set
    if x.dtype.kind in _IN_PLACE and all(device.platform == "cpu" for device in devices):
        # Unlike what `asarray` gives, a view of the array's own memory goes when we have looked.
        if len(devices) > 1:
            return Shards(x), ""
        seen = np.from_dlpack(x)
        if seen.flags.c_contiguous:
            return seen, ""
    return None, f"{size(x.nbytes)}, values not fetched"


def _note(text: str) -> Markup:
    return tag("div", escape(text), style=MUTED)


def _values(value: _Numbers) -> Markup:
    """The numbers, with the middle of each axis left out where it is long."""
    if value.size == 0:
        return _note("no elements")
    if value.ndim <= 2:
        return _table(value, (), _EDGE)
    leading = value.shape[:-2]
    total = int(np.prod(leading))
    first = total if total <= _FACETS else _FACETS - 1
    found = list(itertools.islice(np.ndindex(leading), first))
    facets = [_facet(value, index, is_open=not i) for i, index in enumerate(found)]
    if total > _FACETS:
        facets.append(_note(f"⋯ {total - _FACETS} more slices" if total > _FACETS + 1 else "⋯"))
        facets.append(_facet(value, tuple([n - 1 for n in leading]), is_open=False))
    return joined(facets)


def _facet(value: _Numbers, index: tuple[int, ...], is_open: bool) -> Markup:
    label = f"[{', '.join(map(str, index))}, :, :]"
    summary = tag("summary", escape(label), style=f"{MONO};{MUTED}")
    table = _table(value, index, _EDGE_OF_SLICE)
    return tag("details", summary, table, **({"open": ""} if is_open else {}))


def _table(value: _Numbers, leading: tuple[int, ...], edge: int) -> Markup:
    """A vector or a matrix behind `leading`, with `edge` rows and columns at each end if large."""
    shape = value.shape[len(leading) :]
    # A vector is one row without a number of its own.
    rows: list[int | None] = ends(shape[0], edge) if len(shape) == 2 else [0]
    columns = ends(shape[-1], edge)
    head = [_index(j, "col") for j in columns]
    lines = [tag("tr", tag("td", style=_CELL) if len(shape) == 2 else "", *head)]
    for i in rows:
        label = [_index(i, "row")] if len(shape) == 2 else []
        entries = [
            "⋯"
            if i is None or j is None
            else _number(value[(*leading, i, j) if len(shape) == 2 else (*leading, j)])
            for j in columns
        ]
        lines.append(tag("tr", *label, *(tag("td", escape(e), style=_CELL) for e in entries)))
    return tag(
        "table",
        *lines,
        style=f"{MONO};border-collapse:collapse;margin:2px 0;border:none;table-layout:auto",
    )


def _index(i: int | None, scope: str) -> Markup:
    edge = "bottom" if scope == "col" else "right"
    style = f"{_CELL};{MUTED};font-weight:normal;border-{edge}:1px solid {LINE}"
    return tag("th", "⋯" if i is None else str(i), style=style, scope=scope)


def _number(x: Any) -> str:
    if isinstance(x, np.complexfloating):
        return f"{x.real:.5g}{x.imag:+.5g}j"
    if isinstance(x, np.bool_ | np.integer):
        return str(x)
    # ml_dtypes' numbers are no subclasses of NumPy's.
    return f"{float(x):.5g}" if _is_float(x.dtype) else str(x)


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def _statistics(value: _Numbers) -> str:
    if value.size < 2 or not (_is_float(value.dtype) or value.dtype.kind in "iu"):
        return ""
    numbers, said = sampled(value)
    numbers = numbers.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    facts = []
    if finite.size:
        of = "" if finite.size == numbers.size else "of the finite: "
        facts += [f"{of}min {finite.min():.4g}"]
        facts += [f"mean {finite.mean():.4g}", f"max {finite.max():.4g}"]
    nans, infinities = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
    facts += [f"{nans} NaN"] if nans else []
    facts += [f"{infinities} infinite"] if infinities else []
    return said + " · ".join(facts)


def sampled(value: _Numbers) -> tuple[np.ndarray[Any, Any], str]:
    """The numbers, or every n-th of them, and what to say about that."""
    # An odd step meets all columns of most matrices.
    step = 1 if value.size <= MOST_READ else -(-value.size // MOST_READ) | 1
    said = "" if step == 1 else f"1 in {count(step)} of {count(value.size)} elements: "
    if isinstance(value, Shards):
        return value.every(step), said
    return value.reshape(-1)[::step], said

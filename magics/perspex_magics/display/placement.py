"""Which part of an array lies on which device, as a table without scripts and as text.

The parts of an array over several devices are the cells of a grid, since a sharding cuts each axis
into ranges. A drawing shows the grid over two axes, the last that are cut; along axes before them
it is repeated. Only the sharding is asked, never the numbers, so nothing is copied or waited for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import display
from markupsafe import Markup

from perspex.tracing.trace import Tracer
from perspex_magics.display.markup import MONO, MUTED, escape, tag

# Ranges shown at each end of an axis before the middle is left out.
_EDGE = 4
# Grids of the axes before the two that are drawn; the last of all among them.
_FACETS = 3
# Devices named in one cell before they are counted.
_NAMED = 4
# So faint that text on them can be read on light and dark; forced colours leave only the lines.
_TINTS = (
    "rgba(33,150,243,0.22)",
    "rgba(255,152,0,0.22)",
    "rgba(76,175,80,0.22)",
    "rgba(171,71,188,0.22)",
    "rgba(0,188,212,0.22)",
    "rgba(244,67,54,0.22)",
    "rgba(205,190,40,0.28)",
    "rgba(121,85,72,0.28)",
)
_LINE = "1px solid rgba(128,128,128,0.7)"

Range = tuple[int, int]


@dataclass(frozen=True)
class Placement:
    """The grid of an array's parts.

    `cuts` has the ranges of each axis in order; `devices` those that have the part whose ranges
    have these numbers, by number.
    """

    shape: tuple[int, ...]
    cuts: tuple[tuple[Range, ...], ...]
    devices: dict[tuple[int, ...], list[Any]]

    @property
    def divided(self) -> list[int]:
        """The axes that are cut."""
        return [axis for axis, cut in enumerate(self.cuts) if len(cut) > 1]

    @property
    def everywhere(self) -> list[Any]:
        """All devices."""
        return [device for part in self.devices.values() for device in part]

    @property
    def said(self) -> str:
        """The whole in one line."""
        count, copies = len(self.devices), max(map(len, self.devices.values()))
        if count == 1:
            return "whole on one device" if copies == 1 else f"whole on each of {copies} devices"
        part = ", ".join([str(stop - start) for (start, stop), *_ in self.cuts])
        where = "one on each device" if copies == 1 else f"each on {copies} devices"
        return f"{count:,} parts of [{part}], {where}"


def placement_of(shape: Sequence[int], sharding: Any) -> Placement:
    """What a sharding makes of an array's shape."""
    shape = tuple(shape)
    ranges = {
        device: tuple([part.indices(n)[:2] for part, n in zip(parts, shape, strict=True)])
        for device, parts in sharding.devices_indices_map(shape).items()
    }
    cuts = tuple([tuple(sorted(set(found))) for found in zip(*ranges.values(), strict=True)])
    numbers = [{part: i for i, part in enumerate(cut)} for cut in cuts]
    devices: dict[tuple[int, ...], list[Any]] = {}
    for device in sorted(ranges, key=lambda device: device.id):
        key = tuple([number[part] for number, part in zip(numbers, ranges[device], strict=True)])
        devices.setdefault(key, []).append(device)
    return Placement(shape, cuts, devices)


def devices_text(devices: Iterable[Any]) -> str:
    """Devices in a few words.

    >>> import perspex
    >>> devices_text(perspex.devices()[:1])
    'cpu:0'
    """
    found = sorted(devices, key=lambda device: device.id)
    if len(found) == 1:
        return str(found[0])
    numbers = [device.id for device in found]
    platforms = {device.platform for device in found}
    if len(platforms) == 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{platforms.pop()}:{numbers[0]}–{numbers[-1]}"
    return f"{len(found)} devices"


def _numbers_text(devices: Sequence[Any]) -> str:
    """The numbers of the devices of one part."""
    numbers = [device.id for device in devices]
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{numbers[0]}–{numbers[-1]}"
    if len(numbers) <= _NAMED:
        return ", ".join(map(str, numbers))
    return f"{', '.join(map(str, numbers[:2]))}, … {numbers[-1]} ({len(numbers)})"


def ends(length: int, edge: int) -> list[int | None]:
    """The indices to show; `None` is where some are left out."""
    if length <= 2 * edge + 1:
        return list(range(length))
    return [*range(edge), None, *range(length - edge, length)]


@dataclass(frozen=True)
class _Grid:
    """A drawing: `down` and `across` are axes or nothing, `at` numbers of ranges elsewhere."""

    placement: Placement
    down: int | None
    across: int | None
    at: dict[int, int]

    def shown(self, axis: int | None, edge: int) -> list[int | None]:
        return [0] if axis is None else ends(len(self.placement.cuts[axis]), edge)

    def range_text(self, axis: int | None, i: int | None) -> str:
        if axis is None:
            return ""
        return "⋯" if i is None else _range_text(self.placement.cuts[axis][i])

    def key(self, i: int | None, j: int | None) -> tuple[int, ...] | None:
        """Which part is in a row and a column; `None` where some are left out."""
        if i is None or j is None:
            return None
        number = [self.at.get(axis, 0) for axis in range(len(self.placement.shape))]
        for axis, k in ((self.down, i), (self.across, j)):
            if axis is not None:
                number[axis] = k
        return tuple(number)

    def cell(self, i: int | None, j: int | None) -> str:
        key = self.key(i, j)
        return "⋯" if key is None else _numbers_text(self.placement.devices.get(key, ()))

    @property
    def label(self) -> str:
        """Where along the axes that are not drawn."""
        index = [
            ":" if axis in (self.down, self.across) else _range_text(cut[self.at.get(axis, 0)])
            for axis, cut in enumerate(self.placement.cuts)
        ]
        return f"[{', '.join(index)}]"

    @property
    def caption(self) -> str:
        """What the rows, the columns and the numbers are."""
        ways = [
            f"axis {axis} {way}"
            for axis, way in ((self.down, "down"), (self.across, "across"))
            if axis is not None
        ]
        return " · ".join(["numbers of devices", *ways])


def _range_text(part: Range) -> str:
    return f"{part[0]}:{part[1]}"


def _grids(placement: Placement) -> tuple[list[_Grid], int]:
    """What to draw, and how many grids are left out before the last."""
    rank, divided = len(placement.shape), placement.divided
    if rank <= 2:
        across = rank - 1 if rank else None
        return [_Grid(placement, 0 if rank == 2 else None, across, {})], 0
    across = divided[-1] if divided else None
    down = divided[-2] if len(divided) > 1 else None
    leading = divided[:-2]
    counts = [len(placement.cuts[axis]) for axis in leading]
    total = 1
    for n in counts:
        total *= n
    first = total if total <= _FACETS else _FACETS - 1
    found = list(itertools.islice(itertools.product(*map(range, counts)), first))
    if total > _FACETS:
        found.append(tuple([n - 1 for n in counts]))
    grids = [_Grid(placement, down, across, dict(zip(leading, at, strict=True))) for at in found]
    return grids, total - len(found)


def placement_html(placement: Placement, *, is_open: bool = True, tinted: bool = True) -> Markup:
    """The grid as script-free HTML that folds.

    Args:
      placement: which device has which part.
      is_open: whether it is unfolded.
      tinted: whether few parts have colours of their own.
    """
    summary = tag("summary", escape(placement.said), style=MUTED)
    grids, left_out = _grids(placement)
    if len(grids) == 1:
        drawn = [_table(grids[0], tinted)]
    else:
        drawn = [
            tag(
                "details",
                tag("summary", escape(grid.label), style=f"{MONO};{MUTED}"),
                _table(grid, tinted),
                **({"open": ""} if not i else {}),
            )
            for i, grid in enumerate(grids)
        ]
        if left_out:
            drawn.insert(-1, tag("div", f"⋯ {left_out:,} more", style=MUTED))
    return tag("details", summary, *drawn, **({"open": ""} if is_open else {}))


def _table(grid: _Grid, tinted: bool) -> Markup:
    rows, columns = grid.shown(grid.down, _EDGE), grid.shown(grid.across, _EDGE)
    clear = "background:transparent"
    head = f"{MUTED};{clear};font-weight:normal;border:none;padding:1px 8px;white-space:nowrap"
    lines = []
    if grid.across is not None:
        texts = [escape(grid.range_text(grid.across, j)) for j in columns]
        cells = [tag("th", text, style=f"{head};text-align:center", scope="col") for text in texts]
        corner = tag("td", style=f"{clear};border:none") if grid.down is not None else ""
        lines.append(tag("tr", corner, *cells, style=clear))
    for i in rows:
        label = []
        if grid.down is not None:
            text = escape(grid.range_text(grid.down, i))
            label = [tag("th", text, style=f"{head};text-align:right", scope="row")]
        cells = [
            tag("td", escape(grid.cell(i, j)), style=_cell_style(grid, i, j, tinted))
            for j in columns
        ]
        lines.append(tag("tr", *label, *cells, style=clear))
    caption = tag(
        "caption",
        escape(grid.caption),
        style=f"{MUTED};caption-side:bottom;text-align:left;padding:2px 0;white-space:nowrap",
    )
    return tag(
        "table",
        caption,
        *lines,
        style=f"{MONO};border-collapse:collapse;margin:4px 0;border:none;table-layout:auto",
    )


def _cell_style(grid: _Grid, i: int | None, j: int | None, tinted: bool) -> str:
    key = grid.key(i, j)
    shape = "text-align:center;padding:6px 12px;white-space:nowrap"
    if key is None:
        return f"{shape};border:none;background:transparent"
    parts = list(grid.placement.devices) if len(grid.placement.devices) <= len(_TINTS) else []
    tint = _TINTS[sorted(parts).index(key)] if key in parts else _TINTS[0]
    return f"{shape};border:{_LINE};background:{tint if tinted else 'transparent'}"


def placement_text(placement: Placement, *, min_width: int = 5, max_width: int = 80) -> str:
    """The grid as text, with lines of box characters.

    Args:
      placement: which device has which part.
      min_width: of a cell, in characters.
      max_width: of the whole, in characters; columns are left out to keep to it.
    """
    grids, left_out = _grids(placement)
    lines = [f"{devices_text(placement.everywhere)} · {placement.said}"]
    for n, grid in enumerate(grids):
        if left_out and n == len(grids) - 1:
            lines.append(f"⋯ {left_out:,} more")
        if len(grids) > 1:
            lines.append(grid.label)
        lines += _boxes(grid, min_width, max_width)
    lines.append(grids[0].caption)
    return "\n".join(lines)


def _boxes(grid: _Grid, min_width: int, max_width: int) -> list[str]:
    rows = grid.shown(grid.down, _EDGE)
    labels = [grid.range_text(grid.down, i) for i in rows]
    left = max(map(len, labels)) + (1 if grid.down is not None else 0)
    edge = _EDGE
    while True:
        columns = grid.shown(grid.across, edge)
        heads = [grid.range_text(grid.across, j) for j in columns]
        cells = [[grid.cell(i, j) for j in columns] for i in rows]
        width = max(min_width, *[len(text) + 2 for line in [heads, *cells] for text in line])
        if edge == 1 or left + len(columns) * (width + 1) + 1 <= max_width:
            break
        edge -= 1

    def rule(start: str, middle: str, stop: str) -> str:
        return " " * left + start + middle.join(["─" * width] * len(columns)) + stop

    lines = []
    if grid.across is not None:
        lines.append(" " * (left + 1) + " ".join([head.center(width) for head in heads]).rstrip())
    lines.append(rule("┌", "┬", "┐"))
    for n, (label, texts) in enumerate(zip(labels, cells, strict=True)):
        if n:
            lines.append(rule("├", "┼", "┤"))
        filled = "│".join([text.center(width) for text in texts])
        lines.append(f"{label.rjust(left - 1) + ' ' if left else ''}│{filled}│")
    lines.append(rule("└", "┴", "┘"))
    return lines


class Picture:
    """A placement that a notebook shows as a table, and a terminal as text."""

    def __init__(self, placement: Placement, tinted: bool, min_width: int, max_width: int) -> None:
        self.placement, self.tinted = placement, tinted
        self.min_width, self.max_width = min_width, max_width

    def __repr__(self) -> str:
        return placement_text(self.placement, min_width=self.min_width, max_width=self.max_width)

    def _repr_html_(self) -> str:
        where = devices_text(self.placement.everywhere)
        heading = tag("strong", escape(where), style=MONO)
        return tag("div", heading, placement_html(self.placement, tinted=self.tinted))


def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    min_width: int = 5,
    max_width: int = 80,
) -> None:
    """Show which part of an array of this shape a sharding puts on which device.

    A notebook shows a table, everything else prints text.

    Args:
      shape: of the array, of any rank.
      sharding: a `Sharding`.
      use_color: give parts colours of their own in the table, if there are at most eight.
      min_width: of a cell of the text, in characters.
      max_width: of the text; columns in the middle are left out to keep to it.

    Errors:
      `ValueError` if the sharding does not fit the shape.

    >>> import perspex
    >>> perspex.debug.visualize_sharding((4, 2), perspex.numpy.ones(3).sharding)
    cpu:0 · whole on one device
         0:2
        ┌─────┐
    0:4 │  0  │
        └─────┘
    numbers of devices · axis 0 down · axis 1 across
    """
    picture = Picture(placement_of(shape, sharding), use_color, min_width, max_width)
    if getattr(get_ipython(), "kernel", None) is not None:
        display(picture)
    else:
        print(picture)


def visualize_array_sharding(
    arr: Any, *, use_color: bool = True, min_width: int = 5, max_width: int = 80
) -> None:
    """Show which part of an array lies on which device: `visualize_sharding` of its sharding.

    Args:
      arr: an array.
      use_color, min_width, max_width: as for `visualize_sharding`.

    Errors:
      `TypeError` for a traced value, whose placement the compiler chooses later.
    """
    if isinstance(arr, Tracer):
        raise TypeError(
            "visualize_array_sharding shows where an array is, and the compiler has not yet chosen "
            f"that for a traced value ({arr.aval}). Return it from the compiled function, and show "
            "the result."
        )
    visualize_sharding(
        arr.shape, arr.sharding, use_color=use_color, min_width=min_width, max_width=max_width
    )

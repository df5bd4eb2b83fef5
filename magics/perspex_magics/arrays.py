"""How an array looks in a notebook: what it is, a corner of its values, and a few statistics.

Always true: nothing is computed on a device, waited for or copied to the host for an array of more
than `MOST_SHOWN` elements, or for one that is not ready.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex_magics.markup import LINE, MONO, MUTED, escape, tag

# Copying so many numbers from any device and looking at them takes well under a millisecond.
MOST_SHOWN = 10_000
# Rows and columns shown at each end before the middle is left out.
_EDGE = 5
_CELL = f"{MONO};text-align:right;padding:1px 8px;border:none;background:transparent"


def array_html(x: Any) -> str:
    """An array as script-free HTML.

    Args:
      x: a concrete `perspex.Array` of any shape and dtype, deleted or not.
    """
    if x.is_deleted():
        return tag("div", _heading(x), _note("deleted: its memory was given up"))
    if x.size > MOST_SHOWN:
        return tag("div", _heading(x), _note(f"{_bytes(x.nbytes)}, values not fetched"))
    if not x.is_ready():
        return tag("div", _heading(x), _note("still being computed"))
    value = np.asarray(x)
    return tag("div", _heading(x), _table(value), _statistics(value))


def _heading(x: Any) -> str:
    facts = [f"{x.dtype.name}[{', '.join(map(str, x.shape))}]"]
    if x.weak_type:
        facts.append("weak type")
    if not x.is_deleted():
        facts += sorted(map(str, x.devices()))
    first, *rest = facts
    return tag(
        "div",
        tag("strong", escape(first)),
        *(tag("span", escape(f" · {fact}"), style=MUTED) for fact in rest),
        style=MONO,
    )


def _note(text: str) -> str:
    return tag("div", escape(text), style=MUTED)


def _table(value: np.ndarray[Any, Any]) -> str:
    if value.size == 0:
        return _note("no elements")
    caption = ""
    if value.ndim > 2:
        first = ", ".join(["0"] * (value.ndim - 2))
        caption = tag(
            "caption",
            escape(f"[{first}, :, :], the first of {value[..., 0, 0].size} slices"),
            style=f"{MUTED};text-align:left;caption-side:top",
        )
        value = value[(0,) * (value.ndim - 2)]
    if value.ndim == 0:
        return tag("div", escape(_number(value[()])), style=f"{MONO};padding:1px 8px")
    # A vector is one row without a number of its own.
    rows: list[int | None] = _ends(len(value)) if value.ndim == 2 else [0]
    table = value if value.ndim == 2 else value[None]
    columns = _ends(table.shape[1])
    head = [_index(j, "col") for j in columns]
    lines = [tag("tr", *([_index(None, "col")] if value.ndim == 2 else []), *head)]
    for i in rows:
        label = [_index(i, "row")] if value.ndim == 2 else []
        entries = ["⋯" if i is None or j is None else _number(table[i, j]) for j in columns]
        lines.append(tag("tr", *label, *(tag("td", escape(e), style=_CELL) for e in entries)))
    return tag(
        "table",
        caption,
        *lines,
        style="border-collapse:collapse;margin:2px 0;border:none;table-layout:auto",
    )


def _ends(length: int) -> list[int | None]:
    """The indices to show; `None` is where some are left out."""
    if length <= 2 * _EDGE + 1:
        return list(range(length))
    return [*range(_EDGE), None, *range(length - _EDGE, length)]


def _index(i: int | None, scope: str) -> str:
    edge = "bottom" if scope == "col" else "right"
    style = f"{_CELL};{MUTED};font-weight:normal;border-{edge}:1px solid {LINE}"
    return tag("th", "" if i is None else str(i), style=style, scope=scope)


def _number(x: Any) -> str:
    if isinstance(x, np.complexfloating):
        return f"{x.real:.5g}{x.imag:+.5g}j"
    if isinstance(x, np.bool_ | np.integer):
        return str(x)
    # ml_dtypes' numbers are no subclasses of NumPy's.
    return f"{float(x):.5g}" if _is_float(x.dtype) else str(x)


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def _statistics(value: np.ndarray[Any, Any]) -> str:
    if value.size < 2 or not _is_float(value.dtype):
        return ""
    numbers = value.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    facts = []
    if finite.size:
        facts += [f"min {finite.min():.4g}", f"mean {finite.mean():.4g}", f"max {finite.max():.4g}"]
    nans, infinities = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
    facts += [f"{nans} NaN"] if nans else []
    facts += [f"{infinities} infinite"] if infinities else []
    return _note(" · ".join(facts))


def _bytes(n: int) -> str:
    size = float(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TiB"

"""`perspex.timings(f, *args)`: how long a function takes, and how much that varies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex_magics.display.markup import LINE, MONO, MUTED, escape, shortened, tag
from perspex_magics.display.units import duration
from perspex_magics.panel import widgets
from perspex_magics.timing.measuring import Measured, measure
from perspex_magics.widgets.view import View, shown

_BARS = 40
# The slowest runs are counted beside the histogram, so that they do not squeeze it.
_SHOWN = 0.95


class Timings(View):
    """The widget. `measured` has the numbers."""

    module = "timings"

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        super().__init__(data=as_data(measured))

    @property
    def text(self) -> str:
        return self.measured.text()

    @property
    def html(self) -> str:
        return _still(self.measured, as_data(self.measured))


def timings(fun: Callable[..., Any], *args: Any, seconds: float = 1.0, **kwargs: Any) -> Any:
    """Measure a function: compiling it once, and many calls, waiting for the results of each.

    Args:
      fun: a function of arrays, compiled or not. It is called many times.
      args: its positional arguments.
      seconds: the total time that the calls may take.
      kwargs: its keyword arguments.

    Returns:
      A widget with the numbers as `measured`. Outside of Jupyter, `None`, after printing the same
      as text.

    Raises:
      TypeError: if `fun` is not callable.
      ValueError: if `fun` donates its arguments, or `seconds` is not positive.
    """
    return shown(Timings(measure(fun, *args, seconds=seconds, **kwargs)))


def as_data(measured: Measured) -> widgets.Timings:
    """The measurement as JSON."""
    total = measured.total
    most = float(np.quantile(total, _SHOWN))
    edges = np.linspace(float(total.min()), max(most, float(total.min()) * 1.01 + 1e-9), _BARS + 1)
    counts = np.histogram(total, edges)[0]
    return {
        "name": measured.name,
        "signature": measured.signature,
        "sentence": measured.sentence(),
        "stages": [
            {"name": stage.name, "seconds": stage.seconds, "note": stage.note}
            for stage in measured.stages
        ],
        "quantiles": measured.quantiles(),
        "queued": measured.queued,
        "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
        "outside": int(total.size - counts.sum()),
        "runs": int(total.size),
    }


# ---- without scripts ----------------------------------------------------------------------------

_HEIGHT = 90
_BAR = "var(--jp-brand-color1,#1976d2)"


def _still(measured: Measured, data: widgets.Timings) -> str:
    """The measurement as HTML, for where no widget can live."""
    name = f"{shortened(measured.name)}({shortened(measured.signature, 400)})"
    said = [measured.sentence()]
    if data["outside"]:
        n = data["outside"]
        runs = "run" if n == 1 else "runs"
        said.append(f"{n:,} {runs} took longer than the histogram shows.")
    if measured.queued is not None:
        took = duration(measured.queued)
        said.append(f"Dispatched back to back without waiting, a call takes {took}.")
    return tag(
        "div",
        tag("div", escape(name), style=f"{MONO};overflow-wrap:anywhere"),
        *[table.html() for table in measured.tables()],
        _bars(data["histogram"]["edges"], data["histogram"]["counts"]),
        tag("div", escape(" ".join(said)), style=MUTED),
    )


def _bars(edges: Sequence[float], counts: Sequence[int]) -> str:
    top = max(*counts, 1)
    heights = [max(1, round(_HEIGHT * n / top)) if n else 0 for n in counts]
    # A border, because forced colours take backgrounds away.
    bar = f"flex:1;margin-right:1px;height:0;border-bottom:{{}}px solid {_BAR};opacity:0.75"
    bars = [tag("div", style=bar.format(height)) for height in heights]
    row = f"display:flex;align-items:flex-end;height:{_HEIGHT}px;border-bottom:1px solid {LINE}"
    low, high = duration(edges[0]), duration(edges[-1])
    ends = tag("div", tag("span", escape(low)), tag("span", escape(high)), style=_APART)
    label = f"Histogram of the runs from {low} to {high}"
    return tag(
        "div",
        tag("div", *bars, style=row, role="img", **{"aria-label": label}),
        ends,
        style="max-width:420px;margin:6px 0",
    )


_APART = f"display:flex;justify-content:space-between;{MUTED}"

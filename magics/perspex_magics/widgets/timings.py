"""`perspex.timings(f, *args)`: how long a function takes, and how much that varies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from perspex_magics.measuring import Measured, measure
from perspex_magics.widgets.view import View, shown

_BARS = 40
# What takes longer than nearly all others is counted, and does not squeeze the picture.
_SHOWN = 0.95


class Timings(View, entry="timings_widget.js"):
    """The widget. `measured` has the numbers."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        super().__init__(data=as_data(measured))

    @property
    def text(self) -> str:
        return self.measured.text()


def timings(fun: Callable[..., Any], *args: Any, seconds: float = 1.0, **kwargs: Any) -> Any:
    """Measure a function: tracing, lowering and compiling once, and many calls, each waited for.

    Args:
      fun: a function of arrays, compiled or not; it is called many times.
      seconds: how long the calls may take in all.

    Returns:
      A widget with the numbers as `measured`; outside of Jupyter the text of it is printed, and
      nothing is returned.

    Errors:
      `TypeError` for what cannot be called, `ValueError` for a function that donates its arguments.
    """
    return shown(Timings(measure(fun, *args, seconds=seconds, **kwargs)))


def as_data(measured: Measured) -> dict[str, Any]:
    """What was measured, as JSON."""
    total = measured.total
    most = float(np.quantile(total, _SHOWN))
    edges = np.linspace(float(total.min()), max(most, float(total.min()) * 1.01 + 1e-9), _BARS + 1)
    counts = np.histogram(total, edges)[0]
    return {
        "name": measured.name,
        "signature": measured.signature,
        "sentence": measured.sentence(),
        "stages": [vars(stage) for stage in measured.stages],
        "quantiles": measured.quantiles(),
        "queued": measured.queued,
        "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
        "outside": int(total.size - counts.sum()),
        "runs": int(total.size),
    }

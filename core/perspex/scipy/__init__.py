"""Functions of SciPy on Perspex arrays.

The modules are imported when they are first asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = (
    "cluster",
    "fft",
    "integrate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "special",
    "stats",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})

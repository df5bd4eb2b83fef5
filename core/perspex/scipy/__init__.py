"""Functions of SciPy on Perspex arrays.

The modules are imported when they are first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perspex.scipy import cluster as cluster
    from perspex.scipy import fft as fft
    from perspex.scipy import integrate as integrate
    from perspex.scipy import interpolate as interpolate
    from perspex.scipy import linalg as linalg
    from perspex.scipy import ndimage as ndimage
    from perspex.scipy import optimize as optimize
    from perspex.scipy import signal as signal
    from perspex.scipy import sparse as sparse
    from perspex.scipy import spatial as spatial
    from perspex.scipy import special as special
    from perspex.scipy import stats as stats

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]


if not TYPE_CHECKING:  # it would take every misspelt name for a module

    def __getattr__(name: str) -> object:
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

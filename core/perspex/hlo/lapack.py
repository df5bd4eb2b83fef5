"""LAPACK as XLA's CPU compiler calls it: the targets of `jaxlib.lapack`, registered on first use.

The targets find LAPACK in SciPy, which is therefore imported here, and not before somebody
decomposes a matrix. A registered target serves the process, whatever client runs the program.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from perspex.base import xla


@functools.cache
def _library() -> Any:
    """The module `jaxlib.lapack`, after registering its targets. Importing it takes 4 ms."""
    lapack = xla.lapack()
    for platform, targets in lapack.registrations().items():
        for name, capsule, api_version in targets:
            xla.register_custom_call_target(
                name, capsule, platform=platform, api_version=api_version
            )
    return lapack


def target(routine: str, dtype: np.dtype) -> str:
    """The name of a LAPACK routine for a dtype: `lapack_spotrf_ffi` for potrf of float32.

    Raises `NotImplementedError` for other dtypes than float32, float64, complex64 and complex128.
    """
    return _library().prepare_lapack_call(f"{routine}_ffi", dtype)


def register() -> None:
    """Make all targets ready: programs from files name them."""
    target("potrf", np.dtype("float32"))


def plain_target(name: str) -> str:
    """A target of the same library whose name does not depend on the dtype."""
    _library()
    return name

"""`debug_nans` and `debug_infs`: every result is looked at before it is returned.

With one of the flags set, C++ repeats no call, and each executable waits for its results and checks
them. That finds the first compiled program with a NaN or an infinity among its results. Its
operations are then run again one by one, to find the operation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from perspex import config, dtypes
from perspex.base import source, xla
from perspex.tracing.trace import state


class InvalidValueError(FloatingPointError):
    """A result has a NaN or an infinity, and a flag asks for none."""


def is_checking() -> bool:
    """Whether results are checked."""
    return bool(config.debug_nans.value or config.debug_infs.value)


def check(name: str, outs: Iterable[Any]) -> None:
    """Raise `InvalidValueError` if a result of `name` has a value that the flags exclude."""
    nans, infs = config.debug_nans.value, config.debug_infs.value
    for out in outs:
        if out.__class__ is not xla.ArrayImpl or not dtypes.issubdtype(out.dtype, np.inexact):
            continue
        value = np.asarray(out)
        for what, excluded, test in (("nan", nans, np.isnan), ("inf", infs, np.isinf)):
            if excluded and test(value).any():
                at = source.summary(state.source or source.capture())
                raise InvalidValueError(f"invalid value ({what}) encountered in {name} at {at}")

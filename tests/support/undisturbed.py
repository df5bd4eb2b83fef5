"""Measurements against a clock, on a machine that may have other work to do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

# Other work only comes now and then; what is wrong is wrong each time.
_TRIES = 8


def undisturbed(test: Callable[..., None]) -> Callable[..., None]:
    """Take the measurement of a test again where it fails, up to eight times in all.

    For tests that compare times: another program may take the processor between two readings of a
    clock, for as long as it likes. Tests that compare anything else do not need it.
    """

    @functools.wraps(test)
    def tried(*args: Any, **kwargs: Any) -> None:
        for left in reversed(range(_TRIES)):
            try:
                return test(*args, **kwargs)
            except AssertionError:
                if not left:
                    raise
        return None

    return tried

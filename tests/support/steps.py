"""How much Python does, on a machine of any speed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def calls(function: Callable[[], Any]) -> int:
    """How many functions are called, of Python and of C, while one runs in this thread."""
    count = 0

    def called(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count

"""What tests of callbacks have in common: a list of what was seen, and what wrote it there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import perspex
from perspex import debug
from perspex.runtime.callbacks import cancel_effects

F32 = perspex.ShapeDtypeStruct((), np.float32)


@pytest.fixture
def seen() -> list[Any]:
    return []


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    cancel_effects()


def note(seen: list[Any], *values: Any, ordered: bool = False, tag: Any = None) -> None:
    """Remember values, as Python numbers, when the program gets here."""

    def write(*arrays: Any) -> None:
        found = [np.asarray(x).tolist() for x in arrays]
        seen.append((tag, *found) if tag is not None else found[0] if len(found) == 1 else found)

    debug.callback(write, *values, ordered=ordered)


def after(seen: list[Any], f: Callable[[], Any]) -> list[Any]:
    """What `f()` leaves in `seen` once all has happened."""
    seen.clear()
    f()
    perspex.effects_barrier()
    return list(seen)

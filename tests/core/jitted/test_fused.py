"""Functions of the array namespace, called eagerly: one program each."""

from __future__ import annotations

import numpy as np
import pytest

import perspex.numpy as pnp
from perspex import events


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "max", "mean", "any", "median", "sort"])
def test_a_program_is_called_what_the_user_called(name: str) -> None:
    """Functions that share a program, and those behind another one, have the public name."""
    seen: list[str] = []
    stop = events.subscribe(lambda event: seen.append(event.name), ["compile"])
    # The size is one that no other test has.
    getattr(pnp, name)(np.ones(1237, np.float32))
    stop()
    assert name in seen

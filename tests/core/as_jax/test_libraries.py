"""The small libraries inside of JAX compute here what they compute there.

Real jax 0.12 ran `oracle/recorders/libraries.py` for the records; here Perspex runs it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracle.records import ours, read

THEIRS: dict[str, Any] = read("libraries")


@pytest.mark.parametrize("key", THEIRS)
def test_as_in_jax(key: str) -> None:
    theirs, found = THEIRS[key], ours("libraries")[key]
    if isinstance(theirs, list):
        np.testing.assert_allclose(found, theirs, rtol=2e-5, atol=2e-6)
    else:
        assert found == theirs

"""JAX's side doors lead here where they lead there.

Real jax 0.12 ran `oracle/recorders/doors.py`, and `meshes.py` on eight devices, for the records;
here Perspex runs them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracle.records import ours, read

THEIRS: dict[str, dict[str, Any]] = {name: read(name) for name in ("doors", "meshes")}


def agrees(found: Any, theirs: Any) -> bool:
    """Whether two answers are the same: floats nearly, errors by one of their types."""
    if isinstance(theirs, dict):
        return isinstance(found, dict) and theirs["error"][0] in found["error"]
    if isinstance(theirs, list):
        return (
            isinstance(found, list)
            and len(found) == len(theirs)
            and all(map(agrees, found, theirs))
        )
    if isinstance(theirs, float) and isinstance(found, float):
        return bool(np.isclose(found, theirs, rtol=1e-5, atol=1e-6))
    return type(found) is type(theirs) and bool(found == theirs)


@pytest.mark.parametrize(
    ("recorder", "key"), [(name, key) for name, found in THEIRS.items() for key in found]
)
def test_as_in_jax(recorder: str, key: str) -> None:
    found, theirs = ours(recorder)[key], THEIRS[recorder][key]
    assert agrees(found, theirs), f"got {found}, want {theirs}"

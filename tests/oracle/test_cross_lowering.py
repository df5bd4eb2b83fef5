"""Programs for GPUs and TPUs call what JAX's call there, with the same attributes."""

from __future__ import annotations

import pytest

from . import records

NAME = "cross_lowering"
RECORDS = records.read(NAME)
# What JAX makes of other operations there, and what we leave to the CPU: an error says so.
REFUSED = {
    "tpu": ("svd", "eigvalsh | f300", "pinv", "ormqr", "tridiagonal_solve", "QDWH"),
}


def is_refused(key: str) -> bool:
    platform, function = key.split(" / ", 1)
    return any(name in function for name in REFUSED.get(platform, ()))


@pytest.mark.parametrize("key", [key for key in RECORDS if not is_refused(key)])
def test_calls(key: str) -> None:
    assert records.ours(NAME)[key] == RECORDS[key]


@pytest.mark.parametrize("key", [key for key in RECORDS if is_refused(key)])
def test_refused(key: str) -> None:
    assert records.ours(NAME)[key] == "NotImplementedError"

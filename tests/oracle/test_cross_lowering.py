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
# Where JAX turns rows in a loop, ours is a QR factorization of all rows.
BY_QR = {
    "rocm": {"hipsolver_geqrf_ffi", "hipsolver_orgqr_ffi"},
    "tpu": {"Qr", "ProductOfElementaryHouseholderReflectors"},
}
QR_KEYS = [key for key in RECORDS if "cholesky_update" in key and key.split(" / ")[0] in BY_QR]


def is_refused(key: str) -> bool:
    platform, function = key.split(" / ", 1)
    return any(name in function for name in REFUSED.get(platform, ()))


KEYS = [key for key in RECORDS if not is_refused(key) and key not in QR_KEYS]


@pytest.mark.parametrize("key", KEYS)
def test_calls(key: str) -> None:
    assert records.ours(NAME)[key] == RECORDS[key]


@pytest.mark.parametrize("key", [key for key in RECORDS if is_refused(key)])
def test_refused(key: str) -> None:
    assert records.ours(NAME)[key] == "NotImplementedError"


@pytest.mark.parametrize("key", QR_KEYS)
def test_by_qr(key: str) -> None:
    targets = {call["call_target_name"].strip('"') for call in records.ours(NAME)[key]}
    assert targets == BY_QR[key.split(" / ")[0]]

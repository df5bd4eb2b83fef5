"""Programs for GPUs and TPUs call what JAX's call there, with the same attributes."""

from __future__ import annotations

import inspect
import re

import pytest

import perspex
from perspex import lax
from perspex import numpy as jnp

from . import records
from .recorders.cross_lowering import CASES

NAME = "cross_lowering"
RECORDS = records.read(NAME)
# What JAX makes of other operations there, and what we leave to the CPU: an error says so.
REFUSED = {
    "tpu": (
        "SvdAlgorithm.QR", "SvdAlgorithm.JACOBI", "DIVIDE_AND_CONQUER", "ormqr",
        "tridiagonal_solve", "QDWH",
    ),
}  # fmt: skip
# What is computed in another way than JAX's: the targets of ours, the same on all platforms or by
# platform. A program of Cholesky's factor turns rows in a loop in JAX, and is a QR factorization
# here; `polar` factors by QR in each step; `qr_multiply` makes `q`; eigenvalues of tridiagonal
# matrices are those of the whole matrix and not found by bisection; and types do not tell that an
# array already lies in the memory of its device.
_QR = {
    "cuda": {"cusolver_geqrf_ffi", "cusolver_orgqr_ffi"},
    "rocm": {"hipsolver_geqrf_ffi", "hipsolver_orgqr_ffi"},
    "tpu": {"Qr", "ProductOfElementaryHouseholderReflectors"},
}
_EIGH = {"cuda": {"cusolver_syevd_ffi"}, "rocm": {"hipsolver_syevd_ffi"}, "tpu": {"Eigh"}}
# Singular values on TPUs: by a polar decomposition in steps that are known beforehand, where JAX
# has loops; and eigenvalues by Jacobi's method at all sizes.
_SVD = {"tpu": {*_QR["tpu"], "Eigh"}}
OTHERWISE = {
    "eigvalsh | f300": {"tpu": {"Eigh"}},
    **dict.fromkeys(["svd", "pinv", "matrix_rank", "linalg.cond", "lstsq", "norm(a, 2)"], _SVD),
    "cholesky_update": {k: v for k, v in _QR.items() if k != "cuda"},
    "polar(a)": {k: v for k, v in _QR.items() if k != "tpu"},
    "qdwh": {k: v for k, v in _QR.items() if k != "tpu"},
    # In rotations, where JAX asks for eigenvalues.
    "rsf2csf": dict.fromkeys(_QR, set[str]()),
    "qr_multiply": _QR,
    "eigh_tridiagonal": _EIGH,
    "jax.memory.Space.Device": dict.fromkeys(_QR, {"annotate_device_placement"}),
}


def otherwise(key: str) -> set[str] | None:
    """The targets that ours calls, where it computes in another way."""
    platform, function = key.split(" / ", 1)
    found = [
        rows[platform] for name, rows in OTHERWISE.items() if name in function and platform in rows
    ]
    return found[0] if found else None


def is_refused(key: str) -> bool:
    platform, function = key.split(" / ", 1)
    return any(name in function for name in REFUSED.get(platform, ()))


OTHER_KEYS = [key for key in RECORDS if otherwise(key) is not None and not is_refused(key)]
KEYS = [key for key in RECORDS if not is_refused(key) and key not in OTHER_KEYS]


@pytest.mark.parametrize("key", KEYS)
def test_calls(key: str) -> None:
    assert records.ours(NAME)[key] == RECORDS[key]


@pytest.mark.parametrize("key", [key for key in RECORDS if is_refused(key)])
def test_refused(key: str) -> None:
    assert records.ours(NAME)[key] == "NotImplementedError"


@pytest.mark.parametrize("key", OTHER_KEYS)
def test_in_another_way(key: str) -> None:
    targets = {call["call_target_name"].strip('"') for call in records.ours(NAME)[key]}
    assert targets == otherwise(key)


# Numbers of the host, and what only looks at a key.
WITHOUT_PROGRAM = {"Key", "fftfreq", "rfftfreq", "key_dtype", "key_impl", "reuse"}


@pytest.mark.parametrize("module", ["lax.linalg", "jnp.fft", "jax.random"])
def test_every_function_is_there(module: str) -> None:
    """Of linear algebra, Fourier transforms and random numbers; primitives have their functions."""
    space = {"lax": lax, "jnp": jnp, "jax": perspex}
    package, _, name = module.partition(".")
    found = getattr(space[package], name)
    functions = {
        one
        for one in getattr(found, "__all__", dir(found))
        if inspect.isfunction(getattr(found, one)) and one[0] != "_" and one not in WITHOUT_PROGRAM
    }
    known = {one for one in functions if re.search(rf"{re.escape(module)}\.{one}\b", CASES)}
    assert len(functions) > 10 and known == functions

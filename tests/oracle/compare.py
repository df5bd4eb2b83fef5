"""Compare an outcome with the recorded one: `differences` says in words what disagrees.

Integers, booleans, keys, text, dtypes, shapes and weak types must be equal. Floating point values
must agree to a relative tolerance, because a compiler of another version or a processor with other
vector units rounds differently; `exact` asks for equal bits. Errors agree when the recorded type is
among the types of ours: a more specific error of our own is welcome.
"""

from __future__ import annotations

import base64
from typing import Any

import ml_dtypes
import numpy as np

Outcome = list[Any]

# About 16 units in the last place for 32 and 64 bits, 2 units for 16 bits.
_TOLERANCE = {"float64": 4e-15, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}

_REFUSALS = {"TypeError", "ValueError", "IndexError", "OverflowError", "NotImplementedError"}


def differences(
    got: Outcome,
    want: Outcome,
    *,
    exact: bool = False,
    tol: float | None = None,
    raises: bool = False,
) -> str:
    """Say how `got` differs from the recorded `want`, or return the empty string.

    Arguments:
      got, want: outcomes as `evaluate` encodes them.
      exact: floating point values must have equal bits (any NaN equals any NaN).
      tol: relative tolerance, where it is wider than the one for the dtype.
      raises: any error that refuses the arguments agrees with the recorded error.
    """
    if got[0] != want[0]:
        return f"got {show(got)}, want {show(want)}"
    tag = got[0]
    if tag == "error":
        # JAX's error of no type of its own, a plain `Exception`, agrees with none unless `raises`.
        named = bool(want[1]) and want[1][0] in got[1]
        agree = named or (raises and not _REFUSALS.isdisjoint(got[1]))
        return "" if agree else f"got {show(got)}, want {show(want)}"
    if tag in ("tuple", "list", "dict"):
        return _container_differences(got, want, exact=exact, tol=tol)
    if tag in ("array", "numpy"):
        if got[1:-1] != want[1:-1]:
            return f"got {show(got)}, want {show(want)}"
        return _value_differences(decode(got), decode(want), exact=exact, tol=tol)
    return "" if got == want else f"got {show(got)}, want {show(want)}"


def _container_differences(got: Outcome, want: Outcome, **options: Any) -> str:
    if len(got[1]) != len(want[1]):
        return f"got {len(got[1])} items, want {len(want[1])}"
    for position, (mine, theirs) in enumerate(zip(got[1], want[1], strict=True)):
        if got[0] == "dict":
            if mine[0] != theirs[0]:
                return f"got the key {mine[0]}, want {theirs[0]}"
            position, mine, theirs = mine[0], mine[1], theirs[1]
        found = differences(mine, theirs, **options)
        if found:
            return f"item {position}: {found}"
    return ""


def decode(outcome: Outcome) -> np.ndarray:
    """The NumPy array of an `array` or `numpy` outcome."""
    name = outcome[1]
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    data = base64.b64decode(outcome[-1])
    if not dtype.itemsize:  # float0, which holds nothing
        return np.zeros(outcome[2], dtype)
    return np.frombuffer(data, dtype=dtype).reshape(outcome[2])


def _value_differences(got: np.ndarray, want: np.ndarray, *, exact: bool, tol: float | None) -> str:
    name = want.dtype.name
    part = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    if exact or part not in _TOLERANCE:
        same = got.tobytes() == want.tobytes()
        if not same and part in _TOLERANCE:
            bits = f"u{want.dtype.itemsize if part == name else want.dtype.itemsize // 2}"
            equal = got.view(bits) == want.view(bits)
            same = bool(np.all(equal | (_isnan(got, part) & _isnan(want, part))))
        return "" if same else f"got\n{got!r}, want\n{want!r}"
    wide = np.complex128 if part != name else np.float64
    mine, theirs = got.astype(wide), want.astype(wide)
    finite = np.isfinite(theirs)
    if not np.array_equal(mine[~finite], theirs[~finite], equal_nan=True):
        return f"got\n{got!r}, want\n{want!r}"
    relative = max(_TOLERANCE[part], tol or 0.0)
    size = np.abs(theirs[finite])
    # A sum that cancels is only as exact as its largest neighbours.
    allowed = relative * np.maximum(size, 0.05 * size.max(initial=0.0))
    error = np.abs(mine[finite] - theirs[finite])
    if np.all(error <= allowed):
        return ""
    worst = np.max(error / np.maximum(size, np.finfo(wide).tiny))
    return f"got\n{got!r}, want\n{want!r}; relative error {worst:.2g}, allowed {relative:.2g}"


def _isnan(array: np.ndarray, part: str) -> np.ndarray:
    real = array.view(part) if array.dtype.name.startswith("complex") else array
    return np.isnan(real)


def show(outcome: Outcome) -> str:
    """An outcome in words, for a message."""
    tag = outcome[0]
    if tag == "error":
        return f"{outcome[1][0]}: {outcome[2]}"
    if tag == "array":
        weak = ", weak" if outcome[3] else ""
        return f"array {outcome[1]}{outcome[2]}{weak} {decode(outcome).tolist()}"
    if tag == "numpy":
        return f"numpy array {outcome[1]}{outcome[2]} {decode(outcome).tolist()}"
    if tag in ("tuple", "list"):
        return f"{tag}({', '.join(show(item) for item in outcome[1])})"
    if tag == "text":
        return f"the text\n{outcome[1]}\n"
    return " ".join(str(item) for item in outcome)

"""What differs between two outcomes, and whether rounding alone can explain it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from oracle.compare import decode, show

# Units in the last place: a compiler may fuse and reorder.
UNITS = {"float64": 16, "float32": 16, "float16": 2, "bfloat16": 2}
# How much more than the spread of the noisy runs is allowed.
ROOM = 8.0


@dataclass(frozen=True)
class Difference:
    """What differs in the outcome of one name."""

    kind: str
    text: str
    name: str = ""

    @property
    def sort(self) -> str:
        return self.kind


def differences(
    got: Any, want: Any, noise: Sequence[Any] = (), *, zeros: bool = False
) -> Difference | None:
    """The first difference of `got` from `want`; `noise` has what `want` is in noisy runs."""
    if any(x[0] == "error" and "NameError" in x[1] for x in (got, want)):
        return None  # what would have been there differed or failed already
    if (got[0] == "error") != (want[0] == "error"):
        kind = "we raise" if got[0] == "error" else "jax raises"
        return Difference(kind, f"got {brief(got)}\nwant {brief(want)}")
    if got[0] == "error":
        if want[1][0] in got[1]:
            return None
        return Difference("error type", f"got {brief(got)}\nwant {brief(want)}")
    if got[0] != want[0]:
        return Difference("structure", f"got {brief(got)}\nwant {brief(want)}")
    if got[0] in ("tuple", "list", "dict"):
        if len(got[1]) != len(want[1]):
            return Difference("structure", f"got {len(got[1])} items, want {len(want[1])}")
        for i, (mine, theirs) in enumerate(zip(got[1], want[1], strict=True)):
            inner = [n[1][i] for n in noise if n[0] == want[0] and len(n[1]) == len(want[1])]
            if got[0] == "dict":
                mine, theirs = mine[1], theirs[1]
                inner = [n[1] for n in inner]
            found = differences(mine, theirs, inner, zeros=zeros)
            if found:
                return found
        return None
    if got[0] in ("array", "numpy"):
        labels = ("kind", "dtype", "shape", "weak type")
        for label, mine, theirs in zip(labels, got[:-1], want[:-1], strict=False):
            if mine != theirs:
                return Difference(label, f"got {brief(got)}\nwant {brief(want)}")
        arrays = [decode(n) for n in noise if n[:-1] == want[:-1]]
        found = values(decode(got), decode(want), arrays, zeros)
        if found:
            return Difference(found, f"got {brief(got)}\nwant {brief(want)}")
        return None
    if got[0] == "aval":
        for label, mine, theirs in zip(
            ("dtype", "shape", "weak type"), got[1:], want[1:], strict=True
        ):
            if mine != theirs:
                return Difference(label, f"got {got}\nwant {want}")
        return None
    if got[0] == "python" and got[1] == want[1] in ("float", "complex"):
        mine, theirs = (np.asarray(complex(g[2])) for g in (got, want))
        inner = [np.asarray(complex(n[2])) for n in noise if n[0] == "python" and n[1] == want[1]]
        return Difference("value", f"{got} {want}") if values(mine, theirs, inner, zeros) else None
    if got[0] == "text":
        return None if got == want else Difference("text", f"got {got[1]!r}\nwant {want[1]!r}")
    return None if got == want else Difference("value", f"got {brief(got)}\nwant {brief(want)}")


def values(got: np.ndarray, want: np.ndarray, noise: Sequence[np.ndarray], zeros: bool) -> str:
    """How numbers differ, beyond rounding; the empty string if they do not."""
    if got.tobytes() == want.tobytes():
        return ""
    name = want.dtype.name
    if want.dtype.kind in "biu" or "int" in name:
        changed = np.asarray(got != want)
        for other in noise:
            changed &= np.asarray(other == want)
        return "value" if changed.any() else ""
    is_complex = name.startswith("complex")
    part = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    info = ml_dtypes.finfo(part)
    mine, theirs, others = (
        _parts(x, is_complex) for x in (got, want, np.stack(noise) if noise else want[None][:0])
    )
    with np.errstate(all="ignore"):
        size = np.abs(theirs)
        if is_complex:  # a part is only as exact as the number
            size = np.broadcast_to(size.max(axis=-1, keepdims=True), size.shape)
        finite = np.isfinite(size)
        top = size[finite].max(initial=0.0)
        allowed = UNITS.get(part, 1) * float(info.eps) * np.maximum(size, 0.05 * top)
        spread = np.abs(others - theirs).max(axis=0, initial=0.0) if len(noise) else 0 * size
        # A number that is not finite in one of the runs may be anything.
        unsure = np.zeros(mine.shape, bool)
        for other in others:
            unsure |= np.isfinite(other) != np.isfinite(theirs)
            unsure |= np.isnan(other) != np.isnan(theirs)
        spread = np.where(np.isfinite(spread), spread, 0.0)
        both = np.isfinite(mine) & np.isfinite(theirs)
        near = np.abs(mine - theirs) <= allowed + ROOM * spread + 4 * float(info.smallest_subnormal)
        same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs)) | (both & near) | unsure
    if not same.all():
        wrong = ~same
        both_infinite = np.isinf(mine) & np.isinf(theirs)
        if (~(np.isfinite(mine) & np.isfinite(theirs)) & ~both_infinite)[wrong].any():
            return "NaN or infinity"
        return "value"
    if zeros and not noise:
        sign = (mine == 0) & (theirs == 0) & (np.signbit(mine) != np.signbit(theirs))
        if sign.any():
            return "sign of zero"
    return ""


def recovered(got: Any, want: Any, wide: Any, noise: Sequence[Any] = ()) -> bool:
    """Whether `got` has what float64 gives (`wide`) where `want` lost numbers to an overflow."""
    if want[0] in ("tuple", "list", "dict") and got[0] == wide[0] == want[0]:
        pick = (lambda item: item[1]) if want[0] == "dict" else (lambda item: item)
        items = zip(*[[pick(x) for x in o[1]] for o in (got, want, wide)], strict=True)
        return all(
            recovered(g, w, d, [pick(n[1][i]) for n in noise if n[0] == want[0]])
            for i, (g, w, d) in enumerate(items)
        )
    if want[0] != "array" or got[:4] != want[:4] or wide[0] != "array" or wide[2] != want[2]:
        return differences(got, want, noise) is None
    theirs = np.array(decode(want))
    if theirs.dtype.kind not in "fc":
        return differences(got, want, noise) is None
    mine, exact = decode(got), decode(wide)
    same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
    lost = ~np.isfinite(theirs) & ~same
    if not np.allclose(mine[lost], exact[lost], rtol=1e-3, atol=0, equal_nan=True):
        return False
    theirs[lost] = mine[lost]
    others = [np.array(decode(n)) for n in noise if n[:-1] == want[:-1]]
    for other in others:
        other[lost] = mine[lost]
    return not values(
        mine.reshape(-1), theirs.reshape(-1), [other.reshape(-1) for other in others], False
    )


# Types that a wider one tells the truth about, and what their parts are.
_ROUNDED = {name: name for name in ("float16", "bfloat16", "float32")} | {"complex64": "float32"}


def nearer(got: Any, want: Any, wide: Any) -> bool:
    """Whether no rounded number in `got` is farther from `wide` than that in `want`."""
    if want[0] in ("tuple", "list") and got[0] == wide[0] == want[0]:
        items = zip(got[1], want[1], wide[1], strict=True)
        return all(nearer(g, w, d) for g, w, d in items)
    rounded = want[0] == "array" and want[1] in _ROUNDED
    if not rounded or got[:4] != want[:4] or wide[0] != "array" or wide[2] != want[2]:
        return differences(got, want) is None
    mine, theirs, exact = (decode(x).astype(np.complex128) for x in (got, want, wide))
    with np.errstate(invalid="ignore", over="ignore"):
        step = float(ml_dtypes.finfo(_ROUNDED[want[1]]).eps) * np.abs(exact)
        is_near = np.abs(mine - exact) <= np.maximum(np.abs(theirs - exact), step)
    return bool((is_near | (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))).all())


def _parts(x: np.ndarray, is_complex: bool) -> np.ndarray:
    if not is_complex:
        return x.astype(np.float64)
    wide = x.astype(np.complex128)
    return np.stack([wide.real, wide.imag], axis=-1)


def brief(outcome: Any) -> str:
    text = repr(outcome) if "float0" in repr(outcome) else show(outcome)
    return text if len(text) < 700 else text[:700] + " ..."

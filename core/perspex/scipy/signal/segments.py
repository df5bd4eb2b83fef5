"""Cutting a signal into segments: their sizes, the window, and samples beyond the ends."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp

_WINDOWS: dict[Any, Any] = {
    "hann": np.hanning,
    "hanning": np.hanning,
    "hamming": np.hamming,
    "blackman": np.blackman,
    "bartlett": np.bartlett,
    "boxcar": np.ones,
    "rectangular": np.ones,
    "kaiser": np.kaiser,
}


class Segments(NamedTuple):
    """Parameters of a spectrum: first as the caller gives them, then with all sizes known.

    The fields are the parameters of `stft` and `csd` with these names; `power` says whether the
    results are products of spectra.
    """

    nperseg: Any
    noverlap: Any
    nfft: Any
    detrend: Any
    onesided: bool
    scaling: str = "spectrum"
    boundary: str | None = None
    padded: bool = False
    power: bool = True

    def check(self) -> None:
        """Refuse unknown names."""
        if self.boundary not in BOUNDARIES:
            raise ValueError(
                f"Unknown boundary option {self.boundary!r}, must be one of: {list(BOUNDARIES)}"
            )
        if self.scaling not in ("density", "spectrum"):
            raise ValueError(f"Unknown scaling: {self.scaling!r}; it is 'density' or 'spectrum'")

    def of_size(self, size: int, is_complex: bool) -> Segments:
        """The same with all sizes known, and hashable."""
        return Segments(
            size,
            overlap(self.noverlap, size),
            length(self.nfft, size, size),
            self.detrend or None,
            bool(self.onesided) and not is_complex,
            self.scaling,
            self.boundary,
            bool(self.padded),
            self.power,
        )


def segment(name: str, nperseg: Any, default: int) -> int:
    """The size of a segment."""
    size = default if nperseg is None else int(nperseg)
    if size < 1:
        raise ValueError(f"{name}: nperseg must be a positive integer, got {nperseg}")
    return size


def length(nfft: Any, default: int, size: int) -> int:
    """The size of a transform of segments of a size."""
    found = default if nfft is None else int(nfft)
    if found < size:
        raise ValueError(f"nfft must be greater than or equal to nperseg, got {found} < {size}")
    return found


def overlap(noverlap: Any, size: int) -> int:
    """How many samples two segments of a size share."""
    found = size // 2 if noverlap is None else int(noverlap)
    if found >= size:
        raise ValueError(f"noverlap must be less than nperseg, got {found} >= {size}")
    return found


def is_named(window: Any) -> bool:
    """Whether a window is given by its name."""
    return isinstance(window, (str, tuple))


def window_of(window: Any, size: int) -> Any:
    """The periodic window of a name, or the given array."""
    if not is_named(window):
        win = pnp.asarray(window)
        if win.ndim != 1:
            raise ValueError(f"window must be 1-D, got shape {win.shape}")
        return win
    name, *parameters = (window,) if isinstance(window, str) else window
    made = _WINDOWS.get(name)
    if made is None:
        raise ValueError(
            f"unknown window {window!r}: it is 'hann', 'hamming', 'blackman', 'bartlett', "
            "'boxcar', ('kaiser', beta), or an array"
        )
    # A periodic window is a symmetric one with a sample more, without its last sample.
    found = made(size + 1, *parameters)[:-1] if size > 1 else np.ones(size)
    return pnp.asarray(found.astype(dtypes.canonicalize_dtype(np.float64)))


def longer(x: Any, n: int) -> Any:
    """`x` with `n` zeros at the end."""
    return pnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n)]) if n else x


def _reflected(x: Any, n: int) -> tuple[Any, Any]:
    """Mirror images of `x` beyond both ends, without the first and the last sample."""
    size = x.shape[-1]
    return x[..., 1 : n + 1][..., ::-1], x[..., size - n - 1 : size - 1][..., ::-1]


def _even(x: Any, n: int) -> Any:
    low, high = _reflected(x, n)
    return pnp.concatenate([low, x, high], -1)


def _odd(x: Any, n: int) -> Any:
    low, high = _reflected(x, n)
    return pnp.concatenate([2 * x[..., :1] - low, x, 2 * x[..., -1:] - high], -1)


def _constant(x: Any, n: int) -> Any:
    return pnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode="edge")


def _zeros(x: Any, n: int) -> Any:
    return pnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)])


# From the value of `boundary` to `x` with `n` more samples at each end.
BOUNDARIES: dict[Any, Any] = {
    "even": _even,
    "odd": _odd,
    "constant": _constant,
    "zeros": _zeros,
    None: lambda x, n: x,
}

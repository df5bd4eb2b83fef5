"""Numbers with units, in the one form that Perspex gives them: three significant digits.

Halves are rounded away from zero. `tests/data/units.json` holds the examples that this side shares
with the panel's.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

# What is written where there is no number.
NONE = "–"
_SIZES = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DURATIONS = ((1e6, "us"), (1e3, "ms"))
# What is less has three significant digits, the last of them a nine.
_THREE_DIGITS = 999.5


def size(nbytes: float | None) -> str:
    """A number of bytes, in powers of 1,024.

    >>> size(12), size(40_000), size(4_096_000), size(None)
    ('12 B', '39.1 KiB', '3.91 MiB', '–')
    """
    if nbytes is None or not math.isfinite(nbytes):
        return NONE
    left = float(_rounded(abs(nbytes)))
    if left < 1024:
        return _signed(nbytes, f"{_rounded(left):,} B")
    for unit in _SIZES:
        left /= 1024
        if left < _THREE_DIGITS:
            return _signed(nbytes, f"{_three_digits(left)} {unit}")
    return _signed(nbytes, f"{_rounded(left):,} {_SIZES[-1]}")


def duration(seconds: float | None) -> str:
    """A span of time in `us`, `ms` or `s`.

    >>> duration(8.7e-7), duration(0.0567), duration(12.0), duration(1234.6)
    ('0.870 us', '56.7 ms', '12.0 s', '1,235 s')
    """
    if seconds is None or not math.isfinite(seconds):
        return NONE
    span = abs(seconds)
    if not span:
        return "0 s"
    for scale, unit in _DURATIONS:
        if span * scale < _THREE_DIGITS:
            return _signed(seconds, f"{_three_digits(span * scale)} {unit}")
    number = _three_digits(span) if span < _THREE_DIGITS else f"{_rounded(span):,}"
    return _signed(seconds, f"{number} s")


def count(n: float | None) -> str:
    """A number of things.

    >>> count(950), count(12_300)
    ('950', '12,300')
    """
    if n is None or not math.isfinite(n):
        return NONE
    return _signed(n, f"{_rounded(abs(n)):,}")


def many(n: int, one: str, others: str = "") -> str:
    """A number of things with their name.

    >>> many(1, "program"), many(1200, "program"), many(0, "entry", "entries")
    ('1 program', '1,200 programs', '0 entries')
    """
    return f"{count(n)} {one if n == 1 else others or one + 's'}"


def _rounded(value: float) -> int:
    return int(Decimal(value).to_integral_value(ROUND_HALF_UP))


def _three_digits(value: float) -> str:
    """Of a number between 0 and 999.5."""
    exact = Decimal(value)
    last = exact.adjusted() - 2
    rounded = exact.quantize(Decimal(1).scaleb(last), ROUND_HALF_UP)
    if rounded.adjusted() > exact.adjusted():  # 9.996 is 10.0
        rounded = rounded.quantize(Decimal(1).scaleb(last + 1))
    return f"{rounded:f}"


def _signed(value: float, text: str) -> str:
    return f"-{text}" if value < 0 and any(c in "123456789" for c in text) else text

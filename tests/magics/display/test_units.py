"""Numbers with units: `tests/data/units.json` says how they are written, here and in the panel."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from perspex_magics.display import units

EXAMPLES = json.loads((Path(__file__).parents[2] / "data" / "units.json").read_text())
WRITERS = {"bytes": units.size, "seconds": units.duration, "counts": units.count}
CASES = [(kind, value, text) for kind in WRITERS for value, text in EXAMPLES[kind]]


@pytest.mark.parametrize(("kind", "value", "text"), CASES)
def test_examples(kind: str, value: Any, text: str) -> None:
    number = float(value) if isinstance(value, str) else value
    assert WRITERS[kind](number) == text


@pytest.mark.parametrize("exponent", range(-7, 7))
def test_three_digits_are_within_half_of_the_last(exponent: int) -> None:
    scales = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
    for i in range(100, 1000, 7):
        seconds = (i + 0.437) * 10.0 ** (exponent - 2)
        number, unit = units.duration(seconds).split()
        assert len(number.replace(".", "").replace(",", "").lstrip("0")) >= 3
        read = Fraction(number.replace(",", "")) * Fraction(scales[unit])
        last = max(10.0 ** (math.floor(math.log10(seconds)) - 2), 0)
        assert abs(read - Fraction(seconds)) <= 0.5001 * last

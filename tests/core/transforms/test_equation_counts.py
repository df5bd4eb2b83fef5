"""Gradients have no more equations than JAX's, on the programs that the benchmarks time.

What JAX has, dead code removed and calls opened, is what `oracle/recorders/gradient_equations.py`
recorded.
"""

from __future__ import annotations

import pytest
from measure import measure_equations

from oracle import records

RECORD: dict[str, int] = records.read("gradient_equations")


@pytest.fixture(scope="module")
def ours() -> dict[str, float]:
    rows = measure_equations("perspex")
    return {name.removeprefix("equations "): count for name, count in rows.items()}


def test_the_record_is_of_these_programs(ours: dict[str, float]) -> None:
    assert ours.keys() == RECORD.keys()
    assert len(ours) >= 20


@pytest.mark.parametrize("name", RECORD)
def test_gradients_are_no_longer_than_those_of_jax(name: str, ours: dict[str, float]) -> None:
    assert 0 < ours[name] <= RECORD[name]

"""Gradients have no more equations than JAX's, on the programs that the benchmarks time.

`tests/data/gradient_equations.json` holds what JAX has, dead code removed and calls opened, as
`python benchmarks/measure.py jax equations` counts it in an environment with `jax`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from measure import measure_equations

RECORD = json.loads(
    (Path(__file__).parents[2] / "data" / "gradient_equations.json").read_text("utf-8")
)


@pytest.fixture(scope="module")
def ours() -> dict[str, float]:
    rows = measure_equations("perspex")
    return {name.removeprefix("equations "): count for name, count in rows.items()}


def test_the_record_is_of_these_programs(ours: dict[str, float]) -> None:
    assert ours.keys() == RECORD["equations"].keys()
    assert len(ours) >= 20


@pytest.mark.parametrize("name", RECORD["equations"])
def test_gradients_are_no_longer_than_those_of_jax(name: str, ours: dict[str, float]) -> None:
    assert 0 < ours[name] <= RECORD["equations"][name]

"""Every case file, line by line, under Perspex against what real JAX recorded.

With `PERSPEX_ORACLE_PYTHON` naming an interpreter that has `jax`, the records themselves are
checked against that JAX, live.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import pytest

from . import records
from .cases import Case, case_names, case_table, load
from .compare import differences
from .process import Oracle
from .recorders import promotion_table
from .session import disagreement

ORACLE_PYTHON = os.environ.get("PERSPEX_ORACLE_PYTHON")
CASES_IN_A_TEST = 8


def groups() -> list[list[Case]]:
    """The cases of each line, a few in each test: most take less time than a test of their own."""
    found = []
    for name in case_names():
        for _, line in itertools.groupby(case_table(name), key=lambda case: case.line):
            cases = list(line)
            found += [cases[i : i + CASES_IN_A_TEST] for i in range(0, len(cases), CASES_IN_A_TEST)]
    return found


def name_of(group: list[Case]) -> str:
    return f"{group[0]} and {len(group) - 1} more" if len(group) > 1 else str(group[0])


@pytest.mark.parametrize("group", groups(), ids=name_of)
def test_cases_give_what_jax_gives(group: list[Case], request: pytest.FixtureRequest) -> None:
    if group[0].optimized:  # as its whole line; see `tests/support/quick.py`
        request.getfixturevalue("optimized")
    wrong = [message for case in group if (message := disagreement(case))]
    if wrong:
        pytest.fail("\n\n".join(wrong), pytrace=False)


@pytest.mark.parametrize("name", case_names())
def test_every_case_has_a_record_and_every_record_a_case(name: str) -> None:
    assert set(records.read(name)) == {case.key for case in case_table(name)}


def test_every_record_has_cases_or_a_recorder() -> None:
    found = {path.stem for path in (records.HERE / "records").glob("*.json")}
    assert found == {*case_names(), *records.recorder_names()}


def test_the_promotion_table_is_of_these_dtypes() -> None:
    rows = records.read("promotion_table").keys()
    drawn = {" ".join(kinds) for kinds in promotion_table.triples()}
    triples = {row for row in rows if row.startswith("triples / ")}
    assert rows - triples == promotion_table.keys()
    assert {row.rpartition(" / ")[2] for row in triples} <= drawn


def almost(found: Any, recorded: Any) -> bool:
    """Whether two records are the same, but for the last digits of floating numbers."""
    if isinstance(found, dict) and isinstance(recorded, dict):
        return found.keys() == recorded.keys() and all(almost(found[k], recorded[k]) for k in found)
    if isinstance(found, list) and isinstance(recorded, list):
        return len(found) == len(recorded) and all(map(almost, found, recorded))
    if isinstance(found, float):
        return found == pytest.approx(recorded, rel=2e-5, abs=1e-5, nan_ok=True)
    return found == recorded


@pytest.mark.parametrize("found", [{"a": [1.0]}, {"a": [1.1, 2]}, {"b": [1.0, 2]}, [1.0, 2], None])
def test_almost_sees_differences(found: Any) -> None:
    assert almost({"a": [1.000001, 2]}, {"a": [1.0, 2]})
    assert not almost(found, {"a": [1.0, 2]})


@pytest.mark.skipif(ORACLE_PYTHON is None, reason="PERSPEX_ORACLE_PYTHON is not set")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", records.recorder_names())
def test_recorders_give_what_the_installed_jax_gives(name: str) -> None:
    assert ORACLE_PYTHON is not None
    live, recorded = records.run(ORACLE_PYTHON, name)[1], records.read(name)
    assert live.keys() == recorded.keys()
    wrong = [key for key in live if not almost(live[key], recorded[key])]
    assert not wrong


@pytest.mark.skipif(ORACLE_PYTHON is None, reason="PERSPEX_ORACLE_PYTHON is not set")
@pytest.mark.timeout(1800)  # all of the cases, in a JAX that compiles each of them
def test_records_are_what_the_installed_jax_gives() -> None:
    assert ORACLE_PYTHON is not None
    found = []
    with Oracle(ORACLE_PYTHON) as oracle:
        for name in case_names():
            table = load(name)
            live, recorded = oracle.evaluate(table), records.read(name)
            for case in table.cases:
                message = differences(live[case.key], recorded[case.key], **case.compare)
                if message:
                    found.append(f"{case}\n{message}")
    assert not found, "\n\n".join(found)

"""Every case file, line by line, under Perspex against what real JAX recorded.

With `PERSPEX_ORACLE_PYTHON` naming an interpreter that has `jax`, the records themselves are
checked against that JAX, live.
"""

from __future__ import annotations

import itertools
import os

import pytest

from . import records
from .cases import Case, case_names, case_table, load
from .compare import differences
from .process import Oracle
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

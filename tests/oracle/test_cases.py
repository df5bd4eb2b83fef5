"""Every case file, line by line, under Perspex against what real JAX recorded.

With `PERSPEX_ORACLE_PYTHON` naming an interpreter that has `jax`, the records themselves are
checked against that JAX, live.
"""

from __future__ import annotations

import os

import pytest

from . import records
from .cases import Case, case_names, case_table, load
from .compare import differences
from .process import Oracle
from .session import check

ORACLE_PYTHON = os.environ.get("PERSPEX_ORACLE_PYTHON")
# Compared to the last bit, or with what only the usual compiler supports: see `tests/quick.py`.
OPTIMIZED = {"distributions", "lax_structure", "nn", "random"}
ALL_CASES = [case for name in case_names() for case in case_table(name)]


@pytest.mark.parametrize("case", ALL_CASES, ids=str)
def test_case_gives_what_jax_gives(case: Case, request: pytest.FixtureRequest) -> None:
    if case.table in OPTIMIZED:
        request.getfixturevalue("optimized")
    check(case)


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

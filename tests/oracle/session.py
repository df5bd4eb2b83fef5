"""`check(case)`: evaluate a case under Perspex in this process and compare it with its record."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from . import records
from .cases import Case, load
from .compare import differences
from .evaluate import Library


@functools.cache
def _library() -> Library:
    return Library("perspex")


@functools.cache
def _namespace(table: str) -> dict[str, Any]:
    return _library().namespace(load(table).setup)


@functools.cache
def _recorded(table: str) -> dict[str, list[Any]]:
    return records.read(table)


def check(case: Case) -> None:
    """Fail the running test unless Perspex does with `case` what real JAX did.

    Arguments:
      case: one element of `case_table(name)`.
    """
    want = _recorded(case.table).get(case.key)
    if want is None:
        pytest.fail(
            f"{case}\nhas no record: run `python -m oracle` (see tests/oracle/README.md)",
            pytrace=False,
        )
    got = _library().outcome(_namespace(case.table), case.source, case.flags)
    found = differences(got, want, **case.compare)
    if found:
        pytest.fail(f"{case}\n{found}", pytrace=False)

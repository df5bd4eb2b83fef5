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


def disagreement(case: Case) -> str:
    """What Perspex does with `case` otherwise than real JAX did; the empty string if nothing."""
    want = _recorded(case.table).get(case.key)
    if want is None:
        return f"{case}\nhas no record: run `python -m oracle` (see tests/oracle/README.md)"
    got = _library().outcome(_namespace(case.table), case.source, case.flags)
    found = differences(got, want, **case.compare)
    return f"{case}\n{found}" if found else ""


def check(case: Case) -> None:
    """Fail the running test unless Perspex does with `case` what real JAX did.

    Arguments:
      case: one element of `case_table(name)`.
    """
    found = disagreement(case)
    if found:
        pytest.fail(found, pytrace=False)

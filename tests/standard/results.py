"""Outcomes of tests in pytest's XML files, and what two libraries' outcomes have in common."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PASSED = "passed"
# The suite draws the values of this test without the seed, and wants +0 of -0 and +0. On jax and on
# Perspex the sign of -0 is -0, so each side passes by chance.
BY_CHANCE = {
    "array_api_tests.test_special_cases::test_unary[sign((x_i is -0 or x_i == +0)) -> 0]",
}


class Comparison(NamedTuple):
    """Tests by how they end on jax and on Perspex."""

    both: list[str]
    only_jax: list[str]
    only_perspex: list[str]
    neither: list[str]


def read(path: Path) -> dict[str, str]:
    """How each test ended: `passed`, `skipped`, `failure` or `error`.

    A test of several entries, such as one that failed and whose clean-up is an error, has passed
    if all of them say so. An interrupted run leaves no such file.
    """
    found: dict[str, str] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        ends = [e.tag for e in case if e.tag in ("failure", "error", "skipped")]
        end = ends[0] if ends else PASSED
        if found.get(name, PASSED) == PASSED:
            found[name] = end
    return found


def compare(jax: Mapping[str, str], perspex: Mapping[str, str]) -> Comparison:
    """Tests by where they pass, without those of chance.

    One that a side did not reach does not pass there.
    """
    rows: dict[tuple[bool, bool], list[str]] = {
        (here, there): [] for here in (True, False) for there in (True, False)
    }
    for name in sorted({*jax, *perspex} - BY_CHANCE):
        rows[jax.get(name) == PASSED, perspex.get(name) == PASSED].append(name)
    return Comparison(rows[True, True], rows[True, False], rows[False, True], rows[False, False])


def report(seed: int, jax: Mapping[str, str], perspex: Mapping[str, str]) -> tuple[str, bool]:
    """What to print about one seed, and whether Perspex passes what jax passes."""
    found = compare(jax, perspex)
    counted = len(found.both) + len(found.only_jax)
    ends = ", ".join(f"{n} {end}" for end, n in sorted(Counter(jax.values()).items()))
    lines = [f"seed {seed}: {len(jax)} tests on jax ({ends})"]
    lines.append(f"  {len(found.both)} of {counted} tests that pass on jax pass on Perspex")
    lines += [f"  FAILS HERE {name}: {perspex.get(name, 'not run')}" for name in found.only_jax]
    lines += [f"  passes here only: {name}" for name in found.only_perspex]
    # No test at all is no success: nothing was collected, or jax is broken.
    return "\n".join(lines), counted > 0 and not found.only_jax

"""The comparison of two runs of a suite, on outcomes that were made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from standard.results import BY_CHANCE, compare, read, report

XML = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" tests="5">
<testcase classname="array_api_tests.test_a" name="test_add[__add__(x, s)]" time="0.1" />
<testcase classname="array_api_tests.test_a" name="test_ceil"><failure message="m">t</failure>
</testcase>
<testcase classname="array_api_tests.test_a" name="test_std"><skipped message="flaky" /></testcase>
<testcase classname="array_api_tests.test_b.TestB" name="test_ceil"><system-out>x</system-out>
</testcase>
<testcase classname="array_api_tests.test_b.TestB" name="test_ceil"><error message="late">t</error>
</testcase>
</testsuite></testsuites>
"""


def test_outcomes_are_read_by_class_and_name(tmp_path: Path) -> None:
    file = tmp_path / "jax-1.xml"
    file.write_text(XML)
    assert read(file) == {
        "array_api_tests.test_a::test_add[__add__(x, s)]": "passed",
        "array_api_tests.test_a::test_ceil": "failure",
        "array_api_tests.test_a::test_std": "skipped",
        "array_api_tests.test_b.TestB::test_ceil": "error",
    }


def test_tests_are_sorted_by_where_they_pass() -> None:
    jax = {"a": "passed", "b": "passed", "c": "failure", "d": "skipped", "e": "passed"}
    perspex = {"a": "passed", "b": "failure", "c": "passed", "d": "skipped", "f": "passed"}
    found = compare(jax, perspex)
    assert found.both == ["a"]
    assert found.only_jax == ["b", "e"]  # one that was never reached counts as well
    assert found.only_perspex == ["c", "f"]
    assert found.neither == ["d"]


def test_a_test_that_passes_by_chance_counts_on_neither_side() -> None:
    (name,) = BY_CHANCE
    assert sum(map(len, compare({name: "passed"}, {name: "failure"}))) == 0


@pytest.mark.parametrize(
    ("jax", "perspex", "good"),
    [
        ({"a": "passed", "b": "failure"}, {"a": "passed", "b": "failure"}, True),
        ({"a": "passed", "b": "failure"}, {"a": "passed", "b": "passed"}, True),
        ({"a": "passed", "b": "passed"}, {"a": "passed", "b": "error"}, False),
        ({"a": "passed", "b": "passed"}, {"a": "passed", "b": "skipped"}, False),
        ({"a": "passed"}, {}, False),
        ({"a": "error"}, {"a": "error"}, False),
        ({}, {}, False),
    ],
)
def test_a_run_is_good_if_perspex_passes_what_jax_passes(
    jax: dict[str, str], perspex: dict[str, str], good: bool
) -> None:
    assert report(1, jax, perspex)[1] is good


def test_the_report_names_what_differs_and_how_it_ended() -> None:
    text, _ = report(
        7, {"a": "passed", "b": "passed", "c": "failure"}, {"a": "error", "c": "passed"}
    )
    assert text.splitlines() == [
        "seed 7: 3 tests on jax (1 failure, 2 passed)",
        "  0 of 2 tests that pass on jax pass on Perspex",
        "  FAILS HERE a: error",
        "  FAILS HERE b: not run",
        "  passes here only: c",
    ]

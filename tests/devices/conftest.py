"""The device that is tested, and a report on it."""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perspex
from perspex.base import xla

# Where `run.py` wants the report.
REPORT = "PERSPEX_DEVICE_REPORT"
_started = time.monotonic()
# What tests measured, in sentences.
FIGURES: dict[str, str] = {}


@pytest.fixture
def device() -> Any:
    """The device on which everything here computes."""
    return perspex.devices()[0]


@pytest.fixture
def cpu() -> Any:
    """The processor, which may be that device."""
    return perspex.devices("cpu")[0]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def figures() -> Iterator[dict[str, str]]:
    """What a test measures and does not judge; the report lists it."""
    yield FIGURES


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the report, where one is wanted."""
    where = os.environ.get(REPORT)
    if not where:
        return
    device = perspex.devices()[0]
    folders = {name: Counter[str]() for name in sorted({_name(r) for r in _all(terminalreporter)})}
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            if hasattr(report, "nodeid") and hasattr(report, "when"):
                folders[_name(report)][outcome] += 1
    rows = [
        f"| {name} | {count['passed']} | {count['failed'] + count['error']} | {count['skipped']} |"
        for name, count in folders.items()
    ]
    lines = [
        f"# Tests of {device.device_kind} ({device.platform})",
        "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Perspex {perspex.__version__}, jaxlib "
        f"{xla.JAXLIB_VERSION}, {device.client.platform_version.splitlines()[0]}, Python "
        f"{platform.python_version()}; {time.monotonic() - _started:.0f} s.",
        "",
        "| tests | passed | failed | skipped |",
        "|---|---|---|---|",
        *rows,
        "",
        *[f"* {name}: {text}" for name, text in FIGURES.items()],
    ]
    Path(where).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _all(terminalreporter: Any) -> list[Any]:
    reports = [r for many in terminalreporter.stats.values() for r in many]
    return [r for r in reports if hasattr(r, "nodeid") and hasattr(r, "when")]


def _name(report: Any) -> str:
    return Path(report.nodeid.partition("::")[0]).stem.removeprefix("test_")

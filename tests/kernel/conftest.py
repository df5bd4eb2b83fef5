"""One kernel per test module: a start costs more than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.session import Session, open_session


@pytest.fixture(scope="module")
def live(jupyter_home: object) -> Iterator[Session]:
    """A kernel shared by the tests of a module."""
    with open_session() as session:
        yield session

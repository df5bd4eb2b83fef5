"""What a device with memory of its own says of it, in words, in `%buffers` and in the panel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.shells import Notebook

from perspex_magics.memory import allocator
from perspex_magics.panel.topics import devices

GIB = 1 << 30


def card(**stats: int) -> Any:
    """A device whose allocator counts so, in the names of XLA's `AllocatorStats`."""
    return SimpleNamespace(
        platform="gpu",
        id=0,
        device_kind="card",
        process_index=0,
        memory_stats=lambda: stats or None,
    )


WHOLE = {"bytes_in_use": 12 * GIB, "peak_bytes_in_use": 30 * GIB, "bytes_limit": 60 * GIB}


@pytest.mark.parametrize(
    ("stats", "text"),
    [
        ({}, ""),
        ({"bytes_in_use": 5}, ""),
        ({"bytes_in_use": GIB, "bytes_limit": 4 * GIB}, "1.00 GiB of 4.00 GiB are in use"),
        (WHOLE, "12.0 GiB of 60.0 GiB are in use, 30.0 GiB were at most"),
        (
            WHOLE | {"largest_free_block_bytes": 40 * GIB},
            "12.0 GiB of 60.0 GiB are in use, 30.0 GiB were at most",
        ),
        (
            WHOLE | {"largest_free_block_bytes": 3 * GIB},
            "12.0 GiB of 60.0 GiB are in use, 30.0 GiB were at most; the 48.0 GiB that are free "
            "are in pieces of at most 3.00 GiB",
        ),
        # An allocator that does not know.
        (
            WHOLE | {"largest_free_block_bytes": 0},
            "12.0 GiB of 60.0 GiB are in use, 30.0 GiB were at most",
        ),
    ],
)
def test_in_words(stats: dict[str, int], text: str) -> None:
    assert allocator.figures(card(**stats)).text() == text


def test_a_row_of_the_panel() -> None:
    row = devices._row(0, card(**WHOLE, largest_free_block_bytes=3 * GIB), 5, 1)
    assert (row.used, row.peak, row.limit, row.piece) == (12 * GIB, 30 * GIB, 60 * GIB, 3 * GIB)
    assert devices._row(0, card(**WHOLE, largest_free_block_bytes=40 * GIB), 5, 1).piece is None
    row = devices._row(0, card(), 5, 1)
    assert (row.used, row.peak, row.limit, row.piece) == (None, None, None, None)


def test_below_the_table(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook.ok("x = jnp.ones(3)\n%buffers")
    assert "in use" not in notebook.displayed[-1]["text/plain"]  # the CPU counts nothing
    monkeypatch.setattr(allocator.client, "local_devices", lambda: [card(**WHOLE)])
    notebook.ok("%buffers")
    assert "12.0 GiB of 60.0 GiB are in use" in notebook.displayed[-1]["text/plain"]

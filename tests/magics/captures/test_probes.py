"""What a probe says of a NumPy array, against the bytes that were really changed."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from perspex_magics.captures.probes import _SMALL, ArrayProbe

Array = np.ndarray

SMALL: dict[str, Callable[[], Array]] = {
    "a number": lambda: np.array(1.5),
    "eight bytes": lambda: np.arange(8, dtype=np.uint8),
    "rows": lambda: np.arange(12.0).reshape(3, 4),
    "columns": lambda: np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "every other": lambda: np.arange(24.0)[::2],
    "backwards": lambda: np.arange(12.0)[::-1],
    "turned and cut": lambda: np.arange(60.0).reshape(3, 4, 5).transpose(2, 0, 1)[1:],
    "booleans": lambda: np.zeros(100, np.bool_),
    "bfloat16": lambda: np.ones(100, ml_dtypes.bfloat16),
    "int4": lambda: np.ones(100, ml_dtypes.int4),
    "dates": lambda: np.arange("2020-01", "2021-01", dtype="datetime64[M]"),
    "text": lambda: np.array(["ab", "cd"]),
    "records": lambda: np.zeros(5, [("a", "i4"), ("b", "f8")]),
    "the other byte order": lambda: np.arange(12, dtype=">f8"),
    "a masked array": lambda: np.ma.masked_array(np.arange(12.0), np.arange(12) % 2 == 0),
    "as many bytes as are compared at once": lambda: np.zeros(_SMALL // 8),
}


def last_byte(array: Array) -> Array:
    """The last byte of the last element, as an array that can be written to."""
    whole = array.view(np.ndarray)
    element = whole[(slice(-1, None),) * whole.ndim] if whole.ndim else whole.reshape(1)
    return element.reshape(-1).view(np.uint8)[-1:]


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
def test_a_single_bit_of_a_small_array(make: Callable[[], Array]) -> None:
    array = make()
    before, byte = array.tobytes(), last_byte(array)
    assert byte.base is not None
    probe, content = ArrayProbe(array), ArrayProbe(array).content()
    assert not probe.changed()
    byte ^= 1
    assert array.tobytes() != before
    # Said once; and again when what was there comes back.
    assert probe.changed() and not probe.changed()
    assert probe.content() != content
    byte ^= 1
    assert array.tobytes() == before
    assert probe.changed() and not probe.changed()
    assert probe.content() == content


@pytest.mark.parametrize("size", [1, 9, 5_000, _SMALL // 8])
@pytest.mark.parametrize("at", [0, -1])
def test_numbers_that_compare_equal_but_are_not(size: int, at: int) -> None:
    payload = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    for old, new in ((0.0, -0.0), (np.nan, payload[0]), (np.nan, -np.nan)):
        array = np.full(size, old)
        probe, content = ArrayProbe(array), ArrayProbe(array).content()
        array[at] = new
        assert probe.changed() and not probe.changed()
        assert probe.content() != content


def test_the_same_bytes_of_another_shape_or_type() -> None:
    array = np.arange(12.0)
    contents = [ArrayProbe(x).content() for x in (array, array.reshape(3, 4), array.view(np.int64))]
    assert len(set(contents)) == 3
    assert ArrayProbe(array.copy()).content() == contents[0]


def test_a_change_of_a_large_array_is_found_in_turn() -> None:
    array = np.zeros(10 * _SMALL // 8)
    probe = ArrayProbe(array)
    array[5 * _SMALL // 8 + 3] = 1e-300
    assert any([probe.changed() for _ in range(10)])
    assert not any([probe.changed() for _ in range(20)])


@pytest.mark.parametrize("size", [3, 5_000, 100_000])
def test_what_is_written_by_another_view_and_told_at_once(size: int) -> None:
    array = np.zeros(size)
    probe, content = ArrayProbe(array), ArrayProbe(array).content()
    array[::2][-1] = 3.0
    probe.written = True
    assert probe.content() != content
    assert probe.changed() and not probe.changed()


def test_an_array_is_not_kept_alive() -> None:
    array = np.zeros(5_000)
    probe, alive = ArrayProbe(array), weakref.ref(array)
    assert not probe.changed()
    del array
    assert alive() is None and not probe.changed()

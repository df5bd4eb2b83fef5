"""FlatBuffers, byte by byte."""

from __future__ import annotations

import pytest

from perspex.export.tables import BOOL, INT8, UINT16, UINT32, Number, Numbers, Reader, Table, write


def test_all_kinds_of_fields() -> None:
    inner = Table({1: "ab"})
    data = write(
        Table(
            {
                0: Number(INT8, -3),
                1: "text",
                2: b"\0\1",
                3: [inner, Table({})],
                4: ["x", "yz"],
                5: Numbers(UINT16, [1, 2, 65535]),
                6: Number(UINT32, 2**32 - 1),
                7: None,
                9: Number(BOOL, True),
                10: inner,
            }
        )
    )
    table = Reader.root(bytes(data))
    assert table.number(0, INT8) == -3
    assert table.string(1) == "text"
    assert table.bytes(2) == b"\0\1"
    assert [found.string(1) for found in table.tables(3)] == ["ab", ""]
    assert table.strings(4) == ["x", "yz"]
    assert table.numbers(5, UINT16) == [1, 2, 65535]
    assert table.number(6, UINT32) == 2**32 - 1
    assert table.number(7, UINT32) == 0
    assert table.number(9, BOOL) is True
    child = table.table(10)
    assert child is not None and child.string(1) == "ab"
    assert table.table(20) is None and table.tables(20) == [] and table.numbers(20, INT8) == []


def test_the_layout_of_a_small_table() -> None:
    # The root's offset; the vtable: its size, that of the table, the field's place; the table.
    assert write(Table({0: Number(UINT16, 7)})).hex(" ") == (
        "0c 00 00 00 06 00 06 00 04 00 00 00 08 00 00 00 07 00"
    )


def test_bytes_that_are_no_table() -> None:
    with pytest.raises(ValueError, match="beyond their end"):
        Reader.root(b"\xff\xff\xff\x7f")
    with pytest.raises(ValueError, match="before their start"):
        Reader.root(b"\x04\0\0\0\xff\xff\xff\x7f")

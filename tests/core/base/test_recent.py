"""A bounded table forgets what was not used for longest, whoever uses it meanwhile."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator

import pytest

from perspex.base.recent import Recent


@pytest.mark.parametrize("seed", range(3))
def test_it_keeps_what_a_list_of_uses_says(seed: int) -> None:
    pick, table = random.Random(seed), Recent[int, str](5)
    uses: list[int] = []
    for _ in range(2_000):
        key = pick.randrange(12)
        step = pick.random()
        if step < 0.4:
            table.put(key, str(key))
        elif step < 0.7:
            assert (table.get(key) is None) == (key not in uses)
        elif step < 0.9:
            assert table.recall(key, lambda key=key: str(key)) == str(key)
        else:
            assert (table.pop(key) is None) == (key not in uses)
        was_there = key in uses
        uses = [other for other in uses if other != key]
        if step < 0.9 and (was_there or not 0.4 <= step < 0.7):
            uses.append(key)
        uses = uses[-5:]
        assert table.entries() == [(other, str(other)) for other in uses]
        assert len(table) == len(uses) and (key in table) == (key in uses)


def test_what_had_to_go_is_told() -> None:
    table = Recent[str, int](1)
    assert table.put("a", 1) is None and table.put("a", 2) is None
    assert table.put("b", 3) == 2 and list(table.values()) == [3]
    table.clear()
    assert len(table) == 0


def test_what_is_pinned_stays() -> None:
    pinned = {"a", "d"}
    table = Recent[str, int](2, pinned)
    assert [table.put(key, i) for i, key in enumerate("abc")] == [None, None, 1]
    assert table.entries() == [("a", 0), ("c", 2)]
    # There is room for what is pinned, and then for nothing else.
    assert table.put("d", 3) == 2 and table.put("e", 4) == 4
    assert table.entries() == [("a", 0), ("d", 3)]
    pinned.add("f")
    assert table.put("f", 5) is None and len(table) == 3
    pinned.clear()
    assert table.put("g", 6) == 0
    pinned.add("g")
    table.clear()
    assert table.entries() == [("g", 6)]


def test_values_weigh_together_at_most_so_much() -> None:
    pinned = {"p"}
    table = Recent[str, int](10, pinned, lambda key, value: 0 if key in pinned else value)
    assert [table.put("p", 50), table.put("a", 4), table.put("b", 6)] == [None] * 3
    assert table.get("a") == 4
    # Several may have to go for one; one that is too heavy is not kept, and takes all with it.
    assert table.put("c", 5) == 6 and table.entries() == [("p", 50), ("a", 4), ("c", 5)]
    assert table.put("d", 10) == 4 and table.entries() == [("p", 50), ("d", 10)]
    assert table.put("e", 11) == 10 and table.entries() == [("p", 50)]
    # The same key again replaces what it weighed.
    assert [table.put("f", 9), table.put("f", 10)] == [None, None] and len(table) == 2


def test_a_look_is_no_use() -> None:
    table = Recent[str, int](2)
    table.put("a", 1)
    table.put("b", 2)
    assert table.peek("a") == 1 and table["a"] == 1 and "a" in table and table.peek("c") is None
    assert table.put("c", 3) == 1


@pytest.fixture
def many_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_several_threads(many_switches: None) -> None:
    table, failed = Recent[int, int](8), []

    def work(seed: int) -> None:
        pick = random.Random(seed)
        try:
            for _ in range(20_000):
                key = pick.randrange(30)
                assert table.recall(key, lambda key=key: key) == key
                if pick.random() < 0.2:
                    table.pop(key)
                if pick.random() < 0.05:
                    assert all(k == v for k, v in table.entries())
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(table) <= 8 + len(threads)

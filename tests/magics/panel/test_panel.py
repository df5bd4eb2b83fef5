"""The panel's parts, without a kernel: tables, clients, messages, and what a topic is asked for."""

from __future__ import annotations

import random
import time
from types import SimpleNamespace
from typing import Any, get_args

import msgspec
import pytest
from support.page import SCHEMA, TOPICS, validator
from support.shells import Notebook

import perspex
import perspex.numpy as pnp
from perspex_magics import unload_ipython_extension
from perspex_magics.compiling.compilations import Recorder
from perspex_magics.panel import contract, messages, schema
from perspex_magics.panel.clients import EXPIRES, MOST_CLIENTS, Client, Clients
from perspex_magics.panel.contract import Reply
from perspex_magics.panel.outbox import Outbox, Work
from perspex_magics.panel.places import Places
from perspex_magics.panel.rows import AnyRow, MemoryRow
from perspex_magics.panel.service import TOPICS as KINDS
from perspex_magics.panel.tables import NOTHING, Table
from perspex_magics.session import part
from perspex_magics.timing.clock import Clock, Reading

# ---- tables -------------------------------------------------------------------------------------


def row(key: str, value: int = 0) -> MemoryRow:
    return MemoryRow(id=key, order=0, time=0.0, bytes=value, count=None)


class Reader:
    """Somebody who is told of a table now and then, and keeps what is said."""

    def __init__(self) -> None:
        self.cursor = NOTHING
        self.rows: dict[str, AnyRow] = {}

    def read(self, table: Table, most: int) -> bool:
        changes, self.cursor = table.changes(self.cursor, most)
        if changes is None:
            return False
        assert len(changes.put) <= most
        if changes.reset:
            self.rows.clear()
        self.rows.update({row.id: row for row in changes.put})
        for key in changes.drop:
            self.rows.pop(key, None)
        return True


@pytest.mark.parametrize("seed", range(5))
def test_readers_end_with_the_table_whenever_they_looked(seed: int) -> None:
    """Any order of puts, drops and looks; now and then a reader stays away for very long."""
    pick = random.Random(seed)
    table, model = Table(10**6), {}
    readers = [Reader() for _ in range(3)]
    for step in range(6_000):
        key = str(pick.randrange(300))
        if pick.random() < 0.5:
            model[key] = row(key, step // 7)
            table.put(model[key])
        else:
            model.pop(key, None)
            table.drop(key)
        if pick.random() < 0.05:
            pick.choice(readers[:2]).read(table, pick.choice([1, 5, 100]))
    for reader in readers:
        while reader.read(table, 7):
            pass
        assert reader.rows == model


def test_a_row_that_is_the_same_is_no_change() -> None:
    table, reader = Table(10), Reader()
    table.put(row("a", 1))
    assert reader.read(table, 10)
    table.put(row("a", 1))
    assert not reader.read(table, 10)


def test_of_too_many_rows_the_oldest_go_and_are_counted() -> None:
    table, reader = Table(10), Reader()
    for i in range(25):
        table.put(row(str(i)))
    changes, _ = table.changes(NOTHING, 100)
    assert changes is not None
    assert changes.forgotten == 15
    assert [one.id for one in changes.put] == [str(i) for i in range(15, 25)]
    assert reader.read(table, 100) and len(table) == 10


# ---- clients ------------------------------------------------------------------------------------


def test_clients_give_way_and_expire() -> None:
    now, closed = 0.0, []
    clients = Clients(lambda: now)

    def client(name: str) -> Client:
        return Client(lambda message: None, lambda: closed.append(name))

    first = client("first")
    clients.add("a", first)
    clients.add("a", client("second"))
    assert closed == ["first"] and not clients.heard(first)
    for i in range(MOST_CLIENTS):
        clients.add(f"more {i}", client(f"more {i}"))
    assert closed == ["first", "second"] and len(clients.all()) == MOST_CLIENTS
    now = EXPIRES - 1
    clients.heard(clients.all()[0])
    now = EXPIRES + 1
    clients.expire()
    assert len(clients.all()) == 1


def test_messages_are_numbered_and_topics_keep_their_place() -> None:
    sent: list[dict[str, Any]] = []
    client = Client(sent.append, lambda: None)
    for _ in range(3):
        client.send(Reply(request=1, ok=True, text=""))
    assert [message["number"] for message in sent] == [0, 1, 2]
    client.watch(["cells"])
    client.cursors["cells"] = 5
    client.watch(["cells", "keys"])
    assert client.cursors == {"cells": 5, "keys": NOTHING}
    client.resync()
    assert client.cursors == {"cells": NOTHING, "keys": NOTHING}


# ---- messages -----------------------------------------------------------------------------------

OPENINGS: list[Any] = [
    {"version": 1, "client": "a", "topics": []},
    {"version": 1, "client": "a" * 64, "topics": TOPICS},
    {"version": 1, "client": "a" * 65, "topics": []},
    {"version": 1, "client": 1, "topics": []},
    {"version": None, "client": "a", "topics": []},
    {"version": 1, "client": "a", "topics": {}},
    {"version": 1, "client": "a", "topics": ["cell"]},
    {"version": 1, "client": "a", "topics": [], "more": 0},
    {"client": "a", "topics": []},
    [],
    None,
]
SAID: list[Any] = [
    {"type": "watch", "topics": ["cells", "cells"]},
    {"type": "watch", "topics": [None]},
    {"type": "watch"},
    {"type": "resync"},
    {"type": "resync", "number": 1},
    {"type": "ask", "request": 1, "what": "clear"},
    {"type": "ask", "request": 1, "what": "evict", "id": "3"},
    {"type": "ask", "request": 1, "what": "profile", "on": False},
    {"type": "ask", "request": 1, "what": "profile", "on": 0},
    {"type": "ask", "request": 1, "what": "evict", "id": 3},
    {"type": "ask", "request": 1.5, "what": "clear"},
    {"type": "ask", "request": 1, "what": None},
    {"type": "ask", "request": 1, "what": "clear", "more": 1},
    {"type": "ask", "request": 1, "what": "pin"},
    {"type": "ask", "request": 1, "what": "pin", "id": "x" * 1001},
    {"type": "ask", "request": 1, "what": "everything"},
    {"type": "other"},
    "watch",
    7,
]


@pytest.mark.parametrize("data", OPENINGS, ids=repr)
def test_openings_are_read_as_the_schema_says(data: Any) -> None:
    _agrees(data, validator("Open").is_valid(data), messages.read_open)


@pytest.mark.parametrize("data", SAID, ids=repr)
def test_messages_are_read_as_the_schema_says(data: Any) -> None:
    kinds = ("Watch", "Resync", "Ask")
    _agrees(data, any(validator(kind).is_valid(data) for kind in kinds), messages.read)


def _agrees(data: Any, is_valid: bool, read: Any) -> None:
    if is_valid:
        read(data)
    else:
        with pytest.raises(messages.RefusedError):
            read(data)


def test_topics_are_those_of_the_schema() -> None:
    topic = validator("Topic")
    assert all(topic.is_valid(name) for name in KINDS) and sorted(KINDS) == sorted(TOPICS)


def test_the_schema_is_that_of_the_types() -> None:
    """`python -m perspex_magics.panel.schema` writes it, and so does `make panel`."""
    assert schema.SCHEMA.read_text("utf-8") == schema.schema_text()


def test_the_schema_has_every_message_and_every_row() -> None:
    for union in (contract.FromPanel, contract.FromKernel, contract.AnyRow):
        for kind in get_args(union):
            validator(kind.__name__).check_schema(SCHEMA["definitions"][kind.__name__])


@pytest.mark.parametrize(
    "message",
    [
        {"type": 10**5_000},
        {"type": "watch", "topics": 10**5_000},
        {"type": "watch", "topics": ["x" * 100_000]},
        {"type": "ask", "request": 1, "what": "x" * 100_000},
        {"type": "ask", "request": 1, "what": "pin", "id": {"x" * 100_000: 1}},
        {"type": "resync", "x" * 100_000: 1},
    ],
    ids=lambda message: ",".join(key[:9] for key in message),
)
def test_a_long_value_is_refused_without_being_written_out(message: dict[str, Any]) -> None:
    with pytest.raises(messages.RefusedError) as refused:
        messages.read(message)
    assert len(str(refused.value)) <= 200


# ---- pace ---------------------------------------------------------------------------------------


def test_work_takes_its_share_of_a_cell_and_waits_for_the_next() -> None:
    work = Work(share=100)
    work.last, work.cost = 10.0, 0.002
    assert work.due(busy=True, since=0.0) == pytest.approx(10.2)
    # Of a cell that has just begun it gets nothing yet.
    assert work.due(busy=True, since=50.0) == pytest.approx(50.2)
    assert work.due(busy=False, since=10.3) == pytest.approx(10.5)
    work.cost = 10.0
    assert work.due(busy=False, since=10.3) == pytest.approx(10.55)


# ---- in a shell without a kernel ----------------------------------------------------------------


def outbox_of(notebook: Notebook) -> Outbox:
    return Outbox(notebook.shell, Places(notebook.shell), KINDS)


def test_a_terminal_has_no_panel(notebook: Notebook) -> None:
    """Nothing but the ids of cells is noted there."""
    notebook.ok("x = 1")
    unload_ipython_extension(notebook.shell)
    assert not any(
        "panel" in getattr(callback, "__module__", "")
        for callbacks in notebook.shell.events.callbacks.values()
        for callback in callbacks
    )


OTHERS = """
from IPython.core.magic import Magics, line_magic, magics_class
for name in ("Buffer", "Cache", "Clock", "Jit", "Keys", "Profile"):
    kind = type(f"{name}Magics", (Magics,), {})
    get_ipython().register_magics(magics_class(kind))
"""


def test_magics_of_others_may_have_the_names_of_ours(notebook: Notebook) -> None:
    notebook.ok(OTHERS)
    outbox = outbox_of(notebook)
    outbox._attend(set(TOPICS))
    notebook.ok("f = perspex.jit(lambda x: x - 3)\nheld = f(jnp.ones(19))\n%cache\n%buffers")
    assert [row["name"] for row in told(outbox, "programs")].count("<lambda>") == 1
    assert "held" in [row["owner"] for row in told(outbox, "buffers")]
    for topic in set(TOPICS) - {"programs", "buffers"}:
        told(outbox, topic)
    outbox._attend(set())


def test_a_topic_that_fails_is_told_of_once_and_the_others_go_on(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any) -> float | None:
        raise ZeroDivisionError("broken")

    told: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", told.append)
    monkeypatch.setattr(KINDS["memory"], "refresh", fail)
    outbox = outbox_of(notebook)
    outbox._attend({"memory", "cells"})
    for table in outbox.tables.values():
        table.refresh()
        table.refresh()
    assert [type(one.exc_value) for one in told] == [ZeroDivisionError]
    assert outbox.tables["cells"].is_ready
    outbox._attend(set())


def test_what_takes_long_is_given_up_when_a_cell_begins(notebook: Notebook) -> None:
    """And it is done later: nothing of it is told in the meantime."""
    notebook.ns["many"] = [pnp.ones(3) for _ in range(3)]
    outbox = outbox_of(notebook)
    outbox._attend({"buffers"})
    (table,) = outbox.tables.values()
    begin = table.topic.check

    def check() -> None:
        outbox._begin_cell(SimpleNamespace(cell_id=None))
        begin()

    table.topic.check = check  # type: ignore[method-assign]
    table.refresh()
    assert not table.is_ready and table.has_news and len(table.topic.table) == 0
    # Not while the cell runs, nor right after it; then it is.
    table.topic.check = begin  # type: ignore[method-assign]
    table.cost = 1.0
    outbox._turn()
    assert not table.is_ready
    outbox._end_cell(None)
    outbox._turn()
    assert not table.is_ready
    table.last = outbox._since = time.monotonic() - 1.0
    outbox._turn()
    assert table.is_ready and "variable:many:" in table.topic.table
    outbox._attend(set())


def told(outbox: Outbox, topic: str) -> list[dict[str, Any]]:
    """All rows of a topic that is looked at, brought up to date."""
    table = outbox.tables[topic]
    table.topic.is_interrupted = False
    table.refresh()
    assert table.is_ready and not table.has_failed
    changes, _ = table.changes(NOTHING, 10_000)
    return [] if changes is None else msgspec.to_builtins(changes.put)


def test_the_course_of_memory_stays_while_nobody_looks(notebook: Notebook) -> None:
    """A cell counts once, and what no cell's end was looked at for counts as none."""
    outbox = outbox_of(notebook)

    def cell(count: int, nbytes: int) -> None:
        info = SimpleNamespace(cell_id=None)
        outbox._begin_cell(info)
        notebook.ns["held"] = pnp.ones(nbytes // 4)
        outbox._end_cell(SimpleNamespace(execution_count=count, info=info))

    def rows() -> list[tuple[int | None, int]]:
        return [(row["count"], row["bytes"] - before) for row in told(outbox, "memory")]

    outbox._attend({"memory"})
    (first,) = told(outbox, "memory")
    before = first["bytes"]
    assert first["count"] is None
    cell(1, 400)
    assert rows() == [(None, 0), (1, 400)]
    outbox.refresh_all()  # with nothing that has changed
    assert rows() == [(None, 0), (1, 400)]
    del notebook.ns["held"]
    outbox.refresh_all()
    assert rows() == [(None, 0), (1, 400), (None, 0)]
    outbox._attend({"cells"})
    cell(2, 800)  # of which nobody knows what was alive at its end
    outbox._attend({"memory"})
    assert rows() == [(None, 0), (1, 400), (None, 0), (None, 800)]
    cell(3, 800)
    expected = [(None, 0), (1, 400), (None, 0), (None, 800), (3, 800)]
    assert rows() == expected
    # In the middle of a cell it is no cell's end.
    outbox._begin_cell(SimpleNamespace(cell_id=None))
    notebook.ns["held"] = None
    outbox.tables["memory"].changed()
    assert rows() == [*expected, (None, 0)]
    outbox._attend(set())


@pytest.mark.parametrize("n", [3, 25])
def test_all_keys_of_a_line_count_that_were_used_twice(notebook: Notebook, n: int) -> None:
    notebook.ok(
        "from perspex import random\n"
        f"ks = random.split(random.key(0), {n})\n"
        f"for i in range({n}):\n    _ = random.normal(ks[i], (3,)), random.uniform(ks[i], (3,))\n"
        "k1, k2 = random.split(random.fold_in(random.key(1), 3))\n"
        "_ = random.normal(k1), random.normal(k1)"
    )
    outbox = outbox_of(notebook)
    outbox._attend({"keys"})
    found = [row for row in told(outbox, "keys") if row["reusedKeys"]]
    for row in found:
        validator("KeyRow").validate(row)
    assert [(row["reusedKeys"], len(row["reused"])) for row in found] == [(n, min(n, 20)), (1, 1)]
    outbox._attend(set())


def test_readings_are_made_for_an_observer_and_not_shown(notebook: Notebook) -> None:
    clock = part(notebook.shell, Clock)
    told: list[tuple[Reading, str]] = []
    stop = clock.observe(lambda reading: told.append((reading, reading.status)))
    notebook.ok("perspex.jit(lambda x: x * 5)(jnp.ones(17))")
    assert notebook.displayed == [] or all(
        "application/vnd.perspex.clock+json" not in bundle for bundle in notebook.displayed
    )
    notebook.fails("1 / 0", ZeroDivisionError)
    stop()
    notebook.ok("perspex.jit(lambda x: x * 6)(jnp.ones(17))")
    assert [status for _, status in told] == ["running", "ok", "running", "error"]
    first = told[0][0]
    assert first.seconds["compile"] > 0 and first.count == told[-1][0].count - 1
    assert first.head.startswith("perspex.jit")
    assert not clock.is_measuring


def test_a_program_of_before_is_looked_at_and_not_compiled(notebook: Notebook) -> None:
    notebook.ok(
        "def wave(x, y): return jnp.cos(x) * y\n"
        "f = perspex.jit(wave, donate_argnums=0)\nx = jnp.ones((4, 4))\nf(x, x + 1)"
    )
    recorder = part(notebook.shell, Recorder)
    (one,) = recorder.named(["wave"])
    with perspex.events.unheard():
        traced = one.traced()
        assert traced is not None
        text = traced.lower().as_text()
        traced.lower().compile()
    assert text == notebook.ns["f"].lower(pnp.ones((4, 4)), pnp.ones((4, 4))).as_text()
    assert one.equations == 2 and len(recorder.named(["wave"])) == 1
    del traced
    notebook.ok("del f, wave\nimport gc; _ = gc.collect()")
    assert not one.can_be_traced and one.traced() is None

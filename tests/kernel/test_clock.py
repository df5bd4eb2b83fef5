"""The clock and the heartbeat as a front end sees them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from support.session import Ran, Session
from support.undisturbed import undisturbed

CLOCK = "application/vnd.perspex.clock+json"
HEARTBEAT = "application/vnd.perspex.heartbeat+json"
PARTS = ("trace", "lower", "compile", "device", "transfer", "python", "idle")


def shown(ran: Ran, mime: str) -> list[dict[str, Any]]:
    """The notices of a kind, and their updates, as messages."""
    return [m for m in ran.outputs if mime in m["content"].get("data", {})]


def outputs(ran: Ran) -> list[str]:
    kinds = [m["msg_type"] for m in ran.outputs]
    return [kind for kind in kinds if kind not in ("status", "execute_input")]


@pytest.fixture(scope="module")
def work(live: Session) -> float:
    """A jitted function `work` that keeps the device busy; for how many seconds at the least."""
    live.ok(
        "import time, numpy as np, perspex, perspex.numpy as jnp\n"
        "@perspex.jit\n"
        "def work(a):\n"
        "    return perspex.lax.fori_loop(0, 150, lambda i, a: a @ a / 500, a)\n"
        "a = jnp.ones((500, 500))\n"
        "work(a).block_until_ready()"
    )
    measure = (
        "begun = time.perf_counter()\nwork(a).block_until_ready()\ntime.perf_counter() - begun"
    )
    return min(float(live.ok(measure).text) for _ in range(3))


def test_on_by_default_and_after_all_other_outputs(live: Session, work: float) -> None:
    ran = live.ok("print('hello')\nperspex.jit(lambda x: x * 1.25)(jnp.ones(21))")
    assert outputs(ran) == ["stream", "execute_result", "display_data"]
    (line,) = shown(ran, CLOCK)
    data = line["content"]["data"]
    assert data[CLOCK]["compile"] > 0
    assert " ms: trace " in data["text/plain"] or " s: " in data["text/plain"]
    assert data["text/plain"] in data["text/html"].replace("\xa0", " ")
    assert 0 < data[CLOCK]["wall"] < ran.seconds
    assert sum(data[CLOCK][part] for part in PARTS) == pytest.approx(data[CLOCK]["wall"])


@undisturbed
def test_python_alone_shows_nothing(live: Session) -> None:
    # Of the cells before.
    live.ok("import perspex\n[x.block_until_ready() for x in perspex.live_arrays()]")
    assert outputs(live.ok("x = 1")) == []
    assert outputs(live.ok("1 + 1")) == ["execute_result"]
    assert outputs(live.ok("")) == []


def test_silent_cells_show_nothing(live: Session, work: float) -> None:
    ran = live.ok("perspex.jit(lambda x: x * 2.25)(jnp.ones(22))", silent=True)
    assert shown(ran, CLOCK) == []


def test_an_error_comes_before_the_line(live: Session, work: float) -> None:
    ran = live.run("perspex.jit(lambda x: x * 3.25)(jnp.ones(23)); 1 / 0")
    assert outputs(ran) == ["error", "display_data"]


def run_all(live: Session, *cells: str) -> list[dict[str, Any]]:
    """Send cells one after the other; all messages up to the update of the first one's line."""
    sent = [live.send(cell) for cell in cells]
    messages: list[dict[str, Any]] = []
    waiting_for = {(msg_id, "idle") for msg_id in sent} | {(sent[0], "update")}
    deadline = time.monotonic() + 60
    while waiting_for and time.monotonic() < deadline:
        message = live.client.get_iopub_msg(timeout=60)
        messages.append(message)
        origin = message["parent_header"].get("msg_id")
        if message["content"].get("execution_state") == "idle":
            waiting_for.discard((origin, "idle"))
        if message["msg_type"] == "update_display_data":
            waiting_for.discard((origin, "update"))
    assert not waiting_for
    for msg_id in sent:
        reply = live.client.get_shell_msg(timeout=60)
        assert reply["parent_header"]["msg_id"] == msg_id
        assert reply["content"]["status"] == "ok"
    return messages


def lines_in(messages: list[dict[str, Any]], msg_type: str) -> list[dict[str, Any]]:
    return [
        m for m in messages if m["msg_type"] == msg_type and CLOCK in m["content"].get("data", {})
    ]


@undisturbed
def test_work_left_behind_is_told_later_and_holds_nothing_up(live: Session, work: float) -> None:
    messages = run_all(
        live,
        "import threading\n"
        "took = []\n"
        "def wait():\n"
        "    y.block_until_ready()\n"
        "    took.append(time.time() - begun)\n"
        "begun = time.time()\n"
        "y = work(a)\n"
        "threading.Thread(target=wait).start()",
        "followed = time.time() - begun, y.is_ready()",
    )
    line, *others = lines_in(messages, "display_data")
    # What the first cell has left is not the second one's, which may take long enough for a line.
    assert not any(other["content"]["data"][CLOCK]["working"] for other in others)
    data = line["content"]["data"]
    assert data[CLOCK]["working"]
    assert "the device is still at work" in data["text/plain"]
    (update,) = lines_in(messages, "update_display_data")
    assert update["content"]["transient"] == line["content"]["transient"]
    found = update["content"]["data"][CLOCK]
    assert not found["working"]
    assert "more on the device" in update["content"]["data"]["text/plain"]
    took = float(live.ok("took[0]").text)
    assert found["wall"] + found["after"] == pytest.approx(took, rel=0.1, abs=0.05)
    assert took > 0.5 * work
    assert live.ok("followed[0] < 0.5 * took[0], followed[1]").text == "(True, False)"


def test_what_a_cell_captures_is_its_own(live: Session, work: float) -> None:
    """The update of an earlier line must not land among captured outputs."""
    messages = run_all(
        live, "y = work(a)", "%%capture caught\ny.block_until_ready(); time.sleep(0.2)"
    )
    (update,) = lines_in(messages, "update_display_data")
    assert update["content"]["data"][CLOCK]["after"] > 0
    assert live.ok("len(caught.outputs)").text == "0"


@undisturbed
def test_a_mixed_cell_adds_up(live: Session, work: float) -> None:
    live.ok("float(jnp.zeros((500, 500))[0, 0])")  # lest the device works while this is compiled
    ran = live.ok(
        "begun = time.perf_counter()\n"
        "z = perspex.jit(lambda a: work(a) + 0.5)(np.ones((500, 500), np.float32))\n"
        "total = float(z[0, 0])\n"
        "time.sleep(0.1)\n"
        "print(time.perf_counter() - begun)"
    )
    (line,) = shown(ran, CLOCK)
    data = line["content"]["data"][CLOCK]
    assert data["wall"] == pytest.approx(float(ran.stdout), rel=0.05, abs=0.05)
    assert sum(data[part] for part in PARTS) == pytest.approx(data["wall"], rel=0.05)
    assert data["device"] > 0.3 * work
    assert data["bytes"]["in"] >= 1_000_000


@undisturbed
def test_a_long_trace_shows_where_its_equations_come_from(live: Session, work: float) -> None:
    msg_id = live.send(
        "@perspex.jit\n"
        "def unrolled(x):\n"
        "    end = time.perf_counter() + 4.2\n"
        "    while time.perf_counter() < end:\n"
        "        x = jnp.sin(x)\n"
        "    return x\n"
        "begun = time.perf_counter()\n"
        "unrolled.trace(1.0); traced = time.perf_counter() - begun"
    )
    ran = live.wait(msg_id)
    assert ran.status == "ok"
    traced = float(live.ok("traced").text)
    notices = shown(ran, HEARTBEAT)
    assert [m["msg_type"] for m in notices][:2] == ["display_data", "update_display_data"]
    assert len({m["content"]["transient"]["display_id"] for m in notices}) == 1
    stages = [m["content"]["data"][HEARTBEAT]["stages"][0] for m in notices]
    lively = [stage for stage in stages if stage["running"]]
    assert len(lively) >= 2
    counts = [stage["equations"] for stage in stages]
    assert counts == sorted(counts) and counts[0] > 1_000
    for message, stage in zip(notices, stages, strict=True):
        assert stage["line"]["at"].endswith(":5")
        assert stage["line"]["text"] == "x = jnp.sin(x)"
        text = message["content"]["data"]["text/plain"]
        assert "`unrolled`" in text and "lax.scan" in text
    assert not stages[-1]["running"]
    # The end is seen at the next look, half a second later at most, or as the cell ends.
    assert 4.1 < stages[-1]["seconds"] < traced + 0.6


def test_off_and_on_again(live: Session, work: float) -> None:
    live.ok("%clock off")
    assert shown(live.ok("perspex.jit(lambda x: x * 4.25)(jnp.ones(24))"), CLOCK) == []
    live.ok("%clock on")
    assert len(shown(live.ok("perspex.jit(lambda x: x * 5.25)(jnp.ones(25))"), CLOCK)) == 1

"""The clock under a cell: what it says, against times taken outside of it."""

from __future__ import annotations

import re
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from support.shells import Notebook
from support.undisturbed import undisturbed

import perspex
import perspex.numpy as pnp
from perspex.base import environment
from perspex.base.events import Event
from perspex.runtime import client
from perspex_magics.notebook.pulse import CellPulse
from perspex_magics.timing.clock import Clock, Reading
from perspex_magics.timing.unfinished import Pending, Watcher, arrays_in, is_there

MIME = "application/vnd.perspex.clock+json"


@pytest.fixture
def timed(notebook: Notebook) -> Notebook:
    notebook.ok("import time\n%clock on")
    return notebook


def lines(notebook: Notebook) -> list[dict]:
    return [bundle for bundle in notebook.displayed if MIME in bundle]


def reading_of(notebook: Notebook, cell: str) -> tuple[dict, str]:
    """The data and the text of the line that a cell shows."""
    notebook.ok(cell)
    (line,) = lines(notebook)
    return line[MIME], line["text/plain"]


def parts(data: dict) -> float:
    names = ("trace", "lower", "compile", "device", "transfer", "python", "idle")
    return sum(data[name] for name in names)


# Half a second of work for the device, as one program; its length on this machine is measured.
# Half a second or more, wherever it runs.
WORK = """
@perspex.jit
def turned(a, turns):
    return perspex.lax.fori_loop(0, turns, lambda i, a: a @ a / 500, a)
a = jnp.ones((500, 500))
tries = []
for _ in range(4):
    begun = time.perf_counter()
    turned(a, 20).block_until_ready()
    tries.append(time.perf_counter() - begun)
turns = int(10 / min(tries))
@perspex.jit
def work(a):
    return turned(a, turns)
begun = time.perf_counter()
work(a).block_until_ready()
compiled = time.perf_counter() - begun
begun = time.perf_counter()
work(a).block_until_ready()
alone = time.perf_counter() - begun
"""


@pytest.mark.parametrize(
    "cell",
    ["", "# nothing", "x = 1", "sum(range(10))", "import time; time.sleep(0.15)", "def f(): 1"],
)
@undisturbed
def test_a_cell_that_computes_nothing_shows_nothing(timed: Notebook, cell: str) -> None:
    timed.ok("kept = jnp.ones(3).block_until_ready()")
    timed.ok(cell)
    assert timed.displayed == []


def test_off_shows_nothing_and_listens_to_nothing(notebook: Notebook) -> None:
    """A plain IPython begins without the clock."""
    before = perspex.events.audience("wait")
    notebook.ok("y = perspex.jit(lambda x: x + 1.5)(jnp.ones(7))")
    assert lines(notebook) == []
    notebook.ok("%clock on")
    assert len(perspex.events.audience("wait")) == len(before) + 1
    notebook.ok("%clock off")
    assert perspex.events.audience("wait") == before


@undisturbed
def test_stages_add_up_to_the_wall_time(timed: Notebook) -> None:
    cell = (
        "begun, ran = time.perf_counter(), time.thread_time()\n"
        "inside = perspex.events.seconds_in_phases()\n"
        "host = np.ones((1500, 1500), np.float32)\n"
        "f = perspex.jit(lambda x: jnp.tanh(x @ x).sum() + 0.125)\n"
        "value = float(f(host))\n"
        "asleep = time.perf_counter()\n"
        "time.sleep(0.2)\n"
        "slept = time.perf_counter() - asleep\n"
        "inside = perspex.events.seconds_in_phases() - inside\n"
        "ran = time.thread_time() - ran\n"
        "took = time.perf_counter() - begun"
    )
    data, text = reading_of(timed, cell)
    took = timed.ns["took"]
    assert took <= data["wall"]
    assert parts(data) == pytest.approx(data["wall"], rel=0.05)
    # The thread sleeps, and on a busy machine waits for its turn.
    staged = sum(data[part] for part in ("trace", "lower", "compile", "device", "transfer"))
    outside = (took - staged) - (timed.ns["ran"] - timed.ns["inside"])
    assert data["idle"] >= timed.ns["slept"] - 0.01
    assert data["idle"] == pytest.approx(outside, abs=0.05)
    for part in ("trace", "lower", "compile", "device", "transfer"):
        assert 0 < data[part] < took
        # What rounds to nothing is left out.
        assert f"{part} " in text or data[part] < 0.01 * took
    assert data["bytes"]["in"] == 1500 * 1500 * 4
    assert ("transfer " in text) == ("8.58 MiB in" in text)


def test_a_transfer_is_told_with_its_bytes() -> None:
    reading = Reading("x")
    reading.seconds["transfer"], reading.bytes = 0.004, {"in": 9_000_000, "out": 12}
    reading.wall, reading.python = 0.1, 0.096
    assert reading.text() == "100 ms: transfer 4.00 ms (8.58 MiB in, 12 B out), Python 96.0 ms"


@undisturbed
def test_compiling_is_what_the_clock_says_it_is(timed: Notebook) -> None:
    timed.ok("f = perspex.jit(lambda x: jnp.linalg.qr(x @ x)[0] * 1.375)\nx = jnp.ones((30, 30))")
    data, _ = reading_of(
        timed,
        "begun = time.perf_counter()\n"
        "f.lower(x).compile()\n"
        "took = time.perf_counter() - begun\n"
        "time.sleep(0.2)",
    )
    staged = data["trace"] + data["lower"] + data["compile"]
    assert staged == pytest.approx(timed.ns["took"], rel=0.2, abs=0.02)


@undisturbed
def test_waiting_is_measured_where_python_waits(timed: Notebook) -> None:
    timed.ok(WORK)
    for wait in ("y.block_until_ready()", "float(y[0, 0])", "y.sum().item()", "print(y)"):
        data, _ = reading_of(
            timed,
            "y = work(a)\nbegun = time.perf_counter()\n"
            f"{wait};\nwaited = time.perf_counter() - begun",
        )
        # Reading an element is a program of its own, compiled the first time.
        staged = data["trace"] + data["lower"] + data["compile"]
        assert data["device"] == pytest.approx(timed.ns["waited"] - staged, rel=0.2, abs=0.05), wait


@undisturbed
def test_waiting_where_the_core_does_not_look_is_time_of_the_device(timed: Notebook) -> None:
    """NumPy asks C++ for the array's memory, and waits there. Nothing is idle while XLA works."""
    timed.ok(WORK)
    timed.ok(
        "def spent(): return time.perf_counter(), time.thread_time(), time.process_time()\n"
        "y = work(a).block_until_ready();"
    )
    for wait in ("np.asarray(y)", "time.sleep(0.3)"):
        data, _ = reading_of(
            timed,
            f"begun = spent()\ny = work(a)\n{wait};\n"
            "waited, mine, all = [b - a for a, b in zip(begun, spent())]",
        )
        # What XLA's threads have run, for as long as this one waited. On a busy machine that is
        # less than the time that passed.
        away = timed.ns["waited"] - timed.ns["mine"]
        others = min(away, timed.ns["all"] - timed.ns["mine"])
        assert data["device"] == pytest.approx(others, rel=0.1, abs=0.05), wait
        assert data["idle"] == pytest.approx(away - others, rel=0.1, abs=0.07), wait


@undisturbed
def test_what_other_threads_of_python_run_is_no_time_of_the_device(timed: Notebook) -> None:
    """Neither while this thread sleeps, nor where it waits for them: threads that come and go."""
    timed.ok(
        "import threading\njnp.ones(3).block_until_ready()\n"
        "def busy(seconds):\n"
        "    end = time.thread_time() + seconds\n"
        "    while time.thread_time() < end: pass\n"
        "def spent(): return time.perf_counter(), time.thread_time()\n"
        "%clock all"
    )
    for wait in ("thread.join()", "time.sleep(1.0); thread.join()"):
        data, _ = reading_of(
            timed,
            "begun = spent()\nthread = threading.Thread(target=busy, args=(0.5,))\nthread.start()\n"
            f"{wait}\nwaited, mine = [b - a for a, b in zip(begun, spent())]",
        )
        assert data["device"] == 0, wait
        assert data["python"] >= 0.5, wait
        # What is neither this thread's nor the other's.
        assert data["idle"] <= timed.ns["waited"] - timed.ns["mine"] - 0.5 + 0.1, wait


@undisturbed
def test_a_sleep_is_idle_beside_a_wait(timed: Notebook) -> None:
    timed.ok(WORK)
    data, _ = reading_of(
        timed,
        "y = work(a)\ny.block_until_ready()\n"
        "begun, ran = time.perf_counter(), time.process_time()\ntime.sleep(0.5)\n"
        "slept, ran = time.perf_counter() - begun, time.process_time() - ran",
    )
    # What threads of this process have run meanwhile, as those of XLA that end late.
    assert data["idle"] >= timed.ns["slept"] - timed.ns["ran"] - 0.1


@undisturbed
def test_work_left_behind_is_measured_after_the_cell(timed: Notebook) -> None:
    timed.ok(WORK)
    timed.ok("begun = time.perf_counter()\ny = work(a)")
    (line,) = lines(timed)
    assert line[MIME]["working"] and "still at work" in line["text/plain"]
    assert line[MIME]["wall"] < 0.5 * timed.ns["alone"]
    timed.ns["y"].block_until_ready()
    took = time.perf_counter() - timed.ns["begun"]
    text = printed_by_last(timed)
    after = re.search(r"then ([\d.]+) (us|ms|s) more on the device", text)
    assert after, text
    seconds = float(after[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[after[2]]
    assert seconds + line[MIME]["wall"] == pytest.approx(took, rel=0.25, abs=0.05)


def printed_by_last(notebook: Notebook) -> str:
    """What `%clock last` says when the device has been found to be done."""
    for _ in range(100):
        notebook.ok("%clock last")
        if "still at work" not in notebook.out:
            break
        time.sleep(0.02)
    return notebook.out


@undisturbed
def test_the_next_cell_is_not_held_up(timed: Notebook) -> None:
    timed.ok(WORK)
    timed.ok("y = work(a)")
    timed.ok("x = 1")
    assert not timed.ns["y"].is_ready(), "the machine was too fast for this test"
    # What an earlier cell has left is not this cell's.
    assert timed.displayed == []


def test_failures_count_as_what_they_interrupted(timed: Notebook) -> None:
    timed.run("@perspex.jit\ndef f(x):\n    time.sleep(0.3)\n    raise ValueError\nf(1.0)")
    (line,) = lines(timed)
    assert line[MIME]["trace"] >= 0.3


def test_a_cell_inside_of_a_cell_is_part_of_it(timed: Notebook) -> None:
    timed.ok("get_ipython().run_cell('inner = perspex.jit(lambda x: x * 2.25)(jnp.ones(9))');")
    (line,) = lines(timed)
    assert line[MIME]["compile"] > 0


def test_a_long_cell_with_arrays_is_shown(timed: Notebook) -> None:
    timed.ok("x = jnp.ones(3); holder = {'w': [x]}")
    for name in ("x", "holder"):
        timed.ok(f"{name}; time.sleep(0.12)")
        assert len(lines(timed)) == 1, name


def test_all_shows_every_cell(timed: Notebook) -> None:
    data, text = reading_of(timed, "%clock all\nx = 1")
    assert re.fullmatch(r"[\d.]+ [mu]s: Python [\d.]+ [mu]s", text)
    assert data["compile"] == 0


def test_last_prints_the_line_again(timed: Notebook) -> None:
    _, text = reading_of(
        timed, "y = perspex.jit(lambda x: x + 3.5)(jnp.ones(11)).block_until_ready()"
    )
    timed.ok("%clock last")
    assert timed.out.strip() == text


def test_states_help_and_errors(notebook: Notebook) -> None:
    notebook.ok("%clock")
    assert "off" in notebook.out
    notebook.ok("%clock last")
    assert "%clock on" in notebook.out
    notebook.ok("%clock --help")
    assert "PERSPEX_CLOCK" in notebook.out
    notebook.ok("%clock all\n%clock")
    assert "all cells" in notebook.out
    notebook.fails("%clock of", UsageError)
    assert "invalid choice: 'of'" in notebook.out and "`%clock --help`" in notebook.out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%clock ", {"all", "last", "off", "on"}),
        ("%clock o", {"off", "on"}),
        ("%clock --", {"--help"}),
    ],
)
def test_completion(notebook: Notebook, text: str, expected: set[str]) -> None:
    with provisionalcompleter():
        matches = notebook.shell.Completer.completions(text, len(text))
        assert {match.text for match in matches} == expected


@pytest.mark.parametrize(
    ("word", "said"),
    [("all", "on, for all"), ("ON", "on, for cells that"), ("off", "off;"), ("?", "off;")],
)
def test_the_environment_decides_at_first(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch, word: str, said: str
) -> None:
    monkeypatch.setenv("PERSPEX_CLOCK", word)
    monkeypatch.setenv("PERSPEX_BAD_VALUES", "default")  # as in the kernel
    monkeypatch.setattr(environment, "problems", [])
    notebook = Notebook(shell)
    notebook.ok("%load_ext perspex_magics")
    notebook.ok("%clock")
    assert f"The clock is {said}" in notebook.out
    notebook.ok("%unload_ext perspex_magics")
    notebook.fails("%clock", UsageError, "not found")


def event(kind: str, start: float, end: float, **data: object) -> Event:
    return Event(kind, "f", start, end - start, "", None, data)


def test_what_lies_inside_is_counted_once() -> None:
    """A trace of 10 s, in which another one took 4 s, of which 1 s was a transfer."""
    reading = Reading("")
    begun = reading.start
    reading.add(event("transfer", 3.0, 4.0, direction="in", bytes=8))
    reading.add(event("trace", 2.0, 6.0))
    reading.add(event("trace", 0.0, 10.0))
    reading.add(event("failed", 11.0, 13.0, stage="compile"))
    assert reading.seconds == {"trace": 9, "lower": 0, "compile": 2, "wait": 0, "transfer": 1}
    reading.stop(begun + 15.0)
    assert reading.python + reading.idle == pytest.approx(3)


@undisturbed
def test_the_processors_time_in_phases_is_not_pythons(timed: Notebook) -> None:
    """Half a second of tracing that computes, a third that sleeps, a fifth of Python after it."""
    timed.ok("%clock all")
    timed.ok(
        "def busy(seconds):\n"
        "    end = time.thread_time() + seconds\n"
        "    while time.thread_time() < end: pass"
    )
    data, _ = reading_of(
        timed,
        "def f(x):\n    busy(0.5)\n    return x\n"
        "begun = time.perf_counter()\n"
        "perspex.jit(f).trace(1.0); traced = time.perf_counter() - begun\n"
        "ran, slept = time.thread_time(), time.perf_counter()\n"
        "time.sleep(0.301)\n"
        "slept = time.perf_counter() - slept - (time.thread_time() - ran)\n"
        "busy(0.2);",
    )
    assert data["trace"] == pytest.approx(timed.ns["traced"], rel=0.05)
    assert data["python"] == pytest.approx(0.2, abs=0.1)
    assert data["idle"] >= 0.3
    # To sleep takes some microseconds of the processor. What else lets the thread wait adds to it.
    assert data["idle"] >= timed.ns["slept"] - 3e-4


def test_many_events_take_bounded_memory() -> None:
    reading = Reading("")
    for i in range(20_000):
        reading.add(event("wait", float(i), i + 0.5))
    assert len(reading.spans) < 5_000
    reading.add(event("trace", 0.0, 20_000.0))
    assert reading.seconds["wait"] == 10_000 and reading.seconds["trace"] == 10_000


def test_where_programs_came_from_is_said() -> None:
    reading = Reading("")
    reading.add(event("compile", 0.0, 4e-3, source="disk"))
    reading.wall, reading.python = 10e-3, 6e-3
    assert reading.text() == "10.0 ms: compile 4.00 ms (disk), Python 6.00 ms"
    reading.add(event("compile", 5e-3, 6e-3))
    reading.python = 5e-3
    assert reading.text() == "10.0 ms: compile 5.00 ms (1 disk, 1 XLA), Python 5.00 ms"


class Plain:
    def __init__(self, value: object) -> None:
        self.value = value


def test_arrays_are_found_in_what_a_notebook_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    x, key = pnp.ones(2), perspex.random.key(0)
    monkeypatch.setattr(Plain, "__module__", "__main__")
    values = [x, [x, (x,)], {"a": {"b": [x]}}, SimpleNamespace(x=x), Plain(x), np.ones(3), 1, "x"]
    assert len(list(arrays_in(values))) == 5
    assert len(list(arrays_in([key]))) == 1
    assert list(arrays_in([[[[[[x]]]]]])) == []  # too deep
    assert len(list(arrays_in([[x] * 1_000]))) < 100
    assert len(list(arrays_in([{i: x for i in range(64)}] * 1_000))) <= 5_000


def test_a_deleted_array_is_nothing_to_wait_for() -> None:
    x = pnp.ones(5)
    x.delete()
    assert is_there(x)


def test_a_lost_array_makes_no_claim() -> None:
    gone = pnp.ones(5)
    gone.delete()
    reading = SimpleNamespace(after=None, is_working=True)
    assert Pending(reading, [gone], time.perf_counter()).look()
    assert reading.after is None and not reading.is_working


def test_the_watcher_lets_arrays_go() -> None:
    x = pnp.ones(5).block_until_ready()
    count = sys.getrefcount(x)
    reading = SimpleNamespace(after=None, is_working=True)
    watcher = Watcher()
    watcher.add(Pending(reading, [x], time.perf_counter()))
    for _ in range(200):
        if reading.after is not None and not watcher.ids():
            break
        time.sleep(0.01)
    assert 0 < reading.after < 2
    assert sys.getrefcount(x) == count


@undisturbed
def test_an_empty_cell_costs_little(notebook: Notebook) -> None:
    """A thousand names, a few of them arrays: both ends of a cell in under a millisecond."""
    notebook.ns.update({f"name{i}": i for i in range(1_000)})
    notebook.ns.update({f"array{i}": pnp.ones(3) for i in range(50)})
    clock = Clock(notebook.shell, CellPulse())
    clock.set("on")
    try:
        best = min(_cost(clock) for _ in range(50))
    finally:
        clock.set("off")
    assert best < 1e-3


def _cost(clock: Clock) -> float:
    info = SimpleNamespace(raw_cell="x = 1")
    start = time.perf_counter()
    clock.begin(info)
    clock.end(SimpleNamespace(info=info, result=None, success=True, execution_count=1))
    return time.perf_counter() - start


class Card:
    """A device whose allocator has taken most of its memory beforehand."""

    platform = "gpu"
    stats = {"bytes_limit": 80 << 30, "pool_bytes": 60 << 30, "bytes_in_use": 2 << 30}

    def memory_stats(self) -> dict[str, int]:
        return self.stats

    def __str__(self) -> str:
        return "cuda:0"


def test_reserved_memory_is_told_once(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(notebook.shell, CellPulse())
    assert clock._reserve() == ""
    monkeypatch.setattr(client, "default_device", Card)
    reading = Reading("x = 1")
    reading.stop(time.perf_counter(), "ok")
    before = reading.text()
    reading.reserved = clock._reserve()
    assert reading.text() == (
        f"{before}; XLA has reserved 58.0 GiB of cuda:0 beforehand "
        "(XLA_PYTHON_CLIENT_PREALLOCATE=false prevents that)"
    )
    assert clock._reserve() == ""


def test_memory_that_grows_with_use_is_not_told(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Growing(Card):
        stats = {"bytes_limit": 80 << 30, "pool_bytes": 3 << 30, "bytes_in_use": 2 << 30}

    monkeypatch.setattr(client, "default_device", Growing)
    assert Clock(notebook.shell, CellPulse())._reserve() == ""

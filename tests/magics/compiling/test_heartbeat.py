"""The heartbeat: which stage, which line, how many equations, against counts done by hand."""

from __future__ import annotations

import gc
import threading
import time

import pytest
from support.shells import Notebook

import perspex
import perspex.numpy as pnp
from perspex.base import events
from perspex.tracing import staging
from perspex_magics.compiling import heartbeat
from perspex_magics.compiling.heartbeat import Tally, sentences

MIME = "application/vnd.perspex.heartbeat+json"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, notebook: Notebook) -> Notebook:
    """A notebook in which a fifth of a second is long."""
    monkeypatch.setattr(heartbeat, "_LONG", 0.2)
    monkeypatch.setattr(heartbeat, "_PERIOD", 0.02)
    monkeypatch.setattr(heartbeat, "_REFRESH", 0.05)
    notebook.ok("import time")
    return notebook


def beats(notebook: Notebook) -> list[list[dict]]:
    return [bundle[MIME]["stages"] for bundle in notebook.displayed if MIME in bundle]


def texts(notebook: Notebook) -> list[str]:
    return [bundle["text/plain"] for bundle in notebook.displayed if MIME in bundle]


UNROLLED = """@perspex.jit
def unrolled(x):
    x = jnp.cos(x)
    end = time.perf_counter() + 0.7
    while time.perf_counter() < end:
        x = jnp.sin(x)
    return x
traced = unrolled.trace(1.0)
"""


def test_a_loop_written_out_is_named_by_its_line(quick: Notebook) -> None:
    quick.ok(UNROLLED)
    number = quick.shell.execution_count - 1
    first, last = beats(quick)  # a terminal gets the beginning and the end
    (row,) = first
    assert row["running"] and row["phase"] == "trace" and row["name"] == "unrolled"
    assert row["seconds"] >= 0.2
    early = row["seconds"]
    assert 1_000 < row["line"]["equations"] <= row["equations"]
    assert row["line"]["at"] == f"Cell In[{number}]:6"
    assert row["line"]["text"] == "x = jnp.sin(x)"
    assert "lax.fori_loop" in texts(quick)[0]
    (row,) = last
    assert not row["running"] and row["seconds"] >= max(early, 0.7)
    written = len(quick.ns["traced"].jaxpr.eqns)
    assert row["equations"] == written
    assert row["line"]["equations"] == written - 1  # without the cosine


def test_nothing_of_a_program_is_kept(quick: Notebook) -> None:
    quick.ok(UNROLLED.replace("traced = ", "").replace("(1.0)", "(1.0); None"))
    assert len(beats(quick)) == 2
    gc.collect()
    kept = [x for x in gc.get_objects() if isinstance(x, staging.JaxprTrace)]
    assert [trace.name for trace in kept if trace.name == "unrolled"] == []


def test_a_loop_body_outside_of_jit_is_seen(quick: Notebook) -> None:
    """`fori_loop` called eagerly writes its body in no function of the user's."""
    quick.ok(
        "def body(i, x):\n"
        "    end = time.perf_counter() + 0.6\n"
        "    while time.perf_counter() < end: x = x * 1.5\n"
        "    return x * 0\n"
        "staged = []\n"
        "try:\n"
        "    perspex.lax.cond(True, lambda x: 1 / staged[body(0, x)], lambda x: x, 1.0)\n"
        "except TypeError: pass"
    )
    rows = beats(quick)[-1]
    assert [row["phase"] for row in rows] == ["trace"]
    assert rows[0]["line"]["text"].endswith("x = x * 1.5")


def test_short_stages_say_nothing(quick: Notebook) -> None:
    quick.ok("y = perspex.jit(lambda x: x + 0.75)(jnp.ones(6))")
    quick.ok("time.sleep(0.4)")
    assert beats(quick) == []


def test_compiling_shows_its_size(quick: Notebook) -> None:
    quick.ns["three"] = perspex.jit(_three)
    quick.ns["compile"] = _slow_phase
    quick.ok("three.lower(1.0); compile('_three')")
    row = beats(quick)[0][0]
    assert (row["phase"], row["name"], row["running"]) == ("compile", "_three", True)
    assert row["equations"] == 3  # sine, product, sum
    assert "an interrupt returns control" in texts(quick)[0]
    assert "interrupt" not in texts(quick)[-1]


def _three(x):
    return pnp.sin(x) * 2 + 1


def _slow_phase(name: str) -> None:
    with events.Phase("compile", name):
        time.sleep(0.5)


def test_an_interrupted_stage_is_over(quick: Notebook) -> None:
    quick.run(
        "@perspex.jit\ndef f(x):\n    time.sleep(0.5)\n    raise KeyboardInterrupt\nf(1.0)",
    )
    (row,) = beats(quick)[-1]
    assert not row["running"]
    assert events.running == [] and staging.writing == []


def test_other_threads_are_not_this_cells(quick: Notebook) -> None:
    thread = threading.Thread(target=_slow_phase, args=("elsewhere",))
    thread.start()
    quick.ok("time.sleep(0.4)")
    thread.join()
    assert beats(quick) == []


def test_tally_reads_while_a_trace_is_written() -> None:
    """Another thread counts all the time; at the end every equation has been counted once."""
    tally, done = Tally(), threading.Event()

    def count() -> None:
        while not done.is_set():
            tally.read(staging.writing.copy())

    def f(x):
        for _ in range(20_000):
            x = pnp.negative(x)
        reader.join(0)
        return x

    reader = threading.Thread(target=count)
    reader.start()
    seen: list = []

    def g(x):
        y = f(x)
        seen.extend(staging.writing)
        return y

    perspex.make_jaxpr(g)(1.0)
    done.set()
    reader.join()
    tally.read(seen)
    assert tally.total == 20_000
    frame, count_of_line = tally.most()
    assert count_of_line == 20_000 and "f" in frame.function


def row(**changes: object) -> dict:
    return {
        "phase": "trace",
        "name": "f",
        "seconds": 3.4,
        "running": True,
        "apart": False,
        "equations": 0,
        "line": None,
        **changes,
    }


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (row(equations=12), ["tracing `f`: 3.40 s, 12 equations so far"]),
        (row(running=False), ["tracing `f` took 3.40 s"]),
        (row(phase="lower", equations=1_200), ["lowering `f`: 3.40 s, 1,200 equations"]),
        (
            row(phase="compile", equations=900),
            ["compiling `f`: 3.40 s, 900 equations; an interrupt returns control"],
        ),
        (row(phase="compile", apart=True), ["compiling `f`: 3.40 s; an interrupt stops it"]),
    ],
)
def test_sentences(data: dict, said: list[str]) -> None:
    assert sentences(data) == said


def test_few_equations_of_a_line_are_no_loop() -> None:
    line = {"at": "Cell In[1]:2", "text": "y = x", "equations": 1_000}
    assert len(sentences(row(equations=1_000, line=line))) == 2
    line["equations"] = 1_001
    assert "lax.scan" in sentences(row(equations=1_001, line=line))[-1]

"""What the tab *Devices* is given, in a process with eight devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

import pytest
from support.page import ROOT, validator

CHILD = """
import json
import numpy as np
import perspex
perspex.config.update("num_cpu_devices", 8)
from IPython.core.interactiveshell import InteractiveShell
import msgspec
from perspex.sharding import NamedSharding, PartitionSpec as P
from perspex_magics.panel.outbox import Outbox
from perspex_magics.panel.places import Places
from perspex_magics.panel.service import TOPICS
from perspex_magics.panel.tables import NOTHING

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "perspex")
outbox = Outbox(shell, Places(shell), TOPICS)
names = {"devices", "placements", "exchanges", "engines"}
outbox._attend(names)

def rows(name):
    table = outbox.tables[name]
    table.topic.is_interrupted = False
    table.refresh()
    assert table.is_ready and not table.has_failed
    changes, _ = table.changes(NOTHING, 10_000)
    return [] if changes is None else msgspec.to_builtins(changes.put)

def run(cell):
    result = shell.run_cell(cell, store_history=True)
    assert result.success

before = {name: rows(name) for name in names}
from perspex.runtime import client
assert not client.is_made()
run(SETUP)
after = {name: rows(name) for name in names}
ns = shell.user_ns
shards = [[str(s.device), int(np.asarray(s.data).sum())] for s in ns["up"].addressable_shards]
run(PROGRAM)
run("text = f.lower(up).compile().as_text()")  # the same executable
sent = rows("exchanges")
run("del f")
import gc; gc.collect()
print(json.dumps([before, after, shards, sent, rows("exchanges")]))
"""

SETUP = """
import numpy as np, perspex, perspex.numpy as jnp
from perspex import lax
from perspex.sharding import NamedSharding, PartitionSpec as P
mesh = perspex.make_mesh((2, 4), ("x", "y"))
def put(x, spec): return perspex.device_put(x, NamedSharding(mesh, spec))
up = put(np.arange(64, dtype=np.float32).reshape(8, 8), P(None, "y"))
both, whole = put(np.ones((4, 8), np.float32), P("y", "x")), put(np.ones(2, np.int32), P())
held = {"both": both, "whole": whole}
del both, whole
alone = jnp.ones(3)
"""

PROGRAM = """@perspex.jit
@perspex.shard_map(mesh=mesh, in_specs=P(None, "y"), out_specs=P())
def f(x):
    def step(c, _):
        a, *rest = c
        a = lax.ppermute(a, "y", [(i, (i + 1) % 4) for i in range(4)])
        return (a, *[r * 2 for r in rest]), None
    # A loop that carries so much that XLA counts its parts in comments.
    (c, *rest), _ = lax.scan(step, (x,) * 8, None, length=3)
    return lax.psum(c + sum(rest), "y")
_ = f(up)
"""


@cache
def told() -> Any:
    code = f"SETUP, PROGRAM = {SETUP!r}, {PROGRAM!r}\n{CHILD}"
    path = os.pathsep.join([str(ROOT / "core"), str(ROOT / "magics")])
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0, out.stderr + out.stdout
    return json.loads(out.stdout.splitlines()[-1])


@pytest.fixture
def before() -> dict[str, Any]:
    return told()[0]


@pytest.fixture
def after() -> dict[str, Any]:
    return told()[1]


def test_looking_starts_no_device(before: dict[str, Any]) -> None:
    assert before == {"devices": [], "placements": [], "exchanges": [], "engines": []}


def test_all_rows_are_those_of_the_schema(after: dict[str, Any]) -> None:
    for row in [*after["devices"], *after["placements"], *told()[3]]:
        validator(f"{row['row'].capitalize()}Row").validate(row)


def test_each_device_has_the_bytes_that_its_parts_have(after: dict[str, Any]) -> None:
    devices = after["devices"]
    assert [row["name"] for row in devices] == [f"cpu:{i}" for i in range(8)]
    # 8*8 floats in four parts, 4*8 in eight, and two integers on each; `alone` on the first.
    each = 8 * 8 * 4 // 4 + 4 * 8 * 4 // 8 + 2 * 4
    assert [row["bytes"] for row in devices[1:]] == [each] * 7
    assert devices[0]["bytes"] >= each + 3 * 4


def test_devices_with_the_same_part_hold_the_same_numbers(after: dict[str, Any]) -> None:
    row = next(row for row in after["placements"] if row["owner"] == "up")
    assert (row["axes"], row["sizes"]) == (["x", "y"], [2, 4])
    assert (row["bytes"], row["each"], row["copies"]) == (2 * 256, 64, 2)
    assert row["ranges"] == [":, 0:2", ":, 2:4", ":, 4:6", ":, 6:8"]
    sums = dict(told()[2])
    by_part: dict[int, set[int]] = {}
    for device, part in zip(row["devices"], row["parts"], strict=True):
        by_part.setdefault(part, set()).add(sums[device])
    assert [len(found) for found in by_part.values()] == [1] * 4
    assert len(set.union(*by_part.values())) == 4


def test_arrays_in_containers_have_their_path_and_the_largest_comes_first(
    after: dict[str, Any],
) -> None:
    rows = after["placements"]
    assert [row["owner"] for row in rows] == ["up", "held['both']", "held['whole']"]
    assert [(len(row["ranges"]), row["copies"]) for row in rows] == [(4, 2), (8, 1), (1, 8)]
    assert rows[2]["ranges"] == [":"]
    # Containers change in place, so when they were set is not known.
    assert [row["cell"] for row in rows] == ["In[1]", "", ""]


def test_what_is_sent_is_that_of_a_ring_and_stands_at_its_line() -> None:
    sent = {row["collective"]: row for row in told()[3]}
    part = 8 * 2 * 4  # the bytes of a device's part of `up`
    assert sent.keys() == {"collective-permute", "all-reduce"}
    assert len(told()[3]) == 2, "once, although it was compiled once more to be looked at"
    moved, summed = sent["collective-permute"], sent["all-reduce"]
    assert (moved["sent"], moved["times"], moved["at"]["line"]) == (3 * part, 3, 6)
    assert (summed["sent"], summed["group"], summed["at"]["line"]) == (2 * part * 3 / 4, 4, 10)
    assert 0 < moved["share"] < 1 and 0 < summed["share"] < 1
    assert moved["name"] == "f"


def test_a_program_that_is_gone_takes_its_rows_along() -> None:
    assert told()[4] == []

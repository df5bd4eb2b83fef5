"""Rows that examples and devices send each other, against a loop over all slices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax

ROOT = Path(__file__).resolve().parents[3]
N, SENT, KEPT = 4, 12, 16
RNG = np.random.default_rng(0)
SIZES = RNG.integers(0, 4, (N, N)).astype("int32")
SOURCE = (np.cumsum(SIZES, 1) - SIZES).astype("int32")
PLACE = (np.cumsum(SIZES, 0) - SIZES).astype("int32")
OFFSETS = (SOURCE, SIZES, PLACE, SIZES.T.copy())
ROWS = RNG.normal(size=(N, SENT, 2)).astype("f")
INTO = RNG.normal(size=(N, KEPT, 2)).astype("f")
WEIGHTS = RNG.normal(size=(N, KEPT, 2)).astype("f")


def exchanged(rows: np.ndarray, into: np.ndarray) -> np.ndarray:
    out = into.copy()
    for i, j in np.ndindex(N, N):
        here, there, count = SOURCE[i, j], PLACE[i, j], SIZES[i, j]
        out[j, there : there + count] = rows[i, here : here + count]
    return out


def exchange(*args: Any) -> Any:
    return lax.ragged_all_to_all(*args, axis_name="i")


def on_devices(*args: Any) -> Any:
    mesh, spec = perspex.make_mesh((N,), ("i",)), perspex.sharding.PartitionSpec("i")

    def local(*blocks: Any) -> Any:
        return exchange(*[block[0] for block in blocks])[None]

    mapped = perspex.shard_map(local, mesh=mesh, in_specs=(spec,) * 6, out_specs=spec)
    return perspex.jit(mapped)(*args)


BOTH = {"vmap": perspex.vmap(exchange, axis_name="i"), "shard_map": on_devices}


def rows_arrive(name: str) -> None:
    found = BOTH[name](ROWS, INTO, *OFFSETS)
    np.testing.assert_array_equal(found, exchanged(ROWS, INTO))


def cotangents_go_back(name: str) -> None:
    def loss(rows: Any, into: Any) -> Any:
        return (BOTH[name](rows, into, *OFFSETS) * WEIGHTS).sum()

    by_rows, by_into = perspex.grad(loss, (0, 1))(ROWS, INTO)
    wanted, rest = np.zeros_like(ROWS), WEIGHTS.copy()
    for i, j in np.ndindex(N, N):
        here, there, count = SOURCE[i, j], PLACE[i, j], SIZES[i, j]
        wanted[i, here : here + count] = WEIGHTS[j, there : there + count]
        rest[j, there : there + count] = 0
    np.testing.assert_array_equal(by_rows, wanted)
    np.testing.assert_array_equal(by_into, rest)


def batches_of_exchanges(name: str) -> None:
    factors = np.array([1, 2, -1], "f")
    rows = factors[:, None, None] * ROWS[:, None]  # (N, 3, SENT, 2)
    into = np.repeat(INTO[:, None], 3, 1)

    def many(rows: Any, into: Any, *offsets: Any) -> Any:
        return perspex.vmap(lambda r, o: exchange(r, o, *offsets))(rows, into)

    if name == "vmap":
        found = perspex.vmap(many, axis_name="i")(rows, into, *OFFSETS)
    else:
        mesh, spec = perspex.make_mesh((N,), ("i",)), perspex.sharding.PartitionSpec("i")
        f = perspex.shard_map(
            lambda *blocks: many(*[block[0] for block in blocks])[None],
            mesh=mesh,
            in_specs=(spec,) * 6,
            out_specs=spec,
        )
        found = perspex.jit(f)(rows, into, *OFFSETS)
    for k, factor in enumerate(factors):
        np.testing.assert_array_equal(np.asarray(found)[:, k], exchanged(factor * ROWS, INTO))


CHECKS = (rows_arrive, cotangents_go_back, batches_of_exchanges)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_examples(check: Any) -> None:
    check("vmap")


def test_devices() -> None:
    # A process of its own: the number of devices is chosen once.
    env = {**os.environ, "PYTHONPATH": str(ROOT / "core"), "JAX_NUM_CPU_DEVICES": str(N)}
    out = subprocess.run(
        [sys.executable, __file__], env=env, capture_output=True, text=True, timeout=300
    )
    assert out.returncode == 0, out.stderr[-3000:]
    assert out.stdout.split() == [check.__name__ for check in CHECKS]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({2: SOURCE.astype("f")}, "input_offsets must be integers"),
        ({3: SIZES[:, :3]}, "send_sizes must have one axis whose length is a multiple of the 4"),
        ({0: ROWS[..., :1]}, "must be rows of one type"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[int, Any], message: str) -> None:
    args = [change.get(i, x) for i, x in enumerate((ROWS, INTO, *OFFSETS))]
    with pytest.raises(ValueError, match=message):
        BOTH["vmap"](*args)


def test_names_and_groups() -> None:
    with pytest.raises(NameError, match="i"):
        exchange(ROWS[0], INTO[0], *[x[0] for x in OFFSETS])
    with pytest.raises(NotImplementedError, match="axis_index_groups"):
        lax.ragged_all_to_all(
            ROWS[0], INTO[0], *[x[0] for x in OFFSETS], axis_name="i", axis_index_groups=[[0], [1]]
        )


def test_a_scatter_that_is_begun_gives_what_the_scatter_gives() -> None:
    x = RNG.normal(size=(N, N, 3)).astype("f")

    def begun(x: Any) -> Any:
        future = perspex.jit(lambda x: lax.psum_scatter_start(x, "i"))(x)
        return future.done()

    found = perspex.vmap(begun, axis_name="i")(x)
    np.testing.assert_allclose(found, x.sum(0), rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    for check in CHECKS:
        check("shard_map")
        print(check.__name__)

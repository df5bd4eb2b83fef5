"""Two processes that compute together, against real JAX; and joining them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import several

import perspex
from oracle import records
from perspex import distributed

RECORD = records.read("processes")
NAMES = sorted({key.split(" / ")[1] for key in RECORD})


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    return records.ours("processes")


@pytest.mark.parametrize("name", NAMES)
def test_two_processes_see_and_compute_what_they_do_in_jax(name: str, ours: Any) -> None:
    for me in range(2):
        key = f"{me} / {name}"
        assert ours[key] == RECORD[key]


def test_every_program_has_a_record(ours: Any) -> None:
    assert ours.keys() == RECORD.keys()


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({}, ValueError, "coordinator_address"),
        ({"coordinator_address": "localhost:1"}, ValueError, "num_processes"),
        ({"coordinator_address": "localhost:1", "num_processes": 2}, ValueError, "process_id"),
        (
            {"coordinator_address": "localhost:1", "num_processes": 2, "process_id": 2},
            ValueError,
            "process_id=2",
        ),
        (
            {"coordinator_address": "localhost:1", "num_processes": 2.0, "process_id": 1},
            TypeError,
            "num_processes must be an integer",
        ),
        ({"cluster_detection_method": "pvm"}, ValueError, "cluster_detection_method"),
        ({"cluster_detection_method": "slurm"}, ValueError, "slurm"),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    given: dict[str, Any], error: type[Exception], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perspex.runtime.client.is_made", lambda: False)
    with pytest.raises(error, match=text):
        distributed.initialize(**given)


def test_joining_comes_before_the_first_device() -> None:
    perspex.devices()
    with pytest.raises(RuntimeError, match="before anything uses a device"):
        distributed.initialize("localhost:1", 2, 0)
    assert not distributed.is_initialized()


def test_training_on_the_data_of_all_gives_all_the_same_parameters() -> None:
    first, second = several.agree(several.TRAINING, devices=2)
    assert first == second
    a, b = [np.frombuffer(bytes.fromhex(text), np.float32) for text in first.split()]
    rng = np.random.default_rng(0)
    data = rng.normal(size=(16, 2))
    target = data @ [2.0, -1.0] + 0.5
    w, c = np.array([-1.0, 1.0]), 0.0
    for _ in range(20):
        rest = data @ w + c - target
        w, c = w - 0.2 * data.T @ rest / 16, c - 0.2 * rest.mean()
    np.testing.assert_allclose(np.append(a, b), np.append(w, c), rtol=0, atol=1e-6)


PREEMPTED = """
from perspex.experimental import multihost_utils
steps = []
for i in range(1000):
    if i == 5 and me == 0: os.kill(os.getpid(), signal.SIGTERM)
    multihost_utils.sync_global_devices(str(i))
    if multihost_utils.reached_preemption_sync_point(i): break
    time.sleep(0.01)
say(i)
"""


def test_all_stop_at_the_same_step_when_one_is_about_to_be_taken_away() -> None:
    first, second = several.agree(PREEMPTED, preempted=True)
    assert first == second
    assert 5 < int(first) < 999

"""Platforms: which computes, and several in one process. The others are clients of the CPU here."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex.base import xla
from perspex.runtime import capsules, client, placement, platforms


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A platform beside the CPU, with devices of its own."""
    monkeypatch.setattr(platforms, "_registered", {})
    monkeypatch.setattr(client, "_clients", dict(client._clients))
    monkeypatch.setattr(client, "_asked", dict(client._asked))
    platforms.register("second", lambda: xla.make_cpu_client(num_devices=3), 100)
    yield "second"


def test_beside_the_cpu(second: str) -> None:
    perspex.devices("cpu")  # is there before
    assert perspex.device_count("second") == 3
    assert perspex.default_backend() == "cpu"
    there, here = perspex.devices("second")[1], perspex.devices()[0]
    assert there != here
    x = perspex.device_put(np.arange(4.0), there)
    assert x.devices() == {there}
    y = perspex.jit(lambda x: x * 2)(x)
    assert y.devices() == {there}
    back = perspex.device_put(y, here)
    assert back.devices() == {here}
    np.testing.assert_array_equal(back + pnp.ones(4), [1, 3, 5, 7])
    with pytest.raises(ValueError, match="committed to different devices"):
        x + back


def test_one_client_by_all_names(second: str) -> None:
    assert client.client("second") is client.client("SECOND") is client.client("second,cpu")
    with perspex.default_device("second"):
        assert pnp.ones(3).devices() == {perspex.devices("second")[0]}


def test_best_of_several(second: str) -> None:
    made = []
    platforms.register("slow", lambda: made.append("slow"), 1)
    name, found = platforms.best() or ("", None)
    assert name == "second" and found.device_count() == 3
    assert not made


def test_error_names_all(second: str) -> None:
    with pytest.raises(RuntimeError, match=r"Unknown backend 'third'.*\['second', 'cpu'\]"):
        perspex.devices("third")


def test_one_that_may_not_fail(second: str) -> None:
    def fails() -> None:
        raise RuntimeError("there is no power")

    platforms.register("loud", fails, 200, may_fail=False)
    with pytest.raises(RuntimeError, match="there is no power"):
        platforms.best()
    platforms.register("loud", fails, 200)
    with pytest.warns(RuntimeWarning, match="'loud' cannot be used: there is no power"):
        assert platforms.best() is not None
    with pytest.raises(RuntimeError, match="Unable to initialize backend 'loud': there is no"):
        perspex.devices("loud")


class Gpu:
    """What jaxlib says of a GPU: the names `gpu` of the client and of its devices."""

    platform, _raw_platform = "gpu", "rocm"
    id = local_hardware_id = 0

    def __init__(self, **stats: int) -> None:
        self.stats, self.client = stats, self

    def memory_stats(self) -> dict[str, int]:
        return self.stats

    def __str__(self) -> str:
        return "rocm:0"


def test_the_name_gpu_is_not_lowered_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are for `cuda` or `rocm`; no rule knows `gpu`."""
    assert placement.platform_of(Gpu()) == "rocm"
    assert client.lowered_as("gpu") == "cuda" and client.lowered_as("tpu") == "tpu"
    monkeypatch.setattr(client, "_clients", {"rocm": Gpu()})
    assert client.lowered_as("gpu") == "rocm"
    monkeypatch.setattr(client, "default_device", Gpu)
    choice = lax.platform_dependent(cpu=lambda: "cpu", rocm=lambda: "rocm", default=lambda: "none")
    assert choice == "rocm"
    assert capsules.KINDS[xla.platform_of(Gpu())] == 10

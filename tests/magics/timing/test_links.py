"""The predicted part of the time of communication, against figures calculated by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import perspex
from perspex import config
from perspex.sharding import AbstractMesh, NamedSharding
from perspex_magics.commands.cost import cost_of
from perspex_magics.timing import links

ROOT = Path(__file__).resolve().parents[3]


def test_a_prediction_for_devices_that_are_not_there() -> None:
    """16 devices add up a product: a ring sends 2 * 15 / 16 of the result, at the rates given."""
    mesh = AbstractMesh((16,), ("x",))

    def given(*spec: str | None) -> perspex.ShapeDtypeStruct:
        place = NamedSharding(mesh, perspex.P(*spec))
        return perspex.ShapeDtypeStruct((64, 64), np.float32, sharding=place)

    def product(a: perspex.Array, b: perspex.Array) -> perspex.Array:
        return perspex.numpy.matmul(a, b, out_sharding=NamedSharding(mesh, perspex.P()))

    traced = perspex.jit(product).trace(given(None, "x"), given("x"))
    assert links.known_rates() is None or links.measured.cache_info().currsize
    with config.link_bandwidth(1e6), config.device_flops(1e9):
        report = cost_of("product", traced)
    sending = 4 * 64 * 64 * 2 * 15 / 16 / 1e6
    computing = 2 * 64**3 / 16 / 1e9
    part = 100 * sending / (sending + computing)
    (row,) = [row for row in repr(report).splitlines() if row.startswith("all-reduce")]
    assert "30.0 KiB" in row
    assert float(row.rsplit(" ", 2)[-2]) == pytest.approx(part, rel=0.01)


@pytest.mark.parametrize("wrong", [0, -1.0, "fast"])
def test_a_rate_is_a_positive_number(wrong: object) -> None:
    with pytest.raises(ValueError):
        config.update("link_bandwidth", wrong)
    assert config.link_bandwidth.value is None


PROGRAM = """
from perspex_magics.timing import links
assert links.known_rates() is None
rates = links.measured()
assert links.known_rates() == rates and links.measured() is rates
print(rates.bandwidth, rates.flops)
"""


def test_rates_are_measured_once_on_all_devices() -> None:
    env = {**os.environ, "JAX_NUM_CPU_DEVICES": "4"}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "core"), str(ROOT / "magics")])
    out = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    bandwidth, flops = map(float, out.stdout.split())
    # More than a modem, less than any memory: what is measured is no other unit.
    assert 1e5 < bandwidth < 1e13 and 1e6 < flops < 1e15


def test_one_device_has_no_rate() -> None:
    with pytest.raises(ValueError, match="one device sends nothing"):
        links.measured()

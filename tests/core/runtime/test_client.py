"""More than one device: two CPU devices, in a process of their own; and the platform by default."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from perspex import config
from perspex.runtime import client, platforms

CORE = Path(__file__).resolve().parents[3] / "core"

PRELUDE = """
import numpy as np, perspex, perspex.numpy as pnp
d0, d1 = perspex.devices()
x = np.arange(4, dtype=np.float32)
"""

CASES = {
    "committed arrays decide": """
a = perspex.device_put(x, d1)
out = perspex.jit(lambda v: v + 1)(a)
assert out.device == d1 and out.committed
assert perspex.jit(lambda v: v + 1)(a).device == d1
assert (a + 1).device == d1
""",
    "uncommitted arrays follow": """
a, b = perspex.device_put(x, d1), perspex.device_put(x)
assert b.device == d0 and not b.committed
for _ in range(2):
    assert (a + b).device == d1
    assert perspex.jit(lambda u, v: u * v)(b, a).device == d1
""",
    "disagreement is an error": """
a, b = perspex.device_put(x, d0), perspex.device_put(x, d1)
try: perspex.jit(lambda u, v: u + v)(a, b)
except ValueError as e: assert "different devices" in str(e) and "device_put" in str(e), e
else: raise AssertionError
""",
    "default_device": """
with perspex.default_device(d1):
    assert perspex.device_put(x).device == d1
    out = perspex.jit(lambda v: v + 2)(x)
    assert out.device == d1 and not out.committed
assert perspex.jit(lambda v: v + 2)(x).device == d0
""",
    "typed keys decide too": """
from perspex import random
key, other = perspex.device_put(random.key(3), d1), perspex.device_put(random.key(3), d0)
split = perspex.jit(lambda k: (random.split(k), random.key_data(k)))
for _ in range(2):
    keys, numbers = split(key)
    assert keys.device == numbers.device == d1 and numbers.committed
    assert random.normal(key, (2,)).device == d1
    assert split(random.key(3))[0].device == split(other)[0].device == d0
    try: perspex.jit(lambda a, b: (a, b))(key, other)
    except ValueError as e: assert "different devices" in str(e), e
    else: raise AssertionError
""",
    "moving": """
a = perspex.device_put(x, d0)
b = perspex.device_put(a, d1)
assert b.device == d1 and a.device == d0
assert perspex.device_put(b, d1) is b
np.testing.assert_array_equal(b, x)
assert a.to_device(d1).device == d1
""",
    "jit with a device": """
out = perspex.jit(lambda v: v * 2, device=d1)(x)
assert out.device == d1
""",
}


RUNNER = """
import json, sys, traceback
wrong = {}
for name, code in json.load(sys.stdin).items():
    try: exec(code, {})
    except BaseException: wrong[name] = traceback.format_exc()
print(json.dumps(wrong))
"""


@pytest.fixture(scope="module")
def wrong() -> dict[str, str]:
    """What went wrong with each case, each with names of its own, in one process with devices."""
    env = {**os.environ, "PYTHONPATH": str(CORE), "JAX_NUM_CPU_DEVICES": "2"}
    codes = json.dumps({name: PRELUDE + code for name, code in CASES.items()})
    out = subprocess.run(
        [sys.executable, "-c", RUNNER], env=env, input=codes, capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


@pytest.mark.parametrize("name", CASES)
def test_two_devices(name, wrong) -> None:
    assert name not in wrong, wrong[name]


def test_what_is_expected_to_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without starting anything: the flag, the first plugin, or the processor."""
    monkeypatch.setattr(client, "_asked", {})
    monkeypatch.setattr(client, "_started", lambda asked: pytest.fail("was started"))
    plugins = [platforms.Platform("cuda", print, 200), platforms.Platform("odd", print, 0)]
    monkeypatch.setattr(client.platforms, "known", lambda: plugins)
    with config.platforms(None):
        assert client.expected() == "cuda"
        monkeypatch.setattr(client.platforms, "known", lambda: plugins[1:])
        assert client.expected() == "cpu"
        client._asked[client._BEST] = SimpleNamespace(_raw_platform="rocm")
        assert client.expected() == "rocm"
    with config.platforms("TPU,cpu"):
        assert client.expected() == "tpu"

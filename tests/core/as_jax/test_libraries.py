"""The small libraries inside of JAX compute here what they compute there.

Real jax 0.12 ran `oracle/recorders/libraries.py` for the records; here Perspex runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle.records import read

ROOT = Path(__file__).resolve().parents[3]
THEIRS: dict[str, Any] = read("libraries")

CHILD = """
import json
import perspex.as_jax
from oracle.recorders import libraries
print(json.dumps(libraries.record()))
"""


@cache
def ours() -> dict[str, Any]:
    path = os.pathsep.join(str(ROOT / part) for part in ("core", "magics", "tests"))
    env = {**os.environ, "PYTHONPATH": path}
    args = [sys.executable, "-c", CHILD]
    out = subprocess.run(args, env=env, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


@pytest.mark.parametrize("key", THEIRS)
def test_as_in_jax(key: str) -> None:
    theirs, found = THEIRS[key], ours()[key]
    if isinstance(theirs, list):
        np.testing.assert_allclose(found, theirs, rtol=2e-5, atol=2e-6)
    else:
        assert found == theirs

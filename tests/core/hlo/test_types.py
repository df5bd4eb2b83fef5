"""MLIR's types and attributes: what jaxlib imports for them survives an interrupt."""

from __future__ import annotations

import subprocess
import sys

import pytest

# An interrupt comes while jaxlib's description of a dialect is imported, at the first lowering.
PROGRAM = """
import os, signal, sys
import numpy as np
import perspex, perspex.numpy as jnp
from perspex import lax

class Interrupts:
    count = 0
    def find_spec(self, name, path=None, target=None):
        if name == "jaxlib.mlir.dialects.{dialect}":
            Interrupts.count += 1
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
f = perspex.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: c + jnp.sin(x), x))
x = np.ones(3, np.float32)
try:
    f(x)
except KeyboardInterrupt:
    print("interrupted")
np.testing.assert_allclose(f(x), 1 + 3 * np.sin(x), rtol=1e-5)
assert Interrupts.count == 1
print("right")
"""


@pytest.mark.parametrize("dialect", ["builtin", "stablehlo"])
def test_an_interrupt_of_the_first_lowering(dialect: str) -> None:
    program = PROGRAM.replace("{dialect}", dialect)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "interrupted\nright\n"), run.stderr

"""Names of JAX that Perspex does not have."""

from __future__ import annotations

from as_jax_programs import check

PROGRAM = """
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu
from jax.experimental import serialize_executable as files
from jax.extend import ifrt_programs
for use in (lambda: pl.pallas_call(lambda: 0), lambda: tpu.VMEM, lambda: tpu.VMEM.size,
            files.serialize):
    try:
        print(type(use()).__name__)
    except NotImplementedError as error:
        print(str(error)[:47])
print(hasattr(pl.BlockSpec, "nothing"), isinstance(1, pl.BlockSpec), 1 in (pl.BlockSpec,))
class Spec(pl.BlockSpec): pass
try: Spec()
except NotImplementedError as error: print("refused")
try: ifrt_programs.nothing
except AttributeError as error: print(isinstance(error, NotImplementedError))
"""

EXPECTED = """
Perspex has no `jax.experimental.pallas.pallas_
_Kind
Perspex has no `jax.experimental.pallas.tpu.VME
Perspex has no `jax.experimental.serialize_exec
False False False
refused
False
"""


def test_absent_names_can_be_imported_and_refuse_use(tmp_path) -> None:
    check(PROGRAM, EXPECTED, tmp_path)

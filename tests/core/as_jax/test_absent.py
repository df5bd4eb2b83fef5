"""Names of JAX that Perspex does not have."""

from __future__ import annotations

from as_jax_programs import check

PROGRAM = """
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu
from jax.experimental import roofline as lines
from jax.extend import ifrt_programs
for use in (lambda: pl.pallas_call(lambda: 0), lambda: tpu.VMEM, lambda: tpu.VMEM.size,
            lines.roofline):
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
Perspex has no `jax.experimental.roofline.roofl
False False False
refused
False
"""


def test_absent_names_can_be_imported_and_refuse_use(tmp_path) -> None:
    check(PROGRAM, EXPECTED, tmp_path)


# The use of anything in a module that is missing as a whole names the module and the page.
MODULES = """
import importlib
for name, used in [
    ("pallas", "pallas_call"), ("pallas.tpu", "VMEM"), ("pallas.triton", "load"),
    ("pallas.mosaic_gpu", "kernel"), ("mosaic", "gpu"), ("jax2tf", "convert"),
    ("colocated_python", "colocated_python"), ("topologies", "get_topology_desc"),
    ("array_serialization.serialization", "get_tensorstore_spec"), ("key_reuse", "call_consts"),
    ("buffer_callback", "buffer_callback"), ("fused", "fused"), ("profiler", "get_profiled"),
    ("rnn", "lstm"), ("roofline", "roofline"), ("scheduling_groups", "scheduling_group"),
    ("source_mapper", "generate_sourcemaps"), ("transfer", "start_transfer_server"),
]:
    full = f"jax.experimental.{name}"
    module = importlib.import_module(full)
    for use in (lambda: getattr(module, used)(), lambda: getattr(module, used).attribute):
        try: use()
        except NotImplementedError as error:
            if not (f"`{full}.{used}" in str(error) and "docs/names.md" in str(error)):
                print(full, error)
        else: print(full, "does not refuse")
for use in ("import jax.experimental.nothing", "import jax.numpy.nothing"):
    try: exec(use)
    except ModuleNotFoundError as error: print("docs/names.md" in str(error))
try: importlib.import_module("jax.numpy").nothing
except AttributeError as error: print("docs/names.md" in str(error))
try: importlib.import_module("jax._src.pjit")
except ImportError as error: print("docs/libraries.md" in str(error))
"""


def test_missing_modules_name_themselves_and_the_page(tmp_path) -> None:
    check(MODULES, "True\nTrue\nTrue\nTrue", tmp_path)

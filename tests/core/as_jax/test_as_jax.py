"""`import jax` that gives Perspex, and the guard that keeps the two apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from as_jax_programs import check

import perspex
from oracle.records import read

CORE = Path(__file__).resolve().parents[3] / "core"

# A package called jax that would be imported if ours did not come first.
FAKE_JAX = "raise RuntimeError('the installed jax was imported')"


def run(code: str, tmp_path: Path, *argv: str, fake: str = FAKE_JAX):
    site = tmp_path / "site"
    (site / "jax").mkdir(parents=True, exist_ok=True)
    (site / "jax" / "__init__.py").write_text(fake)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(CORE), str(site)])}
    args = [sys.executable, *argv] if argv else [sys.executable, "-c", code]
    return subprocess.run(args, env=env, cwd=tmp_path, capture_output=True, text=True)


def test_every_form_of_import(tmp_path) -> None:
    out = run(
        """
import perspex.as_jax
import jax, jax.numpy as jnp
import jax.tree_util as tu
from jax import jit, lax, random, config
from jax.numpy import sin
import jax.scipy as jsp
from jax.scipy.special import logsumexp
from jax.errors import TracerBoolConversionError
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero, custom_jvp
import perspex
assert jit is perspex.jit and sin is perspex.numpy.sin
assert tu.tree_map(lambda v: v + 1, {"a": 1}) == {"a": 2}
config.update("jax_enable_x64", True)
assert jnp.ones(2).dtype == "float64" and jax.config.jax_enable_x64
assert jax.__version__ == "0.12.0"
assert isinstance(jnp.ones(2), jax.Array)
import pickle
assert pickle.loads(b"cjax.numpy\\nconcatenate\\n.") is jnp.concatenate
print(jit(lambda x: jax.nn.relu(x))(jnp.array([-1.0, 2.0])))
""",
        tmp_path,
    )
    assert (out.stdout, out.stderr) == ("[0. 2.]\n", "")


def test_missing_names_say_so(tmp_path) -> None:
    out = run(
        """
import perspex.as_jax, jax, jax.numpy as jnp
for f in (lambda: jax.no_such_thing, lambda: jnp.no_such_thing):
    try: f()
    except AttributeError as e: print(e)
try: from jax import nonsense
except ImportError as e: print(e)
try: import jax.experimental.nonsense
except ModuleNotFoundError as e: print(e)
try: import jax._src.no_such_module
except ImportError as e: print(e)
""",
        tmp_path,
    )
    lines = out.stdout.splitlines()
    assert len(lines) == 5, out.stderr
    assert all("docs/names.md" in lines[i] for i in (0, 1, 3))
    assert f"Perspex {perspex.__version__} has no `jax.no_such_thing`" in lines[0]
    assert f"Perspex {perspex.__version__} has no `jax.numpy.no_such_thing`" in lines[1]
    assert "nonsense" in lines[2]
    assert f"Perspex {perspex.__version__} has no module" in lines[3]
    assert "private modules" in lines[4]


def test_importing_perspex_never_imports_jax(tmp_path) -> None:
    out = run("import perspex, perspex.numpy, sys; print('jax' in sys.modules)", tmp_path)
    assert out.stdout == "False\n", out.stderr


def test_jax_after_perspex_is_refused_with_the_reason(tmp_path) -> None:
    out = run(
        """
import perspex, importlib.util
try: import jax
except ImportError as e: print(e)
import perspex.numpy as pnp
print(pnp.ones(2) + 1)
""",
        tmp_path,
    )
    assert "both give jaxlib's array class its methods" in out.stdout, out.stderr
    assert "perspex.as_jax" in out.stdout and out.stdout.endswith("[2. 2.]\n")


def test_perspex_after_jax_is_refused_with_the_reason(tmp_path) -> None:
    out = run(
        "import jax\ntry: import perspex\nexcept ImportError as e: print(e)", tmp_path, fake=""
    )
    assert "jax is already imported in this process" in out.stdout, out.stderr


def test_run_a_script_and_a_module(tmp_path) -> None:
    (tmp_path / "prog.py").write_text(
        "import sys, jax.numpy as jnp\n"
        "if __name__ == '__main__': print(sys.argv[1:], jnp.arange(int(sys.argv[1])).sum())\n"
    )
    module = "perspex.as_jax"
    for argv in (["prog.py", "5"], ["-m", "prog", "5"]):
        out = run("", tmp_path, "-m", module, *argv)
        assert out.stdout == "['5'] 10\n", out.stderr
    assert run("", tmp_path, "-m", module, "missing.py").returncode == 1
    assert "usage" in run("", tmp_path, "-m", module, "--help").stdout


FORMS = """
import jax.numpy.linalg
import jax.scipy.special as s
import jax.scipy.stats.norm
from jax.scipy import stats
from jax.scipy.sparse.linalg import cg
import importlib; importlib.import_module("jax.nn.initializers").glorot_normal
from jax.experimental import io_callback, mesh_utils
from jax import config, checkpoint_policies; checkpoint_policies.everything_saveable
import jax; jax.scipy.sparse.linalg.cg
import jax.ops; jax.ops.segment_sum
from jax.version import __version__, __version_info__
from jax.numpy import *; sin, linalg, float32, einsum
from jax.lax import *; sin, sin_p, linalg
from jax import *; jit, numpy, scipy
"""
REFUSED = """
import jax.control
import jax.jitted
import jax.base
import jax.base.xla
import jax.as_jax
import jax.config
import jax.events
import jax.numpy.transcendental
import jax.numpy.segments
import jax._src.no_such_module
from jax import control
from jax import base
from jax import events
from jax import load_ipython_extension
from jax.numpy import arithmetic
from jax.tree import flatten_axes
"""


def test_every_public_module_in_every_form_and_no_other(tmp_path) -> None:
    out = run(
        f"""
import perspex.as_jax
for line in {(FORMS + REFUSED).strip().splitlines()!r}:
    try: exec(line, {{}})
    except Exception as e: print(type(e).__name__, "|", line)
""",
        tmp_path,
    )
    refused = [line.partition(" | ") for line in out.stdout.splitlines()]
    assert [line for _, _, line in refused] == REFUSED.strip().splitlines(), out.stderr
    kinds = {line: kind for kind, _, line in refused}
    assert kinds["from jax import control"] == "ImportError"
    assert kinds["import jax.control"] == "ModuleNotFoundError"


# What Perspex adds to modules of jax, besides the views of the notebook. Some names are of earlier
# versions of jax; `dir(jax.scipy)` leaves out a module that it has.
OURS = {
    "jax": {"load", "save", "watch_loops"},
    "jax.ad_checkpoint": {"checkpoint", "remat"},
    "jax.core": {
        "ClosedJaxpr",
        "Jaxpr",
        "JaxprEqn",
        "Literal",
        "Primitive",
        "Var",
        "pytype_aval_mappings",
    },  # fmt: skip
    "jax.errors": {
        "ProcessEndedError",
        "ProgramMismatchError",
        "StaleCaptureError",
        "StaleCaptureWarning",
        "TracerTruthValueError",
    },
    "jax.experimental": {"serialize_executable", "shard_map"},
    "jax.lax": {"zeros_like_array"},
    "jax.numpy.linalg": {"EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult"},
    "jax.random": {"reuse"},
    "jax.scipy": {"optimize", "spatial"},
    "jax.typing": {"Array"},
}


def test_modules_list_what_they_give_and_have_names_of_jax(tmp_path) -> None:
    out = run(
        """
import importlib, json
import perspex.as_jax
found = {}
names = perspex.as_jax._TARGETS.keys() - perspex.as_jax._INSIDE.keys()
# Some that have no names of their own in JAX's documentation.
bare = {"jax.example_libraries", "jax.memory", "jax.scipy.spatial"}
bare |= {f"jax.experimental.{name}" for name in (
    "compilation_cache", "pjit", "serialize_executable", "shard_map")}
for name in names - bare | {"jax.core"}:
    module = importlib.import_module(name)
    assert [n for n in dir(module) if not hasattr(module, n)] == [], name
    found[name] = [n for n in module.__all__ if n[0] != "_"]
print(json.dumps(found))
""",
        tmp_path,
    )
    found = json.loads(out.stdout)
    known: dict[str, set[str]] = {name: set() for name in found}
    for module, _, name in (key.partition(" / ") for key in read("signatures")):
        known.setdefault(module, set()).add(name)
    assert all(known.values()), "no module of jax's"
    extra = {name: set(names) - known[name] for name, names in found.items()}
    assert {name: names for name, names in extra.items() if names} == OURS


ABSL = """
import sys, jax
from absl import app
sys.argv = ["program", "--jax_enable_x64", "--jax_default_matmul_precision=high", "rest"]
jax.config.config_with_absl()
app.run(lambda argv: print(
    argv[1:], jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision))
"""

PARSED = """
import sys, jax
sys.argv = ["program", "--jax_enable_x64", "--other=2"]
jax.config.parse_flags_with_absl()
print(jax.config.jax_enable_x64, jax.config.jax_numpy_rank_promotion)
"""


def test_options_of_a_program_with_absl(tmp_path) -> None:
    pytest.importorskip("absl")
    check(ABSL, "['rest'] True high", tmp_path)
    check(PARSED, "True allow", tmp_path)

"""`import jax` that gives Perspex, and the guard that keeps the two apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
try: import jax._src.core
except ImportError as e: print(e)
""",
        tmp_path,
    )
    lines = out.stdout.splitlines()
    assert len(lines) == 5, out.stderr
    assert all("docs/names.md" in lines[i] for i in (0, 1, 3))
    assert "Perspex 0.1.0 has no `jax.no_such_thing`" in lines[0]
    assert "Perspex 0.1.0 has no `jax.numpy.no_such_thing`" in lines[1]
    assert "nonsense" in lines[2]
    assert "Perspex 0.1.0 has no module" in lines[3]
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

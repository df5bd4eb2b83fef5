"""What all tests share: a Jupyter set-up of our own, apart from that of the machine."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import quick

from perspex import config
from perspex.runtime.compiler import cache

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [ROOT / "core", ROOT / "magics", ROOT / "kernel"]

# Not a module: a program, which imports jax.
RECORDERS = (
    "device_collectives device_compositions device_explicit device_programs device_types exports "
    "explicit_axes meshes processes shard_maps shardings"
)
collect_ignore = [f"oracle/recorders/{name}.py" for name in RECORDERS.split()]
collect_ignore.append("oracle/on_devices.py")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Tens of thousands of tests are no garbage: keep the collector from looking through them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def jupyter_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Jupyter and IPython home in a temporary folder, where `perspex` is a known kernel.

    The kernelspec is the one in the source tree, which kernels started from here import.
    """
    home = tmp_path_factory.mktemp("home")
    kernels = home / "data" / "kernels"
    kernels.mkdir(parents=True)
    (kernels / "perspex").symlink_to(ROOT / "kernel" / "kernelspec")
    path = [*map(str, SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CONFIG", "DATA", "RUNTIME"):
            (home / name.lower()).mkdir(exist_ok=True)
            patch.setenv(f"JUPYTER_{name}_DIR", str(home / name.lower()))
        # In a virtual environment its own folder would come first, with what was installed there.
        patch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
        patch.setenv("IPYTHONDIR", str(home / "ipython"))
        patch.setenv("XDG_CACHE_HOME", str(home / "cache"))
        patch.setenv("MPLCONFIGDIR", str(home / "matplotlib"))
        patch.setenv("PYTHONPATH", os.pathsep.join(path))
        patch.delenv("PERSPEX_AS_JAX", raising=False)
        yield home


@pytest.fixture(autouse=True, scope="module")
def compiler_options(request: pytest.FixtureRequest) -> Iterator[None]:
    """What tests compile with, also in threads that they start: see `tests/support/quick.py`."""
    usual = config.read("compiler_options")
    config.update("compiler_options", quick.options(request.path))
    yield
    config.update("compiler_options", usual)


@pytest.fixture
def compiled_here() -> Iterator[None]:
    """No cache knows any program, for a test that reads what XLA wrote about its source."""
    cache.forget()
    with config.compilation_cache_dir(None):
        yield


@pytest.fixture
def optimized() -> Iterator[None]:
    """XLA's usual options, for a test in which its optimizations matter."""
    with config.compiler_options({}):
        yield

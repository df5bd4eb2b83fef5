"""Plugins: found, loaded, given their options, left out or refused, with a stub as the plugin."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perspex.base import xla
from perspex.runtime import plugins

STUB = Path(__file__).with_name("stub_plugin.c")
compiler = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(compiler is None, reason="the stub plugin needs a C compiler")


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of a plugin that finds no devices."""
    library = tmp_path_factory.mktemp("stub") / "stub.so"
    assert compiler is not None
    command = [compiler, "-shared", "-fPIC", "-DSTUB_MINOR=112", "-o", str(library), str(STUB)]
    subprocess.run(command, check=True)
    return library


def install(site: Path, stub: Path, *names: str) -> None:
    """Put the stub where the packages of plugins have their libraries."""
    for name in names:
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(stub, path)


CUDA, TPU = "jax_plugins/xla_cuda13/xla_cuda_plugin.so", "libtpu/libtpu.so"


def run(site: Path, code: str, **environment: str) -> list[str]:
    """What a process says in which the packages in `site` are installed."""
    around = os.environ | {
        "PYTHONPATH": os.pathsep.join([*sys.path, str(site)]),
        "STUB_PLUGIN_OPTIONS": str(site / "options"),
        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    for name in ("PERSPEX_PLATFORMS", "JAX_PLATFORMS", plugins.VARIABLE):
        around.pop(name, None)
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=around | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


# The devices that compute by default, and what was said of others, by line.
WHO = """
import warnings
import perspex
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    try:
        print(perspex.devices()[0].platform, perspex.numpy.arange(3).sum())
        perspex.devices("cpu"), perspex.numpy.ones(3)
    except RuntimeError as error:
        print("RuntimeError:", error)
for warning in told:
    print(warning.message)
"""


def test_order(tmp_path: Path, stub: Path) -> None:
    install(tmp_path, stub, CUDA, TPU, "jax_plugins/xla_rocm7/xla_rocm_plugin.so")
    code = """
from perspex.runtime import platforms
print(*[platform.name for platform in platforms.known()])
"""
    named = {plugins.VARIABLE: f"mine:{stub},CUDA:{stub}"}
    assert run(tmp_path, code, **named) == ["tpu cuda rocm mine"]


def test_falls_back(tmp_path: Path, stub: Path) -> None:
    """Without a device, the CPU computes, and one line says why."""
    install(tmp_path, stub, CUDA)
    who, told = run(tmp_path, WHO)
    assert who == "cpu 3"
    assert "'cuda' cannot be used: FAILED_PRECONDITION: No visible stub devices" in told


def test_falls_through(tmp_path: Path, stub: Path) -> None:
    """All are tried, each with its reason."""
    install(tmp_path, stub, CUDA)
    (tmp_path / TPU).parent.mkdir()
    (tmp_path / TPU).write_text("no library")
    who, tpu, cuda = run(tmp_path, WHO)
    assert who == "cpu 3"
    assert "'tpu' cannot be used: " in tpu and "libtpu.so" in tpu
    assert "'cuda'" in cuda


@pytest.mark.parametrize("asked", ["cuda", "gpu", "cuda,cpu"])
def test_asked_for_by_name(tmp_path: Path, stub: Path, asked: str) -> None:
    """Then there is no other that computes instead."""
    install(tmp_path, stub, CUDA)
    (error,) = run(tmp_path, WHO, JAX_PLATFORMS=asked)
    assert error.startswith("RuntimeError: Unable to initialize backend 'cuda': FAILED_PRECON")
    assert "PERSPEX_PLATFORMS=cpu" in error


def test_asked_for_the_cpu(tmp_path: Path, stub: Path) -> None:
    """Then nothing is loaded, and nothing said."""
    install(tmp_path, stub, CUDA)
    assert run(tmp_path, WHO, PERSPEX_PLATFORMS="cpu") == ["cpu 3"]
    assert not (tmp_path / "options").exists()


def test_options(tmp_path: Path, stub: Path) -> None:
    install(tmp_path, stub, CUDA)
    memory = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.25", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    run(tmp_path, WHO, **memory)
    options = dict(line.split("=") for line in (tmp_path / "options").read_text().splitlines())
    assert options["platform_name"] == "cuda"
    assert options["memory_fraction"] == "0.25"
    assert options["preallocate"] == "false"


def test_other_version(tmp_path: Path, stub: Path) -> None:
    install(tmp_path, stub, CUDA)
    about = tmp_path / "jax_cuda13_pjrt-0.5.1.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text("Metadata-Version: 2.1\nName: jax-cuda13-pjrt\nVersion: 0.5.1\n")
    who, told = run(tmp_path, WHO)
    assert who == "cpu 3"
    assert f"jax-cuda13-pjrt 0.5.1 does not fit jaxlib {xla.JAXLIB_VERSION}" in told
    assert f"pip install 'jax-cuda13-plugin=={xla.JAXLIB_VERSION}'" in told


def test_bad_variable(tmp_path: Path) -> None:
    code = """
import perspex
try:
    perspex.devices()
except ValueError as error:
    print(error)
"""
    (told,) = run(tmp_path, code, **{plugins.VARIABLE: "nonsense"})
    assert plugins.VARIABLE in told and "name:/path" in told


def test_plugins_of_others(tmp_path: Path, stub: Path) -> None:
    """A plugin with a function that registers it with JAX registers it here."""
    package = tmp_path / "jax_plugins" / "other" / "__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text(
        "import jax._src.xla_bridge as bridge\n"
        "def initialize():\n"
        f"    bridge.register_plugin('other', priority=500, library_path={str(stub)!r},\n"
        "                           options={'depth': 3})\n"
    )
    who, told = run(tmp_path, "import perspex.as_jax" + WHO)
    assert who == "cpu 3" and "'other' cannot be used" in told
    assert (tmp_path / "options").read_text() == "depth=3\n"


# ---- What NVIDIA's libraries have to be ----------------------------------------------------------


def versions(**changes: Any) -> Any:
    """A module of versions as the plugin has it: all libraries as they were when it was built."""
    built = {
        "cuda_runtime": 13000,
        "cudnn": 91200,
        "cufft": 12000,
        "cupti": 28,
        "cublas": 130000,
        "cusparse": 12600,
    }

    def getter(value: Any) -> Any:
        def get() -> int:
            if isinstance(value, Exception):
                raise value
            return int(value)

        return get

    found = built | changes
    functions = {f"{name}_build_version": getter(value) for name, value in built.items()}
    functions |= {f"{name}_get_version": getter(value) for name, value in found.items()}
    return SimpleNamespace(**functions)


@pytest.mark.parametrize("changes", [{}, {"cudnn": 91203}, {"cupti": 20}, {"cublas": 121000}])
def test_fitting_libraries(changes: dict[str, int]) -> None:
    plugins.check_cuda(versions(**changes))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cudnn": 90800}, "cuDNN 90800 is older"),
        ({"cudnn": RuntimeError("not found")}, "cuDNN could not be loaded: not found"),
        ({"cuda_runtime": 12000}, "CUDA 12000 is older"),
        ({"cublas": 110000}, "cuBLAS 110000 is older"),
        ({"cupti": 17}, "cuPTI 17 is older"),
    ],
)
def test_other_libraries(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(RuntimeError, match=told) as found:
        plugins.check_cuda(versions(**changes))
    assert "perspex[cuda13]" in str(found.value)


def test_wrong_cudnn() -> None:
    built = versions(cudnn=91000)
    built.cudnn_build_version = lambda: 90800
    with pytest.raises(RuntimeError, match=r"cuDNN 9\.10\.0"):
        plugins.check_cuda(built)


@pytest.mark.parametrize(
    ("trace", "told"),
    [
        ("/dev/nvidiactl", r"an NVIDIA GPU.*perspex\[cuda13\]"),
        ("/dev/kfd", r"an AMD GPU.*perspex\[rocm7\]"),
        ("/dev/accel0", r"a TPU.*perspex\[tpu\]"),
    ],
)
def test_accelerator_without_plugin(monkeypatch: pytest.MonkeyPatch, trace: str, told: str) -> None:
    import re

    monkeypatch.setattr(os.path, "exists", lambda path: path == trace)
    assert re.search(told, plugins.missing())


def test_no_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    assert plugins.missing() == ""

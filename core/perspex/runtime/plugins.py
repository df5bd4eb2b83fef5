"""PJRT plugins that are installed: shared libraries that compute on accelerators.

A plugin lies in a package of its own, whose Python side is written for JAX and imports it. So
nothing of those that are known is imported here: the package is found, and the library in it. Other
plugins have a function that registers them, which can run where the name `jax` means Perspex.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from perspex.base import source, xla

# Folders of the package `jax_plugins`: the platform, its library, and the package with the
# functions that programs call there.
_FOLDERS = {
    "xla_cuda13": ("cuda", "xla_cuda_plugin.so", "jax_cuda13_plugin"),
    "xla_cuda12": ("cuda", "xla_cuda_plugin.so", "jax_cuda12_plugin"),
    "xla_rocm10": ("rocm", "xla_rocm_plugin.so", "jax_rocm10_plugin"),
    "xla_rocm7": ("rocm", "xla_rocm_plugin.so", "jax_rocm7_plugin"),
    "xla_rocm60": ("rocm", "xla_rocm_plugin.so", "jax_rocm60_plugin"),
}
VARIABLE = "PJRT_NAMES_AND_LIBRARY_PATHS"

# What a machine has that holds an accelerator, and the extra of Perspex that computes on it.
_TRACES = (
    ("an NVIDIA GPU", ("/proc/driver/nvidia/version", "/dev/nvidiactl"), "cuda13"),
    ("an AMD GPU", ("/dev/kfd",), "rocm7"),
    ("a TPU", ("/dev/accel0",), "tpu"),
)

# NVIDIA's libraries in the order in which they need one another.
_LIBRARIES = [
    "cudart",
    "nvrtc",
    "cublasLt",
    "cublas",
    "nccl",
    "cupti",
    "cusparse",
    "cusolver",
    "cufft",
    "nvshmem_host",
    "cudnn",
]
# Their names in the plugin's module of versions, what of the version it was built for may differ,
# and the oldest that works.
_VERSIONS = (
    ("CUDA", "cuda_runtime", 10, 12010),
    ("cuDNN", "cudnn", 100, 0),
    ("cuFFT", "cufft", 100, 0),
    ("cuPTI", "cupti", 1, 18),
    ("cuBLAS", "cublas", 100, 120100),
    ("cuSPARSE", "cusparse", 100, 12100),
)
# Renamed enumerations give other results than those that were asked for.
_BAD_CUDNN = 91000
_UNCHECKED = "JAX_SKIP_CUDA_CONSTRAINTS_CHECK"


class Plugin(NamedTuple):
    """A plugin: its platform, its library, where it is from, and the package of its functions."""

    platform: str
    library: str
    origin: str
    functions: str = ""


def installed() -> Iterator[Plugin]:
    """The plugins that are installed, or named by the environment; those found first count."""
    yield from _named(os.environ.get(VARIABLE, ""))
    for folder in _folders("jax_plugins"):
        for name, (platform, library, functions) in _FOLDERS.items():
            path = folder / name / library
            if path.exists():
                package = f"jax-{name.removeprefix('xla_')}-pjrt"
                yield Plugin(platform, str(path), package, functions)
    for folder in _folders("libtpu"):
        path = folder / "libtpu.so"
        if path.exists():
            yield Plugin("tpu", str(path), "libtpu")


def initializers(with_entry_points: bool) -> Iterator[Callable[[], Any]]:
    """The functions with which plugins that are not known here register themselves.

    They lie in the package `jax_plugins`, or are entry points, which takes longer to find out.
    """
    modules = [
        f"jax_plugins.{path.name}"
        for folder in _folders("jax_plugins")
        for path in sorted(folder.iterdir())
        if path.name not in _FOLDERS and (path / "__init__.py").exists()
    ]
    if with_entry_points:
        entries = _metadata().entry_points(group="jax_plugins")
        modules += [e.value for e in entries if e.value.split(".")[-1] not in _FOLDERS]
    for module in dict.fromkeys(modules):
        yield partial(_initialize, module)


def _initialize(module: str) -> None:
    importlib.import_module(module).initialize()


def _named(text: str) -> Iterator[Plugin]:
    """What `name:path,name:path` names. Raises `ValueError` for another form."""
    for entry in filter(None, text.split(",")):
        name, _, path = entry.strip().partition(":")
        if not name or not path:
            raise ValueError(
                f"the environment variable {VARIABLE} holds {entry!r}; it takes the names of "
                "platforms with the paths of their libraries, as in name:/path/to/library.so,..."
            )
        yield Plugin(name.lower(), path, VARIABLE)


def _folders(package: str) -> list[Path]:
    """Where a package lies, without importing it."""
    found = importlib.util.find_spec(package)
    return [] if found is None else [Path(p) for p in found.submodule_search_locations or ()]


def missing() -> str:
    """What to install for an accelerator that this machine has, or nothing; without a plugin."""
    for name, traces, extra in _TRACES:
        if any(map(os.path.exists, traces)):
            return (
                f"This machine has {name}, and Perspex computes on the CPU: no plugin for it is "
                f"installed. pip install 'perspex[{extra}]' adds one; PERSPEX_PLATFORMS=cpu "
                "silences this line."
            )
    return ""


def _metadata() -> Any:
    """The module `importlib.metadata`, whose import takes 10 ms, where there is a plugin."""
    return importlib.import_module("importlib.metadata")


def check_version(plugin: Plugin) -> None:
    """Raise `RuntimeError` for a plugin of another version than jaxlib's."""
    metadata = _metadata()
    try:
        version = metadata.version(plugin.origin)
    except metadata.PackageNotFoundError:
        return
    ours = xla.JAXLIB_VERSION
    if plugin.functions and version.split(".")[:2] != ours.split(".")[:2]:
        raise RuntimeError(
            f"{plugin.origin} {version} does not fit jaxlib {ours}; install the same version: "
            f"pip install '{plugin.functions.replace('_', '-')}=={ours}'"
        )


def start(plugin: Plugin) -> Any:
    """Load the library of a plugin; returns its client.

    Raises `RuntimeError` if its version or that of a library it needs does not fit, and jaxlib's
    error if it cannot be loaded, or finds no device.
    """
    check_version(plugin)
    if plugin.platform == "cuda" and plugin.functions:
        _load_nvidia()
        if not os.environ.get(_UNCHECKED):
            check_cuda(importlib.import_module(f"{plugin.functions}._versions"))
    api = xla.load_plugin(plugin.platform, plugin.library)
    options: dict[str, Any] = {}
    if plugin.platform in xla.GPUS:
        options = {**xla.gpu_options(), "platform_name": plugin.platform}
    client = xla.make_plugin_client(plugin.platform, options)
    if plugin.functions:
        _register(plugin, api)
    return client


def _load_nvidia() -> None:
    """Load NVIDIA's libraries from their packages, so that the plugin finds those and no others."""
    folders = [lib for folder in _folders("nvidia") for lib in sorted(folder.glob("*/lib"))]
    for name in _LIBRARIES:
        for path in (p for folder in folders for p in sorted(folder.glob(f"lib{name}.so.*"))):
            try:
                ctypes.CDLL(str(path))
            except OSError:
                continue  # what is missing is told by `check_cuda`
            break


def check_cuda(versions: Any) -> None:
    """Raise `RuntimeError` if a library of NVIDIA's is missing, too old, or known to be wrong.

    `versions` is the plugin's module that knows the versions it was built for and those there are.
    """
    for name, attribute, scale, oldest in _VERSIONS:
        built: int = getattr(versions, f"{attribute}_build_version")()
        try:
            found: int = getattr(versions, f"{attribute}_get_version")()
        except RuntimeError as error:
            raise RuntimeError(
                f"{name} could not be loaded: {str(error).rstrip('.')}. "
                "pip install 'perspex[cuda13]' brings it"
            ) from None
        needed = oldest or built // scale
        if (found if oldest else found // scale) < needed:
            raise RuntimeError(
                f"{name} {found} is older than the plugin needs, which was built for {built}; "
                "pip install --upgrade 'perspex[cuda13]'"
            )
    if versions.cudnn_get_version() == _BAD_CUDNN != versions.cudnn_build_version():
        raise RuntimeError(
            "cuDNN 9.10.0 numbers its data types in another way than all other versions; "
            "pip install --upgrade 'nvidia-cudnn-cu13>=9.10.1'"
        )


def _register(plugin: Plugin, api: Any) -> None:
    """Make the functions known that programs on a GPU call: its solvers, and Python."""
    kind = "CUDA" if plugin.platform == "cuda" else "ROCM"
    try:
        functions = importlib.import_module(
            f"{plugin.functions}.{plugin.platform}_plugin_extension"
        )
    except ImportError as error:
        warnings.warn(
            f"{plugin.functions} cannot be imported ({error}): on {plugin.platform}, linear "
            f"algebra and callbacks will fail. pip install {plugin.functions.replace('_', '-')}",
            RuntimeWarning,
            stacklevel=source.stacklevel(),
        )
        return
    xla.register_gpu(kind, api, functions)

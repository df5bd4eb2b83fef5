"""The modules that users import, and what the functions in them say of their home.

`jnp.sin.__module__` is `perspex.numpy`, whatever file the function stands in: a pickle names a
function by it, and must outlive a move between files. A class keeps the module of its file, because
Python finds the source of a class by `__module__` alone, and that of a function by its code. Only
the classes that JAX gives a public module too have one in their body: `Array`, `Partial`.

`called` goes the other way: from the stack to the function that the user called.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from perspex.base import source

_NAMES = [
    "ad", "ad_checkpoint", "checkpoint_policies", "config", "core", "custom_batching",
    "custom_derivatives", "debug", "distributed", "dlpack", "dtypes", "errors", "events",
    "example_libraries",
    "example_libraries.optimizers", "example_libraries.stax", "experimental",
    "experimental.checkify", "experimental.compilation_cache",
    "experimental.compilation_cache.compilation_cache", "experimental.compute_on",
    "experimental.custom_partitioning",
    "experimental.jet", "experimental.layout", "experimental.mesh_utils",
    "experimental.multihost_utils", "experimental.ode", "experimental.pjit",
    "experimental.serialize_executable", "experimental.shard_map", "experimental.sparse",
    "experimental.sparse.ad",
    "experimental.sparse.api", "experimental.sparse.bcoo", "experimental.sparse.bcsr",
    "experimental.sparse.coo", "experimental.sparse.csr", "experimental.sparse.linalg",
    "experimental.sparse.random", "experimental.sparse.transform", "experimental.sparse.util",
    "experimental.xla_metadata",
    "export", "extend", "ffi", "flatten_util", "image", "lax", "lax.linalg", "memory", "monitoring",
    "nn", "nn.initializers", "numpy", "numpy.fft", "numpy.linalg", "numpy.segments", "profiler",
    "random", "ref", "scipy", "scipy.cluster", "scipy.cluster.vq", "scipy.fft", "scipy.integrate",
    "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal",
    "scipy.sparse", "scipy.sparse.linalg", "scipy.spatial", "scipy.spatial.transform",
    "scipy.special", "scipy.stats", "sharding", "stages",
    "test_util", "tree", "tree_util", "typing",
]  # fmt: skip
_DISTRIBUTIONS = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma",
    "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial",
    "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "t", "truncnorm", "uniform",
    "vonmises", "wrapcauchy",
]  # fmt: skip
MODULES = {
    "perspex",
    *[f"perspex.{name}" for name in _NAMES],
    *[f"perspex.scipy.stats.{name}" for name in _DISTRIBUTIONS],
}


def publish(*namespaces: dict[str, Any]) -> None:
    """Name public modules as the homes of the functions that they pass on from others.

    Args:
      namespaces: the globals of the modules. A function that has a public home keeps it.
    """
    for namespace in namespaces:
        home = namespace["__name__"]
        for name in namespace.get("__all__", namespace):
            value = namespace[name]
            # A ufunc is a `partial` with attributes of its own.
            if isinstance(value, (FunctionType, functools.partial)):
                module = value.__module__
                if module.startswith("perspex.") and module not in MODULES:
                    value.__module__ = home


def later(
    namespace: dict[str, Any], homes: dict[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module some of whose names are imported when asked for.

    Args:
      namespace: the globals of the module.
      homes: the modules of these names.
    """
    home = namespace["__name__"]

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {home!r} has no attribute {name!r}")
        found = namespace[name] = getattr(importlib.import_module(homes[name]), name)
        if isinstance(found, FunctionType):
            found.__module__ = home
        return found

    return find, lambda: sorted({*namespace, *homes})


# What the methods of arrays and of `x.at[...]` are called in messages.
_METHODS = {"Array.__getitem__": "getitem", "Array.__iter__": "iter"}
_UPDATES = "_IndexUpdateRef."


def called(skip: int = 1) -> str:
    """The public function that the user's code called and that is running, or `""`.

    Of several inside each other it is the outermost: `unique` and not the `sort` that it calls.

    Args:
      skip: how many frames up from here the search begins.

    Looks at each frame of ours on the stack, so it is for messages and for what is compiled.
    """
    found = ""
    frame: FrameType | None = sys._getframe(skip)
    while frame is not None and source.is_internal(frame.f_code.co_filename):
        found = _public_name(frame.f_code, frame.f_globals.get("__name__", "")) or found
        frame = frame.f_back
    return found


@functools.lru_cache(maxsize=1024)
def _public_name(code: CodeType, module: str) -> str:
    """What users call a function of a module of ours, or `""` if they do not know it."""
    name, path = code.co_name, code.co_qualname
    if path in _METHODS:
        return _METHODS[path]
    if path.startswith(_UPDATES):
        return f"at.{name}"
    return name if path == name and is_public(name, module) else ""


def is_public(name: str, module: str) -> bool:
    """Whether users know a function of a module of ours by its name, from a module or its parents.

    >>> import perspex.numpy
    >>> is_public("zeros", "perspex.numpy.creation"), is_public("total", "perspex.numpy.reducing")
    (True, False)
    """
    while "." in module and not name.startswith("_"):
        if module in MODULES and hasattr(sys.modules.get(module), name):
            return True
        module = module.rpartition(".")[0]
    return False

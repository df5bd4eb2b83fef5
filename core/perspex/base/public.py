"""The modules that users import, and what the functions in them say of their home.

`jnp.sin.__module__` is `perspex.numpy`, whatever file the function stands in: a pickle names a
function by it, and must outlive a move between files. A class keeps the module of its file, because
Python finds the source of a class by `__module__` alone, and that of a function by its code. Only
the classes that JAX gives a public module too have one in their body: `Array`, `Partial`.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

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

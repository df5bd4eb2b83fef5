"""The public names of JAX's modules, and the parameters of what can be called.

Keys are `module / name`; a record is the signature as `described` writes it, or what the name is.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

DISTRIBUTIONS = (
    "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l "
    "gumbel_r laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t "
    "truncnorm uniform vonmises wrapcauchy"
)
MODULES = [
    "ad_checkpoint", "core", "custom_batching", "custom_derivatives", "debug", "distributed",
    "dlpack", "dtypes", "errors", "example_libraries.optimizers", "example_libraries.stax",
    "experimental",
    "experimental.checkify", "experimental.compilation_cache.compilation_cache",
    "experimental.compute_on", "experimental.custom_partitioning", "experimental.jet",
    "experimental.layout",
    "experimental.mesh_utils", "experimental.multihost_utils", "experimental.ode",
    "experimental.pjit", "experimental.sparse", "experimental.sparse.ad", "experimental.sparse.api",
    "experimental.sparse.bcoo", "experimental.sparse.bcsr", "experimental.sparse.coo",
    "experimental.sparse.csr", "experimental.sparse.linalg", "experimental.sparse.random",
    "experimental.sparse.transform", "experimental.sparse.util",
    "experimental.xla_metadata", "export", "extend", "ffi",
    "flatten_util", "image", "lax", "lax.linalg", "monitoring", "nn", "nn.initializers",
    "numpy",
    "numpy.fft", "numpy.linalg", "ops", "profiler", "random", "ref", "scipy", "scipy.cluster",
    "scipy.cluster.vq", "scipy.fft", "scipy.integrate", "scipy.interpolate", "scipy.linalg",
    "scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.sparse.linalg",
    "scipy.spatial.transform", "scipy.special", "scipy.stats", "sharding", "stages", "test_util",
    "tree", "tree_util", "typing", "version",
    *[f"scipy.stats.{name}" for name in DISTRIBUTIONS.split()],
]  # fmt: skip


def described(found: Any) -> str:
    """`(x, /, *, axis=None)`, or what a thing is that has no parameters of its own.

    Defaults that only stand for "not given" are `...`, functions their names.
    """
    if isinstance(found, ModuleType):
        return "module"
    if not callable(found):
        return "value"
    if isinstance(found, type) and issubclass(found, (BaseException, enum.Enum)):
        return "class"
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return "callable"
    return str(
        inspect.Signature([p.replace(annotation=p.empty, default=_default(p)) for p in parameters])
    )


class _Written:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _default(parameter: inspect.Parameter) -> Any:
    value = parameter.default
    if value is parameter.empty:
        return value
    if isinstance(value, type) or inspect.isroutine(value):
        return _Written(value.__name__)
    text = repr(value)
    return _Written("..." if text.startswith("<") or not isinstance(value, PLAIN) else text)


PLAIN = (bool, int, float, complex, str, bytes, tuple, frozenset, type(None), enum.Enum)


def objects() -> Iterator[tuple[str, Any]]:
    """What is asked for its methods, by the heads of their keys."""
    jax: Any = importlib.import_module("jax")
    x = jax.numpy.ones(2)
    jitted = jax.jit(lambda y: y)
    traced = jitted.trace(x)
    lowered = traced.lower()
    yield "Array", x
    yield "x.at[i]", x.at[0]
    yield "jit(f)", jitted
    yield "Traced", traced
    yield "Lowered", lowered
    yield "Compiled", lowered.compile()
    yield "custom_jvp(f)", jax.custom_jvp(lambda y: y)
    yield "custom_vjp(f)", jax.custom_vjp(lambda y: y)
    yield "custom_vmap(f)", jax.custom_batching.custom_vmap(lambda y: y)
    yield "ufunc", jax.numpy.add
    yield "config", jax.config
    yield "ShapeDtypeStruct", jax.ShapeDtypeStruct((), "float32")
    yield "make_jaxpr(f)(x)", jax.make_jaxpr(lambda y: y)(x)


def record() -> dict[str, str]:
    """Every public name of every module above that there is, with its signature."""
    warnings.simplefilter("ignore")
    records = {}
    names = ["jax", *[f"jax.{name}" for name in MODULES]]
    for name, module in zip(names, [importlib.import_module(n) for n in names], strict=True):
        for key in dir(module):
            if not key.startswith("_"):
                records[f"{name} / {key}"] = described(getattr(module, key))
    for name, owner in objects():
        for key in dir(owner):
            if not key.startswith(("_", "jax_")):
                try:
                    found = getattr(owner, key)
                except (AttributeError, NotImplementedError, TypeError, ValueError):
                    continue
                records[f"{name} / {key}"] = described(found)
    return records

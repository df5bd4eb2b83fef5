"""`jax.lib` and `jax.extend.mlir`: jaxlib, as libraries reach it through JAX."""

from __future__ import annotations

from perspex import Device as _Device
from perspex.base.xla import JAXLIB_VERSION as __version__
from perspex.base.xla import ir as ir
from perspex.base.xla import passmanager as passmanager
from perspex.errors import JaxRuntimeError

__all__ = ["__version__", "ir", "passmanager", "xla_extension"]


class xla_extension:  # noqa: N801 - the name in JAX
    """What `jax.lib.xla_extension` had that libraries still look for."""

    XlaRuntimeError = JaxRuntimeError
    Device = _Device


class sharding:  # noqa: N801
    """`jax.extend.sharding`, all of whose names are absent."""

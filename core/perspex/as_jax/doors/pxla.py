"""`jax.interpreters.pxla` and `xla`: meshes around, and operations one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex.as_jax.doors.faces import apply_primitive as apply_primitive
from perspex.base.xla import Client as Backend
from perspex.ir.avals import ShapedArray, shaped
from perspex.sharding import get_mesh

__all__ = [
    "Backend", "apply_primitive", "canonicalize_dtype_handlers", "global_result_handlers",
    "pytype_aval_mappings", "thread_resources",
]  # fmt: skip

# Conversions, and types, that a library adds for classes of its own: it takes those of arrays.
canonicalize_dtype_handlers: dict[type, Any] = {np.ndarray: lambda x, **options: x}
pytype_aval_mappings: dict[type, Any] = {np.ndarray: shaped}
# How results of a type are made; those of arrays are made in C++.
global_result_handlers: dict[type, Any] = {ShapedArray: None}


class _Environment:
    @property
    def physical_mesh(self) -> Any:
        """The mesh of the context around."""
        return get_mesh()


class _Resources:
    env = _Environment()


thread_resources = _Resources()

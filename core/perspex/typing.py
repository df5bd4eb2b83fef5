"""Types for annotations: `jax.typing`."""

from __future__ import annotations

from typing import Any, Union

import numpy as np

from perspex.runtime.array import Array

ArrayLike = Union[Array, np.ndarray, np.generic, bool, int, float, complex]  # noqa: UP007
"""What functions take where they want an array: arrays, NumPy arrays and numbers; not lists."""

DTypeLike = Union[str, type[Any], np.dtype, Any]  # noqa: UP007
"""What functions take where they want a dtype: a name, a scalar type or a dtype."""

"""Dtypes that users give, and which dtypes a function takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import config, dtypes
from perspex.ir.avals import ShapedArray

# By `enable_x64`.
_DEFAULT_FLOAT = np.dtype("float32"), np.dtype("float64")
_x64 = config.enable_x64.cell


def required_dtype(name: str, dtype: Any) -> Any:
    """The dtype that a user names; `ValueError` for `None`."""
    if dtype is None:
        raise ValueError(f"{name}: dtype must be specified")
    return dtypes.check_user_dtype(dtype, name)


def float_dtype(name: str, dtype: Any) -> Any:
    """The dtype of floats: `dtype`, by default the default float."""
    if dtype is None:
        return _DEFAULT_FLOAT[_x64.value]
    return _checked(name, dtype, np.floating, "a float")


def inexact_dtype(name: str, dtype: Any) -> Any:
    """The dtype of floats or complex numbers: `dtype`, by default the default float."""
    if dtype is None:
        return _DEFAULT_FLOAT[_x64.value]
    return _checked(name, dtype, np.inexact, "a float or complex")


def integer_dtype(name: str, dtype: Any) -> Any:
    """The dtype of integers: `dtype`, by default the default integer."""
    return _checked(name, int if dtype is None else dtype, np.integer, "an int")


def _checked(name: str, dtype: Any, kind: type, allowed: str) -> Any:
    dtype = dtypes.check_user_dtype(dtype, name)
    if not dtypes.issubdtype(dtype, kind):
        raise ValueError(f"dtype argument to `{name}` must be {allowed} dtype, got {dtype.name}")
    return dtype


def check_real(name: str, x: Any) -> None:
    """Raise `TypeError` if `x` is an array of complex numbers."""
    if x.dtype.kind == "c":
        raise TypeError(
            f"{name} does not support complex-valued inputs, got {x.dtype.name}; "
            "take the real or the imaginary part with jnp.real or jnp.imag"
        )


def check_equal_dtypes(name: str, avals: Sequence[ShapedArray]) -> None:
    """Raise `TypeError` unless all dtypes are equal."""
    if any(a.dtype != avals[0].dtype for a in avals):
        found = ", ".join([a.dtype.name for a in avals])
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got {found}; convert them, "
            "or use the function of `perspex.numpy`, which promotes"
        )

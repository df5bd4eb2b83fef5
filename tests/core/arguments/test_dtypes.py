"""Dtypes that users give. The classes of the errors are those of real jax 0.12."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex.arguments import dtypes
from perspex.ir.avals import ShapedArray

F32, I32, C64 = [np.dtype(d) for d in ("float32", "int32", "complex64")]


@pytest.mark.parametrize("x64, bits", [(False, 32), (True, 64)])
def test_defaults_follow_enable_x64(x64: bool, bits: int) -> None:
    with perspex.enable_x64(x64):
        assert dtypes.float_dtype("uniform", None) == f"float{bits}"
        assert dtypes.inexact_dtype("normal", None) == f"float{bits}"
        assert dtypes.integer_dtype("randint", None) == f"int{bits}"


@pytest.mark.parametrize(
    "check, taken",
    [
        (dtypes.float_dtype, "float32 bfloat16"),
        (dtypes.inexact_dtype, "float32 bfloat16 complex64"),
        (dtypes.integer_dtype, "int32 uint8"),
    ],
)
def test_each_kind_takes_its_own(check: Any, taken: str) -> None:
    for dtype in ["float32", "bfloat16", "complex64", "int32", "uint8", "bool"]:
        if dtype in taken.split():
            assert check("draw", dtype) == jnp.dtype(dtype)
        else:
            with pytest.raises(ValueError, match=f"^dtype argument to `draw` .* got {dtype}$"):
                check("draw", dtype)


def test_a_dtype_that_must_be_given() -> None:
    assert dtypes.required_dtype("iota", "int32") == I32
    with pytest.raises(ValueError, match="^iota: dtype must be specified"):
        dtypes.required_dtype("iota", None)
    with pytest.raises(TypeError):
        dtypes.required_dtype("iota", "text")


def test_complex_numbers_where_only_real_ones_go() -> None:
    dtypes.check_real("floor", jnp.zeros(2))
    with pytest.raises(TypeError, match="^floor does not support complex-valued inputs, got compl"):
        dtypes.check_real("floor", jnp.zeros(2, C64))


def test_equal_dtypes() -> None:
    one, other = [ShapedArray((2,), dtype) for dtype in (F32, I32)]
    dtypes.check_equal_dtypes("select", [one, one])
    with pytest.raises(TypeError, match="^lax.select requires .* same dtypes, got float32, int32"):
        dtypes.check_equal_dtypes("select", [one, other])

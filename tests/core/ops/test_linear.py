"""`dot_general` against einsum, and the tables of its dtypes and precisions."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
import pytest
from support import harness
from support.harness import FLOATS, NUMBERS, Op, Sample, fixed, normal, sample

from perspex import config
from perspex.ir.avals import ShapedArray
from perspex.ops import linear as ops
from perspex.ops.precision import Precision, canonical_precision
from perspex.tracing.primitive import Linear

NONE = {"precision": None, "preferred_element_type": None}


def numbers(contract: Any, batch: Any = ((), ())) -> ops.Dimensions:
    return ops.Dimensions((contract, batch))


def einsum(x: np.ndarray, y: np.ndarray, dimension_numbers: Any, **_: Any) -> np.ndarray:
    """The definition."""
    (contract, batch) = dimension_numbers
    letters = iter(string.ascii_letters)
    left, right = [""] * x.ndim, [""] * y.ndim
    for pairs in (contract, batch):
        for i, j in zip(*pairs, strict=True):
            left[i] = right[j] = next(letters)
    left = [c or next(letters) for c in left]
    right = [c or next(letters) for c in right]
    kept = [c for i, c in enumerate(left) if i not in (*contract[0], *batch[0])]
    kept += [c for i, c in enumerate(right) if i not in (*contract[1], *batch[1])]
    out = [left[i] for i in batch[0]] + kept
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x, y)


def dots(lhs: Any, rhs: Any, contract: Any, batch: Any = ((), ())) -> Sample:
    shapes = normal(*lhs), normal(*rhs)
    return sample(*shapes, dimension_numbers=numbers(contract, batch), **NONE)


OPS = [
    Op(
        ops.dot_general,
        einsum,
        [
            dots((2, 3), (3, 4), ((1,), (0,))),
            dots((3, 2), (4, 3), ((0,), (1,))),
            dots((3,), (3,), ((0,), (0,))),
            dots((2,), (3, 1), ((), ())),
            dots((), (3,), ((), ())),
            dots((5, 2, 3), (5, 3, 4), ((2,), (1,)), ((0,), (0,))),
            # Batch axes in the middle and in another order; contraction in another order.
            dots((2, 3, 4, 5), (5, 4, 3, 2), ((0, 2), (3, 1)), ((3, 1), (0, 2))),
            dots((2, 3, 4, 6), (4, 2, 5, 3), ((2, 0, 1), (0, 1, 3))),
            dots((3, 0), (0, 2), ((1,), (0,))),
        ],
        NUMBERS,
        tolerance=8,
        linear=((0,), (1,)),
    ),
    Op(
        ops.dot_general,
        lambda x, y, **_: (x > 0) @ (y > 0),
        [dots((2, 3), (3, 4), ((1,), (0,)))],
        ("bool",),
        name="dot_general-bool",
    ),
]
test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)

# The left operand has the dtype of the test and the right one another.
MIXED = [
    Op(
        ops.dot_general,
        einsum,
        [
            sample(
                normal(2, 3),
                fixed([[1, 2], [3, 4], [0, 5]], dtype),
                dimension_numbers=numbers(((1,), (0,))),
                **NONE,
            )
        ],
        dtypes,
        result=lambda dtype, result=result: result or dtype,
        linear=((0,),),
        name=f"dot_general-{dtype}",
        weak=lambda pattern: False,
    )
    for dtype, dtypes, result in [
        ("float64", FLOATS, np.dtype("float64")),
        ("int8", ("int32", "int16"), None),
        ("complex64", ("float32", "complex64", "bfloat16"), np.dtype("complex64")),
    ]
]
(
    test_mixed_value,
    test_mixed_staged,
    test_mixed_jvp,
    test_mixed_transpose,
    test_mixed_batch,
    test_mixed_weak,
) = harness.tests(MIXED)


def product_dtype(lhs: str, rhs: str, preferred: str | None = None) -> str:
    left, right = (ShapedArray((3,), harness.dtype_named(d)) for d in (lhs, rhs))
    out = ops.dot_general.type(
        left,
        right,
        dimension_numbers=numbers(((0,), (0,))),
        precision=None,
        preferred_element_type=preferred and harness.dtype_named(preferred),
    )
    return out.dtype.name


# What real JAX 0.12 gives.
@pytest.mark.parametrize(
    "lhs, rhs, preferred, wanted",
    [
        ("int8", "uint8", None, "int8"),
        ("int8", "uint16", None, "uint16"),
        ("bool", "uint8", None, "uint8"),
        ("int64", "bfloat16", None, "bfloat16"),
        ("float16", "bfloat16", None, "bfloat16"),
        ("float8_e4m3fn", "float8_e5m2", None, "float8_e5m2"),
        ("float8_e4m3fn", "float16", None, "float16"),
        ("float64", "complex64", None, "complex64"),
        ("int4", "uint4", None, "int4"),
        ("int8", "int8", "int32", "int32"),
        ("int8", "int8", "float32", "float32"),
        ("uint8", "uint8", "int32", "int32"),
        ("bool", "bool", "int32", "int32"),
        ("float32", "float32", "int32", "int32"),
        ("float32", "float32", "bfloat16", "bfloat16"),
        ("int8", "float32", "bfloat16", "bfloat16"),
        ("complex64", "complex64", "float32", "float32"),
        ("float32", "float32", "bool", "bool"),
    ],
)
def test_dtype_of_the_result(lhs: str, rhs: str, preferred: str | None, wanted: str) -> None:
    assert product_dtype(lhs, rhs, preferred) == wanted
    assert product_dtype(rhs, lhs, preferred) == wanted


@pytest.mark.parametrize(
    "lhs, rhs, preferred",
    [
        ("int32", "int32", "int8"),
        ("int8", "int8", "bool"),
        ("int32", "int8", "bfloat16"),
        ("complex64", "complex64", "bfloat16"),
        ("complex128", "complex128", "complex64"),
    ],
)
def test_preferred_dtype_that_is_narrower(lhs: str, rhs: str, preferred: str) -> None:
    with pytest.raises(TypeError, match=f"preferred_element_type {preferred} must not be narrower"):
        product_dtype(lhs, rhs, preferred)


@pytest.mark.parametrize(
    "lhs, rhs, preferred",
    [
        ("int8", "int8", "int32"),
        ("int8", "uint8", "int32"),
        ("bfloat16", "bfloat16", "float32"),
        ("bfloat16", "float32", None),
        ("float8_e4m3fn", "float8_e5m2", "float32"),
        ("float8_e4m3fn", "bfloat16", "float32"),
        ("int4", "int8", "int32"),
        ("int4", "int4", "int32"),
        ("uint4", "uint4", "int8"),
        ("int4", "int4", "float32"),
        ("int32", "float32", None),
        ("bool", "int8", None),
        ("bool", "bool", "int32"),
        ("float16", "complex64", None),
    ],
)
def test_products_of_mixed_dtypes(lhs: str, rhs: str, preferred: str | None) -> None:
    left, right, wide = (
        None if d is None else harness.dtype_named(d) for d in (lhs, rhs, preferred)
    )
    x = np.array([[1, 0, 3], [1, 2, 0]]).astype(left)
    y = np.array([[2, 1], [1, 1], [1, 2]]).astype(right)
    params = {"dimension_numbers": numbers(((1,), (0,))), "precision": None}
    found = ops.dot_general(x, y, preferred_element_type=wide, **params)
    exact = [v.astype(np.complex128) for v in (x, y)]
    np.testing.assert_array_equal(np.asarray(found).astype(np.complex128), exact[0] @ exact[1])


def test_gradient_keeps_the_dtype_of_a_narrow_operand() -> None:
    x = np.ones((2, 3), harness.dtype_named("bfloat16"))
    params = {"dimension_numbers": numbers(((1,), (0,))), "precision": None}
    y, wide = np.ones((3, 4), np.float32), np.dtype("float32")
    ct = np.ones((2, 4), np.float32)
    left, none = ops.dot_general.transpose(
        ct, Linear(ShapedArray(x.shape, x.dtype)), y, preferred_element_type=wide, **params
    )
    assert none is None
    assert left.dtype == x.dtype
    np.testing.assert_array_equal(harness.wide(left), np.full((2, 3), 4))


# ---- Precision ----------------------------------------------------------------------------------

HIGH, HIGHEST, DEFAULT = Precision.HIGH, Precision.HIGHEST, Precision.DEFAULT


@pytest.mark.parametrize(
    "given, wanted",
    [
        (None, None),
        ("highest", (HIGHEST, HIGHEST)),
        ("float32", (HIGHEST, HIGHEST)),
        ("tensorfloat32", (HIGH, HIGH)),
        ("bfloat16", (DEFAULT, DEFAULT)),
        (HIGH, (HIGH, HIGH)),
        (("default", HIGHEST), (DEFAULT, HIGHEST)),
        (["high", None], (HIGH, DEFAULT)),
    ],
)
def test_precision(given: Any, wanted: Any) -> None:
    assert canonical_precision(given) == wanted


@pytest.mark.parametrize("given", ["exact", 3, 1, ("high",), ("high", 2), ("a", "b"), object()])
def test_precision_that_is_none(given: Any) -> None:
    with pytest.raises(ValueError, match="precision must be None, a lax.Precision"):
        canonical_precision(given)


def test_precision_from_the_flag() -> None:
    with config.default_matmul_precision("high"):
        assert canonical_precision(None) == (HIGH, HIGH)
        assert canonical_precision("highest") == (HIGHEST, HIGHEST)


def test_names_of_precisions() -> None:
    assert (repr(HIGH), str(HIGH)) == ("Precision.HIGH", "HIGH")
    assert Precision("highest") is Precision(2) is HIGHEST
    assert Precision(None) is DEFAULT
    with pytest.raises(ValueError):
        Precision("strange")
    with pytest.raises(ValueError):
        Precision([])  # not hashable


# ---- Errors -------------------------------------------------------------------------------------

MATRIX = ShapedArray((3, 4), np.dtype("float32"))


@pytest.mark.parametrize(
    "contract, batch, words",
    [
        (((2,), (0,)), ((), ()), "lhs has shape"),
        (((-1,), (-1,)), ((), ()), "at least 0"),
        (((0,), (2,)), ((), ()), "rhs has shape"),
        (((1,), (0,)), ((), ()), "same sizes"),
        (((1,), (1, 0)), ((), ()), "same sizes"),
        (((1, 1), (1, 1)), ((), ()), "named twice"),
        (((1,), (1,)), ((1,), (1,)), "named twice"),
        (((1,), (1,)), ((0,), ()), "batch dimensions"),
    ],
)
def test_bad_dimension_numbers(contract: Any, batch: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words) as caught:
        ops.dot_general.type(MATRIX, MATRIX, dimension_numbers=numbers(contract, batch), **NONE)
    assert "dot_general" in str(caught.value)


def test_dimension_numbers_print_as_lists() -> None:
    assert str(numbers(((1,), (0,)), ((0, 2), (0, 1)))) == "(([1], [0]), ([0, 2], [0, 1]))"
    assert numbers(((1,), (0,))) == (((1,), (0,)), ((), ()))

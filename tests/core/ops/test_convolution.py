"""Convolutions, against sums over windows written out with NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import harness
from support.harness import Op, Sample, normal, sample

import perspex
from perspex import config, lax
from perspex.ir.avals import ShapedArray
from perspex.ops import depthwise
from perspex.ops.convolution import ConvDimensionNumbers, conv_general_dilated

PLAIN = {
    1: ConvDimensionNumbers(*[(0, 1, 2)] * 3),
    2: ConvDimensionNumbers(*[(0, 1, 2, 3)] * 3),
}
LAST = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
# Every axis somewhere else.
MIXED = ConvDimensionNumbers((2, 0, 3, 1), (1, 3, 0, 2), (3, 1, 2, 0))


def spread_out(x: np.ndarray, dilation: tuple[int, ...]) -> np.ndarray:
    """Zeros between the elements of all axes but the first two."""
    shape = [(n - 1) * d + 1 for n, d in zip(x.shape[2:], dilation, strict=True)]
    out = np.zeros((*x.shape[:2], *shape), x.dtype)
    out[(..., *[slice(None, None, d) for d in dilation])] = x
    return out


def reference(
    lhs: np.ndarray,
    rhs: np.ndarray,
    *,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> np.ndarray:
    """The definition: at each place the sum of products of the kernel with the window there."""
    x = spread_out(np.transpose(lhs, dimension_numbers.lhs_spec), lhs_dilation)
    w = spread_out(np.transpose(rhs, dimension_numbers.rhs_spec), rhs_dilation)
    for axis, (low, high) in enumerate(padding, 2):
        x = np.pad(x, [(max(low, 0), max(high, 0)) if i == axis else (0, 0) for i in range(x.ndim)])
        x = np.take(x, range(max(-low, 0), x.shape[axis] - max(-high, 0)), axis)
    groups = feature_group_count * batch_group_count
    made = w.shape[0] // groups
    n, taken = x.shape[0] // batch_group_count, w.shape[1]
    counts = [
        max(0, (a - b) // step + 1)
        for a, b, step in zip(x.shape[2:], w.shape[2:], window_strides, strict=True)
    ]
    out = np.zeros((n, w.shape[0], *counts), x.dtype)
    for g, place in itertools.product(range(groups), itertools.product(*map(range, counts))):
        part = x[g * n : (g + 1) * n] if batch_group_count > 1 else x[:, g * taken :][:, :taken]
        kernels = w[g * made : (g + 1) * made]
        at = [
            slice(i * step, i * step + k)
            for i, step, k in zip(place, window_strides, w.shape[2:], strict=True)
        ]
        window = part[(slice(None), slice(None), *at)]
        out[(slice(None), slice(g * made, (g + 1) * made), *place)] = np.tensordot(
            window, kernels, (range(1, x.ndim), range(1, x.ndim))
        )
    return np.transpose(out, np.argsort(dimension_numbers.out_spec))


def case(
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    strides: tuple[int, ...] = (1, 1),
    padding: Any = ((0, 0), (0, 0)),
    lhs_dilation: tuple[int, ...] = (1, 1),
    rhs_dilation: tuple[int, ...] = (1, 1),
    numbers: ConvDimensionNumbers = PLAIN[2],
    features: int = 1,
    batches: int = 1,
) -> Sample:
    """A sample with operands of such shapes, given in canonical order."""
    shapes = [
        [shape[spec.index(i)] for i in range(len(spec))]
        for shape, spec in ((lhs, numbers.lhs_spec), (rhs, numbers.rhs_spec))
    ]
    return sample(
        *[normal(*shape, scale=1.0) for shape in shapes],
        window_strides=strides,
        padding=padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=features,
        batch_group_count=batches,
        precision=None,
        preferred_element_type=None,
    )


ODD = {"padding": ((1, 2), (0, 1)), "strides": (2, 1)}
SAMPLES = [
    case((2, 3, 5, 4), (4, 3, 3, 2), **ODD),
    # Both dilated, the padding takes elements away, the stride leaves some over.
    case((2, 2, 4, 5), (3, 2, 2, 2), (2, 3), ((-1, 2), (1, -1)), (2, 2), (2, 1), MIXED),
    case((1, 4, 4, 5), (6, 2, 2, 3), **ODD, features=2),
    case((4, 2, 4, 5), (6, 2, 2, 3), **ODD, batches=2, numbers=LAST),
]
MORE = [
    case((2, 2, 5, 4), (3, 2, 3, 2), numbers=LAST, padding=((2, 2), (2, 2))),
    case((1, 3, 4, 5), (6, 1, 2, 3), features=3, numbers=MIXED, rhs_dilation=(2, 1)),
    case((6, 1, 5, 5), (3, 1, 2, 2), batches=3, lhs_dilation=(1, 2), strides=(2, 2)),
    case((2, 3, 7), (4, 3, 3), (2,), ((1, 1),), (1,), (2,), PLAIN[1]),
]
OPS = [
    Op(conv_general_dilated, reference, SAMPLES, harness.FLOATS, tolerance=8, linear=((0,), (1,))),
    Op(
        conv_general_dilated,
        reference,
        SAMPLES[:1],
        ("complex64", "complex128", "int32", "int8"),
        tolerance=8,
        linear=((0,), (1,)),
        name="conv_complex_or_integer",
    ),
    Op(
        conv_general_dilated,
        reference,
        MORE,
        ("float64",),
        tolerance=8,
        linear=((0,), (1,)),
        name="conv_more",
    ),
]
test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)


@pytest.fixture
def written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convolutions of each feature by itself are written out, however small they are."""
    monkeypatch.setattr(depthwise, "_LEAST", 0)


# Of shapes that no other test has: a program that was compiled before is not lowered again.
ALONE = [
    case((2, 5, 6, 7), (5, 1, 3, 2), features=5, numbers=LAST, **ODD),
    case((2, 3, 6, 7), (3, 1, 2, 2), (2, 1), ((-1, 3), (1, -1)), (2, 3), (3, 2), MIXED, 3),
    case((3, 1, 11), (1, 1, 4), (3,), ((1, 2),), (1,), (2,), PLAIN[1]),
]
alone = Op(
    conv_general_dilated,
    reference,
    ALONE,
    ("float32", "float64"),
    tolerance=8,
    linear=((0,), (1,)),
    name="conv_depthwise",
)
(
    test_value_written_out,
    test_staged_written_out,
    test_jvp_written_out,
    test_transpose_written_out,
    test_batch_written_out,
    _,
) = map(pytest.mark.usefixtures("written_out"), harness.tests([alone]))


def test_what_is_written_out() -> None:
    """Large convolutions of each feature by itself, in float32; all others stay as they are."""

    def text(shape: tuple[int, ...], kernel: tuple[int, ...], groups: int, dtype: str) -> str:
        def convolve(x: Any, w: Any) -> Any:
            return lax.conv_general_dilated(x, w, (1,), "SAME", feature_group_count=groups)

        x, w = [perspex.ShapeDtypeStruct(s, np.dtype(dtype)) for s in (shape, kernel)]
        return perspex.jit(convolve).lower(x, w).as_text()

    large = (4, 8, 8192), (8, 1, 5), 8
    assert "convolution" not in text(*large, "float32")
    assert "convolution" in text(*large, "float16")  # products are added up in float32
    assert "convolution" in text((4, 8, 512), *large[1:], "float32")
    assert "convolution" in text(large[0], (16, 1, 5), 8, "float32")
    assert "convolution" in text(large[0], (8, 4, 5), 2, "float32")
    assert "convolution" in text(large[0], (8, 1, 50), 8, "float32")
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=large[0]).astype("f4"), rng.normal(size=large[1]).astype("f4")
    y = lax.conv_general_dilated(x, w, (1,), "VALID", feature_group_count=8)
    wanted = np.correlate(x[3, 7].astype("f8"), w[7, 0].astype("f8"))
    np.testing.assert_allclose(y[3, 7], wanted, rtol=1e-5, atol=1e-5)


def test_wider_result_type() -> None:
    x = np.full((1, 1, 300), 1.0)
    w = np.ones((1, 1, 300))
    params = SAMPLES[0].params | {
        "window_strides": (1,),
        "padding": ((0, 0),),
        "lhs_dilation": (1,),
        "rhs_dilation": (1,),
        "dimension_numbers": PLAIN[1],
        "preferred_element_type": np.dtype("float32"),
    }
    half = harness.dtype_named("bfloat16")
    out = conv_general_dilated(x.astype(half), w.astype(half), **params)
    assert out.dtype == np.float32
    assert float(out[0, 0, 0]) == 300.0  # which bfloat16 has not
    ints = params | {"preferred_element_type": np.dtype("int32")}
    total = conv_general_dilated(100 * x.astype("i1"), w.astype("i1"), **ints)
    assert int(total[0, 0, 0]) == 30_000
    pulled = conv_general_dilated.transpose(
        out, harness.Linear(ShapedArray(x.shape, half)), w.astype(half), **params
    )
    assert pulled[0].dtype == half
    assert pulled[1] is None


@pytest.mark.parametrize(
    "shapes", [((2, 3, 0), (4, 3, 2)), ((2, 3, 1), (4, 3, 2)), ((0, 3, 5), (4, 3, 2))]
)
def test_nothing_to_convolve(shapes: Any) -> None:
    x, w = [np.ones(s, np.float32) for s in shapes]
    out = lax.conv(x, w, (1,), "VALID")
    assert out.shape == (x.shape[0], 4, max(0, x.shape[2] - 1))
    params = case(x.shape, w.shape, (1,), ((0, 0),), (1,), (1,), PLAIN[1]).params
    back, _ = conv_general_dilated.transpose(out, harness.Linear(harness.shaped(x)), w, **params)
    np.testing.assert_array_equal(back, np.zeros_like(x))


def test_transposed_convolution_is_the_transpose() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(1, 7, 6, 2)).astype("f4")
    w = rng.normal(size=(3, 2, 2, 4)).astype("f4")
    names = ("NHWC", "HWIO", "NHWC")
    strides, pads = (2, 1), ((1, 1), (0, 1))
    y = lax.conv_general_dilated(x, w, strides, pads, dimension_numbers=names)
    ct = rng.normal(size=y.shape).astype("f4")
    back = lax.conv_transpose(
        ct, w, strides, pads, transpose_kernel=True, use_consistent_padding=True
    )
    assert back.shape == x.shape
    np.testing.assert_allclose((back * x).sum(), (ct * np.asarray(y)).sum(), rtol=1e-4)


def test_patches_and_local_kernels() -> None:
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(2, 3, 5, 6)), rng.normal(size=(4, 3, 2, 3))
    with config.enable_x64(True):
        args = ((1, 2), ((1, 0), (0, 1)))
        patches = lax.conv_general_dilated_patches(x, (2, 3), *args)
        wanted = lax.conv_general_dilated(x, w, *args)
        by_patches = np.einsum("nkhw,ok->nohw", patches, w.reshape(4, -1))
        np.testing.assert_allclose(by_patches, wanted, rtol=1e-12)
        shared = np.broadcast_to(w.reshape(4, 18, 1, 1), (4, 18, *wanted.shape[2:]))
        local = lax.conv_general_dilated_local(x, shared, *args, (2, 3))
        np.testing.assert_allclose(local, wanted, rtol=1e-12)


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"feature_group_count": 2}, ValueError, "input features of lhs"),
        ({"feature_group_count": 0}, ValueError, "feature_group_count must be a positive"),
        ({"batch_group_count": 3}, ValueError, "batch_group_count 3 must divide the batch 2"),
        ({"window_strides": (0, 1)}, ValueError, "window_strides must be positive"),
        ({"rhs_dilation": (1,)}, ValueError, "rhs_dilation must have the same number"),
        ({"preferred_element_type": np.dtype("int32")}, TypeError, "must be of one kind"),
    ],
)
def test_bad_params(changes: dict[str, Any], error: type, message: str) -> None:
    lhs, rhs = [ShapedArray(s, np.dtype("float32")) for s in ((2, 3, 5, 4), (4, 3, 3, 2))]
    with pytest.raises(error, match=message):
        conv_general_dilated.type(lhs, rhs, **(SAMPLES[0].params | changes))


def test_operands_of_two_dtypes() -> None:
    with pytest.raises(TypeError, match="to have the same dtypes, got float32, int32; convert"):
        lax.conv(np.ones((1, 1, 3), "f4"), np.ones((1, 1, 2), "i4"), (1,), "VALID")

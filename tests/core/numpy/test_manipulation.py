"""Shapes, joins, choices, sets, sampled functions, counts: expressions against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.agreement import agree, compare

import perspex
import perspex.numpy as jnp
from perspex.errors import ConcretizationTypeError

ARRAYS: dict[str, np.ndarray] = {
    "x": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "m": np.arange(6, dtype=np.int32).reshape(2, 3),
    "v": np.array([3, 1, 2, 1, 5], np.int32),
    "f": np.array([0.5, -1.5, 2.0, 4.0], np.float32),
    "w": np.array([1.0, 2.0, 0.5, 3.0], np.float32),
    "b": np.array([True, False, True, True, False]),
    "c": np.array([1 + 2j, -1j, 0.5], np.complex64),
    "e": np.zeros((0, 3), np.float32),
    "bytes": np.array([[177, 3], [128, 7]], np.uint8),
}

SHAPES = [
    *("xp.reshape(x, (6, -1))", "x.reshape(4, 6)", "xp.reshape(m, (3, 2), order='F')"),
    *("xp.reshape(e, (3, 0))", "x.reshape(-1)", "xp.ravel(m, order='F')", "x.ravel()"),
    *(
        "xp.resize(m, (3, 4))",
        "xp.resize(m, 4)",
        "xp.resize(e, (2, 2))",
        "m.T",
        "x.transpose(2, 0, 1)",
    ),
    *("xp.transpose(x)", "xp.transpose(x, (-1, 0, 1))", "xp.swapaxes(x, 0, -1)"),
    *("xp.moveaxis(x, 0, -1)", "xp.moveaxis(x, (0, 1), (-1, 0))", "xp.rollaxis(x, 2, 1)"),
    *("xp.rollaxis(x, 0, 3)", "xp.squeeze(x[:1])", "xp.squeeze(x[:1, :, :1], (0, 2))"),
    *("xp.expand_dims(m, (0, -1))", "xp.atleast_3d(v)", "xp.atleast_3d(m)", "xp.atleast_2d(v)"),
    *("xp.broadcast_to(v, (2, 5))", "xp.broadcast_arrays(m[:, :1], v[:3])", "xp.flip(x, (0, 2))"),
    *("xp.flip(x)", "xp.fliplr(m)", "xp.flipud(m)", "xp.rot90(m)", "xp.rot90(m, -1)"),
    *("xp.rot90(x, 2, (1, 2))", "xp.rot90(x, 3, (2, 0))", "xp.roll(v, 2)", "xp.roll(v, -7)"),
    *(
        "xp.roll(x, (1, -1), (0, 2))",
        "xp.roll(m, 1)",
        "xp.roll(x, 1, axis=(0, 1))",
        "xp.roll(e, 1)",
    ),
    *("xp.matrix_transpose(x)", "xp.permute_dims(x, (1, 2, 0))"),
]
JOINS = [
    *(
        "xp.concatenate([m, m])",
        "xp.concatenate([m, m * 0.5], axis=1)",
        "xp.concatenate(x, axis=1)",
    ),
    *("xp.concatenate([m, v], axis=None)", "xp.concatenate(x)", "xp.stack([v, v], axis=1)"),
    *("xp.stack(m, axis=-1)", "xp.hstack([v, v])", "xp.hstack([m, m])", "xp.vstack([v, v])"),
    *("xp.dstack([v, v])", "xp.dstack([m, m])", "xp.column_stack([v, v])", "xp.hstack(m)"),
    *("xp.column_stack([v[:2], m])", "xp.block([[m, m], [m, m * 2]])", "xp.block([v, 1])"),
    *(
        "xp.append(v, 7)",
        "xp.append(m, m, axis=1)",
        "xp.split(x, 2, axis=2)",
        "xp.split(v, [1, 3])",
    ),
    *("xp.array_split(v, 3)", "xp.split(v, [2, 9])", "xp.hsplit(m, 3)", "xp.vsplit(m, 2)"),
    *("xp.dsplit(x, 2)", "xp.tile(v, 2)", "xp.tile(m, (2, 1, 2))", "xp.repeat(m, 2)"),
    *("xp.repeat(m, 2, axis=0)", "xp.repeat(v, np.array([0, 2, 1, 0, 1]))", "xp.repeat(m, 0)"),
    *(
        "xp.repeat(m, np.array([1, 0, 2]), axis=1)",
        "xp.insert(v, 1, 9)",
        "xp.insert(m, 1, 9, axis=1)",
    ),
    *("xp.insert(v, np.array([3, 1]), np.array([30, 10]))", "xp.insert(v, np.array([1, 1]), 7)"),
    *(
        "xp.insert(m, 1, np.array([7, 8]), axis=1)",
        "xp.insert(v, slice(0, 4, 2), 9)",
        "xp.insert(v, -1, 0)",
    ),
    *("xp.delete(v, 1)", "xp.delete(m, -1, axis=1)", "xp.delete(v, np.array([0, 2, 2]))"),
    *("xp.delete(v, slice(1, 4))", "xp.delete(v, np.array([True, False, False, True, False]))"),
    *("xp.unstack(m)", "xp.unstack(m, axis=1)"),
]
PADS = [
    *("xp.pad(v, 2)", "xp.pad(m, ((1, 0), (2, 3)))", "xp.pad(m, (1, 2), constant_values=(7, 8))"),
    *("xp.pad(m, 1, constant_values=((1, 2), (3, 4)))", "xp.pad(x, 2, mode='edge')"),
    *("xp.pad(m, 3, mode='wrap')", "xp.pad(v, (7, 9), mode='wrap')", "xp.pad(m, 0, mode='edge')"),
    *("xp.pad(v, (9, 7), mode='reflect')", "xp.pad(v, (9, 7), mode='symmetric')"),
    *("xp.pad(v, 3, mode='reflect', reflect_type='odd')", "xp.pad(v[:1], 2, mode='reflect')"),
    *("xp.pad(v, 6, mode='symmetric', reflect_type='odd')", "xp.pad(f, 3, mode='linear_ramp')"),
    *("xp.pad(f, (2, 3), mode='linear_ramp', end_values=(-1, 9))", "xp.pad(m, 2, mode='maximum')"),
    *("xp.pad(m, 2, mode='minimum', stat_length=1)", "xp.pad(m, 2, mode='mean')"),
    *("xp.pad(f, 2, mode='median')", "xp.pad(f, 2, mode='mean', stat_length=(2, 3))"),
]
CHOICES = [
    *("xp.where(b, v, -1)", "xp.where(m > 2, m, 0.5)", "xp.where(m[:, :1] > 1, m, v[:3])"),
    *("xp.select([v < 2, v > 2], [v, 10 * v], -1)", "xp.select([m > 2], [m])"),
    *("xp.choose(m % 2, [m, -m], mode='clip')", "xp.choose(v, [v, -v], mode='wrap')"),
    "xp.piecewise(f, [f < 0, f > 1], [-1, lambda t: 2 * t, 0.5])",
]
EAGER_CHOICES = [
    *("xp.nonzero(m)", "xp.argwhere(m > 2)", "xp.flatnonzero(v > 1)", "xp.where(b)"),
    *("xp.compress(b, v)", "xp.compress(b[:3], m, axis=1)", "xp.extract(m > 2, m)"),
    *("xp.choose(b.astype(int), [v, -v])", "xp.nonzero(e)", "xp.trim_zeros(m[0])"),
]
SETS = [
    *("xp.unique(v)", "xp.unique(v, True, True, True)", "xp.unique(m % 2, return_inverse=True)"),
    *("xp.unique(m % 2, axis=0)", "xp.unique(x % 2, axis=1, return_counts=True)", "xp.unique(c)"),
    *("xp.unique(xp.concatenate([f, f * np.nan]), return_counts=True)", "xp.unique(e)"),
    *("xp.unique(f * np.nan, equal_nan=False).shape[0] + v", "xp.unique(b, return_index=True)"),
    *(
        "xp.union1d(v, m)",
        "xp.intersect1d(v, m)",
        "xp.intersect1d(v[:3], m[1], return_indices=True)",
    ),
    *("xp.setdiff1d(v, m[0])", "xp.setdiff1d(m, v, assume_unique=True)", "xp.setxor1d(v, m)"),
    *(
        "xp.intersect1d(v, v[:0])",
        "xp.isin(m, v)",
        "xp.isin(v, m, invert=True)",
        "xp.isin(f, f * np.nan)",
    ),
    *("xp.isin(np.arange(400), np.arange(0, 900, 7))", "xp.unique_counts(v)", "xp.unique_all(v)"),
]
SAMPLES = [
    *(
        "xp.diff(v)",
        "xp.diff(x, n=2, axis=1)",
        "xp.diff(v, prepend=0, append=np.array([9, 9]))",
        "xp.diff(b)",
    ),
    *("xp.ediff1d(m)", "xp.ediff1d(v, to_end=7, to_begin=np.array([1, 2]))", "xp.trapezoid(f)"),
    *("xp.trapezoid(m, dx=0.5, axis=0)", "xp.trapezoid(f, w)", "xp.trapezoid(x, x * x, axis=1)"),
    *(
        "xp.gradient(f)",
        "xp.gradient(f, 0.5)",
        "xp.gradient(x, axis=(0, 2))",
        "xp.gradient(x, 2, 3, 4)",
    ),
    *("xp.gradient(f, np.array([0, 1, 3, 7.]))", "xp.interp(f, np.array([-1, 0, 3]), w[:3])"),
    *("xp.interp(f, np.array([-1, 0, 3]), w[:3], left=-9, right=9)", "xp.interp(v, v[:1], w[:1])"),
    *("xp.interp(f, np.array([0.5, 0.1, 1.2]), w[:3], period=1.5)", "xp.convolve(f, w[:3])"),
    *("xp.convolve(f, w[:3], mode='same')", "xp.convolve(w[:2], f, mode='same')"),
    *("xp.convolve(f, w[:3], mode='valid')", "xp.correlate(f, w[:3])", "xp.convolve(c, c)"),
    *("xp.correlate(f, w, mode='full')", "xp.correlate(w[:2], f, mode='same')"),
    *("xp.correlate(c, c[:2], mode='full')", "xp.polyval(f, x)", "xp.polyval(v, 2)"),
    *("xp.polyadd(v, f)", "xp.polysub(f, w[:2])", "xp.polymul(f, w[:2])", "xp.polyder(f, 2)"),
    *(
        "xp.polyint(f)",
        "xp.polyint(f, 2, np.array([1, 2]))",
        "xp.polydiv(f, w[:2])[0]",
        "xp.poly(f)",
    ),
]
COUNTS = [
    *("xp.bincount(v)", "xp.bincount(v, minlength=8)", "xp.bincount(v[:4], weights=f)"),
    *(
        "xp.digitize(f, np.array([-1, 0.5, 2]))",
        "xp.digitize(f, np.array([-1, 0.5, 2]), right=True)",
    ),
    *(
        "xp.digitize(f, np.array([2, 0.5, -1]))",
        "xp.digitize(f, np.array([2, 0.5, -1]), right=True)",
    ),
    *("xp.histogram(f, bins=3)", "xp.histogram(f, bins=np.array([-2, 0, 2, 4]))"),
    *("xp.histogram(f, bins=4, range=(0, 4), weights=w)", "xp.histogram(f, 3, density=True)"),
    *("xp.histogram_bin_edges(f, 4)", "xp.histogram2d(f, w, bins=(2, 3))", "xp.cov(x[0])"),
    *("xp.histogramdd(xp.stack([f, w], 1), bins=2, density=True)", "xp.cov(f, w)", "xp.cov(f)"),
    *(
        "xp.cov(x[0], rowvar=False, bias=True)",
        "xp.cov(x[0] ** 2, fweights=np.array([1, 2, 3, 1]))",
    ),
    *("xp.cov(x[0] ** 2, aweights=w, ddof=0)", "xp.corrcoef(f, w)", "xp.corrcoef(x[0] ** 2)"),
    *("xp.cov(c, c[::-1])", "xp.packbits(b)", "xp.packbits(m % 2, axis=0, bitorder='little')"),
    *(
        "xp.unpackbits(bytes)",
        "xp.unpackbits(bytes, axis=1, count=11)",
        "xp.unpackbits(bytes, count=-3)",
    ),
    *("xp.unpackbits(bytes, axis=0, bitorder='little')",),
]


@pytest.mark.parametrize("expression", [*SHAPES, *JOINS])
def test_shapes_and_joins(expression: str) -> None:
    agree(expression, ARRAYS, dtype="e, (2" not in expression)


@pytest.mark.parametrize("expression", [*PADS, *CHOICES])
def test_padding_and_choices(expression: str) -> None:
    agree(expression, ARRAYS)


@pytest.mark.parametrize("expression", [*EAGER_CHOICES, *SETS])
def test_results_whose_size_depends_on_values(expression: str) -> None:
    agree(expression, ARRAYS, jit=False, dtype=False)


@pytest.mark.parametrize("expression", SAMPLES)
def test_sampled_functions(expression: str) -> None:
    agree(expression, ARRAYS, tol=1e-5, dtype=False)


@pytest.mark.parametrize("expression", COUNTS)
def test_counts_and_covariances(expression: str) -> None:
    agree(expression, ARRAYS, tol=1e-5, dtype=False, jit="bincount" not in expression)


def test_shapes_must_be_known() -> None:
    for f in (
        lambda x: x.reshape(jnp.array(x.shape).prod()),
        lambda x: jnp.reshape(x, (jnp.array(6), 1)),
    ):
        with pytest.raises(
            TypeError, match="Shapes must be 1D sequences of concrete values"
        ) as raised:
            perspex.jit(f)(jnp.zeros((2, 3)))
        assert "np.prod(x.shape)" in str(raised.value)
    for shape in ((24.0,), None, "a", (2, 2.0)):
        with pytest.raises(TypeError, match="concrete values of integer type"):
            jnp.reshape(jnp.zeros(4), shape)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.reshape(jnp.zeros(4), (3, 2)), TypeError, "into shape"),
        (lambda: jnp.reshape(jnp.zeros(4), (-1, -1)), TypeError, "only specify one"),
        (lambda: jnp.reshape(jnp.zeros(4), (-1, 3)), TypeError, "does not divide"),
        (lambda: jnp.reshape(jnp.zeros(4), (2, 2), order="A"), NotImplementedError, "order"),
        (lambda: jnp.transpose(jnp.zeros((2, 3)), (0, 0)), TypeError, "permutation"),
        (lambda: jnp.swapaxes(jnp.zeros((2, 3)), 0, 5), IndexError, "axis 5"),
        (lambda: jnp.moveaxis(jnp.zeros((2, 3)), (0, 1), 0), ValueError, "2 vs 1"),
        (lambda: jnp.squeeze(jnp.zeros((2, 3)), 0), ValueError, "size not equal to one"),
        (lambda: jnp.expand_dims(jnp.zeros(2), (0, 0)), ValueError, "duplicate"),
        (lambda: jnp.broadcast_to(jnp.zeros(3), (2, 2)), ValueError, "broadcast"),
        (lambda: jnp.broadcast_arrays(jnp.zeros(3), jnp.zeros(2)), ValueError, "shapes="),
        (lambda: jnp.concatenate([]), ValueError, "at least one array"),
        (lambda: jnp.concatenate([1, 2]), ValueError, "Zero-dimensional"),
        (lambda: jnp.concatenate([[1], [2]]), TypeError, "list"),
        (lambda: jnp.concatenate([jnp.zeros(2), jnp.zeros((2, 2))]), TypeError, "dimensions"),
        (lambda: jnp.stack([jnp.zeros(2), jnp.zeros(3)]), ValueError, "same shape"),
        (lambda: jnp.split(jnp.zeros(5), 2), ValueError, "rest is 1"),
        (lambda: jnp.split(jnp.zeros(5), [3, 1]), ValueError, "ascend"),
        (lambda: jnp.tile(jnp.zeros(2), 1.5), TypeError, "integer"),
        (lambda: jnp.repeat(jnp.zeros(2), -1), TypeError, "negative"),
        (lambda: jnp.repeat(jnp.zeros(2), jnp.array([1, 2, 3])), ValueError, "do not fit"),
        (lambda: jnp.roll(jnp.zeros((2, 2)), (1, 2, 3), (0, 1)), ValueError, "shifts"),
        (lambda: jnp.rot90(jnp.zeros(2)), ValueError, "two axes"),
        (lambda: jnp.block([[jnp.zeros(2)], jnp.zeros(2)]), ValueError, "depths"),
        (lambda: jnp.pad(jnp.zeros(2), -1), ValueError, "negative"),
        (lambda: jnp.pad(jnp.zeros(2), 1.5), TypeError, "integral"),
        (lambda: jnp.pad(jnp.zeros(2), 1, mode="strange"), NotImplementedError, "strange"),
        (lambda: jnp.pad(jnp.zeros(2), 1, mode="edge", end_values=1), ValueError, "unsupported"),
        (lambda: jnp.pad(jnp.zeros(0), 1, mode="edge"), ValueError, "empty axis"),
        (lambda: jnp.where(jnp.array([True]), 1), TypeError, "NoneType"),
        (lambda: jnp.where([True], 1, 2), TypeError, "list"),
        (lambda: jnp.select([], []), ValueError, "non-empty"),
        (lambda: jnp.choose(jnp.array([5]), [1, 2]), ValueError, "numbered 0 to 1"),
        (lambda: jnp.compress(jnp.ones(5, bool), jnp.zeros(3)), ValueError, "out of bounds"),
        (lambda: jnp.nonzero(3), ValueError, "0d"),
        (lambda: jnp.delete(jnp.zeros(3), 5), ValueError, "axis 5"),
        (lambda: jnp.diff(3), ValueError, "at least one dimensional"),
        (lambda: jnp.gradient(jnp.zeros(1)), ValueError, "at least 2"),
        (lambda: jnp.interp(1.0, jnp.zeros(3), jnp.zeros(2)), ValueError, "equal size"),
        (lambda: jnp.convolve(jnp.zeros((2, 2)), jnp.zeros(2)), ValueError, "vectors"),
        (lambda: jnp.bincount(jnp.zeros(2)), TypeError, "integers"),
        (lambda: jnp.packbits(jnp.zeros(2)), TypeError, "integers"),
        (lambda: jnp.unpackbits(jnp.zeros(2, int)), TypeError, "uint8"),
        (
            lambda: (
                jnp.zeros(3).view(jnp.float16).view("int64") if 0 else jnp.zeros(()).view("int8")
            ),
            ValueError,
            "0d",
        ),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_sizes_make_traced_conditions_possible() -> None:
    x = jnp.array([0, 3, 0, 5, 6])
    jit = perspex.jit
    np.testing.assert_array_equal(jit(lambda x: jnp.nonzero(x, size=4)[0])(x), [1, 3, 4, 0])
    np.testing.assert_array_equal(
        jit(lambda x: jnp.flatnonzero(x, size=4, fill_value=9))(x), [1, 3, 4, 9]
    )
    np.testing.assert_array_equal(jit(lambda x: jnp.flatnonzero(x, size=2))(x), [1, 3])
    rows = jit(lambda x: jnp.argwhere(x > 2, size=2, fill_value=(7, 8)))(jnp.eye(2) * 3)
    np.testing.assert_array_equal(rows, [[0, 0], [1, 1]])
    np.testing.assert_array_equal(
        jit(lambda x: jnp.compress(x > 2, x, size=4, fill_value=-1))(x), [3, 5, 6, -1]
    )
    np.testing.assert_array_equal(
        jit(lambda n: jnp.repeat(jnp.arange(3), n, total_repeat_length=5))(jnp.array([2, 0, 1])),
        [0, 0, 2, 2, 2],
    )
    np.testing.assert_array_equal(jit(lambda x: jnp.unique(x, size=3))(x), [0, 3, 5])
    found = jit(lambda x: jnp.unique(x, size=6, fill_value=-1, return_counts=True))(x)
    np.testing.assert_array_equal(found[0], [0, 3, 5, 6, -1, -1])
    np.testing.assert_array_equal(found[1], [2, 1, 1, 1, 0, 0])
    np.testing.assert_array_equal(
        jit(lambda x: jnp.setdiff1d(x, jnp.array([3, 0]), size=3))(x), [5, 6, 0]
    )
    np.testing.assert_array_equal(
        jit(lambda x: jnp.intersect1d(x, jnp.array([6, 3]), size=3))(x), [3, 6, 3]
    )
    np.testing.assert_array_equal(jit(lambda x: jnp.bincount(x, length=4))(x), [2, 0, 0, 1])


@pytest.mark.parametrize(
    "f",
    [
        *(jnp.nonzero, jnp.argwhere, jnp.unique, jnp.bincount, jnp.trim_zeros),
        *(lambda x: jnp.where(x > 1), lambda x: jnp.repeat(x, x), lambda x: jnp.delete(x, x)),
        *(lambda x: jnp.compress(x > 1, x), lambda x: jnp.union1d(x, x)),
        lambda x: jnp.choose(x, [x, x]),
    ],
)
def test_results_of_unknown_size_say_what_to_do(f: Any) -> None:
    with pytest.raises(ConcretizationTypeError, match="Remedy"):
        perspex.jit(f)(jnp.array([0, 1]))


def test_places_may_be_traced_where_the_size_is_known() -> None:
    v = jnp.arange(5)
    jit = perspex.jit
    np.testing.assert_array_equal(jit(lambda k: jnp.roll(v, k))(-7), np.roll(np.arange(5), -7))
    np.testing.assert_array_equal(
        jit(lambda k: jnp.roll(v.reshape(1, 5), (0, k), (0, 1)))(2), [[3, 4, 0, 1, 2]]
    )
    np.testing.assert_array_equal(jit(lambda i: jnp.insert(v, i, 9))(2), [0, 1, 9, 2, 3, 4])
    np.testing.assert_array_equal(
        jit(lambda i: jnp.delete(v, i, assume_unique_indices=True))(jnp.array([3, 0])), [1, 2, 4]
    )
    np.testing.assert_array_equal(
        jit(lambda c: jnp.pad(v, (1, 0), constant_values=c))(7), [7, 0, 1, 2, 3, 4]
    )


def test_view_reads_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    host = rng.integers(0, 2**31, (2, 4)).astype(np.int32)
    for dtype in ("float32", "int16", "uint8", "complex64", "uint32", "float16"):
        got, want = jnp.array(host).view(dtype), host.view(dtype)
        assert got.dtype == want.dtype and got.shape == want.shape
        assert np.asarray(got).tobytes() == want.tobytes()
    wide = host.astype(np.int8).view(np.int32)
    assert np.asarray(jnp.array(host.astype(np.int8)).view("int32")).tobytes() == wide.tobytes()
    z = (rng.random(3) + 1j).astype(np.complex64)
    assert np.asarray(jnp.array(z).view("float32")).tobytes() == z.tobytes()
    np.testing.assert_array_equal(jnp.array([True, False]).view("uint8"), [1, 0])


def test_functions_of_vectors_along_an_axis() -> None:
    x = ARRAYS["x"]
    for axis in (0, 1, 2, -1):
        for mine, theirs in (
            (jnp.sum, np.sum),
            (lambda r: r[::-1] * 2, lambda r: r[::-1] * 2),
            (lambda r: jnp.outer(r, r), lambda r: np.outer(r, r)),
        ):
            got = jnp.apply_along_axis(mine, axis, jnp.array(x))
            compare(got, np.apply_along_axis(theirs, axis, x))
    compare(
        jnp.apply_over_axes(jnp.sum, jnp.array(x), [0, 2]), np.apply_over_axes(np.sum, x, [0, 2])
    )


@pytest.mark.parametrize(
    "expression",
    [
        "xp.r_[1:4, 0, v]",
        "xp.r_[0:1:5j, f]",
        "xp.r_[m, m]",
        "xp.c_[m, v[:2]]",
        "xp.c_[v, v]",
        *[f"xp.r_['0,3,{k}', m, m]" for k in (-1, 0, 1)],
        *[f"xp.r_['0,4,{k}', v, v]" for k in (-2, -1, 0, 1, 2)],
        "xp.mask_indices(3, xp.triu, 1)",
    ],
)
def test_concatenation_by_indexing(expression: str) -> None:
    agree(expression, ARRAYS, jit="mask" not in expression, dtype=False)


def test_vectorize() -> None:
    x, v = jnp.array(ARRAYS["x"]), jnp.arange(4.0)
    compare(jnp.vectorize(lambda a, b: a + b)(x, v), ARRAYS["x"] + np.arange(4))
    compare(
        jnp.vectorize(lambda a, b: a + b)(x[:, :1], x[:1, :, :1]),
        ARRAYS["x"][:, :1] + ARRAYS["x"][:1, :, :1],
    )
    product = jnp.vectorize(jnp.matmul, signature="(n,m),(m)->(n)")
    compare(product(x, v), ARRAYS["x"] @ np.arange(4.0, dtype=np.float32))
    both = jnp.vectorize(lambda a: (a.min(), a.max()), signature="(n)->(),()")
    compare(both(x), (ARRAYS["x"].min(-1), ARRAYS["x"].max(-1)))
    compare(jnp.vectorize(lambda a, k: a**k, excluded={1})(x, 2), ARRAYS["x"] ** 2)
    with pytest.raises(ValueError, match="inconsistent size for core dimension 'm'"):
        product(x, v[:3])
    with pytest.raises(ValueError, match="not a valid signature"):
        jnp.vectorize(jnp.sum, signature="n->()")
    with pytest.raises(TypeError, match="expected 2"):
        product(x)
    with pytest.raises(ValueError, match="not have enough dimensions"):
        product(v, v)


def test_derivatives_pass_through() -> None:
    v = jnp.array([1.0, 2.0, 3.0])
    for f, want in (
        (lambda v: jnp.concatenate([v, 2 * v])[1:5].sum(), [2, 3, 1]),
        (lambda v: jnp.pad(v, 2, mode="reflect").sum(), [2, 3, 2]),
        (lambda v: jnp.repeat(v, jnp.array([2, 0, 1])).sum(), [2, 0, 1]),
        (lambda v: (jnp.roll(v, 1) * v).sum(), [5, 4, 3]),
        (lambda v: jnp.where(v > 1.5, v * v, 0).sum(), [0, 4, 6]),
        (lambda v: jnp.unique(v, size=3)[0] * 2, [2, 0, 0]),
        (lambda v: jnp.interp(1.5, jnp.arange(3.0), v), [0, 0.5, 0.5]),
        (lambda v: jnp.convolve(v, v).sum(), [12, 12, 12]),
        (lambda v: jnp.diff(v).sum(), [-1, 0, 1]),
    ):
        np.testing.assert_allclose(perspex.grad(f)(v), want, 1e-5)


def test_operations_map_over_a_batch() -> None:
    x = jnp.array(ARRAYS["x"])
    for f in (
        lambda a: jnp.concatenate([a, a[:1]]),
        lambda a: jnp.pad(a, 1, mode="wrap"),
        lambda a: jnp.roll(a, 1, axis=1),
        lambda a: jnp.repeat(a, 2, axis=0),
        lambda a: jnp.moveaxis(a, 0, 1),
        lambda a: jnp.nonzero(a > 5, size=3),
        lambda a: jnp.unique(a % 3, size=2),
        lambda a: jnp.cov(a),
        lambda a: jnp.histogram(a, bins=3)[0],
    ):
        rows = [f(a) for a in x]
        got = perspex.vmap(f)(x)
        if isinstance(got, tuple):
            compare(got, [np.stack([np.asarray(r[k]) for r in rows]) for k in range(len(got))])
        else:
            compare(got, np.stack([np.asarray(r) for r in rows]), 1e-5)


def test_no_differences_are_the_array_itself() -> None:
    assert jnp.diff(3, 0) == np.diff(3, 0) == 3
    x = np.arange(4, dtype=np.float32)
    compare(jnp.diff(x, 0, 7), np.diff(x, 0, 7))


def test_turns_are_whole() -> None:
    with pytest.raises(TypeError, match="rot90: k"):
        jnp.rot90(np.ones((2, 3)), 0.5)  # type: ignore[arg-type]


def test_a_number_has_no_zeros_to_trim() -> None:
    assert (jnp.trim_zeros(2.5), jnp.trim_zeros(0)) == (2.5, 0)


def test_a_complex_number_is_not_read_as_other_widths() -> None:
    with pytest.raises(ValueError, match="itemsize"):
        np.complex64(1).view("int8")
    with pytest.raises(ValueError, match="itemsize"):
        jnp.asarray(np.complex64(1)).view("int8")


@pytest.mark.parametrize("shape", [2**63, (2**40, 2**40)])
def test_sizes_beyond_all_memory_are_refused(shape: Any) -> None:
    with pytest.raises(ValueError, match="bytes or more"):
        jnp.zeros(shape)


@pytest.mark.parametrize("right", [False, True])
def test_digitize_puts_nan_above_all_edges(right: bool) -> None:
    x = np.array([0, 2, -5, np.nan, np.inf], np.float32)
    for values in ([-1.6, 0.2, 1.0, np.nan], [np.nan], [1.0, np.nan, np.nan]):
        edges = np.array(values, np.float32)
        want = np.searchsorted(edges, x, "left" if right else "right")
        np.testing.assert_array_equal(jnp.digitize(x, edges, right), want)
        falling = jnp.digitize(x, edges[::-1], right)
        if len(edges) > 1:
            np.testing.assert_array_equal(falling, len(edges) - want)

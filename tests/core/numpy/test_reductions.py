"""Reductions, means, quantiles and running sums against NumPy."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex.transforms.jvp import jvp

RANDOM = np.random.default_rng(7)
CUBE = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
WHERE = RANDOM.random((2, 3, 4)) < 0.6
HOLES = np.where(RANDOM.random((2, 3, 4)) < 0.3, np.nan, CUBE).astype(np.float32)
AXES = [None, 0, 1, -1, (0, 2), (1, -1), (), (0, 1, 2)]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Let NumPy divide by zero and average nothing without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def close(got: Any, want: Any, rtol: float = 4e-6, atol: float = 2e-6) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got).astype(want.dtype), want, rtol, atol)


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all"])
def test_along_axes(name: str, axis: Any) -> None:
    x = CUBE > 0.5 if name in ("any", "all") else CUBE
    for keepdims in (False, True):
        got = getattr(jnp, name)(x, axis=axis, keepdims=keepdims)
        close(got, getattr(np, name)(x, axis=axis, keepdims=keepdims))
        assert got.dtype == x.dtype


@pytest.mark.parametrize("axis", [None, 1, (0, 2)], ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "any", "all", "max", "min"])
def test_where(name: str, axis: Any) -> None:
    options: dict[str, Any] = {"initial": -0.5} if name in ("max", "min") else {}
    for mask in (WHERE, WHERE[0], True):
        got = getattr(jnp, name)(CUBE, axis=axis, where=mask, **options)
        close(got, getattr(np, name)(CUBE, axis=axis, where=mask, **options))
    with pytest.raises(ValueError, match="boolean"):
        getattr(jnp, name)(CUBE, where=np.ones(4), **options)


def test_initial() -> None:
    for name in ("sum", "prod", "max", "min"):
        for value in (0.5, 3, np.float32(-2)):
            got = getattr(jnp, name)(CUBE, axis=1, initial=value)
            close(got, getattr(np, name)(CUBE, axis=1, initial=value))
    with pytest.raises(ValueError, match="scalar"):
        jnp.sum(CUBE, initial=np.ones(3))


@pytest.mark.parametrize("name", ["sum", "prod", "any", "all", "mean"])
def test_of_nothing(name: str) -> None:
    empty = np.zeros((0, 3), np.float32)
    with quiet():
        for axis in (None, 0, 1):
            close(getattr(jnp, name)(empty, axis), getattr(np, name)(empty, axis))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_nothing_has_no_extreme(name: str) -> None:
    empty = np.zeros((0, 3), np.float32)
    with pytest.raises(ValueError):
        getattr(jnp, name)(empty)
    with pytest.raises(ValueError):
        getattr(jnp, name)(empty, axis=0)
    if name in ("max", "min"):
        assert getattr(jnp, name)(empty, axis=1).shape == (0,)
        with pytest.raises(ValueError, match="initial"):
            getattr(jnp, name)(CUBE, where=WHERE)


@pytest.mark.parametrize(
    "dtype, total", [("bool", "int32"), ("int8", "int32"), ("uint8", "uint32"), ("int32", "int32")]
)
def test_sums_of_integers_are_wide(dtype: str, total: str) -> None:
    x = (np.arange(1, 6) * 25).astype(dtype)
    for name in ("sum", "prod"):
        got = getattr(jnp, name)(x)
        assert got.dtype == np.dtype(total)
        assert int(got) == int(getattr(np, name)(x.astype(np.int64)).astype(total))
    if dtype != "bool":
        kept = jnp.sum(x, promote_integers=False)
        assert kept.dtype == np.dtype(dtype)
        assert int(kept) == int(np.sum(x.astype(np.int64)).astype(dtype))
    assert jnp.sum(x, dtype=jnp.float32).dtype == np.float32
    assert jnp.mean(x).dtype == np.float32
    assert float(jnp.mean(x)) == pytest.approx(x.astype(float).mean(), rel=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_narrow_floats_are_rounded_once(dtype: str) -> None:
    x = np.full(3000, 0.1).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    for name in ("sum", "mean", "var", "std"):
        got = getattr(jnp, name)(x)
        assert got.dtype == x.dtype
        want = getattr(np, name)(x.astype(np.float64)).astype(x.dtype)
        assert abs(float(got) - float(want)) <= 1e-3 * max(1.0, abs(float(want)))


def test_dtype_of_truth() -> None:
    x = np.array([0, 2, 0])
    assert jnp.sum(x, dtype=bool).dtype == bool and bool(jnp.sum(x, dtype=bool))
    assert not bool(jnp.prod(x, dtype=bool))
    assert bool(jnp.any(jnp.array([0j, 1j]))) and not bool(jnp.all(jnp.array([0j, 1j])))


def test_nan_and_infinity() -> None:
    x = np.array([1.0, np.nan, -np.inf], np.float32)
    for name in ("sum", "max", "min", "mean"):
        assert np.isnan(float(getattr(jnp, name)(x)))
    assert int(jnp.argmax(x)) == int(jnp.argmin(x)) == 1
    assert float(jnp.min(x[[0, 2]])) == -np.inf


@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax", "nanargmin"])
def test_positions(name: str) -> None:
    x = HOLES if name.startswith("nan") else CUBE
    for axis in (None, 0, 1, -1):
        for keepdims in (False, True):
            got = getattr(jnp, name)(x, axis=axis, keepdims=keepdims)
            if name.startswith("nan"):
                filled = np.where(np.isnan(x), -np.inf if name == "nanargmax" else np.inf, x)
                want = getattr(np, name[3:])(filled, axis=axis, keepdims=keepdims)
                nothing = np.isnan(x).all(axis=axis, keepdims=keepdims)
                want = np.where(nothing, -1, want)
            else:
                want = getattr(np, name)(x, axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(np.asarray(got), want)
            assert got.dtype == np.int32
    with pytest.raises(ValueError, match="out of bounds"):
        getattr(jnp, name)(x, axis=3)


def test_ties_go_to_the_first() -> None:
    x = np.array([[2, 2, 1], [1, 1, 1]])
    np.testing.assert_array_equal(np.asarray(jnp.argmax(x, axis=1)), [0, 0])
    np.testing.assert_array_equal(np.asarray(jnp.argmin(x, axis=1)), [2, 0])


@pytest.mark.parametrize(
    "axis, kind, words",
    [
        *((3, ValueError, "out of bounds"), (-4, ValueError, "out of bounds")),
        *(((0, 0), ValueError, "duplicate"), ((0, -3), ValueError, "duplicate")),
        *((1.0, TypeError, "axis"), ((0, 1.5), TypeError, "integer"), ("a", TypeError, "integer")),
    ],
)
def test_bad_axes(axis: Any, kind: type, words: str) -> None:
    for name in ("sum", "max", "mean", "any", "var"):
        with pytest.raises(kind, match=words):
            getattr(jnp, name)(CUBE, axis=axis)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "any", "argmax", "cumsum", "median", "std"])
def test_lists_and_out_are_refused(name: str) -> None:
    f = getattr(jnp, name)
    with pytest.raises(TypeError, match="requires ndarray or scalar arguments, got <class 'list'>"):
        f([1.0, 2.0])
    kind = ValueError if name == "median" else NotImplementedError
    with pytest.raises(kind, match="out"):
        f(CUBE, out=np.zeros(()))


def test_methods_and_builtins() -> None:
    x = jnp.asarray(CUBE)
    close(x.sum(0), CUBE.sum(0))
    close(x.mean(axis=(0, 1), keepdims=True), CUBE.mean(axis=(0, 1), keepdims=True))
    close(x.max(-1), CUBE.max(-1))
    close(x.std(), CUBE.std())
    close(x.cumsum(1), CUBE.cumsum(1))
    close(np.sum(x, axis=0), CUBE.sum(0))


@pytest.mark.parametrize("ddof", [0, 1, 2.5])
def test_var_and_std(ddof: float) -> None:
    for axis in (None, 1):
        close(jnp.var(CUBE, axis, ddof=ddof), np.var(CUBE, axis, ddof=ddof))
        close(jnp.std(CUBE, axis, correction=ddof), np.std(CUBE, axis, ddof=ddof))
        shifted = perspex.jit(lambda d, axis=axis: jnp.var(CUBE, axis, correction=d))(ddof)
        close(shifted, np.var(CUBE, axis, ddof=ddof))
    z = (CUBE + 1j * CUBE[::-1]).astype(np.complex64)
    got = jnp.var(z, 0)
    close(got, np.var(z, 0))
    assert got.dtype == np.float32
    mean = CUBE.mean(1, keepdims=True)
    close(jnp.var(CUBE, 1, mean=mean), np.var(CUBE, 1))


def test_var_refuses() -> None:
    assert np.isnan(float(jnp.var(jnp.ones(2), ddof=2)))
    with pytest.raises(ValueError, match="not both"):
        jnp.var(CUBE, ddof=1, correction=1)
    with pytest.raises(ValueError, match="complex"):
        jnp.var(jnp.array([1j]), dtype=jnp.float32)
    with pytest.raises(ValueError, match="dtype"):
        jnp.std(CUBE, dtype=int)


def test_average() -> None:
    weights = np.abs(CUBE)
    close(jnp.average(CUBE), np.average(CUBE))
    close(jnp.average(CUBE, 1, weights), np.average(CUBE, 1, weights))
    close(jnp.average(CUBE, 1, weights[0, :, 0]), np.average(CUBE, 1, weights[0, :, 0]))
    pair = jnp.average(CUBE, (2, 0), weights[:, 0, :].T, returned=True)
    for got, want in zip(
        pair, np.average(CUBE, (2, 0), weights[:, 0, :].T, returned=True), strict=True
    ):
        close(got, want)
    with pytest.raises(ValueError, match="weights"):
        jnp.average(CUBE, 1, np.ones(2))
    with pytest.raises(ValueError, match="weights"):
        jnp.average(CUBE, None, np.ones(3))


@pytest.mark.parametrize(
    "name", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian"]
)
def test_without_nan(name: str) -> None:
    for axis in (None, 0, (1, 2)):
        for keepdims in (False, True):
            with quiet():
                want = getattr(np, name)(HOLES, axis=axis, keepdims=keepdims)
            close(getattr(jnp, name)(HOLES, axis=axis, keepdims=keepdims), want)
    integers = np.array([[3, 1], [2, 5]])
    close(getattr(jnp, name)(integers, axis=0), getattr(np, name)(integers, axis=0))


def test_nothing_but_nan() -> None:
    x = np.full(3, np.nan, np.float32)
    for name in ("nanmax", "nanmin", "nanmean", "nanvar", "nanmedian"):
        assert np.isnan(float(getattr(jnp, name)(x)))
    assert float(jnp.nansum(x)) == 0.0 and float(jnp.nanprod(x)) == 1.0
    assert int(jnp.nanargmax(x)) == -1


# ---- Quantiles ----------------------------------------------------------------------------------

METHODS = ["linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf"]


@pytest.mark.parametrize("method", METHODS)
def test_quantile(method: str) -> None:
    many = np.array([0.0, 0.17, 0.8, 1.0])
    for q, axis, keepdims in (
        *((0.3, None, False), (0.3, 1, True), (many, 1, False), (many, (0, 2), True)),
    ):
        options = {"axis": axis, "keepdims": keepdims, "method": method}
        want = np.quantile(CUBE.astype(np.float64), q, **options)
        close(jnp.quantile(CUBE, q, **options), want)
        close(jnp.percentile(CUBE, q * 100, **options), want)


@pytest.mark.parametrize("method", ["linear", "lower", "inverted_cdf"])
def test_quantile_without_nan(method: str) -> None:
    q = np.array([0.2, 0.7])
    for axis in (None, 2):
        with quiet():
            want = np.nanquantile(HOLES.astype(np.float64), q, axis=axis, method=method)
        close(jnp.nanquantile(HOLES, q, axis=axis, method=method), want)
        close(jnp.nanpercentile(HOLES, q * 100, axis=axis, method=method), want)
    assert np.isnan(np.asarray(jnp.quantile(HOLES, q, method=method))).all()


def test_weighted_quantile() -> None:
    x, weights = CUBE.reshape(6, 4), np.abs(CUBE[::-1]).reshape(6, 4)
    q = np.array([0.1, 0.5, 0.9])
    options: dict[str, Any] = {"method": "inverted_cdf"}
    close(
        jnp.quantile(x, q, axis=1, weights=weights, **options),
        np.quantile(x, q, axis=1, weights=weights, **options),
    )
    close(
        jnp.quantile(x, q, axis=1, weights=weights[0], **options),
        np.quantile(x, q, axis=1, weights=weights[0], **options),
    )
    with pytest.raises(NotImplementedError, match="inverted_cdf"):
        jnp.quantile(x, q, weights=weights)


def test_quantile_refuses() -> None:
    with pytest.raises(ValueError, match="method"):
        jnp.quantile(CUBE, 0.5, method="strange")
    with pytest.raises(ValueError, match="complex"):
        jnp.quantile(jnp.array([1j]), 0.5)
    with pytest.raises(ValueError, match="one axis"):
        jnp.quantile(CUBE, np.ones((2, 2)))
    with pytest.raises(ValueError, match="overwrite_input"):
        jnp.median(CUBE, overwrite_input=True)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_median(n: int) -> None:
    x = RANDOM.permutation(n * 3).reshape(3, n)
    for axis in (None, 0, 1):
        got = jnp.median(x, axis)
        assert got.dtype == np.float32
        close(got, np.median(x, axis))
    assert jnp.median(jnp.ones(3, jnp.bfloat16)).dtype == jnp.bfloat16


# ---- Running sums -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_running(name: str) -> None:
    x = HOLES if name.startswith("nan") else CUBE
    for axis in (None, 0, 1, -1):
        close(getattr(jnp, name)(x, axis=axis), getattr(np, name)(x, axis=axis), 2e-5, 2e-5)
    assert getattr(jnp, name)(np.ones(3, np.int8)).dtype == np.int8
    assert getattr(jnp, name)(np.ones(3, bool)).dtype == np.int32
    close(getattr(jnp, name)(np.ones(3, np.int8), dtype=jnp.float32), getattr(np, name)(np.ones(3)))
    close(getattr(jnp, name)(3), getattr(np, name)(3))
    with pytest.raises(ValueError, match="out of bounds"):
        getattr(jnp, name)(x, axis=3)
    with pytest.raises(TypeError, match="one axis"):
        getattr(jnp, name)(x, axis=(0, 1))


def test_cumulative_sum_of_the_array_standard() -> None:
    x = np.arange(1, 4)
    for name, start in (("cumulative_sum", 0), ("cumulative_prod", 1)):
        whole = getattr(np, "cumsum" if start == 0 else "cumprod")(x)
        np.testing.assert_array_equal(np.asarray(getattr(jnp, name)(x)), whole)
        got = getattr(jnp, name)(x, include_initial=True)
        np.testing.assert_array_equal(np.asarray(got), [start, *whole])
        assert getattr(jnp, name)(CUBE, axis=1, include_initial=True).shape == (2, 4, 4)
        with pytest.raises(ValueError, match="axis"):
            getattr(jnp, name)(CUBE)
        with pytest.raises(ValueError, match="scalar"):
            getattr(jnp, name)(3)


def test_running_truth() -> None:
    x = np.array([False, True, False])
    np.testing.assert_array_equal(np.asarray(jnp.cumsum(x, dtype=bool)), [False, True, True])


# ---- Counting and comparing ---------------------------------------------------------------------


def test_counts_and_spreads() -> None:
    x = np.array([[0, 1, 2], [3, 0, -1]])
    for axis in (None, 0, (0, 1)):
        np.testing.assert_array_equal(
            np.asarray(jnp.count_nonzero(x, axis)), np.count_nonzero(x, axis)
        )
        np.testing.assert_array_equal(np.asarray(jnp.ptp(x, axis)), np.ptp(x, axis))
    low, high = jnp.minmax(x, axis=1)
    np.testing.assert_array_equal(np.asarray(low), x.min(1))
    np.testing.assert_array_equal(np.asarray(high), x.max(1))


def test_arrays_are_equal() -> None:
    x = np.array([1.0, np.nan])
    assert not bool(jnp.array_equal(x, x)) and bool(jnp.array_equal(x, x, equal_nan=True))
    assert bool(jnp.array_equal([1, 2], jnp.array([1, 2]))) and not bool(jnp.array_equal([1], 1))
    assert bool(jnp.array_equiv(np.ones((2, 3)), [1, 1, 1]))
    assert not bool(jnp.array_equiv(np.ones(3), np.ones(4)))
    with pytest.raises(TypeError):
        jnp.array_equal(["a"], ["a"])


# ---- Derivatives --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.mean(x),
        lambda x: jnp.var(x, axis=1, ddof=1),
        lambda x: jnp.std(x),
        lambda x: jnp.nanvar(x, axis=0),
        lambda x: jnp.prod(x, axis=1),
        lambda x: jnp.max(x, axis=0),
        lambda x: jnp.median(x, axis=1),
        lambda x: jnp.quantile(x, 0.3),
        lambda x: jnp.cumsum(x, axis=1),
        lambda x: jnp.cumprod(x, axis=1),
        lambda x: jnp.average(x, axis=0, weights=x**2),
        lambda x: jnp.ptp(x, axis=1),
    ],
)
def test_derivatives_against_differences(f: Any) -> None:
    x = RANDOM.normal(size=(3, 4))
    direction = RANDOM.normal(size=(3, 4))
    with perspex.enable_x64(True):
        _, (t,) = jvp(lambda v: [f(v)], [jnp.asarray(x)], [jnp.asarray(direction)])
        ends = [np.asarray(f(jnp.asarray(x + s * 1e-6 * direction))) for s in (1, -1)]
        np.testing.assert_allclose(np.asarray(t), (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-7)


NOTHING = np.zeros((0, 3), np.float32)


@pytest.mark.parametrize("method", ["linear", "midpoint", "lower", "inverted_cdf"])
def test_quantiles_of_no_lines(method: str) -> None:
    for axis, shape in ((-1, (0,)), ((), (0, 3)), (0, (3,))):
        got = jnp.quantile(NOTHING, 0.5, axis=axis, method=method)
        assert got.shape == shape
        assert np.isnan(got).all()
    assert jnp.median(NOTHING, axis=1).shape == jnp.nanmedian(NOTHING, axis=1).shape == (0,)


@pytest.mark.parametrize("name", ["sum", "prod", "any", "all", "max", "mean", "var"])
def test_where_has_no_axes_of_its_own(name: str) -> None:
    options: dict[str, Any] = {"initial": 0} if name == "max" else {}
    with pytest.raises(ValueError, match=r"where has the shape \(2, 1\)"):
        getattr(jnp, name)(np.ones(6, np.float32), where=np.array([[True], [False]]), **options)


@pytest.mark.parametrize("name", ["var", "nanvar"])
def test_variance_of_nothing_as_integers(name: str) -> None:
    got = getattr(jnp, name)(np.ones(3, np.float32), ddof=3, dtype="int8")
    assert (got.dtype, int(got)) == (np.int8, 0)

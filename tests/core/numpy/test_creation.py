"""Arrays from values, filled arrays, ranges, grids, scalar types: against NumPy."""

from __future__ import annotations

import array as stdlib_array
import enum
import io
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex.transforms.jvp import jvp


def same(got: Any, want: Any, dtype: Any = None) -> None:
    """`got` has the numbers and the shape of `want`, and its dtype in 32 bits."""
    want = np.asarray(want)
    narrow = {"int64": "int32", "float64": "float32", "complex128": "complex64"}
    assert got.dtype == np.dtype(dtype or narrow.get(want.dtype.name, want.dtype))
    assert got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got).astype(want.dtype), want, 2e-6, 1e-6)


# ---- From values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        *(3, 2.5, True, 1j, [], [[]], [1, 2], [1, 2.5], [True, 2], [1, 2j], [[1, 2], [3, 4]]),
        *(((1, 2), [3, 4]), (1, (2,))[1], np.arange(3), [np.arange(2), [5, 6]], range(4)),
        *([np.float64(1.5), 2], memoryview(b"abc"), stdlib_array.array("d", [1.0, 2.0])),
        np.array(5),
    ],
    ids=lambda value: "memory" if isinstance(value, memoryview) else repr(value),
)
def test_array_from_values(value: Any) -> None:
    same(jnp.array(value), np.array(value))
    same(jnp.asarray(value), np.array(value))
    got = perspex.jit(lambda: jnp.array(value))()
    same(got, np.array(value))


def test_only_a_python_number_alone_is_weak() -> None:
    assert jnp.array(1).weak_type and jnp.asarray(1.5).weak_type and jnp.array(1, ndmin=2).weak_type
    for value in (True, [1], np.float32(1), np.ones(2), jnp.float32(1)):
        assert not jnp.array(value).weak_type
    assert not jnp.array(1.5, jnp.float32).weak_type
    assert not jnp.asarray(jnp.asarray(1.5), jnp.float32).weak_type
    assert jnp.asarray(jnp.asarray(1.5)).weak_type


def test_elements_of_a_list_promote() -> None:
    for value, dtype in (
        ([np.int8(1), 2], "int8"),
        ([np.int8(1), np.int16(2)], "int16"),
        ([jnp.bfloat16(1), 2.5], "bfloat16"),
        ([jnp.arange(2), jnp.arange(2.0)], "float32"),
        ([np.uint8(1), 2.5], "float32"),
    ):
        assert jnp.array(value).dtype.name == dtype


def test_arrays_in_lists_are_stacked() -> None:
    x, y = jnp.arange(2.0), jnp.ones(2)
    same(jnp.array([x, y]), [[0, 1], [1, 1]], np.float32)
    same(jnp.array([[x[1], 2], [3, y[0]]]), [[1, 2], [3, 1]], np.float32)
    big = jnp.arange(100.0)
    same(jnp.array([big, np.zeros(100)]), [np.arange(100.0), np.zeros(100)], np.float32)
    many = jnp.array([big + i for i in range(70)])
    same(many, np.arange(100.0) + np.arange(70.0)[:, None], np.float32)
    keys = perspex.random.split(perspex.random.key(0), 2)
    assert jnp.array([keys[0], keys[1]]).shape == (2,)


def test_tracers_in_lists_are_stacked() -> None:
    f = perspex.jit(lambda a, b: jnp.array([a, [b, 2][0], 3.5, a * b]))
    same(f(1.0, 2), [1.0, 2.0, 3.5, 2.0], np.float32)
    f = perspex.jit(lambda x: jnp.array([[v + i for v in x] for i in range(40)]))
    same(f(jnp.arange(3)), np.arange(3) + np.arange(40)[:, None])
    _, (t,) = jvp(lambda a: [jnp.array([a, 2 * a, 1.0])], [jnp.float32(3)], [jnp.float32(1)])
    same(t, [1.0, 2.0, 0.0], np.float32)


@pytest.mark.parametrize(
    "value, kind, words",
    [
        ("abc", TypeError, "abc"),
        (["a"], TypeError, "numbers"),
        ([1, "a"], TypeError, "numbers"),
        (None, ValueError, "None"),
        ([1, None], ValueError, "None"),
        (object(), TypeError, "object"),
        ({}, TypeError, "numbers"),
        ({1, 2}, TypeError, "numbers"),
        ((i for i in range(3)), TypeError, "generator"),
        ([[1, 2], [3]], ValueError, "inhomogeneous"),
        (np.array(["a"]), TypeError, "numbers"),
        (np.array([1, None]), TypeError, "numbers"),
        (np.array(["2020"], "datetime64[D]"), TypeError, "datetime"),
        (np.array([1], ">i4"), TypeError, "byte order"),
        (lambda: 0, TypeError, "function"),
    ],
)
def test_what_has_no_numbers_is_refused(value: Any, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        jnp.array(value)


@pytest.mark.parametrize(
    "value, dtype",
    [
        *((2**31, None), (2**63, None), ([2**31], None), (300, jnp.uint8), ([300], jnp.uint8)),
        *((-1, jnp.uint8), ([-1], jnp.uint32)),
    ],
)
def test_integers_that_do_not_fit_are_refused(value: Any, dtype: Any) -> None:
    with pytest.raises(OverflowError):
        jnp.array(value, dtype)


def test_wide_integers_need_wide_dtypes() -> None:
    assert float(jnp.array(2**31, jnp.float32)) == 2.0**31
    assert int(jnp.array([2**31], jnp.uint32)[0]) == 2**31
    with perspex.enable_x64(True):
        assert int(jnp.array(2**62)) == 2**62
        assert jnp.array(2**62).dtype == np.int64


def test_copies_and_aliases() -> None:
    x = jnp.arange(3)
    assert jnp.asarray(x) is x and jnp.array(x) is not x and jnp.array(x, copy=False) is x
    assert x.astype(x.dtype) is x and x.astype(x.dtype, copy=True) is not x
    host = np.arange(3.0)
    ours, alias = jnp.array(host), jnp.asarray(host)
    host[0] = 9
    assert float(ours[0]) == float(alias[0]) == 0.0
    with pytest.raises(TypeError, match="copy requires"):
        jnp.copy([1, 2])
    with pytest.raises(NotImplementedError, match="order"):
        jnp.array([1, 2], order="F")


def test_ndmin_and_device() -> None:
    assert jnp.array([1, 2], ndmin=3).shape == (1, 1, 2)
    device = perspex.devices()[0]
    for x in (
        jnp.array([1], device=device),
        jnp.zeros(2, device=device),
        jnp.arange(3, device=device),
    ):
        assert x.devices() == {device} and x.committed
    assert not jnp.zeros(2).committed


class Colour(enum.IntEnum):
    RED = 7


def test_integer_enumerations_are_strong_integers() -> None:
    x = jnp.asarray(Colour.RED)
    assert int(x) == 7 and x.dtype == np.int32 and not x.weak_type


@pytest.mark.parametrize("transform", [lambda f: f, perspex.jit, perspex.vmap])
def test_integer_enumerations_beside_arrays(transform: Any) -> None:
    x = np.arange(3, dtype=np.int32)
    for f in (lambda v: v * Colour.RED, lambda v: Colour.RED * v, lambda v: v + Colour.RED):
        same(transform(f)(jnp.asarray(x)), f(x))


@pytest.mark.parametrize("dtype", ["int8", "bool", "bfloat16", "complex64", "uint32", "float16"])
def test_astype(dtype: str) -> None:
    x = np.array([0.0, 1.5, 200.0, 3.0])
    target = np.dtype(getattr(ml_dtypes, dtype, dtype))
    small = x[:2] if dtype == "int8" else x
    same(jnp.asarray(small).astype(target), small.astype(target))
    assert jnp.astype(jnp.arange(2), None).dtype == np.float32
    with pytest.raises(TypeError):
        jnp.arange(2).astype("strange")


def test_complex_numbers_are_true_unless_both_parts_are_zero() -> None:
    z = jnp.array([0j, 1j, 1.0, 0.0])
    np.testing.assert_array_equal(np.asarray(z.astype(bool)), [False, True, True, False])
    np.testing.assert_array_equal(np.asarray(z.astype(jnp.float32)), [0, 0, 1, 0])


def test_truncated_dtypes_are_warned_of() -> None:
    for make in (lambda: jnp.zeros(2, "float64"), lambda: jnp.array([1], np.int64)):
        with pytest.warns(UserWarning, match="not available"):
            assert make().dtype.itemsize == 4


# ---- Filled -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), 3, (2,), (2, 0, 3), [2, 3], np.int64(4), np.array([1, 2])])
@pytest.mark.parametrize("dtype", [None, "int8", bool, "bfloat16", "complex64"])
def test_zeros_ones_full(shape: Any, dtype: Any) -> None:
    target = np.dtype(getattr(ml_dtypes, str(dtype), dtype or "float32"))
    for name in ("zeros", "ones", "empty"):
        want = getattr(np, "zeros" if name == "empty" else name)(shape, target)
        same(getattr(jnp, name)(shape, dtype), want)
    same(jnp.full(shape, 1, target), np.ones(shape, target))


def test_full_takes_the_dtype_of_its_value() -> None:
    assert jnp.full(2, 7).dtype == np.int32 and jnp.full(2, 7).weak_type
    assert jnp.full(2, np.int8(7)).dtype == np.int8 and not jnp.full(2, np.int8(7)).weak_type
    same(jnp.full((2, 3), jnp.arange(3)), np.full((2, 3), np.arange(3)))
    same(jnp.full((2,), 3.7, jnp.int32), [3, 3])
    with pytest.raises(ValueError, match=r"\(2,\).*\(2, 3\)"):
        jnp.full((2, 3), jnp.arange(2))


def test_like() -> None:
    x = np.ones((2, 3), np.float16)
    same(jnp.zeros_like(x), np.zeros_like(x))
    same(jnp.ones_like(x, dtype=jnp.int8, shape=(4,)), np.ones(4, np.int8))
    same(jnp.full_like(x, 2.5), np.full_like(x, 2.5))
    same(jnp.full_like(jnp.arange(3), [1, 2, 3][0]), [1, 1, 1])
    same(jnp.empty_like(x), np.zeros_like(x))
    assert jnp.zeros_like(3).weak_type and not jnp.zeros_like(x).weak_type
    described = perspex.ShapeDtypeStruct((2,), jnp.bfloat16)
    assert jnp.zeros_like(described).dtype == jnp.bfloat16
    for name in ("zeros_like", "ones_like", "empty_like"):
        with pytest.raises(TypeError, match=f"{name} requires"):
            getattr(jnp, name)([1, 2])
    with pytest.raises(TypeError, match="full_like requires"):
        jnp.full_like(x, [1, 2, 3])


@pytest.mark.parametrize(
    "shape, words",
    [
        *((2.0, "integers"), ((2, 2.5), "integers"), ("a", "integers"), (None, "integers")),
        *((-1, "negative"), ((2, -3), "negative"), ((i for i in (1, 2)), "sequence")),
        ({"a": 1}, "sequence"),
    ],
)
def test_bad_shapes(shape: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        jnp.zeros(shape)


def test_a_traced_shape_is_refused_with_the_remedy() -> None:
    with pytest.raises(TypeError, match="static"):
        perspex.jit(lambda n: jnp.zeros(n))(3)
    assert perspex.jit(lambda n: jnp.zeros(n), static_argnums=0)(3).shape == (3,)
    with pytest.raises(TypeError, match=r"zeros\(\(3, 4\)\)"):
        jnp.zeros(3, 4)


# ---- Ranges -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        *((5,), (0,), (-3,), (5.0,), (4.5,), (2, 7), (7, 2), (2.0, 7), (1, 2.5), (2, 11, 3)),
        *((11, 2, -3), (0, 1, 0.25), (1, 0, -0.3), (5, 5, 1), (0, 10, 2.5)),
        *((np.float32(3),), (0.1, 0.9, 0.2), (-3, 3)),
    ],
)
def test_arange(arguments: tuple[Any, ...]) -> None:
    same(jnp.arange(*arguments), np.arange(*arguments))


def test_arange_keeps_the_dtype_of_its_numbers() -> None:
    assert jnp.arange(np.int8(4)).dtype == np.int8
    same(jnp.arange(jnp.int8(3), jnp.int8(7)), np.arange(3, 7), np.int8)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "uint8", "float16"])
def test_arange_of_a_dtype(dtype: str) -> None:
    target = np.dtype(getattr(ml_dtypes, dtype, dtype))
    for arguments in ((5,), (2, 5), (0, 20, 4)):
        same(jnp.arange(*arguments, dtype=target), np.arange(*arguments).astype(target))


def test_arange_refuses() -> None:
    for arguments, kind in (
        *(((2j,), ValueError), (((3,),), TypeError), ((None,), TypeError), (("a",), TypeError)),
        *(((0, 1, 0), ZeroDivisionError), ((np.arange(3),), ValueError)),
    ):
        with pytest.raises(kind):
            jnp.arange(*arguments)
    with pytest.raises(perspex.errors.ConcretizationTypeError, match="argument of arange"):
        perspex.jit(lambda n: jnp.arange(n))(3)


@pytest.mark.parametrize("num", [0, 1, 2, 5, 50])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace(num: int, endpoint: bool) -> None:
    for ends in ((0, 1), (-2.5, 7), (5, 1), (np.array([0.0, 1.0]), np.array([1.0, 5.0])), (0, 1j)):
        with np.errstate(all="ignore"):
            want, step = np.linspace(*ends, num, endpoint, retstep=True)
        got, distance = jnp.linspace(*ends, num, endpoint, retstep=True)
        same(got, want)
        np.testing.assert_allclose(np.asarray(distance), step, 2e-6)
    with pytest.raises(ValueError, match="negative"):
        jnp.linspace(0, 1, -1)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_linspace_along_an_axis(axis: int) -> None:
    start, stop = np.array([0.0, 1.0]), np.array([1.0, 5.0])
    same(jnp.linspace(start, stop, 3, axis=axis), np.linspace(start, stop, 3, axis=axis))
    same(jnp.geomspace(start + 1, stop, 3, axis=axis), np.geomspace(start + 1, stop, 3, axis=axis))


def test_linspace_of_integers_rounds_down() -> None:
    same(jnp.linspace(0, 10, 4, dtype=int), np.linspace(0, 10, 4, dtype=int))
    same(jnp.linspace(-5, 5, 4, dtype=jnp.int8), np.linspace(-5, 5, 4, dtype=np.int8))


def test_linspace_follows_its_ends_in_derivatives() -> None:
    _, (t,) = jvp(lambda b: [jnp.linspace(1.0, b, 5)], [jnp.float32(3)], [jnp.float32(1)])
    same(t, np.linspace(0, 1, 5), np.float32)


def test_logspace_and_geomspace() -> None:
    same(jnp.logspace(0, 3, 4), np.logspace(0, 3, 4))
    same(jnp.logspace(0, 3, 4, endpoint=False, base=2), np.logspace(0, 3, 4, False, 2))
    for ends in ((1, 1000), (1000, 1), (-1, -8), (0.5, 16)):
        same(jnp.geomspace(*ends, 4), np.geomspace(*ends, 4))
        same(jnp.geomspace(*ends, 4, endpoint=False), np.geomspace(*ends, 4, False))


# ---- Grids --------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 1, -1, 5, -5])
def test_eye_and_triangles(k: int) -> None:
    for rows, columns in ((3, 3), (2, 4), (4, 2), (0, 3)):
        same(jnp.eye(rows, columns, k), np.eye(rows, columns, k))
        same(jnp.tri(rows, columns, k), np.tri(rows, columns, k))
        m = np.arange(rows * columns * 2.0).reshape(2, rows, columns)
        same(jnp.tril(m, k), np.tril(m, k))
        same(jnp.triu(m, k), np.triu(m, k))
        for name in ("tril_indices", "triu_indices"):
            for got, want in zip(
                getattr(jnp, name)(rows, k, columns),
                getattr(np, name)(rows, k, columns),
                strict=True,
            ):
                same(got, want)
    same(jnp.eye(3, dtype=bool), np.eye(3, dtype=bool))
    same(jnp.identity(2, int), np.identity(2, int))
    with pytest.raises(ValueError, match="negative"):
        jnp.eye(-1)
    with pytest.raises(ValueError, match="matrices"):
        jnp.tril(jnp.ones(3))


@pytest.mark.parametrize("offset", [0, 1, -1, 3, -9])
def test_diagonals(offset: int) -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    for axes in ((0, 1), (1, 2), (-1, 0), (2, 1)):
        same(jnp.diagonal(a, offset, *axes), np.diagonal(a, offset, *axes))
        same(jnp.trace(a, offset, *axes), np.trace(a, offset, *axes))
    same(jnp.diag(a[0], offset), np.diag(a[0], offset))
    same(jnp.diag(np.arange(3), offset), np.diag(np.arange(3), offset))
    same(jnp.diagflat(a[0, :2, :2], offset), np.diagflat(a[0, :2, :2], offset))
    with pytest.raises(ValueError, match="one axis or two"):
        jnp.diag(a)
    with pytest.raises(ValueError, match="differ"):
        jnp.diagonal(a, 0, 1, 1)


def test_grids() -> None:
    x, y, z = np.arange(3), np.arange(2.0), np.arange(4)
    for axes in ((x,), (x, y), (x, y, z), ()):
        for indexing in ("xy", "ij"):
            for sparse in (False, True):
                want = np.meshgrid(*axes, indexing=indexing, sparse=sparse)
                got = jnp.meshgrid(*axes, indexing=indexing, sparse=sparse)
                for mine, theirs in zip(got, want, strict=True):
                    same(mine, theirs)
    for shape in ((2, 3), (4,), (0, 2)):
        same(jnp.indices(shape), np.indices(shape))
        for mine, theirs in zip(
            jnp.indices(shape, sparse=True), np.indices(shape, sparse=True), strict=True
        ):
            same(mine, theirs)
    same(jnp.mgrid[0:3, 1:2:3j], np.mgrid[0:3, 1:2:3j])
    same(jnp.mgrid[:4], np.mgrid[:4])
    for mine, theirs in zip(jnp.ogrid[0:3, 0:2], np.ogrid[0:3, 0:2], strict=True):
        same(mine, theirs)
    with pytest.raises(ValueError, match="one axis"):
        jnp.meshgrid(np.ones((2, 2)))
    with pytest.raises(ValueError, match="indexing"):
        jnp.meshgrid(x, indexing="zz")


def test_vander_and_fromfunction() -> None:
    x = np.array([1, 2, 3])
    for n, increasing in ((None, False), (2, True), (4, False), (0, False)):
        same(jnp.vander(x, n, increasing), np.vander(x, n, increasing))
    same(jnp.fromfunction(lambda i, j: i + 10 * j, (2, 3)), np.add.outer([0.0, 1], [0, 10, 20]))
    same(jnp.fromfunction(lambda i: jnp.array([i, 2 * i]), (2,)), [[0.0, 0.0], [1.0, 2.0]])
    same(jnp.fromfunction(lambda i, j: 3, (2, 2)), [[3, 3], [3, 3]])


# ---- From bytes ---------------------------------------------------------------------------------


def test_buffers_and_files() -> None:
    same(jnp.frombuffer(bytes([1, 0, 2, 0]), jnp.int16), np.array([1, 2], np.int16))
    for name in ("fromiter", "fromfile"):
        with pytest.raises(NotImplementedError, match=f"np.{name}"):
            getattr(jnp, name)()
    for x in (jnp.arange(3), jnp.ones(2, jnp.bfloat16)):
        file = io.BytesIO()
        jnp.save(file, x)
        file.seek(0)
        same(jnp.load(file), np.asarray(x))


# ---- Scalar types and dtypes --------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["float32", "int8", "bfloat16", "bool_", "complex64", "uint32", "int4", "float8_e5m2"]
)
def test_scalar_types(name: str) -> None:
    scalar = getattr(jnp, name)
    x = scalar(1)
    assert isinstance(x, perspex.Array) and x.shape == () and not x.weak_type
    assert x.dtype == scalar and np.dtype(scalar) == x.dtype == scalar.dtype
    assert scalar == x.dtype.type and hash(scalar) == hash(x.dtype.type)
    assert isinstance(x.dtype.type(1), scalar) and not isinstance(x, scalar)
    same(scalar([0, 1]), np.array([0, 1], x.dtype))
    assert jnp.zeros(2, scalar).dtype == scalar


def test_scalar_types_differ() -> None:
    assert jnp.float32 != jnp.int32 and jnp.float32 == np.float32 and jnp.bfloat16 != np.float32
    assert jnp.float_ is jnp.float64 and jnp.int_ is jnp.int64 and jnp.bool is jnp.bool_
    assert float(jnp.float32("1.5")) == 1.5
    with pytest.raises(AttributeError, match="perspex.numpy' has no attribute 'float31'"):
        jnp.float31  # noqa: B018


def test_what_dtypes_say() -> None:
    assert jnp.iinfo(jnp.int8).max == 127 and jnp.finfo("bfloat16").bits == 16
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating) and not jnp.issubdtype(int, jnp.inexact)
    assert jnp.isdtype(jnp.bfloat16, "real floating") and jnp.isdtype("int8", ("bool", "integral"))
    assert jnp.isdtype(jnp.float32, np.float32) and not jnp.isdtype(bool, "numeric")
    with pytest.raises(ValueError, match="isdtype"):
        jnp.isdtype(int, "strange")
    assert jnp.result_type(jnp.float32, 1) == np.float32
    assert jnp.promote_types("uint8", "int8") == np.int16 and jnp.can_cast("int8", "int16")
    assert (jnp.pi, jnp.e, jnp.euler_gamma) == (np.pi, np.e, np.euler_gamma)
    assert jnp.newaxis is None and jnp.inf == np.inf and jnp.isnan(jnp.nan)
    assert jnp.dtype("float32") == np.float32 and isinstance(jnp.ones(1), jnp.ndarray)


def test_printing_options_hold_for_arrays() -> None:
    with jnp.printoptions(precision=2):
        assert repr(jnp.array([1 / 3])) == "Array([0.33], dtype=float32)"
    assert jnp.array_str(jnp.arange(3)) == "[0 1 2]"
    assert "[0, 1]" in jnp.array_repr(jnp.arange(2))

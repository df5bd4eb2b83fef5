"""What all functions that draw samples have in common; the bits themselves are in tests/oracle."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perspex
from perspex import config, jit, random
from perspex.base import events

K, R = random.key(7), random.PRNGKey(7)
MANY = random.split(K, 3)

SHAPED: dict[str, Callable[..., Any]] = {
    "bits": random.bits,
    "uniform": random.uniform,
    "uniform between": functools.partial(random.uniform, minval=-2, maxval=3.5),
    "normal": random.normal,
    "truncated_normal": lambda key, *args: random.truncated_normal(key, -1.0, 2, *args),
    "exponential": random.exponential,
    "laplace": random.laplace,
    "logistic": random.logistic,
    "cauchy": random.cauchy,
    "gumbel": random.gumbel,
    "gumbel high": functools.partial(random.gumbel, mode="high"),
    "gumbel highest": functools.partial(random.gumbel, mode="highest"),
    "rademacher": random.rademacher,
    "randint": lambda key, shape=(), dtype=None: random.randint(key, shape, -5, 100, dtype),
}
FLOATING = [name for name in SHAPED if name not in ("bits", "rademacher", "randint", "normal")]
DEFAULTS = {"bits": "uint", "rademacher": "int", "randint": "int"}
NARROW = {
    "bits": ["uint8", "uint16"],
    "rademacher": ["int8", "float32", "bool"],
    "randint": ["int8", "int16", "uint8", "uint16", "uint32"],
    "normal": ["float16", "bfloat16", "complex64"],
}
UNSHAPED: dict[str, Callable[..., Any]] = {
    "bernoulli": lambda key: random.bernoulli(key, np.linspace(0.1, 0.9, 40)),
    "bernoulli high": lambda key: random.bernoulli(key, 0.3, (40,), "high"),
    "categorical": lambda key: random.categorical(key, np.zeros((2, 5)), shape=(3, 2)),
    "categorical once": lambda key: random.categorical(
        key, np.zeros((2, 5)), shape=(3, 2), replace=False
    ),
    "permutation": lambda key: random.permutation(key, 6),
    "permutation of rows": lambda key: random.permutation(key, np.arange(12).reshape(3, 4)),
    "permutation apart": lambda key: random.permutation(
        key, np.arange(12).reshape(3, 4), axis=1, independent=True
    ),
    "choice": lambda key: random.choice(key, 9, (2, 2)),
    "choice once": lambda key: random.choice(key, np.arange(9.0), (4,), replace=False),
    "choice weighted": lambda key: random.choice(key, 3, (5,), p=np.array([0.2, 0.3, 0.5])),
    "choice weighted once": lambda key: random.choice(
        key, np.arange(12).reshape(3, 4), (2,), replace=False, p=np.array([0.2, 0.3, 0.5])
    ),
    "split": random.split,
    "fold_in": lambda key: random.fold_in(key, 3),
}
DRAWS = {
    **{
        name: functools.partial(draw, shape=(2, 3))
        for name, draw in SHAPED.items()
        if name != "truncated_normal"
    },
    "truncated_normal": lambda key: random.truncated_normal(key, -1.0, 2, (2, 3)),
    **UNSHAPED,
}


def shown(x: Any) -> np.ndarray:
    return np.asarray(random.key_data(x) if x.dtype == K.dtype else x)


def dtype_named(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.parametrize("name", SHAPED)
def test_shape_and_default_dtype(name: str) -> None:
    kind = DEFAULTS.get(name, "float")
    for shape in [(), (2, 0), (2, 3)]:
        out = SHAPED[name](K, shape)
        assert (out.shape, out.dtype, out.weak_type) == (shape, f"{kind}32", False)
    for shape in ([2, 3], (np.int64(2), 3), np.array([2, 3])):
        np.testing.assert_array_equal(SHAPED[name](K, shape), out)
    np.testing.assert_array_equal(SHAPED[name](K, 3), SHAPED[name](K, (3,)))
    with config.enable_x64(True):
        assert SHAPED[name](K, (3,)).dtype == f"{kind}64"


@pytest.mark.parametrize("name", SHAPED)
def test_dtypes(name: str) -> None:
    for dtype in NARROW.get(name, ["float16", "bfloat16"]):
        out = SHAPED[name](K, (5,), dtype_named(dtype))
        assert out.dtype.name == dtype
        assert not np.isnan(np.asarray(out, np.complex128)).any()


@pytest.mark.parametrize("name", DRAWS)
def test_eager_staged_and_raw_agree(name: str) -> None:
    draw = DRAWS[name]
    want = shown(draw(K))
    for same in (draw(R), draw(np.asarray(R)), jit(draw)(K), jit(draw)(R)):
        np.testing.assert_array_equal(shown(same), want)
    assert (shown(draw(MANY[1])) != want).any()


@pytest.mark.parametrize("name", DRAWS)
def test_the_original_layout_is_another_one(name: str) -> None:
    draw = DRAWS[name]
    with config.threefry_partitionable(False):
        original = shown(draw(K))
        np.testing.assert_array_equal(shown(jit(draw)(R)), original)
    same = (original == shown(draw(K))).all()
    assert same == (name == "fold_in")  # which counts nothing


@pytest.mark.parametrize("name", ["uniform between", "randint", "choice weighted", "split"])
def test_operation_by_operation(name: str) -> None:
    want = shown(DRAWS[name](K))
    with config.disable_jit(True):
        # A product and a sum then round twice.
        np.testing.assert_allclose(shown(DRAWS[name](K)), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", DRAWS)
def test_refused_keys(name: str) -> None:
    draw = DRAWS[name]
    for wrong in (3, np.zeros(2), np.zeros(3, np.uint32), [0, 7], None, "a"):
        with pytest.raises(TypeError, match="uint32|unexpected PRNG key type"):
            draw(wrong)
    for many in (MANY, np.zeros((3, 2), np.uint32)):
        with pytest.raises(ValueError, match=r"single key, but was given .*\(3"):
            draw(many)
        with pytest.raises(ValueError, match=r"single key, but was given .*\(3"):
            jit(draw)(many)


@pytest.mark.parametrize("name", SHAPED)
def test_refused_shapes(name: str) -> None:
    for wrong in ((2.5,), 2.5, "a", (None,), -1, (2, -3)):
        with pytest.raises(TypeError, match="shape"):
            SHAPED[name](K, wrong)


@pytest.mark.parametrize("name", FLOATING)
def test_refused_dtypes(name: str) -> None:
    for wrong in ("int32", "bool", "complex64"):
        with pytest.raises(ValueError, match=f"must be a float dtype, got {wrong}"):
            SHAPED[name](K, (3,), wrong)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: random.normal(K, (3,), "int32"), ValueError, "float or complex dtype"),
        (lambda: random.bits(K, (3,), "int32"), ValueError, "unsigned int dtype, got int32"),
        (lambda: random.randint(K, (3,), 0, 1, "float32"), TypeError, "only accepts integer"),
        (lambda: random.randint(K, (3,), 0, None), TypeError, "NoneType"),
        (lambda: random.randint(K, (3,), 0, [1]), TypeError, "list"),
        (lambda: random.randint(K, (3,), np.arange(2), 5), ValueError, r"\(2,\), \(\) do not"),
        (lambda: random.randint(K, (3,), 0, 2**40), OverflowError, "1099511627776"),
        (lambda: random.uniform(K, (3,), minval="a"), TypeError, "str"),
        (lambda: random.uniform(K, (3,), minval=np.arange(2.0)), TypeError, "incompatible shapes"),
        (lambda: random.uniform(K, out_sharding=3), TypeError, "3 of type int"),
        (lambda: random.truncated_normal(K, np.zeros(2), 1, (3,)), ValueError, "do not broadcast"),
        (lambda: random.gumbel(K, mode="strange"), ValueError, "'strange'"),
        (lambda: random.bernoulli(K, 1), TypeError, "floating dtype, got int32"),
        (lambda: random.bernoulli(K, [0.5]), TypeError, "list"),
        (lambda: random.bernoulli(K, 0.5, mode="strange"), ValueError, "'strange'"),
        (lambda: random.bernoulli(K, np.full(2, 0.5), (3,)), ValueError, "do not broadcast"),
        (lambda: random.categorical(K, [0.5]), TypeError, "list"),
        (lambda: random.categorical(K, np.arange(3)), ValueError, "floating dtype, got int32"),
        (lambda: random.categorical(K, np.zeros((3, 4)), axis=2), ValueError, "out of bounds"),
        (lambda: random.categorical(K, np.zeros((3, 4)), axis=-3), IndexError, "out of bounds"),
        (lambda: random.categorical(K, np.float32(1)), ValueError, "out of bounds"),
        (lambda: random.categorical(K, np.zeros((3, 0))), ValueError, "no category"),
        (lambda: random.categorical(K, np.zeros((3, 4)), shape=(2,)), ValueError, "broadcast"),
        (
            lambda: random.categorical(K, np.zeros(3), shape=(4,), replace=False),
            ValueError,
            "4 samples without replacement",
        ),
        (
            lambda: random.categorical(K, np.zeros((1, 3)), shape=(2,), replace=False),
            ValueError,
            r"must end in \(1,\)",
        ),
        (lambda: random.permutation(K, 2.5), TypeError, "must be an integer"),
        (lambda: random.permutation(K, True), TypeError, "must be an integer"),
        (lambda: random.permutation(K, [1, 2]), TypeError, "list"),
        (lambda: random.permutation(K, np.arange(4), 1), ValueError, "out of bounds"),
        (lambda: random.permutation(K, 4, "a"), TypeError, "integer"),
        (lambda: random.choice(K, 0, (2,)), ValueError, "greater than 0"),
        (lambda: random.choice(K, np.zeros((0, 2)), (2,)), ValueError, "greater than 0"),
        (lambda: random.choice(K, 3, (4,), replace=False), ValueError, "population"),
        (lambda: random.choice(K, 3, (2,), p=np.ones(4)), ValueError, r"shape \(4,\)"),
        (lambda: random.choice(K, 3, (2,), p=np.ones((3, 1))), ValueError, r"shape \(3, 1\)"),
        (lambda: random.choice(K, 3, (2,), p=[0.1, 0.2, 0.7]), TypeError, "list"),
        (lambda: random.choice(K, [1, 2], (2,)), TypeError, "list"),
        (lambda: random.choice(K, 3, 2), TypeError, "shape must be a sequence"),
        (lambda: random.choice(K, np.zeros((3, 4)), (2,), axis=2), ValueError, "out of bounds"),
    ],
)
def test_refusals(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_traced_sizes_are_refused() -> None:
    for f in (
        lambda n: random.permutation(K, n),
        lambda n: random.choice(K, n, (2,)),
        lambda n: random.uniform(K, (n,)),
        lambda n: random.normal(K, n),
    ):
        with pytest.raises(
            (
                perspex.errors.ConcretizationTypeError,
                perspex.errors.TracerIntegerConversionError,
            )
        ):
            jit(f)(3)


def test_64_bits_not_enabled_warns() -> None:
    with pytest.warns(UserWarning, match="float64 requested in uniform"):
        assert random.uniform(K, (3,), "float64").dtype == np.float32


def test_one_call_is_one_program() -> None:
    seen: list[Any] = []
    stop = events.subscribe(seen.append)
    try:
        random.normal(K, (3, 17))
        compiled = [event.name for event in seen if event.kind == "compile"]
        seen.clear()
        random.normal(K, (3, 17))
    finally:
        stop()
    assert compiled == ["normal"]
    assert seen == []


def test_all_parameters_may_be_arrays() -> None:
    left, mode, right = np.zeros(3), np.array([[1.0], [2.0]]), np.array([2.0, 3.0, 4.0])
    x = np.asarray(random.triangular(K, left, mode, right))
    assert x.shape == (2, 3)
    assert ((left <= x) & (x <= right)).all()
    np.testing.assert_array_equal(x, jit(random.triangular)(K, left, mode, right))


def test_arguments_are_bound_as_python_binds_them() -> None:
    want = random.beta(K, 2.0, 3.0, (4,), method="approximate")
    got = random.beta(method="approximate", shape=(4,), b=3.0, a=2.0, key=K, out_sharding=None)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: random.normal(), "missing 1 required positional argument: 'key'"),
        (lambda: random.pareto(K, shape=(2,)), "missing 1 required positional argument: 'b'"),
        (lambda: random.normal(K, (2,), None, None), "takes from 1 to 3 positional arguments"),
        (lambda: random.normal(K, (2,), shape=(2,)), "multiple values for argument 'shape'"),
        (lambda: random.normal(K, size=(2,)), "unexpected keyword argument 'size'"),
        (lambda: random.binomial(K, 3, 0.5, out_sharding=None), "unexpected keyword argument"),
    ],
)
def test_a_wrong_call_is_refused_as_by_python(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        call()

"""What callbacks are given and give back: batches, keys, 64 bits, NumPy's dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.callbacks import F32, after, note
from support.callbacks import nothing_left as nothing_left
from support.callbacks import seen as seen

import perspex
from perspex import jit, lax, pure_callback, random, vmap
from perspex import numpy as pnp
from perspex.experimental import io_callback

# ---- vmap ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
@pytest.mark.parametrize("ordered", [False, True])
def test_vmap_of_debugging(wrap: Any, ordered: bool, seen: list[Any]) -> None:
    def f(x: Any, y: Any) -> Any:
        note(seen, x, y, ordered=ordered)
        note(seen, y, ordered=ordered)
        return x

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    g = wrap(vmap(f, in_axes=(1, None)))
    expected: list[Any] = [[x[:, i].tolist(), 5.0] for i in range(3)]
    found = after(seen, lambda: g(x, 5.0))
    assert [row for row in found if row != 5.0] == expected
    assert found.count(5.0) == 1
    assert after(seen, lambda: wrap(vmap(f, in_axes=(1, None)))(x[:, :0], 5.0)) == [5.0]


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((2,), ())] * 3),
        ("sequential_unrolled", [((2,), ())] * 3),
        ("expand_dims", [((3, 2), (1,))]),
        ("broadcast_all", [((3, 2), (3,))]),
        ("legacy_vectorized", [((3, 2), ())]),
    ],
)
def test_vmap_of_pure_callback(method: str, shapes: list[Any], wrap: Any, seen: list[Any]) -> None:
    def host(x: Any, y: Any) -> Any:
        seen.append((x.shape, y.shape))
        y = np.asarray(y)
        return np.asarray(x) * (y[:, None] if y.ndim else y), np.asarray(x).sum(-1)

    def f(x: Any, y: Any) -> Any:
        out = (perspex.ShapeDtypeStruct((2,), np.float32), F32)
        return pure_callback(host, out, x, y, vmap_method=method)

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    found, sums = wrap(vmap(f, in_axes=(1, None)))(x, 2.0)
    np.testing.assert_array_equal(found, x.T * 2)
    np.testing.assert_array_equal(sums, x.sum(0))
    assert seen == shapes


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_vmap_of_io(wrap: Any, seen: list[Any]) -> None:
    def f(x: Any) -> Any:
        return io_callback(lambda x: (seen.append(float(x)), np.float32(x) + 1)[1], F32, x)

    assert wrap(vmap(f))(np.arange(3.0, dtype=np.float32)).tolist() == [1.0, 2.0, 3.0]
    assert sorted(seen) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda x: io_callback(print, None, x, ordered=True), ValueError),
        (lambda x: pure_callback(np.sin, F32, x), NotImplementedError),
        (
            lambda x: lax.cond(x > 1, lambda x: io_callback(print, None, x), lambda x: None, x),
            NotImplementedError,
        ),
        (
            lambda x: lax.while_loop(
                lambda c: c < x, lambda c: (io_callback(print, None, c), c + 1)[1], 0.0
            ),
            NotImplementedError,
        ),
    ],
)
def test_what_vmap_refuses(f: Any, error: Any) -> None:
    with pytest.raises(error, match="(?i)vmap"):
        vmap(f)(np.arange(3.0, dtype=np.float32))


def test_vmap_of_loops_and_branches(seen: list[Any]) -> None:
    def f(n: Any) -> Any:
        lax.cond(n > 1, lambda n: note(seen, n, tag="T"), lambda n: note(seen, n, tag="F"), n)
        return lax.while_loop(lambda c: c < n, lambda c: (note(seen, c), c + 1)[1], 0)

    found = after(seen, lambda: vmap(f)(np.array([1, 2])))
    # Both branches run for all examples, and the loop for all of them until the last one is done.
    assert sorted(found[:4]) == [("F", 1), ("F", 2), ("T", 1), ("T", 2)]
    assert found[4:] == [0, 0, 1, 1]


# ---- Arrays there and back ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6, dtype=np.int8).reshape(2, 3),
        np.array([True, False]),
        np.array([1.5, 2.5], ml_dtypes.bfloat16),
        np.array([1 + 2j, 3], np.complex64),
        np.zeros((0, 3), np.float32),
        np.float16(2.5),
    ],
    ids=lambda x: x.dtype.name,
)
@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_arrays_arrive_as_they_are(x: Any, wrap: Any, seen: list[Any]) -> None:
    def host(v: Any) -> Any:
        assert isinstance(v, perspex.Array) and v.dtype == x.dtype and v.shape == x.shape
        seen.append(v)
        return v

    like = perspex.ShapeDtypeStruct(x.shape, x.dtype)
    out = wrap(lambda x: pure_callback(host, like, x))(x)
    assert out.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(out), x)
    # They outlive the call. A result without elements needs no call.
    assert len(seen) == 1 or not x.size
    for v in seen:
        np.testing.assert_array_equal(np.asarray(v), x)


def test_keys_arrive_as_keys() -> None:
    f = jit(lambda k: pure_callback(random.normal, F32, k))
    assert float(f(random.key(3))) == float(random.normal(random.key(3)))


def test_keys_come_back_and_are_batched(seen: list[Any]) -> None:
    keys = random.split(random.key(1), 3)
    one = perspex.ShapeDtypeStruct((), keys.dtype)
    f = lambda k: pure_callback(lambda k: random.fold_in(k, 7), one, k, vmap_method="sequential")  # noqa: E731
    expected = random.key_data(vmap(lambda k: random.fold_in(k, 7))(keys))
    for wrap in (lambda g: g, jit):
        np.testing.assert_array_equal(random.key_data(wrap(vmap(f))(keys)), expected)
    g = vmap(lambda k: note(seen, random.key_data(k)))
    assert sorted(after(seen, lambda: jit(g)(keys))) == sorted(random.key_data(keys).tolist())


def test_64_bits(x64: None, seen: list[Any]) -> None:
    like = perspex.ShapeDtypeStruct((), np.float64)

    def host(x: Any) -> Any:
        seen.append(pnp.sin(x).dtype)  # on another thread than the flag was set on
        return np.sin(x)

    out = jit(lambda x: pure_callback(host, like, x))(0.5)
    assert float(out) == np.sin(0.5) and seen == [np.float64]


def test_64_bits_of_numpy_become_32() -> None:
    f = jit(lambda x: pure_callback(lambda x: np.float64(x) / 3, F32, x))
    assert float(f(1.0)) == np.float32(1 / 3)


def test_a_callback_may_compute_with_arrays() -> None:
    inner = jit(lambda x: (pnp.sin(x) @ pnp.cos(x)).sum())

    def host(x: Any) -> Any:
        return inner(x) + pnp.sum(x * 2)

    @jit
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 20, lambda i, c: pure_callback(host, F32, x + c) / 1e5, 0.0)

    x = np.full((30, 30), 0.5, np.float32)
    c = 0.0
    for _ in range(20):
        y = x + c
        c = ((np.sin(y) @ np.cos(y)).sum() + 2 * y.sum()) / 1e5
    np.testing.assert_allclose(f(x), c, rtol=1e-4)

"""Permutations and choices: what must hold of every one of them."""

from __future__ import annotations

import numpy as np
import pytest

from perspex import config, random

K = random.key(11)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000, 2500])
def test_permutation_of_a_number(n: int) -> None:
    out = random.permutation(K, n)
    assert (out.shape, out.dtype) == ((n,), np.int32)
    np.testing.assert_array_equal(np.sort(out), np.arange(n))
    assert n < 7 or (np.asarray(random.permutation(random.key(12), n)) != out).any()


def test_permutation_of_a_negative_number_is_empty() -> None:
    assert random.permutation(K, -3).shape == (0,)


def test_permutation_dtype_follows_x64() -> None:
    with config.enable_x64(True):
        assert random.permutation(K, 3).dtype == np.int64
        assert random.choice(K, 3).dtype == np.int64
        assert random.permutation(K, np.arange(3, dtype=np.int8)).dtype == np.int8


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_permutation_moves_whole_slices(axis: int) -> None:
    x = np.arange(60.0).reshape(3, 4, 5)
    out = np.asarray(random.permutation(K, x, axis))
    lines, moved = [np.moveaxis(a, axis, 0).reshape(a.shape[axis], -1) for a in (x, out)]
    order = np.argsort(moved[:, 0])
    np.testing.assert_array_equal(moved[order], lines)


def test_independent_permutation_moves_within_lines() -> None:
    x = np.arange(5000).reshape(5, 1000)
    out = np.asarray(random.permutation(K, x, 1, independent=True))
    np.testing.assert_array_equal(np.sort(out, axis=1), x)
    orders = np.argsort(out, axis=1)
    assert (orders[0] != orders[1]).any()


def test_permutation_of_keys() -> None:
    keys = random.split(K, 6)
    out = np.asarray(random.key_data(random.permutation(K, keys)))
    want = np.asarray(random.key_data(keys))
    np.testing.assert_array_equal(np.unique(out, axis=0), np.unique(want, axis=0))


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2), [4]], ids=str)
def test_choice_shapes(replace: bool, weighted: bool, shape: tuple[int, ...]) -> None:
    x = np.arange(30).reshape(3, 5, 2)
    p = np.full(5, 0.2) if weighted else None
    wanted = tuple(shape)
    assert random.choice(K, 5, shape, replace, p).shape == wanted
    out = np.asarray(random.choice(K, x, shape, replace, p, axis=1))
    assert out.shape == (3, *wanted, 2)
    flat = out.reshape(3, -1, 2)
    where = flat[0, :, 0] // 2
    np.testing.assert_array_equal(flat, x[:, where])
    if not replace:
        assert len(set(where.tolist())) == len(where)


def test_choice_of_nothing() -> None:
    for a in (0, 5, np.zeros((0, 3), np.float16)):
        out = random.choice(K, a, (0,))
        assert out.shape == (0,)
    assert out.dtype == np.float16


def test_choice_of_keys() -> None:
    keys = random.split(K, 6)
    out = random.choice(K, keys, (3,), replace=False)
    assert out.shape == (3,)
    assert out.dtype == keys.dtype
    names = {tuple(row) for row in np.asarray(random.key_data(keys)).tolist()}
    drawn = {tuple(row) for row in np.asarray(random.key_data(out)).tolist()}
    assert len(drawn) == 3
    assert drawn < names


def test_weights_may_be_integers_or_short_floats() -> None:
    for p in (np.array([0, 3, 0]), np.array([0, 1, 0], np.float16)):
        np.testing.assert_array_equal(random.choice(K, 3, (5,), p=p), [1] * 5)
        assert int(random.choice(K, 3, (), p=p, replace=False)) == 1

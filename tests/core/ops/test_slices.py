"""Slices by start and size: what refs and arrays outside of traced functions make of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import ds
from perspex import numpy as pnp

X = np.arange(12.0, dtype="f").reshape(3, 4)
# Where a window of two rows begins on an axis of three: outside it is moved inside.
STARTS = {0: 0, 1: 1, 2: 1, -1: 1, -2: 1, 5: 1}


@pytest.mark.parametrize("start", STARTS)
def test_windows_of_arrays_and_refs(start: int) -> None:
    at = STARTS[start]
    window = ds(pnp.int32(start), 2)
    np.testing.assert_array_equal(pnp.asarray(X)[window], X[at : at + 2])

    def through(ref: Any, i: Any) -> Any:
        before = ref[ds(i, 2)]
        ref[ds(i, 2)] = before * 10
        perspex.ref.addupdate(ref, (ds(i, 2), ds(i * 0 + 1, 2)), pnp.ones((2, 2)))
        return before

    wanted = X.copy()
    wanted[at : at + 2] *= 10
    wanted[at : at + 2, 1:3] += 1
    for f in (through, perspex.jit(through)):
        ref = perspex.new_ref(pnp.asarray(X))
        np.testing.assert_array_equal(f(ref, pnp.int32(start)), X[at : at + 2])
        np.testing.assert_array_equal(ref[...], wanted)


def test_views_and_batches_of_windows() -> None:
    ref = perspex.new_ref(pnp.asarray(X))
    np.testing.assert_array_equal(ref.at[ds(pnp.int32(1), 2)][0], X[1])
    found = perspex.vmap(lambda i: ref[ds(i, 1), ds(1, 2)])(pnp.arange(3))
    np.testing.assert_array_equal(found, X[:, None, 1:3])
    out = perspex.grad(lambda x, i: (x[ds(i, 2)] ** 2).sum())(pnp.asarray(X), 1)
    np.testing.assert_array_equal(out, np.concatenate([0 * X[:1], 2 * X[1:]]))


def test_a_slice_is_a_pytree() -> None:
    start = pnp.int32(2)
    (leaf,) = perspex.tree.leaves(ds(start, 3))
    assert leaf is start
    found = perspex.jit(lambda s: pnp.arange(6)[s])(ds(start, 3))
    np.testing.assert_array_equal(found, [2, 3, 4])
    assert ds(1, 2) == ds(1, 2, 1) and ds(1, 2) != ds(2, 2)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (lambda: ds(0, 1.5), TypeError, "the size must be an integer that is known"),
        (lambda: ds(pnp.float32(0), 2), TypeError, "a scalar of integers, got an array of shape"),
        (lambda: ds(pnp.int32(0), 5), TypeError, "do not fit in the operand of shape"),
    ],
)
def test_what_is_no_slice(index: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pnp.asarray(X)[index()]


@pytest.mark.parametrize("index", [ds(2, 2), ds(-1, 2), ds(0, 2, 3)], ids=repr)
def test_refs_have_nothing_outside(index: Any) -> None:
    with pytest.raises(ValueError, match="Out of bound slice: start="):
        perspex.new_ref(pnp.asarray(X))[index]

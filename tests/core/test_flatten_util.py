"""A pytree as one vector."""

from __future__ import annotations

import numpy as np
import pytest

from perspex import numpy as pnp
from perspex.flatten_util import ravel_pytree


def test_leaves_of_several_dtypes_come_back_in_their_own() -> None:
    vector, unravel = ravel_pytree({"w": pnp.ones((2, 2)), "n": pnp.arange(3)})
    assert vector.dtype == "float32"
    np.testing.assert_array_equal(vector, [0, 1, 2, 1, 1, 1, 1])
    back = unravel(2 * vector)
    assert (back["w"].dtype, back["n"].dtype) == ("float32", "int32")
    np.testing.assert_array_equal(back["n"], [0, 2, 4])
    with pytest.raises(TypeError, match="takes a vector of dtype float32, got complex64"):
        unravel(vector + 1j)


def test_leaves_of_one_dtype_take_the_dtype_of_the_vector() -> None:
    vector, unravel = ravel_pytree([pnp.ones(2), pnp.zeros((1, 1))])
    first, second = unravel(vector * 1j)
    np.testing.assert_array_equal(first, [1j, 1j])
    assert second.shape == (1, 1)
    assert unravel(vector.astype("float16"))[0].dtype == "float16"
    with pytest.raises(ValueError, match=r"shape \(3,\), got \(4,\)"):
        unravel(pnp.ones(4))


def test_python_numbers_do_not_give_way() -> None:
    assert ravel_pytree([2.5, pnp.float16(3)])[0].dtype == "float32"
    assert ravel_pytree([])[0].shape == (0,)

"""Arrays, their methods and operators, and what functions take."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import perspex
import perspex.numpy as jnp
from perspex import Array
from perspex.typing import ArrayLike, DTypeLike

x = jnp.arange(6.0).reshape(2, 3)
assert_type(x, Array)
assert_type(x.shape, tuple[int, ...])
assert_type(x.ndim, int)
rows, columns = x.shape
name: str = x.dtype.name

# Operators, also with numbers and NumPy arrays.
assert_type(x + 1, Array)
assert_type(2.0 * x - x / 3, Array)
assert_type(-x @ x.T, Array)
assert_type(x**2, Array)
assert_type(x > 0, Array)
assert_type(x == 0, Array)
assert_type((x > 0) & (x < 3), Array)
assert_type(x * np.ones(3), Array)
assert_type(abs(x), Array)
assert_type(divmod(x, 2), tuple[Array, Array])

# Methods.
assert_type(x.sum(axis=0), Array)
assert_type(x.mean(), Array)
assert_type(x.std(ddof=1, keepdims=True), Array)
assert_type(x.astype(jnp.bfloat16), Array)
assert_type(x.T.reshape(-1), Array)
assert_type(x.reshape((3, 2)).transpose(1, 0), Array)
assert_type(x.argmax(axis=-1), Array)
assert_type(x.nonzero(), tuple[Array, ...])
assert_type(x.at[0, 1].set(3.0), Array)
assert_type(x.at[1:].add(x[0]).at[..., None].get(mode="clip"), Array)
assert_type(x.at[jnp.array([0])].apply(jnp.sin), Array)
assert_type(x[0], Array)
assert_type(x[:, None, ::2], Array)
assert_type(x[x > 2], Array)
assert_type([row.sum() for row in x], list[Array])
assert_type(x.block_until_ready(), Array)

# Functions of the namespaces.
assert_type(jnp.sin(x), Array)
assert_type(jnp.sin(x).max(), Array)
assert_type(jnp.add(x, 1), Array)
assert_type(jnp.add.reduce(x), Array)
assert_type(jnp.where(x > 0, x, 0), Array)
assert_type(jnp.linspace(0, 1, 5), Array)
assert_type(jnp.linspace(0, 1, 5, retstep=True), tuple[Array, Array])
assert_type(jnp.atleast_1d(1.0), Array)
assert_type(jnp.concatenate([x, x], axis=1), Array)
assert_type(jnp.zeros((2, 3), dtype="float16"), Array)
assert_type(jnp.ones(3, jnp.int8), Array)
assert_type(jnp.full(3, 2.5, dtype=np.float32), Array)
assert_type(jnp.linalg.norm(x), Array)
assert_type(jnp.linalg.svd(x).S, Array)
assert_type(jnp.linalg.svd(x, compute_uv=False), Array)
assert_type(jnp.unique(x), Array)
assert_type(jnp.where(x > 0), tuple[Array, ...])
assert_type(jnp.zeros_like(perspex.ShapeDtypeStruct((2, 3), jnp.float32)), Array)
assert_type(jnp.array([[1, 2], [3, 4]]), Array)
assert_type(perspex.scipy.special.logsumexp(x), Array)
assert_type(perspex.lax.add(x, x), Array)
assert_type(perspex.nn.softmax(x), Array)
assert_type(perspex.scipy.special.gammaln(x), Array)

# To Python and NumPy.
number: float = float(x[0, 0])
count: int = int(x.size)
host: np.ndarray = np.asarray(x)
if (x > 0).all():
    print(len(x), x.tolist(), x.item(0), f"{x[0, 0]:.2f}")


def scaled(a: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    return jnp.asarray(a, dtype=dtype) * 2


scaled(1), scaled(np.float32(1)), scaled(np.ones(3), "int8"), scaled(x, np.dtype("float32"))
scaled(True, float), scaled(1j, jnp.complex64)
print(isinstance(x, Array))

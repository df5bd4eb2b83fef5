"""Programs with symbolic shapes give what the functions give, at several sizes.

The functions of a group are exported as one program, which is called with arrays of several shapes.
The expected values come from the functions on these arrays, which other tests compare with NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import export, grad, jit, lax, nn, random, tree, vmap
from perspex import numpy as jnp
from perspex.errors import InconclusiveDimensionOperation

RNG = np.random.default_rng(0)
Y = RNG.normal(size=(4, 5)).astype(np.float32)
SHAPES = [(3, 4), (6, 4), (1, 4)]


def looped(x: Any) -> Any:
    return lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(4))


def scanned(x: Any) -> Any:
    return lax.scan(lambda c, r: (jnp.sin(c + r), c), jnp.zeros(x.shape[1]), x)


GROUPS: dict[str, list[Any]] = {
    "elementwise": [
        lambda x: jnp.sin(x) * x + 1,
        lambda x: jnp.where(x > 0, x, 0),
        lambda x: jnp.clip(x, 0, 1) + lax.erf(x) + lax.lgamma(x * x + 1),
        lambda x: x * x.shape[0] + x.shape[1] * x - x / x.shape[0] + x.size,
        lambda x: x / jnp.sqrt(x.shape[1]) + jnp.asarray(x.shape[0] + 1),
        lambda x: lax.add(x, jnp.float32(2) * x.shape[0]),
    ],
    "shapes": [
        lambda x: x.reshape(-1) + jnp.ravel(x),
        lambda x: x.reshape((x.shape[0] * 2, -1)),
        lambda x: x.T + jnp.swapaxes(x, 0, 1) + jnp.moveaxis(x, 0, 1),
        lambda x: x + jnp.ones((x.shape[0], 1)) + jnp.zeros_like(x) + jnp.full(x.shape, 2.0),
        lambda x: jnp.broadcast_to(x, (2, *x.shape)),
        lambda x: jnp.squeeze(x[None], 0)[:, None, :],
        lambda x: (jnp.concatenate([x, jnp.zeros((2, 4))]), jnp.stack([x, x]), jnp.tile(x, (2, 1))),
        lambda x: (jnp.pad(x, 1), jnp.repeat(x, 2, axis=0), jnp.split(jnp.concatenate([x, x]), 2)),
        lambda x: jnp.zeros((x.shape[0] % 2 + 1, x.shape[0] // 2 + 1)),
    ],
    "ranges": [
        lambda x: jnp.arange(x.shape[0]) + jnp.arange(0, 2 * x.shape[0], 2),
        lambda x: jnp.linspace(0, 1, x.shape[0]),
        lambda x: jnp.linspace(0, 1, x.shape[0], endpoint=False),
        lambda x: jnp.eye(x.shape[0]) + jnp.tri(x.shape[0]),
        lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.diag(x[0]), jnp.outer(x, x)),
        lambda x: lax.broadcasted_iota(jnp.int32, x.shape, 0),
        lambda x: nn.one_hot(jnp.arange(x.shape[0]), 5),
        lambda x: jnp.meshgrid(x[0], x[:, 0]),
    ],
    "reductions": [
        lambda x: (x.sum(), x.sum(0), x.mean(1), x.var(1), jnp.std(x), x.prod(1)),
        lambda x: (x.max(1), x.min(), x.argmax(1), x.argmin(0), (x > 0).any(0), (x > 0).all()),
        lambda x: (nn.softmax(x), nn.logsumexp(x, axis=1), nn.standardize(x), jnp.cov(x)),
        lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), jnp.sort(x, 0), jnp.argsort(x, 0)),
        lambda x: (jnp.median(x), jnp.quantile(x, 0.3), jnp.linalg.norm(x), lax.top_k(x, 2)),
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 2), "VALID"),
    ],
    "products": [
        lambda x: (x @ Y, x.T @ x, jnp.matmul(x[None], Y), jnp.kron(x, x)),
        lambda x: jnp.einsum("ij,kj->ik", x, x),
        lambda x: lax.conv_general_dilated(
            x[:, None, None, :], jnp.ones((1, 1, 1, 2)), (1, 1), "SAME"
        ),
        lambda x: lax.conv_general_dilated(x[None, None], jnp.ones((1, 1, 2, 2)), (2, 2), "SAME"),
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "SAME"),
        lambda x: jnp.linalg.inv(jnp.eye(4) * (2 + x[:, :, None])),
        lambda x: nn.dot_product_attention(*[x[None, :, None, :]] * 3),
        lambda x: jnp.linalg.cholesky(jnp.eye(4) * (1 + x[:, :, None] ** 2)),
        lambda x: jnp.fft.fft(x),
    ],
    "indexing": [
        lambda x: (x[0], x[-1], x[1:], x[:-1], x[::2], x[:2], x[-2:], x[1:3]),
        lambda x: (x[::-1], x[::-2], jnp.flip(x, 0), jnp.roll(x, 1, axis=0), jnp.roll(x, -2)),
        lambda x: (x[jnp.array([0, 0])], jnp.take(x, jnp.array([0, 2]), axis=1), x[:, 1]),
        lambda x: (x.at[0].set(1.0), x.at[:, 0].add(1.0), x.at[jnp.array([0, 0])].add(1.0)),
        lambda x: (
            lax.dynamic_slice_in_dim(x, 0, x.shape[0]),
            jnp.roll(x, x.shape[0] // 2, axis=0),
        ),
        lambda x: (lax.slice_in_dim(x, 0, x.shape[0] // 2), lax.index_in_dim(x, -1, 0)),
        lambda x: jnp.zeros((3, 4)).at[jnp.arange(x.shape[0]) % 3].add(x),
        lambda x: lax.dynamic_slice(x, (0, 1), (x.shape[0], 2)),
        lambda x: lax.dynamic_update_slice(x, jnp.ones((1, 1)), (0, 0)),
        lambda x: (jnp.searchsorted(x[0], 0.5), jnp.diff(x, axis=1), jnp.polyval(x[0], 2.0)),
    ],
    "control": [
        scanned,
        looped,
        lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(4), x, reverse=True),
        lambda x: lax.fori_loop(0, 1, lambda i, c: c + x[i], jnp.zeros(x.shape[1])),
        lambda x: lax.while_loop(lambda c: (c < 9.0).all(), lambda c: c * 2 + 1, abs(x)),
        lambda x: lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x),
        lambda x: lax.map(lambda r: r.sum(), x),
        lambda x: lax.scan(lambda c, _: (c + 1, c), 0, None, length=x.shape[0]),
        lambda x: jit(lambda y: y * y.shape[0])(x) + jit(lambda y: y * 2)(x),
    ],
    "transforms": [
        lambda x: vmap(lambda r: r @ Y)(x),
        lambda x: vmap(grad(lambda r: (jnp.sin(r) ** 2).sum()))(x),
        lambda x: grad(lambda x: jnp.tanh(x @ Y).mean())(x),
        lambda x: grad(lambda x: scanned(x)[0].sum())(x),
        lambda x: grad(lambda x: (x[1:] ** 2).sum() + (x[0] ** 3).sum() + x.max())(x),
        lambda x: grad(lambda x: (jnp.concatenate([x, 2 * x]) ** 2).sum())(x),
        lambda x: grad(lambda x: (jnp.pad(x, ((1, 2), (0, 0))) ** 2).sum())(x),
        lambda x: grad(lambda x: (x[jnp.array([0, 0])] ** 2).sum() + nn.relu(x).sum())(x),
        lambda x: grad(lambda x: nn.log_softmax(x)[0].sum())(x),
        lambda x: grad(lambda x: perspex.checkpoint(lambda y: jnp.sin(y).sum())(x))(x),
        lambda x: (perspex.jacfwd(jnp.sin)(x[0]), perspex.hessian(lambda v: (v**3).sum())(x[:, 0])),
    ],
    "random": [
        lambda x: x + random.normal(random.key(0), x.shape),
        lambda x: random.uniform(random.key(1), (x.shape[0],)),
        lambda x: (
            random.randint(random.key(0), (x.shape[0],), 0, 9),
            random.gumbel(random.key(0), x.shape),
        ),
        lambda x: random.categorical(random.key(0), x),
        lambda x: vmap(random.normal)(random.split(random.key(0), x.shape[0])),
    ],
}


@pytest.mark.parametrize("group", GROUPS)
def test_groups(group: str) -> None:
    def together(x: Any) -> Any:
        return [function(x) for function in GROUPS[group]]

    spec = perspex.ShapeDtypeStruct(export.symbolic_shape("n, 4"), np.float32)
    exported = export.export(jit(together))(spec)
    loaded = export.deserialize(exported.serialize())
    assert loaded.uses_global_constants
    for shape in SHAPES:
        x = RNG.normal(size=shape).astype(np.float32)
        found, expected = loaded.call(x), jit(together)(x)
        for i, (one, two) in enumerate(zip(found, expected, strict=True)):
            for a, b in zip(tree.leaves(one), tree.leaves(two), strict=True):
                message = f"function {i} of {group} at {shape}"
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5, err_msg=message)


def test_two_variables() -> None:
    def f(x: Any, y: Any) -> Any:
        return x @ y, (x.sum(1) + 1)[:, None] * x, jnp.roll(x, 1, axis=1), x.reshape(-1)[::-1]

    specs = export.symbolic_args_specs((Y, Y), ("n, m", "m, k"))
    exported = export.export(jit(f))(*specs)
    assert [str(aval) for aval in exported.out_avals] == [
        "float32[n,k]", "float32[n,m]", "float32[n,m]", "float32[m*n]"
    ]  # fmt: skip
    x, y = np.ones((2, 3), np.float32), np.ones((3, 7), np.float32)
    found = exported.call(x, y)
    for a, b in zip(found, f(jnp.asarray(x), jnp.asarray(y)), strict=True):
        np.testing.assert_allclose(a, b)


def range_of(x: Any) -> Any:
    return sum([x[i] for i in range(x.shape[0])])


REFUSED: dict[str, tuple[Any, str]] = {
    "fft along the axis": (lambda x: jnp.fft.fft(x, axis=0), "^`fft` cannot take"),
    "unique": (lambda x: jnp.unique(x, size=3), "`unique`"),
    "associative_scan": (lambda x: lax.associative_scan(jnp.add, x), "`associative_scan`"),
    "interp": (lambda x: jnp.interp(0.5, x[:, 0], x[:, 1]), "`interp`"),
    "rows": (lambda x: sum(list(x)), "Symbolic dimension 'n'"),
    "range": (range_of, "Symbolic dimension 'n' used in a context that requires a constant"),
    "len": (lambda x: len(x), "Symbolic dimension 'n' used in a context that requires a constant"),
    "window": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (x.shape[0], 1), (1, 1), "VALID"),
        "^`reduce_window_sum` cannot take .* takes no symbolic window_dimensions",
    ),
    "if": (lambda x: x if x.shape[0] > 3 else -x, "'n' > '3' is inconclusive"),
    "eigenvalues": (lambda x: jnp.linalg.eigvals(x @ x.T), "eig"),
    "shuffle": (lambda x: random.permutation(random.key(0), x), "permutation|shuffle|sort"),
    "unroll": (lambda x: lax.scan(lambda c, r: (c, r), 0.0, x, unroll=2)[1], "scan|Symbolic"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(name: str) -> None:
    function, message = REFUSED[name]
    spec = perspex.ShapeDtypeStruct(export.symbolic_shape("n, 4"), np.float32)
    try:
        exported = export.export(jit(function))(spec)
    except (InconclusiveDimensionOperation, NotImplementedError) as error:
        assert str(error)
        import re

        assert re.search(message, str(error)), error
    else:
        x = RNG.normal(size=(5, 4)).astype(np.float32)
        for a, b in zip(tree.leaves(exported.call(x)), tree.leaves(jit(function)(x)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_types_without_a_program() -> None:
    spec = perspex.ShapeDtypeStruct(export.symbolic_shape("n, 4"), np.float32)
    assert str(perspex.eval_shape(lambda x: x @ Y, spec).shape) == "(n, 5)"
    assert str(perspex.make_jaxpr(lambda x: x[1:])(spec)).count("f32[n - 1,4]") == 1
    with pytest.raises(ValueError, match="was traced with symbolic dimensions"):
        jit(lambda x: x).lower(spec)

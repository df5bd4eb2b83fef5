"""Values of operations, family by family, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.threefry import KNOWN_ANSWERS, pairs

import perspex
from perspex import lax, random
from perspex import numpy as jnp
from perspex.ops.bits import threefry2x32

HIGHEST = "highest"

UNARY = """sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh exp exp2 expm1 log1p
sqrt cbrt square abs sign floor ceil trunc rint isnan isfinite signbit negative reciprocal deg2rad
sinc i0"""
BINARY = """add subtract multiply divide arctan2 hypot maximum minimum fmod floor_divide copysign
logaddexp nextafter less equal greater_equal float_power heaviside"""
INTEGER = """bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm floor_divide
remainder add multiply power"""
REDUCTIONS = """sum prod max min mean std var argmax argmin any all median ptp cumsum cumprod
nansum count_nonzero"""

# Functions of a namespace like NumPy's and of arrays: x [6, 8], y [8, 5] float32, k int [4].
STRUCTURE: dict[str, Callable[..., Any]] = {
    "sort": lambda np_, x, y, k: np_.sort(x, axis=0),
    "argsort": lambda np_, x, y, k: np_.argsort(x, axis=1),
    "transpose": lambda np_, x, y, k: np_.transpose(x)[::-1, 1::2],
    "gather": lambda np_, x, y, k: x[k],
    "gather pairs": lambda np_, x, y, k: x[k, k + 1],
    "take_along_axis": lambda np_, x, y, k: np_.take_along_axis(x, np_.argsort(x, axis=1), 1),
    "where": lambda np_, x, y, k: np_.where(x > 0, x, -x),
    "concatenate": lambda np_, x, y, k: np_.concatenate([x, x[:2]], axis=0),
    "pad": lambda np_, x, y, k: np_.pad(x, ((1, 2), (0, 3)), mode="reflect"),
    "roll": lambda np_, x, y, k: np_.roll(x, 3, axis=1),
    "tril": lambda np_, x, y, k: np_.tril(x, 1),
    "convolve": lambda np_, x, y, k: np_.convolve(x[0], x[1, :3]),
    "interp": lambda np_, x, y, k: np_.interp(x[0], np_.arange(8.0), x[1]),
    "searchsorted": lambda np_, x, y, k: np_.searchsorted(np_.sort(x[0]), x[1]),
    "unique": lambda np_, x, y, k: np_.unique(k % 2),
    "histogram": lambda np_, x, y, k: np_.histogram(x, bins=5)[0],
    "einsum": lambda np_, x, y, k: np_.einsum("ij,kj->ik", x, x),
    "outer": lambda np_, x, y, k: np_.outer(x[0], x[1]),
    "cross": lambda np_, x, y, k: np_.cross(x[0, :3], x[1, :3]),
    "diff": lambda np_, x, y, k: np_.diff(x, axis=1),
}


@pytest.fixture
def x(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-0.9, 0.9, (6, 8)).astype(np.float32)


@pytest.mark.parametrize("name", UNARY.split())
def test_unary(name: str, x: np.ndarray) -> None:
    x = abs(x) if name == "sqrt" else x
    found, want = getattr(jnp, name)(x), getattr(np, name)(x)
    np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", BINARY.split())
def test_binary(name: str, x: np.ndarray) -> None:
    left = abs(x) if name == "float_power" else x
    found, want = getattr(jnp, name)(left, x[::-1]), getattr(np, name)(left, x[::-1])
    np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
@pytest.mark.parametrize("name", INTEGER.split())
def test_integers(name: str, dtype: str, rng: np.random.Generator) -> None:
    a, b = rng.integers(1, 7, (2, 64)).astype(dtype)
    np.testing.assert_array_equal(getattr(jnp, name)(a, b), getattr(np, name)(a, b))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", REDUCTIONS.split())
def test_reductions(name: str, axis: int | None, x: np.ndarray) -> None:
    found, want = getattr(jnp, name)(x, axis=axis), getattr(np, name)(x, axis=axis)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", STRUCTURE)
def test_structure(name: str, x: np.ndarray, rng: np.random.Generator) -> None:
    y = rng.uniform(-1, 1, (8, 5)).astype(np.float32)
    k = np.array([3, 0, 3, 5])
    with perspex.default_matmul_precision(HIGHEST):
        found = STRUCTURE[name](jnp, jnp.asarray(x), jnp.asarray(y), jnp.asarray(k))
    want = STRUCTURE[name](np, x, y, k)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_scatter(x: np.ndarray) -> None:
    k = np.array([1, 1, 4])
    want = x.copy()
    np.add.at(want, k, x[:3])
    np.testing.assert_allclose(jnp.asarray(x).at[k].add(x[:3]), want, rtol=1e-5)


def test_top_k(x: np.ndarray) -> None:
    values, places = lax.top_k(jnp.asarray(x), 3)
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :3])
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(places), 1), values)


# Machine epsilon of what the product is made in, for sums of 256 terms.
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 1e-2), ("float16", 2e-3)]
)
def test_products(dtype: str, tolerance: float, rng: np.random.Generator) -> None:
    a, b = (jnp.asarray(rng.normal(size=(256, 256)), dtype) for _ in range(2))
    with perspex.default_matmul_precision(HIGHEST):
        found = np.asarray(a @ b, np.float64)
    want = np.asarray(a, np.float64) @ np.asarray(b, np.float64)
    assert abs(found - want).max() < tolerance * 60


def test_convolution(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3, 9, 9)).astype(np.float32)
    w = rng.normal(size=(4, 3, 3, 3)).astype(np.float32)
    found = lax.conv_general_dilated(x, w, (1, 1), "VALID", precision=HIGHEST)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    want = np.einsum("nchwij,ocij->nohw", windows, w)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


FFTS = "fft ifft rfft ihfft fft2 ifft2 rfft2 fftn"


@pytest.mark.parametrize("name", FFTS.split())
def test_fft(name: str, x: np.ndarray) -> None:
    found, want = getattr(jnp.fft, name)(x), getattr(np.fft, name)(x)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["irfft", "hfft"])
def test_fft_to_real(name: str, x: np.ndarray) -> None:
    half = np.fft.rfft(x)
    found, want = getattr(jnp.fft, name)(half.astype(np.complex64)), getattr(np.fft, name)(half)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def test_loops_and_branches() -> None:
    def step(c: Any, x: Any) -> Any:
        c = lax.cond(x > 2, lambda c: c * 0.5, lambda c: c + x, c)
        return c, c

    want, c = [], 0.0
    for v in np.arange(6.0):
        c = c * 0.5 if v > 2 else c + v
        want.append(c)
    np.testing.assert_allclose(lax.scan(step, 0.0, jnp.arange(6.0))[1], want)
    assert int(lax.while_loop(lambda n: n < 100, lambda n: n * 3, 1)) == 243


def test_derivatives(x: np.ndarray) -> None:
    found = perspex.grad(lambda x: jnp.sum(jnp.sin(x) ** 2))(x)
    np.testing.assert_allclose(found, np.sin(2 * x), rtol=1e-4, atol=1e-5)
    found = perspex.vmap(perspex.hessian(lambda v: (v**4).sum()))(x)
    np.testing.assert_allclose(found, 12 * x[:, :, None] ** 2 * np.eye(8), rtol=1e-4, atol=1e-5)


# ---- Linear algebra -----------------------------------------------------------------------------


@pytest.fixture(params=[(), (3,)], ids=["one", "batch"])
def a(request: pytest.FixtureRequest, rng: np.random.Generator) -> np.ndarray:
    found: np.ndarray = rng.normal(size=(*request.param, 7, 7)).astype(np.float32)
    return found


def close(found: Any, want: Any, tolerance: float = 2e-4) -> None:
    np.testing.assert_allclose(np.asarray(found), want, rtol=tolerance, atol=tolerance)


def rebuilt(*factors: Any) -> np.ndarray:
    out = np.asarray(factors[0], np.complex128)
    for factor in factors[1:]:
        out = out @ np.asarray(factor)
    return out


@pytest.mark.parametrize("name", ["inv", "det", "pinv", "slogdet", "matrix_rank"])
def test_functions_of_matrices(name: str, a: np.ndarray) -> None:
    found, want = getattr(jnp.linalg, name)(a), getattr(np.linalg, name)(a)
    for one, other in zip(*([v] if name != "slogdet" else v for v in (found, want)), strict=True):
        close(one, other, 2e-3)


def test_solve(a: np.ndarray) -> None:
    close(jnp.linalg.solve(a, a[..., ::-1]), np.linalg.solve(a, a[..., ::-1]), 2e-3)


def test_cholesky(a: np.ndarray) -> None:
    m = a @ a.swapaxes(-1, -2) + 3 * np.eye(7, dtype=np.float32)
    close(jnp.linalg.cholesky(m), np.linalg.cholesky(m))


def test_lu(a: np.ndarray) -> None:
    from_, pivots, order = lax.linalg.lu(a)
    low = np.tril(from_, -1) + np.eye(7)
    close(low @ np.triu(from_), np.take_along_axis(a, np.asarray(order)[..., None], -2))


@pytest.mark.parametrize("rows", [7, 4])
def test_qr(rows: int, a: np.ndarray) -> None:
    a = a[..., :rows, :]
    q, r = jnp.linalg.qr(a)
    close(rebuilt(q, r), a)
    close(rebuilt(np.asarray(q).swapaxes(-1, -2), q), np.broadcast_to(np.eye(rows), q.shape))
    assert not np.tril(r, -1).any()


def test_eigh(a: np.ndarray) -> None:
    m = a + a.swapaxes(-1, -2)
    w, v = jnp.linalg.eigh(m)
    close(w, np.linalg.eigvalsh(m))
    close(rebuilt(np.asarray(v) * np.asarray(w)[..., None, :], np.asarray(v).swapaxes(-1, -2)), m)


@pytest.mark.parametrize("shape", [(7, 7), (7, 4), (4, 7), (40, 33)])
def test_svd(shape: tuple[int, int], rng: np.random.Generator) -> None:
    a = rng.normal(size=shape).astype(np.float32)
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    close(s, np.linalg.svd(a)[1])
    close(rebuilt(np.asarray(u) * np.asarray(s), vh), a)


def test_triangular_solve(a: np.ndarray) -> None:
    low = np.tril(a) + 4 * np.eye(7, dtype=np.float32)
    found = lax.linalg.triangular_solve(low, a, left_side=True, lower=True)
    close(found, np.linalg.solve(low, a))


def test_eig(rng: np.random.Generator) -> None:
    a = rng.normal(size=(5, 5)).astype(np.float32)
    try:
        found = jnp.linalg.eigvals(a)
    except NotImplementedError as error:
        pytest.skip(f"this platform has none: {error}")
    close(np.sort_complex(np.asarray(found)), np.sort_complex(np.linalg.eigvals(a)), 1e-3)


# ---- Random bits --------------------------------------------------------------------------------


def test_threefry() -> None:
    """The authors' known answers, and keys of ours against a Threefry in Python integers."""
    for counter, key, want in KNOWN_ANSWERS:
        found = threefry2x32(*[np.uint32(n) for n in (*key, *counter)])
        assert tuple(map(int, found)) == want
    with perspex.threefry_partitionable(False):
        bits = random.bits(random.wrap_key_data(np.array([3, 9], np.uint32)), (6,))
    assert list(map(int, bits)) == pairs((3, 9), 6)


def test_bits_are_the_processors(cpu: Any) -> None:
    """The same numbers everywhere; what is computed from them may differ in the last digits."""

    def draw() -> list[Any]:
        key = random.key(5)
        return [
            random.bits(key, (1_000,)),
            random.randint(key, (1_000,), 0, 77),
            random.permutation(key, 100),
            random.normal(key, (1_000,)),
        ]

    *here, normal = draw()
    with perspex.default_device(cpu):
        *there, other = draw()
    for found, want in zip(here, there, strict=True):
        np.testing.assert_array_equal(found, np.asarray(want))
    np.testing.assert_allclose(normal, np.asarray(other), rtol=1e-5, atol=1e-6)
    assert abs(float(np.std(normal)) - 1) < 0.1

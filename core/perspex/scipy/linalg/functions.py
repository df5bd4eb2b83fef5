"""Functions of matrices: what a power series says when its variable is a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.api.differentiation import jvp
from perspex.api.mapping import vmap
from perspex.jitted.fused import fused
from perspex.lax.branches import cond
from perspex.lax.control import fori_loop, scan
from perspex.numpy.promotion import Array, ArrayLike, as_array, inexact, promote_dtypes
from perspex.ops.linalg.matrices import identity, matmul, upper_part
from perspex.ops.linalg.solve import solve as solve_matrices
from perspex.ops.linalg.triangular import solve_upper
from perspex.scipy.linalg.decompositions import complex_schur

# Of the approximation of exp by a quotient of polynomials: the degree that is worth its products,
# and the largest norm of a matrix at which its error is below the rounding error. Higham (2005),
# "The scaling and squaring method for the matrix exponential revisited", table 2.3.
_PADE = {"float32": (7, 3.925724783138660), "float64": (13, 5.371920351148152)}


def _square(name: str, a: Any) -> Any:
    a = as_array(inexact(name, a))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(
            f"Expected {name}'s argument to be a (batched) square matrix, got the shape {a.shape}"
        )
    if dtypes.finfo(a.dtype).dtype.name not in _PADE:
        raise TypeError(f"{name}: dtype {a.dtype.name} is not supported; convert it to float32")
    return a


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices, by scaling and squaring (Higham 2005).

    Args:
      A: shape `(..., n, n)`.
      upper_triangular: use that the matrices are upper triangular.
      max_squarings: how often the result of a scaled matrix may be squared. Matrices with a larger
        norm give NaN.

    >>> expm(pnp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    a = _square("expm", A)
    count = int(max_squarings)
    if a.ndim == 2:
        return _expm(a, upper=bool(upper_triangular), max_squarings=count)
    flat = a.reshape(math.prod(a.shape[:-2]), *a.shape[-2:])

    def each(x: Any) -> Any:
        return _expm(x, upper=bool(upper_triangular), max_squarings=count)

    return vmap(each)(flat).reshape(a.shape)


@fused(static=("upper", "max_squarings"))
def _expm(a: Any, upper: bool, max_squarings: int) -> Any:
    if not a.size:
        return a
    degree, limit = _PADE[dtypes.finfo(a.dtype).dtype.name]
    norm = pnp.max(pnp.sum(pnp.abs(a), axis=0))
    ratio = pnp.where(norm > 0, norm, 1) / limit
    needed = pnp.maximum(0, pnp.ceil(pnp.log2(ratio)))
    scaled = a * pnp.exp2(-needed).astype(a.dtype)
    numerator, denominator = _pade(scaled, degree)
    found = (solve_upper if upper else solve_matrices)(denominator, numerator)

    def square(x: Any, i: Any) -> Any:
        return cond(i < needed, lambda v: matmul(v, v), lambda v: v, x), None

    out, _ = scan(square, found, pnp.arange(max_squarings, dtype=needed.dtype))
    return pnp.where(needed > max_squarings, pnp.nan, out)


def _pade(a: Any, degree: int) -> tuple[Any, Any]:
    """Numerator and denominator of the approximation of exp(a)."""
    weights = [
        math.factorial(2 * degree - k)
        // math.factorial(degree - k)
        * math.factorial(degree)
        // math.factorial(k)
        for k in range(degree + 1)
    ]
    # Both are multiples of these; smaller numbers keep float32 from overflowing.
    scale = float(weights[0])
    weights = [w / scale for w in weights]  # type: ignore[misc]
    eye = identity(a.shape, a.dtype)
    powers = [eye, matmul(a, a)]
    while len(powers) <= min(degree // 2, 3):
        powers.append(matmul(powers[-1], powers[1]))

    def series(first: int) -> Any:
        """The sum of `weights[first + 2 k] a^(2 k)`."""
        chosen = weights[first::2]
        low = _combination(chosen[: len(powers)], powers)
        if len(chosen) <= len(powers):
            return low
        high = _combination(chosen[len(powers) :], powers[1:])
        return low + matmul(powers[-1], high)

    odd, even = matmul(a, series(1)), series(0)
    return even + odd, even - odd


def _combination(weights: Any, matrices: Any) -> Any:
    total = weights[0] * matrices[0]
    for weight, matrix in zip(weights[1:], matrices[1:], strict=False):
        total = total + weight * matrix
    return total


def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Any:
    """The derivative of the exponential at `A` in the direction `E`.

    Args:
      A, E: matrices of one shape `(n, n)`.
      method: has no effect.
      compute_expm: return the exponential too, as the first of two.

    >>> expm_frechet(pnp.zeros((1, 1)), pnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], dtype=float32)
    """
    a, e = (as_array(x) for x in promote_dtypes("expm_frechet", A, E, to=dtypes.to_inexact_dtype))
    if a.ndim != 2 or a.shape[0] != a.shape[1] or a.shape != e.shape:
        raise ValueError(
            f"expm_frechet takes square matrices of one shape, got the shapes {a.shape}, {e.shape}"
        )
    value, slope = jvp(expm, (a,), (e,))
    return (value, slope) if compute_expm else slope


def _by_columns(t: Any, diagonal: Any, column: Callable[..., Any]) -> Any:
    """An upper triangular matrix with such a diagonal, one column after the other.

    `column(j, f)` gives the elements of column `j` above its diagonal, and anything below, given
    the columns before it.
    """
    n = t.shape[0]
    places = np.arange(n)

    def step(j: Any, f: Any) -> Any:
        found = pnp.where(places < j, column(j, f), pnp.where(places == j, diagonal[j], 0))
        return f.at[:, j].set(found)

    return fori_loop(0, n, step, pnp.zeros_like(t))


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of a matrix, complex.

    Args:
      A: a matrix of shape `(n, n)`.
      blocksize: must be 1.

    The method is that of Bjorck and Hammarling (1983), on the complex Schur form.

    >>> root = sqrtm(pnp.array([[4.0, 1.0], [0.0, 9.0]]))
    >>> pnp.allclose(root @ root, pnp.array([[4.0, 1.0], [0.0, 9.0]]))
    Array(True, dtype=bool)
    """
    if blocksize > 1:
        raise NotImplementedError("sqrtm: blocks are not available; leave `blocksize` out")
    a = _square("sqrtm", A)
    if a.ndim != 2:
        raise ValueError(f"sqrtm takes one matrix, got the shape {a.shape}; use vmap for a batch")
    return _sqrtm(a)


@fused
def _sqrtm(a: Any) -> Any:
    t, z = complex_schur(a)
    roots = pnp.sqrt(pnp.diag(t))
    eye = identity(t.shape, t.dtype)

    def column(j: Any, f: Any) -> Any:
        # (f + f[j, j]) f[:, j] = t[:, j], above the diagonal. Rows that f has not yet got are
        # those of the identity.
        ready = (np.arange(t.shape[0]) < j)[:, None]
        rhs = pnp.where(ready[:, 0], t[:, j], 0)
        return solve_upper(pnp.where(ready, f + roots[j] * eye, eye), rhs[:, None])[:, 0]

    return matmul(z, matmul(_by_columns(t, roots, column), z, "", "H"))


def funm(A: ArrayLike, func: Callable[..., Any], disp: bool = True) -> Any:
    """A function of a matrix, by its values at the eigenvalues.

    Args:
      A: a matrix of shape `(n, n)`, with eigenvalues that differ.
      func: a function of arrays of complex numbers, element by element.
      disp: if false, return an estimate of the relative error too, as the second of two.

    Returns:
      A complex array. The method is that of Parlett (1976), on the complex Schur form.

    >>> x = pnp.array([[1.0, 2.0], [0.0, 4.0]])
    >>> pnp.allclose(funm(x, lambda v: v**2), x @ x)
    Array(True, dtype=bool)
    """
    a = _square("funm", A)
    if a.ndim != 2:
        raise ValueError(f"funm takes one matrix, got the shape {a.shape}; use vmap for a batch")
    t, z = complex_schur(a)
    values = as_array(func(pnp.diag(t))).astype(t.dtype)
    eye = identity(t.shape, t.dtype)

    def column(j: Any, f: Any) -> Any:
        # t f = f t above the diagonal: (t - t[j, j]) f[:, j] = f t[:, j] - values[j] t[:, j].
        ready = (np.arange(t.shape[0]) < j)[:, None]
        above = pnp.where(ready[:, 0], t[:, j], 0)
        rhs = f @ above - values[j] * above
        return solve_upper(pnp.where(ready, t - t[j, j] * eye, eye), rhs[:, None])[:, 0]

    f = _by_columns(t, values, column)
    out = matmul(z, matmul(f, z, "", "H"))
    if disp:
        return out
    # How close two eigenvalues come, among those whose quotient is taken.
    gaps = pnp.abs(pnp.diag(t)[:, None] - pnp.diag(t)[None, :]) + pnp.where(eye == 1, pnp.inf, 0)
    least = pnp.min(gaps, initial=1.0)
    eps = float(dtypes.finfo(a.dtype).eps)
    size = pnp.linalg.norm(upper_part(t, "zero"), 1)
    error = pnp.maximum(eps, eps / pnp.where(least == 0, eps, least) * size)
    error = pnp.minimum(1, error)
    finite = pnp.all(pnp.isfinite(pnp.abs(f)))
    return out, pnp.where(finite, error, pnp.inf)

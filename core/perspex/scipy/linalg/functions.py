"""Functions of matrices: power series with a matrix as their variable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.api.differentiation import jvp
from perspex.api.mapping import vmap
from perspex.arguments.arrays import as_array
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.lax.branches import cond
from perspex.lax.control import fori_loop, scan
from perspex.numpy.promotion import inexact
from perspex.ops.linalg.matrices import identity, matmul, upper_part
from perspex.ops.linalg.solve import solve as solve_matrices
from perspex.ops.linalg.triangular import solve_upper
from perspex.scipy.linalg.decompositions import complex_schur
from perspex.scipy.linalg.operands import check_square, matrices, promoted

__all__ = ["expm", "expm_frechet", "funm", "sqrtm"]

# For the Pade approximation of exp: a degree, and the largest norm of a matrix for which the error
# is below the rounding error. Higham (2005), "The scaling and squaring method for the matrix
# exponential revisited", table 2.3.
_PADE = {"float32": (7, 3.925724783138660), "float64": (13, 5.371920351148152)}


def _square(name: str, a: Any) -> Any:
    a = as_array(inexact(name, a))
    check_square(name, a)
    if dtypes.finfo(a.dtype).dtype.name not in _PADE:
        raise TypeError(f"{name}: dtype {a.dtype.name} is not supported; convert it to float32")
    return a


def _one_square(name: str, a: Any) -> Any:
    a = _square(name, a)
    if a.ndim != 2:
        raise ValueError(f"{name} takes one matrix, got the shape {a.shape}; use vmap for a batch")
    return a


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Exponential of square matrices, by scaling and squaring.

    Args:
      A: matrices of shape `(..., n, n)`.
      upper_triangular: use that the matrices are upper triangular.
      max_squarings: how often the result of a scaled matrix may be squared. Matrices with a larger
        norm give NaN.

    Returns:
      An array of the shape of `A`, of floating or complex dtype.

    Raises:
      TypeError: if `A` is not an array or a number, or has 16 bits.
      ValueError: for matrices that are not square.

    References:
      N. J. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
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
) -> Array | tuple[Array, ...]:
    """Derivative of the exponential at `A` in the direction `E`.

    Args:
      A, E: square matrices of one shape.
      method: has no effect.
      compute_expm: return the exponential too.

    Returns:
      `(expm(A), derivative)`, or the derivative alone; matrices of the shape of `A`.

    Raises:
      TypeError: if `A` or `E` is not an array or a number, or has 16 bits.
      ValueError: for matrices that are not square, or of different shapes.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> linalg.expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], dtype=float32)
    """
    a, e = promoted("expm_frechet", A, E)
    check_square("expm_frechet", a, e, ndim=2)
    value, slope = jvp(expm, (a,), (e,))
    return (value, slope) if compute_expm else slope


def _by_columns(t: Any, diagonal: Any, column: Callable[..., Any]) -> Any:
    """An upper triangular matrix with a given diagonal, one column after the other.

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
    """Principal square root of a matrix.

    Args:
      A: a matrix of shape `(n, n)`.
      blocksize: must be 1.

    Returns:
      A complex matrix of shape `(n, n)`.

    Raises:
      TypeError: if `A` is not an array or a number.
      ValueError: if `A` is not one square matrix.
      NotImplementedError: for a greater `blocksize`.

    References:
      A. Bjorck and S. Hammarling, "A Schur method for the square root of a matrix" (1983).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> root = linalg.sqrtm(jnp.array([[4.0, 1.0], [0.0, 9.0]]))
    >>> jnp.allclose(root @ root, jnp.array([[4.0, 1.0], [0.0, 9.0]]))
    Array(True, dtype=bool)
    """
    if blocksize > 1:
        raise NotImplementedError("sqrtm: blocks are not available; leave `blocksize` out")
    a = matrices("sqrtm", A)
    return _sqrtm(_one_square("sqrtm", a.astype(np.promote_types(a.dtype, np.float32))))


@fused
def _sqrtm(a: Any) -> Any:
    t, z = complex_schur(a)
    roots = pnp.sqrt(pnp.diag(t))
    eye = identity(t.shape, t.dtype)

    def column(j: Any, f: Any) -> Any:
        # (f + f[j, j]) f[:, j] = t[:, j], above the diagonal. Rows that f lacks so far are
        # those of the identity.
        ready = (np.arange(t.shape[0]) < j)[:, None]
        rhs = pnp.where(ready[:, 0], t[:, j], 0)
        sums = roots + roots[j]
        singular = (sums == 0) & ready[:, 0]
        # The equation of such a row is 0 f[i, j] = rest: f[i, j] = 0 for rest 0, else no root.
        matrix = pnp.where(ready & ~(singular[:, None] & (eye == 1)), f + roots[j] * eye, eye)
        found = solve_upper(matrix, rhs[:, None])[:, 0]
        none = pnp.cumsum((singular & (found != 0))[::-1])[::-1] > 0
        return pnp.where(none, pnp.nan, found)

    return matmul(z, matmul(_by_columns(t, roots, column), z, "", "H"))


def funm(A: ArrayLike, func: Callable[..., Any], disp: bool = True) -> Array | tuple[Array, ...]:
    """Function of a matrix, from its values at the eigenvalues.

    Args:
      A: a matrix of shape `(n, n)`, with eigenvalues that differ.
      func: a function of arrays of complex numbers, element by element.
      disp: if false, return an estimate of the relative error too.

    Returns:
      A complex matrix of shape `(n, n)`; or the pair of it and the estimate.

    Raises:
      TypeError: if `A` is not an array or a number, or has 16 bits.
      ValueError: if `A` is not one square matrix.

    References:
      B. N. Parlett, "A recurrence among the elements of functions of triangular matrices" (1976).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import linalg
    >>> x = jnp.array([[1.0, 2.0], [0.0, 4.0]])
    >>> jnp.allclose(linalg.funm(x, lambda v: v**2), x @ x)
    Array(True, dtype=bool)
    """
    a = _one_square("funm", A)
    t, z = complex_schur(a)
    values = as_array(func(pnp.diag(t))).astype(t.dtype)
    eye = identity(t.shape, t.dtype)

    def column(j: Any, f: Any) -> Any:
        # t f = f t above the diagonal: (t - t[j, j]) f[:, j] = f t[:, j] - values[j] t[:, j].
        ready = (np.arange(t.shape[0]) < j)[:, None]
        above = pnp.where(ready[:, 0], t[:, j], 0)
        rhs = f @ above - values[j] * above
        matrix = pnp.where(ready, t - t[j, j] * eye, eye)
        # As in SciPy: where two eigenvalues are equal, the right-hand side itself.
        matrix = pnp.where((matrix == 0) & (eye == 1), 1, matrix)
        return solve_upper(matrix, rhs[:, None])[:, 0]

    f = _by_columns(t, values, column)
    out = matmul(z, matmul(f, z, "", "H"))
    if disp:
        return out
    # The smallest distance of two eigenvalues.
    gaps = pnp.abs(pnp.diag(t)[:, None] - pnp.diag(t)[None, :]) + pnp.where(eye == 1, pnp.inf, 0)
    least = pnp.min(gaps, initial=1.0)
    eps = float(dtypes.finfo(a.dtype).eps)
    size = pnp.linalg.norm(upper_part(t, "zero"), 1)
    error = pnp.maximum(eps, eps / pnp.where(least == 0, eps, least) * size)
    error = pnp.minimum(1, error)
    finite = pnp.all(pnp.isfinite(pnp.abs(f)))
    return out, pnp.where(finite, error, pnp.inf)

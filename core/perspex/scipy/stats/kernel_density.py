"""Kernel density estimation with normal kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from perspex import numpy as pnp
from perspex.arguments.arrays import check_arraylike
from perspex.arguments.types import Array, ArrayLike, Shape
from perspex.base.pytree_registry import register_pytree_node
from perspex.lax import linalg
from perspex.numpy.promotion import inexact
from perspex.random import choice, multivariate_normal, split
from perspex.scipy.special import logsumexp, ndtr

__all__ = ["gaussian_kde"]

_FIELDS = "neff", "dataset", "weights", "covariance", "inv_cov"


class gaussian_kde:  # noqa: N801 - the name in SciPy
    """A density estimated from samples: the mean of normal densities around them.

    Args:
      dataset: samples, of shape `(d, n)`, or `(n,)` in one dimension.
      bw_method: the width of a kernel relative to the deviation of the samples: `"scott"` (the
        default, `neff ** (-1 / (d + 4))`), `"silverman"`, a number, or a function of the estimate.
      weights: weights of the samples, of shape `(n,)`; equal by default.

    It is a pytree, so it may be an argument or result of transformed functions.

    Raises:
      TypeError: if `dataset` or `weights` is not an array or a number.
      ValueError: for fewer than two numbers, weights of another shape, or an unknown `bw_method`.
      NotImplementedError: for complex samples.

    References:
      D. W. Scott, "Multivariate Density Estimation" (1992); B. W. Silverman, "Density Estimation
      for Statistics and Data Analysis" (1986).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import stats
    >>> estimate = stats.gaussian_kde(jnp.array([1.0, 2.0, 4.0]))
    >>> bool(estimate(jnp.array([2.0]))[0] > estimate(jnp.array([9.0]))[0])
    True
    """

    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array

    def __init__(
        self,
        dataset: ArrayLike,
        bw_method: str | float | Callable[[Any], Any] | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        check_arraylike("gaussian_kde", dataset)
        data = pnp.atleast_2d(inexact("gaussian_kde", dataset))
        if pnp.iscomplexobj(data):
            raise NotImplementedError("gaussian_kde does not support complex samples")
        if data.size <= 1:
            raise ValueError("gaussian_kde: dataset must have more than one element")
        d, n = data.shape
        if weights is None:
            share = pnp.full(n, 1 / n, data.dtype)
        else:
            check_arraylike("gaussian_kde", weights)
            share = pnp.atleast_1d(weights).astype(data.dtype)
            if share.shape != (n,):
                raise ValueError(
                    f"gaussian_kde: weights must have shape ({n},), one for each sample, got "
                    f"{share.shape}"
                )
            share = share / pnp.sum(share)
        self.dataset, self.weights = data, share
        self.neff = 1 / pnp.sum(share**2)
        if bw_method is None or bw_method == "scott":
            factor: Any = self.neff ** (-1 / (d + 4))
        elif bw_method == "silverman":
            factor = (self.neff * (d + 2) / 4) ** (-1 / (d + 4))
        elif callable(bw_method):
            factor = bw_method(self)
        elif isinstance(bw_method, str):
            raise ValueError(
                "gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function, got "
                f"{bw_method!r}"
            )
        else:
            factor = bw_method
        spread = pnp.atleast_2d(pnp.cov(data, rowvar=True, bias=False, aweights=share))
        self.covariance = spread * factor**2
        self.inv_cov = pnp.atleast_2d(_inverse(spread)) / factor**2

    @property
    def d(self) -> int:
        """The dimension of the samples."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """How many samples there are."""
        return self.dataset.shape[1]

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at `points`, of shape `(d, m)`, or `(m,)` in one dimension."""
        return pnp.exp(self.logpdf(points))

    __call__ = evaluate
    pdf = evaluate

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density at `x`, of shape `(d, m)`, or `(m,)` in one dimension."""
        points = self._points("logpdf", x)
        root = linalg.cholesky(self.covariance)
        norm = _log_norm(root)
        away = points[:, :, None] - self.dataset[:, None, :]
        exponents = -0.5 * pnp.einsum("imn,ij,jmn->mn", away, self.inv_cov, away)
        return logsumexp(exponents, b=self.weights, axis=1) - norm

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the estimate times a normal density.

        Args:
          mean: the mean of the density, of shape `(d,)`.
          cov: its covariance, of shape `(d, d)`.
        """
        center = pnp.atleast_1d(inexact("integrate_gaussian", mean))
        spread = pnp.atleast_2d(inexact("integrate_gaussian", cov))
        if center.shape != (self.d,) or spread.shape != (self.d, self.d):
            raise ValueError(
                f"integrate_gaussian: mean and cov must have shapes ({self.d},) and "
                f"({self.d}, {self.d}), got {center.shape} and {spread.shape}"
            )
        return _overlap(self.dataset - center[:, None], self.covariance + spread) @ self.weights

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The mass between `low` and `high`, in one dimension."""
        if self.d != 1:
            raise ValueError(f"integrate_box_1d: the samples have {self.d} dimensions, not one")
        if pnp.ndim(low) or pnp.ndim(high):
            raise ValueError("integrate_box_1d: the bounds must be scalars")
        deviation = pnp.sqrt(self.covariance[0, 0])
        above, below = [ndtr((v - self.dataset[0]) / deviation) for v in (high, low)]
        return pnp.sum(self.weights * (above - below))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of this estimate and another of the same dimension."""
        if other.d != self.d:
            raise ValueError(
                f"integrate_kde: the estimates have different dimensions, {self.d} and {other.d}"
            )
        away = self.dataset[:, :, None] - other.dataset[:, None, :]
        overlap = _overlap(away.reshape(self.d, -1), self.covariance + other.covariance)
        return self.weights @ overlap.reshape(self.n, other.n) @ other.weights

    def resample(self, key: ArrayLike, shape: Shape = ()) -> Array:
        """Random points of the estimated density, of shape `(d, *shape)`."""
        first, second = split(key)
        centers = choice(first, self.n, shape, p=self.weights)
        noise = multivariate_normal(
            second,
            pnp.zeros(self.d, self.covariance.dtype),
            self.covariance,
            shape,
            self.dataset.dtype,
        )
        return self.dataset[:, centers] + pnp.moveaxis(noise, -1, 0)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Array:
        """Not available: there is no such integral in closed form."""
        raise NotImplementedError("integrate_box is not supported; integrate_box_1d is")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not available: an estimate does not change; make another one."""
        raise NotImplementedError("dynamically changing the bandwidth is not supported")

    def _points(self, name: str, x: ArrayLike) -> Array:
        check_arraylike(name, x)
        points = pnp.atleast_2d(inexact(name, x))
        if pnp.iscomplexobj(points):
            raise NotImplementedError(f"gaussian_kde.{name} does not support complex points")
        if points.shape[0] == self.d:
            return points
        if points.shape == (1, self.d):
            return points.reshape(self.d, 1)
        raise ValueError(
            f"gaussian_kde.{name}: points have dimension {points.shape[0]}, samples {self.d}"
        )


def _inverse(matrix: Array) -> Array:
    root = linalg.cholesky(matrix)
    half = linalg.triangular_solve(
        root, pnp.eye(matrix.shape[0], dtype=matrix.dtype), left_side=True, lower=True
    )
    return half.T @ half


def _log_norm(root: Array) -> Array:
    """The logarithm of `sqrt(det(2 pi c))`, from the Cholesky factor of c."""
    return 0.5 * root.shape[0] * math.log(2 * math.pi) + pnp.sum(pnp.log(pnp.diagonal(root)))


def _overlap(away: Array, spread: Array) -> Array:
    """The normal densities of covariance `spread` at the columns of `away`."""
    root = linalg.cholesky(spread)
    y = linalg.triangular_solve(root, away, left_side=True, lower=True)
    return pnp.exp(-0.5 * pnp.sum(y * y, axis=0) - _log_norm(root))


def _flatten(estimate: gaussian_kde) -> tuple[tuple[Array, ...], None]:
    return tuple([getattr(estimate, name) for name in _FIELDS]), None


def _unflatten(_: None, children: Any) -> gaussian_kde:
    estimate = gaussian_kde.__new__(gaussian_kde)
    for name, child in zip(_FIELDS, children, strict=True):
        setattr(estimate, name, child)
    return estimate


register_pytree_node(gaussian_kde, _flatten, _unflatten)

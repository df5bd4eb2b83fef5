"""Matrices for tests of their factors, and the parameters of the operations that factor them."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.harness import Draw, normal

DTYPES = ("float32", "float64", "complex64", "complex128")
# Results of several dtypes, or with signs that hang on the last digit, are as SciPy's in these;
# single precision is tested by putting the factors together again.
DOUBLE = ("float64", "complex128")
SPD = {"symmetrize_input": True}
SOLVES = [
    dict(
        left_side=bool(i & 1),
        lower=bool(i & 2),
        transpose_a=bool(i & 4),
        conjugate_a=bool(i & 8),
        unit_diagonal=i in (3, 6),
    )
    for i in (0, 6, 11, 15)
]
EIGH: dict[str, Any] = {
    "algorithm": None,
    "lower": True,
    "sort_eigenvalues": True,
    "subset_by_index": None,
    "symmetrize_input": True,
}
SVD: dict[str, Any] = {
    "full_matrices": False,
    "compute_uv": True,
    "subset_by_index": None,
    "algorithm": None,
}
EIG = {
    "compute_left_eigenvectors": True,
    "compute_right_eigenvectors": True,
    "enable_eigvec_derivs": True,
}


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def positive(*shape: int) -> Draw:
    """Positive definite matrices whose eigenvalues lie apart."""

    def draw(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        x = normal(*shape, scale=0.5)(rng, dtype)
        n = shape[-1]
        return np.asarray(x @ adjoint(x) + np.diag(np.arange(n) * 2.0 + 2)).astype(dtype)

    return draw


def regular(*shape: int) -> Draw:
    """Square matrices with a good condition whose eigenvalues lie apart."""

    def draw(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        n = shape[-1]
        x = normal(*shape, scale=0.4)(rng, dtype)
        return np.asarray(x + np.diag(np.arange(n) * 2.0 - n + 0.5)).astype(dtype)

    return draw


def apart(*shape: int) -> Draw:
    """Matrices of any shape with singular values that lie apart."""

    def draw(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        x = normal(*shape, scale=0.3)(rng, dtype)
        return np.asarray(x + np.eye(*shape[-2:]) * (1.0 + np.arange(shape[-1]))).astype(dtype)

    return draw


def hermitian(x: np.ndarray) -> np.ndarray:
    return (x + adjoint(x)) / 2


def each(f: Any, *xs: np.ndarray) -> Any:
    """`f` on each matrix of a batch."""
    lead = xs[0].shape[:-2]
    if not lead:
        return f(*xs)
    parts = [f(*[x[i] for x in xs]) for i in np.ndindex(*lead)]
    if isinstance(parts[0], tuple):
        return tuple(np.stack(p).reshape(*lead, *p[0].shape) for p in zip(*parts, strict=True))
    return np.stack(parts).reshape(*lead, *parts[0].shape)


def adjugate_reference(x: np.ndarray) -> Any:
    def one(v: np.ndarray) -> Any:
        n = len(v)
        out = np.ones_like(v)
        for i, j in np.ndindex(n, n) if n > 1 else ():
            minor = np.delete(np.delete(v, i, 0), j, 1)
            out[j, i] = (-1) ** (i + j) * np.linalg.det(minor)
        return np.linalg.det(v), out

    return each(one, x)

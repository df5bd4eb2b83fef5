"""Iterative solvers of linear systems: `cg`, `bicgstab`, `gmres`.

The matrix is a function that multiplies by it. Vectors are pytrees of arrays, which the solvers see
as one long vector. Derivatives come from the equation, not from the iteration
(`lax.custom_linear_solve`): a derivative is another solution with the same matrix.

Y. Saad, "Iterative Methods for Sparse Linear Systems" (2003), has all three.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from perspex import dtypes, lax, tree
from perspex import numpy as pnp
from perspex.api.differentiation import vjp
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.ir.avals import shaped

__all__ = ["bicgstab", "cg", "gmres"]

# A function of pytrees like `b`, or a matrix.
Operator: TypeAlias = Callable[[Any], Any] | ArrayLike
Tree: TypeAlias = Any
Vector = Any
Matvec = Callable[[Any], Any]


def cg(
    A: Operator,
    b: Tree,
    x0: Tree | None = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[Tree, None]:
    """Solve `A x = b` for a Hermitian, positive definite matrix by conjugate gradients.

    Args:
      A: a linear function of pytrees like `b`, or a square matrix; Hermitian, positive definite.
      maxiter: the most steps to take; ten times the number of unknowns if not given.
      M: an approximation of the inverse of `A`, Hermitian and positive definite, as a function or a
        matrix.

    Returns:
      `(x, None)`, where `x` is like `b`. SciPy's second value, how it went, is not known while a
      program is traced.

    References:
      M. R. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear systems"
      (1952).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy.sparse.linalg import cg
    >>> x, _ = cg(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([1.0, 2.0]))
    >>> jnp.round(x, 3)
    Array([0.5, 0.5], dtype=float32)
    """
    problem = _Problem("cg", A, b, x0, tol, atol, maxiter, M)
    return problem.solve(_cg, real_symmetric=True), None


def bicgstab(
    A: Operator,
    b: Tree,
    x0: Tree | None = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[Tree, None]:
    """Solve `A x = b` for any invertible matrix by stabilized bi-conjugate gradients.

    Args:
      maxiter: the most steps to take; ten times the number of unknowns if not given.

    Returns:
      `(x, None)`, where `x` is like `b`. SciPy's second value, how it went, is not known while a
      program is traced.

    References:
      H. A. van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG" (1992).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy.sparse.linalg import bicgstab
    >>> x, _ = bicgstab(lambda x: 2 * x, jnp.array([1.0, 2.0]))
    >>> x
    Array([0.5, 1. ], dtype=float32)
    """
    problem = _Problem("bicgstab", A, b, x0, tol, atol, maxiter, M)
    return problem.solve(_bicgstab), None


def gmres(
    A: Operator,
    b: Tree,
    x0: Tree | None = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Operator | None = None,
    solve_method: str = "batched",
) -> tuple[Tree, Array]:
    """Solve `A x = b` for any invertible matrix by the generalized minimal residual method.

    Args:
      restart: how many products with the matrix one search takes. More need fewer searches, and
        memory for as many vectors.
      maxiter: the most searches; ten times the number of unknowns if not given.
      solve_method: `"batched"` or `"incremental"`, which are the same here: a small least squares
        problem follows each search.

    Returns:
      `(x, info)`, where `x` is like `b`, and `info` is -1 if `x` has a NaN, otherwise 0.

    Raises:
      TypeError: for operators that are neither functions nor arrays, and a `b` of integers.
      ValueError: for a matrix that is not square, an `x0` unlike `b`, another `solve_method`, and a
        `restart` below 1.

    References:
      Y. Saad and M. H. Schultz, "GMRES: a generalized minimal residual algorithm for solving
      nonsymmetric linear systems" (1986).

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy.sparse.linalg import gmres
    >>> x, info = gmres(lambda x: 2 * x, jnp.array([1.0, 2.0]))
    >>> jnp.round(x, 3), int(info)
    (Array([0.5, 1. ], dtype=float32), 0)
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(
            f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'"
        )
    if restart < 1:
        raise ValueError(f"gmres: restart must be at least 1, got {restart}")
    problem = _Problem("gmres", A, b, x0, tol, atol, maxiter, M)

    def search(system: _System) -> Any:
        return _gmres(system, min(restart, system.b.size))

    x = problem.solve(search)
    failed = [pnp.isnan(leaf).any() for leaf in tree.leaves(x)]
    return x, pnp.where(pnp.stack(failed).any() if failed else False, -1, 0)


# ---- The problem, with one long vector in the place of trees --------------------------------


class _System(NamedTuple):
    """A system to solve: the products, the right-hand side, where to start and where to stop."""

    A: Matvec
    M: Matvec
    b: Vector
    x0: Vector
    tol: float
    atol: float
    maxiter: int

    def goal(self) -> Any:
        """The norm of the residual to come below."""
        return pnp.maximum(self.tol * pnp.linalg.norm(self.b), self.atol)


class _Problem:
    """The arguments of a solver, checked."""

    def __init__(
        self,
        what: str,
        A: Any,
        b: Any,
        x0: Any,
        tol: float,
        atol: float,
        maxiter: int | None,
        M: Any,
    ) -> None:
        self.leaves, self.structure = tree.flatten(b)
        self.avals = [shaped(leaf) for leaf in self.leaves]
        for aval in self.avals:
            if not dtypes.issubdtype(aval.dtype, np.inexact):
                raise TypeError(
                    f"{what}: the right-hand side is of dtype {aval.dtype.name}, and the solution "
                    "is no whole number; convert it with astype(float)"
                )
        if x0 is None:
            start: Any = pnp.zeros_like(self.ravel(b))
        else:
            self._check_start(x0)
            start = self.ravel(x0)
        self.size = sum([aval.size for aval in self.avals])
        self.A = self._operator(A)
        self.M = self._operator(M) if M is not None else lambda v: v
        self.preconditioned = M is not None
        self.b, self.start = b, start
        self.limits = tol, atol, 10 * self.size if maxiter is None else maxiter

    def _check_start(self, x0: Any) -> None:
        leaves, structure = tree.flatten(x0)
        if structure != self.structure:
            raise ValueError(
                "x0 and b must have matching tree structure: "
                f"{structure} vs {self.structure}; start from a tree like b"
            )
        shapes, wanted = [pnp.shape(leaf) for leaf in leaves], [a.shape for a in self.avals]
        if shapes != wanted:
            raise ValueError(f"arrays in x0 and b must have matching shapes: {shapes} vs {wanted}")

    def _operator(self, operator: Any) -> Matvec:
        """A function or matrix as a function of long vectors."""
        if callable(operator):

            def product(v: Any) -> Any:
                out = operator(self.unravel(v))
                leaves, structure = tree.flatten(out)
                shapes = [pnp.shape(leaf) for leaf in leaves]
                wanted = [aval.shape for aval in self.avals]
                if structure != self.structure or shapes != wanted:
                    raise ValueError(
                        f"matvec() output shapes must match b, got {shapes} and {wanted}"
                    )
                return self.ravel(out)

            return product
        if not hasattr(operator, "ndim"):
            raise TypeError(f"linear operator must be either a function or ndarray: {operator}")
        shape = operator.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"linear operator must be a square matrix, but has shape: {shape}")
        return self._operator(lambda x: pnp.matmul(operator, x))

    def ravel(self, x: Any) -> Any:
        leaves = [pnp.ravel(leaf) for leaf in tree.leaves(x)]
        dtype = pnp.result_type(*[aval.dtype for aval in self.avals])
        return pnp.concatenate([leaf.astype(dtype) for leaf in leaves])

    def unravel(self, v: Any) -> Any:
        ends = np.cumsum([aval.size for aval in self.avals])[:-1]
        parts = pnp.split(v, [int(end) for end in ends])
        return tree.unflatten(
            self.structure,
            [
                part.reshape(aval.shape).astype(aval.dtype)
                for part, aval in zip(parts, self.avals, strict=True)
            ],
        )

    def solve(self, method: Callable[[_System], Any], real_symmetric: bool = False) -> Any:
        def forward(matvec: Matvec, v: Any) -> Any:
            return method(_System(matvec, self.M, v, self.start, *self.limits))

        def backward(vecmat: Matvec, v: Any) -> Any:
            M = self.M
            if self.preconditioned:
                transposed = vjp(self.M, v)[1]
                M = lambda u: transposed(u)[0]  # noqa: E731
            return method(_System(vecmat, M, v, pnp.zeros_like(self.start), *self.limits))

        v = self.ravel(self.b)
        symmetric = real_symmetric and not pnp.iscomplexobj(v)
        x = lax.custom_linear_solve(
            self.A, v, forward, None if symmetric else backward, symmetric=symmetric
        )
        return self.unravel(x)


# ---- The methods ----------------------------------------------------------------------------


def _cg(system: _System) -> Any:
    A, M, b, x0, *_ = system
    goal = system.goal() ** 2

    def going(state: Any) -> Any:
        _, r, _, _, k = state
        return (_square(r) > goal) & (k < system.maxiter)

    def step(state: Any) -> Any:
        x, r, gamma, p, k = state
        Ap = A(p)
        alpha = (gamma / pnp.vdot(p, Ap).real).astype(x.dtype)
        x, r = x + alpha * p, r - alpha * Ap
        z = M(r)
        new = pnp.vdot(r, z).real
        return x, r, new, z + (new / gamma).astype(x.dtype) * p, k + 1

    r = b - A(x0)
    z = M(r)
    return lax.while_loop(going, step, (x0, r, pnp.vdot(r, z).real, z, 0))[0]


def _bicgstab(system: _System) -> Any:
    A, M, b, x0, *_ = system
    goal = system.goal() ** 2
    r0 = b - A(x0)

    def going(state: Any) -> Any:
        _, r, _, _, rho, _, omega, k = state
        # Where rho or omega is zero there is no further direction.
        return (_square(r) > goal) & (k < system.maxiter) & (rho != 0) & (omega != 0)

    def step(state: Any) -> Any:
        x, r, p, q, old, alpha, omega, k = state
        rho = pnp.vdot(r0, r)
        p = r + rho / old * (alpha / omega) * (p - omega * q)
        p_hat = M(p)
        q = A(p_hat)
        alpha = rho / pnp.vdot(r0, q)
        s = r - alpha * q
        s_hat = M(s)
        t = A(s_hat)
        # Half a step may be enough; then t is too small to divide by.
        enough = _square(s) <= goal
        size = pnp.where(enough, 1, _square(t)).astype(s.dtype)
        omega = pnp.where(enough, 0, pnp.vdot(t, s) / size)
        return x + alpha * p_hat + omega * s_hat, s - omega * t, p, q, rho, alpha, omega, k + 1

    one, none = pnp.ones((), b.dtype), pnp.zeros_like(b)
    return lax.while_loop(going, step, (x0, r0, none, none, one, one, one, 0))[0]


def _gmres(system: _System, count: int) -> Any:
    A, M, b, x0, *_ = system
    size = pnp.linalg.norm(b)
    whole = pnp.linalg.norm(M(b))
    # The iteration has the residual of the preconditioned system, M r.
    goal = whole * pnp.minimum(1.0, system.goal() / pnp.where(size == 0, 1, size))
    least = pnp.finfo(b.dtype).eps

    def arnoldi(k: Any, state: Any) -> Any:
        """Add a direction to `V`, orthogonal to the others, and its coefficients to `H`."""
        V, H = state
        w = M(A(V[k]))
        before = pnp.linalg.norm(w)
        # Orthogonalize twice: the first pass leaves rounding errors.
        h = V.conj() @ w
        w = w - h @ V
        again = V.conj() @ w
        w = w - again @ V
        length = pnp.linalg.norm(w)
        # Nothing is left: the solution lies in the space spanned so far.
        length = pnp.where(length <= 10 * least * before, 0, length).astype(w.dtype)
        v = pnp.where(length == 0, 0, w / pnp.where(length == 0, 1, length))
        h = (h + again).at[k + 1].set(length)
        return V.at[k + 1].set(v), H.at[:, k].set(h)

    def going(state: Any) -> Any:
        _, r, k = state
        return (pnp.linalg.norm(r) > goal) & (k < system.maxiter)

    def search(state: Any) -> Any:
        x, r, k = state
        beta = pnp.linalg.norm(r).astype(r.dtype)
        V = pnp.zeros((count + 1, r.size), r.dtype).at[0].set(r / beta)
        H = pnp.zeros((count + 1, count), r.dtype)
        V, H = lax.fori_loop(0, count, arnoldi, (V, H))
        y = pnp.linalg.lstsq(H, pnp.zeros(count + 1, r.dtype).at[0].set(beta))[0]
        x = x + y @ V[:count]
        return x, M(b - A(x)), k + 1

    x, r, _ = lax.while_loop(going, search, (x0, M(b - A(x0)), 0))
    return pnp.where(pnp.isnan(pnp.linalg.norm(r)), pnp.nan, x).astype(b.dtype)


def _square(v: Any) -> Any:
    return pnp.vdot(v, v).real


describe(
    (cg, bicgstab, gmres),
    {
        "A": "a linear function of pytrees like `b`, or a square matrix.",
        "b": "the right-hand side, a pytree of arrays of floating or complex dtype.",
        "x0": "where to start, a pytree like `b`; zeros if not given.",
        "tol": "stop when the norm of the residual is below `tol * norm(b)`;",
        "atol": "or below `atol`.",
        "M": "an approximation of the inverse of `A`, as a function or a matrix.",
    },
    "TypeError: for operators that are neither functions nor arrays, and a `b` of integers.\n"
    "ValueError: for a matrix that is not square, and an `x0` unlike `b`.",
)

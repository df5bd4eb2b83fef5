"""Jaxopt: implicit derivatives of a ridge regression, projections, an SVM, a Lasso."""

import json

import jax
import jax.numpy as jnp
import jaxopt

key = jax.random.key(0)
x = jax.random.normal(key, (60, 5))
w = jnp.array([1.0, -2.0, 0.0, 0.0, 3.0])
y = x @ w + 0.1 * jax.random.normal(jax.random.key(1), (60,))


def ridge(params, l2, data):
    x, y = data
    return jnp.mean((x @ params - y) ** 2) + l2 * jnp.sum(params**2)


def fitted(l2):
    solver = jaxopt.LBFGS(ridge, maxiter=100, implicit_diff=True)
    return solver.run(jnp.zeros(5), l2, (x, y)).params


lasso = jaxopt.ProximalGradient(
    jaxopt.objective.least_squares, jaxopt.prox.prox_lasso, maxiter=500
).run(jnp.zeros(5), 0.1, (x, y))
simplex = jaxopt.ProjectedGradient(
    jaxopt.objective.least_squares, jaxopt.projection.projection_simplex, maxiter=300
).run(jnp.ones(5) / 5, None, (x, y))
gauss = jaxopt.GaussNewton(lambda p: x @ jnp.tanh(p) - y, maxiter=20).run(jnp.zeros(5))
bisect = jaxopt.Bisection(lambda v, c: v**3 - c, 0.0, 3.0)
qp = jaxopt.OSQP(maxiter=2000).run(
    params_obj=(jnp.eye(2) * 2, jnp.array([-2.0, -5.0])),
    params_eq=None,
    params_ineq=(jnp.array([[1.0, 2.0], [-1.0, 0.0]]), jnp.array([3.0, 0.0])),
)
figures = {
    "ridge": fitted(0.1).tolist(),
    "derivative": jax.jacrev(fitted)(0.1).tolist(),
    "lasso": lasso.params.tolist(),
    "simplex": simplex.params.tolist(),
    "gauss": float(jnp.sum((x @ jnp.tanh(gauss.params) - y) ** 2)),
    "root": float(jax.grad(lambda c: bisect.run(None, c).params)(2.0)),
    "qp": qp.params.primal.tolist(),
}
print(json.dumps(figures))

"""Optimistix and lineax: roots, least squares, minima and linear solves with derivatives."""

# ruff: noqa: E731
import json

import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx

t = jnp.linspace(0, 3, 30)
data = 2.0 * jnp.exp(-1.3 * t) + 0.01 * jnp.sin(40 * t)


def residuals(p, args):
    return p["a"] * jnp.exp(-p["k"] * t) - data


start = {"a": jnp.array(1.0), "k": jnp.array(1.0)}
fit = optx.least_squares(residuals, optx.LevenbergMarquardt(1e-6, 1e-6), start)
dogleg = optx.least_squares(residuals, optx.Dogleg(1e-6, 1e-6), start)


def kepler(e, m):
    return e - 0.3 * jnp.sin(e) - m


def anomaly(m):
    return optx.root_find(kepler, optx.Newton(1e-6, 1e-6), m, args=m).value


bisected = optx.root_find(
    kepler,
    optx.Bisection(1e-5, 1e-5),
    jnp.array(0.5),
    args=1.0,
    options={"lower": 0.0, "upper": 3.0},
)
rosenbrock = lambda p, _: (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
bfgs = optx.minimise(rosenbrock, optx.BFGS(1e-5, 1e-5), jnp.array([-1.0, 1.0]), max_steps=500)
fixed = optx.fixed_point(lambda x, _: jnp.cos(x), optx.FixedPointIteration(1e-5, 1e-5), 0.5)

a = jnp.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
b = jnp.array([1.0, 2.0, 3.0])


def solved(a, solver, tags=()):
    return lx.linear_solve(lx.MatrixLinearOperator(a, tags), b, solver).value


tall = jnp.vander(jnp.linspace(0, 1, 8), 3)
definite = lx.positive_semidefinite_tag
figures = {
    "fit": [float(fit.value["a"]), float(fit.value["k"])],
    "dogleg": [float(dogleg.value["a"]), float(dogleg.value["k"])],
    "anomaly": float(anomaly(1.0)),
    "derivative": float(jax.jit(jax.grad(anomaly))(1.0)),
    "mapped": jax.vmap(anomaly)(jnp.array([0.1, 1.0, 2.0])).tolist(),
    "bisected": float(bisected.value),
    "bfgs": bfgs.value.tolist(),
    "fixed": float(fixed.value),
    "lu": solved(a, lx.LU()).tolist(),
    "cg": solved(a, lx.CG(1e-6, 1e-6), definite).tolist(),
    "gmres": solved(a, lx.GMRES(1e-6, 1e-6)).tolist(),
    "qr": lx.linear_solve(lx.MatrixLinearOperator(tall), jnp.arange(8.0), lx.QR()).value.tolist(),
    "gradient": jax.grad(lambda a: solved(a, lx.LU()).sum())(a).tolist(),
    "hessian": jnp.diag(jax.hessian(lambda b: solved(a, lx.Cholesky(), definite) @ b)(b)).tolist(),
}
print(json.dumps(figures))

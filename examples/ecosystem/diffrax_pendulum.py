"""Diffrax: a damped pendulum, its adjoint, a stiff system, and a stochastic equation."""

import json

import diffrax as dfx
import jax
import jax.numpy as jnp


def pendulum(t, y, args):
    return jnp.array([y[1], -args[0] * jnp.sin(y[0]) - args[1] * y[1]])


def solve(args, adjoint):
    return dfx.diffeqsolve(
        dfx.ODETerm(pendulum),
        dfx.Tsit5(),
        t0=0.0,
        t1=5.0,
        dt0=0.1,
        y0=jnp.array([1.0, 0.0]),
        args=args,
        saveat=dfx.SaveAt(ts=jnp.linspace(0, 5, 11)),
        stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-6),
        adjoint=adjoint,
    )


def energy(args, adjoint):
    return jnp.sum(solve(args, adjoint).ys ** 2)


args = jnp.array([9.81, 0.3])
solution = jax.jit(lambda a: solve(a, dfx.RecursiveCheckpointAdjoint()))(args)
checkpointed = jax.jit(jax.grad(lambda a: energy(a, dfx.RecursiveCheckpointAdjoint())))(args)
direct = jax.jit(jax.jacfwd(lambda a: energy(a, dfx.DirectAdjoint())))(args)


def robertson(t, y, args):
    f0 = -0.04 * y[0] + 1e4 * y[1] * y[2]
    f2 = 3e7 * y[1] ** 2
    return jnp.stack([f0, -f0 - f2, f2])


stiff = jax.jit(
    lambda: dfx.diffeqsolve(
        dfx.ODETerm(robertson),
        dfx.Kvaerno5(),
        t0=0.0,
        t1=10.0,
        dt0=1e-4,
        y0=jnp.array([1.0, 0.0, 0.0]),
        stepsize_controller=dfx.PIDController(rtol=1e-4, atol=1e-6),
        max_steps=4096,
    )
)()


def walk(key):
    noise = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(), key=key)
    terms = dfx.MultiTerm(
        dfx.ODETerm(lambda t, y, a: -y), dfx.ControlTerm(lambda t, y, a: 0.5, noise)
    )
    return dfx.diffeqsolve(terms, dfx.Euler(), 0.0, 1.0, 0.01, 1.0).ys[0]


walks = jax.jit(jax.vmap(walk))(jax.random.split(jax.random.key(0), 200))
figures = {
    "angle": solution.ys[:, 0].tolist(),
    "steps": int(solution.stats["num_steps"]),
    "gradient": checkpointed.tolist(),
    "forward": direct.tolist(),
    "stiff": stiff.ys[0].tolist(),
    "mean": float(walks.mean()),
    "deviation": float(walks.std()),
}
print(json.dumps(figures))

"""Blackjax: NUTS with adaptation, and sequential Monte Carlo on a mixture."""

import json

import blackjax
import blackjax.smc.resampling as resampling
import jax
import jax.numpy as jnp
import jax.scipy.stats as stats

X = jnp.linspace(-2, 2, 50)
Y = 1.5 * X - 0.5 + 0.3 * jax.random.normal(jax.random.key(9), X.shape)


def logdensity(p):
    scale = jnp.exp(p["log_scale"])
    return (
        stats.norm.logpdf(Y, p["slope"] * X + p["offset"], scale).sum()
        + stats.norm.logpdf(p["slope"], 0, 5)
        + stats.norm.logpdf(p["offset"], 0, 5)
        + stats.norm.logpdf(p["log_scale"], 0, 1)
    )


start = {"slope": 0.0, "offset": 0.0, "log_scale": 0.0}
warmup = blackjax.window_adaptation(blackjax.nuts, logdensity)
(state, parameters), _ = warmup.run(jax.random.key(0), start, num_steps=500)
kernel = jax.jit(blackjax.nuts(logdensity, **parameters).step)


@jax.jit
def chain(state, key):
    return jax.lax.scan(lambda s, k: (lambda n: (n[0], n))(kernel(k, s)), state, key)[1]


states, info = chain(state, jax.random.split(jax.random.key(1), 3000))


def mixture(x):
    return jnp.logaddexp(stats.norm.logpdf(x, -3.0, 0.5), stats.norm.logpdf(x, 3.0, 0.5)).sum()


smc = blackjax.adaptive_tempered_smc(
    lambda x: stats.norm.logpdf(x, 0, 4).sum(),
    mixture,
    blackjax.hmc.build_kernel(),
    blackjax.hmc.init,
    {
        "step_size": jnp.array([0.3]),
        "inverse_mass_matrix": jnp.eye(1)[None],
        "num_integration_steps": jnp.array([8]),
    },
    resampling.systematic,
    0.5,
    num_mcmc_steps=2,
)
particles = 4 * jax.random.normal(jax.random.key(2), (2000, 1))
state = smc.init(particles)
step, key, rounds = jax.jit(smc.step), jax.random.key(3), 0
while state.tempering_param < 1 and rounds < 30:
    key, sub = jax.random.split(key)
    state, _ = step(sub, state)
    rounds += 1
figures = {
    "tolerance": 0.08,
    **{k: float(v.mean()) for k, v in states.position.items()},
    "acceptance": float(info.acceptance_rate.mean()),
    "right": float((state.particles > 0).mean()),
    "spread": float(jnp.abs(state.particles).mean()),
}
print(json.dumps(figures))

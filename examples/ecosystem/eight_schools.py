"""NumPyro: the eight schools, by NUTS and by stochastic variational inference."""

import json

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.reparam import LocScaleReparam

SIGMA = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
EFFECT = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])


def model(effect=None):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    with numpyro.plate("school", 8):
        with numpyro.handlers.reparam(config={"theta": LocScaleReparam(0)}):
            theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("effect", dist.Normal(theta, SIGMA), obs=effect)


mcmc = MCMC(NUTS(model), num_warmup=500, num_samples=4000, progress_bar=False)
mcmc.run(jax.random.PRNGKey(0), effect=EFFECT, extra_fields=("num_steps",))
samples = mcmc.get_samples()
predicted = Predictive(model, samples)(jax.random.PRNGKey(1))["effect"]

guide = AutoNormal(model)
svi = SVI(model, guide, optax.adam(0.02), Trace_ELBO(num_particles=4))
fit = svi.run(jax.random.PRNGKey(2), 2000, effect=EFFECT, progress_bar=False)

figures = {
    "tolerance": 0.1,
    "mu": samples["mu"].mean(),
    "tau": samples["tau"].mean(),
    "school A": samples["theta"][:, 0].mean(),
    "steps": mcmc.get_extra_fields()["num_steps"].mean(),
    "predicted": predicted.mean(0).tolist(),
    "elbo": fit.losses[-100:].mean(),
    "svi mu": fit.params["mu_auto_loc"],
}
print(json.dumps({k: v if isinstance(v, (list, float)) else float(v) for k, v in figures.items()}))

"""Distrax: a flow of bijectors, inverses found by interpreting programs, a hidden Markov model."""

import json

import distrax
import jax
import jax.numpy as jnp

bijector = distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(0.5, 2.0), distrax.Lambda(jnp.sinh)])
flow = distrax.Transformed(distrax.Normal(0.0, 1.0), bijector)
samples, logs = flow.sample_and_log_prob(seed=jax.random.PRNGKey(0), sample_shape=(1000,))
automatic = distrax.Lambda(lambda x: jnp.exp(2.0 * jnp.tanh(x) + 1.0))

mixture = distrax.MixtureSameFamily(
    distrax.Categorical(probs=jnp.array([0.3, 0.7])),
    distrax.MultivariateNormalDiag(jnp.array([[-1.0, 0.0], [2.0, 1.0]]), jnp.ones((2, 2))),
)
hmm = distrax.HMM(
    init_dist=distrax.Categorical(probs=jnp.array([0.6, 0.4])),
    trans_dist=distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.2, 0.8]])),
    obs_dist=distrax.Normal(jnp.array([0.0, 3.0]), jnp.array([1.0, 1.0])),
)
observed = jnp.array([0.1, -0.4, 2.9, 3.3, 3.1, 0.2])
_, _, posterior, log_prob = hmm.forward_backward(observed)
beta = distrax.Beta(2.0, 3.0)
figures = {
    "mean": float(samples.mean()),
    "entropy": float(-logs.mean()),
    "inverse": automatic.inverse(automatic.forward(jnp.array([0.2, -0.7]))).tolist(),
    "log det": automatic.forward_log_det_jacobian(jnp.array(0.3)).item(),
    "mixture": float(mixture.log_prob(jnp.array([0.5, 0.5]))),
    "drawn": mixture.sample(seed=jax.random.PRNGKey(1), sample_shape=(500,)).mean(0).tolist(),
    "hmm": posterior[:, 1].tolist(),
    "evidence": float(log_prob),
    "path": hmm.viterbi(observed).tolist(),
    "kl": float(distrax.Normal(0.0, 1.0).kl_divergence(distrax.Normal(1.0, 2.0))),
    "beta": [float(beta.entropy()), float(jax.grad(lambda a: distrax.Beta(a, 3.0).entropy())(2.0))],
}
print(json.dumps(figures))

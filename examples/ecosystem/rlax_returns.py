"""Rlax and chex: returns, losses and checks of reinforcement learning."""

# ruff: noqa: E731
import json

import chex
import jax
import jax.numpy as jnp
import rlax

T = 8
rewards = jnp.sin(jnp.arange(float(T)))
values = jnp.cos(jnp.arange(float(T)) / 2)
discounts = jnp.full(T, 0.95)
logits = jnp.sin(jnp.arange(T * 3.0)).reshape(T, 3)
actions = jnp.arange(T) % 3
vtrace = rlax.vtrace_td_error_and_advantage(
    values[:-1], values[1:], rewards[:-1], discounts[:-1], jnp.linspace(0.5, 1.5, T - 1)
)


@chex.dataclass
class Step:
    observation: chex.Array
    reward: chex.Array


@jax.jit
def total(step):
    chex.assert_rank(step.reward, 1)
    chex.assert_equal_shape([step.reward, step.observation])
    return jax.tree.map(jnp.sum, step)


summed = total(Step(observation=values, reward=rewards))
try:
    chex.assert_shape(logits, (T, 4))
    refused = 0
except AssertionError as error:
    refused = int("expected" in str(error))
transform = rlax.twohot_pair(-3.0, 3.0, 31)
loss = lambda q: rlax.q_learning(q, actions[0], rewards[1], 0.9, values[:3]) ** 2
figures = {
    "lambda": rlax.lambda_returns(rewards, discounts, values, 0.9).tolist(),
    "n step": rlax.n_step_bootstrapped_returns(rewards, discounts, values, 3).tolist(),
    "gae": rlax.truncated_generalized_advantage_estimation(
        rewards[:-1], discounts[:-1], 0.9, values
    ).tolist(),
    "vtrace": vtrace.errors.tolist(),
    "policy gradient": float(rlax.policy_gradient_loss(logits, actions, rewards, jnp.ones(T))),
    "entropy": float(rlax.entropy_loss(logits, jnp.ones(T))),
    "q": jax.grad(loss)(jnp.array([0.1, 0.2, 0.3])).tolist(),
    "huber": rlax.huber_loss(rewards, 0.5).tolist(),
    "transform": transform.apply_inv(transform.apply(jnp.array([0.7, -2.2]))).tolist(),
    "retrace": rlax.retrace(
        logits[:-1],
        logits[1:],
        actions[:-1],
        actions[1:],
        rewards[:-1],
        discounts[:-1],
        jax.nn.softmax(logits[1:]),
        jnp.ones(T - 1),
        0.9,
    ).tolist(),
    "summed": [float(summed.observation), float(summed.reward)],
    "refused": refused,
    "argmax": rlax.greedy().probs(logits[0]).tolist(),
}
print(json.dumps(figures))

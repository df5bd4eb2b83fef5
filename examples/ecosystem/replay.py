"""Flashbax: a replay buffer inside a training loop, on a chain of states that rewards the end."""

import json

import flashbax as fbx
import jax
import jax.numpy as jnp
import optax

STATES, ACTIONS = 8, 2
buffer = fbx.make_flat_buffer(max_length=1024, min_length=32, sample_batch_size=64)
ordered = fbx.make_prioritised_flat_buffer(max_length=128, min_length=16, sample_batch_size=8)


def step(state, action):
    after = jnp.clip(state + jnp.where(action == 1, 1, -1), 0, STATES - 1)
    return after, jnp.where(after == STATES - 1, 1.0, 0.0)


def example(state):
    return {"state": state, "action": jnp.int32(0), "reward": jnp.float32(0.0)}


optimizer = optax.adam(0.05)


def loss(q, batch):
    first, second = batch.experience.first, batch.experience.second
    now = jnp.take_along_axis(q[first["state"]], first["action"][:, None], 1)[:, 0]
    target = first["reward"] + 0.9 * q[second["state"]].max(-1)
    return jnp.mean((now - jax.lax.stop_gradient(target)) ** 2)


@jax.jit
def run(key):
    def body(carry, key):
        q, opt_state, memory, state = carry
        explore, choose, draw = jax.random.split(key, 3)
        greedy = jnp.argmax(q[state])
        action = jnp.where(
            jax.random.uniform(explore) < 0.3, jax.random.randint(choose, (), 0, 2), greedy
        )
        after, reward = step(state, action)
        memory = buffer.add(memory, {"state": state, "action": action, "reward": reward})
        batch = buffer.sample(memory, draw)
        value, grads = jax.value_and_grad(loss)(q, batch)
        grads = jax.tree.map(lambda g: jnp.where(buffer.can_sample(memory), g, 0.0), grads)
        updates, opt_state = optimizer.update(grads, opt_state)
        return (optax.apply_updates(q, updates), opt_state, memory, after), (value, reward)

    q = jnp.zeros((STATES, ACTIONS))
    memory = buffer.init(example(jnp.int32(0)))
    carry = q, optimizer.init(q), memory, jnp.int32(0)
    return jax.lax.scan(body, carry, jax.random.split(key, 2000))


(q, _, memory, _), (losses, rewards) = run(jax.random.key(0))

state = ordered.init({"x": jnp.zeros(3)})
add = jax.jit(ordered.add)
for i in range(32):
    state = add(state, {"x": jnp.full(3, float(i))})
drawn = ordered.sample(state, jax.random.key(1))
state = ordered.set_priorities(state, drawn.indices, jnp.arange(8.0) + 1)
drawn = ordered.sample(state, jax.random.key(2))

figures = {
    "q": q.tolist(),
    "reward": float(rewards[-500:].mean()),
    "loss": float(losses[-500:].mean()),
    "probabilities": drawn.probabilities.tolist(),
    "drawn": drawn.experience.first["x"][:, 0].tolist(),
}
print(json.dumps(figures))

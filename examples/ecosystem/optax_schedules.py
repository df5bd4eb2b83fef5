"""Optax: many optimizers on one function, a schedule, a line search, clipped sums of losses."""

import json

import jax
import jax.numpy as jnp
import optax


def rosenbrock(p):
    return (1 - p["x"]) ** 2 + 100 * (p["y"] - p["x"] ** 2) ** 2


start = {"x": jnp.array(-1.0), "y": jnp.array(1.5)}


def minimize(optimizer, steps):
    def body(carry, _):
        p, state = carry
        value, grads = jax.value_and_grad(rosenbrock)(p)
        updates, state = optimizer.update(
            grads, state, p, value=value, grad=grads, value_fn=rosenbrock
        )
        return (optax.apply_updates(p, updates), state), value

    optimizer = optax.with_extra_args_support(optimizer)
    return jax.jit(lambda: jax.lax.scan(body, (start, optimizer.init(start)), None, steps))()


schedule = optax.warmup_cosine_decay_schedule(0.0, 0.05, 50, 500)
optimizers = {
    "adam": optax.adam(0.05),
    "adamw": optax.adamw(schedule),
    "chain": optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.01, momentum=0.9)),
    "lion": optax.lion(0.01),
    "adafactor": optax.adafactor(0.05),
    "rmsprop": optax.rmsprop(0.01),
    "masked": optax.masked(optax.adam(0.05), {"x": True, "y": False}),
    "multi": optax.MultiSteps(optax.adam(0.05), every_k_schedule=4),
    "lbfgs": optax.lbfgs(),
}
figures = {}
for name, optimizer in optimizers.items():
    (p, _), values = minimize(optimizer, 60 if name == "lbfgs" else 400)
    figures[name] = [float(p["x"]), float(p["y"]), float(jnp.log10(values[-1] + 1e-6))]

logits = jnp.sin(jnp.arange(24.0)).reshape(2, 4, 3) * 3
figures["ctc"] = optax.ctc_loss(
    logits, jnp.zeros((2, 4)), jnp.array([[1, 2], [2, 1]]), jnp.zeros((2, 2))
).tolist()
figures["cross entropy"] = (
    optax.softmax_cross_entropy_with_integer_labels(logits, jnp.array([[0, 1, 2, 0]] * 2))
    .sum()
    .item()
)
figures["schedule"] = [float(schedule(i)) for i in (0, 25, 50, 300, 500)]
print(json.dumps(figures))

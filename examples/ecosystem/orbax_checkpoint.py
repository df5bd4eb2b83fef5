"""Orbax and jaxtyping: a checkpoint is saved and restored; shapes are checked at calls."""

import json
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from jaxtyping import Array, Float, jaxtyped

state = {"w": jnp.arange(12.0).reshape(3, 4), "step": 7, "nested": [jnp.ones(2), jnp.zeros(1)]}
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "state"
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, state)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(path)
        like = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
        typed = checkpointer.restore(path, like)


def checked(value, kind):
    with jaxtyped("context"):
        return isinstance(value, kind)


figures = {
    "w": restored["w"].tolist(),
    "step": int(restored["step"]),
    "nested": [float(x.sum()) for x in typed["nested"]],
    "is array": isinstance(typed["w"], jax.Array),
    "typed": [
        checked(state["w"], Float[Array, "a b"]),
        checked(state["w"], Float[Array, "a a"]),
        checked(state["w"], Float[Array, "3 4"]),
    ],
}
print(json.dumps(figures))

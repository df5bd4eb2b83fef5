"""Exported functions of JAX, in JAX's file format, with arguments and results.

The record has, for each function, the file in base64, the argument, the leaves of the result, and
the cotangent of the argument for ones as cotangents of all results of float32.
Run as a script this prints the record; JAX needs the package `flatbuffers` for it.
"""

import base64
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

rows = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def spec(text, x=rows, **kwargs):
    return export.symbolic_args_specs((x,), (text,), **kwargs)


several = {"platforms": ["cpu", "cuda", "tpu"]}
functions = {
    "static": (lambda x: {"y": jnp.sin(x) @ x.T, "z": (x.sum(), [x > 0, None])}, (rows,), {}),
    "platforms": (lambda x: jnp.tanh(x) + 1, (rows,), several),
    "symbolic": (lambda x: (jnp.sin(x).reshape(-1), x.mean(0), x[1:] - x[:-1]), spec("n,4"), {}),
    "both": (lambda x: jax.nn.softmax(x) @ x.T, spec("n,m"), several),
    "scan": (lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c.sum()), x[0], x), spec("n,4"), {}),
    "batches": (lambda x: jnp.linalg.cholesky(jnp.eye(4) + x[:, :, None] ** 2 * jnp.eye(4)),
                spec("n,4"), {}),
    "constrained": (lambda x: x[:2] * x.shape[0], spec("n,m", constraints=["n >= 2"]), {}),
}  # fmt: skip


def total(function, x):
    leaves = jax.tree_util.tree_leaves(function(x))
    return sum(jnp.sum(leaf) for leaf in leaves if leaf.dtype == jnp.float32)


def record():
    found = {}
    for name, (function, args, kwargs) in functions.items():
        exported = export.export(jax.jit(function), **kwargs)(*args)
        leaves = jax.tree_util.tree_leaves(function(rows))
        found[name] = {
            "file": base64.b64encode(exported.serialize(vjp_order=1)).decode(),
            "in_avals": [str(aval) for aval in exported.in_avals],
            "out_avals": [str(aval) for aval in exported.out_avals],
            "results": [np.asarray(leaf).tolist() for leaf in leaves],
            "gradient": np.asarray(jax.grad(lambda x, f=function: total(f, x))(rows)).tolist(),
        }
    return found


if __name__ == "__main__":
    print(json.dumps(record()))

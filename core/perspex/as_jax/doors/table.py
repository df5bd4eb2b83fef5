"""Which modules of JAX's inside there are, and where their names stand."""

from __future__ import annotations

_HERE = "perspex.as_jax.doors"

# A colon separates a module from the class in it that has the names.
DOORS = {
    "jax.api_util": f"{_HERE}.api_util",
    "jax.core": f"{_HERE}.public_core",
    "jax.extend": _HERE,
    "jax.extend.backend": f"{_HERE}.backend",
    "jax.extend.core": f"{_HERE}.core",
    "jax.extend.core.primitives": f"{_HERE}.primitives",
    "jax.extend.linear_util": f"{_HERE}.linear_util",
    "jax.extend.mlir": f"{_HERE}.libraries",
    "jax.extend.mlir.dialects": _HERE,
    "jax.extend.random": f"{_HERE}.prng",
    "jax.extend.sharding": f"{_HERE}.libraries:sharding",
    "jax.extend.source_info_util": f"{_HERE}.source_info_util",
    "jax.experimental.hijax": f"{_HERE}.hijax",
    "jax.interpreters": _HERE,
    "jax.interpreters.ad": f"{_HERE}.ad",
    "jax.interpreters.batching": f"{_HERE}.batching",
    "jax.interpreters.mlir": f"{_HERE}.mlir",
    "jax.interpreters.partial_eval": f"{_HERE}.partial_eval",
    "jax.interpreters.pxla": f"{_HERE}.pxla",
    "jax.interpreters.xla": f"{_HERE}.pxla",
    "jax.lib": f"{_HERE}.libraries",
}
PRIVATE = {
    "jax._src": _HERE,
    "jax._src.ad_util": f"{_HERE}.private:ad_util",
    "jax._src.api_util": f"{_HERE}.api_util",
    "jax._src.checkify": f"{_HERE}.checkify",
    "jax._src.compiler": f"{_HERE}.private:compiler",
    "jax._src.core": f"{_HERE}.core",
    "jax._src.dispatch": f"{_HERE}.private:dispatch",
    "jax._src.distributed": f"{_HERE}.private:distributed",
    "jax._src.dtypes": f"{_HERE}.private:dtypes",
    "jax._src.flatten_util": "perspex.flatten_util",
    "jax._src.interpreters": _HERE,
    "jax._src.interpreters.ad": f"{_HERE}.ad",
    "jax._src.interpreters.batching": f"{_HERE}.batching",
    "jax._src.interpreters.mlir": f"{_HERE}.mlir",
    "jax._src.interpreters.partial_eval": f"{_HERE}.partial_eval",
    "jax._src.interpreters.pxla": f"{_HERE}.pxla",
    "jax._src.linear_util": f"{_HERE}.linear_util",
    "jax._src.literals": f"{_HERE}.private:literals",
    "jax._src.source_info_util": f"{_HERE}.source_info_util",
    "jax._src.state": _HERE,
    "jax._src.state.types": "perspex.ref",
    "jax._src.traceback_util": f"{_HERE}.private:traceback_util",
    "jax._src.tree_util": f"{_HERE}.private:tree_util",
    "jax._src.util": f"{_HERE}.util",
    "jax._src.xla_bridge": f"{_HERE}.private:xla_bridge",
}
# Modules of jaxlib that JAX passes on.
DIALECTS = {
    f"jax.extend.mlir.dialects.{name}": name
    for name in (
        "arith", "builtin", "chlo", "func", "math", "memref", "scf", "sdy", "sparse_tensor",
        "stablehlo", "vector",
    )
}  # fmt: skip

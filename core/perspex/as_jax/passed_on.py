"""Names that modules of JAX have only because they import or use them, such as `ode.jnp`.

JAX does not separate them from what a module is for, and libraries find them there. They are looked
up when somebody asks, so a module costs no more for having them, and `from module import *` leaves
them out.
"""

from __future__ import annotations

_UTIL = "perspex.as_jax.doors.util"
_PRIMITIVES = "perspex.as_jax.doors.primitives"
_HOMES = {
    "Any": "typing:Any",
    "Array": "typing:Any",
    "Callable": "collections.abc:Callable",
    "NamedTuple": "typing:NamedTuple",
    "P": "perspex:P",
    "api_util": "jax.api_util",
    "create_call_primitive": f"{_PRIMITIVES}:create_call_primitive",
    "custom_derivatives": "jax.custom_derivatives",
    "jnp": "jax.numpy",
    "lax": "jax.lax",
    "lru_cache": "functools:lru_cache",
    "map": f"{_UTIL}:safe_map",
    "namedtuple": "collections:namedtuple",
    "np": "numpy",
    "op": "operator",
    "partial": "functools:partial",
    "promote_dtypes_inexact": f"{_UTIL}:promote_dtypes_inexact",
    "random": "jax.random",
    "ravel_pytree": "perspex.flatten_util:ravel_pytree",
    "register_pytree_node": "perspex.tree_util:register_pytree_node",
    "register_call_primitive_rules": f"{_PRIMITIVES}:register_call_primitive_rules",
    "safe_map": f"{_UTIL}:safe_map",
    "safe_zip": f"{_UTIL}:safe_zip",
    "tree_flatten": "perspex.tree_util:tree_flatten",
    "tree_leaves": "perspex.tree_util:tree_leaves",
    "tree_map": "perspex.tree_util:tree_map",
    "tree_structure": "perspex.tree_util:tree_structure",
    "tree_unflatten": "perspex.tree_util:tree_unflatten",
    "treedef_is_leaf": "perspex.tree_util:treedef_is_leaf",
    "unzip2": f"{_UTIL}:unzip2",
    "zip": f"{_UTIL}:safe_zip",
}
_NAMES = {
    "jax.extend.core": "create_call_primitive register_call_primitive_rules",
    "jax.example_libraries.optimizers": (
        "Any Array Callable NamedTuple jnp map namedtuple partial safe_map safe_zip unzip2 zip"
    ),
    "jax.example_libraries.stax": "jnp lax random",
    "jax.experimental.jet": (
        "Any Callable api_util jnp lax np partial register_pytree_node safe_zip tree_flatten "
        "tree_structure tree_unflatten treedef_is_leaf unzip2"
    ),
    "jax.experimental.multihost_utils": (
        "Any P jnp lru_cache partial safe_zip tree_flatten tree_unflatten"
    ),
    "jax.experimental.ode": (
        "Callable custom_derivatives jnp lax map op partial promote_dtypes_inexact ravel_pytree "
        "safe_map safe_zip tree_leaves tree_map zip"
    ),
}
# What our modules have too, and do not count among their public names.
_OWN = {
    "jax.experimental.jet": ("perspex.experimental.jet", "jet2"),
    "jax.experimental.ode": (
        "perspex.experimental.ode",
        "abs2 fit_4th_order_polynomial initial_step_size interp_fit_dopri mean_error_ratio "
        "optimal_step_size runge_kutta_step",
    ),
}


def home(module: str, name: str) -> str:
    """Where the object is that a module of JAX's passes on under a name, as `module:name`.

    Raises:
      KeyError: if it passes on no such name.
    """
    if name in _NAMES.get(module, "").split():
        return _HOMES[name]
    where, own = _OWN.get(module, ("", ""))
    if name in own.split():
        return f"{where}:{name}"
    raise KeyError(name)

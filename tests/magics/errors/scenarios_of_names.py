"""Cells that pass what is no array, or name what is not there; see `scenarios`."""

from __future__ import annotations

from .scenarios import Scenario

NAMES = {
    # ---- arguments that are no arrays
    "a string argument": Scenario(
        "@jit\ndef f(x, mode):\n    return x if mode == 'a' else -x",
        "f(jnp.ones(3), 'a')",
        'static_argnames="mode"',
    ),
    "a list that is static": Scenario(
        "@partial(jit, static_argnames='sizes')\ndef f(x, sizes):\n    return x.reshape(sizes)",
        "f(jnp.ones(4), sizes=[2, 2])",
        "`sizes`",
    ),
    "a dict that is static": Scenario(
        "@partial(jit, static_argnums=1)\ndef f(x, cfg):\n    return x * cfg['lr']",
        "f(jnp.ones(3), {'lr': 0.1})",
        "`cfg`",
    ),
    "an array that is static": Scenario(
        "@partial(jit, static_argnums=0)\ndef f(n, x):\n    return x * 2",
        "f(jnp.ones(3), jnp.ones(3))",
        "`n`",
    ),
    "a set as a default": Scenario(
        "@partial(jit, static_argnames=('names',))\ndef f(x, names):\n    return x * len(names)",
        "f(jnp.ones(3), names={'a'})",
        "`names`",
    ),
    "a string in an array": Scenario(
        "labels = ['cat', 'dog']",
        "jnp.array(labels)",
        "np.unique",
    ),
    "a string and numbers": Scenario(
        "row = ['1.5', '2.5']",
        "jnp.array(row)",
        "float",
    ),
    "a ragged list": Scenario(
        "rows = [[1, 2], [3]]",
        "jnp.array(rows)",
        "",
    ),
    # ---- vmap
    "shapes inside vmap": Scenario(
        "def f(w, x):\n    return w @ x",
        "vmap(f, in_axes=(None, 0))(jnp.ones((3, 4)), jnp.ones((8, 5)))",
        "[5]",
    ),
    "shapes inside two vmaps": Scenario(
        "def f(a, b):\n    return a + b\ng = vmap(vmap(f, in_axes=(0, None)), in_axes=(None, 0))",
        "g(jnp.ones((2, 3)), jnp.ones((4, 5)))",
        "",
    ),
    "sizes that differ": Scenario(
        "def f(a, b): return a * b",
        "vmap(f)(jnp.ones((3, 2)), jnp.ones((4, 2)))",
        "inconsistent sizes",
    ),
    # ---- names that are not there
    "jnp.foo": Scenario(
        "x = jnp.ones(3)",
        "jnp.sinn(x)",
        "Did you mean `sin`",
    ),
    "jnp.concat typo": Scenario(
        "x = jnp.ones(3)",
        "jnp.concatenat([x, x])",
        "concatenate",
    ),
    "lax typo": Scenario(
        "x = jnp.ones(3)",
        "lax.while_lop(1, 2, 3)",
        "while_loop",
    ),
    "nn typo": Scenario(
        "x = jnp.ones(3)",
        "perspex.nn.reluu(x)",
        "relu",
    ),
    "jax typo": Scenario(
        "import perspex.as_jax, jax",
        "jax.valu_and_grad(1)",
        "value_and_grad",
    ),
    "jax.numpy typo": Scenario(
        "import perspex.as_jax\nimport jax.numpy as jn",
        "jn.argmx(1)",
        "argmax",
    ),
    "from jax.numpy import": Scenario(
        "import perspex.as_jax",
        "from jax.numpy import lingspace",
        "linspace",
    ),
    "from jax.experimental import": Scenario(
        "import perspex.as_jax",
        "from jax.experimental import pallas\npallas.load(1)",
        "pallas",
    ),
    "from jax.experimental import nothing": Scenario(
        "import perspex.as_jax",
        "from jax.experimental import host_callbak",
        "Perspex has no `jax.experimental.host_callbak`",
    ),
    "a method typo": Scenario(
        "x = jnp.ones(3)",
        "x.reshap(3, 1)",
        "reshape",
    ),
    "a method typo inside": Scenario(
        "@jit\ndef f(x):\n    return x.sumn()",
        "f(jnp.ones(3))",
        "sum",
    ),
}

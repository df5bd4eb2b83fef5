"""Cells as users write them that cannot be traced, or that name what is not there.

Each scenario has a cell, a call that fails, and what the error must say. `np`, `jnp`, `perspex`,
`lax`, `jit`, `grad`, `vmap`, `partial` and `math` are imported before.
"""

from __future__ import annotations

from typing import NamedTuple


class Scenario(NamedTuple):
    """A cell, the call that fails, and what its error says; nothing where it only must be right."""

    cell: str
    call: str
    says: str


SCENARIOS = {
    # ---- `if` on an argument
    "a bool argument": Scenario(
        "@jit\ndef f(x, train):\n    if train:\n        x = x * 0.5\n    return x",
        "f(jnp.ones(3), True)",
        "static_argnames='train'",
    ),
    "a bool argument, both branches": Scenario(
        "@jit\n"
        "def f(x, train):\n"
        "    if train:\n"
        "        y = x * 0.5\n"
        "    else:\n"
        "        y = x\n"
        "    return y",
        "f(jnp.ones(3), True)",
        "static_argnames='train'",
    ),
    "a bool argument by keyword": Scenario(
        "@jit\ndef f(x, *, train):\n    return x * 0.5 if train else x",
        "f(jnp.ones(3), train=False)",
        "static_argnames='train'",
    ),
    "not of a bool argument": Scenario(
        "@jit\ndef f(x, train):\n    if not train:\n        return x\n    return x * 0.5",
        "f(jnp.ones(3), True)",
        "static_argnames='train'",
    ),
    "a bool argument through partial": Scenario(
        "@partial(jit, static_argnames='n')\n"
        "def f(x, n, train):\n"
        "    if train:\n"
        "        return x * n\n"
        "    return x",
        "f(jnp.ones(3), 2, True)",
        "static_argnames=('n', 'train')",
    ),
    "a bool argument of an inner function": Scenario(
        "def drop(x, train):\n"
        "    return x * 0.5 if train else x\n"
        "@jit\n"
        "def f(x, train):\n"
        "    return drop(x, train).sum()",
        "f(jnp.ones(3), True)",
        "static_argnames='train'",
    ),
    "jit of a name": Scenario(
        "def f(x, train):\n    if train:\n        return x * 2\n    return x\ng = jit(f)",
        "g(jnp.ones(3), True)",
        "static_argnames='train'",
    ),
    "a bool and a string of code": Scenario(
        "@jit\ndef f(x, train):\n    if train and x.ndim == 1:\n        return x * 2\n    return x",
        "f(jnp.ones(3), True)",
        "static_argnames='train'",
    ),
    # ---- `if` on values
    "return of two values": Scenario(
        "@jit\ndef f(x):\n    if x > 0:\n        return x\n    return -x",
        "f(-2.0)",
        "jnp.where(x > 0, x, -x)",
    ),
    "elif": Scenario(
        "@jit\n"
        "def f(x):\n"
        "    if x > 1:\n"
        "        y = 1.\n"
        "    elif x > 0:\n"
        "        y = x\n"
        "    else:\n"
        "        y = 0.\n"
        "    return y",
        "f(0.5)",
        "jnp.where(x > 1",
    ),
    "an expression": Scenario(
        "@jit\ndef f(x):\n    return x if x > 0 else 0.0",
        "f(-2.0)",
        "jnp.where",
    ),
    "a NaN guard": Scenario(
        "@jit\n"
        "def f(x):\n"
        "    y = x * 2\n"
        "    if jnp.isnan(y).any():\n"
        "        y = jnp.zeros_like(y)\n"
        "    return y",
        "f(jnp.ones(3))",
        "jnp.where(",
    ),
    "a norm clip": Scenario(
        "@jit\n"
        "def f(g):\n"
        "    n = jnp.sqrt((g ** 2).sum())\n"
        "    if n > 1.0:\n"
        "        g = g / n\n"
        "    return g",
        "f(jnp.arange(3.))",
        "jnp.where(",
    ),
    "a safe division": Scenario(
        "@jit\ndef f(x):\n    return 1.0 / x if x > 0 else 0.0",
        "grad(f)(0.0)",
        "NaN",
    ),
    "a safe square root": Scenario(
        "def f(x):\n    if x > 0:\n        return jnp.sqrt(x)\n    return 0.0 * x",
        "jit(grad(f))(0.0)",
        "NaN",
    ),
    "a safe logarithm": Scenario(
        "def loss(p):\n    return -p * jnp.log(p) if p > 0 else 0.0",
        "jit(grad(loss))(0.0)",
        "NaN",
    ),
    "dicts chosen": Scenario(
        "a = {'w': jnp.ones(2), 'b': jnp.zeros(())}\n"
        "b = {'w': jnp.zeros(2), 'b': jnp.ones(())}\n"
        "@jit\n"
        "def f(x):\n"
        "    p = a if x > 0 else b\n"
        "    return p['w'] * x + p['b']",
        "f(1.0)",
        "lax.cond(",
    ),
    "dict arguments chosen": Scenario(
        "@jit\n"
        "def f(old, new, ok):\n"
        "    if ok > 0:\n"
        "        best = new\n"
        "    else:\n"
        "        best = old\n"
        "    return best",
        "f({'w': jnp.ones(2)}, {'w': jnp.zeros(2)}, 1.0)",
        "cond(",
    ),
    "dict literals": Scenario(
        "@jit\n"
        "def f(x):\n"
        "    if x > 0:\n"
        "        return {'a': x, 'b': 2 * x}\n"
        "    return {'a': -x, 'b': x}",
        "f(1.0)",
        "cond(",
    ),
    "an update or none": Scenario(
        "@jit\n"
        "def f(params, grads, loss):\n"
        "    if jnp.isfinite(loss):\n"
        "        params = perspex.tree.map(lambda p, g: p - 0.1 * g, params, grads)\n"
        "    return params",
        "f({'w': jnp.ones(2)}, {'w': jnp.ones(2)}, 1.0)",
        "cond(",
    ),
    "a named tuple": Scenario(
        "from typing import NamedTuple, Any\n"
        "class State(NamedTuple):\n"
        "    w: Any\n"
        "    n: Any\n"
        "@jit\n"
        "def f(s, x):\n"
        "    return State(s.w + x, s.n + 1) if x > 0 else s",
        "f(State(jnp.ones(2), 0), 1.0)",
        "cond(",
    ),
    "other shapes": Scenario(
        "@jit\ndef f(x):\n    if x.sum() > 0:\n        return x[:2]\n    return x",
        "f(jnp.ones(3))",
        "",
    ),
    "other dtypes": Scenario(
        "@jit\n"
        "def f(x):\n"
        "    if x.sum() > 0:\n"
        "        y = x.astype(int)\n"
        "        z = 1\n"
        "    else:\n"
        "        y = x\n"
        "        z = 2\n"
        "    return y, z",
        "f(jnp.ones(3))",
        "",
    ),
    "a raise": Scenario(
        "@jit\n"
        "def f(x):\n"
        "    if x < 0:\n"
        "        raise ValueError('negative')\n"
        "    return jnp.sqrt(x)",
        "f(2.0)",
        "",
    ),
    "and": Scenario(
        "@jit\ndef f(x):\n    if x > 0 and x < 1:\n        return x\n    return 0. * x",
        "f(0.5)",
        "&",
    ),
    "a chain": Scenario(
        "@jit\ndef f(x):\n    return jnp.where(0 < x < 1, x, 0.)",
        "f(0.5)",
        "&",
    ),
    "an assert": Scenario(
        "@jit\ndef f(x):\n    assert x.min() > 0\n    return x + 1",
        "f(jnp.ones(3))",
        "debug.callback",
    ),
    "early stop": Scenario(
        "@jit\n"
        "def f(x):\n"
        "    for i in range(10):\n"
        "        x = x / 2\n"
        "        if x < 0.1:\n"
        "            break\n"
        "    return x",
        "f(3.0)",
        "",
    ),
    # ---- loops
    "newton": Scenario(
        "@jit\n"
        "def f(x):\n"
        "    while x * x - 2.0 > 1e-3:\n"
        "        x = x - (x * x - 2.0) / (2.0 * x)\n"
        "    return x",
        "f(2.0)",
        "lax.while_loop",
    ),
    "while with a counter": Scenario(
        "@jit\n"
        "def f(x):\n"
        "    n = 0\n"
        "    while x > 1.0:\n"
        "        x = x / 2\n"
        "        n = n + 1\n"
        "    return x, n",
        "f(9.0)",
        "x, n = carry",
    ),
    "while of a norm": Scenario(
        "@jit\ndef f(v):\n    while jnp.sum(v * v) > 1.0:\n        v = v * 0.5\n    return v",
        "f(jnp.ones(3))",
        "lax.while_loop",
    ),
    "while with an append": Scenario(
        "@jit\n"
        "def f(x):\n"
        "    xs = []\n"
        "    while x > 1.0:\n"
        "        xs.append(x)\n"
        "        x = x / 2\n"
        "    return x",
        "f(9.0)",
        "",
    ),
    "range(n)": Scenario(
        "@jit\ndef f(x, n):\n    for i in range(n):\n        x = x * 2\n    return x",
        "f(1.0, 3)",
        "static",
    ),
    "range of a sum": Scenario(
        "@jit\ndef f(x, ks):\n    for i in range(ks.sum()):\n        x = x * 2.0\n    return x",
        "f(1.0, jnp.arange(3))",
        "fori_loop",
    ),
    "range(len(x))": Scenario(
        "@jit\n"
        "def f(x):\n"
        "    out = jnp.zeros(3)\n"
        "    for i in range(len(x)):\n"
        "        out[i] = x[i] * 2\n"
        "    return out",
        "f(jnp.ones(3))",
        "out = out.at[i].set(x[i] * 2)",
    ),
    "for over a tracer without axes": Scenario(
        "@jit\ndef f(n):\n    s = 0\n    for i in n:\n        s = s + i\n    return s",
        "f(3)",
        "",
    ),
    "enumerate of range": Scenario(
        "@jit\n"
        "def f(x, n):\n"
        "    total = 0.0\n"
        "    for i in range(int(n)):\n"
        "        total = total + x[i]\n"
        "    return total",
        "f(jnp.ones(4), 3)",
        "",
    ),
    "list comprehension over range": Scenario(
        "@jit\ndef f(x, n):\n    return sum([x[i] for i in range(n)])",
        "f(jnp.ones(4), 3)",
        "static",
    ),
    # ---- numbers
    "an f-string": Scenario(
        "@jit\ndef f(x):\n    y = x.sum()\n    print(f'loss {y:.3f}')\n    return y",
        "f(jnp.ones(3))",
        "debug.print('loss {:.3f}', y)",
    ),
    "an f-string of two": Scenario(
        "@jit\ndef f(x):\n    print(f'{x.min():.2f} to {x.max():.2f}')\n    return x",
        "f(jnp.ones(3))",
        "debug.print(",
    ),
    "format": Scenario(
        "@jit\ndef f(x):\n    y = x.sum()\n    print('loss {:.3f}'.format(y))\n    return y",
        "f(jnp.ones(3))",
        "debug.print(",
    ),
    "percent": Scenario(
        "@jit\ndef f(x):\n    y = x.sum()\n    print('loss %.3f' % y)\n    return y",
        "f(jnp.ones(3))",
        "debug.print(",
    ),
    "an f-string kept": Scenario(
        "@jit\ndef f(x):\n    name = f'{x.sum():.1f}'\n    return x",
        "f(jnp.ones(3))",
        "",
    ),
    "print of float": Scenario(
        "@jit\ndef f(x):\n    print('loss', float(x.sum()))\n    return x",
        "f(jnp.ones(3))",
        "debug.print('loss {}', x.sum())",
    ),
    "int(x)": Scenario(
        "@jit\ndef f(x):\n    return x[:3] * int(x.sum())",
        "f(jnp.ones(4))",
        "astype(int)",
    ),
    "int(x) as an index": Scenario(
        "@jit\ndef f(x):\n    i = int(jnp.argmax(x))\n    return x[i]",
        "f(jnp.arange(4.))",
        "jnp.argmax(x)",
    ),
    "float(x)": Scenario(
        "@jit\ndef f(x):\n    return float(x.mean()) * 2",
        "f(jnp.ones(4))",
        "x.mean()",
    ),
    "item": Scenario(
        "@jit\ndef f(x):\n    return x.mean().item() * 2",
        "f(jnp.ones(4))",
        "x.mean()",
    ),
    "float in append": Scenario(
        "losses = []\n@jit\ndef f(x):\n    y = x.sum()\n    losses.append(float(y))\n    return y",
        "f(jnp.ones(3))",
        "return",
    ),
    "item in append": Scenario(
        "history = []\n"
        "@jit\n"
        "def f(x):\n"
        "    y = x.sum()\n"
        "    history.append(y.item())\n"
        "    return y * 2",
        "f(jnp.ones(3))",
        "return",
    ),
    "tolist": Scenario(
        "@jit\ndef f(x):\n    return sum(x.tolist())",
        "f(jnp.ones(3))",
        "",
    ),
    "float of an array": Scenario(
        "@jit\ndef f(x):\n    return float(x)",
        "f(jnp.ones(3))",
        "",
    ),
    "round": Scenario(
        "@jit\ndef f(x):\n    return round(float(x.sum()), 2)",
        "f(jnp.ones(3))",
        "",
    ),
    "math.sqrt": Scenario(
        "@jit\ndef f(x):\n    return math.sqrt(x) * 2",
        "f(4.0)",
        "jnp.sqrt(x)",
    ),
    "np.sin": Scenario(
        "@jit\ndef f(x):\n    return np.sin(x) * 2",
        "f(jnp.ones(3))",
        "jnp.sin(x)",
    ),
    "np.array of tracers": Scenario(
        "@jit\ndef f(x):\n    return np.array([x.sum(), 1.0])",
        "f(jnp.ones(3))",
        "jnp.array(",
    ),
    # ---- Python's functions of several values
    "any": Scenario(
        "@jit\ndef f(x):\n    if any(x > 2):\n        x = x * 0\n    return x",
        "f(jnp.arange(3.))",
        "jnp.any(x > 2)",
    ),
    "any of a generator": Scenario(
        "@jit\ndef f(x):\n    bad = any(v > 2 for v in x)\n    return jnp.where(bad, 0, x)",
        "f(jnp.arange(3.))",
        "jnp.any(",
    ),
    "all": Scenario(
        "@jit\ndef f(x):\n    ok = all(x > 0)\n    return jnp.where(ok, x, 0)",
        "f(jnp.arange(3.))",
        "jnp.all(x > 0)",
    ),
    "max of two": Scenario(
        "@jit\ndef f(x):\n    return max(x, 0.0)",
        "f(-1.0)",
        "jnp.maximum(x, 0.0)",
    ),
    "max of three": Scenario(
        "@jit\ndef f(x, y):\n    return max(x, y, 0.0)",
        "f(-1.0, 2.0)",
        "jnp.maximum(",
    ),
    "max of one": Scenario(
        "@jit\ndef f(x):\n    return x / max(x)",
        "f(jnp.arange(1., 4.))",
        "jnp.max(x)",
    ),
    "max of a list": Scenario(
        "@jit\ndef f(x, y):\n    return max([x, y])",
        "f(1.0, 2.0)",
        "jnp.",
    ),
    "max of a comprehension": Scenario(
        "@jit\ndef f(xs):\n    return max(x.sum() for x in xs)",
        "f([jnp.ones(3), jnp.ones(2)])",
        "jnp.",
    ),
    "min with zero": Scenario(
        "@jit\ndef f(x):\n    return min(1.0, x.sum())",
        "f(jnp.ones(3))",
        "jnp.minimum(1.0, x.sum())",
    ),
    "any of a list": Scenario(
        "@jit\ndef f(x):\n    bad = any([x > 1, x < 0])\n    return jnp.where(bad, 0, x)",
        "f(0.5)",
        "jnp.any(",
    ),
    "sorted": Scenario(
        "@jit\ndef f(x):\n    return jnp.array(sorted(x))",
        "f(jnp.array([3., 1., 2.]))",
        "jnp.sort(x)",
    ),
    "sorted in reverse": Scenario(
        "@jit\ndef f(x):\n    return jnp.array(sorted(x, reverse=True))",
        "f(jnp.array([3., 1., 2.]))",
        "jnp.sort(x, descending=True)",
    ),
    "in a list": Scenario(
        "@jit\ndef f(x):\n    return 1.0 if x in [1, 2, 3] else 0.0",
        "f(2)",
        "jnp.",
    ),
    "in an array": Scenario(
        "@jit\ndef f(x, xs):\n    hit = x in xs\n    return jnp.where(hit, 1., 0.)",
        "f(2., jnp.arange(3.))",
        "jnp.any(",
    ),
    # ---- indices
    "assignment": Scenario(
        "@jit\ndef f(x):\n    x[0] = 3\n    return x",
        "f(jnp.ones(3))",
        "x = x.at[0].set(3)",
    ),
    "added to": Scenario(
        "@jit\ndef f(x):\n    x[1:] += 2.0\n    return x",
        "f(jnp.ones(3))",
        "x = x.at[1:].add(2.0)",
    ),
    "assignment under a mask": Scenario(
        "@jit\ndef f(x):\n    x[x < 0] = 0.\n    return x",
        "f(jnp.array([-1., 2.]))",
        "x = jnp.where(x < 0, 0.0, x)",
    ),
    "assignment outside of jit": Scenario(
        "x = jnp.ones(3)",
        "x[0] = 3",
        "x = x.at[0].set(3)",
    ),
    "assignment in a dict": Scenario(
        "@jit\ndef f(p):\n    p['w'][0] = 1.\n    return p",
        "f({'w': jnp.ones(2)})",
        "p['w'] = p['w'].at[0].set(1.0)",
    ),
    "assignment into NumPy": Scenario(
        "@jit\ndef f(x):\n    out = np.zeros(3)\n    out[0] = x\n    return out",
        "f(2.0)",
        ".at[0].set(x)",
    ),
    "a mask": Scenario(
        "@jit\ndef f(x):\n    return x[x > 0].sum()",
        "f(jnp.arange(-1., 3.))",
        "where=x > 0",
    ),
    "a mask kept": Scenario(
        "@jit\ndef f(x):\n    y = x[x > 0]\n    return y.mean()",
        "f(jnp.arange(-1., 3.))",
        "jnp.where",
    ),
    "a list of arrays": Scenario(
        "ws = [jnp.ones(2), jnp.zeros(2)]\n@jit\ndef f(i):\n    return ws[i]",
        "f(1)",
        "jnp.stack(ws)[i]",
    ),
    "a list of functions": Scenario(
        "fs = [jnp.sin, jnp.cos]\n@jit\ndef f(i, x):\n    return fs[i](x)",
        "f(1, 0.5)",
        "lax.switch(i, fs, x)",
    ),
    "zeros(n)": Scenario(
        "@jit\ndef f(n):\n    return jnp.zeros(n)",
        "f(3)",
        "static_argnames='n'",
    ),
    "x[:n]": Scenario(
        "@jit\ndef f(x, n):\n    return x[:n]",
        "f(jnp.ones(4), 2)",
        "static_argnames='n'",
    ),
    "reshape": Scenario(
        "@jit\ndef f(x, n):\n    return x.reshape(n, -1)",
        "f(jnp.ones(4), 2)",
        "static_argnames='n'",
    ),
}

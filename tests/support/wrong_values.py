"""More programs that fail while they are traced: numbers, arrays, lengths, and other traces."""

from __future__ import annotations

import math

import numpy as np
from support.wrong_programs import ARRAY, BOOL, INDEX, MASK, NUMBER, Case, V

VALUES = [
    Case(
        "float()",
        """
        @jit
        def f(x):
            scale = x.max()
            return x / float(scale)
        """,
        f"f(np.float32({V.tolist()}))",
        NUMBER,
        ["`x`", "scale = x.max()", "return x / float(scale)"],
        ["    return x / scale"],
        V / V.max(),
    ),
    Case(
        "int()",
        """
        @jit
        def f(x):
            y = int(x * 2)
            return y + 1
        """,
        "[int(f(v)) for v in (1.75, -1.75)]",
        NUMBER,
        ["`x`", "y = int(x * 2)"],
        ["    y = (x * 2).astype(int)"],
        [int(3.5) + 1, int(-3.5) + 1],
    ),
    Case(
        ".item()",
        """
        @jit
        def f(x):
            return x.sum().item() * 2
        """,
        f"float(f(np.float32({V.tolist()})))",
        NUMBER,
        ["`x`", "return x.sum().item() * 2"],
        ["    return x.sum() * 2"],
        2 * V.sum(),
    ),
    Case(
        "math",
        """
        @jit
        def f(x):
            return math.atan2(x, 2.0) + math.floor(1.5)
        """,
        "float(f(1.0))",
        NUMBER,
        ["`x`", "return math.atan2(x, 2.0) + math.floor(1.5)"],
        ["    return jnp.arctan2(x, 2.0) + math.floor(1.5)"],
        math.atan2(1.0, 2.0) + 1,
    ),
    Case(
        "math whose result is an integer",
        """
        @jit
        def f(x):
            return math.floor(x) + 1
        """,
        "[(int(f(v)), f(v).dtype.kind) for v in (1.75, -1.75)]",
        NUMBER,
        ["`x`", "return math.floor(x) + 1"],
        ["    return jnp.floor(x).astype(int) + 1"],
        [(math.floor(1.75) + 1, "i"), (math.floor(-1.75) + 1, "i")],
    ),
    Case(
        "NumPy",
        """
        @jit
        def f(x):
            y = x + 1
            return np.sin(y).sum()
        """,
        f"float(f(np.float32({V.tolist()})))",
        ARRAY,
        ["`x`", "y = x + 1", "return np.sin(y).sum()"],
        ["    return jnp.sin(y).sum()"],
        np.sin(V + 1).sum(),
    ),
    Case(
        "numbers for two names",
        """
        @jit
        def f(x):
            low, high = float(x.min()), 2.0
            return low * high
        """,
        f"float(f(np.float32({V.tolist()})))",
        NUMBER,
        ["`x`", "low, high = float(x.min()), 2.0"],
        ["    low, high = x.min().astype(float), 2.0"],
        2 * V.min(),
    ),
    Case(
        "NumPy's linear algebra, with an option",
        """
        @jit
        def f(x):
            return np.linalg.norm(x, ord=1)
        """,
        f"float(f(np.float32({V.tolist()})))",
        ARRAY,
        ["`x`", "return np.linalg.norm(x, ord=1)"],
        ["    return jnp.linalg.norm(x, ord=1)"],
        np.linalg.norm(V, ord=1),
    ),
    Case(
        "a list indexed",
        """
        table = [10.0, 20.0, 40.0]
        @jit
        def f(i):
            return table[i + 1]
        """,
        "float(f(1))",
        INDEX,
        ["`i`", "return table[i + 1]"],
        ["    return jnp.array(table)[i + 1]"],
        40.0,
    ),
    Case(
        "functions indexed",
        """
        @jit
        def f(i, x):
            return [jnp.sin, jnp.cos][i](x) + 1
        """,
        "[float(f(i, 0.5)) for i in (0, 1)]",
        INDEX,
        ["`i`", "return [jnp.sin, jnp.cos][i](x) + 1"],
        ["    return lax.switch(i, [jnp.sin, jnp.cos], x) + 1"],
        [math.sin(0.5) + 1, math.cos(0.5) + 1],
    ),
    Case(
        "range of an argument",
        """
        @jit
        def power(x, n):
            y = 1.0
            for i in range(n):
                y = y * x
            return y
        """,
        "float(power(2.0, 5))",
        INDEX,
        ["`n`", "for i in range(n):"],
        ["@jit(static_argnames='n')"],
        32.0,
    ),
    Case(
        "range of what cannot be static",
        """
        @jit
        def power(x, counts):
            y = 1
            for i in range(counts.max()):
                y = y * x
            return y
        """,
        "float(power(2.0, np.array([3, 5])))",
        INDEX,
        ["`counts`", "for i in range(counts.max()):"],
        ["    y = lax.fori_loop(0, counts.max(), lambda i, y: y * x, float(y))"],
        32.0,
    ),
    Case(
        "a shape from an argument",
        """
        @jit
        def ramp(n):
            size = 2 * n
            return jnp.arange(size)
        """,
        "ramp(2)",
        NUMBER,
        ["`n`", "size = 2 * n", "return jnp.arange(size)"],
        ["@jit(static_argnames='n')"],
        np.arange(4),
    ),
    Case(
        "a decorator with options",
        """
        @partial(jit, static_argnames="flip")
        def ramp(n, flip):
            return jnp.zeros((n, 2)) + flip
        """,
        "ramp(2, True)",
        INDEX,
        ["`n`", "return jnp.zeros((n, 2)) + flip"],
        ["@partial(jit, static_argnames=('flip', 'n'))"],
        np.ones((2, 2)),
    ),
    Case(
        "a decorator with positions",
        """
        @jit(static_argnums=1)
        def ramp(n, flip):
            return jnp.zeros((n, 2)) + flip
        """,
        "ramp(2, True)",
        INDEX,
        ["`n`", "return jnp.zeros((n, 2)) + flip"],
        ["@jit(static_argnums=(1, 0))"],
        np.ones((2, 2)),
    ),
    Case(
        "a call of jit",
        """
        def ramp(n, m):
            return jnp.ones((n + m,))
        fast = jit(ramp)
        """,
        "fast(2, 3)",
        INDEX,
        ["`n`", "`m`", "return jnp.ones((n + m,))"],
        ["fast = jit(ramp, static_argnames=('n', 'm'))"],
        np.ones(5),
    ),
    Case(
        "a lambda",
        """
        ramp = jit(lambda n: jnp.ones(n))
        """,
        "ramp(3)",
        INDEX,
        ["`n`", "ramp = jit(lambda n: jnp.ones(n))"],
        ["ramp = jit(lambda n: jnp.ones(n), static_argnames='n')"],
        np.ones(3),
    ),
    Case(
        "int() for a length",
        """
        @jit
        def ramp(n):
            return jnp.ones(int(n / 2))
        """,
        "ramp(6)",
        NUMBER,
        ["`n`", "return jnp.ones(int(n / 2))"],
        ["@jit(static_argnames='n')"],
        np.ones(3),
    ),
    Case(
        "a mask under a sum",
        """
        @jit
        def f(x):
            y = x * 2
            return y[y > 0].sum()
        """,
        f"float(f(np.float32({V.tolist()})))",
        MASK,
        ["`x`", "y = x * 2", "return y[y > 0].sum()"],
        ["    return y.sum(where=y > 0)"],
        (V * 2)[V > 0].sum(),
    ),
    Case(
        "a mask under a mean",
        """
        @jit
        def f(x):
            keep = x > 0
            return jnp.mean(x[keep])
        """,
        f"float(f(np.float32({V.tolist()})))",
        MASK,
        ["`x`", "keep = x > 0", "return jnp.mean(x[keep])"],
        ["    return jnp.mean(x, where=keep)"],
        V[V > 0].mean(),
    ),
    Case(
        "if under vmap",
        """
        @vmap
        def f(x):
            if x > 0:
                return x
            return -x
        """,
        f"f(np.float32({V.tolist()}))",
        BOOL,
        ["`x`", "if x > 0:"],
        ["    return jnp.where(x > 0, x, -x)"],
        abs(V),
    ),
    Case(
        "if under vmap, under jit",
        """
        @jit
        def f(xs):
            def one(x):
                y = x * 2
                return y if y > 0 else -y
            return vmap(one)(xs)
        """,
        f"f(np.float32({V.tolist()}))",
        BOOL,
        ["`xs`", "y = x * 2", "return y if y > 0 else -y"],
        ["        return jnp.where(y > 0, y, -y)"],
        abs(2 * V),
    ),
    Case(
        "if under grad, under jit",
        """
        @jit
        @grad
        def f(x):
            y = x * x
            if y > 1:
                return y
            return -y
        """,
        "[float(f(v)) for v in (3.0, 0.5)]",
        BOOL,
        ["`x`", "y = x * x", "if y > 1:"],
        ["    return jnp.where(y > 1, y, -y)"],
        [6.0, -1.0],
    ),
    Case(
        "the body of a scan",
        """
        def step(total, x):
            total = total + x
            if total > 1:
                total = total - 1
            return total, total
        @jit
        def f(xs):
            return lax.scan(step, 0.0, xs)[0]
        """,
        "float(f(np.float32([0.5, 0.75, 0.5])))",
        BOOL,
        ["`total`", "`x`", "total = total + x", "if total > 1:"],
        ["    total = jnp.where(total > 1, total - 1, total)"],
        0.75,
    ),
    Case(
        "containers of arguments",
        """
        @jit
        def f(params, x):
            y = params["w"] * x
            if y.sum() > 0:
                y = y + params["b"][1]
            return y
        """,
        "f({'w': 2.0, 'b': [1.0, 3.0]}, np.float32([1.0, 2.0]))",
        BOOL,
        ["`params['w']`", "`x`", 'y = params["w"] * x', "if y.sum() > 0:"],
        ["    y = jnp.where(y.sum() > 0, y + params['b'][1], y)"],
        [5.0, 7.0],
    ),
    Case(
        "what a scan closes over",
        """
        @jit
        def f(limit, xs):
            top = limit * 2
            def step(total, x):
                more = total + x
                return (more if more < top else total), more
            return lax.scan(step, 0.0, xs)[0]
        """,
        "float(f(1.0, np.float32([1.0, 0.5, 0.75, 0.25])))",
        BOOL,
        [
            "`total`",
            "`x`",
            "`limit`",
            "top = limit * 2",
            "more = total + x",
            "return (more if more < top else total), more",
        ],
        ["        return (jnp.where(more < top, more, total)), more"],
        1.75,
    ),
]

"""Cells as users write them: those that use a random key again, and those that use each one once.

A scenario is a list of cells; cells of the same text are one cell that runs again. Before them
`make` makes a typed or a raw key, and `key` is one. In the scenarios of `REUSED`, draws depend on
each other that should not.
"""

from __future__ import annotations

_STEP = "@perspex.jit\ndef step(x, key): return x + random.normal(key, x.shape)"
_DROPOUT = (
    "def dropout(key, x): return x * random.bernoulli(key, 0.5, x.shape)\n"
    "def apply(ws, x, key):\n"
    "    for w in ws: x = dropout(key, jnp.tanh(x * w))\n"
    "    return x"
)
_MODEL = (
    "class Model:\n"
    "    def __init__(self, key): self.w = random.normal(key, (3,))\n"
    "    def noisy(self, key, x): return x * self.w + random.normal(key, (3,))"
)
_SGLD = (
    "@perspex.jit\ndef update(w, key):\n"
    "    g = perspex.grad(lambda w: (w ** 2).sum())(w)\n"
    "    return w - 0.1 * g + random.normal(key, w.shape)"
)

REUSED = {
    # ---- in one cell
    "two draws": ["a = random.normal(key, (3,))\nb = random.normal(key, (3,))"],
    "two kinds of draw": ["a = random.normal(key)\nb = random.uniform(key)"],
    "data and noise": ["x = random.normal(key, (9,))\ny = 2 * x + random.normal(key, (9,))"],
    "init of two layers": [
        "def init(key, n, m): return random.normal(key, (n, m)) / n\n"
        "params = [init(key, 2, 3), init(key, 3, 1)]"
    ],
    "a list comprehension": ["layers = [random.normal(key, (n, 2)) for n in (2, 3, 4)]"],
    "a dict comprehension": ["layers = {n: random.normal(key, (2,)) for n in 'wb'}"],
    "map": ["ws = list(map(lambda n: random.normal(key, (n,)), (1, 2)))"],
    "a loop that splits too late": [
        "out = []\nfor i in range(3): out.append(random.choice(key, 9))\nkey, _ = random.split(key)"
    ],
    "the key after a split": ["k1, k2 = random.split(key)\nx = random.normal(key)"],
    "a key that is kept by mistake": [
        "_, sub = random.split(key)\nfor _ in range(2): x = random.normal(sub)"
    ],
    "split twice": ["a, b = random.split(key)\nc, d = random.split(key)"],
    "a helper called twice": [_DROPOUT + "\ny = apply([1., 2.], np.ones(4), key)"],
    "one row twice": [
        "keys = random.split(key, 3)\na = random.normal(keys[0]), random.normal(keys[0])"
    ],
    "a row after the loop": [
        "keys = random.split(key, 3)\nxs = [random.normal(k) for k in keys]\n"
        "y = random.normal(keys[-1])"
    ],
    "the same number folded in": [
        "a = random.normal(random.fold_in(key, 1))\nb = random.uniform(random.fold_in(key, 1))"
    ],
    "fold_in and a child of split": [
        "k1, k2 = random.split(key)\na = random.normal(k2, (3,))\n"
        "b = random.normal(random.fold_in(key, 1), (3,))"
    ],
    "fold_in of a step, and a child of split": [
        "keys = random.split(key, 4)\nws = [random.normal(k) for k in keys]\n"
        "for step in range(2): x = random.normal(random.fold_in(key, step))"
    ],
    "a gradient": [
        "f = lambda w: (w * random.normal(key, (3,))).sum()\n"
        "for _ in range(2): g = perspex.grad(f)(np.ones(3))"
    ],
    # ---- in several cells
    "two cells": ["a = random.normal(key, (3,))", "b = random.normal(key, (3,))  # later"],
    "a model and its data": [_MODEL + "\nm = Model(key)", "y = m.noisy(key, np.ones(3))"],
    "saved and loaded": [
        "import io\nf = io.BytesIO()\nnp.save(f, random.key_data(key))\nx = random.normal(key)",
        "f.seek(0)\nold = random.wrap_key_data(jnp.asarray(np.load(f)))\ny = random.normal(old)",
    ],
    "numbers of a key in NumPy": [
        "numbers = np.asarray(random.key_data(key))\nx = random.normal(key)",
        "y = random.normal(numbers)",
    ],
    "pickled": [
        "import pickle\nkept = pickle.dumps(random.key_data(key))\nx = random.normal(key)",
        "y = random.normal(pickle.loads(kept))",
    ],
    # ---- around compiled programs
    "a loop around a step": [_STEP + "\nx = np.ones(3)\nfor i in range(4): x = step(x, key)"],
    "a comprehension around a step": [
        _STEP + "\nxs = [step(np.full(3, i), key) for i in range(4)]"
    ],
    "a sampler with one key": [_SGLD + "\nw = np.ones(3)\nfor i in range(4): w = update(w, key)"],
    "a step long after the warm-up": [
        _STEP + "\nx = np.ones(3)\nfor k in random.split(key, 40): x = step(x, k)",
        "one = make(77)\nfor i in range(4): x = step(x, one)",
    ],
    "a step that captures the key": [
        "@perspex.jit\ndef noisy(x): return x + random.normal(key, x.shape)\n"
        "x = np.ones(3)\nfor i in range(4): x = noisy(x)"
    ],
    "a captured key in an inner function": [
        "inner = perspex.jit(lambda x: x + random.normal(key))\n"
        "f = perspex.jit(lambda x: inner(x) * 2)\nx = f(f(f(1.)))"
    ],
    "a gradient that captures the key": [
        "g = perspex.jit(perspex.grad(lambda w: (w * random.normal(key, w.shape)).sum()))\n"
        "w = np.ones(3)\nfor _ in range(3): w = w - g(w)"
    ],
    "twice in a compiled program": [
        "@perspex.jit\ndef f(key): return random.normal(key), random.normal(key)\nf(key);"
    ],
    "a key in a tree": [
        "@perspex.jit\n"
        "def turn(state): return {**state, 'x': state['x'] + random.normal(state['key'])}\n"
        "state = {'x': 0., 'key': key}\nfor i in range(3): state = turn(state)"
    ],
    "two programs": [
        _STEP + "\n@perspex.jit\ndef init(key): return random.normal(key, (3,))\n"
        "x = step(init(key), key)"
    ],
    "fold_in in a program, and a child of split": [
        "ks = random.split(key)\na = random.normal(ks[1])\n"
        "@perspex.jit\ndef f(k): return random.normal(random.fold_in(k, 1))\nb = f(key)"
    ],
    # ---- loops of a program
    "scan": ["lax.scan(lambda c, _: (c + random.normal(key), None), 0., None, length=3);"],
    "fori_loop": ["lax.fori_loop(0, 4, lambda i, c: c + random.uniform(key), 0.);"],
    "while_loop": ["lax.while_loop(lambda c: c < 3, lambda c: c + 1 + random.uniform(key), 0.);"],
    "lax.map": ["lax.map(lambda x: x + random.normal(key), np.arange(3.));"],
    "a carry that keeps its key": [
        "def body(c, x):\n    key, w = c\n    return (key, w + random.normal(key)), w\n"
        "lax.scan(body, (key, 0.), np.arange(3.));"
    ],
    "a compiled loop": [
        "@perspex.jit\n"
        "def f(key): return lax.fori_loop(0, 4, lambda i, c: c + random.normal(key), 0.)\nf(key);"
    ],
    "a step in a loop of a program": [
        _STEP + "\nlax.fori_loop(0, 4, lambda i, x: step(x, key), jnp.ones(3));"
    ],
    # ---- vmap
    "vmap with a captured key": ["perspex.vmap(lambda x: x + random.normal(key))(np.arange(3.));"],
    "vmap with an unmapped key": [
        "def loss(w, x, key): return (w * x * random.bernoulli(key, 0.5, x.shape)).sum()\n"
        "perspex.vmap(loss, (None, 0, None))(1., np.ones((4, 3)), key);"
    ],
    "vmap of a compiled function": [
        _STEP + "\nperspex.vmap(step, (0, None))(np.ones((4, 3)), key);"
    ],
    "a compiled vmap": [
        "@perspex.jit\ndef f(xs, key):\n"
        "    return perspex.vmap(lambda x: x * random.normal(key, (3,)))(xs)\n"
        "f(np.ones((4, 3)), key);"
    ],
    "vmap of a gradient": [
        "def loss(w, x, key): return (w * x + random.normal(key, (3,))).sum() ** 2\n"
        "perspex.vmap(perspex.grad(loss), (None, 0, None))(1., np.ones((4, 3)), key);"
    ],
}

SOUND = {
    # ---- new keys
    "a split for each": ["a, b = random.split(key)\nx = random.normal(a), random.normal(b)"],
    "the usual loop": [
        "for _ in range(9):\n    key, sub = random.split(key)\n    x = random.normal(sub)"
    ],
    "rows": ["xs = [random.normal(k) for k in random.split(key, 5)]"],
    "rows by number": ["ks = random.split(key, 3)\nxs = [random.normal(ks[i]) for i in range(3)]"],
    "unpacked rows": [
        "k1, k2, k3 = random.split(key, 3)\n"
        "x = random.normal(k1) + random.uniform(k2) + random.gumbel(k3)"
    ],
    "fold_in by the step": ["for i in range(9): x = random.normal(random.fold_in(key, i))"],
    "fold_in by layer": ["ws = {i: random.normal(random.fold_in(key, i), (2,)) for i in range(3)}"],
    "fold_in of another number": [
        "ks = random.split(key, 2)\nx = [random.normal(k) for k in ks]\n"
        "y = random.normal(random.fold_in(key, 7))"
    ],
    "fold_in of a child": [
        "k1, k2 = random.split(key)\nx = random.normal(k1), random.normal(random.fold_in(k2, 0))"
    ],
    "clone": ["a = random.normal(key)\nb = random.normal(random.clone(key))"],
    "an iterator": [
        "it = iter(random.split(key, 4))\nx = random.normal(next(it)), random.normal(next(it))"
    ],
    "a generator of keys": [
        "def stream(key):\n    while True:\n        key, sub = random.split(key)\n"
        "        yield sub\n"
        "s = stream(key)\nxs = [random.normal(next(s)) for _ in range(4)]"
    ],
    "keys in a class": [
        "class Keys:\n    def __init__(self, key): self.key = key\n"
        "    def __call__(self):\n        self.key, sub = random.split(self.key)\n"
        "        return sub\n"
        "rng = Keys(key)\nxs = [random.normal(rng()) for _ in range(4)]"
    ],
    # ---- again on purpose
    "a cell again": ["x = random.normal(key, (3,))", "x = random.normal(key, (3,))"],
    "a compiled call again": [_STEP, "y = step(np.ones(3), key)", "y = step(np.ones(3), key)"],
    "an experiment again": [
        "k = make(5)\nx = random.normal(k)",
        "k = make(5)\nx = random.normal(k)  # again",
    ],
    "one seed for two models": [_MODEL, "a = Model(make(6))", "b = Model(make(6))"],
    "a seed in a function": [
        "def run(rate):\n    k = make(7)\n    return rate * random.normal(k)\n"
        "xs = [run(r) for r in (0.1, 0.2)]"
    ],
    "reuse": [
        "fixed = random.reuse(key)",
        "a = random.normal(fixed)",
        "b = random.normal(fixed)  # same",
    ],
    "reuse of the name": ["random.reuse(key)", "a = random.normal(key)", "b = random.uniform(key)"],
    "evaluation with a fixed key": [
        _STEP + "\neval_key = random.reuse(make(8))\n"
        "for x in (1., 2., 3.): y = step(np.full(3, x), eval_key)"
    ],
    "common noise in a loop": [
        "noise = random.reuse(key)\n"
        "lax.fori_loop(0, 4, lambda i, c: c + random.uniform(noise), 0.);"
    ],
    "reuse in a compiled loop": [
        "@perspex.jit\ndef f(key):\n    key = random.reuse(key)\n"
        "    x = lax.fori_loop(0, 4, lambda i, c: c + random.normal(key), 0.)\n"
        "    return x + random.normal(key)\n"
        "f(key);"
    ],
    "common noise under vmap": [
        "noise = random.reuse(key)\n"
        "perspex.vmap(lambda x: x + random.normal(noise))(np.arange(3.));"
    ],
    "reuse under vmap": [
        "perspex.vmap(lambda x: x + random.normal(random.reuse(key)))(np.arange(3.));"
    ],
    # ---- programs
    "a step with a key each": [
        _STEP + "\nx = np.ones(3)\nfor k in random.split(key, 9): x = step(x, k)"
    ],
    "a step with fold_in": [
        _STEP + "\nx = np.ones(3)\nfor i in range(9): x = step(x, random.fold_in(key, i))"
    ],
    "a step that returns the key": [
        "@perspex.jit\ndef turn(x, key):\n    key, sub = random.split(key)\n"
        "    return x + random.normal(sub), key\n"
        "x = 0.\nfor _ in range(9): x, key = turn(x, key)"
    ],
    "a step that folds its number in": [
        "@perspex.jit\ndef turn(x, key, i): return x + random.normal(random.fold_in(key, i))\n"
        "x = 0.\nfor i in range(9): x = turn(x, key, i)"
    ],
    "a key that is not used": [
        "@perspex.jit\ndef f(x, key, train=0): return x * 2\nx = 1.\n"
        "for _ in range(3): x = f(x, key)"
    ],
    "init, then a step": [
        "k1, k2 = random.split(key)\ninit = perspex.jit(lambda k: random.normal(k, (3,)))\n"
        + _STEP
        + "\nx = step(init(k1), k2)"
    ],
    "a captured key that runs once": [
        "@perspex.jit\ndef f(x): return x + random.normal(key, x.shape)\ny = f(np.ones(3))"
    ],
    "counters of uint32": [
        "@perspex.jit\ndef f(x): return x + jnp.uint32(1)\nn = jnp.zeros(2, 'uint32')\n"
        "for _ in range(3): n2 = f(n)"
    ],
    "one draw, split after it": [
        "@perspex.jit\ndef f(key):\n    a, b = random.split(key)\n"
        "    return random.normal(a), random.normal(b)\nf(key);"
    ],
    "two branches": [
        "@perspex.jit\ndef f(p, key): return lax.cond(p, random.normal, random.uniform, key)\n"
        "f(True, key);"
    ],
    "a gradient of one draw": ["perspex.grad(lambda w: w * random.normal(key))(1.);"],
    "checkpoint of a function of the key": [
        "f = perspex.checkpoint(lambda w, k: w * random.normal(k))\nperspex.grad(f)(1., key);"
    ],
    "checkpoint in a compiled program": [
        "f = perspex.checkpoint(lambda w, k: w * random.normal(k))\n"
        "perspex.jit(perspex.grad(f))(1., key);"
    ],
    "a branch with a captured key": [
        "lax.cond(True, lambda x: x + random.normal(key), lambda x: x, 0.);"
    ],
    "a custom rule with a captured key": [
        "@perspex.custom_jvp\ndef f(x): return x * random.normal(key)\n"
        "f.defjvps(lambda t, y, x: t)\ny = f(2.)"
    ],
    "a captured key of an inner function": [
        "inner = perspex.jit(lambda x: x + random.normal(key))\n"
        "y = perspex.jit(lambda x: inner(x) * 2)(1.)"
    ],
    "the program of a captured key, shown": [
        "f = lambda x: x + random.normal(key)\nperspex.make_jaxpr(f)(1.);"
    ],
    "checkpoint": ["perspex.grad(perspex.checkpoint(lambda w: w * random.normal(key)))(1.);"],
    # ---- loops of a program
    "scan over keys": [
        "lax.scan(lambda c, k: (c + random.normal(k), None), 0., random.split(key, 3));"
    ],
    "scan with a carried key": [
        "def body(c, _):\n    key, w = c\n    key, sub = random.split(key)\n"
        "    return (key, w + random.normal(sub)), w\n"
        "lax.scan(body, (key, 0.), None, length=3);"
    ],
    "fori_loop with fold_in": [
        "lax.fori_loop(0, 4, lambda i, c: c + random.uniform(random.fold_in(key, i)), 0.);"
    ],
    "one draw before the loop": [
        "noise = random.normal(key)\nlax.fori_loop(0, 4, lambda i, c: c + noise, 0.);"
    ],
    "lax.map over keys": ["lax.map(random.normal, random.split(key, 4));"],
    # ---- vmap
    "vmap over keys": ["perspex.vmap(random.normal)(random.split(key, 4));"],
    "vmap over keys and rows": [
        "perspex.vmap(lambda x, k: x + random.normal(k))(np.arange(4.), random.split(key, 4));"
    ],
    "vmap with fold_in": [
        "xs = np.arange(4.)\n"
        "perspex.vmap(lambda x, i: x + random.normal(random.fold_in(key, i)))(xs, jnp.arange(4));"
    ],
    "vmap of a compiled function over keys": [
        _STEP + "\nperspex.vmap(step)(np.ones((4, 3)), random.split(key, 4));"
    ],
    "split under vmap": [
        "def f(k):\n    a, b = random.split(k)\n    return random.normal(a) + random.normal(b)\n"
        "perspex.vmap(f)(random.split(key, 4));"
    ],
    "one draw before vmap": [
        "noise = random.normal(key)\nperspex.vmap(lambda x: x + noise)(np.arange(3.));"
    ],
    "vmap of a program that is called twice": [
        _STEP + "\na, b = random.split(key)\nf = perspex.vmap(step)\n"
        "x = f(np.ones((2, 3)), random.split(a, 2))\nx = f(x, random.split(b, 2))"
    ],
}

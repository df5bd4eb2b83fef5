"""Cells of training notebooks, as users write them: with something that is fixed, and sound ones.

With each problem stands the text that is told, once, and its line in its cell.
"""

from __future__ import annotations

# name -> (cells, the text told, its line in the cell that has it)
FIXED: dict[str, tuple[list[str], str, int]] = {
    "dropout by numpy": (
        ["@jit\ndef f(x):\n    mask = np.random.rand(4) > 0.5\n    return x * mask\nf(np.ones(4))"],
        "np.random.rand(4)",
        3,
    ),
    "noise of a scalar": (
        ["@jit\ndef f(x):\n    return x + np.random.normal()\nf(1.0)"],
        "np.random.normal()",
        3,
    ),
    "a generator of the notebook": (
        [
            "rng = np.random.default_rng(0)",
            "@jit\ndef f(x):\n    return x + rng.normal(size=3)\nf(1.0)",
        ],
        "rng.normal(size=3)",
        3,
    ),
    "a generator in an object": (
        [
            "class Data:\n    def __init__(self):\n        self.rng = np.random.default_rng(1)\n"
            "    def jitter(self, x):\n        return x + self.rng.uniform()\nd = Data()",
            "jit(d.jitter)(1.0)",
        ],
        "self.rng.uniform()",
        5,
    ),
    "a RandomState": (
        ["state = np.random.RandomState(0)\n@jit\ndef f(x):\n    return x * state.randn()\nf(1.0)"],
        "state.randn()",
        4,
    ),
    "a generator without a seed": (
        ["@jit\ndef f(x):\n    r = np.random.default_rng()\n    return x + r.random()\nf(1.0)"],
        "r.random()",
        4,
    ),
    "the module random": (
        ["@jit\ndef f(x):\n    return x * random.uniform(0.9, 1.1)\nf(1.0)"],
        "random.uniform(0.9, 1.1)",
        3,
    ),
    "imported from random": (
        ["from random import gauss", "@jit\ndef f(x):\n    return x + gauss(0, 1)\nf(1.0)"],
        "gauss(0, 1)",
        3,
    ),
    "imported under another name": (
        ["from numpy.random import rand as draw", "@jit\ndef f(x):\n    return x + draw()\nf(1.0)"],
        "draw()",
        3,
    ),
    "a branch by chance": (
        ["@jit\ndef f(x):\n    if random.random() < 2.0:\n        return -x\n    return x\nf(1.0)"],
        "random.random()",
        3,
    ),
    "an index by chance": (
        ["@jit\ndef f(x):\n    i = np.random.randint(4)\n    return x[i]\nf(np.ones(4))"],
        "np.random.randint(4)",
        3,
    ),
    "an order by chance": (
        ["@jit\ndef f(x):\n    return x[np.random.permutation(4)]\nf(np.ones(4))"],
        "np.random.permutation(4)",
        3,
    ),
    "shuffle": (
        [
            "@jit\ndef f(x):\n    order = [0, 1, 2]\n    random.shuffle(order)\n"
            "    return x[np.array(order)]\nf(np.ones(3))"
        ],
        "random.shuffle(order)",
        4,
    ),
    "a choice": (
        ["@jit\ndef f(x):\n    k = random.choice([1, 2, 3])\n    return x * k\nf(1.0)"],
        "random.choice([1, 2, 3])",
        3,
    ),
    "in a helper of another cell": (
        [
            "def noisy(x):\n    return x + np.random.rand()",
            "@jit\ndef f(x):\n    return noisy(x) * 2\nf(1.0)",
        ],
        "np.random.rand()",
        2,
    ),
    "in a loss under grad": (
        ["def loss(w):\n    return (w * np.random.rand()) ** 2\njit(perspex.grad(loss))(2.0)"],
        "np.random.rand()",
        2,
    ),
    "in the body of a scan": (
        ["def body(c, _):\n    return c + random.random(), c\nlax.scan(body, 0.0, None, length=3)"],
        "random.random()",
        2,
    ),
    "in the body of fori_loop": (
        ["f = lambda i, c: c + np.random.rand()\nlax.fori_loop(0, 3, f, 0.0)"],
        "np.random.rand()",
        1,
    ),
    "in a jitted vmap": (
        ["f = jit(perspex.vmap(lambda x: x + np.random.rand()))\nf(np.ones(3))"],
        "np.random.rand()",
        1,
    ),
    "under %%jit": (["%%jit\nz = jnp.ones(3) * np.random.rand()"], "np.random.rand()", 2),
    "a seed of the operating system": (
        ["@jit\ndef f(x):\n    s = secrets.randbelow(1000)\n    return x + s\nf(1.0)"],
        "secrets.randbelow(1000)",
        3,
    ),
    "a uuid as a seed": (
        [
            "@jit\ndef f(x):\n    key = jr.key(uuid.uuid4().int % 1000)\n"
            "    return x + jr.normal(key)\nf(1.0)"
        ],
        "uuid.uuid4()",
        3,
    ),
    "the clock as a seed": (
        [
            "@jit\ndef f(x):\n    key = jr.key(int(time.time()) % 99)\n"
            "    return x + jr.normal(key)\nf(1.0)"
        ],
        "time.time()",
        3,
    ),
    "a decay by the clock": (
        [
            "start = time.perf_counter()",
            "@jit\ndef f(x):\n    dt = time.perf_counter() - start\n"
            "    return x * jnp.exp(-dt)\nf(1.0)",
        ],
        "time.perf_counter()",
        3,
    ),
    "the hour": (
        ["import datetime as dt", "@jit\ndef f(x):\n    return x * dt.datetime.now().hour\nf(1.0)"],
        "dt.datetime.now()",
        3,
    ),
    "a budget of time": (
        [
            "@jit\ndef f(x):\n    for _ in range(3):\n        x = jnp.sin(x)\n"
            "        if time.monotonic() > 1e12:\n            break\n    return x\nf(1.0)"
        ],
        "time.monotonic()",
        5,
    ),
    "batches of an iterator": (
        [
            "batches = iter([np.ones(2), np.zeros(2)])",
            "@jit\ndef f(w):\n    batch = next(batches)\n    return (w * batch).sum()\nf(1.0)",
        ],
        "next(batches)",
        3,
    ),
    "a generator function": (
        [
            "def stream():\n    while True:\n        yield 2.0\nsteps = stream()",
            "@jit\ndef f(w):\n    return w * next(steps)\nf(1.0)",
        ],
        "next(steps)",
        3,
    ),
    "an iterator in an object": (
        [
            "class Loader:\n    def __init__(self):\n        self.it = iter([1.0, 2.0])\n"
            "loader = Loader()",
            "@jit\ndef f(w):\n    return w * next(loader.it)\nf(1.0)",
        ],
        "next(loader.it)",
        3,
    ),
    "print of a loss": (
        [
            "@jit\ndef f(x):\n    loss = (x ** 2).sum()\n    print('loss', loss)\n"
            "    return loss\nf(np.ones(3))"
        ],
        "print('loss', loss)",
        4,
    ),
    "print of an f-string": (
        ["@jit\ndef f(x):\n    print(f'x is {x}')\n    return x\nf(1.0)"],
        "print(f'x is {x}')",
        3,
    ),
    "print in a loop": (
        [
            "@jit\ndef f(x):\n    for i in range(3):\n        x = x * 2\n        print(i, x)\n"
            "    return x\nf(1.0)"
        ],
        "print(i, x)",
        5,
    ),
    "a log line": (
        ["import logging\n@jit\ndef f(x):\n    logging.info(f'x is {x}')\n    return x\nf(1.0)"],
        "f'x is {x}'",
        4,
    ),
    "str of a value": (
        ["names = {}\n@jit\ndef f(x):\n    names['now'] = str(x)\n    return x\nf(1.0)"],
        "str(x)",
        4,
    ),
    "format": (
        ["@jit\ndef f(x):\n    text = 'x = {}'.format(x)\n    return x\nf(1.0)"],
        "'x = {}'.format(x)",
        3,
    ),
    "an f-string in a variable": (
        ["%%jit\nscale = jnp.ones(3) * 2\nlabel = f'{scale}'\nprint(label)"],
        "f'{scale}'",
        3,
    ),
    "two values in one text": (
        ["@jit\ndef f(x, y):\n    keys = {f'{x} and {y}': x}\n    return keys\nf(1.0, 2.0)"],
        "f'{x} and {y}'",
        3,
    ),
    "percent": (
        ["%%jit\nscale = jnp.ones(3) * 2\nprint('%s' % scale)"],
        "print('%s' % scale)",
        3,
    ),
    "percent of several": (
        ["@jit\ndef f(x):\n    text = '%d: %s' % (3, x)\n    return x\nf(1.0)"],
        "'%d: %s' % (3, x)",
        3,
    ),
    "a list of losses": (
        ["losses = []\n@jit\ndef f(x):\n    losses.append(x ** 2)\n    return x\nf(1.0)"],
        "losses.append(x ** 2)",
        4,
    ),
    "a dict of metrics": (
        [
            "metrics = {}\n@jit\ndef f(x):\n    metrics['loss'] = x.sum()\n    return x\n"
            "f(np.ones(2))"
        ],
        "metrics['loss'] = x.sum()",
        4,
    ),
    "an attribute": (
        [
            "class Model:\n    pass\nmodel = Model()\n@jit\ndef f(x):\n    model.state = x * 2\n"
            "    return x\nf(1.0)"
        ],
        "model.state = x * 2",
        6,
    ),
    "a global": (
        ["@jit\ndef f(x):\n    global last\n    last = x * 2\n    return x\nf(1.0)"],
        "last = x * 2",
        4,
    ),
    "a history in an object": (
        [
            "class Trainer:\n    def __init__(self):\n        self.history = []\n"
            "    def step(self, x):\n"
            "        self.history.append(x * 2)\n        return x\ntrainer = Trainer()\n"
            "jit(trainer.step)(1.0)"
        ],
        "self.history.append(x * 2)",
        5,
    ),
}

SOUND: dict[str, list[str]] = {
    "outside of the function": ["noise = np.random.rand()\njit(lambda x, n: x + n)(1.0, noise)"],
    "a key": ["jit(lambda k: jr.normal(k, (3,)))(jr.key(0))"],
    "the time of the trace": [
        "@jit\ndef f(x):\n    t0 = time.time()\n    y = jnp.sin(x)\n"
        "    print('traced in', time.time() - t0)\n    return y\nf(1.0)"
    ],
    "the time in milliseconds": [
        "@jit\ndef f(x):\n    t0 = time.perf_counter()\n    y = jnp.sin(x)\n"
        "    dt = 1000 * (time.perf_counter() - t0)\n    print(f'{dt:.1f} ms')\n    return y\n"
        "f(1.0)"
    ],
    "times in a list": [
        "times = []\n@jit\ndef f(x):\n    t0 = time.monotonic()\n    y = jnp.sin(x)\n"
        "    times.append(time.monotonic() - t0)\n    return y\nf(1.0)"
    ],
    "times in a dict": [
        "stats = {}\n@jit\ndef f(x):\n    t0 = time.time()\n    y = jnp.cos(x)\n"
        "    stats['trace'] = time.time() - t0\n    return y\nf(1.0)"
    ],
    "a date in a log": [
        "import datetime\n@jit\ndef f(x):\n    print('at', datetime.datetime.now().isoformat())\n"
        "    return x\nf(1.0)"
    ],
    "a warning of a slow trace": [
        "@jit\ndef f(x):\n    t0 = time.time()\n    y = jnp.sin(x)\n"
        "    if time.time() - t0 > 100:\n        print('slow')\n    return y\nf(1.0)"
    ],
    "a helper that tells the time": [
        "def now():\n    return time.time()\n@jit\ndef f(x):\n    t0 = now()\n    y = jnp.sin(x)\n"
        "    print(now() - t0)\n    return y\nf(1.0)"
    ],
    "a timing decorator": [
        "def timed(g):\n    def call(*a):\n        t0 = time.perf_counter()\n        out = g(*a)\n"
        "        print(g.__name__, time.perf_counter() - t0)\n        return out\n    return call\n"
        "@jit\n@timed\ndef f(x):\n    return x + 1\nf(1.0)"
    ],
    "a timed training loop": [
        "step = jit(lambda w: w * 0.9)\nw = 1.0\nt0 = time.time()\nfor i in range(3):\n"
        "    w = step(w)\nprint(f'{time.time() - t0:.3f} s, {w}')"
    ],
    "a print of constants": ["@jit\ndef f(x):\n    print('tracing f')\n    return x\nf(1.0)"],
    "a print of a shape": [
        "@jit\ndef f(x):\n    print(f'{x.shape} {x.dtype}', x.ndim)\n    return x\nf(1.0)"
    ],
    "a count of traces": [
        "n = 0\n@jit\ndef f(x):\n    global n\n    n += 1\n    return x\nf(1.0)",
    ],
    "a count in a dict": ["c = {'n': 0}\n@jit\ndef f(x):\n    c['n'] += 1\n    return x\nf(1.0)"],
    "a list of traced shapes": [
        "shapes = []\n@jit\ndef f(x):\n    shapes.append(x.shape)\n    return x\nf(np.ones(3))"
    ],
    "a list inside": [
        "@jit\ndef f(x):\n    outs = []\n    for i in range(3):\n        outs.append(x * i)\n"
        "    return jnp.stack(outs)\nf(1.0)"
    ],
    "a dict inside": [
        "@jit\ndef f(x):\n    out = {}\n    out['a'] = x\n    out['b'] = x * 2\n    return out\n"
        "f(1.0)"
    ],
    "an iterator inside": [
        "@jit\ndef f(x):\n    it = iter([1.0, 2.0])\n    return x * next(it) + next(it)\nf(1.0)"
    ],
    "an iterator over arguments": [
        "@jit\ndef f(xs):\n    it = iter(xs)\n    first = next(it)\n    return first + sum(it)\n"
        "f([1.0, 2.0])"
    ],
    "next of an expression": [
        "@jit\ndef f(x):\n    k = next(i for i in range(5) if i > 2)\n    return x * k\nf(1.0)"
    ],
    "a generator with a seed inside": [
        "@jit\ndef f(x):\n    r = np.random.default_rng(0)\n"
        "    return x @ r.normal(size=(3, 3))\nf(np.ones(3))"
    ],
    "a seed inside": [
        "@jit\ndef f(x):\n    np.random.seed(0)\n    return x + np.random.rand(3)\nf(np.ones(3))"
    ],
    "the environment": [
        "@jit\ndef f(x):\n"
        "    return x * float(os.environ.get('LR', '0.1')) + len(os.environ['PATH'])\nf(1.0)"
    ],
    "getenv": ["@jit\ndef f(x):\n    return x * int(os.getenv('N', '3'))\nf(1.0)"],
    "a file": [
        "import pathlib, tempfile\npath = pathlib.Path(tempfile.mkdtemp(), 'rate')\n"
        "path.write_text('0.5')\n@jit\ndef f(x):\n"
        "    return x * float(path.read_text()) * np.loadtxt(path)\nf(1.0)"
    ],
    "make_jaxpr": ["perspex.make_jaxpr(lambda x: x + np.random.rand())(1.0)"],
    "eval_shape": ["perspex.eval_shape(lambda x: x + np.random.rand(), 1.0)"],
    "lower": ["jit(lambda x: x + np.random.rand()).lower(1.0).as_text()"],
    "%jaxpr": ["def f(x):\n    return x + np.random.rand()", "%jaxpr f(1.0)"],
    "outside of every trace": [
        "def f(x):\n    print(f'{x}')\n    return x + np.random.rand()\nf(jnp.ones(2))"
    ],
    "grad without jit": ["perspex.grad(lambda x: x * np.random.rand())(1.0)"],
    "a callback": [
        "def host(x):\n    return np.float32(x + np.random.rand())\n"
        "@jit\ndef f(x):\n"
        "    return perspex.pure_callback(host, perspex.ShapeDtypeStruct((), 'float32'), x)\n"
        "f(jnp.float32(1))"
    ],
    "debug.print": ["@jit\ndef f(x):\n    perspex.debug.print('x {}', x)\n    return x\nf(1.0)"],
    "a random name of a run": [
        "@jit\ndef f(x):\n    print('run', uuid.uuid4())\n    return x\nf(1.0)"
    ],
    "a name like that of a draw": [
        "class Layer:\n    def normal(self, x):\n        return x * 2\nlayer = Layer()\n"
        "jit(lambda x: layer.normal(x))(1.0)"
    ],
    "texts of shapes": [
        "%%jit\ny = jnp.ones(3) * 2\nprint('%s' % (y.shape,), f'{y.shape} {y.dtype}', 7 % 3)"
    ],
    "texts of errors": [
        "@jit\ndef f(x):\n    try:\n        raise ValueError(f'bad {x}')\n"
        "    except ValueError:\n        return x\nf(1.0)"
    ],
    "a remainder": ["jit(lambda x: x % 2.0)(1.0)"],
}

"""Cells as users write them: what makes a compiled function stale, and what does not.

Each scenario defines `f`, which is called, and changes something. `STALE` are those after which
`f` computes with an old value. A change that ends with a call of `f` makes it in the same cell.
"""

from __future__ import annotations

JIT = "@perspex.jit\n"


def _f(before: str, returns: str) -> str:
    return f"{before}\n{JIT}def f(x): return {returns}" if before else f"{JIT}def f(x): {returns}"


_CFG = "cfg = {'lr': 0.5, 'note': 'a', 'opt': {'b1': 0.9, 'b2': 0.99}}"
_CLASS = (
    "class C:\n    def __init__(self): self.lr = 0.5; self.note = 'a'; self.sizes = [1, 2]\nc = C()"
)
_DATA = (
    "import dataclasses\n@dataclasses.dataclass\nclass D:\n    lr: float = 0.5\n"
    "    note: str = 'a'\nd = D()"
)
_SETTER = "lr = 0.5\ndef set_lr(v):\n    global lr\n    lr = v"

STALE = {
    # ---- names
    "a number": (_f("lr = 0.5", "x * lr"), "lr = 2.0"),
    "a number, same cell": (_f("lr = 0.5", "x * lr"), "lr = 2.0\nf(2.0)"),
    "a string": (_f("mode = 'a'", "x + 1 if mode == 'a' else x"), "mode = 'b'"),
    "a bool": (_f("train = True", "x + 1 if train else x"), "train = False"),
    "a device array": (_f("w = jnp.ones(2)", "(x * w).sum()"), "w = w + 1"),
    "a NumPy array": (_f("w = np.ones(2)", "(x * w).sum()"), "w[0] = 3."),
    "a helper": (_f("def g(x): return x + 1", "g(x)"), "def g(x): return x + 2"),
    "a helper's global": (_f("k = 1\ndef g(x): return x + k", "g(x)"), "k = 2"),
    "a lambda": (_f("g = lambda x: x + 1", "g(x)"), "g = lambda x: x + 2"),
    "an augmented name": (_f("n = 1", "x * n"), "n += 1"),
    "a name in a loop": (_f("lr = 0.5", "x * lr"), "for lr in [1.0, 2.0]: f(2.0)"),
    "a walrus": (_f("lr = 0.5", "x * lr"), "(lr := 2.0)\nf(2.0)"),
    "a deleted name": (_f("lr = 0.5", "x * lr"), "del lr"),
    "a builtin that is hidden": (_f("y = 1", "x + max(1, 2)"), "max = min"),
    # ---- containers
    "the item that is read": (_f(_CFG, "x * cfg['lr']"), "cfg['lr'] = 2.0"),
    "a nested item": (_f(_CFG, "x * cfg['opt']['b1']"), "cfg['opt']['b1'] = 0.5"),
    "an inner dict": (_f(_CFG, "x * cfg['opt']['b1']"), "cfg['opt'] = {'b1': 0.1, 'b2': 0.99}"),
    "get": (_f(_CFG, "x * cfg.get('lr', 1.0)"), "cfg['lr'] = 2.0"),
    "get of a key that was not there": (_f(_CFG, "x * cfg.get('wd', 1.0)"), "cfg['wd'] = 2.0"),
    "in": (_f(_CFG, "x * 2 if 'wd' in cfg else x"), "cfg['wd'] = 2.0"),
    "a loop over a dict": (_f("t = {'a': 1}", "x * sum(t.values())"), "t['b'] = 2"),
    "items": (_f("t = {'a': 1}", "x * sum(v for _, v in t.items())"), "t['a'] = 2"),
    "unpacking": (_f("t = {'k': 1}\ndef g(x, k): return x * k", "g(x, **t)"), "t['k'] = 2"),
    "a key in a variable": (
        _f(_CFG + "\nwhich = 'lr'", "x * cfg[which]"),
        "which = 'n'; cfg['n'] = 2",
    ),
    "an item by a variable key": (_f(_CFG + "\nwhich = 'lr'", "x * cfg[which]"), "cfg['lr'] = 2.0"),
    "a dict by another name": (_f(_CFG + "\nalias = cfg", "x * cfg['lr']"), "alias['lr'] = 2.0"),
    "a dict that is passed": (
        _f(_CFG + "\ndef g(c): return c['lr']", "x * g(cfg)"),
        "cfg['lr'] = 2.0",
    ),
    "a list in place": (_f("s = [1, 2]", "x * sum(s)"), "s.append(3)"),
    "an item of a list": (_f("s = [1, 2]", "x * s[1]"), "s[1] = 5"),
    "the last item of a list": (_f("s = [1, 2]", "x * s[-1]"), "s.append(3)"),
    "the length of a list": (_f("s = [1, 2]", "x * len(s)"), "s.append(3)"),
    "a slice of a list": (_f("s = [1, 2, 3]", "x * sum(s[:2])"), "s[0] = 5"),
    "unpacking a list": (_f("s = [1, 2]\ndef g(x, a, b): return x * a", "g(x, *s)"), "s[0] = 5"),
    "a list of layers": (
        _f("ls = [{'w': 1.}, {'w': 2.}]", "x * sum(l['w'] for l in ls)"),
        "ls[1]['w'] = 5.",
    ),
    "a set": (_f("s = {1}", "x * 2 if 3 in s else x"), "s.add(3)"),
    "a deque": (_f("from collections import deque\ns = deque([1])", "x * sum(s)"), "s.append(3)"),
    "update": (_f(_CFG, "x * cfg['lr']"), "cfg.update(lr=2.0)"),
    "a comprehension that appends": (
        _f("L = [1]", "x * sum(L)"),
        "[L.append(i) for i in range(3)]\nf(2.0)",
    ),
    "map that appends": (_f("L = [1]", "x * sum(L)"), "list(map(L.append, [1, 2]))\nf(2.0)"),
    "a comprehension, next cell": (_f("L = [1]", "x * sum(L)"), "[L.append(i) for i in range(3)]"),
    # ---- shapes
    "the shape that is read": (_f("W = np.ones((2, 3))", "x * W.shape[0]"), "W = np.ones((4, 3))"),
    "the dtype that is read": (
        _f("W = np.ones(2, 'f4')", "x * W.dtype.itemsize"),
        "W = np.ones(2, 'f8')",
    ),
    "shape and contents": (_f("W = np.ones((2, 3))", "x * W.shape[0] + W.sum()"), "W = W + 1"),
    # ---- objects
    "an attribute": (_f(_CLASS, "x * c.lr"), "c.lr = 2.0"),
    "an attribute by setattr": (_f(_CLASS, "x * c.lr"), "setattr(c, 'lr', 2.0)"),
    "an attribute by setattr, same cell": (_f(_CLASS, "x * c.lr"), "setattr(c, 'lr', 2.0)\nf(2.0)"),
    "an object": (_f(_CLASS, "x * c.lr"), "c = C(); c.lr = 2.0"),
    "a list in an object": (_f(_CLASS, "x * sum(c.sizes)"), "c.sizes.append(1)"),
    "a field": (_f(_DATA, "x * d.lr"), "d.lr = 2.0"),
    "replace": (_f(_DATA, "x * d.lr"), "d = dataclasses.replace(d, lr=2.0)"),
    "getattr": (_f(_CLASS + "\nn = 'lr'", "x * getattr(c, n)"), "c.lr = 2.0"),
    "attrgetter": (
        _f(_CLASS + "\nimport operator\nget = operator.attrgetter('lr')", "x * get(c)"),
        "c.lr = 2.0",
    ),
    "__dict__": (
        _f(_CLASS, "x * sum(v for n, v in c.__dict__.items() if n == 'lr')"),
        "c.lr = 2.0",
    ),
    "vars": (_f(_CLASS, "x * vars(c)['lr']"), "c.lr = 2.0"),
    "a class attribute": (_f("class K:\n    lr = 0.5", "x * K.lr"), "K.lr = 2.0"),
    "a property": (
        _f(
            (
                "class P:\n    def __init__(self): self._l = 1.\n    @property\n"
                "    def lr(self): return self._l\np = P()"
            ),
            "x * p.lr",
        ),
        "p._l = 2.0",
    ),
    "a method": (
        _f("class M:\n    k = 1\n    def g(self, x): return x * self.k\nm = M()", "m.g(x)"),
        "m.k = 3",
    ),
    "a namespace": (
        _f("import types\nns = types.SimpleNamespace(lr=1.)", "x * ns.lr"),
        "ns.lr = 2.",
    ),
    "an enum's choice": (
        _f("import enum\nclass E(enum.Enum):\n    A = 1\n    B = 2\ne = E.A", "x * e.value"),
        "e = E.B",
    ),
    "a registry": (
        (
            "class R:\n    found = {}\n"
            "    def __init_subclass__(cls): R.found[cls.__name__] = cls\n"
            "class A(R): k = 1\n"
        )
        + JIT
        + "def f(x): return x * len(R.found)",
        "class B(R): k = 2",
    ),
    "singledispatch": (
        "import functools\n@functools.singledispatch\ndef g(v): return 1\n"
        + JIT
        + "def f(x): return x * g(3)",
        "@g.register\ndef _(v: int): return 5",
    ),
    # ---- functions
    "a closure": (
        (
            "def make():\n    k = 1.\n    def set_k(v):\n        nonlocal k\n"
            "        k = v\n    @perspex.jit\n    def f(x): return x * k\n"
            "    return f, set_k\nf, set_k = make()"
        ),
        "set_k(2.)",
    ),
    "a closure, same cell": (
        (
            "def make():\n    k = 1.\n    def set_k(v):\n        nonlocal k\n"
            "        k = v\n    @perspex.jit\n    def f(x): return x * k\n"
            "    return f, set_k\nf, set_k = make()"
        ),
        "set_k(2.)\nf(2.0)",
    ),
    "a default": (
        JIT + "def f(x, o={'k': 1}): return x * o['k']",
        "f.__wrapped__.__defaults__[0]['k'] = 3",
    ),
    "a partial": (
        (
            "import functools\ndef g(o, x): return x * o['k']\no = {'k': 1}\n"
            "f = perspex.jit(functools.partial(g, o))"
        ),
        "o['k'] = 2",
    ),
    "a setter": (_f(_SETTER, "x * lr"), "set_lr(2.0)"),
    "a setter, same cell": (_f(_SETTER, "x * lr"), "set_lr(2.0)\nf(2.0)"),
    "a setter of an item, same cell": (
        _f(_CFG + "\ndef set_lr(v): cfg['lr'] = v", "x * cfg['lr']"),
        "set_lr(2.0)\nf(2.0)",
    ),
    "a setter of an attribute, same cell": (
        _f(_CLASS + "\ndef set_lr(v): c.lr = v", "x * c.lr"),
        "set_lr(2.0)\nf(2.0)",
    ),
    "a setter that is assigned, same cell": (_f(_SETTER, "x * lr"), "old = set_lr(2.0)\nf(2.0)"),
    "a setter of a setter, same cell": (
        _f(_SETTER + "\ndef twice(v): set_lr(2 * v)", "x * lr"),
        "twice(2.0)\nf(2.0)",
    ),
    "a method that sets, same cell": (
        _f(
            (
                "class M:\n    def __init__(self): self.k = 1\n"
                "    def set(self, v): self.k = v\nm = M()"
            ),
            "x * m.k",
        ),
        "m.set(3)\nf(2.0)",
    ),
    "a step in a loop": (
        _f("n = 0\ndef advance():\n    global n\n    n += 1", "x * n"),
        "for _ in range(3):\n    advance()\n    f(2.0)",
    ),
    "a setter in an expression": (_f(_SETTER, "x * lr"), "print(set_lr(2.0), f(2.0))"),
    "exec": (_f("lr = 0.5", "x * lr"), "exec('lr = 2.0')"),
    "exec, same cell": (_f("lr = 0.5", "x * lr"), "exec('lr = 2.0')\nf(2.0)"),
    "globals(), same cell": (_f("lr = 0.5", "x * lr"), "globals()['lr'] = 2.0\nf(2.0)"),
    "globals().update, same cell": (_f("lr = 0.5", "x * lr"), "globals().update(lr=2.0)\nf(2.0)"),
    "mock.patch": (
        _f(_CLASS + "\nfrom unittest import mock", "x * c.lr"),
        "with mock.patch.object(c, 'lr', 3.0):\n    f(2.0)",
    ),
    "mock.patch.dict": (
        _f(_CFG + "\nfrom unittest import mock", "x * cfg['lr']"),
        "with mock.patch.dict(cfg, lr=3.0):\n    f(2.0)",
    ),
    "a context manager": (
        _f(
            _CLASS
            + (
                "\nimport contextlib\n@contextlib.contextmanager\ndef at(v):\n    c.lr = v\n"
                "    yield\n    c.lr = 0.5"
            ),
            "x * c.lr",
        ),
        "with at(3.0):\n    f(2.0)",
    ),
    # ---- static arguments
    "a static self": (
        (
            "import functools\nclass M:\n    def __init__(self): self.lr = 1.\n"
            "    @functools.partial(perspex.jit, static_argnums=0)\n"
            "    def step(self, x): return x * self.lr\nm = M()\n"
            "def f(x): return m.step(x)"
        ),
        "m.lr = 3.",
    ),
    "a static object": (
        (
            "import functools\nclass S:\n    def __init__(self): self.k = 1\ns = S()\n"
            "@functools.partial(perspex.jit, static_argnums=1)\n"
            "def g(x, s): return x * s.k\ndef f(x): return g(x, s)"
        ),
        "s.k = 3",
    ),
    "a static function": (
        (
            "import functools\nk = 1\ndef h(x): return x * k\n"
            "@functools.partial(perspex.jit, static_argnums=1)\n"
            "def g(x, h): return h(x)\ndef f(x): return g(x, h)"
        ),
        "k = 3",
    ),
    # ---- the process
    "os.environ": (
        _f("import os\nos.environ['PX_A'] = '1'", "x * int(os.environ['PX_A'])"),
        "os.environ['PX_A'] = '2'",
    ),
    "os.getenv": (
        _f("import os\nos.environ['PX_A'] = '1'", "x * int(os.getenv('PX_A', '0'))"),
        "os.environ['PX_A'] = '2'",
    ),
    "os.environ.get": (
        _f("import os\nos.environ['PX_A'] = '1'", "x * int(os.environ.get('PX_A', '0'))"),
        "os.environ['PX_A'] = '2'",
    ),
    "a context variable": (
        _f("import contextvars\ncv = contextvars.ContextVar('cv', default=1)", "x * cv.get()"),
        "_ = cv.set(3)",
    ),
    "a module made by hand": (
        _f("import types\nmod = types.ModuleType('by_hand')\nmod.k = 1", "x * mod.k"),
        "mod.k = 2",
    ),
    "an installed module": (
        _f("import string", "x * len(string.digits)"),
        "before = string.digits; string.digits = '012'",
    ),
    "a name in globals()": (_f("y = 1", "x * 2 if 'zz' in globals() else x"), "zz = 1"),
    "a value in globals()": (_f("lr = 0.5", "x * globals()['lr']"), "lr = 2.0"),
}

FRESH = {
    "another item": (_f(_CFG, "x * cfg['lr']"), "cfg['note'] = 'b'"),
    "another nested item": (_f(_CFG, "x * cfg['opt']['b1']"), "cfg['opt']['b2'] = 0.5"),
    "another item by get": (_f(_CFG, "x * cfg.get('lr')"), "cfg['note'] = 'b'"),
    "a new item": (_f(_CFG, "x * cfg['lr']"), "cfg['seed'] = 1"),
    "another item, in a helper": (
        _f(_CFG + "\ndef g(x): return x * cfg['lr']", "g(x)"),
        "cfg['note'] = 'b'",
    ),
    "another item of a list": (_f("s = [1, 2]", "x * s[0]"), "s[1] = 5"),
    "a list that grows": (_f("s = [1, 2]", "x * s[0]"), "s.append(5)"),
    "another item of a tuple": (_f("s = (1, 2)", "x * s[0]"), "s = (1, 3)"),
    "items behind a length": (_f("s = [1, 2]", "x * len(s)"), "s[0] = 7"),
    "the contents behind a shape": (_f("W = np.ones((2, 3))", "x * W.shape[0]"), "W[0, 0] = 5"),
    "new contents behind a shape": (_f("W = np.ones((2, 3))", "x * W.shape[0]"), "W = W * 2"),
    "a device array behind a shape": (_f("W = jnp.ones((2, 3))", "x * W.shape[0]"), "W = W * 2"),
    "contents behind a dtype": (
        _f("W = jnp.ones(3)", "x.astype(W.dtype)").replace("f(x)", "f(x, y=jnp.ones(1))"),
        "W = W * 2",
    )
    if False
    else (_f("W = jnp.ones(3)", "jnp.asarray(x, W.dtype)"), "W = W * 2"),
    "contents behind len": (_f("W = np.ones((2, 3))", "x * len(W)"), "W = W * 2"),
    "contents behind ndim": (_f("W = np.ones((2, 3))", "x * W.ndim"), "W = W * 2"),
    "contents behind a structure": (
        _f("p = {'a': 1., 'b': 2.}", "x * perspex.tree.structure(p).num_leaves"),
        "p['a'] = 5.",
    ),
    "another attribute": (_f(_CLASS, "x * c.lr"), "c.note = 'b'"),
    "another field": (_f(_DATA, "x * d.lr"), "d.note = 'b'"),
    "another entry of a namespace": (
        _f("import types\nns = types.SimpleNamespace(lr=1., note='a')", "x * ns.lr"),
        "ns.note = 'b'",
    ),
    "a dict that is written": (
        _f("seen = {}", "seen.__setitem__('n', 1) or x * 2")
        if False
        else "seen = {}\n" + JIT + "def f(x):\n    seen['shape'] = x.shape\n    return x * 2",
        "seen['other'] = 1",
    ),
    "a dict that another writes": (
        "seen = {}\n" + JIT + "def f(x):\n    seen['shape'] = x.shape\n    return x * 2",
        "seen.clear()",
    ),
    "a dict that counts": (
        "seen = {'n': 0}\n" + JIT + "def f(x):\n    seen['n'] += 1\n    return x * 2",
        "seen['n'] = 10",
    ),
    "a list that is appended to": (
        "log = []\n" + JIT + "def f(x):\n    log.append(1)\n    return x * 2",
        "log.clear()",
    ),
    "a count of traces": (
        "n = 0\n" + JIT + "def f(x):\n    global n\n    n += 1\n    return x * 2",
        "n = 0",
    ),
    "a timing decorator": (
        (
            "import time, functools\nstats = {}\ndef timed(g):\n"
            "    @functools.wraps(g)\n    def inner(*a):\n"
            "        t = time.perf_counter()\n        try: return g(*a)\n"
            "        finally: stats[g.__name__] = stats.get(g.__name__, 0) + 1\n"
            "    return inner\n@timed\ndef h(x): return x * 2\n"
        )
        + JIT
        + "def f(x): return h(x)",
        "h(1.0)",
    ),
    "an untaken branch": (
        _f("debug = False\nscale = 3.", "x * scale if debug else x"),
        "scale = 4.",
    ),
    "a memo": (
        "memo = {}\ndef table(n):\n    if n not in memo: memo[n] = n * 2.\n    return memo[n]\n"
        + JIT
        + "def f(x): return x * table(3)",
        "table(4)",
    ),
    "a callback's table": (
        "table = [1., 2.]\ndef look(x): return np.float32(table[0])\n"
        + JIT
        + (
            "def f(x):\n    like = perspex.ShapeDtypeStruct((), 'float32')\n"
            "    return x + perspex.pure_callback(look, like, x)"
        ),
        "table[0] = 5.",
    ),
    "a debug callback's log": (
        "log = {'n': 0}\ndef note(x): log['n'] = log['n'] + 1\n"
        + JIT
        + "def f(x):\n    perspex.debug.callback(note, x)\n    return x * 2",
        "log['n'] = 50",
    ),
    "the same number": (_f("lr = 0.5", "x * lr"), "lr = 0.5"),
    "an equal dict": (_f(_CFG, "x * cfg['lr']"), "cfg = dict(cfg)"),
    "an equal array": (_f("w = np.ones(3)", "x * w.sum()"), "w = np.ones(3)"),
    "the same helper again": (
        _f("def g(x): return x + 1", "g(x)"),
        "def g(x):\n    # as before\n    return x + 1",
    ),
    "a name that nobody reads": (_f("lr = 0.5", "x * lr"), "other = 3"),
    "a local of the same name": (_f("n = 1", "(lambda n: x * n)(3)"), "n = 5"),
    "a name that was not there": (_f("lr = 0.5", "x * lr"), "zz = 3"),
    "a parameter of the same name": (JIT + "def f(lr): return lr * 2", "lr = 5"),
    "f redefined": (_f("lr = 0.5", "x * lr"), "lr = 2.\n" + JIT + "def f(x): return x * lr"),
    "a change that is undone": (_f("lr = 0.5", "x * lr"), "lr = 2.\nlr = 0.5"),
    "a setter of another": (_f(_SETTER + "\nk = 2", "x * k"), "set_lr(2.0)\nf(2.0)"),
    "a setter of the same value": (_f(_SETTER, "x * lr"), "set_lr(0.5)\nf(2.0)"),
    "exec of something else": (_f("lr = 0.5", "x * lr"), "exec('zz = 1')\nf(2.0)"),
    "an optimizer's state": (_f(_CLASS, "x * c.lr"), "c.steps = 1"),
    "another entry of the environment": (
        _f("import os\nos.environ['PX_A'] = '1'", "x * int(os.environ['PX_A'])"),
        "os.environ['PX_B'] = '2'",
    ),
    "a metric": (_f("history = {'loss': []}", "x * 2"), "history['loss'].append(f(2.0))"),
}

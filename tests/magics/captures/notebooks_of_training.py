"""Notebooks that fit or simulate something, and the changes that their users make afterwards.

`call` is what is compiled, with arguments that no change touches. A change is stale if the same
cells without `jit` give another number after it; then the notice names the variable beside it.
"""

from __future__ import annotations

from typing import NamedTuple


class Fitted(NamedTuple):
    """Cells, separated by a line `# %%`, and changes to what they have made."""

    cells: str
    call: str
    stale: dict[str, str]
    fresh: tuple[str, ...]


_IMPORTS = """import numpy as np
import perspex
import perspex.numpy as jnp
from perspex import lax
"""

REGRESSION = Fitted(
    _IMPORTS
    + """
rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3)).astype('f4')
w_true = np.array([1.0, -2.0, 0.5], 'f4')
y = X @ w_true
start = {'w': jnp.ones(3), 'b': jnp.ones(())}
# %%
lr, l2 = 0.1, 0.01
history = []
# %%
def predict(params, X):
    return X @ params['w'] + params['b']

def loss(params):
    return ((predict(params, X) - y) ** 2).mean() + l2 * (params['w'] ** 2).sum()

@perspex.jit
def step(params):
    slope = perspex.grad(loss)(params)
    return perspex.tree.map(lambda p, s: p - lr * s, params, slope)
# %%
params = start
for i in range(3):
    params = step(params)
    history.append(float(loss(params)))
""",
    "step(start)",
    {
        "lr = 0.01": "lr",
        "l2 *= 2": "l2",
        "X[:5] = 0.0": "X",
        "y = y + 1": "y",
        "X = (X - X.mean(0)) / X.std(0)": "X",
        "def predict(params, X):\n    return X @ params['w']": "predict",
        "def loss(params):\n    return jnp.abs(predict(params, X) - y).mean()": "loss",
        "for lr in (0.3, 0.03):\n    params = step(start)": "lr",
    },
    (
        "history.clear()",
        "w_true = w_true * 2",
        "params = {'w': jnp.zeros(3), 'b': jnp.zeros(())}",
        "for i in range(3):\n    params = step(params)",
    ),
)

CLASSIFIER = Fitted(
    _IMPORTS
    + """
from types import SimpleNamespace
args = SimpleNamespace(width=4, rate=0.5, smooth=0.1, name='mlp', seed=0)
images, labels = np.linspace(-1, 1, 12).astype('f4').reshape(4, 3), np.array([0, 1, 1, 0])
# %%
class Dense:
    def __init__(self, n, m, act=jnp.tanh):
        self.w = jnp.linspace(-0.5, 1.0, n * m).reshape(n, m)
        self.act, self.calls = act, 0
    def __call__(self, x):
        return self.act(x @ self.w)

class Net:
    def __init__(self):
        self.layers = [Dense(3, args.width), Dense(args.width, 2, lambda x: x)]
        self.dropout, self.notes = 0.2, []
    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * (1 - self.dropout)

net = Net()
# %%
classes = ['cat', 'dog']
def cross_entropy(logits, labels):
    hot = (labels[:, None] == jnp.arange(len(classes))) * (1 - args.smooth) + args.smooth / 2
    return -(perspex.nn.log_softmax(logits) * hot).sum(1).mean()

@perspex.jit
def evaluate(scale):
    return cross_entropy(net(images * scale), labels)
# %%
losses = [float(evaluate(s)) for s in (1.0, 2.0)]
""",
    "evaluate(1.5)",
    {
        "args.smooth = 0.0": "args",
        "net.dropout = 0.0": "net",
        "net.layers[0].w = net.layers[0].w + jnp.arange(4.0)": "net",
        "net.layers[0].act = perspex.nn.relu; net.layers[0].w += 0.3": "net",
        "net = Net(); net.dropout = 0.9": "net",
        "labels[:] = 1 - labels; labels[0] = 1": "labels",
        "images = images[::-1].copy()": "images",
        "classes.append('bird'); net.layers[1].w = jnp.ones((4, 3))": "classes net",
        "Dense.__call__ = lambda self, x: 2 * self.act(x @ self.w)": "net",
    },
    (
        "args.name = 'deep'",
        "args.rate = 0.1",
        "args.width = 8",
        "net.notes.append('first run')",
        "net.layers[0].calls += 1",
        "classes[0] = 'lion'",
        "losses.append(float(evaluate(3.0)))",
        "second = Net(); second.dropout = 0.7",
    ),
)

LANGUAGE = Fitted(
    _IMPORTS
    + """
text = 'to be or not to be'
vocabulary = {c: i for i, c in enumerate(sorted(set(text)))}
tokens = np.array([vocabulary[c] for c in text])
# %%
sizes = {'embed': 3, 'hidden': 4}
weights = {
    'embed': jnp.linspace(-1, 1, len(vocabulary) * 3).reshape(-1, 3),
    'in': jnp.full((3, 4), 0.2), 'hid': jnp.eye(4) * 0.5, 'out': jnp.full((4,), 0.3),
}
temperature = 1.0
# %%
def cell(h, token):
    h = jnp.tanh(weights['embed'][token] @ weights['in'] + h @ weights['hid'])
    return h, h @ weights['out'] / temperature

@perspex.jit
def score(h):
    h, ys = lax.scan(cell, h, tokens[:-1])
    return ys.sum() / len(vocabulary)
# %%
seen = {}
for n in (0.0, 1.0):
    seen[n] = float(score(jnp.full(4, n)))
""",
    "score(jnp.full(4, 0.5))",
    {
        "temperature = 0.7": "temperature",
        "tokens = tokens[::-1].copy()": "tokens",
        "tokens[3] = 0": "tokens",
        "weights['in'] = weights['in'] * 2": "weights",
        "weights |= {'out': jnp.ones(4)}": "weights",
        "vocabulary['!'] = len(vocabulary)": "vocabulary",
        "def cell(h, token):\n    return h, h.sum() + token": "cell",
        "while temperature > 0.6:\n    temperature -= 0.2\n    score(jnp.full(4, 0.5))": (
            "temperature"
        ),
    },
    (
        "text = text.upper()",
        "sizes['hidden'] = 8",
        "vocabulary['t'] = 99",
        "seen.clear()",
        "weights['unused'] = jnp.ones(2)",
        "for n in (2.0, 3.0): seen[n] = float(score(jnp.full(4, n)))",
    ),
)

PREDATORS = Fitted(
    _IMPORTS
    + """
rates = dict(alpha=1.1, beta=0.4, delta=0.1, gamma=0.4)
dt, steps = 0.05, 20
# %%
def field(state):
    prey, hunters = state
    return jnp.array([
        rates['alpha'] * prey - rates['beta'] * prey * hunters,
        rates['delta'] * prey * hunters - rates['gamma'] * hunters,
    ])

def euler(field, state, dt):
    return state + dt * field(state)

def midpoint(field, state, dt):
    return state + dt * field(state + dt / 2 * field(state))

methods = {'euler': euler, 'midpoint': midpoint}
method = 'midpoint'
# %%
@perspex.jit
def simulate(state):
    return lax.fori_loop(0, steps, lambda i, s: methods[method](field, s, dt), state)
# %%
runs = []
runs.append(np.asarray(simulate(jnp.array([10.0, 5.0]))))
""",
    "simulate(jnp.array([8.0, 4.0]))",
    {
        "rates['alpha'] = 0.9": "rates",
        "rates.update(beta=0.5, gamma=0.3)": "rates",
        "dt /= 2": "dt",
        "steps = 40": "steps",
        "method = 'euler'": "method",
        "methods['midpoint'] = euler": "methods",
        "def midpoint(field, state, dt):\n    return state\nmethods['midpoint'] = midpoint": (
            "methods"
        ),
        "for method in methods: runs += [simulate(jnp.ones(2))]\nmethod = 'euler'": "method",
    },
    (
        "rates['note'] = 'from the book'",
        "methods['heun'] = lambda field, state, dt: state",
        "def euler(field, state, dt):\n    return state",
        "runs[0] = 0.0",
        "runs += [simulate(jnp.array([1.0, 1.0]))]",
    ),
)

PROCESS = Fitted(
    _IMPORTS
    + """
from dataclasses import dataclass, field, replace
@dataclass
class Kernel:
    length: float = 1.0
    variance: float = 2.0
    label: str = 'RBF'
    def __call__(self, a, b):
        return self.variance * jnp.exp(-((a[:, None] - b) ** 2) / self.length**2)

@dataclass
class Model:
    kernel: Kernel = field(default_factory=Kernel)
    noise: float = 0.1
    fitted: list = field(default_factory=list)

gp = Model()
# %%
at = np.linspace(0, 3, 5).astype('f4')
values = np.sin(at)
jitter = 1e-3
# %%
@perspex.jit
def posterior(new):
    gram = gp.kernel(at, at) + (gp.noise + jitter) * jnp.eye(len(at))
    return gp.kernel(new, at) @ jnp.linalg.solve(gram, values)
# %%
mean = posterior(jnp.array([0.5, 1.5]))
gp.fitted.append(float(mean[0]))
""",
    "posterior(jnp.array([0.3, 2.2]))",
    {
        "gp.kernel.length = 0.5": "gp",
        "gp.noise = 1.0": "gp",
        "gp = replace(gp, noise=0.5)": "gp",
        "gp.kernel = replace(gp.kernel, length=3.0)": "gp",
        "jitter = 1.0": "jitter",
        "values -= 1.0": "values",
        "at, values = at[:3], values[:3]": "at values",
        "kernel = gp.kernel\nkernel.length *= 4": "gp",
        "Kernel.__call__ = lambda self, a, b: jnp.minimum(a[:, None], b)": "gp",
    },
    (
        "gp.kernel.label = 'squared exponential'",
        "gp.fitted.append(0.0)",
        "gp.fitted = []",
        "other = replace(gp); other.noise = 9.0",
        "mean = posterior(jnp.array([1.0, 2.0]))",
        "gp = replace(gp)",
    ),
)

FILTER = Fitted(
    _IMPORTS
    + """
class System:
    dt = 0.1
    def __init__(self):
        self.F = np.array([[1, self.dt], [0, 1]], 'f4')
        self.Q = np.eye(2, dtype='f4') * 0.01
        self.R, self.H = 0.5, np.array([[1.0, 0.0]], 'f4')
        self.log = {}
system = System()
# %%
measured = np.cumsum(np.full(6, 0.3, 'f4'))
gain_limit = None
# %%
def update(carry, z):
    x, P = carry
    x, P = system.F @ x, system.F @ P @ system.F.T + system.Q
    S = system.H @ P @ system.H.T + system.R
    K = P @ system.H.T / S
    if gain_limit is not None:
        K = jnp.minimum(K, gain_limit)
    x = x + (K * (z - system.H @ x)).sum(1)
    return (x, P - K @ system.H @ P), x

@perspex.jit
def track(x):
    return lax.scan(update, (x, jnp.eye(2)), measured)[1]
# %%
path = np.asarray(track(jnp.zeros(2)))
system.log['first'] = path
""",
    "track(jnp.ones(2))",
    {
        "system.R = 5.0": "system",
        "system.Q *= 10": "system",
        "system.F[0, 1] = 0.5": "system",
        "system.H = np.array([[0.0, 1.0]], 'f4')": "system",
        "gain_limit = 0.01": "gain_limit",
        "measured += np.arange(6, dtype='f4')": "measured",
        "measured = measured[:4]": "measured",
        "def update(carry, z):\n    return carry, carry[0] + z": "update",
        "for system.R in (1.0, 2.0):\n    path = track(jnp.ones(2))": "system",
    },
    (
        "system.log['second'] = path * 2",
        "System.dt = 0.2",
        "path = path * 0",
        "system.comment = 'constant velocity'",
        "backup = System(); backup.R = 3.0",
    ),
)

SAMPLER = Fitted(
    _IMPORTS
    + """
from perspex import random
key = random.key(0)
options = {'size': 0.5, 'burn': 10, 'target': {'name': 'normal', 'scale': 2.0}}
# %%
densities = {
    'normal': lambda x: -(x**2) / 2 / options['target']['scale'] ** 2,
    'laplace': lambda x: -abs(x) / options['target']['scale'],
}
accepted = []
# %%
def proposal(x, key):
    return x + options['size'] * random.normal(key)

@perspex.jit
def move(x, key):
    first, second = random.split(key)
    new, density = proposal(x, first), densities[options['target']['name']]
    return jnp.where(jnp.log(random.uniform(second)) < density(new) - density(x), new, x)
# %%
x = 0.0
for each in random.split(key, 3):
    x = move(x, each)
    accepted.append(float(x))
""",
    "perspex.vmap(move, (None, 0))(0.3, random.split(random.key(7), 20))",
    {
        "options['size'] = 2.0": "options",
        "options['target']['scale'] = 0.2": "options",
        "options['target'] = {'name': 'laplace', 'scale': 0.1}": "options",
        "densities['normal'] = lambda x: -(x**4) * 50": "densities",
        "def proposal(x, key):\n    return -x + random.normal(key)": "proposal",
    },
    (
        "options['burn'] = 100",
        "options['target']['title'] = 'posterior'",
        "densities['cauchy'] = lambda x: -jnp.log1p(x**2)",
        "accepted.sort()",
        "key = random.key(1)",
    ),
)

BANDIT = Fitted(
    _IMPORTS
    + """
class Arm:
    def __init__(self, mean): self.mean, self.pulls = mean, 0
class Bandit:
    explore = 0.1
    def __init__(self, *means):
        self.arms = tuple(map(Arm, means))
        self.paid = []
    @property
    def means(self): return jnp.array([arm.mean for arm in self.arms])
    def pay(self, i):
        self.arms[i].pulls += 1
        self.paid.append(i)
bandit = Bandit(0.1, 0.7, 0.4)
# %%
beta, bonus = 2.0, {0: 0.0, 1: 0.0, 2: 0.5}
# %%
def policy(q):
    return perspex.nn.softmax(beta * q) * (1 - bandit.explore) + bandit.explore / len(bandit.arms)

@perspex.jit
def value(q):
    return (policy(q) * (bandit.means + jnp.array(list(bonus.values())))).sum()
# %%
for i in range(3):
    bandit.pay(i)
    value(jnp.arange(3.0))
""",
    "value(jnp.array([0.2, 0.9, 0.4]))",
    {
        "beta = 0.5": "beta",
        "bonus[1] = 1.0": "bonus",
        "bandit.arms[0].mean = 5.0": "bandit",
        "bandit = Bandit(0.9, 0.9, 0.1)": "bandit",
        "bandit.explore = 0.9": "bandit",
        "Bandit.explore = 0.5": "bandit",
        "for arm in bandit.arms: arm.mean += arm.pulls": "bandit",
        "beta *= 0.9\nvalue(jnp.array([0.2, 0.9, 0.4]))": "beta",
    },
    (
        "bandit.pay(0)",
        "for i in range(3):\n    bandit.pay(i)\n    value(jnp.arange(3.0))",
        "bandit.paid = []",
        "Arm(0.3).mean = 4.0",
    ),
)

IMAGE = Fitted(
    _IMPORTS
    + """
import functools
image = np.outer(np.hanning(6), np.hanning(6)).astype('f4')
edge = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]], 'f4')
kernels = {'box': np.ones((3, 3), 'f4') / 9, 'edge': edge}
recipe = ['box', 'edge']
# %%
mode, strength = 'same', 0.5
clip = (0.0, 1.0)
# %%
def blur(x, name):
    return perspex.scipy.signal.convolve2d(x, kernels[name], mode=mode)

@functools.partial(perspex.jit, static_argnames='rounds')
def sharpen(x, rounds=1):
    for _ in range(rounds):
        for name in recipe:
            x = x - strength * blur(x, name)
    return x.clip(*clip)
# %%
shown = {'first': np.asarray(sharpen(image))}
""",
    "sharpen(np.eye(6, dtype='f4'), rounds=2)",
    {
        "strength = 0.1": "strength",
        "kernels['edge'] = -kernels['edge']": "kernels",
        "kernels['box'][1, 1] = 1.0": "kernels",
        "recipe.reverse(); recipe.pop()": "recipe",
        "recipe = ['box'] * 3": "recipe",
        "clip = (0.2, 0.6)": "clip",
    },
    (
        "kernels['sobel'] = np.ones((3, 3), 'f4')",
        "shown['second'] = np.asarray(sharpen(image, rounds=3))",
        "image *= 2",
        "image = sharpen(image)",
    ),
)

TRAINER = Fitted(
    _IMPORTS
    + """
from collections import namedtuple, deque
Optimizer = namedtuple('Optimizer', 'rate momentum name')
optimizer = Optimizer(0.1, 0.9, 'sgd')
schedule = [1.0, 0.5, 0.1]
epoch = 0
recent = deque(maxlen=3)
# %%
def clipped(g, most=1.0): return jnp.clip(g, -most, most)

def make_step(loss):
    slope = perspex.grad(loss)
    def step(w, v):
        v = optimizer.momentum * v - optimizer.rate * schedule[epoch] * clipped(slope(w))
        return w + v, v
    return perspex.jit(step)

center = np.array([1.0, -1.0], 'f4')
def loss(w): return ((w - center) ** 2).sum()
step = make_step(loss)
# %%
w, v = jnp.zeros(2), jnp.zeros(2)
for _ in range(3):
    w, v = step(w, v)
    recent.append(float(loss(w)))
""",
    "step(jnp.array([0.8, -0.2]), jnp.ones(2))",
    {
        "optimizer = optimizer._replace(rate=0.01)": "optimizer",
        "optimizer = Optimizer(0.1, 0.5, 'heavy')": "optimizer",
        "schedule[0] = 0.3": "schedule",
        "epoch = 2": "epoch",
        "for epoch in range(3):\n    w, v = step(w, v)": "epoch",
        "center[0] = 0.5": "center",
        "clipped.__defaults__ = (0.01,)": "most",
        "def clipped(g): return g / 2": "clipped",
    },
    (
        "optimizer = optimizer._replace(name='nesterov')",
        "schedule.append(0.01)",
        "recent.append(0.0)",
        "w, v = step(w, v)",
        "schedule[2] = 0.2",
    ),
)

NOTEBOOKS = {
    "regression": REGRESSION,
    "classifier": CLASSIFIER,
    "language": LANGUAGE,
    "predators": PREDATORS,
    "process": PROCESS,
    "filter": FILTER,
    "sampler": SAMPLER,
    "bandit": BANDIT,
    "image": IMAGE,
    "trainer": TRAINER,
}

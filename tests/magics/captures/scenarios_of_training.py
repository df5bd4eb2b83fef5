"""Cells of training notebooks: what makes a compiled step stale there, and what does not.

As in `scenarios`: each defines `f`, which is called, and changes something.
"""

from __future__ import annotations

JIT = "@perspex.jit\n"

_CONFIG = """
import dataclasses
@dataclasses.dataclass
class Optim:
    lr: float = 0.1
    decay: float = 0.0
@dataclasses.dataclass
class Config:
    optim: Optim = dataclasses.field(default_factory=Optim)
    width: int = 4
    layers: list = dataclasses.field(default_factory=lambda: [2, 3])
    name: str = 'run'
cfg = Config()
"""
_MODEL = """
class Linear:
    def __init__(self, n):
        self.w, self.b, self.name = jnp.ones(n), 0.5, 'linear'
    def __call__(self, x): return (x * self.w).sum() + self.b
class Model:
    def __init__(self):
        self.layers = [Linear(2), Linear(3)]
        self.scale, self.training, self.calls = 2.0, True, 0
    def __call__(self, x):
        for layer in self.layers: x = layer(x)
        return x * self.scale if self.training else x
model = Model()
"""
_SCHEDULE = """
class Schedule:
    def __init__(self): self.base, self.step, self.history = 0.1, 0, []
    @property
    def rate(self): return self.base / (1 + self.step)
    def advance(self): self.step += 1
    def note(self, v): self.history.append(v)
schedule = Schedule()
"""
_DATA = """
data = np.linspace(0., 1., 6).astype('f4')
labels = np.arange(6)
mean, std = data.mean(), data.std()
"""
_LOSSES = """
def mse(a): return a ** 2
def mae(a): return abs(a)
losses = {'mse': mse, 'mae': mae}
weights = {'mse': 1.0, 'mae': 0.0}
"""
_TRAINER = """
class Trainer:
    def __init__(self, rate):
        self.rate, self.log, self.best = rate, [], None
        self.step = perspex.jit(self._step)
    def _step(self, x): return x - self.rate * x
trainer = Trainer(0.1)
def f(x): return trainer.step(x)
"""


def _f(before: str, returns: str) -> str:
    return f"{before}\n{JIT}def f(x): return {returns}"


STALE = {
    # ---- settings
    "a rate in a nested config": (_f(_CONFIG, "x * cfg.optim.lr"), "cfg.optim.lr = 0.2"),
    "another optimizer": (_f(_CONFIG, "x * cfg.optim.lr"), "cfg.optim = Optim(lr=0.3)"),
    "a list of widths": (_f(_CONFIG, "x * sum(cfg.layers)"), "cfg.layers.append(9)"),
    "a width by setattr": (
        _f(_CONFIG, "x * cfg.width"),
        "for k, v in {'width': 8}.items(): setattr(cfg, k, v)",
    ),
    "replace of a nested config": (
        _f(_CONFIG, "x * cfg.optim.lr"),
        "cfg = dataclasses.replace(cfg, optim=Optim(0.4))",
    ),
    "asdict": (_f(_CONFIG, "x * dataclasses.asdict(cfg)['width']"), "cfg.width = 7"),
    "a config that is unpacked": (
        _f(
            _CONFIG + "def scaled(x, lr, decay): return x * lr + decay",
            "scaled(x, **vars(cfg.optim))",
        ),
        "cfg.optim.decay = 0.5",
    ),
    "a local name for a part": (
        _f(_CONFIG + "optim = cfg.optim", "x * optim.lr"),
        "cfg.optim.lr = 0.9",
    ),
    "constants of a sweep": (_f("rate = 0.1", "x * rate"), "for rate in (0.2, 0.3): y = f(2.0)"),
    "a setting from a tuple": (_f("lo, hi = 0.0, 1.0", "x.clip(lo, hi)"), "lo, hi = -1.0, 3.0"),
    # ---- models
    "a layer's weights": (
        _f(_MODEL, "model(x)"),
        "model.layers[0].w = model.layers[0].w * 2",
    ),
    "a layer's bias": (_f(_MODEL, "model(x)"), "model.layers[1].b -= 0.1"),
    "a layer more": (_f(_MODEL, "model(x)"), "model.layers.append(Linear(1))"),
    "eval mode": (_f(_MODEL, "model(x)"), "model.training = False"),
    "a scale by setattr": (_f(_MODEL, "model(x)"), "setattr(model, 'scale', 5.0)"),
    "a new model": (_f(_MODEL, "model(x)"), "model = Model(); model.scale = 7.0"),
    "a patched forward": (
        _f(_MODEL, "model(x)"),
        "Linear.__call__ = lambda self, x: x * 3",
    ),
    "layers in reverse": (
        _f(_MODEL + "model.layers[0].b = 0.9", "model(x)"),
        "model.layers.reverse()",
    ),
    "an ensemble": (
        _f(_MODEL + "models = {'a': Model(), 'b': Model()}", "sum(m(x) for m in models.values())"),
        "models['c'] = Model()",
    ),
    "a dict of parameters": (
        _f("params = {'dense': {'w': jnp.ones(2)}}", "(x * params['dense']['w']).sum()"),
        "params = perspex.tree.map(lambda w: w + 1, params)",
    ),
    "a dict of parameters in place": (
        _f("params = {'dense': {'w': jnp.ones(2)}}", "(x * params['dense']['w']).sum()"),
        "for p in params.values():\n    for k in p: p[k] = p[k] * 2",
    ),
    "a frozen part": (
        _f("frozen = {'bias'}", "x * (0.0 if 'weight' in frozen else 1.0)"),
        "frozen |= {'weight'}",
    ),
    # ---- schedules and loops
    "a schedule that advances": (_f(_SCHEDULE, "x * schedule.rate"), "schedule.advance()"),
    "a schedule that advances in a loop": (
        _f(_SCHEDULE, "x * schedule.rate"),
        "for _ in range(2):\n    schedule.advance()\n    f(2.0)",
    ),
    "a schedule's base": (_f(_SCHEDULE, "x * schedule.rate"), "schedule.base *= 0.5"),
    "a counter of epochs": (
        _f("epoch = 0", "x * (1.0 + epoch)"),
        "for epoch in range(1, 3):\n    f(2.0)",
    ),
    "a temperature that anneals": (
        _f("temperature = 1.0", "x / temperature"),
        "while temperature > 0.3:\n    temperature *= 0.5\n    f(2.0)",
    ),
    "warmup by a lambda": (
        _f("warm = 10\nrate = lambda: 1.0 / warm", "x * rate()"),
        "warm = 100",
    ),
    "a closure over an epoch": (
        "def make(epoch):\n    state = {'epoch': epoch}\n    @perspex.jit\n"
        "    def f(x): return x * state['epoch']\n    return f, state\nf, state = make(1)",
        "state['epoch'] = 2",
    ),
    # ---- data
    "data in place": (_f(_DATA, "(x * data).sum()"), "data[:3] = 9."),
    "data by an operator": (_f(_DATA, "(x * data).sum()"), "data *= 2"),
    "data that is shuffled": (
        _f(_DATA, "(x * data)[0]"),
        "np.random.default_rng(0).shuffle(data)",
    ),
    "data that is standardized": (_f(_DATA, "(x * data).sum()"), "data = (data - mean) / std"),
    "a mean": (_f(_DATA, "x - mean"), "mean = (data + 1).mean()"),
    "fewer labels": (_f(_DATA, "x * len(labels)"), "labels = labels[:3]"),
    "a view of the data": (
        _f(_DATA + "half = data[:3]", "(x * half).sum()"),
        "data[0] = 100.",
    ),
    "a vocabulary": (
        _f("vocabulary = {'a': 0, 'b': 1}", "x * len(vocabulary)"),
        "vocabulary.setdefault('c', 2)",
    ),
    "a mask": (_f("mask = np.array([1., 0.])", "(x * mask).sum()"), "np.copyto(mask, [1., 1.])"),
    # ---- losses
    "the weight of a loss": (
        _f(_LOSSES, "sum(weights[k] * losses[k](x) for k in losses)"),
        "weights['mae'] = 0.5",
    ),
    "a loss that is replaced": (
        _f(_LOSSES, "losses['mse'](x)"),
        "losses['mse'] = lambda a: a ** 4",
    ),
    "a loss that is defined again": (_f(_LOSSES, "mse(x)"), "def mse(a): return a ** 2 / 2"),
    "one loss more": (
        _f(_LOSSES, "sum(weights.get(k, 1.0) * g(x) for k, g in losses.items())"),
        "losses['cubic'] = lambda a: a ** 3",
    ),
    "a choice of loss": (_f(_LOSSES + "kind = 'mse'", "losses[kind](x)"), "kind = 'mae'"),
    # ---- trainers
    "a trainer's rate": (_TRAINER, "trainer.rate = 0.5"),
    "a trainer's rate, by update": (_TRAINER, "trainer.__dict__.update(rate=0.7)"),
}

FRESH = {
    "a name in a config": (_f(_CONFIG, "x * cfg.optim.lr"), "cfg.name = 'second'"),
    "another field of a part": (_f(_CONFIG, "x * cfg.optim.lr"), "cfg.optim.decay = 0.1"),
    "a width that is not read": (_f(_CONFIG, "x * cfg.optim.lr"), "cfg.width = 99"),
    "an equal config": (_f(_CONFIG, "x * cfg.optim.lr"), "cfg = Config()"),
    "a copy of a config": (
        _f(_CONFIG, "x * cfg.optim.lr"),
        "import copy\nother = copy.deepcopy(cfg); other.optim.lr = 5.0",
    ),
    "the length behind widths": (_f(_CONFIG, "x * len(cfg.layers)"), "cfg.layers[0] = 7"),
    "parameters as arguments": (
        "params = {'w': jnp.ones(2)}\n@perspex.jit\n"
        "def step(params, x): return (x * params['w']).sum()\n"
        "def f(x): return step(params, x)",
        "params = {'w': params['w'] * 2}",
    ),
    "parameters as arguments, in a loop": (
        "params = jnp.ones(2)\n@perspex.jit\n"
        "def step(params, x): return params - 0.1 * x\n"
        "def f(x): return step(params, x)",
        "for _ in range(3): params = step(params, 2.0)",
    ),
    "a rate as an argument": (
        "rate = 0.1\n@perspex.jit\ndef step(x, rate): return x * rate\n"
        "def f(x): return step(x, rate)",
        "rate = 0.2",
    ),
    "a layer's name": (_f(_MODEL, "model(x)"), "model.layers[0].name = 'first'"),
    "calls of a model": (_f(_MODEL, "model(x)"), "model.calls += 1"),
    "a second model": (_f(_MODEL, "model(x)"), "other = Model(); other.scale = 9.0"),
    "a method that nobody calls": (_f(_MODEL, "model(x)"), "Model.save = lambda self: None"),
    "a model's history": (_f(_MODEL, "model(x)"), "model.history = [float(f(2.0))]"),
    "the shape behind a layer": (
        _f(_MODEL, "x * model.layers[0].w.shape[0]"),
        "model.layers[0].w = model.layers[0].w * 3",
    ),
    "one layer of two": (_f(_MODEL, "model.layers[0](x)"), "model.layers[1].b = 9.0"),
    "a schedule's notes": (_f(_SCHEDULE, "x * schedule.rate"), "schedule.note(0.3)"),
    "a schedule's notes, same cell": (
        _f(_SCHEDULE, "x * schedule.rate"),
        "schedule.note(0.3)\nf(2.0)",
    ),
    "another schedule": (_f(_SCHEDULE, "x * schedule.rate"), "Schedule().advance()"),
    "a counter of the loop": (_f("rate = 0.1", "x * rate"), "for epoch in range(3): f(2.0)"),
    "a history": (
        _f("rate, history = 0.1, []", "x * rate"),
        "for _ in range(3): history.append(float(f(2.0)))",
    ),
    "the best of a history": (
        _f("best, rate = None, 0.1", "x * rate"),
        "best = min(best or 9.0, float(f(2.0)))",
    ),
    "data as an argument": (
        _DATA + "\n@perspex.jit\ndef step(data): return data.sum()\ndef f(x): return step(data)",
        "data = data * 2",
    ),
    "labels behind a length": (_f(_DATA, "x * len(labels)"), "labels[0] = 5"),
    "data behind a mean": (_f(_DATA, "x - mean"), "data = data + 1"),
    "data behind a shape": (_f(_DATA, "x * data.shape[0]"), "data *= 3"),
    "data behind a dtype": (_f(_DATA, "x.astype(data.dtype)"), "data = data + 1"),
    "a batch": (
        _DATA + "\n@perspex.jit\ndef step(batch): return batch.sum()\n"
        "def f(x): return step(data[:2])",
        "for i in range(0, 6, 2): step(data[i : i + 2])",
    ),
    "the values of a vocabulary": (
        _f("vocabulary = {'a': 0, 'b': 1}", "x * len(vocabulary)"),
        "vocabulary['a'] = 7",
    ),
    "another loss": (_f(_LOSSES, "losses['mse'](x)"), "losses['mae'] = lambda a: a"),
    "the weight of another loss": (
        _f(_LOSSES, "weights['mse'] * losses['mse'](x)"),
        "weights['mae'] = 0.5",
    ),
    "one loss more that nobody reads": (
        _f(_LOSSES, "losses['mse'](x)"),
        "losses['cubic'] = lambda a: a ** 3",
    ),
    "a comment in a loss": (
        _f(_LOSSES, "mse(x)"),
        "def mse(a):\n    # the mean is taken elsewhere\n    return a ** 2",
    ),
    "a trainer's log": (_TRAINER, "trainer.log.append(1.0)"),
    "a trainer's best": (_TRAINER, "trainer.best = float(f(2.0))"),
    "another trainer": (_TRAINER, "other = Trainer(0.9); other.rate = 0.8"),
    "a plot": (
        _f("rate, style = 0.1, {'color': 'red'}", "x * rate"),
        "style['color'] = 'blue'",
    ),
    "a seed of NumPy": (_f("rate = 0.1", "x * rate"), "np.random.seed(0)"),
    "a timer": (
        "import time\nbegun = time.time()\n" + JIT + "def f(x): return x * 2",
        "begun = time.time()",
    ),
}

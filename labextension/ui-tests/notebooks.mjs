/** What the notebooks of the tests hold. */

export const TOUR = [
  'import perspex\nimport perspex.numpy as jnp\nfrom perspex import jit, lax, random\n\nx = jnp.linspace(0, 1, 200_000)\nkey = random.key(0)',
  '@jit\ndef energy(x):\n    y = jnp.sin(x)\n    return y @ y + jnp.cos(x).sum()\n\nenergy(x)',
  'energy(x[:100_000])',
  'a = random.normal(key, (3,))\nb = random.uniform(key, (3,))\nfirst, second = random.split(random.fold_in(key, 3))\nc = random.normal(first, (4,))',
  '@jit\ndef settle(w):\n    def step(state, x):\n        moved = jnp.tanh(state @ w)\n        return moved + x, moved.sum()\n    return lax.scan(step, w, jnp.arange(8.0))\n\nweights = jnp.ones((300, 300)) / 300\nfor _ in range(20):\n    end, sums = settle(weights)'
];

/** A value that goes stale, and a program that shows why. */
export const STALE = [
  'import jax, jax.numpy as jnp\n\nrate = 0.1\nx = jnp.linspace(0, 1, 5)',
  '@jax.jit\ndef step(x):\n    slope = jnp.cos(x) * x\n    return x - rate * slope\n\nstep(x)',
  'rate = 0.5',
  'step(x)'
];

/** Text that wants to be markup, to turn the line around, to ring, and to fill the page. */
export const HOSTILE = [
  '"<img src=x onerror=window.hacked=1>"; "\\u202egnp.exe\\u2066"; import perspex, perspex.numpy as jnp',
  [
    '"<img src=x onerror=window.hacked=2> \u202e\u2066 </script><script>window.hacked=3</script>"; 1 + 1',
    'def f(x):',
    '    "<img src=x onerror=window.hacked=4>"',
    '    return jnp.sin(x) * 2  # <img src=x onerror=window.hacked=5> \u202e',
    'f.__name__ = "<img src=x onerror=window.hacked=6>\u202e" + "n" * 100_000',
    'g = perspex.jit(f)',
    'g(jnp.ones(7))',
    'globals()["<b onmouseover=window.hacked=7>" + "v" * 100_000] = jnp.ones(1000)',
    'globals()["w" * 100_000] = globals()["<b onmouseover=window.hacked=7>" + "v" * 100_000]'
  ].join('\n'),
  `"${'long '.repeat(200_000)}"; 2 + 2`
];

/** Each widget, and values of all kinds. */
export const WIDGETS = [
  [
    'import perspex, perspex.numpy as jnp',
    'from perspex import random',
    '@perspex.jit',
    'def step(x):',
    '    return jnp.tanh(x @ x).sum()',
    'step(jnp.ones((4, 4)))',
    'sub = random.split(random.key(42))[1]',
    'a = random.normal(sub, (3,))'
  ].join('\n'),
  'perspex.key_explorer(sub)',
  'perspex.show(step, jnp.ones((4, 4)))',
  'perspex.timings(step, jnp.ones((4, 4)), seconds=0.05)',
  'perspex.cache_view()',
  '{"a": jnp.ones((3, 40, 50)), "keys": random.split(random.key(7), 3), "f": [step, jnp.zeros(())]}',
  'step',
  'def grown(x):\n    return jnp.tanh(jnp.sin(x) @ x).sum()\nperspex.show(grown, jnp.ones((4, 4)))',
  [
    'from perspex import lax',
    'def grown(x):',
    '    y = jnp.sin(x) @ jnp.cos(x)',
    '    end, sums = lax.scan(lambda c, row: (jnp.tanh(c @ x) + row, c.sum()), y, x)',
    '    return jnp.tanh(y).sum() + sums.mean()',
    'perspex.show(grown, jnp.ones((4, 4)))'
  ].join('\n')
];

/** An array over eight devices. */
export const SHARDED = [
  [
    'import perspex, perspex.numpy as jnp',
    'from perspex.sharding import NamedSharding, PartitionSpec as P',
    'perspex.config.update("num_cpu_devices", 8)',
    'mesh = perspex.make_mesh((2, 4), ("x", "y"))',
    'x = (jnp.arange(960_000) % 97).reshape(1200, 800)',
    'x = perspex.device_put(x, NamedSharding(mesh, P("x", "y")))'
  ].join('\n'),
  'x',
  'x.sum(axis=0)'
];

/** Arrays over eight devices that exchange numbers, and a cluster of three processes. */
export const DEVICES = [
  [
    'import perspex, perspex.numpy as jnp',
    'from perspex import lax',
    'from perspex.sharding import NamedSharding, PartitionSpec as P',
    'perspex.config.update("num_cpu_devices", 8)',
    'mesh = perspex.make_mesh((2, 4), ("data", "model"))',
    'place = lambda x, spec: perspex.device_put(x, NamedSharding(mesh, spec))',
    'params = {"up": place(jnp.ones((256, 512)), P(None, "model")),',
    '          "down": place(jnp.ones((512, 256)), P("model"))}',
    'batch = place(jnp.ones((64, 256)), P("data"))'
  ].join('\n'),
  [
    '@perspex.jit',
    '@perspex.shard_map(mesh=mesh, in_specs=({"up": P(None, "model"), "down": P("model")}, P("data")), out_specs=P("data"))',
    'def layer(params, x):',
    '    inner = jnp.tanh(x @ params["up"])',
    '    part = inner @ params["down"]',
    '    return lax.psum(part, "model")',
    '',
    'out = layer(params, batch)'
  ].join('\n'),
  '%cluster start -n 3 --devices 2',
  '%%spmd\nimport time, perspex, numpy as np\nmesh = perspex.make_mesh((6,), ("x",))\nx = perspex.device_put(np.ones((6, 4000)), perspex.NamedSharding(mesh, perspex.P("x")))\ntotal = perspex.jit(lambda x: (x * 2).sum())(x)\ntime.sleep(0.1 * perspex.process_index())'
];

/** Widgets and values whose names want to be markup. */
export const HOSTILE_WIDGETS = [
  [
    'import perspex, perspex.numpy as jnp',
    'from perspex import random',
    'def f(x):',
    '    return jnp.sin(x) * 2  # <img src=x onerror=window.hacked=1> \u202e',
    'f.__name__ = "<img src=x onerror=window.hacked=2>\\u202e" + "n" * 1_000_000',
    'f = perspex.jit(f)',
    'f(jnp.ones(7))',
    'name = "<b onmouseover=window.hacked=3>\\u2066" + "k" * 1_000_000',
    'globals()[name] = key = random.key(3)'
  ].join('\n'),
  'perspex.show(f, jnp.ones(7))',
  'perspex.timings(f, jnp.ones(7), seconds=0.02)',
  'perspex.cache_view()',
  'perspex.key_explorer(globals()[name])',
  '{name: [f, key, jnp.ones(3)]}',
  'f'
];

/** Makes `views`, each widget by the name of its module, in a Python without a kernel. */
export const VIEWS = `
import json
from unittest.mock import patch
from IPython.core.interactiveshell import InteractiveShell
import perspex, perspex.numpy as jnp
from perspex import random
from perspex_magics.widgets import cache_view, key_explorer, show, timings

InteractiveShell.instance().extension_manager.load_extension("perspex")

@perspex.jit
def step(x):
    return jnp.tanh(x @ x).sum()

step(jnp.ones((4, 4)))
views = {}
for module, view in (
    (show, lambda: show.show(step, jnp.ones((4, 4)))),
    (timings, lambda: timings.timings(step, jnp.ones((4, 4)), seconds=0.02)),
    (cache_view, lambda: cache_view.cache_view()),
    (key_explorer, lambda: key_explorer.key_explorer(random.key(42))),
):
    with patch.object(module, "shown", lambda made: made):
        views[module.__name__.rpartition(".")[2]] = view()
`;

/** What is to be seen of each of them. */
export const SEEN = {
  show: ['Jaxpr', 'tanh'],
  timings: ['call', 'wait'],
  cache_view: ['function', 'step'],
  key_explorer: ['random.key(42)', '0000002a']
};

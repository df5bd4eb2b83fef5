"""Random notebooks: definitions, jitted functions that read them, and what a user does with both.

A notebook here is the list of the texts of its cells in the order in which they run. Changes that
Perspex documents as unseen stay out: reflection by computed names, a change inside a function with
a call in the same cell, and state outside Python's objects (`docs/truth/stale-captures.md`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

# What a variable may be: how it is made, how statements change it, and what code reads of it.
# `{n}` is its name, `{v}` and `{w}` are numbers.
KINDS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "number": (
        ["{n} = {v}", "{n} = {v} + 0.0", "{n}: float = {v}"],
        ["{n} = {v}", "{n} += {v}", "{n} = {n} * 1", "{n}, other = {v}, {n}", "({n} := {v})"]
        + ["if True:\n    {n} = {v}", "try:\n    {n} = {v}\nfinally:\n    pass"]
        + ["match [{v}]:\n    case [{n}]: pass", "[{n}] = [{v}]", "del {n}"],
        ["{n}", "abs({n})", "({n} if {n} > 1 else 0.5)", "float({n})", "sum({n} for _ in (1, 2))"],
    ),
    "word": (
        ["{n} = 'plus'", "{n} = 'minus'"],
        ["{n} = 'plus'", "{n} = 'minus'", "{n} = {n} + '!'", "{n} = {n}[:4]"],
        ["len({n})", "(1.0 if {n} == 'plus' else -1.0)", "{{'plus': 2.0}}.get({n}, 3.0)"],
    ),
    "list": (
        ["{n} = [{v}, {w}]", "{n} = [{v}, {w}, {v}]", "{n} = [{v} for _ in range(2)]"],
        ["{n}[0] = {v}", "{n}.append({v})", "{n}.pop()", "{n} += [{v}]", "{n}[:] = [{v}, {w}]"]
        + ["{n}.sort()", "{n}.reverse()", "{n} = [*{n}, {v}]", "del {n}[0]", "{n} *= 2"]
        + ["alias = {n}\nalias[0] = {v}", "{n}.insert(0, {v})", "{n} = list({n})"]
        + ["for _ in range(2):\n    {n}.append({v})", "{n}[-1] += {v}", "{n}.extend([{v}])"],
        ["{n}[0]", "sum({n})", "len({n})", "max({n})", "sum(v * 2 for v in {n})", "{n}[-1]"],
    ),
    "dict": (
        ["{n} = {{'a': {v}, 'b': {w}}}", "{n} = dict(a={v}, b={w}, c=1.0)"],
        ["{n}['a'] = {v}", "{n}.update(a={v})", "{n}['b'] += {v}", "{n} |= {{'a': {v}}}"]
        + ["{n} = {{**{n}, 'a': {v}}}", "{n}.pop('b', None)", "{n}['c'] = {v}", "{n}.clear()"]
        + ["{n}.setdefault('c', {v})", "alias = {n}\nalias['a'] = {v}", "del {n}['a']"]
        + ["{n} = dict({n})"],
        ["{n}['a']", "{n}.get('b', 4.0)", "sum({n}.values())", "({v} if 'c' in {n} else 0.0)"]
        + ["len({n})", "sum(v for k, v in {n}.items() if k != 'a')"],
    ),
    "tree": (
        ["{n} = {{'w': [{v}, {w}], 'o': {{'lr': {v}}}}}"],
        [
            "{n}['o']['lr'] = {v}",
            "{n}['w'][0] = {v}",
            "{n}['w'].append({v})",
            "{n}['o'] = dict(lr={v})",
        ]
        + ["inner = {n}['o']\ninner['lr'] = {v}", "{n}['w'], {n}['o'] = [{w}], {n}['o']"],
        ["{n}['o']['lr']", "sum({n}['w'])", "{n}['w'][-1]"],
    ),
    "array": (
        ["{n} = np.array([{v}, {w}])", "{n} = np.full(3, {v})"],
        ["{n}[0] = {v}", "{n} *= 2", "{n} = {n} + {v}", "np.copyto({n}, {v})", "{n}.fill({v})"]
        + [
            "{n}[:] = {w}",
            "{n}.sort()",
            "part = {n}[:1]\npart[0] = {v}  # alone",
            "{n} = {n}.copy()",
        ]
        + ["np.add({n}, {v}, out={n})", "{n}[{n} > 1] = {v}"],
        ["{n}.sum()", "{n}[0]", "{n}.max()", "len({n})", "({n} * x).sum()"],
    ),
    "device array": (
        ["{n} = jnp.array([{v}, {w}])", "{n} = jnp.full(3, {v})"],
        ["{n} = {n} + {v}", "{n} = jnp.array([{w}, {v}])", "{n} = {n} * 1"],
        ["{n}.sum()", "{n}[0]", "{n}.max()", "({n} * x).sum()", "{n}.shape[0]"],
    ),
    "record": (
        [
            "@dataclass\nclass C{n}:\n    a: float = {v}\n    def twice(self): return 2 * self.a\n"
            "{n} = C{n}({w})"
        ]
        + [
            "@dataclass\nclass C{n}:\n    a: float = {v}\n    def twice(self): return 3 * self.a\n"
            "{n} = C{n}()"
        ],
        ["{n}.a = {v}", "{n} = replace({n}, a={v})", "setattr({n}, 'a', {v})", "{n}.a += {v}"]
        + ["C{n}.twice = lambda self: {v} * self.a", "{n} = C{n}({v})", "{n} = replace({n})"]
        + ["with_a = {n}\nwith_a.a = {v}"],
        ["{n}.a", "{n}.twice()"],
    ),
    "object": (
        [
            "class C{n}:\n    bias = {v}\n    def __init__(self, w): self.w = w\n"
            "    def __call__(self, x): return x * self.w + self.bias\n{n} = C{n}({w})"
        ]
        + [
            "class C{n}:\n    bias = {v}\n    def __init__(self, w): self.w = w\n    @property\n"
            "    def half(self): return self.w / 2\n"
            "    def __call__(self, x): return x * self.half - self.bias\n{n} = C{n}({w})"
        ],
        ["{n}.w = {v}", "C{n}.bias = {v}", "{n}.bias = {v}", "{n} = C{n}({v})", "{n}.w *= 2"]
        + [
            "C{n}.__call__ = lambda self, x: x + {v}",
            "vars({n})['w'] = {v}  # alone",
            "{n}.w = {n}.w",
        ],
        ["{n}.w", "{n}({v})", "{n}(x)", "{n}.bias", "C{n}.bias"],
    ),
    "namespace": (
        ["{n} = SimpleNamespace(a={v}, b=[{w}])"],
        ["{n}.a = {v}", "{n}.b[0] = {v}", "{n}.b.append({v})", "{n} = SimpleNamespace(a={v}, b=[])"]
        + ["{n}.__dict__.update(a={v})  # alone", "{n}.b = [{v}, {v}]"],
        ["{n}.a", "sum({n}.b)", "len({n}.b)"],
    ),
    "counter": (
        [
            "def make{n}(s):\n    def bump():\n        nonlocal s\n        s += {v}\n"
            "    return (lambda: s), bump\n{n}, bump{n} = make{n}({w})"
        ],
        ["bump{n}()  # alone", "{n}, bump{n} = make{n}({v})", "bump{n}(); bump{n}()  # alone"],
        ["{n}()"],
    ),
    "set": (
        ["{n} = {{{v}, {w}}}", "{n} = frozenset([{v}])"],
        ["{n} = {{{v}}}", "{n} = {n} | {{{v}}}", "{n} = set({n})"],
        ["sum({n})", "len({n})", "(1.0 if {v} in {n} else 2.0)"],
    ),
    "module value": (
        ["def set{n}(v):\n    global {n}\n    {n} = v\nset{n}({v})"],
        ["set{n}({v})  # alone", "{n} = {v}", "set{n}({n})  # alone"],
        ["{n}", "{n} * 2"],
    ),
}
NUMBERS = ("1.0", "2.0", "3.0", "0.5", "-1.5", "4", "2")


@dataclass
class Writer:
    """Writes one notebook.

    `cells` are the texts of the cells that are on the page, and `steps` those that have run.
    """

    draw: random.Random
    cells: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    helpers: list[str] = field(default_factory=list)
    jitted: list[str] = field(default_factory=list)
    makers: dict[int, Callable[[], str]] = field(default_factory=dict)

    def write(self, length: int) -> list[str]:
        """The cells in the order in which they run, so many at least."""
        draw = self.draw
        for number in range(draw.randint(2, 4)):
            name = f"v{number}"
            self.variables[name] = draw.choice(list(KINDS))
            self.page(lambda name=name: self.definition(name))
        for number in range(draw.randint(0, 2)):
            self.page(lambda number=number: self.helper(number))
            self.helpers.append(f"h{number}")
        for number in range(draw.randint(1, 3)):
            self.page(lambda number=number: self.function(number))
            self.jitted.append(f"f{number}")
        if draw.random() < 0.4:
            self.page(self.traced_cell)
        self.steps = list(self.cells)
        self.steps += [self.call(name) for name in self.jitted]
        while len(self.steps) < length:
            self.steps.append(self.step())
        return self.steps

    def page(self, make: Callable[[], str]) -> None:
        self.makers[len(self.cells)] = make
        self.cells.append(make())

    def step(self) -> str:
        """What a user runs next."""
        draw = self.draw
        chance = draw.random()
        if chance < 0.35:
            return self.call(draw.choice(self.jitted))
        if chance < 0.6:
            change = self.change(draw.choice(list(self.variables)))
            if "# alone" not in change and draw.random() < 0.4:
                change += "\n" + self.call(draw.choice(self.jitted))
            return change
        if chance < 0.65:
            numbers = [n for n, kind in self.variables.items() if kind == "number"]
            if numbers:
                return self.loop(draw.choice(numbers))
        if chance < 0.7:
            return f"{draw.choice(self.jitted)}.retrace()"
        if chance < 0.73 and len(self.jitted) > 1:
            one, other = draw.sample(self.jitted, 2)
            return f"{one}, {other} = {other}, {one}"
        if chance < 0.76 and len(set(self.variables.values())) < len(self.variables):
            one, other = self.pair()
            return f"{one}, {other} = {other}, {one}"
        place = draw.randrange(len(self.cells))
        if draw.random() < 0.5:
            self.cells[place] = self.makers[place]()
        elif draw.random() < 0.2:
            self.cells[place] = f"# edited\n{self.cells[place]}"
            if self.cells[place].startswith("# edited\n%%"):
                self.cells[place] = self.makers[place]()
        return self.cells[place]

    def pair(self) -> tuple[str, str]:
        """Two variables of the same kind."""
        while True:
            one, other = self.draw.sample(list(self.variables), 2)
            if self.variables[one] == self.variables[other]:
                return one, other

    # ---- cells ------------------------------------------------------------------------------

    def number(self) -> str:
        return self.draw.choice(NUMBERS)

    def filled(self, template: str, name: str) -> str:
        return template.format(n=name, v=self.number(), w=self.number())

    def definition(self, name: str) -> str:
        return self.filled(self.draw.choice(KINDS[self.variables[name]][0]), name)

    def change(self, name: str) -> str:
        return self.filled(self.draw.choice(KINDS[self.variables[name]][1]), name)

    def read(self, calls: list[str]) -> str:
        """An expression of `x` and of what the notebook holds."""
        if calls and self.draw.random() < 0.4:
            return f"{self.draw.choice(calls)}(x)"
        name = self.draw.choice(list(self.variables))
        return self.filled(self.draw.choice(KINDS[self.variables[name]][2]), name)

    def body(self, calls: list[str]) -> str:
        lines = ["y = x * 1.0"]
        for _ in range(self.draw.randint(1, 3)):
            value = self.read(calls)
            lines += self.draw.choice(
                [
                    [f"y = y + {value}"],
                    [f"y = y * {value}"],
                    [f"y += {value}"],
                    [f"for _ in range(2): y = y - {value}"],
                    [f"def inner(x): return {value}", "y = y + inner(x)"],
                    [f"y = fori_loop(0, 2, lambda i, c: c + {value}, y)"],
                    ["try:", f"    y = y + {value}", "except (KeyError, IndexError):"]
                    + ["    y = y - 1"],
                    [f"y = y + (lambda x: {value})(x * 2)"],
                ]
            )
        return "".join(f"    {line}\n" for line in [*lines, "return y"])

    def helper(self, number: int) -> str:
        calls = [name for name in self.helpers if name < f"h{number}"]
        return f"def h{number}(x):\n{self.body(calls)}"

    def function(self, number: int) -> str:
        """A jitted function, which may call helpers and the jitted functions before it."""
        draw = self.draw
        name = f"f{number}"
        calls = self.helpers + [f"f{at}" for at in range(number)]
        chance = draw.random()
        if chance < 0.5:
            return f"@jit\ndef {name}(x):\n{self.body(calls)}"
        if chance < 0.65:
            return f"{name} = jit(lambda x: x * {self.read(calls)} + {self.read(calls)})"
        if chance < 0.75:
            value = self.read([]) if draw.random() < 0.5 else self.number()
            value = value.replace("x", "2.0") if "x" in value and "max" not in value else value
            made = f"def make(s):\n    return lambda x: x * s + {self.read(calls)}\n"
            return made + f"{name} = jit(make({value.replace('max', 'sum')}))"
        if chance < 0.8:
            made = f"def part(s, x):\n    return x * s + {self.read(calls)}\n"
            return made + f"{name} = jit(partial(part, {self.number()}))"
        if chance < 0.85:
            return f"@jit\ndef {name}(x, s={self.number()}):\n    return x * s + {self.read(calls)}"
        if self.helpers:
            helper = draw.choice(self.helpers)
            return draw.choice(
                [
                    f"{name} = jit({helper})",
                    f"{name} = jit(grad({helper}))",
                    f"{name} = jit(lambda x: vmap({helper})(x * jnp.ones(2)).sum())",
                ]
            )
        return f"@jit\ndef {name}(x):\n    return x + {self.read(calls)}"

    def traced_cell(self) -> str:
        """A cell under `%%jit`; what it assigns, no other cell reads."""
        value, other = self.read(self.helpers), self.read(self.helpers + self.jitted)
        return f"%%jit\nx = jnp.float32(2.0)\nout = x * 2.0 + {value}\nout * {other}"

    def call(self, name: str) -> str:
        return self.draw.choice([f"{name}(2.0)"] * 3 + [f"{name}(3.0)", f"{name}(np.float32(2.0))"])

    def loop(self, name: str) -> str:
        call = f"{self.draw.choice(self.jitted)}(2.0)"
        values = f"[{self.number()}, {self.number()}]"
        return f"seen = []\nfor {name} in {values}:\n    seen.append({call})\nseen"

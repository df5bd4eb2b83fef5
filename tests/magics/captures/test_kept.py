"""Whether something captured has changed: `jit`, `%%jit` and `%grad --jit` give one answer.

`jit` says it by its warning, the magics by tracing again. What counts is what
docs/truth/stale-captures.md promises, and each row says which it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from support.shells import Notebook, Told

from perspex.base import events

pytestmark = pytest.mark.usefixtures("default_policy")


class Row(NamedTuple):
    """What the notebook defines, with a function `h`; what happens then; whether it counts."""

    define: str
    change: str
    counts: bool


NUMBER = "k = 2.0\ndef h(x): return x * k"
HELPER = "def g(x): return x + 1\ndef h(x): return g(x) * 2"
NUMPY = "w = np.array([1.0, 2.0])\ndef h(x): return x * w.sum()"
DEVICE = "w = jnp.array([1.0, 2.0])\ndef h(x): return x * w.sum()"
LARGE = "w = jnp.arange(5_000.0)\ndef h(x): return x * w.sum()"
DICT = "cfg = {'lr': 0.5, 'layers': [1, 2]}\ndef h(x): return x * cfg['lr'] * sum(cfg['layers'])"
FROZEN = (
    "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass C:\n    lr: float = 0.5\n"
    "    note: str = ''\nc = C()\ndef h(x): return x * c.lr"
)
DATA = FROZEN.replace("(frozen=True)", "")
# Which fields these read stands nowhere in the code.
MADE = DATA[: DATA.index("def h")]
AS_DICT = f"{MADE}def h(x): return x * sum(map(len, map(str, dataclasses.asdict(c).values())))"
PRINTED = f"{MADE}def h(x): return x * len(repr(c))"
EQUAL = f"{MADE}d = C()\ndef h(x): return x if c == d else -x"
OBJECT = "class M: pass\nm = M()\nm.k, m.note = 2.0, 'old'\ndef h(x): return x * m.k"
METHOD = (
    "class M:\n    def __init__(self): self.k, self.note = 2.0, 'old'\n"
    "    def go(self, x): return x * self.k\nm = M()\ndef h(x): return m.go(x)"
)
CLOSURE = "def make(k):\n    def g(x): return x * k\n    return g\ng = make(2.0)\n"
CLOSURE += "def h(x): return g(x)"
DEFAULT = "def g(x, k=2.0): return x * k\ndef h(x): return g(x)"
SET = "on = {1, 2}\ndef h(x): return x * len(on)"
PAIR = "from typing import NamedTuple\nclass P(NamedTuple):\n    k: float\n    note: str = ''\n"
PAIR += "p = P(2.0)\ndef h(x): return x * p.k"
JITTED = "@perspex.jit\ndef g(x): return x + 1\ndef h(x): return g(x) * 2"
PARTIAL = "import functools\ng = functools.partial(pow, exp=2)\ndef h(x): return g(x)"
STRINGS = "names = [str(i) for i in range(100)]\ndef h(x): return x * len(names[0])"

ROWS = {
    "the same number": Row(NUMBER, "k = 2.0", False),
    "another number": Row(NUMBER, "k = 3.0", True),
    "a number of another type": Row(NUMBER, "k = 2", True),
    "the other zero": Row(NUMBER.replace("2.0", "0.0"), "k = -0.0", True),
    "another name": Row(NUMBER, "other = 2.0", False),
    "a NumPy array in place": Row(NUMPY, "w[1] = 5.0", True),
    "a NumPy array in place, with what it held": Row(NUMPY, "w[1] = 2.0", False),
    "an equal NumPy array": Row(NUMPY, "w = np.array([1.0, 2.0])", False),
    "another NumPy array": Row(NUMPY, "w = np.array([1.0, 3.0])", True),
    "an equal NumPy array of another type": Row(NUMPY, "w = w.astype(np.float32)", True),
    "an equal array": Row(DEVICE, "w = jnp.array([1.0, 2.0])", False),
    "another array": Row(DEVICE, "w = w + 1", True),
    "an equal array, which is large": Row(LARGE, "w = w * 1", False),
    "another large array": Row(LARGE, "w = w.at[4_000].set(0.0)", True),
    "an item of a dict": Row(DICT, "cfg['lr'] = 0.25", True),
    "an item of a dict, with what it held": Row(DICT, "cfg['lr'] = 0.5", False),
    "a new item of a dict": Row(DICT, "cfg['new'] = 1", False),
    "an equal dict": Row(DICT, "cfg = {'lr': 0.5, 'layers': [1, 2]}", False),
    "a list in a dict": Row(DICT, "cfg['layers'].append(3)", True),
    "a list that is as it was again": Row(DICT, "cfg['layers'].append(3); cfg['layers'].pop()", 0),
    "an item of a long list": Row(STRINGS, "names[7] = 'seven'", False),
    "an equal long list": Row(STRINGS, "names = list(names)", False),
    "an equal frozen dataclass": Row(FROZEN, "c = C()", False),
    "another frozen dataclass": Row(FROZEN, "c = C(0.25)", True),
    "a field that nobody reads": Row(FROZEN, "c = C(note='new')", False),
    "an equal dataclass": Row(DATA, "c = C()", False),
    "a dataclass defined again": Row(DATA, DATA, False),
    "a field": Row(DATA, "c.lr = 0.25", True),
    "a field, with what it held": Row(DATA, "c.lr = 0.5", False),
    "a field that is read by asdict": Row(AS_DICT, "c.note = 'new'", True),
    "a field that is read by repr": Row(PRINTED, "c.note = 'new'", True),
    "a field that is read by ==": Row(EQUAL, "c.note = 'new'", True),
    "a helper defined again": Row(HELPER, "def g(x): return x + 1", False),
    "a helper with a comment above": Row(HELPER, "# As before.\n\ndef g(x): return x + 1", False),
    "a helper with a comment": Row(HELPER, "def g(x):\n    # One more.\n    return x + 1", False),
    "a helper with a docstring": Row(HELPER, "def g(x):\n    'One more.'\n    return x + 1", False),
    "a helper with another constant": Row(HELPER, "def g(x): return x + 2", True),
    "a helper with another operation": Row(HELPER, "def g(x): return x - 1", True),
    "a helper with another default": Row(DEFAULT, "def g(x, k=3.0): return x * k", True),
    "a default in place": Row(DEFAULT, "g.__defaults__ = (3.0,)", True),
    "a helper with the same default": Row(DEFAULT, "def g(x, k=2.0): return x * k", False),
    "another closure": Row(CLOSURE, "g = make(3.0)", True),
    "an equal closure": Row(CLOSURE, "g = make(2.0)", False),
    "an attribute that is read": Row(OBJECT, "m.k = 3.0", True),
    "an attribute that is read, with what it held": Row(OBJECT, "m.k = 2.0", False),
    "an attribute that nobody reads": Row(OBJECT, "m.note = 'new'", False),
    "a new attribute that nobody reads": Row(OBJECT, "m.extra = 1", False),
    "an attribute that a method reads": Row(METHOD, "m.k = 3.0", True),
    "an attribute that no method reads": Row(METHOD, "m.note = 'new'", False),
    "an equal object": Row(METHOD, "m = M()", False),
    "a class defined again": Row(METHOD, METHOD, False),
    "another method": Row(METHOD, "def go(self, x): return x + self.k\nM.go = go", True),
    "a new method that nobody calls": Row(METHOD, "M.other = lambda self: 1", False),
    "an equal set": Row(SET, "on = {2, 1}", False),
    "another element of a set": Row(SET, "on.add(3)", True),
    "an equal named tuple": Row(PAIR, "p = P(2.0)", False),
    "another named tuple": Row(PAIR, "p = P(3.0)", True),
    "a jitted helper defined again": Row(JITTED, "@perspex.jit\ndef g(x): return x + 1", False),
    "another jitted helper": Row(JITTED, "@perspex.jit\ndef g(x): return x + 3", True),
    "an equal partial": Row(PARTIAL, "g = functools.partial(pow, exp=2)", False),
    "another partial": Row(PARTIAL, "g = functools.partial(pow, exp=3)", True),
    "a name that hides a built-in function": Row(
        "def h(x): return x * abs(-2.0)", "def abs(x): return 3.0", True
    ),
    "a count of traces": Row(
        "n = 0\ndef h(x):\n    global n\n    n += 1\n    return x * 2", "n = 7", False
    ),
    "a log": Row(
        "log = []\ndef h(x):\n    log.append(x.shape)\n    return x * 2", "log.clear()", 0
    ),
}


class Asked:
    """A notebook in which `h` is called by `jit`, by a cell under `%%jit`, and by `%grad --jit`."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def begin(self, define: str) -> None:
        self.told.ok(define)
        self.told.ok("f = perspex.jit(lambda x: h(x))\nx = jnp.array(3.0)")
        self.call()
        assert self.call() == {"jit": False, "%%jit": False, "%grad --jit": False}

    def call(self) -> dict[str, bool]:
        """Who says now that something has changed."""
        found = {}
        self.told.ok("y = f(x)")
        found["jit"] = bool(self.told.warnings)
        for name, cell in {"%%jit": "%%jit\ny = h(x)", "%grad --jit": "%grad --jit h(x)"}.items():
            traced: list[events.Event] = []
            stop = events.subscribe(traced.append, ["trace"])
            try:
                self.told.ok(cell)
            finally:
                stop()
            found[name] = bool({"cell", "h"} & {event.name for event in traced})
        return found


@pytest.fixture
def asked(told: Told) -> Asked:
    return Asked(told)


@pytest.mark.parametrize("name", ROWS)
def test_all_give_one_answer(asked: Asked, name: str) -> None:
    row = ROWS[name]
    asked.begin(row.define)
    asked.told.ok(row.change)
    assert asked.call() == dict.fromkeys(("jit", "%%jit", "%grad --jit"), bool(row.counts))


MODULE = "RATE = {}\nUNREAD = {}\ndef go(x): return x * RATE\n"
# What the module's file becomes, and whether that counts for who calls `own.go`.
RELOADED = {
    "the same": (MODULE.format(2.0, 1), False),
    "with a comment": ("# A comment.\n" + MODULE.format(2.0, 1), False),
    "another variable": (MODULE.format(3.0, 1), True),
    "a variable that nobody reads": (MODULE.format(2.0, 2), False),
    "another function": (MODULE.format(2.0, 1).replace("x *", "x +"), True),
}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of the user's own."""
    name = f"own_{tmp_path.name.rpartition('_')[2]}"
    path = tmp_path / f"{name}.py"
    path.write_text(MODULE.format(2.0, 1))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield path
    sys.modules.pop(name, None)


@pytest.mark.parametrize("case", RELOADED)
@pytest.mark.parametrize("by_name", [False, True])
def test_a_module_that_is_reloaded(asked: Asked, own: Path, case: str, by_name: bool) -> None:
    text, counts = RELOADED[case]
    define = "own.go(x)" if by_name else "go(x)"
    load = f"import importlib, {own.stem} as own\nimportlib.reload(own)\nfrom own_name import go"
    load = load.replace("own_name", own.stem)
    asked.begin(f"{load}\ndef h(x): return {define}")
    own.write_text(text)
    asked.told.ok(load)
    assert asked.call() == dict.fromkeys(("jit", "%%jit", "%grad --jit"), counts)


# Where nobody can tell whether it counts, a cell is traced again: what the cell reads, what is
# changed, and what `y` must be before and after.
IN_DOUBT = {
    "a name that is made": (
        "class M: pass\nm = M()\nm.k_1 = 2.0\ni = [1]\n"
        "def h(x): return x * getattr(m, f'k_{i[0]}')",
        "m.k_1 = 5.0",
        (6, 15),
    ),
    "all variables of an object": (
        "class M: pass\nm = M()\nm.k = 2.0\ndef h(x): return x * sum(vars(m).values())",
        "m.k = 5.0",
        (6, 15),
    ),
    "the dictionary of an object": (
        "class M: pass\nm = M()\nm.k = 2.0\ndef h(x): return x * sum(m.__dict__.values())",
        "m.k = 5.0",
        (6, 15),
    ),
    "code that was installed": (
        "import copy\nclass M: pass\nm = M()\nm.k = 2.0\n"
        "def h(x): return x * copy.copy(m).__getattribute__('k')",
        "m.k = 5.0",
        (6, 15),
    ),
    "a class with an installed one below": (
        "import string\nclass M(string.Template):\n    def go(self, x): return x * self.k\n"
        "m = M('')\nm.k = 2.0\ndef h(x): return m.go(x)",
        "m.k = 5.0",
        (6, 15),
    ),
    "an object of an installed class": (
        "import argparse\nm = argparse.Namespace(k=2.0)\nname = ['k']\n"
        "def h(x): return x * dict(m._get_kwargs())['k']",
        "m.k = 5.0",
        (6, 15),
    ),
    "what a registered container holds": (
        "class M: pass\nm = M()\nm.k = 2.0\n"
        "perspex.tree_util.register_pytree_node(M, lambda m: ((m.k,), None), lambda *_: M())\n"
        "def h(x): return x * sum(perspex.tree_util.tree_leaves(m))",
        "m.k = 5.0",
        (6, 15),
    ),
    "a pattern with a name": (
        "class M: pass\nm = M()\nm.k = 2.0\n"
        "def h(x):\n    match m:\n        case M(k=k): return x * k",
        "m.k = 5.0",
        (6, 15),
    ),
    "an attribute that the code assigns": (
        "class M:\n    def go(self, x):\n        self.k = self.k + 1\n        return x * self.k\n"
        "m = M()\nm.k = 1.0\ndef h(x): return m.go(x)",
        "m.k = 4.0",
        (6, 15),
    ),
    "a variable of a closure that the code assigns": (
        "def make():\n    k = 1.0\n    def g(x):\n        nonlocal k\n        k = k + 1\n"
        "        return x * k\n    def put(value):\n        nonlocal k\n        k = value\n"
        "    return g, put\ng, put = make()\ndef h(x): return g(x)",
        "put(4.0)",
        (6, 15),
    ),
    "an attribute of an element of a set": (
        "class M: pass\nm = M()\nm.k = 2.0\nms = {m}\ndef h(x): return x * [*ms][0].k",
        "m.k = 5.0",
        (6, 15),
    ),
    "an array of objects": (
        "w = np.array([[2.0], [3.0]], object)\ndef h(x): return x * w[0, 0]",
        "w[0, 0] = 5.0",
        (6, 15),
    ),
    "one element of a very large array": (
        "w = np.zeros(9_000_000)\nw[70_000] = 2.0\ndef h(x): return x * w[70_000]",
        "w[70_000] = 5.0",
        (6, 15),
    ),
    "behind two thousand objects": (
        "ms = [{'k': 2.0, 'l': [1]} for _ in range(700)]\ndef h(x): return x * ms[-1]['k']",
        "ms[-1]['k'] = 5.0",
        (6, 15),
    ),
    "a base class": (
        "class A: k = 2.0\nclass B: k = 5.0\nclass M(A): pass\nclass N(B): pass\n"
        "m = M()\ndef h(x): return x * m.k",
        "M.__bases__ = (B,)",
        (6, 15),
    ),
    "the class of an object": (
        "class M: k = 2.0\nclass N: k = 5.0\nm = M()\ndef h(x): return x * m.k",
        "m.__class__ = N",
        (6, 15),
    ),
    "a function that is registered for a type": (
        "import functools\n@functools.singledispatch\ndef g(by): return 2.0\n"
        "def h(x): return x * g([])",
        "g.register(list, lambda by: 5.0)",
        (6, 15),
    ),
    "bytes in place": ("b = bytearray([2])\ndef h(x): return x * b[0]", "b[0] = 5", (6, 15)),
    "what a default factory gives": (
        "from collections import defaultdict\nd = defaultdict(lambda: 2.0)\n"
        "def h(x): return x * dict.get(d, 'k', d.default_factory())",
        "d.default_factory = lambda: 5.0",
        (6, 15),
    ),
    "an attribute that another function gives": (
        "import functools\nclass M: pass\nm = M()\nm.k = 2.0\nname = ['k']\n"
        "get = functools.partial(getattr, m)\ndef h(x): return x * get(name[0])",
        "m.k = 5.0",
        (6, 15),
    ),
    "how another object is made": (
        "k = 2.0\nclass M:\n    def __init__(self): self.w = k\nm = M()\n"
        "def h(x): return x * type(m)().w",
        "k = 5.0",
        (6, 15),
    ),
    "eval by another name": (
        "k = 2.0\nrun = eval\ndef h(x): return x * run('k', globals_of)\nglobals_of = globals()",
        "k = 5.0",
        (6, 15),
    ),
    "what an expression is asked for by its text": (
        "k = 2.0\ndef h(x): return x * eval('k')",
        "k = 5.0",
        (6, 15),
    ),
}


@pytest.mark.parametrize("name", IN_DOUBT)
def test_in_doubt_a_cell_is_traced_again(notebook: Notebook, name: str) -> None:
    define, change, (before, after) = IN_DOUBT[name]
    notebook.ok(define + "\nx = jnp.array(3.0)")
    notebook.ok("%%jit\ny = h(x)")
    assert float(notebook.ns["y"]) == before
    # By another name, so that no statement shows what it is that changes.
    notebook.ok(change)
    notebook.ok("%%jit\ny = h(x)")
    assert float(notebook.ns["y"]) == after


def test_what_the_cell_itself_assigns_is_its_input(notebook: Notebook) -> None:
    notebook.ok("class M: pass\nm = M()\nm.k = 1.0\nx = jnp.array(3.0)")
    for expected in (6.0, 12.0, 24.0):
        notebook.ok("%%jit\nm.k = m.k * 2\ny = x * m.k")
        assert float(notebook.ns["y"]) == expected

"""Stale captures: what static arguments hold, which tracing freezes like all else.

The numbers that functions must return are worked out by hand, from the values in the cells.
"""

from __future__ import annotations

import pytest
from support.shells import Told

pytestmark = pytest.mark.usefixtures("default_policy", "patient")

START = "import functools\nfrom dataclasses import dataclass, field\n"
MODEL = (
    START
    + "class Model:\n"
    + "    def __init__(self): self.lr, self.note = 2.0, 'a'\n"
    + "    @functools.partial(perspex.jit, static_argnums=0)\n"
    + "    def step(self, x): return x * self.lr\n"
    + "m = Model()\nf = lambda x: m.step(x)"
)
CONFIG = (
    START
    + "@dataclass(eq=False)\nclass Config:\n    lr: float = 2.0\n"
    + "    layers: list = field(default_factory=lambda: [1.0, 3.0])\n"
    + "c = Config()\n"
    + "@functools.partial(perspex.jit, static_argnames='cfg')\n"
    + "def g(x, cfg): return x * cfg.lr + cfg.layers[1]\n"
    + "f = lambda x: g(x, cfg=c)"
)
FUNCTION = (
    START
    + "k = 2.0\ndef act(x): return x * k\n"
    + "@functools.partial(perspex.jit, static_argnums=1)\n"
    + "def g(x, act): return act(x) + 1\n"
    + "f = lambda x: g(x, act)"
)
# What is defined, what changes it, which variable that is and its old and new text, and what
# f(2.0) was and what it must become.
CHANGES = {
    "an attribute of self": (MODEL, "m.lr = 5.0", "self.lr", "2.0", "5.0", 4, 10),
    "an attribute of a keyword": (CONFIG, "c.lr = 5.0", "cfg.lr", "2.0", "5.0", 7, 13),
    "an element of a list in one": (
        CONFIG,
        "c.layers[1] = 4.0",
        "cfg.layers[1]",
        "3.0",
        "4.0",
        7,
        8,
    ),
    "a global of a function": (FUNCTION, "k = 5.0", "k", "2.0", "5.0", 5, 11),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_told(told: Told, name: str) -> None:
    define, change, variable, old, new, before, _ = CHANGES[name]
    told.ok(define)
    assert told.ok("float(f(2.0))") == before
    told.ok(change)
    assert told.ok("float(f(2.0))") == before
    (warning,) = told.warnings
    (found,) = warning.changes
    assert (found.variable, found.old, found.new) == (variable, old, new)
    told.ok("f(2.0)")
    assert not told.warnings


@pytest.mark.parametrize("name", CHANGES)
def test_retrace_gives_the_new_value(told: Told, name: str) -> None:
    define, change, *_, before, after = CHANGES[name]
    told.ok(define)
    told.ok("perspex.config.update('stale_captures', 'retrace')")
    assert told.ok("float(f(2.0))") == before
    told.ok(change)
    assert told.ok("float(f(2.0))") == after


@pytest.mark.parametrize(
    ("define", "change"),
    [
        (MODEL, "m.note = 'b'"),
        (MODEL, "m.lr = 2.0"),
        (FUNCTION, "j = 5.0"),
    ],
)
def test_what_is_not_read_is_not_told(told: Told, define: str, change: str) -> None:
    told.ok(define)
    before = told.ok("float(f(2.0))")
    told.ok(change)
    assert told.ok("float(f(2.0))") == before
    assert not told.warnings

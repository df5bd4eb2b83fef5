"""Cells as users write them: the notices that are missed, and those that are false, are counted."""

from __future__ import annotations

import gc
import re
import string
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.shells import Told

import perspex

from . import scenarios_of_training as training
from .notebooks_of_training import NOTEBOOKS, Fitted
from .scenarios import FRESH, STALE

pytestmark = pytest.mark.usefixtures("default_policy", "patient")

# Setter and call in one expression: no statement ends between them. Variables of installed modules
# are not looked at, nor what `functools` keeps.
MISSED = {"a setter in an expression", "an installed module", "singledispatch"}
# Which branch was taken is not recorded.
FALSE = {"an untaken branch"}
# All fields of a dataclass count, also where it is only called.
FALSE_IN_NOTEBOOKS = {"gp.kernel.label = 'squared exponential'"}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What scenarios change outside of their notebook is put back."""
    monkeypatch.setattr(string, "digits", string.digits)
    monkeypatch.setenv("PX_A", "1")
    monkeypatch.setenv("PX_B", "1")


def told_in(told: Told, scenarios: dict[str, tuple[str, str]]) -> set[str]:
    """The scenarios in which a notice came. All run in one notebook, each with its own names."""
    names = told.notebook.ns
    before, found = set(names), set()
    gc.freeze()
    for scenario, (define, change) in scenarios.items():
        told.ok(define)
        told.ok("f(2.0)")
        assert not told.warnings, scenario
        told.ok(change)
        variables = told.variables
        if "f(2.0)" not in change:
            told.ok("f(2.0)")
            variables += told.variables
        if variables:
            found.add(scenario)
        for name in [name for name in names if name not in before and not name.startswith("_")]:
            del names[name]
        names["Out"].clear()
        gc.collect()
    return found


def test_what_became_stale_is_told(told: Told) -> None:
    assert STALE.keys() - told_in(told, STALE) == MISSED


def test_what_is_sound_is_not_told(told: Told) -> None:
    assert told_in(told, FRESH) == FALSE


def test_what_became_stale_while_training_is_told(told: Told) -> None:
    assert training.STALE.keys() - told_in(told, training.STALE) == set()


def test_what_is_sound_while_training_is_not_told(told: Told) -> None:
    assert told_in(told, training.FRESH) == set()


def test_there_are_as_many_as_were_asked_for() -> None:
    assert (len(STALE | training.STALE), len(FRESH | training.FRESH)) == (137, 84)


def plain(notebook: Fitted, change: str) -> Iterator[Any]:
    """What is called, before and after a change, by the same cells without `jit`."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with perspex.disable_jit():
        exec(notebook.cells, names)
        yield eval(notebook.call, names)
        exec(change, names)
        yield eval(notebook.call, names)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_changes_in_notebooks_are_told_if_a_number_changes(told: Told, name: str) -> None:
    notebook, names = NOTEBOOKS[name], told.notebook.ns
    before, wrong = set(names), []
    for change in [*notebook.stale, *notebook.fresh]:
        first, second = map(perspex.tree.leaves, plain(notebook, change))
        same = all(map(np.array_equal, first, second))
        assert same == (change in notebook.fresh), change
        for cell in notebook.cells.split("# %%"):
            told.ok(cell)
            assert not told.warnings, cell
        told.ok(notebook.call)
        variables = []
        for cell in (change, notebook.call):
            told.ok(cell)
            variables += told.variables
        roots = {re.split(r"\W", variable)[0] for variable in variables}
        if change in FALSE_IN_NOTEBOOKS:
            assert roots
        elif roots != set(notebook.stale.get(change, "").split()):
            wrong.append((change, variables))
        for each in [each for each in names if each not in before and not each.startswith("_")]:
            del names[each]
        names["Out"].clear()
        gc.collect()
    assert not wrong, wrong


JIT = "@perspex.jit\n"
_TABLE = "table, key = {'a': 1.0, 'b': 2.0}, 'a'\n" + JIT
_RATES = "rates, at = [0.1, 0.2], 0\n" + JIT
_STATE = (
    "from typing import NamedTuple\nclass State(NamedTuple):\n    rate: float = 0.5\n"
    "    name: str = 'first'\nstate = State()\n" + JIT
)
AT_KEYS = {
    "the item": (_TABLE + "def f(x): return x * table[key]", "table['a'] = 3.0"),
    "the key": (_TABLE + "def f(x): return x * table[key]", "key = 'b'"),
    "an item that is gone": (_TABLE + "def f(x): return x * table[key]", "del table['a']"),
    "an item that came": (_TABLE + "def f(x): return x * table.get(key, 3.0)", "table.clear()"),
    "a key that came": (_TABLE + "def f(x): return x + ('c' in table)", "table['c'] = 1.0"),
    "a key that came, by a variable": (
        "table, key = {'a': 1.0}, 'b'\n" + JIT + "def f(x): return x + (key in table)",
        "table['b'] = 1.0",
    ),
    "one of several": (
        _TABLE + "def f(x): return sum(x * table[k] for k in (key, 'b'))",
        "table['b'] = 3.0",
    ),
    "part of an item": (
        "table, key = {'a': {'w': 1.0}}, 'a'\n" + JIT + "def f(x): return x * table[key]['w']",
        "table['a']['w'] = 2.0",
    ),
    "a key in a part": (
        "table, key = {'a': 1.0}, {'of': ['a']}\n"
        + JIT
        + "def f(x): return x * table[key['of'][0]]",
        "table['a'] = 2.0",
    ),
    "of many": (
        "table, key = {i: float(i) for i in range(100)}, 3\n"
        + JIT
        + "def f(x): return sum(x * table[k] for k in (key, 4))",
        "table[4] = 0.0",
    ),
    "the last of a list": (
        "rates, at = [0.1, 0.2], -1\n" + JIT + "def f(x): return x * rates[at]",
        "rates.append(0.3)",
    ),
    "an item of a list": (_RATES + "def f(x): return x * rates[at]", "rates[0] = 0.3"),
    "some item of a list": (
        _RATES + "def f(x): return sum(x * rates[i] for i in (at, -1))",
        "rates.append(0.3)",
    ),
    "a field": (_STATE + "def f(x): return x * state.rate", "state = state._replace(rate=0.1)"),
}
NOT_AT_KEYS = {
    "another item": (_TABLE + "def f(x): return x * table[key]", "table['b'] = 3.0"),
    "a new item": (_TABLE + "def f(x): return x * table[key]", "table['c'] = 3.0"),
    "a new item for one of several": (
        _TABLE + "def f(x): return sum(x * table[k] for k in (key, 'b'))",
        "table['c'] = 3.0",
    ),
    "another part": (
        "table, key = {'a': {'w': 1.0}}, 'a'\n" + JIT + "def f(x): return x * table[key]['w']",
        "table['a']['note'] = 'new'",
    ),
    "another item, by a key in a part": (
        "table, key = {'a': 1.0}, {'of': ['a']}\n"
        + JIT
        + "def f(x): return x * table[key['of'][0]]",
        "table['b'] = 2.0",
    ),
    "one more in a list": (_RATES + "def f(x): return x * rates[at]", "rates.append(0.3)"),
    "another field": (_STATE + "def f(x): return x * state.rate", "state = State(name='second')"),
}


def test_items_by_variable_keys(told: Told) -> None:
    assert told_in(told, AT_KEYS) == AT_KEYS.keys()
    assert told_in(told, NOT_AT_KEYS) == set()


def test_a_part_that_another_key_reads_is_told_by_the_key(told: Told) -> None:
    told.ok(AT_KEYS["the key"][0])
    told.ok("f(2.0)")
    told.ok("key = 'b'")
    told.ok("f(2.0)")
    assert told.variables == ["key"]


def test_there_are_a_hundred_in_notebooks() -> None:
    counts = [(len(each.stale), len(each.fresh)) for each in NOTEBOOKS.values()]
    assert tuple(map(sum, zip(*counts, strict=True))) == (78, 52)
